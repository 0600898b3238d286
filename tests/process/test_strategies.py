# SPDX-License-Identifier: Apache-2.0
"""A strategy over several workers: what they compute together, and what each of them hears when one differs, fails, or is gone."""
import json
import os
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from cluster import BUILD, LONG_MS, PATIENCE_S, SUMAC, Cluster, Process, children, free_ports


class Strategies(unittest.TestCase):
    def workers(self, count=2, replicas=1, timeout_ms=60000, options=()):
        self.cluster = Cluster(ps=2, workers=count, options=options)
        self.addCleanup(self.cluster.stop)
        workers = [self.cluster.add(Process([os.path.join(BUILD, "strategist"), str(replicas), str(timeout_ms)],
                                            self.cluster.environment("worker", index), stdin=subprocess.PIPE)) for index in range(count)]
        for worker in workers:
            worker.wait_for("^ready$")
        return workers

    @staticmethod
    def say(worker, line):
        """The number of the first line after it."""
        after = len(worker.lines)
        worker.say(line)
        return after

    def all_say(self, workers, *lines, answer):
        """Each says its line, or all the same; and each is answered so."""
        lines = lines if len(lines) > 1 else lines * len(workers)
        said = [(worker, self.say(worker, line)) for worker, line in zip(workers, lines)]
        return [worker.wait_for(answer, after) for worker, after in said]

    def test_replicas_of_all_workers_are_in_sync(self):
        workers = self.workers(count=3, replicas=2)
        self.all_say(workers, "who", answer="^replicas 6$")
        self.all_say(workers, "all_reduce 4 1", "all_reduce 4 10", "all_reduce 4 100", answer="^came to 222 222$")
        self.all_say(workers, "all_gather 2 1", "all_gather 1 10", "all_gather 2 100", answer="^came to 1 100$")

    def test_what_is_large_is_summed_by_the_ps(self):
        workers = self.workers(replicas=2)
        for _ in range(3):
            self.all_say(workers, "all_reduce 300000 1", "all_reduce 300000 10", answer="^came to 22 22$")
        self.all_say(workers, "all_reduce 3000000 0.5", answer="^came to 2 2$")
        self.all_say(workers, "all_reduce 2097153 1", "all_reduce 2097153 10", answer="^came to 22 22$")     # 4 bytes more than a part
        self.all_say(workers, "mean 30000 1", "mean 30000 4", answer="^came to 2.5 2.5$")            # of four replicas
        self.all_say(workers, "mean 30000 1 int32", "mean 30000 4 int32", answer="^came to 2.5 2.5$")   # not rounded

    def test_many_tensors_are_packed(self):
        workers = self.workers(count=3, replicas=2)
        for pack in (0, 1, 100000, 5000000):
            self.all_say(workers, f"nest 90 20000 1 {pack}", f"nest 90 20000 10 {pack}", f"nest 90 20000 100 {pack}", answer="^nest came to 222$")
        self.all_say(workers, "nest 6 300000 1 0", answer="^nest came to 6$")           # large ones are in no pack
        self.all_say(workers, "nest 3 20000 1 0", "nest 3 20000 1 1", "nest 3 20000 1 0", answer="^refused INVALID_ARGUMENT .*another bytes_per_pack: 0 and 1")
        self.all_say(workers, "nest 3 20000 1 0", answer="^nest came to 6$")
        self.all_say(workers, "nest 90 20000 1 1", "nest 2 10 1 1", "nest 90 20000 1 1", answer="^refused INVALID_ARGUMENT .*replicas 0 and 2")
        self.all_say(workers, "nest 90 20000 1 1", answer="^nest came to 6$")

    def test_a_plain_value_is_a_workers_own(self):
        workers = self.workers()
        self.all_say(workers, "reduce 3 1", "reduce 3 2", answer="^came to 1.5 1.5$")
        self.all_say(workers, "reduce 30000 1", "reduce 30000 2", answer="^came to 1.5 1.5$")
        self.all_say(workers, "reduce 3 1 0", "reduce 1 5 0", answer="^came to 2 2$")        # of four elements
        self.all_say(workers, "reduce 90000 1 0", "reduce 30000 5 0", answer="^came to 2 2$")

    def test_a_mean_beside_one_of_what_is_the_same_in_all_is_its_own(self):
        workers = self.workers(replicas=2)
        for size in (3, 30000):
            self.all_say(workers, f"mixed {size} 1", f"mixed {size} 3", answer="^came to 27 27$")        # of 11, 21, 33 and 43

    def test_variables_begin_as_the_first_worker_says(self):
        workers = self.workers(replicas=2)
        self.all_say(workers, "create w 3 5", "create w 3 7", answer="^created w$")
        self.all_say(workers, "add w 1", "add w 10", answer="^came to 27 27$")
        self.all_say(workers, "create large 30000 1", answer="^created large$")
        self.all_say(workers, "add large 1", answer="^came to 5 5$")

    def test_replicas_of_all_workers_create_a_variable_within_their_function(self):
        workers = self.workers(replicas=2)
        self.all_say(workers, "inside w 3 5", answer="^created w$")
        self.all_say(workers, "add w 1", answer="^came to 9 9$")

    def test_replicas_that_create_something_else_within_their_function_fail_all_workers(self):
        workers = self.workers(replicas=2)
        for lines, text in (
                (("inside w 3 5", "inside v 3 5"), "replica 0 comes with w, .*, and replica 2 with v, "),
                (("inside w 3 5", "inside w 3 5 v"), "replica 2 comes with w, .*, and replica 3 with v, "),
                (("inside w 3 5", "all_reduce 4 1"), "replica 0 calls a variable's creation, and replica 2 all_reduce")):
            with self.subTest(lines=lines):
                self.all_say(workers, *lines, answer=f"^refused INVALID_ARGUMENT .*{text}")
                self.all_say(workers, "all_reduce 4 2", answer="^came to 8 8$")

    def test_who_differs_is_named_to_everybody_and_the_next_call_works(self):
        workers = self.workers(count=3)
        for lines, text in (
                (("all_reduce 4 1", "all_reduce 4 1", "all_reduce 5 1"), r"replica 0 has float32\[4\], and replica 2 float32\[5\]"),
                (("all_reduce 4 1", "all_gather 4 1", "all_reduce 4 1"), "replica 0 calls all_reduce, and replica 1 all_gather"),
                (("all_reduce 30000 1", "all_reduce 4 1", "all_reduce 4 1"), "replica 0 has .*, and replica 1"),
                (("create a 4 1", "create b 4 1", "create a 4 1"), "replica 0 comes with a, .*, and replica 1 with b, "),
                (("create a 4 1", "create a 4 1", "create a 4 1 MEAN"), "replica 0 comes with a, .* SUM, .*, and replica 2 with a, .* MEAN"),
                (("create a 4 1 0.5", "create a 4 1 0.25", "create a 4 1 0.5"), "with a, .* sgd learning_rate 0.5, and replica 1 with a, .* sgd learning_rate 0.25"),
                (("reduce 4 1", "reduce 4 1 0", "reduce 4 1"), "replica 0 and replica 1 come with another axis: none and 0"),
                (("reduce 4 1 0", "reduce 4 1 0", "reduce 4 1 -1"), "replica 0 and replica 2 come with another axis: 0 and -1"),
                (("create a 4 1", "create a 4 1", "reduce 4 1"), "replica 0 calls a variable's creation, and replica 2 reduce")):
            with self.subTest(lines=lines):
                self.all_say(workers, *lines, answer=f"^refused INVALID_ARGUMENT .*{text}")
                self.all_say(workers, "all_reduce 4 2", answer="^came to 6 6$")

    def test_what_differs_behind_any_text_that_is_shown_is_told(self):
        workers = self.workers()
        many = " 1" * 3000
        for lines, text in (
                (("split w 2 3 1", "split w 2 1 3"), "replica 0 comes with w, .* of 2 3 1 rows, and replica 1 with w, .* of 2 1 3 rows"),
                ((f"split w{many} 2 1", f"split w{many} 1 2"), "replica 0 comes with w, .* 3002 shards.*…, and replica 1 with another, which is the same in its first 4095 bytes"),
                ((f"split {'w' * 200}/a 2 1", f"split {'w' * 200}/b 2 1"), "replica 0 comes with …w+/a, .*, and replica 1 with …w+/b, ")):
            with self.subTest(lines=[line[:40] for line in lines]):
                self.all_say(workers, *lines, answer=f"^refused INVALID_ARGUMENT a variable's creation: {text}")
                self.all_say(workers, lines[0], answer="^created ")

    def test_what_a_worker_cannot_call_with_is_told_to_all_and_the_next_call_works(self):
        for replicas in (1, 2):
            workers = self.workers(replicas=replicas)
            self.all_say(workers, "create w 2 1 ON_READ", answer="^created w$")
            for call, badly, text in (
                    ("reduce 4 1", "reduce", "sumac_strategy_reduce: value is NULL"), ("reduce 4 1", "gather", "sumac_strategy_gather: value is NULL"),
                    ("batch 2 1", "batch", "sumac_strategy_batch_reduce: value is NULL"), ("create v 2 1", "create", "sumac_variable_create: options is NULL"),
                    ("read", "read", "sumac_variable_read: value is NULL"), ("read", "write", "sumac_variable_write: value is NULL")):
                with self.subTest(badly=badly):
                    self.all_say(workers, call, f"wrongly {badly}", answer=f"^refused INVALID_ARGUMENT worker 1: {text}")
                    self.all_say(workers, "mixed 3 1", "mixed 3 3", answer="^came to 17 17$" if replicas == 1 else "^came to 27 27$")
            for worker in workers:
                self.say(worker, "leave")

    def test_batches_of_more_and_fewer_are_told_apart_at_once(self):
        workers = self.workers()
        for first, second, text in ((2, 3, "item 0 of 2, .*, and replica 1 with item 0 of 3"), (0, 1, "no items, and replica 1 with item 0 of 1")):
            self.all_say(workers, f"batch {first} 1", f"batch {second} 1", answer=f"^refused INVALID_ARGUMENT .*{text}")
            self.all_say(workers, "batch 2 1", answer="^batch of 2$")
        self.all_say(workers, "batch 0 1", answer="^batch of 0$")

    def test_a_replica_that_returns_without_it_ends_the_call_of_all_workers(self):
        workers = self.workers(replicas=2)
        self.all_say(workers, "all_reduce 4 1", "partly 4 1", answer="^refused DEADLINE_EXCEEDED .*replica 2 returned without it")
        self.all_say(workers, "all_reduce 4 1", answer="^came to 4 4$")

        self.all_say(workers, "all_reduce 30000 1", "partly 30000 1", answer="^refused DEADLINE_EXCEEDED .*replica 2 returned without it")
        self.all_say(workers, "all_reduce 30000 1", answer="^came to 4 4$")

    def test_replicas_of_one_worker_that_differ_end_the_call_of_all(self):
        workers = self.workers(replicas=2)
        for size in (4, 30000):
            self.all_say(workers, f"all_reduce {size} 1", f"uneven {size} 1", answer=r"^refused INVALID_ARGUMENT .*replica 2 has .*, and replica 3 ")
            self.all_say(workers, f"all_reduce {size} 1", answer="^came to 4 4$")

    def test_a_worker_that_returns_without_a_call_is_a_run_ahead_and_all_hear_so(self):
        workers = self.workers(count=3)
        self.all_say(workers, "all_reduce 4 1", answer="^came to 3 3$")
        after = self.say(workers[1], "skip")
        workers[1].wait_for("^skipped$", after)
        self.all_say(workers, "all_reduce 4 1",
                     answer="^refused INVALID_ARGUMENT all_reduce: worker 0 comes with call 1 of run 2, and worker 1 with call 1 of run 3: ")
        self.all_say(workers, "all_reduce 4 1", answer="^came to 3 3$")

    def test_what_is_larger_than_a_push_may_be_is_summed_in_parts_or_refused_to_all(self):
        workers = self.workers(options=["--staging-max", "256M", "--sessions-max", "16"])       # 16 MiB each
        self.all_say(workers, "all_reduce 12000001 1", "all_reduce 12000001 10", answer="^came to 11 11$")
        self.all_say(workers, "mean 5000001 1", "mean 5000001 2", answer="^came to 1.5 1.5$")
        self.all_say(workers, "all_gather 12000000 1", "all_gather 1 10", answer="^refused RESOURCE_EXHAUSTED worker 0: all_gather: .*staging")
        self.all_say(workers, "all_reduce 4 1", answer="^came to 2 2$")

    def run_short(self, workers, what, *answers, number):
        """Worker 1 runs short of something in a call; each worker is answered as said, and the next call works."""
        with self.subTest(what=what, number=number):
            after = self.say(workers[1], f"short {what} {number}")
            workers[1].wait_for("^short$", after)
            said = [(worker, self.say(worker, "nest 90 20000 1 1")) for worker in workers]
            for (worker, line), answer in zip(said, answers):
                worker.wait_for(f"^refused {answer}", line)
            self.all_say(workers, "nest 90 20000 1 1", answer="^nest came to 2$")

    def test_a_worker_that_cannot_begin_or_take_one_of_many_sums_ends_the_call_of_all_and_the_next_works(self):
        workers = self.workers()
        alone = ("FAILED_PRECONDITION all_reduce: .*gather", "RESOURCE_EXHAUSTED ")
        for number in (1, 6, 15, 90):       # of 90, 12 of which are under way
            self.run_short(workers, "result", *alone, number=number)
        for number in (2, 8, 14, 91):       # after the block's round
            self.run_short(workers, "round", *alone, number=number)
        for number in (1, 50, 78):          # before the last sum has begun
            self.run_short(workers, "sum", *alone, number=number)

    def test_a_worker_without_memory_for_what_another_brings_ends_the_call_of_all_and_the_next_works(self):
        workers = self.workers()
        for _ in ("the first call sums after its block", "a later one beside it"):
            self.run_short(workers, "value", "FAILED_PRECONDITION all_reduce: .*gather", "RESOURCE_EXHAUSTED no memory", number=1)

    def test_a_worker_that_cannot_send_its_block_says_so_in_its_place_and_the_next_call_works(self):
        workers = self.workers()
        for what in ("round", "plan", "block"):
            self.run_short(workers, what, *["RESOURCE_EXHAUSTED worker 1: "] * 2, number=1)

    def test_a_worker_that_can_say_nothing_is_waited_for_and_the_next_call_works(self):
        """Neither its block is sent, nor the reason. The rounds of its sums are still ended by it, and all go on with the same number."""
        workers = self.workers(timeout_ms=3000)
        for _ in ("the first call sums after its block", "a later one beside it"):
            self.run_short(workers, "round", "DEADLINE_EXCEEDED .* for worker 1", "RESOURCE_EXHAUSTED ", number="1 2")

    def test_the_first_worker_that_fails_is_told_to_who_has_not(self):
        workers = self.workers(count=3, replicas=2)
        self.all_say(workers, "partly 4 1", "all_reduce 4 1", "partly 4 1", answer="^refused DEADLINE_EXCEEDED .*replica [04] returned without it")
        self.assertIn("worker 0: ", workers[1].text())
        self.assertNotIn("worker 2: ", workers[1].text())

    def test_a_run_that_another_worker_has_given_up_is_over(self):
        workers = self.workers(replicas=2)
        self.all_say(workers, "twice 4 1", "partly 4 1", answer="^refused DEADLINE_EXCEEDED .*replica 2 returned without it")
        self.all_say(workers, "all_reduce 4 1", answer="^came to 4 4$")

    def test_a_call_has_its_own_bound(self):
        workers = self.workers(timeout_ms=LONG_MS)
        after = self.say(workers[0], "all_reduce 4 1 500")
        workers[0].wait_for("^refused DEADLINE_EXCEEDED all_reduce: .* has waited .* for worker 1", after)

    def test_a_call_has_its_own_bound_after_one_that_was_given_up(self):
        """The other worker comes to neither for now. Afterwards all go on with the same number of rounds."""
        workers = self.workers(replicas=2, timeout_ms=LONG_MS)
        for size in (4, 30000):
            with self.subTest(size=size):
                self.all_say(workers, f"all_reduce {size} 1", answer="^came to 4 4$")                   # given
                after = self.say(workers[0], f"partly {size} 1")
                workers[0].wait_for("^refused DEADLINE_EXCEEDED .*replica 0 returned without it", after)

                after = self.say(workers[0], f"partly {size} 1")                                        # when: the last two are
                workers[0].wait_for("^refused DEADLINE_EXCEEDED .*replica 0 returned without it", after)
                after = self.say(workers[0], f"all_reduce {size} 1 500")
                workers[0].wait_for("^refused DEADLINE_EXCEEDED all_reduce: .* has waited .* for worker 1", after)

                for _ in range(2):                                                                      # then
                    after = self.say(workers[1], f"all_reduce {size} 1")
                    workers[1].wait_for("^refused DEADLINE_EXCEEDED .*worker 0: .*replica 0 returned without it", after)
                after = self.say(workers[1], f"all_reduce {size} 1")
                workers[1].wait_for("^refused DEADLINE_EXCEEDED all_reduce: .* for worker 1", after)
                self.all_say(workers, f"all_reduce {size} 1", answer="^came to 4 4$")

    def test_replicas_of_all_workers_are_256_at_most(self):
        cluster = Cluster(ps=1, workers=2)
        self.addCleanup(cluster.stop)
        worker = cluster.add(Process([os.path.join(BUILD, "strategist"), "129", "0"], cluster.environment("worker", 0)))
        self.assertEqual(worker.wait(), 1, worker.text())
        worker.wait_for("^strategist: 2 workers with 129 replicas each, and 256 are the most together")

    def test_a_worker_that_does_not_come_is_named_at_the_deadline(self):
        workers = self.workers(timeout_ms=1500)
        after = self.say(workers[0], "all_reduce 4 1")
        workers[0].wait_for("^refused DEADLINE_EXCEEDED all_reduce: .* has waited .* for worker 1", after)
        after = self.say(workers[1], "all_reduce 4 1")
        workers[1].wait_for("^refused DEADLINE_EXCEEDED all_reduce: .* for worker 1", after)        # that round is over for it, too
        self.all_say(workers, "all_reduce 4 1", answer="^came to 2 2$")

    def test_a_worker_that_was_never_started_is_named_with_its_address_and_the_remedy(self):
        cluster = Cluster(ps=1, workers=2)
        self.addCleanup(cluster.stop)
        worker = cluster.add(Process([os.path.join(BUILD, "strategist"), "1", "8000"], cluster.environment("worker", 0),
                                     stdin=subprocess.PIPE))
        worker.wait_for("^ready$")
        missing = r"worker 1 \(at [0-9.]+:[0-9]+, never joined\); start each missing task"

        after = self.say(worker, "all_reduce 4 1")

        worker.wait_for(rf"sumac worker 0: a round is not over; ps 0: it waits for round 1 of .* for {missing}; its time is over in [23] s$", after)
        worker.wait_for(rf"^refused DEADLINE_EXCEEDED all_reduce: .* has waited 8 s on ps 0 for {missing}$", after)

    def test_a_worker_that_is_gone_is_named(self):
        workers = self.workers(options=("--lease-ms", "2000"))                  # given
        self.all_say(workers, "all_reduce 4 1", answer="^came to 2 2$")
        after = self.say(workers[0], "all_reduce 4 1")

        workers[1].kill()                                                       # when

        workers[0].wait_for("^refused UNAVAILABLE all_reduce: .*worker 1.*its lease ran out.*start all of them again$", after)  # then

    def again(self, index):
        worker = self.cluster.add(Process([os.path.join(BUILD, "strategist"), "1", "60000"], self.cluster.environment("worker", index),
                                          stdin=subprocess.PIPE))
        worker.wait_for("^ready$")
        return worker

    def test_a_worker_that_is_started_again_ends_the_call_at_once_and_is_told_to_start_all(self):
        first, second, third = self.workers(count=3)                            # given
        self.all_say([first, second, third], "all_reduce 4 1", answer="^came to 3 3$")
        waiting = [(worker, self.say(worker, "all_reduce 4 1")) for worker in (first, second)]
        self.cluster.wait_for_wait("worker 2")

        third.kill()                                                            # when
        again = self.again(2)

        for worker, after in waiting:                                           # then
            worker.wait_for("^refused UNAVAILABLE all_reduce: .*worker 2.*start all of them again", after, patience_s=20)
        told = self.say(again, "all_reduce 4 1")
        self.cluster.wait_for_wait("round 1 .*worker 0")
        after = self.say(first, "all_reduce 4 1")
        first.wait_for("^refused UNAVAILABLE all_reduce: .*start all of them again", after, patience_s=20)
        again.wait_for("^refused UNAVAILABLE all_reduce: .*attempt 2.*start all of them again", told, patience_s=20)

    def test_a_worker_that_is_started_again_before_its_first_call_is_waited_for(self):
        first, second = self.workers()                                          # given
        after = self.say(first, "all_reduce 4 1")
        self.cluster.wait_for_wait("worker 1")

        second.kill()                                                           # when
        again = self.again(1)

        self.say(again, "all_reduce 4 10")                                      # then
        first.wait_for("^came to 11 11$", after)

    def until_all_have_heard(self):
        until = time.monotonic() + PATIENCE_S
        while any(ps["memory"]["collective_bytes"] for ps in self.cluster.stats()["ps"]):
            self.assertLess(time.monotonic(), until)

    def test_a_worker_that_is_started_again_while_no_other_waits_is_told_what_to_do_when_its_time_is_over(self):
        workers = self.workers()                                                # given
        self.all_say(workers, "all_reduce 4 1", answer="^came to 2 2$")
        self.until_all_have_heard()
        workers[1].kill()
        again = self.again(1)

        after = self.say(again, "all_reduce 4 1 500")                           # when

        again.wait_for("^refused DEADLINE_EXCEEDED all_reduce: .* for worker 0 .*this is attempt 2 of worker 1: .*start all of them again$", after)

    def test_workers_that_are_all_started_again_meet_whoever_comes_first(self):
        """The ps do not know yet that the others are gone. They know no round that the earlier attempts had a part in, so a first call waits."""
        workers = self.workers(count=3, options=("--lease-ms", str(LONG_MS)))   # given
        self.all_say(workers, "all_reduce 4 1", answer="^came to 3 3$")
        self.until_all_have_heard()
        for worker in workers:
            worker.kill()

        first = self.again(2)                                                   # when
        after = self.say(first, "all_reduce 4 1")
        self.cluster.wait_for_wait("worker 0")
        others = [self.again(index) for index in (0, 1)]

        self.all_say(others, "all_reduce 4 1", answer="^came to 3 3$")          # then
        first.wait_for("^came to 3 3$", after)

    def test_workers_that_are_started_again_faster_than_the_lease_go_on(self):
        """Several times in a row. At each moment a session of some earlier attempt is open. What is large is summed by every ps."""
        first, second = self.workers(options=("--lease-ms", str(LONG_MS)))      # given
        self.all_say([first, second], "all_reduce 300000 1", "all_reduce 300000 10", answer="^came to 11 11$")
        for _ in range(3):
            after = self.say(first, "all_reduce 300000 1")
            self.cluster.wait_for_wait("for worker 1")

            second.kill()                                                       # when
            second = self.again(1)
            first.wait_for("^refused UNAVAILABLE all_reduce: .*has failed: worker 1 did not contribute.*start all of them again", after)
            after_second = self.say(second, "all_reduce 300000 10")
            self.cluster.wait_for_wait("for worker 0")                          # then: the failed round does not hold it back
            first.kill()
            first = self.again(0)
            after = self.say(first, "all_reduce 300000 1")

            first.wait_for("^came to 11 11$", after)
            second.wait_for("^came to 11 11$", after_second)

    def test_workers_that_are_started_again_more_slowly_than_the_lease_meet(self):
        """Each is lost before the next attempt of the other comes. Whoever comes first waits."""
        workers = self.workers(options=("--lease-ms", "2000", "--rejoin-ms", str(LONG_MS)))     # given
        self.all_say(workers, "all_reduce 300000 1", "all_reduce 300000 10", answer="^came to 11 11$")
        for first in (0, 1):
            self.until_all_have_heard()
            for worker in workers:
                worker.kill()
            workers[first] = self.again(first)

            after = self.say(workers[first], f"all_reduce 300000 {1 + 9 * first}")      # when
            self.cluster.wait_for_wait(rf"worker {1 - first} \(lost\)")
            workers[1 - first] = self.again(1 - first)
            after_second = self.say(workers[1 - first], f"all_reduce 300000 {10 - 9 * first}")

            workers[first].wait_for("^came to 11 11$", after)                   # then
            workers[1 - first].wait_for("^came to 11 11$", after_second)

    def test_the_sums_of_a_first_call_begin_after_its_block(self):
        """A later attempt of a worker could have a part in sums that begin before this worker knows the attempts."""
        first, second = self.workers()
        after = self.say(first, "all_reduce 30000 1")                           # given
        self.cluster.wait_for_wait("round 1 .*worker 1")

        self.say(second, "garbage 2 00")                                        # when: the round of the sum

        self.cluster.wait_for_wait("round 2 .*worker 0")                        # then: the first has not come to it
        self.assertNotIn("refused", second.text())
        self.assertEqual(after, len(first.lines))

    def test_a_function_that_fails_is_its_workers_alone(self):
        workers = self.workers()
        after = self.say(workers[0], "fail")
        workers[0].wait_for("^refused DATA_LOSS .*replica 0", after)
        self.all_say(workers, "all_reduce 4 1", answer="^refused INVALID_ARGUMENT .*call 1 of run 2, and worker 1 with call 1 of run 1")
        self.all_say(workers, "all_reduce 4 1", answer="^came to 2 2$")

    def test_garbage_of_another_worker_ends_the_call_and_no_process(self):
        """A block as peers.c has it, and what is none: cut, too long, of other kinds, without elements."""
        def block(rest, sums=0, length=None):
            body = struct.pack("<IQQQ", sums, turn, 1, 1) + rest
            return struct.pack("<Q", 8 + len(body) if length is None else length) + body

        def call(kind=0, op=1, replicas=1, name=b"", values=b"", axes=0):
            return (struct.pack("<IIIqIQII", 0, kind, op, 0, 0, 0, int(axes > 0), axes) + struct.pack("<I", len(name)) + name + struct.pack("<QQ", 0, 0)
                    + struct.pack("<I", replicas) + values)

        def tensor(elements, dtype=12, extents=(4,), sent=1):
            return struct.pack("<III", 1, dtype, len(extents)) + struct.pack(f"<{len(extents)}Q", *extents) + struct.pack("<I", sent) + elements

        turn, four = 1, struct.pack("<4f", 1, 2, 3, 4)

        def honest():
            return block(call(values=tensor(four)))

        def boastful():
            return block(call(values=tensor(four)), sums=2 ** 32 - 1)

        def fails():
            return block(struct.pack("<III", 2 ** 31, 2 ** 31, 4) + b"\xff\x0a\0\x1b" + b"\0" * 4)

        def garbage():
            return [b"\0" * 7, b"\0" * 8, b"\xff" * 64, struct.pack("<Q", 2 ** 63), block(b""), block(b"\0" * 100), block(b"\0" * 4, length=11),
                    honest()[:-1], block(call(values=tensor(four)), length=2 ** 40), block(call(values=tensor(four)), length=9),
                    block(call(replicas=2, values=tensor(four) * 2)), block(call(replicas=2 ** 32 - 1)), block(call(kind=99, values=tensor(four))),
                    block(call(op=7, values=tensor(four))), block(call(axes=2 ** 31, values=tensor(four))), block(call(name=b"w" * 5000, values=tensor(four))),
                    block(call(values=tensor(b"", sent=0))), block(call(values=tensor(b"", sent=0, extents=(2 ** 50,)))),
                    block(call(values=tensor(four, dtype=99))), block(call(values=tensor(four, extents=(2 ** 63, 2 ** 63)))),
                    block(call(values=tensor(four, extents=(1,) * 99))), block(call(values=struct.pack("<II", 3, 2 ** 32 - 1))),
                    block(call(values=struct.pack("<II", 3, 1) * 1000)), block(call(values=struct.pack("<II", 6, 1) + tensor(four))),
                    boastful(), block(call(op=7, values=tensor(four)), sums=2 ** 32 - 1), fails()]

        workers = self.workers()
        count = len(garbage())
        for turn in range(1, count + 2):        # which every block says
            bytes_ = [*garbage(), honest()][turn - 1]
            with self.subTest(turn=turn):
                after, thrown = self.say(workers[0], "all_reduce 4 1"), self.say(workers[1], f"garbage {turn} {bytes_.hex()}")
                workers[1].wait_for("^thrown in$", thrown)
                heard = workers[0].wait_for("^(refused|came to) .*", after)
                self.assertEqual(heard.group(1), "came to" if bytes_ in (honest(), boastful()) else "refused", heard.group(0))
                if bytes_ == fails():
                    self.assertIn("refused UNKNOWN worker 1: ??", heard.group(0))

    def test_workers_leave_and_the_run_ends(self):
        workers = self.workers()
        self.all_say(workers, "all_reduce 4 1", answer="^came to 2 2$")
        self.all_say(workers, "leave", answer="^left$")
        for process in self.cluster.ps:
            self.assertEqual(process.wait(), 0, process.text())


