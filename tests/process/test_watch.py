# SPDX-License-Identifier: Apache-2.0
"""`sumac stats --watch`: in place on a terminal, which is given back; one below another elsewhere; a JSON line a sample."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unittest

from cluster import PATIENCE_S, SUMAC, Cluster, Process

ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
HOME = b"\x1b[H"
STOPPED = b"[stopped]"
ENDED_WELL = "sumac stats: the run has ended: every listed member has left as done"


def be_its_shell(command):
    """In the terminal's first process: run the command as a shell does, in a group of its own. Never returns."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(command[0], command)
    while True:
        status = os.waitpid(child, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status) % 256)
        os.write(1, STOPPED)
        os.kill(child, signal.SIGCONT)


class Terminal:
    """A command on a terminal of its own, and all that it wrote there."""

    def __init__(self, *command, columns, lines=40):
        self.written = b""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            self.terminal = 0
            self.resize(columns, lines)
            be_its_shell(command)

    def resize(self, columns, lines=40):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_until(self, done):
        """False: it ended."""
        deadline = time.monotonic() + PATIENCE_S
        while not done(self.written):
            if time.monotonic() > deadline:
                raise AssertionError(f"the terminal has {self.written[-2000:]!r}")
            if not select.select([self.terminal], [], [], 0.1)[0]:
                continue
            try:
                more = os.read(self.terminal, 65536)
            except OSError:         # nobody has it open any more
                return False
            if not more:
                return False
            self.written += more
        return True

    def pages(self):
        """What was drawn, one picture each; the last one may be under way."""
        return [re.split("\r+\n", page.replace(b"\x1b[K", b"").decode(errors="replace")) for page in self.written.split(HOME)[1:]]

    def type(self, keys):
        os.write(self.terminal, keys)

    def wait(self):
        """Its exit code, or minus the signal that ended it."""
        self.read_until(lambda _: False)
        code = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        return code - 256 if code > 192 else code

    def close(self):
        try:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.terminal)


