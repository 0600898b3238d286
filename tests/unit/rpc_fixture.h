/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_fixture.h -- a real server and a real client in one thread, on a port that the system picks.
 *
 * For the tests of lib/rpc. The server counts and echoes what it gets; `parks` makes it leave a
 * unary call unanswered, and a stream of pushes paused. */
#pragma once

#include "unit.h"

#include <time.h>

#include "grpc/health/v1/health.pb-c.h"
#include "rpc.h"
#include "unit/rpc_stats.h"

#define PATIENCE_US 120000000u /* of a test that waits for what must come */
#define ECHO_BYTES (1u << 20)
#define STATS_CALLS_MAX 4u
#define PULL_BYTES_MAX 2000u

/* What one side has seen of its calls. */
struct seen {
    unsigned opened, messages, writable, half_closed, closed;
    struct sumac_error error; /* of the last closed */
    uint64_t payload_bytes;
    uint8_t payload[ECHO_BYTES];
    uint64_t sequence;
    unsigned pieces;
};

struct fixture {
    struct rpc_poller *poller;
    struct rpc_server *server;
    struct rpc_channel *channel;
    struct seen client, at_server;
    struct rpc_call *parked; /* a call that its handler left unanswered */
    bool parks;
    unsigned released;
};

static inline uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* Poll until *count reaches `wanted`; the test fails when patience ends. */
static inline void poll_until(struct fixture *fixture, const unsigned *count, unsigned wanted)
{
    const uint64_t end = now_us() + PATIENCE_US;

    while (*count < wanted && now_us() < end)
        rpc_poll(fixture->poller, end);
    assert_true(*count >= wanted);
}

static inline void keep(struct seen *seen, const struct wire_received *received)
{
    seen->messages++;
    seen->payload_bytes = received->payload_bytes;
    uint64_t at = 0;
    for (size_t i = 0; i < received->payload_spans; i++) {
        const struct span span = received->payload[i];
        if (at + span.bytes <= sizeof seen->payload)
            memcpy(seen->payload + at, span.data, span.bytes);
        at += span.bytes;
    }
    assert_int_equal(at, received->payload_bytes);
}

static inline void note_closed(struct seen *seen, const struct sumac_error *error)
{
    seen->closed++;
    seen->error = *error;
}

/* ---- the server's side */

static inline void serve_stats(struct rpc_call *call, const struct wire_received *received)
{
    struct fixture *fixture = rpc_call_user(call);
    (void)received;

    fixture->at_server.messages++;
    if (fixture->parks) {
        fixture->parked = call;
        return;
    }
    wire_stats_reply reply = WIRE_STATS_REPLY_INIT;
    reply.ps = 7;
    rpc_call_send(call, &reply.base, NULL, 0);
}

/* A stream of pulls: each request is answered with its own number and 256 KiB or less of payload,
 * by reference. */
static inline void release(void *context, uint64_t id)
{
    struct fixture *fixture = context;
    (void)id;

    __atomic_add_fetch(&fixture->released, 1, __ATOMIC_SEQ_CST);
}

static inline void serve_pull(struct rpc_call *call, const struct wire_received *received)
{
    static uint8_t values[ECHO_BYTES];
    struct fixture *fixture = rpc_call_user(call);
    const wire_pull_request *request = (const wire_pull_request *)(const void *)received->message;

    fixture->at_server.messages++;
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    answer.request = request->request;
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i % 251);
    struct rpc_payload payload[2] = {
        {.bytes = {values, 100}},
        {.bytes = {values + 100, 200000}, .released = release, .context = fixture}};
    rpc_call_send(call, &answer.base, payload, 2);
}

static inline void serve_push(struct rpc_call *call, const struct wire_received *received)
{
    struct fixture *fixture = rpc_call_user(call);
    const wire_push_request *request = (const wire_push_request *)(const void *)received->message;

    keep(&fixture->at_server, received);
    fixture->at_server.pieces = request->n_parts > 0 ? (unsigned)request->parts[0]->n_pieces : 0;
    if (fixture->parks)
        rpc_call_pause(call);
    if (fixture->parks || !rpc_call_writable(call))
        return;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.durable_through = received->payload_bytes;
    rpc_call_send(call, &answer.base, NULL, 0);
}

static inline void server_opened(struct rpc_call *call)
{
    struct fixture *fixture = rpc_call_user(call);

    fixture->at_server.opened++;
    fixture->parked = call;
}

static inline void server_writable(struct rpc_call *call)
{
    struct fixture *fixture = rpc_call_user(call);

    fixture->at_server.writable++;
}