class OneProgram(unittest.TestCase):
    """examples/logistic.c, as it is, under each strategy."""

    def losses(self, *command, **environment):
        done = subprocess.run(command, env={**os.environ, "TF_CONFIG": "", **environment}, capture_output=True, text=True,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(loss) for loss in re.findall(r"step \d+: loss (\S+)", done.stdout)]

    def test_a_ps_that_is_lost_before_it_leaves_is_its_exit_code(self):
        for lost, codes in ((False, {0}), (True, set(range(128, 256)))):
            with self.subTest(lost=lost), Cluster(ps=1, workers=1, options=["--ps-lost-ms", "1000"]) as cluster:
                worker = cluster.add(Process([os.path.join(BUILD, "strategist")],
                                             {**cluster.environment("worker", 0), "SUMAC_STRATEGY": "multi_worker"}, subprocess.PIPE))
                worker.wait_for("^ready$")
                if lost:
                    cluster.ps[0].kill()
                worker.say("leave")
                self.assertIn(worker.wait(), codes, worker.text())

    def test_workers_of_which_some_are_synchronous_are_told_to_start_all_alike(self):
        with Cluster(ps=2, workers=2) as cluster:
            workers = [cluster.add(Process([os.path.join(BUILD, "logistic")],
                                           {**cluster.environment("worker", index), "SUMAC_SYNCHRONOUS": str(index)})) for index in range(2)]
            self.assertEqual([worker.wait() for worker in workers], [0, 2], workers[1].text())
            workers[1].wait_for("worker 0 has left without it; its pushes were asynchronous; start all workers with the same SUMAC_SYNCHRONOUS$")

    def test_it_trains_the_same_but_for_rounding_wherever_it_is_in_step(self):
        program = os.path.join(BUILD, "logistic")
        alone = self.losses(program)
        self.assertEqual(len(alone), 4)
        self.assertLess(max(alone), 0.05)
        for others in (self.losses(program, SUMAC_REPLICAS="4"),
                       self.losses(SUMAC, "run", "--ps", "2", "--workers", "2", "--", program, SUMAC_STRATEGY="multi_worker"),
                       self.losses(SUMAC, "run", "--ps", "2", "--workers", "2", "--synchronous", "--", program)):
            self.assertEqual(len(others), len(alone))
            for loss, other in zip(alone, others):
                self.assertAlmostEqual(loss, other, delta=2e-6)
        apart = self.losses(SUMAC, "run", "--ps", "2", "--workers", "2", "--replicas", "2", "--", program)
        self.assertEqual(len(apart), 2 * len(alone))        # of two workers, each at its own pace
        self.assertLess(max(apart), 0.05)


