# SPDX-License-Identifier: Apache-2.0
"""Streams by the thousand, of clients that say nothing or only read: members, ps 0 and whoever looks get in all the same."""
import contextlib
import unittest

from cluster import Cluster, PATIENCE_S
from http2 import Connection
from wire import Ps, DEADLINE_S, health_pb2, observe_pb2, transfer_pb2

CONNECTIONS = 18
STREAMS = 1000                  # on each
LONG_MS = "600000"


class Crowds(unittest.TestCase):
    def crowd(self, port):
        """18 000 streams: half say nothing, half are readers that never ask."""
        hello = transfer_pb2.PullRequest(hello=transfer_pb2.Hello(protocol_version=2)).SerializeToString()
        connections = [Connection(port, PATIENCE_S) for _ in range(CONNECTIONS)]
        for n, connection in enumerate(connections):
            self.addCleanup(connection.close)
            # On a busy machine the ps may give it up: it is no crowd any more.
            with contextlib.suppress(OSError, EOFError):
                connection.open_streams("/sumac.v1.Transfer/Pull", STREAMS, hello if n % 2 else None)
        for connection in connections:
            with contextlib.suppress(OSError, EOFError):
                connection.settle()

    def test_eighteen_thousand_idle_streams_shut_nobody_out(self):
        cluster = Cluster(start=False, options=["--ps-lost-ms", LONG_MS])       # the crowds may take a busy machine a minute
        self.addCleanup(cluster.stop)
        cluster.start_ps(1)
        self.assertTrue(cluster.listens(cluster.ps[1]))
        self.crowd(cluster.ports[1])            # before ps 0 comes, and calls
        cluster.start_ps(0)
        self.assertTrue(cluster.listens(cluster.ps[0]))
        self.crowd(cluster.ports[0])
        member = cluster.member(timeout_ms=LONG_MS)
        member.wait_for("^joined$")
        member.say("create w float32 64 1 2 assign_add")
        member.wait_for("^created w$")
        member.say("push w 3")
        member.wait_for("^pushed$")
        member.say("pull w")
        member.wait_for("^pulled w 3 3 same$")
        for address in cluster.addresses():
            ps = Ps(address)
            self.addCleanup(ps.close)
            self.assertEqual(ps.health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S).status, 1)
            self.assertEqual(ps.observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S).pushes, 1)
        member.say("leave done")
        member.wait_for("^left$")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


if __name__ == "__main__":
    unittest.main()
