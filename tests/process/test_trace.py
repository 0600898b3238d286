# SPDX-License-Identifier: Apache-2.0
"""`sumac run --trace FILE`: what the steps of real workers do, and when, in files that Chrome's format has."""
import collections
import json
import os
import subprocess
import tempfile
import time
import unittest

from cluster import BUILD, SUMAC, Process

LINE, DIGITS = (os.path.join(BUILD, name) for name in ("line", "digits"))
AS_ROUNDED_US = 0.002       # begin and length have three decimals each
NETWORK = {"pull", "push 0", "push 1"}


class Trace:
    """A file's events: by track, name and step; there is one of each, but for waits."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        self.process = next(event["args"]["name"] for event in events if event["name"] == "process_name")
        self.pids = {event["pid"] for event in events}
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.tracks = set(names.values())
        self.events = [event for event in events if event["ph"] == "X"]
        self.found = collections.defaultdict(list)
        for event in self.events:
            self.found[names[event["tid"]], event["name"], event["args"]["step"]].append(event)
        self.by_track = collections.defaultdict(list)
        for event in self.events:
            self.by_track[names[event["tid"]]].append(event)

    def one(self, track, name, step):
        event, = self.found[track, name, step]
        return event

    def steps(self):
        return sorted(event["args"]["step"] for event in self.events if event["name"] == "step")


def end_of(event):
    return event["ts"] + event["dur"] - AS_ROUNDED_US


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "runtime"), 0o700)

    def run_program(self, *arguments, program=(LINE,), workers=1, environment=None):
        """Its exit code, and what it said."""
        command = [SUMAC, "run", "--ps", "2", "--workers", str(workers), "--replicas", "2", *arguments, "--", *program]
        run = Process(command, {"XDG_RUNTIME_DIR": os.path.join(self.folder, "runtime"), **(environment or {})}, stdin=subprocess.DEVNULL)
        self.addCleanup(run.kill)
        return run.wait(), run.text()

    def file(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name != "runtime")

    def assert_in_turn(self, *events):
        for first, second in zip(events, events[1:]):
            self.assertLessEqual(end_of(first), second["ts"], f"{first} and {second}")

    def assert_is_of_steps(self, trace, steps):
        """Values are pulled before they are computed on, and what is computed is reduced, then pushed; by both replicas."""
        for step in range(steps):
            whole = trace.one("worker", "step", step)
            for replica in range(2):
                track = f"replica {replica} (CPU:{replica})"
                self.assert_in_turn(trace.one("pull", "pull", step), trace.one(track, "compute", step), trace.one(track, "reduce", step),
                                    trace.one(f"push {step % 2}", "push", step))
                self.assertGreaterEqual(trace.one(track, "compute", step)["ts"], whole["ts"])
            for wait in ("wait for replicas", "wait for reduction", "wait for push"):
                self.assertEqual(len(trace.found["worker", wait, step]), 1, wait)
            self.assertGreaterEqual(len(trace.found["worker", "wait for pull", step]), 1)
        self.assertEqual(trace.tracks, {"worker", "replica 0 (CPU:0)", "replica 1 (CPU:1)", *NETWORK})
        for track, events in trace.by_track.items():
            if track != "worker":
                self.assert_in_turn(*sorted(events, key=lambda event: event["ts"]))

    def assert_waits_are_within_steps(self, trace):
        steps = {step: trace.one("worker", "step", step) for step in trace.steps()}
        for (track, name, step), events in trace.found.items():
            for event in events if track == "worker" and name not in ("step", "wait for push") else ():
                self.assertGreaterEqual(event["ts"], steps[step]["ts"])
                self.assertLessEqual(end_of(event), end_of(steps[step]) + 2 * AS_ROUNDED_US)

    def test_a_run_of_one_worker_writes_the_file_that_was_asked_for(self):
        began = time.monotonic()
        code, text = self.run_program("--trace", self.file("steps.json"))
        ended = time.monotonic()
        self.assertEqual(code, 0, text)
        self.assertEqual(self.files(), ["steps.json"])
        trace = Trace(self.file("steps.json"))
        self.assertEqual(trace.process, "worker 0")
        self.assertGreater(len(trace.steps()), 10)
        self.assertEqual(trace.steps(), list(range(len(trace.steps()))))
        self.assert_is_of_steps(trace, len(trace.steps()))
        self.assert_waits_are_within_steps(trace)
        for event in trace.events:      # the clock is the host's
            self.assertGreaterEqual(event["ts"], began * 1e6)
            self.assertLessEqual(end_of(event), ended * 1e6)
        self.assertEqual({event["args"]["bytes"] for event in trace.events if event["name"] in ("push", "pull")}, {8})

    def test_each_of_two_workers_writes_a_file_of_its_own_where_the_environment_says_so(self):
        code, text = self.run_program("--synchronous", program=(DIGITS, "--steps", "40"), workers=2, environment={"SUMAC_TRACE": self.file("steps.json")})
        self.assertEqual(code, 0, text)
        self.assertEqual(self.files(), ["steps.worker-0.json", "steps.worker-1.json"])
        traces = [Trace(self.file(name)) for name in self.files()]
        self.assertEqual([trace.process for trace in traces], ["worker 0", "worker 1"])
        self.assertEqual(len(set.union(*(trace.pids for trace in traces))), 2)
        for trace in traces:
            self.assert_is_of_steps(trace, len(trace.steps()))
        for step in traces[0].steps():      # no contribution is applied before both have begun to push
            pushes = [trace.one(f"push {step % 2}", "push", step) for trace in traces]
            for push in pushes:
                self.assertGreaterEqual(end_of(push) + AS_ROUNDED_US, max(other["ts"] for other in pushes))

    def test_without_one_nothing_is_written(self):
        code, text = self.run_program("--trace", "", environment={"SUMAC_TRACE": self.file("steps.json")})
        self.assertEqual(code, 0, text)
        self.assertEqual(self.files(), [])

    def test_a_trace_that_cannot_be_written_ends_the_run_with_what_to_do(self):
        code, text = self.run_program("--trace", self.file("none/steps.json"))
        self.assertEqual(code, 2, text)
        self.assertIn(f"line: the trace {self.file('none/steps.json')} cannot be written: No such file or directory; name a file in a "
                      "folder where this process may write (--trace, SUMAC_TRACE)", text)

    def test_a_disk_that_is_full_ends_the_trace_and_not_the_run(self):
        code, text = self.run_program("--trace", "/dev/full")
        self.assertEqual(code, 0, text)
        self.assertEqual(text.count("worker 0: the trace /dev/full ends here: No space left on device; the work goes on without it"), 1, text)


if __name__ == "__main__":
    unittest.main()
