# SPDX-License-Identifier: Apache-2.0
"""A training that goes on with values that are refused: what is remembered of them stays small, and nothing waits for it."""
import unittest

import wire
from cluster import PATIENCE_S, Cluster

PAIRS = 3000        # each of them a refused push: three times as many as a ps remembers of one session


class Refusals(unittest.TestCase):
    def test_refused_and_good_pushes_in_turn_go_on_for_ever(self):
        """`a` is on one ps and refuses, `b` on the other and does not: what each ps is told of is always beyond its own mark."""
        with Cluster() as cluster:
            member = cluster.member(0)
            member.wait_for("^joined$")
            for name, shards in (("a", 1), ("b", 1), ("w", 2)):
                member.say(f"create {name} float32 2 4 {shards} assign_add")
                member.wait_for(f"^created {name}$")
            member.say(f"in_turn a b {PAIRS}")
            member.wait_for("^in turn$", patience_s=PATIENCE_S * 5)
            for name, value, pulled in (("w", "1", 1), ("a", "2", 2), ("b", "2", PAIRS + 2)):
                member.say(f"push {name} {value}")
                member.wait_for("^pushed$")
                member.say(f"pull {name}")
                member.wait_for(f"^pulled {name} {pulled} {pulled} same$")
            member.say("leave done")
            member.wait_for("^left$")
            self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])
            self.assertNotIn("broke", member.text())

    def test_a_client_that_acknowledges_no_refusal_is_told_to(self):
        """Eager pushes that are refused, none of them acknowledged: the stream ends with the remedy, and the rest goes on."""
        with Cluster(ps=1) as cluster:
            client = wire.Client(cluster.addresses())
            self.addCleanup(client.close)
            shard = client.create("w", [2], shards=1).shards[0]
            stream, _ = client.open_push(0)
            refused = 0
            with self.assertRaises(wire.grpc.RpcError) as raised:
                for sequence in range(1, 2000):
                    stream.send(wire.part(sequence, shard, wire.floats(float("nan"), 1), previous=sequence - 1, eager=True))
                    done = False
                    while not done:
                        answer = stream.next()
                        refused += len(answer.refused)
                        done = sequence in [over.sequence for over in answer.done]
            self.assertEqual(raised.exception.code(), wire.grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.assertIn("acked_through", raised.exception.details())
            self.assertEqual(refused, 1024)


if __name__ == "__main__":
    unittest.main()
