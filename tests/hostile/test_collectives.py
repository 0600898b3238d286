# SPDX-License-Identifier: Apache-2.0
"""Contributions to rounds of collectives that no client of ours would send, and rounds that nobody ends."""
import itertools
import math
import time
import unittest

from attack import (Attack, Client, MIB, PushStream, SANITIZED, floats, grpc, pieces_of, resident_bytes, sessions_pb2,
                    transfer_pb2, types_pb2)
from raw import field
from wire import DEADLINE_S as PATIENCE_S, Stream, sys  # noqa: F401  (wire finds the generated stubs)

from sumac.v1 import peer_pb2, peer_pb2_grpc

END_BYTES = 2048        # what a ps keeps of a round that failed, for participants that come late
SUM, MEAN, MIN, MAX, GATHER, BROADCAST, CONCATENATE = range(1, 8)
FLOAT32, INT32, BOOL = types_pb2.DATA_TYPE_FLOAT32, types_pb2.DATA_TYPE_INT32, types_pb2.DATA_TYPE_BOOL
HUGE = (1 << 64) - 1
REASONS = {number: name.removeprefix("REASON_") for name, number in types_pb2.Reason.items()}
MANY = 20_000 if SANITIZED else 100_000


def worker(index):
    """As a header names it."""
    return 2 * index + 1


def home_of(name, ps_count):
    value = 0xcbf29ce484222325
    for byte in name:
        value = (value ^ byte) * 0x100000001b3 & HUGE
    return value % ps_count


class Participant:
    """A session that contributes by hand: one push after the other, each with one part, or one for each ps."""

    def __init__(self, addresses, task=None):
        role = sessions_pb2.ROLE_OBSERVER if task is None else sessions_pb2.ROLE_MEMBER
        self.client, self.task = Client(addresses, role=role, task=task or 0), task
        self.pushes = [PushStream(self.client, ps) for ps in range(len(addresses))]
        self.pulls = [None] * len(addresses)
        self.last = [0] * len(addresses)    # of each ps: the last sequence with a part there
        self.sequence = self.request = 0

    def header(self, name=b"round", number=1, tasks=None, operation=SUM, data_type=FLOAT32, shape=(2,), **more):
        tasks = [worker(self.task or 0)] if tasks is None else tasks
        return transfer_pb2.Collective(name=name, round=number, tasks=tasks, operation=operation, data_type=data_type, shape=shape, **more)

    def part(self, ps, collective, payload, pieces=None, sequence=None, **more):
        """A message with a whole contribution; its number is the session's next, or one that was used on another ps."""
        if sequence is None:
            self.sequence = sequence = self.sequence + 1
        if pieces is None:
            pieces = [transfer_pb2.Piece(bytes=len(payload))] if payload else []
        given = {"previous": self.last[ps], "first": True, "last": True, "eager": True, "bytes": len(payload), "weight": 1, **more}
        self.last[ps] = sequence
        return transfer_pb2.PushRequest(parts=[transfer_pb2.Part(sequence=sequence, collective=collective, pieces=pieces, **given)],
                                        payload=payload)

    def fate(self, ps, sequence=None):
        """Of a push: "done", the name of a reason and the sentence that it is refused with, or what ended the stream."""
        sequence, stream = sequence or self.sequence, self.pushes[ps]
        while True:
            answer = stream.next()
            if answer is None:
                self.last[ps] = self.sequence       # whatever became of it, the next one is told from it
                return "ended", stream.ended[-1]
            for refused in answer.refused:
                if refused.sequence == sequence:
                    return REASONS[refused.reason], refused.message
            if any(done.sequence == sequence for done in answer.done):
                return "done", ""

    def contribute(self, ps, payload, collective, **more):
        """Of one message: what became of it."""
        self.pushes[ps].send(self.part(ps, collective, payload, **more))
        return self.fate(ps)

    def split(self, payloads, collectives, commits=True):
        """One push with a part on every ps, each with a header of its own."""
        self.sequence += 1
        for ps, (payload, collective) in enumerate(zip(payloads, collectives)):
            self.pushes[ps].send(self.part(ps, collective, payload, sequence=self.sequence, eager=False))
        for ps in range(len(payloads) if commits else 0):
            self.commit(ps, commit_through=self.sequence)
        return [self.fate(ps) for ps in range(len(payloads) if commits else 0)]

    def commit(self, ps, **more):
        self.pushes[ps].send(transfer_pb2.PushRequest(commit=transfer_pb2.Commit(**more)))

    def acknowledge(self, ps):
        """It wants no more of any round so far."""
        self.commit(ps, commit_through=self.sequence, acked_through=self.sequence, collectives_through=self.sequence)

    def ask(self, ps, name=b"round", number=1, timeout_ms=60_000, **more):
        """A pull of a round; its number."""
        if self.pulls[ps] is None:
            self.pulls[ps] = Stream(self.client.ps[ps].transfer.Pull)
            self.pulls[ps].send(transfer_pb2.PullRequest(hello=self.client.hello(ps)))
        self.request += 1
        self.pulls[ps].send(transfer_pb2.PullRequest(request=self.request, timeout_ms=timeout_ms,
                                                     collective=transfer_pb2.CollectiveRound(name=name, round=number), **more))
        return self.request

    def hear(self, ps, request):
        """What a pull comes to: its bytes, or the name of a reason."""
        payload = b""
        while True:
            answer = self.pulls[ps].next()
            if answer.request != request:
                continue
            if answer.status:
                return REASONS[answer.reason]
            payload += answer.payload
            if answer.last:
                return payload

    def pull(self, ps, name=b"round", number=1, **more):
        return self.hear(ps, self.ask(ps, name, number, **more))

    def leave(self):
        self.client.leave(done=False, last_sequence=self.sequence)

    def close(self):
        for stream in [*self.pushes, *filter(None, self.pulls)]:
            stream.close() if isinstance(stream, PushStream) else stream.cancel()
        self.client.close()


