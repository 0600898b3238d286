# SPDX-License-Identifier: Apache-2.0
"""Readers that ask for more than they take."""
import unittest

import grpc

from attack import Attack, DEADLINE_S, MIB, floats, transfer_pb2, variables_pb2
from raw import RawStream, pull_of_pieces
from wire import Stream


class Readers(Attack):
    def setUp(self):
        super().setUp()
        self.client = self.observer()

    def stream(self, ps, hello):
        """A pull stream of bytes on a connection of its own, whose answers nobody reads."""
        stream = RawStream(self.ps(ps).channel, "/sumac.v1.Transfer/Pull")
        self.addCleanup(stream.cancel)
        stream.send(transfer_pb2.PullRequest(hello=hello).SerializeToString())
        return stream

    def stranger(self):
        return transfer_pb2.Hello(protocol_version=2)

    def test_pulls_of_many_pieces_that_nobody_reads_are_counted(self):
        shard = self.client.create("w", [4], shards=1).shards[0]
        stream = self.stream(shard.ps, self.stranger())
        for number in range(1, 101):
            stream.send(pull_of_pieces(number, shard.shard_id, 65000))
        self.nobody_was_harmed()

    def test_pulls_of_many_pieces_that_wait_are_counted(self):
        shard = self.client.create("w", [4], shards=1).shards[0]
        stream = self.stream(shard.ps, self.client.hello(shard.ps))
        for number in range(1, 101):
            stream.send(pull_of_pieces(number, shard.shard_id, 65000, after_sequence=1000))
        self.nobody_was_harmed()

    def test_more_small_pulls_than_may_wait_end_the_stream(self):
        shard = self.client.create("w", [4], shards=1).shards[0]
        stream = self.stream(shard.ps, self.client.hello(shard.ps))
        for number in range(1, 6000):
            stream.send(pull_of_pieces(number, shard.shard_id, 1, after_sequence=1000))
        with self.assertRaises(grpc.RpcError) as raised:
            while True:
                stream.next()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_long_pulls_that_nobody_reads_keep_no_more_than_the_views_may(self):
        shard = self.client.create("w", [2 * MIB], shards=1).shards[0]
        for _ in range(20):
            stream = self.stream(shard.ps, self.stranger())
            for number in range(1, 5):
                stream.send(pull_of_pieces(number, shard.shard_id, 1))
        for number in range(3):
            self.victim.push()
        self.nobody_was_harmed()

    def test_a_variable_is_deleted_though_a_reader_holds_it(self):
        shard = self.client.create("w", [2 * MIB], shards=1).shards[0]
        stream = self.stream(shard.ps, self.stranger())
        stream.send(pull_of_pieces(1, shard.shard_id, 1))
        stream.next()
        self.client.ps[0].variables.Delete(
            variables_pb2.DeleteRequest(session_id=self.client.joined.session_id, name="w"), timeout=DEADLINE_S)
        self.nobody_was_harmed()

    def test_odd_pulls_are_answered_with_an_error(self):
        shard = self.victim.shards[0]
        huge = (1 << 64) - 1
        piece = transfer_pb2.Piece
        odd = [[piece(shard_id=77)], [piece(shard_id=shard.shard_id, layout_epoch=9)],
               [piece(shard_id=shard.shard_id, layout_epoch=1, offset_bytes=huge)],
               [piece(shard_id=shard.shard_id, layout_epoch=1, offset_bytes=4, bytes=huge)],
               [piece(shard_id=shard.shard_id, layout_epoch=1, offset_bytes=1)], [piece(shard_id=shard.shard_id, layout_epoch=1, bytes=3)],
               [piece(shard_id=shard.shard_id, layout_epoch=1, kind=2)]]
        requests = [transfer_pb2.PullRequest(request=1, pieces=pieces) for pieces in odd]
        requests += [transfer_pb2.PullRequest(request=1, view_id=5),
                     transfer_pb2.PullRequest(request=1, bounded=True, clock=huge, timeout_ms=1),   # nobody gets that far
                     transfer_pb2.PullRequest(request=1, pieces=[piece(shard_id=shard.shard_id, layout_epoch=1)] * 70000)]
        for request in requests:
            stream = Stream(self.ps(0).transfer.Pull)
            stream.send(transfer_pb2.PullRequest(hello=self.stranger()))
            stream.send(request)
            try:
                answer = stream.next()
                while answer.request == 0:
                    answer = stream.next()
                self.assertNotEqual(answer.status, 0, request.pieces[:1])
            except grpc.RpcError:
                pass        # it ended the stream, which says as much
            stream.cancel()

    def test_cancels_of_nothing_and_numbers_used_twice_do_nothing(self):
        shard = self.victim.shards[0]
        stream = Stream(self.ps(0).transfer.Pull)
        stream.send(transfer_pb2.PullRequest(hello=self.stranger()))
        for number in (0, 1, (1 << 64) - 1):
            stream.send(transfer_pb2.PullRequest(request=number, cancel=True))
        for _ in range(2):
            stream.send(transfer_pb2.PullRequest(request=7, pieces=[transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=1)]))
        answers = 0
        while answers < 2:
            answer = stream.next()
            if answer.request == 7:
                self.assertEqual(answer.payload, floats(*[self.victim.value] * 4))
                answers += 1
        stream.end()


if __name__ == "__main__":
    unittest.main()
