# SPDX-License-Identifier: Apache-2.0
"""Barriers: members wait for each other by name, round after round; who is missing is named, and a round ends for all alike."""
import signal
import unittest

from cluster import Cluster

LEASE = ["--lease-ms", "10000"]


class Barrier(unittest.TestCase):
    def members(self, count, **cluster):
        self.cluster = Cluster(**{"workers": count, "ps": 1, **cluster})
        self.addCleanup(self.cluster.stop)
        members = [self.cluster.member(index) for index in range(count)]
        for member in members:
            member.wait_for("^joined$")
        return members

    @staticmethod
    def come(members, line):
        """All of them come; what each has to wait for is what it says from here on."""
        after = [len(member.lines) for member in members]
        for member in members:
            member.say(line)
        return after

    def test_rounds_pass_when_all_have_come(self):
        members = self.members(3)
        for round in (1, 2, 3):
            after = self.come(members[:2], "come epoch")
            self.cluster.wait_for_wait(f"^round {round} of barrier \"epoch\" waits for worker 2 \\(last heard from .* ago\\); 2 of 3 tasks have come, "
                       "it gives up in .* s$")
            self.assertEqual([member.lines[at:] for member, at in zip(members, after)], [[], []])
            after += self.come(members[2:], "come epoch")
            for member, at in zip(members, after):
                member.wait_for(f"^came epoch {round}$", at)

    def test_a_list_of_tasks_waits_for_these_alone(self):
        members = self.members(3)
        outer = [members[0], members[2]]
        for member, at in zip(outer, self.come(outer, "come outer 0,2")):
            member.wait_for("^came outer 1$", at)
        members[1].say("come outer 0,2")
        members[1].wait_for("^refused INVALID_ARGUMENT MALFORMED worker 1 comes to barrier \"outer\", which it says is of worker 0, worker 2: "
                            "name it among them$")
        members[1].say("come outer 0,1")
        members[1].wait_for("^refused ALREADY_EXISTS ALREADY_EXISTS barrier \"outer\" is of worker 0, worker 2, and this call says of worker 0, "
                            "worker 1: all who come to it name the same$")

    def test_a_deadline_ends_the_round_for_all_and_names_who_is_missing(self):
        members = self.members(3)
        after = self.come(members[:1], "come epoch - 60000")
        self.cluster.wait_for_wait("1 of 3 tasks have come")
        after += self.come(members[1:2], "come epoch - 8000")
        for member, at in zip(members, after):
            member.wait_for("^refused DEADLINE_EXCEEDED ROUND_TIMED_OUT round 1 of barrier \"epoch\" has waited [0-9.]+ s for worker 2 \\(last heard from "
                            ".* ago\\); 2 of 3 tasks have come; a task that came later gave the round [67][0-9.]* s$", at)
        self.come(members[:2], "come epoch")
        self.cluster.wait_for_wait("^round 2 of barrier \"epoch\" waits for worker 2")

    def test_who_is_killed_or_leaves_ends_the_round_and_is_named(self):
        for end in ("kill", "leave undone", "leave done"):
            with self.subTest(end=end):
                members = self.members(3, options=LEASE)
                after = self.come(members[:2], "come epoch")
                self.cluster.wait_for_wait("2 of 3 tasks have come")
                if end == "kill":
                    members[2].kill()
                else:
                    members[2].say(end)
                done = end == "leave done"
                how = {"kill": "lost", "leave undone": "left", "leave done": "left as done"}[end]
                for member, at in zip(members, after):
                    member.wait_for(f"^refused {'FAILED_PRECONDITION' if done else 'ABORTED'} MEMBER_GONE round 1 of barrier \"epoch\" cannot "
                                    f"pass without worker 2 \\(last heard from .* ago, {how}\\); ", at)
                if not done:        # another attempt learns where the others are
                    again = self.cluster.member(2)
                    again.wait_for("^joined$")
                    trio = [*members[:2], again]
                    for member, at in zip(trio, self.come(trio, "come epoch")):
                        member.wait_for("^came epoch 2$", at)
                self.cluster.stop()

    def test_as_many_as_there_are_come_together(self):
        members = self.members(64)
        for round in (1, 2, 3):
            for member, at in zip(members, self.come(members, "come epoch")):
                member.wait_for(f"^came epoch {round}$", at)

    def test_an_arrival_outlives_its_process(self):
        members = self.members(2)
        self.come(members[:1], "come epoch")
        self.cluster.wait_for_wait("1 of 2 tasks have come")
        members[0].kill()
        members[1].say("come epoch")
        members[1].wait_for("^came epoch 1$")

    def test_an_observer_is_refused(self):
        self.members(1)
        observer = self.cluster.member(0, observer=True)
        observer.wait_for("^joined$")
        observer.say("come epoch")
        observer.wait_for("^refused FAILED_PRECONDITION MALFORMED .* is no member, and only members come to a barrier")

    def test_sigterm_ends_the_wait(self):
        members = self.members(2)
        self.come(members[:1], "come epoch")
        self.cluster.wait_for_wait("1 of 2 tasks have come")
        self.cluster.ps[0].signal(signal.SIGTERM)
        members[0].wait_for("^refused UNAVAILABLE TERMINATED ")
        self.assertGreaterEqual(members[0].wait(), 128)


if __name__ == "__main__":
    unittest.main()
