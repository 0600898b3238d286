# SPDX-License-Identifier: Apache-2.0
"""The protos are the reference of whoever writes a client: every field, value, message and RPC of proto/sumac says what it is.

    python3 tests/house/protos.py [FOLDER]

A comment stands behind its line or above it. One above a message or an enum is for the whole of it; a message whose name its RPC explains
(…Request, …Reply) may have none. An RPC names its errors: a status in capitals.
"""
import pathlib
import re
import sys

FIELD = r"\s*(?:repeated )?[\w.]+ \w+ = \d+;(\s*//.*)?"
VALUE = r"\s*[A-Z][A-Z_0-9]* = \d+;(\s*//.*)?"
STATUS = r"INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION|RESOURCE_EXHAUSTED|UNAVAILABLE|ABORTED"


def complaints_of(path, lines):
    above = []      # the comment that stands right above
    for number, line in enumerate(lines, start=1):
        code = line.strip()
        if code.startswith("//"):
            above.append(code)
            continue
        what = None
        if re.match(r"\s*rpc ", line):
            what = None if re.search(STATUS, " ".join(above)) else "an rpc that does not say its errors"
        elif field := re.fullmatch(FIELD, line) or re.fullmatch(VALUE, line):
            what = None if field.group(1) or above else "a field or a value without a comment"
        elif re.match(r"(message|enum) \w+(?<!Request)(?<!Reply) {", line) and not above and "}" not in line:
            what = "a message or an enum without a comment"
        if what:
            yield f"{path}:{number}: {what}: {code}"
        above = []


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "proto" / "sumac")
    files = sorted(tree.rglob("*.proto"))
    found = [complaint for path in files for complaint in complaints_of(path, path.read_text(encoding="utf-8").split("\n"))]
    if not files:
        found.append(f"{tree}: there is no proto here")
    print("\n".join(found) or f"{len(files)} protos say what everything is.")
    return 1 if found else 0


sys.exit(main())
