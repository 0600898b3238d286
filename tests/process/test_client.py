# SPDX-License-Identifier: Apache-2.0
"""examples/client.py, as somebody copies it: through connections that are cut its sums are exact, and what goes wrong it says."""
import os
import struct
import sys
import unittest

import wire
from cluster import Cluster
from test_connections import CuttingProxy

sys.path.insert(0, os.path.join(os.environ["SUMAC_SOURCE"], "examples"))
import client as example  # noqa: E402

CUTS = 40
ELEMENTS = 1280 * 1024      # 10 MiB of int64: 5 MiB on each ps, more than a message may have
PUSHES = 24


class ExampleClient(unittest.TestCase):
    def start(self, cuts):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        self.budget = [cuts]
        proxies = [CuttingProxy(port, seed, self.budget, largest=3_000_000) for seed, port in enumerate(cluster.ports)]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        return cluster, example.Client([f"127.0.0.1:{proxy.port}" for proxy in proxies], 0, range(1))

    def create(self, client, name, elements, data_type=wire.types_pb2.DATA_TYPE_INT64):
        return client.create(name, [elements], data_type, wire.types_pb2.UPDATE_FUNCTION_ASSIGN_ADD)

    def test_sums_are_exact_over_cut_connections(self):
        cluster, client = self.start(CUTS)
        large, small = self.create(client, "large", ELEMENTS), self.create(client, "small", 64)
        pushes, rounds = 0, 0
        while self.budget[0] > 0 or rounds == 0:
            rounds += 1
            self.assertLess(rounds, 100, f"{self.budget[0]} cuts are left")
            under_way = []
            for push in range(PUSHES):
                of, elements = (large, ELEMENTS) if push % 8 == 0 else (small, 64)
                under_way.append(client.push(of, struct.pack("<q", 1) * elements))
            for push in under_way:
                client.wait(push)
            pushes += PUSHES
        expected = {"large": struct.pack("<q", rounds * PUSHES // 8) * ELEMENTS,
                    "small": struct.pack("<q", rounds * PUSHES * 7 // 8) * 64}
        self.assertEqual(client.pull(large), expected["large"])
        self.assertEqual(client.pull(small), expected["small"])
        self.assertEqual(client.leave(), pushes)
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_a_push_that_a_ps_refuses_is_said_and_the_next_ones_go_on(self):
        cluster, client = self.start(0)
        variable = self.create(client, "w", 4, wire.types_pb2.DATA_TYPE_FLOAT32)
        good, bad = wire.floats(1, 1, 1, 1), wire.floats(1, 1, 1, float("nan"))
        pushes = [client.push(variable, values) for values in (good, bad, good)]
        client.wait(pushes[0])
        with self.assertRaisesRegex(ValueError, "not finite"):
            client.wait(pushes[1])
        client.wait(pushes[2])
        self.assertEqual(client.pull(variable), wire.floats(2, 2, 2, 2))
        self.assertEqual(client.leave(), 3)
        self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    def test_a_client_whose_task_has_joined_again_is_told_to_join_again(self):
        cluster, client = self.start(0)
        variable = self.create(client, "w", 4)
        client.wait(client.push(variable, bytes(32)))
        second = wire.Client(cluster.addresses())
        self.addCleanup(second.close)
        self.assertEqual((second.joined.previous_final, second.joined.attempt), (1, 2))
        with self.assertRaises(example.Over) as raised:
            client.wait_for(lambda: False)
        self.assertEqual(raised.exception.args[0], "join again")


if __name__ == "__main__":
    unittest.main()
