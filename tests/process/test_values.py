# SPDX-License-Identifier: Apache-2.0
"""Every dtype, every rank, no rows at all: the bytes that come back are those that NumPy computes, by the C client and by
`sumac get`. And bad input through the C client: an error that names the thing, and nothing is applied."""
import os
import tempfile
import unittest

import numpy

from cluster import Cluster

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64")
MIB = 1 << 20


class Talk(unittest.TestCase):
    """A cluster, its one member, and a folder for values."""
    ps_count = 2
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.cluster = Cluster(ps=cls.ps_count, options=cls.options)
        cls.addClassCleanup(cls.cluster.stop)
        cls.member = cls.cluster.member()
        cls.member.wait_for("^joined$")

    def ask(self, line, answer):
        before = len(self.member.lines)
        self.member.say(line)
        return self.member.wait_for(f"^(?:{answer})", after=before)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def make(self, name, dtype, shape, shards=2, function="assign"):
        self.ask(f"make {name} {dtype} {self.shape_text(shape)} {shards} {function}", "made")

    @staticmethod
    def shape_text(shape):
        return ",".join(str(extent) for extent in shape) or "-"

    def put(self, name, values, more="", dtype=None, answer="put"):
        values.tofile(self.path(name))
        return self.ask(f"put {name} {dtype or values.dtype} {self.shape_text(values.shape)} {self.path(name)} {more}", answer)

    def fetch(self, name, numpy_type, shape):
        self.ask(f"fetch {name} {self.path(name)}", "fetched")
        return numpy.fromfile(self.path(name), numpy_type).reshape(shape)

    def file_of(self, name):
        """What `sumac get -o` writes, as NumPy reads it."""
        path = self.path(f"{name}.npy")
        code, text = self.cluster.sumac("get", name, "-o", path)
        self.assertEqual(code, 0, text)
        return numpy.load(path)


