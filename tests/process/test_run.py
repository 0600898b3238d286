# SPDX-License-Identifier: Apache-2.0
"""`sumac run`: a whole cluster on this machine, what it prints, how it ends, and what it leaves behind: nothing."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import uuid

from cluster import BUILD, PATIENCE_S, SUMAC, Process, children

DIGITS = os.path.join(BUILD, "digits")
BIND_ONCE = os.path.join(BUILD, "libbind_once.so")


def marked(mark):
    """Processes that carry the mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as environment:
                if mark.encode() in environment.read():
                    found.append(int(entry))
        except OSError:
            continue        # it has ended, or is somebody else's
    return found


def fill(pipe):
    """Until a pipe that nobody reads takes hardly more."""
    room = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    until = time.monotonic() + PATIENCE_S
    held = bytearray(4)
    while int.from_bytes(held, sys.byteorder) < room - 4096:
        assert time.monotonic() < until, "the pipe does not fill"
        fcntl.ioctl(pipe, termios.FIONREAD, held)


class Run(unittest.TestCase):
    """Each test's processes carry a mark, and its runs are recorded in a folder of its own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.mark = f"SUMAC_TEST_MARK={uuid.uuid4()}"
        self.environment = {"XDG_RUNTIME_DIR": self.folder.name, "SUMAC_TEST_MARK": self.mark.split("=")[1]}
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
        for pid in marked(self.mark):
            with contextlib.suppress(ProcessLookupError):       # its keeper was quicker
                os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()

    def run_program(self, *arguments, ps=2, workers=2, environment=None):
        command = [SUMAC, "run", "--ps", str(ps), "--workers", str(workers), *arguments]
        process = Process(command, {**self.environment, **(environment or {})}, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def assert_nothing_is_left(self):
        self.assertEqual(marked(self.mark), [])
        self.assertEqual(os.listdir(os.path.join(self.folder.name, "sumac")), [])

    def test_a_worker_that_may_be_started_again_was_not_ended_by_a_signal(self):
        run = self.run_program("--", "sh", "-c", "exit 138", workers=1)
        self.assertEqual(run.wait(), 138)
        self.assertIn("worker 0 ended with 138 (starting again may help)", run.text())
        self.assertNotIn("correct that error", run.text())
        run = self.run_program("--", "sh", "-c", "exit 200", workers=1)     # there is no signal 72
        self.assertEqual(run.wait(), 200)
        self.assertIn("worker 0 ended with 200; stopping the others", run.text())

    def test_an_example_says_how_it_is_called(self):
        for words, code, shown, errors in ((["--help"], 0, "usage: digits ", ""),
                                           (["--nothing", "9"], 2, "", "digits: --nothing is no option of it\nusage: digits "),
                                           (["--json", "--nothing"], 2, "", "digits: --nothing is no option of it\nusage: digits "),
                                           (["--steps"], 2, "", "digits: --steps wants a value\nusage: digits ")):
            done = subprocess.run([DIGITS, *words], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stdout.split("[")[0], done.stderr.split("[")[0]), (code, shown, errors))
        for program, *words in (["strategies", "--step", "3"], ["strategies", "--steps"], ["strategies", "--steps", "three"],
                                ["strategies", "--curve", "/nowhere/curve"], ["first", "3"], ["logistic", "--steps", "3"]):
            done = subprocess.run([os.path.join(BUILD, program), *words], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: ", done.stderr)

    def test_two_workers_learn_the_digits_through_two_ps(self):
        run = self.run_program("--replicas", "2", "--", DIGITS)
        self.assertEqual(run.wait(), 0, run.text())
        accuracy = run.wait_for(r"worker 0 \| done: \d+ of 360 held-back rows right, ([0-9.]+) %")
        self.assertGreaterEqual(float(accuracy.group(1)), 95)
        for worker in range(2):
            run.wait_for(rf"worker {worker} \| \d+ steps in")
        for ps in range(2):
            run.wait_for(rf"ps {ps}     \| .*every listed member has left as done")
        self.assert_nothing_is_left()

    def test_every_process_gets_its_task_and_workers_their_replicas(self):
        run = self.run_program("--replicas", "3", "--", "sh", "-c", 'echo "$SUMAC_REPLICAS $TF_CONFIG"', ps=1)
        for worker in range(2):
            line = run.wait_for(rf"worker {worker} \| 3 (.*)")
            config = json.loads(line.group(1))
            self.assertEqual(config["task"], {"type": "worker", "index": worker})
            self.assertEqual([len(config["cluster"][job]) for job in ("ps", "worker")], [1, 2])

    def test_devices_are_told_to_the_workers_who_refuse_those_that_are_none(self):
        run = self.run_program("--devices", "cpu:2", "--", "sh", "-c", 'echo "${SUMAC_REPLICAS-none} $SUMAC_DEVICES"', ps=1, workers=1)
        run.wait_for(r"worker 0 \| none cpu:2")
        run.wait()
        run = self.run_program("--devices", "cpu:2", "--", DIGITS, ps=1, workers=1)
        self.assertEqual(run.wait(), 0, run.text())
        for devices, said in (("tpu:1", 'devices are "tpu:1"; they are auto, cpu:N'), ("gpu", "there is no NVIDIA driver here|this build has no GPUs|no step for them")):
            run = self.run_program("--devices", devices, "--", DIGITS, ps=1, workers=1)
            self.assertEqual(run.wait(), 2, run.text())
            run.wait_for(said)
        self.assert_nothing_is_left()

    def test_there_is_a_session_for_every_worker(self):
        run = self.run_program("--", os.path.join(BUILD, "first"), workers=40)
        self.assertEqual(run.wait(), 0, run.text())
        for worker in range(40):
            run.wait_for(rf"worker {worker} *\| w is")

    def test_workers_start_with_ordinary_signals(self):
        run = self.run_program("--", "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status", workers=1)
        run.wait_for(r"worker 0 \| SigBlk:\s+0+$")
        ignored = int(run.wait_for(r"worker 0 \| SigIgn:\s+(\w+)$").group(1), 16)
        self.assertFalse(ignored & 1 << (signal.SIGPIPE - 1))

    def test_a_worker_does_not_read_what_is_typed_to_the_run(self):
        run = Process([SUMAC, "run", "--", "sh", "-c", "cat; echo end; sleep 1000"], self.environment, stdin=subprocess.PIPE)
        self.addCleanup(run.child.stdin.close)
        self.processes.append(run)
        run.wait_for(r"worker 0 \| end")

    def test_the_first_failure_ends_the_run_with_its_exit_code(self):
        program = 'case "$TF_CONFIG" in *\'"worker", "index": 1\'*) exit 3;; esac; sleep 1000'
        run = self.run_program("--", "sh", "-c", program)
        self.assertEqual(run.wait(), 3)
        run.wait_for("worker 1 ended with 3")
        self.assert_nothing_is_left()

    def test_a_worker_that_a_signal_kills_gives_128_and_the_signal(self):
        run = self.run_program("--", "sh", "-c", "kill -KILL $$", workers=1)
        self.assertEqual(run.wait(), 128 + signal.SIGKILL)
        self.assert_nothing_is_left()

    def test_a_program_that_is_not_there_is_named(self):
        run = self.run_program("--", "./there-is-none")
        self.assertEqual(run.wait(), 127)
        run.wait_for("^sumac run: ./there-is-none: No such file")
        self.assertNotIn("ps 0", run.text())        # nothing was started for it
        run = self.run_program("--", "")
        self.assertEqual(run.wait(), 127)
        run.wait_for("^sumac run: the name of the program is empty$")

    def test_a_program_that_cannot_be_run_is_named_before_anything_is_started(self):
        for program, code, why in (("/", 126, "directory"), ("there-is-none", 127, "No such file"), (__file__, 126, "denied")):
            # A folder of PATH that this user may not look into would be why instead.
            run = self.run_program("--", program, environment={"PATH": os.defpath})
            self.assertEqual(run.wait(), code)
            run.wait_for(f"^sumac run: {program}: .*{why}")
            self.assertNotIn("ps 0", run.text())
        told = subprocess.run([SUMAC, "run", "--help"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        self.assertIn("126: PROGRAM cannot be executed; 127: it is not there", " ".join(told.split()))

    def test_a_program_is_looked_for_as_a_shell_does(self):
        """An earlier folder of PATH decides why it cannot be run, and an empty one is this folder."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            for where, mode in ((folder, 0o600), (other, 0o700)):
                with open(os.open(os.path.join(where, "mine"), os.O_WRONLY | os.O_CREAT, mode), "w") as file:
                    file.write("#!/bin/sh\nexit 3\n")
            for path, code in ((f"{folder}:/usr/bin", 126), (f":{os.defpath}", 3)):
                with self.subTest(path):
                    done = subprocess.run([SUMAC, "run", "--", "mine"], cwd=other, capture_output=True, text=True, timeout=PATIENCE_S,
                                          env={**os.environ, **self.environment, "PATH": path})
                    self.assertEqual(done.returncode, code, done.stderr)

    def test_options_for_the_ps_override_those_of_the_run(self):
        run = self.run_program("--ps-options", "--terminate-ms\t5000", "--", "sh", "-c", "echo up; sleep 1000", ps=1, workers=1)
        run.wait_for("ps 0 .* listens on")
        with open(f"/proc/{children(run.child.pid)[0]}/cmdline", encoding="utf-8") as file:
            words = file.read().split("\0")
        self.assertEqual([words[i + 1] for i, word in enumerate(words) if word == "--terminate-ms"], ["1000", "5000"])
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 128 + signal.SIGINT)

    def test_a_program_of_this_folder_that_is_not_in_path_is_answered_with_how_to_name_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.open(os.path.join(folder, "mine"), os.O_WRONLY | os.O_CREAT, 0o700), "w"):
                pass
            told = subprocess.run([SUMAC, "run", "--", "mine"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((told.returncode, told.stderr),
                         (127, "sumac run: mine is not in PATH; write ./mine for the one in this folder\n"))

    def test_a_ps_that_is_killed_ends_the_run(self):
        run = self.run_program("--", "sh", "-c", "echo up; sleep 1000")
        run.wait_for(r"worker 1 \| up")
        os.kill(children(run.child.pid)[0], signal.SIGKILL)
        self.assertEqual(run.wait(), 128 + signal.SIGKILL)
        run.wait_for("ps 0 ended with 137")
        self.assert_nothing_is_left()

    def test_what_is_in_the_group_of_a_ps_ends_with_it(self):
        run = self.run_program("--", "sh", "-c", "echo up; sleep 1000", ps=1, workers=1)
        run.wait_for(r"worker 0 \| up")
        ps = children(run.child.pid)[0]
        beside = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: os.setpgid(0, ps))      # as what a plug-in has started
        self.addCleanup(beside.wait)
        self.addCleanup(beside.kill)
        os.kill(ps, signal.SIGKILL)
        self.assertEqual(run.wait(), 128 + signal.SIGKILL)
        self.assertEqual(beside.wait(PATIENCE_S), -signal.SIGKILL)

    def test_an_interrupt_reaches_the_workers_and_leaves_nothing_of_theirs(self):
        run = self.run_program("--", "sh", "-c", "trap 'echo told; exit 0' INT; sleep 1000 & echo up; wait")
        for worker in range(2):
            run.wait_for(rf"worker {worker} \| up")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 128 + signal.SIGINT)
        run.wait_for(r"worker 0 \| told")
        self.assertEqual(run.text().splitlines()[-1], "sumac run: the run was interrupted by a signal (Interrupt) and ends with 130")
        self.assert_nothing_is_left()

    def test_a_signal_reaches_what_a_worker_has_started(self):
        child = "(trap 'echo child told; exit' TERM; echo up; sleep 1000 & wait)"
        run = self.run_program("--", "sh", "-c", f"trap wait TERM; {child} & wait", workers=1)
        run.wait_for(r"worker 0 \| up")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        run.wait_for(r"worker 0 \| child told")
        self.assert_nothing_is_left()

    def test_a_worker_and_a_ps_that_are_deaf_to_sigterm_are_killed_and_named(self):
        run = self.run_program("--", "sh", "-c", "trap '' INT TERM; sleep 1000 & echo up; while :; do wait; done", ps=1, workers=2)
        for worker in range(2):
            run.wait_for(rf"worker {worker} \| up")
        os.kill(children(run.child.pid)[0], signal.SIGSTOP)
        run.signal(signal.SIGTERM)
        for named in ("worker 0 and 1 more did not end within 10 s of being told to, and are killed",
                      "ps 0 did not end within 10 s of being told to, and is killed"):
            run.wait_for(f"^sumac run: {named}$")
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        self.assertEqual(run.text().count("did not end within"), 2)
        self.assert_nothing_is_left()

    def test_a_second_signal_ends_what_is_deaf_to_the_first(self):
        run = self.run_program("--", "sh", "-c", "trap '' INT TERM; sleep 1000 & echo up; while :; do wait; done", workers=1)
        run.wait_for(r"worker 0 \| up")
        run.signal(signal.SIGINT)
        run.wait_for("another signal ends all of them at once")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 128 + signal.SIGINT)
        self.assert_nothing_is_left()

    def test_a_second_signal_is_not_waited_for_and_the_first_one_decides(self):
        """The ps is deaf to both, and so is the worker."""
        run = self.run_program("--", "sh", "-c", "trap '' INT TERM; sleep 1000 & echo up; while :; do wait; done", ps=1, workers=1)
        run.wait_for(r"worker 0 \| up")
        os.kill(children(run.child.pid)[0], signal.SIGSTOP)
        run.signal(signal.SIGINT)
        run.wait_for("another signal ends all of them at once")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGINT)
        self.assertNotIn("did not end within", run.text())
        self.assert_nothing_is_left()

    def test_a_signal_while_the_ps_are_stopped_ends_them_at_once(self):
        run = self.run_program("--", "true", ps=1, workers=1)
        run.wait_for("ps 0 .* listens on")
        os.kill(children(run.child.pid)[0], signal.SIGSTOP)
        run.wait_for("the workers have ended, and the ps wait for more of them; stopping the ps")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        self.assertEqual(run.text().count("sumac run: "), 2)
        self.assertEqual(run.text().splitlines()[-1], "sumac run: the run was interrupted by a signal (Terminated) and ends with 143")
        self.assert_nothing_is_left()

    def test_a_ps_0_that_hangs_when_the_workers_have_ended_is_killed_and_named(self):
        run = self.run_program("--", "true", ps=1, workers=1)
        run.wait_for("ps 0 .* listens on")
        os.kill(children(run.child.pid)[0], signal.SIGSTOP)
        run.wait_for("the workers have ended, and the ps wait for more of them; stopping the ps")
        run.wait_for("^sumac run: ps 0 did not end within 10 s of being told to, and is killed$")
        self.assertNotEqual(run.wait(), 0)
        self.assert_nothing_is_left()

    def test_keys_of_its_terminal_reach_the_run_and_the_run_its_workers(self):
        for key, number in ((b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)):
            with self.subTest(key=key):
                run, terminal = self.run_with_terminal("trap 'echo told; exit 0' INT QUIT; sleep 1000 & echo up; wait")
                run.wait_for(r"worker 0 \| up")
                os.write(terminal, key)
                self.assertEqual(run.wait(), 128 + number)
                os.close(terminal)
                run.wait_for(r"worker 0 \| told")
                self.assert_nothing_is_left()

    def test_a_second_key_ends_what_is_deaf_to_the_first(self):
        run, terminal = self.run_with_terminal("trap '' INT TERM; setsid sleep 1000 & echo up; while :; do wait; done")
        run.wait_for(r"worker 0 \| up")
        os.write(terminal, b"\x03")
        run.wait_for("another signal ends all of them at once")
        os.write(terminal, b"\x03")
        self.assertEqual(run.wait(), 128 + signal.SIGINT)
        os.close(terminal)
        self.assert_nothing_is_left()

    def run_with_terminal(self, program):
        """A run in the foreground of a terminal of its own, and our end of that."""
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"this machine gives no terminals: {error}")
        run = Process(["setsid", "--ctty", SUMAC, "run", "--", "sh", "-c", program], self.environment, stdin=theirs)
        os.close(theirs)
        self.processes.append(run)
        return run, ours

    def test_an_interrupt_reaches_workers_of_a_run_in_the_background(self):
        program = "trap \"echo told; exit 0\" INT; sleep 1000 & echo up; wait"     # no trap takes what is ignored
        run = Process(["sh", "-c", f"trap '' INT; exec {SUMAC} run -- sh -c '{program}'"], self.environment,
                      stdin=subprocess.DEVNULL)
        self.processes.append(run)
        run.wait_for(r"worker 0 \| up")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 128 + signal.SIGINT)
        run.wait_for(r"worker 0 \| told")
        self.assert_nothing_is_left()

    def test_a_run_under_nohup_goes_on_without_its_terminal(self):
        command = f"trap '' HUP; exec {SUMAC} run -- sh -c 'echo up; exec sleep 1000'"
        run = Process(["sh", "-c", command], self.environment, stdin=subprocess.DEVNULL)
        self.processes.append(run)
        run.wait_for(r"worker 0 \| up")
        run.signal(signal.SIGHUP)
        run.signal(signal.SIGTERM)      # the first one that counts gives the code
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        self.assert_nothing_is_left()

    def test_a_run_that_is_killed_takes_its_processes_along(self):
        run = self.run_program("--", "sh", "-c", "setsid sleep 1000 & (setsid sleep 1000 &); echo up; wait")
        run.wait_for(r"ps 1     \| .*listens on")
        for worker in range(2):
            run.wait_for(rf"worker {worker} \| up")
        found, until = [], time.monotonic() + PATIENCE_S
        while len(found) < 2 + 2 * 4 and time.monotonic() < until:      # who is just becoming a sleep has no environment
            found = [pid for pid in marked(self.mark) if pid != run.child.pid]
        self.assertGreaterEqual(len(found), 2 + 2 * 4)      # a ps; of a worker its keeper, the shell and both sleeps
        handles = [os.pidfd_open(pid) for pid in found]
        run.signal(signal.SIGKILL)
        for handle in handles:
            self.assertNotEqual(select.select([handle], [], [], PATIENCE_S)[0], [], "a process did not end")
            os.close(handle)

    def test_output_that_cannot_be_written_is_an_error_and_ends_no_training(self):
        for screen, said in ((">/dev/full", "standard output.*No space left"), (">&-", "standard output.*Bad file"),
                             ("2>/dev/full", r"worker 0 .*w is"), (">/dev/full 2>&1", "^$")):
            with self.subTest(screen):
                program = Process(["sh", "-c", f'"$0" run --ps 1 --workers 1 -- "$1" {screen}', SUMAC, os.path.join(BUILD, "first")],
                                  self.environment, stdin=subprocess.DEVNULL)
                self.processes.append(program)
                self.assertEqual(program.wait(), 1, program.text())
                self.assertRegex(program.text(), said)
                if "2>" not in screen:
                    program.wait_for("every listed member has left as done")

    def test_a_reader_that_goes_away_is_no_error(self):
        program = Process(["bash", "-c", '"$0" run --ps 1 --workers 1 -- "$1" 2>&1 | head -n 1; exit "${PIPESTATUS[0]}"', SUMAC,
                           os.path.join(BUILD, "first")], self.environment, stdin=subprocess.DEVNULL)
        self.processes.append(program)
        self.assertEqual(program.wait(), 0, program.text())
        self.assertEqual(len(program.lines), 1, program.text())

    def test_a_signal_is_heard_while_nobody_reads_the_output(self):
        command = [SUMAC, "run", "--ps", "1", "--workers", "1", "--", "/usr/bin/yes", "x" * 80]
        for errors in (subprocess.DEVNULL, subprocess.STDOUT):
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                  env={**os.environ, **self.environment}) as run:
                self.addCleanup(run.kill)
                fill(run.stdout)
                run.send_signal(signal.SIGTERM)
                self.assertEqual(run.wait(timeout=PATIENCE_S), 143)
            self.assert_nothing_is_left()

    def test_a_port_that_is_taken_in_the_meantime_starts_the_cluster_again(self):
        taken = {"LD_PRELOAD": BIND_ONCE, "SUMAC_BIND_ONCE": os.path.join(self.folder.name, "bound"),
                 "ASAN_OPTIONS": "verify_asan_link_order=0"}
        run = self.run_program("--", os.path.join(BUILD, "first"), workers=1, environment=taken)
        self.assertEqual(run.wait(), 0, run.text())
        run.wait_for("a port that was free is taken; starting again")
        run.wait_for(r"worker 0 \| w is 1 2 3 4")

    def test_workers_that_end_without_leaving_as_done_are_an_error_of_the_program(self):
        run = self.run_program("--", "true")
        self.assertEqual(run.wait(), 1, run.text())
        run.wait_for("the workers have ended, and the ps wait for more of them; stopping the ps")
        self.assertEqual(run.lines[-1], "sumac run: every worker exited with 0, but not every one has joined and left as done "
                                        "(sumac_client_leave): the run ends with 1")
        self.assert_nothing_is_left()

    def test_one_worker_that_is_not_done_is_enough_for_that(self):
        program = f'case "$TF_CONFIG" in *\'"worker", "index": 1\'*) exit 0;; esac; exec {BUILD}/first'
        run = self.run_program("--", "sh", "-c", program)
        self.assertEqual(run.wait(), 1, run.text())
        run.wait_for("not every one has joined and left as done")
        self.assert_nothing_is_left()

    def test_all_that_a_worker_has_started_ends_with_it(self):
        started = "setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 1000 & "
        run = self.run_program("--", "sh", "-c", started + "exit 3", workers=1)
        self.assertEqual(run.wait(), 3, run.text())
        self.assert_nothing_is_left()

    def test_so_it_does_when_the_worker_kills_what_would_end_it(self):
        """The worker's parent is its keeper, and the daemon has neither its environment nor its session."""
        held, given = os.pipe()
        os.set_inheritable(given, True)
        self.addCleanup(os.close, held)
        daemon = f"(env -i setsid sh -c 'sleep 60 >&{given} & exec sleep 60 >&{given}' &); kill -9 $PPID"
        process = subprocess.Popen([SUMAC, "run", "--", "sh", "-c", daemon], env={**os.environ, **self.environment}, pass_fds=[given],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(given)
        said, _ = process.communicate(timeout=PATIENCE_S)

        self.assertEqual(process.returncode, 137, said)
        self.assertTrue(select.select([held], [], [], 0)[0])       # the daemon's end of it is closed
        self.assertEqual(os.read(held, 1), b"")

    def test_a_process_of_the_shell_that_became_the_run_outlives_it(self):
        shell = f"sleep 1000 & echo started $!; exec {SUMAC} run -- {BUILD}/first"
        run = Process(["sh", "-c", shell], self.environment, stdin=subprocess.DEVNULL)
        self.processes.append(run)
        others = int(run.wait_for(r"^started (\d+)$").group(1))
        self.assertEqual(run.child.wait(PATIENCE_S), 0)
        os.kill(others, signal.SIGKILL)                 # it is there

    def test_what_a_worker_has_started_ends_before_the_other_workers(self):
        started = "setsid sh -c 'echo child $$; echo > $READY; exec sleep 1000' & read ready < $READY; exit 0"
        program = f"case \"$TF_CONFIG\" in *'\"worker\", \"index\": 0'*) {started};; esac; sleep 1000"
        ready = os.path.join(self.folder.name, "ready")
        os.mkfifo(ready)
        run = self.run_program("--", "sh", "-c", program, environment={"READY": ready})
        child = int(run.wait_for(r"worker 0 \| child (\d+)").group(1))
        try:
            handle = os.pidfd_open(child)
        except ProcessLookupError:
            handle = None
        if handle is not None:
            self.assertNotEqual(select.select([handle], [], [], PATIENCE_S)[0], [], "it did not end with its worker")
            os.close(handle)
        self.assertTrue(run.running())

    def test_sigquit_ends_the_run_like_an_interrupt(self):
        run = self.run_program("--", "sh", "-c", "trap 'echo told; exit 0' QUIT; setsid sleep 1000 & echo up; wait")
        for worker in range(2):
            run.wait_for(rf"worker {worker} \| up")
        run.signal(signal.SIGQUIT)
        self.assertEqual(run.wait(), 128 + signal.SIGQUIT)
        run.wait_for(r"worker 0 \| told")
        self.assert_nothing_is_left()


class Output(unittest.TestCase):
    PROGRAM = r'printf "one\rtwo\rthree\rlast\n"; printf "split "; printf "line\r\n"; printf "no end"'

    def run_on(self, stdout):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([SUMAC, "run", "--", "sh", "-c", self.PROGRAM], stdout=stdout, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
                                  env={**os.environ, "XDG_RUNTIME_DIR": folder})

    def test_lines_come_whole_and_a_progress_line_at_most_once_a_second(self):
        done = self.run_on(subprocess.PIPE)
        lines = [line for line in done.stdout.decode().splitlines() if line.startswith("worker 0")]
        self.assertEqual(lines, [f"worker 0 | {text}" for text in ("one", "last", "split line", "no end")])

    def test_lines_of_both_kinds_keep_their_order_on_one_screen(self):
        program = "for i in 1 2 3 4 5 6 7 8; do echo out $i; echo err $i >&2; done; exit 3"
        with tempfile.TemporaryDirectory() as folder:
            run = Process([SUMAC, "run", "--", "sh", "-c", program], {"XDG_RUNTIME_DIR": folder}, stdin=subprocess.DEVNULL)
            self.assertEqual(run.wait(), 3)
        said = [line for line in run.lines if not line.startswith("ps 0")]
        wanted = [f"worker 0 | {kind} {i}" for i in range(1, 9) for kind in ("out", "err")]
        self.assertEqual(said, wanted + ["sumac run: worker 0 ended with 3; stopping the others",
                                         "sumac run: worker 0 ended with 3: correct that error before you start the run again"])

    def test_on_a_terminal_a_progress_line_is_written_over(self):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"this machine gives no terminals: {error}")
        self.run_on(theirs)
        os.close(theirs)
        printed = b""
        try:
            while chunk := os.read(ours, 65536):
                printed += chunk
        except OSError:
            pass            # the terminal's other end is closed
        os.close(ours)
        shown = re.sub(rb"ps 0 .*?\r\n", b"", printed)
        self.assertIn(b"\r\x1b[Kworker 0 | one\r\x1b[Kworker 0 | two\r\x1b[Kworker 0 | three\r\x1b[Kworker 0 | last\r\n", shown)


