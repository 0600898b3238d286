# SPDX-License-Identifier: Apache-2.0
"""Processes that die, stop, sleep or never come: who says what, and what is applied."""
import contextlib
import json
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from concurrent import futures

import grpc

from wire import DEADLINE_S, Client, Ps, floats, part, observe_pb2, sessions_pb2, sessions_pb2_grpc, transfer_pb2, transfer_pb2_grpc, types_pb2, variables_pb2, variables_pb2_grpc
from cluster import PATIENCE_S, SUMAC, Cluster, Process, free_ports

ROWS, COLUMNS = 4096, 512       # int64: 16 MiB, 8 on each ps
LEASE_MS, PS_LOST_MS = 3000, 4000       # of which one that lives may be silent for a while, on a busy machine


def applied(member, name):
    """What every element of a variable is, by a member's pull; None when they differ."""
    before = len(member.lines)
    member.say(f"pull {name}")
    found = member.wait_for(rf"^pulled {name} (\S+) (\S+) (\w+)$", after=before)
    return float(found.group(1)) if found.group(3) == "same" else None


def wait_until_it_arrives(address):
    """Until a push has begun to arrive at a ps; it may be over by then."""
    until = time.monotonic() + DEADLINE_S
    ps = Ps(address)
    stats = ps.observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S)
    while stats.memory.staged_bytes == 0 and stats.pushes == 0 and time.monotonic() < until:
        stats = ps.observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S)
    ps.channel.close()


class Workers(unittest.TestCase):
    def cluster(self, **more):
        cluster = Cluster(**more)
        self.addCleanup(cluster.stop)
        return cluster

    def member(self, cluster, index=0):
        member = cluster.member(index)
        member.wait_for("^joined$")
        return member

    def test_a_worker_killed_in_the_middle_of_a_push_leaves_nothing_of_it(self):
        """Killed at ten different moments of a flood; every time each push is on both ps or on none."""
        cluster = self.cluster(workers=2)
        survivor = self.member(cluster, 1)
        survivor.say(f"create w int64 {ROWS} {COLUMNS} 2 assign_add")
        survivor.wait_for("^created w$")
        for attempt in range(10):
            victim = self.member(cluster, 0)
            victim.say("flood w 1 1000")
            victim.wait_for("^flooding$")
            before = len(survivor.lines)
            for _ in range(attempt % 4):        # a different moment each time: after so many pulls
                survivor.say("pull w")
                survivor.wait_for("^pulled w", after=before)
                before = len(survivor.lines)
            victim.kill()
            again = self.member(cluster, 0)     # settles the session of the one that was killed
            value = applied(again, "w")
            self.assertIsNotNone(value, "part of a push was applied")
            again.kill()
        survivor.say("leave done")
        survivor.wait_for("^left$")

    def test_a_worker_asleep_for_longer_than_its_lease_is_told_and_says_so(self):
        cluster = self.cluster(options=["--lease-ms", str(LEASE_MS)], workers=2)
        sleeper, other = self.member(cluster, 0), self.member(cluster, 1)
        sleeper.say(f"create w int64 {ROWS} {COLUMNS} 2 assign_add")
        sleeper.wait_for("^created w$")
        sleeper.signal(signal.SIGSTOP)
        cluster.ps[0].wait_for(r"settled the session of worker 0")
        sleeper.signal(signal.SIGCONT)
        sleeper.say("push w 1")
        sleeper.wait_for(r"^refused \w+ SESSION_CLOSED .*session.*: its lease ran out, no ps had heard from it for \d+(\.\d+)? s")
        self.assertNotIn("another attempt", sleeper.text())
        self.assertGreaterEqual(sleeper.wait(), 128)
        self.assertEqual(applied(other, "w"), 0.0)

    def test_a_worker_whose_task_joins_again_is_told_which_attempt_did(self):
        cluster = self.cluster(workers=1)
        first = self.member(cluster)
        second = self.member(cluster)
        first.say("create w float32 4 2 2 sgd")
        first.wait_for(rf"^refused \w+ REPLACED .*session.*: process {second.child.pid} on \S+ has taken this task's place, attempt 2")
        self.assertNotIn("lease", first.text())
        self.assertEqual(first.wait(), 2)
        second.say("leave done")
        second.wait_for("^left$")

    def test_a_ps_asleep_for_longer_than_a_lease_expires_nobody(self):
        cluster = self.cluster(options=["--lease-ms", str(LEASE_MS)])
        member = self.member(cluster)
        member.say(f"create w int64 {ROWS} {COLUMNS} 2 assign_add")
        member.wait_for("^created w$")
        cluster.ps[0].signal(signal.SIGSTOP)
        threading.Event().wait(1.5 * LEASE_MS / 1000)       # that it stands still for so long is what the test is about
        self.assertTrue(member.running())
        cluster.ps[0].signal(signal.SIGCONT)
        member.say("push w 1")
        member.wait_for("^pushed$")
        self.assertEqual(applied(member, "w"), 1.0)

    def test_a_missing_worker_ends_nothing_until_nobody_is_there(self):
        cluster = self.cluster(workers=2, options=["--rejoin-ms", "500"])
        member = self.member(cluster, 0)
        member.say("create w float32 4 2 2 sgd")
        member.wait_for("^created w$")
        member.say("push w 1")
        member.wait_for("^pushed$")
        member.say("leave done")
        member.wait_for("^left$")
        self.assertTrue(all(ps.running() for ps in cluster.ps))     # worker 1 is listed, and may yet come
        other = self.member(cluster, 1)
        other.say("leave done")
        other.wait_for("^left$")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_nobody_comes_back_and_the_run_ends_143(self):
        cluster = self.cluster(workers=1, options=["--rejoin-ms", "500", "--lease-ms", "1000"])
        self.member(cluster).kill()
        self.assertEqual([ps.wait() for ps in cluster.ps], [143, 143])


    def test_a_child_does_not_use_its_parents_client(self):
        """Both would number pushes of one session: one's would be taken for the other's."""
        cluster = self.cluster()
        member = self.member(cluster)
        for line, answer in (("create w int64 4 2 2 assign_add", "created w"), ("push w 1", "pushed"), ("fork w", "forked"),
                             ("push w 1", "pushed")):
            before = len(member.lines)
            member.say(line)
            member.wait_for(f"^{answer}$", after=before)
        self.assertEqual(member.lines.count("child FAILED_PRECONDITION"), 4, member.text())
        member.wait_for(r"^child says this client was opened by process \d+, .*fork first")
        self.assertEqual(applied(member, "w"), 2.0)
        member.say("leave done")
        member.wait_for("^left$")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


