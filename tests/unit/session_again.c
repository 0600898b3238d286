/* SPDX-License-Identifier: Apache-2.0 */
/* session_again.c -- streams that break, and what is said again on the next one: nobody knows what
 * was heard. */
#include "session_talk.h"

/* Whether the ps has it nobody knows: its answer may have been lost, or the commit itself. */
TALK_TEST(after_a_reconnect_a_commit_that_was_said_is_said_again)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_writable(talk, 0);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    assert_int_equal(talk_request(talk, 0)->commit->commit_through, 1); /* given */

    talk_reconnect(talk, 0);

    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 1);
    assert_non_null(talk_request(talk, 0)->commit);
    assert_int_equal(talk_request(talk, 0)->commit->commit_through, 1);
}

/* A message that was sent may not have come. */
TALK_TEST(after_a_reconnect_the_clock_is_said_again)
{
    talk_open(talk, 2);
    uint8_t data[8];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    const struct session_push push = {
        .token = 1, .pieces = &piece, .piece_count = 1, .finishes_step = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_done(talk, 0, 1);
    assert_int_equal(talk_request(talk, 1)->commit->clock, 1); /* given */

    talk_reconnect(talk, 1);

    assert_non_null(talk_request(talk, 1));
    assert_int_equal(talk_request(talk, 1)->commit->clock, 1);
}

/* Each ps has opened the session at the slowest clock that it knew itself. */
TALK_TEST(a_joiner_says_the_clock_that_it_starts_at_to_every_ps)
{
    talk_found(talk, 2);

    talk->first_clock = 7;
    talk_joined(talk, 2);
    for (uint32_t ps = 0; ps < 2; ps++) {
        talk_hello(talk, ps);
        talk_greet(talk, ps);
        assert_non_null(talk_request(talk, ps));
        assert_int_equal(talk_request(talk, ps)->commit->clock, 7);
        talk_writable(talk, ps);
        assert_null(talk_request(talk, ps)); /* once */
    }
}

TALK_TEST(after_a_reconnect_all_that_is_not_done_is_sent_again_in_order)
{
    talk_open(talk, 2);

    talk_push_to(talk, 1, 3);
    talk_writable(talk, 0);
    talk_push_to(talk, 2, 3);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1); /* given: 1 is committed, and not known to be done */

    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
    const uint64_t lost_us = talk->now_us;
    talk_tick_when_due(talk);
    const struct session_effect *open = talk_find(talk, SESSION_EFFECT_OPEN_STREAM);
    assert_non_null(open);
    assert_int_equal(open->generation, 2);
    assert_in_range(talk->now_us - lost_us, 1000, 20000);
    talk_hello(talk, 0);
    talk_greet(talk, 0);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2);
    assert_int_equal(request->parts[0]->sequence, 1);
    assert_true(request->parts[0]->first);
    assert_int_equal(request->parts[1]->sequence, 2);
    assert_int_equal(request->commit->commit_through, 1);
}

TALK_TEST(a_part_that_broke_off_in_the_middle_starts_from_its_first_chunk)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 64;
    talk_open_with(talk, &config);
    uint8_t data[200];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    talk_push(talk, 1, &piece, 1);
    talk_writable(talk, 0);

    talk_reconnect(talk, 0);

    const wire_part *part = talk_request(talk, 0)->parts[0];
    assert_true(part->first);
    assert_int_equal(part->pieces[0]->offset_bytes, 0);
}

TALK_TEST(what_an_older_stream_still_delivers_is_dropped)
{
    talk_open(talk, 1);

    talk_push_to(talk, 1, 1);
    const uint64_t old = talk->generation[0][SESSION_PUSH_STREAM];
    talk_broke(talk, 0, SESSION_PUSH_STREAM);
    const uint64_t current = talk->generation[0][SESSION_PUSH_STREAM];

    talk->generation[0][SESSION_PUSH_STREAM] = old;
    talk_done(talk, 0, 1);
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    talk_lost(talk, 0, SESSION_PUSH_STREAM); /* nor does its end count once more */

    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
    talk->generation[0][SESSION_PUSH_STREAM] = current;
}

