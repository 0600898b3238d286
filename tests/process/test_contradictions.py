# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIGs that contradict each other: every process that hears of it ends with 2, and says what to correct."""
import unittest

from cluster import MEMBER, SUMAC, Cluster, Process

ORDER = "correct the index of that ps, or the order of the ps addresses"

REPORTS = ["--report-ms", "300"]
JOINED = "waits for ps 1 .*gives up in"       # until a worker joins the wait has no limit


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
                command.wait_for(f"ps .*answers at {address}, which (the list of the ps|this configuration) calls ps 0: {ORDER}")
                self.assertNotIn("no variables", command.text())

    def test_a_ps_at_the_address_of_another_one_ends_the_run_at_once(self):
        """ps 0 calls ps 1, and finds a ps of index 0 or 2; a worker waits already."""
        for index, addresses in ((0, 2), (2, 3)):
            with self.subTest(index=index):
                cluster = Cluster(ps=addresses, start=False)
                self.addCleanup(cluster.stop)
                cluster.start_ps(0, REPORTS)
                member = cluster.member()
                cluster.ps[0].wait_for(JOINED)

                other = cluster.start_ps(1, ["--index", str(index), "--port", str(cluster.ports[1])])

                said = f"ps {index} answers at {cluster.addresses()[1]}, which th.* configuration.* calls ps 1: {ORDER}"
                for process in (cluster.ps[0], other, member):
                    self.assertEqual(process.wait(), 2, process.text())
                    process.wait_for(said)


class Runs(unittest.TestCase):
    """A ps of another run at an address of this one."""

    def test_a_ps_that_refuses_ps_0_ends_the_run_at_once_and_the_workers_hear_why(self):
        cluster = Cluster(start=False)                                          # given
        self.addCleanup(cluster.stop)
        ps = cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1", *REPORTS], {**cluster.environment("ps", 0), "SUMAC_RUN": "a"}))
        member = cluster.add(Process([MEMBER, "0", "member"], {**cluster.environment("worker", 0), "SUMAC_RUN": "a"}))
        ps.wait_for(JOINED)

        other = cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1"], {**cluster.environment("ps", 1), "SUMAC_RUN": "b"}))  # when

        for process in (ps, other, member):                                     # then
            self.assertEqual(process.wait(), 2, process.text())
            process.wait_for(r'ps 1 is of run "b" \(SUMAC_RUN\), .* and ps 0 of run "a" \(SUMAC_RUN\)')


if __name__ == "__main__":
    unittest.main()
