/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_greeting.c -- a client is let in when it has acknowledged the server's settings. */

#include "unit.h"
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "connected.h"
#include "greeting.h"

#define NOW_US 1000u
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define HEADERS 1
#define DATA 0
#define SETTINGS 4
#define CONTINUATION 9

struct fixture {
    int ends[2]; /* the client's, the server's */
    struct greeting greeting;
    unsigned char bytes[GREETING_BYTES_MAX];
};

static int set_up(void **state)
{
    static struct fixture fixture;

    connect_both(fixture.ends);
    fixture.greeting = greeting_begin(fixture.ends[1], 100, NOW_US);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    const struct fixture *fixture = *state;

    close(fixture->ends[0]);
    close(fixture->ends[1]);
    return 0;
}

static void say(const struct fixture *fixture, const void *bytes, size_t count)
{
    assert_int_equal(send(fixture->ends[0], bytes, count, 0), count);
}

static void say_head(const struct fixture *fixture, uint8_t kind, uint8_t flags, uint32_t bytes)
{
    const unsigned char head[9] = {
        (unsigned char)(bytes >> 16), (unsigned char)(bytes >> 8), (unsigned char)bytes, kind,
        flags};

    say(fixture, head, sizeof head);
}

static void say_frame(const struct fixture *fixture, uint8_t kind, uint8_t flags, uint32_t bytes)
{
    static const unsigned char body[GREETING_BYTES_MAX];

    say_head(fixture, kind, flags, bytes);
    say(fixture, body, bytes);
}

/* Until that much waits at the socket. A recv(2) that blocks would sleep through fewer bytes than
 * the greeting waits for. */
static void await(int socket, size_t bytes)
{
    int waiting = 0;

    do
        assert_int_equal(ioctl(socket, FIONREAD, &waiting), 0);
    while ((size_t)waiting < bytes && sched_yield() == 0);
}

/* Once all that the client said has come. */
static enum greeting_state look_for(struct fixture *fixture, size_t said, uint64_t now_us)
{
    await(fixture->ends[1], said);
    return greeting_look(&fixture->greeting, fixture->bytes, now_us);
}

#define CONNECTION_TEST(name) FIXTURE_TEST(name, struct fixture *fixture, set_up, tear_down)

CONNECTION_TEST(the_settings_bound_streams_and_headers)
{
    static const unsigned char expected[21] = {0, 0, 12,   SETTINGS, 0, 0, 0, 0, 0, 0,  6,
                                               0, 0, 0x20, 0,        0, 3, 0, 0, 0, 100};
    unsigned char heard[sizeof expected];

    assert_int_equal(recv(fixture->ends[0], heard, sizeof heard, MSG_WAITALL), sizeof heard);
    assert_memory_equal(heard, expected, sizeof heard);
}

CONNECTION_TEST(a_client_that_acknowledges_is_let_in_and_nothing_is_taken)
{
    char first[24];

    say(fixture, PREFACE, 24); /* given */
    say_frame(fixture, SETTINGS, 0, 6);
    say_frame(fixture, HEADERS, 4, 100);
    say_frame(fixture, DATA, 1, 5);
    assert_int_equal(look_for(fixture, 24 + 15 + 109 + 14, NOW_US), GREETING_WAITS);
    say_frame(fixture, SETTINGS, 1, 0);

    assert_int_equal(look_for(fixture, 24 + 15 + 109 + 14 + 9, NOW_US), GREETING_OVER); /* when */

    assert_int_equal(recv(fixture->ends[1], first, sizeof first, 0), sizeof first); /* then */
    assert_memory_equal(first, PREFACE, sizeof first);
}

CONNECTION_TEST(each_byte_may_come_alone)
{
    static const char said[] = PREFACE "\0\0\0\4\0\0\0\0\0"
                                       "\0\0\0\4\1\0\0\0\0";

    for (size_t i = 0; i < sizeof said - 1; i++) {
        say(fixture, &said[i], 1);
        assert_int_equal(
            look_for(fixture, i + 1, NOW_US),
            i + 1 < sizeof said - 1 ? GREETING_WAITS : GREETING_OVER);
    }
}

CONNECTION_TEST(another_protocol_fails_at_once)
{
    say(fixture, "GET", 3);
    assert_int_equal(look_for(fixture, 3, NOW_US), GREETING_FAILED);
}

