"""Descriptors: a connection is one of them, and a process has only so many."""
import subprocess
import tempfile
import unittest

from cluster import SUMAC, Cluster, Process

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
            self.assertEqual(run.wait(), 0, run.text())
            run.wait_for(r"worker 0 \| 4096$")


if __name__ == "__main__":
    unittest.main()
