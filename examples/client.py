# SPDX-License-Identifier: Apache-2.0
"""A client in Python, made of proto/ and the stock gRPC package alone: it joins, keeps its lease, pushes several things at a time, each
atomic over all ps, sends again what a broken connection may have lost, reads its own pushes, and leaves. first.py is a worker that uses
it; proto/sumac/v1/*.proto says what a message means, docs/protocol/PROTOCOL.md what to do when. All runs on one event loop, without
locks. It wants Python 3.11, Debian's python3-grpcio python3-protobuf protobuf-compiler protobuf-compiler-grpc, and stubs of proto/:

    mkdir -p stubs && export PYTHONPATH=$PWD/stubs
    protoc -I proto --python_out=stubs --grpc_out=stubs --plugin=protoc-gen-grpc=$(command -v grpc_python_plugin) proto/sumac/v1/*.proto
"""
import asyncio
import contextlib
import os
import random
import sys
import time
from types import SimpleNamespace

try:
    import grpc
    from sumac.v1 import sessions_pb2_grpc, transfer_pb2_grpc, types_pb2, variables_pb2_grpc
    from sumac.v1.sessions_pb2 import ROLE_MEMBER, JoinRequest, LeaveRequest, RenewRequest, TaskName
    from sumac.v1.transfer_pb2 import Commit, Done, Hello, Part, Piece, PullRequest, PushRequest, Refused
except ImportError as missing:
    sys.exit(f"{missing}: install the packages, make the stubs and set PYTHONPATH, as the first lines of {__file__} say.")

CHUNK_BYTES = 1 << 20   # of a part in one message: a ps takes four times as much


class Failure(Exception):
    """Of a call or of the session: its arguments are the remedy and a sentence."""


