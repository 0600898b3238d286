/* SPDX-License-Identifier: Apache-2.0 */
/* bare_client.c -- the other end of the bare gRPC stream: one channel with default arguments, one
 * call, one thread. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/slice_buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "path.h"

enum { OPENED = 1, SENT, RECEIVED, ENDED };
#define ANSWER_BYTES sizeof(double)

struct stream {
    grpc_channel *channel;
    grpc_completion_queue *queue;
    grpc_call *call;
    grpc_byte_buffer *outgoing, *arriving;
    grpc_metadata_array initial, trailing;
    grpc_status_code status;
    grpc_slice details;
    double answer; /* the last one's value */
    /* of the work under way: */
    const struct work *work;
    unsigned asked;    /* operations all of whose chunks are sent or being sent */
    uint64_t asked_at; /* of the operation being sent: bytes so far */
    bool sending;
    uint64_t heard_bytes;
};

static void start(struct stream *stream, const grpc_op *ops, size_t count, uintptr_t tag)
{
    if (grpc_call_start_batch(stream->call, ops, count, (void *)tag, NULL) != GRPC_CALL_OK)
        die("bare: gRPC refused a batch");
}

static uintptr_t wait_for_event(struct stream *stream)
{
    const grpc_event event =
        grpc_completion_queue_next(stream->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

    if (event.tag == (void *)ENDED)
        die("bare: the server ended the stream");
    return (uintptr_t)event.tag;
}

static void receive(struct stream *stream)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};

    op.data.recv_message.recv_message = &stream->arriving;
    start(stream, &op, 1, RECEIVED);
}

static void *open_bare(const struct path *path)
{
    char target[32];

    (void)snprintf(target, sizeof target, "127.0.0.1:%u", path->ports[0]);
    grpc_init();
    struct stream *stream = calloc(1, sizeof *stream);
    /* A connection of its own: equal channels would share one. */
    grpc_arg own = {
        .type = GRPC_ARG_INTEGER,
        .key = (char *)(uintptr_t)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
        .value.integer = 1};
    const grpc_channel_args args = {.num_args = 1, .args = &own};
    stream->queue = grpc_completion_queue_create_for_next(NULL);
    stream->channel = grpc_channel_create(target, grpc_insecure_credentials_create(), &args);
    stream->outgoing = grpc_raw_byte_buffer_create(NULL, 0);
    stream->call = grpc_channel_create_call(
        stream->channel, NULL, GRPC_PROPAGATE_DEFAULTS, stream->queue,
        grpc_slice_from_static_string(BARE_METHOD), NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC),
        NULL);
    grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
    status.data.recv_status_on_client.trailing_metadata = &stream->trailing;
    status.data.recv_status_on_client.status = &stream->status;
    status.data.recv_status_on_client.status_details = &stream->details;
    start(stream, &status, 1, ENDED);
    grpc_op open = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    start(stream, &open, 1, OPENED);
    grpc_op ops[2] = {{.op = GRPC_OP_RECV_INITIAL_METADATA}, {.op = GRPC_OP_RECV_MESSAGE}};
    ops[0].data.recv_initial_metadata.recv_initial_metadata = &stream->initial;
    ops[1].data.recv_message.recv_message = &stream->arriving;
    start(stream, ops, 2, RECEIVED);
    while (wait_for_event(stream) != OPENED)
        ;
    return stream;
}

/* The caller's values outlive every slice of them. */
static void keep(void *data) { (void)data; }

static void send_chunk(struct stream *stream, const struct bare_head *head, size_t bytes)
{
    grpc_slice_buffer *slices = &stream->outgoing->data.raw.slice_buffer;

    grpc_slice_buffer_reset_and_unref(slices);
    const uint8_t *data = (const uint8_t *)stream->work->values + head->offset;
    grpc_slice first = grpc_slice_malloc(sizeof *head + (bytes <= 8192 ? bytes : 0));
    memcpy(GRPC_SLICE_START_PTR(first), head, sizeof *head);
    if (bytes <= 8192)
        memcpy(GRPC_SLICE_START_PTR(first) + sizeof *head, data, bytes);
    grpc_slice_buffer_add(slices, first);
    if (bytes > 8192)
        grpc_slice_buffer_add(
            slices, grpc_slice_new_with_user_data((void *)(uintptr_t)data, bytes, keep, NULL));
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
    op.data.send_message.send_message = stream->outgoing;
    start(stream, &op, 1, SENT);
    stream->sending = true;
}

