# SPDX-License-Identifier: Apache-2.0
"""examples/client.py, as somebody copies it: through connections that are cut its sums are exact, and what goes wrong it says."""
import asyncio
import json
import os
import random
import signal
import struct
import sys
import tokenize
import types
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
        """Two ps behind proxies, and a client of them."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.budget = [cuts]
        proxies = [CuttingProxy(port, seed, self.budget, largest=3_000_000) for seed, port in enumerate(self.cluster.ports)]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        self.addresses = [f"127.0.0.1:{proxy.port}" for proxy in proxies]
        return example.Client(self.addresses)

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)     # which tells of every callback that takes 0.1 s

    async def soon(self, awaited):
        """A client that does not send again what was lost fails here, and does not hang."""
        return await asyncio.wait_for(awaited, PATIENCE_S)

    async def as_worker(self, client, work):
        await self.soon(client.run(wire.sessions_pb2.TaskName(job="worker", index=0), work))

    def assert_no_task_is_left(self):
        self.assertEqual([task for task in asyncio.all_tasks() if example.__file__ in repr(task)], [])

    async def create(self, client, name, elements, data_type=wire.types_pb2.DATA_TYPE_INT64):
        types_pb2 = wire.types_pb2
        variable = types_pb2.Variable(
            name=name, data_type=data_type, shape=[elements], function=types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_ASSIGN_ADD),
            partitioner=types_pb2.Partitioner(kind=types_pb2.Partitioner.KIND_FIXED_SHARDS, num_shards=2))
        request = wire.variables_pb2.CreateRequest(session_id=client.session.session_id, variable=variable)
        return (await client.call(client.variables.Create, request)).variable

    async def push_in_rounds(self, client, large, small):
        """Until all cuts are used up; how many rounds there were."""
        rounds = 0
        while self.budget[0] > 0 or rounds == 0:
            rounds += 1
            self.assertLess(rounds, 100, f"{self.budget[0]} cuts are left")
            of = [(large, ELEMENTS) if push % 8 == 0 else (small, 64) for push in range(PUSHES)]
            refused = await asyncio.gather(*(client.push(variable, struct.pack("<q", 1) * elements) for variable, elements in of))
            self.assertEqual(refused, [None] * PUSHES)
        return rounds

    async def test_sums_are_exact_over_cut_connections(self):
        async def work(client):
            large, small = await self.create(client, "large", ELEMENTS), await self.create(client, "small", 64)
            self.rounds = rounds = await self.push_in_rounds(client, large, small)
            self.assertEqual(await client.pull(large), struct.pack("<q", rounds * PUSHES // 8) * ELEMENTS)
            self.assertEqual(await client.pull(small), struct.pack("<q", rounds * PUSHES * 7 // 8) * 64)

        await self.as_worker(self.start(CUTS), work)
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0, 0])
        self.cluster.ps[0].wait_for(f"settled the session of worker 0 at push {self.rounds * PUSHES}$")

    async def test_a_push_that_a_ps_refuses_is_said_and_the_next_ones_go_on(self):
        async def work(client):
            variable = await self.create(client, "w", 4, wire.types_pb2.DATA_TYPE_FLOAT32)
            good, bad = wire.floats(1, 1, 1, 1), wire.floats(1, 1, 1, float("nan"))
            pushes = await asyncio.gather(*(client.push(variable, values) for values in (good, bad, good)))
            self.assertEqual([push is not None for push in pushes], [False, True, False])
            self.assertIn("not finite", pushes[1].message)
            self.assertEqual(await client.pull(variable), wire.floats(2, 2, 2, 2))

        await self.as_worker(self.start(), work)
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0, 0])

    async def test_a_client_leaves_with_its_streams_open(self):
        async def work(client):
            self.assertIsNone(await client.push(await self.create(client, "w", 4), bytes(32)))

        await self.as_worker(self.start(), work)
        self.assertEqual([ps.wait() for ps in self.cluster.ps], [0, 0])
        for ps in self.cluster.ps:
            self.assertNotIn("broke", ps.text())
        self.assert_no_task_is_left()

    async def test_a_stream_that_breaks_while_its_task_is_cancelled_is_not_opened_again(self):
        """gRPC then tells of the stream's own end, and not of the cancelling."""
        opened, is_open = [], asyncio.Event()

        async def broken(messages):
            opened.append(messages)
            is_open.set()
            try:
                yield await asyncio.Event().wait()
            except asyncio.CancelledError:
                if len(opened) > 1:
                    raise
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, {}, {}, "Socket closed") from None

        client = example.Client(["127.0.0.1:9"])
        client.transfer, client.say = [types.SimpleNamespace(Push=broken)], str
        stream = asyncio.create_task(client.call(ps=0))
        await is_open.wait()
        stream.cancel()
        while not stream.done() and len(opened) == 1:
            await asyncio.wait([stream], timeout=0.1)
        self.assertEqual(len(opened), 1)

    async def test_a_client_whose_task_has_joined_again_is_told_to_join_again(self):
        async def work(client):
            await client.push(await self.create(client, "w", 4), bytes(32))
            second = wire.Client(self.cluster.addresses())
            self.addCleanup(second.close)
            self.assertEqual((second.joined.previous_final, second.joined.attempt), (1, 2))
            await asyncio.Event().wait()

        with self.assertRaises(example.Failure) as raised:
            await self.as_worker(self.start(), work)
        self.assertIn(raised.exception.args[0], range(48, 64))
        self.assert_no_task_is_left()

    async def test_errors_ask_for_what_the_protocol_says(self):
        """The rows of PROTOCOL.md, "What to do", at the end of a call: is it tried again?"""
        for reason, status, again in (
                ("", "UNAVAILABLE", True), ("", "RESOURCE_EXHAUSTED", True), ("", "UNIMPLEMENTED", False),
                ("", "UNKNOWN", True), ("", "PERMISSION_DENIED", False), ("", "FAILED_PRECONDITION", False),
                ("OUT_OF_MEMORY", "RESOURCE_EXHAUSTED", False), ("MALFORMED", "INVALID_ARGUMENT", False),
                ("NOT_CONTROLLER", "FAILED_PRECONDITION", False), ("BUSY", "RESOURCE_EXHAUSTED", True), ("TIMED_OUT", "ABORTED", True),
                ("PS_MISSING", "UNAVAILABLE", True), ("SESSION_UNKNOWN", "NOT_FOUND", False), ("STATE_LOST", "UNAVAILABLE", False),
                ("RUN_ENDED", "FAILED_PRECONDITION", False), ("WRONG_CLUSTER", "FAILED_PRECONDITION", False)):
            number = wire.types_pb2.Reason.Value("REASON_" + reason) if reason else 0
            metadata = {"sumac-reason": str(number)} if reason else {}
            error, asked = grpc.aio.AioRpcError(grpc.StatusCode[status], {}, metadata, "a sentence"), []

            async def method(request):
                asked.append(request)
                if len(asked) == 1:
                    raise error
                return "an answer"

            with self.subTest(reason=reason, status=status):
                client = example.Client(["127.0.0.1:9"])
                if again:
                    self.assertEqual(await client.call(method, "a question"), "an answer")
                else:
                    with self.assertRaises(example.Failure) as raised:
                        await client.call(method, "a question")
                    self.assertEqual(raised.exception.args, (number, "a sentence"))
                self.assertEqual(asked, ["a question"] * (2 if again else 1))

    async def test_a_leave_that_is_answered_with_the_end_of_the_run_is_no_failure(self):
        async def method(_):
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, {}, {"sumac-reason": str(wire.types_pb2.REASON_RUN_ENDED)}, "ended")

        self.assertIsNone(await example.Client(["127.0.0.1:9"]).call(method, wire.sessions_pb2.LeaveRequest()))

    async def test_an_attempt_that_seeds_its_generator_as_the_last_one_did_has_a_session_of_its_own(self):
        async def work(client):
            random.seed(0)
            variable = await self.create(client, "w", 4)
            for _ in range(5):
                self.assertIsNone(await client.push(variable, struct.pack("<q", 1) * 4))
            self.sums.append(struct.unpack("<4q", await client.pull(variable)))
            if len(self.sums) == 1:
                raise KeyError("as if it were killed")

        self.sums, client = [], self.start()
        random.seed(0)
        with self.assertRaises(KeyError):
            await self.as_worker(client, work)
        random.seed(0)
        await self.as_worker(example.Client(self.addresses), work)
        self.assertEqual(self.sums, [(5,) * 4, (10,) * 4])

    async def test_a_push_of_no_bytes_is_done(self):
        async def work(client):
            variable = await self.create(client, "w", 0)
            self.assertIsNone(await client.push(variable, b""))
            self.assertEqual(await client.pull(variable), b"")

        await self.as_worker(self.start(), work)

    async def test_a_push_of_other_bytes_than_the_variable_has_is_refused_with_both_figures(self):
        async def work(client):
            variable = await self.create(client, "w", 4)
            for size in (24, 40):
                with self.assertRaisesRegex(ValueError, f"w has 32 bytes in 2 shards on 2 ps; {size} are given"):
                    await client.push(variable, bytes(size))
            variable.shards[1].ps = 0
            with self.assertRaisesRegex(ValueError, "w has 32 bytes in 2 shards on 1 ps"):
                await client.push(variable, bytes(32))

        await self.as_worker(self.start(), work)

    async def test_a_client_made_outside_of_any_loop_works(self):
        async def work(client):
            self.assertIsNone(await client.push(await self.create(client, "w", 4), bytes(32)))

        client = self.start()
        await self.soon(asyncio.to_thread(lambda: asyncio.run(client.run(wire.sessions_pb2.TaskName(job="worker", index=0), work))))

    async def test_a_client_whose_ps_is_terminated_is_told_to_stop(self):
        async def work(client):
            await client.push(await self.create(client, "w", 4), bytes(32))
            self.cluster.ps[1].signal(signal.SIGTERM)
            await asyncio.Event().wait()

        with self.assertRaises(example.Failure) as raised:
            await self.as_worker(self.start(), work)
        self.assertEqual(raised.exception.args[0], wire.types_pb2.REASON_TERMINATED)

    async def test_it_is_code_of_a_hundred_lines(self):
        """Of which comments, blank lines and the texts that describe a file, a class, a function are none."""
        with open(example.__file__, "rb") as file:
            tokens = [token for token in tokenize.tokenize(file.readline) if token.line.strip() and token.type != tokenize.COMMENT]
        described = {line for before, token in zip(tokens, tokens[1:]) if token.type == tokenize.STRING
                     and before.type in (tokenize.ENCODING, tokenize.INDENT, tokenize.NEWLINE, tokenize.NL)
                     for line in range(token.start[0], token.end[0] + 1)}
        space = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
        lines = {token.start[0] for token in tokens if token.type not in space} - described
        self.assertLessEqual(len(lines), 100)

    async def test_what_is_missing_is_said_in_a_sentence(self):
        program = self.first("", "")
        self.assertEqual((program.wait(), len(program.lines)), (1, 1))
        self.assertIn("No module named 'sumac' (looked for by /usr/bin/python3): install the packages for this python", program.text())

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
        self.start()
        config = {"cluster": {"ps": self.addresses[:1], "worker": ["127.0.0.1:9"]}, "task": {"type": "worker", "index": 0}}
        program = self.first(json.dumps(config))
        self.assertEqual((program.wait(), len(program.lines)), (2, 1))
        for port in self.cluster.ports:
            self.assertIn(f"127.0.0.1:{port}", program.text())

    async def test_proxies_are_not_asked(self):
        """The port of the proxy is that of nobody: a client that asks it never reaches its ps."""
        proxy = f"http://127.0.0.1:{free_ports(1)[0]}"
        self.start()
        config = {"cluster": {"ps": self.cluster.addresses(), "worker": ["127.0.0.1:9"]}, "task": {"type": "worker", "index": 0}}
        proxies = {name: proxy for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
        program = self.first(json.dumps(config), environment={**proxies, "no_proxy": "", "NO_PROXY": ""})
        self.assertEqual(program.wait(), 0, program.text())
        self.assertNotIn("trying again", program.text())

    async def test_one_that_waits_for_a_ps_says_so_and_is_interrupted(self):
        config = {"cluster": {"ps": [f"127.0.0.1:{free_ports(1)[0]}"]}, "task": {"type": "worker", "index": 0}}
        program = self.first(json.dumps(config))
        program.wait_for("Connection refused: trying again")
        program.signal(signal.SIGINT)
        self.assertEqual(program.wait(), 130)
        self.assertNotIn("Traceback", program.text())

    def first(self, config, stubs=os.environ["SUMAC_STUBS"], environment=None):
        """The worker beside it. It takes interrupts even where whoever runs the tests ignores them."""
        command = ["env", "--default-signal=INT", "/usr/bin/python3", "-B", os.path.join(EXAMPLES, "first.py")]
        program = Process(command, {"PYTHONPATH": stubs, "TF_CONFIG": config, **(environment or {})})
        self.addCleanup(program.kill)
        return program


if __name__ == "__main__":
    unittest.main()
