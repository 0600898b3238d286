# SPDX-License-Identifier: Apache-2.0
"""Descriptors: a connection is one of them, and a process has only so many; and connections, of which a ps has a bound."""
import os
import resource
import socket
import subprocess
import tempfile
import time
import unittest

from cluster import PATIENCE_S, SUMAC, Cluster, Process

FEW = ["prlimit", "--nofile=64:4096"]       # soft and hard limit


def limits(process):
    """Soft and hard limit of a process's open files."""
    with open(f"/proc/{process.child.pid}/limits", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("Max open files"))
    return [int(word) for word in line.split()[3:5]]


class Descriptors(unittest.TestCase):
    def test_a_ps_may_have_as_many_as_the_hard_limit_allows(self):
        with Cluster(ps=1, under=FEW) as cluster:
            self.assertEqual(limits(cluster.ps[0]), [4096, 4096])

    def test_so_may_the_workers_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Process([*FEW, SUMAC, "run", "--ps", "1", "--workers", "1", "--", "sh", "-c", "ulimit -Sn"],
                          {"XDG_RUNTIME_DIR": folder}, stdin=subprocess.DEVNULL)
            self.addCleanup(run.kill)
            run.wait_for(r"worker 0 \| 4096$")
            run.wait()


class Crowds(unittest.TestCase):
    """More connections than there are places or descriptors for."""

    def connect(self, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def test_connections_beyond_the_bound_are_closed_and_the_ps_goes_on(self):
        with Cluster(ps=1, options=["--connections-max", "16"]) as cluster:
            member = cluster.member()
            member.wait_for("^joined$")
            crowd = [self.connect(cluster.ports[0]) for _ in range(40)]
            self.assertGreaterEqual(sum(is_refused(connection) for connection in crowd), 26)
            cluster.ps[0].wait_for(r"ps 0 refused \d+ connections: 14 are open of at most 16, .* raise --connections-max")
            member.say("create w float32 4 4 1 assign_add")     # who is in is served
            member.wait_for("^created w$")
            for connection in crowd:
                connection.close()
            self.wait_for_stats(cluster, r'"connections_max":16')       # others get in
            code, text = cluster.sumac("stats", "--interval-ms", "10")
            self.assertEqual(code, 0, text)
            self.assertRegex(text, r"ps 0: refused \d+ connections so far; \d+ are open, at most 16")
            member.say("leave done")
            member.wait_for("^left$")
            self.assertEqual(cluster.ps[0].wait(), 0, cluster.ps[0].text())

    def test_a_ps_without_a_descriptor_lets_those_who_connect_wait(self):
        with Cluster(ps=1) as cluster:
            member = cluster.member()
            member.wait_for("^joined$")
            member.say("create w float32 4 4 1 assign_add")
            member.wait_for("^created w$")
            pid = cluster.ps[0].child.pid
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            few = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 4
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
            crowd = [self.connect(cluster.ports[0]) for _ in range(20)]
            cluster.ps[0].wait_for("ps 0 has no descriptor or no memory for those who want to connect, and lets them wait")
            member.say("push w 1")
            member.wait_for("^pushed$")
            for connection in crowd:
                connection.close()
            self.wait_for_stats(cluster, '"connections_refused":0')
            member.say("leave done")
            member.wait_for("^left$")
            self.assertEqual(cluster.ps[0].wait(), 0, cluster.ps[0].text())

    def test_more_connections_than_there_are_descriptors_for_are_no_option(self):
        ps = Process(["prlimit", "--nofile=1000:1000", SUMAC, "ps", "--connections-max", "1000"],
                     Cluster(ps=1, start=False).environment("ps", 0))
        self.addCleanup(ps.kill)
        self.assertEqual(ps.wait(), 2)
        self.assertRegex(ps.text(), r"--connections-max 1000 is more than the 935 connections .* may have 1000, .*ulimit -Hn")

    def wait_for_stats(self, cluster, pattern):
        """A new client gets in, however many others still seem to be connected."""
        deadline = time.monotonic() + PATIENCE_S
        code, text = cluster.sumac("stats", "--json", "--interval-ms", "10")
        while code != 0 and time.monotonic() < deadline:
            code, text = cluster.sumac("stats", "--json", "--interval-ms", "10")
        self.assertEqual(code, 0, text)
        self.assertRegex(text.replace(" ", ""), pattern)


def is_refused(connection):
    """Closed at once; whoever is let in hears gRPC's settings."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


if __name__ == "__main__":
    unittest.main()