static inline void server_half_closed(struct rpc_call *call)
{
    struct fixture *fixture = rpc_call_user(call);

    fixture->at_server.half_closed++;
    rpc_call_finish(call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED, "the run is over");
}

static inline void server_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct fixture *fixture = rpc_call_user(call);

    note_closed(&fixture->at_server, error);
}

static const struct rpc_handler observe_handlers[] = {
    {.message = serve_stats, .closed = server_closed, .calls_max = STATS_CALLS_MAX}};
static const struct rpc_handler transfer_handlers[] = {
    {.message = serve_push,
     .opened = server_opened,
     .writable = server_writable,
     .half_closed = server_half_closed,
     .closed = server_closed},
    {.message = serve_pull,
     .opened = server_opened,
     .writable = server_writable,
     .half_closed = server_half_closed,
     .closed = server_closed,
     .message_bytes_max = PULL_BYTES_MAX}};

/* ---- the client's side */

static inline void client_message(struct rpc_call *call, const struct wire_received *received)
{
    struct fixture *fixture = rpc_call_user(call);

    keep(&fixture->client, received);
    const wire_type *type = received->message->descriptor;
    if (type == &sumac__v1__stats_reply__descriptor)
        fixture->client.sequence = ((const wire_stats_reply *)(const void *)received->message)->ps;
    if (type == &sumac__v1__pull_answer__descriptor)
        fixture->client.sequence =
            ((const wire_pull_answer *)(const void *)received->message)->request;
    if (type == &sumac__v1__push_answer__descriptor)
        fixture->client.sequence =
            ((const wire_push_answer *)(const void *)received->message)->durable_through;
    if (type == &grpc__health__v1__health_check_response__descriptor)
        fixture->client.sequence =
            (uint64_t)((const Grpc__Health__V1__HealthCheckResponse *)(const void *)
                           received->message)
                ->status;
}

static inline void client_opened(struct rpc_call *call)
{
    struct fixture *fixture = rpc_call_user(call);

    fixture->client.opened++;
}

static inline void client_writable(struct rpc_call *call)
{
    struct fixture *fixture = rpc_call_user(call);

    fixture->client.writable++;
}

static inline void client_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct fixture *fixture = rpc_call_user(call);

    note_closed(&fixture->client, error);
}

static const struct rpc_handler client_handler = {
    .message = client_message,
    .opened = client_opened,
    .writable = client_writable,
    .closed = client_closed};

/* ---- given */

static inline int set_up_with(void **state, const struct rpc_server_options *options)
{
    struct fixture *const made = calloc(1, sizeof *made);
    struct sumac_error error;

    assert_non_null(made);
    rpc_init();
    assert_int_equal(rpc_poller_create(&made->poller), SUMAC_OK);
    assert_int_equal(rpc_server_open(made->poller, options, &made->server, &error), SUMAC_OK);
    assert_int_equal(
        rpc_server_add(made->server, WIRE_OBSERVE, observe_handlers, made, &error), SUMAC_OK);
    assert_int_equal(
        rpc_server_add(made->server, WIRE_TRANSFER, transfer_handlers, made, &error), SUMAC_OK);
    assert_int_equal(rpc_server_start(made->server, &error), SUMAC_OK);
    char target[64];
    snprintf(target, sizeof target, "127.0.0.1:%u", rpc_server_port(made->server));
    assert_int_equal(rpc_channel_open(made->poller, target, &made->channel), SUMAC_OK);
    *state = made;
    return 0;
}

static inline int set_up(void **state)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};

    return set_up_with(state, &options);
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;

    rpc_channel_close(fixture->channel);
    rpc_server_close(fixture->server);
    rpc_poller_destroy(fixture->poller);
    rpc_deinit();
    free(fixture);
    return 0;
}

/* A test with a server and a client. */
#define RPC_TEST(name) FIXTURE_TEST(name, struct fixture *fixture, set_up, tear_down)

static inline struct rpc_call *begin_stats(struct fixture *fixture, uint64_t deadline_us)
{
    return begin_stats_on(
        fixture->channel, (struct rpc_start){
                              .deadline_us = deadline_us,
                              .wait_for_ready = true,
                              .handler = &client_handler,
                              .user = fixture});
}

static inline struct rpc_call *begin_stream(struct fixture *fixture, unsigned method)
{
    struct rpc_call *call;
    const unsigned opened = fixture->client.opened;

    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = WIRE_TRANSFER,
                .method = method,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);
    poll_until(fixture, &fixture->client.opened, opened + 1);
    return call;
}
