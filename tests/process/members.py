# SPDX-License-Identifier: Apache-2.0
"""Members of synchronous steps, each of which a test tells what to contribute, and when (member.c)."""
import json
import re
import time
import unittest

from cluster import PATIENCE_S, Cluster


class Members(unittest.TestCase):
    """Who contribute to steps, each told what to do."""

    def members(self, *options, workers=2, aggregation="sum"):
        """A cluster of workers, who know a variable over both ps, in which steps are added up."""
        self.cluster = Cluster(workers=workers, options=options)
        self.addCleanup(self.cluster.stop)
        members = [self.cluster.member(index) for index in range(workers)]
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
        """Until some ps says that it waits so."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            code, output = self.cluster.sumac("stats", "--json", "--interval-ms", "10")
            self.assertEqual(code, 0, output)
            said = [wait for ps in json.loads(output)["ps"] for wait in ps["waits"]]
            if any(re.search(pattern, wait) for wait in said):
                return
        raise AssertionError(f"no ps waits for {pattern}: {said}")

    @staticmethod
    def begun(member, value, weight="1"):
        """A contribution that is waited for; the number of the first line after it."""
        Members.order(member, f"contribute w {value} {weight}", "^begun$")
        after = len(member.lines)
        member.say("end")
        return after
