# SPDX-License-Identifier: Apache-2.0
"""The limits that docs/protocol/PROTOCOL.md names are those of the code: each constant says the cells of the table that it stands in.

    python3 tests/house/limits.py [TREE]

Where the code has no constant, but an expression, its line must be there as it was when the sentence was written.
"""
import pathlib
import re
import sys

TREE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
EXPRESSIONS = {
    "server/ps_config.c": ["lane->streams_max = options->calls_max / 2;"],
    "server/lane/peer/places.c": ["= lane->config.streams_max / 4 / lane->config.sessions_max;", "strangers_max = lane->config.streams_max / 4;",
                             "readers_max = lane->config.streams_max / 2;", "return share < 2 ? 2 : share;"],
    "lib/rpc/services.c": ["least(SERVER_ENDING_CALLS_MAX, share(made, SERVER_ENDING_DIVISOR));",
                           "least(handlers[i].calls_max, share(server, RPC_METHOD_DIVISOR))",
                           "newcomers_max = share(made, SERVER_NEWCOMERS_DIVISOR);"],
    "lib/rpc/health.c": [".calls_max = SERVER_OWN_CALLS_MAX,"],
    "lib/rpc/reflection.c": [".calls_max = SERVER_OWN_CALLS_MAX,"],
}


def text_of(path):
    return (TREE / path).read_text(encoding="utf-8")


def number_of(path, name):
    """What `#define name` is, on its line or the next."""
    found = re.search(rf"#define {name}\s+\\?\s*\(?(\d+)u?( << (\w+))?", text_of(path))
    if not found:
        raise SystemExit(f"{path}: there is no number {name}")
    shift = found.group(3)
    return int(found.group(1)) << (int(shift) if (shift or "0").isdigit() else number_of(path, shift)) if shift else int(found.group(1))


def spaced(number):
    return str(number) if number < 10000 else f"{number // 1000} {number % 1000:03}"


def ordinal(number):
    return f"{number}{'nd' if number % 10 == 2 else 'th'}"


def rows():
    """The beginnings of the rows that follow from the code."""
    ps, rpc, lane = "server/ps_state.h", "lib/rpc/server.h", "server/lane/part/part.h"
    calls, most, each = (number_of(ps, name) for name in ("PS_CALLS_MIN", "PS_LINKS_MAX", "PS_CALLS_PER_SESSION"))
    streams, sessions = calls // 2, number_of(ps, "PS_SESSIONS_MIN")
    newcomers, ending = (number_of(rpc, f"SERVER_{name}_DIVISOR") for name in ("NEWCOMERS", "ENDING"))
    method = number_of("lib/rpc/rpc.h", "RPC_METHOD_DIVISOR")
    own, answers = number_of(rpc, "SERVER_OWN_CALLS_MAX"), number_of(rpc, "SERVER_ENDING_CALLS_MAX")
    yield (f"| calls and streams at a time, whoever's | `--calls-max` ({each} × `--sessions-max`, at least {spaced(calls)}, "
           f"at most {spaced(most)}); half of them are streams |")
    yield (f"| streams of a session on a ps | a quarter of half of `--calls-max` ÷ `--sessions-max` ({streams // 4 // sessions} by default), "
           "2 at least |")
    yield ("| streams of readers without a session; streams that have said no hello | a half, a quarter of half of `--calls-max` "
           f"({streams // 2}, {streams // 4} by default) |")
    yield (f"| unary calls of one method at a time, whoever's | a {ordinal(method)} of `--calls-max` "
           f"({calls // method} by default), at most {number_of(ps, 'PS_CALLS_PER_METHOD_MAX')}; of health's and reflection's at most {own} |")
    yield f"| calls whose request has not come | a {ordinal(newcomers)} of `--calls-max` ({calls // newcomers} by default) |"
    yield (f"| time to take the answer of a call; such answers at a time | {number_of(rpc, 'SERVER_ENDING_MS_MAX') // 1000} s; "
           f"a {ordinal(ending)} of `--calls-max` ({calls // ending} by default), at most {answers} |")
    yield f"| parts of a session on a ps, not done | {spaced(number_of('server/lane/lane.h', 'LANE_PARTS_PER_SESSION_MAX'))} |"
    pieces = spaced(number_of("server/lane/lane.h", "LANE_PIECES_PER_PART_MAX"))
    yield f"| pieces of a part that set hyperparameters | {number_of(lane, 'SETTINGS_PER_PART_MAX')} |"
    yield f"| pieces, functions of a part | {pieces}, {number_of(lane, 'FUNCTIONS_PER_PART_MAX')} |"
    wire = "lib/wire/wire.h"
    yield (f"| memory to unpack one message to a ps | {number_of(wire, 'WIRE_REQUEST_ARENA_BYTES_MAX') >> 20} MiB; what a PushRequest "
           f"has beside its payload {number_of(wire, 'WIRE_HEADER_ARENA_BYTES_MAX') >> 20} MiB ")
    yield f"| pieces of one PushRequest, of all its parts | {spaced(number_of(wire, 'WIRE_PUSH_PIECES_MAX'))} |"
    yield f"| pieces of a pull | {spaced(number_of(wire, 'WIRE_PULL_PIECES_MAX'))} |"
    yield f"| pulls of a stream at a time | {number_of('server/lane/peer/peer.h', 'PULLS_PER_STREAM_MAX')}, and"
    barrier, tasks = "server/controller/barrier.h", number_of(wire, "WIRE_BARRIER_TASKS_MAX")
    yield (f"| names of barriers that ps 0 knows; bytes of one; tasks of one | {number_of(barrier, 'CONTROLLER_BARRIERS_MAX')}; "
           f"{number_of(barrier, 'CONTROLLER_BARRIER_NAME_BYTES_MAX')}; as many as calls of one method, at most {tasks} |")
    yield f"| rounds that are open, and one task has come to | {number_of(barrier, 'CONTROLLER_ARRIVALS_OF_TASK_MAX')} |"
    yield f"| time to say hello; to take answers of a pull | {number_of('server/lane/lane.h', 'LANE_HELLO_MS_MAX') // 1000} s; "


def main():
    page = text_of("docs/protocol/PROTOCOL.md")
    wanted = list(rows())
    found = [f"docs/protocol/PROTOCOL.md: no row begins as the code has it: {row}" for row in wanted if f"\n{row}" not in page]
    for path, lines in EXPRESSIONS.items():
        code = re.sub(r"\s+", " ", text_of(path))
        found += [f"{path}: there is no `{line}`, of which docs/protocol/PROTOCOL.md speaks" for line in lines if line not in code]
    print("\n".join(found) or f"{len(wanted)} rows of limits are the code's.")
    return 1 if found else 0


sys.exit(main())
