# SPDX-License-Identifier: Apache-2.0
"""Pushes that their caller gives up while a ps is suspended: applied nowhere, and the session goes on."""
import signal
import unittest

from members import Members


class Cancel(Members):
    def one(self, timeout_ms):
        one = super().members(workers=1, timeout_ms=timeout_ms)[0]
        self.cluster.ps[1].signal(signal.SIGSTOP)
        return one

    def goes_on(self, one):
        self.cluster.ps[1].signal(signal.SIGCONT)
        self.order(one, "push w 5", "^pushed$")
        self.order(one, "pull w", "^pulled w 5 5 same$")

    def test_a_push_that_a_suspended_ps_lacks_is_applied_nowhere(self):
        one = self.one(timeout_ms=60000)
        self.order(one, "begin w 1", "^begun$")
        self.order(one, "cancel", "^given up$")
        self.order(one, "end", "^refused CANCELLED CANCELLED the push was cancelled, and is applied nowhere$")
        self.goes_on(one)

    def test_a_push_that_is_done_counts(self):
        one = super().members(workers=1)[0]
        self.order(one, "push w 1", "^pushed$")
        self.order(one, "begin w 2", "^begun$")
        self.order(one, "pull w", "^pulled w 3 3 same$")
        self.order(one, "cancel", "^given up$")
        self.order(one, "end", "^pushed$")
        self.order(one, "pull w", "^pulled w 3 3 same$")

    def test_a_push_without_a_handle_is_given_up_at_its_timeout(self):
        one = self.one(timeout_ms=2000)
        self.order(one, "push_at_once w 1", "^refused DEADLINE_EXCEEDED TIMED_OUT the push was not over within 2 s; it waits for ps 1 at .*; "
                                            "it is cancelled, and applied nowhere$")
        self.goes_on(one)

    def test_a_step_is_made_without_a_contribution_that_is_given_up(self):
        one, other = super().members(workers=2)
        self.cluster.ps[1].signal(signal.SIGSTOP)
        self.order(one, "contribute w 1 1", "^begun$")
        self.order(one, "cancel", "^given up$")
        self.order(one, "end", "^refused CANCELLED CANCELLED ")
        self.cluster.ps[1].signal(signal.SIGCONT)
        self.order(other, "contribute w 7 1", "^begun$")
        self.order(other, "end", "^pushed$")
        self.order(other, "pull w", "^pulled w 7 7 same$")
        self.contribute((one, "1", "1"), (other, "2", "1"))
        self.order(other, "pull w", "^pulled w 10 10 same$")


if __name__ == "__main__":
    unittest.main()
