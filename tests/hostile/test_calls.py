# SPDX-License-Identifier: Apache-2.0
"""Calls that no client of ours would make."""
import os
import unittest

import grpc

from attack import (Attack, Client, DEADLINE_S, MIB, PushStream, floats, observe_pb2, pieces_of, push_and_wait, sessions_pb2,
                    transfer_pb2, types_pb2, variables_pb2)

LIST_NAMES_MAX = 1000
INVALID = grpc.StatusCode.INVALID_ARGUMENT
E_ACUTE = "\u00e9"          # two bytes


class Lists(Attack):
    def setUp(self):
        super().setUp()
        self.client = self.observer()
        self.lists = self.ps().variables.List

    def test_a_name_asked_for_many_times_is_refused(self):
        self.client.create("v", [4096, 0], shards=4096)
        for count in (2, 900, 1500, 50000):
            self.refused_as(INVALID, self.lists, variables_pb2.ListRequest(names=["v"] * count))
        many = variables_pb2.ListRequest(names=["v"] * 200000)      # more than a request may take to unpack
        self.refused_as(grpc.StatusCode.RESOURCE_EXHAUSTED, self.lists, many)

    def test_more_names_than_may_be_asked_for_are_refused(self):
        names = [f"name {number}" for number in range(LIST_NAMES_MAX + 1)]
        self.refused_as(INVALID, self.lists, variables_pb2.ListRequest(names=names))

    def test_variables_of_many_shards_are_listed_in_messages_of_a_megabyte(self):
        for number in range(12):
            self.client.create(f"v{number}", [4096, 0], shards=4096)
        seen, after, pages = [], 0, 0
        while True:
            reply = self.lists(variables_pb2.ListRequest(after_id=after), timeout=DEADLINE_S)
            self.assertLess(reply.ByteSize(), 2 * MIB)
            seen += [variable.name for variable in reply.variables]
            pages += 1
            if not reply.more:
                break
            after = reply.variables[-1].variable_id
        self.assertEqual(seen, ["victim", *[f"v{number}" for number in range(12)]])
        self.assertGreater(pages, 1)

    def test_odd_pages_are_answered(self):
        for after, limit in (((1 << 64) - 1, 0), (0, (1 << 32) - 1), (5, 1), (1 << 63, 7)):
            self.lists(variables_pb2.ListRequest(after_id=after, limit=limit), timeout=DEADLINE_S)


class Sizes(Attack):
    """Before it is unpacked, a request of more bytes than its method needs is refused, with both figures."""
    FILLER = b"x" * 3600000

    def too_large(self, call, request, name, most):
        self.assertEqual(
            self.refused_as(grpc.StatusCode.RESOURCE_EXHAUSTED, call, request, types_pb2.REASON_MESSAGE_TOO_LARGE),
            f"a {request.DESCRIPTOR.name} of {request.ByteSize()} bytes: {name} takes at most {most}")

    def test_of_every_unary_method(self):
        ps, filler, text = self.ps(), self.FILLER, self.FILLER.decode()
        self.too_large(ps.variables.List, variables_pb2.ListRequest(names=[text]), "List", 1200000)
        self.too_large(ps.variables.Create, variables_pb2.CreateRequest(session_id=filler), "Create", 262144)
        self.too_large(ps.variables.Delete, variables_pb2.DeleteRequest(session_id=filler), "Delete", 8192)
        self.too_large(ps.sessions.Join, sessions_pb2.JoinRequest(ps_addresses=[text]), "Join", 524288)
        self.too_large(ps.sessions.Renew, sessions_pb2.RenewRequest(session_id=filler), "Renew", 8192)
        self.too_large(ps.sessions.Leave, sessions_pb2.LeaveRequest(session_id=filler), "Leave", 8192)
        self.too_large(ps.sessions.Barrier, sessions_pb2.BarrierRequest(name=text), "Barrier", 16384)
        stats = observe_pb2.StatsRequest()      # of a field that it does not have
        stats.MergeFromString(variables_pb2.ListRequest(names=[text]).SerializeToString())
        self.too_large(ps.observe.Stats, stats, "Stats", 8192)

    def test_of_the_messages_of_streams(self):
        streams, hello = self.observer().ps[0].transfer, transfer_pb2.Hello(session_id=self.FILLER)
        for call, request, code, text in (
                (streams.Pull, transfer_pb2.PullRequest(hello=hello), grpc.StatusCode.RESOURCE_EXHAUSTED, "Pull takes at most 1048576"),
                (streams.Push, transfer_pb2.PushRequest(hello=hello), INVALID, "beside its payload, at most 1048576")):
            with self.assertRaises(grpc.RpcError) as raised:
                list(call(iter([request]), timeout=DEADLINE_S))
            self.assertEqual(raised.exception.code(), code, raised.exception.details())
            self.assertIn(text, raised.exception.details())


