# SPDX-License-Identifier: Apache-2.0
"""Peers that say they are ps 0."""
import unittest

import grpc

from attack import Attack, DEADLINE_S, types_pb2
from wire import Stream, sys  # noqa: F401  (wire finds the generated stubs)

from sumac.v1 import peer_pb2, peer_pb2_grpc


class Impostors(Attack):
    def setUp(self):
        super().setUp()
        self.attends = peer_pb2_grpc.PeerStub(self.ps(1).channel).Attend
        self.listed = self.list()

    def hello(self, **more):
        return peer_pb2.PeerHello(**{
            "protocol_version": 2, "cluster_id": self.listed.cluster_id, "epoch": 1, "controller_incarnation": self.listed.ps_incarnation,
            "index": 1, "ps_addresses": self.addresses, "ps_incarnations": [self.listed.ps_incarnation, 0], **more})

    def says(self, *orders):
        """The orders on a stream; what was reported until the ps ended it, and why it did."""
        stream, reports = Stream(self.attends), []
        for order in orders:
            stream.send(order)
        try:
            while True:
                report = stream.next()
                if report is None:
                    return reports, None
                reports.append(report)
        except grpc.RpcError as error:
            return reports, error

    def test_a_hello_of_another_ps_0_is_refused_and_ends_nobody(self):
        for odd in ({"controller_incarnation": 5}, {"cluster_id": 5}, {"epoch": 9}, {"index": 0}, {"index": 300}, {"protocol_version": 3},
                    {"expected_incarnation": 5}, {"ps_addresses": []}, {"ps_incarnations": [1] * 300}):
            self.says(peer_pb2.PeerOrder(number=1, hello=self.hello(**odd)), peer_pb2.PeerOrder(number=2, end=peer_pb2.End(exit_code=3)))
            self.nobody_was_harmed()

    def test_who_repeats_what_everybody_may_read_is_not_taken_for_ps_0(self):
        for number in (1, 1 << 62):
            self.says(peer_pb2.PeerOrder(number=number, hello=self.hello()),
                      peer_pb2.PeerOrder(number=number + 1, end=peer_pb2.End(exit_code=0)))
            self.nobody_was_harmed()

    def test_orders_with_a_refused_hello_are_not_obeyed(self):
        for number in (0, 1, 2):
            self.says(peer_pb2.PeerOrder(number=number, hello=self.hello(controller_incarnation=5), end=peer_pb2.End(exit_code=3)))
            self.says(peer_pb2.PeerOrder(number=number, hello=self.hello(index=0), end=peer_pb2.End(exit_code=3)))
        self.nobody_was_harmed()

    def test_orders_without_a_hello_are_not_obeyed(self):
        variable = types_pb2.Variable(name="ints", variable_id=99, data_type=types_pb2.DATA_TYPE_INT8, shape=[4],
                                      function=types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_ASSIGN),
                                      initializer=types_pb2.Initializer(kind=types_pb2.Initializer.KIND_NORMAL, a=1e30, b=1e30),
                                      shards=[types_pb2.Shard(shard_id=99, ps=1, rows=4, bytes=4)])
        for order in (peer_pb2.PeerOrder(number=1, end=peer_pb2.End(exit_code=3)), peer_pb2.PeerOrder(alive=True), peer_pb2.PeerOrder(),
                      peer_pb2.PeerOrder(number=1, delete=peer_pb2.DeleteVariable(variable_id=self.listed.variables[0].variable_id)),
                      peer_pb2.PeerOrder(number=1, add_shards=peer_pb2.AddShards(variable=variable)),
                      peer_pb2.PeerOrder(number=1, open=peer_pb2.OpenSession(session_id=b"x" * 16)),
                      peer_pb2.PeerOrder(number=1, close=peer_pb2.CloseSession(session_id=self.victim.client.joined.session_id)),
                      peer_pb2.PeerOrder(number=1, decide=peer_pb2.DecideSession(session_id=self.victim.client.joined.session_id))):
            _, error = self.says(order)
            self.assertIsNotNone(error)
        self.assertEqual([variable.name for variable in self.list().variables], ["victim"])

    def test_nobody_attends_ps_0(self):
        stream = Stream(peer_pb2_grpc.PeerStub(self.ps(0).channel).Attend)
        stream.send(peer_pb2.PeerOrder(number=1, hello=self.hello(index=0), end=peer_pb2.End(exit_code=3)))
        with self.assertRaises(grpc.RpcError):
            while True:
                stream.next()


if __name__ == "__main__":
    unittest.main()