CONNECTION_TEST(headers_before_the_acknowledgement_are_bounded)
{
    say(fixture, PREFACE, 24);
    say_frame(fixture, HEADERS, 0, GREETING_HEADER_BYTES_MAX - 1);
    say_frame(fixture, CONTINUATION, 0, 1);
    const size_t said = 24 + 9 + GREETING_HEADER_BYTES_MAX - 1 + 9 + 1;
    for (int looks = 0; looks < 2; looks++) /* each frame counts once */
        assert_int_equal(look_for(fixture, said, NOW_US), GREETING_WAITS);

    say_frame(fixture, CONTINUATION, 4, 1);
    assert_int_equal(look_for(fixture, said + 10, NOW_US), GREETING_FAILED);
}

CONNECTION_TEST(all_before_the_acknowledgement_is_bounded)
{
    const uint32_t most = GREETING_BYTES_MAX - 24 - 9 - 9; /* an acknowledgement fits behind it */

    say(fixture, PREFACE, 24);
    say_head(fixture, DATA, 0, most);
    assert_int_equal(look_for(fixture, 33, NOW_US), GREETING_WAITS);

    struct greeting more = {.socket = fixture->ends[1], .begun_us = NOW_US};
    int ends[2];
    connect_both(ends);
    const struct fixture other = {.ends = {ends[0], ends[1]}};
    more.socket = ends[1];
    say(&other, PREFACE, 24);
    say_head(&other, DATA, 0, most + 1);
    await(ends[1], 33);
    assert_int_equal(greeting_look(&more, fixture->bytes, NOW_US), GREETING_FAILED);
    close(ends[0]);
    close(ends[1]);
}

CONNECTION_TEST(it_fails_when_its_time_is_over)
{
    say(fixture, PREFACE, 24);
    assert_int_equal(look_for(fixture, 24, NOW_US + GREETING_US_MAX - 1), GREETING_WAITS);
    assert_int_equal(look_for(fixture, 24, NOW_US + GREETING_US_MAX), GREETING_FAILED);
}

CONNECTION_TEST(a_client_that_says_nothing_fails_in_time_too)
{
    struct greeting *greeting = &fixture->greeting;

    assert_int_equal(greeting_look(greeting, fixture->bytes, NOW_US), GREETING_WAITS);
    assert_int_equal(
        greeting_look(greeting, fixture->bytes, NOW_US + GREETING_US_MAX), GREETING_FAILED);
}

CONNECTION_TEST(looks_are_bounded)
{
    say(fixture, PREFACE, 24);
    for (uint32_t i = 0; i < GREETING_LOOKS_MAX; i++)
        assert_int_equal(look_for(fixture, 24, NOW_US), GREETING_WAITS);
    assert_int_equal(look_for(fixture, 24, NOW_US), GREETING_FAILED);
}

CONNECTION_TEST(a_client_that_has_gone_fails)
{
    assert_int_equal(shutdown(fixture->ends[0], SHUT_WR), 0);
    assert_int_equal(look_for(fixture, 0, NOW_US), GREETING_FAILED);
}

static int is_readable(const struct fixture *fixture, int wait_ms)
{
    struct pollfd polled = {.fd = fixture->ends[1], .events = POLLIN};

    return poll(&polled, 1, wait_ms);
}

/* Else the thread that accepts would not sleep while such a client waits. */
CONNECTION_TEST(what_was_looked_at_wakes_nobody_again)
{
    say(fixture, PREFACE, 24);
    assert_int_equal(look_for(fixture, 24, NOW_US), GREETING_WAITS);
    assert_int_equal(is_readable(fixture, 0), 0);

    say_frame(fixture, SETTINGS, 1, 0);
    assert_int_equal(is_readable(fixture, 10000), 1);
    assert_int_equal(look_for(fixture, 33, NOW_US), GREETING_OVER);
    greeting_hand_over(fixture->ends[1]);
    assert_int_equal(recv(fixture->ends[1], fixture->bytes, 32, MSG_WAITALL), 32);
    assert_int_equal(is_readable(fixture, 0), 1); /* one byte is enough from here on */
}

/* gRPC sends its settings first: else it reads the acknowledgement as one of nothing. */
CONNECTION_TEST(what_a_client_sends_waits_for_the_hand_over)
{
    say(fixture, PREFACE, 24);
    say_frame(fixture, SETTINGS, 1, 0);
    assert_int_equal(look_for(fixture, 33, NOW_US), GREETING_OVER);
    assert_int_equal(is_readable(fixture, 0), 0);

    greeting_hand_over(fixture->ends[1]);

    assert_int_equal(is_readable(fixture, 10000), 1);
}
