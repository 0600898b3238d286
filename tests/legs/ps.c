/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c -- ps 0's two legs, its lane's and its controller's together: a worker joins, and a variable
 * is created, in as many steps as it takes until the call is answered. */

#include "unit.h"
#include "lane_talk.h"
#include "requests.h"
#include "trace.h"

#define STEPS_MAX 10u

struct ps_0 {
    struct talk *talk;
    uint64_t calls, replied; /* the last call, and the last that was answered */
    uint8_t session[16];     /* of the last join */
};

static void note(struct ps_0 *ps, const struct lane_effect *effect)
{
    ps->replied = effect->call;
    if (effect->reply->descriptor == &sumac__v1__join_reply__descriptor)
        memcpy(
            ps->session, ((const wire_join_reply *)effect->reply)->session_id.data,
            sizeof ps->session);
}

static void step(struct ps_0 *ps, const char *leg, const struct lane_event *event)
{
    struct lane_effects effects;

    if (leg != NULL)
        trace_next(leg, (void (*)(void))ps_core_step);
    ps_core_step(ps->talk->core, event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        assert_int_not_equal(effects.items[i].kind, LANE_EFFECT_FAIL);
        if (effects.items[i].kind == LANE_EFFECT_REPLY)
            note(ps, &effects.items[i]);
    }
}

/* leg NULL: it is not traced. */
static void
call(struct ps_0 *ps, const char *leg, enum lane_call_kind kind, const wire_message *request)
{
    const struct lane_event called = {
        .kind = LANE_EVENT_CALL,
        .now_us = ps->talk->now_us,
        .random = {ps->talk->now_us, ps->calls},
        .call = ++ps->calls,
        .call_kind = kind,
        .request = request};

    step(ps, leg, &called);
    for (uint32_t i = 0; i < STEPS_MAX && ps->replied != ps->calls; i++) {
        const struct lane_event tick = {.kind = LANE_EVENT_TICK, .now_us = ++ps->talk->now_us};
        step(ps, leg, &tick);
    }
    assert_int_equal(ps->replied, ps->calls);
}

static void join(struct ps_0 *ps, const char *leg, uint32_t index)
{
    static char *addresses[] = {"h0:1"};
    struct join_request request;

    join_request_init(&request, index);
    request.message.ps_addresses = addresses;
    request.message.n_ps_addresses = 1;
    call(ps, leg, LANE_CALL_JOIN, &request.message.base);
}

static void create(struct ps_0 *ps, const char *leg, const char *name)
{
    uint64_t shape[] = {4};
    wire_function own;
    wire_initializer initializer = WIRE_INITIALIZER_INIT;
    wire_variable variable;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    vector_init(&variable, name, shape, &own);
    initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
    variable.initializer = &initializer;
    request.variable = &variable;
    request.session_id = (wire_bytes){sizeof ps->session, ps->session};
    call(ps, leg, LANE_CALL_CREATE, &request.base);
}

TALK_TEST(a_join_and_a_create_are_answered)
{
    static const char *const addresses[] = {"h0:1"};
    struct lane_config config = talk_config();
    struct ps_0 ps = {.talk = talk};

    config.index = 0;
    config.ps_addresses = addresses;
    config.ps_count = 1;
    talk_start(ps.talk, &config);
    join(&ps, NULL, 0);
    create(&ps, NULL, "v");

    join(&ps, "join", 1);
    create(&ps, "create", "w");
}
