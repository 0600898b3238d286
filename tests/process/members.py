# SPDX-License-Identifier: Apache-2.0
"""Members of synchronous steps, each of which a test tells what to contribute, and when (member.c)."""
import unittest

from cluster import Cluster


class Members(unittest.TestCase):
    """Who contribute to steps, each told what to do."""

    def members(self, *options, workers=2, aggregation="sum", timeout_ms=0):
        """A cluster of workers, who know a variable over both ps, in which steps are added up."""
        self.cluster = Cluster(workers=workers, options=options)
        self.addCleanup(self.cluster.stop)
        members = [self.cluster.member(index, timeout_ms=timeout_ms) for index in range(workers)]
        for member in members:
            member.wait_for("^joined$")
            self.order(member, f"create w float32 2 1 2 assign_add {aggregation}", "^created w$")
        return members

    @staticmethod
    def order(member, line, answer):
        """Say it, and wait for what it comes to."""
        after = len(member.lines)
        member.say(line)
        return member.wait_for(answer, after)

    def contribute(self, *contributions):
        """Each member contributes (member, value, weight), and all are done."""
        ends = []
        for member, value, weight in contributions:
            self.order(member, f"contribute w {value} {weight}", "^begun$")
        for member, _, _ in contributions:
            ends.append((member, len(member.lines)))
            member.say("end")
        for member, after in ends:
            member.wait_for("^pushed$", after)

    def waits(self, pattern):
        return self.cluster.wait_for_wait(pattern)

    @staticmethod
    def begun(member, value, weight="1"):
        """A contribution that is waited for; the number of the first line after it."""
        Members.order(member, f"contribute w {value} {weight}", "^begun$")
        after = len(member.lines)
        member.say("end")
        return after
