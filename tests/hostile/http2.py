# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 by hand: frames over a socket, for what no library would send."""
import socket
import struct

from cluster import PATIENCE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def length(number):
    """An HPACK integer of seven bits, no Huffman code."""
    if number < 127:
        return bytes([number])
    number -= 127
    out = bytearray([127])
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def header(name, value):
    return b"\0" + length(len(name)) + name + length(len(value)) + value


def request_headers(path):
    return ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"ps"), (b"te", b"trailers"),
            (b"content-type", b"application/grpc"))


def request(path, *more):
    return b"".join(header(name, value) for name, value in (*request_headers(path), *more))


def message(content, compressed=0):
    return bytes([compressed]) + struct.pack(">I", len(content)) + content


class Connection:
    """A connection that said the preface and acknowledged the settings, unless told not to. What the other side does to it is nobody's failure."""

    def __init__(self, address, greet=True, window=None, receive_bytes=None, acknowledge=True):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.alive = True
        if greet:
            settings = b"" if window is None else struct.pack(">HI", 4, window)
            acknowledgement = frame(SETTINGS, ACK, 0) if acknowledge else b""
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings) + acknowledgement)

    def send(self, content):
        """False: the other side has ended it."""
        try:
            if self.alive:
                self.socket.sendall(content)
        except OSError:
            self.alive = False
        return self.alive

    def read_until(self, wanted):
        """What comes until that has come, or the other side ends it."""
        seen = b""
        try:
            while wanted not in seen:
                more = self.socket.recv(65536)
                if not more:
                    break
                seen = seen[-len(wanted):] + more
        except ConnectionError:
            pass

    def read_to_the_end(self):
        """Until the other side ends it; its patience is the socket's."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass

    def close(self):
        self.socket.close()
