# SPDX-License-Identifier: Apache-2.0
"""`sumac get`: slices, several names, patterns, where the values go, and who need not answer for it."""
import io
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import numpy

from cluster import GONE, PATIENCE_S, SILENT, SUMAC, Cluster, answered

ROWS, COLUMNS = 6, 4
SMALL = 0.05888345          # a float32 that float64 needs twice the digits for


def ask(member, line, answer):
    after = len(member.lines)
    member.say(line)
    member.wait_for(f"^{answer}", after=after)


class Getting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, workers=1)
        cls.addClassCleanup(cls.cluster.stop)
        cls.member = cls.cluster.member()
        cls.member.wait_for("^joined$")
        for name, rows, shards in (("w", ROWS, 2), ("layer/a", 2, 1), ("layer/b", 3, 1), ("-o", 1, 1),
                                   ("large", 65536, 2)):
            ask(cls.member, f"create {name} float32 {rows} {COLUMNS} {shards} assign_add", f"created {name}")
        ask(cls.member, f"push w {SMALL}", "pushed")
        ask(cls.member, "push layer/b 2", "pushed")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def get(self, *arguments, text=True):
        """(exit code, standard output, standard error)"""
        def attempt():
            done = subprocess.run([SUMAC, "get", "--ps", self.cluster.addresses()[0], *arguments], stdout=subprocess.PIPE, text=text,
                                  stderr=subprocess.PIPE, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout, done.stderr if text else done.stderr.decode()
        return answered(attempt)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_rows_are_given_as_in_python(self):
        for word, rows in (("w[0:4]", 4), ("w[-2:]", 2), ("w[:1]", 1), ("w[:]", 6)):
            code, output, errors = self.get(word)
            self.assertEqual(code, 0, errors)
            self.assertTrue(output.startswith(f"w  float32  [{rows}, {COLUMNS}]\n[["), output)

    def test_rows_by_number_come_in_their_order(self):
        rows = numpy.arange(12, dtype=numpy.float32).reshape(6, 2)
        rows.tofile(self.path("rows"))
        ask(self.member, "make table float32 6,2 2 assign_add", "made")
        ask(self.member, f"put table float32 6,2 {self.path('rows')}", "put")
        code, output, errors = self.get("table", "w", "--rows", "5,0,-2,5", "--json")
        self.assertEqual(code, 0, errors)
        table, w = json.loads(output)
        self.assertEqual(table["values"], rows[[5, 0, -2, 5]].tolist())
        self.assertEqual(w["shape"], [4, COLUMNS])
        code, output, errors = self.get("table", "layer/b", "--rows", "-1", "--json")       # of six rows and of three
        self.assertEqual(code, 0, errors)
        self.assertEqual([json.loads(output)[0]["values"], json.loads(output)[1]["shape"]], [rows[[5]].tolist(), [1, COLUMNS]])
        code, _, errors = self.get("large", "w", "--rows", "3,1", "-o", self.path("rows.npz"))
        self.assertEqual(code, 0, errors)
        arrays = numpy.load(self.path("rows.npz"))
        numpy.testing.assert_array_equal(arrays["w"], numpy.full((2, COLUMNS), SMALL, numpy.float32))
        self.assertEqual(arrays["large"].shape, (2, COLUMNS))

    def test_rows_by_number_that_are_none_are_named(self):
        for rows, said in (("1,6", "row 6 of w: it has 6 rows, from 0 to 5"), ("-7", "row -7 of w"), ("1,,2", "not ,2"), ("", "not "),
                           ("1,x", "not x")):
            code, output, errors = self.get("w", "--rows", rows)
            self.assertEqual((code, output), (2, ""), errors)
            self.assertIn(said, errors)
        for arguments, said in ((("w[0:4]", "--rows", "1"), "give them once"), (("w", "--slice", "0:2", "--rows", "1"), "both say which rows")):
            code, _, errors = self.get(*arguments)
            self.assertEqual(code, 2)
            self.assertIn(said, errors)

    def test_rows_that_are_none_are_named(self):
        for word, said in (("w[4:4]", "the slice 4:4 of w has no rows; the variable has 6"), ("w[a:b]", "not a:b"), ("w[0:1:2]", "not 0:1:2")):
            code, output, errors = self.get(word)
            self.assertEqual((code, output), (2, ""))
            self.assertIn(said, errors)

    def test_rows_given_twice_are_refused(self):
        code, _, errors = self.get("w[0:4]", "--slice", "0:2")
        self.assertEqual(code, 2)
        self.assertIn("give them once", errors)

    def test_several_are_printed_one_below_another(self):
        code, output, errors = self.get("w[0:1]", "layer/*")
        self.assertEqual(code, 0, errors)
        self.assertEqual([line for line in output.splitlines() if "float32" in line],
                         ["w  float32  [1, 4]", "layer/a  float32  [2, 4]", "layer/b  float32  [3, 4]"])
        self.assertEqual([output.startswith("w"), output.count("]]\n\nlayer/")], [True, 2])      # a blank line between two

    def test_several_as_json_are_an_array(self):
        code, output, errors = self.get("w[4:6]", "layer/a", "--json")
        self.assertEqual(code, 0, errors)
        first, second = json.loads(output)
        self.assertEqual((first["name"], first["first_row"], first["shape"]), ("w", 4, [2, COLUMNS]))
        self.assertEqual((second["name"], second["values"]), ("layer/a", [[0.0] * COLUMNS] * 2))
        self.assertNotIn("first_row", second)
        code, output, errors = self.get("layer/a*", "--json")       # it might have been several
        self.assertEqual(([one["name"] for one in json.loads(output)], code), (["layer/a"], 0), errors)

    def test_json_has_the_digits_that_a_float32_needs(self):
        code, output, _ = self.get("w[0:1]", "--json")
        self.assertEqual(code, 0)
        self.assertEqual(output.count("0.05888345"), COLUMNS)
        self.assertNotIn("0.0588834509", output)
        self.assertEqual(numpy.float32(json.loads(output)["values"][0][0]), numpy.float32(SMALL))

    def test_several_go_into_one_file(self):
        code, output, errors = self.get("w", "w[0:2]", "layer/*", "-o", self.path("some.npz"))
        self.assertEqual((code, output), (0, ""), errors)
        with numpy.load(self.path("some.npz")) as arrays:
            self.assertEqual(sorted(arrays.files), ["layer/a", "layer/b", "w", "w[0:2]"])
            self.assertEqual(arrays["w"].shape, (ROWS, COLUMNS))
            self.assertTrue((arrays["w[0:2]"] == numpy.float32(SMALL)).all())
            self.assertTrue((arrays["layer/b"] == 2).all())
        self.assertEqual([name for name in os.listdir(self.folder.name) if "tmp" in name], [])

    def test_one_may_be_in_an_archive_too(self):
        self.assertEqual(self.get("layer/b", "-o", self.path("one.npz"))[0], 0)
        with numpy.load(self.path("one.npz")) as arrays:
            self.assertEqual(arrays["layer/b"].shape, (3, COLUMNS))

    def test_a_file_that_is_replaced_keeps_who_may_read_it(self):
        path = self.path("private.npy")
        for mode in (0o600, 0o640):
            with open(path, "wb"):
                os.chmod(path, mode)
            self.assertEqual(self.get("w", "-o", path)[0], 0)
            self.assertEqual(os.stat(path).st_mode & 0o777, mode)

    def test_several_are_no_npy_file(self):
        code, _, errors = self.get("w", "layer/a", "-o", self.path("x.npy"))
        self.assertEqual(code, 2)
        self.assertIn(f"call it {self.path('x.npz')}\n", errors)
        self.assertFalse(os.path.exists(self.path("x.npy")))

    def test_another_ending_than_numpys_is_refused(self):
        for name in ("x.txt", "w.npy.gz"):
            code, output, errors = self.get("w", "-o", self.path(name))
            self.assertEqual((code, output), (2, ""))
            self.assertIn(f"--output writes a NumPy file: let the name {self.path(name)} end with .npy\n", errors)
            self.assertFalse(os.path.exists(self.path(name)))
        os.mkdir(self.path("a.folder"))
        for name in ("plain", ".hidden", "a.folder/plain"):
            self.assertEqual(self.get("w", "-o", self.path(name))[0], 0)
            self.assertEqual(numpy.load(self.path(name)).shape, (ROWS, COLUMNS))

    def test_a_dash_is_standard_output(self):
        code, output, errors = self.get("w", "-o", "-", text=False)
        self.assertEqual(code, 0, errors)
        self.assertEqual(numpy.load(io.BytesIO(output)).shape, (ROWS, COLUMNS))
        code, output, errors = self.get("w", "layer/b", "-o", "-", text=False)
        self.assertEqual(code, 0, errors)
        with numpy.load(io.BytesIO(output)) as arrays:
            self.assertTrue((arrays["layer/b"] == 2).all())
        self.assertFalse(os.path.exists("-"))

    def test_a_file_and_json_contradict_each_other(self):
        code, _, errors = self.get("w", "-o", self.path("w.npy"), "--json")
        self.assertEqual(code, 2)
        self.assertIn("leave one of them out", errors)
        self.assertFalse(os.path.exists(self.path("w.npy")))

    def test_a_name_beside_others_that_is_unknown_is_named_and_no_file_is_left(self):
        code, _, errors = self.get("w", "nope", "-o", self.path("never.npz"))
        self.assertEqual(code, 2)
        self.assertIn("nope", errors)
        self.assertFalse(os.path.exists(self.path("never.npz")))

    def test_a_number_in_brackets_is_answered_with_the_rows_that_are_meant(self):
        for word, meant in (("w[3]", "w[3:4]"), ("w[-1]", "w[-1:]"), ("w[-2]", "w[-2:-1]"), ("w[1,2]", "w[0:4]"), ("w[a]", "w[0:4]"),
                            (f"w[{2**63 - 1}]", "w[0:4]"),
                            ("w[0:1", "w[0:4]"), ("w[3", "w[0:4]"), ("w[", "w[0:4]")):
            code, _, errors = self.get(word)
            self.assertEqual(code, 2)
            self.assertIn(f"no variable is named {word}; rows are given as FIRST:END, such as {meant}\n", errors)

    def test_rows_apart_from_their_variable_are_answered_with_how_they_are_given(self):
        for words, meant in ((["w", "0:4"], "0:4; its rows are w[0:4]"), (["0:4", "w"], "0:4; its rows are w[0:4]"),
                             (["w", "[1:]"], "[1:]; its rows are w[1:]"), (["w", "3,1"], "3,1; its rows are w --rows 3,1"),
                             (["w", "3"], "3; its rows are w --rows 3"), (["0:4"], "0:4; its rows are NAME[0:4]")):
            code, _, errors = self.get(*words)
            self.assertEqual((code, errors), (2, f"sumac get: no variable is named {meant}\n"))
        for words, meant in ((["w", "--rows", "0:4"], "not 0:4; --slice FIRST:END is a range\n"),
                             (["w", "--slice", "3,1"], "not 3,1; --rows I,J has single rows of the first axis\n")):
            code, _, errors = self.get(*words)
            self.assertEqual((code, errors[-len(meant):]), (2, meant))

    def test_a_name_that_is_nearly_one_is_corrected(self):
        for words, said in ((["W"], "no variable is named W; did you mean w?"), (["w", "layer/c"], "did you mean layer/a or layer/b?"),
                            (["lrge[0:2]"], "no variable is named lrge; did you mean large?"),
                            (["zebra"], "no variable is named zebra; there are 5 others: `sumac ls` lists them"),
                            (["nope"], "no variable is named nope; there are 5 others"),
                            ([""], "an empty name names no variable; `sumac ls` lists those that there are\n"),
                            (["w/part_0"], "w/part_0 is a shard of w: get w, or ls w --shards\n"),
                            (["layer/a/part_12"], "layer/a/part_12 is a shard of layer/a: get layer/a, or ls layer/a --shards\n"),
                            (["v/part_0"], "no variable is named v/part_0"), (["w/part_x"], "no variable is named w/part_x"),
                            (["nothing/*"], "no variable matches nothing/*; there are")):
            code, _, errors = self.get(*words)
            self.assertEqual(code, 2)
            self.assertIn(said, errors)

    def test_two_dashes_end_the_options(self):
        code, output, errors = self.get("-o", "-", "--", "-o", text=False)
        self.assertEqual(code, 0, errors)
        self.assertEqual(numpy.load(io.BytesIO(output)).shape, (1, COLUMNS))
        code, _, errors = self.get("-x")
        self.assertEqual(code, 2)
        self.assertIn("unknown option -x; `sumac get --help` lists them; a name that begins with - goes behind --", errors)

    def test_an_output_that_is_closed_fails(self):
        """Neither is it a reason to try again, nor does what is opened later get what is printed."""
        for arguments in (["w"], ["w", "-o", "-"], ["w", "--json"], ["layer/*"]):
            code, errors = answered(lambda of=arguments: self.get_into_nothing(*of))
            self.assertEqual(code, 1, errors)
            self.assertIn("standard output", errors)

    def get_into_nothing(self, *arguments):
        done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", SUMAC, "get", *arguments, "--ps", self.cluster.addresses()[0]],
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stderr


class OneVariable(unittest.TestCase):
    def test_one_other_is_one(self):
        cluster = Cluster(ps=1, workers=1)
        self.addCleanup(cluster.stop)
        member = cluster.member()
        member.wait_for("^joined$")
        ask(member, "create w float32 1 1 1 assign_add", "created w")
        for arguments, code, said in (
                (("get", "zebra"), 2, "no variable is named zebra; there is 1 other: `sumac ls` lists it\n"),
                (("get", "w", "--rows", "1"), 2, "row 1 of w: it has 1 row, from 0 to 0\n"),
                (("ls",), 0, "1 variable, 1 element, 4 bytes\n")):
            done = subprocess.run([SUMAC, *arguments, "--ps", cluster.addresses()[0]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout[-len(said):]), (code, said))


class OnePsAway(unittest.TestCase):
    """What lies on the ps that answers is read; one of two is gone, or stands still."""

    def setUp(self):
        self.cluster = Cluster(ps=2, workers=1)
        self.addCleanup(self.cluster.stop)
        member = self.cluster.member()
        member.wait_for("^joined$")
        self.names = {}
        for name in ("one", "two", "three", "four"):
            ask(member, f"create {name} float32 2 2 1 assign_add", f"created {name}")
        ask(member, "create both float32 4 2 2 assign_add", "created both")
        listed = json.loads(self.cluster.sumac("ls", "--json")[1])
        self.on = {ps: [variable["name"] for variable in listed["variables"] if {shard["ps"] for shard in variable["shards"]} == {ps}]
                   for ps in (0, 1)}
        (both,) = [variable for variable in listed["variables"] if variable["name"] == "both"]
        self.rows_on = {shard["ps"]: f"both[{shard['first_row']}:{shard['first_row'] + shard['rows']}]" for shard in both["shards"]}

    def sumac(self, *arguments, ps):
        """(exit code, standard output, standard error), when that ps has answered."""
        address = self.cluster.addresses()[ps]

        def attempt():
            done = subprocess.run([SUMAC, *arguments, "--ps", address], capture_output=True, text=True, timeout=PATIENCE_S,
                                  stdin=subprocess.DEVNULL)
            return done.returncode, done.stdout, done.stderr
        return answered(attempt, by=address)

    def check(self, away, silence):
        there = 1 - away
        for word in (self.on[there][0], self.rows_on[there]):
            code, _, errors = self.sumac("get", word, ps=there)
            self.assertEqual((code, errors), (0, ""))
        code, output, errors = self.sumac("get", self.rows_on[there], self.on[away][0], ps=there)
        self.assertEqual((code, len(errors.splitlines())), (138, 1), errors)
        self.assertIn("both  float32  [2, 2]\n", output)
        code, output, errors = self.sumac("get", self.on[there][0], self.on[away][0], ps=there)
        self.assertEqual(code, 138, errors)
        self.assertIn(f"{self.on[there][0]}  float32", output)
        self.assertRegex(errors, f"{self.on[away][0]} is held by ps {away} at {self.cluster.addresses()[away]}: {silence}")
        code, output, _ = self.sumac("ls", self.on[away][0], self.on[there][0], ps=there)
        self.assertEqual((code, [re.split("  +", line)[5] for line in output.splitlines()[1:3]]), (138, ["-", "0"]))     # the versions
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = self.sumac("get", "*", "-o", os.path.join(folder, "all.npz"), ps=there)
            self.assertEqual(code, 138, errors)
            self.assertEqual(os.listdir(folder), [])

    def test_ps_1_is_gone(self):
        self.cluster.ps[1].kill()
        self.check(1, GONE)

    def test_ps_0_is_gone(self):
        self.cluster.ps[0].kill()
        self.check(0, GONE)

    def test_ps_1_stands_still(self):
        self.cluster.ps[1].signal(signal.SIGSTOP)
        self.check(1, SILENT)


class Interrupted(unittest.TestCase):
    def test_control_c_leaves_nothing_behind(self):
        """In the middle of the pull; one whose file is whole before it hears of that is tried again."""
        with Cluster(ps=1, workers=1) as cluster, tempfile.TemporaryDirectory() as folder:
            member = cluster.member()
            member.wait_for("^joined$")
            ask(member, "create w float32 1000000 64 1 assign_add", "created w")
            for _ in range(20):
                code, errors = self.interrupt(cluster, folder)
                if os.listdir(folder) != ["w.npy"]:
                    break
                os.remove(os.path.join(folder, "w.npy"))
            self.assertEqual(code, -signal.SIGINT, errors)
            self.assertEqual(os.listdir(folder), [])

    @staticmethod
    def interrupt(cluster, folder):
        """A `get` that is interrupted when something of its file is there: its exit code, and what it said. It takes interrupts even where
        whoever runs the tests ignores them."""
        done = subprocess.Popen(["env", "--default-signal=INT", SUMAC, "get", "w", "-o", os.path.join(folder, "w.npy"),
                                 "--ps", cluster.addresses()[0]], stderr=subprocess.PIPE, text=True)
        while not os.listdir(folder) and done.poll() is None:
            pass
        done.send_signal(signal.SIGINT)
        _, errors = done.communicate(timeout=PATIENCE_S)
        return done.returncode, errors


if __name__ == "__main__":
    unittest.main()
