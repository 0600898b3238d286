/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_bounds.c -- what a server takes at most, and that nobody is shut out by others' calls. */
#include "unit/rpc_fixture.h"

#include "call.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define CALLS_MAX 3u
#define MESSAGE_BYTES_MAX 1024u
#define ENDING_US 5000000u
#define KEEPALIVE_ANSWER_MS 20000

static int set_up_small(void **state)
{
    const struct rpc_server_options options = {
        .bind_host = "127.0.0.1", .calls_max = CALLS_MAX, .message_bytes_max = MESSAGE_BYTES_MAX};

    return set_up_with(state, &options);
}

static int set_up_for_two_of_a_method(void **state)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1", .calls_max = 64};

    return set_up_with(state, &options);
}

FIXTURE_TEST(
    a_server_has_so_many_calls_open_at_a_time, struct fixture *fixture, set_up_small, tear_down)
{
    struct rpc_call *calls[CALLS_MAX];

    for (unsigned i = 0; i < CALLS_MAX; i++)
        calls[i] = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    poll_until(fixture, &fixture->at_server.opened, CALLS_MAX);

    begin_stream(fixture, WIRE_TRANSFER_PUSH);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(fixture->client.error.text, "try later"));

    rpc_call_cancel(calls[0]); /* its place is another's */
    poll_until(fixture, &fixture->at_server.closed, 1);
    begin_stream(fixture, WIRE_TRANSFER_PUSH);
    poll_until(fixture, &fixture->at_server.opened, CALLS_MAX + 1);
}

static void send_push(struct rpc_call *call, size_t bytes)
{
    static const uint8_t values[2 * MESSAGE_BYTES_MAX];
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const struct rpc_payload payload = {.bytes = {values, bytes}};

    rpc_call_send(call, &request.base, &payload, 1);
}

FIXTURE_TEST(
    a_server_takes_messages_of_so_many_bytes, struct fixture *fixture, set_up_small, tear_down)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);

    send_push(call, MESSAGE_BYTES_MAX / 2);
    poll_until(fixture, &fixture->client.messages, 1);
    poll_until(fixture, &fixture->client.writable, 1);

    send_push(call, MESSAGE_BYTES_MAX + 1);

    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(fixture->at_server.messages, 1);
}

/* gRPC asks a server that says nothing whether it lives (keepalive), and has the kernel end a
 * connection on which not even bytes are acknowledged: the time for that is on the socket. */
/* Whom a socket is connected to; 0: nobody, or the descriptor is no socket. gRPC's own sockets are
 * of IPv6 where the machine has that. */
static uint16_t peer_port(int descriptor)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } peer = {0};
    socklen_t bytes = sizeof peer;
    if (getpeername(descriptor, &peer.any, &bytes) != 0)
        return 0;
    if (peer.any.sa_family == AF_INET)
        return ntohs(peer.v4.sin_port);
    return peer.any.sa_family == AF_INET6 ? ntohs(peer.v6.sin6_port) : 0;
}

RPC_TEST(a_client_gives_up_a_connection_that_passes_nothing_any_more)
{
    const uint32_t port = rpc_server_port(fixture->server);
    unsigned connections = 0;

    begin_stats(fixture, 0);
    poll_until(fixture, &fixture->client.messages, 1);

    for (int descriptor = 3; descriptor < 1024; descriptor++) {
        int patience_ms = 0;
        socklen_t bytes = sizeof patience_ms;
        if (peer_port(descriptor) != port)
            continue;
        assert_int_equal(
            getsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, &bytes), 0);
        assert_int_equal(patience_ms, KEEPALIVE_ANSWER_MS);
        connections++;
    }
    assert_int_equal(connections, 1);
}

static void check_health(struct fixture *fixture)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    struct rpc_call *call;

    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = &grpc__health__v1__health__descriptor,
                .message = &request.base,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);
}

RPC_TEST(a_method_takes_messages_of_so_many_bytes)
{
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    wire_piece piece = WIRE_PIECE_INIT, *pieces[PULL_BYTES_MAX];
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PULL);

    poll_until(fixture, &fixture->client.opened, 1);
    for (unsigned i = 0; i < PULL_BYTES_MAX; i++)
        pieces[i] = &piece;
    request.pieces = pieces;
    request.n_pieces = PULL_BYTES_MAX / 2; /* of two bytes each */
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->client.messages, 1);
    poll_until(fixture, &fixture->client.writable, 1);

    request.n_pieces++;
    rpc_call_send(call, &request.base, NULL, 0);

    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_MESSAGE_TOO_LARGE);
    assert_string_equal(
        fixture->client.error.text, "a PullRequest of 2002 bytes: Pull takes at most 2000");
    assert_int_equal(fixture->at_server.messages, 1);
}

