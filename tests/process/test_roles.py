# SPDX-License-Identifier: Apache-2.0
"""Who holds a run up and who does not: chief, workers, observers; and ps that are found late, or by one another."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

from cluster import BUILD, MEMBER, PATIENCE_S, Cluster, Process, SUMAC
from wire import Client, DEADLINE_S, sessions_pb2, variables_pb2


def ask(member, line, answer):
    before = len(member.lines)
    member.say(line)
    return member.wait_for(f"^(?:{answer})", after=before)


class Roles(unittest.TestCase):
    def cluster(self, **more):
        cluster = Cluster(**more)
        self.addCleanup(cluster.stop)
        return cluster

    def joined(self, member):
        member.wait_for("^joined$")
        return member

    def observer(self, cluster):
        observer = Client(cluster.addresses(), role=sessions_pb2.ROLE_OBSERVER)
        self.addCleanup(observer.close)
        return observer

    def test_the_chief_is_waited_for_like_a_worker(self):
        cluster = self.cluster(workers=1, chief=True)
        worker = self.joined(cluster.member(0))
        ask(worker, "leave done", "left")
        chief = self.joined(cluster.member(job="chief"))       # the run is still there for it
        self.assertTrue(all(ps.running() for ps in cluster.ps))
        ask(chief, "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_a_chief_and_ps_are_a_cluster_without_workers(self):
        for job in ("chief", "master"):
            with self.subTest(job):
                cluster = self.cluster(ps=2, workers=0, chief=job)
                chief = self.joined(cluster.member(job=job))
                ask(chief, "who", "member 0 of 1$")
                ask(chief, "create w float32 4 2 2 sgd", "created w$")
                ask(chief, "leave done", "left")
                self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_a_member_knows_which_it_is_and_of_how_many(self):
        """As in TensorFlow: the chief is 0, the workers come after it. A list that may lack some of them tells no count."""
        cluster = self.cluster(ps=1, workers=3, chief=True)
        full = json.loads(cluster.config("worker", 2))["cluster"]
        some = {**full, "worker": {"2": full["worker"][2]}}
        for who, config in (("member 3 of 4", full), ("member 3 of 0", some)):
            environment = {"TF_CONFIG": json.dumps({"cluster": config, "task": {"type": "worker", "index": 2}})}
            member = self.joined(cluster.add(Process([MEMBER, "0"], environment, stdin=subprocess.PIPE)))
            ask(member, "who", who + "$")
            ask(member, "leave undone", "left")
        old = {"master" if job == "chief" else job: tasks for job, tasks in full.items()}      # as TensorFlow 1 called the chief
        environment = {"TF_CONFIG": json.dumps({"cluster": old, "task": {"type": "master", "index": 0}})}
        master = self.joined(cluster.add(Process([MEMBER, "0"], environment, stdin=subprocess.PIPE)))
        ask(master, "who", "member 0 of 4$")
        ask(master, "leave undone", "left")
        ask(self.joined(cluster.member(job="chief")), "who", "member 0 of 4$")
        ask(self.joined(cluster.member(observer=True)), "who", "member 0 of 0$")

    def test_a_member_that_gave_up_may_come_back_and_be_done(self):
        cluster = self.cluster(workers=1)
        ask(self.joined(cluster.member()), "leave undone", "left")
        self.assertTrue(all(ps.running() for ps in cluster.ps))
        ask(self.joined(cluster.member()), "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_one_was_done_and_the_other_never_came_back(self):
        cluster = self.cluster(workers=2, options=["--rejoin-ms", "300", "--lease-ms", "3000"])
        first, second = self.joined(cluster.member(0)), self.joined(cluster.member(1))
        ask(first, "leave done", "left")
        second.kill()
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])
        cluster.ps[0].wait_for("no worker has been in the run for 300 ms, one has left as done")

    def test_one_that_never_joined_is_waited_for_longer(self):
        cluster = self.cluster(workers=2, options=["--rejoin-ms", "100", "--rejoin-first-ms", "900"])
        ask(self.joined(cluster.member(0)), "leave undone", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [143, 143])
        cluster.ps[0].wait_for("no worker has been in the run for 900 ms, none has left as done")

    def test_who_never_joined_is_named_by_log_and_stats_and_the_last_line(self):
        cluster = self.cluster(workers=2, options=["--rejoin-first-ms", "12000", "--report-ms", "200"])
        ask(self.joined(cluster.member(0)), "leave done", "left")
        code, text = cluster.sumac("stats")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"no worker is left; the run ends in \d+ s unless worker 1 joins")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])
        cluster.ps[0].wait_for(r"no worker is left; the run ends in \d+ s unless worker 1 joins$")
        for ps in cluster.ps:
            ps.wait_for("no worker has been in the run for 12 s, one has left as done; never joined: worker 1$")

    def test_an_observer_that_waits_for_a_ps_ends_no_run(self):
        cluster = self.cluster(workers=1, start=False, options=["--ps-lost-ms", "4000", "--report-ms", "300"])
        cluster.start_ps(0)
        cluster.ps[0].wait_for("listens on")
        observer = cluster.member(observer=True, timeout_ms=6000)
        observer.wait_for(r"^refused UNAVAILABLE PS_MISSING ")
        self.assertGreaterEqual(observer.wait(), 128)
        cluster.start_ps(1).wait_for("ps 1 was called by ps 0")     # which dials again after some seconds; a join would wait for that
        ask(self.joined(cluster.member(0)), "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_who_joins_says_as_whom_and_a_killed_worker_is_named_at_once(self):
        cluster = self.cluster(workers=1, options=["--lease-ms", "60000"])
        member = self.joined(cluster.member(0))
        member.wait_for(rf"Z sumac worker 0: joined as worker 0, attempt 1, at ps 0 at 127\.0\.0\.1:{cluster.ports[0]}: 2 ps, cluster [0-9a-f]{{16}}$")
        ask(member, "make w int64 4,2 2 assign_add", "made")
        ask(member, "push w 1", "pushed")       # both ps have its push stream
        member.kill()
        for index, ps in enumerate(cluster.ps):
            ps.wait_for(rf"ps {index}: the push stream of worker 0, attempt 1, broke; its lease ends in 60 s unless it is heard from$")

    def test_each_ps_says_its_end_in_one_line(self):
        cluster = self.cluster(workers=1)
        ask(self.joined(cluster.member()), "leave done", "left")
        for ps in cluster.ps:
            self.assertEqual(ps.wait(), 0)
            ends = [line for line in ps.lines if "every listed member has left as done" in line]
            self.assertEqual(len(ends), 1, ps.text())

    def test_an_observer_begins_no_run_and_holds_up_no_end(self):
        cluster = self.cluster(workers=1)
        early = self.observer(cluster)
        member = self.joined(cluster.member())
        ask(member, "make w int64 4,2 2 assign_add", "made")
        late = self.observer(cluster)
        listed = late.ps[0].variables.List(variables_pb2.ListRequest(names=["w"]), timeout=DEADLINE_S).variables[0]
        self.assertEqual(len(late.pull(0, listed.shards[0])), 4 * 8 // 2 * 2)
        ask(member, "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])
        self.assertNotEqual(early.joined.session_id, late.joined.session_id)

    def test_an_observer_pushes_and_pulls_and_is_not_waited_for(self):
        cluster = self.cluster(workers=1)
        member, observer = self.joined(cluster.member()), self.joined(cluster.member(observer=True))
        ask(member, "make w int64 4,2 2 assign_add", "made")
        ask(observer, "push w 2", "pushed")
        ask(member, "pull w", "pulled w 2 2 same")
        ask(observer, "pull w", "pulled w 2 2 same")
        ask(member, "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])
        observer.say("pull w")
        ended = observer.wait_for(r"^refused \w+ (\w+) .*(ps \d|run)")
        self.assertEqual(observer.wait(), 0 if ended[1] == "RUN_ENDED" else 138)

    def test_an_observer_that_is_silent_ends_with_its_lease_and_nobody_notices(self):
        cluster = self.cluster(workers=1, options=["--lease-ms", "3000"])
        self.observer(cluster)
        member = self.joined(cluster.member())
        cluster.ps[0].wait_for("settled the session of .*observer")
        ask(member, "make w int64 4,2 2 assign_add", "made")
        ask(member, "push w 1", "pushed")
        ask(member, "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_more_sessions_than_allowed_name_the_option(self):
        cluster = self.cluster(workers=2, options=["--sessions-max", "1"])
        member = self.joined(cluster.member(0))
        second = cluster.member(1)
        second.wait_for(r"^refused RESOURCE_EXHAUSTED TOO_MANY_SESSIONS .*sessions-max")
        with self.assertRaises(grpc.RpcError) as raised:
            self.observer(cluster)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        ask(member, "make w int64 4,2 2 assign_add", "made")        # the one that is there goes on

    def test_a_join_after_the_end_is_told_so(self):
        """While the run ends, or when it is over, a worker that comes too late does not begin another."""
        cluster = self.cluster(workers=1)
        ask(self.joined(cluster.member()), "leave done", "left")
        late = cluster.member(timeout_ms=1500)
        ended = late.wait_for(r"^refused (FAILED_PRECONDITION RUN_ENDED|UNAVAILABLE PS_MISSING) ")
        self.assertEqual(late.wait(), 0 if "RUN_ENDED" in ended[1] else 138)
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


def listens(host, port):
    try:
        socket.create_connection((host, port), timeout=DEADLINE_S).close()
        return True
    except ConnectionRefusedError:
        return False


class Addresses(unittest.TestCase):
    """Ps that are told little, or names that resolve late."""

    def setUp(self):
        self.cluster = Cluster(start=False, workers=1)
        self.addCleanup(self.cluster.stop)

    def train(self, member):
        member.wait_for("^joined$")
        ask(member, "make w int64 4,2 2 assign_add", "made")
        ask(member, "push w 3", "pushed")
        ask(member, "pull w", "pulled w 3 3 same")
        ask(member, "leave done", "left")
        self.assertEqual([ps.wait() for ps in self.cluster.processes[:2]], [0, 0])

    def test_ps_that_are_told_only_themselves_are_told_the_rest(self):
        """Kubeflow's dynamic form, its own job a list of one, no other: the first join tells ps 0 the rest, and ps 0 tells ps 1."""
        for index, address in enumerate(self.cluster.addresses()):
            config = {"cluster": {"ps": [address], "worker": {}}, "task": {"type": "ps", "index": index}}
            ps = self.cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1"], {"TF_CONFIG": json.dumps(config)}))
            ps.wait_for(f"ps {index} listens on")
        config = {"cluster": {"worker": ["127.0.0.1:9"], "ps": dict(enumerate(self.cluster.addresses()))},
                  "task": {"type": "worker", "index": 0}}
        member = Process([f"{BUILD}/member"], {"TF_CONFIG": json.dumps(config)}, stdin=-1)
        self.train(self.cluster.add(member))

    def test_bind_narrows_where_a_ps_listens(self):
        for host, other in (("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")):
            ps = self.cluster.add(Process([SUMAC, "ps", "--bind", host], self.cluster.environment("ps", 0)))
            ps.wait_for(rf"listens on {host}:{self.cluster.ports[0]}, version [\d.]+, cluster [0-9a-f]{{16}}$")
            self.assertTrue(listens(host, self.cluster.ports[0]))
            self.assertFalse(listens(other, self.cluster.ports[0]))
            ps.kill()

    def test_a_name_that_resolves_later_is_tried_until_then(self):
        with tempfile.TemporaryDirectory() as folder:
            there = os.path.join(folder, "there")
            names = [f"ps{index}.later.invalid:{port}" for index, port in enumerate(self.cluster.ports)]
            late = {"LD_PRELOAD": f"{BUILD}/libresolve_later.so", "SUMAC_RESOLVE_LATER": there, "GRPC_DNS_RESOLVER": "native",
                    "ASAN_OPTIONS": "verify_asan_link_order=0"}
            for index in range(2):
                environment = {**self.cluster.environment("ps", index, names), **late}
                ps = self.cluster.add(Process([SUMAC, "ps", "--bind", "127.0.0.1", "--report-ms", "200"], environment))
                ps.wait_for(f"ps {index} listens on")
            member = Process([f"{BUILD}/member"], {**self.cluster.environment("worker", 0, names), **late}, stdin=-1)
            self.cluster.add(member)
            self.cluster.processes[0].wait_for(r"waits for ps 1 at ps1\.later\.invalid")
            with open(there, "w"):
                pass
            self.train(member)


