# SPDX-License-Identifier: Apache-2.0
"""Bounded lag and staleness: who pulls with it waits for the slowest, is told who that is, and goes on when it leaves or is lost."""
import os
import unittest

from cluster import BUILD, Cluster, Process


class Lag(unittest.TestCase):
    def members(self, **cluster):
        """A cluster of two workers, who know a variable over both ps."""
        self.cluster = Cluster(**{"workers": 2, **cluster})
        self.addCleanup(self.cluster.stop)
        members = [self.cluster.member(index) for index in range(2)]
        for member in members:
            member.wait_for("^joined$")
        self.order(members[0], "create w float32 2 1 2 assign_add", "^created w$")
        self.order(members[1], "create w float32 2 1 2 assign_add", "^created w$")
        return members

    @staticmethod
    def order(member, line, answer):
        """Say it, and wait for what it comes to."""
        after = len(member.lines)
        member.say(line)
        return member.wait_for(answer, after)

    def test_nobody_is_more_than_the_lag_and_a_step_ahead(self):
        for lag_max in (0, 1, 3):
            with self.subTest(lag_max=lag_max):
                fast, slow = self.members()
                for _ in range(lag_max + 1):
                    self.order(fast, f"pull w {lag_max}", "^pulled w")
                    self.order(fast, "step w 1", "^stepped$")
                after = len(fast.lines)
                fast.say(f"pull w {lag_max}")
                stats = self.cluster.wait_for_wait("^pull [0-9]+ has waited .* for step 1 of worker 1, which has finished 0 "
                                   r"\((alive, )?no push or pull on ps [01] for .*\)$")
                self.assertEqual({client["name"]: client["lag"] for client in stats["clients"]},
                                 {"worker 0": lag_max + 1, "worker 1": 0})
                self.assertEqual(fast.lines[after:], [])
                self.order(slow, "step w 1", "^stepped$")
                fast.wait_for(f"^pulled w {lag_max + 2} {lag_max + 2} same$", after)
                self.cluster.stop()

    def test_a_wait_that_is_too_long_names_who_is_behind(self):
        cluster = Cluster(workers=2)
        self.addCleanup(cluster.stop)
        fast, slow = cluster.member(0, timeout_ms=8000), cluster.member(1)
        for member in (fast, slow):
            member.wait_for("^joined$")
        self.order(fast, "create w float32 2 1 2 assign_add", "^created w$")
        self.order(fast, "step w 1", "^stepped$")
        after = len(fast.lines)
        self.order(fast, "pull w 0", r"^refused UNAVAILABLE TIMED_OUT ps [01]: pull [0-9]+ has waited [78][0-9.]* s for step 1 of worker 1, "
                                     r"which has finished 0 \((alive, )?no push or pull on ps [01] for .*\)$")
        fast.wait_for(r"sumac worker 0: a pull is not over; ps [01]: it waits for step 1 of worker 1, which has finished 0 "
                      r"\((alive, )?no push or pull on ps [01] for .*\); gives up in [23] s$", after)
        self.order(fast, "pull w 1", "^pulled w 1 1 same$")

    def test_who_leaves_or_is_lost_holds_up_nobody(self):
        for end in ("leave", "kill"):
            with self.subTest(end=end):
                fast, slow = self.members(options=["--lease-ms", "10000"])
                self.order(fast, "step w 1", "^stepped$")
                after = len(fast.lines)
                fast.say("pull w 0")
                self.cluster.wait_for_wait("for step 1 of worker 1")
                if end == "leave":
                    self.order(slow, "leave done", "^left$")
                else:
                    slow.kill()
                fast.wait_for("^pulled w 1 1 same$", after)
                self.cluster.stop()

    def test_two_workers_that_take_turns_are_one_version_behind(self):
        one, other = self.members()
        self.order(one, "pull w", "^pulled")
        self.order(other, "push w 1", "^pushed$")       # of no pull: it has no staleness
        self.order(other, "pull w", "^pulled")
        for _ in range(5):
            for member in (one, other):
                self.order(member, "push w 1", "^pushed$")
                self.order(member, "pull w", "^pulled")
        for counted in (*self.cluster.stats()["ps"], *self.cluster.stats()["clients"]):
            staleness = counted["staleness"]
            self.assertEqual(staleness["mean"], 1, counted)
            self.assertGreaterEqual(staleness["count"], 4)

    def test_the_digits_are_learnt_with_bounded_lag(self):
        run = Process([os.path.join(BUILD, "sumac"), "run", "--ps", "2", "--workers", "2", "--", os.path.join(BUILD, "digits"),
                       "--lag-max", "1"], {"TF_CONFIG": ""})
        self.addCleanup(run.kill)
        self.assertEqual(run.wait(), 0, run.text())
        run.wait_for(r"worker 0 \| done: ")


if __name__ == "__main__":
    unittest.main()