TALK_TEST(a_part_done_while_it_is_sent_again_is_cut_short)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 64;
    talk_open_with(talk, &config);
    uint8_t data[200];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    talk_push(talk, 1, &piece, 1);

    talk_done(talk, 0, 1); /* another stream had brought it whole */
    assert_non_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    talk_push_out(talk, 2, 1);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2);
    assert_int_equal(request->parts[0]->sequence, 1);
    assert_true(request->parts[0]->last);
    assert_int_equal(request->parts[0]->n_pieces, 0);
    assert_int_equal(request->parts[1]->sequence, 2);
}

/* The message before it had too little room for its first bytes. */
TALK_TEST(a_part_done_when_the_stream_has_none_of_it_is_not_cut_short)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 128;
    talk_open_with(talk, &config);
    uint8_t data[100];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    for (uint64_t token = 1; token <= 2; token++) {
        talk_push(talk, token, &piece, 1);
        talk_writable(talk, 0);
    }
    talk_reconnect(talk, 0);
    assert_int_equal(talk_request(talk, 0)->n_parts, 1); /* given: push 2 is the next one */

    talk_done(talk, 0, 2); /* another stream had brought it whole */
    talk_writable(talk, 0);

    assert_null(talk_request(talk, 0));
    talk_push_to(talk, 3, 1);
    assert_int_equal(talk_request(talk, 0)->n_parts, 1);
    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 3);
}

TALK_TEST(a_part_done_before_its_turn_to_be_sent_again_is_not_sent)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 64;
    talk_open_with(talk, &config);
    uint8_t data[200];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    talk_push(talk, 1, &piece, 1);
    talk_push_to(talk, 2, 1); /* given: it comes after the chunks of the one before */

    talk_done(talk, 0, 2); /* another stream had brought it */

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->token, 2);
    for (int i = 0; i < 6; i++) {
        talk_writable(talk, 0);
        const wire_push_request *request = talk_request(talk, 0);
        for (size_t part = 0; request != NULL && part < request->n_parts; part++)
            assert_int_equal(request->parts[part]->sequence, 1);
    }
}

/* The new stream has never heard of it. */
TALK_TEST(a_part_that_was_to_be_cut_short_is_not_on_the_next_stream)
{
    struct session_config config = talk_member(1);

    config.chunk_bytes = 64;
    talk_open_with(talk, &config);
    uint8_t data[200];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    talk_push(talk, 1, &piece, 1);
    talk_done(talk, 0, 1);

    talk_reconnect(talk, 0);

    assert_null(talk_sent(talk, 0));
}

/* As a stream that broke, which the session hears of in the same way. */
TALK_TEST(a_stream_that_there_was_no_memory_for_is_opened_later)
{
    talk_open(talk, 1);

    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    talk_tick_when_due(talk);
    assert_int_equal(talk->generation[0][SESSION_PUSH_STREAM], 2);

    talk_undone(talk, SESSION_EFFECT_OPEN_STREAM);
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
    talk_tick_when_due(talk);

    assert_int_equal(talk->generation[0][SESSION_PUSH_STREAM], 3);
}

/* After five breaks that is 320 ms at least. */
TALK_TEST(a_stream_that_broke_is_not_opened_before_it_is_due)
{
    talk_open(talk, 1);

    for (int i = 0; i < 5; i++)
        talk_broke(talk, 0, SESSION_PUSH_STREAM);

    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    talk_tick_after(talk, 300);

    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
}

TALK_TEST(retries_wait_longer_and_longer_up_to_the_bound)
{
    talk_open(talk, 1);

    for (int i = 0; i < 9; i++)
        talk_broke(talk, 0, SESSION_PUSH_STREAM);

    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    const uint64_t lost_us = talk->now_us;
    while (talk_find(talk, SESSION_EFFECT_OPEN_STREAM) == NULL)
        talk_tick_when_due(talk);

    assert_in_range(talk->now_us - lost_us, 1000000, 2000000);
}