class Values(Talk):
    ps_count = 3

    def test_a_client_reads_what_the_update_function_keeps(self):
        gradient = numpy.arange(1, 36, dtype=numpy.float32).reshape(7, 5)
        self.make("kept", "float32", (7, 5), 3, "momentum,learning_rate=1,momentum=0.5")
        self.make("half", "float16", (7, 5), 3, "momentum,learning_rate=1,momentum=0.5")
        for _ in range(2):
            self.put("kept", gradient)
            self.put("half", gradient.astype(numpy.float16))
        for name in ("kept", "half"):
            self.ask(f"fetch {name} {self.path('slot')} momentum", "fetched")
            slot = numpy.fromfile(self.path("slot"), numpy.float32).reshape(7, 5)
            self.assertTrue((slot == 1.5 * gradient).all(), slot)
        self.ask(f"fetch kept {self.path('slot')} m", "refused INVALID_ARGUMENT MISSING_SLOTS .*slot m of kept.*momentum")
        self.ask("make bare float32 4 2 rmsprop,momentum=0.5", "made")
        self.ask(f"fetch bare {self.path('slot')} mean_gradient", "refused INVALID_ARGUMENT MISSING_SLOTS .*slot 2 of variable bare, which has 2")

    def test_slots_of_many_blocks_arrive_whole(self):
        gradient = numpy.arange(3 * 500_000, dtype=numpy.float32).reshape(3, 500_000)
        self.make("wide", "float32", (3, 500_000), 2, "adam")
        self.put("wide", gradient)
        self.ask(f"fetch wide {self.path('slot')} m", "fetched")
        slot = numpy.fromfile(self.path("slot"), numpy.float32).reshape(3, 500_000)
        numpy.testing.assert_allclose(slot, gradient / 10, rtol=1e-6)

    def test_a_client_describes_and_lists_variables(self):
        self.make("told", "float32", (7, 5), 3, "adam,learning_rate=0.5,schedule=constant,warmup_steps=5,warmup_target=1")
        self.put("told", numpy.ones((7, 5), numpy.float32))
        self.ask("facts told", r"facts 1 1 adam learning_rate=0\.5 beta_1=0\.9 .*slot:m slot:v scheduled$")
        self.ask("set told adam,learning_rate=0.25", "set")
        self.ask("facts told", r"facts 2 2 adam learning_rate=0\.25 beta_1=0\.9 .*slot:m slot:v$")
        listed = self.ask("list", r"list (\d+) (\d+) (.*)")
        self.assertEqual(listed.group(1), listed.group(2))
        self.assertIn("told", listed.group(3).split())
        self.assertEqual(len(listed.group(3).split()), int(listed.group(1)))
        self.make("brief", "float32", (2,), 1)
        self.ask("delete brief", "deleted")
        self.ask("facts brief", "refused NOT_FOUND")

    def there_and_back(self, name, dtype, shape, shards):
        numpy_type = numpy.dtype({"bfloat16": "uint16"}.get(dtype, dtype))
        random = numpy.random.default_rng(7)
        # Any bit pattern is a value to assign; of floats, the finite ones.
        values = random.integers(0, 2 if dtype == "bool" else 100, shape).astype(numpy_type)
        self.make(name, dtype, shape, shards)
        self.put(name, values, dtype=dtype)
        found = self.fetch(name, numpy_type, shape)
        self.assertEqual(found.tobytes(), values.tobytes())
        filed = self.file_of(name)
        self.assertEqual((filed.dtype, filed.shape, filed.tobytes()), (numpy_type, tuple(shape), values.tobytes()))

    def test_every_dtype_over_three_ps(self):
        for dtype in DTYPES:
            with self.subTest(dtype):
                self.there_and_back(f"of_{dtype}", dtype, (7, 5), 3)

    def test_every_rank(self):
        for rank in range(9):
            with self.subTest(rank):
                self.there_and_back(f"rank_{rank}", "int16", (3, 2, 1, 2, 3, 1, 2, 2)[:rank], 3 if rank else 1)

    def test_variables_without_elements(self):
        for name, shape in (("no_rows", (0, 4)), ("no_columns", (4, 0)), ("nothing", (0,))):
            with self.subTest(name):
                self.there_and_back(name, "float32", shape, 2)

    def test_additions_over_three_ps_are_numpys(self):
        values = numpy.arange(35, dtype=numpy.int32).reshape(7, 5)
        self.make("sum", "int32", (7, 5), 3, "assign_add")
        for _ in range(3):
            self.put("sum", values)
        self.put("sum", values, "assign_sub")
        self.assertTrue((self.fetch("sum", numpy.int32, (7, 5)) == 2 * values).all())

    def test_rows_that_are_pushed_over_all_ps_leave_the_others_alone(self):
        values = numpy.arange(20, dtype=numpy.int32).reshape(4, 5) + 1
        self.make("rows", "int32", (9, 5), 3, "assign_add")
        self.put("rows", values, "- - 2")
        expected = numpy.zeros((9, 5), numpy.int32)
        expected[2:6] = values
        self.assertTrue((self.fetch("rows", numpy.int32, (9, 5)) == expected).all())

    def test_a_deleted_variable_is_gone_and_its_name_is_free(self):
        self.make("short", "int32", (6, 2), 3)
        self.put("short", numpy.ones((6, 2), numpy.int32))
        self.ask("delete short", "deleted")
        self.assertEqual(self.cluster.sumac("ls", "short")[0], 2)
        self.put("short", numpy.ones((6, 2), numpy.int32), answer="refused NOT_FOUND")
        self.ask("delete short", "refused NOT_FOUND UNKNOWN_VARIABLE .*short")
        self.make("short", "float64", (3,), 3)
        self.assertFalse(self.fetch("short", numpy.float64, (3,)).any())

    def test_the_creator_assigns_the_first_value_and_nobody_after_it(self):
        values = numpy.arange(35, dtype=numpy.float64).reshape(7, 5)
        for given in (values, values + 1):      # the second create finds it
            given.tofile(self.path("given"))
            self.ask(f"make given float64 7,5 3 assign_add {self.path('given')}", "made")
            self.assertTrue((self.fetch("given", numpy.float64, (7, 5)) == values).all())

    def test_a_scalar_is_printed_and_has_no_slice(self):
        self.make("scalar", "float32", (), 1)
        self.put("scalar", numpy.array(2.5, numpy.float32))
        code, text = self.cluster.sumac("get", "scalar")
        self.assertEqual((code, text), (0, "scalar  float32  []\n2.5"))
        code, text = self.cluster.sumac("get", "scalar", "--slice", "0:1")
        self.assertEqual(code, 2)
        self.assertIn("scalar", text)


