/* SPDX-License-Identifier: Apache-2.0 */
/* ps_served.c -- what a ps makes of its clients' calls and streams: what its core is told of them,
 * and what they hear of what it says. */
#include "unit/ps_fixture.h"

/* ---- calls ---- */

static void answer_call(uint64_t call)
{
    const wire_stats_reply reply = WIRE_STATS_REPLY_INIT;

    ps_carry_out(
        served->ps,
        &(struct lane_effect){.kind = LANE_EFFECT_REPLY, .call = call, .reply = &reply.base});
}

SERVED_TEST(a_call_is_told_by_its_method_and_answered_once)
{
    static const struct {
        const wire_service *service;
        unsigned method;
        enum lane_call_kind kind;
    } rows[] = {
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    RPC_IF_CALL(what, {WIRE_##SERVICE, WIRE_##SERVICE##_##METHOD, LANE_CALL_##METHOD}, )
        RPC_LIST(X)
#undef X
    };
    union {
        max_align_t aligned;
        uint8_t bytes[1024];
    } request;

    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const wire_type *const type = rows[i].service->methods[rows[i].method].input;
        wire_message *const message = (wire_message *)(void *)request.bytes;
        struct heard heard;
        assert_true(type->sizeof_message <= sizeof request);
        type->message_init(message);

        begin_call(&heard, rows[i].service, rows[i].method, message); /* when */
        const struct told *const told = await_told(LANE_EVENT_CALL, i + 1);
        assert_int_equal(told->event.call_kind, rows[i].kind); /* then */
        ps_carry_out(
            served->ps, &(struct lane_effect){
                            .kind = LANE_EFFECT_FAIL,
                            .call = told->event.call,
                            .error = {
                                .status = SUMAC_ABORTED,
                                .reason = SUMAC_REASON_SESSION_CLOSED,
                                .text = "it is over"}});
        answer_call(told->event.call); /* too late */
        await(&heard.closed, 1);
        assert_int_equal(heard.messages, 0);
        assert_int_equal(heard.error.status, SUMAC_ABORTED);
        assert_int_equal(heard.error.reason, SUMAC_REASON_SESSION_CLOSED);
        assert_string_equal(heard.error.text, "it is over");
    }
    await_no_links();
    assert_int_equal(count_of(LANE_EVENT_CALL_CANCELLED), 0); /* they were answered */
}

SERVED_TEST(a_call_that_is_given_up_is_told_and_its_late_answer_goes_nowhere)
{
    struct heard first, second;

    begin_stats(&first);
    const uint64_t call = await_told(LANE_EVENT_CALL, 1)->event.call;

    rpc_call_cancel(first.call); /* when */

    const struct told *const told = await_told(LANE_EVENT_CALL_CANCELLED, 1); /* then */
    assert_int_equal(told->event.call, call);
    answer_call(call);
    begin_stats(&second); /* in its place */
    answer_call(await_told(LANE_EVENT_CALL, 2)->event.call);
    await(&second.closed, 1);
    assert_int_equal(second.error.status, SUMAC_OK);
    assert_int_equal(second.messages, 1);
    await_no_links();
    assert_int_equal(served->ps->links.used, 1);
    assert_int_equal(count_of(LANE_EVENT_CALL_CANCELLED), 1);
}

/* No place is left: the core does not hear of it, neither of its end. */
SERVED_TEST(one_call_more_than_there_are_places_for_is_refused)
{
    struct heard heard;

    served->ps->links.used = PS_LINKS_MAX;
    begin_stats(&heard);
    await(&heard.closed, 1);
    served->ps->links.used = 0;

    assert_int_equal(heard.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(heard.error.reason, SUMAC_REASON_BUSY);
    assert_non_null(strstr(heard.error.text, "too many calls and streams"));
    begin_stats(&heard);
    answer_call(await_told(LANE_EVENT_CALL, 1)->event.call);
    await(&heard.closed, 1);
    assert_int_equal(served->told_count, 1);
}

/* ---- streams ---- */

/* A message that either end may send on such a stream. */
static void client_sends(struct heard *heard, enum lane_stream_kind kind, uint64_t number)
{
    wire_push_request push = WIRE_PUSH_REQUEST_INIT;
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    const wire_message *const messages[] = {
        [LANE_STREAM_PUSH] = &push.base,
        [LANE_STREAM_PULL] = &pull.base,
        [LANE_STREAM_PEER] = &order.base};

    pull.request = order.number = number;
    assert_true(rpc_call_writable(heard->call));
    rpc_call_send(heard->call, messages[kind], NULL, 0);
}

static void ps_says(uint64_t stream, enum lane_stream_kind kind)
{
    static const enum lane_effect_kind effects[] = {
        [LANE_STREAM_PUSH] = LANE_EFFECT_ANSWER,
        [LANE_STREAM_PULL] = LANE_EFFECT_PULLED,
        [LANE_STREAM_PEER] = LANE_EFFECT_REPORT};
    const wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    const wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT;
    const wire_peer_report report = WIRE_PEER_REPORT_INIT;

    ps_carry_out(
        served->ps, &(struct lane_effect){
                        .kind = effects[kind],
                        .stream = stream,
                        .push_answer = &answer,
                        .pull_answer = &pulled,
                        .report = &report});
}

SERVED_TEST(a_stream_is_told_from_its_opening_to_its_end)
{
    static const enum lane_event_kind arrives[] = {
        [LANE_STREAM_PUSH] = LANE_EVENT_PUSH,
        [LANE_STREAM_PULL] = LANE_EVENT_PULL,
        [LANE_STREAM_PEER] = LANE_EVENT_ORDER};

    for (int i = 0; i < 3; i++) {
        const enum lane_stream_kind kind = (enum lane_stream_kind)i;
        struct heard heard;
        served->told_count = 0;

        const uint64_t stream = begin_stream(&heard, kind);
        const bool pulls = kind == LANE_STREAM_PULL;
        assert_int_equal(served->ps->turns.unasked, pulls ? 1 : 0);
        client_sends(&heard, kind, 7);
        const struct told *const told = await_told(arrives[kind], 1);
        assert_int_equal(told->event.stream, stream);
        assert_int_equal(told->event.stream_kind, kind);
        assert_int_equal(told->number, kind == LANE_STREAM_PUSH ? 0 : 7);
        assert_int_equal(served->ps->turns.unasked, 0); /* what comes next was asked for */
        ps_says(stream, kind);
        (void)await_told(LANE_EVENT_STREAM_WRITABLE, 2);
        await(&heard.messages, 1);
        rpc_call_cancel(heard.call);
        const struct told *const end = await_told(LANE_EVENT_STREAM_CLOSED, 1);

        assert_int_equal(end->event.stream, stream);
        assert_int_equal(end->event.stream_kind, kind);
        assert_int_equal(served->told[0].event.kind, LANE_EVENT_STREAM_OPENED);
        assert_int_equal(served->told[0].event.stream_kind, kind);
        assert_int_equal(served->told[1].event.kind, LANE_EVENT_STREAM_WRITABLE);
        assert_int_equal(served->told_count, 5);
        served->ps->turns.unasked = 0;
        ps_says(stream, kind); /* which goes nowhere */
        await_no_links();
    }
}

SERVED_TEST(a_stream_that_is_ended_from_here_hears_why_once)
{
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PUSH);
    struct lane_effect end = {
        .kind = LANE_EFFECT_CLOSE_STREAM,
        .stream = stream,
        .error = {
            .status = SUMAC_ABORTED,
            .reason = SUMAC_REASON_STREAM_REPLACED,
            .text = "another has taken its place"}};

    ps_carry_out(served->ps, &end);
    assert_true(ps_links_find(&served->ps->links, stream)->finished);
    end.error.status = SUMAC_INTERNAL;
    ps_carry_out(served->ps, &end);
    await(&heard.closed, 1);

    assert_int_equal(heard.error.status, SUMAC_ABORTED);
    assert_int_equal(heard.error.reason, SUMAC_REASON_STREAM_REPLACED);
    assert_string_equal(heard.error.text, "another has taken its place");
    assert_int_equal(await_told(LANE_EVENT_STREAM_CLOSED, 1)->event.stream, stream);
    await_no_links();
}

/* ---- streams on which nothing more will be asked ---- */

static struct ps_link *half_close(struct heard *heard, uint64_t stream)
{
    const uint64_t end_us = ps_now_us() + PATIENCE_US;

    rpc_call_end(heard->call);
    while (served->ps->links.half_closed == 0 && ps_now_us() < end_us)
        turn();
    struct ps_link *const link = ps_links_find(&served->ps->links, stream);
    assert_non_null(link);
    assert_true(link->half_closed);
    return link;
}

/* However long that takes. */
SERVED_TEST(a_half_closed_pull_stream_ends_when_its_pulls_are_answered_and_out)
{
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PULL);
    const uint64_t later_us = ps_now_us() + UINT64_C(3600000000);

    served->has_pulls = true;
    const struct ps_link *const link = half_close(&heard, stream);

    ps_services_tick(served->ps, later_us);
    assert_false(link->finished);
    served->has_pulls = false;
    ps_says(stream, LANE_STREAM_PULL); /* the last answer is on its way */
    ps_services_tick(served->ps, later_us);
    assert_false(link->finished);
    (void)await_told(LANE_EVENT_STREAM_WRITABLE, 2);
    assert_true(link->finished); /* at once: its client waits for that */

    await(&heard.closed, 1);
    assert_int_equal(heard.messages, 1);
    assert_int_equal(heard.error.status, SUMAC_OK);
    await_no_links();
}