TALK_TEST(no_retry_waits_longer_than_the_configured_bound)
{
    struct session_config config = talk_member(1);

    config.backoff_ms_max = 100;
    talk_open_with(talk, &config);
    for (int i = 0; i < 9; i++)
        talk_broke(talk, 0, SESSION_PUSH_STREAM);

    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    talk_tick_after(talk, 100);

    assert_non_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
}

TALK_TEST(a_greeting_makes_the_next_retry_a_quick_one_again)
{
    talk_open(talk, 1);

    for (int i = 0; i < 10; i++) {
        talk_lost(talk, 0, SESSION_PUSH_STREAM);
        const uint64_t lost_us = talk->now_us;
        while (talk_find(talk, SESSION_EFFECT_OPEN_STREAM) == NULL)
            talk_tick_when_due(talk);

        assert_in_range(talk->now_us - lost_us, 1000, 20000);
        talk_hello(talk, 0);
        talk_greet(talk, 0);
    }
}

/* ---- what a stream ends with */

/* A push is under way; ps 1 ends that stream. */
static void end_stream_of_a_push(
    struct talk *talk, enum session_stream_kind kind, const struct sumac_error *end)
{
    uint8_t into[4];
    const struct session_piece piece = talk_piece(1, 11, into, sizeof into);
    const struct session_pull pull = {.token = 2, .pieces = &piece, .piece_count = 1};

    talk_open(talk, 2);
    talk_push_out(talk, 1, 2);
    if (kind == SESSION_PULL_STREAM)
        talk_pull(talk, &pull);
    talk_ended(talk, 1, kind, end);
}

static void assert_ended_with(const struct talk *talk, const struct sumac_error *end)
{
    const struct session_effect *ended = talk_find(talk, SESSION_EFFECT_ENDED);
    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);

    assert_non_null(ended);
    assert_int_equal(ended->error.status, end->status);
    assert_int_equal(ended->error.reason, end->reason);
    assert_non_null(strstr(ended->error.text, "ps 1 at h1:2222"));
    assert_non_null(strstr(ended->error.text, end->text));
    assert_non_null(pushed); /* its caller does not wait for good */
    assert_int_equal(pushed->error.reason, end->reason);
    assert_true(talk_state(talk).ended);
}

/* The parts that would be sent again are what ended it. */
TEST(a_push_stream_that_ends_for_what_was_said_ends_the_session)
{
    static const struct sumac_error ends[] = {
        {SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED, "a part of push 0"},
        {SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED, "WITHDRAW"},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_MESSAGE_TOO_LARGE, "a header of 2 MiB"},
        {SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSPECIFIED, "no such method"}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct talk talk;
        end_stream_of_a_push(&talk, SESSION_PUSH_STREAM, &ends[i]);
        assert_ended_with(&talk, &ends[i]);
        talk_close(&talk);
    }
}

TEST(a_push_stream_that_ends_for_want_of_room_or_by_chance_is_opened_again)
{
    static const struct sumac_error ends[] = {
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_IN_FLIGHT, "1024 parts"},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_REFUSED, "1024 refused"},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for a part"},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY, "too many streams"},
        {SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "no hello"},
        {SUMAC_ABORTED, SUMAC_REASON_STREAM_REPLACED, "a later one"},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED, "too many calls"},
        {SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "Socket closed"},
        {SUMAC_OK, SUMAC_REASON_UNSPECIFIED, ""}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct talk talk;
        end_stream_of_a_push(&talk, SESSION_PUSH_STREAM, &ends[i]);
        assert_null(talk_find(&talk, SESSION_EFFECT_ENDED));
        talk_tick_when_due(&talk);
        assert_int_equal(talk.generation[1][SESSION_PUSH_STREAM], 2);
        talk_close(&talk);
    }
}

