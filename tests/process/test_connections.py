# SPDX-License-Identifier: Apache-2.0
"""A network that breaks: TCP connections are cut after a seeded number of bytes, in both directions, and the sums stay exact."""
import contextlib
import random
import signal
import socket
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import http2
import wire
from cluster import Cluster, PATIENCE_S

CUTS = 200
PUSHES = 400


class CuttingProxy:
    """Forwards to one port; each connection is cut after so many bytes, in one direction or the other, until the cuts are used up."""

    def __init__(self, port, seed, budget, largest=60_000):
        self.target = port
        self.largest = largest                  # of the bytes that a connection passes on before it is cut
        self.random = random.Random(seed)
        self.budget = budget                    # shared by all proxies: [cuts left]
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()        # nobody is there: who came hears so, and others may still come
                continue
            with self.lock:
                cut_after = [self.random.randrange(100, self.largest), self.random.randrange(100, 20_000)]
                self.random.shuffle(cut_after)
                self.ends += [near, far]
            for source, sink, limit in ((near, far, cut_after[0]), (far, near, cut_after[1])):
                threading.Thread(target=self.forward, args=(source, sink, limit), daemon=True).start()

    def forward(self, source, sink, limit):
        passed = 0
        try:
            while data := source.recv(min(65536, max(1, limit - passed)) if self.budget[0] > 0 else 65536):
                sink.sendall(data)
                passed += len(data)
                if passed >= limit and self.take_cut():
                    break
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()

    def take_cut(self):
        with self.lock:
            if self.budget[0] <= 0:
                return False
            self.budget[0] -= 1
            return True

    def close(self):
        self.listener.close()

    def cut_all(self):
        with self.lock:
            for end in self.ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.ends.clear()


class Connections(unittest.TestCase):
    def test_who_is_still_connected_at_the_end_is_told_of_no_error(self):
        """A ps waits for half a second until its clients have taken its goodbye: on a busy machine one may need another try."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with Cluster() as cluster, ThreadPoolExecutor(8) as threads, contextlib.ExitStack() as opened:
                client = opened.enter_context(contextlib.closing(wire.Client(cluster.addresses())))
                connections = [opened.enter_context(contextlib.closing(http2.Connection(port, PATIENCE_S)))
                               for port in cluster.ports for _ in range(4)]
                for connection in connections:
                    connection.settle()
                goodbyes = [threads.submit(connection.goodbyes) for connection in connections]
                client.leave()
                self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])
                codes = [goodbye.result() for goodbye in goodbyes]
            if not any(map(any, codes)):
                return
        self.fail(f"in each end some connection ends with an error: {codes}")

    def test_sums_are_exact_over_two_hundred_cut_connections(self):
        """Two members push ones to a variable split over both ps, through proxies; every push counts once."""
        cluster = Cluster(workers=2)
        self.addCleanup(cluster.stop)
        budget = [CUTS]
        proxies = [CuttingProxy(port, seed, budget) for seed, port in enumerate(cluster.ports)]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        addresses = [f"127.0.0.1:{proxy.port}" for proxy in proxies]
        members = [cluster.member(index, ps_addresses=addresses) for index in range(2)]
        for member in members:
            member.wait_for("^joined$")
            member.say("create w int64 64 32 2 assign_add")      # 8 KiB on each ps
            member.wait_for("^created w$")
        rounds = 0
        while budget[0] > 0 or rounds == 0:
            rounds += 1
            for member in members:
                member.say(f"flood w 1 {PUSHES}")
            for member in members:
                before = [n for n, line in enumerate(member.lines) if line == "flooded"]
                while len(before) < rounds:
                    member.wait_for("^flooded$", after=before[-1] + 1 if before else 0)
                    before = [n for n, line in enumerate(member.lines) if line == "flooded"]
            self.assertLess(rounds, 50, f"{budget[0]} cuts are left")
        members[0].say("pull w")
        found = members[0].wait_for(r"^pulled w (\S+) (\S+) (\w+)$")
        expected = float(rounds * PUSHES * len(members))
        self.assertEqual((float(found.group(1)), float(found.group(2)), found.group(3)), (expected, expected, "same"))
        self.assertEqual(budget[0], 0)
        for member in members:
            member.say("leave done")
            member.wait_for("^left$")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_a_full_window_gets_through_a_cut_connection(self):
        """1024 pushes wait for a ps that is suspended when every connection is cut: each is sent again, and all are done once."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        proxies = [CuttingProxy(port, 0, [0]) for port in cluster.ports]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        member = cluster.member(0, ps_addresses=[f"127.0.0.1:{proxy.port}" for proxy in proxies])
        member.wait_for("^joined$")
        member.say("create w int64 2 4 2 assign_add")
        member.wait_for("^created w$")
        member.say("push w 1")
        member.wait_for("^pushed$")
        cluster.ps[1].signal(signal.SIGSTOP)
        member.say("together w 1 1024")
        member.wait_for("^under way$")
        self.wait_for_staged(cluster, 1024)
        for proxy in proxies:
            proxy.cut_all()
        cluster.ps[1].signal(signal.SIGCONT)
        member.wait_for("^together$")
        member.say("pull w")
        member.wait_for("^pulled w 1025 1025 same$")
        self.assertNotIn("TOO_MANY", member.text())
        member.say("leave done")
        member.wait_for("^left$")
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def wait_for_staged(self, cluster, parts):
        """Until ps 0 holds so many parts: each takes at least half a kilobyte of its staging."""
        deadline = time.monotonic() + PATIENCE_S
        ps = wire.Ps(f"127.0.0.1:{cluster.ports[0]}")
        self.addCleanup(ps.close)
        while ps.observe.Stats(wire.observe_pb2.StatsRequest()).memory.staged_bytes < parts * 512:
            self.assertLess(time.monotonic(), deadline, "ps 0 does not stage all parts")


if __name__ == "__main__":
    unittest.main()
