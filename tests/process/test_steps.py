# SPDX-License-Identifier: Apache-2.0
"""Synchronous steps: every member contributes to each, they are applied as one, and a member that is gone is not waited for."""
import json
import os
import unittest

from cluster import BUILD, PATIENCE_S, SUMAC, Cluster, Process
from members import Members


class Steps(Members):
    def test_a_step_waits_for_every_member_and_is_one_update(self):
        one, other = self.members()
        after = self.begun(one, "3")
        self.waits(r"^synchronous step 1 has waited .* for worker 1 \((alive, )?no push or pull on ps [01] for .*\); 1 of 2 have come$")
        self.order(other, "pull w", "^pulled w 0 0 same$")
        self.order(other, "contribute w 4 1", "^begun$")
        self.order(other, "end", "^pushed$")
        one.wait_for("^pushed$", after)
        self.order(one, "pull w", "^pulled w 7 7 same$")

    def test_a_member_that_keeps_its_lease_is_said_to_be_alive(self):
        one, _ = self.members("--lease-ms", "2000")
        self.begun(one, "3")
        for ps in range(2):                                         # worker 1 does nothing, and its library renews
            self.waits(rf"^synchronous step 1 has waited .* for worker 1 \(alive, no push or pull on ps {ps} for .*\); 1 of 2 have come$")

    def test_a_listed_member_that_has_not_joined_is_named(self):
        self.cluster = Cluster(workers=2)
        self.addCleanup(self.cluster.stop)
        one = self.cluster.member(0, timeout_ms=4000)
        one.wait_for("^joined$")
        self.order(one, "create w float32 2 1 2 assign_add sum", "^created w$")
        after = self.begun(one, "3")
        missing = r"worker 1 \((at [^ ]+, )?never joined\)"
        self.waits(f"^synchronous step 1 has waited .* for {missing}; 1 of 2 have come$")
        one.wait_for(f"^refused DEADLINE_EXCEEDED TIMED_OUT .* which waits on ps [01] for {missing}; start each missing task$", after)

    def test_a_member_whose_pushes_are_asynchronous_is_named_with_the_remedy(self):
        self.cluster = Cluster(workers=2)
        self.addCleanup(self.cluster.stop)
        one, other = self.cluster.member(0, timeout_ms=2000), self.cluster.member(1)
        for member in (one, other):
            member.wait_for("^joined$")
            self.order(member, "create w float32 2 1 2 assign_add sum", "^created w$")
        self.order(other, "step w 1", "^stepped$")
        self.begun(one, "3")
        self.order(one, "end", r"^refused DEADLINE_EXCEEDED TIMED_OUT the synchronous push was not over within 2 s; .* for worker 1 "
                               r"\(its pushes are asynchronous, (alive, )?no push or pull on ps [01] for .*\); "
                               "start all workers with the same SUMAC_SYNCHRONOUS$")

    def test_a_mean_is_over_the_weights(self):
        one, other = self.members(aggregation="mean")
        self.contribute((one, "3", "1"), (other, "5", "3"))         # sums over one example and over three
        self.order(one, "pull w", "^pulled w 2 2 same$")
        self.contribute((one, "1", "0.5"), (other, "2", "0.25"))
        self.order(other, "pull w", "^pulled w 6 6 same$")

    def test_contributions_that_differ_name_both(self):
        one, other = self.members()
        after = self.begun(one, "3")
        self.waits("for worker 1")
        self.order(other, "contribute w 4 1 assign_sub", "^begun$")
        self.order(other, "end", "^refused INVALID_ARGUMENT STEP_DIFFERS .*assign_sub.*worker 0.*assign_add")
        one.wait_for("^pushed$", after)                             # it is the step of those who are left
        self.order(other, "pull w", "^pulled w 3 3 same$")
        self.contribute((one, "1", "1"), (other, "1", "1"))
        self.order(other, "pull w", "^pulled w 5 5 same$")

    def test_who_leaves_or_is_lost_is_not_waited_for(self):
        for end in ("leave", "kill"):
            with self.subTest(end=end):
                one, two, three = self.members("--lease-ms", "10000", workers=3)
                self.contribute((one, "1", "1"), (two, "1", "1"), (three, "1", "1"))
                ends = [(one, self.begun(one, "1")), (three, self.begun(three, "1"))]
                self.waits("for worker 1 ")
                if end == "leave":
                    self.order(two, "leave done", "^left$")
                else:
                    two.kill()
                for member, after in ends:
                    member.wait_for("^pushed$", after)
                self.order(one, "pull w", "^pulled w 5 5 same$")
                self.contribute((one, "1", "1"), (three, "1", "1"))
                self.order(three, "pull w", "^pulled w 7 7 same$")
                if end == "kill":                                   # started again it is in the steps after
                    self.joins_between_steps(one, three)
                self.cluster.stop()

    def joins_between_steps(self, one, three):
        again = self.cluster.member(1)
        again.wait_for("^joined$")
        self.order(again, "create w float32 2 1 2 assign_add sum", "^created w$")
        after = self.begun(one, "1")
        self.contribute((three, "1", "1"), (again, "1", "1"))
        one.wait_for("^pushed$", after)
        self.order(again, "pull w", "^pulled w 10 10 same$")

    def test_on_loss_fail_says_who_was_lost(self):
        one, other = self.members("--lease-ms", "10000", "--on-loss", "fail")
        self.contribute((one, "1", "1"), (other, "1", "1"))
        after = self.begun(one, "1")
        self.waits("for worker 1")
        other.kill()
        one.wait_for("^refused ABORTED MEMBER_LOST .*step 2.*worker 1", after)
        self.assertNotEqual(one.wait(), 0)

    def test_what_to_do_on_a_loss_is_one_of_two(self):
        ps = Process([SUMAC, "ps", "--on-loss", "hope"], {"TF_CONFIG": ""})
        self.addCleanup(ps.kill)
        self.assertEqual(ps.wait(), 2, ps.text())
        ps.wait_for("--on-loss.*(fail|continue).*hope|hope.*(fail|continue)")

    def test_many_members_for_a_while_sum_exactly(self):
        members = self.members(workers=64)
        self.addCleanup(lambda: [member.kill() for member in members])
        for index, member in enumerate(members):
            member.say(f"train w {index + 1} 20")
            member.say("leave undone")                      # from then on nobody waits for it
        steps = [int(member.wait_for("^trained (.*)$", patience_s=20 + PATIENCE_S).group(1)) for member in members]
        for member in members:
            member.wait_for("^left$")
        self.assertGreater(min(steps), 1)
        total = sum(count * (index + 1) for index, count in enumerate(steps))
        code, output = self.cluster.sumac("get", "w", "--json")
        self.assertEqual(code, 0, output)
        self.assertEqual(json.loads(output)["values"], [[total], [total]])

    def test_a_step_of_two_of_three_does_not_wait_for_the_third(self):
        one, two, three = self.members("--quorum", "2", "--step-deadline", "0", workers=3)
        self.contribute((one, "3", "1"), (two, "4", "1"))
        self.order(three, "pull w", "^pulled w 7 7 same$")
        self.order(three, "contribute w 100 1", "^begun$")
        self.order(three, "end", "^refused ABORTED STEP_LATE .*worker 2.*step 1 ")
        self.contribute((two, "1", "1"), (three, "1", "1"))
        self.order(one, "pull w", "^pulled w 9 9 same$")

    def test_who_was_late_goes_on_with_the_newest_step(self):
        one, two, three = self.members("--quorum", "2", "--step-deadline", "0", workers=3)
        for _ in range(5):
            self.contribute((one, "1", "1"), (two, "1", "1"))
        self.order(three, "contribute w 100 1", "^begun$")
        self.order(three, "end", "^refused ABORTED STEP_LATE .*step 1 .*step 5 is the last that is over")
        self.contribute((one, "1", "1"), (three, "1", "1"))          # its second, and step 6
        self.order(three, "pull w", "^pulled w 12 12 same$")
        code, output = self.cluster.sumac("stats", "--interval-ms", "10")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, "worker 2: 1 contribution came late: a synchronous step was taken without each")

    def test_a_step_waits_for_more_until_its_deadline(self):
        one, two, three = self.members("--quorum", "2", "--step-deadline", "600000", workers=3)
        ends = [(one, self.begun(one, "3")), (two, self.begun(two, "4"))]
        self.waits(r"step 1 has waited .* for worker .*, or for ps 0, which takes it with 2 when its --step-deadline is over; 2 of 3 have come")
        self.order(three, "contribute w 5 1", "^begun$")
        self.order(three, "end", "^pushed$")
        for member, after in ends:
            member.wait_for("^pushed$", after)
        self.order(one, "pull w", "^pulled w 12 12 same$")

    def test_a_worker_that_is_lost_holds_up_no_step_with_a_quorum(self):
        one, two, three = self.members("--quorum", "2", "--step-deadline", "auto", "--lease-ms", "10000", workers=3)
        three.kill()
        for step in range(1, 4):                                     # its lease is not over
            self.contribute((one, "1", "1"), (two, "1", "1"))
            self.order(one, "pull w", f"^pulled w {2 * step} {2 * step} same$")

    def test_options_of_a_quorum_that_contradict_each_other(self):
        two_workers = json.dumps({"cluster": {"ps": ["127.0.0.1:1"], "worker": ["a:1", "b:1"]}, "task": {"type": "ps", "index": 0}})
        for options, text in (
                (("--quorum", "0"), "--quorum.*1 to"), (("--quorum", "3"), "--quorum 3, and a synchronous step has 2 members; give at most"),
                (("--quorum", "1", "--members", "3"), "--members 3, and TF_CONFIG lists 2"),
                (("--quorum", "1", "--on-loss", "fail"), "--quorum 1 does without a worker that is lost"),
                (("--step-deadline", "5"), "--step-deadline 5 is of steps with a quorum; give --quorum"),
                (("--quorum", "1", "--step-deadline", "soon"), "--step-deadline soon is neither auto nor a whole number"),
                (("--quorum", "1", "--step-deadline", "86400001"), "--step-deadline 86400001 is neither auto nor .* 0 to 86400000"),
                (("--quorum", "3", "--step-deadline", "86400000"), "--quorum 3, and a synchronous step has 2 members")):
            with self.subTest(options=options):
                ps = Process([SUMAC, "ps", "--port", "0", *options], {"TF_CONFIG": two_workers})
                self.addCleanup(ps.kill)
                self.assertEqual(ps.wait(), 2, ps.text())
                ps.wait_for(text)

    def test_the_digits_are_learnt_with_backup_workers(self):
        run = Process([SUMAC, "run", "--ps", "2", "--workers", "3", "--ps-options", "--quorum 2", "--synchronous", "--",
                       os.path.join(BUILD, "digits"), "--steps", "100", "--target", "0"], {"TF_CONFIG": ""})
        self.addCleanup(run.kill)
        self.assertEqual(run.wait(), 0, run.text())
        for worker in range(3):
            run.wait_for(rf"worker {worker} +\| .* sumac worker {worker}: this worker makes synchronous steps$")

    def test_room_for_one_step_and_a_half_is_enough_and_for_less_than_one_is_said(self):
        """Contributions to a later step give way to those of the open one."""
        self.cluster = Cluster(ps=1, workers=2, options=["--sessions-max", "8", "--staging-max", "8M"])     # a pool of 4 MiB
        self.addCleanup(self.cluster.stop)
        members = [self.cluster.member(index) for index in range(2)]
        for member in members:
            member.wait_for("^joined$")
            self.order(member, "create w float32 262144 1 1 assign_add sum", "^created w$")     # contributions of 1 MiB and an eighth
            self.order(member, "create large float32 524288 1 1 assign_add sum", "^created large$")
        after = len(members[0].lines)
        members[0].say("contribute large 1 1")
        members[0].say("end")
        members[0].wait_for("^refused RESOURCE_EXHAUSTED PART_TOO_LARGE .* contribution of 2229440 bytes .* all 2 members a step takes "
                            "4458880 of the 4194304 ", after)
        for member in members:
            member.say("train w 1 3")
            member.say("leave undone")
        steps = [int(member.wait_for("^trained (.*)$").group(1)) for member in members]
        self.assertGreater(min(steps), 1)
        code, output = self.cluster.sumac_once("get", "w", "--slice", "0:1", "--json")
        self.assertEqual(code, 0, output)
        self.assertEqual(json.loads(output)["values"], [[sum(steps)]])

    def test_the_digits_are_learnt_alike_every_time(self):
        losses = []
        for _ in range(2):
            run = Process([SUMAC, "run", "--ps", "2", "--workers", "3", "--synchronous", "--", os.path.join(BUILD, "digits"),
                           "--steps", "200", "--target", "0", "--json"], {"TF_CONFIG": ""})
            self.addCleanup(run.kill)
            self.assertEqual(run.wait(), 0, run.text())
            losses.append(run.wait_for(r'worker 0 \| .*"loss": ?([^,}]+)').group(1))
        self.assertEqual(losses[0], losses[1])


if __name__ == "__main__":
    unittest.main()