SERVED_TEST(a_half_closed_pull_stream_of_which_nothing_is_wanted_ends_at_once)
{
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PULL);

    assert_true(half_close(&heard, stream)->finished);

    await(&heard.closed, 1);
    assert_int_equal(heard.error.status, SUMAC_OK);
    await_no_links();
}

SERVED_TEST(a_half_closed_push_stream_ends_a_second_after_the_last_word)
{
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PUSH), before_us = ps_now_us();
    const struct ps_link *const link = half_close(&heard, stream);

    assert_in_range(link->spoke_us, before_us, ps_now_us());
    ps_services_tick(served->ps, link->spoke_us + 999999);
    assert_false(link->finished);
    ps_services_tick(served->ps, link->spoke_us + 1000000);
    assert_true(link->finished);

    await(&heard.closed, 1);
    assert_int_equal(heard.error.status, SUMAC_OK);
    (void)await_told(LANE_EVENT_STREAM_CLOSED, 1);
    await_no_links();
}

SERVED_TEST(who_may_still_ask_is_not_ended)
{
    struct heard half_closed, open;
    const uint64_t first = begin_stream(&open, LANE_STREAM_PULL);
    const uint64_t second = begin_stream(&half_closed, LANE_STREAM_PULL);

    served->has_pulls = true;
    (void)half_close(&half_closed, second);
    served->has_pulls = false; /* which a round of the loop finds */
    await(&half_closed.closed, 1);

    assert_false(ps_links_find(&served->ps->links, first)->finished);
    assert_int_equal(open.closed, 0);
    rpc_call_cancel(open.call);
    await_no_links();
}

