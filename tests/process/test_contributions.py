# SPDX-License-Identifier: Apache-2.0
"""What members contribute: half types in float32, weights of 0."""
import os
import unittest

from cluster import BUILD, Cluster, Process
from members import Members

STEPPER = os.path.join(BUILD, "stepper")


class Halves(unittest.TestCase):
    def step(self, dtype, *tasks):
        """One step of workers, each with the bits of its gradient and a weight: the bits of `sum` and `mean`."""
        self.cluster = Cluster(workers=len(tasks))
        self.addCleanup(self.cluster.stop)
        workers = [self.cluster.add(Process([STEPPER, dtype, bits, weight], self.cluster.environment("worker", index)))
                   for index, (bits, weight) in enumerate(tasks)]
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker.text())
        said = {worker.lines[-1] for worker in workers}
        self.assertEqual(len(said), 1, said)
        return said.pop()

    def test_they_are_added_up_in_float32_and_rounded_once(self):
        """A half of the last place of 1, and a little: in its own type each would leave 1 as it is."""
        for dtype, half, little, then in (("float16", "1000", "0004", "3c01"), ("bfloat16", "3b80", "3580", "3f81")):
            with self.subTest(dtype=dtype):
                said = self.step(dtype, (half, "1"), (little, "1"))
                self.assertRegex(said, f"^sum {then} {then}, ")
                self.cluster.stop()

    def test_each_weighs_as_much_as_it_says(self):
        # 2 times 0.5 and 6 times 4.5: 28, and the mean over 8 of them 3.5
        for dtype, given, other, then in (("float16", "3800", "4480", "sum 4f40 4f40, mean 4480 4480"),
                                          ("bfloat16", "3f00", "4090", "sum 41e8 41e8, mean 4090 4090")):
            with self.subTest(dtype=dtype):
                self.assertEqual(self.step(dtype, (given, "2"), (other, "6")), then)
                self.cluster.stop()

    def test_who_has_no_examples_adds_nothing(self):
        self.assertEqual(self.step("float16", ("3c00", "2"), ("7e00", "0")), "sum 4200 4200, mean 4000 4000")     # 2, 1; nan


class HowMany(unittest.TestCase):
    def test_a_member_that_knows_of_others_than_ps_0_was_told_is_refused(self):
        cluster = Cluster(workers=0, options=["--members", "2"])
        self.addCleanup(cluster.stop)
        cluster.workers = 3
        member = cluster.member()
        member.wait_for("^refused FAILED_PRECONDITION WRONG_CLUSTER .*lists 3 chiefs and workers, and ps 0 was started with --members 2: ")
        self.assertEqual(member.wait(), 2)
        cluster.workers = 2
        for index in range(2):
            cluster.member(index).wait_for("^joined$")
        cluster.workers = 3                                     # the run has grown: it comes later
        cluster.member(2).wait_for("^joined$")

    def test_a_member_that_goes_by_other_rules_is_refused_with_both(self):
        cluster = Cluster(workers=3, options=["--quorum", "2"])
        self.addCleanup(cluster.stop)
        for rules, said in (("4,0,any", "begin with 4 members, and ps 0 with 3 "),
                            ("0,3,any", "need 3 contributions, and ps 0 2 "),
                            ("3,2,fail", "a loss to fail synchronous steps, and ps 0 was started with --on-loss continue: ")):
            member = cluster.member(rules=rules)
            member.wait_for(f"^refused FAILED_PRECONDITION WRONG_CLUSTER .*{said}")
            self.assertEqual(member.wait(), 2)
        for index, rules in enumerate(("3,2,continue", "0,0,any", None)):
            member = cluster.member(index, rules=rules)
            member.wait_for("^joined$")
            member.say("rules")
            member.wait_for("^members 3 quorum 2 continue$")


class Weights(Members):
    def test_a_contribution_of_weight_0_adds_nothing_and_has_come(self):
        one, other = self.members(aggregation="mean")
        self.contribute((one, "6", "2"), (other, "50", "0"))
        self.order(one, "pull w", "^pulled w 3 3 same$")

    def test_a_step_of_weight_0_is_refused_with_the_remedy(self):
        one, other = self.members(aggregation="mean")
        self.order(other, "contribute w 4 0", "^begun$")
        after = self.begun(one, "3", weight="0")
        self.order(other, "end", "^refused FAILED_PRECONDITION ZERO_WEIGHT .*all contributions to synchronous step 1 weigh 0; give each "
                                 "the number of examples that it stands for")
        one.wait_for("^refused FAILED_PRECONDITION ZERO_WEIGHT ", after)
        self.contribute((one, "1", "1"), (other, "1", "1"))         # the next step is one like any
        self.order(one, "pull w", "^pulled w 1 1 same$")


if __name__ == "__main__":
    unittest.main()
