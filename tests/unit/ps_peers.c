/* SPDX-License-Identifier: Apache-2.0 */
/* ps_peers.c -- ps 0's streams to other ps: dialled, spoken on, lost, dialled again. The other ps
 * is this one: it serves what it dials. */
#include "unit/ps_fixture.h"

#include <unistd.h>

#include "unit/dead_port.h"

#define OTHER 3u

static struct ps_peer *dial(const char *address)
{
    ps_carry_out(
        served->ps, &(struct lane_effect){.kind = LANE_EFFECT_DIAL, .ps = OTHER, .text = address});
    return &served->ps->peers[OTHER];
}

static const char *own_address(char address[32])
{
    (void)snprintf(address, 32, "127.0.0.1:%u", rpc_server_port(served->ps->server));
    return address;
}

/* The stream that the other end serves, as its lane knows it. */
static uint64_t dial_own(void)
{
    char address[32];
    const uint32_t up = count_of(LANE_EVENT_PEER_UP), opened = count_of(LANE_EVENT_STREAM_WRITABLE);

    (void)dial(own_address(address));
    assert_int_equal(await_told(LANE_EVENT_PEER_UP, up + 1)->event.ps, OTHER);
    const struct told *const told = await_told(LANE_EVENT_STREAM_WRITABLE, opened + 1);
    assert_int_equal(told->event.stream_kind, LANE_STREAM_PEER);
    return told->event.stream;
}

static void order(uint64_t number)
{
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    order.number = number;
    ps_carry_out(
        served->ps, &(struct lane_effect){.kind = LANE_EFFECT_ORDER, .ps = OTHER, .order = &order});
}

static void report(uint64_t stream, uint64_t answers)
{
    wire_peer_report report = WIRE_PEER_REPORT_INIT;

    report.answers = answers;
    ps_carry_out(
        served->ps,
        &(struct lane_effect){.kind = LANE_EFFECT_REPORT, .stream = stream, .report = &report});
}

SERVED_TEST(orders_and_reports_go_one_at_a_time)
{
    const uint64_t stream = dial_own();

    order(7);
    order(8); /* while one is on its way: it is given again when that one is answered */
    assert_int_equal(await_told(LANE_EVENT_ORDER, 1)->number, 7);
    assert_int_equal(await_told(LANE_EVENT_PEER_UP, 2)->event.ps, OTHER);
    report(stream, 7);
    const struct told *const told = await_told(LANE_EVENT_REPORT, 1);
    assert_int_equal(told->number, 7);
    assert_int_equal(told->event.ps, OTHER);
    order(9);
    assert_int_equal(await_told(LANE_EVENT_ORDER, 2)->number, 9);
}

/* The core dials as often as it likes, and a stream that there is stays. */
SERVED_TEST(a_ps_is_dialled_once_at_an_address)
{
    char address[32], other[32];
    struct ps_peer *const peer = &served->ps->peers[OTHER];

    (void)dial_own();
    struct rpc_call *const call = peer->call;
    (void)dial(own_address(address));
    assert_ptr_equal(peer->call, call);
    assert_true(peer->up);

    (void)snprintf(other, sizeof other, "ipv4:127.0.0.1:%u", rpc_server_port(served->ps->server));
    (void)dial(other); /* it has moved */

    assert_string_equal(peer->address, other);
    (void)await_told(LANE_EVENT_PEER_UP, 2);
    (void)await_told(LANE_EVENT_STREAM_CLOSED, 1);
    assert_int_equal(count_of(LANE_EVENT_PEER_DOWN), 0); /* nobody speaks for the old stream */
}

static void close_from_there(uint64_t stream, enum sumac_status status)
{
    struct lane_effect end = {
        .kind = LANE_EFFECT_CLOSE_STREAM,
        .stream = stream,
        .error = {.status = status, .reason = SUMAC_REASON_STATE_LOST, .text = "it is empty"}};

    if (status == SUMAC_OK)
        end.error = (struct sumac_error){.status = SUMAC_OK};
    ps_carry_out(served->ps, &end);
}