class Mute(sessions_pb2_grpc.SessionsServicer, variables_pb2_grpc.VariablesServicer, transfer_pb2_grpc.TransferServicer):
    """A ps 0 that opens a session, says that its client is to assign what it creates, and answers no push."""

    def __init__(self, port):
        self.address = f"127.0.0.1:{port}"
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        for add in (sessions_pb2_grpc.add_SessionsServicer_to_server, variables_pb2_grpc.add_VariablesServicer_to_server,
                    transfer_pb2_grpc.add_TransferServicer_to_server):
            add(self, self.server)
        self.server.add_insecure_port(self.address)
        self.server.start()

    def Join(self, request, context):
        return sessions_pb2.JoinReply(cluster_id=1, epoch=1, session_id=bytes(range(16)), attempt=1, lease_ms=60000,
                                      ps_addresses=[self.address], ps_incarnations=[7], ps_lost_ms=60000)

    def Renew(self, request, context):
        return sessions_pb2.RenewReply(epoch=1)

    def List(self, request, context):
        return variables_pb2.ListReply(cluster_id=1, epoch=1, ps_addresses=[self.address], ps_incarnation=7)

    def Create(self, request, context):
        variable = types_pb2.Variable()
        variable.CopyFrom(request.variable)
        variable.variable_id, variable.published = 1, True
        variable.shards.add(shard_id=1, layout_epoch=1, rows=variable.shape[0], bytes=16)
        return variables_pb2.CreateReply(variable=variable, assign=True)

    def Push(self, requests, context):
        yield transfer_pb2.PushAnswer(greeting=transfer_pb2.Greeting(
            epoch=1, ps_incarnation=7, cluster_id=1, staging_grant_bytes=1 << 20))
        for _ in requests:
            pass


