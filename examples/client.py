#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker in Python, made of proto/ and the stock gRPC package alone. It does what every client has to do: it joins, keeps its
lease, pushes several things at a time, each atomic over all ps, sends again what a broken connection may have lost, reads its own
pushes, and leaves. What a message means is in proto/sumac/v1/*.proto; what to do when, in docs/protocol/PROTOCOL.md.

    protoc -I proto --python_out=stubs --grpc_out=stubs --plugin=protoc-gen-grpc=$(command -v grpc_python_plugin) proto/sumac/v1/*.proto
    TF_CONFIG=... PYTHONPATH=stubs python3 examples/client.py 500      # adds 1 to every element of a variable 500 times
"""
import json
import os
import queue
import struct
import sys
import threading
import time

import grpc
from sumac.v1 import sessions_pb2, sessions_pb2_grpc, transfer_pb2, transfer_pb2_grpc, types_pb2, variables_pb2, variables_pb2_grpc

CHUNK_BYTES = 1 << 20       # of a message: a ps takes four times as much


class Over(Exception):
    """The session is over. Its first argument: "join again", as a new attempt of the task, or "stop"."""


def remedy(error):
    """What an error of a call or a stream asks for. The table is in PROTOCOL.md, "What to do"."""
    reason = int(dict(error.trailing_metadata() or ()).get("sumac-reason", 0))
    if reason == 0:     # gRPC's own: of a connection, or of a call that no ps has seen
        broken = ("UNAVAILABLE", "CANCELLED", "UNKNOWN", "INTERNAL", "DEADLINE_EXCEEDED")
        return "again" if error.code().name in broken else "stop"
    if reason in (types_pb2.REASON_OUT_OF_MEMORY, types_pb2.REASON_TOO_MANY_IN_FLIGHT, types_pb2.REASON_TOO_MANY_REFUSED):
        return "again"
    return "stop" if reason < 32 else "again" if reason < 48 else "join again" if reason < 64 else "stop"


class Push:
    """One push: what it has for each ps is kept until it is done on all of them."""

    def __init__(self, sequence, parts):
        self.sequence, self.parts = sequence, parts     # ps -> (previous, [(shard, offset in bytes, bytes)])
        self.unanswered, self.undone = set(parts), set(parts)
        self.refused = None                             # why, when some ps did: then none applies it

    def bytes(self, ps):
        return sum(len(data) for _, _, data in self.parts[ps][1])

    def cost(self, ps):
        """What its part takes of the session's grant there (Greeting.staging_grant_bytes)."""
        return self.bytes(ps) + min(self.bytes(ps), 1 << 20) // 8 + 1024 + 192 * len(self.parts[ps][1])

    def messages(self, ps):
        """Its part, cut into messages: only the first has the whole header."""
        previous, pieces = self.parts[ps]
        chunks = [(shard, offset + at, data[at:at + CHUNK_BYTES])
                  for shard, offset, data in pieces for at in range(0, len(data), CHUNK_BYTES)]
        for number, (shard, offset, data) in enumerate(chunks):
            part = transfer_pb2.Part(sequence=self.sequence, first=number == 0, last=number == len(chunks) - 1)
            if part.first:
                part.previous, part.bytes, part.weight = previous, self.bytes(ps), 1
            part.pieces.add(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch, offset_bytes=offset, bytes=len(data))
            yield transfer_pb2.PushRequest(parts=[part], payload=data)


class Client:
    def __init__(self, addresses, index, workers=(), patience_s=60):
        options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 1000),
                   ("grpc.max_reconnect_backoff_ms", 2000), ("grpc.use_local_subchannel_pool", 1)]
        self.channels = [grpc.insecure_channel(address, options) for address in addresses]
        self.sessions = sessions_pb2_grpc.SessionsStub(self.channels[0])
        self.catalogue = variables_pb2_grpc.VariablesStub(self.channels[0])
        self.streams = [transfer_pb2_grpc.TransferStub(channel) for channel in self.channels]
        self.patience_s, self.changed, self.end = patience_s, threading.Condition(), None
        self.pushes, self.last, self.commit_through, self.voided = {}, 0, 0, set()
        self.last_on = [0] * len(addresses)             # per ps: the last push with a part there
        self.greetings = [None] * len(addresses)        # per ps: how many bytes and parts it takes
        self.outgoing = [None] * len(addresses)         # per ps: the queue of the stream that is open
        self.joined = self.call(self.sessions.Join, sessions_pb2.JoinRequest(
            protocol_version=1, nonce=os.urandom(16), role=sessions_pb2.ROLE_MEMBER, local_replicas=1,
            task=sessions_pb2.TaskName(job="worker", index=index), ps_addresses=addresses,
            members=[sessions_pb2.TaskName(job="worker", index=worker) for worker in workers]))
        self.patience_s = self.joined.ps_lost_ms / 1000
        for target, arguments in [(self.keep_lease, ()), *((self.keep_stream, (ps,)) for ps in range(len(addresses)))]:
            threading.Thread(target=target, args=arguments, daemon=True).start()

    def call(self, method, request):
        """A call that may be made again: each of ours may, since a ps recognises it (a join by its nonce, a create by its name)."""
        give_up = time.monotonic() + self.patience_s
        while True:
            try:
                return method(request, timeout=self.patience_s, wait_for_ready=True)
            except grpc.RpcError as error:
                if remedy(error) != "again" or time.monotonic() > give_up:
                    raise
            time.sleep(0.1)

    def keep_lease(self):
        """Any message of the session renews its lease; a client that says nothing for long renews it so."""
        while not self.end:
            try:
                self.sessions.Renew(sessions_pb2.RenewRequest(session_id=self.joined.session_id), timeout=self.patience_s)
            except grpc.RpcError as error:
                if remedy(error) != "again":
                    self.over(remedy(error), error.details())
            time.sleep(self.joined.lease_ms / 3000)

    def over(self, remedy, why):
        with self.changed:
            self.end = self.end or Over(remedy, why)
            self.changed.notify_all()

    # pushing

    def hello(self, ps, generation=0):
        return transfer_pb2.Hello(protocol_version=1, cluster_id=self.joined.cluster_id, epoch=self.joined.epoch,
                                  ps_incarnation=self.joined.ps_incarnations[ps], session_id=self.joined.session_id,
                                  generation=generation)

    def keep_stream(self, ps):
        """A push stream to each ps, opened again with the next generation whenever it breaks."""
        generation, reached = 0, time.monotonic()
        while not self.end:
            generation += 1
            outgoing = queue.SimpleQueue()
            outgoing.put(transfer_pb2.PushRequest(hello=self.hello(ps, generation)))
            try:
                for answer in self.streams[ps].Push(iter(outgoing.get, None)):
                    reached = time.monotonic()
                    self.take(ps, answer, outgoing)
            except grpc.RpcError as error:
                lost = time.monotonic() > reached + self.patience_s
                if remedy(error) != "again" or lost:
                    self.over(remedy(error) if not lost else "stop", f"ps {ps}: {error.details()}")
            with self.changed:
                self.outgoing[ps] = None
            outgoing.put(None)      # gRPC's own thread waits there
            time.sleep(0.1)

    def take(self, ps, answer, outgoing):
        """Any message may have all kinds of answers: the first one, too, which has the greeting."""
        with self.changed:
            if answer.HasField("greeting"):
                if answer.greeting.ps_incarnation != self.joined.ps_incarnations[ps]:
                    self.over("stop", f"ps {ps} was restarted, and its state is lost")
                self.greetings[ps], self.outgoing[ps] = answer.greeting, outgoing
                for push in self.pushes.values():       # in their order; what is there already changes nothing
                    if ps in push.undone:
                        self.send(ps, push)
                self.send_commit(ps)
            for staged in answer.staged:
                self.heard(ps, staged.sequence)
            for refused in answer.refused:
                self.heard(ps, refused.sequence, refused.message)
            for done in answer.done:
                self.heard(ps, done.sequence, "refused" if done.voided else None, done=True)
            if answer.HasField("closed") or answer.rejoin:
                self.over("join again", f"the session was closed at push {answer.closed.final}")
            self.advance()
            self.changed.notify_all()

    def heard(self, ps, sequence, refused=None, done=False):
        push = self.pushes.get(sequence)
        if push is None:
            return                                      # heard before
        push.unanswered.discard(ps)
        push.refused = push.refused or refused
        if push.refused:
            self.voided.add(sequence)
        if done:
            push.undone.discard(ps)
            if not push.undone:
                del self.pushes[sequence]

    def acked_through(self):
        return min(self.pushes, default=self.last + 1) - 1

    def advance(self):
        """What every ps has staged, or some have refused, is committed, in order. Each ps concerned is told."""
        concerned = set()
        while self.commit_through < self.last:
            push = self.pushes.get(self.commit_through + 1)
            if push is not None and push.unanswered:
                break
            self.commit_through += 1
            concerned |= push.undone if push else set()
        self.voided = {sequence for sequence in self.voided if sequence > self.acked_through()}
        for ps in concerned:
            self.send_commit(ps)

    def send(self, ps, push):
        for message in push.messages(ps):
            if self.outgoing[ps]:
                self.outgoing[ps].put(message)

    def send_commit(self, ps):
        if self.outgoing[ps]:
            voided = sorted(sequence for sequence in self.voided if sequence <= self.commit_through)
            self.outgoing[ps].put(transfer_pb2.PushRequest(commit=transfer_pb2.Commit(
                commit_through=self.commit_through, voided=voided, acked_through=self.acked_through())))

    def has_room(self, push):
        for ps in push.parts:
            others = [other for other in self.pushes.values() if ps in other.undone]
            greeting = self.greetings[ps]
            if greeting is None or len(others) >= greeting.limits.parts_in_flight_max:
                return False
            if others and sum(other.cost(ps) for other in others) + push.cost(ps) > greeting.staging_grant_bytes:
                return False
        return True

    def push(self, variable, values):
        """Give bytes to the variable's function, for all of it. Returns the push, which is under way; waits while too much is."""
        with self.changed:
            parts, at = {}, 0
            for shard in variable.shards:
                parts.setdefault(shard.ps, (self.last_on[shard.ps], []))[1].append((shard, 0, values[at:at + shard.bytes]))
                at += shard.bytes
            push = Push(self.last + 1, parts)
            self.wait_for(lambda: self.has_room(push))
            self.last = push.sequence
            self.pushes[push.sequence] = push
            for ps in parts:
                self.last_on[ps] = push.sequence
                self.send(ps, push)
            return push

    def wait_for(self, condition):
        with self.changed:
            self.changed.wait_for(lambda: self.end or condition())
            if self.end:
                raise self.end

    def wait(self, push):
        """Until it is done on every ps."""
        self.wait_for(lambda: not push.undone)
        if push.refused:
            raise ValueError(push.refused)

    # the rest

    def create(self, name, shape, data_type, function):
        return self.call(self.catalogue.Create, variables_pb2.CreateRequest(
            session_id=self.joined.session_id, variable=types_pb2.Variable(
                name=name, data_type=data_type, shape=shape, function=types_pb2.Function(function=function),
                partitioner=types_pb2.Partitioner(kind=types_pb2.Partitioner.KIND_FIXED_SHARDS, num_shards=len(self.channels))))).variable

    def pull(self, variable):
        """All of its bytes, with this client's own pushes in them."""
        return b"".join(self.call(self.pull_shard, shard) for shard in variable.shards)

    def pull_shard(self, shard, timeout, wait_for_ready):
        piece = transfer_pb2.Piece(shard_id=shard.shard_id, layout_epoch=shard.layout_epoch)
        request = transfer_pb2.PullRequest(hello=self.hello(shard.ps), request=1, pieces=[piece], after_sequence=self.last_on[shard.ps])
        payload = b""
        for answer in self.streams[shard.ps].Pull(iter([request]), timeout=timeout, wait_for_ready=wait_for_ready):
            payload += answer.payload
            if answer.status:
                raise RuntimeError(answer.message)
        return payload

    def leave(self):
        """Only when every push is done: what is not committed is dropped, and the session would not count as done."""
        self.wait_for(lambda: not self.pushes)
        self.end = Over("stop", "the client has left")
        final = self.call(self.sessions.Leave, sessions_pb2.LeaveRequest(
            session_id=self.joined.session_id, done=True, last_sequence=self.last)).final
        for channel in self.channels:
            channel.close()
        return final


def main():
    config = json.loads(os.environ["TF_CONFIG"])
    client = Client(config["cluster"]["ps"], config["task"]["index"], range(len(config["cluster"]["worker"])))
    variable = client.create("w", [1024, 2048], types_pb2.DATA_TYPE_INT64, types_pb2.UPDATE_FUNCTION_ASSIGN_ADD)
    ones = struct.pack("<q", 1) * (1024 * 2048)
    for push in [client.push(variable, ones) for _ in range(int(sys.argv[1]))]:     # several at a time
        client.wait(push)
    values = set(struct.unpack(f"<{1024 * 2048}q", client.pull(variable)))
    print("w is", *sorted(values), flush=True)
    print("left at push", client.leave(), flush=True)


if __name__ == "__main__":
    main()
