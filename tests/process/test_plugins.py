# SPDX-License-Identifier: Apache-2.0
"""Update functions of plug-ins: built outside of Sumac's tree, loaded by every ps, used by their names; and what is refused."""
import json
import os
import subprocess
import tempfile
import unittest

import numpy

from cluster import BUILD, PATIENCE_S, SUMAC, Cluster, answered
from test_values import Talk

SHAPE = (6, 4)
RATE, BETA, LAMBDA = (numpy.float32(number) for number in (0.25, 0.75, 0.5))

# A plug-in of one function; what a test wants otherwise comes behind the usual, as -D.
ONE = """
#include <sumac/plugin.h>
#ifndef NAME
#define NAME "mine"
#endif
#ifndef VERSION
#define VERSION "1.0"
#endif
#ifndef ABI
#define ABI SUMAC_PLUGIN_ABI_VERSION
#endif
#ifndef FUNCTION
#define FUNCTION "twice"
#endif
#ifndef DEFAULT
#define DEFAULT 2
#endif
#ifndef LOOP
#define LOOP loop
#endif
#ifndef COUNT
#define COUNT 1
#endif
static inline void loop(const struct sumac_plugin_tile *tile)
{
    for (uint64_t i = 0; i < tile->count; i++)
        ((int32_t *)tile->value_out)[i] =
            ((const int32_t *)tile->value_in)[i] + (int32_t)tile->hyperparameters[0] * ((const int32_t *)tile->gradient)[i];
}
static const struct sumac_plugin_hyperparameter takes[] = {
    {.name = "factor", .default_value = DEFAULT, .least = -9, .most = 9, .flags = SUMAC_PLUGIN_WHOLE}};
static const struct sumac_plugin_function functions[] = {
    {.name = FUNCTION, .rule = "twice as much", .hyperparameters = takes, .hyperparameter_count = COUNT,
     .dtypes = SUMAC_PLUGIN_DTYPE(SUMAC_INT32), .loop = LOOP}};
SUMAC_PLUGIN_EXPORT const struct sumac_plugin sumac_plugin = {
    .abi_version = ABI, .function_count = 1, .name = NAME, .version = VERSION, .functions = functions};
"""


