# SPDX-License-Identifier: Apache-2.0
"""hand.py objects to what is written by another hand, and says where: one form at a time."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HAND = pathlib.Path(__file__).parent / "hand.py"
OTHER = [  # a file's text, and what is said about it
    ("int x; /* " + "é" * 90 + " */\n", "table.c:1: 103 columns, of at most 100"),
    ("void x(void)\n{\n    int a = 3;\n    y(a);\n}\n", "table.c:4: a blank line comes after the declarations"),
    ("void x(void)\n{\n    const struct y a = {\n        3};\n    if (a.b)\n        return;\n}\n",
     "table.c:5: a blank line comes after the declarations"),
    ("void x(int b)\n{\n    (void)b;\n    int a = 3; /* of\n                * b */\n    y(a);\n}\n",
     "table.c:6: a blank line comes after the declarations"),
    ("void x(void)\n{\n    y(sizeof(a->b));\n}\n", "table.c:3: sizeof a->b: parentheses are for types"),
    ("void x(void)\n{\n    y(sizeof(*a));\n}\n", "table.c:3: sizeof *a: parentheses are for types"),
    ("long long x;\n", "table.c:1: long long: int64_t or uint64_t"),
    ('void x(void)\n{\n    y("%5.1f %08llx");\n}\n', "table.c:3: %ll…: PRIu64, PRId64 or PRIx64"),
    ("void x(void)\n{\n    if (a)\n        close(a);\n}\n", "table.c:4: close gives something back: (void) says that it is not wanted"),
    ("static int z(void)\n{\n    return 3;\n}\n\nvoid x(void)\n{\n    y(); /* why */\n    z();\n}\n",
     "table.c:9: z gives something back: (void) says that it is not wanted"),
]
SAME = [
    "int x; /* " + "é" * 87 + " */\n",
    "void x(void)\n{\n    int a = 3; /* of\n                * b */\n\n    y(a);\n}\n",
    "void x(void)\n{\n    y(3);\n    z(4);\n}\n",
    "const struct y a[] = {\n{\n    int b = 3;\n    c();\n}};\n",
    "void x(void)\n{\n    y(sizeof(struct z), sizeof(uint64_t), sizeof(char *), sizeof a);\n}\n",
    "#define X(array) \\\n    (sizeof(array) / sizeof((array)[0]))\n",
    "/* long long, sizeof(*x), close(3); */\n",
    'void x(void)\n{\n    y("%%llu %lu");\n}\n',
    "void x(void)\n{\n    (void)close(a);\n}\n",
    "static void z(void)\n{\n}\n\nvoid x(void)\n{\n    z();\n}\n",
    "void x(void)\n{\n    return a &&\n        close(a);\n}\n",
]


class HandTest(unittest.TestCase):
    def look_at(self, text, path="cli/table.c"):
        with tempfile.TemporaryDirectory() as tree:
            (pathlib.Path(tree) / path).parent.mkdir(parents=True)
            (pathlib.Path(tree) / path).write_text(text)
            return subprocess.run([sys.executable, "-B", HAND, tree], capture_output=True, text=True)

    def test_another_form_is_named_with_its_file_and_line(self):
        for text, said in OTHER:
            with self.subTest(said=said):
                looked = self.look_at(text)
                self.assertEqual((looked.stdout, looked.returncode), ("cli/" + said + "\n", 1))

    def test_what_is_of_one_hand_is_let_be(self):
        for text in SAME:
            with self.subTest(text=text):
                looked = self.look_at(text)
                self.assertEqual((looked.stdout, looked.returncode), ("1 files are of one hand.\n", 0))

    def test_a_test_may_ignore_what_it_is_given(self):
        self.assertEqual(self.look_at("void x(void)\n{\n    close(a);\n}\n", "tests/unit/table.c").returncode, 0)


unittest.main()
