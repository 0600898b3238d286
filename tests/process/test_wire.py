# SPDX-License-Identifier: Apache-2.0
"""A live cluster of two ps, driven by a client that was generated from proto/ by the standard tools."""
import contextlib
import socket
import unittest

import grpc

from cluster import Cluster, PATIENCE_S
from wire import (DEADLINE_S, Client, Ps, Stream, alpha_pb2, alpha_pb2_grpc, commit, floats, health_pb2, observe_pb2, part,
                  reflection_pb2, reflection_pb2_grpc, sessions_pb2, transfer_pb2, types_pb2, variables_pb2)


class Described(unittest.TestCase):
    """What a ps says of itself."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=1)
        cls.ps = Ps(cls.cluster.addresses()[0])

    @classmethod
    def tearDownClass(cls):
        cls.ps.close()
        cls.cluster.stop()

    def reflect(self, request, pb2=reflection_pb2, pb2_grpc=reflection_pb2_grpc):
        stream = Stream(pb2_grpc.ServerReflectionStub(self.ps.channel).ServerReflectionInfo)
        stream.send(pb2.ServerReflectionRequest(**request))
        answer = stream.next()
        stream.end()
        return answer

    def test_reflection_lists_every_service(self):
        for pb2, pb2_grpc in ((reflection_pb2, reflection_pb2_grpc), (alpha_pb2, alpha_pb2_grpc)):
            answer = self.reflect({"list_services": ""}, pb2, pb2_grpc)
            names = {service.name for service in answer.list_services_response.service}
            self.assertLessEqual({"sumac.v1.Sessions", "sumac.v1.Variables", "sumac.v1.Transfer", "sumac.v1.Observe",
                                  "grpc.health.v1.Health"}, names)

    def test_reflection_gives_a_symbols_file_with_all_it_imports(self):
        answer = self.reflect({"file_containing_symbol": "sumac.v1.Transfer"})
        from google.protobuf import descriptor_pb2
        files = [descriptor_pb2.FileDescriptorProto.FromString(raw)
                 for raw in answer.file_descriptor_response.file_descriptor_proto]
        self.assertLessEqual({"sumac/v1/transfer.proto", "sumac/v1/types.proto"}, {file.name for file in files})
        push = next(method for file in files for service in file.service for method in service.method if method.name == "Push")
        self.assertTrue(push.client_streaming and push.server_streaming)

    def test_reflection_of_an_unknown_symbol_is_not_found(self):
        answer = self.reflect({"file_containing_symbol": "sumac.v1.Nobody"})
        self.assertEqual(answer.error_response.error_code, grpc.StatusCode.NOT_FOUND.value[0])

    def test_health_answers_for_the_server_and_each_service(self):
        for name in ("", "sumac.v1.Transfer"):
            answer = self.ps.health.Check(health_pb2.HealthCheckRequest(service=name), timeout=DEADLINE_S)
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        with self.assertRaises(grpc.RpcError) as raised:
            self.ps.health.Check(health_pb2.HealthCheckRequest(service="nobody"), timeout=DEADLINE_S)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_health_watch_answers_at_once(self):
        watch = self.ps.health.Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
        watch.cancel()


class Training(unittest.TestCase):
    """Join, create, list, push over both ps with a commit, pull, leave."""

    def setUp(self):
        self.cluster = Cluster(ps=2)
        self.addCleanup(self.cluster.stop)
        self.client = Client(self.cluster.addresses())
        self.addCleanup(self.client.close)

    def test_many_variables_are_created_by_one_call_and_again_by_its_retry(self):
        names = [f"many_{number}" for number in range(256)]

        made = self.client.create_many(names)
        again = self.client.create_many(names)

        self.assertEqual([variable.name for variable in made], names)
        self.assertEqual([variable.variable_id for variable in again], [variable.variable_id for variable in made])
        self.assertTrue(all(variable.published for variable in made))
        self.assertEqual({shard.ps for variable in made for shard in variable.shards}, {0, 1})

    def test_one_bad_variable_among_many_leaves_none_behind(self):
        with self.assertRaises(grpc.RpcError) as refused:
            self.client.create_many(["none_0", "none_1", "none/part_0"])

        self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("none/part_0", refused.exception.details())
        with self.assertRaises(grpc.RpcError) as missing:
            self.client.ps[0].variables.List(variables_pb2.ListRequest(names=["none_0"]), timeout=DEADLINE_S)
        self.assertEqual(missing.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_a_push_over_both_ps_is_applied_when_it_is_committed(self):
        variable = self.client.create("w", [4, 2])
        self.assertEqual([(shard.ps, shard.rows) for shard in variable.shards], [(0, 2), (1, 2)])
        streams = [self.client.open_push(ps)[0] for ps in range(2)]
        for ps, stream in enumerate(streams):
            stream.send(part(1, variable.shards[ps], floats(1, 2, 3, 4)))
        for stream in streams:
            self.assertEqual(stream.next().staged[0].sequence, 1)
        for ps in range(2):     # staged, and changing nothing yet
            self.assertEqual(self.client.pull(ps, variable.shards[ps]), floats(0, 0, 0, 0))
        for stream in streams:
            stream.send(commit(1))
        for stream in streams:
            done = stream.next().done[0]
            self.assertEqual((done.sequence, done.voided, list(done.versions)), (1, False, [1]))
        for ps in range(2):
            self.assertEqual(self.client.pull(ps, variable.shards[ps], after_sequence=1), floats(1, 2, 3, 4))
        listed = self.client.ps[1].variables.List(variables_pb2.ListRequest(names=["w"]), timeout=DEADLINE_S).variables[0]
        self.assertEqual([(shard.held, shard.version) for shard in listed.shards], [(False, 0), (True, 1)])
        self.assertEqual(listed.shards[1].last_worker, "worker 0")
        self.assertEqual(self.client.leave(), 1)
        for process in self.cluster.ps:
            self.assertEqual(process.wait(), 0)

    def test_a_part_sent_again_changes_nothing(self):
        variable = self.client.create("w", [4, 2], shards=1)
        stream, _ = self.client.open_push(0)
        stream.send(part(1, variable.shards[0], floats(*[1] * 8), eager=True))
        self.assertEqual(stream.next().done[0].sequence, 1)
        again, _ = self.client.open_push(0)
        again.send(part(1, variable.shards[0], floats(*[1] * 8), eager=True))
        self.assertEqual(again.next().done[0].sequence, 1)
        self.assertEqual(self.client.pull(0, variable.shards[0]), floats(*[1] * 8))

    def test_a_refused_part_is_applied_on_no_ps(self):
        variable = self.client.create("w", [4, 2])
        streams = [self.client.open_push(ps)[0] for ps in range(2)]
        streams[0].send(part(1, variable.shards[0], floats(1, 1, 1, 1)))
        streams[1].send(part(1, variable.shards[1], floats(1, float("nan"), 1, 1)))
        self.assertEqual(streams[0].next().staged[0].sequence, 1)
        refused = streams[1].next().refused[0]
        self.assertEqual(refused.reason, types_pb2.REASON_NON_FINITE)
        self.assertIn("worker 0", refused.message)
        for stream in streams:
            stream.send(commit(1, voided=[1]))
        for ps, stream in enumerate(streams):
            self.assertTrue(stream.next().done[0].voided)
            self.assertEqual(self.client.pull(ps, variable.shards[ps], after_sequence=1), floats(0, 0, 0, 0))
        stats = self.client.ps[1].observe.Stats(observe_pb2.StatsRequest(), timeout=DEADLINE_S)
        self.assertEqual((stats.refused, stats.non_finite), (1, 1))
        self.assertEqual([(session.task, session.non_finite) for session in stats.sessions], [("worker 0", 1)])

    def test_a_non_finite_gradient_may_be_allowed(self):
        variable = self.client.create("w", [2], shards=1)
        stream, _ = self.client.open_push(0)
        stream.send(part(1, variable.shards[0], floats(1, float("inf")), eager=True, allow_non_finite=True))
        self.assertFalse(stream.next().done[0].voided)

    def test_a_half_closed_stream_ends_when_its_pull_is_cancelled(self):
        variable = self.client.create("w", [4], shards=1)
        stream = Stream(self.client.ps[0].transfer.Pull)
        stream.send(transfer_pb2.PullRequest(
            hello=self.client.hello(0), request=1, after_sequence=1,
            pieces=[transfer_pb2.Piece(shard_id=variable.shards[0].shard_id, layout_epoch=variable.shards[0].layout_epoch)]))
        answer = stream.next()
        self.assertTrue(answer.HasField("greeting"))
        self.assertEqual(answer.request, 0)     # the pull waits
        stream.send(transfer_pb2.PullRequest(request=1, cancel=True))
        stream.end()
        self.assertIsNone(stream.next())

    def reason(self, error):
        return dict(error.trailing_metadata() or ()).get("sumac-reason", "0")

    def test_one_part_more_than_the_greeting_says_ends_the_stream(self):
        variable = self.client.create("w", [4, 2])
        stream, _ = self.client.open_push(0)
        most = self.client.limits[0].parts_in_flight_max
        for sequence in range(1, most + 2):
            stream.send(part(sequence, variable.shards[0], b"", previous=sequence - 1))
        staged = 0
        with self.assertRaises(grpc.RpcError) as raised:
            while True:
                staged += len(stream.next().staged)
        self.assertLessEqual(staged, most)
        self.assertEqual(self.reason(raised.exception), str(types_pb2.REASON_TOO_MANY_IN_FLIGHT))

    def test_a_message_is_as_large_as_the_greeting_says(self):
        variable = self.client.create("w", [1 << 20], shards=1)
        stream, _ = self.client.open_push(0)
        most = self.client.limits[0].message_bytes_max
        for size, taken in ((most - 64, True), (most + 4, False)):
            sequence = 1 if taken else 2
            stream.send(part(sequence, variable.shards[0], bytes(size), previous=sequence - 1, eager=True))
            if taken:
                answer = stream.next()
                while not answer.done:
                    answer = stream.next()
        with self.assertRaises(grpc.RpcError) as raised:
            stream.next()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_who_leaves_as_done_with_pushes_that_are_dropped_does_not_count_as_done(self):
        variable = self.client.create("w", [4, 2])
        stream, _ = self.client.open_push(0)
        stream.send(part(1, variable.shards[0], floats(1, 1, 1, 1)))
        self.assertEqual(stream.next().staged[0].sequence, 1)       # and never committed
        with self.assertRaises(grpc.RpcError) as raised:
            self.client.leave(last_sequence=1)
        self.assertEqual(self.reason(raised.exception), str(types_pb2.REASON_SESSION_CLOSED))
        self.assertIn("does not count as done", raised.exception.details())
        again = Client(self.cluster.addresses())
        self.assertEqual((again.joined.attempt, again.joined.previous_final), (2, 0))
        self.assertEqual(again.leave(), 0)
        again.close()
        self.assertEqual([process.wait() for process in self.cluster.ps], [0, 0])

    def test_a_join_repeated_with_its_nonce_is_the_same_session(self):
        again = Client(self.cluster.addresses(), nonce=self.client.nonce)
        self.assertEqual(again.joined.session_id, self.client.joined.session_id)
        again.close()

    def test_a_second_attempt_of_a_task_ends_the_first(self):
        variable = self.client.create("w", [4, 2])
        stream, _ = self.client.open_push(0)
        stream.send(part(1, variable.shards[0], floats(1, 1, 1, 1)))
        stream.next()
        second = Client(self.cluster.addresses())
        self.assertEqual((second.joined.attempt, second.joined.previous_final), (2, 0))
        closed = stream.next()
        while not closed.HasField("closed"):
            closed = stream.next()
        self.assertEqual(second.pull(0, variable.shards[0]), floats(0, 0, 0, 0))
        second.close()


class Refusals(unittest.TestCase):
    """Bad input: a clear error that names the thing, and nothing is lost."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, options=["--staging-max", "64M"])     # a floor of 1 MiB for each of 32 sessions
        cls.client = Client(cls.cluster.addresses())
        cls.variable = cls.client.create("w", [4, 2])
        cls.wide = cls.client.create("wide", [1024, 1024], shards=1)
        cls.sequence = {0: 0, 1: 0}
        cls.next_sequence = 1
        cls.streams = [cls.client.open_push(ps)[0] for ps in range(2)]

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.stop()

    def refusal(self, build, ps=0):
        """Send what `build(sequence, previous)` makes; returns its refusal, and passes over it."""
        kind = type(self)
        sequence, previous = kind.next_sequence, kind.sequence[ps]
        kind.next_sequence += 1
        kind.sequence[ps] = sequence
        self.streams[ps].send(build(sequence, previous))
        answer = self.streams[ps].next()
        self.assertEqual([refused.sequence for refused in answer.refused], [sequence], answer)
        if not answer.done:
            self.streams[ps].send(commit(sequence, voided=[sequence]))
            answer_done = self.streams[ps].next()
            self.assertTrue(answer_done.done[0].voided)
        return answer.refused[0]

    def check(self, build, reason, *mentions, ps=0):
        refused = self.refusal(build, ps)
        self.assertEqual(types_pb2.Reason.Name(refused.reason), reason, refused.message)
        for mention in mentions:
            self.assertIn(mention, refused.message + refused.expected + refused.given)

    def test_an_unknown_shard(self):
        nobody = types_pb2.Shard(shard_id=4711)
        self.check(lambda n, p: part(n, nobody, floats(1), previous=p), "REASON_UNKNOWN_SHARD", "4711")

    def test_a_piece_beyond_its_shard(self):
        shard = self.variable.shards[0]
        self.check(lambda n, p: part(n, shard, floats(*[1] * 5), previous=p), "REASON_WRONG_SHAPE", "w")

    def test_half_an_element(self):
        shard = self.variable.shards[0]
        self.check(lambda n, p: part(n, shard, b"\0\0", previous=p), "REASON_WRONG_SHAPE", "w", "float32")

    def test_an_unknown_function(self):
        shard = self.variable.shards[0]
        functions = [types_pb2.Function(function=99)]

        def build(n, p):
            message = part(n, shard, floats(1, 1, 1, 1), previous=p, functions=functions)
            message.parts[0].pieces[0].function = 1
            return message
        self.check(build, "REASON_UNKNOWN_FUNCTION", "99")

    def test_a_function_whose_slots_the_variable_does_not_have(self):
        shard = self.variable.shards[0]
        functions = [types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_ADAM)]

        def build(n, p):
            message = part(n, shard, floats(1, 1, 1, 1), previous=p, functions=functions)
            message.parts[0].pieces[0].function = 1
            return message
        self.check(build, "REASON_MISSING_SLOTS", "adam", "w", "assign_add")

    def test_a_hyperparameter_out_of_range(self):
        shard = self.variable.shards[0]
        rate = types_pb2.Hyperparameter(name=types_pb2.HYPERPARAMETER_NAME_LEARNING_RATE, value=-1)
        functions = [types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_SGD, hyperparameters=[rate])]

        def build(n, p):
            message = part(n, shard, floats(1, 1, 1, 1), previous=p, functions=functions)
            message.parts[0].pieces[0].function = 1
            return message
        self.check(build, "REASON_BAD_HYPERPARAMETER", "learning_rate")

    def test_a_part_larger_than_its_grant_names_both_figures(self):
        shard = self.wide.shards[0]

        def build(n, p):
            return part(n, shard, floats(*[1] * 1024), previous=p, last=False, total=4 << 20)
        sequence = type(self).next_sequence
        ps = shard.ps
        refused = self.refusal_of_long(build, ps)
        self.assertEqual(refused.reason, types_pb2.REASON_PART_TOO_LARGE)
        self.assertGreater(int(refused.given), 4 << 20)          # and what it takes beside its bytes
        self.assertIn(f"takes {refused.given} bytes", refused.message)
        self.assertIn(str(1 << 20), refused.message + refused.expected)
        self.assertEqual(refused.sequence, sequence)

    def refusal_of_long(self, build, ps):
        """A part that is refused at its first chunk: the rest still comes, and is dropped."""
        kind = type(self)
        sequence, previous = kind.next_sequence, kind.sequence[ps]
        kind.next_sequence += 1
        kind.sequence[ps] = sequence
        self.streams[ps].send(build(sequence, previous))
        rest = (4 << 20) - 4096
        for offset in range(4096, 4 << 20, 512 << 10):
            size = min(512 << 10, rest)
            rest -= size
            self.streams[ps].send(part(sequence, self.wide.shards[0], bytes(size), first=False, last=rest == 0, offset=offset))
        refused = None
        self.streams[ps].send(commit(sequence, voided=[sequence]))
        while True:
            answer = self.streams[ps].next()
            refused = answer.refused[0] if answer.refused else refused
            if answer.done:
                return refused

    def test_a_contribution_is_for_the_next_step_and_carries_no_commit(self):
        shard, values = self.variable.shards[0], floats(1, 1, 1, 1)
        self.check(lambda n, p: part(n, shard, values, previous=p, synchronous=True, step=2, weight=1), "REASON_WRONG_STEP",
                   "step 2", "its next one is 1")
        self.check(lambda n, p: part(n, shard, values, previous=p, synchronous=True, step=1, weight=1, eager=True),
                   "REASON_MALFORMED", "carries its own commit")

    def create_error(self, name="x", shape=(2,), **more):
        with self.assertRaises(grpc.RpcError) as raised:
            self.client.create(name, list(shape), **more)
        return raised.exception.code().name, raised.exception.details()

    def test_names_that_are_refused(self):
        for name in ("", "x" * 1025, "w/part_3"):
            code, text = self.create_error(name)
            self.assertEqual(code, "INVALID_ARGUMENT", text)

    def test_shapes_that_are_refused(self):
        for shape in ([2**63], [2**32, 2**32], [2**64 - 1], [1] * 9):
            code, text = self.create_error("x", shape)
            self.assertEqual(code, "INVALID_ARGUMENT", text)
            self.assertIn("shape", text)

    def test_a_create_that_differs_names_the_field(self):
        for more, field in (({"data_type": types_pb2.DATA_TYPE_INT32}, "data_type"), ({"shape": [4, 3]}, "shape"),
                            ({"function": types_pb2.UPDATE_FUNCTION_ADAM}, "function"), ({"shards": 1}, "partitioner")):
            definition = {"shape": [4, 2], **more}
            code, text = self.create_error("w", **definition)
            self.assertEqual(code, "ALREADY_EXISTS", text)
            self.assertIn(field, text)
            self.assertIn("w", text)

    def test_a_list_of_an_unknown_name(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.client.ps[0].variables.List(variables_pb2.ListRequest(names=["nobody"]), timeout=DEADLINE_S)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn("nobody", raised.exception.details())

    def test_a_join_at_another_ps_is_sent_to_ps_0(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.client.ps[1].sessions.Join(sessions_pb2.JoinRequest(protocol_version=2, nonce=bytes(16)), timeout=DEADLINE_S)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertIn(("sumac-reason", str(types_pb2.REASON_NOT_CONTROLLER)), raised.exception.trailing_metadata())
        self.assertIn(("sumac-ps0-address", self.cluster.addresses()[0]), raised.exception.trailing_metadata())

    def test_another_protocol_version(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.client.ps[0].sessions.Join(sessions_pb2.JoinRequest(protocol_version=7, nonce=bytes(16)), timeout=DEADLINE_S)
        self.assertIn("7", raised.exception.details())


class Hostile(unittest.TestCase):
    """Bytes that no client would send; the ps goes on serving."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=1)
        cls.address = cls.cluster.addresses()[0]

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def setUp(self):
        self.ps = Ps(self.address)

    def tearDown(self):
        health = self.ps.health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
        self.assertEqual(health.status, health_pb2.HealthCheckResponse.SERVING)
        self.ps.close()

    def raw(self, path, request, streaming=False, **options):
        kind = self.ps.channel.stream_stream if streaming else self.ps.channel.unary_unary
        method = kind(path, request_serializer=bytes, response_deserializer=bytes)
        with self.assertRaises(grpc.RpcError) as raised:
            if streaming:
                list(method(iter(request), timeout=DEADLINE_S, **options))
            else:
                method(request, timeout=DEADLINE_S, **options)
        return raised.exception.code().name

    def test_unknown_methods_are_unimplemented(self):
        self.assertEqual(self.raw("/sumac.v1.Transfer/Steal", b""), "UNIMPLEMENTED")
        self.assertEqual(self.raw("/nobody.Service/Method", b""), "UNIMPLEMENTED")

    def test_garbage_messages_are_invalid(self):
        for garbage in (b"\xff" * 64, b"\x0a\x7f", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x0b",
                        b"\x0f"):
            self.assertEqual(self.raw("/sumac.v1.Sessions/Join", garbage), "INVALID_ARGUMENT", garbage)
            self.assertEqual(self.raw("/sumac.v1.Transfer/Push", [garbage], streaming=True), "INVALID_ARGUMENT", garbage)
            self.assertEqual(self.raw("/sumac.v1.Transfer/Pull", [garbage], streaming=True), "INVALID_ARGUMENT", garbage)

    def test_a_name_that_is_not_utf_8(self):
        list_names = b"\x0a\x02\xff\xfe"
        self.assertEqual(self.raw("/sumac.v1.Variables/List", list_names), "INVALID_ARGUMENT")

    def test_a_message_above_the_limit(self):
        self.assertEqual(self.raw("/sumac.v1.Variables/List", b"\x0a" + b"\x80\x80\x80\x04" + bytes(8 << 20)), "RESOURCE_EXHAUSTED")

    def test_too_many_pieces(self):
        message = transfer_pb2.PushRequest(
            parts=[transfer_pb2.Part(sequence=1, first=True, pieces=[transfer_pb2.Piece(shard_id=1)] * 1_000_000)])
        self.assertIn(self.raw("/sumac.v1.Transfer/Push", [message.SerializeToString()], streaming=True),
                      ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"))

    def test_compressed_messages_are_refused(self):
        code = self.raw("/sumac.v1.Variables/List", bytes(100_000), compression=grpc.Compression.Gzip)
        self.assertEqual(code, "UNIMPLEMENTED")

    def test_http_1_closes_the_connection(self):
        host, port = self.address.split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(100))
            with contextlib.suppress(ConnectionResetError):     # closed with bytes unread
                while connection.recv(4096):
                    pass

    def test_a_first_message_without_hello(self):
        stream = Stream(self.ps.transfer.Push)
        stream.send(commit(1))
        with self.assertRaises(grpc.RpcError) as raised:
            stream.next()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("hello", raised.exception.details())

    def test_a_session_that_nobody_opened_is_told_to_join(self):
        stream = Stream(self.ps.transfer.Push)
        listed = self.ps.variables.List(variables_pb2.ListRequest(), timeout=DEADLINE_S)
        stream.send(transfer_pb2.PushRequest(hello=transfer_pb2.Hello(
            protocol_version=2, cluster_id=listed.cluster_id, epoch=listed.epoch, ps_incarnation=listed.ps_incarnation,
            session_id=bytes(range(16)), generation=1)))
        answer = stream.next()
        while not answer.rejoin:
            answer = stream.next()
        stream.end()


if __name__ == "__main__":
    unittest.main()
