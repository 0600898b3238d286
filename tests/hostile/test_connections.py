# SPDX-License-Identifier: Apache-2.0
"""Connections, streams and frames that no gRPC library would make."""
import os
import signal
import time
import unittest

import grpc
import numpy

import http2
from attack import Attack, DEADLINE_S, MIB, SANITIZED, memory_bound, resident_bytes, sessions_pb2, transfer_pb2, types_pb2, variables_pb2
from crowd import crowd
from wire import Stream, health_pb2, observe_pb2

PULL, STATS, LIST = b"/sumac.v1.Transfer/Pull", b"/sumac.v1.Observe/Stats", b"/sumac.v1.Variables/List"
JOIN = b"/sumac.v1.Sessions/Join"
DESCRIPTORS_MORE = 20       # that a ps may have for a moment, beside its connections


def descriptors(process):
    return len(os.listdir(f"/proc/{process.child.pid}/fd"))


class Connections(Attack):
    def connect(self, ps=0, **more):
        connection = http2.Connection(self.addresses[ps], **more)
        self.addCleanup(connection.close)
        return connection

    def test_a_rapid_reset_of_some_thousand_streams_is_survived(self):
        connection = self.connect()
        for number in range(3000):
            stream = 2 * number + 1
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request(PULL)) +
                            http2.frame(http2.RST_STREAM, 0, stream, b"\0\0\0\x08"))

    def test_long_answers_that_nobody_reads_end_their_connections(self):
        """What is being written to a connection stays when the call is cancelled."""
        client = self.observer()
        for number in range(450):       # an answer of half a MiB
            client.create(f"{number}" + "n" * 1000, [1], shards=1)
        connections = []
        for _ in range(20):
            connection = self.connect(window=2**31 - 1, receive_bytes=4096)
            connection.send(http2.frame(http2.WINDOW_UPDATE, 0, 0, (2**31 - 1 - 65535).to_bytes(4, "big")))
            for stream in range(1, 81, 2):
                connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request(LIST)) +
                                http2.frame(http2.DATA, http2.END_STREAM, stream, http2.message(b"")))
            connections.append(connection)
        self.cluster.ps[0].wait_for("connections where its answers were not read")
        self.nobody_was_harmed()
        for connection in connections:
            connection.close()

    def reset_without_end(self, connection, first=lambda: None):
        """Streams that are opened and reset, until the connection is cut; `first` follows a hundred of them, which
        every socket has room for."""
        headers = http2.frame(http2.HEADERS, http2.END_HEADERS, 0, http2.request(PULL))
        reset = http2.frame(http2.RST_STREAM, 0, 0, b"\0\0\0\x08")
        count = 2000
        frames = numpy.tile(numpy.frombuffer(headers + reset, numpy.uint8), (count, 1))
        numbers = numpy.arange(1, 2 * count, 2, dtype=numpy.uint32)
        for number in range(0, 4_000_000, count):       # made faster than a ps can read them, or it has time for others
            streams = (numbers + 2 * number).astype(">u4").view(numpy.uint8).reshape(count, 4)
            for at in (5, len(headers) + 5):            # of a frame, where its stream stands
                frames[:, at:at + 4] = streams
            connection.send(frames[:100].tobytes())
            if number == 0:
                first()
            if not connection.send(frames[100:].tobytes()):
                break
        self.assertFalse(connection.alive)
        self.cluster.ps[0].wait_for("ps 0 cut 1 connection: what came there")
        while not SANITIZED and resident_bytes(self.cluster.ps[0]) > memory_bound(self.stats(0).memory):
            self.cluster.sumac("stats", "--interval-ms", "500")     # what gRPC had of them goes back when the ps has time for it

    def test_streams_that_are_reset_without_end_are_cut_off(self):
        """They would keep the ps from everybody else for as long as they come."""
        self.reset_without_end(self.connect())

    def test_streams_that_wait_to_be_reset_without_end_are_cut_off(self):
        """By the thread that accepts they are read at once, and then by one of gRPC's own."""
        child = self.cluster.ps[0].child
        child.send_signal(signal.SIGSTOP)
        self.addCleanup(child.send_signal, signal.SIGCONT)
        self.reset_without_end(self.connect(), first=lambda: child.send_signal(signal.SIGCONT))

    @unittest.skipIf(SANITIZED, "the sanitizer keeps what is given back")
    def test_what_a_crowd_of_streams_took_goes_back_to_the_system(self):
        connection = self.connect()
        before = resident_bytes(self.cluster.ps[0])
        pieces = http2.request_headers(b"/nobody/Nothing")
        first = b"".join(b"\x40" + http2.length(len(name)) + name + http2.length(len(value)) + value for name, value in pieces)
        again = bytes(0x80 | 62 + number for number in reversed(range(len(pieces))))    # of the dynamic table
        connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, first))
        connection.send(b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, number, again)
                                 for number in range(3, 200_000, 2)))
        connection.send(http2.frame(http2.PING, 0, 0, b"12345678"))
        connection.read_until(b"12345678")
        connection.close()
        while resident_bytes(self.cluster.ps[0]) > before + 40 * MIB:
            self.cluster.sumac("stats", "--interval-ms", "500")     # the ps has time for it

    def test_headers_that_go_on_without_end_are_survived(self):
        connection = self.connect()
        connection.send(http2.frame(http2.HEADERS, 0, 1, http2.request(PULL)))
        filler = http2.header(b"x" * 100, b"y" * 16000)
        for _ in range(20 * MIB // len(filler)):
            if not connection.send(http2.frame(http2.CONTINUATION, 0, 1, filler)):
                break
        self.nobody_was_harmed()

    def test_a_call_with_a_megabyte_of_metadata_is_refused(self):
        ps = self.ps()
        with self.assertRaises(grpc.RpcError):
            ps.observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S, metadata=[(f"x-{n}", "y" * 16384) for n in range(64)])

    def send_headers(self, connection, stream, headers):
        pieces = [headers[at:at + 16384] for at in range(0, len(headers), 16384)]
        for number, piece in enumerate(pieces):
            kind, flags = http2.CONTINUATION if number else http2.HEADERS, http2.END_HEADERS if number == len(pieces) - 1 else 0
            if not connection.send(http2.frame(kind, flags, stream, piece)):
                return

    @unittest.skipIf(SANITIZED, "the sanitizer keeps what is given back")
    def test_headers_beyond_the_limit_are_not_kept(self):
        """gRPC keeps a call's headers as long as the call, and does not show all of them to the ps. Of the 336 MiB that come here the
        heap keeps 60 to 120 for a while."""
        before = resident_bytes(self.cluster.ps[0])
        for name in 3 * (b"x", b"cookie", b"user-agent", b"grpc-trace-bin", b"grpc-tags-bin", b"grpc-message", b"grpc-encoding"):
            connection = self.connect()
            for stream in range(1, 9, 2):
                self.send_headers(connection, stream, http2.request(PULL, (name, b"y" * 4 * MIB)))
            connection.send(http2.frame(http2.PING, 0, 0, b"12345678"))
            connection.read_until(b"12345678")
        self.assertLess(resident_bytes(self.cluster.ps[0]), before + 168 * MIB)
        self.nobody_was_harmed()

    def test_a_client_that_acknowledges_no_settings_gets_no_further_than_its_headers(self):
        connection = self.connect(acknowledge=False)
        self.send_headers(connection, 1, http2.request(PULL, (b"x", b"y" * 65536)))
        connection.read_to_the_end()

    def test_compressed_messages_are_answered_or_refused(self):
        channel = grpc.insecure_channel(self.addresses[0], compression=grpc.Compression.Gzip)
        self.addCleanup(channel.close)
        call = channel.unary_unary("/sumac.v1.Observe/Stats", request_serializer=None, response_deserializer=None)
        try:
            call(b"\x0a" + b"\x80\x80\x40" + bytes(MIB), timeout=DEADLINE_S, compression=grpc.Compression.Gzip)
        except grpc.RpcError:
            pass

    def test_garbage_and_other_protocols_end_only_their_connection(self):
        starts = [b"GET / HTTP/1.1\r\nHost: ps\r\n\r\n", os.urandom(100000), b"\0" * 1000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                  http2.PREFACE[:10], http2.PREFACE + b"\xff" * 1000, http2.PREFACE + http2.frame(99, 255, 77, b"x" * 100),
                  http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b"x"), http2.PREFACE + http2.frame(http2.DATA, 1, 0, b"x"),
                  http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + http2.frame(http2.HEADERS, 5, 1, os.urandom(5000)),
                  http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) + http2.frame(http2.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 3]
        for start in starts:
            connection = self.connect(greet=False)
            connection.send(start)
            connection.close()

    def test_bodies_that_are_no_grpc_message_are_refused(self):
        bodies = [b"\0\xff\xff\xff\xff", http2.message(b"\xff" * 10), http2.message(b"", compressed=1), b"\x07\0\0\0\0", b"abc",
                  http2.message(b"x" * 100)[:50]]
        connection = self.connect()
        for number, body in enumerate(bodies):
            stream = 2 * number + 1
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request(STATS)) +
                            http2.frame(http2.DATA, http2.END_STREAM, stream, body))

    def test_methods_and_headers_that_do_not_exist_are_refused(self):
        connection = self.connect()
        paths = (b"/nobody/Nothing", b"", b"/", b"x" * 10000, b"/sumac.v1.Transfer/", b"/sumac.v1.Transfer/Push\0")
        for number, path in enumerate(paths):
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 2 * number + 1,
                                        http2.request(path, (b"grpc-timeout", b"99999999999999H"), (b"grpc-encoding", b"rot13"))))

    def test_many_pings_and_settings_are_survived(self):
        connection = self.connect()
        for _ in range(200):
            if not connection.send(http2.frame(http2.PING, 0, 0, b"12345678") * 100 + http2.frame(http2.SETTINGS, 0, 0) * 100):
                break

    def test_a_reader_whose_window_is_closed_holds_up_nobody(self):
        connection = self.connect(window=0)
        hello = transfer_pb2.PullRequest(hello=transfer_pb2.Hello(protocol_version=2)).SerializeToString()
        shard = self.victim.shards[0]
        pull = transfer_pb2.PullRequest(request=1, pieces=[transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=1)]).SerializeToString()
        for number in range(300):
            stream = 2 * number + 1
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.request(PULL)) +
                            http2.frame(http2.DATA, 0, stream, http2.message(hello) + http2.message(pull)))
        self.nobody_was_harmed()

    def hold(self, path, request, count):
        """Calls that are answered, by a connection of their own that takes no answer; all have come when this returns, or the ps
        has given the connection up."""
        connection = self.connect(window=0)
        body = http2.message(request.SerializeToString())
        for number in range(count):
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * number + 1, http2.request(path)) +
                            http2.frame(http2.DATA, http2.END_STREAM, 2 * number + 1, body))
        connection.send(http2.frame(http2.PING, 0, 0, b"12345678"))
        connection.read_until(b"12345678")

    def test_answers_that_nobody_takes_cost_nobody_else_a_place_or_a_reason(self):
        member = self.victim.client
        leave = sessions_pb2.LeaveRequest(session_id=b"nobody's session", done=True)
        renew = sessions_pb2.RenewRequest(session_id=b"nobody's session")
        for path, request in ((STATS, observe_pb2.StatsRequest()), (b"/sumac.v1.Variables/List", variables_pb2.ListRequest()),
                              (b"/sumac.v1.Sessions/Leave", leave), (b"/sumac.v1.Sessions/Renew", renew)):
            self.hold(path, request, 700)
        for _ in range(20):
            self.stats()
            self.list()
            member.ps[0].sessions.Renew(sessions_pb2.RenewRequest(session_id=member.joined.session_id), timeout=DEADLINE_S)
            self.refused_as(grpc.StatusCode.NOT_FOUND, member.ps[0].sessions.Leave, leave, types_pb2.REASON_SESSION_UNKNOWN)

    def test_streams_without_a_hello_shut_nobody_out(self):
        for _ in range(20):
            connection = self.connect()
            connection.send(b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * number + 1, http2.request(PULL))
                                     for number in range(900)))
        self.nobody_was_harmed()
        self.ps().health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)

    def test_a_stream_without_a_hello_is_ended(self):
        for method in (self.ps().transfer.Push, self.ps().transfer.Pull):
            stream = Stream(method)
            with self.assertRaises(grpc.RpcError) as raised:
                stream.next()
            self.assertNotEqual(raised.exception.details(), "Deadline Exceeded")
            stream.cancel()

    def test_half_a_request_is_waited_for_by_nobody_else(self):
        connection = self.connect()
        for number in range(50):
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * number + 1, http2.request(JOIN)))
            connection.send(http2.frame(http2.DATA, 0, 2 * number + 1, b"\0\0\0\x10\0"))
        self.nobody_was_harmed()

    def test_requests_that_never_come_are_bounded_by_what_all_calls_may_take(self):
        """More than there are places, over many connections, each as far as the ps has read it."""
        opened = []
        for _ in range(40):
            connection = self.connect()
            connection.send(b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * number + 1, http2.request(JOIN))
                                     for number in range(1000)))
            connection.send(http2.frame(http2.PING, 0, 0, b"12345678"))
            opened.append(connection)
        for connection in opened:
            connection.read_until(b"12345678")
        self.nobody_was_harmed()

    def test_thousands_of_connections_opened_and_closed_leave_none(self):
        before = descriptors(self.cluster.ps[0])
        for _ in range(2000):
            with crowd(self.cluster.ports[0], 1):
                pass
        self.nobody_was_harmed()
        deadline = time.monotonic() + DEADLINE_S
        while descriptors(self.cluster.ps[0]) > before + DESCRIPTORS_MORE and time.monotonic() < deadline:
            self.stats()        # it has the rest of the backlog to accept, and to close, beside this
        self.assertLessEqual(descriptors(self.cluster.ps[0]), before + DESCRIPTORS_MORE)


class FewConnections(Attack):
    MOST = 64
    options = ("--connections-max", str(MOST))

    def setUp(self):
        super().setUp()
        self.bound = descriptors(self.cluster.ps[0]) + self.MOST + DESCRIPTORS_MORE

    def test_a_crowd_of_idle_connections_shuts_out_nobody_for_long(self):
        with crowd(self.cluster.ports[0], 200):
            self.victim.push()      # on its connections, which it has
            self.assertLessEqual(descriptors(self.cluster.ps[0]), self.bound)
        self.ps().health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)

    def test_connections_that_come_and_go_are_refused_or_served(self):
        for _ in range(20):
            with crowd(self.cluster.ports[0], 100):
                self.assertLessEqual(descriptors(self.cluster.ps[0]), self.bound)
        self.nobody_was_harmed()


if __name__ == "__main__":
    unittest.main()
