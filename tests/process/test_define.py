# SPDX-License-Identifier: Apache-2.0
"""Functions that are made of a text in a run: defined from a terminal, used by members, listed."""
import json
import os
import re
import subprocess
import tempfile
import unittest

import numpy

from cluster import PATIENCE_S, SUMAC, Cluster, answered

ROWS, COLUMNS = 6, 4
PUSHES = (0.5, -0.25, 3)


def page_text(name):
    """What docs/EXPRESSIONS.md says of a built-in function."""
    with open(os.path.join(os.environ["SUMAC_SOURCE"], "docs", "EXPRESSIONS.md"), encoding="utf-8") as page:
        return re.search(rf"^`{name}`:\n\n```\n(.*?)```$", page.read(), re.M | re.S).group(1)


def ask(member, line, answer):
    after = len(member.lines)
    member.say(line)
    member.wait_for(f"^{answer}", after=after)


class Defining(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, workers=1)
        cls.addClassCleanup(cls.cluster.stop)
        cls.member = cls.cluster.member()
        cls.member.wait_for("^joined$")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def sumac(self, command, *arguments, stdin=""):
        """(exit code, standard output, standard error)"""
        def attempt():
            done = subprocess.run([SUMAC, command, "--ps", self.cluster.addresses()[0], *arguments], input=stdin, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S)
            return done.returncode, done.stdout, done.stderr
        return answered(attempt)

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def values(self, name):
        path = os.path.join(self.folder.name, name + ".npy")
        code, _, errors = self.sumac("get", name, "-o", path)
        self.assertEqual(code, 0, errors)
        return numpy.load(path)

    def test_what_one_defines_another_uses_with_the_same_bits(self):
        path = self.file("lion.txt", page_text("lion"))
        code, output, errors = self.sumac("define", "roar", path)
        self.assertEqual((code, errors), (0, ""))
        number = int(re.fullmatch(r"roar is function (\d+)\n", output).group(1))
        self.assertGreaterEqual(number, 64)

        for name, function in (("builtin", "lion"), ("text", "roar")):
            ask(self.member, f"create {name} float32 {ROWS} {COLUMNS} 2 {function}", f"created {name}")
            for value in PUSHES:
                ask(self.member, f"push {name} {value}", "pushed")

        expected = self.values("builtin")
        self.assertTrue((expected != 0).all())
        self.assertEqual(self.values("text").tobytes(), expected.tobytes())
        code, output, errors = self.sumac("ls", "text", "--json")
        self.assertEqual(code, 0, errors)
        function = json.loads(output)["variables"][0]["function"]
        self.assertEqual(function, {"name": "roar", "learning_rate": 1e-4, "beta_1": 0.9, "beta_2": 0.99, "weight_decay": 0})
        self.assertRegex(self.sumac("ls", "text")[1], r"(?m)^text .* roar ")

        self.assertEqual(self.sumac("define", "roar", path), (0, f"roar is function {number}\n", ""))
        code, output, errors = self.sumac("define", "roar", self.file("other.txt", "value = g"))
        self.assertEqual((code, output), (2, ""))
        self.assertIn("roar", errors)

    def test_the_examples_of_its_help_work(self):
        self.file("lion.txt", page_text("lion"))
        said = self.sumac("define", "--help")[1]
        examples = re.findall(r"^  ((?:echo .*\| )?sumac .*)$", said[said.lower().rindex("examples"):], re.M)
        self.assertEqual(len(examples), 3, said)
        config = self.cluster.environment("worker", 0)
        for example in examples:
            with self.subTest(example):
                command = example.replace("127.0.0.1:2222", self.cluster.addresses()[0])
                done = subprocess.run(["sh", "-c", command], cwd=self.folder.name, capture_output=True, text=True, timeout=PATIENCE_S,
                                      env={**os.environ, **config, "PATH": f"{os.path.dirname(SUMAC)}:{os.environ['PATH']}"})
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_text_that_is_none_is_refused_with_its_place(self):
        path = self.file("bad.txt", "hyperparameters: rate = 1\nvalue = value - rat * g\n")
        code, output, errors = self.sumac("define", "bad", path)
        self.assertEqual((code, output), (2, ""))
        self.assertRegex(errors, rf"^{re.escape(path)}:2:17: rat: nothing has this name here; expected .*\n$")
        path = self.file("marked.txt", "\ufeffvalue = rat\n")  # begun with a byte order mark, as some editors do
        self.assertRegex(self.sumac("define", "bad", path)[2], rf"^{re.escape(path)}:1:9: rat: ")
        for text in ("\ufeffvalue = value - g", "value = value - g"):      # the mark is no part of it: both are one function
            code, _, errors = self.sumac("define", "marked", self.file("marked.txt", text))
            self.assertEqual(code, 0, errors)
        code, _, errors = self.sumac("define", "bad", "-", stdin="value = g +")
        self.assertEqual(code, 2)
        self.assertRegex(errors, r"^standard input:1:12: ")
        code, _, errors = self.sumac("define", "bad", "-", stdin="value = g" + " " * 4096)
        self.assertEqual((code, errors), (2, "standard input: the text has more than 4096 bytes, which are the most\n"))
        code, _, errors = self.sumac("define", "sgd", "-", stdin="value = g")
        self.assertEqual(code, 2)
        self.assertIn("sgd is a function that every ps has", errors)
        code, _, errors = self.sumac("define", "bad", path + ".none")
        self.assertEqual(code, 2)
        self.assertIn(f"cannot read {path}.none: No such file or directory", errors)
        self.assertEqual(self.sumac("define", "bad")[0], 2)
        self.assertNotIn("\nbad,", self.sumac("functions")[1])

    def test_the_functions_of_a_run_are_listed_with_their_texts(self):
        text = "hyperparameters: learning_rate = 0.123456789, gain = 2\nslots: m = 0.25, v = gain\n\n" \
               "m = m + g  # a sum\nv = v + m\nvalue = value - learning_rate * v\n"
        code, output, errors = self.sumac("define", "listed", "-", "--json", stdin=text)
        self.assertEqual(code, 0, errors)
        number = json.loads(output)["number"]

        code, output, errors = self.sumac("functions", "listed", "--json")
        self.assertEqual(code, 0, errors)
        function, = json.loads(output)
        self.assertEqual((function["name"], function["number"], function["text"], function["slots"]),
                         ("listed", number, text, ["m", "v"]))
        self.assertEqual(function["hyperparameters"]["gain"], {"default": 2.0, "range": "finite"})
        self.assertIn("float16", function["dtypes"])

        code, output, errors = self.sumac("functions")
        self.assertEqual(code, 0, errors)
        self.assertIn("\nlion\n", output)
        said = output[output.index("\nlisted, function "):]
        self.assertTrue(said.startswith(
            f"\nlisted, function {number} of the run\n  hyperparameters: learning_rate = 0.123456789, gain = 2\n  slots: m = 0.25, v = gain\n\n"
            "  m = m + g  # a sum\n"), said)
        self.assertIn("  slots: m (0.25 at first), v (gain at first)\n", said)
        self.assertIn("  gain: 2 by default, finite\n", said)
        self.assertIn("learning_rate: 0.123456789 by default", said)

        code, _, errors = self.sumac("functions", "liste")
        self.assertEqual(code, 2)
        self.assertIn("did you mean listed?", errors)
        named = subprocess.run([SUMAC, "functions"], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True,
                               env={**os.environ, **self.cluster.environment("worker", 0)})
        self.assertIn("\nlisted, function ", named.stdout)
        done = subprocess.run([SUMAC, "functions"], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                              env={name: value for name, value in os.environ.items() if name != "TF_CONFIG"}, check=True)
        self.assertNotIn("listed", done.stdout)

    def test_a_function_that_is_defined_later_is_found_then(self):
        after = len(self.member.lines)
        self.member.say(f"create late float32 {ROWS} {COLUMNS} 2 later")
        self.member.wait_for("there is no update function later", after=after)
        self.assertEqual(self.sumac("define", "later", "-", stdin="value = value + 3 * g")[0], 0)
        ask(self.member, f"create late float32 {ROWS} {COLUMNS} 2 later", "created late")
        ask(self.member, "push late 2", "pushed")
        self.assertTrue((self.values("late") == 6).all())

    def saved(self, name, array):
        path = os.path.join(self.folder.name, name)
        numpy.save(path, array)
        return path

    def test_any_function_is_applied_from_a_terminal(self):
        ask(self.member, f"create t float32 {ROWS} {COLUMNS} 2 assign_add", "created t")
        value = numpy.arange(ROWS * COLUMNS, dtype=numpy.float32).reshape(ROWS, COLUMNS)
        path = self.saved("t_value.npy", value)

        self.assertEqual(self.sumac("update", "t", "assign", "--value", path), (0, "t is at version 1\n", ""))
        self.assertEqual(self.values("t").tobytes(), value.tobytes())
        code, output, errors = self.sumac("update", "t", "sgd", "--value", path, "--set", "learning_rate=0.5", "--json")
        self.assertEqual((code, errors), (0, ""))
        document = json.loads(output)
        self.assertEqual(document.pop("run")["address"], self.cluster.addresses()[0])
        self.assertEqual(document, {"name": "t", "function": "sgd", "versions": [2, 2]})
        self.assertEqual(self.values("t").tobytes(), (value / 2).tobytes())

        self.assertEqual(self.sumac("define", "fold", "-", stdin="hyperparameters: a = 1, b = 1\nvalue = a * value + b * g")[0], 0)
        code, output, errors = self.sumac("update", "t", "fold", "--value", path, "--set", "a=2", "--set=b=3")
        self.assertEqual((code, output, errors), (0, "t is at version 3\n", ""))
        self.assertEqual(self.values("t").tobytes(), (value * 4).tobytes())

    def test_an_update_that_is_none_is_refused_with_what_is_expected(self):
        ask(self.member, f"create r float32 {ROWS} {COLUMNS} 2 assign_add", "created r")
        right = numpy.ones((ROWS, COLUMNS), numpy.float32)
        good = self.saved("good.npy", right)
        cut = os.path.join(self.folder.name, "cut.npy")
        with open(good, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read()[:-1])
        for arguments, said in (
                ((self.saved("double.npy", right.astype(numpy.float64)),), "has elements of type <f8; expected <f4, which is float32"),
                ((self.saved("wide.npy", right[:4]),), "has shape [4, 4]; expected [6, 4]"),
                ((self.saved("columns.npy", numpy.asfortranarray(right)),), "is in Fortran's order: save numpy.ascontiguousarray of it"),
                ((cut,), "does not end where its 96 bytes of values do"),
                ((self.file("text.npy", "no array"),), "text.npy is no .npy file: write one with numpy.save"),
                ((good + ".none",), f"cannot read {good}.none: No such file or directory"),
                ((good, "--set", "learning_rate"), "--set wants NAME=NUMBER, as learning_rate=0.1, not learning_rate"),
                ((good, "--set", "learning_rate=1x"), "not learning_rate=1x"),
                ((good, "--set", "beta_1=1"), "sgd has no hyperparameter beta_1; it has learning_rate, clip_value")):
            code, output, errors = self.sumac("update", "r", "sgd", "--value", *arguments)
            self.assertEqual((code, output), (2, ""), errors)
            self.assertIn(said, errors)
        code, _, errors = self.sumac("update", "r", "adamm", "--value", good)
        self.assertEqual(code, 2)
        self.assertIn("there is no update function adamm; did you mean adam or adamw?", errors)
        code, _, errors = self.sumac("update", "r", "adam", "--value", good)
        self.assertNotEqual(code, 0)
        self.assertIn("adam", errors)
        self.assertIn("NAME FUNCTION --value FILE", self.sumac("update", "r", "sgd")[2])
        for name, said in (("nothing", "no variable is named nothing; there"), ("R", "no variable is named R; did you mean r?\n"),
                           ("r[0:2]", "no variable is named r[0:2]; did you mean r?\n")):
            code, _, errors = self.sumac("update", name, "sgd", "--value", good)
            self.assertEqual(code, 2)
            self.assertIn(said, errors)
        self.assertTrue((self.values("r") == 0).all())


if __name__ == "__main__":
    unittest.main()
