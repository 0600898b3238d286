/* SPDX-License-Identifier: Apache-2.0 */
/* session_waits.c -- what ends each wait of a session if nothing else happens: a row for each, in
 * which only the ticks come that the session has asked for.
 */
#include "session_talk.h"

#define TOKEN 5u
/* The lease asks for a tick every three seconds: what ends sooner has to ask by itself. */
#define CALL_MS 500u
#define PULL_MS 500u
#define PS_LOST_MS 400u
#define TICKS_MAX 1000u /* of one wait: a session that asks for more of them spins */

static uint8_t into[8];

static void begin_to_find(struct talk *talk)
{
    const struct session_config config = talk_member(2);

    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
}

static void begin_to_read(struct talk *talk)
{
    const struct session_config config = {
        .reader = true, .ps_addresses = talk_addresses, .ps_count = 2};

    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
}

static void begin_to_join(struct talk *talk)
{
    const struct session_config config = talk_member(2);

    talk_config(talk, &config);
    talk_start(talk);
    assert_non_null(talk_join(talk));
}

static void fail_the_join(struct talk *talk)
{
    begin_to_join(talk);
    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED);
    assert_null(talk_join(talk));
}

static void join(struct talk *talk)
{
    const struct session_config config = talk_member(2);

    talk_config(talk, &config);
    talk_start(talk);
    talk_joined_with(talk, 2, PS_LOST_MS);
}

static void open_all(struct talk *talk)
{
    join(talk);
    for (uint32_t ps = 0; ps < 2; ps++) {
        talk_hello(talk, ps);
        talk_greet(talk, ps);
    }
}

/* Silence ends nothing before the lease is to be renewed. */
static void open_long(struct talk *talk) { talk_open(talk, 2); }

static void lose_a_push_stream(struct talk *talk)
{
    open_all(talk);
    talk_lost(talk, 1, SESSION_PUSH_STREAM);
}

static void pull(struct talk *talk)
{
    const struct session_piece piece = talk_piece(1, 10, into, sizeof into);
    const struct session_pull wanted = {
        .token = TOKEN, .pieces = &piece, .piece_count = 1, .timeout_ms = PULL_MS};

    open_all(talk);
    talk_pull(talk, &wanted);
}

static void lose_a_pull_stream(struct talk *talk)
{
    pull(talk);
    talk_lost(talk, 1, SESSION_PULL_STREAM);
}

static void call_as(struct talk *talk, uint32_t timeout_ms)
{
    static const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const struct session_call wanted = {
        .token = TOKEN,
        .ps = 1,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = timeout_ms};

    open_all(talk);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &wanted});
    assert_non_null(talk_find(talk, SESSION_EFFECT_CALL));
}

static void call(struct talk *talk) { call_as(talk, CALL_MS); }

static void fail_a_call(struct talk *talk)
{
    const struct sumac_error error = {.status = SUMAC_UNAVAILABLE, .text = "no"};

    call(talk);
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_CALL_FAILED,
                  .call = talk_find(talk, SESSION_EFFECT_CALL)->call,
                  .error = &error});
}

static void have_no_memory_for_a_call(struct talk *talk)
{
    call(talk);
    talk_undone(talk, SESSION_EFFECT_CALL);
}

static void have_no_memory_for_a_stream(struct talk *talk)
{
    lose_a_push_stream(talk);
    while (talk_find(talk, SESSION_EFFECT_OPEN_STREAM) == NULL)
        talk_tick_after(talk, 10);
    talk_undone(talk, SESSION_EFFECT_OPEN_STREAM);
}

/* After a while in which the ticks of the opening have come. */
static void push_to_a_silent_ps(struct talk *talk)
{
    open_all(talk);
    talk_tick_after(talk, 1000);
    talk_push_out(talk, TOKEN, 2);
}

static void fail_a_renewal(struct talk *talk)
{
    open_all(talk);
    while (talk_called(talk, WIRE_SESSIONS_RENEW) == NULL)
        talk_tick_after(talk, 100);
    talk_call_failed(talk, WIRE_SESSIONS_RENEW, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED);
}

static void be_closed_undecided(struct talk *talk)
{
    open_all(talk);
    talk_tick_after(talk, 1000);
    talk_closed(talk, 0, false, 0, 0);
}

static void leave(struct talk *talk)
{
    open_all(talk);
    talk_leave(talk);
}

static void hear_that_one_is_terminated(struct talk *talk)
{
    const struct sumac_error exits = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "SIGTERM"};

    open_long(talk);
    talk_push_out(talk, TOKEN, 3);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_done(talk, 0, 1);
    talk_ended(talk, 0, SESSION_PUSH_STREAM, &exits);
}