def remedy(error, of_stream):
    """What an error of a stream or of a call asks for. The table is in PROTOCOL.md, "What to do"."""
    reason = int(error.trailing_metadata().get("sumac-reason", 0))
    if reason == 0:         # gRPC's own: of a connection, or of a message that no ps has read
        passes = error.code().name in ("UNAVAILABLE", "CANCELLED", "UNKNOWN", "INTERNAL", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")
        return "try again" if passes else "mend"
    full = (types_pb2.REASON_OUT_OF_MEMORY, types_pb2.REASON_TOO_MANY_IN_FLIGHT, types_pb2.REASON_TOO_MANY_REFUSED)
    if reason in full or 32 <= reason < 48 and not (of_stream and reason == types_pb2.REASON_PS_MISSING):
        return "try again"
    if reason < 32 or reason in (types_pb2.REASON_PROTOCOL_VERSION, types_pb2.REASON_WRONG_CLUSTER):
        return "mend"
    return "join again" if 48 <= reason < 64 else "stop"


def part_messages(sequence, previous, shard, values):
    """What one ps gets of a push. Only the first message has the whole header."""
    for at in range(0, shard.bytes, CHUNK_BYTES):
        payload = values[at:at + CHUNK_BYTES]
        part = Part(sequence=sequence, first=at == 0, last=at + len(payload) == shard.bytes)
        part.pieces.add(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch, offset_bytes=at, bytes=len(payload))
        if part.first:
            part.previous, part.bytes, part.weight = previous, shard.bytes, 1
        yield PushRequest(parts=[part], payload=payload)


class Client:
    def __init__(self, addresses):
        options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2000),
                   ("grpc.keepalive_time_ms", 20000), ("grpc.http2.max_pings_without_data", 0)]
        channels = [grpc.aio.insecure_channel(address, options) for address in addresses]
        self.sessions, self.variables = sessions_pb2_grpc.SessionsStub(channels[0]), variables_pb2_grpc.VariablesStub(channels[0])
        self.transfer = [transfer_pb2_grpc.TransferStub(channel) for channel in channels]
        self.parts_max, self.grants = [1] * len(addresses), [0] * len(addresses)    # per ps: pushes and bytes that it takes at a time
        self.last_on = [0] * len(addresses)                 # per ps: the last push that has a part there
        self.last = self.commit_through = self.acked_through = 0
        self.pushes = {}                                    # those above acked_through, by their sequence
        self.changed, self.patience_s, self.leaving = asyncio.Event(), 60, False

    def wake(self):
        self.changed.set()      # whoever waits looks again
        self.changed.clear()

    async def call(self, method, request, hear=None):
        """What a method answers, asked again while its errors pass. A stream, whose answers `hear` takes, is opened again for ever."""
        since = None            # when nothing came any more
        while True:
            try:
                if hear is None:
                    return await method(request)
                async for answer in method(request()):
                    since = None
                    hear(answer)
            except grpc.RpcError as error:
                if asyncio.current_task().cancelling():     # which gRPC does not tell from a call's own end
                    raise asyncio.CancelledError from None
                since = since or time.monotonic()
                failing_s = time.monotonic() - since
                what = remedy(error, of_stream=hear is not None)
                if what != "try again" or failing_s > self.patience_s:
                    raise Failure(what, error.details()) from None
                print(f"{error.details()}: trying again", file=sys.stderr)
                await asyncio.sleep(min(0.1 + failing_s * random.random(), 5))

    async def keep(self, keeper):
        try:
            await keeper
        except Failure:
            if not self.leaving:    # then the session and its streams end, as they should
                raise

    async def keep_lease(self):
        """Every message of the session renews its lease; a client that says nothing for long renews it so."""
        while True:
            await self.call(self.sessions.Renew, RenewRequest(session_id=self.session.session_id))
            await asyncio.sleep(self.session.lease_ms / 3000)

    async def keep_stream(self, ps):
        await self.call(self.transfer[ps].Push, lambda: self.say(ps), lambda answer: self.hear(ps, answer))

    async def say(self, ps):
        """What goes out on a push stream: all that is not done there, in its order, and how far the pushes are committed."""
        self.hello[ps].generation += 1
        yield PushRequest(hello=self.hello[ps])
        sent = told = 0
        while True:
            if told < self.commit_through:
                told = self.commit_through
                voided = [n for n, push in self.pushes.items() if push.refused and n <= told]
                yield PushRequest(commit=Commit(commit_through=told, voided=voided, acked_through=self.acked_through))
            elif following := [n for n, push in self.pushes.items() if n > sent and ps in push.undone]:
                sent = following[0]
                for message in self.pushes[sent].undone[ps]:
                    yield message
            else:
                await self.changed.wait()

    def hear(self, ps, answer):
        """Any message may have any of these, the first one, too."""
        if answer.HasField("greeting"):
            self.parts_max[ps], self.grants[ps] = answer.greeting.limits.parts_in_flight_max, answer.greeting.staging_grant_bytes
            if answer.greeting.ps_incarnation != self.hello[ps].ps_incarnation:
                raise Failure("stop", f"ps {ps} was started again, and its state is lost")
        if answer.HasField("closed") or answer.rejoin:
            raise Failure("join again", "ps 0 has closed the session")
        for part in [*answer.staged, *answer.refused, *answer.done]:
            if push := self.pushes.get(part.sequence):      # else it was heard before
                push.unanswered.discard(ps)
                if isinstance(part, Refused):
                    push.refused = part
                elif isinstance(part, Done):
                    push.undone.pop(ps, None)
        while (push := self.pushes.get(self.commit_through + 1)) and not push.unanswered:
            self.commit_through += 1
        while (push := self.pushes.get(self.acked_through + 1)) and not push.undone:
            self.acked_through += 1
            self.pushes.pop(self.acked_through).done.set()
        self.wake()

    async def push(self, variable, values):
        """Give bytes to the variable's function, as soon as there is room. When it is `done` all ps have applied it, or it is `refused`."""
        assert len(values) == sum(shard.bytes for shard in variable.shards)
        cost = sum(shard.bytes + min(shard.bytes, 1 << 20) // 8 + 1216 for shard in variable.shards)    # see Greeting
        # What one ps takes has to do for all of them together here: that is simpler, and never too much.
        while self.pushes and (len(self.pushes) >= min(self.parts_max) or
                               cost + sum(push.cost for push in self.pushes.values()) > min(self.grants)):
            await self.changed.wait()
        parts, at, self.last = {}, 0, self.last + 1
        for shard in variable.shards:       # of which a ps has one at most
            parts[shard.ps] = list(part_messages(self.last, self.last_on[shard.ps], shard, values[at:at + shard.bytes]))
            self.last_on[shard.ps], at = self.last, at + shard.bytes
        push = SimpleNamespace(undone=parts, unanswered=set(parts), refused=None, cost=cost, done=asyncio.Event())
        self.pushes[self.last] = push
        self.wake()
        return push

    async def pull(self, variable):
        """All of its bytes, with this client's own pushes in them; by way of `call`."""
        values = bytearray()
        for shard in variable.shards:
            piece = Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch)
            request = PullRequest(hello=self.hello[shard.ps], request=1, pieces=[piece], after_sequence=self.last_on[shard.ps])
            async for answer in self.transfer[shard.ps].Pull([request]):
                if answer.status:           # what else would be said at the end of a call
                    raise grpc.aio.AioRpcError(grpc.StatusCode.UNKNOWN, {}, {"sumac-reason": answer.reason}, answer.message)
                values += answer.payload
        return values


@contextlib.asynccontextmanager
async def joined(cluster, task):
    """A client that has joined, as TF_CONFIG says. The block fails with the session; at its end all is done, and the client leaves."""
    client = Client(cluster["ps"])
    client.session = session = await client.call(client.sessions.Join, JoinRequest(
        protocol_version=1, nonce=os.urandom(16), role=ROLE_MEMBER, task=TaskName(job=task["type"], index=task["index"]),
        members=[TaskName(job=job, index=index) for job in ("chief", "worker") for index in range(len(cluster.get(job, [])))],
        ps_addresses=cluster["ps"], local_replicas=1))
    client.hello = [Hello(protocol_version=1, cluster_id=session.cluster_id, epoch=session.epoch, session_id=session.session_id,
                          ps_incarnation=incarnation) for incarnation in session.ps_incarnations]
    client.patience_s = session.ps_lost_ms / 1000
    async with asyncio.TaskGroup() as tasks:
        keepers = client.keep_lease(), *map(client.keep_stream, range(len(client.transfer)))
        keepers = [tasks.create_task(client.keep(keeper)) for keeper in keepers]
        yield client
        await asyncio.gather(*(push.done.wait() for push in client.pushes.values()))
        client.leaving = True
        await client.call(client.sessions.Leave, LeaveRequest(session_id=session.session_id, done=True, last_sequence=client.last))
        for keeper in keepers:
            keeper.cancel()
