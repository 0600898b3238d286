# SPDX-License-Identifier: Apache-2.0
"""Some ps under attack, two by default, and the worker that must not notice.

`Attack` is the test case: each test attacks `self.cluster`, and `self.nobody_was_harmed()`, which runs after each of them too, looks at what
must still be so: all ps run, the victim's next push over all is applied exactly, statistics are answered and readable, and what is resident
stays within the formula that the ps publishes.
"""
import json
import os
import time
import unittest

import grpc

from cluster import Cluster
from wire import (DEADLINE_S, Client, Ps, commit, floats, observe_pb2, part, sessions_pb2, transfer_pb2, types_pb2,
                  variables_pb2)

SANITIZED = os.environ.get("SUMAC_SANITIZED") == "1"
MIB = 1 << 20

# Small bounds, so that a small attack would pass them; a long lease, since the victim says nothing while it is attacked.
OPTIONS = ["--staging-max", "16M", "--view-max", "4M", "--grpc-memory-max", "32M", "--calls-max", "1024", "--lease-ms", "300000"]

# Of a sanitizer, if there is one: a failed allocation is the program's to handle.
os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=1:allocator_may_return_null=1")


def memory_bound(memory):
    """What the ps says it may have resident, in bytes: what it is, what it has, and every bound."""
    names = [field.name for field in memory.DESCRIPTOR.fields]
    return sum(getattr(memory, name) for name in names
               if name in ("base_bytes", "state_bytes") or name.endswith("_max") and name != "state_bytes_max")


def resident_bytes(process):
    with open(f"/proc/{process.child.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) * 1024


def later(call):
    """What the call gives. A ps that has too much to do says so, and to call again."""
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or time.monotonic() > until:
                raise


class Victim:
    """Worker 0, with a variable over all ps. Each push adds its number to every element."""

    def __init__(self, addresses):
        self.client = Client(addresses)
        self.shards = self.client.create("victim", [4 * len(addresses)], shards=len(addresses)).shards
        self.pushed, self.value = 0, 0

    def push(self):
        """One push over all ps, on new streams; returns when it is done."""
        number = self.pushed + 1
        streams = [self.open_stream(ps) for ps in range(len(self.shards))]
        for ps, stream in enumerate(streams):
            stream.send(part(number, self.shards[ps], floats(*[number] * 4), previous=self.pushed))
        for stream in streams:
            self.answer_of(stream, number, lambda answer: answer.staged)
            stream.send(commit(number, acked=self.pushed))
        for stream in streams:
            self.answer_of(stream, number, lambda answer: answer.done)
            stream.end()
        self.pushed, self.value = number, self.value + number

    def open_stream(self, ps):
        """Opened anew as often as it gives way to streams that say no hello, which is what a ps says to do."""
        return later(lambda: self.client.open_push(ps)[0])

    @staticmethod
    def answer_of(stream, number, kind):
        while True:
            answer = stream.next()
            if answer is None or answer.refused or answer.HasField("closed") or answer.rejoin:
                raise AssertionError(f"the victim's push {number} was answered {answer}")
            if any(item.sequence == number for item in kind(answer)):
                return

    def pull(self):
        return [self.client.pull(ps, shard, after_sequence=self.pushed) for ps, shard in enumerate(self.shards)]

    def close(self):
        self.client.close()


class Attack(unittest.TestCase):
    ps_count, workers = 2, 1
    bounds, options = OPTIONS, ()
    under = ()

    def setUp(self):
        self.cluster = Cluster(ps=self.ps_count, workers=self.workers, options=[*self.bounds, *self.options], under=self.under)
        self.addCleanup(self.cluster.stop)
        self.addresses = self.cluster.addresses()
        self.victim = Victim(self.addresses)
        self.addCleanup(self.victim.close)
        self.victim.push()

    def run(self, result=None):
        """A test is over when nobody was harmed by it."""
        method = getattr(self, self._testMethodName)

        def attacked():
            method()
            self.nobody_was_harmed()
        setattr(self, self._testMethodName, attacked)
        return super().run(result)

    def nobody_was_harmed(self):
        for process in self.cluster.ps:
            self.assertTrue(process.running(), process.text()[-4000:])
        self.victim.push()
        self.assertEqual(self.victim.pull(), [floats(*[self.victim.value] * 4)] * self.ps_count)
        code, text = self.cluster.sumac("stats", "--json", "--interval-ms", "10")
        self.assertEqual(code, 0, text)
        json.loads(text)
        self.nothing_is_beyond_the_formula()

    def nothing_is_beyond_the_formula(self):
        for index, process in enumerate(self.cluster.ps):
            memory = self.stats(index).memory
            resident = resident_bytes(process)
            if not SANITIZED:
                self.assertLessEqual(resident, memory_bound(memory), f"ps {index} has {resident >> 20} MiB resident; it says {memory}")

    # ---- who attacks

    def ps(self, index=0):
        """A connection of the attacker's own."""
        ps = Ps(self.addresses[index])
        self.addCleanup(ps.close)
        return ps

    def observer(self):
        client = Client(self.addresses, role=sessions_pb2.ROLE_OBSERVER)
        self.addCleanup(client.close)
        return client

    def stats(self, index=0):
        return later(lambda: self.victim.client.ps[index].observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S))

    def list(self, *names):
        return self.victim.client.ps[0].variables.List(variables_pb2.ListRequest(names=names), timeout=DEADLINE_S)

    def refused_as(self, code, call, request, reason=None):
        """The call fails with that status, and with that reason."""
        with self.assertRaises(grpc.RpcError) as raised:
            call(request, timeout=DEADLINE_S)
        self.assertEqual(raised.exception.code(), code, raised.exception.details())
        if reason is not None:
            self.assertEqual(dict(raised.exception.trailing_metadata()).get("sumac-reason"), str(reason))
        return raised.exception.details()


class PushStream:
    """An attacker's push stream to the ps of a shard: opened again whenever the ps ends it."""

    def __init__(self, client, ps):
        self.client, self.ps = client, ps
        self.ended = []             # by the ps: what it said
        self.stream = None

    def send(self, message):
        """Sent; the answer to come, or None when the ps ended the stream for it."""
        if self.stream is None:
            self.stream = self.client.open_push(self.ps)[0]
        self.stream.send(message)

    def next(self):
        try:
            answer = self.stream.next()
        except grpc.RpcError as error:
            self.ended.append(error)
            answer = None
        if answer is None:
            self.stream.end()
            self.stream = None
        return answer

    def close(self):
        if self.stream is not None:
            self.stream.cancel()


def push_and_wait(stream, message, sequence):
    """What became of an eager push: "done", "refused", "staged" with nothing after it, or the error that ended the stream."""
    stream.send(message)
    while True:
        answer = stream.next()
        if answer is None:
            return stream.ended[-1]
        if any(item.sequence == sequence for item in answer.refused):
            return "refused"
        if any(item.sequence == sequence and not item.voided for item in answer.done):
            return "done"


def pieces_of(shard, *runs):
    return [transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch, offset_bytes=offset, bytes=count)
            for offset, count in runs]


__all__ = ["Attack", "Client", "DEADLINE_S", "MIB", "PushStream", "SANITIZED", "commit", "floats", "grpc", "memory_bound", "observe_pb2", "part",
           "pieces_of", "push_and_wait", "resident_bytes", "sessions_pb2", "transfer_pb2", "types_pb2", "variables_pb2"]