/* ---- bytes that are lent ---- */

/* A long one is sent as it lies, and a short one is copied: both are told back once. */
SERVED_TEST(lent_bytes_are_told_back_when_they_are_out)
{
    static const uint8_t bytes[200000];
    const struct lane_bytes payload[] = {
        {.bytes = {bytes, 200000}, .hold = 77},
        {.bytes = {bytes, 5}},
        {.bytes = {bytes, 10}, .hold = 78}};
    const wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT;
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PULL);
    struct lane_effect effect = {
        .kind = LANE_EFFECT_PULLED,
        .stream = stream,
        .pull_answer = &pulled,
        .payload = payload,
        .payload_count = 3};

    ps_carry_out(served->ps, &effect);
    assert_true(ps_links_find(&served->ps->links, stream)->bulky);
    assert_int_equal(served->ps->turns.bulky, 1);
    await(&heard.messages, 1);
    (void)await_told(LANE_EVENT_RELEASED, 2);
    uint64_t holds = 0;
    for (uint32_t i = 0; i < served->told_count; i++)
        holds += served->told[i].event.hold;
    assert_int_equal(holds, 77 + 78);

    effect.payload = &payload[1];
    effect.payload_count = 1;
    (void)await_told(LANE_EVENT_STREAM_WRITABLE, 2);
    ps_carry_out(served->ps, &effect);
    assert_false(ps_links_find(&served->ps->links, stream)->bulky);
    assert_int_equal(served->ps->turns.bulky, 0);
    await(&heard.messages, 2);
    assert_int_equal(count_of(LANE_EVENT_RELEASED), 2);
    (void)await_told(LANE_EVENT_STREAM_WRITABLE, 3);
    effect.payload = payload;
    ps_carry_out(served->ps, &effect);
    rpc_call_cancel(heard.call);
    (void)await_told(LANE_EVENT_RELEASED, 3);
    await_no_links();
}

