# SPDX-License-Identifier: Apache-2.0
"""The digits without worker 0, which ends the training of all workers: the others end by themselves, and so does the run."""
import os
import unittest

from cluster import BUILD, Cluster, Process


class WithoutWorker0(unittest.TestCase):
    def cluster(self):
        cluster = Cluster(workers=2, options=["--lease-ms", "2000", "--rejoin-ms", "1000", "--rejoin-first-ms", "1000"])
        self.addCleanup(cluster.stop)
        return cluster

    @staticmethod
    def digits(cluster, index, seconds):
        return cluster.add(Process([os.path.join(BUILD, "digits"), "--seconds", seconds], cluster.environment("worker", index)))

    def assert_it_ends(self, cluster, worker):
        self.assertEqual(worker.wait(), 0, worker.text())
        worker.wait_for("^worker 0 did not end the training within --seconds and 5 s more: this worker ends by itself$")
        for ps in cluster.ps:
            self.assertEqual(ps.wait(), 0, ps.text())

    def test_a_worker_ends_by_itself_if_worker_0_never_starts(self):
        cluster = self.cluster()
        self.assert_it_ends(cluster, self.digits(cluster, 1, "0.5"))

    def test_a_worker_ends_by_itself_if_worker_0_is_lost(self):
        cluster = self.cluster()
        evaluating, other = self.digits(cluster, 0, "600"), self.digits(cluster, 1, "0.5")
        evaluating.wait_for("accuracy")
        evaluating.kill()
        self.assert_it_ends(cluster, other)


if __name__ == "__main__":
    unittest.main()
