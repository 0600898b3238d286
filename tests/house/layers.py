# SPDX-License-Identifier: Apache-2.0
"""The house's rules, kept by looking: who may include what, which library is behind which door, how long things may be.

    python3 tests/house/layers.py [FOLDER]

Looks at every C file of the tree (FOLDER: another tree), names file and line of what breaks a rule, and then fails.
docs/ARCHITECTURE.md (Layers) and CONTRIBUTING.md have the same rules in sentences.
"""
import pathlib
import re
import sys

# The rooms of server/lane, from the bottom, and what all of them stand on.
LANE_ROOMS = ["server/lane/step", "server/lane/part", "server/lane/peer", "server/lane/operation", "server/lane/pull"]
UNDER_LANE = ["lib/base", "lib/wire", "lib/update", "server/catalogue", "server/collective", "server/store", "lib/session/rules.h"]
# Those of server/, from the bottom. Who calls a function goes down, or stays: so no two files of different rooms need each other.
ROOMS = ["server/catalogue", "server/collective", "server/store", *LANE_ROOMS, "server/lane", "server/controller", "server"]

# Those whose files have an order, too.
STRAIGHT_ROOMS = ["lib/base", "lib/client", "lib/cluster", "lib/expression", "lib/rpc", "lib/session", "lib/update",
                  "lib/value", "lib/wire", "server/catalogue", "server/collective", "server/store", *LANE_ROOMS, "server/lane",
                  "server/controller", "server", "worker", "worker/cuda", "worker/strategy", "worker/collective", "worker/variable", "cli", "bench", "bench/gpu", "bench/push_pull",
                  "bench/strategy", "bench/sync"]
# Structs of the lane that are open, each with the name of a pointer to one in other structs.
OWNED_STRUCTS = {"lane_session": "session", "lane_stream": "stream", "lane_part": "part"}

# A folder of the tree, and the folders whose headers its files may include beside their own.
MAY_INCLUDE = {
    "lib/base": [],
    "lib/cluster": ["lib/base"],
    "lib/value": ["lib/base"],
    "lib/wire": ["lib/base"],
    "lib/expression": ["lib/base"],
    "lib/update": ["lib/base", "lib/wire", "lib/expression/expression.h"],
    "lib/rpc": ["lib/base", "lib/wire"],
    "lib/session": ["lib/base", "lib/wire"],
    "lib/client": ["lib/base", "lib/wire", "lib/update/update.h", "lib/update/defined.h", "lib/update/described.h",
                   "lib/update/plugged.h", "lib/expression/expression.h", "lib/rpc", "lib/session", "lib/cluster"],
    "worker": ["lib/base", "lib/value", "lib/client", "lib/cluster", "lib/update/update.h", "lib/update/defined.h",
               "lib/update/plugged.h", "lib/update/scalars.h", "lib/wire/placement.h"],
    "server/catalogue": ["lib/base", "lib/wire", "lib/update"],
    "server/collective": ["lib/base", "lib/wire", "lib/update", "server/catalogue"],
    "server/store": ["lib/base", "lib/wire", "lib/update", "server/catalogue"],
    **{room: [*UNDER_LANE, "server/lane/lane.h", *LANE_ROOMS[:floor]]
       for floor, room in enumerate(LANE_ROOMS)},
    "server/lane": [*UNDER_LANE, *LANE_ROOMS],
    "server/controller": ["lib/base", "lib/wire", "lib/update", "server/catalogue", "server/lane/lane.h",
                     "server/lane/step/out.h", "server/lane/step/end_status.h", "lib/session/rules.h"],
    "server": ["lib/base", "lib/wire", "lib/rpc", "lib/cluster", "lib/update", "server/catalogue/plugins.h", "server/collective/combine.h",
               "server/lane",
               "server/lane/step/out.h", "server/controller"],
    "cli": ["lib/base", "lib/wire", "lib/rpc", "lib/cluster", "lib/client", "server/ps.h", "server/plugin_files.h",
            "server/catalogue/plugins.h", "lib/update/update.h", "lib/update/defined.h", "lib/update/described.h",
            "lib/update/plugged.h", "lib/expression/expression.h", "worker/gpus.h"],
    "examples": ["worker", "lib/client", "lib/cluster", "lib/base/sumac", "lib/update/sumac"],
}

