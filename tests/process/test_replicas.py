# SPDX-License-Identifier: Apache-2.0
"""Variables of the strategy parameter_server: one on the ps for all workers, written by two replicas of each (replicas.c)."""
import contextlib
import json
import os
import signal
import subprocess
import unittest

from cluster import BUILD, PATIENCE_S, SUMAC, Cluster, Process
from wire import DEADLINE_S, Client, sessions_pb2, variables_pb2

PROGRAM = os.path.join(BUILD, "replicas")
NONE, SUM, MEAN, FIRST = range(4)
AUTO, OF_NO_KIND, ON_WRITE, ON_READ = range(4)


def ask(worker, line, answer):
    """Say it, and see what it is answered."""
    after = len(worker.lines)
    worker.say(line)
    return worker.wait_for(f"^(?:{answer})", after)


def vector(*elements):
    return rf"float32\[{len(elements)}\] {' '.join(map(str, elements))}"


def in_both(answer):
    """What each of two replicas has of it."""
    return rf"per_replica\(0: {answer}, 1: {answer}\)"


class Replicas(unittest.TestCase):
    def workers(self, count=1, timeout_ms=0, options=()):
        self.cluster = Cluster(workers=count, options=options)
        self.addCleanup(self.cluster.stop)
        workers = [self.cluster.add(Process([PROGRAM, str(timeout_ms)], self.cluster.environment("worker", index), subprocess.PIPE))
                   for index in range(count)]
        for worker in workers:
            worker.wait_for("^joined$")
        return workers

    def leave(self, *workers):
        for worker in workers:
            ask(worker, "leave", "left")
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0] * len(self.cluster.ps))

    def test_one_that_is_there_is_found_by_all_workers_as_its_creator_made_it(self):
        first, second = self.workers(2)
        ask(first, f"create w 2 1 {SUM} {AUTO}", "created")
        ask(second, f"create w 2 7 {MEAN} {AUTO}", "created")       # an aggregation is each worker's own
        ask(second, "read w", "read " + vector(1, 1))
        ask(first, "write w assign_add 2 3", "wrote " + in_both(vector(6, 6)))
        ask(second, "write w assign_sub 2 4", "wrote " + in_both(vector(3, 3)))
        ask(first, "quietly w assign 1 1", "wrote none")
        ask(second, "components w", rf"components \({vector(2, 2)},?\)")
        self.leave(first, second)

    def test_what_replicas_write_is_pushed_once_and_rows_are_handed_on_in_their_order(self):
        worker, = self.workers()
        ask(worker, f"create w 3 8 {SUM} {AUTO}", "created")
        ask(worker, "scatter w scatter_add 1 1 10", "wrote " + in_both(vector(8, 29, 8)))
        ask(worker, "scatter w scatter_update 1 5 7", "wrote " + in_both(vector(8, 7, 8)))      # of which there is no sum
        ask(worker, "scatter w scatter_div 0 2 2", "wrote " + in_both(vector(1, 7, 8)))
        ask(worker, "scatter w scatter_min 2 3 4", "wrote " + in_both(vector(1, 7, 3)))
        ask(worker, "across w assign 4", "wrote " + vector(4, 4, 4))
        ask(worker, "across w assign nan", "wrote " + vector("nan", "nan", "nan"))
        ask(worker, f"create v 2 1 {NONE} {AUTO}", "created")
        ask(worker, "write v assign 1 1", "refused FAILED_PRECONDITION .*assign of v: replicas write it without an aggregation, and it is one; ")
        ask(worker, "scatter v scatter_mul 1 2 3", "wrote " + in_both(vector(1, 18)))
        self.leave(worker)

    def test_a_synchronization_is_told_and_is_none(self):
        worker, = self.workers()
        ask(worker, f"create w 2 1 {SUM} {ON_READ}", "created")
        ask(worker, "facts w", f"synchronization {ON_READ}, aggregation {SUM}, trainable 0")
        ask(worker, "across w assign 4", "wrote " + vector(4, 4))
        ask(worker, "write w assign_add 1 2", "wrote " + in_both(vector(7, 7)))
        ask(worker, f"create v 2 1 {NONE} {OF_NO_KIND}", "created")
        ask(worker, "facts v", f"synchronization {OF_NO_KIND}, aggregation {NONE}, trainable 1")
        self.leave(worker)

    def test_one_that_is_not_distributed_is_each_workers_own(self):
        first, second = self.workers(2)
        for worker, value in ((first, 1), (second, 2)):
            ask(worker, f"local w 2 {value}", "created")
            ask(worker, "read w", "read " + vector(value, value))
        self.assertNotRegex(self.cluster.sumac("ls")[1], "(?m)^w ")
        self.leave(first, second)

    def test_functions_are_the_tables_or_those_that_were_defined_and_their_slots_are_on_the_ps(self):
        first, second = self.workers(2)
        for worker in (first, second):
            ask(worker, f"create w 2 8 {NONE} {AUTO} momentum", "created")
        ask(first, "apply w - 100", "applied")
        ask(second, "apply w - 100", "applied")                     # learning_rate 0.01, momentum 0.9: 1, then 1.9
        ask(first, "read w", "read " + vector("5.0999999", "5.0999999"))
        ask(second, "slots w", r'slots \(\{"momentum": ' + vector(190, 190) + r"\},\)")       # 0.9 * 100 + 100
        ask(first, "define halved value=value-g/2", "defined")
        ask(first, f"create v 2 8 {NONE} {AUTO} halved", "created")
        ask(first, "apply v - 4", "applied")
        ask(first, "slots v", r"slots \(\{\},\)")
        ask(first, "rows v - 1 1", "applied")                       # twice: summed first
        ask(first, "read v", "read " + vector(6, 5))
        ask(first, "apply v assign_add 1", "applied")
        ask(first, "read v", "read " + vector(7, 6))
        self.leave(first, second)

    def test_all_are_changed_by_one_push_or_none_is(self):
        worker, = self.workers()
        for name, rows in (("a", 2), ("b", 1), ("c", 3)):
            ask(worker, f"create {name} {rows} 1 {SUM} {AUTO} assign_add", "created")
        ask(worker, "together 3", rf"together \[{vector(4, 4)}, {vector(4)}, {vector(4, 4, 4)}\]")
        with contextlib.closing(Client(self.cluster.addresses(), sessions_pb2.ROLE_OBSERVER)) as client:
            client.ps[0].variables.Delete(variables_pb2.DeleteRequest(session_id=client.joined.session_id, name="b"), timeout=DEADLINE_S)
        ask(worker, "together 1", "refused NOT_FOUND")
        ask(worker, "read a", "read " + vector(4, 4))
        ask(worker, "read c", "read " + vector(4, 4, 4))
        self.leave(worker)

    def test_one_that_is_colocated_lies_on_the_others_ps(self):
        worker, = self.workers()
        ask(worker, f"create a 2 1 {SUM} {AUTO}", "created")     # on ps 0
        ask(worker, f"create b 2 1 {SUM} {AUTO}", "created")     # on ps 1
        ask(worker, "beside c b", "created")
        ask(worker, "beside d c", "created")
        ask(worker, "beside e a", "created")
        ask(worker, "beside c b", "created")                     # again
        ask(worker, "beside c a", "refused ALREADY_EXISTS .*c exists on ps 1, this create says colocate_with a, which is on ps 0")
        listed = subprocess.run([SUMAC, "ls", "--json", "--ps", self.cluster.addresses()[0]], capture_output=True, text=True,
                                timeout=PATIENCE_S, check=True)
        self.assertEqual({variable["name"]: [shard["ps"] for shard in variable["shards"]] for variable in json.loads(listed.stdout)["variables"]},
                         {"a": [0], "b": [1], "c": [1], "d": [1], "e": [0]})
        self.leave(worker)

    def test_what_the_ps_refuses_is_said_in_their_words(self):
        first, second = self.workers(2)
        ask(first, f"create w 2 1 {SUM} {AUTO}", "created")
        ask(second, f"create w 3 1 {SUM} {AUTO}", r"refused ALREADY_EXISTS .*w exists with shape \[2\], this create says \[3\]")
        ask(second, f"create w 2 1 {SUM} {ON_READ}", "refused ALREADY_EXISTS .*w exists with trainable")
        ask(second, f"create v 2 1 {SUM} {AUTO} adamant", "refused INVALID_ARGUMENT .*no update function adamant")
        ask(first, "apply w adamant 1", "refused INVALID_ARGUMENT .*no update function adamant")
        ask(first, "apply w adam 1", "refused FAILED_PRECONDITION .*adam keeps slots that variable w does not have")
        ask(first, "rows w - 2 1", "refused INVALID_ARGUMENT .*of w: there is no row 2; it has 2 rows")
        ask(first, "read w", "read " + vector(1, 1))
        self.leave(first, second)

    def test_what_makes_no_sense_is_refused_before_it_takes_memory_or_a_ps_is_asked(self):
        worker, = self.workers()
        ask(worker, "uncounted v", "refused INVALID_ARGUMENT variable v: shard_rows are how many rows each of shard_count shards has")
        ask(worker, f"create w 2 1 {SUM} {AUTO}", "created")
        ask(worker, "many w 3", rf"read \[{vector(1, 1)}, {vector(1, 1)}, {vector(1, 1)}\]")
        ask(worker, "many w 65537", "refused INVALID_ARGUMENT 65537 variables are read, and one pull has 65536 at most")
        self.leave(worker)

    def test_a_ps_that_is_gone_is_named(self):
        worker, = self.workers(options=["--ps-lost-ms", "4000"])
        ask(worker, f"create w 2 1 {SUM} {AUTO}", "created")
        ask(worker, f"create v 2 1 {SUM} {AUTO}", "created")        # on the other ps
        self.cluster.ps[1].kill()
        for line in ("read w", "read v"):
            worker.say(line)
        worker.wait_for(rf"^refused (UNAVAILABLE|DATA_LOSS) .*ps 1 at 127\.0\.0\.1:{self.cluster.ports[1]}")
        ask(worker, "write v assign 1 1", r"refused \w+ .*ps 1 ")

    def test_a_write_that_is_not_over_in_time_is_over_later(self):
        worker, = self.workers(timeout_ms=10000)
        for name in "wv":                                           # more than a connection takes unread
            ask(worker, f"create {name} 8000000 1 {SUM} {AUTO}", "created")
        for ps in self.cluster.ps:
            ps.signal(signal.SIGSTOP)
        ask(worker, "apply w assign_add 3", r"refused DEADLINE_EXCEEDED w: the push .* ps \d .*; it goes on, and may be applied yet")
        ask(worker, "scatter v scatter_add 0 1 1", "refused DEADLINE_EXCEEDED .*ps")
        ask(worker, "local x 8000000 9", "created")                 # where bytes would be that are nobody's any more
        for ps in self.cluster.ps:
            ps.signal(signal.SIGCONT)
        ask(worker, "write w assign_add 0 0", r"wrote per_replica\(0: float32\[8000000\] 4 ")
        ask(worker, "read v", "read 4 to 1")
        self.leave(worker)


if __name__ == "__main__":
    unittest.main()
