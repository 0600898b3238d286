# SPDX-License-Identifier: Apache-2.0
"""Names of hosts: what the system finds is found at once, whatever becomes of DNS. Hosts of their own, with /etc/hosts and nameserver."""
import json
import os
import signal
import tempfile
import time
import unittest

from cluster import BUILD, PATIENCE_S, SUMAC
from namespaces import Host, why_not

HOSTS = "127.0.0.1 localhost\n127.0.1.1 h0\n"      # the name has no IPv6 address: gRPC's own resolver asks DNS for one
SILENT, REFUSES = "10.66.0.9", "127.0.0.1"         # nobody has the first, and nobody listens on the second's port 53
PORT = 2222


class Names(unittest.TestCase):
    def host(self, nameserver):
        reason = why_not("mount")
        if reason is not None:
            print(f"skipped: no host of its own: {reason}")
            self.skipTest(reason)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        host = Host("names")
        self.addCleanup(host.close)
        host.run("ip", "link", "add", "wire", "type", "veth", "peer", "name", "end")
        for words in (("address", "add", "10.66.0.1/24", "dev", "wire"), ("link", "set", "wire", "up"), ("link", "set", "end", "up")):
            host.run("ip", *words)
        for path, text in (("/etc/hosts", HOSTS), ("/etc/resolv.conf", f"nameserver {nameserver}\n" if nameserver else "")):
            own = os.path.join(folder.name, os.path.basename(path))
            with open(own, "w", encoding="ascii") as file:
                file.write(text)
            host.run("mount", "--bind", own, path)
        return host

    @staticmethod
    def start(host, job, name, *command):
        config = {"cluster": {"ps": [name if ":" in name else f"{name}:{PORT}"], "worker": ["w:1"]}, "task": {"type": job, "index": 0}}
        return host.start(*command, environment={"TF_CONFIG": json.dumps(config)})

    def test_a_name_of_etc_hosts_is_found_whatever_the_nameserver_does(self):
        for nameserver in (SILENT, REFUSES, ""):
            with self.subTest(nameserver=nameserver):
                host = self.host(nameserver)
                ps = self.start(host, "ps", "h0", SUMAC, "ps", "--report-ms", "500")
                ps.wait_for("listens on")
                begun = time.monotonic()
                worker = self.start(host, "worker", "h0", os.path.join(BUILD, "first"))
                self.assertEqual(worker.wait(), 0, worker.text())
                self.assertLess(time.monotonic() - begun, 30)       # asked of a silent one, it takes 60 s and fails
                self.assertNotIn("waiting for", worker.text())      # which is said after 5 s
                self.assertEqual(ps.wait(), 0)

    def test_a_name_that_nobody_knows_is_said_to_be_that(self):
        said = "DNS did not answer for nowhere, and /etc/hosts does not have it"
        for nameserver in (SILENT, REFUSES, ""):
            with self.subTest(nameserver=nameserver):
                host = self.host(nameserver)
                command = host.start(SUMAC, "ls", "--ps", f"nowhere:{PORT}")
                self.assertEqual(command.wait(), 138, command.text())
                command.wait_for(said)
        worker = self.start(host, "worker", "nowhere", os.path.join(BUILD, "first"))
        worker.wait_for(f"waiting for ps 0 at nowhere:{PORT}: {said}; gives up in", patience_s=PATIENCE_S)

    def test_a_ps_that_was_to_listen_on_all_addresses_says_that_its_host_has_no_ipv6(self):
        host = self.host("")
        said = "ps 0 listens on IPv4 only: this host has no IPv6 address"
        ps = self.start(host, "ps", "h0", SUMAC, "ps", "--bind", "::")
        ps.wait_for(r"listens on \[::\]:")
        host.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")       # given

        self.start(host, "ps", "h0:1", SUMAC, "ps").wait_for(said)                      # when, then
        one = self.start(host, "ps", "h0:2", SUMAC, "ps", "--bind", "127.0.1.1")
        one.wait_for("listens on 127.0.1.1")
        for process in (ps, one):
            process.signal(signal.SIGTERM)
            process.wait()
            self.assertNotIn("IPv4 only", process.text())

    def test_a_host_without_ipv4_runs_all(self):
        host = self.host("")
        host.run("ip", "address", "delete", "127.0.0.1/8", "dev", "lo")
        host.run("mount", "-t", "proc", "proc", "/proc")        # `run` starts itself as a ps, from there
        run = host.start(SUMAC, "run", "--ps", "2", "--workers", "2", "--", os.path.join(BUILD, "first"))
        self.assertEqual(run.wait(), 0, run.text())
        run.wait_for(r"listens on \[::1\]:")

    def test_two_ports_of_one_host_for_one_ps_are_a_contradiction(self):
        host = self.host("")
        ports = {"ps": [f"h0:{PORT}", f"h0:{PORT + 1}"]}

        def start(job, index, ps, *command):
            config = {"cluster": {**ports, **({"ps": ps} if ps else {}), "worker": ["w:1"]}, "task": {"type": job, "index": index}}
            return host.start(*command, environment={"TF_CONFIG": json.dumps(config)})

        right = [start("ps", index, None, SUMAC, "ps") for index in range(2)]               # given
        right[0].wait_for("ps 0 met ps 1")
        worker = start("worker", 0, [f"h0:{PORT}", f"h0:{PORT + 9}"], os.path.join(BUILD, "first"))     # when
        self.assertEqual(worker.wait(), 2, worker.text())                                   # then
        worker.wait_for(f"its configuration has ps 1 at h0:{PORT + 9}, that of ps 0 at h0:{PORT + 1}; give every task the same")
        for process in right:
            process.signal(signal.SIGTERM)
            process.wait()

        wrong = [start("ps", index, [f"h0:{PORT + 9 * (1 - index)}", f"h0:{PORT + 1}"], SUMAC, "ps", "--port", str(PORT + index))
                 for index in range(2)]
        for process in wrong:
            self.assertEqual(process.wait(), 2, process.text())
            process.wait_for(f"the configuration of ps 1 has ps 0 at h0:{PORT}, that of ps 0 at h0:{PORT + 9}; give every task the same")


if __name__ == "__main__":
    unittest.main()
