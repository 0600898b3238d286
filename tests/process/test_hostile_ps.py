# SPDX-License-Identifier: Apache-2.0
"""A ps that lies: what commands make of texts and sizes that no honest ps says."""
import os
import subprocess
import tempfile
import unittest
from concurrent import futures

import grpc

from cluster import PATIENCE_S, SUMAC
from wire import observe_pb2, observe_pb2_grpc, types_pb2, variables_pb2, variables_pb2_grpc

EVIL = "a\x1b[2J\x9b31m\rb"
TEXT = "value = value - g\n\x1b[2J"


class Liar(variables_pb2_grpc.VariablesServicer, observe_pb2_grpc.ObserveServicer):
    """ps 0 of two, with these variables."""

    def __init__(self, variables):
        self.variables = variables
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        variables_pb2_grpc.add_VariablesServicer_to_server(self, self.server)
        observe_pb2_grpc.add_ObserveServicer_to_server(self, self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def List(self, request, context):
        variables = [variable for variable in self.variables if not request.names or variable.name in request.names]
        return variables_pb2.ListReply(cluster_id=7, epoch=1, position=1, ps_incarnation=9, ps_addresses=[self.address, f"{EVIL}:5"],
                                       variables=[] if request.after_id else variables)

    def Functions(self, request, context):
        return variables_pb2.FunctionsReply(functions=[variables_pb2.KnownFunction(number=64, name=f"f{EVIL}", text=TEXT)])

    def Stats(self, request, context):
        return observe_pb2.StatsReply(cluster_id=7, epoch=1, sessions=[observe_pb2.SessionStats(task=EVIL, state=EVIL)])


class Ended(Liar):
    """The only ps of a run, which ends well before it answers a call of this name."""

    def __init__(self, call):
        super().__init__([])
        self.call = call

    def end(self, context):
        context.set_trailing_metadata((("sumac-reason", str(types_pb2.REASON_RUN_ENDED)),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "every listed member has left as done")

    def List(self, request, context):
        if self.call == "List":
            self.end(context)
        return variables_pb2.ListReply(cluster_id=7, epoch=1, position=1, ps_incarnation=9, ps_addresses=[self.address])

    def Stats(self, request, context):
        self.end(context)


def variable(number, rows, worker="worker 0", ps=0):
    shard = types_pb2.Shard(shard_id=number, layout_epoch=1, ps=ps, rows=rows, bytes=4 * rows, held=ps == 0, version=1, last_worker=worker)
    return types_pb2.Variable(name=f"v{number}", variable_id=number, data_type=types_pb2.DATA_TYPE_FLOAT32, shape=[rows],
                              published=True, function=types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_ASSIGN_ADD), shards=[shard])


class Lies(unittest.TestCase):
    def ask(self, ps, *arguments):
        done = subprocess.run([SUMAC, *arguments, "--ps", ps.address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout.decode()

    def liar(self, *variables):
        ps = Liar(variables)
        self.addCleanup(ps.server.stop, None)
        return ps

    def test_no_command_prints_its_control_characters(self):
        ps = self.liar(variable(1, 3, worker=EVIL), variable(2, 3, ps=1))
        for arguments in (("ls", "*"), ("ls", "--shards"), ("get", "v1"), ("get", "v2"), ("stats",), ("functions",),
                          ("functions", "fa?[2J??31m?b")):
            _, text = self.ask(ps, *arguments)
            self.assertEqual({mark for mark in text if ord(mark) < 32 or 127 <= ord(mark) < 160} - {"\n"}, set(), (arguments, text))
        self.assertIn("a?[2J??31m?b:5", self.ask(ps, "get", "v2")[1])

    def test_sizes_that_are_2_to_the_64th_together_are_no_file(self):
        ps = self.liar(*(variable(number, 1 << 60) for number in range(1, 5)), variable(5, 5))
        with tempfile.TemporaryDirectory() as folder:
            code, text = self.ask(ps, "get", "v1", "v2", "v3", "v4", "v5", "-o", os.path.join(folder, "o.npz"))
            self.assertEqual(os.listdir(folder), [])
        self.assertIn("File too large", text)
        self.assertEqual(code, 1)
        self.assertIn("5 variables, 4611686018427387909 elements, 16777216T bytes", self.ask(ps, "ls", "*")[1])

    def test_a_watch_whose_first_look_hears_that_the_run_ended_well_ends_well(self):
        for call in ("List", "Stats"):
            ps = Ended(call)
            self.addCleanup(ps.server.stop, None)
            for options, expected in (((), 138), (("--watch",), 0), (("--watch", "--json"), 0)):
                with self.subTest(call=call, options=options):
                    code, text = self.ask(ps, "stats", *options)
                    self.assertIn("sumac stats: the run has ended: every listed member has left as done", text)
                    self.assertEqual(code, expected, text)


if __name__ == "__main__":
    unittest.main()
