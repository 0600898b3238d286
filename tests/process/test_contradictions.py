# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIGs that contradict each other: every process that hears of it ends with 2, and says what to correct."""
import unittest

from cluster import MEMBER, SUMAC, Cluster, Process, free_ports

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


    def test_a_ps_that_finds_itself_at_the_address_of_ps_0_ends_with_2_when_it_gives_up(self):
        cluster = Cluster(start=False, options=REPORTS)                         # given
        self.addCleanup(cluster.stop)

        ps = cluster.start_ps(0, ["--index", "1", "--port", str(cluster.ports[0]), "--ps-lost-ms", "5000"])     # when

        said = f"that address is that of ps 1: {ORDER}"                         # then
        ps.wait_for(f"ps 1 waits for its first call from ps 0 at {cluster.addresses()[0]}; {said}; gives up in")
        self.assertEqual(ps.wait(), 2, ps.text())
        ps.wait_for(f"ps 0 at .* has never called ps 1, which has waited 5.* s; {said}")


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


class Reached(unittest.TestCase):
    """ps 0 calls the others, and its own listed address leads to no process, or to another one."""

    def cluster(self, **more):
        cluster = Cluster(start=False, options=REPORTS, **more)
        self.addCleanup(cluster.stop)
        return cluster

    def test_a_ps_0_on_another_port_says_so_and_another_ps_says_that_no_process_answers(self):
        cluster = self.cluster(workers=1)
        listed, port = cluster.addresses()[0], free_ports(1)[0]

        cluster.start_ps(1).wait_for(
            f"waits for its first call from ps 0 at {listed}; that address does not answer .Connection refused.: start ps 0 there")
        cluster.start_ps(0, ["--port", str(port)])

        cluster.ps[0].wait_for(f"ps 0 listens on 127.0.0.1:{port}, and its listed address is {listed}: the other processes look for it there")
        cluster.ps[0].wait_for(rf"the listed address of ps 0, {listed}, does not answer \(Connection refused\): correct the host, --port or ")
        cluster.ps[1].wait_for(f"waits for the first join, of worker 0; ps 0 has called, but its listed address {listed} does not answer "
                               r"\(Connection refused\): correct the host, --port or --bind of ps 0, .*; this wait has no limit, so far ")

    def test_a_second_ps_0_says_that_there_is_another(self):
        """As on two hosts whose configurations have one index: neither finds the port taken."""
        cluster = self.cluster(workers=1)
        cluster.start_ps(0)
        second = cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1", "--port", str(free_ports(1)[0]), *REPORTS],
                                     cluster.environment("ps", 0)))

        second.wait_for(f"the listed address of ps 0, {cluster.addresses()[0]}, is that of another ps 0, of cluster [0-9a-f]+; give each run "
                        "its own addresses, or correct the index of one of them")
        self.assertNotIn("the listed address", cluster.ps[0].text())

    def test_a_ps_0_that_looks_elsewhere_for_another_ps_is_said_to(self):
        cluster = self.cluster()
        elsewhere = f"127.0.0.1:{free_ports(1)[0]}"
        ps = cluster.start_ps(1)
        cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1"], cluster.environment("ps", 0, [cluster.addresses()[0], elsewhere])))

        ps.wait_for(f"at {cluster.addresses()[0]}; that address answers, and ps 0 does not reach ps 1 at {elsewhere}; check")

    def test_ps_that_find_all_say_nothing_of_addresses(self):
        cluster = self.cluster(workers=1)
        cluster.start_ps(0)
        cluster.start_ps(1).wait_for("waits for the first join", after=0)
        cluster.ps[1].wait_for("waits for the first join, of worker 0; this wait has no limit", after=len(cluster.ps[1].lines))
        for ps in cluster.ps:
            self.assertNotIn("listed address", ps.text())

    def test_localhost_beside_other_hosts_is_what_to_correct(self):
        """ps 1 finds itself at the address of ps 0, which is on another host."""
        cluster = self.cluster()
        port = cluster.ports[1]
        addresses = [f"localhost:{port}", f"h2.invalid:{port}"]
        ps = cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1", *REPORTS], cluster.environment("ps", 1, addresses)))
        said = "localhost and 127.0.0.1 mean each host itself; list the name or address by which all hosts reach that ps"

        ps.wait_for(f"that address is that of ps 1: {said}")
        member = cluster.member(ps_addresses=addresses)

        self.assertEqual(member.wait(), 2, member.text())
        member.wait_for(f"ps 1 answers at localhost:{port}, which this configuration calls ps 0: {said}")


if __name__ == "__main__":
    unittest.main()