/* The core says one message after the other, as it hears that the last one is out; its stream may
 * end in between. */
SERVED_TEST(bytes_of_a_message_that_cannot_go_out_are_told_back)
{
    static const uint8_t bytes[PS_BULK_BYTES];
    const struct lane_bytes payload[] = {
        {.bytes = {bytes, PS_BULK_BYTES}, .hold = 77}, {.bytes = {bytes, 1}}};
    const wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT;
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PULL);
    struct lane_effect effect = {
        .kind = LANE_EFFECT_PULLED,
        .stream = stream,
        .pull_answer = &pulled,
        .payload = payload,
        .payload_count = 1};

    ps_carry_out(served->ps, &effect);
    assert_int_equal(served->ps->turns.bulky, 0); /* a byte less than a long one */
    effect.payload_count = 2;
    ps_carry_out(served->ps, &effect); /* while that one is on its way */
    assert_int_equal(served->ps->turns.bulky, 0);
    (void)await_told(LANE_EVENT_STREAM_WRITABLE, 2);
    ps_carry_out(served->ps, &effect);
    assert_int_equal(served->ps->turns.bulky, 1);

    (void)await_told(LANE_EVENT_RELEASED, 3);
    await(&heard.messages, 2);
    rpc_call_cancel(heard.call);
    await_no_links();
}

static bool is_scarce;

static void *take_while_there_is(void *context, size_t bytes)
{
    (void)context;
    return is_scarce ? NULL : memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_give(&memory_heap, data, bytes);
}

/* One note of what is lent is left, and it takes two: what is not sent is told back, and, since
 * there is none for that either, the ps ends. */
SERVED_TEST(without_memory_to_note_what_is_lent_the_ps_ends)
{
    static const uint8_t bytes[20000];
    static const struct memory scarce = {.take = take_while_there_is, .give = give};
    const struct lane_bytes payload[] = {
        {.bytes = {bytes, 10000}, .hold = 77}, {.bytes = {bytes, 10000}, .hold = 78}};
    const wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT;
    struct heard heard;
    const uint64_t stream = begin_stream(&heard, LANE_STREAM_PULL);
    struct ps *const ps = served->ps;

    is_scarce = false;
    pool_deinit(&ps->helds);
    pool_init(&ps->helds, &scarce, sizeof(struct ps_held), 1);
    pool_give(&ps->helds, pool_take(&ps->helds));
    is_scarce = true;

    ps_carry_out(
        ps, &(struct lane_effect){
                .kind = LANE_EFFECT_PULLED,
                .stream = stream,
                .pull_answer = &pulled,
                .payload = payload,
                .payload_count = 2});

    struct release_node *const released = release_queue_take(&ps->released);
    assert_non_null(released);
    assert_int_equal(released->id, 77);
    assert_null(released->next);
    pool_give(&ps->helds, released);
    assert_true(ps->exiting);
    assert_int_equal(ps->exit_code, PS_EXIT_NO_MEMORY);
    await(&heard.closed, 1);
    assert_int_equal(heard.error.reason, SUMAC_REASON_OUT_OF_MEMORY);
}

/* ---- the end ---- */

struct open_calls {
    struct heard push, pull, peer, call, answered;
};

