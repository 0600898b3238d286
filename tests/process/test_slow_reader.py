"""A reader that stops in the middle of a long pull: the writers never wait, and what it reads is of one version."""
import struct
import unittest

from cluster import Cluster
from wire import Client, DEADLINE_S, Stream, observe_pb2, sessions_pb2, transfer_pb2, types_pb2, variables_pb2

ELEMENTS = 64 << 20             # float32: 256 MiB over two ps, 128 on each
PUSHES = 50


class SlowReader(unittest.TestCase):
    def test_a_stopped_reader_holds_nobody_up_and_reads_one_version(self):
        cluster = Cluster(options=["--staging-max", "8G"])
        self.addCleanup(cluster.stop)
        member = cluster.member()
        member.wait_for("^joined$")
        member.say("create w float32 65536 1024 2 assign_add")
        member.wait_for("^created w$")
        reader = Client(cluster.addresses(), role=sessions_pb2.ROLE_OBSERVER)
        self.addCleanup(reader.close)
        shard = reader.ps[0].variables.List(variables_pb2.ListRequest(names=["w"]), timeout=DEADLINE_S).variables[0].shards[0]
        stream = Stream(reader.ps[0].transfer.Pull, timeout_s=DEADLINE_S * 4)
        stream.outgoing.put(transfer_pb2.PullRequest(
            hello=reader.hello(0), request=1,
            pieces=[transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch)]))
        first = stream.next()
        while first.request != 1:
            first = stream.next()
        # From here on nothing is taken from the stream: after two messages it is not read any more.
        member.say(f"flood w 1 {PUSHES}")
        member.wait_for("^flooded$", patience_s=DEADLINE_S * 3)
        stats = reader.ps[0].observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S)
        memory = stats.memory
        bound = (memory.base_bytes + memory.state_bytes + memory.view_bytes_max + memory.staging_bytes_max
                 + memory.grpc_memory_bytes_max)
        self.assertEqual(stats.pushes, PUSHES)
        self.assertLessEqual(memory.view_bytes, memory.view_bytes_max)
        self.assertLessEqual(memory.resident_bytes, bound)
        self.check(stream, first)

    def check(self, stream, first):
        """All bytes are those of the version announced, or the pull ended with ABORTED."""
        expected = struct.pack("<f", float(first.versions[0]))
        answer, count = first, 0
        while True:
            if answer.status:
                return self.assertEqual(answer.reason, types_pb2.REASON_VIEW_ENDED)
            self.assertEqual(answer.payload, expected * (len(answer.payload) // 4))
            count += len(answer.payload)
            if answer.last:
                return self.assertEqual(count, ELEMENTS * 4 // 2)
            answer = stream.next()


if __name__ == "__main__":
    unittest.main()
