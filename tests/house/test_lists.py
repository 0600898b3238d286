# SPDX-License-Identifier: Apache-2.0
"""lists.py objects to an item that is taken out of a list by hand, however it is written, and to a reason that none needs."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

LISTS = pathlib.Path(__file__).parent / "lists.py"
REMOVALS = (
    "before->next = item->next;",
    "*link = item->next;",
    "list->first = item->in_list.next;",
    "item->next->prev = item->prev;",
    "session->waiting_first = push->next;",
)
WALKS = (
    "item = item->in_list.next;",
    "struct item *next = item->in_list.next;",
    "cursor.chunk = cursor.chunk->in_part.next;",
    "LIST_REMOVE(&list, item, in_list);",
    "/* before->next = item->next; */",
)


class ListsTest(unittest.TestCase):
    def look_at(self, line):
        with tempfile.TemporaryDirectory() as tree:
            path = pathlib.Path(tree) / "server/lane/part.c"
            path.parent.mkdir(parents=True)
            path.write_text(f"void take(void)\n{{\n    {line}\n}}\n")
            looked = subprocess.run([sys.executable, "-B", LISTS, tree], capture_output=True, text=True)
            return [said for said in looked.stdout.splitlines() if said.startswith("server/lane/part.c:3:")]

    def test_what_is_removed_by_hand_is_told(self):
        for line in REMOVALS:
            self.assertEqual(len(self.look_at(line)), 1, line)

    def test_who_goes_through_a_list_removes_nothing(self):
        for line in WALKS:
            self.assertEqual(self.look_at(line), [], line)

    def test_a_reason_that_none_needs_is_told(self):
        with tempfile.TemporaryDirectory() as tree:
            looked = subprocess.run([sys.executable, "-B", LISTS, tree], capture_output=True, text=True)
            self.assertEqual(looked.returncode, 1)
            self.assertIn("lib/base/pool.c: ARGUED says why it removes by hand, and it does not", looked.stdout)


unittest.main()