/* Send the next chunk that the window allows, if none is under way. */
static void pump(struct stream *stream, unsigned heard)
{
    const struct work *work = stream->work;

    if (stream->sending || stream->asked == work->count)
        return;
    if (stream->asked_at == 0) {
        if (stream->asked - heard >= work->window)
            return;
        work->latency_ns[stream->asked] = now_ns();
    }
    const uint64_t left = work->bytes - stream->asked_at;
    const size_t bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    const struct bare_head head = {.total = work->bytes, .offset = stream->asked_at};
    send_chunk(stream, &head, bytes);
    stream->asked_at += bytes;
    if (stream->asked_at == work->bytes) {
        stream->asked_at = 0;
        stream->asked++;
    }
}

/* Count a message's bytes; an echo's are read into `into`, as a puller would. */
static void hear(struct stream *stream)
{
    grpc_byte_buffer *buffer = stream->arriving;
    const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
    const struct work *work = stream->work;

    if (work->op == OP_ROUND_TRIP) {
        size_t skip = sizeof(struct bare_head);
        uint8_t *out = (uint8_t *)work->into + stream->heard_bytes % work->bytes;
        for (size_t i = 0; i < slices->count; i++) {
            const size_t length = GRPC_SLICE_LENGTH(slices->slices[i]);
            const size_t from = skip < length ? skip : length;
            memcpy(out, GRPC_SLICE_START_PTR(slices->slices[i]) + from, length - from);
            out += length - from;
            skip -= from;
        }
        stream->heard_bytes += slices->length - sizeof(struct bare_head);
    } else {
        memcpy(&stream->answer, GRPC_SLICE_START_PTR(slices->slices[0]), ANSWER_BYTES);
        stream->heard_bytes += slices->length; /* several answers may share a message */
    }
    stream->arriving = NULL;
    receive(stream);
    grpc_byte_buffer_destroy(buffer);
}

static void run(void *state, const struct work *work)
{
    struct stream *stream = state;
    const uint64_t answer_bytes = work->op == OP_ROUND_TRIP ? work->bytes : ANSWER_BYTES;

    stream->work = work;
    stream->asked = 0;
    stream->heard_bytes = 0;
    unsigned heard = 0;
    pump(stream, 0);
    while (heard < work->count || stream->sending) {
        if (wait_for_event(stream) == SENT)
            stream->sending = false;
        else
            hear(stream);
        for (; heard < stream->heard_bytes / answer_bytes; heard++)
            work->latency_ns[heard] = now_ns() - work->latency_ns[heard];
        pump(stream, heard);
    }
}

static bool does_echo(const struct work *work) { return work->op == OP_ROUND_TRIP; }

static bool does_push(const struct work *work) { return work->op == OP_PUSH; }

/* A chunk with a total of 0 asks for the sum. */
static double sum(void *state)
{
    struct stream *stream = state;
    uint64_t latency;
    const float nothing = 0;
    const struct work work = {
        .op = OP_PUSH, .count = 1, .window = 1, .values = &nothing, .latency_ns = &latency};

    run(stream, &work);
    return stream->answer;
}

static void close_bare(void *state)
{
    struct stream *stream = state;

    grpc_call_cancel(stream->call, NULL);
    for (unsigned left = 2; left > 0; left--) /* the status, and the message that was asked for */
        grpc_completion_queue_next(stream->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_call_unref(stream->call);
    grpc_byte_buffer_destroy(stream->outgoing);
    grpc_channel_destroy(stream->channel);
    grpc_completion_queue_shutdown(stream->queue);
    while (
        grpc_completion_queue_next(stream->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
        GRPC_QUEUE_SHUTDOWN)
        ;
    grpc_completion_queue_destroy(stream->queue);
    free(stream);
    grpc_shutdown();
}

struct path bare_echo_path = {
    .name = "bare stream, echo",
    .does = does_echo,
    .open = open_bare,
    .run = run,
    .close = close_bare,
    .serve = "--serve-echo",
    .server_count = 1};

struct path bare_stage_path = {
    .name = "bare stream, stage and add",
    .does = does_push,
    .open = open_bare,
    .run = run,
    .sum = sum,
    .close = close_bare,
    .serve = "--serve-stage",
    .server_count = 1};