/* At once it is dialled again, and the core hears why each time. */
SERVED_TEST(a_stream_that_ends_is_told_with_its_reason_and_dialled_again)
{
    uint64_t stream = dial_own();
    struct ps_peer *const peer = &served->ps->peers[OTHER];

    close_from_there(stream, SUMAC_FAILED_PRECONDITION);
    const struct told *told = await_told(LANE_EVENT_PEER_DOWN, 1);
    assert_int_equal(told->event.ps, OTHER);
    assert_int_equal(told->event.reason, SUMAC_REASON_STATE_LOST);
    assert_string_equal(told->text, "it is empty");
    assert_false(peer->up);
    assert_null(peer->call);
    assert_int_equal(served->ps->redial_us, peer->redial_us);
    assert_in_range(peer->redial_us, ps_now_us() - PATIENCE_US, ps_now_us() + 25000);
    order(5); /* which is lost */
    (void)await_told(LANE_EVENT_PEER_UP, 2);
    assert_true(peer->up);
    stream = await_told(LANE_EVENT_STREAM_WRITABLE, 2)->event.stream;

    close_from_there(stream, SUMAC_OK);
    told = await_told(LANE_EVENT_PEER_DOWN, 2);
    assert_string_equal(told->text, "it ended the stream");
    assert_int_equal(told->event.reason, SUMAC_REASON_UNSPECIFIED);
    (void)await_told(LANE_EVENT_PEER_UP, 3);
    assert_int_equal(count_of(LANE_EVENT_ORDER), 0);
}

/* Each attempt that fails is told: why it waits may change. */
SERVED_TEST(the_next_to_be_dialled_is_the_one_whose_time_comes_first)
{
    struct ps *const ps = served->ps;
    char address[32];
    const int taken = take_dead_port(address);

    (void)dial_own();
    for (uint32_t other = 4; other <= 6; other++)
        ps_peer_dial(ps, other, address);
    (void)await_told(LANE_EVENT_PEER_DOWN, 4);

    for (uint32_t other = 4; other <= 6; other++)
        while (ps->peers[other].call != NULL)
            (void)rpc_poll(ps->poller, ps_now_us() + 10000);
    const uint64_t now_us = ps_now_us();
    ps->peers[4].redial_us = now_us + 5000000;
    ps->peers[5].redial_us = now_us + 3000000;
    ps->peers[6].redial_us = now_us + 6000000;
    ps_peers_tick(ps, now_us);
    assert_int_equal(ps->redial_us, now_us + 3000000);
    assert_null(ps->peers[5].call);
    ps_peers_tick(ps, now_us + 3000000);
    assert_non_null(ps->peers[5].call);
    assert_int_equal(ps->redial_us, now_us + 5000000);
    assert_null(ps->peers[4].call);
    assert_int_equal(count_of(LANE_EVENT_PEER_UP), 1); /* the one that is up was left alone */
    close(taken);
}

/* What was said goes out first; who is not reached is not waited for. */
SERVED_TEST(at_the_end_streams_are_ended_and_counted_until_they_are_gone)
{
    struct ps *const ps = served->ps;
    char address[32];
    const int taken = take_dead_port(address);
    const uint64_t end_us = ps_now_us() + PATIENCE_US;

    (void)dial_own();
    order(7);
    ps_peer_dial(ps, 4, address);
    ps_peers_tick(ps, ps_now_us());
    assert_non_null(ps->peers[4].call);
    ps_exit(ps, 0);

    assert_int_equal(ps_peers_end(ps), 2);
    while (ps_peers_end(ps) > 0 && ps_now_us() < end_us)
        (void)rpc_poll(ps->poller, ps_now_us() + 10000);

    assert_null(ps->peers[OTHER].call);
    assert_null(ps->peers[4].call);
    assert_int_equal(count_of(LANE_EVENT_PEER_DOWN), 0);
    assert_int_equal(count_of(LANE_EVENT_ORDER), 0); /* no core hears any more */
    close(taken);
}

/* What is still on its way comes in, and nobody hears it. */
SERVED_TEST(what_another_ps_says_after_the_exit_is_not_told)
{
    struct ps *const ps = served->ps;
    const uint64_t stream = dial_own(), end_us = ps_now_us() + PATIENCE_US;
    const struct ps_link *const link = ps_links_find(&ps->links, stream);

    order(7);
    report(stream, 6);
    ps_exit(ps, 0);
    while (ps_now_us() < end_us &&
           (!rpc_call_writable(ps->peers[OTHER].call) || !rpc_call_writable(link->call)))
        (void)rpc_poll(ps->poller, ps_now_us() + 10000);
    for (int i = 0; i < 100; i++)
        (void)rpc_poll(ps->poller, 0);

    assert_int_equal(count_of(LANE_EVENT_PEER_UP), 1);
    assert_int_equal(count_of(LANE_EVENT_REPORT), 0);
    assert_int_equal(count_of(LANE_EVENT_ORDER), 0);
}