# What is outside the tree, and the files that may include it. Tests and benchmarks may open any door.
DOORS = {
    r"grpc/(?!.*pb-c)": ["lib/rpc/"],
    r"protobuf-c/|.*\.pb-c\.h|sumac/v1/names\.h": ["lib/wire/wire.h", "lib/rpc/schema.c", "lib/rpc/health.c", "lib/rpc/reflection.c"],
    r"jansson\.h": ["lib/cluster/tf_config.c", "cli/json.h"],
    r"xxhash\.h": ["server/lane/part/checksum.c"],
    r"zlib\.h": ["examples/digits_data.c", "cli/array_file.c"],
    r"cuda(?:_(?:runtime\w*|fp16|bf16))?\.h": ["worker/cuda/driver.h"],
    r"nccl\.h": ["worker/cuda/nccl_library.h"],
    r"immintrin\.h": ["lib/update/loops_half.h"],
    r"malloc\.h": ["lib/client/tune.c", "server/ps_machine.c"],
}

# Events in, effects out: nothing of the machine is named here.
CORES = ("lib/session/", "server/catalogue/", "server/controller/", "server/lane/", "server/collective/", "server/ps_core", "server/store/",
         "lib/update/", "lib/expression/")
# Folders whose struct tags are all different.
TAGS_ONCE = ("lib/", "server/", "worker/", "cli/")
CORES_CALL_NO = r"malloc|calloc|realloc|free|strdup|aligned_alloc|posix_memalign|memory_heap|clock_gettime|gettimeofday|time|" \
                r"nanosleep|rand|srand|getenv|socket|send|recv|open|read|write|close|fopen|printf|fprintf|abort|exit|" \
                r"pthread_\w+|thrd_\w+|mtx_\w+|atomic_\w+"
CORES_INCLUDE = {"assert.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h",
                 "stdint.h", "stdio.h", "string.h"}
NOBODY_CALLS = r"strcpy|strcat|sprintf|vsprintf|gets|atoi|atof|atol|alloca|rand|tmpnam|system|abort"
# These cut within a character, and leave what a peer says as it is.
PRINTERS = r"v?snprintf|strncpy|strncat"
PRINTERS_FOLDERS = ("lib/", "server/", "worker/")
PRINTERS_DOOR = "lib/base/text.c"
# An error that is made here is told to a peer; elsewhere those that a call is finished with are.
TELL_PEERS = ("server/catalogue/", "server/controller/", "server/lane/", "server/collective/", "server/store/", "lib/update/", "lib/expression/",
              "lib/wire/")
# CMocka's compare by a difference, and that of a NaN is never too large.
NO_TEST_CALLS = r"assert_(?:not_)?(?:float|double)_(?:not_)?equal"
NO_FILE_IS_CALLED = r"(utils?|common|helpers?|misc|manager)\b"
FILE_LINES_MAX = 800
HEADER_LINES_MAX = 400  # of the product, but those of the public
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6  # of the product; tests may say more

# Assertions for each function, of folders that are large enough to speak of a share; the checks of the tests are not counted.
# What is reached is kept: a figure here is raised, and never lowered.
ASSERTIONS_MIN = {"server/lane": 0.75, "server/controller": 0.55, "server/store": 0.7, "lib/base": 0.33, "lib/session": 0.65,
                  "lib/client": 0.65, "lib/update": 0.5, "lib/expression": 0.3, "worker": 0.5}
FUNCTIONS_ENOUGH = 20

# Of an enum of the house: the compiler names what a new value has forgotten, unless a `default:` takes it.
OWN_LABELS = r"(?:LANE|SESSION|CONTROLLER|FAULT|PART|ANSWER|RECORD|RPC|CLIENT|OPTION|TEXT|PHASE|WORLD|CHILD)_\w+"

# What an update function is, its row says. `assign` alone is known to whoever assigns a variable's first value.
FUNCTIONS_BY_NAME = r"(?:UPDATE|UPDATE_FUNCTION)_(?!ASSIGN\b|FUNCTION)(?:%s)"
FUNCTIONS_ROOM = "lib/update/"

complaints = []
shares = []


def complain(path, line, text):
    complaints.append(f"{path}:{line}: {text}")


