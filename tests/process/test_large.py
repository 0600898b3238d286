# SPDX-License-Identifier: Apache-2.0
"""Pushes that are larger than a session's floor: workers share the pool of each ps, and what does not fit says so."""
import os
import re
import signal
import subprocess
import unittest

from cluster import BUILD, Cluster


def run(ps, workers, options, *words):
    """`sumac run` of the worker `large` with these words. Returns its exit code and all that was said."""
    command = [os.path.join(BUILD, "sumac"), "run", "--ps", str(ps), "--workers", str(workers), "--ps-options", options, "--",
               os.path.join(BUILD, "large"), *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


class Large(unittest.TestCase):
    """Floors of 2 MiB for 8 sessions, a pool of 32 MiB."""
    options = "--staging-max 64M --sessions-max 8"

    def check(self, ps, workers, *words, options=options):
        code, said = run(ps, workers, options, *words)
        self.assertEqual(code, 0, said)
        self.assertEqual(len(re.findall(r"\d+ pushes of \d+ MiB", said)), workers, said)

    def test_a_model_of_ordinary_size_is_pushed_with_default_options(self):
        self.check(1, 1, 128, 1, 1, options="--report-ms 5000")
        self.check(1, 4, 100, 1, 1, "synchronous", options="--report-ms 5000")

    def test_one_worker_pushes_nearly_all_of_the_pool(self):
        self.check(1, 1, 31, 1, 3)

    def test_one_worker_pushes_several_variables_at_once(self):
        self.check(1, 1, 31, 5, 3)

    def test_workers_whose_pushes_do_not_fit_together_wait_for_each_other(self):
        self.check(1, 3, 20, 2, 4)

    def test_workers_that_push_to_several_ps_do_not_wait_in_a_circle(self):
        self.check(3, 3, 60, 6, 6)

    def test_workers_contribute_to_synchronous_steps(self):
        self.check(2, 4, 12, 2, 5, "synchronous")

    def test_a_step_that_does_not_fit_is_refused_with_both_figures(self):
        code, said = run(1, 4, self.options, 12, 2, 1, "synchronous")
        self.assertNotEqual(code, 0)
        self.assertRegex(said, r"with those of all 4 members a step takes \d+ of the 33554432 that large parts share")

    def test_a_push_above_the_pool_is_refused_with_both_figures_and_a_remedy(self):
        code, said = run(1, 1, self.options, 40, 2, 1)
        self.assertNotEqual(code, 0)
        self.assertRegex(said, r"takes \d+ bytes of staging there, where a part may take 33554432 \(32 MiB; .*--staging-max of 82M")

    def test_a_push_that_waits_for_room_says_who_holds_it_and_ends_with_its_deadline(self):
        """ps 1 is stopped, so worker 0's push is not committed and keeps the pool of 2 MiB of ps 0."""
        with Cluster(ps=2, workers=2, options=["--staging-max", "4M", "--sessions-max", "4"]) as cluster:
            members = [cluster.member(0), cluster.member(1, timeout_ms=2000)]
            for member in members:
                member.wait_for("^joined$")
                member.say("create w float32 2 393216 2 assign_add")
                member.wait_for("^created w$")
                member.say("push w 1")
                member.wait_for("^pushed$")
            cluster.ps[1].signal(signal.SIGSTOP)
            members[0].say("begin w 1")
            members[0].wait_for("^begun$")
            members[1].say("push w 1")
            members[1].wait_for("^refused DEADLINE_EXCEEDED .*push 2 waits for 1 MiB of the pool of 2 MiB on ps 0: "
                                ".* by push 2 of worker 0")
            cluster.ps[1].signal(signal.SIGCONT)
            members[0].say("end")
            members[0].wait_for("^pushed$", after=len(members[0].lines) - 1)


if __name__ == "__main__":
    unittest.main()
