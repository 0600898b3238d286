# SPDX-License-Identifier: Apache-2.0
"""As much of HTTP/2 as a client needs that opens streams by the thousand: frames written by hand, answers not looked into."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, ACK, END_HEADERS = 0, 1, 4, 6, 7, 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that enters no table, with its name and value as they are (RFC 7541, 6.2.2)."""
    return b"\0" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))


def call_headers(path):
    return b"".join(literal(*pair) for pair in ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
                                                ("content-type", "application/grpc"), ("te", "trailers")))


def message(packed):
    """A gRPC message: not compressed, so many bytes."""
    return b"\0" + struct.pack(">I", len(packed)) + packed


class Connection:
    def __init__(self, port, patience_s):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience_s)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0))
        self.next_stream = 1
        self.unread = b""

    def open_streams(self, path, count, packed=None):
        """Streams that stay open; each says one message, or nothing."""
        headers = call_headers(path)
        frames = []
        for _ in range(count):
            frames.append(frame(HEADERS, END_HEADERS, self.next_stream, headers))
            if packed is not None:
                frames.append(frame(DATA, 0, self.next_stream, message(packed)))
            self.next_stream += 2
        self.socket.sendall(b"".join(frames))

    def read_frame(self):
        while len(self.unread) < 9 or len(self.unread) < 9 + int.from_bytes(self.unread[:3], "big"):
            more = self.socket.recv(65536)
            if not more:
                raise EOFError("the server closed the connection")
            self.unread += more
        length = 9 + int.from_bytes(self.unread[:3], "big")
        read, self.unread = self.unread[:length], self.unread[length:]
        return read[3], read[4], read[9:]

    def settle(self):
        """Until the server has read all that was written."""
        self.socket.sendall(frame(PING, 0, 0, b"whatever"))
        while self.read_frame()[:2] != (PING, ACK):
            pass

    def goodbyes(self):
        """Until the server ends the connection: the error codes of its GOAWAYs. Pings are answered meanwhile."""
        codes = []
        try:
            while True:
                kind, flags, payload = self.read_frame()
                if kind == PING and not flags & ACK:
                    self.socket.sendall(frame(PING, ACK, 0, payload))
                elif kind == GOAWAY:
                    codes.append(int.from_bytes(payload[4:8], "big"))
        except (EOFError, ConnectionError):
            return codes

    def close(self):
        self.socket.close()
