/* SPDX-License-Identifier: Apache-2.0 */
/* bare_server.c -- a gRPC C core stream without protobuf: one completion queue, one thread, default
 * channel arguments.
 *
 * As `echo` it sends every message back. As `stage` it copies chunks to a staging buffer as they
 * arrive, adds the buffer to an array when the last one is there, and answers eight bytes: the
 * least that a push which is applied whole has to do. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "path.h"

enum { ACCEPTED = 1, RECEIVED, SENT, CLOSED };

struct stream {
    bool echo;
    grpc_completion_queue *queue;
    grpc_call *call;
    grpc_byte_buffer *arriving, *sending,
        *waiting; /* waiting: an answer behind the one being sent */
    bool greeted;
    float *sum;
    uint8_t *staging;
};

static void start(struct stream *stream, const grpc_op *ops, size_t count, uintptr_t tag)
{
    /* A tag is a number here: there is one stream. */
    if (grpc_call_start_batch(stream->call, ops, count, (void *)tag, NULL) != GRPC_CALL_OK)
        die("bare: gRPC refused a batch");
}

static void receive(struct stream *stream)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};

    op.data.recv_message.recv_message = &stream->arriving;
    start(stream, &op, 1, RECEIVED);
}

static void send_buffer(struct stream *stream, grpc_byte_buffer *buffer)
{
    grpc_op ops[2] = {{.op = GRPC_OP_SEND_MESSAGE}, {.op = GRPC_OP_SEND_INITIAL_METADATA}};

    ops[0].data.send_message.send_message = stream->sending = buffer;
    start(stream, ops, stream->greeted ? 1 : 2, SENT);
    stream->greeted = true;
}

/* Copy the message's bytes, from `skip` on, to `out`. */
static void copy_out(const grpc_byte_buffer *buffer, size_t skip, uint8_t *out)
{
    const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;

    for (size_t i = 0; i < slices->count; i++) {
        const size_t length = GRPC_SLICE_LENGTH(slices->slices[i]);
        const size_t from = skip < length ? skip : length;
        memcpy(out, GRPC_SLICE_START_PTR(slices->slices[i]) + from, length - from);
        out += length - from;
        skip -= from;
    }
}

static struct bare_head read_head(const grpc_byte_buffer *buffer)
{
    struct bare_head head = {0};
    uint8_t *at = (uint8_t *)&head;
    size_t wanted = sizeof head;
    const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;

    for (size_t i = 0; i < slices->count && wanted > 0; i++) {
        const size_t length = GRPC_SLICE_LENGTH(slices->slices[i]);
        const size_t step = length < wanted ? length : wanted;
        memcpy(at, GRPC_SLICE_START_PTR(slices->slices[i]), step);
        at += step;
        wanted -= step;
    }
    return head;
}

/* Returns the answer, or NULL when there is none yet. */
static grpc_byte_buffer *stage(struct stream *stream, const grpc_byte_buffer *buffer)
{
    const struct bare_head head = read_head(buffer);
    const uint64_t bytes = buffer->data.raw.slice_buffer.length - sizeof head;
    double answer = 0;

    if (head.total == 0) {
        answer = sum_floats(stream->sum, VALUES_BYTES_MAX / sizeof(float));
    } else {
        copy_out(buffer, sizeof head, stream->staging + head.offset);
        if (head.offset + bytes < head.total)
            return NULL;
        add_floats(
            stream->sum, (const float *)(const void *)stream->staging,
            (size_t)head.total / sizeof(float));
    }
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)&answer, sizeof answer);
    return grpc_raw_byte_buffer_create(&slice, 1);
}

static void take(struct stream *stream, grpc_byte_buffer *buffer)
{
    grpc_byte_buffer *answer = buffer;

    if (!stream->echo) {
        receive(stream);
        answer = stage(stream, buffer);
        grpc_byte_buffer_destroy(buffer);
        if (answer == NULL)
            return;
    }
    if (stream->sending == NULL) {
        send_buffer(stream, answer);
        if (stream->echo)
            receive(stream);
    } else if (stream->waiting == NULL) {
        /* an echo's next message is asked for when this one is under way */
        stream->waiting = answer;
    } else {
        /* Acknowledgements of small pushes: one more slice each. */
        grpc_slice_buffer *into = &stream->waiting->data.raw.slice_buffer;
        grpc_slice_buffer_move_into(&answer->data.raw.slice_buffer, into);
        grpc_byte_buffer_destroy(answer);
    }
}

static void sent(struct stream *stream)
{
    grpc_byte_buffer_destroy(stream->sending);
    stream->sending = NULL;
    if (stream->waiting == NULL)
        return;
    grpc_byte_buffer *next = stream->waiting;
    stream->waiting = NULL;
    send_buffer(stream, next);
    if (stream->echo)
        receive(stream);
}

static void serve_stream(struct stream *stream)
{
    int cancelled;
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};

    op.data.recv_close_on_server.cancelled = &cancelled;
    start(stream, &op, 1, CLOSED);
    receive(stream);
    for (;;) {
        const grpc_event event =
            grpc_completion_queue_next(stream->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.tag == (void *)CLOSED)
            return;
        if (event.tag == (void *)SENT)
            sent(stream);
        else if (stream->arriving != NULL)
            take(stream, stream->arriving);
    }
}

int bare_serve(bool echo)
{
    grpc_init();
    struct stream stream = {.echo = echo, .queue = grpc_completion_queue_create_for_next(NULL)};
    stream.sum = malloc(VALUES_BYTES_MAX);
    stream.staging = malloc(VALUES_BYTES_MAX);
    memset(stream.sum, 0, VALUES_BYTES_MAX);
    memset(stream.staging, 0, VALUES_BYTES_MAX);
    grpc_server *server = grpc_server_create(NULL, NULL);
    grpc_server_register_completion_queue(server, stream.queue, NULL);
    const int port = grpc_server_add_http2_port(
        server, "127.0.0.1:0", grpc_insecure_server_credentials_create());
    grpc_server_start(server);
    printf("%d\n", port);
    (void)fflush(stdout);
    grpc_call_details details;
    grpc_metadata_array metadata;
    grpc_call_details_init(&details);
    grpc_metadata_array_init(&metadata);
    grpc_server_request_call(
        server, &stream.call, &details, &metadata, stream.queue, stream.queue, (void *)ACCEPTED);
    grpc_completion_queue_next(stream.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    serve_stream(&stream);
    return 0;
}
