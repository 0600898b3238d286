# SPDX-License-Identifier: Apache-2.0
"""A client in Python, made of proto/ and the stock gRPC package alone, on one event loop, without locks: it joins, keeps its lease, pushes
several things at a time, each atomic over all ps, sends again what a broken connection may have lost, reads its own pushes, and leaves.
first.py is a worker that uses it. proto/sumac/v1/*.proto say what a message means, docs/protocol/PROTOCOL.md what to do when.
Left out: to join again when the session is lost (which pushes count then: "Losing a worker" there), to count bytes in flight against the
grant ("Room": beyond it a push is refused), to push a variable that has several shards on one ps, a push's own commit ("Eager"), steps,
clocks, to hear for 2 s more what the others have done when one ps was terminated, another patience for a call than ps_lost_ms.
It wants Python 3.11, Debian's python3-grpcio python3-protobuf protobuf-compiler protobuf-compiler-grpc, and stubs of proto/:

    mkdir -p stubs && export PYTHONPATH=$PWD/stubs
    protoc -I proto --python_out=stubs --grpc_out=stubs --plugin=protoc-gen-grpc=$(command -v grpc_python_plugin) proto/sumac/v1/*.proto

The channels of a client belong to the event loop that runs it. They use no proxy (PROTOCOL.md, "What to do"). A program sets
GRPC_DNS_RESOLVER=native before it imports this file, as first.py does: then names are found as the system finds them.
With pip's packages instead (grpcio, grpcio-tools), the last line is

    python3 -m grpc_tools.protoc -I proto --python_out=stubs --grpc_python_out=stubs proto/sumac/v1/*.proto
"""
import asyncio
import secrets
import sys

import grpc
from sumac.v1 import sessions_pb2 as sessions, sessions_pb2_grpc, transfer_pb2_grpc, types_pb2 as types, variables_pb2_grpc
from sumac.v1.transfer_pb2 import Commit, Hello, Part, Piece, PullRequest, PushRequest

CHUNK_BYTES, IN_FLIGHT = 1 << 20, 8     # of a part in one message; pushes at a time: less than a ps takes (Greeting.limits)
# After which errors to ask again: docs/protocol/PROTOCOL.md, "What to do". gRPC's own statuses: CANCELLED, UNKNOWN, DEADLINE_EXCEEDED,
# RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE. Reasons that end a call: PS_MISSING, VIEW_ENDED, TIMED_OUT, BUSY; that end a push stream:
# OUT_OF_MEMORY, TOO_MANY_REFUSED, TOO_MANY_IN_FLIGHT, VIEW_ENDED, TIMED_OUT, BUSY, STREAM_REPLACED.
STATUSES, OF_CALLS, OF_STREAMS = (1, 2, 4, 8, 13, 14), (32, 33, 34, 36), (19, 21, 22, 33, 34, 36, 37)


class Failure(Exception):
    """What trying again does not mend. Its arguments: a Reason (48 to 63: join again; others, and 0, gRPC's own: stop) and a sentence."""