class Sleepers(unittest.TestCase):
    def test_no_call_waits_longer_than_its_bound_for_a_ps_that_sleeps(self):
        """What was under way meanwhile is done when the ps is awake."""
        with Cluster(workers=1) as cluster:
            member = cluster.member(timeout_ms=6000)
            member.wait_for("^joined$")
            for name in ("w", *(f"v{number}" for number in range(8))):
                self.at_last(member, f"create {name} int64 4 2 2 assign_add", "created")
            self.at_last(member, "pull w", "pulled w 0 0 same")
            cluster.ps[1].signal(signal.SIGSTOP)
            ask(member, "begin w 1", "begun")
            for line in ("pull w", "end", "create x int64 4 2 2 assign_add"):
                self.check_bounded(member, [line] * 8)
            self.check_bounded(member, [f"delete v{number}" for number in range(8)])
            cluster.ps[1].signal(signal.SIGCONT)
            self.at_last(member, "end", "pushed")
            self.at_last(member, "create x int64 4 2 2 assign_add", "created")
            self.at_last(member, "create v0 int64 8 2 2 assign_add", "created")
            self.at_last(member, "pull w", "pulled w 1 1 same")

    def check_bounded(self, member, lines):
        """A pull is over by its own deadline or by its wait's, which are of the same length. The others' bound leaves ps 0 a second for
        the way of its answer, which names ps 1: on a busy machine that may come too late, and the next one is asked."""
        for line in lines:
            why = ask(member, line, r"refused (?:DEADLINE_EXCEEDED|UNAVAILABLE) TIMED_OUT (.*)").group(1)
            if "ps 1" in why:
                return
        self.fail(f"no answer to any of {lines} names ps 1: {why}")

    @staticmethod
    def at_last(member, line, answer):
        """Asked again where the bound is too short for a busy machine."""
        until = time.monotonic() + PATIENCE_S
        said = ask(member, line, rf"{answer}|refused \w+ TIMED_OUT")
        while said.group(0).startswith("refused") and time.monotonic() < until:
            said = ask(member, line, rf"{answer}|refused \w+ TIMED_OUT")

    def test_a_ps_that_slept_takes_nobody_for_lost(self):
        """ps 1 sleeps for longer than it would wait for ps 0, and a worker for longer than it would wait for a ps."""
        cluster = Cluster(workers=1, start=False)
        self.addCleanup(cluster.stop)
        cluster.start_ps(0)
        cluster.start_ps(1, ["--ps-lost-ms", "3000"])
        member = cluster.member()
        member.wait_for("^joined$")
        ask(member, "make w int64 4,2 2 assign_add", "made")
        for sleeper in (cluster.ps[1], member):
            sleeper.signal(signal.SIGSTOP)
        threading.Event().wait(4.5)     # that they stand still for so long is what the test is about
        for sleeper in (cluster.ps[1], member):
            sleeper.signal(signal.SIGCONT)
        ask(member, "push w 1", "pushed")
        ask(member, "pull w", "pulled w 1 1 same")
        ask(member, "leave done", "left")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


if __name__ == "__main__":
    unittest.main()
