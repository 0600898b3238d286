# SPDX-License-Identifier: Apache-2.0
"""What sumac-conformance says of cases, and with which exit code it ends."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def tensor(*data):
    return {"dtype": "float32", "shape": [len(data)], "data": list(data)}


def case(id, *expected, **more):
    return {"id": id, "op": "update_function", "fn": "sgd", "hyperparameters": {"learning_rate": 0.5}, "initial": tensor(1, 2),
            "gradients": [tensor(2, 2)], "expect": {"value": tensor(*expected), "slots": {}}, **more}


class Program(unittest.TestCase):
    def run_with(self, *arguments):
        ran = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=100, check=False)
        return ran.returncode, ran.stdout.splitlines(), ran.stderr

    def run_cases(self, *cases, options=(), text=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cases.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps({"format": 1, "about": "made", "cases": cases}) if text is None else text)
            return self.run_with(*options, path)

    def test_each_case_is_told_and_all_are_counted(self):
        code, lines, _ = self.run_cases(case("a", 0, 1), case("b", 0, 3), {"id": "c", "op": "dataset_shard", "expect": {}})
        self.assertEqual(lines, ["PASS a", "FAIL b: expected value[1] to be 3, got 1", "SKIP c: its operation is not run by this program yet",
                                 "1 passed, 1 failed, 1 skipped"])
        self.assertEqual(code, 1)

    def test_it_ends_with_0_when_none_failed(self):
        code, lines, _ = self.run_cases(case("a", 0, 1), {"id": "c", "op": "dataset_shard", "expect": {}})
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))

    def test_what_it_cannot_express_has_failed(self):
        for wrong in (case("a", 0, 1, surprise=1), case("a", 0, 1, fn=7), case("a", 0, 1, gradients=[tensor(1, 1)] * 65),
                      case("a", 0, 1, gradients=[{"dtype": "float32", "shape": [2], "data": [1]}])):
            code, lines, _ = self.run_cases(wrong)
            self.assertRegex(lines[0], "^FAIL a: .")
            self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_refusals_are_cases_too(self):
        refused = case("a", 0, 1, fn="sgdd")
        del refused["expect"]
        for mentions, passes in (("SGDD", True), ("oranges", False)):
            code, lines, _ = self.run_cases({**refused, "error": {"code": "INVALID_ARGUMENT", "mentions": [mentions]}})
            self.assertRegex(lines[0], "^PASS a$" if passes else "^FAIL a: expected a message that mentions oranges, got .*sgdd")
            self.assertEqual(code, 0 if passes else 1)

    def test_through_two_ps_the_lines_are_the_same(self):
        cases = case("a", 0, 1), case("b", 0, 3)
        code, lines, said = self.run_cases(*cases, options=["--rpc"])
        self.assertEqual(lines, self.run_cases(*cases)[1], said)
        self.assertEqual(code, 1)

    def adam(self, v):
        """What adam makes of one gradient, with the slot v as it is given."""
        return {"id": "a", "op": "update_function", "fn": "adam", "hyperparameters": {}, "initial": tensor(1, 2), "gradients": [tensor(10, 0.25)],
                "expect": {"value": tensor(0.999, 1.999), "slots": {"m": tensor(1, 0.025), **v}}}

    def test_a_small_element_has_a_small_tolerance(self):
        for v, passes in ((0.0999987, 6.24992e-5), True), ((0.0999987, 6.25e-5), True), ((0.0999987, 6.3e-5), False), ((0.0999987, 0), False):
            code, lines, _ = self.run_cases(self.adam({"v": tensor(*v)}))
            self.assertEqual(code, 0 if passes else 1, lines)
        self.assertRegex(lines[0], r"^FAIL a: expected v\[1\] to be 0, got 6.2499")

    def test_the_sign_of_0_is_compared(self):
        for value, passes in (0.0, True), (-0.0, False):
            code, lines, _ = self.run_cases(case("a", value, 1))
            self.assertEqual(code, 0 if passes else 1, lines)
        self.assertEqual(lines[0], "FAIL a: expected value[0] to be -0, got 0")

    def test_through_ps_slots_are_compared(self):
        v = tensor(0.0999987, 6.25e-5)
        code, lines, said = self.run_cases(
            *({**self.adam(slots), "id": str(i)} for i, slots in enumerate(({"v": v}, {}, {"v": v, "w": v}, {"v": tensor(0.0999987, 0)}))),
            options=["--rpc"])
        self.assertEqual([line.split(",")[0] for line in lines[:4]],
                         ["PASS 0", "FAIL 1: expected 1 slots", "FAIL 2: expected 3 slots", "FAIL 3: expected v[1] to be 0"], said)
        self.assertEqual(code, 1)

    def test_it_starts_the_ps_and_workers_that_a_strategy_takes(self):
        two = {"id": "a/b", "op": "variable", "strategy": {"kind": "parameter_server", "replicas": 2, "ps": 1},
               "create": {"name": "v", "initial": tensor(1, 2), "aggregation": "SUM"}, "steps": [],
               "expect": {"components": [tensor(1, 2)]}}
        code, lines, said = self.run_cases(two)
        self.assertEqual((code, lines), (0, ["PASS a/b", "1 passed, 0 failed, 0 skipped"]), said)
        code, lines, said = self.run_cases(two, {**two, "create": {**two["create"], "initial": tensor(1, 3)}}, options=["--rpc"])
        self.assertEqual((code, lines[0]), (1, "PASS a/b"), said)
        self.assertRegex(lines[1], r"^FAIL a/b: expected component 0\[1\] to be 2, got 3")

    def test_what_is_no_file_of_cases_has_failed(self):
        for text in ("{", "[]", '{"format": 2, "cases": []}'):
            code, lines, said = self.run_cases(text=text)
            self.assertEqual((code, lines), (1, ["0 passed, 1 failed, 0 skipped"]))
            self.assertRegex(said, "cases.json")

    def test_wrong_calls_end_with_2(self):
        for arguments in ((), ("--rcp", "x.json")):
            code, _, said = self.run_with(*arguments)
            self.assertEqual(code, 2)
            self.assertRegex(said, "--help")


if __name__ == "__main__":
    unittest.main()
