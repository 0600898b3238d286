#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file says under which licence it may be used, in its first lines."""
import pathlib
import subprocess
import sys

SAYS = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".c", ".h", ".cpp", ".proto", ".py", ".cmake", ".yaml", ".sbatch", ".service", ".map"}
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
    print(f"{len(paths) - len(silent)} of {len(paths)} files are in order.")
    return 1 if silent or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
