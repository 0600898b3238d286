# SPDX-License-Identifier: Apache-2.0
"""Readers that stop in the middle of a long pull, or go: the writers never wait, memory stays within its bound, and comes back."""
import os
import struct
import time
import unittest

import grpc

from cluster import Cluster
from wire import Client, DEADLINE_S, Stream, observe_pb2, sessions_pb2, transfer_pb2, types_pb2, variables_pb2

# Of a sanitizer, if there is one: freed memory is given back.
os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=1:allocator_may_return_null=1")

ELEMENTS = 8 << 20              # float32: 32 MiB over two ps, 16 on each
PUSHES = 50                     # more, if each left its old blocks, than the bound by far
READERS = 50
READER_S = 60                   # for which a reader may take nothing
TIMES = 8                       # that a pull names the shard: more than gRPC's buffers take


class SlowReader(unittest.TestCase):
    def setUp(self):
        # A grant of 24 MiB, for a part of 16; one client more than there are.
        cluster = Cluster(options=["--staging-max", "72M", "--sessions-max", "3", "--grpc-memory-max", "64M", "--pulls-max", "4M", "--collectives-max", "1M",
                                   "--calls-max", "256"])
        self.addCleanup(cluster.stop)
        self.member = cluster.member()
        self.member.wait_for("^joined$")
        self.member.say("create w float32 8192 1024 2 assign_add")
        self.member.wait_for("^created w$")
        self.reader = Client(cluster.addresses(), role=sessions_pb2.ROLE_OBSERVER)
        self.addCleanup(self.reader.close)
        listed = self.reader.ps[0].variables.List(variables_pb2.ListRequest(names=["w"]), timeout=DEADLINE_S)
        self.shard = listed.variables[0].shards[0]

    def pull(self):
        """A pull that has begun: its stream, of which no more than two answers are taken, and its first answer."""
        stream = Stream(self.reader.ps[0].transfer.Pull, timeout_s=DEADLINE_S * 4)
        stream.send(transfer_pb2.PullRequest(
            hello=self.reader.hello(0), request=1,
            pieces=[transfer_pb2.Piece(shard_id=self.shard.shard_id, layout_epoch=self.shard.layout_epoch)] * TIMES))
        first = stream.next()
        while first.request != 1:
            first = stream.next()
        return stream, first

    def stats(self):
        return self.reader.ps[0].observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S)

    def check_memory(self, memory):
        bound = (memory.base_bytes + memory.state_bytes + memory.view_bytes_max + memory.staging_bytes_max
                 + memory.pulls_bytes_max + memory.collective_bytes_max + memory.sessions_bytes_max + memory.connections_bytes_max + memory.calls_bytes_max
                 + memory.unread_answers_bytes_max + memory.step_bytes_max + memory.grpc_memory_bytes_max)
        self.assertLess(bound, PUSHES * ELEMENTS * 4 // 2)      # else nothing would be shown
        self.assertLessEqual(memory.view_bytes, memory.view_bytes_max)
        self.assertLessEqual(memory.resident_bytes, bound)

    def test_a_stopped_reader_holds_nobody_up_and_reads_one_version(self):
        stopped_s = time.monotonic()
        stream, first = self.pull()
        # From here on nothing is taken from the stream: after two messages it is not read any more.
        self.member.say(f"flood w 1 {PUSHES}")
        self.member.wait_for("^flooded$", patience_s=DEADLINE_S * 3)
        stats = self.stats()
        self.assertEqual(stats.pushes, PUSHES)
        self.check_memory(stats.memory)
        self.check(stream, first, stopped_s)

    def test_readers_that_go_in_the_middle_of_a_pull_leave_nothing_behind(self):
        self.member.say(f"flood w 1 {PUSHES}")
        for _ in range(READERS):
            stream, _ = self.pull()
            stream.cancel()
        self.member.wait_for("^flooded$", patience_s=DEADLINE_S * 3)
        self.check_memory(self.stats().memory)
        before = len(self.member.lines)
        self.member.say("flood w 1 1")          # what a reader still had is old now
        self.member.wait_for("^flooded$", after=before)
        until = time.monotonic() + DEADLINE_S
        memory = self.stats().memory
        while memory.view_bytes + memory.pull_bytes > 0 and time.monotonic() < until:
            memory = self.stats().memory
        self.assertEqual((memory.view_bytes, memory.pull_bytes, memory.staged_bytes), (0, 0, 0))

    def check(self, stream, first, stopped_s):
        """All bytes are those of the version announced, or the pull ended with ABORTED; or the stream ended, where the machine is so
        busy that the pushes took longer than a reader may take nothing: ABORTED, or CANCELLED if it did not take that word either."""
        expected = struct.pack("<f", float(first.versions[0]))
        answer, count = first, 0
        while True:
            if answer.status:
                return self.assertEqual(answer.reason, types_pb2.REASON_VIEW_ENDED)
            self.assertEqual(answer.payload, expected * (len(answer.payload) // 4))
            count += len(answer.payload)
            if answer.last:
                return self.assertEqual(count, TIMES * ELEMENTS * 4 // 2)
            try:
                answer = stream.next()
            except grpc.RpcError as error:
                self.assertGreater(time.monotonic() - stopped_s, READER_S, error.details())
                return self.assertIn(error.code(), (grpc.StatusCode.ABORTED, grpc.StatusCode.CANCELLED))


if __name__ == "__main__":
    unittest.main()
