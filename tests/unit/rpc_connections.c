/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_connections.c -- who is let in beside whom, and how it is known that one has gone. */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "unit.h"
#include "connected.h"
#include "connections.h"

#define MAX 32u

static struct connection_host host_named(const char *text)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1)
        address.v4.sin_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1)
        address.v6.sin6_family = AF_INET6;
    else
        fail_msg("%s is no address", text);
    return connection_host_of(&address.any);
}

/* A test whose *state has room for MAX connections. */

static int set_up(void **state)
{
    struct connections *connections = malloc(sizeof *connections);

    assert_non_null(connections);
    assert_true(connections_init(connections, MAX));
    *state = connections;
    return 0;
}

static int tear_down(void **state)
{
    connections_deinit(*state);
    free(*state);
    return 0;
}

static bool same_host(const char *one, const char *other)
{
    const struct connection_host a = host_named(one), b = host_named(other);

    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0 && a.local == b.local;
}

TEST(a_host_is_an_ipv4_address_or_the_first_half_of_an_ipv6_one)
{
    assert_false(same_host("10.0.0.1", "10.0.0.2"));
    assert_true(same_host("10.0.0.1", "::ffff:10.0.0.1"));
    assert_true(same_host("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"));
    assert_false(same_host("2001:db8:0:1::1", "2001:db8:0:2::1"));
    assert_true(host_named("127.0.0.1").local);
    assert_true(host_named("::ffff:127.9.9.9").local);
    assert_true(host_named("::1").local);
    assert_false(host_named("10.0.0.1").local);
    assert_false(host_named("2001:db8::1").local);
}

/* Entries without a socket. Returns how many that host gets, of `wanted`. */
static uint32_t crowd(struct connections *connections, const char *name, uint32_t wanted)
{
    const struct connection_host host = host_named(name);
    uint32_t count = 0;

    while (count < wanted && connections_admit(connections, &host)) {
        connections->items[connections->count++] =
            (struct connection){.descriptor = -1, .host = host};
        count++;
    }
    return count;
}

#define CONNECTIONS_TEST(name)                                                                     \
    FIXTURE_TEST(name, struct connections *const connections, set_up, tear_down)

CONNECTIONS_TEST(a_host_may_have_as_many_as_are_left_free)
{
    assert_int_equal(crowd(connections, "10.0.0.1", MAX), MAX / 2);
    assert_int_equal(crowd(connections, "2001:db8::1", MAX), MAX / 4);
    assert_int_equal(crowd(connections, "10.0.0.3", MAX), MAX / 8);

    assert_int_equal(crowd(connections, "10.0.0.4", 1), 1); /* who has few gets in */
}

/* A whole run may be on one host; others find a place beside it. */
CONNECTIONS_TEST(this_host_may_have_all_but_an_eighth)
{
    assert_int_equal(crowd(connections, "127.0.0.1", MAX), MAX - MAX / 8);
    assert_int_equal(crowd(connections, "10.0.0.1", 1), 1);
}

CONNECTIONS_TEST(one_that_was_closed_is_forgotten_though_its_number_is_anothers)
{
    const struct connection_host host = host_named("127.0.0.1");
    int first[2], second[2];

    connect_both(first);
    connect_both(second);
    connections_add(connections, first[1], &host);
    connections_add(connections, second[1], &host);
    connections_look(connections);
    assert_int_equal(connections->count, 2);

    int third[2];
    connect_both(third);
    assert_int_equal(dup2(third[1], first[1]), first[1]); /* as if closed, and then accepted */
    connections_look(connections);

    assert_int_equal(connections->count, 1);
    assert_int_equal(connections->items[0].descriptor, second[1]);
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
        close(third[i]);
    }
    connections_look(connections);
    assert_int_equal(connections->count, 0);
}

