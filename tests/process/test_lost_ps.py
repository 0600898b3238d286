# SPDX-License-Identifier: Apache-2.0
"""A ps that is gone: every client and the other ps say which, that its state is lost, and end with 128 or more."""
import itertools
import signal
import unittest

import grpc

from cluster import LONG_MS, PATIENCE_S, Cluster
from wire import Client, DEADLINE_S, commit, floats, health_pb2, part, sessions_pb2, types_pb2

PS_LOST_MS = 4000           # of which a ps that lives may be silent for a while, on a busy machine
TOLD_WITHIN_S = PATIENCE_S  # where a ps is waited for for LONG_MS
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

    def members(self, cluster, count, timeout_ms=0):
        members = [cluster.member(index, timeout_ms=timeout_ms) for index in range(count)]
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

    def test_ps_0_is_killed(self):
        self.check_killed(0)

    def test_another_ps_is_killed(self):
        self.check_killed(1)

    def test_a_ps_that_is_silent_is_lost_in_its_time_for_everybody(self):
        """It is suspended and keeps its connections; with nothing to order, only its own signs of life are missing."""
        cluster = self.cluster(workers=1, options=["--ps-lost-ms", str(PS_LOST_MS)])
        member = cluster.member()
        member.wait_for("^joined$")
        cluster.ps[1].signal(signal.SIGSTOP)
        # The bound is of keepalive, which finds it after 40 s: that must not be what tells ps 0.
        self.assertGreaterEqual(cluster.ps[0].wait(35), 128)
        self.assertRegex(cluster.ps[0].text(), SAYS.format(ps=1, port=cluster.ports[1]))
        member.say("pull w")
        member.wait_for(r"^refused \w+ \w+ .*ps 1 ")
        self.assertGreaterEqual(member.wait(), 128)

    def check_restarted(self, victim):
        """No wait for a ps may be what tells them."""
        cluster = self.cluster(workers=2, options=["--ps-lost-ms", str(LONG_MS)])
        idle, busy = members = self.members(cluster, 2, LONG_MS)
        busy.say("flood w 1 100000000")
        busy.wait_for("^flooding$")
        cluster.ps[victim].kill()
        fresh = cluster.start_ps(victim)
        says = SAYS.format(ps=victim, port=cluster.ports[victim])
        busy.wait_for(r"^refused \w+ STATE_LOST .*" + says, patience_s=TOLD_WITHIN_S)
        idle.say("pull w")
        idle.wait_for(r"^refused \w+ STATE_LOST .*" + says, patience_s=TOLD_WITHIN_S)
        self.assertTrue(all(member.wait() >= 128 for member in members))
        self.assertGreaterEqual(cluster.ps[1 - victim].wait(TOLD_WITHIN_S), 128)
        self.assertRegex(cluster.ps[1 - victim].text(), says)
        self.assertTrue(fresh.running())        # it belongs to no run, and waits for the next one

    def test_a_create_that_ends_before_the_run_does_names_the_ps_and_says_what_to_do(self):
        """In each state of a ps that is gone: ended or suspended, ps 0 or another one."""
        for victim, number in itertools.product((0, 1), (signal.SIGKILL, signal.SIGSTOP)):
            with self.subTest(victim=victim, signal=number):
                cluster = self.cluster(workers=1, options=["--ps-lost-ms", str(LONG_MS)])
                (member,) = self.members(cluster, 1, timeout_ms=7000)
                cluster.ps[victim].signal(number)
                member.say("create v int64 4 2 2 assign_add")
                member.wait_for(rf"^refused (UNAVAILABLE PS_MISSING|DEADLINE_EXCEEDED TIMED_OUT) .*ps {victim} at 127\.0\.0\.1:"
                                rf"{cluster.ports[victim]}, (which was )?last heard from [\d.]+ s ago.*; if that ps does not come back, "
                                "start the whole run again, ps and workers$")

    def check_ends_waits(self, victim):
        """One contribution and one arrival are all that came: both wait for a member that does neither."""
        cluster = self.cluster(workers=3, options=["--ps-lost-ms", str(LONG_MS)])
        contributor, comer, third = members = [cluster.member(index, timeout_ms=LONG_MS) for index in range(3)]
        for member in members:
            member.wait_for("^joined$")
        ask(contributor, "create w float32 2 1 2 assign_add sum", "created")
        ask(contributor, "contribute w 1 1", "begun")
        contributor.say("end")
        comer.say("come epoch")
        for pattern in ("synchronous step 1 has waited .* for worker", "round 1 of barrier \"epoch\" waits for worker"):
            cluster.wait_for_wait(pattern)
        cluster.ps[victim].kill()
        cluster.start_ps(victim)
        says = SAYS.format(ps=victim, port=cluster.ports[victim])
        # The call at the barrier is made again, and may be what meets the new ps 0 first.
        met = r"NOT_FOUND SESSION_UNKNOWN ps 0 knows no such session: it was restarted since the join and its state is lost"
        for member in (contributor, comer):
            member.wait_for(f"^refused (DATA_LOSS STATE_LOST .*{says}|{met})", patience_s=TOLD_WITHIN_S)
            self.assertGreaterEqual(member.wait(), 128)
        third.say("pull w")
        third.wait_for(f"^refused (DATA_LOSS STATE_LOST .*{says}|{met})", patience_s=TOLD_WITHIN_S)

    def test_open_steps_and_barriers_end_with_ps_0s_state(self):
        self.check_ends_waits(0)

    def test_open_steps_and_barriers_end_with_another_pss_state(self):
        self.check_ends_waits(1)

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
        for ps in range(2):     # when the last one is done on ps 1, that exits, and ps 0 ends the run
            for session, voided in zip(streams, ([], [1], [])):
                session[ps].send(commit(1, voided=voided))
            for session, voided in zip(streams, (False, True, False)):
                done = session[ps].next().done[0]
                self.assertEqual((done.sequence, done.voided), (1, voided))
            if ps == 0:
                self.assertEqual(clients[0].pull(0, variable.shards[0]), floats(2, 2, 2, 2))
        self.assertEqual(cluster.ps[1].wait(), 143)
        self.assertEqual(cluster.ps[0].wait(), 143)
        self.assertRegex(cluster.ps[0].text(), SAYS.format(ps=1, port=cluster.ports[1]))

    def check_told(self, victim):
        """No wait for a ps may be what tells them."""
        cluster = Cluster(workers=2, options=["--ps-lost-ms", str(LONG_MS)])
        self.addCleanup(cluster.stop)
        idle, raw = cluster.member(0, timeout_ms=LONG_MS), Client(cluster.addresses(), task=1)
        self.addCleanup(raw.close)
        idle.wait_for("^joined$")
        ask(idle, "create w int64 4 2 2 assign_add", "created")
        ask(idle, "push w 1", "pushed")         # both ps have its push stream
        stream = raw.open_push(1 - victim)[0]
        cluster.ps[victim].signal(signal.SIGTERM)
        self.assertEqual(cluster.ps[victim].wait(), 143)
        with self.assertRaises(grpc.RpcError) as raised:
            stream.next()
        self.assertIn("sumac-reason", dict(raised.exception.trailing_metadata()), raised.exception.details())
        self.assertEqual(dict(raised.exception.trailing_metadata())["sumac-reason"], str(types_pb2.REASON_TERMINATED))
        self.assertRegex(raised.exception.details(), rf"ps {victim} .*terminated")
        idle.say("pull w")
        idle.wait_for(rf"^refused UNAVAILABLE TERMINATED .*ps {victim}", patience_s=TOLD_WITHIN_S)
        self.assertGreaterEqual(idle.wait(TOLD_WITHIN_S), 128)
        self.assertEqual(cluster.ps[1 - victim].wait(TOLD_WITHIN_S), 143)

    def test_ps_0_is_terminated_and_everybody_is_told_why(self):
        self.check_told(0)

    def test_another_ps_is_terminated_and_everybody_is_told_why(self):
        self.check_told(1)

    def test_both_ps_are_terminated_at_once_and_every_worker_says_so(self):
        """One pushes on and on, one waits to pull, one to create. No wait for a ps may be what tells them."""
        cluster = Cluster(workers=3, options=["--ps-lost-ms", str(LONG_MS)])
        self.addCleanup(cluster.stop)
        busy, waiting, fresh = members = [cluster.member(index, timeout_ms=LONG_MS) for index in range(3)]
        for member in members:
            member.wait_for("^joined$")
        for member in members:
            ask(member, "create w int64 1024 256 2 assign_add", "created")
            ask(member, "push w 1", "pushed")       # both ps have its push stream
        busy.say("flood w 1 100000000")
        busy.wait_for("^flooding$")
        for ps in cluster.ps:
            ps.signal(signal.SIGTERM)
        self.assertEqual([ps.wait(TOLD_WITHIN_S) for ps in cluster.ps], [143, 143])
        waiting.say("pull w")
        fresh.say("create v int64 4 2 2 assign_add")
        for member in members:
            member.wait_for(r"^refused \w+ TERMINATED .*ps [01] .*terminated|^refused \w+ TERMINATED .*told to stop", patience_s=TOLD_WITHIN_S)
            self.assertEqual(member.wait(TOLD_WITHIN_S), 138, member.text())
            self.assertNotIn("CANCELLED", member.text())

    def test_a_worker_whose_join_is_cut_short_by_sigterm_says_so_and_accuses_nobody_else(self):
        """It waits for ps 1, which has never been there; that is not why it ends."""
        cluster = Cluster(workers=1, start=False, options=["--report-ms", "200"])
        self.addCleanup(cluster.stop)
        cluster.start_ps(0)
        member = cluster.member()
        cluster.ps[0].wait_for("ps 0 waits for ps 1 .*; gives up in ")      # somebody has joined
        cluster.ps[0].signal(signal.SIGTERM)
        self.assertEqual(cluster.ps[0].wait(TOLD_WITHIN_S), 143)
        self.assertEqual(member.wait(TOLD_WITHIN_S), 138, member.text())
        member.wait_for(r"^refused \w+ TERMINATED .*told to stop")
        self.assertNotRegex(member.text(), r"CANCELLED|did not appear")

    def test_sigterm_while_ps_0_tells_of_the_end_changes_nothing(self):
        cluster = Cluster(workers=1, options=["--terminate-ms", "60000"])
        self.addCleanup(cluster.stop)
        client = Client(cluster.addresses())
        self.addCleanup(client.close)
        cluster.ps[1].signal(signal.SIGSTOP)
        left = client.ps[0].sessions.Leave.future(
            sessions_pb2.LeaveRequest(session_id=client.joined.session_id, done=True), timeout=DEADLINE_S)
        cluster.ps[0].wait_for("leaves as done")
        cluster.ps[0].signal(signal.SIGTERM)
        cluster.ps[0].wait_for("finishes what is in flight")
        cluster.ps[1].signal(signal.SIGCONT)
        left.result()
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

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
        self.assertEqual(cluster.ps[0].wait(), 143)


if __name__ == "__main__":
    unittest.main()
