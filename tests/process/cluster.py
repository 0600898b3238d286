# SPDX-License-Identifier: Apache-2.0
"""Real processes for the tests: `sumac ps`, members, and what they print.

A test says what it waits for (a line, an exit) and how long at most; nothing sleeps. Ports are picked among those that are free; when
one is taken in the meantime the cluster is started again with fresh ones.
"""
import contextlib
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

# The build folder, set by ctest; another one's programs are tested with `SUMAC_PROGRAMS=FOLDER ctest …`.
BUILD = os.environ.get("SUMAC_PROGRAMS") or os.environ["SUMAC_BUILD"]
SUMAC = os.path.join(BUILD, "sumac")
MEMBER = os.path.join(BUILD, "member")
# What the commands say of a ps that is gone, and of one that stands still; how long it took is no matter.
GONE = r"no answer( for \d+(\.\d+)? s)? \(Connection refused\)"
SILENT = r"no answer for \d+(\.\d+)? s( \(connected, but it does not speak\))?"
PATIENCE_S = float(os.environ.get("SUMAC_PATIENCE_S", "120"))    # a bound on every wait; sanitizer builds are slow
LONG_MS = int(PATIENCE_S * 10000)       # a time that no test lives to see the end of


def candidates():
    """Ports from which the system takes none for those who connect: whoever does would take one that a ps is to come back to."""
    first = 10000
    with contextlib.suppress(OSError), open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    likely = range(10000, first)
    return itertools.chain(random.sample(likely, len(likely)), itertools.repeat(0))     # 0: as the system likes


def free_ports(count):
    """Ports that nobody listens on now, all different."""
    with contextlib.ExitStack() as probes:
        ports = []
        for port in candidates():
            probe = probes.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(probe.getsockname()[1])
            if len(ports) == count:
                return ports


def answered(attempt, by=""):
    """What a command comes to: `attempt()` gives its exit code and what it said. It waits for a ps some seconds, and a busy machine may
    need more for an answer: it is tried again while the ps with the address `by` is named as silent; by default, any ps."""
    until = time.monotonic() + PATIENCE_S
    ended = attempt()
    while ended[0] == 138 and names_as_silent(ended[-1], by) and time.monotonic() < until:
        ended = attempt()
    return ended


def names_as_silent(text, by):
    """The line that says whose run it is has an address, too: of a ps that answers."""
    return any(f" at {by}" in line and ", up " not in line for line in text.splitlines())