def code_of(text):
    """The text with comments and strings blanked out, line by line as long as it was."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def folder_of(path):
    """The longest folder of MAY_INCLUDE that `path` is in, or None."""
    return max((folder for folder in MAY_INCLUDE if path.startswith(folder + "/")), key=len, default=None)


def check_include(path, line, included, headers):
    """`headers`: from what an #include says to the files of the tree that it may mean."""
    for pattern, behind in DOORS.items():
        if re.match(pattern, included) and not path.startswith(tuple(behind)):
            complain(path, line, f"{included} has one door: {', '.join(behind) or 'none yet'}")
    meant = headers.get(included, [])
    if path.startswith(CORES) and not meant and included not in CORES_INCLUDE | {"xxhash.h", "immintrin.h"}:
        complain(path, line, f"a core includes {included}")
    folder = folder_of(path)
    if any(folder_of(where) == folder for where in meant):
        return
    if included.endswith("_state.h") and any(folder_of(where) in LANE_ROOMS for where in meant):
        complain(path, line, f"{included} is what one room keeps for itself")
    for where in meant:
        parent = where.rpartition("/")[0]
        if not any(may in (where, parent) or may + "/sumac" == parent for may in MAY_INCLUDE[folder]):
            complain(path, line, f"{folder} may not include {where}")


def check_calls(path, code, banned, why):
    """A file may give such a name to a static function of its own."""
    own = set(re.findall(r"^static [^;=]*?(\w+)\(", code, flags=re.M))
    for match in re.finditer(rf"(?<![\w.>])({banned})\s*\(", code):
        if match.group(1) in own:
            continue
        complain(path, code.count("\n", 0, match.start()) + 1, f"{why} {match.group(1)}")


def check_functions(path, lines):
    """A function begins with its head, after an empty line or the end of something else, and ends with a brace alone."""
    begin = 0
    for number, line in enumerate(lines):
        if line == "}" and number + 1 - begin > FUNCTION_LINES_MAX and "{" in lines[begin:number]:
            complain(path, begin + 1, f"a function of {number + 1 - begin} lines, of at most {FUNCTION_LINES_MAX}")
        if line.startswith(("}", "#")) or line.strip() == "" and "{" not in lines[begin:number]:
            begin = number + 1


def heads_of(code):
    """Each function's first line and its parameters, as text."""
    for match in re.finditer(r"^(?!typedef|#)\w[^;{}()=]*?\b\w+\(([^;{}]*)\)\s*\n\{", code, flags=re.M):
        yield code.count("\n", 0, match.start()) + 1, match.group(1)


def count_parameters(text):
    """A comma within parentheses is another function's."""
    while re.search(r"\([^()]*\)", text):
        text = re.sub(r"\([^()]*\)", "", text)
    return text.count(",") + 1


def check_parameters(path, code):
    for line, parameters in heads_of(code):
        if count_parameters(parameters) > PARAMETERS_MAX:
            complain(path, line, f"a function of {count_parameters(parameters)} parameters, of at most {PARAMETERS_MAX}: give it a struct")


def check_assertions(files):
    """`files`: from a path to its text."""
    for folder, least in ASSERTIONS_MIN.items():
        functions = assertions = 0
        for path, text in files.items():
            if not path.startswith(folder + "/"):
                continue
            code = code_of(text)
            functions += len(list(heads_of(code))) + len(re.findall(r"^static [^;{}=]*\) \{[^\n]*\}$", code, flags=re.M))
            assertions += len(re.findall(r"\bassert\(", code))
        if functions >= FUNCTIONS_ENOUGH and assertions < least * functions:
            complain(folder, 0, f"{assertions} assertions in {functions} functions, of at least {least} for each")
        elif functions >= FUNCTIONS_ENOUGH:
            shares.append(f"{folder}: {assertions} assertions in {functions} functions, {assertions / functions:.2f} for each")


def check_defaults(path, code):
    """The label before a `default:` says which enum its switch is over."""
    label = None
    for number, line in enumerate(code.split("\n"), start=1):
        found = re.match(r"\s*case (\w+):", line)
        if re.match(r"\s*switch\b", line):
            label = None
        elif found:
            label = found.group(1)
        elif re.match(r"\s*default:", line) and label and re.fullmatch(OWN_LABELS, label):
            complain(path, number, f"a `default:` beside {label}: name the other values")


