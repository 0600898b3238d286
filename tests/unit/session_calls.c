/* SPDX-License-Identifier: Apache-2.0 */
/* session_calls.c -- the caller's own calls: made at their ps, made again, answered once, over with
 * the session. */
#include "session_talk.h"

#define TIMEOUT_MS 10000u

static const wire_list_request list = WIRE_LIST_REQUEST_INIT;

static void ask(struct talk *talk, const struct session_call *more)
{
    struct session_call wanted = *more;

    wanted.service = WIRE_VARIABLES;
    wanted.method = WIRE_VARIABLES_LIST;
    wanted.request = &list.base;
    wanted.timeout_ms = TIMEOUT_MS;
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &wanted});
}

/* The list that the last event asked for; NULL: none. */
static const struct session_effect *asked(const struct talk *talk)
{
    for (uint32_t i = 0; i < talk->effects.count; i++)
        if (talk->effects.items[i].kind == SESSION_EFFECT_CALL &&
            talk->effects.items[i].service == WIRE_VARIABLES)
            return &talk->effects.items[i];
    return NULL;
}

static void answer(struct talk *talk, uint64_t call)
{
    const wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_CALL_ANSWERED, .call = call, .reply = &reply.base});
}

static void refuse(struct talk *talk, uint64_t call, struct sumac_error error)
{
    talk_step(
        talk,
        (struct session_event){.kind = SESSION_EVENT_CALL_FAILED, .call = call, .error = &error});
}

TALK_TEST(a_call_is_made_at_its_ps_and_its_answer_is_the_callers)
{
    talk_open(talk, 2);

    ask(talk, &(struct session_call){.token = 7, .ps = 1});
    assert_int_equal(asked(talk)->ps, 1);
    assert_ptr_equal(asked(talk)->service, WIRE_VARIABLES);
    assert_int_equal(asked(talk)->method, WIRE_VARIABLES_LIST);
    assert_ptr_equal(asked(talk)->request, &list.base);
    assert_int_equal(asked(talk)->at_us, talk->now_us + 1000 * TIMEOUT_MS);
    const uint64_t call = asked(talk)->call;
    answer(talk, call);

    const struct session_effect *answered = talk_find(talk, SESSION_EFFECT_ANSWERED);
    assert_non_null(answered);
    assert_int_equal(answered->token, 7);
    assert_int_equal(answered->error.status, SUMAC_OK);
    assert_ptr_equal(answered->reply->descriptor, &sumac__v1__list_reply__descriptor);
    answer(talk, call);
    assert_null(talk_find(talk, SESSION_EFFECT_ANSWERED)); /* once */
}

/* As PROTOCOL has it, under "What to do". */
TEST(what_another_try_may_mend_is_tried_again_after_a_while)
{
    static const struct {
        enum sumac_status status;
        enum sumac_reason reason;
        bool again;
    } cases[] = {
        {SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, true},
        {SUMAC_CANCELLED, SUMAC_REASON_UNSPECIFIED, true},
        {SUMAC_UNKNOWN, SUMAC_REASON_UNSPECIFIED, true},
        {SUMAC_INTERNAL, SUMAC_REASON_UNSPECIFIED, true},
        {SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_UNSPECIFIED, true},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED, true},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY, true},
        {SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING, true},
        {SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSPECIFIED, false},
        {SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME, false},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, false},
        {SUMAC_FAILED_PRECONDITION, SUMAC_REASON_NOT_CONTROLLER, false},
        {SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN, false},
        {SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED, false},
        {SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, false}, /* it named its time itself */
        {SUMAC_ABORTED, SUMAC_REASON_TIMED_OUT, true},            /* it came twice */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk talk;
        talk_open(&talk, 1);
        ask(&talk, &(struct session_call){.token = 7});
        const uint64_t call = asked(&talk)->call;

        refuse(
            &talk, call,
            (struct sumac_error){.status = cases[i].status, .reason = cases[i].reason});
        const struct session_effect *answered = talk_find(&talk, SESSION_EFFECT_ANSWERED);
        assert_int_equal(answered == NULL, cases[i].again);
        if (cases[i].again) {
            talk_tick_when_due(&talk);
            assert_non_null(asked(&talk));
            assert_true(asked(&talk)->call > call);
            assert_ptr_equal(asked(&talk)->request, &list.base);
        } else {
            assert_int_equal(answered->error.status, cases[i].status);
            assert_int_equal(answered->error.reason, cases[i].reason);
        }
        talk_close(&talk);
    }
}

