# SPDX-License-Identifier: Apache-2.0
"""layers.py objects to a tree that breaks a rule, and says where: one broken rule at a time."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAYERS = pathlib.Path(__file__).parent / "layers.py"
PROTOS = LAYERS.with_name("protos.py")
HEADERS = {  # enough of the house for an #include to mean something
    "lib/base/memory.h": "", "lib/rpc/rpc.h": "struct rpc_handler {\n};", "lib/session/session.h": "", "lib/session/rules.h": "",
    "lib/client/sumac/client.h": "", "server/lane/lane.h": "", "server/lane/part/part_state.h": "", "server/lane/operation/turn.c": "void lane_turn_take(int a)\n{\n}\n", "server/controller/controller_state.h": "struct controller_task {\n};", "server/ps.h": "",
    "server/lane/step/step.h": "struct lane_session {\n    /* operation/ changes */\n    uint64_t mark, *sums;\n    /* push.c, part/ change */\n    LIST(int) parts;\n};\n",
    "server/catalogue/definition.c": "void definition_read(int a)\n{\n    placement_rows(a);\n}\n",
    "server/ps_state.h": "", "lib/update/update.h": "#define UPDATE_FUNCTION_LIST(X) \\\n    X(ASSIGN) \\\n    X(ADAM)\n",
}
BROKEN = [  # a file, its text, and what is said about it
    ("server/lane/lane.c", '#include "rpc.h"', "lane.c:1: server/lane may not include lib/rpc/rpc.h"),
    ("server/lane/turn.c", '#include "controller_state.h"', "server/lane may not include server/controller/controller_state.h"),
    ("server/lane/turn.c", '\n#include "session.h"', "turn.c:2: server/lane may not include lib/session/session.h"),
    ("worker/worker.c", '#include "lane.h"', "worker may not include server/lane/lane.h"),
    ("cli/main.c", '#include "ps_state.h"', "cli may not include server/ps_state.h"),
    ("examples/first.c", '#include "memory.h"', "examples may not include lib/base/memory.h"),
    ("lib/client/poll.c", "#include <grpc/grpc.h>", "grpc/grpc.h has one door: lib/rpc/"),
    ("lib/wire/pack.c", '#include "sumac/v1/peer.pb-c.h"', "peer.pb-c.h has one door: lib/wire/wire.h"),
    ("cli/table.c", "#include <jansson.h>", "jansson.h has one door"),
    ("server/compute_pool.c", "#include <cuda_runtime.h>", "cuda_runtime.h has one door: worker/cuda/driver.h"),
    ("server/store/blocks.c", "#include <pthread.h>", "a core includes pthread.h"),
    ("server/store/blocks.c", "void x(void)\n{\n    y(malloc(3));\n}", "blocks.c:3: a core calls malloc"),
    ("lib/session/push.c", "uint64_t x(void)\n{\n    return time(NULL);\n}", "push.c:3: a core calls time"),
    ("cli/table.c", "void x(void)\n{\n    strcpy(a, b);\n}", "table.c:3: nobody calls strcpy"),
    ("lib/client/poll.c", "void x(void)\n{\n    snprintf(a, 3, b);\n}", "poll.c:3: text_print cuts between characters: not snprintf"),
    ("server/lane/out.c", "void x(void)\n{\n    (void)vsnprintf(a, 3, b, c);\n}", "out.c:3: text_print cuts between characters: not vsnprintf"),
    ("server/ps.c", "void x(void)\n{\n    strncpy(a, b, 3);\n}", "ps.c:3: text_print cuts between characters: not strncpy"),
    ("tests/sim/world.c", "void x(void)\n{\n    switch (y) {\n    case LANE_EFFECT_LOG:\n        break;\n    default:\n    }\n}",
     "world.c:6: a `default:` beside LANE_EFFECT_LOG: name the other values"),
    ("server/lane/part.c", "void x(void)\n{\n    y(\n        SUMAC_ABORTED,\n        SUMAC_REASON_UNSPECIFIED, \"z\");\n}",
     "part.c:5: an error without a reason"),
    ("lib/rpc/health.c", "void x(void)\n{\n    rpc_call_finish(y, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED, z);\n}",
     "health.c:3: an error without a reason"),
    ("tests/unit/store.c", "void x(void)\n{\n    assert_float_equal(a, 3, 0);\n}",
     "store.c:3: a NaN passes, and assert_number_equal has none: not assert_float_equal"),
    ("server/lane/apply.c", "int x = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM;",
     "apply.c:1: SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM: ask its row"),
    ("lib/client/push.c", "\nint x = UPDATE_ADAM;", "push.c:2: UPDATE_ADAM: ask its row, not its name"),
    ("cli/string_helpers.c", "", "a file is called after its noun"),
    ("cli/table.c", "\n" * 900, "901 lines, of at most 800"),
    ("cli/table.h", "\n" * 500, "501 lines, of at most 400"),
    ("cli/table.c", "\nint x(int a, int b, int c,\n    int d, int e, int f, int g)\n{\n}", "table.c:2: a function of 7 parameters, of at most 6"),
    ("server/store/blocks.c", "static int x(int a)\n{\n    return a;\n}\n\n" * 20, "server/store:0: 0 assertions in 20 functions"),
    ("server/lane/part/part.c", "void x(void)\n{\n    lane_turn_take(3);\n}", "part.c:3: lane_turn_take is of server/lane/operation/turn.c, above"),
    ("server/lane/lane.c", '#include "part_state.h"', "lane.c:1: part_state.h is what one room keeps for itself"),
    ("server/lane/part/part.c", '#include "controller_state.h"', "server/lane/part may not include server/controller/controller_state.h"),
    ("server/lane/list_variables.c", "\nstruct controller_task {\n};", "list_variables.c:2: struct controller_task is another one in server/controller/controller_state.h"),
    ("server/ps.c", "\nstruct rpc_handler {\n};", "struct rpc_handler is another one in lib/rpc/rpc.h"),
    ("server/catalogue/placement.c", "void placement_rows(int a)\n{\n    definition_read(a);\n}", "definition.c:1: a circle with server/catalogue/placement.c"),
    ("server/catalogue/placement.c", "void placement_rows(int a)\n{\n    y(definition_read);\n}", "definition.c:1: a circle with server/catalogue/placement.c"),
    ("server/lane/pull/pull.c", "void x(struct lane_session *of)\n{\n    of->mark = 3;\n}", "pull.c:3: mark of struct lane_session is changed by operation/"),
    ("server/lane/push.c", "void x(struct lane_part *part)\n{\n    if (y)\n        part->session->sums[3]++;\n}", "push.c:4: sums of struct lane_session"),
    ("server/lane/orders.c", "void x(struct lane_session *session)\n{\n    LIST_APPEND(&session->parts, y, in_session);\n}",
     "orders.c:3: parts of struct lane_session is changed by push.c, part/"),
    ("cli/table.c", "int x(int a)\n{\n" + "    a++;\n\n" * 35 + "}", "table.c:1: a function of 73 lines, of at most 70"),
]
KEPT = [
    ("server/lane/push.c", "void x(struct lane_session *session)\n{\n    y = session->mark == 3;\n    LIST_APPEND(&session->parts, y, in_session);\n}"),
    ("server/lane/lane.c", '#include "rules.h"\n#include "memory.h"\n#include <string.h>\n/* malloc(3) */'),
    ("lib/session/push.c", "static void send(int a)\n{\n}\nvoid x(void)\n{\n    send(1);\n}"),
    ("lib/rpc/call.c", "#include <grpc/grpc.h>"),
    ("lib/base/text.c", "void x(void)\n{\n    vsnprintf(a, 3, b, c);\n}"),
    ("cli/table.c", "void x(void)\n{\n    switch (y) {\n    case SUMAC_FLOAT32:\n        break;\n    default:\n    }\n}"),
    ("lib/rpc/receive.c", "void x(void)\n{\n    rpc_call_finish(y, SUMAC_OK, SUMAC_REASON_UNSPECIFIED, NULL);\n}"),
    ("lib/client/push.c", "void x(void)\n{\n    fail(y, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED, z);\n}"),
    ("server/store/blocks.c", "static int x(int a)\n{\n    return a;\n}\n"),
    ("cli/table.c", "void x(int a, int (*b)(int, int), int c, int d, int e, int f)\n{\n}"),
    ("cli/main.c", '#include "sumac/client.h"\n#include "ps.h"'),
    ("server/lane/pull/pull.c", "void x(void)\n{\n    lane_turn_take(3);\n}"),
    ("server/catalogue/placement.c", "void placement_rows(struct definition_read *a)\n{\n}"),
    ("server/lane/apply.c", "int x = UPDATE_ASSIGN + UPDATE_SLOTS_MAX;"),
    ("lib/update/functions.c", "int x = UPDATE_ADAM;"),
    ("cli/table.c", "void x(void)\n{\n    puts(\"strcpy(a)\");\n}"),
]


class LayersTest(unittest.TestCase):
    def look_at(self, path, text):
        with tempfile.TemporaryDirectory() as tree:
            for name, content in {**HEADERS, path: text}.items():
                (pathlib.Path(tree) / name).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(tree) / name).write_text(content)
            return subprocess.run([sys.executable, "-B", LAYERS, tree], capture_output=True, text=True)

    def test_a_broken_rule_is_named_with_its_file_and_line(self):
        for path, text, said in BROKEN:
            with self.subTest(path=path, said=said):
                looked = self.look_at(path, text)
                self.assertIn(said, looked.stdout)
                self.assertEqual(looked.stdout.count("\n"), 1)
                self.assertEqual(looked.returncode, 1)

    def test_what_keeps_the_rules_is_let_be(self):
        for path, text in KEPT:
            with self.subTest(path=path):
                looked = self.look_at(path, text)
                self.assertEqual((looked.stdout, looked.returncode), ("15 files keep the rules.\n", 0))


class ProtosTest(unittest.TestCase):
    def test_what_has_no_comment_is_named(self):
        text = "service A {\n  // B.\n  rpc B(C) returns (D);\n}\n\nmessage C {\n  uint32 e = 1;\n  // f\n  uint32 f = 2;\n}\n"
        with tempfile.TemporaryDirectory() as tree:
            (pathlib.Path(tree) / "a.proto").write_text(text)
            looked = subprocess.run([sys.executable, "-B", PROTOS, tree], capture_output=True, text=True)
        self.assertEqual(looked.returncode, 1)
        self.assertEqual([line.split(": ")[0].rpartition(":")[2] for line in looked.stdout.splitlines()], ["3", "6", "7"])


unittest.main()