class WithoutPs(unittest.TestCase):
    """Workers whose TF_CONFIG has no ps: the first of them starts one, on its own address."""

    def workers(self, *, steps, cluster=None, tasks=(("worker", 0), ("worker", 1)), strategy="", ports=None, run=""):
        """`cluster` of two addresses; the first task is the one that starts the ps. `steps` of each, or of all."""
        addresses = [f"127.0.0.1:{port}" for port in ports or free_ports(2)]
        jobs = cluster(*addresses) if cluster else {"worker": addresses}
        processes = []
        for place, (job, index) in enumerate(tasks):
            own_steps = steps if isinstance(steps, int) else steps[place]
            config = {"cluster": jobs, "task": {"type": job, "index": index}}
            environment = {"TF_CONFIG": json.dumps(config), "SUMAC_REPLICAS": "2", "SUMAC_STRATEGY": strategy, "SUMAC_RUN": run}
            processes.append(Process([os.path.join(BUILD, "strategies"), "--steps", str(own_steps)], environment))
            self.addCleanup(processes[-1].kill)
        return processes

    def test_one_of_them_starts_it(self):
        """Of tasks by index there may be others, so that they are no strategy of several workers, but one on the ps."""
        both = (("worker", 0), ("worker", 1))
        for cluster, tasks, strategy in (
                (lambda one, other: {"worker": [one, other]}, both, "multi_worker"),
                (lambda one, other: {"worker": [other], "chief": [one]}, (("chief", 0), ("worker", 0)), "multi_worker"),
                (lambda one, other: {"worker": [one, other], 'o"d\\d\n': ["nowhere:1"]}, both, "multi_worker"),
                (lambda one, other: {"worker": {"7": other, "3": one}}, (("worker", 3), ("worker", 7)), "parameter_server")):
            with self.subTest(jobs=cluster("one", "other")):
                processes = self.workers(steps=10 ** 9, cluster=cluster, tasks=tasks, strategy=strategy)
                for process, (job, index) in zip(processes, tasks):
                    process.wait_for(f"joined as {job} {index}, ")
                started = [children(process.child.pid) for process in processes]
                self.assertEqual([len(each) for each in started], [1, 0])
                os.kill(started[0][0], signal.SIGKILL)      # at once, without the time that it has to end
                for process in processes:
                    process.kill()

    def test_they_train_together_and_the_ps_ends_with_them(self):
        workers = self.workers(steps=20)
        losses = [worker.wait_for("^step 20 +loss (.*)$").group(1) for worker in workers]
        self.assertEqual(losses[0], losses[1])
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker.text())
        workers[0].wait_for("run ends with code 0")

    def test_who_waits_for_the_one_that_starts_the_ps_says_so(self):
        worker, = self.workers(steps=1, tasks=[("worker", 1)])
        worker.wait_for(r"waiting for worker 0 at 127.0.0.1:\d+, which starts the ps: .*; start worker 0, or correct its address; gives up in \d+ s$")
        self.assertNotIn("ps 0", worker.text())

    def test_who_started_the_ps_waits_for_those_who_need_it_yet(self):
        workers = self.workers(steps=(1, 1000), strategy="parameter_server")
        for worker in reversed(workers):
            self.assertEqual(worker.wait(), 0, worker.text())
        workers[0].wait_for("run ends with code 0")

    def test_the_ps_dies_with_the_worker_that_started_it(self):
        workers = self.workers(steps=10 ** 9)
        for worker in workers:
            worker.wait_for("^multi_worker, 4 replicas$")
        started = children(workers[0].child.pid)
        self.assertEqual(len(started), 1)
        ps = os.pidfd_open(started[0])
        self.addCleanup(os.close, ps)
        workers[0].kill()
        self.assertTrue(select.select([ps], [], [], PATIENCE_S)[0])     # it has ended
        self.assertNotEqual(workers[1].wait(), 0)                       # there is nothing to meet on

    def second_run(self, *runs):
        """The workers of two runs with one TF_CONFIG; the second run starts when the first is at work."""
        ports = free_ports(2)
        first = self.workers(steps=10 ** 9, ports=ports, run=runs[0])
        for worker in first:
            worker.wait_for("^multi_worker, 4 replicas$")
        second = self.workers(steps=10 ** 9, ports=ports, run=runs[1], tasks=[("worker", 0)])
        second[0].wait()        # before its port may be free again: worker 1 may end the first run
        return first, second + self.workers(steps=10 ** 9, ports=ports, run=runs[1], tasks=[("worker", 1)])

    def test_a_second_run_with_another_name_ends_and_the_first_goes_on(self):
        first, second = self.second_run("red", "blue")      # when

        self.assertEqual(second[0].wait(), 138)             # then
        self.assertEqual(second[1].wait(), 2)
        second[1].wait_for('it is of run "blue" .*, and ps 0 of run "red"')
        before = [len(worker.lines) for worker in first]
        for worker, lines in zip(first, before):
            worker.wait_for("^step ", lines)

    def test_a_second_run_without_a_name_or_with_the_same_tells_the_first_what_protects_it(self):
        for run in ("", "red"):
            with self.subTest(run=run):
                first, second = self.second_run(run, run)   # when

                self.assertEqual([worker.wait() for worker in first], [138, 2])     # then
                host = re.escape(socket.gethostname()[:64])
                taken = rf": process {second[1].child.pid} on {host} has taken this task's place, attempt 2"
                # worker 0 hears of the close, or of a contribution by the other process, whichever comes first
                first[0].wait_for(rf"^strategies: .*worker 1.*({taken}.*; if that process is of another run|; if the two attempts are of two runs), "
                                  "set SUMAC_RUN to a different value in each run$")
                first[1].wait_for(rf"^strategies: .*{taken}; end one of the two, or correct its index; if they are of two runs with the same TF_CONFIG, "
                                  "set SUMAC_RUN to a different value in each run$")
                self.assertEqual([worker.wait() for worker in second], [138, 138])
                second[1].wait_for(rf"joined as worker 1, attempt 2, .*; takes the place of process {first[1].child.pid} on {host}, "
                                   r"which was alive \S+ \S+ ago; if that process is of another run, set SUMAC_RUN to a different value in each run$")
                second[0].wait_for("^strategies: TF_CONFIG has no ps.* give each run ports and a SUMAC_RUN of its own$")

    def script(self, *lines):
        """A program in place of sumac."""
        file = tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            file.write("\n".join(("#!/bin/sh", *lines, "")))
        os.chmod(file.name, 0o755)
        return file.name

    def test_a_started_ps_that_ends_before_it_listens_ends_the_wait_with_its_own_reason(self):
        """Not after the minute that a worker waits for a ps. Nor does the worker join what else listens on the address."""
        def quote(*words):
            return " ".join(shlex.quote(word) for word in words)

        other = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(other.close)
        taken, free = other.getsockname()[1], free_ports(2)
        for port, lines, code, reason in (
                (taken, ['exec ' + quote(SUMAC) + ' "$@"'], 138,
                 r"ended with 226 before it listened: ps 0 cannot start: cannot listen on 0.0.0.0:\d+: another process has the port; .*"
                 r"if that process is a ps of another run \(sumac stats --ps 127.0.0.1:\d+ shows it\), give each run ports and a SUMAC_RUN of its own"),
                (free[0], ["exec " + quote(SUMAC, "ps", "--nope")], 2, "ended with 2 .*: sumac ps: unknown option --nope"),
                (free[0], ["exec " + quote(SUMAC, "ps", "--plugin", "/nowhere.so")], 2,
                 "ended with 2 .*: sumac ps: cannot load the plug-in /nowhere.so"),
                (free[0], ["echo >&2 a line; echo >&2; printf >&2 'and \\033 one without its end'; kill -9 $$"], 138,
                 r"ended with 137 .*: and \? one without its end$"),
                (free[0], ["exit 0"], 2, "ended with 0 .*: it printed no reason")):
            with self.subTest(reason=reason):
                config = {"cluster": {"worker": [f"127.0.0.1:{port}", f"127.0.0.1:{free[1]}"]}, "task": {"type": "worker", "index": 0}}
                worker = Process([os.path.join(BUILD, "strategies"), "--steps", "1"],
                                 {"TF_CONFIG": json.dumps(config), "SUMAC_PROGRAM": self.script(*lines)})
                self.addCleanup(worker.kill)
                self.assertEqual(worker.wait(), code, worker.text())
                worker.wait_for("^strategies: TF_CONFIG has no ps, and the one that this worker started .*" + reason)
                last = re.search("listened: (.*)", worker.text()).group(1)
                self.assertEqual(worker.text().count(last), 1, worker.text())
                self.assertNotIn("waiting for ps 0", worker.text())

    def test_each_line_of_a_started_ps_is_copied_once_though_it_waits_between_them(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        signs = [os.path.join(folder.name, str(i)) for i in range(3)]
        for sign in signs:
            os.mkfifo(sign)
        lines = [f"echo >&2 line {i}; read -r _ <{shlex.quote(sign)}" for i, sign in enumerate(signs)]
        config = {"cluster": {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}, "task": {"type": "worker", "index": 0}}
        worker = Process([os.path.join(BUILD, "strategies"), "--steps", "1"],
                         {"TF_CONFIG": json.dumps(config), "SUMAC_PROGRAM": self.script(*lines, "exit 3")})
        self.addCleanup(worker.kill)
        for i, sign in enumerate(signs):
            worker.wait_for(f"^line {i}$")
            with open(sign, "w", encoding="utf-8") as file:
                file.write("\n")
        self.assertEqual(worker.wait(), 2, worker.text())
        self.assertEqual([worker.text().count(f"line {i}\n") for i in range(2)], [1, 1], worker.text())

    def test_what_cannot_be_is_said_with_the_remedy(self):
        for environment, code, text in (
                ({"SUMAC_STRATEGY": "mirrorred"}, 2, "SUMAC_STRATEGY is mirrorred; there are default, one_device, mirrored"),
                ({"SUMAC_REPLICAS": "none"}, 2, "SUMAC_REPLICAS"),
                ({"SUMAC_STRATEGY": "default", "SUMAC_REPLICAS": "4"},
                 2, "SUMAC_STRATEGY is default, which has one replica, and SUMAC_REPLICAS is 4: unset one of them"),
                ({"SUMAC_STRATEGY": "one_device", "SUMAC_REPLICAS": "4"},
                 2, "SUMAC_STRATEGY is one_device, which has one replica, and SUMAC_REPLICAS is 4: unset one of them"),
                ({"SUMAC_STRATEGY": "default", "SUMAC_DEVICES": "gpu:9"},
                 2, "SUMAC_STRATEGY is default, which runs on the caller's thread, and SUMAC_DEVICES is gpu:9: unset one of them"),
                ({"SUMAC_SYNCHRONOUS": "yes"}, 2, "SUMAC_SYNCHRONOUS is yes; 1 asks for synchronous steps, 0 for none"),
                ({"SUMAC_STRATEGY": "mirrored", "SUMAC_SYNCHRONOUS": "1",
                  "TF_CONFIG": json.dumps({"cluster": {"ps": ["127.0.0.1:3"], "worker": ["127.0.0.1:1", "127.0.0.1:2"]},
                                           "task": {"type": "worker", "index": 0}})},
                 2, "SUMAC_SYNCHRONOUS is 1 .*a mirrored strategy trains in its own process alone: let SUMAC_STRATEGY be multi_worker"),
                ({"SUMAC_STRATEGY": "multi_worker"}, 2, "TF_CONFIG has no ps, and its task is none"),
                ({"TF_CONFIG": json.dumps({"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "evaluator", "index": 0}})},
                 2, "TF_CONFIG's task is evaluator; a strategy is of a chief or a worker"),
                ({"TF_CONFIG": json.dumps({"clusters": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}})},
                 2, 'TF_CONFIG has no "cluster", but "clusters", which is not read'),
                ({"TF_CONFIG": json.dumps({"workers": 3})}, 2, 'TF_CONFIG has no "cluster", but "workers", which is not read'),
                ({"TF_CONFIG": json.dumps({"cluster": {"worker": ["127.0.0.1:1"]}}), "SUMAC_STRATEGY": "multi_worker"},
                 2, "TF_CONFIG has no ps, and its task is none; a strategy is of a chief or a worker"),
                ({"TF_CONFIG": json.dumps({"cluster": {"worker": ["127.0.0.1:1"], "evaluator": {"0": "127.0.0.1:2"}},
                                           "task": {"type": "worker", "index": 0}}),
                  "SUMAC_STRATEGY": "multi_worker"}, 2, "TF_CONFIG has no ps, and names this worker alone.*add a job ps"),
                ({"TF_CONFIG": json.dumps({"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "worker", "index": 0}}),
                  "SUMAC_PROGRAM": "/nowhere/sumac"}, 2, "/nowhere/sumac cannot be started as one: No such file.*SUMAC_PROGRAM")):
            with self.subTest(environment=environment):
                process = Process([os.path.join(BUILD, "strategies"), "--steps", "1"], {"TF_CONFIG": "", **environment})
                self.addCleanup(process.kill)
                self.assertEqual(process.wait(), code, process.text())
                process.wait_for(text)


if __name__ == "__main__":
    unittest.main()
