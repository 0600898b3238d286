# SPDX-License-Identifier: Apache-2.0
"""Descriptors: a connection is one of them, and a process has only so many; and connections, of which a ps has a bound."""
import os
import resource
import subprocess
import tempfile
import time
import unittest

from cluster import BUILD, PATIENCE_S, SUMAC, Cluster, Process
from crowd import crowd, is_turned_away

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]       # only root gets more
HARD = 4096 if HARD == resource.RLIM_INFINITY else min(HARD, 4096)
FEW = ["prlimit", f"--nofile=64:{HARD}"]       # soft and hard limit


def limits(process):
    """Soft and hard limit of a process's open files."""
    with open(f"/proc/{process.child.pid}/limits", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("Max open files"))
    return [int(word) for word in line.split()[3:5]]


class Descriptors(unittest.TestCase):
    def test_a_ps_may_have_as_many_as_the_hard_limit_allows(self):
        with Cluster(ps=1, under=FEW) as cluster:
            self.assertEqual(limits(cluster.ps[0]), [HARD, HARD])

    def test_so_may_the_workers_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Process([*FEW, SUMAC, "run", "--ps", "1", "--workers", "1", "--", "sh", "-c", "ulimit -Sn"],
                          {"XDG_RUNTIME_DIR": folder}, stdin=subprocess.DEVNULL)
            self.addCleanup(run.kill)
            run.wait_for(rf"worker 0 \| {HARD}$")
            run.wait()

    def test_clients_that_leave_and_are_closed_leave_none(self):
        with Cluster(ps=1) as cluster:
            opener = cluster.add(Process([os.path.join(BUILD, "opener"), "200", str(PATIENCE_S)], cluster.environment("worker", 0)))
            self.assertEqual(opener.wait(), 0, opener.text())


class Crowds(unittest.TestCase):
    """More connections than there are places or descriptors for."""

    def test_connections_beyond_the_bound_are_closed_and_the_ps_goes_on(self):
        with Cluster(ps=1, options=["--connections-max", "16"]) as cluster:
            member = cluster.member()
            member.wait_for("^joined$")
            with crowd(cluster.ports[0], 40) as connections:
                let_in = [connection for connection in connections if not is_turned_away(connection)]
                self.assertLess(len(let_in), 14)        # of this host's, beside the member's
                cluster.ps[0].wait_for(r"ps 0 refused \d+ connections: \d+ are open of at most 16, .* raise --connections-max")
                member.say("create w float32 4 4 1 assign_add")     # who is in is served
                member.wait_for("^created w$")
            self.assertRegex(self.stats(cluster, "--json").replace(" ", ""), r'"connections_max":16')       # others get in
            self.assertRegex(self.stats(cluster), r"ps 0: refused \d+ connections? so far; \d+ are open, at most 16")
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
            used = [int(name) for name in os.listdir(f"/proc/{pid}/fd")]
            few = max(used) + 4
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
            with crowd(cluster.ports[0], few - len(used) + 16):
                cluster.ps[0].wait_for("ps 0 has no descriptor or no memory for those who want to connect, and lets them wait")
                member.say("push w 1")
                member.wait_for("^pushed$")
            self.assertRegex(self.stats(cluster, "--json").replace(" ", ""), '"connections_refused":0')
            member.say("leave done")
            member.wait_for("^left$")
            self.assertEqual(cluster.ps[0].wait(), 0, cluster.ps[0].text())

    def test_more_connections_than_there_are_descriptors_for_are_no_option(self):
        ps = Process(["prlimit", "--nofile=1000:1000", SUMAC, "ps", "--connections-max", "1000"],
                     Cluster(ps=1, start=False).environment("ps", 0))
        self.addCleanup(ps.kill)
        self.assertEqual(ps.wait(), 2)
        self.assertRegex(ps.text(), r"--connections-max 1000 is more than the 935 connections .* may have 1000, .*ulimit -Hn")

    def stats(self, cluster, *more):
        """A new client gets in, however many others still seem to be connected."""
        deadline = time.monotonic() + PATIENCE_S
        code, text = cluster.sumac_once("stats", "--interval-ms", "10", *more)
        while code != 0 and time.monotonic() < deadline:
            code, text = cluster.sumac_once("stats", "--interval-ms", "10", *more)
        self.assertEqual(code, 0, text)
        return text


if __name__ == "__main__":
    unittest.main()
