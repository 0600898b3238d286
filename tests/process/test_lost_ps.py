"""A ps that is gone: every client and the other ps say which, that its state is lost, and end with 128 or more."""
import signal
import time
import unittest

from cluster import Cluster
from wire import Client, DEADLINE_S, commit, floats, health_pb2, part

PS_LOST_MS = 1500
SAYS = r"ps {ps} (at 127\.0\.0\.1:{port}|came back).*state"


def ask(member, line, answer):
    before = len(member.lines)
    member.say(line)
    return member.wait_for(f"^(?:{answer})", after=before)


class Lost(unittest.TestCase):
    def cluster(self, **more):
        cluster = Cluster(**more)
        self.addCleanup(cluster.stop)
        return cluster

    def members(self, cluster, count):
        members = [cluster.member(index) for index in range(count)]
        for member in members:
            member.wait_for("^joined$")
            ask(member, "create w int64 4 2 2 assign_add", "created")
        return members

    def check_killed(self, victim):
        """One worker pushes on and on, one pulls and one pushes when the ps is gone, and one had a push under way."""
        cluster = self.cluster(workers=4, options=["--ps-lost-ms", str(PS_LOST_MS)])
        busy, reader, writer, caught = members = self.members(cluster, 4)
        busy.say("flood w 1 100000000")
        busy.wait_for("^flooding$")
        killed_at = time.monotonic()
        cluster.ps[victim].kill()
        ask(caught, "begin w 1", "begun|refused")
        for member, line in ((reader, "pull w"), (writer, "push w 1"), (caught, "end")):
            member.say(line)
        says = SAYS.format(ps=victim, port=cluster.ports[victim])
        other = cluster.ps[1 - victim]
        for member in members:
            member.wait_for(r"^refused \w+ \w+ .*" + says)
            self.assertGreaterEqual(member.wait(), 128)
        self.assertGreaterEqual(other.wait(), 128)
        self.assertRegex(other.text(), says)
        # A bound, not a measurement: far from what a wait without limit would be.
        self.assertLess(time.monotonic() - killed_at, 20 * PS_LOST_MS / 1000)

    def test_ps_0_is_killed(self):
        self.check_killed(0)

    def test_another_ps_is_killed(self):
        self.check_killed(1)

    def check_restarted(self, victim):
        """With the default of 60 s no wait may be what tells them."""
        cluster = self.cluster(workers=2)
        idle, busy = members = self.members(cluster, 2)
        busy.say("flood w 1 100000000")
        busy.wait_for("^flooding$")
        cluster.ps[victim].kill()
        fresh = cluster.start_ps(victim)
        says = SAYS.format(ps=victim, port=cluster.ports[victim])
        busy.wait_for(r"^refused \w+ STATE_LOST .*" + says, patience_s=30)
        idle.say("pull w")
        idle.wait_for(r"^refused \w+ STATE_LOST .*" + says, patience_s=30)
        self.assertTrue(all(member.wait() >= 128 for member in members))
        self.assertGreaterEqual(cluster.ps[1 - victim].wait(30), 128)
        self.assertRegex(cluster.ps[1 - victim].text(), says)
        self.assertTrue(fresh.running())        # it belongs to no run, and waits for the next one

    def test_ps_0_comes_back_empty(self):
        self.check_restarted(0)

    def test_another_ps_comes_back_empty(self):
        self.check_restarted(1)


class Terminated(unittest.TestCase):
    """SIGTERM of one ps while pushes of several sessions over both are in flight."""

    def test_what_is_in_flight_is_finished_on_both_ps(self):
        cluster = Cluster(workers=3, options=["--ps-lost-ms", str(PS_LOST_MS), "--terminate-ms", "30000"])
        self.addCleanup(cluster.stop)
        clients = [Client(cluster.addresses(), task=index) for index in range(3)]
        for client in clients:
            self.addCleanup(client.close)
        variable = clients[0].create("w", [4, 2])
        ones = floats(1, 1, 1, 1)
        streams = [[client.open_push(ps)[0] for ps in range(2)] for client in clients]
        for session in streams:
            for ps, stream in enumerate(session):
                stream.send(part(1, variable.shards[ps], ones))
        for session in streams:
            for stream in session:
                self.assertEqual([staged.sequence for staged in stream.next().staged], [1])
        watch = clients[0].ps[1].health.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
        cluster.ps[1].signal(signal.SIGTERM)
        cluster.ps[1].wait_for("finishes what is in flight")
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
        for session, voided in zip(streams, ([], [1], [])):
            for stream in session:
                stream.send(commit(1, voided=voided))
        for session, voided in zip(streams, (False, True, False)):
            for stream in session:
                done = stream.next().done[0]
                self.assertEqual((done.sequence, done.voided), (1, voided))
        self.assertEqual(cluster.ps[1].wait(), 143)
        self.assertEqual(clients[0].pull(0, variable.shards[0]), floats(2, 2, 2, 2))
        self.assertGreaterEqual(cluster.ps[0].wait(), 128)
        self.assertRegex(cluster.ps[0].text(), SAYS.format(ps=1, port=cluster.ports[1]))

    def test_every_worker_hears_which_ps_was_terminated(self):
        cluster = Cluster(workers=3, options=["--ps-lost-ms", str(PS_LOST_MS)])
        self.addCleanup(cluster.stop)
        members = [cluster.member(index) for index in range(3)]
        for member in members:
            member.wait_for("^joined$")
            ask(member, "create w int64 1024 256 2 assign_add", "created")
            member.say("flood w 1 100000000")
            member.wait_for("^flooding$")
        cluster.ps[1].signal(signal.SIGTERM)
        self.assertEqual(cluster.ps[1].wait(), 143)
        for member in members:
            member.wait_for(r"^refused \w+ \w+ .*ps 1 at")
            self.assertGreaterEqual(member.wait(), 128)
        self.assertGreaterEqual(cluster.ps[0].wait(), 128)


if __name__ == "__main__":
    unittest.main()