TALK_TEST(a_call_that_nobody_takes_fails_in_time_with_what_it_came_to_last)
{
    talk_open(talk, 1);

    ask(talk, &(struct session_call){.token = 7});
    const uint64_t until_us = talk->now_us + 1000 * TIMEOUT_MS;
    uint32_t tries = 1;

    while (talk_find(talk, SESSION_EFFECT_ANSWERED) == NULL) {
        if (asked(talk) != NULL) {
            tries++;
            refuse(
                talk, asked(talk)->call,
                (struct sumac_error){.status = SUMAC_UNAVAILABLE, .text = "Connection refused"});
        } else {
            talk_tick_after(talk, 10);
        }
        assert_true(talk->now_us <= until_us);
    }

    const struct session_effect *answered = talk_find(talk, SESSION_EFFECT_ANSWERED);
    assert_int_equal(answered->error.status, SUMAC_UNAVAILABLE);
    assert_string_equal(answered->error.text, "Connection refused");
    assert_in_range(tries, 8, 20); /* 20 ms, doubled up to 2 s, of which a half may be taken off */
}

TALK_TEST(a_call_that_is_not_answered_is_cancelled_when_its_time_is_over)
{
    talk_open(talk, 1);

    ask(talk, &(struct session_call){.token = 7});
    const uint64_t call = asked(talk)->call;

    talk_tick_after(talk, TIMEOUT_MS / 2);
    talk_tick_after(talk, TIMEOUT_MS / 2 - 1);
    assert_null(talk_find(talk, SESSION_EFFECT_ANSWERED));
    talk_tick_after(talk, 1);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, call);
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ANSWERED)->error.status, SUMAC_DEADLINE_EXCEEDED);
}

/* A delete whose answer was lost, and that came again, would be answered that there is no such
 * variable. */
TALK_TEST(a_call_to_be_made_once_is_not_made_again)
{
    talk_open(talk, 1);

    ask(talk, &(struct session_call){.token = 7, .once = true});

    refuse(talk, asked(talk)->call, (struct sumac_error){.status = SUMAC_UNAVAILABLE});

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ANSWERED)->error.status, SUMAC_UNAVAILABLE);
}

TALK_TEST(a_reader_may_call_what_needs_no_session)
{
    const struct session_config config = {
        .reader = true, .job = "", .ps_addresses = talk_addresses, .ps_count = 2};

    talk_config(talk, &config);
    talk_start(talk);

    ask(talk, &(struct session_call){.token = 7, .ps = 1});
    assert_int_equal(asked(talk)->ps, 1);
    ask(talk, &(struct session_call){.token = 8, .needs_session = true});

    assert_null(asked(talk));
    const struct session_effect *answered = talk_find(talk, SESSION_EFFECT_ANSWERED);
    assert_int_equal(answered->token, 8);
    assert_int_equal(answered->error.status, SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(answered->error.text, "open the client as an observer or a member"));
}

/* What the ps says of itself. */
static void answer_as(struct talk *talk, uint64_t cluster_id, uint64_t epoch, uint64_t incarnation)
{
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    reply.cluster_id = cluster_id;
    reply.epoch = epoch;
    reply.ps_incarnation = incarnation;
    talk_step(
        talk,
        (struct session_event){
            .kind = SESSION_EVENT_CALL_ANSWERED, .call = asked(talk)->call, .reply = &reply.base});
}

/* It was asked again, say, and ps 0 was restarted between: variables of two clusters are no list.
 * The caller hears before its session ends. */
TEST(a_list_of_a_ps_that_was_restarted_ends_the_session)
{
    static const struct {
        uint64_t cluster_id, epoch, incarnation;
        const char *text;
    } cases[] = {
        {41, 1, 100, "ps 0 at h0:2222 was restarted and its state is lost; start the run again"},
        {42, 1, 999, "ps 0 at h0:2222 was restarted and its state is lost; start the run again"},
        {42, 2, 100,
         "ps 0 at h0:2222 went back to epoch 2 and this session is of epoch 1; start the run "
         "again"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct talk talk;
        talk_open(&talk, 1);
        ask(&talk, &(struct session_call){.token = 7});
        answer_as(&talk, cases[i].cluster_id, cases[i].epoch, cases[i].incarnation);

        const struct session_effect *answered = talk_find(&talk, SESSION_EFFECT_ANSWERED);
        const struct session_effect *end = talk_find(&talk, SESSION_EFFECT_ENDED);
        assert_non_null(answered);
        assert_true(answered < end);
        assert_int_equal(answered->error.reason, SUMAC_REASON_STATE_LOST);
        assert_string_equal(answered->error.text, cases[i].text);
        assert_int_equal(end->error.reason, SUMAC_REASON_STATE_LOST);
        talk_close(&talk);
    }
}

TALK_TEST(a_readers_session_ends_so_too)
{
    const struct session_config config = {
        .reader = true, .job = "", .ps_addresses = talk_addresses, .ps_count = 2};

    talk_config(talk, &config);
    talk_start(talk);
    ask(talk, &(struct session_call){.token = 7, .any_ps = true});
    answer_as(talk, 42, 1, 999);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_STATE_LOST);
}