def done(*command, **options):
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240, **options)
    if finished.returncode != 0:
        raise AssertionError(f"{' '.join(command)} exited {finished.returncode}:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


class Installed:
    """An installed Sumac, and plug-ins that are built against it."""

    def __init__(self, folder):
        self.folder = folder
        self.prefix = os.path.join(folder, "usr")
        done("cmake", "--install", BUILD, "--prefix", self.prefix)
        pc, = (path for path, _, files in os.walk(self.prefix) if "sumac.pc" in files)
        self.flags = done("pkg-config", "--cflags", "sumac", env={**os.environ, "PKG_CONFIG_PATH": pc}).split()
        self.example = os.path.join(self.prefix, "share/sumac/examples/plugin")

    def with_cmake(self):
        build = os.path.join(self.folder, "build")
        done("cmake", "-G", "Ninja", "-S", self.example, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        done("cmake", "--build", build)
        return os.path.join(build, "libproximal.so")

    def compile(self, name, source, *flags):
        """The line of the example's first comment."""
        library = os.path.join(self.folder, name)
        done("cc", "-O3", "-ffp-contract=off", "-fPIC", "-shared", "-o", library, source, *flags, *self.flags)
        return library

    def one(self, name, *flags):
        source = os.path.join(self.folder, "one.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(ONE)
        return self.compile(name, source, *flags)


class Using(Talk):
    @classmethod
    def setUpClass(cls):
        built = tempfile.TemporaryDirectory()
        cls.addClassCleanup(built.cleanup)
        installed = Installed(built.name)
        cls.proximal = installed.with_cmake()
        cls.by_hand = installed.compile("libby_hand.so", os.path.join(installed.example, "proximal.c"))
        cls.options = ("--plugin", cls.proximal, "--plugin", installed.one("libone.so"))
        super().setUpClass()

    def sumac(self, command, *arguments):
        """(exit code, standard output, standard error)"""
        def attempt():
            ended = subprocess.run([SUMAC, command, "--ps", self.cluster.addresses()[0], *arguments], text=True, timeout=PATIENCE_S,
                                   capture_output=True, check=False)
            return ended.returncode, ended.stdout, ended.stderr
        return answered(attempt)

    def drawn(self, seed, dtype="float32"):
        return numpy.random.default_rng(seed).normal(size=SHAPE).astype(dtype)

    def test_values_are_those_of_the_formula(self):
        for dtype in ("float32", "float64", "float16"):
            kind = numpy.dtype("float32" if dtype == "float16" else dtype).type
            first, gradients = self.drawn(1, dtype), [self.drawn(seed, dtype) for seed in (2, 3, 4)]
            for name, function in (("signum", f"signum,learning_rate={RATE},beta={BETA}"),
                                   ("proximal", f"proximal_sgd,learning_rate={RATE},lambda={LAMBDA}")):
                variable = f"{name}_{dtype}"
                self.make(variable, dtype, SHAPE, 2, function)
                self.put(variable, first, "assign")
                for gradient in gradients:
                    self.put(variable, gradient)
                value, slot = first.astype(kind), numpy.zeros(SHAPE, kind)
                for gradient in (gradient.astype(kind) for gradient in gradients):
                    if name == "signum":
                        slot = kind(BETA) * slot + (kind(1) - kind(BETA)) * gradient
                        value = value - kind(RATE) * numpy.sign(slot)
                    else:
                        stepped = value - kind(RATE) * gradient
                        left = numpy.abs(stepped) - kind(RATE) * kind(LAMBDA)
                        value = numpy.where(left > 0, numpy.copysign(left, stepped), kind(0))
                    value = value.astype(dtype).astype(kind)
                found = self.fetch(variable, numpy.dtype(dtype), SHAPE)
                self.assertEqual(found.tobytes(), value.astype(dtype).tobytes(), variable)

    def test_a_push_may_name_one_and_a_schedule_moves_its_rate(self):
        self.make("w", "float32", SHAPE, 2, "assign_add")
        self.put("w", numpy.ones(SHAPE, numpy.float32), "proximal_sgd,learning_rate=0.5,lambda=0,clip_value=0.25")
        self.assertTrue((self.fetch("w", numpy.float32, SHAPE) == -0.125).all())
        self.make("decays", "float32", SHAPE, 2, "proximal_sgd,lambda=0,learning_rate=1,schedule=exponential_decay,decay_steps=1,"
                                                 "decay_rate=0.5")
        for expected in (-1, -1.5, -1.75):
            self.put("decays", numpy.ones(SHAPE, numpy.float32))
            self.assertTrue((self.fetch("decays", numpy.float32, SHAPE) == expected).all())
        self.ask("set decays proximal_sgd,learning_rate=0", "set")
        self.put("decays", numpy.ones(SHAPE, numpy.float32))
        self.assertTrue((self.fetch("decays", numpy.float32, SHAPE) == expected).all())

    def test_integers_have_a_loop_of_their_own(self):
        self.make("counts", "int32", SHAPE, 2, "twice")
        self.put("counts", numpy.full(SHAPE, 3, numpy.int32))
        self.put("counts", numpy.full(SHAPE, 1, numpy.int32), "twice,factor=-4")
        self.assertTrue((self.fetch("counts", numpy.int32, SHAPE) == 2).all())
        for given, words in (("twice,factor=0.5", "factor of twice is 0.5; it must be whole and in [-9, 9]"),
                             ("twice,factor=10", "it must be whole and in [-9, 9]")):
            self.assertIn(words, self.put("counts", numpy.full(SHAPE, 1, numpy.int32), given, answer="refused (.*)").group(1))
        self.assertIn("clip_value", self.put("counts", numpy.full(SHAPE, 1, numpy.int32), "twice,clip_value=1", answer="refused (.*)").group(1))
        refusal = self.ask("make floats float32 6,4 2 twice", "refused (.*)").group(1)
        self.assertIn("twice", refusal)
        self.assertIn("float32", refusal)

    def test_they_are_listed_with_what_they_take(self):
        code, output, errors = self.sumac("functions", "signum", "twice")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output, """\
signum, function 129, of the plug-in proximal 1.0
  m = β·m + (1 − β)·g; θ −= η·sign(m)
  data types: float16, bfloat16, float32, float64
  slots: momentum (zeros at first)
  learning_rate: 0.01 by default, finite and at least 0
  beta: 0.9 by default, in [0, 1)
  clip_value: 0 by default, finite and at least 0

twice, function 130, of the plug-in mine 1.0
  twice as much
  data types: int32
  factor: 2 by default, whole and in [-9, 9]
""")
        code, output, errors = self.sumac("functions", "proximal_sgd", "--json")
        self.assertEqual((code, errors), (0, ""))
        function, = json.loads(output)
        self.assertEqual((function["number"], function["plugin"], function["slots"]), (128, "proximal 1.0", []))
        self.assertEqual(function["hyperparameters"]["lambda"], {"default": 0.0001, "range": "finite and at least 0"})
        self.make("shown", "float32", SHAPE, 2, "signum,beta=0.5")
        self.assertRegex(self.sumac("ls", "shown")[1], r"(?m)^shown .* signum ")
        self.assertEqual(json.loads(self.sumac("ls", "shown", "--json")[1])["variables"][0]["function"],
                         {"name": "signum", "learning_rate": 0.01, "beta": 0.5, "clip_value": 0})

    def test_a_file_is_listed_without_a_run(self):
        listed = {name: done(SUMAC, "functions", "--plugin", os.path.basename(name), "signum", cwd=os.path.dirname(name))
                  for name in (self.proximal, self.by_hand)}
        self.assertIn("signum, function 129, of the plug-in proximal 1.0\n", listed[self.proximal])
        self.assertEqual(listed[self.proximal], listed[self.by_hand])
        code, _, errors = self.sumac("functions", "--plugin", self.proximal)
        self.assertEqual(code, 2)
        self.assertIn("give one of the two", errors)

    def test_a_terminal_applies_one(self):
        self.make("t", "float32", SHAPE, 2, "assign_add")
        value = numpy.full(SHAPE, 4, numpy.float32)
        numpy.save(self.path("t.npy"), value)
        self.assertEqual(self.sumac("update", "t", "proximal_sgd", "--value", self.path("t.npy"), "--set", "learning_rate=0.25", "--set",
                                    "lambda=2"), (0, "t is at version 1\n", ""))
        self.assertTrue((self.fetch("t", numpy.float32, SHAPE) == -0.5).all())

    def test_its_name_is_taken(self):
        path = self.path("text")
        with open(path, "w", encoding="utf-8") as file:
            file.write("value = g")
        code, output, errors = self.sumac("define", "signum", path)
        self.assertEqual((code, output), (2, ""))
        self.assertIn("signum is a function of the plug-in proximal 1.0", errors)


class Refusing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.installed = Installed(cls.folder.name)
        cls.good = cls.installed.one("libgood.so")

    def refused(self, *paths):
        """What a ps says that does not start."""
        config = json.dumps({"cluster": {"ps": ["127.0.0.1:1"]}, "task": {"type": "ps", "index": 0}})
        options = [word for path in paths for word in ("--plugin", path)]
        ended = subprocess.run([SUMAC, "ps", "--bind", "127.0.0.1", *options], text=True, capture_output=True, timeout=PATIENCE_S,
                               env={**os.environ, "TF_CONFIG": config}, cwd=self.folder.name, check=False)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
        self.assertRegex(ended.stderr, r"^sumac ps: .*\n$")
        self.assertEqual(ended.stderr.count("\n"), 1)
        return ended.stderr

    def test_a_library_that_is_cut_short(self):
        # given: the first 3000 bytes of one
        with open(self.good, "rb") as file:
            begin = file.read(3000)
        cut = os.path.join(self.folder.name, "libcut.so")
        with open(cut, "wb") as file:
            file.write(begin)

        # when, then
        said = self.refused(cut)
        self.assertIn(f"the plug-in {cut}: it is cut short: it has 3000 bytes, and says that it has ", said)

    def test_a_library_that_is_none(self):
        text = os.path.join(self.folder.name, "text.so")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no library")
        empty = os.path.join(self.folder.name, "empty.c")
        with open(empty, "w", encoding="utf-8") as file:
            file.write("int nothing;")
        fifo = os.path.join(self.folder.name, "fifo.so")
        os.mkfifo(fifo)
        for path, words in ((fifo, "it is not a regular file"), (self.folder.name, "it is not a regular file"),
                            (os.path.join(self.folder.name, "none.so"), "cannot load the plug-in"), (text, "cannot load the plug-in"),
                            ("text.so", "cannot load the plug-in text.so: ./text.so"), ("", "cannot load the plug-in"),
                            (self.installed.compile("libempty.so", empty), "is no plug-in: it has no object sumac_plugin")):
            said = self.refused(path)
            self.assertIn(words, said)
            self.assertIn(path, said)

    def test_a_table_that_is_none(self):
        for name, flags, words in (
                ("abi", ["-DABI=7"], "its ABI version is 7, and that of this release 1"),
                ("function", ['-DFUNCTION="adam"'], "adam is a function that every ps has"),
                ("nameless", ['-DFUNCTION="2 much"'], "a function of mine 1.0 has no name"),
                ("loop", ["-DLOOP=0"], "twice of mine 1.0 has no loop"),
                ("default", ["-DDEFAULT=0.5"], "factor of twice is 0.5 by default; it must be whole and in [-9, 9]"),
                ("count", ["-DCOUNT=17"], "twice has 17 hyperparameters; it has 0 to 16")):
            library = self.installed.one(f"lib{name}.so", *flags)
            said = self.refused(library)
            self.assertIn(f"the plug-in {library}: ", said)
            self.assertIn(words, said)

    def test_a_name_twice_names_both(self):
        self.assertIn("mine 1.0 and other 1.0 both have a function twice", self.refused(self.good, self.installed.one("libother.so", '-DNAME="other"')))
        link = os.path.join(self.folder.name, "link.so")
        os.symlink(self.good, link)
        self.assertIn("is given twice", self.refused(self.good, link))

    def assert_differ(self, first, second, words):
        """Of ps 0's and ps 1's options: ps 1 ends and says why; ps 0 says why it waits, for a ps 1 that is started again as it is."""
        with Cluster(ps=2, start=False, options=("--report-ms", "100")) as cluster:
            for _ in range(5):
                both = [cluster.start_ps(0, first), cluster.start_ps(1, second)]
                if all(cluster.listens(process) for process in both):
                    break
                cluster.stop()
            self.assertEqual(both[1].wait(), 2, both[1].text())
            self.assertIn(words, both[1].text())
            both[0].wait_for(f"waits for ps 1 .*{words}")
            after = len(both[0].lines)
            cluster.start_ps(1, first)
            both[0].wait_for("knows every ps|waits for the first join", after=after)
            cluster.member().wait_for("^joined$")

    def test_another_table_on_another_ps_ends_it(self):
        good = ("--plugin", self.good)
        later = ("--plugin", self.installed.one("liblater.so", '-DVERSION="1.1"'))
        changed = ("--plugin", self.installed.one("libchanged.so", "-DDEFAULT=3"))
        self.assert_differ(good, later, "the function twice is that of the plug-in mine 1.1 on ps 1 and that of mine 1.0 on ps 0, which is another")
        self.assert_differ(good, changed, "that of the plug-in mine 1.0 on ps 1 and that of mine 1.0 on ps 0, whose tables differ")
        self.assert_differ(good, (), "ps 0 has the function twice of the plug-in mine 1.0, and ps 1 has none of that name")
        self.assert_differ((), good, "ps 1 has the function twice of the plug-in mine 1.0, and ps 0 has none of that name")

    def test_their_order_is_no_matter(self):
        other = self.installed.one("libthird.so", '-DNAME="third"', '-DFUNCTION="thrice"')
        with Cluster(ps=2, start=False) as cluster:
            for _ in range(5):
                both = [cluster.start_ps(0, ("--plugin", self.good, "--plugin", other)),
                        cluster.start_ps(1, ("--plugin", other, "--plugin", self.good))]
                if all(cluster.listens(process) for process in both):
                    break
                cluster.stop()
            cluster.member().wait_for("^joined$")


if __name__ == "__main__":
    unittest.main()
