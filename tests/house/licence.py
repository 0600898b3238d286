#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file says under which licence it may be used, in its first lines, and the tree has the licence's text."""
import hashlib
import pathlib
import subprocess
import sys

SAYS = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".c", ".h", ".cpp", ".proto", ".py", ".cmake", ".yaml", ".sbatch", ".service", ".map"}
TEXT = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"     # SHA-256 of the Apache Software Foundation's LICENSE-2.0.txt
ROOT = pathlib.Path(__file__).resolve().parents[2]


def is_source(path):
    return path.suffix in SOURCES or path.name in ("CMakeLists.txt", "Dockerfile") or path.read_bytes().startswith(b"#!")


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print("Skipped: this is no git checkout, so what belongs to the source is not known.")
        return 0
    paths = [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    silent = [path for path in paths if is_source(path) and SAYS not in path.read_text(errors="replace")[:400]]
    for path in silent:
        print(f"{path.relative_to(ROOT)}:1: no line {SAYS}")
    licence = ROOT / "LICENSE"
    if not licence.is_file() or hashlib.sha256(licence.read_bytes()).hexdigest() != TEXT:
        print("LICENSE:1: this is not the text of Apache-2.0, word for word")
        silent.append(licence)
    print(f"{len(paths) - len(silent)} of {len(paths)} files are in order.")
    return 1 if silent or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