class Watching(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(ps=2, workers=1)
        self.addCleanup(self.cluster.stop)
        self.member = member = self.cluster.member()
        member.wait_for("^joined$")
        member.say("create w float32 4 2 2 assign_add")
        member.wait_for("^created w$")
        member.say("push w 1")
        member.wait_for("^pushed")

    def watch(self, columns, lines=40, interval_ms=50):
        terminal = Terminal(SUMAC, "stats", "--watch", "--interval-ms", str(interval_ms), "--ps", self.cluster.addresses()[0],
                            columns=columns, lines=lines)
        self.addCleanup(terminal.close)
        return terminal

    def test_a_terminal_is_drawn_in_place_and_given_back_at_control_c(self):
        terminal = self.watch(120)
        terminal.read_until(lambda written: written.count(HOME) > 3)
        self.assertTrue(terminal.written.startswith(ENTER))
        terminal.type(b"\x03")
        self.assertEqual(terminal.wait(), -signal.SIGINT)
        self.assertEqual(terminal.written.count(LEAVE), 1)
        self.assertNotIn(HOME, terminal.written[terminal.written.index(LEAVE):])
        page = terminal.pages()[1]
        self.assertTrue(any(line.startswith("worker 0  open") for line in page), page)

    def test_no_line_is_longer_than_the_terminal_is_wide_nor_a_page_than_it_is_high(self):
        for columns, lines in ((120, 40), (80, 40), (80, 5), (20, 3)):
            with self.subTest(columns=columns, lines=lines):
                terminal = self.watch(columns, lines)
                terminal.read_until(lambda written: written.count(HOME) > 4)
                page = terminal.pages()[3]
                self.assertLessEqual(max(len(line.removesuffix("\x1b[J")) for line in page), columns)
                self.assertLessEqual(len(page), lines)

    def test_ls_leaves_columns_out_that_have_no_room(self):
        self.member.say(f"create {'long/' * 5}name float32 4 2 2 assign_add")
        self.member.wait_for("^created long")
        for columns, left_out in ((120, []), (80, ["AGGREGATION"]), (60, ["DTYPE", "AGGREGATION", "FUNCTION", "BYTES"])):
            with self.subTest(columns=columns):
                terminal = Terminal(SUMAC, "ls", "--ps", self.cluster.addresses()[0], columns=columns)
                self.addCleanup(terminal.close)
                self.assertEqual(terminal.wait(), 0)
                titles, *lines = [line for line in terminal.written.decode().split("\r\n") if line]
                self.assertEqual([title for title in ("NAME", "DTYPE", "SHAPE", "AGGREGATION", "FUNCTION", "VERSION", "BYTES", "PS")
                                  if title not in titles], left_out)
                self.assertLessEqual(max(map(len, [titles, *lines])), columns)

    def test_at_80_columns_what_matters_is_whole(self):
        terminal = self.watch(80)
        terminal.read_until(lambda written: written.count(HOME) > 4)
        page = terminal.pages()[3]
        (groups, titles) = [(page[i - 1], line) for i, line in enumerate(page) if line.startswith("CLIENT")][0]
        self.assertRegex(groups, "steps .* push .* staleness .* pull .* heard")
        for title in ("STATE", "/S", "DONE", "LAG", "AGO"):
            self.assertIn(title, titles.split())

    def test_clients_that_do_not_fit_are_counted(self):
        self.cluster.stop()
        self.cluster = Cluster(ps=2, workers=6)
        self.addCleanup(self.cluster.stop)
        for index in range(6):
            self.cluster.member(index).wait_for("^joined$")
        lines = 17
        terminal = self.watch(120, lines)
        terminal.read_until(lambda written: any("more …" in line for page in terminal.pages()[:-1] for line in page))
        page = [line.removesuffix("\x1b[J") for line in terminal.pages()[-2]]
        self.assertLessEqual(len(page), lines)
        begins = [next(i for i, line in enumerate(page) if line.startswith(title)) for title in ("PS ", "MEMORY ", "CLIENT ")]
        self.assertEqual(begins, sorted(begins))

    def test_another_size_is_drawn_into(self):
        terminal = self.watch(120)
        terminal.read_until(lambda written: written.count(HOME) >= 2)
        terminal.resize(60)
        terminal.read_until(lambda written: any("MEMORY" in line for page in terminal.pages()[2:] for line in page)
                            and max(len(line) for line in terminal.pages()[-2]) <= 60)

    def test_a_stop_gives_the_terminal_back_until_it_goes_on(self):
        terminal = self.watch(120)
        terminal.read_until(lambda written: written.count(HOME) > 1)
        for times in (2, 3):        # the second stop gives the terminal back, too
            terminal.type(b"\x1a")
            terminal.read_until(lambda written: written.count(ENTER) == times and HOME in written[written.rindex(ENTER):])
            left, stopped, entered = (terminal.written.rindex(LEAVE), terminal.written.rindex(STOPPED), terminal.written.rindex(ENTER))
            self.assertLess(left, stopped)
            self.assertLess(stopped, entered)

    def begin(self, *options, cluster=None, samples=2):
        """Not on a terminal; returns when it has shown so many samples."""
        watching = Process([SUMAC, "stats", "--watch", *options, "--ps", (cluster or self.cluster).addresses()[0]])
        self.addCleanup(watching.kill)
        for _ in range(samples):
            watching.wait_for(r"^\{|^\d{4}-\d\d-\d\dT", after=len(watching.lines))
        return watching

    def test_the_last_picture_stays_when_the_run_is_over(self):
        terminal = self.watch(120)
        terminal.read_until(lambda written: written.count(HOME) > 2)
        self.member.say("leave done")
        self.assertEqual(terminal.wait(), 0)
        after = terminal.written[terminal.written.index(LEAVE):].decode()
        self.assertIn("MEMORY", after)
        self.assertIn(ENDED_WELL, after)

    def test_json_on_a_terminal_is_lines(self):
        terminal = Terminal(SUMAC, "stats", "--watch", "--json", "--interval-ms", "50", "--ps", self.cluster.addresses()[0], columns=120)
        self.addCleanup(terminal.close)
        terminal.read_until(lambda written: written.count(b"\n") > 2)
        self.assertNotIn(b"\x1b", terminal.written)
        self.assertEqual(json.loads(terminal.written.split(b"\r")[0])["missing"], [])

    def test_a_watch_on_a_terminal_ends_with_the_run_and_not_with_its_interval(self):
        terminal = self.watch(120, interval_ms=20000)
        terminal.read_until(lambda written: HOME in written)        # which is after the first interval
        begun = time.monotonic()
        self.member.say("leave done")
        self.assertEqual(terminal.wait(), 0)
        self.assertLess(time.monotonic() - begun, 15)

    def test_a_run_that_ends_well_ends_the_watch_well(self):
        """However long ago the latest sample is: the ps says so between two of them."""
        watching = [self.begin(*options) for options in (
            ("--interval-ms", "10"), ("--interval-ms", "10", "--json"), ("--interval-ms", "300"), ("--interval-ms", "2000", "--json"))]
        self.member.say("leave done")
        for one in watching:
            with self.subTest(command=one.command):
                self.assertEqual(one.wait(), 0, one.text())
                self.assertIn(ENDED_WELL, one.lines[-1])

    def test_a_run_that_is_terminated_ends_the_watch_with_128_or_more(self):
        watching = self.begin("--interval-ms", "100")
        self.cluster.ps[0].signal(signal.SIGTERM)
        self.assertEqual(watching.wait(), 138, watching.text())
        self.assertIn("was terminated before the run ended", watching.lines[-1])

    def test_a_run_whose_workers_are_all_killed_ends_the_watch_with_128_or_more(self):
        """As it ends the ps, whether or not their word comes between two samples."""
        cluster = Cluster(ps=2, workers=1, options=["--lease-ms", "1000", "--rejoin-ms", "200"])
        self.addCleanup(cluster.stop)
        member = cluster.member()
        member.wait_for("^joined$")
        watching = [self.begin("--interval-ms", interval, cluster=cluster) for interval in ("10", "2000")]
        member.kill()
        self.assertEqual([ps.wait() for ps in cluster.ps], [143, 143])
        for one in watching:
            with self.subTest(command=one.command):
                self.assertEqual(one.wait(), 138, one.text())
                self.assertRegex(one.lines[-1], "the run has failed: .*no worker has been in the run for 200 ms, none has left as done")

    def test_the_run_of_a_ps_that_was_started_again_is_another(self):
        """The one that was watched has ended unheard, between two looks: what comes of the next one says nothing of it."""
        watched = []
        for restarted in ((0, 1), (1,)):
            cluster = Cluster(ps=2, workers=1)
            self.addCleanup(cluster.stop)
            cluster.member().wait_for("^joined$")
            watched.append((restarted, cluster, self.begin("--interval-ms", "4000", cluster=cluster, samples=1)))
        for _, cluster, watching in watched:
            watching.signal(signal.SIGSTOP)
            for ps in cluster.ps:
                ps.kill()
        for restarted, cluster, watching in watched:
            for index in restarted:
                cluster.start_ps(index).wait_for("listens on")
            watching.signal(signal.SIGCONT)
        for restarted, cluster, watching in watched:
            with self.subTest(restarted=restarted):
                self.assertEqual(watching.wait(), 138, watching.text())
                self.assertIn(f"ps {restarted[0]} at {cluster.addresses()[restarted[0]]} was started again: the run that was watched is over",
                              watching.lines[-1])

    def test_a_ps_that_is_started_again_before_it_joins_a_run_ends_no_watch(self):
        cluster = Cluster(ps=2, workers=1, start=False)
        self.addCleanup(cluster.stop)
        cluster.start_ps(1).wait_for("listens on")
        watching = Process([SUMAC, "stats", "--watch", "--interval-ms", "2000", "--ps", cluster.addresses()[1]])
        self.addCleanup(watching.kill)
        watching.wait_for("^MEMORY ")
        watching.signal(signal.SIGSTOP)
        cluster.ps[1].kill()
        cluster.start_ps(1).wait_for("listens on")
        after = len(watching.lines)
        watching.signal(signal.SIGCONT)
        watching.wait_for("^ps 1 ", after=after)
        self.assertNotIn("was started again", watching.text())

    def test_ps_that_are_gone_without_a_word_end_the_watch_with_128_or_more(self):
        watching = self.begin("--interval-ms", "100")
        for ps in self.cluster.ps:
            ps.kill()
        self.assertEqual(watching.wait(), 138, watching.text())
        self.assertRegex(watching.lines[-1], f"ps 0 at {self.cluster.addresses()[0]}: .*gone without a word")

    def test_of_ps_that_are_gone_without_a_word_the_first_one_is_named(self):
        watching = self.begin("--interval-ms", "100")
        self.cluster.ps[1].kill()
        watching.wait_for("^ps 1 +no answer", after=len(watching.lines))
        self.cluster.ps[0].kill()
        self.assertEqual(watching.wait(), 138, watching.text())
        self.assertRegex(watching.lines[-1], f"^sumac stats: ps 1 at {self.cluster.addresses()[1]}: .*gone without a word")

    def test_elsewhere_one_stands_below_another(self):
        watching = Process([SUMAC, "stats", "--watch", "--interval-ms", "10", "--ps", self.cluster.addresses()[0]])
        self.addCleanup(watching.kill)
        for _ in range(2):
            after = len(watching.lines)
            watching.wait_for(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  run .*, up \d+ (s|min)$", after=after)
            watching.wait_for("^1 worker: ", after=after)
        self.assertNotIn("\x1b", watching.text())

    def test_each_sample_is_a_line_of_json(self):
        watching = Process([SUMAC, "stats", "--watch", "--json", "--interval-ms", "10", "--ps", self.cluster.addresses()[0]])
        self.addCleanup(watching.kill)
        watching.wait_for("^{", after=3)
        for line in watching.lines[:3]:
            document = json.loads(line)
            self.assertEqual([ps["name"] for ps in document["ps"]], ["ps 0", "ps 1"])
            self.assertRegex(document["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            (worker,) = document["clients"]
            self.assertEqual((worker["name"], worker["steps"]), ("worker 0", 0))

    def test_a_ps_that_stands_still_is_shown_and_shown_again_when_it_goes_on(self):
        self.cluster.ps[1].signal(signal.SIGSTOP)
        watching = Process([SUMAC, "stats", "--watch", "--interval-ms", "10", "--ps", self.cluster.addresses()[0]])
        self.addCleanup(watching.kill)
        watching.wait_for(r"^ps 1  no answer for \d+ s ")
        watching.wait_for(r"^ps 0 waits for ps 1 at ")
        self.cluster.ps[1].signal(signal.SIGCONT)
        watching.wait_for(r"^ps 1 +\d+ ", after=len(watching.lines))


if __name__ == "__main__":
    unittest.main()