class Collectives(Attack):
    """Worker 0 is the victim, worker 1 attacks, workers 2 and 3 meet in round after round, worker 4 never comes."""
    workers = 5
    bounds = ["--staging-max", "128M", "--sessions-max", "8", "--collectives-max", "32M", "--view-max", "4M", "--grpc-memory-max", "32M",
              "--calls-max", "1024", "--lease-ms", "300000"]
    honest_round = 0

    def setUp(self):
        super().setUp()
        self.attacker = self.participant(1)
        self.honest = [self.participant(2), self.participant(3)]
        self.late = self.participant(4)
        self.nobody_was_harmed()

    def participant(self, task=None):
        participant = Participant(self.addresses, task)
        self.addCleanup(participant.close)
        return participant

    def nobody_was_harmed(self):
        super().nobody_was_harmed()
        self.honest_round += 1
        for ps in range(self.ps_count):
            self.others_meet(ps)

    def others_meet(self, ps):
        name = next(name for name in (b"honest %d" % i for i in range(100)) if home_of(name, self.ps_count) == ps)
        for place, participant in enumerate(self.honest):
            collective = participant.header(name, self.honest_round, tasks=[worker(2), worker(3)])
            self.assertEqual(participant.contribute(ps, floats(place + 1, self.honest_round), collective), ("done", ""))
        for participant in self.honest:
            self.assertEqual(participant.pull(ps, name, self.honest_round), floats(3, 2 * self.honest_round))
            participant.acknowledge(ps)

    def home(self, name=b"round"):
        return home_of(name, self.ps_count)

    def collective_bytes(self, ps):
        return self.stats(ps).memory.collective_bytes

    def nothing_is_kept(self, but=0):
        """What is said on a stream is heard some time later; statistics are asked for as often as it takes."""
        until = time.monotonic() + PATIENCE_S
        for ps in range(self.ps_count):
            while (kept := self.collective_bytes(ps)) > but and time.monotonic() < until:
                pass
            self.assertLessEqual(kept, but, f"ps {ps}")

    def is_refused(self, reason, words, payload=floats(1, 2), ps=None, part=None, **header):
        """A contribution of the attacker's is, with that reason, in a sentence with those words."""
        collective = self.attacker.header(**header)
        ps = self.home(collective.name) if ps is None else ps
        fate, said = self.attacker.contribute(ps, payload, collective, **(part or {}))
        self.assertEqual(fate, reason, f"{header} {part}: {said}")
        self.assertIn(words, said)
        self.attacker.acknowledge(ps)

    # ---- headers

    def test_lists_of_participants_that_are_none_are_refused(self):
        fate, error = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(tasks=range(1, 2_000_001, 2)))
        self.assertEqual((fate, error.code()), ("ended", grpc.StatusCode.INVALID_ARGUMENT))      # no header is so large
        self.is_refused("MALFORMED", "names 100000 tasks", tasks=range(1, 200_001, 2))
        self.is_refused("MALFORMED", "names 513 tasks", tasks=range(1, 1027, 2))
        self.is_refused("MALFORMED", "names 0 tasks", tasks=[])
        self.is_refused("MALFORMED", "worker 1 contributes", tasks=[worker(2), worker(3)])
        self.is_refused("BAD_NAME", "names worker 99, and the cluster lists worker 0, ", tasks=[worker(1), worker(99)])
        self.is_refused("MALFORMED", "worker 1 after worker 1", tasks=[worker(1), worker(1)])
        self.is_refused("MALFORMED", "worker 1 after worker 2", tasks=[worker(2), worker(1)])
        self.is_refused("MALFORMED", "chief 0 after worker 1", tasks=[worker(1), 0])
        self.is_refused("MALFORMED", "a task of no index", tasks=[worker(1), HUGE])
        self.nothing_is_kept()

    def test_lists_of_attempts_that_do_not_fit_are_refused(self):
        own, pair = self.attacker.client.joined.attempt, [worker(1), worker(2)]
        fate, error = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(attempts=[own] * 1_000_000))
        self.assertEqual((fate, error.code()), ("ended", grpc.StatusCode.RESOURCE_EXHAUSTED))    # no header is so large
        for count in (2, 3, 513, 100_000):
            self.is_refused("MALFORMED", f"names {count} attempts of 1 tasks", attempts=[own] * count)
        for count in (1, 3):
            self.is_refused("MALFORMED", f"names {count} attempts of 2 tasks", tasks=pair, attempts=[own] * count)
        for number in (0, own + 1, 1 << 63, HUGE):
            self.is_refused("MALFORMED", f"names itself as attempt {number}", attempts=[number])
            self.is_refused("MALFORMED", f"names itself as attempt {number}", tasks=pair, attempts=[number, own])
        self.nothing_is_kept()

    def test_attempts_of_another_that_are_none_fail_the_rounds_that_name_them(self):
        ps, tasks = self.home(), [worker(1), worker(2)]
        own, others = (participant.client.joined.attempt for participant in (self.attacker, self.honest[0]))
        names = (name for name in (b"name %d" % number for number in itertools.count()) if home_of(name, self.ps_count) == ps)
        for wrong in (others + 1, 1 << 63, HUGE, 0):        # 0: not known
            name, result = next(names), "MEMBER_GONE" if wrong else floats(2, 4)
            for participant, attempts in ((self.attacker, [own, wrong]), (self.honest[0], [own, others])):
                collective = participant.header(name, tasks=tasks, attempts=attempts)
                self.assertEqual(participant.contribute(ps, floats(1, 2), collective), ("done", ""))
            for participant in (self.attacker, self.honest[0]):
                self.assertEqual(participant.pull(ps, name), result)
                participant.acknowledge(ps)
        self.nothing_is_kept(but=6 * END_BYTES)

    def test_rounds_of_many_attempts_of_another_stay_within_the_bound(self):
        ps, own, fates = self.home(), self.attacker.client.joined.attempt, set()
        for number, attempt in enumerate([*range(1, 101), *range(HUGE, HUGE - 100, -1), *[7, HUGE] * 20]):
            for round_number in (1, number + 2):
                collective = self.attacker.header(number=round_number, tasks=[worker(1), worker(4)], shape=(8192,), timeout_ms=0xffffffff,
                                               attempts=[own, attempt])
                fates.add(self.attacker.contribute(ps, bytes(32_768), collective)[0])
            self.attacker.commit(ps, acked_through=self.attacker.sequence)
        self.assertLessEqual(fates, {"done", "BUSY", "ALREADY_EXISTS"})
        self.assertLessEqual(self.collective_bytes(ps), 64 * 33_000 + MIB)
        self.nobody_was_harmed()
        self.late.leave()
        self.attacker.leave()
        self.nothing_is_kept()

    def test_names_and_rounds_that_are_none_are_refused(self):
        self.is_refused("MALFORMED", "no round 0", number=0)
        self.is_refused("MALFORMED", "no round 18446744073709551615", number=HUGE)
        self.is_refused("BAD_NAME", "given 0", name=b"")
        self.is_refused("BAD_NAME", "given 257", name=b"x" * 257)
        self.is_refused("BAD_NAME", "given 500000", name=b"x" * 500_000)
        for name in (b"\xff\xfe", b"a\nb", b"a\0b", b"\x7f", b"\xc0\x80", b"\xed\xa0\x80"):
            self.is_refused("BAD_NAME", "not UTF-8, or has a control character", name=name)
        self.nothing_is_kept()

    def test_operations_types_and_places_that_are_none_are_refused(self):
        for operation in (0, 8, 1000, -1):
            self.is_refused("UNSUPPORTED", "is not known", operation=operation)
        for data_type in (0, 99, -5):
            self.is_refused("WRONG_DATA_TYPE", "is not known", data_type=data_type)
        self.is_refused("WRONG_DATA_TYPE", "no sum of bool", b"\1\1", data_type=BOOL)
        self.is_refused("WRONG_DATA_TYPE", "no mean of int32", operation=MEAN, data_type=INT32)
        for operation, axis in ((GATHER, 1), (GATHER, 0xffffffff), (SUM, 1), (CONCATENATE, 1), (BROADCAST, 1)):
            self.is_refused("BAD_SHAPE", f"along axis {axis}, of 0 to 0", operation=operation, axis=axis)
        for operation, root in ((BROADCAST, 1), (BROADCAST, 0xffffffff), (SUM, 1), (GATHER, 1)):
            self.is_refused("MALFORMED", f"at place {root}, of 0 to 0", operation=operation, root=root)
        self.nothing_is_kept()

    def test_shapes_beyond_all_numbers_are_refused(self):
        for operation in range(SUM, CONCATENATE + 1):
            for shape in ((HUGE,), (1 << 63,), (1 << 61, 2), (1 << 32, 1 << 32), (1 << 40, 1 << 23), (HUGE, HUGE, HUGE)):
                self.is_refused("BAD_SHAPE", "more than 2^63 - 1 bytes", operation=operation, shape=shape)
            self.is_refused("BAD_SHAPE", "a shape of 9 axes", operation=operation, shape=[1] * 9)
            self.is_refused("BAD_SHAPE", "a shape of 100000 axes", operation=operation, shape=[1] * 100_000)
        for operation in (GATHER, CONCATENATE):
            self.is_refused("BAD_SHAPE", "at most 1099511627776 along each axis", operation=operation, shape=((1 << 40) + 1, 0))
            self.is_refused("BAD_SHAPE", "has no axis", operation=operation, shape=())
        self.nothing_is_kept()

    def test_axes_that_are_as_long_as_may_be_add_up_without_bytes(self):
        # 2^40 rows of nothing of each of two: the result has 2^41 of them, and no bytes
        ps, tasks = self.home(), [worker(1), worker(2)]
        for participant in (self.attacker, self.honest[0]):
            collective = participant.header(tasks=tasks, operation=GATHER, shape=(1 << 40, 0))
            self.assertEqual(participant.contribute(ps, b"", collective), ("done", ""))
        self.assertEqual(self.attacker.pull(ps), b"")
        for participant in (self.attacker, self.honest[0]):
            participant.acknowledge(ps)
        self.is_refused("MALFORMED", "it has 8796093022208 there", b"", number=2, operation=CONCATENATE, shape=(1 << 40, 0))
        self.nothing_is_kept()

    def test_what_is_large_is_split_and_what_is_joined_is_not(self):
        self.is_refused("MALFORMED", "a gather is not split", operation=GATHER, split=True)
        self.is_refused("MALFORMED", "a broadcast is not split", operation=BROADCAST, split=True)
        self.is_refused("MALFORMED", "on one ps", shape=(MIB // 4 + 1,))
        self.is_refused("MALFORMED", "on one ps", shape=(1 << 60,))
        self.nothing_is_kept()

    # ---- parts

    def test_bytes_that_are_not_what_the_header_says_are_refused(self):
        for size in (0, 4, 12, 4096):
            self.is_refused("MALFORMED", "by its type and shape it has 8 there", bytes(size))
        for size in (HUGE, 1 << 63, (1 << 63) - 1, 1 << 40):
            fate, said = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(), bytes=size)
            self.assertIn(fate, ("MALFORMED", "PART_TOO_LARGE"), said)
        for sizes in ((4,), (), (4, 8), (8, 4), (3, 5), (0, 3), (8, 8)):
            pieces, offset = [], 0
            for size in sizes:
                pieces.append(transfer_pb2.Piece(offset_bytes=offset, bytes=size))
                offset += size
            self.is_refused("MALFORMED", "", bytes(offset), part={"pieces": pieces, "bytes": 8})
        self.is_refused("MALFORMED", "there", b"12345678", operation=BROADCAST, root=1, tasks=[worker(1), worker(2)])
        self.nothing_is_kept()

    def test_pieces_that_name_something_are_refused(self):
        shard = self.victim.shards[0]
        for odd in ({"shard_id": shard.shard_id}, {"shard_id": HUGE}, {"layout_epoch": 1}, {"kind": 1}, {"kind": 3}, {"kind": 77},
                    {"function": 1}, {"offset_bytes": 4}, {"offset_bytes": HUGE}):
            fate, said = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(),
                                                  pieces=[transfer_pb2.Piece(**{"bytes": 8, **odd})])
            self.assertIn(fate, ("MALFORMED", "UNKNOWN_FUNCTION", "UNSUPPORTED"), f"{odd}: {said}")
        fate, said = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(),
                                              pieces=[*pieces_of(shard, (0, 4)), transfer_pb2.Piece(offset_bytes=4, bytes=4)])
        self.assertEqual(fate, "MALFORMED", said)
        self.nothing_is_kept()

    def test_what_does_not_go_with_a_contribution_refuses_it(self):
        sgd = types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_SGD)
        for part, words in (({"functions": [sgd]}, "names update functions"), ({"scale": 2.0}, "has a scale"),
                            ({"weight": math.nan}, "weight nan"), ({"weight": math.inf}, "weight inf"), ({"weight": -1.0}, "weight -1")):
            self.is_refused("MALFORMED", words, part=part)
        fate, said = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(), synchronous=True, step=1)
        self.assertIn(fate, ("MALFORMED", "WRONG_STEP"), said)
        for weight in (2.0 ** 61, 2.0 ** -61, 5e-324):
            self.is_refused("MALFORMED", "a mean is divided by their sum", operation=MEAN, part={"weight": weight})
        for values in ((math.nan, 1), (1, math.inf), (-math.inf, 1)):
            self.is_refused("NON_FINITE", "is not finite", floats(*values))
        fate, said = self.attacker.contribute(self.home(), floats(1, 2), self.attacker.header(), checksum=5)
        self.assertEqual(fate, "MALFORMED", said)
        self.nothing_is_kept()

    def test_a_round_of_what_is_not_finite_has_its_result(self):
        ps = self.home()
        fate = self.attacker.contribute(ps, floats(math.inf, 1), self.attacker.header(), allow_non_finite=True)
        self.assertEqual(fate, ("done", ""))
        self.assertEqual(self.attacker.pull(ps), floats(math.inf, 1))
        self.attacker.acknowledge(ps)
        self.nothing_is_kept()

    def test_a_header_in_a_later_message_is_none(self):
        ps, collective = self.home(), self.attacker.header(shape=(4,))
        for later in (collective, self.attacker.header(b"other", 5, shape=(1 << 50,)), transfer_pb2.Collective()):
            collective.round += 1
            first = self.attacker.part(ps, collective, floats(1, 2), bytes=16, last=False)
            self.attacker.pushes[ps].send(first)
            self.attacker.pushes[ps].send(transfer_pb2.PushRequest(
                parts=[transfer_pb2.Part(sequence=self.attacker.sequence, last=True, collective=later,
                                         pieces=[transfer_pb2.Piece(offset_bytes=8, bytes=8)])], payload=floats(3, 4)))
            self.assertEqual(self.attacker.fate(ps), ("done", ""))
            self.assertEqual(self.attacker.pull(ps, number=collective.round), floats(1, 2, 3, 4))
        self.attacker.acknowledge(ps)
        self.nothing_is_kept()

    def test_who_takes_no_part_contributes_nothing(self):
        observer = self.participant()
        fate, said = observer.contribute(self.home(), floats(1, 2), observer.header(tasks=[worker(1)]))
        self.assertEqual(fate, "MALFORMED", said)
        self.assertIn("is of a task that takes no part", said)
        self.assertEqual(observer.pull(self.home()), "SESSION_UNKNOWN")
        self.nothing_is_kept()

    def test_the_same_round_again_is_refused(self):
        ps = self.home()
        collective = self.attacker.header(tasks=[worker(1), worker(2)])
        self.assertEqual(self.attacker.contribute(ps, floats(1, 2), collective), ("done", ""))
        for _ in range(20):
            self.assertEqual(self.attacker.contribute(ps, floats(1, 2), collective)[0], "ALREADY_EXISTS")
        self.assertEqual(self.honest[0].contribute(ps, floats(1, 2), collective), ("done", ""))
        self.assertEqual(self.honest[0].pull(ps), floats(2, 4))
        for participant in (self.attacker, self.honest[0]):
            participant.acknowledge(ps)
        self.nothing_is_kept()

    # ---- time

    def test_times_of_nothing_and_of_ever(self):
        # 0 is the usual one; of several the first that is over ends the round for all
        ps, tasks = self.home(), [worker(1), worker(2)]
        for number, times in ((1, (0, 0xffffffff)), (2, (0xffffffff, 0xffffffff))):
            for participant, timeout_ms in zip((self.attacker, self.honest[0]), times):
                collective = participant.header(number=number, tasks=tasks, timeout_ms=timeout_ms)
                self.assertEqual(participant.contribute(ps, floats(1, 2), collective), ("done", ""))
            self.assertEqual(self.honest[0].pull(ps, number=number), floats(2, 4))
        collective = self.attacker.header(number=3, tasks=tasks, timeout_ms=1)
        self.assertEqual(self.attacker.contribute(ps, floats(1, 2), collective), ("done", ""))
        self.assertEqual(self.honest[0].pull(ps, number=3), "ROUND_TIMED_OUT")
        collective.timeout_ms = 60_000
        self.assertEqual(self.honest[0].contribute(ps, floats(1, 2), collective), ("done", ""))
        self.assertEqual(self.honest[0].pull(ps, number=3), "ROUND_TIMED_OUT")
        for participant in (self.attacker, self.honest[0]):
            participant.acknowledge(ps)
        self.nothing_is_kept(but=END_BYTES)

    # ---- pulls

    def test_pulls_of_rounds_that_nobody_enters_are_bounded(self):
        ps = self.home()
        for number in range(1, 6001):
            self.attacker.ask(ps, number=number, timeout_ms=0xffffffff)
        with self.assertRaises(grpc.RpcError) as raised:        # more than a stream may have
            while True:
                self.assertIn(self.attacker.pulls[ps].next().reason, (0, types_pb2.REASON_BUSY))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.attacker.pulls[ps] = None
        self.assertEqual(self.attacker.pull(ps, timeout_ms=1), "TIMED_OUT")
        self.nothing_is_kept()

    def test_pulls_that_name_no_round_are_refused(self):
        for more in ({"name": b""}, {"name": b"x" * 257}, {"name": b"a\0b"}, {"number": 0}, {"at_step": 1},
                     {"pieces": pieces_of(self.victim.shards[0], (0, 4))}):
            self.assertEqual(self.attacker.pull(self.home(), **more), "MALFORMED", more)

    def beside(self, ps, **pull):
        """A pull on the push stream; the name of the reason that it is refused for."""
        self.attacker.pushes[ps].send(transfer_pb2.PushRequest(pulls=[transfer_pb2.PullRequest(request=7, **pull)]))
        while True:
            for pulled in self.attacker.pushes[ps].next().pulled:
                self.assertEqual((pulled.request, pulled.last or pulled.status != 0), (7, True))
                return REASONS[pulled.reason]

    def test_pulls_beside_contributions_that_are_none_are_refused(self):
        ps, round_1 = self.home(), transfer_pb2.CollectiveRound(name=b"round", round=1)
        pieces = pieces_of(self.victim.shards[0], (0, 4))
        for odd in ({}, {"pieces": pieces}, {"collective": transfer_pb2.CollectiveRound()}, {"collective": round_1, "pieces": pieces},
                    {"collective": round_1, "payload": b"12345678"}, {"collective": round_1, "at_step": 1}):
            self.assertEqual(self.beside(ps, **odd), "MALFORMED", odd)
        collective = self.attacker.header(operation=GATHER, shape=(5000,))
        self.assertEqual(self.attacker.contribute(ps, bytes(20_000), collective), ("done", ""))
        self.assertEqual(self.beside(ps, collective=round_1), "MESSAGE_TOO_LARGE")
        self.assertEqual(self.attacker.pull(ps), bytes(20_000))
        pulls = [transfer_pb2.PullRequest(request=number, collective=round_1) for number in range(1, 66)]
        self.attacker.pushes[ps].send(transfer_pb2.PushRequest(pulls=pulls))
        self.assertIsNone(self.attacker.pushes[ps].next())
        self.assertEqual(self.attacker.pushes[ps].ended[-1].code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.attacker.acknowledge(ps)
        self.nothing_is_kept()

    def test_pulls_beside_contributions_that_wait_for_nobody_are_bounded(self):
        ps, round_1 = self.home(), transfer_pb2.CollectiveRound(name=b"round", round=1)
        for number in range(100):
            pulls = [transfer_pb2.PullRequest(request=64 * number + i, collective=round_1, timeout_ms=0xffffffff) for i in range(1, 65)]
            self.attacker.pushes[ps].send(transfer_pb2.PushRequest(pulls=pulls))
        while (answer := self.attacker.pushes[ps].next()) is not None:
            self.assertTrue(all(one.reason == types_pb2.REASON_BUSY for one in answer.pulled), answer)
        self.assertEqual(self.attacker.pushes[ps].ended[-1].code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.nothing_is_kept()

    def test_who_takes_no_part_in_a_round_hears_nothing_of_its_result(self):
        ps, tasks = self.home(), [worker(2), worker(3)]
        waits = self.attacker.ask(ps)
        for participant in self.honest:
            self.assertEqual(participant.contribute(ps, floats(1, 2), participant.header(tasks=tasks)), ("done", ""))
        self.assertEqual(self.attacker.hear(ps, waits), "MALFORMED")
        self.assertEqual(self.attacker.pull(ps), "MALFORMED")
        for participant in self.honest:
            self.assertEqual(participant.pull(ps), floats(2, 4))
            participant.acknowledge(ps)
        self.nothing_is_kept()

    def test_a_result_that_is_half_read_stays_until_it_is_let_go(self):
        # more than fits on the way: the ps lends what it has, while nobody wants the round any more
        ps, size, extent = self.home(), 4 * MIB, 1 << 20
        collective = self.attacker.header(operation=GATHER, shape=(extent,))
        first = self.attacker.part(ps, collective, bytes(MIB), bytes=size, last=False)
        self.attacker.pushes[ps].send(first)
        for at in range(MIB, size, MIB):
            self.attacker.pushes[ps].send(transfer_pb2.PushRequest(
                parts=[transfer_pb2.Part(sequence=self.attacker.sequence, last=at + MIB == size,
                                         pieces=[transfer_pb2.Piece(offset_bytes=at, bytes=MIB)])], payload=bytes(MIB)))
        self.assertEqual(self.attacker.fate(ps), ("done", ""))
        for _ in range(8):
            self.attacker.ask(ps)
        while not self.attacker.pulls[ps].next().payload:
            pass
        self.attacker.acknowledge(ps)
        self.nobody_was_harmed()
        self.attacker.pulls[ps].cancel()
        self.attacker.pulls[ps] = None
        self.nothing_is_kept()

    # ---- what is said of rounds that are over

    def test_collectives_through_beyond_all_numbers_and_back_again_does_nothing(self):
        ps = self.home()
        for number, through in enumerate((HUGE, 0, 5, HUGE - 1, 1), 1):
            self.attacker.commit(ps, collectives_through=through)
            collective = self.attacker.header(number=number)
            self.assertEqual(self.attacker.contribute(ps, floats(1, 2), collective), ("done", ""))
        self.nothing_is_kept()      # it wanted nothing of any of them

    def test_pushes_in_waiting_that_are_none_do_nothing(self):
        ps = self.home()
        odd = ([0], [HUGE], [0] * 256, [HUGE] * 256, range(256, 0, -1), [5, 1, 5], [HUGE, 0], range(HUGE - 255, HUGE + 1))
        for number, (waiting, through) in enumerate(itertools.product(odd, (0, 3, HUGE)), 1):
            self.attacker.commit(ps, collectives_through=through, waiting=waiting)
            self.assertEqual(self.attacker.contribute(ps, floats(1, 2), self.attacker.header(number=number)), ("done", ""))
        self.nobody_was_harmed()
        self.attacker.acknowledge(ps)
        self.attacker.commit(ps, collectives_through=HUGE)
        self.nothing_is_kept()

    def test_more_pushes_in_waiting_than_a_commit_may_name_end_the_stream(self):
        ps = self.home()
        for number, count in enumerate((257, 512, 100_000, 1_000_000), 1):
            self.attacker.commit(ps, collectives_through=1, waiting=range(1, count + 1))
            self.assertIsNone(self.attacker.pushes[ps].next())
            self.assertEqual(self.attacker.pushes[ps].ended[-1].code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertEqual(self.attacker.contribute(ps, floats(1, 2), self.attacker.header(number=number)), ("done", ""))
            self.attacker.acknowledge(ps)
        self.nothing_is_kept()

    def test_rounds_that_are_said_to_be_waited_for_stay_within_the_bound(self):
        ps = self.home()
        self.fill_with_rounds(timeout_ms=0xffffffff)
        everything = range(1, self.attacker.sequence + 1)

        def one_more():
            collective = self.attacker.header(tasks=[worker(1), worker(4)], shape=(MIB // 4,), timeout_ms=0xffffffff)
            return self.attacker.contribute(ps, bytes(MIB), collective)[0]

        for waiting in (everything, [*everything, HUGE]):
            for _ in range(20):
                self.attacker.commit(ps, collectives_through=HUGE, waiting=waiting)
            self.assertEqual(one_more(), "OUT_OF_MEMORY")
            self.nobody_was_harmed()
        self.attacker.commit(ps, collectives_through=HUGE, waiting=[*reversed(everything)])     # out of order: most are not found
        self.assertEqual(one_more(), "done")
        self.late.leave()
        self.attacker.leave()
        self.nothing_is_kept()

    # ---- what is left behind

    def test_contributions_of_which_only_the_first_message_comes_leave_nothing(self):
        ps = self.home()
        for number in range(1, 201 if SANITIZED else 2001):
            self.attacker.pushes[ps].send(self.attacker.part(
                ps, self.attacker.header(b"round", number, shape=(1000,)), floats(1, 2), bytes=4000, last=False, sequence=1, previous=0))
            if number % 10 == 0:
                self.attacker.pushes[ps].stream.cancel()
            else:
                self.attacker.pushes[ps].stream.end()
            self.attacker.pushes[ps].stream = None
        self.nothing_is_kept()

    def test_rounds_that_are_never_finished_are_given_back_when_their_time_is_over(self):
        self.fill_with_rounds(timeout_ms=20_000 if SANITIZED else 3000)
        self.attacker.acknowledge(self.home())       # it has given them up, and worker 4 does not come
        self.nothing_is_kept(but=MIB)                # for worker 4 how they ended is kept, until there is no room
        self.fill_with_rounds(timeout_ms=0xffffffff)

    def test_rounds_that_are_never_finished_are_given_back_when_the_sessions_are_settled(self):
        self.fill_with_rounds(timeout_ms=0xffffffff)
        self.late.leave()
        self.attacker.leave()
        self.nothing_is_kept()

    def fill_with_rounds(self, timeout_ms):
        """Until there is no room, of rounds that wait for worker 4."""
        ps, fate = self.home(), "done"
        names = (name for name in (b"name %d" % number for number in itertools.count(self.attacker.sequence))
                 if home_of(name, self.ps_count) == ps)
        while fate == "done":
            collective = self.attacker.header(next(names), 1, [worker(1), worker(4)], shape=(MIB // 4,), timeout_ms=timeout_ms)
            fate, said = self.attacker.contribute(ps, bytes(MIB), collective)
        self.assertEqual(fate, "OUT_OF_MEMORY", said)
        self.assertRegex(said, r"takes \d+ bytes, and \d+ are taken of at most 33554432 \(--collectives-max\)")
        self.assertGreaterEqual(self.collective_bytes(ps), 25 * MIB)
        self.nothing_is_beyond_the_formula()

    def test_of_one_name_so_many_rounds_may_be_under_way(self):
        ps, tasks = self.home(), [worker(1), worker(4)]
        fates = [self.attacker.contribute(ps, floats(1, 2), self.attacker.header(number=number, tasks=tasks)) for number in range(1, 71)]
        self.assertEqual([fate for fate, _ in fates], ["done"] * 64 + ["BUSY"] * 6)
        self.late.leave()
        self.attacker.leave()
        self.nothing_is_kept()

    def test_nor_are_there_more_of_contributions_that_wait_for_their_commit(self):
        ps, tasks, refused = self.home(), [worker(1), worker(4)], []
        for number in range(1, 301):
            collective = self.attacker.header(number=number, tasks=tasks)
            self.attacker.pushes[ps].send(self.attacker.part(ps, collective, floats(1, 2), eager=False))
        while True:
            answer = self.attacker.pushes[ps].next()
            refused += [REASONS[one.reason] for one in answer.refused]
            if any(one.sequence == 300 for one in [*answer.staged, *answer.refused]):
                break
        self.assertEqual(refused, ["BUSY"] * (300 - 64))
        self.attacker.leave()
        self.nothing_is_kept()


class OnOnePs(Collectives):
    ps_count = 1

    def batches(self, size, header):
        """MANY rounds of the attacker alone, so many in a message; of some it hears the result."""
        stream = self.attacker.client.open_push(0)[0]
        for first in range(1, MANY + 1, size):
            numbers = range(first, min(first + size, MANY + 1))
            parts = b"".join(
                field(2, field(1, number) + field(2, 1) + field(3, 1) + field(4, field(9, 8)) + field(5, number - 1) + field(6, 1)
                      + field(8, 8) + field(18, header(number))) for number in numbers)
            done = b"".join(field(at, first - 1) for at in (1, 3, 5))
            stream.send(transfer_pb2.PushRequest.FromString(parts + field(3, done) + field(15, floats(1, 2) * len(numbers))))
            heard = 0
            while heard < numbers[-1]:
                answer = stream.next()
                self.assertFalse(answer.refused)
                heard = max([heard, *(one.sequence for one in answer.done)])
            if first // size % 50 == 0:
                collective = transfer_pb2.Collective.FromString(header(heard))
                self.assertEqual(self.attacker.pull(0, collective.name, collective.round), floats(1, 2))
        stream.send(transfer_pb2.PushRequest(commit=transfer_pb2.Commit(commit_through=MANY, acked_through=MANY, collectives_through=MANY)))
        self.nothing_is_kept()
        stream.end()

    def leaves_as_much_as_before(self, size, header):
        before = resident_bytes(self.cluster.ps[0])
        self.batches(size, header)
        if not SANITIZED:
            self.assertLess(resident_bytes(self.cluster.ps[0]), before + 16 * MIB)

    def test_many_rounds_of_one_name_leave_nothing(self):
        rest = field(3, worker(1)) + field(4, SUM) + field(5, FLOAT32) + field(6, 2)
        self.leaves_as_much_as_before(30, lambda number: field(1, b"round") + field(2, number) + rest)

    def test_many_names_leave_nothing(self):
        rest = field(2, 1) + field(3, worker(1)) + field(4, SUM) + field(5, FLOAT32) + field(6, 2)
        self.leaves_as_much_as_before(500, lambda number: field(1, b"name %d" % number) + rest)


class OnTwoPs(Collectives):
    def test_another_ps_than_its_home_refuses_it(self):
        for name in (b"round", b"other", b"a", b"b", b"c"):
            home = self.home(name)
            self.is_refused("MALFORMED", f"at home on ps {home}", name=name, ps=1 - home)
        self.nothing_is_kept()

    def say_two_things(self, number, first, other, **more):
        """The attacker contributes so to ps 0, and otherwise to ps 1; worker 2 as it is said to ps 0."""
        def header(participant, **how):
            return participant.header(number=number, tasks=[worker(1), worker(2)], split=True, **{"shape": (4,), **how})
        for fate, _ in self.honest[0].split([floats(1, 2)] * 2, [header(self.honest[0], **first)] * 2):
            self.assertEqual(fate, "done")
        return self.attacker.split([floats(1, 2)] * 2, [header(self.attacker, **first), header(self.attacker, **other)], **more)

    def test_who_says_two_things_to_two_ps_takes_its_own_round_alone(self):
        others = [({}, {"operation": MAX}), ({}, {"data_type": INT32}), ({}, {"shape": (2, 2)}), ({"operation": MAX}, {}),
                  ({"shape": (2, 2)}, {}), ({"operation": MEAN}, {"operation": MIN})]
        for number, (first, other) in enumerate(others, 1):
            for fate, _ in self.say_two_things(number, first, other):
                self.assertEqual(fate, "done")
            self.assertIn(self.honest[0].pull(0, number=number), (floats(2, 4), floats(1, 2), "STEP_DIFFERS"))
            self.assertEqual(self.honest[0].pull(1, number=number), "STEP_DIFFERS")
            self.nobody_was_harmed()
        for ps in range(2):
            self.attacker.acknowledge(ps)
            self.honest[0].acknowledge(ps)
        self.nothing_is_kept(but=6 * END_BYTES)

    def test_who_says_something_to_ps_0_alone_holds_up_others_until_it_is_settled(self):
        collective = self.attacker.header(tasks=[worker(1), worker(2)], split=True, shape=(4,))
        self.honest[0].split([floats(1, 2)] * 2, [collective] * 2)
        self.attacker.pushes[0].send(self.attacker.part(0, collective, floats(1, 2)))
        self.assertEqual(self.attacker.fate(0), ("done", ""))
        self.assertEqual(self.honest[0].pull(0), floats(2, 4))
        waits = self.honest[0].ask(1)
        self.attacker.leave()
        self.assertEqual(self.honest[0].hear(1, waits), "MEMBER_GONE")
        for ps in range(2):
            self.honest[0].acknowledge(ps)
        self.nothing_is_kept(but=END_BYTES)

    def test_orders_of_a_stranger_end_no_round(self):
        ps, name = 1, next(name for name in (b"round %d" % i for i in range(100)) if home_of(name, 2) == 1)
        collective = self.honest[0].header(name, tasks=[worker(2), worker(3)])
        self.assertEqual(self.honest[0].contribute(ps, floats(1, 2), collective), ("done", ""))
        for number in (0, 1, 1 << 62):
            stream = Stream(peer_pb2_grpc.PeerStub(self.ps(ps).channel).Attend)
            stream.send(peer_pb2.PeerOrder(number=number, collective=peer_pb2.CollectiveEnd(collective=collective, status=10, message="it is over")))
            with self.assertRaises(grpc.RpcError):
                while stream.next() is not None:
                    pass
        self.assertEqual(self.honest[1].contribute(ps, floats(1, 2), collective), ("done", ""))
        for participant in self.honest:
            self.assertEqual(participant.pull(ps, name), floats(2, 4))
            participant.acknowledge(ps)
        self.nothing_is_kept()


del Collectives    # is run as what it is made into

if __name__ == "__main__":
    unittest.main()
