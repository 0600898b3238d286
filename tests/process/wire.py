# SPDX-License-Identifier: Apache-2.0
"""A client made of nothing but the standard tools: Debian's gRPC for Python, and stubs generated from proto/.

It speaks the protocol by hand, message by message, so that a test can also say what a well-behaved client never would.
"""
import os
import queue
import struct
import sys
import threading

import grpc

from cluster import PATIENCE_S

# The generated packages grpc.health and grpc.reflection live inside the name of the library itself.
STUBS = os.environ["SUMAC_STUBS"]
sys.path.insert(0, STUBS)
grpc.__path__.append(os.path.join(STUBS, "grpc"))

from sumac.v1 import observe_pb2, observe_pb2_grpc, sessions_pb2, sessions_pb2_grpc, transfer_pb2, transfer_pb2_grpc  # noqa: E402
from sumac.v1 import types_pb2, variables_pb2, variables_pb2_grpc  # noqa: E402
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from grpc.reflection.v1 import reflection_pb2, reflection_pb2_grpc  # noqa: E402
from grpc.reflection.v1alpha import reflection_pb2 as alpha_pb2, reflection_pb2_grpc as alpha_pb2_grpc  # noqa: E402

DEADLINE_S = PATIENCE_S


class Stream:
    """One end of a bidirectional stream: send, and take the next answer. `end` half-closes, `cancel` breaks it."""

    def __init__(self, method, timeout_s=DEADLINE_S):
        self.outgoing = queue.Queue()
        self.answers = queue.Queue(maxsize=2)   # so that a test that takes no answers makes a client that reads none
        self.call = method(iter(self.outgoing.get, None), timeout=timeout_s)
        self.timeout_s = timeout_s
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        try:
            for answer in self.call:
                self.answers.put(answer)
            self.answers.put(None)
        except grpc.RpcError as error:
            self.answers.put(error)

    def send(self, message):
        self.outgoing.put(message)

    def next(self):
        """The next answer; None: the other side ended it. Raises what broke it."""
        answer = self.answers.get(timeout=self.timeout_s)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self):
        self.outgoing.put(None)

    def cancel(self):
        self.call.cancel()
        self.end()


class Ps:
    """A connection to one ps."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        grpc.channel_ready_future(self.channel).result(timeout=DEADLINE_S)
        self.sessions = sessions_pb2_grpc.SessionsStub(self.channel)
        self.variables = variables_pb2_grpc.VariablesStub(self.channel)
        self.transfer = transfer_pb2_grpc.TransferStub(self.channel)
        self.observe = observe_pb2_grpc.ObserveStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def pages(self):
        """The catalogue, answer by answer."""
        request = variables_pb2.ListRequest()
        more = True
        while more:
            page = self.variables.List(request, timeout=DEADLINE_S)
            yield page
            more = page.more
            if more:
                request.after_id = page.variables[-1].variable_id

    def close(self):
        self.channel.close()


class Client:
    """A session over all ps of a cluster, opened by hand."""

    def __init__(self, addresses, role=sessions_pb2.ROLE_MEMBER, task=0, nonce=None):
        self.ps = [Ps(address) for address in addresses]
        self.nonce = nonce or os.urandom(16)
        name = sessions_pb2.TaskName(job="worker", index=task) if role == sessions_pb2.ROLE_MEMBER else None
        self.joined = self.ps[0].sessions.Join(sessions_pb2.JoinRequest(
            protocol_version=2, nonce=self.nonce, role=role, local_replicas=1, task=name), timeout=DEADLINE_S)
        self.generation = 0
        self.pushes = []
        self.limits = {}    # per ps: what its last greeting said that it takes

    def create(self, name, shape, data_type=types_pb2.DATA_TYPE_FLOAT32, shards=2, function=types_pb2.UPDATE_FUNCTION_ASSIGN_ADD,
               **more):
        variable = types_pb2.Variable(
            name=name, data_type=data_type, shape=shape, function=types_pb2.Function(function=function),
            partitioner=types_pb2.Partitioner(kind=types_pb2.Partitioner.KIND_FIXED_SHARDS, num_shards=shards), **more)
        request = variables_pb2.CreateRequest(session_id=self.joined.session_id, variable=variable)
        return self.ps[0].variables.Create(request, timeout=DEADLINE_S).variable

    def create_many(self, names, **more):
        """One message each way; what the answer has."""
        variables = [types_pb2.Variable(name=name, data_type=types_pb2.DATA_TYPE_FLOAT32, shape=[4], **more) for name in names]
        request = variables_pb2.CreateRequest(session_id=self.joined.session_id, variables=variables)
        return self.ps[0].variables.Create(request, timeout=DEADLINE_S).variables

    def hello(self, ps):
        return transfer_pb2.Hello(protocol_version=2, cluster_id=self.joined.cluster_id, epoch=self.joined.epoch,
                                  ps_incarnation=self.joined.ps_incarnations[ps], session_id=self.joined.session_id,
                                  generation=self.generation)

    def open_push(self, ps):
        """A push stream of a new generation; returns it and its greeting."""
        self.generation += 1
        stream = Stream(self.ps[ps].transfer.Push)
        stream.send(transfer_pb2.PushRequest(hello=self.hello(ps)))
        greeting = stream.next().greeting
        self.limits[ps] = greeting.limits
        return stream, greeting

    def pull(self, ps, shard, after_sequence=0):
        """The bytes of a shard."""
        stream = Stream(self.ps[ps].transfer.Pull)
        stream.send(transfer_pb2.PullRequest(
            hello=self.hello(ps), request=1, after_sequence=after_sequence,
            pieces=[transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch)]))
        payload = b""
        while True:
            answer = stream.next()
            if answer.request != 1:
                continue
            if answer.status:
                raise AssertionError(f"the pull ends with {answer.status}: {answer.message}")
            payload += answer.payload
            if answer.last:
                stream.end()
                return payload

    def leave(self, done=True, last_sequence=0):
        return self.ps[0].sessions.Leave(sessions_pb2.LeaveRequest(
            session_id=self.joined.session_id, done=done, last_sequence=last_sequence), timeout=DEADLINE_S).final

    def close(self):
        for ps in self.ps:
            ps.close()


def part(sequence, shard, payload, previous=0, eager=False, first=True, last=True, total=None, offset=0, **more):
    """A push message with one piece of one part."""
    piece = transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch, offset_bytes=offset, bytes=len(payload))
    header = {"previous": previous, "eager": eager, "bytes": len(payload) if total is None else total} if first else {}
    return transfer_pb2.PushRequest(
        parts=[transfer_pb2.Part(sequence=sequence, first=first, last=last, pieces=[piece], **header, **more)], payload=payload)


def commit(through, voided=(), acked=0):
    return transfer_pb2.PushRequest(commit=transfer_pb2.Commit(commit_through=through, voided=voided, acked_through=acked))


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)
