# SPDX-License-Identifier: Apache-2.0
"""A ps that is told to stop, and those who would not let it."""
import signal
import threading
import unittest

import http2
from cluster import Cluster

STATS, PULL = b"/sumac.v1.Observe/Stats", b"/sumac.v1.Transfer/Pull"
HEADERS_WITHOUT_END = http2.frame(http2.CONTINUATION, 0, 1, b"".join(http2.header(b"x%d" % n, b"y" * 20) for n in range(400))[:16000]) * 200


class TheEnd(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(ps=1)
        self.addCleanup(self.cluster.stop)

    def connect(self, **more):
        connection = http2.Connection(self.cluster.addresses()[0], **more)
        self.addCleanup(connection.close)
        return connection

    @staticmethod
    def send_without_a_pause(connection):
        connection.send(http2.frame(http2.HEADERS, 0, 1, http2.request(PULL)))
        while connection.send(HEADERS_WITHOUT_END):
            pass

    def test_headers_without_end_do_not_hold_up_the_end(self):
        unread = self.connect(window=0)         # while its answer is not taken, the ps has a reason to wait
        unread.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request(STATS)) +
                    http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(b"")) + http2.frame(http2.PING, 0, 0, b"12345678"))
        unread.read_until(b"12345678")
        senders = [threading.Thread(target=self.send_without_a_pause, args=(self.connect(),), daemon=True) for _ in range(2)]
        ps = self.cluster.ps[0]

        ps.signal(signal.SIGTERM)
        ps.wait_for("run ends with code 143")
        for sender in senders:
            sender.start()

        self.assertEqual(ps.wait(), 143)
        for sender in senders:
            sender.join()


if __name__ == "__main__":
    unittest.main()
