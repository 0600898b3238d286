/* SPDX-License-Identifier: Apache-2.0 */
/* ps_probe.c -- who answers at ps 0's listed address: asked before the first join, told with what
 * comes of it, and asked again. The ps that answers is this one. */
#include "unit/ps_fixture.h"

#include <unistd.h>

#include "unit/dead_port.h"

static bool seeks;
static const char *listed;

bool __wrap_lane_seeks_ps0(const struct lane *lane);
const char *__wrap_lane_ps0_address(const struct lane *lane);

bool __wrap_lane_seeks_ps0(const struct lane *lane)
{
    (void)lane;
    return seeks;
}

const char *__wrap_lane_ps0_address(const struct lane *lane)
{
    (void)lane;
    return listed;
}

static char own[32];

static int set_up(void **state)
{
    const int status = ps_set_up(state);

    (void)snprintf(own, sizeof own, "127.0.0.1:%u", rpc_server_port(served->ps->server));
    listed = own;
    seeks = true;
    return status;
}

static int tear_down(void **state)
{
    ps_probe_end(served->ps);
    return ps_tear_down(state);
}

/* As if its time had come. */
static void probe(void)
{
    served->ps->probe.due_us = 0;
    ps_probe_tick(served->ps, ps_now_us());
}

static void answer(uint64_t call)
{
    const wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    ps_carry_out(
        served->ps,
        &(struct lane_effect){.kind = LANE_EFFECT_REPLY, .call = call, .reply = &reply.base});
}

/* Until the probe's call is over. */
static void await_end(void)
{
    const uint64_t end_us = ps_now_us() + PATIENCE_US;

    while (served->ps->probe.call != NULL && ps_now_us() < end_us)
        turn();
    assert_null(served->ps->probe.call);
}

#define PROBE_TEST(name) FIXTURE_TEST(name, void *none, set_up, tear_down)

PROBE_TEST(who_answers_is_told_once_and_asked_again_two_seconds_later)
{
    probe();
    const struct told *const asked = await_told(LANE_EVENT_CALL, 1); /* given */
    assert_int_equal(asked->event.call_kind, LANE_CALL_LIST);
    const uint64_t answered_us = ps_now_us();

    answer(asked->event.call); /* when */
    const struct told *const told = await_told(LANE_EVENT_PS0_PROBED, 1);
    await_end();

    assert_non_null(told->event.request); /* then */
    assert_null(told->event.text);
    assert_int_equal(count_of(LANE_EVENT_PS0_PROBED), 1);
    assert_true(served->ps->probe.due_us >= answered_us + 2000000);
    assert_true(served->ps->probe.due_us <= ps_now_us() + 2000000);
}

PROBE_TEST(an_address_that_nobody_listens_at_is_told_with_why)
{
    char address[32];
    const int taken = take_dead_port(address);

    listed = address;
    probe();
    const struct told *const told = await_told(LANE_EVENT_PS0_PROBED, 1);

    assert_string_equal(told->text, "Connection refused");
    assert_null(told->event.request);
    assert_null(served->ps->probe.call);
    close(taken);
}

PROBE_TEST(while_an_answer_is_waited_for_nothing_is_asked)
{
    probe();
    struct rpc_call *const call = served->ps->probe.call;
    (void)await_told(LANE_EVENT_CALL, 1);

    probe();

    assert_non_null(call);
    assert_ptr_equal(served->ps->probe.call, call);
}

/* A member has joined meanwhile. */
PROBE_TEST(an_answer_that_is_not_wanted_any_more_is_not_told)
{
    probe();
    const struct told *const asked = await_told(LANE_EVENT_CALL, 1); /* given */
    seeks = false;
    probe(); /* when */

    assert_null(served->ps->probe.call); /* then */
    assert_null(served->ps->probe.channel);
    (void)await_told(LANE_EVENT_CALL_CANCELLED, 1);
    answer(asked->event.call);
    assert_int_equal(count_of(LANE_EVENT_PS0_PROBED), 0);
}

/* It was not read before the ps had to end. */
PROBE_TEST(what_comes_after_the_exit_is_not_told)
{
    probe();
    const struct told *const asked = await_told(LANE_EVENT_CALL, 1);
    answer(asked->event.call);
    ps_exit(served->ps, 0);

    await_end();

    assert_int_equal(count_of(LANE_EVENT_PS0_PROBED), 0);
    probe();
    assert_null(served->ps->probe.call);
}
