/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* accept4 */
/* A client's connection: how soon it is tried again, and what a closed one leaves. */

#include "unit.h"

#include <arpa/inet.h>
#include <grpc/grpc.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "unit/rpc_stats.h"

#define PATIENCE_US 10000000u
#define QUICK_US 200000u /* much less than a closed channel goes on connecting */
#define TRIES_MAX 20u

static int first_wait_ms, longest_wait_ms; /* of the last channel */

grpc_channel *__real_grpc_channel_create(
    const char *target, grpc_channel_credentials *credentials, const grpc_channel_args *args);
grpc_channel *__wrap_grpc_channel_create(
    const char *target, grpc_channel_credentials *credentials, const grpc_channel_args *args);

static int integer_of(const grpc_channel_args *args, const char *key)
{
    for (size_t i = 0; i < args->num_args; i++)
        if (strcmp(args->args[i].key, key) == 0)
            return args->args[i].value.integer;
    return -1;
}

grpc_channel *__wrap_grpc_channel_create(
    const char *target, grpc_channel_credentials *credentials, const grpc_channel_args *args)
{
    first_wait_ms = integer_of(args, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS);
    longest_wait_ms = integer_of(args, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS);
    return __real_grpc_channel_create(target, credentials, args);
}

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A server that accepts, and says what the test says. */
struct fixture {
    struct rpc_poller *poller;
    char target[32];
    int listening;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;

    rpc_init();
    fixture.listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fixture.listening, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fixture.listening, 1), 0);
    assert_int_equal(getsockname(fixture.listening, (struct sockaddr *)&address, &bytes), 0);
    (void)snprintf(fixture.target, sizeof fixture.target, "127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(rpc_poller_create(&fixture.poller), SUMAC_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    close(fixture->listening);
    rpc_poller_destroy(fixture->poller);
    rpc_deinit();
    return 0;
}

static void begin_call(struct rpc_channel *channel)
{
    static const struct rpc_handler handler = {.message = NULL};

    (void)begin_stats_on(channel, (struct rpc_start){.wait_for_ready = true, .handler = &handler});
}

/* Poll until the client has connected and sent its first bytes. */
static int accept_greeting(const struct fixture *fixture)
{
    const uint64_t end_us = now_us() + PATIENCE_US;
    int accepted = -1;
    char byte;

    while (now_us() < end_us) {
        (void)rpc_poll(fixture->poller, now_us() + 1000);
        if (accepted < 0)
            accepted = accept4(fixture->listening, NULL, NULL, SOCK_NONBLOCK);
        if (accepted >= 0 && recv(accepted, &byte, 1, MSG_PEEK) == 1)
            return accepted;
    }
    fail_msg("the client did not connect");
    return -1;
}

/* Poll until the client closes its end. */
static bool is_hung_up(const struct fixture *fixture, int accepted)
{
    const uint64_t end_us = now_us() + PATIENCE_US;
    char bytes[4096];
    ssize_t got = -1;

    while (now_us() < end_us && got != 0) {
        (void)rpc_poll(fixture->poller, now_us() + 1000);
        got = recv(accepted, bytes, sizeof bytes, 0);
    }
    return got == 0;
}

/* The server's SETTINGS come just after the channel was closed. False: the machine was too busy to
 * say so. */
static bool closes_before_settings(const struct fixture *fixture)
{
    static const uint8_t settings[9] = {[3] = 4};
    struct rpc_channel *channel;

    assert_int_equal(rpc_channel_open(fixture->poller, fixture->target, &channel), SUMAC_OK);
    begin_call(channel);
    const int accepted = accept_greeting(fixture);
    const uint64_t began_us = now_us();
    rpc_channel_close(channel);
    assert_int_equal(
        send(accepted, settings, sizeof settings, MSG_NOSIGNAL), (ssize_t)sizeof settings);
    const bool quick = now_us() - began_us < QUICK_US;
    assert_true(is_hung_up(fixture, accepted) || !quick);
    close(accepted);
    return quick;
}

FIXTURE_TEST(
    a_channel_closed_before_the_server_has_greeted_leaves_no_socket, struct fixture *fixture,
    set_up, tear_down)
{
    bool quick = false;

    for (unsigned i = 0; i < TRIES_MAX && !quick; i++)
        quick = closes_before_settings(fixture);

    assert_true(quick);
}

/* Else a server that was away for minutes would be tried again after two. */
FIXTURE_TEST(a_channel_tries_again_within_two_seconds, struct fixture *fixture, set_up, tear_down)
{
    struct rpc_channel *channel;

    assert_int_equal(rpc_channel_open(fixture->poller, fixture->target, &channel), SUMAC_OK);

    assert_in_range(first_wait_ms, 1, 200);
    assert_in_range(longest_wait_ms, first_wait_ms, 2000);
    rpc_channel_close(channel);
}
