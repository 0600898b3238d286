# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIGs that contradict each other: every process that hears of it ends with 2, and says what to correct."""
import unittest

from cluster import SUMAC, Cluster, Process

ORDER = "correct the index of that ps, or the order of the ps addresses"


class Indices(unittest.TestCase):
    """A ps that has another index than the address at which it answers."""

    def cluster(self, indices):
        """One ps of these indices after the other, each at its own address of the list."""
        cluster = Cluster(ps=len(indices), start=False)
        self.addCleanup(cluster.stop)
        for ps, index in enumerate(indices):
            cluster.start_ps(ps, ["--index", str(index), "--port", str(cluster.ports[ps])]).wait_for("listens on")
        return cluster

    def test_a_client_that_finds_another_ps_at_an_address_ends_at_once(self):
        cluster = self.cluster([1, 1])                                          # given
        said = f"ps 1 answers at {cluster.addresses()[0]}, which this configuration calls ps 0: {ORDER}"

        clients = [cluster.member(), cluster.member(observer=True)]             # when

        for client in clients:
            client.wait_for(f"^refused FAILED_PRECONDITION WRONG_CLUSTER {said}")   # then
            self.assertEqual(client.wait(), 2, client.text())

    def test_a_command_that_finds_another_ps_at_an_address_shows_nothing_and_ends_with_2(self):
        cluster = self.cluster([1, 1])
        address = cluster.addresses()[0]

        for words in (("ls",), ("stats",), ("stats", "--json"), ("get", "w"), ("functions",), ("update", "w", "assign", "--value", "1")):
            with self.subTest(words):
                command = cluster.add(Process([SUMAC, *words, "--ps", ",".join(cluster.addresses())]))
                self.assertEqual(command.wait(), 2, command.text())
                command.wait_for(f"ps .*answers at {address}, which the list of the ps calls ps 0: {ORDER}")
                self.assertNotIn("no variables", command.text())


if __name__ == "__main__":
    unittest.main()
