# SPDX-License-Identifier: Apache-2.0
"""Rounds of collectives: every operation, exactly as each worker computes it by itself (collective_member.c), and an end that is the same for all."""
import os
import signal
import unittest

from cluster import BUILD, Cluster, Process
from test_connections import CuttingProxy

COLLECTIVE_MEMBER = os.path.join(BUILD, "collective_member")
CUTS = 200


class Meet(unittest.TestCase):
    def workers(self, count, *arguments, ps=2, options=(), addresses=None):
        """A cluster, and that many workers that do as they are told."""
        self.cluster = Cluster(ps=ps, workers=count, options=options)
        self.addCleanup(self.cluster.stop)
        through = addresses(self.cluster) if addresses else None
        return [self.cluster.add(Process([COLLECTIVE_MEMBER, *map(str, arguments)], self.cluster.environment("worker", index, through)))
                for index in range(count)]

    def all_are_well(self, workers):
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker.text())
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0] * self.cluster.ps_count)

    def heard(self, workers, pattern):
        for worker in workers:
            worker.wait_for(f"^worker . heard: ps .: {pattern}$")

    def test_two_workers_get_what_each_computes_by_itself(self):
        self.all_are_well(self.workers(2, 50, 1000))

    def test_so_do_eight(self):
        self.all_are_well(self.workers(8, 20, 1000))

    def test_so_do_two_of_large_tensors(self):
        self.all_are_well(self.workers(2, 3, 1_000_000, ps=1))

    def test_so_do_five_of_tensors_that_are_split_over_three_ps(self):
        self.all_are_well(self.workers(5, 3, 700_001, ps=3))

    def test_sums_are_exact_over_two_hundred_cut_connections(self):
        budget, proxies = [CUTS], []

        def addresses(cluster):
            proxies.extend(CuttingProxy(port, seed, budget) for seed, port in enumerate(cluster.ports))
            for proxy in proxies:
                self.addCleanup(proxy.close)
            return [f"127.0.0.1:{proxy.port}" for proxy in proxies]

        self.all_are_well(self.workers(2, 150, 2000, addresses=addresses))
        self.assertEqual(budget[0], 0)

    def test_another_operation_is_an_error_for_all_and_the_next_round_works(self):
        workers = self.workers(3, 2, 100, "operation")
        self.heard(workers, "round 3 of collective sum: worker . says that it is .*, and worker . said .*; all say the same")
        self.all_are_well(workers)

    def test_so_is_another_shape(self):
        workers = self.workers(3, 2, 100, "shape")
        self.heard(workers, "round 3 of collective sum: worker . says that its shape is .*, and worker . said .*; all say the same")
        self.all_are_well(workers)

    def test_so_is_one_that_is_split_where_others_are_not(self):
        workers = self.workers(3, 2, 400_000, "shape")
        self.heard(workers, "round 3 of collective sum: worker . says that .*, and worker . said .*; all say the same")
        self.all_are_well(workers)

    def test_who_comes_to_another_round_is_named_when_the_time_is_over(self):
        workers = self.workers(3, 2, 100, "away")
        self.heard([workers[0], workers[2]], r"round 3 of collective sum has waited [12][0-9.]* s on ps . for worker 1 \((alive, )?no push or pull on ps . for .*\)")
        self.heard(workers[1:2], r"round 4 of collective sum has waited [12][0-9.]* s on ps . for worker 0 \(.*\), worker 2 \(.*\)")
        self.all_are_well(workers)

    def test_a_round_that_names_no_time_and_is_waited_for_has_the_clients(self):
        workers = self.workers(2, 2, 100, "alone")
        workers[0].wait_for(r"sumac worker 0: a round is not over; ps [01]: it waits for round 3 of collective sum, which waits on ps [01] for worker 1 "
                            r"\(.*\); its time is over in [01] s$")
        self.heard(workers[:1], "round 3 of collective sum .*worker 1.*")
        self.all_are_well(workers)

    def test_a_worker_that_was_killed_is_not_waited_for(self):
        workers = self.workers(3, 2, 100, "dies", options=["--lease-ms", "1500"])
        self.heard([workers[0], workers[2]], "round 3 of collective sum has failed: worker 1 did not contribute, and its "
                                             "session is over: .*")
        self.assertEqual(workers[1].wait(), 137)

    def test_nor_is_it_in_a_round_that_is_split(self):
        workers = self.workers(3, 2, 400_000, "dies", options=["--lease-ms", "1500"])
        self.heard([workers[0], workers[2]], "round 3 of collective sum has failed: worker 1 did not contribute, .*")

    def test_nor_is_one_that_stands_past_its_lease_and_it_hears_so(self):
        workers = self.workers(3, 2, 100, "stands", options=["--lease-ms", "1500"])
        self.heard([workers[0], workers[2]], "round 3 of collective sum has failed: worker 1 did not contribute, and its "
                                             "session is over: .*")
        workers[1].signal(signal.SIGCONT)
        self.assertGreaterEqual(workers[1].wait(), 128)


if __name__ == "__main__":
    unittest.main()
