# SPDX-License-Identifier: Apache-2.0
"""One create of many variables: by the C client, and by strangers that send what no client of ours does."""
import os
import signal
import subprocess
import unittest

import grpc

from cluster import BUILD, LONG_MS, PATIENCE_S, SUMAC, Cluster
from wire import DEADLINE_S, Client, types_pb2, variables_pb2


class ByTheClient(unittest.TestCase):
    def test_what_it_made_can_be_used(self):
        done = subprocess.run([SUMAC, "run", "--ps", "2", "--workers", "1", "--", os.path.join(BUILD, "many")], capture_output=True,
                              text=True, timeout=10 * PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all is so", done.stdout)


class ByStrangers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, workers=1, options=["--ps-lost-ms", str(LONG_MS)])
        cls.addClassCleanup(cls.cluster.stop)
        cls.client = Client(cls.cluster.addresses())
        cls.addClassCleanup(cls.client.close)

    def tearDown(self):     # whatever was sent, the next one is served
        name = self.id().rpartition(".")[2]
        self.assertEqual([variable.name for variable in self.client.create_many([name])], [name])

    def call(self, names, session_id=None, timeout_ms=0, shape=(4,), **more):
        variables = [types_pb2.Variable(name=name, data_type=types_pb2.DATA_TYPE_FLOAT32, shape=shape) for name in names]
        request = variables_pb2.CreateRequest(variables=variables, timeout_ms=timeout_ms, **more,
                                              session_id=self.client.joined.session_id if session_id is None else session_id)
        return self.client.ps[0].variables.Create.future(request, timeout=DEADLINE_S)

    def refused(self, *arguments, **more):
        """(status, reason, text)"""
        with self.assertRaises(grpc.RpcError) as raised:
            self.call(*arguments, **more).result()
        error = raised.exception
        return error.code(), dict(error.trailing_metadata()).get("sumac-reason"), error.details()

    def check_refused(self, status, reason, text, *arguments, **more):
        said = self.refused(*arguments, **more)
        self.assertEqual(said[:2], (status, str(reason)), said[2])
        self.assertRegex(said[2], text)

    def test_more_than_one_call_takes(self):
        self.check_refused(grpc.StatusCode.INVALID_ARGUMENT, types_pb2.REASON_MALFORMED, "names 257 variables, and 256 are the most",
                           [f"a{number}" for number in range(257)])
        self.check_refused(grpc.StatusCode.RESOURCE_EXHAUSTED, types_pb2.REASON_MESSAGE_TOO_LARGE, "bytes",
                           [f"a{number}" for number in range(20000)])
        self.check_refused(grpc.StatusCode.RESOURCE_EXHAUSTED, types_pb2.REASON_MESSAGE_TOO_LARGE, "bytes", ["a" * (1 << 20)])

    def test_one_name_256_times(self):
        self.check_refused(grpc.StatusCode.INVALID_ARGUMENT, types_pb2.REASON_MALFORMED, "names b twice", ["b"] * 256)

    def test_one_variable_beside_the_list(self):
        self.check_refused(grpc.StatusCode.INVALID_ARGUMENT, types_pb2.REASON_MALFORMED, "one variable, and 1 beside it", ["c"],
                           variable=types_pb2.Variable(name="d", data_type=types_pb2.DATA_TYPE_FLOAT32, shape=[4]))

    def test_of_who_has_not_joined(self):
        for session_id in (b"", b"short", bytes(16)):
            self.check_refused(grpc.StatusCode.NOT_FOUND, types_pb2.REASON_SESSION_UNKNOWN, "no such session", ["e"],
                               session_id=session_id)

    def test_again_with_another_content(self):
        self.call(["f0", "f1"]).result()
        self.check_refused(grpc.StatusCode.ALREADY_EXISTS, types_pb2.REASON_ALREADY_EXISTS, "f1 exists with shape", ["f2", "f1"],
                           shape=(5,))
        with self.assertRaises(grpc.RpcError):
            self.client.ps[0].variables.List(variables_pb2.ListRequest(names=["f2"]), timeout=DEADLINE_S)

    def test_cancelled_while_it_waits_and_beyond_its_time(self):
        """A ps that stands still keeps them waiting; what was begun is there for the same call again."""
        names = [f"g{number}" for number in range(200)]
        self.cluster.ps[1].signal(signal.SIGSTOP)
        try:
            self.check_refused(grpc.StatusCode.DEADLINE_EXCEEDED, types_pb2.REASON_TIMED_OUT, "create of g0 waits for ps 1 at",
                               names, timeout_ms=300)
            waiting = [self.call(names) for _ in range(20)]
            for call in waiting:
                call.cancel()
        finally:
            self.cluster.ps[1].signal(signal.SIGCONT)
        self.assertEqual([variable.name for variable in self.call(names).result().variables], names)


if __name__ == "__main__":
    unittest.main()