static const struct sumac_error of_no_session = {
    SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_UNKNOWN, "of no session that is open"};

/* A ps that has closed a session says CLOSED to its next hello, and with it which pushes count. */
TALK_TEST(a_push_stream_of_no_session_is_opened_once_more_and_hears_what_counts)
{
    end_stream_of_a_push(talk, SESSION_PUSH_STREAM, &of_no_session);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_when_due(talk);
    assert_int_equal(talk->generation[1][SESSION_PUSH_STREAM], 2);
    talk_hello(talk, 1);
    talk_greet(talk, 1);
    talk_closed(talk, 1, true, 1, 0);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.status, SUMAC_OK);
    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_SESSION_CLOSED);
}

TALK_TEST(one_that_ends_so_again_ends_the_session)
{
    end_stream_of_a_push(talk, SESSION_PUSH_STREAM, &of_no_session);
    talk_tick_when_due(talk);
    talk_hello(talk, 1);
    talk_greet(talk, 1);
    talk_ended(talk, 1, SESSION_PUSH_STREAM, &of_no_session);

    assert_ended_with(talk, &of_no_session);
}

TALK_TEST(a_pull_stream_of_no_session_ends_the_session)
{
    end_stream_of_a_push(talk, SESSION_PULL_STREAM, &of_no_session);

    assert_ended_with(talk, &of_no_session);
    assert_non_null(strstr(
        talk_find(talk, SESSION_EFFECT_ENDED)->error.text,
        "ps 1 at h1:2222 ended the pull stream: "));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.reason, of_no_session.reason);
}

/* The answer to the leave says how the session ended. */
TALK_TEST(while_the_session_leaves_no_end_of_a_stream_is_an_error)
{
    talk_open(talk, 1);
    const struct sumac_error malformed = {
        SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED, "a part of push 0"};

    talk_leave(talk);
    talk_ended(talk, 0, SESSION_PUSH_STREAM, &malformed);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_left(talk);

    assert_non_null(talk_find(talk, SESSION_EFFECT_LEFT));
}

/* ---- a wait says why */

static const struct sumac_error short_of_memory = {
    SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "ps 1 has no memory for a part"};

/* That of ps 1, which has no memory, is told of the push of this token. */
static void assert_troubled(const struct talk *talk, uint64_t token)
{
    struct session_trouble trouble;

    assert_true(session_find_trouble(talk->session, token, &trouble));
    assert_int_equal(trouble.ps, 1);
    assert_int_equal(trouble.stream_kind, SESSION_PUSH_STREAM);
    assert_string_equal(trouble.text, short_of_memory.text);
}

static bool is_troubled(const struct talk *talk, uint64_t token)
{
    struct session_trouble trouble;

    return session_find_trouble(talk->session, token, &trouble);
}

/* It is heard from all the time. */
TALK_TEST(a_push_knows_why_a_ps_that_greets_takes_nothing)
{
    talk_open(talk, 2);

    talk_push_out(talk, 1, 1);
    talk_push_out(talk, 2, 3);
    talk_push_out(talk, 3, 1);
    assert_false(is_troubled(talk, 2));

    talk_ended(talk, 1, SESSION_PUSH_STREAM, &short_of_memory);
    assert_troubled(talk, 2);
    assert_troubled(talk, 3);             /* it is committed after push 2 */
    assert_false(is_troubled(talk, 1));   /* it does not wait for ps 1 */
    assert_false(is_troubled(talk, 100)); /* there is none */
    while (talk->generation[1][SESSION_PUSH_STREAM] == 1)
        talk_tick_when_due(talk);
    talk_hello(talk, 1);
    talk_greet(talk, 1);
    assert_troubled(talk, 2); /* a greeting is no reason to forget it */

    talk_staged(talk, 1, 2);

    assert_false(is_troubled(talk, 2));
    assert_false(is_troubled(talk, 3));
}

