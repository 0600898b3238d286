/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
/* What is no gRPC, or no good gRPC, on a server's port, over bare sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/rpc_fixture.h"

static int dial(const struct fixture *fixture)
{
    const int bare = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)rpc_server_port(fixture->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_true(bare >= 0);
    connect(bare, (struct sockaddr *)&address, sizeof address);
    struct pollfd ready = {.fd = bare, .events = POLLOUT};
    assert_int_equal(poll(&ready, 1, PATIENCE_US / 1000), 1);
    return bare;
}

static void write_all(int bare, const void *data, size_t bytes)
{
    assert_int_equal(send(bare, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

/* Poll the server until the socket is closed by it, or what it sent contains `wanted`; returns
 * whether it does. */
static bool read_until(struct fixture *fixture, int bare, const char *wanted)
{
    char heard[16384];
    size_t count = 0;
    const uint64_t end = now_us() + PATIENCE_US;

    while (now_us() < end && count < sizeof heard) {
        rpc_poll(fixture->poller, now_us() + 1000);
        const ssize_t got = recv(bare, heard + count, sizeof heard - count, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return wanted != NULL && memmem(heard, count, wanted, strlen(wanted)) != NULL;
        if (got > 0)
            count += (size_t)got;
        if (wanted != NULL && memmem(heard, count, wanted, strlen(wanted)) != NULL)
            return true;
    }
    fail_msg("the server neither answered nor closed the connection");
    return false;
}

#define RESETS_AT_ONCE 4096u
#define CONNECTIONS_MAX 8u
#define CONNECTIONS_LOCAL 7u /* of one host that is this one */

static int set_up_few(void **state)
{
    const struct rpc_server_options options = {
        .bind_host = "127.0.0.1", .connections_max = CONNECTIONS_MAX};

    return set_up_with(state, &options);
}

/* gRPC greets whoever is connected. */
static bool is_let_in(struct fixture *fixture, int bare)
{
    struct pollfd heard = {.fd = bare, .events = POLLIN};
    const uint64_t end = now_us() + PATIENCE_US;
    char byte;

    while (now_us() < end && poll(&heard, 1, 0) == 0)
        rpc_poll(fixture->poller, now_us() + 1000);
    return recv(bare, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

FIXTURE_TEST(
    one_connection_too_many_is_closed_and_gets_in_when_another_has_ended, struct fixture *fixture,
    set_up_few, tear_down)
{
    int bare[CONNECTIONS_LOCAL];

    for (unsigned i = 0; i < CONNECTIONS_LOCAL; i++) {
        bare[i] = dial(fixture);
        assert_true(is_let_in(fixture, bare[i]));
    }
    const int refused = dial(fixture);
    assert_false(is_let_in(fixture, refused));
    close(refused);
    assert_int_equal(rpc_server_connections(fixture->server).open, CONNECTIONS_LOCAL);
    assert_int_equal(rpc_server_connections(fixture->server).refused, 1);

    close(bare[0]);
    bool let_in = false;
    const uint64_t end = now_us() + PATIENCE_US;
    while (!let_in && now_us() < end) {
        bare[0] = dial(fixture);
        let_in = is_let_in(fixture, bare[0]);
        if (!let_in)
            close(bare[0]);
    }
    assert_true(let_in);
    for (unsigned i = 0; i < CONNECTIONS_LOCAL; i++)
        close(bare[i]);
}

RPC_TEST(garbage_and_http_1_are_hung_up_on_and_the_server_goes_on)
{
    uint8_t garbage[512];

    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (uint8_t)(i * 167 + 13);
    const char *get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const int first = dial(fixture), second = dial(fixture);
    write_all(first, garbage, sizeof garbage);
    write_all(second, get, strlen(get));
    read_until(fixture, first, NULL);
    read_until(fixture, second, NULL);
    close(first);
    close(second);
    begin_stats(fixture, 0);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_OK);
}

struct frames {
    uint8_t bytes[1024];
    size_t count;
};

static void put(struct frames *frames, const void *data, size_t bytes)
{
    memcpy(frames->bytes + frames->count, data, bytes);
    frames->count += bytes;
}

static void put_frame_of(
    struct frames *frames, uint8_t type, uint8_t flags, uint32_t stream, const struct frames *body)
{
    const uint8_t head[9] = {
        0,
        (uint8_t)(body->count >> 8),
        (uint8_t)body->count,
        type,
        flags,
        (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16),
        (uint8_t)(stream >> 8),
        (uint8_t)stream};

    put(frames, head, sizeof head);
    put(frames, body->bytes, body->count);
}

static void put_frame(struct frames *frames, uint8_t type, uint8_t flags, const struct frames *body)
{
    put_frame_of(frames, type, flags, type == 4 ? 0 : 1, body); /* settings are the connection's */
}

static void put_text(struct frames *frames, const char *text)
{
    const uint8_t length = (uint8_t)strlen(text);

    put(frames, &length, 1);
    put(frames, text, length);
}

/* The headers of a gRPC call (RFC 9113; RFC 7541 for their bytes). */
static void
put_headers(struct frames *frames, const char *path, const char *encoding, uint32_t stream)
{
    struct frames headers = {.count = 0};

    put(&headers, "\x83\x86\x04", 3); /* POST, http, and :path */
    put_text(&headers, path);
    put(&headers, "\x01", 1); /* :authority */
    put_text(&headers, "localhost");
    const char *pairs[][2] = {
        {"content-type", "application/grpc"}, {"te", "trailers"}, {"grpc-encoding", encoding}};
    for (size_t i = 0; i < 3; i++) {
        put(&headers, "\x00", 1);
        put_text(&headers, pairs[i][0]);
        put_text(&headers, pairs[i][1]);
    }
    put_frame_of(frames, 1, 4, stream, &headers); /* HEADERS, END_HEADERS */
}

/* With HTTP/2's preface, settings and acknowledgement. */
static void put_call(struct frames *frames, const char *path, const char *encoding)
{
    const struct frames none = {.count = 0};

    put(frames, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    put_frame(frames, 4, 0, &none);
    put_frame(frames, 4, 1, &none); /* the acknowledgement */
    put_headers(frames, path, encoding, 1);
}

RPC_TEST(gzip_is_refused_before_it_inflates)
{
    struct frames frames = {.count = 0}, body = {.count = 0};

    put_call(&frames, "/sumac.v1.Observe/Stats", "gzip");
    put(&body, "\x01\x00\x00\x00\x04\x1f\x8b\x08\x00", 9); /* a compressed message of four bytes */
    put_frame(&frames, 0, 1, &body);                       /* DATA, END_STREAM */
    const int bare = dial(fixture);
    write_all(bare, frames.bytes, frames.count);
    assert_true(read_until(fixture, bare, "'gzip' is disabled"));
    close(bare);
    assert_int_equal(fixture->at_server.messages, 0);
}

RPC_TEST(a_message_cut_by_its_clients_end_is_not_handled)
{
    struct frames frames = {.count = 0}, body = {.count = 0};

    put_call(&frames, "/sumac.v1.Transfer/Push", "identity");
    put(&body, "\x00\x00\x00\x00\x09\x7a\x07\x01\x02", 9); /* four bytes of nine */
    put_frame(&frames, 0, 0, &body);
    const int bare = dial(fixture);
    write_all(bare, frames.bytes, frames.count);
    poll_until(fixture, &fixture->at_server.opened, 1);
    close(bare); /* when */
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(fixture->at_server.messages, 0); /* then */
    assert_int_equal(fixture->at_server.half_closed, 0);
    assert_int_equal(fixture->at_server.error.status, SUMAC_CANCELLED);
}

/* A connection that asks for health, if it does, and then `count` times for statistics, and takes
 * none of the answers until it says so. All are answered when this returns. */
static int ask_and_take_nothing(struct fixture *fixture, bool health, unsigned count)
{
    const struct frames none = {.count = 0};
    struct frames frames = {.count = 0}, window = {.count = 0}, message = {.count = 0};

    put(&window, "\x00\x04\x00\x00\x00\x00", 6); /* SETTINGS_INITIAL_WINDOW_SIZE: 0 */
    put(&message, "\x00\x00\x00\x00\x00", 5);
    put(&frames, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    put_frame(&frames, 4, 0, &window);
    put_frame(&frames, 4, 1, &none);
    for (unsigned i = health ? 0 : 1; i <= count; i++) {
        const char *path = i == 0 ? "/grpc.health.v1.Health/Check" : "/sumac.v1.Observe/Stats";
        put_headers(&frames, path, "identity", 2 * i + 1);
        put_frame_of(&frames, 0, 1, 2 * i + 1, &message); /* DATA, END_STREAM */
    }
    const unsigned before = fixture->at_server.messages;
    const int bare = dial(fixture);
    write_all(bare, frames.bytes, frames.count);
    poll_until(fixture, &fixture->at_server.messages, before + count);
    return bare;
}

FIXTURE_TEST(
    an_answer_that_is_taken_late_is_not_dropped_for_those_that_nobody_takes,
    struct fixture *fixture, set_up, tear_down)
{
    struct frames update = {.count = 0}, room = {.count = 0};

    put(&room, "\x00\x00\x03\xe8", 4);
    put_frame_of(&update, 8, 0, 3, &room); /* WINDOW_UPDATE of its call */
    const int late = ask_and_take_nothing(fixture, false, 1);
    const int never = ask_and_take_nothing(fixture, false, STATS_CALLS_MAX + 1); /* when */
    poll_until(fixture, &fixture->at_server.closed, 2);
    write_all(late, update.bytes, update.count);
    assert_true(read_until(fixture, late, "\x02\x18\x07")); /* then: two bytes, of ps 7 */
    poll_until(fixture, &fixture->at_server.closed, 3);
    assert_int_equal(fixture->at_server.error.status, SUMAC_OK);
    close(late);
    close(never);
}

/* Another method's place would be of no use to it. */
RPC_TEST(an_answer_that_nobody_takes_gives_way_to_a_call_of_its_own_method)
{
    const int bare = ask_and_take_nothing(fixture, true, STATS_CALLS_MAX + 1);

    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(fixture->at_server.error.status, SUMAC_CANCELLED);
    close(bare);
}

/* Streams that are opened and reset, each for itself, so that no thread is held by them; with a
 * message before the reset, if that is wanted. Until the connection is cut, or there were so many;
 * returns it. */
static int open_and_reset(struct fixture *fixture, bool message, uint32_t count_max)
{
    struct frames frames = {.count = 0}, cancel = {.count = 0}, empty = {.count = 0};
    const unsigned *const begun =
        message ? &fixture->at_server.messages : &fixture->at_server.opened;

    put(&cancel, "\x00\x00\x00\x08", 4);
    put(&empty, "\x00\x00\x00\x00\x00", 5);
    put_call(&frames, "/sumac.v1.Transfer/Push", "identity");
    const int bare = dial(fixture);
    for (uint32_t count = 1; rpc_server_connections(fixture->server).cut == 0 && count < count_max;
         count++) {
        const uint32_t stream = 2 * count - 1;
        if (message)
            put_frame_of(&frames, 0, 0, stream, &empty); /* DATA */
        write_all(bare, frames.bytes, frames.count);
        poll_until(fixture, begun, count);
        frames.count = 0;
        put_frame_of(&frames, 3, 0, stream, &cancel); /* RST_STREAM */
        put_headers(&frames, "/sumac.v1.Transfer/Push", "identity", stream + 2);
        poll_until(fixture, &fixture->at_server.closed, count - 1);
    }
    return bare;
}

/* A reader that opens a stream for each pull, and leaves it when it has the answer. */
RPC_TEST(a_connection_whose_calls_said_something_is_not_cut)
{
    const int bare = open_and_reset(fixture, true, RESETS_AT_ONCE + RESETS_AT_ONCE / 4);

    assert_int_equal(rpc_server_connections(fixture->server).cut, 0);
    close(bare);
}

RPC_TEST(a_connection_whose_calls_are_reset_without_end_is_cut)
{
    const int bare = open_and_reset(fixture, false, 20 * RESETS_AT_ONCE); /* when */

    assert_int_equal(rpc_server_connections(fixture->server).cut, 1);
    assert_true(fixture->at_server.closed > RESETS_AT_ONCE); /* then */
    read_until(fixture, bare, NULL);
    close(bare);
    begin_stats(fixture, 0);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_OK);
}

#define CALLS_MAX 64u
#define NEWCOMERS_MAX (CALLS_MAX / 16u)

static int set_up_small(void **state)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1", .calls_max = CALLS_MAX};

    return set_up_with(state, &options);
}

/* A connection with so many calls of Stats, none of which has sent its request. */
static int begin_and_ask_nothing(struct fixture *fixture, unsigned count)
{
    struct frames frames = {.count = 0};

    put_call(&frames, "/sumac.v1.Observe/Stats", "identity");
    for (unsigned i = 1; i < count; i++)
        put_headers(&frames, "/sumac.v1.Observe/Stats", "identity", (uint8_t)(2 * i + 1));
    const int bare = dial(fixture);
    write_all(bare, frames.bytes, frames.count);
    return bare;
}

static void poll_until_calls(struct fixture *fixture, uint32_t wanted)
{
    const uint64_t end = now_us() + PATIENCE_US;

    while (rpc_server_calls(fixture->server) != wanted && now_us() < end)
        rpc_poll(fixture->poller, now_us() + 1000);
    assert_int_equal(rpc_server_calls(fixture->server), wanted);
}

FIXTURE_TEST(
    a_call_counts_before_its_request_has_come, struct fixture *fixture, set_up_small, tear_down)
{
    struct frames request = {.count = 0}, message = {.count = 0};

    put(&message, "\x00\x00\x00\x00\x00", 5);
    put_frame(&request, 0, 1, &message);
    const int bare = begin_and_ask_nothing(fixture, NEWCOMERS_MAX);

    poll_until_calls(fixture, NEWCOMERS_MAX);

    write_all(bare, request.bytes, request.count); /* not because its client is gone */
    assert_true(read_until(fixture, bare, "\x02\x18\x07"));
    poll_until_calls(fixture, NEWCOMERS_MAX - 1);
    close(bare);
    poll_until_calls(fixture, 0);
    assert_int_equal(fixture->at_server.messages, 1);
}

FIXTURE_TEST(
    of_too_many_calls_without_a_request_the_oldest_gives_way, struct fixture *fixture, set_up_small,
    tear_down)
{
    struct frames request = {.count = 0}, message = {.count = 0};

    put(&message, "\x00\x00\x00\x00\x00", 5);
    put_frame_of(&request, 0, 1, 3, &message); /* of the second */

    const int bare = begin_and_ask_nothing(fixture, NEWCOMERS_MAX + 1); /* when */

    assert_true(read_until(fixture, bare, "4 calls have not sent their request")); /* then */
    write_all(bare, request.bytes, request.count);
    assert_true(read_until(fixture, bare, "\x02\x18\x07")); /* two bytes, of ps 7 */
    assert_int_equal(fixture->at_server.messages, 1);
    close(bare);
}

FIXTURE_TEST(
    who_has_not_sent_a_request_hears_of_the_servers_end, struct fixture *fixture, set_up_small,
    tear_down)
{
    const int bare = begin_and_ask_nothing(fixture, 1);

    poll_until_calls(fixture, 1);
    rpc_server_drain(fixture->server);                                     /* when */
    assert_true(read_until(fixture, bare, "the server is shutting down")); /* then */
    close(bare);
    poll_until_calls(fixture, 0);
}
