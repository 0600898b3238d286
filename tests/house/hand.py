# SPDX-License-Identifier: Apache-2.0
"""One hand in every file: the forms that clang-format does not keep.

    python3 tests/house/hand.py [FOLDER]

Looks at every C file of the tree (FOLDER: another tree), names file and line of what is written otherwise, and then fails.
CONTRIBUTING.md has the forms in sentences.
"""
import pathlib
import re
import sys

COLUMNS_MAX = 100
SKIPPED = ("build/", "shared/")
TYPE = r"(?:struct \w+|enum \w+|union \w+|unsigned(?: (?:int|char|long))?|signed|char|short|int|long|float|double|bool|void|FILE|DIR|" \
       r"va_list|\w+_t|(?:wire|grpc|gpr|sumac|json|protobuf_c)_\w+|nccl[A-Z]\w*|[A-Z]\w*)"
# A function's first lines, four blanks in: a type, a name, and what a declaration may go on with.
DECLARATION = re.compile(
    r"    (?:static |const |register )*" + TYPE + r"(?: const)?[ *]+(?:const )?\**(?:\w+|\(\*\w+\))(?:\[[^\]]*\])*(?:\([^;=]*\))?(?:\s*[=;,]|$)")
STATEMENT = re.compile(r"    (?:return|goto|case|else|do|if|for|while|switch|break|continue|assert)\b")
UNUSED = re.compile(r"    \(void\)\w+;")
# What a pair of parentheses after sizeof must hold; a macro's own argument may be either.
SIZE_OF_TYPE = re.compile(r"(?:const )?(?:" + TYPE + r"|element|real|type|word|names)(?: (?:int|char|long))*[ *]*$")
HEAD = re.compile(r"^((?:static |inline |extern |const |_Noreturn )*)((?:struct |enum |union )?\w+(?: \w+)?[ *\n]+)(\w+)\(", re.M)
NO_HEAD = ("return", "else", "typedef", "case", "goto")
NO_CALL = ("__attribute__",)
BEFORE_MAX = 4000  # characters before a call that are looked at, comments among them
# Of the C library and the system: those that are called for what they do, and give a status that one may overlook.
LIBRARY = set(
    "snprintf vsnprintf unlink remove rename kill killpg setenv unsetenv putenv waitpid sigaction sigprocmask pthread_sigmask munmap "
    "madvise fclose close fflush fcntl setsockopt dup2 shutdown chmod fchmod chown fchown ftruncate setrlimit getrlimit prctl "
    "nanosleep mkdir rmdir write read send recv pipe pthread_cond_timedwait pthread_join pthread_detach pthread_setname_np fseek "
    "tcsetattr atexit setitimer raise".split())


def blank(text):
    """The same lines, comments and what is quoted made of x and blanks."""
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                  lambda match: re.sub(r"[^\n ]", "x", match.group()), text, flags=re.S)


def closing(text, at):
    """Where the parenthesis that opens at `at` is closed."""
    depth = 0
    for end in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end
    return len(text)


def line_at(text, at):
    return text.count("\n", 0, at) + 1


def long_lines(text, code):
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns, of at most {COLUMNS_MAX}"


def end_of_declaration(lines, at):
    """The line after the declaration that begins at `at`: a comment behind it belongs to it."""
    braces = 0
    for end in range(at, len(lines)):
        braces += lines[end].count("{") - lines[end].count("}")
        if braces == 0 and ";" in lines[end]:
            while end + 1 < len(lines) and re.fullmatch(r"[ x]+", lines[end + 1]) and lines[end].endswith("x"):
                end += 1
            return end + 1
    return len(lines)


def declarations(text, code):
    lines = code.split("\n")
    for opened, line in enumerate(lines):
        if line != "{" or lines[opened - 1].endswith(("=", ",", "{")):
            continue
        at, any_declared = opened + 1, False
        while at < len(lines):
            if UNUSED.match(lines[at]):
                at += 1
            elif DECLARATION.match(lines[at]) and not STATEMENT.match(lines[at]):
                any_declared, at = True, end_of_declaration(lines, at)
            else:
                break
        if any_declared and at < len(lines) and lines[at].strip() and lines[at] != "}":
            yield at + 1, "a blank line comes after the declarations"


def sizes(text, code):
    macros = re.compile(r"^#define(?:[^\n]*\\\n)*[^\n]*", re.M)
    for found in re.finditer(r"\bsizeof\(", macros.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)):
        end = closing(code, found.end() - 1)
        inner = code[found.end():end]
        if not SIZE_OF_TYPE.match(inner) and not inner.startswith("("):
            yield line_at(code, found.start()), f"sizeof {inner}: parentheses are for types"


def wide_integers(text, code):
    for found in re.finditer(r"\blong long\b", code):
        yield line_at(code, found.start()), "long long: int64_t or uint64_t"
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"', text):
        if re.search(r"(?<!%)(?:%%)*%[-+0 #]*[\d*]*(?:\.[\d*]+)?ll[udxi]", found.group()):
            yield line_at(text, found.start()), "%ll…: PRIu64, PRId64 or PRIx64"


class Functions:
    """Which functions of the tree give nothing back, by their heads: a file's own, and everybody's."""

    def __init__(self, codes):
        self.own, self.all = {}, {}
        for path, code in codes.items():
            for head in HEAD.finditer(code):
                gives = head[2].strip()
                if gives in NO_HEAD:
                    continue
                names = self.own.setdefault(path, {}) if "static" in head[1] else self.all
                names[head[3]] = names.get(head[3], False) or gives == "void"

    def gives(self, path, name):
        for names in (self.own.get(path, {}), self.all):
            if name in names:
                return not names[name]
        return name in LIBRARY


def code_before(code, at):
    """What stands before `at`, without the comments and blanks between."""
    words = code[max(0, at - BEFORE_MAX):at].split()
    while words and re.fullmatch("x+", words[-1]):
        words.pop()
    return words[-1] if words else ""


def ignored_results(path, code, functions):
    for call in re.finditer(r"^[ \t]+(\w+)\(", code, re.M):
        if call[1] in NO_CALL or not re.search(r"[;{}:)]x*$|^else$|^do$", code_before(code, call.start())):
            continue
        if code[closing(code, call.end() - 1) + 1:].lstrip()[:1] == ";" and functions.gives(path, call[1]):
            yield line_at(code, call.start(1)), f"{call[1]} gives something back: (void) says that it is not wanted"


def main():
    tree = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    texts = {str(path.relative_to(tree)): path.read_text() for path in sorted(tree.rglob("*.[ch]"))}
    texts = {path: text for path, text in texts.items() if not path.startswith(SKIPPED)}
    codes = {path: blank(text) for path, text in texts.items()}
    functions = Functions(codes)
    wrong = []
    for path, text in texts.items():
        for look in (long_lines, declarations, sizes, wide_integers):
            wrong += [(path, *found) for found in look(text, codes[path])]
        if not path.startswith("tests/"):
            wrong += [(path, *found) for found in ignored_results(path, codes[path], functions)]
    for path, line, what in wrong:
        print(f"{path}:{line}: {what}")
    if not wrong:
        print(f"{len(texts)} files are of one hand.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
