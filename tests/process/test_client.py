# SPDX-License-Identifier: Apache-2.0
"""examples/client.py, as somebody copies it: through connections that are cut its sums are exact, and what goes wrong it says."""
import asyncio
import json
import os
import signal
import struct
import sys
import unittest

import grpc
import wire
from cluster import PATIENCE_S, Cluster, Process, free_ports
from test_connections import CuttingProxy

EXAMPLES = os.path.join(os.environ["SUMAC_SOURCE"], "examples")
sys.path.insert(0, EXAMPLES)
import client as example  # noqa: E402

CUTS = 40
ELEMENTS = 1280 * 1024      # 10 MiB of int64: 5 MiB on each ps, more than a message may have
PUSHES = 24


class ExampleClient(unittest.IsolatedAsyncioTestCase):
    def start(self, cuts=0):
        """Two ps behind proxies; what `joined` wants as a worker's configuration."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.budget = [cuts]
        proxies = [CuttingProxy(port, seed, self.budget, largest=3_000_000) for seed, port in enumerate(self.cluster.ports)]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        addresses = [f"127.0.0.1:{proxy.port}" for proxy in proxies]
        return {"ps": addresses, "worker": ["127.0.0.1:9"]}, {"type": "worker", "index": 0}

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)     # which tells of every callback that takes 0.1 s

    async def create(self, client, name, elements, data_type=wire.types_pb2.DATA_TYPE_INT64):
        types = wire.types_pb2
        variable = types.Variable(
            name=name, data_type=data_type, shape=[elements], function=types.Function(function=types.UPDATE_FUNCTION_ASSIGN_ADD),
            partitioner=types.Partitioner(kind=types.Partitioner.KIND_FIXED_SHARDS, num_shards=2))
        request = wire.variables_pb2.CreateRequest(session_id=client.session.session_id, variable=variable)
        return (await client.call(client.variables.Create, request)).variable

    async def soon(self, awaited):
        """A client that does not send again what was lost fails here, and does not hang."""
        return await asyncio.wait_for(awaited, PATIENCE_S)

    async def push_in_rounds(self, client, large, small):
        """Until all cuts are used up; how many rounds there were."""
        rounds = 0
        while self.budget[0] > 0 or rounds == 0:
            rounds += 1
            self.assertLess(rounds, 100, f"{self.budget[0]} cuts are left")
            under_way = []
            for push in range(PUSHES):
                of, elements = (large, ELEMENTS) if push % 8 == 0 else (small, 64)
                under_way.append(await self.soon(client.push(of, struct.pack("<q", 1) * elements)))
            for push in under_way:
                await self.soon(push.done.wait())
                self.assertIsNone(push.refused)
        return rounds

    async def test_sums_are_exact_over_cut_connections(self):
        async with example.joined(*self.start(CUTS)) as client:
            large, small = await self.create(client, "large", ELEMENTS), await self.create(client, "small", 64)
            rounds = await self.push_in_rounds(client, large, small)
            self.assertEqual(await client.call(client.pull, large), struct.pack("<q", rounds * PUSHES // 8) * ELEMENTS)
            self.assertEqual(await client.call(client.pull, small), struct.pack("<q", rounds * PUSHES * 7 // 8) * 64)
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0, 0])
        self.cluster.ps[0].wait_for(f"settled the session of worker 0 at push {rounds * PUSHES}$")

    async def test_a_push_that_a_ps_refuses_is_said_and_the_next_ones_go_on(self):
        async with example.joined(*self.start()) as client:
            variable = await self.create(client, "w", 4, wire.types_pb2.DATA_TYPE_FLOAT32)
            good, bad = wire.floats(1, 1, 1, 1), wire.floats(1, 1, 1, float("nan"))
            pushes = [await client.push(variable, values) for values in (good, bad, good)]
            for push in pushes:
                await self.soon(push.done.wait())
            self.assertEqual([push.refused is not None for push in pushes], [False, True, False])
            self.assertIn("not finite", pushes[1].refused.message)
            self.assertEqual(await client.call(client.pull, variable), wire.floats(2, 2, 2, 2))
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0, 0])

    async def test_a_client_whose_task_has_joined_again_is_told_to_join_again(self):
        with self.assertRaises(ExceptionGroup) as raised:
            async with asyncio.timeout(PATIENCE_S), example.joined(*self.start()) as client:
                variable = await self.create(client, "w", 4)
                push = await client.push(variable, bytes(32))
                await push.done.wait()
                second = wire.Client(self.cluster.addresses())
                self.addCleanup(second.close)
                self.assertEqual((second.joined.previous_final, second.joined.attempt), (1, 2))
                await asyncio.Event().wait()
        self.assertEqual({failure.args[0] for failure in raised.exception.exceptions}, {"join again"})      # each stream says it

    async def test_errors_ask_for_what_the_protocol_says(self):
        """The rows of PROTOCOL.md, "What to do", at the end of a stream and of a call."""
        for reason, status, of_stream, of_call in (
                ("", "UNAVAILABLE", "try again", "try again"), ("", "RESOURCE_EXHAUSTED", "try again", "try again"),
                ("", "UNIMPLEMENTED", "mend", "mend"), ("OUT_OF_MEMORY", "RESOURCE_EXHAUSTED", "try again", "try again"),
                ("TOO_MANY_IN_FLIGHT", "RESOURCE_EXHAUSTED", "try again", "try again"), ("MALFORMED", "INVALID_ARGUMENT", "mend", "mend"),
                ("STREAM_REPLACED", "ABORTED", "try again", "try again"), ("BUSY", "RESOURCE_EXHAUSTED", "try again", "try again"),
                ("PS_MISSING", "UNAVAILABLE", "stop", "try again"), ("SESSION_UNKNOWN", "NOT_FOUND", "join again", "join again"),
                ("STATE_LOST", "UNAVAILABLE", "stop", "stop"), ("RUN_ENDED", "FAILED_PRECONDITION", "stop", "stop"),
                ("WRONG_CLUSTER", "FAILED_PRECONDITION", "mend", "mend")):
            metadata = {"sumac-reason": str(wire.types_pb2.Reason.Value("REASON_" + reason))} if reason else {}
            error = grpc.aio.AioRpcError(grpc.StatusCode[status], {}, metadata)
            with self.subTest(reason=reason, status=status):
                self.assertEqual((example.remedy(error, True), example.remedy(error, False)), (of_stream, of_call))

    async def test_a_client_whose_ps_is_terminated_is_told_to_stop(self):
        with self.assertRaises(ExceptionGroup) as raised:
            async with asyncio.timeout(PATIENCE_S), example.joined(*self.start()) as client:
                push = await client.push(await self.create(client, "w", 4), bytes(32))
                await push.done.wait()
                self.cluster.ps[1].signal(signal.SIGTERM)
                await asyncio.Event().wait()
        self.assertEqual({failure.args[0] for failure in raised.exception.exceptions}, {"stop"})

    async def test_what_is_missing_is_said_in_a_sentence(self):
        program = self.first("", "")
        self.assertEqual((program.wait(), len(program.lines)), (1, 1))
        self.assertIn("No module named 'sumac': install the packages, make the stubs", program.text())

    async def test_a_configuration_that_names_no_worker_is_a_sentence_and_2(self):
        cluster, worker = {"ps": ["127.0.0.1:9"], "worker": ["127.0.0.1:9"]}, {"type": "worker", "index": 0}
        for config in ("", "nonsense", "{}", "[]", {"cluster": cluster}, {"task": worker}, {"cluster": {}, "task": worker},
                       {"cluster": {**cluster, "ps": []}, "task": worker}, {"cluster": {**cluster, "ps": [1]}, "task": worker},
                       {"cluster": cluster, "task": {"type": "worker"}},
                       {"cluster": cluster, "task": {"type": "worker", "index": "0"}},
                       {"cluster": cluster, "task": {"type": "ps", "index": 0}}):
            with self.subTest(config):
                program = self.first(config if isinstance(config, str) else json.dumps(config))
                self.assertEqual((program.wait(), len(program.lines)), (2, 1), program.text())
                self.assertIn("TF_CONFIG is not set, or is not", program.text())

    async def test_a_wrong_list_of_ps_is_a_sentence_with_both_lists(self):
        cluster, task = self.start()
        program = self.first(json.dumps({"cluster": {**cluster, "ps": cluster["ps"][:1]}, "task": task}))
        self.assertEqual((program.wait(), len(program.lines)), (2, 1))
        for port in self.cluster.ports:
            self.assertIn(f"127.0.0.1:{port}", program.text())

    async def test_one_that_waits_for_a_ps_says_so_and_is_interrupted(self):
        config = {"cluster": {"ps": [f"127.0.0.1:{free_ports(1)[0]}"]}, "task": {"type": "worker", "index": 0}}
        program = self.first(json.dumps(config))
        program.wait_for("Connection refused: trying again")
        program.signal(signal.SIGINT)
        self.assertEqual(program.wait(), 130)
        self.assertNotIn("Traceback", program.text())

    def first(self, config, stubs=os.environ["SUMAC_STUBS"]):
        """The worker beside it. It takes interrupts even where whoever runs the tests ignores them."""
        command = ["env", "--default-signal=INT", "/usr/bin/python3", "-B", os.path.join(EXAMPLES, "first.py")]
        program = Process(command, {"PYTHONPATH": stubs, "TF_CONFIG": config})
        self.addCleanup(program.kill)
        return program


if __name__ == "__main__":
    unittest.main()