def check_functions_by_name(path, code, functions):
    """`functions`: those of UPDATE_FUNCTION_LIST."""
    for match in re.finditer(rf"\b\w*{FUNCTIONS_BY_NAME % '|'.join(functions)}\b", code) if functions else ():
        complain(path, code.count("\n", 0, match.start()) + 1, f"{match.group()}: ask its row, not its name")


def check_reasons(path, code):
    """Whoever is refused, or whose stream ends, is told the remedy by a reason."""
    called = r"\w+" if path.startswith(TELL_PEERS) else "rpc_call_finish"
    for match in re.finditer(rf"\b{called}\s*\([^;]*?\bSUMAC_(?!OK\b)[A-Z_]+,\s*SUMAC_REASON_UNSPECIFIED\b", code):
        complain(path, code.count("\n", 0, match.end()) + 1, "an error without a reason")


def functions_of(files):
    """The names in UPDATE_FUNCTION_LIST."""
    listed = re.search(r"#define UPDATE_FUNCTION_LIST\(X\)((?:.*\\\n)*.*)", files.get("lib/update/update.h", ""))
    return re.findall(r"X\((\w+)\)", listed.group(1)) if listed else []


def defined_in(code):
    """A function that other files may call is defined with its name after the type, at the begin of a line."""
    return re.findall(r"^(?!static|typedef|#)\w[^;{}()=]*?\b(\w+)\([^;{}]*\)\s*\n?\{", code, flags=re.M)


def check_rooms(files):
    codes = {path: code_of(text) for path, text in files.items() if path.startswith("server/") and path.endswith(".c")}
    room_of = {path: ROOMS.index(path.rpartition("/")[0]) for path in codes if path.rpartition("/")[0] in ROOMS}
    homes = {name: path for path in room_of for name in defined_in(codes[path])}
    for path, room in room_of.items():
        own = set(re.findall(r"^static [^;=]*?(\w+)\(", codes[path], flags=re.M))
        for match in re.finditer(r"(?<![\w.>])(\w+)\(", codes[path]):
            home = homes.get(match.group(1), path)
            if room_of[home] > room and match.group(1) not in own:
                complain(path, codes[path].count("\n", 0, match.start()) + 1, f"{match.group(1)} is of {home}, above")


def check_circles(files):
    """Within a room, too, files go down: where two need each other, a reader has to hold both."""
    for room in STRAIGHT_ROOMS:
        codes = {path: code_of(text) for path, text in files.items()
                 if path.rpartition("/")[0] == room and path.endswith(".c")}
        homes = {name: path for path, code in codes.items() for name in defined_in(code)}
        # a function that is passed on by its name, for another file to call, is needed as one that is called
        calls = {path: {homes[name] for name in re.findall(r"(?<![\w.>])(?<!struct )(\w+)\b", code)
                        if name in homes and name not in re.findall(r"^static [^;=]*?(\w+)\(", code, flags=re.M)} - {path}
                 for path, code in codes.items()}
        while any(not needed & calls.keys() for needed in calls.values()):  # those that need none of the rest
            calls = {path: needed for path, needed in calls.items() if needed & calls.keys()}
        while any(path not in set().union(*calls.values()) for path in calls):  # and those that none of the rest needs
            calls = {path: needed for path, needed in calls.items() if path in set().union(*calls.values())}
        if calls:
            complain(min(calls), 1, f"a circle with {', '.join(sorted(calls.keys() - {min(calls)}))}")


def fields_of(text):
    """From each field of the struct to the files and rooms that may change it, by the heading that it stands below."""
    owners, fields = None, {}
    for line in text.split("\n"):
        heading = re.match(r"\s*/\* (.*) changes? \*/$", line)
        if heading:
            owners = re.findall(r"[\w/]+(?:\.c|/)|\bnobody\b", heading.group(1))
        for declarator in re.findall(r"(\w+)(?:\[[^\]]*\])?(?=[,;])", re.sub(r"/\*.*", "", line)) if owners else ():
            fields[declarator] = owners
    return fields