class Late(Mute):
    """It greets, with a grant of 1 KiB, when it is told to."""

    def __init__(self, port):
        self.greets = threading.Event()
        super().__init__(port)

    def Create(self, request, context):
        reply = super().Create(request, context)
        reply.assign = False
        return reply

    def Push(self, requests, context):
        self.greets.wait(DEADLINE_S)
        yield transfer_pb2.PushAnswer(greeting=transfer_pb2.Greeting(
            epoch=1, ps_incarnation=7, cluster_id=1, staging_grant_bytes=1 << 10))
        for _ in requests:
            pass


class ParameterServers(unittest.TestCase):
    def cluster(self, **more):
        cluster = Cluster(**more)
        self.addCleanup(cluster.stop)
        return cluster

    def test_a_ps_killed_is_named_by_every_client_and_the_other_ps(self):
        for victim in (0, 1):
            cluster = self.cluster(options=["--ps-lost-ms", str(PS_LOST_MS)])
            member = cluster.member()
            member.wait_for("^joined$")
            member.say("create w float32 4 2 2 sgd")
            member.wait_for("^created w$")
            cluster.ps[victim].kill()
            member.say("push w 1")
            member.wait_for(rf"^refused \w+ \w+ .*ps {victim}")
            self.assertGreaterEqual(member.wait(), 128)
            other = cluster.ps[1 - victim]
            self.assertGreaterEqual(other.wait(), 128)
            self.assertRegex(other.text(), rf"ps {victim}.*(lost|not been reached|gone)")
            cluster.stop()

    def test_a_ps_that_comes_back_empty_ends_the_run_at_once(self):
        cluster = self.cluster()
        member = cluster.member()
        member.wait_for("^joined$")
        member.say("create w float32 4 2 2 sgd")
        member.wait_for("^created w$")
        cluster.ps[1].kill()
        cluster.start_ps(1)
        member.say("push w 1")
        member.wait_for(r"^refused \w+ STATE_LOST .*ps 1.*state")
        self.assertGreaterEqual(member.wait(), 128)
        self.assertGreaterEqual(cluster.ps[0].wait(), 128)
        self.assertRegex(cluster.ps[0].text(), r"ps 1.*state")

    def test_sigterm_finishes_what_is_in_flight(self):
        cluster = self.cluster(workers=1, options=["--terminate-ms", "60000"])
        member = cluster.member()
        member.wait_for("^joined$")
        member.say(f"create w int64 {ROWS} {COLUMNS} 2 assign_add")
        member.wait_for("^created w$")
        member.say("begin w 1")
        member.wait_for("^begun$")
        member.say("end")
        for address in cluster.addresses():
            wait_until_it_arrives(address)
        for ps in cluster.ps:
            ps.signal(signal.SIGTERM)
        member.wait_for("^pushed$|^refused")
        self.assertEqual([ps.wait() for ps in cluster.ps], [143, 143])
        self.assertIn("pushed", member.text())

    def test_the_exit_code_of_a_ps_says_which_signal_it_obeyed(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            cluster = self.cluster(ps=1)
            cluster.ps[0].wait_for("^.* ps 0 listens on ")
            cluster.ps[0].signal(number)
            self.assertEqual(cluster.ps[0].wait(), 128 + number)
            self.assertIn("ps 0 was told to terminate", cluster.ps[0].text())

    def test_a_ps_under_nohup_outlives_its_terminal(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)       # its children inherit that
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        cluster = self.cluster(ps=1)
        cluster.ps[0].wait_for("^.* ps 0 listens on ")
        cluster.ps[0].signal(signal.SIGHUP)
        cluster.member().wait_for("^joined$")

    def test_ps_0_says_with_which_code_each_ps_exits_after_a_signal_of_a_terminal(self):
        for number, of, codes, said in (
                (signal.SIGINT, 0, [130, 130], r"run ends with code 130: ps 0 was interrupted \(SIGINT\)"),
                (signal.SIGINT, 1, [143, 130], r"run ends with code 143: ps 1 at .* was interrupted \(SIGINT, exit code 130\)"),
                (signal.SIGHUP, 0, [129, 129], r"run ends with code 129: ps 0 was stopped \(SIGHUP\)"),
                (signal.SIGHUP, 1, [143, 129], r"run ends with code 143: ps 1 at .* was stopped \(SIGHUP, exit code 129\)")):
            cluster = self.cluster(ps=2)
            cluster.member().wait_for("^joined$")
            cluster.ps[of].signal(number)
            cluster.ps[0].wait_for(said)
            self.assertEqual([ps.wait() for ps in cluster.ps], codes)

    def test_a_second_signal_ends_a_ps_at_once(self):
        """What is in flight is a part whose commit does not come, and the time for it is long."""
        cluster = self.cluster(ps=1, options=["--terminate-ms", "3600000"])
        client = Client(cluster.addresses())
        self.addCleanup(client.close)
        shard = client.create("w", [2], shards=1).shards[0]
        push, _ = client.open_push(0)
        push.send(part(1, shard, floats(1, 2)))
        self.assertEqual(push.next().staged[0].sequence, 1)
        cluster.ps[0].signal(signal.SIGTERM)
        cluster.ps[0].wait_for("finishes what is in flight")
        cluster.ps[0].signal(signal.SIGTERM)
        self.assertEqual(cluster.ps[0].wait(), 143)
        self.assertRegex(cluster.ps[0].text(), "exits at once: signal 15 came again")

    def test_signals_that_come_until_the_end_change_no_exit_code(self):
        """The process exits with the code that was decided: it does not die by a signal that comes later."""
        for _ in range(5):
            cluster = self.cluster(ps=1)
            child = cluster.ps[0].child
            while child.returncode is None:
                child.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=0.0005)
            self.assertEqual(child.returncode, 143)

    def test_a_port_that_is_taken_is_named(self):
        cluster = self.cluster(ps=1)
        second = cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1"], cluster.environment("ps", 0)))
        self.assertGreaterEqual(second.wait(), 128)     # whoever has it may go
        address = rf"127\.0\.0\.1:{cluster.ports[0]}"
        self.assertRegex(second.text(), rf"{address}: another process has the port; end that process, or choose another port; if that process is "
                                        rf"a ps of another run \(sumac stats --ps {address} shows it\), give each run ports and a SUMAC_RUN of its own")
        self.assertEqual(cluster.sumac("stats", "--ps", cluster.addresses()[0])[0], 0)

    def test_a_port_that_is_taken_on_one_address_is_taken_on_all(self):
        """A ps that listened on the others alone would be found by some names, and another process by the rest."""
        for host in ("::1", "127.0.0.1"):
            with self.subTest(host=host), socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
                config = {"cluster": {"ps": [f"127.0.0.1:{taken.getsockname()[1]}"]}, "task": {"type": "ps", "index": 0}}
                ps = Process([SUMAC, "ps"], {"TF_CONFIG": json.dumps(config)})
                self.addCleanup(ps.kill)
                self.assertEqual(ps.wait(), 226, ps.text())
                ps.wait_for("another process has the port")

    def test_an_address_of_another_host_is_a_mistake_to_mend(self):
        cluster = self.cluster(ps=1, start=False)
        ps = cluster.add(Process([SUMAC, "ps", "--bind", "192.0.2.1"], cluster.environment("ps", 0)))
        self.assertEqual(ps.wait(), 2)
        self.assertRegex(ps.text(), r"192\.0\.2\.1 is no address of this host")

    def test_a_missing_ps_is_named_and_ends_those_who_wait_for_it(self):
        cluster = self.cluster(start=False, options=["--ps-lost-ms", "14000", "--report-ms", "300"])
        cluster.start_ps(0)
        cluster.ps[0].wait_for(r"waits for ps 1 at 127\.0\.0\.1:\d+")
        member = cluster.member(timeout_ms=8000)        # it gives up before ps 0 does
        member.wait_for(r"^\d{4}-\d\d-\d\dT[\d:.]+Z sumac worker 0: waiting for ps 1 at 127\.0\.0\.1:\d+: .*; gives up in \d+ s$")     # a line comes every 5 s
        member.wait_for(r"^refused UNAVAILABLE PS_MISSING .*ps 1")
        self.assertGreaterEqual(member.wait(), 128)
        self.assertGreaterEqual(cluster.ps[0].wait(), 128)

    def test_a_join_that_waits_for_a_missing_ps_ends_and_so_does_ps_0(self):
        cluster = self.cluster(start=False, options=["--ps-lost-ms", "1000"])
        cluster.start_ps(0)
        cluster.ps[0].wait_for("listens on")
        with self.assertRaises(grpc.RpcError) as raised:
            Client(cluster.addresses()[:1])
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertRegex(raised.exception.details(), r"ps 1.*never heard from")
        self.assertGreaterEqual(cluster.ps[0].wait(), 128)

    def test_a_create_whose_value_cannot_be_assigned_ends_in_its_time(self):
        """And says who was to assign it."""
        cluster = self.cluster(ps=1, start=False)
        mute = Mute(cluster.ports[0])
        self.addCleanup(mute.server.stop, 0)
        member = cluster.member(timeout_ms=5000)
        member.wait_for("^joined$")
        with tempfile.NamedTemporaryFile() as first:
            first.write(bytes(16))
            first.flush()
            member.say(f"make w int32 4 1 assign {first.name}")
            refused = member.wait_for("^refused DEADLINE_EXCEEDED TIMED_OUT (.*)$")
        self.assertRegex(refused.group(1), "^w is created, and this client, which is to assign it, could not within 5 s: .*ps 0 at")

    def test_a_variable_too_large_for_one_push_is_said_when_the_grant_becomes_known(self):
        cluster = self.cluster(ps=1, start=False)
        late = Late(cluster.ports[0])
        self.addCleanup(late.server.stop, 0)
        self.addCleanup(late.greets.set)
        member = cluster.member()
        member.wait_for("^joined$")
        member.say("create w int32 4 1 1 assign")
        member.wait_for("^created w$")
        self.assertNotIn("pushed whole", member.text())
        late.greets.set()
        member.wait_for("w pushed whole takes 0.01 MiB of staging on ps 0, where the largest part takes 0.00 MiB: .*--staging-max 2M$")

    def test_any_order_of_start_will_do(self):
        cluster = self.cluster(start=False)
        member = cluster.member()
        cluster.start_ps(1)
        cluster.ps[1].wait_for("listens on")
        cluster.start_ps(0)
        member.wait_for("^joined$")
        member.say("leave done")
        member.wait_for("^left$")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_a_ps_that_nobody_joins_waits_and_says_so(self):
        cluster = self.cluster(workers=2, options=["--report-ms", "200"])
        for index, ps in enumerate(cluster.ps):
            ps.wait_for(rf"ps {index} waits for the first join, of worker 0, worker 1; this wait has no limit, so far [\d.]+ m?s$")
        cluster.ps[0].signal(signal.SIGTERM)
        self.assertEqual(cluster.ps[0].wait(), 143)


