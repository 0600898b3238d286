# SPDX-License-Identifier: Apache-2.0
"""Memory that comes and goes in pieces of every size, one size after the other: what is given back is not kept beside what is taken next."""
import unittest

from attack import MIB, Attack, Client, DEADLINE_S, floats, transfer_pb2, variables_pb2
from raw import field

# As the pools round them: eight sizes up to 512 bytes, then eight to a doubling.
SIZES = [*range(64, 513, 64), *(512 * (9 + step) // 8 << doubling for doubling in range(3) for step in range(8))]
CLIENTS = 4
PARTS = 1000            # of a session, staged at a time
PER_MESSAGE = 500


def staged_parts(shard, first, count, size):
    """A PushRequest of parts of one piece each, none of them committed."""
    parts = []
    for sequence in range(first, first + count):
        piece = field(1, shard.shard_id) + field(2, shard.layout_epoch) + field(9, size)
        parts.append(field(2, field(1, sequence) + field(2, 1) + field(3, 1) + field(4, piece) + field(5, sequence - 1) + field(8, size)))
    return transfer_pb2.PushRequest.FromString(b"".join(parts) + field(15, bytes(size * count)))


class Pools(Attack):
    bounds = ["--staging-max", "64M", "--view-max", "4M", "--grpc-memory-max", "32M", "--lease-ms", "300000",
              "--sessions-max", str(CLIENTS + 1), "--pulls-max", "4M", "--calls-max", "1024"]

    def observers(self):
        clients = [Client(self.addresses, role=0) for _ in range(CLIENTS)]
        for client in clients:
            self.addCleanup(client.close)
        return clients

    @staticmethod
    def heard(stream, kind, through):
        while True:
            answer = stream.next()
            if not answer.refused and any(item.sequence == through for item in getattr(answer, kind)):
                return
            if answer.refused:
                raise AssertionError(answer)

    def test_staged_parts_of_one_size_after_the_other(self):
        clients = self.observers()
        shard = clients[0].create("w", [1024], shards=1).shards[0]
        streams = [client.open_push(shard.ps)[0] for client in clients]
        done = 0
        for size in SIZES:
            messages = [staged_parts(shard, done + 1 + at, PER_MESSAGE, size) for at in range(0, PARTS, PER_MESSAGE)]
            for stream in streams:
                for message in messages:
                    stream.send(message)
                self.heard(stream, "staged", done + PARTS)
            done += PARTS
            for stream in streams:
                stream.send(transfer_pb2.PushRequest(commit=transfer_pb2.Commit(commit_through=done)))
                self.heard(stream, "done", done)
        for stream in streams:
            stream.end()

    def test_variables_of_one_size_after_the_other(self):
        client = self.observers()[0]
        for size in SIZES:
            for number in range(2):
                client.create(f"v{number}", [4096 * size // 4], shards=4096)
            for number in range(2):
                client.ps[0].variables.Delete(
                    variables_pb2.DeleteRequest(session_id=client.joined.session_id, name=f"v{number}"), timeout=DEADLINE_S)


if __name__ == "__main__":
    unittest.main()