TALK_TEST(a_list_of_the_sessions_cluster_is_taken_and_of_a_ps_that_says_none)
{
    talk_open(talk, 1);

    ask(talk, &(struct session_call){.token = 7});
    answer_as(talk, 42, 1, 100);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ANSWERED)->error.status, SUMAC_OK);
    ask(talk, &(struct session_call){.token = 8});
    answer_as(talk, 0, 0, 0);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ANSWERED)->error.status, SUMAC_OK);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
}

/* What every ps knows is asked of one that was there. */
TALK_TEST(of_any_ps_a_reader_asks_one_that_has_answered)
{
    const struct session_config config = {
        .reader = true, .any_ps = true, .job = "", .ps_addresses = talk_addresses, .ps_count = 2};

    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    talk_known(talk, 1);
    ask(talk, &(struct session_call){.token = 7, .any_ps = true});

    assert_int_equal(asked(talk)->ps, 1);
    answer_as(talk, 42, 1, 101);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_ANSWERED)->ps, 1);
}

TALK_TEST(while_the_session_leaves_a_lost_state_is_the_calls_alone)
{
    talk_open(talk, 1);

    ask(talk, &(struct session_call){.token = 7});
    const uint64_t call = asked(talk)->call;
    talk_leave(talk);

    refuse(
        talk, call,
        (struct sumac_error){.status = SUMAC_DATA_LOSS, .reason = SUMAC_REASON_STATE_LOST});

    assert_non_null(talk_find(talk, SESSION_EFFECT_ANSWERED));
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_left(talk);
    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

TALK_TEST(calls_end_with_the_session)
{
    talk_open(talk, 1);

    ask(talk, &(struct session_call){.token = 7}); /* given: one is under way, and one is due */
    const uint64_t call = asked(talk)->call;
    ask(talk, &(struct session_call){.token = 8});
    refuse(talk, asked(talk)->call, (struct sumac_error){.status = SUMAC_UNAVAILABLE});

    talk_closed(talk, 0, true, 0, 0);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, call);
    assert_null(talk_nth(talk, SESSION_EFFECT_CANCEL_CALL, 1));
    for (uint32_t n = 0; n < 2; n++) {
        const struct session_effect *answered = talk_nth(talk, SESSION_EFFECT_ANSWERED, n);
        assert_int_equal(answered->token, 7 + n);
        assert_int_equal(answered->error.reason, SUMAC_REASON_SESSION_CLOSED);
    }
    ask(talk, &(struct session_call){.token = 9});
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ANSWERED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}

TALK_TEST(so_many_calls_are_under_way_and_no_more)
{
    talk_open(talk, 1);

    for (uint64_t token = 1; token <= SESSION_CALLS_MAX; token++)
        ask(talk, &(struct session_call){.token = token});
    const uint64_t last = asked(talk)->call;

    ask(talk, &(struct session_call){.token = 5000});
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ANSWERED)->error.status, SUMAC_RESOURCE_EXHAUSTED);
    answer(talk, last);
    ask(talk, &(struct session_call){.token = 5001});

    assert_non_null(asked(talk));
}

TALK_TEST(a_call_that_has_failed_a_hundred_times_is_not_made_at_once)
{
    talk_open(talk, 2);
    const struct session_call wanted = {
        .token = 7,
        .ps = 1,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = 1000000};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &wanted});

    for (int failures = 1; failures <= 100; failures++) {
        const struct session_effect *made = asked(talk);
        assert_non_null(made);
        refuse(talk, made->call, (struct sumac_error){.status = SUMAC_UNAVAILABLE, .text = "no"});
        const uint64_t failed_us = talk->now_us;
        for (int ticks = 0; asked(talk) == NULL && ticks < 100; ticks++)
            talk_tick_after(talk, 100);
        if (failures > 10)
            assert_in_range(talk->now_us - failed_us, 1000000, 2100000);
    }
}
