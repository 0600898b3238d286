# SPDX-License-Identifier: Apache-2.0
"""tests/mutate objects to data that does not fit the tree, and what it runs ends with it."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import threading
import time
import unittest

PATH = pathlib.Path(__file__).parents[1] / "mutate"
LOADER = importlib.machinery.SourceFileLoader("mutate", str(PATH))
MUTATE = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", LOADER))
sys.modules["mutate"] = MUTATE
LOADER.exec_module(MUTATE)
TEXT = "if (a < b)\n    c();\nif (a < d)\n    c();\n"
PATIENCE_S = 60


def mutation(name="m", file="a.c", old="a < b", new="a <= b", breaks="PROTOCOL, Order 1: a is below b"):
    return MUTATE.Mutation(name=name, file=file, old=old, new=new, breaks=breaks, tests="^unit/")


class Data(unittest.TestCase):
    def complaints(self, *mutations):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.c").write_text(TEXT, encoding="utf-8")
            return list(MUTATE.complaints_of(mutations, pathlib.Path(folder)))

    def test_what_is_there_once_applies(self):
        self.assertEqual(self.complaints(mutation()), [])

    def test_what_is_there_never_or_twice_does_not(self):
        self.assertRegex(self.complaints(mutation(old="a > b"))[0], "m: what it replaces is 0 times in a.c")
        self.assertRegex(self.complaints(mutation(old="c();"))[0], "m: what it replaces is 2 times in a.c")
        self.assertRegex(self.complaints(mutation(file="b.c"))[0], "m: what it replaces is 0 times in b.c")

    def test_a_mutation_has_a_name_of_its_own_a_rule_and_changes_something(self):
        self.assertIn("m: two mutations have this name", self.complaints(mutation(), mutation(old="a < d")))
        self.assertEqual(self.complaints(mutation(breaks="a is below b")), ['m: `breaks` is not "DOCUMENT, section: rule"'])
        self.assertEqual(self.complaints(mutation(new="a < b")), ["m: it changes nothing"])

    def test_a_rule_has_one_mutation_and_there_is_a_bound_of_all(self):
        self.assertEqual(self.complaints(mutation(), mutation(name="n", old="a < d")),
                         ["two mutations break one rule: PROTOCOL, Order 1: a is below b"])
        many = [mutation(name=f"m{i}", breaks=f"PROTOCOL, Order {i}: a is below b") for i in range(251)]
        self.assertEqual(self.complaints(*many[1:]), [])
        self.assertEqual(self.complaints(*many), ["there are 251 mutations; keep one for each rule, and at most 250"])

    def test_the_command_fails_unless_each_is_caught(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(MUTATE.summarize(["caught", "caught"]), 0)
            for outcome in ("survived", "does not build", "no test", "does not apply"):
                self.assertEqual(MUTATE.summarize(["caught", outcome]), 1)


class Commands(unittest.TestCase):
    """A shell whose child would go on."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runner = MUTATE.Runner()

    def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(self):
        begun = time.monotonic()
        code, printed = self.runner.run(["sh", "-c", "echo begun; sleep 3600 & wait"], self.folder.name, 1)
        self.assertEqual((code, printed), (None, "begun\n"))    # the pipe is closed: nobody has it any more
        self.assertLess(time.monotonic() - begun, PATIENCE_S)

    def test_what_is_stopped_ends_and_begins_nothing_more(self):
        started = pathlib.Path(self.folder.name) / "started"
        stop = threading.Thread(target=self.stop_when_there_is, args=[started])
        stop.start()
        with self.assertRaises(MUTATE.Stopped):
            self.runner.run(["sh", "-c", "touch started; sleep 3600 & wait"], self.folder.name, PATIENCE_S)
        stop.join()
        with self.assertRaises(MUTATE.Stopped):
            self.runner.run(["true"], self.folder.name, PATIENCE_S)

    def stop_when_there_is(self, path):
        until = time.monotonic() + PATIENCE_S
        while not path.exists() and time.monotonic() < until:
            pass
        self.runner.stop()


if __name__ == "__main__":
    unittest.main()
