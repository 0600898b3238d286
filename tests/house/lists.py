# SPDX-License-Identifier: Apache-2.0
"""Lists are those of lib/base/list.h: nobody else takes an item out of one by hand.

    python3 tests/house/lists.py [FOLDER]

Whoever removes an item writes what comes after it into a link of another item, or of the list: an assignment to a member, or through
a pointer, of somebody's `next`. That is looked for in every C file of the product (FOLDER: another tree); going through a list assigns
to a variable, and is not meant. A file that has its reasons is in ARGUED, with them; one that needs none any more is told, too.
"""
import pathlib
import re
import sys

FOLDERS = ("lib", "server", "worker", "cli")
DOOR = "lib/base/list.h"
# What a link of a list, or one of its ends, is called; in a cursor's place nothing is taken out.
LINK = r"(?:next|prev|previous|before|first|last|older|oldest|newer|newest|free|asking|touched)(?:_\w+)?|\w+_(?:first|last|next)"
AFTER = r"(?:next|prev|before|older|newer|beside)(?:_\w+)?"
REMOVES = re.compile(
    r"^\s*(?:\*\w+|[\w\[\]().>-]*(?:->|\.)(?:" + LINK + r")(?:\[[^\]]*\])?)\s*=[^;=]*(?:->|\.)" + AFTER + r";", re.M)
ARGUED = {
    "lib/base/pool.c": "free objects, linked through their first word, taken from the front",
    "lib/base/sized_pool.c": "free pieces, likewise",
    "lib/base/key_map.c": "entries of one hash, linked one way: two words less for each name",
    "lib/client/transfer.c": "transfers that are free, taken from the front",
    "lib/rpc/call.h": "queues between what gRPC completes and what waits, on the hottest path",
    "lib/rpc/poller.c": "calls that ask for a message, all taken from the front",
    "lib/session/session.c": "links that were touched in a step, all taken from the front",
    "server/ps_links.c": "slots of an array, linked by their numbers",
    "server/store/blocks.c": "what a block took the place of: a chain by age, not a list",
}

complaints = []
removing = set()


def code_of(text):
    """The text without comments, line by line as long as it was."""
    return re.sub(r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S)


def look_at(tree, path):
    name = str(path.relative_to(tree))
    code = code_of(path.read_text())
    for match in REMOVES.finditer(code):
        removing.add(name)
        if name not in ARGUED and name != DOOR:
            line = code.count("\n", 0, match.end()) + 1
            complaints.append(f"{name}:{line}: an item is taken out of a list by hand; use LIST_REMOVE of {DOOR}")


def main():
    tree = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    for folder in FOLDERS:
        for path in sorted((tree / folder).rglob("*.[ch]")):
            look_at(tree, path)
    for name in sorted(set(ARGUED) - removing):
        complaints.append(f"{name}: ARGUED says why it removes by hand, and it does not")
    print("\n".join(complaints) or "Lists are those of lib/base/list.h.")
    sys.exit(bool(complaints))


main()