static void open_all(struct open_calls *calls)
{
    (void)begin_stream(&calls->push, LANE_STREAM_PUSH);
    (void)begin_stream(&calls->pull, LANE_STREAM_PULL);
    (void)begin_stream(&calls->peer, LANE_STREAM_PEER);
    begin_stats(&calls->call);
    (void)await_told(LANE_EVENT_CALL, 1);
    begin_stats(&calls->answered);
    answer_call(await_told(LANE_EVENT_CALL, 2)->event.call);
}

static void expect_told_of_the_end(struct heard *heard, enum sumac_reason reason, const char *text)
{
    await(&heard->closed, 1);
    assert_int_equal(heard->error.reason, reason);
    assert_string_equal(heard->error.text, text);
}

/* Only the streams of clients are counted: on those something may still be on its way here. */
SERVED_TEST(an_exit_is_told_to_all_that_are_open_and_to_who_comes_after_it)
{
    static const char *const text = "every member has left";
    struct open_calls calls;
    struct heard late;

    open_all(&calls);
    ps_carry_out(
        served->ps, &(struct lane_effect){
                        .kind = LANE_EFFECT_EXIT,
                        .exit_code = 143,
                        .text = "and so it ends",
                        .error = {
                            .status = SUMAC_FAILED_PRECONDITION,
                            .reason = SUMAC_REASON_RUN_ENDED,
                            .text = "every member has left"}});
    assert_true(served->ps->exiting);
    assert_int_equal(served->ps->exit_code, 143);
    assert_string_equal(served->logged, "and so it ends");
    served->told_count = 0;

    assert_int_equal(ps_services_end(served->ps), 2);
    assert_int_equal(ps_services_end(served->ps), 0);

    expect_told_of_the_end(&calls.push, SUMAC_REASON_RUN_ENDED, text);
    expect_told_of_the_end(&calls.pull, SUMAC_REASON_RUN_ENDED, text);
    expect_told_of_the_end(&calls.peer, SUMAC_REASON_RUN_ENDED, text);
    expect_told_of_the_end(&calls.call, SUMAC_REASON_RUN_ENDED, text);
    await(&calls.answered.closed, 1);
    assert_int_equal(calls.answered.error.status, SUMAC_OK);
    begin_stats(&late);
    expect_told_of_the_end(&late, SUMAC_REASON_RUN_ENDED, text);
    begin_call(&late, WIRE_TRANSFER, WIRE_TRANSFER_PUSH, NULL);
    expect_told_of_the_end(&late, SUMAC_REASON_RUN_ENDED, text);
    await_no_links();
    assert_int_equal(served->told_count, 0); /* the core has ended */
}

static uint64_t last_opened(enum lane_stream_kind kind)
{
    uint32_t i = served->told_count;

    while (i > 0 && (served->told[i - 1].event.kind != LANE_EVENT_STREAM_OPENED ||
                     served->told[i - 1].event.stream_kind != kind))
        i--;
    assert_true(i > 0);
    return served->told[i - 1].event.stream;
}

SERVED_TEST(what_comes_when_the_core_has_ended_is_not_told)
{
    struct open_calls calls;

    open_all(&calls);
    await(&calls.answered.closed, 1);
    ps_says(last_opened(LANE_STREAM_PULL), LANE_STREAM_PULL); /* which is soon out */
    ps_exit(served->ps, 137);
    served->told_count = 0;
    await(&calls.pull.messages, 1);

    client_sends(&calls.push, LANE_STREAM_PUSH, 0);
    client_sends(&calls.pull, LANE_STREAM_PULL, 1);
    rpc_call_cancel(calls.call.call);
    await(&calls.call.closed, 1);
    rpc_call_cancel(calls.peer.call);
    await(&calls.peer.closed, 1);
    assert_int_equal(ps_services_end(served->ps), 2);

    expect_told_of_the_end(&calls.push, SUMAC_REASON_TERMINATED, "the ps is about to exit");
    assert_int_equal(calls.push.error.status, SUMAC_UNAVAILABLE);
    await(&calls.pull.closed, 1);
    await_no_links();
    assert_int_equal(served->told_count, 0);
}
