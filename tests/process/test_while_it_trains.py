# SPDX-License-Identifier: Apache-2.0
"""The digits while they are learnt, seen from another terminal: the progress line, `sumac ls`, `get` and `stats`."""
import json
import os
import signal
import subprocess
import tempfile
import unittest

import numpy

from cluster import BUILD, PATIENCE_S, SUMAC, Process, answered, children

NUMBER = r"[0-9.]+"


class Training(unittest.TestCase):
    """A run of its own, in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.environment = {"XDG_RUNTIME_DIR": cls.folder.name, "TF_CONFIG": ""}
        cls.run_ = Process([SUMAC, "run", "--ps", "2", "--workers", "2", "--replicas", "2", "--",
                            os.path.join(BUILD, "digits"), "--seconds", "600"], cls.environment, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(cls.run_.kill)
        cls.run_.wait_for(r"worker 0 \| step")


class Seen(Training):
    def sumac(self, *arguments):
        """Its output, when it ends well. It finds the one run by itself."""
        def attempt():
            done = subprocess.run([SUMAC, *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout, done.stderr
        code, output, errors = answered(attempt)
        self.assertEqual(code, 0, errors)
        return output

    def test_a_progress_line_has_all_that_there_is_to_see(self):
        line = self.run_.wait_for(rf"worker 0 \| step ({NUMBER}) +loss ({NUMBER}) +accuracy ({NUMBER}) % +({NUMBER}) pushes/s +"
                                  rf"staleness ({NUMBER})")
        self.assertTrue(all(float(figure) >= 0 for figure in line.groups()))

    def test_its_ps_listen_on_this_machine_alone(self):
        for index in range(2):
            self.run_.wait_for(rf"ps {index} .* listens on 127\.0\.0\.1:\d+, version")

    def test_the_weights_are_split_over_both_ps(self):
        variables = {variable["name"]: variable for variable in json.loads(self.sumac("ls", "--json"))["variables"]}
        for name, shape in (("W1", [64, 128]), ("W2", [128, 10])):
            variable = variables[name]
            self.assertEqual((variable["shape"], variable["dtype"], variable["function"]["name"]), (shape, "float32", "adam"))
            self.assertEqual(sorted(shard["ps"] for shard in variable["shards"]), [0, 1])
            self.assertTrue(all(shard["version"] > 0 for shard in variable["shards"]))
            self.assertTrue(all(shard["last_worker"].startswith("worker ") for shard in variable["shards"]))

    def test_some_rows_are_printed_and_the_whole_is_written_for_numpy(self):
        self.assertTrue(self.sumac("get", "W1", "--slice", "0:4").startswith("W1  float32  [4, 128]\n[["))
        path = os.path.join(self.folder.name, "w1.npy")
        self.sumac("get", "W1", "-o", path)
        values = numpy.load(path)
        self.assertEqual((values.dtype, values.shape), (numpy.float32, (64, 128)))
        self.assertGreater(len(numpy.unique(values)), 1000)

    def test_stats_tell_rates_latencies_and_staleness_of_each_ps_and_worker(self):
        for interval_ms in ("200", "2000", "20000"):        # on a busy machine nothing may happen in a short one
            stats = json.loads(self.sumac("stats", "--json", "--interval-ms", interval_ms))
            self.assertEqual([ps["name"] for ps in stats["ps"]], ["ps 0", "ps 1"])
            workers = {client["name"]: client for client in stats["clients"]}
            self.assertLessEqual({"worker 0", "worker 1"}, set(workers))
            all_counted = (*stats["ps"], workers["worker 0"], workers["worker 1"])
            if all(counted["pushes_per_s"] > 0 and counted["pulls_per_s"] > 0 for counted in all_counted):
                break
        for counted in all_counted:
            for what in ("pushes", "push_bytes", "pulls", "pull_bytes", "pushes_per_s", "push_bytes_per_s", "pulls_per_s",
                         "pull_bytes_per_s"):
                self.assertGreater(counted[what], 0, (counted["name"], what))
            for what in ("push_us", "pull_us", "staleness"):
                found = counted[what]
                self.assertGreater(found["count"], 0)
                self.assertLessEqual(found["p50"], found["p90"])
                self.assertLessEqual(found["p90"], found["p99"])


class Broken(Training):
    def test_a_worker_that_crashes_ends_the_run(self):
        os.kill(children(self.run_.child.pid)[3], signal.SIGKILL)       # after the two ps and worker 0
        self.assertEqual(self.run_.wait(), 128 + signal.SIGKILL)
        self.run_.wait_for("worker 1 ended with 137")
        self.assertEqual(os.listdir(os.path.join(self.folder.name, "sumac")), [])


if __name__ == "__main__":
    unittest.main()
