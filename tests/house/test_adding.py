# SPDX-License-Identifier: Apache-2.0
"""adding.py objects to a page that is not true: a place that is not named, one that is no longer, a kind without an example."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ADDING = pathlib.Path(__file__).parent / "adding.py"
TREE = ADDING.parents[2]


class AddingTest(unittest.TestCase):
    def look_at(self, change):
        """`change(tree)` spoils a copy of what the page speaks of."""
        with tempfile.TemporaryDirectory() as copied:
            tree = pathlib.Path(copied)
            for folder in ("proto", "lib", "server", "worker", "cli", "docs", "tests/check", "tests/mutations", "tests/process", "tests/unit", "tests/sim",
                           "tests/fuzz"):
                shutil.copytree(TREE / folder, tree / folder)
            shutil.copy(TREE / "CONTRIBUTING.md", tree)
            change(tree)
            return subprocess.run([sys.executable, "-B", ADDING, tree], capture_output=True, text=True)

    def objects(self, said, change):
        looked = self.look_at(change)
        self.assertEqual((looked.stdout, looked.returncode), (said + "\n", 1))

    def test_the_page_is_true_as_it_is(self):
        self.assertEqual(self.look_at(lambda tree: None).returncode, 0)

    def test_a_second_list_of_names_is_told(self):
        self.objects("An update function: SGD stands in cli/names.c, too",
                     lambda tree: (tree / "cli/names.c").write_text('const char *names[] = {"sgd"};'))

    def test_a_word_in_a_comment_is_no_place(self):
        self.assertEqual(self.look_at(lambda tree: (tree / "cli/names.c").write_text("/* sgd */")).returncode, 0)

    def test_a_place_that_is_gone_is_told(self):
        self.objects("A data type: there is no lib/base/half.h", lambda tree: (tree / "lib/base/half.h").unlink())

    def test_a_place_where_it_does_not_stand_is_told(self):
        self.objects("A device: cpu_device does not stand in worker/device.c",
                     lambda tree: (tree / "worker/device.c").write_text("int nothing;"))

    def test_a_kind_without_an_example_is_told(self):
        def forget(tree):
            page = tree / "CONTRIBUTING.md"
            page.write_text(re.sub(r"\*\*A mutation\*\* \(.*?\)", "**A mutation**", page.read_text()))
        self.objects("A mutation: has no paragraph with one that exists", forget)


unittest.main()