class Configuration(unittest.TestCase):
    """TF_CONFIG that is wrong: exit 2, and the thing is named."""

    def refused(self, config, *mentions, command=(SUMAC, "ps")):
        process = Process(list(command), {"TF_CONFIG": config})
        self.addCleanup(process.kill)
        self.assertEqual(process.wait(), 2, process.text())
        for mention in mentions:
            self.assertRegex(process.text(), mention)

    def test_not_json(self):
        self.refused('{"cluster": {"ps": ["h:1"]},\n "task": }', r"line 2", r"column \d+")

    def test_unset(self):
        self.refused("", r"TF_CONFIG")

    def test_no_ps(self):
        self.refused(json.dumps({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": 0}}), r"ps")

    def test_a_task_that_the_cluster_lacks(self):
        self.refused(json.dumps({"cluster": {"ps": ["h:1"], "worker": ["h:2"]}, "task": {"type": "ps", "index": 3}}), r"3")

    def test_an_address_without_port(self):
        self.refused(json.dumps({"cluster": {"ps": ["h"]}, "task": {"type": "ps", "index": 0}}), r'"?h"?', r"port")

    def test_a_repeated_key(self):
        self.refused('{"cluster": {"ps": ["h:1"], "ps": ["h:2"]}, "task": {"type": "ps", "index": 0}}', r"ps", r"twice|repeated|[Dd]uplicate")

    def test_lists_that_disagree_are_refused_with_both(self):
        """Workers that list more workers, fewer ps, the ps in another order; each ends with 2 at once, ps 0 says in its log whom it
        refused, and the run goes on."""
        with Cluster(workers=1) as cluster:
            ours = cluster.addresses()
            cases = ((2, ours, r"lists worker 0, worker 1, that of ps 0 worker 0;"),
                     (1, ours[:1], rf"has the ps {ours[0]}, that of ps 0 {ours[0]}, {ours[1]};"))
            for workers, addresses, mentions in cases:
                cluster.workers = workers
                member = cluster.member(ps_addresses=addresses)
                member.wait_for(r"^refused FAILED_PRECONDITION WRONG_CLUSTER .*" + mentions)
                self.assertEqual(member.wait(), 2, member.text())
                cluster.ps[0].wait_for(rf"ps 0 refused the join of worker 0: .*{mentions}")
            cluster.workers = 1
            member = cluster.member(ps_addresses=ours[::-1])
            member.wait_for(rf"^refused FAILED_PRECONDITION WRONG_CLUSTER ps \d answers at .*, which this configuration calls ps \d: ")
            self.assertEqual(member.wait(), 2, member.text())
            member = cluster.member()
            member.wait_for("^joined$")
            member.say("leave done")
            self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_ps_that_disagree_end_with_2_and_say_so(self):
        """ps 1 lists another worker than ps 0; it ends at once, and the run with the worker that waits soon."""
        with Cluster(workers=1, start=False, options=["--report-ms", "300"]) as cluster:
            cluster.start_ps(0)
            member = cluster.member()
            cluster.ps[0].wait_for("waits for ps 1 .*gives up in")
            cluster.workers = 2
            cluster.start_ps(1)
            says = "the configuration of ps 1 lists worker 0, worker 1, that of ps 0 worker 0; give every task the same"
            for process in (*cluster.ps, member):
                self.assertEqual(process.wait(), 2, process.text())
                process.wait_for(says)

    def test_a_wait_names_the_present_cause_and_not_the_first(self):
        """Something else listens at the address of ps 1 at first, and hangs up on whoever calls; then nothing does."""
        with socket.socket() as stranger, Cluster(start=False, options=["--report-ms", "300"]) as cluster:
            stranger.bind(("127.0.0.1", 0))
            stranger.listen(64)
            addresses = [cluster.addresses()[0], f"127.0.0.1:{stranger.getsockname()[1]}"]
            ps = cluster.add(Process([SUMAC, "ps", *cluster.options], cluster.environment("ps", 0, addresses)))
            ps.wait_for("listens on")
            member = cluster.member(ps_addresses=addresses)
            stranger.settimeout(PATIENCE_S)
            while not any("never heard from (" in line for line in ps.lines):
                stranger.accept()[0].close()
            self.assertNotIn("Connection refused", ps.text())
            stranger.close()
            ps.wait_for(r"ps 0 waits for ps 1 .*never heard from \(Connection refused\)")
            member.kill()

    def test_a_host_that_does_not_resolve_yet_is_tried_again_and_then_said(self):
        with Cluster(start=False, options=["--ps-lost-ms", str(PS_LOST_MS), "--report-ms", "300"]) as cluster:
            addresses = [cluster.addresses()[0], f"sumac-nobody.invalid:{free_ports(1)[0]}"]
            ps = cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1", *cluster.options],
                                     cluster.environment("ps", 0, addresses)))
            ps.wait_for("listens on")
            member = cluster.member(ps_addresses=addresses, timeout_ms=5000)
            member.wait_for(r"^refused UNAVAILABLE PS_MISSING .*ps 1.*sumac-nobody\.invalid")
            self.assertGreaterEqual(member.wait(), 128)
            ps.wait_for("ps 0 waits for ps 1 at sumac-nobody.invalid")


if __name__ == "__main__":
    unittest.main()
