# SPDX-License-Identifier: Apache-2.0
"""Several hosts: two ps and two workers in network namespaces on one switch, whose ports are taken down for a while.

A port stays down until something has happened (so many pushes of another worker, a line of a log), never for a time. SUMAC_DOWN_S
makes it a time, for a look at the bounds that hold by default: SUMAC_DOWN_S=30.
"""
import json
import os
import subprocess
import threading
import time
import unittest

from cluster import MEMBER, SUMAC
from namespaces import Network, why_not

DOWN_S = float(os.environ.get("SUMAC_DOWN_S", "0"))
PORT = 2222
HOSTS = {"ps 0": "10.77.0.1", "ps 1": "10.77.0.2", "worker 0": "10.77.0.3", "worker 1": "10.77.0.4"}
# Scaled down by ten, but for what a busy machine needs to say that it lives.
SHORT = [] if DOWN_S else ["--lease-ms", "3000", "--rejoin-ms", "8000", "--ps-lost-ms", "6000", "--report-ms", "500"]
PATIENT = ["--report-ms", "500"] if DOWN_S else ["--report-ms", "500", "--lease-ms", "300000"]


def ask(member, line, answer):
    before = len(member.lines)
    member.say(line)
    return member.wait_for(f"^(?:{answer})", after=before)


class Hosts(unittest.TestCase):
    def setUp(self):
        reason = why_not()
        if reason is not None:
            print(f"skipped: no hosts of their own: {reason}")
            self.skipTest(reason)
        try:
            self.network = Network(HOSTS)
        except (AssertionError, subprocess.CalledProcessError) as error:
            print(f"skipped: no network between hosts of their own: {error}")
            self.skipTest(str(error))
        self.addCleanup(self.network.close)
        self.processes = {}

    def start(self, name, command, stdin=None):
        job, index = name.split()
        cluster = {kind: [f"{address}:{PORT}" for other, address in HOSTS.items() if other.startswith(kind)]
                   for kind in ("ps", "worker")}
        config = json.dumps({"cluster": cluster, "task": {"type": job, "index": int(index)}})
        self.processes[name] = self.network.hosts[name].start(*command, environment={"TF_CONFIG": config}, stdin=stdin)
        return self.processes[name]

    def cluster(self, options):
        for name in ("ps 0", "ps 1"):
            self.start(name, [SUMAC, "ps", "--bind", HOSTS[name], *options]).wait_for("listens on")
        members = [self.member(f"worker {index}") for index in range(2)]
        for member in members:
            ask(member, "create w int64 4 2 2 assign_add", "created")      # two rows on each ps
            ask(member, "push w 1", "pushed")
        return members

    def member(self, name):
        member = self.start(name, [MEMBER, "0"], stdin=subprocess.PIPE)
        member.wait_for("^joined$")
        return member

    def while_down(self, name, happens):
        """What `happens` while the cable of `name` is out; it is put back in."""
        self.network.cable(name, up=False)
        begun = time.monotonic()
        happened = happens()
        threading.Event().wait(max(0.0, begun + DOWN_S - time.monotonic()))     # nobody sets it; 0 but for a look by hand
        self.network.cable(name, up=True)
        print(f"the cable of {name} was out for {time.monotonic() - begun:.1f} s")
        return happened

    def ends_well(self, *members):
        for member in members:
            ask(member, "leave done", "left")
            member.child.stdin.close()
            self.assertEqual(member.wait(), 0)
        for ps in ("ps 0", "ps 1"):
            self.assertEqual(self.processes[ps].wait(), 0, self.processes[ps].text())

    def test_a_workers_link_is_down_for_less_than_a_lease_and_nothing_is_lost(self):
        stays, goes = self.cluster(PATIENT)

        def happens():
            goes.say("flood w 1 100")
            goes.wait_for("^flooding$")
            for _ in range(200):
                ask(stays, "push w 1", "pushed")

        self.while_down("worker 1", happens)
        goes.wait_for("^flooded$")
        self.assertEqual(ask(stays, "pull w", "pulled .*").group(), "pulled w 302 302 same")
        self.ends_well(stays, goes)

    def test_the_link_of_a_ps_is_down_and_both_sides_go_on(self):
        first, second = self.cluster(PATIENT)

        def happens():
            for member in (first, second):
                member.say("flood w 1 100")
                member.wait_for("^flooding$")
            self.processes["ps 0"].wait_for("ps 0 .*ps 1 at .*(waits|last heard|lost its stream)|waits for .*ps 1")

        self.while_down("ps 1", happens)
        for member in (first, second):
            member.wait_for("^flooded$")
        self.assertEqual(ask(first, "pull w", "pulled .*").group(), "pulled w 202 202 same")
        self.ends_well(first, second)

    def test_a_workers_link_is_down_beyond_its_lease_and_another_attempt_takes_its_place(self):
        stays, goes = self.cluster(SHORT)

        def happens():
            goes.say("push w 1000")
            self.processes["ps 0"].wait_for("worker 1.*(lease|silent|settled)")
            ask(stays, "push w 1", "pushed")

        self.while_down("worker 1", happens)
        goes.wait_for("^refused ")          # its last push is applied nowhere
        self.assertGreaterEqual(goes.wait(), 128, goes.text())
        again = self.member("worker 1")
        ask(again, "push w 1", "pushed")
        self.assertEqual(ask(stays, "pull w", "pulled .*").group(), "pulled w 4 4 same")
        self.ends_well(stays, again)

    def test_the_link_of_a_ps_is_down_for_too_long_and_everybody_ends(self):
        members = self.cluster(SHORT)
        self.network.cable("ps 1", up=False)
        for ps in ("ps 0", "ps 1"):
            self.assertGreaterEqual(self.processes[ps].wait(), 128, self.processes[ps].text())
            self.assertNotEqual(self.processes[ps].wait(), 143)
        for member in members:
            member.say("push w 1")
            member.wait_for(r"^refused .*ps [01] .*")
            self.assertGreaterEqual(member.wait(), 128)


if __name__ == "__main__":
    unittest.main()