/* Its contribution is done, and the caller wants no more of its round. */
static void have_met(struct talk *talk)
{
    static wire_collective collective;
    const struct session_piece piece = talk_piece(0, 0, into, sizeof into);
    const struct session_push push = {
        .token = TOKEN, .pieces = &piece, .piece_count = 1, .weight = 1, .collective = &collective};

    collective = (wire_collective)WIRE_COLLECTIVE_INIT;
    open_all(talk);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_writable(talk, 0);
    talk_done(talk, 0, 1);
    talk_step(
        talk, (struct session_event){.kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = TOKEN});
    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH));
}

static const struct wait {
    const char *name;
    void (*begin)(struct talk *talk);
    enum session_effect_kind ends_with;
    uint32_t most_ms;
} waits[] = {
    {"a line while ps are looked for", begin_to_find, SESSION_EFFECT_LOG, 5000},
    {"ps that are never found", begin_to_find, SESSION_EFFECT_ENDED, LOST_MS},
    {"ps that a reader never finds", begin_to_read, SESSION_EFFECT_ENDED, LOST_MS},
    {"a join without an answer", begin_to_join, SESSION_EFFECT_ENDED, LOST_MS},
    {"a join that failed", fail_the_join, SESSION_EFFECT_CALL, 20},
    {"streams that are never open", join, SESSION_EFFECT_ENDED, PS_LOST_MS},
    {"the lease", open_long, SESSION_EFFECT_CALL, LEASE_MS / 3},
    {"a renewal that failed", fail_a_renewal, SESSION_EFFECT_CALL, LEASE_MS / 3},
    {"a push stream that broke", lose_a_push_stream, SESSION_EFFECT_OPEN_STREAM, 20},
    {"a ps that is not reached", lose_a_push_stream, SESSION_EFFECT_ENDED, PS_LOST_MS},
    {"a pull stream that broke", lose_a_pull_stream, SESSION_EFFECT_OPEN_STREAM, 20},
    {"a pull without an answer", pull, SESSION_EFFECT_PULLED, PULL_MS + 250},
    {"a call without an answer", call, SESSION_EFFECT_ANSWERED, CALL_MS},
    {"a call that failed", fail_a_call, SESSION_EFFECT_CALL, 20},
    {"a call that was not made", have_no_memory_for_a_call, SESSION_EFFECT_CALL, 20},
    {"a stream that was not opened", have_no_memory_for_a_stream, SESSION_EFFECT_OPEN_STREAM, 40},
    {"a push without an answer", push_to_a_silent_ps, SESSION_EFFECT_ENDED, PS_LOST_MS},
    {"a settle that is not decided", be_closed_undecided, SESSION_EFFECT_ENDED, PS_LOST_MS},
    {"a leave without an answer", leave, SESSION_EFFECT_ENDED, PS_LOST_MS},
    {"another ps when one is terminated", hear_that_one_is_terminated, SESSION_EFFECT_ENDED, 2000},
    {"rounds that are over", have_met, SESSION_EFFECT_SEND_PUSH, 50},
};

static bool has_ended(const struct talk *talk, enum session_effect_kind kind)
{
    for (uint32_t i = 0; i < talk->effects.count; i++) {
        const struct session_effect *effect = &talk->effects.items[i];
        if (effect->kind == kind && (kind != SESSION_EFFECT_ANSWERED || effect->token == TOKEN))
            return true;
    }
    return false;
}

/* Only ticks come, as they were asked for. False: none is asked for, or it is too late, or the
 * session asks for ticks without end. */
static bool ends_by_ticks_alone(struct talk *talk, enum session_effect_kind kind, uint64_t until_us)
{
    uint32_t ticks = 0;

    do {
        if (talk->wake_us > until_us || ticks++ == TICKS_MAX)
            return false;
        if (talk->wake_us > talk->now_us)
            talk->now_us = talk->wake_us;
        talk_step(talk, (struct session_event){.kind = SESSION_EVENT_TICK});
    } while (!has_ended(talk, kind));
    return true;
}

/* A call that is over after a millisecond: the tick that it asks for is not the one of the wait. */
static void ask_for_an_earlier_tick(struct talk *talk)
{
    static const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const struct session_call wanted = {
        .token = TOKEN + 1,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = 1};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &wanted});
}

static void assert_every_wait_ends(void (*then)(struct talk *talk))
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct wait *wait = &waits[i];
        struct talk talk;

        wait->begin(&talk); /* given */
        const uint64_t until_us = talk.now_us + 1000 * (uint64_t)wait->most_ms;
        if (then != NULL)
            then(&talk);
        if (!ends_by_ticks_alone(&talk, wait->ends_with, until_us)) /* when, then */
            fail_msg("%s: it goes on after %u ms", wait->name, wait->most_ms);
        talk_close(&talk);
    }
}

TEST(every_wait_ends_by_the_ticks_that_it_asks_for) { assert_every_wait_ends(NULL); }

TEST(a_tick_for_another_wait_puts_none_to_sleep)
{
    assert_every_wait_ends(ask_for_an_earlier_tick);
}