/* Fields of three bytes that the method does not know take twenty times that when unpacked. */
RPC_TEST(a_request_takes_so_much_memory_to_unpack)
{
    enum { fields = 80000 };
    static uint8_t nothing;
    static ProtobufCMessageUnknownField unknown[fields];
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;

    for (size_t i = 0; i < fields; i++)
        unknown[i] = (ProtobufCMessageUnknownField){
            .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = &nothing};
    request.base.unknown_fields = unknown;
    request.base.n_unknown_fields = fields;

    (void)begin_stats_on(
        fixture->channel,
        (struct rpc_start){.message = &request.base, .handler = &client_handler, .user = fixture});

    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_MESSAGE_TOO_LARGE);
    assert_non_null(strstr(fixture->client.error.text, "takes more than 4194304 bytes of memory"));
    assert_int_equal(fixture->at_server.messages, 0);
    assert_null(fixture->poller->arena.first); /* the poller frees the memory afterwards */
}

RPC_TEST(health_takes_the_name_of_a_service_and_no_more)
{
    static char name[10001];

    memset(name, 'x', sizeof name - 1);
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    request.service = name;
    struct rpc_call *call;

    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = &grpc__health__v1__health__descriptor,
                .message = &request.base,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);

    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_string_equal(
        fixture->client.error.text,
        "a HealthCheckRequest of 10003 bytes: Check takes at most 8192");
}

RPC_TEST(calls_that_wait_shut_out_their_own_kind_alone)
{
    fixture->parks = true;
    for (unsigned i = 0; i < STATS_CALLS_MAX; i++)
        begin_stats(fixture, 0);
    poll_until(fixture, &fixture->at_server.messages, STATS_CALLS_MAX);

    begin_stats(fixture, 0); /* when */
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED); /* then */
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_BUSY);
    assert_string_equal(
        fixture->client.error.text,
        "4 calls of Stats are open, the most that are served at a time: try again later");
    assert_int_equal(fixture->at_server.messages, STATS_CALLS_MAX);

    check_health(fixture);
    poll_until(fixture, &fixture->client.closed, 2);
    assert_int_equal(fixture->client.error.status, SUMAC_OK);
    begin_stream(fixture, WIRE_TRANSFER_PUSH);
    poll_until(fixture, &fixture->at_server.opened, 1);
}

/* So that calls of all methods together never take the places of streams. */
FIXTURE_TEST(
    a_method_has_a_part_of_all_calls, struct fixture *fixture, set_up_for_two_of_a_method,
    tear_down)
{
    fixture->parks = true;
    begin_stats(fixture, 0);
    begin_stats(fixture, 0);
    poll_until(fixture, &fixture->at_server.messages, 2);

    begin_stats(fixture, 0);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_string_equal(
        fixture->client.error.text,
        "2 calls of Stats are open, the most that are served at a time: try again later");
}

RPC_TEST(a_place_is_free_again_when_its_call_is_over)
{
    for (unsigned i = 1; i <= 3 * STATS_CALLS_MAX; i++) {
        begin_stats(fixture, 0);
        poll_until(fixture, &fixture->at_server.closed, i);
        poll_until(fixture, &fixture->client.closed, i);
        assert_int_equal(fixture->client.error.status, SUMAC_OK);
    }
}

/* 32 MB do not fit into any window of a stream that is not read. */
RPC_TEST(a_last_word_that_nobody_takes_is_not_kept_for_ever)
{
    const size_t bytes = 32u << 20;
    uint8_t *values = calloc(1, bytes);
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PULL);

    poll_until(fixture, &fixture->at_server.opened, 1);
    rpc_call_pause(call);
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    rpc_call_send(fixture->parked, &answer.base, NULL, 0); /* this one the client keeps */
    const uint64_t end = now_us() + PATIENCE_US;
    while (!rpc_call_writable(fixture->parked) && now_us() < end)
        rpc_poll(fixture->poller, end);
    const struct rpc_payload payload = {
        .bytes = {values, bytes}, .released = release, .context = fixture};
    rpc_call_send(fixture->parked, &answer.base, &payload, 1);
    rpc_call_finish(fixture->parked, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED, "enough");

    rpc_server_tick(fixture->server, 1000); /* when */
    rpc_server_tick(fixture->server, ENDING_US);
    check_health(fixture);
    poll_until(fixture, &fixture->client.messages, 1);
    assert_int_equal(fixture->at_server.closed, 0);
    rpc_server_tick(fixture->server, 1000 + ENDING_US);

    poll_until(fixture, &fixture->at_server.closed, 1); /* then */
    rpc_call_cancel(call);
    poll_until(fixture, &fixture->released, 1);
    free(values);
}
