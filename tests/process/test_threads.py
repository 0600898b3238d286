# SPDX-License-Identifier: Apache-2.0
"""Threads that share one client: each of their pushes counts once, over both ps, and each thread reads what it has pushed."""
import unittest

from cluster import BUILD, PATIENCE_S, Cluster, Process

THREADS, PUSHES = 8, 300


class Threads(unittest.TestCase):
    def test_sums_are_exact_and_every_thread_reads_its_own_pushes(self):
        with Cluster(workers=2) as cluster:
            programs = [cluster.add(Process([f"{BUILD}/threads", str(THREADS), str(PUSHES)], cluster.environment("worker", index)))
                        for index in range(2)]
            for program in programs:
                self.assertEqual(program.wait(PATIENCE_S * 5), 0, program.text())      # it computes all the time
            totals = [int(program.wait_for(r"^total (\d+)$").group(1)) for program in programs]
            self.assertEqual(max(totals), 2 * THREADS * PUSHES)
            self.assertGreaterEqual(min(totals), THREADS * PUSHES)
            self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


if __name__ == "__main__":
    unittest.main()
