# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md, "Adding", is true: where one of a kind stands today is where another one would.

    python3 tests/house/adding.py [TREE]

A paragraph begins with what is added and, in parentheses, one that exists, in the spellings that it has: "**A device**
(`cpu_device`)". The files of the product that one of them occurs in, but in comments, are those that the paragraph names; a file of
the tests or the documents may be named where it occurs, too. Whoever moves a row, or needs another place for it, is told here.
"""
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
PRODUCT = ("proto", "lib", "server", "worker", "cli")
MAY_BE_NAMED = ("tests", "docs")
KINDS = {"An RPC", "An effect of the lane", "An effect of the controller", "What the controller must not lose", "An update function",
         "An operation of expressions", "A hyperparameter", "A schedule", "A public function", "An attribute of a variable", "A data type", "A device", "A device group", "An owner of chunks", "A command", "An option of a command", "A mutation"}


def paragraphs(text):
    adding = text.split("\n## Adding\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^- \*\*(.+?)\*\* \((.+?)\):(.*?)(?=^- |\Z)", adding, flags=re.M | re.S)


def without_comments(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h", ".cu", ".cuh"):
        return re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"//.*" if path.suffix == ".proto" else r"(?m)^\s*#.*", "", text)


def occurs(words, text):
    return any(re.search(rf"(?<![A-Za-z]){re.escape(word)}" + (r"(?![A-Za-z])" if word[-1].isalnum() else ""), text) for word in words)


def main():
    complaints = []
    texts = {}
    for folder in PRODUCT + MAY_BE_NAMED:
        for path in (TREE / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".cu", ".cuh", ".proto", ".toml", ".cmake", ".py", ".md") or path.name == "CMakeLists.txt":
                texts[str(path.relative_to(TREE))] = without_comments(path)
    found = paragraphs((TREE / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    kinds = {title for title, _, _ in found}
    for title in sorted(KINDS ^ kinds):
        complaints.append(f'{title}: {"has no paragraph with one that exists" if title in KINDS else "is not known to tests/house/adding.py"}')
    for title, examples, body in found:
        words = re.findall(r"`([^`]+)`", examples)
        named = {name for name in re.findall(r"`([^`\s]+)`", body) if name in texts or re.search(r"/.*\.\w+$|CMakeLists", name)}
        stands = {path for path, text in texts.items() if path.startswith(tuple(f"{folder}/" for folder in PRODUCT)) and occurs(words, text)}
        for path in sorted(stands - named):
            complaints.append(f"{title}: {words[0]} stands in {path}, too")
        for path in sorted(named - stands):
            if path not in texts:
                complaints.append(f"{title}: there is no {path}")
            elif not path.startswith(MAY_BE_NAMED) or not occurs(words, texts[path]):
                complaints.append(f"{title}: {words[0]} does not stand in {path}")
    print("\n".join(complaints or [f"{len(found)} kinds of things stand where CONTRIBUTING.md says."]))
    return 1 if complaints else 0


sys.exit(main())