def children(pid):
    """Those of a process, the oldest first; where Linux was built without that list, whoever asks is skipped."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        if not os.path.exists("/proc/thread-self/children"):
            print("skipped: this machine's Linux does not list a process's children (CONFIG_PROC_CHILDREN)")
            raise unittest.SkipTest("no list of a process's children") from None
        raise


class Process:
    """A child, its lines (standard output and error together, in order), and waits for them."""

    def __init__(self, command, environment=None, stdin=None):
        self.command = command
        self.lines = []
        self.changed = threading.Condition()
        self.ended = False
        self.child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env={**os.environ, **(environment or {})}, bufsize=1, errors="replace")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.child.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, pattern, after=0, patience_s=PATIENCE_S):
        """The first line from number `after` on that matches; returns the match. Says what was printed when none comes."""
        deadline = time.monotonic() + patience_s
        expression = re.compile(pattern)
        with self.changed:
            seen = after
            while True:
                for line in self.lines[seen:]:
                    seen += 1
                    found = expression.search(line)
                    if found:
                        return found
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    printed = "\n  ".join(self.lines[-40:])
                    state = f"ended with {self.child.wait()}" if self.ended else "is still there"
                    raise AssertionError(f"no line matches {pattern!r} from {self.command}, which {state}; it printed\n  {printed}")
                self.changed.wait(left)

    def wait(self, patience_s=PATIENCE_S):
        """Its exit code, 128 + n when a signal n ended it; all lines are in."""
        try:
            code = self.child.wait(patience_s)
        except subprocess.TimeoutExpired:
            printed = "\n  ".join(self.lines[-40:])
            raise AssertionError(f"{self.command} does not end; it printed\n  {printed}") from None
        self.reader.join(patience_s)
        return code if code >= 0 else 128 - code

    def signal(self, number):
        self.child.send_signal(number)

    def say(self, line):
        with contextlib.suppress(BrokenPipeError):      # it has ended: what it printed says why
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()

    def running(self):
        return self.child.poll() is None

    def text(self):
        return "\n".join(self.lines)

    def kill(self):
        if self.running():
            self.child.send_signal(signal.SIGCONT)
            self.child.kill()
        self.child.wait()
        self.reader.join(PATIENCE_S)
        if self.child.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.child.stdin.close()
        self.child.stdout.close()


class Cluster:
    """Some ps on loopback, and whatever members a test starts beside them. Use as a context: it leaves nothing behind."""

    def __init__(self, ps=2, workers=1, options=(), start=True, chief=False, under=()):
        self.ps_count = ps
        self.workers = workers
        self.chief = "chief" if chief is True else chief        # or what TensorFlow 1 calls it
        self.options = list(options)
        self.under = list(under)                # a command that becomes the ps in the end: prlimit …
        self.processes = []
        self.ps = [None] * ps
        self.ports = free_ports(ps)
        if start:
            self.start()

    def start(self):
        for _ in range(5):
            for index in range(self.ps_count):
                self.start_ps(index)
            if all(self.listens(process) for process in self.ps):
                return
            self.stop()
            self.ports = free_ports(self.ps_count)
        raise AssertionError("the ports that were free are taken again and again")

    @staticmethod
    def listens(process):
        try:
            process.wait_for("listens on")
            return True
        except AssertionError:
            if "another process has the port" in process.text():
                return False
            raise

    def start_ps(self, index, options=()):
        # A test's own clients renew no lease, and a busy machine may let them wait for longer than the usual one.
        lease = ["--lease-ms", "300000"]
        command = [*self.under, SUMAC, "ps", "--bind", "127.0.0.1", *lease, *self.options, *options]
        self.ps[index] = self.add(Process(command, self.environment("ps", index)))
        return self.ps[index]

    def add(self, process):
        self.processes.append(process)
        return process

    def addresses(self):
        return [f"127.0.0.1:{port}" for port in self.ports]

    def config(self, job, index, ps_addresses=None):
        cluster = {"ps": ps_addresses or self.addresses()}
        if self.workers:
            cluster["worker"] = [f"127.0.0.1:{9 + worker}" for worker in range(self.workers)]     # nobody dials a worker
        if self.chief:
            cluster[self.chief] = ["127.0.0.1:8"]
        return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})

    def environment(self, job, index, ps_addresses=None):
        return {"TF_CONFIG": self.config(job, index, ps_addresses)}

    def member(self, index=0, ps_addresses=None, timeout_ms=0, job="worker", observer=False, rules=None):
        """A worker, the chief, or an observer, that obeys lines on its standard input (member.c)."""
        command = [MEMBER, str(timeout_ms), "observer" if observer else "member", *([rules] if rules else [])]
        return self.add(Process(command, self.environment(job, index, ps_addresses), stdin=subprocess.PIPE))

    def sumac(self, *arguments):
        """A command of the executable that every ps is to answer, to its end; returns (exit code, output)."""
        return answered(lambda: self.sumac_once(*arguments))

    def sumac_once(self, *arguments):
        process = self.add(Process([SUMAC, *arguments, "--ps", self.addresses()[0]]))
        return process.wait(), process.text()

    def stats(self):
        code, output = self.sumac("stats", "--json", "--interval-ms", "10")
        assert code == 0, output
        return json.loads(output)

    def wait_for_wait(self, pattern):
        """Until some ps says that it waits so; returns the statistics in which it does."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            stats = self.stats()
            if any(re.search(pattern, wait) for ps in stats["ps"] for wait in ps["waits"]):
                return stats
        raise AssertionError(f"no ps waits for {pattern}: {[ps['waits'] for ps in stats['ps']]}")

    def stop(self):
        for process in self.processes:
            process.kill()
        self.processes.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