class Names(Attack):
    workers = 0     # anybody may be a member

    def creates(self, name):
        client = self.observer()
        request = variables_pb2.CreateRequest(session_id=client.joined.session_id, variable=types_pb2.Variable(
            name=name, data_type=types_pb2.DATA_TYPE_FLOAT32, shape=[1]))
        self.refused_as(INVALID, client.ps[0].variables.Create, request)

    def test_a_task_name_of_any_length_leaves_lists_and_statistics_readable(self):
        ps = self.ps()
        for letters in range(0, 8):
            for accents in (31 - letters // 2, 28, 18):
                request = sessions_pb2.JoinRequest(
                    protocol_version=2, nonce=os.urandom(16), role=sessions_pb2.ROLE_MEMBER, local_replicas=1,
                    task=sessions_pb2.TaskName(job="x" * letters + E_ACUTE * accents, index=letters))
                try:
                    joined = ps.sessions.Join(request, timeout=DEADLINE_S)
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), INVALID)
                    continue
                client = self.observer()
                client.joined = joined
                shard = self.victim.shards[0]
                stream = PushStream(client, shard.ps)
                message = transfer_pb2.PushRequest(parts=[transfer_pb2.Part(
                    sequence=1, first=True, last=True, eager=True, pieces=pieces_of(shard, (0, 16)), bytes=16, weight=1)], payload=floats(0, 0, 0, 0))
                self.assertEqual(push_and_wait(stream, message, 1), "done")
                self.list()
                self.stats()
                stream.close()
                ps.sessions.Leave(sessions_pb2.LeaveRequest(session_id=joined.session_id), timeout=DEADLINE_S)

    def test_a_refusal_that_names_a_variable_of_any_length_is_readable(self):
        client = self.observer()
        for letters in range(4):
            name = "x" * letters + E_ACUTE * ((1024 - letters) // 2)
            shard = client.create(name, [4], shards=1).shards[0]
            stream = PushStream(client, shard.ps)
            number = letters + 1
            for runs, payload in (([(0, 12)], floats(1, 1, 1)), ([(4, 16)], floats(1, 1, 1, 1)), ([(0, 16)], floats(float("nan"), 1, 1, 1))):
                message = transfer_pb2.PushRequest(parts=[transfer_pb2.Part(
                    sequence=number, first=True, last=True, eager=True, pieces=pieces_of(shard, *runs), bytes=16, weight=1)], payload=payload)
                fate = push_and_wait(stream, message, number)
                if not isinstance(fate, str):
                    self.assertNotEqual(fate.code(), grpc.StatusCode.INTERNAL, fate)
            stream.close()
            client = self.observer()

    def test_names_that_do_not_exist_are_answered_readably(self):
        for letters in range(4):
            name = "x" * letters + E_ACUTE * 5000
            self.refused_as(grpc.StatusCode.NOT_FOUND, self.ps().variables.List, variables_pb2.ListRequest(names=[name]))

    def test_names_of_jobs_with_control_characters_are_refused(self):
        for odd in ("\0", "\x1b[2J", "x\ny", "\r", "a\0b"):
            request = sessions_pb2.JoinRequest(protocol_version=2, nonce=os.urandom(16), role=sessions_pb2.ROLE_MEMBER, local_replicas=1,
                                               task=sessions_pb2.TaskName(job=odd))
            self.refused_as(INVALID, self.ps().sessions.Join, request)

    def test_names_of_variables_with_control_characters_are_refused(self):
        for odd in ("\0", "\x1b[2J", "\n", "\r", "\x7f", "\x9b2J", "a\0b", "\u2028"[:0] + "\t"):
            self.creates("a" + odd)
            self.creates(odd)


class Creates(Attack):
    def setUp(self):
        super().setUp()
        self.client = self.observer()

    def delete(self, name):
        self.client.ps[0].variables.Delete(variables_pb2.DeleteRequest(session_id=self.client.joined.session_id, name=name), timeout=DEADLINE_S)

    def test_shards_without_rows_are_counted_and_given_back(self):
        made = []
        for number in range(60):
            try:
                self.client.create(f"v{number}", [4096, 0], shards=4096)
                made.append(f"v{number}")
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                break
        self.nothing_is_beyond_the_formula()
        for name in made:
            self.delete(name)

    def test_a_create_of_more_than_there_is_is_refused(self):
        for shape in ([1 << 40], [1 << 62], [1 << 32, 1 << 32], [(1 << 64) - 1], [1 << 63, 2], [1 << 20] * 8):
            request = variables_pb2.CreateRequest(session_id=self.client.joined.session_id, variable=types_pb2.Variable(
                name="huge", data_type=types_pb2.DATA_TYPE_FLOAT32, shape=shape))
            with self.assertRaises(grpc.RpcError) as raised:
                self.client.ps[0].variables.Create(request, timeout=DEADLINE_S)
            self.assertIn(raised.exception.code(), (INVALID, grpc.StatusCode.RESOURCE_EXHAUSTED))

    def test_odd_definitions_are_refused(self):
        initializer, partitioner = types_pb2.Initializer, types_pb2.Partitioner
        for odd in ({"data_type": 0}, {"data_type": 99}, {"shape": [1] * 9}, {"function": types_pb2.Function(function=99)},
                    {"initializer": initializer(kind=77)},
                    {"initializer": initializer(kind=initializer.KIND_NORMAL), "data_type": types_pb2.DATA_TYPE_INT8},
                    {"initializer": initializer(kind=initializer.KIND_UNIFORM, a=1, b=0)},
                    {"initializer": initializer(kind=initializer.KIND_NORMAL, b=float("nan"))},
                    {"partitioner": partitioner(kind=partitioner.KIND_FIXED_SHARDS)}, {"partitioner": partitioner(kind=42)},
                    {"function": types_pb2.Function(function=types_pb2.UPDATE_FUNCTION_ADAM), "data_type": types_pb2.DATA_TYPE_INT32}):
            variable = types_pb2.Variable(**{"name": "odd", "data_type": types_pb2.DATA_TYPE_FLOAT32, "shape": [4], **odd})
            request = variables_pb2.CreateRequest(session_id=self.client.joined.session_id, variable=variable)
            self.refused_as(INVALID, self.client.ps[0].variables.Create, request)

    def test_calls_with_odd_session_ids_are_refused(self):
        ps = self.ps()
        for odd in (b"", b"x", b"x" * 15, b"x" * 16, b"x" * 17, b"x" * 100000):
            for call, request in ((ps.sessions.Renew, sessions_pb2.RenewRequest), (ps.sessions.Leave, sessions_pb2.LeaveRequest),
                                  (ps.sessions.Barrier, sessions_pb2.BarrierRequest),
                                  (ps.variables.Create, variables_pb2.CreateRequest), (ps.variables.Delete, variables_pb2.DeleteRequest)):
                with self.assertRaises(grpc.RpcError):
                    call(request(session_id=odd), timeout=DEADLINE_S)

    def test_odd_barriers_are_refused(self):
        task, member = sessions_pb2.TaskName, self.victim.client
        for odd in ({"name": ""}, {"name": "x" * 257}, {"name": "a\nb"}, {"round": 2 ** 64 - 1}, {"tasks": [task(job="banana")]},
                    {"tasks": [task(job="worker", index=index) for index in (2, 1)]}, {"tasks": [task(job="worker", index=9)]},
                    {"tasks": [task(job="worker", index=index) for index in range(600)]}):
            request = sessions_pb2.BarrierRequest(**{"session_id": member.joined.session_id, "name": "odd", **odd})
            self.refused_as(INVALID, member.ps[0].sessions.Barrier, request)

    def test_a_storm_of_creates_and_deletes_leaves_nothing(self):
        for _ in range(100):
            self.client.create("storm", [16], shards=2)
            self.delete("storm")
        self.assertEqual([variable.name for variable in self.list().variables], ["victim"])


class Joins(Attack):
    def request(self, **more):
        return sessions_pb2.JoinRequest(**{"protocol_version": 2, "nonce": os.urandom(16), "role": sessions_pb2.ROLE_MEMBER,
                                           "local_replicas": 1, **more})

    def test_observers_do_not_take_the_places_of_members(self):
        observers, ps = [], self.ps()
        while len(observers) < 200:
            try:
                observers.append(ps.sessions.Join(self.request(role=sessions_pb2.ROLE_OBSERVER), timeout=DEADLINE_S))
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                break
        self.assertLess(len(observers), 200)
        again = Client(self.addresses)      # the victim comes back, as a new attempt
        self.addCleanup(again.close)
        self.victim.client, self.victim.pushed = again, 0

    def test_nonces_of_other_lengths_and_versions_of_other_years_are_refused(self):
        task = sessions_pb2.TaskName(job="worker")
        for odd in ({"nonce": b""}, {"nonce": b"x" * 15}, {"nonce": b"x" * 4000}, {"protocol_version": 0}, {"protocol_version": 9},
                    {"cluster_id": 5}, {"role": 7}):
            with self.assertRaises(grpc.RpcError):
                self.ps().sessions.Join(self.request(task=task, **odd), timeout=DEADLINE_S)

    def test_a_join_that_names_thousands_of_members_shuts_nobody_out(self):
        members = [sessions_pb2.TaskName(job="worker", index=index) for index in range(5000)]
        with self.assertRaises(grpc.RpcError):
            self.ps().sessions.Join(self.request(task=sessions_pb2.TaskName(job="stranger"), members=members), timeout=DEADLINE_S)

    def test_members_that_are_not_listed_are_refused(self):
        for job, index, code in (("worker", 77, grpc.StatusCode.FAILED_PRECONDITION), ("chief", 0, grpc.StatusCode.FAILED_PRECONDITION),
                                 ("ps", 0, INVALID), ("banana", 0, INVALID)):
            self.refused_as(code, self.ps().sessions.Join, self.request(task=sessions_pb2.TaskName(job=job, index=index)))


class SharedNonces(Attack):
    workers = 2

    def test_a_nonce_that_another_task_has_used_is_refused(self):
        nonce = os.urandom(16)
        request = {"protocol_version": 2, "nonce": nonce, "role": sessions_pb2.ROLE_MEMBER, "local_replicas": 1}
        joins = self.ps().sessions.Join
        joins(sessions_pb2.JoinRequest(task=sessions_pb2.TaskName(job="worker", index=1), **request), timeout=DEADLINE_S)
        for task, role in ((sessions_pb2.TaskName(job="worker", index=0), sessions_pb2.ROLE_MEMBER), (None, sessions_pb2.ROLE_OBSERVER)):
            with self.assertRaises(grpc.RpcError) as raised:
                joins(sessions_pb2.JoinRequest(task=task, **{**request, "role": role}), timeout=DEADLINE_S)
            self.assertEqual(dict(raised.exception.trailing_metadata())["sumac-reason"], str(types_pb2.REASON_NONCE_TAKEN))


if __name__ == "__main__":
    unittest.main()
