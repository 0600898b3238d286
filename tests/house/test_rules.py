# SPDX-License-Identifier: Apache-2.0
"""tests/house/rules.py objects to a rule that only one side has, and to an argument that does not hold."""
import unittest

import rules


class Rules(unittest.TestCase):
    def complaints(self, model, cores, model_only=(), core_only=()):
        argued = {"model_only": {name: "why" for name in model_only}, "core_only": {name: "why" for name in core_only}}
        return list(rules.complaints(set(model), set(cores), argued))

    def test_what_both_have_needs_no_reason(self):
        self.assertEqual(self.complaints("ab", "ab"), [])

    def test_what_one_has_needs_one(self):
        self.assertRegex(self.complaints("ab", "a")[0], "^b: the model has this rule")
        self.assertRegex(self.complaints("a", "ab")[0], "^b: lib/session/rules.h has this rule")
        self.assertEqual(self.complaints("ac", "bc", model_only="a", core_only="b"), [])

    def test_a_reason_for_what_both_or_none_have_is_stale(self):
        self.assertRegex(self.complaints("a", "a", model_only="a")[0], "which is not so")
        self.assertRegex(self.complaints("a", "a", core_only="b")[0], "which is not so")

    def test_the_lists_are_read(self):
        self.assertEqual(rules.model_rules('X = 1\nRULES = {"a": "x", "b": "y"}\n'), {"a", "b"})
        self.assertEqual(rules.core_rules("#define RULE_LIST(X) \\\n    X(a) /* x */ \\\n    X(b)\n"), {"a", "b"})


if __name__ == "__main__":
    unittest.main()