class Misuse(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([SUMAC, "run", *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_no_program(self):
        self.assertIn("which program?", self.refused("--ps", "2"))

    def test_no_ps(self):
        self.assertIn("--ps wants a whole number, 1 to 256, not 0", self.refused("--ps", "0", "--", "true"))

    def test_too_many(self):
        self.assertIn("--workers wants a whole number, 1 to 511, not 100000", self.refused("--workers", "100000", "--", "true"))
        self.assertIn("--replicas wants a whole number, 1 to 256, not 257", self.refused("--replicas", "257", "--", "true"))
        self.assertIn("at most 512 processes altogether", self.refused("--ps", "256", "--workers", "257", "--", "true"))
        done = subprocess.run([SUMAC, "run", "--ps", "256", "--workers", "256", "--", "./there-is-none"], stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (127, "sumac run: ./there-is-none: No such file or directory\n"))

    def test_a_port_for_all_ps(self):
        for words in ("--port 1234", "--threads 1 --port=1234", "\t--index 1"):
            with self.subTest(words):
                self.assertIn("run picks these for each ps itself", self.refused("--ps-options", words, "--", "true"))
        self.assertNotIn("run picks these", self.refused("--ps-options", "--por 1", "--", "true"))


if __name__ == "__main__":
    unittest.main()