def check_changes(files):
    """Whoever reads a session, a stream or a part may look at all of it. Who changes a field, its struct says, and here is looked."""
    structs = {}
    for path, text in files.items():
        for name in OWNED_STRUCTS if path.startswith("server/lane/") and path.endswith(".h") else ():
            found = re.search(rf"^struct {name} \{{\n(.*?)^\}};", text, flags=re.M | re.S)
            if found:
                structs[name] = fields_of(found.group(1))
    for path, text in files.items():
        if not path.startswith("server/lane/"):
            continue
        code = code_of(text)
        for name, fields in structs.items():
            said = "|".join({*re.findall(rf"struct {name} \*(?:const )?(\w+)", code), OWNED_STRUCTS[name]})
            of = rf"(?:(?<![\w>.])(?:{said})|->{OWNED_STRUCTS[name]})->(\w+)(?:[.\[][\w.\]]*)?"
            changes = rf"{of}\s*(?:=(?!=)|[-+|&]=|\+\+|--)|(?:\+\+|--){of}|LIST_[A-Z]+\(\s*&{of}"
            for match in re.finditer(changes, code):
                field = next(group for group in match.groups() if group)
                owners = fields.get(field, [])
                if field in fields and not any(owner in path.removeprefix("server/lane/") for owner in owners):
                    complain(path, code.count("\n", 0, match.start()) + 1, f"{field} of struct {name} is changed by {', '.join(owners)}")


def check_tags(files):
    """A debugger, and a reader, take a tag for one struct. The simulator links both cores."""
    defined = {}
    for path, text in files.items():
        if not path.startswith(TAGS_ONCE):
            continue
        code = code_of(text)
        for match in re.finditer(r"^ *struct (\w+) \{", code, flags=re.M):
            other = defined.setdefault(match.group(1), path)
            if other != path:
                complain(path, code.count("\n", 0, match.start(1)) + 1, f"struct {match.group(1)} is another one in {other}")


def check_file(path, text, headers, functions):
    code = code_of(text)
    lines = code.split("\n")
    if re.search(NO_FILE_IS_CALLED, path.rpartition("/")[2].replace("_", " ")):
        complain(path, 1, "a file is called after its noun")
    short = path.endswith(".h") and "/sumac/" not in path and not path.startswith(("tests/", "bench/"))
    lines_max = HEADER_LINES_MAX if short else FILE_LINES_MAX
    if len(lines) > lines_max:
        complain(path, lines_max, f"{len(lines)} lines, of at most {lines_max}")
    check_functions(path, lines)
    check_defaults(path, code)
    if path.startswith(("tests/", "bench/")):
        check_calls(path, code, NO_TEST_CALLS, "a NaN passes, and assert_number_equal has none: not")
        return
    check_parameters(path, code)
    check_calls(path, code, NOBODY_CALLS, "nobody calls")
    if path.startswith(PRINTERS_FOLDERS) and path != PRINTERS_DOOR:
        check_calls(path, code, PRINTERS, "text_print cuts between characters: not")
    check_reasons(path, code)
    if not path.startswith(FUNCTIONS_ROOM):
        check_functions_by_name(path, code, functions)
    if path.startswith(CORES):
        check_calls(path, code, CORES_CALL_NO, "a core calls")
    if folder_of(path):
        for match in re.finditer(r'^#include\s+["<]([^">]+)', text, flags=re.M):
            check_include(path, text.count("\n", 0, match.start()) + 1, match.group(1), headers)


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    files = {}
    for folder in ("lib", "worker", "server", "cli", "examples", "bench", "tests"):
        for path in sorted((tree / folder).rglob("*.[ch]")):
            files[str(path.relative_to(tree))] = path.read_text(encoding="utf-8")
    headers = {}
    for path in files:
        if path.endswith(".h"):
            said = "/".join(path.split("/")[-2:]) if "/sumac/" in path else path.rpartition("/")[2]
            headers.setdefault(said, []).append(path)
    for path, text in files.items():
        check_file(path, text, headers, functions_of(files))
    check_assertions(files)
    check_tags(files)
    check_rooms(files)
    check_circles(files)
    check_changes(files)
    if not files:
        complain(tree, 0, "there is no C here")
    print("\n".join(complaints or [*shares, f"{len(files)} files keep the rules."]))
    return 1 if complaints else 0


sys.exit(main())