/* As much as makes it greedy. */
static void read_much(const int ends[2])
{
    char bytes[8192] = {0};

    assert_int_equal(send(ends[0], bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(recv(ends[1], bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
}

/* The thread that accepts reads from none but the one that it lets in. */
CONNECTIONS_TEST(of_many_that_are_read_from_one_may_be_ended_alone)
{
    const struct connection_host host = host_named("127.0.0.1");
    int honest[2], greedy[2];
    char heard;

    connect_both(honest);
    connect_both(greedy);
    connections_add(connections, honest[1], &host);
    connections_add(connections, greedy[1], &host);
    connections_note_read(connections);
    assert_int_equal(connections_end_greedy_one(connections, greedy[1]), 0);
    read_much(honest);
    read_much(greedy);

    assert_int_equal(connections_end_greedy_one(connections, greedy[1]), 1);

    assert_int_equal(recv(honest[0], &heard, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(recv(greedy[0], &heard, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    /* the other, too, if that is asked */
    assert_int_equal(connections_end_greedy(connections), 1);
    for (int i = 0; i < 2; i++) {
        close(honest[i]);
        close(greedy[i]);
    }
}

/* The thread also reads small requests of honest clients while a greedy one holds it. */
CONNECTIONS_TEST(a_client_that_sends_less_than_4096_bytes_is_not_greedy)
{
    const struct connection_host host = host_named("127.0.0.1");
    char bytes[4095] = {0};
    int ends[2];

    connect_both(ends);
    connections_add(connections, ends[1], &host);
    connections_note_read(connections);
    assert_int_equal(send(ends[0], bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(recv(ends[1], bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
    assert_int_equal(connections_end_greedy(connections), 0);

    assert_int_equal(send(ends[0], bytes, 1, 0), 1);
    assert_int_equal(recv(ends[1], bytes, 1, MSG_WAITALL), 1);
    assert_int_equal(connections_end_greedy(connections), 1);

    close(ends[0]);
    close(ends[1]);
}

/* A ps that is held up reads nothing: who sent much meanwhile has taken none of its memory. */
CONNECTIONS_TEST(bytes_that_wait_unread_end_no_connection)
{
    const struct connection_host host = host_named("127.0.0.1");
    const char bytes[8192] = {0};
    char heard[sizeof bytes];
    int ends[2];

    connect_both(ends);
    connections_add(connections, ends[1], &host);
    connections_note_read(connections);
    assert_int_equal(send(ends[0], bytes, sizeof bytes, 0), sizeof bytes);
    while (recv(ends[1], heard, sizeof heard, MSG_PEEK | MSG_WAITALL) < (ssize_t)sizeof heard)
        ; /* until all has arrived */

    assert_int_equal(connections_end_greedy(connections), 0);

    assert_int_equal(recv(ends[0], heard, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    close(ends[0]);
    close(ends[1]);
}

/* That many at `now_us`; returns whether the last of them was too much. */
static bool cancel(
    struct connections *connections, const struct connection *connection, uint32_t count,
    uint64_t now_us)
{
    bool ended = false;

    for (uint32_t i = 0; i < count; i++) {
        assert_false(ended);
        ended = connections_note_cancelled(
            connections, connection->descriptor, connection->inode, now_us);
    }
    return ended;
}

CONNECTIONS_TEST(one_whose_calls_are_cancelled_without_end_is_ended)
{
    const struct connection_host host = host_named("127.0.0.1");
    const uint64_t second = 1000000;
    int honest[2], greedy[2];
    char heard;

    connect_both(honest);
    connect_both(greedy);
    connections_add(connections, honest[1], &host);
    connections_add(connections, greedy[1], &host);
    const struct connection first = connections->items[0], other = connections->items[1];
    const struct connection gone = {.descriptor = first.descriptor, .inode = other.inode};

    /* Given so many at once, and then so many with each second. */
    assert_false(cancel(connections, &first, CONNECTION_CANCELLED_MAX, 9 * second));
    for (uint64_t now = 10 * second; now <= 30 * second; now += second)
        assert_false(cancel(connections, &first, CONNECTION_CANCELLED_PER_S, now));
    assert_false(cancel(connections, &other, CONNECTION_CANCELLED_MAX, 31 * second));
    assert_false(cancel(connections, &gone, 1, 31 * second)); /* another file's number */

    assert_true(cancel(connections, &other, 1, 31 * second)); /* when */

    assert_int_equal(recv(greedy[0], &heard, 1, 0), -1); /* then */
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(recv(honest[0], &heard, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_false(cancel(connections, &other, 9999, 31 * second)); /* counted once */
    for (int i = 0; i < 2; i++) {
        close(honest[i]);
        close(greedy[i]);
    }
}

/* Cancelled calls leak at their rate, however the looks at them fall: three in three times the
 * rate's interval, looked at twice. */
CONNECTIONS_TEST(what_leaks_between_two_looks_is_not_lost)
{
    const struct connection_host host = host_named("127.0.0.1");
    const uint64_t each_us = 1000000u / CONNECTION_CANCELLED_PER_S;
    int ends[2];
    uint64_t now_us = 9000000;

    connect_both(ends);
    connections_add(connections, ends[1], &host);
    const struct connection it = connections->items[0];
    assert_false(cancel(connections, &it, CONNECTION_CANCELLED_MAX, now_us)); /* given */

    for (int i = 0; i < 100; i++) { /* when, then */
        assert_false(cancel(connections, &it, 1, now_us + 3 * each_us / 2));
        now_us += 3 * each_us;
        assert_false(cancel(connections, &it, 2, now_us));
    }
    close(ends[0]);
    close(ends[1]);
}
