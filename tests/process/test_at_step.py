# SPDX-License-Identifier: Apache-2.0
"""Pulls at a synchronous step: every ps answers with the state after it, or says that a later one is over, or who is missing."""
import json
import unittest

from cluster import SUMAC, Cluster, Process
from members import Members


class AtStep(Members):
    def get(self, *arguments):
        return self.cluster.sumac("get", "w", "--json", *arguments)

    def test_a_step_is_read_while_members_wait_for_the_next(self):
        one, other = self.members()
        after = self.begun(one, "3")
        self.waits("for worker 1")
        reader = self.cluster.add(Process([SUMAC, "get", "w", "--json", "--at-step", "1", "--timeout-ms", "100000", "--ps",
                                           self.cluster.addresses()[0]]))
        self.waits(r"^pull [0-9]+ has waited .* for synchronous step 1, which waits on ps [01] for worker 1 \((alive, )?no push or pull on ps [01] for .*\)$")
        self.order(other, "contribute w 4 1", "^begun$")
        self.order(other, "end", "^pushed$")
        one.wait_for("^pushed$", after)
        self.assertEqual(reader.wait(), 0, reader.text())           # of both ps, whichever is heard first
        self.assertEqual(json.loads(reader.text())["values"], [[7], [7]])
        after = self.begun(one, "10")                               # the next has begun
        self.waits("for worker 1")
        self.assertEqual(json.loads(self.get("--at-step", "1")[1])["values"], [[7], [7]])
        self.order(other, "pull_at w 1", "^pulled w 7 7 same$")
        self.order(other, "contribute w 10 1", "^begun$")
        self.order(other, "end", "^pushed$")
        one.wait_for("^pushed$", after)
        self.order(one, "pull_at w 2", "^pulled w 27 27 same$")

    def test_a_step_that_is_over_is_refused_with_the_newest(self):
        one, other = self.members()
        for _ in range(3):
            self.contribute((one, "1", "1"), (other, "1", "1"))
        code, output = self.get("--at-step", "2")
        self.assertEqual(code, 2, output)
        self.assertRegex(output, "^sumac get: .*pull [0-9]+ is at synchronous step 2, and step 3 is over on ps [01], which keeps no "
                                 "older state: pull at that one, or a later one")
        self.order(one, "steps", "^contributed 3, newest 0$")
        self.order(one, "pull_at w 1", "^refused OUT_OF_RANGE STEP_OVER .* step 3 is over")
        self.order(one, "steps", "^contributed 3, newest 3$")
        self.order(one, "pull_at w 3", "^pulled w 6 6 same$")

    def test_a_step_that_does_not_come_in_time_names_who_is_missing(self):
        one, _ = self.members()
        self.begun(one, "1")
        self.waits("for worker 1")
        code, output = self.cluster.sumac_once("get", "w", "--json", "--at-step", "2", "--timeout-ms", "8000")
        self.assertGreaterEqual(code, 128, output)
        self.assertRegex(output, r"has waited [78][.0-9]* s for synchronous step 2; step 1 waits on ps [01] for worker 1 "
                                 r"\((alive, )?no push or pull on ps [01] for .*\)")
        self.assertRegex(output, "a pull is not over; .*; gives up in [23] s\n", "said after 5 s")

    def test_a_push_that_is_not_over_in_time_names_who_is_missing(self):
        self.cluster = Cluster(workers=3)
        self.addCleanup(self.cluster.stop)
        one, *others = [self.cluster.member(index, timeout_ms=8000) for index in range(3)]
        for member in (one, *others):
            member.wait_for("^joined$")
        self.order(one, "create w float32 2 1 2 assign_add sum", "^created w$")
        after = self.begun(one, "1")
        one.wait_for(r"a synchronous push is not over; ps [01]: it waits for synchronous step 1, which waits on ps [01] for worker [12] ", after)
        one.wait_for(r"^refused DEADLINE_EXCEEDED TIMED_OUT the synchronous push was not over within 8 s; ps [01]: it waits for synchronous step 1, "
                     r"which waits on ps [01] for (worker [12] \((alive, )?no push or pull on ps [01] for .*\)(, )?){2}; see the log of each missing task$", after)
        for member in others:                                       # it is under way still
            self.order(member, "create w float32 2 1 2 assign_add sum", "^created w$")
            self.order(member, "contribute w 1 1", "^begun$")
        self.order(one, "end", "^pushed$")
        self.order(one, "pull w", "^pulled w 3 3 same$")

    def test_asynchronous_pushes_end_no_step(self):
        one, other = self.members()
        for member in (one, other):
            self.order(member, "step w 1", "^stepped$")
        code, output = self.cluster.sumac_once("get", "w", "--json", "--at-step", "1", "--timeout-ms", "1000")
        self.assertEqual(code, 138, output)
        self.assertRegex(output, "(?m)^sumac get: asynchronous pushes end no synchronous step: leave --at-step out, or start all workers with "
                                 "SUMAC_SYNCHRONOUS=1, as `sumac run --synchronous` does; ps [01]: pull [0-9]+ has waited .* for synchronous step 1")
        self.assertEqual(self.get()[0], 0)

    def test_without_members_there_is_no_step_to_read(self):
        self.cluster = Cluster(ps=1, workers=0)
        self.addCleanup(self.cluster.stop)
        self.cluster.workers = 1
        observer = self.cluster.member(observer=True)
        observer.wait_for("^joined$")
        self.order(observer, "create w float32 2 1 1 assign_add sum", "^created w$")
        code, output = self.get("--at-step", "1")
        self.assertEqual(code, 2, output)
        self.assertRegex(output, "is at synchronous step 1, and ps 0 does not know how many members a step has: .*start it with --members")
        code, output = self.get("--at-step", "0")
        self.assertEqual(code, 2, output)
        self.assertIn("--at-step", output)


if __name__ == "__main__":
    unittest.main()
