# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes, where building them one by one would take longer than the attack."""
import functools
import queue

from wire import DEADLINE_S


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, content):
    """A field of bytes, or of a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


@functools.lru_cache
def scattered_pieces(shard_id, count, piece_bytes):
    """Pieces none of which goes on where another ended."""
    offsets = range(0, 2 * count, 2) if piece_bytes else (0, 4) * (count // 2)
    return b"".join(field(4, field(1, shard_id) + field(2, 1) + field(8, offset) + field(9, piece_bytes)) for offset in offsets)


def scattered_part(sequence, previous, shard_id, count, piece_bytes):
    """A PushRequest with a part of many pieces of so many bytes each."""
    total = count * piece_bytes
    header = field(1, sequence) + field(2, 1) + field(3, 1) + field(5, previous) + field(8, total)
    return field(2, header + scattered_pieces(shard_id, count, piece_bytes)) + (field(15, bytes(total)) if total else b"")


def pull_of_pieces(request, shard_id, count, after_sequence=0):
    """A PullRequest of many pieces."""
    piece = field(3, field(1, shard_id) + field(2, 1))
    return field(2, request) + piece * count + (field(4, after_sequence) if after_sequence else b"")


def raw_stream(channel, method, messages):
    """A stream that sends these bytes and then half-closes; iterate for the answers, as bytes."""
    return channel.stream_stream(method, request_serializer=None, response_deserializer=None)(iter(messages), timeout=DEADLINE_S)


class RawStream:
    """A stream of bytes that stays open; its answers are read only when asked for."""

    def __init__(self, channel, method):
        self.outgoing = queue.Queue()
        self.call = channel.stream_stream(method, request_serializer=None, response_deserializer=None)(
            iter(self.outgoing.get, None), timeout=DEADLINE_S)

    def send(self, message):
        self.outgoing.put(message)

    def next(self):
        return next(self.call)

    def cancel(self):
        self.call.cancel()
        self.outgoing.put(None)