class Client:
    def __init__(self, addresses):
        # The last push, the last with a part on each ps; parts not done by (push, ps), which of them are staged or refused; by push, why.
        self.addresses, self.last, self.last_on, self.answered, self.changed = addresses, 0, [0] * len(addresses), set(), asyncio.Event()
        self.undone, self.refused, self.room, self.session = {}, {}, asyncio.Semaphore(IN_FLIGHT), sessions.JoinReply(ps_lost_ms=60000)

    async def call(self, method=None, request=None, ps=None):
        """What a method answers, asked again while its errors pass; with a ps, its push stream, opened again for ever."""
        since, now = None, asyncio.get_running_loop().time      # since when nothing has come
        while True:
            try:
                if ps is None:
                    return await method(request)
                async for answer in self.transfer[ps].Push(self.say(ps)):
                    since = None
                    self.hear(ps, answer)
            except grpc.RpcError as error:
                reason, since = int(error.trailing_metadata().get("sumac-reason", 0)), since or now()
                passes = reason in (OF_STREAMS if ps is not None else OF_CALLS) if reason else error.code().value[0] in STATUSES
                if reason == types.REASON_RUN_ENDED and isinstance(request, sessions.LeaveRequest):
                    return None         # an earlier try had arrived: whoever leaves has left
                if not passes or asyncio.current_task().cancelling() or now() > since + self.session.ps_lost_ms / 1000:
                    raise Failure(reason, error.details()) from None
                print(f"{error.details()}: trying again", file=sys.stderr)
                # As long as it has lasted so far, 0.1 s at first and 4 s at most: what has been waited doubles from try to try.
                await asyncio.sleep(min(max(now() - since, 0.1), 4) * secrets.SystemRandom().uniform(0.5, 1))

    async def keep_lease(self):
        """Every message of the session renews its lease; a client that says nothing for long renews it so."""
        while not await asyncio.sleep(self.session.lease_ms / 3000):
            await self.call(self.sessions.Renew, sessions.RenewRequest(session_id=self.session.session_id))

    def through(self, parts):
        """Up to which push there are none of these."""
        return min(parts, default=(self.last + 1, None))[0] - 1

    async def say(self, ps):
        """What goes out on a push stream: all that is not done there, in its order, and how far the pushes are committed."""
        self.hello[ps].generation += 1
        yield PushRequest(hello=self.hello[ps])
        sent = told = 0
        while True:
            if told < (committed := self.through(self.undone.keys() - self.answered)):      # all ps have all parts up to it
                told, voided = committed, [n for n in self.refused if n <= committed]
                yield PushRequest(commit=Commit(commit_through=told, voided=voided, acked_through=self.through(self.undone)))
            elif following := [(n, part) for (n, on), part in self.undone.items() if n > sent and on == ps]:
                sent, (shard, previous, values) = following[0]
                # A part without bytes is a message, too.
                for at, data in ((at, values[at:at + CHUNK_BYTES]) for at in range(0, max(shard.bytes, 1), CHUNK_BYTES)):
                    first = {} if at else {"first": True, "previous": previous, "bytes": shard.bytes, "weight": 1}
                    piece = Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch, offset_bytes=at, bytes=len(data))
                    yield PushRequest(parts=[Part(sequence=sent, last=shard.bytes == at + len(data), pieces=[piece], **first)], payload=data)
            else:
                self.changed.clear()
                await self.changed.wait()

    def hear(self, ps, answer):
        """Any message may have any of these, the first one, too."""
        if answer.HasField("closed") or answer.rejoin or answer.greeting.ps_incarnation not in (0, self.hello[ps].ps_incarnation):
            raise Failure(types.REASON_SESSION_CLOSED, f"ps {ps} has closed the session, or has lost it with its state")
        for part in answer.done:
            self.undone.pop((part.sequence, ps), None)
        self.answered = self.undone.keys() & {*self.answered, *((part.sequence, ps) for part in [*answer.staged, *answer.refused])}
        self.refused |= {part.sequence: part for part in answer.refused}
        self.changed.set()      # whoever waits looks again

    async def push(self, variable, values):
        """Give bytes, as many as the variable has, to its function. None: all ps have applied them; a Refused: none has."""
        size, shards, on = sum(each.bytes for each in variable.shards), len(variable.shards), len({each.ps for each in variable.shards})
        if len(values) != size or shards != on:
            raise ValueError(f"{variable.name} has {size} bytes in {shards} shards on {on} ps; {len(values)} are given, for one shard a ps")
        async with self.room:
            n = self.last = self.last + 1
            for shard in variable.shards:
                self.undone[n, shard.ps] = shard, self.last_on[shard.ps], values[:shard.bytes]
                self.last_on[shard.ps], values = n, values[shard.bytes:]
            self.changed.set()
            while self.through(self.undone) < n:
                self.changed.clear()
                await self.changed.wait()
        return self.refused.pop(n, None)

    async def pull(self, variable):
        """All of its bytes, with this client's own pushes in them."""
        return b"".join([await self.call(self.pull_shard, shard) for shard in variable.shards])

    async def pull_shard(self, shard):
        piece = Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch)
        request = PullRequest(hello=self.hello[shard.ps], request=1, pieces=[piece], after_sequence=self.last_on[shard.ps])
        if (answers := [answer async for answer in self.transfer[shard.ps].Pull([request])])[-1].status:
            raise grpc.aio.AioRpcError(grpc.StatusCode.ABORTED, {}, {"sumac-reason": answers[-1].reason}, answers[-1].message)
        return b"".join(answer.payload for answer in answers)

    async def run(self, task, work):
        """Join, work(self), and leave. What ends the session ends the work, too."""
        options = {"enable_http_proxy": 0, "max_reconnect_backoff_ms": 2000, "keepalive_time_ms": 20000, "http2.max_pings_without_data": 0}
        channels = [grpc.aio.insecure_channel(address, [(f"grpc.{name}", n) for name, n in options.items()]) for address in self.addresses]
        self.sessions, self.variables = sessions_pb2_grpc.SessionsStub(channels[0]), variables_pb2_grpc.VariablesStub(channels[0])
        self.transfer = [transfer_pb2_grpc.TransferStub(channel) for channel in channels]
        # The nonce is the system's: from a generator that the program has seeded, its next attempt would draw the same one, and be given
        # this session with all its pushes as its own.
        self.session = joined = await self.call(self.sessions.Join, sessions.JoinRequest(protocol_version=2, role=sessions.ROLE_MEMBER,
            nonce=secrets.token_bytes(16), task=task, local_replicas=1, ps_addresses=self.addresses))
        self.hello = [Hello(protocol_version=2, cluster_id=joined.cluster_id, epoch=joined.epoch, session_id=joined.session_id,
                            ps_incarnation=incarnation) for incarnation in joined.ps_incarnations]
        tasks = [asyncio.create_task(one) for one in (work(self), self.keep_lease(), *(self.call(ps=ps) for ps in range(len(channels))))]
        try:
            await next(asyncio.as_completed(tasks))
            await self.call(self.sessions.Leave, sessions.LeaveRequest(session_id=joined.session_id, done=True, last_sequence=self.last))
        finally:                # what the streams say after the leave is no error
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
