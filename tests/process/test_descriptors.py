"""Descriptors: a connection is one of them, and a process has only so many."""
import socket
import subprocess
import tempfile
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


    def test_a_ps_that_accepts_no_connection_any_more_says_so_and_exits(self):
        """So gRPC 1.51 is once it had no descriptor for a connection."""
        with Cluster(ps=1, under=["prlimit", "--nofile=64:64"]) as cluster:
            crowd = []
            self.addCleanup(lambda: [connection.close() for connection in crowd])
            for _ in range(100):
                try:
                    crowd.append(socket.create_connection(("127.0.0.1", cluster.ports[0]), timeout=PATIENCE_S))
                except OSError:
                    break       # it listens no longer
            self.assertEqual(cluster.ps[0].wait(), 152, cluster.ps[0].text())
            cluster.ps[0].wait_for("ps 0 cannot be reached by anybody new: no connection is accepted any more")


if __name__ == "__main__":
    unittest.main()