class Refused(Talk):
    """Bad input through the C client."""
    options = ("--staging-max", "4M", "--sessions-max", "4")    # a pool of 2 MiB

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for line in ("make w float32 4,2 2 sgd,learning_rate=1", "make wide float32 2,524288 2 assign_add"):
            before = len(cls.member.lines)
            cls.member.say(line)
            cls.member.wait_for("^made$", after=before)

    def tearDown(self):
        """Whatever was refused, nothing of it is there; and what is right is still taken."""
        ones = numpy.ones((4, 2), numpy.float32)
        before = self.fetch("w", numpy.float32, (4, 2))
        self.assertEqual(len(set(before.ravel())), 1)
        self.put("w", ones)
        self.assertTrue((self.fetch("w", numpy.float32, (4, 2)) == before - 1).all())

    def refused(self, values, status, reason, *mentions, more="", name="w", dtype=None):
        before = self.fetch("w", numpy.float32, (4, 2))
        answer = self.put(name, values, more, dtype, rf"refused {status} {reason} (.*)")
        for mention in mentions:
            self.assertRegex(answer.group(1), mention)
        self.assertTrue((self.fetch("w", numpy.float32, (4, 2)) == before).all())

    def test_another_dtype_is_named(self):
        self.refused(numpy.ones((4, 2), numpy.float64), "INVALID_ARGUMENT", "WRONG_DATA_TYPE", r"\bw\b", "float32", "float64")

    def test_another_shape_is_named(self):
        self.refused(numpy.ones((2, 4), numpy.float32), "INVALID_ARGUMENT", "WRONG_SHAPE", r"\bw\b", r"\[4, 2\]", r"\[2, 4\]")

    def test_an_unknown_variable_is_named(self):
        self.refused(numpy.ones(2, numpy.float32), "NOT_FOUND", "UNKNOWN_VARIABLE", "nobody", name="nobody")

    def test_an_unknown_function_is_named(self):
        self.refused(numpy.ones((4, 2), numpy.float32), "INVALID_ARGUMENT", "UNKNOWN_FUNCTION", "lamb", "sgd", more="lamb")

    def test_an_unknown_hyperparameter_is_named(self):
        self.refused(numpy.ones((4, 2), numpy.float32), "INVALID_ARGUMENT", "BAD_HYPERPARAMETER", "warmth",
                     more="sgd,warmth=2")

    def test_a_hyperparameter_out_of_range_is_named(self):
        self.refused(numpy.ones((4, 2), numpy.float32), "INVALID_ARGUMENT", "BAD_HYPERPARAMETER", "learning_rate of sgd is -1",
                     more="sgd,learning_rate=-1")

    def test_slots_that_the_variable_lacks_are_named(self):
        self.refused(numpy.ones((4, 2), numpy.float32), r"\w+", "MISSING_SLOTS", r"\bw\b", "adam",
                     "sgd", more="adam")

    def test_a_value_that_is_not_finite_is_on_neither_ps(self):
        for row, value in ((0, numpy.nan), (3, numpy.inf), (3, -numpy.inf)):      # the first ps's, and the second's
            values = numpy.ones((4, 2), numpy.float32)
            values[row, 1] = value
            self.refused(values, "INVALID_ARGUMENT", "NON_FINITE", r"\bw\b", "worker 0")

    def test_an_option_allows_what_is_not_finite(self):
        values = numpy.ones((4, 2), numpy.float32)
        values[3, 1] = numpy.inf
        self.make("free", "float32", (4, 2), 2, "assign_add")
        self.put("free", values, "- any")
        self.assertTrue((self.fetch("free", numpy.float32, (4, 2)) == values).all())

    def test_a_part_above_the_pool_names_both_figures_and_is_on_no_ps(self):
        self.refused(numpy.ones((2, 524288), numpy.float32), "RESOURCE_EXHAUSTED", "PART_TOO_LARGE", r"2229440 bytes of staging",
                     f"a part may take {2 * MIB}", name="wide")
        self.assertFalse(self.fetch("wide", numpy.float32, (2, 524288)).any())

    def test_a_create_of_what_is_too_large_for_one_push_says_so_once_and_what_to_set(self):
        self.put("w", numpy.ones((4, 2), numpy.float32))        # both ps have said their grants
        before = len(self.member.lines)
        for _ in range(2):
            self.make("broad", "float32", (2, 524288), 2, "assign_add")
        said = [line for line in self.member.lines[before:] if "pushed whole" in line]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], r"broad pushed whole takes 2\.13 MiB of staging on ps 0, where the largest part takes 2\.00 MiB: "
                                  r".*--staging-max 6M$")

    def test_a_variable_larger_than_the_memory_is_named_and_leaves_nothing(self):
        for columns in (10**12, 10**15, 10**18):       # on each ps 4 TB, 4 PB, and 4 EB
            answer = self.ask(f"make huge float32 2,{columns} 2 assign", "refused RESOURCE_EXHAUSTED OUT_OF_MEMORY (.*)")
            self.assertRegex(answer.group(1), rf"variable huge: ps \d has room for \d+ bytes.* {4 * columns}")
        code, text = self.cluster.sumac("ls")
        self.assertEqual(code, 0)
        self.assertNotIn("huge", text)
        self.make("huge", "float32", (2, 2))        # the name is free
        self.ask("fetch huge " + self.path("huge"), "fetched")

    def test_a_create_that_differs_names_the_field(self):
        for definition, field in (("float64 4,2 2 sgd,learning_rate=1", "data_type"), ("float32 4,3 2 sgd,learning_rate=1", "shape"),
                                  ("float32 4,2 2 sgd,learning_rate=2", "learning_rate"), ("float32 4,2 2 adam", "function"),
                                  ("float32 4,2 1 sgd,learning_rate=1", "partitioner")):
            answer = self.ask(f"make w {definition}", "refused ALREADY_EXISTS ALREADY_EXISTS (.*)")
            self.assertIn(field, answer.group(1))
            self.assertRegex(answer.group(1), r"\bw\b")

    def test_names_and_shapes_that_are_none(self):
        for line, mention in (("make w/part_1 float32 2 1 assign", "w/part_1"), (f"make {'x' * 1025} float32 2 1 assign", "1024"),
                              ("make x float32 4294967296,4294967296 1 assign", "shape"), ("make x quaternion 2 1 assign", "dtype|type"),
                              ("make x float32 2 1 lamb", "lamb"), ("make x int32 2 1 adam", "adam.*int32|int32.*adam")):
            answer = self.ask(line, "refused INVALID_ARGUMENT [A-Z_]+ (.*)")
            self.assertRegex(answer.group(1), mention)


if __name__ == "__main__":
    unittest.main()
