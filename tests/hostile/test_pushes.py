# SPDX-License-Identifier: Apache-2.0
"""Pushes that no client of ours would send."""
import itertools
import math
import struct
import unittest

from attack import (Attack, PushStream, commit, floats, grpc, part, pieces_of, push_and_wait, transfer_pb2, types_pb2)
from raw import raw_stream, scattered_part
from wire import Client, Stream

NAN = floats(math.nan)

class Pieces(Attack):
    def setUp(self):
        super().setUp()
        self.client = self.observer()
        self.shard = self.client.create("w", [4], shards=1).shards[0]
        self.stream = PushStream(self.client, self.shard.ps)
        self.addCleanup(self.stream.close)
        self.sequence, self.applied = 0, 0

    def push(self, payload=b"", pieces=(), **header):
        """An eager push of these pieces in one message; what became of it."""
        number = self.sequence + 1
        given = {"previous": self.applied, "eager": True, "bytes": len(payload), "weight": 1, **header}
        message = transfer_pb2.PushRequest(
            parts=[transfer_pb2.Part(sequence=number, first=True, last=True, pieces=pieces, **given)], payload=payload)
        fate = push_and_wait(self.stream, message, number)
        if isinstance(fate, str):
            self.sequence = self.applied = number
        return fate

    def test_empty_and_continued_pieces_in_every_order_add_exactly_what_they_carry(self):
        runs = [(0, 0), (0, 16), (0, 8), (8, 8), (8, 0), (16, 0), (4, 4)]
        expected = [0.0] * 4
        for count in (1, 2, 3):
            for chosen in itertools.product(runs, repeat=count):
                total = sum(length for _, length in chosen)
                fate = self.push(floats(*[1] * (total // 4)), pieces_of(self.shard, *chosen))
                self.assertIn(fate, ("done", "refused"))
                if fate == "done":
                    for offset, length in chosen:
                        for element in range(offset // 4, (offset + length) // 4):
                            expected[element] += 1
        self.assertEqual(self.client.pull(self.shard.ps, self.shard), floats(*expected))

    def test_a_part_whose_first_message_has_an_empty_piece_is_continued(self):
        for first, then in (((0, 0), (0, 16)), ((16, 0), (0, 16)), ((0, 8), (8, 8)), ((0, 16), (16, 0)), ((8, 0), (8, 8))):
            number, total = self.sequence + 1, first[1] + then[1]
            for runs, is_first in ((first, True), (then, False)):
                header = {"previous": self.applied, "eager": True, "bytes": total, "weight": 1} if is_first else {}
                message = transfer_pb2.PushRequest(
                    parts=[transfer_pb2.Part(sequence=number, first=is_first, last=not is_first,
                                             pieces=pieces_of(self.shard, runs), **header)], payload=floats(*[1] * (runs[1] // 4)))
                if is_first:
                    self.stream.send(message)
            self.assertIn(push_and_wait(self.stream, message, number), ("done", "refused"))
            self.sequence = self.applied = number

    def test_pieces_beyond_a_shard_or_beyond_all_numbers_are_refused(self):
        huge = (1 << 64) - 1
        for offset in (4, 16, 17, huge - 3, huge, 1 << 63):
            fate = self.push(floats(1, 1, 1, 1), pieces_of(self.shard, (offset, 16)))
            self.assertNotEqual(fate, "done", f"at offset {offset}")
        for sizes in ((huge,), (huge, 17), (1 << 63, (1 << 63) + 16), (3,), (0, 0, 5)):
            fate = self.push(floats(1, 1, 1, 1), pieces_of(self.shard, *((0, size) for size in sizes)), bytes=16)
            self.assertNotEqual(fate, "done", f"of {sizes} bytes")
        self.assertEqual(self.client.pull(self.shard.ps, self.shard), floats(0, 0, 0, 0))

    def test_odd_fields_of_a_piece_or_a_part_are_refused(self):
        whole = (0, 16)
        piece = pieces_of(self.shard, whole)[0]
        for field, value in (("shard_id", 1 << 60), ("layout_epoch", 9), ("kind", 1), ("kind", 2), ("kind", 77), ("slot", 1), ("function", 1),
                             ("codec", 3)):
            odd = transfer_pb2.Piece()
            odd.CopyFrom(piece)
            setattr(odd, field, value)
            fate = self.push(floats(1, 1, 1, 1), [odd])
            if field not in ("slot", "codec"):      # (later): numbers that are not looked at
                self.assertNotEqual(fate, "done", field)
        adam = types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_ADAM)
        for functions in ([adam], [types_pb2.Function(function=99)], [types_pb2.Function()] * 300):
            piece.function = 1
            self.assertNotEqual(self.push(floats(1, 1, 1, 1), [piece], functions=functions), "done")
        piece.function = 0
        for header in ({"synchronous": True}, {"checksum": 5}, {"bytes": 0}, {"bytes": 1 << 63}, {"bytes": 17}):
            self.assertNotEqual(self.push(floats(1, 1, 1, 1), [piece], **header), "done", header)

    def test_a_previous_that_can_never_come_is_refused_at_once(self):
        whole = pieces_of(self.shard, (0, 16))
        for _ in range(3):
            self.assertEqual(self.push(floats(1, 1, 1, 1), whole), "done")
        for previous in (1, self.sequence + 1, self.sequence + 2, (1 << 64) - 1):
            fate = self.push(floats(1, 1, 1, 1), whole, previous=previous)
            self.assertIsInstance(fate, grpc.RpcError, f"previous {previous} after {self.sequence}")
            self.assertEqual(fate.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_messages_that_contradict_themselves_end_only_their_stream(self):
        whole = pieces_of(self.shard, (0, 16))
        first = transfer_pb2.Part(sequence=1, first=True, last=True, pieces=whole, eager=True, bytes=16, weight=1)
        hello = self.client.hello(self.shard.ps)
        requests = [transfer_pb2.PushRequest(parts=[first], payload=b"1234"),
                    transfer_pb2.PushRequest(parts=[first]),
                    transfer_pb2.PushRequest(payload=b"1234"),
                    transfer_pb2.PushRequest(hello=hello),
                    transfer_pb2.PushRequest(parts=[transfer_pb2.Part(sequence=5, last=True, pieces=whole)], payload=floats(1, 1, 1, 1))]
        for request in requests:
            self.stream.send(request)
            while self.stream.next() is not None:
                pass
        self.assertEqual(len(self.stream.ended), len(requests))

    def test_room_that_is_asked_for_and_never_filled_holds_up_no_small_push(self):
        """Floors are never lent; and elements that were not asked for are passed over."""
        pieces = pieces_of(self.shard, (0, 16))
        asks = [transfer_pb2.Part(sequence=number, previous=number - 1, first=True, last=True, bytes=16, weight=1, room_bytes=5 << 20)
                for number in range(1, 5)]
        self.stream.send(transfer_pb2.PushRequest(parts=asks))
        answer = self.stream.next()
        self.assertEqual(list(answer.resend), [1])
        self.assertEqual([wait.sequence for wait in answer.room_waits], [2, 3, 4])
        self.assertIn("5 MiB are held, most of them by push 1", answer.room_waits[0].message)
        asks[1].pieces.extend(pieces)
        self.stream.send(transfer_pb2.PushRequest(parts=[asks[1]], payload=floats(1, 1, 1, 1)))
        self.victim.push()
        more = transfer_pb2.Part(sequence=5, previous=4, first=True, last=True, bytes=16, weight=1, room_bytes=5 << 20)
        self.stream.send(transfer_pb2.PushRequest(parts=[more]))
        self.assertIsNone(self.stream.next())
        reason = dict(self.stream.ended[-1].trailing_metadata())["sumac-reason"]
        self.assertEqual(reason, str(types_pb2.REASON_TOO_MANY_IN_FLIGHT))

    def test_bytes_that_are_no_message_end_only_their_stream(self):
        hello = transfer_pb2.PushRequest(hello=self.client.hello(self.shard.ps)).SerializeToString()
        for garbage in (b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", b"\x7a\x02ab\x7a\x02cd", b"\x12\x05\x0a\x03", b"\x00" * 1000, b"\x7b" * 4000):
            call = raw_stream(self.client.ps[self.shard.ps].channel, "/sumac.v1.Transfer/Push", [hello, garbage])
            with self.assertRaises(grpc.RpcError):
                for _ in call:
                    pass

    def test_a_weight_that_is_no_count_does_not_spoil_the_statistics(self):
        for weight in (math.nan, math.inf, -math.inf, -1.0, -5e-324):
            self.assertEqual(self.push(floats(1, 1, 1, 1), pieces_of(self.shard, (0, 16)), weight=weight), "refused", weight)
        for weight in (1e308, 1e308):
            self.assertEqual(self.push(floats(1, 1, 1, 1), pieces_of(self.shard, (0, 16)), weight=weight), "done", weight)
        for session in self.stats(self.shard.ps).sessions:
            self.assertTrue(math.isfinite(session.weight), session)


class Piling(Attack):
    """What is sent, and never taken back."""

    def setUp(self):
        super().setUp()
        self.client = self.observer()

    def hello(self, ps):
        self.client.generation += 1
        return transfer_pb2.PushRequest(hello=self.client.hello(ps)).SerializeToString()

    def until_it_ends(self, ps, messages):
        """All of them on one stream, whose answers are read; the error that ended it, or None."""
        try:
            for _ in raw_stream(self.client.ps[ps].channel, "/sumac.v1.Transfer/Push", [self.hello(ps), *messages]):
                pass
        except grpc.RpcError as error:
            return error
        return None

    def test_staged_parts_of_many_empty_pieces_are_counted(self):
        shard = self.client.create("w", [4], shards=1).shards[0]
        self.until_it_ends(shard.ps, (scattered_part(2 + i, 1 + i, shard.shard_id, 65000, 0) for i in range(50)))
        self.nothing_is_beyond_the_formula()

    def test_staged_parts_of_many_pieces_of_one_byte_are_counted(self):
        shard = self.client.create("w", [65536], shards=1, data_type=types_pb2.DATA_TYPE_INT8).shards[0]
        self.until_it_ends(shard.ps, (scattered_part(2 + i, 1 + i, shard.shard_id, 32000, 1) for i in range(60)))
        self.nothing_is_beyond_the_formula()

    def test_staged_parts_of_pieces_of_one_element_are_counted(self):
        shard = self.client.create("w", [4], shards=1).shards[0]
        one = pieces_of(shard, *[(4 * (i % 4), 4) for i in range(4)])
        for pieces in (one[:1], one[::2], one[::-1]):
            self.until_it_ends(shard.ps, (transfer_pb2.PushRequest(
                parts=[transfer_pb2.Part(sequence=2 + i, previous=1 + i, first=True, last=True, pieces=pieces, bytes=4 * len(pieces), weight=1)],
                payload=floats(*[1] * len(pieces))).SerializeToString() for i in range(3000)))
        self.nothing_is_beyond_the_formula()

    def test_functions_of_staged_parts_are_counted(self):
        shard = self.client.create("w", [4], shards=1).shards[0]
        functions = [types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_SGD)] * 256
        self.until_it_ends(shard.ps, (transfer_pb2.PushRequest(
            parts=[transfer_pb2.Part(sequence=2 + i, previous=1 + i, first=True, last=True, pieces=pieces_of(shard, (0, 0)), functions=functions,
                                     weight=1)]).SerializeToString() for i in range(1100)))
        self.nothing_is_beyond_the_formula()

    def test_refused_pushes_that_are_never_acknowledged_are_counted(self):
        shard = self.client.create("w", [1], shards=1).shards[0]
        error = self.until_it_ends(shard.ps, (part(1 + i, shard, NAN, previous=i, eager=True).SerializeToString() for i in range(12000)))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error)
        self.assertEqual(dict(error.trailing_metadata())["sumac-reason"], str(types_pb2.REASON_TOO_MANY_REFUSED))

    def test_voided_pushes_of_a_commit_are_counted(self):
        shard = self.client.create("w", [1], shards=1).shards[0]
        error = self.until_it_ends(shard.ps, (commit(i * 1000, voided=range(i * 1000, i * 1000 + 1000)).SerializeToString()
                                              for i in range(1, 200)))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error)
        self.assertEqual(dict(error.trailing_metadata())["sumac-reason"], str(types_pb2.REASON_TOO_MANY_REFUSED))

    def test_duplicates_whose_answers_nobody_reads_are_counted(self):
        variable = self.client.create("w", [2048, 1], shards=2048)
        shards = [shard for shard in variable.shards if shard.ps == 0]
        pieces = [pieces_of(shard, (0, 4))[0] for shard in shards]
        whole = transfer_pb2.PushRequest(
            parts=[transfer_pb2.Part(sequence=1, first=True, last=True, eager=True, pieces=pieces, bytes=4 * len(pieces), weight=1)],
            payload=floats(*[1] * len(pieces)))
        stream = Stream(self.client.ps[0].transfer.Push)
        self.client.generation += 1
        stream.send(transfer_pb2.PushRequest(hello=self.client.hello(0)))
        for _ in range(1500):
            stream.send(whole)
        self.nobody_was_harmed()
        stream.cancel()

    def test_numbers_without_end_in_a_commit_do_nothing(self):
        shard = self.client.create("w", [1], shards=1).shards[0]
        huge = (1 << 64) - 1
        for through, voided, acked in ((1000, (), 0), (huge, (), huge), (5, (huge,), 0), (0, (0,), 0), (huge, (1, 1, 1), 1 << 60)):
            self.until_it_ends(shard.ps, [commit(through, voided, acked).SerializeToString()])
        self.until_it_ends(shard.ps, [part(huge, shard, floats(1)).SerializeToString(), part(0, shard, floats(1)).SerializeToString()])

    def test_more_parts_than_may_be_in_flight_end_the_stream_with_a_reason(self):
        shard = self.client.create("w", [1], shards=1).shards[0]
        error = self.until_it_ends(shard.ps, (part(2 + i, shard, floats(1), previous=1 + i).SerializeToString() for i in range(2000)))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error)
        self.assertEqual(dict(error.trailing_metadata())["sumac-reason"], str(types_pb2.REASON_TOO_MANY_IN_FLIGHT))


class Contributions(Attack):
    ps_count, workers = 1, 2
    SESSIONS_MAX = 32       # by default

    def attempt(self):
        """Worker 1 joins, contributes to its first step, and leaves. The reason that the ps has against the contribution, or None."""
        client = Client(self.addresses, task=1)
        self.addCleanup(client.close)
        contribution = transfer_pb2.Part(sequence=1, first=True, last=True, synchronous=True, step=client.joined.first_step, weight=1)
        stream = client.open_push(0)[0]
        stream.send(transfer_pb2.PushRequest(parts=[contribution], commit=transfer_pb2.Commit(commit_through=1)))
        try:
            self.assertTrue(stream.next().staged)
            return None
        except grpc.RpcError as error:
            return dict(error.trailing_metadata())["sumac-reason"]
        finally:
            client.leave(done=False)

    def test_a_worker_that_leaves_contributions_behind_shuts_nobody_out(self):
        """Worker 0 makes none, so they wait for the rest of the run."""
        taken = [self.attempt() for _ in range(2 * self.SESSIONS_MAX)]
        self.assertEqual(taken, [None] * (self.SESSIONS_MAX - 1) + [str(types_pb2.REASON_BUSY)] * (self.SESSIONS_MAX + 1))
        self.observer()
        self.victim.push()      # on the grant that it has


if __name__ == "__main__":
    unittest.main()