TALK_TEST(a_refusal_is_the_end_of_its_streams_trouble)
{
    talk_open(talk, 2);
    struct session_trouble trouble;

    talk_tick_after(talk, 500);
    talk_push_out(talk, 1, 2);
    talk_ended(talk, 1, SESSION_PUSH_STREAM, &short_of_memory);
    assert_true(session_find_trouble(talk->session, 1, &trouble));
    assert_int_equal(trouble.ended_us, talk->now_us);
    while (talk->generation[1][SESSION_PUSH_STREAM] == 1)
        talk_tick_when_due(talk);
    talk_hello(talk, 1);
    talk_greet(talk, 1);

    talk_refused(talk, 1, 1);

    assert_false(is_troubled(talk, 1));
}

/* Nor is it forgotten when the next one ends, which says what it ended with. */
TALK_TEST(a_push_without_a_sequence_knows_why_its_ps_has_not_greeted)
{
    talk_join_member(talk, 2);

    talk_hello(talk, 0);
    talk_greet(talk, 0);
    talk_push_to(talk, 1, 1);
    talk_push_to(talk, 2, 3);
    assert_false(is_troubled(talk, 2));
    talk_lost(talk, 1, SESSION_PUSH_STREAM);
    assert_true(is_troubled(talk, 2));
    while (talk->generation[1][SESSION_PUSH_STREAM] == 1)
        talk_tick_when_due(talk);

    talk_ended(talk, 1, SESSION_PUSH_STREAM, &short_of_memory);

    assert_troubled(talk, 2);
    assert_false(is_troubled(talk, 1));
}

/* Nor has it one for another ps before it: of those that wait, the first that is held up tells. */
TALK_TEST(a_push_that_waits_behind_others_knows_what_they_wait_for)
{
    talk_join_member(talk, 3);

    talk_hello(talk, 0);
    talk_greet(talk, 0);
    talk_push_to(talk, 1, 4); /* a greeting of ps 2 that is still to come is no trouble */
    talk_push_to(talk, 2, 2);
    talk_push_to(talk, 3, 1);

    talk_ended(talk, 1, SESSION_PUSH_STREAM, &short_of_memory);

    assert_false(is_troubled(talk, 1));
    assert_troubled(talk, 2);
    assert_troubled(talk, 3);
    assert_false(is_troubled(talk, 100)); /* there is none */
}

TALK_TEST(of_two_pulls_each_knows_its_own_ps)
{
    talk_open(talk, 2);
    uint8_t into[8];
    struct session_trouble trouble;

    for (uint32_t ps = 0; ps < 2; ps++) {
        const struct session_piece piece = talk_piece(ps, 10 + ps, into, sizeof into);
        talk_step(
            talk, (struct session_event){
                      .kind = SESSION_EVENT_PULL,
                      .pull = &(struct session_pull){
                          .token = 5 + ps, .pieces = &piece, .piece_count = 1}});
    }

    talk_lost(talk, 0, SESSION_PULL_STREAM);

    assert_true(session_find_trouble(talk->session, 5, &trouble));
    assert_int_equal(trouble.ps, 0);
    assert_int_equal(trouble.stream_kind, SESSION_PULL_STREAM);
    assert_false(is_troubled(talk, 6));
}

/* Its push stream broke; the next one was due when its pull stream said that it exits. */
TALK_TEST(a_ps_that_was_terminated_is_not_dialled_again)
{
    talk_open(talk, 2);
    uint8_t into[8];
    const struct sumac_error exits = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "SIGTERM"};

    talk_push_out(talk, 7, 3);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_done(talk, 0, 1);
    const struct session_piece piece = talk_piece(0, 10, into, sizeof into);
    const struct session_pull pull = {.token = 5, .pieces = &piece, .piece_count = 1};
    talk_pull(talk, &pull);
    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    talk_ended(talk, 0, SESSION_PULL_STREAM, &exits);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_after(talk, 400);

    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
}
