# SPDX-License-Identifier: Apache-2.0
"""What documents say of the programs, compared with the programs."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from cluster import PATIENCE_S, SUMAC
from readme import SOURCE


def text_of(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def sections(text):
    """(heading, body) of each section of a document."""
    parts = re.split(r"(?m)^## (.*)$", text)
    return list(zip(parts[1::2], parts[2::2]))


class Protocol(unittest.TestCase):
    def test_each_option_that_is_not_marked_as_not_built_exists(self):
        page = subprocess.run([SUMAC, "ps", "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        of_others = {"--break", "--shards"}     # of model.py and of `sumac ls`
        built, unbuilt = set(), set()
        for heading, body in sections(text_of("docs", "protocol", "PROTOCOL.md")):
            for paragraph in body.split("\n\n"):
                said = set(re.findall(r"--[a-z][\w-]*", paragraph))
                (unbuilt if "(not built)" in heading + paragraph else built).update(said)
        self.assertEqual(built - set(re.findall(r"(?m)^  (--[\w-]+)", page)) - of_others, set())
        self.assertNotEqual(unbuilt, set())


class Variables(unittest.TestCase):
    def test_each_variable_that_a_worker_reads_is_listed(self):
        listed = set(re.findall(r"(?m)^\| `(SUMAC_\w+)` \|", dict(sections(text_of("deploy", "README.md")))["Variables that workers read"]))
        read = set()
        for folder in ("lib", "worker", "examples"):
            for source in pathlib.Path(SOURCE, folder).rglob("*.c"):
                read.update(re.findall(r'(?:getenv\(|#define \w*VARIABLE )"(SUMAC_\w+)"', source.read_text(encoding="utf-8")))
        self.assertEqual(listed, read)
        known = set(re.findall(r'PREFIX "(\w+)",', text_of("lib", "cluster", "own_variables.c")))
        self.assertEqual({f"SUMAC_{name}" for name in known}, read - {"SUMAC_PROGRAM", "SUMAC_PROGRESS"})    # which few set by hand


class Memory(unittest.TestCase):
    UNITS = {"MB": 1e6, "GB": 1e9, "M": 2**20, "G": 2**30}

    def bytes_of(self, text):
        number, unit = re.match(r"([\d.]+) ?(MB|GB|M|G)\b", text).groups()
        return float(number) * self.UNITS[unit]

    def test_the_table_of_a_ps_follows_the_rule_above_it(self):
        """Half of --staging-max is the pool: it holds one push, or with synchronous steps one of each worker."""
        body = dict(sections(text_of("deploy", "README.md")))["How much memory a ps needs"]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"(?m)^\| \d.*\|$", body)]
        self.assertGreater(len(rows), 3)
        for model, ps, workers, steps, staging, bounds in rows:
            with self.subTest(model=model, ps=ps, steps=steps):
                share = self.bytes_of(model) / int(ps)
                pushes = int(workers) if steps == "synchronous" else 1
                self.assertGreaterEqual(self.bytes_of(staging), 2 * pushes * (share * 1.01 + 2**20))
                for slots, bound in zip((0, 2), bounds.split(", ")):         # sgd has none, Adam has m and v
                    self.assertAlmostEqual(self.bytes_of(bound), share * (1 + slots) + self.bytes_of(staging), delta=0.06e9)


class Stubs(unittest.TestCase):
    def made_by(self, line):
        """The files that a line of client.py makes, from the root of a clone, and what it said."""
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(SOURCE, "proto"), os.path.join(folder, "proto"))
            done = subprocess.run(f"mkdir stubs && {line}", shell=True, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
            names = {os.path.join(at, name) for at, _, names in os.walk(os.path.join(folder, "stubs")) for name in names}
            return done, {os.path.relpath(name, folder) for name in names}

    def lines(self):
        """That with Debian's packages, and that with pip's."""
        debian, pip = re.findall(r"(?m)^    ((?:protoc|python3 -m grpc_tools\.protoc) .*)$", text_of("examples", "client.py"))
        return debian, pip

    def test_debians_packages_make_them(self):
        done, made = self.made_by(self.lines()[0])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual({"stubs/sumac/v1/types_pb2.py", "stubs/sumac/v1/transfer_pb2_grpc.py"}, made)

    def test_pips_packages_make_the_same(self):
        debian, pip = map(self.made_by, self.lines())
        if re.search("No module named '?grpc_tools", pip[0].stderr):
            print("skipped: grpcio-tools is not installed")
            self.skipTest("grpcio-tools is not installed")
        self.assertEqual((pip[0].returncode, pip[1]), (0, debian[1]), pip[0].stderr)


if __name__ == "__main__":
    unittest.main()
