/* SPDX-License-Identifier: Apache-2.0 */
/* session_pull.c -- pulls as conversations: asked for, received into the caller's memory, asked
 * again. */
#include "session_talk.h"

static const wire_pull_request *asked(const struct talk *talk)
{
    const struct session_effect *effect = talk_find(talk, SESSION_EFFECT_SEND_PULL);

    return effect == NULL ? NULL : effect->pull_request;
}

/* One answer of one piece. */
struct answer {
    uint64_t request, shard, offset, version;
    const void *data;
    size_t bytes;
    bool last;
};

static void
answer_of(struct talk *talk, uint32_t ps, const struct answer *given, uint64_t generation)
{
    wire_piece piece = WIRE_PIECE_INIT;

    piece.shard_id = given->shard;
    piece.offset_bytes = given->offset;
    piece.bytes = given->bytes;
    wire_piece *pieces[] = {&piece};
    uint64_t version = given->version;
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    answer.request = given->request;
    answer.n_pieces = 1;
    answer.pieces = pieces;
    answer.n_versions = given->offset == 0 && given->version != 0;
    answer.versions = &version;
    answer.last = given->last;
    const size_t half = given->bytes / 2; /* the payload comes in two spans */
    const struct span spans[] = {
        {.data = given->data, .bytes = half},
        {.data = (const uint8_t *)given->data + half, .bytes = given->bytes - half}};
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PULL_ANSWER,
                  .ps = ps,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = generation,
                  .pull_answer = &answer,
                  .payload = half > 0 ? spans : &spans[1],
                  .payload_spans = half > 0 ? 2 : 1});
}

static void answer(struct talk *talk, uint32_t ps, const struct answer *given)
{
    answer_of(talk, ps, given, talk->generation[ps][SESSION_PULL_STREAM]);
}

static void answer_status(
    struct talk *talk, uint32_t ps, uint64_t request, enum sumac_status status,
    enum sumac_reason reason)
{
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    answer.request = request;
    answer.status = (uint32_t)status;
    answer.reason = (Sumac__V1__Reason)reason;
    answer.message = "the pull ended";
    talk_pull_answer(talk, ps, &answer);
}

static void pull_piece(struct talk *talk, struct session_piece piece)
{
    talk_pull(talk, &(struct session_pull){.token = 5, .pieces = &piece, .piece_count = 1});
}

/* The piece is asked for, with that number. */
static uint64_t ask_for(struct talk *talk, struct session_piece piece)
{
    pull_piece(talk, piece);
    talk_pull_writable(talk, piece.ps);
    return asked(talk)->request;
}

/* ---- the ordinary way */

TALK_TEST(the_first_pull_opens_a_stream_and_its_message_has_the_hello)
{
    talk_open(talk, 2);
    uint8_t into[8];

    pull_piece(talk, talk_piece(1, 11, into, sizeof into));

    const struct session_effect *open = talk_find(talk, SESSION_EFFECT_OPEN_STREAM);
    assert_int_equal(open->ps, 1);
    assert_int_equal(open->stream_kind, SESSION_PULL_STREAM);
    talk_pull_writable(talk, 1);
    const wire_pull_request *request = asked(talk);
    assert_int_equal(request->hello->generation, 1);
    assert_int_equal(request->hello->ps_incarnation, 101);
    assert_int_equal(request->n_pieces, 1);
    assert_int_equal(request->pieces[0]->shard_id, 11);
    assert_int_equal(request->pieces[0]->bytes, 8);
    assert_int_equal(request->timeout_ms, 60000);
}

TALK_TEST(no_more_pulls_are_asked_for_than_the_ps_takes)
{
    talk_open(talk, 1);
    uint8_t into[8];
    const struct session_piece piece = talk_piece(0, 10, into, sizeof into);

    talk_pull(talk, &(struct session_pull){.token = 5, .pieces = &piece, .piece_count = 1});
    talk_pull_writable(talk, 0);
    const uint64_t first = asked(talk)->request;
    wire_limits limits = WIRE_LIMITS_INIT;
    limits.pulls_per_stream_max = 1;
    wire_greeting greeting = WIRE_GREETING_INIT;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.limits = &limits;
    wire_pull_answer greeted = WIRE_PULL_ANSWER_INIT;
    greeted.greeting = &greeting;
    talk_pull_answer(talk, 0, &greeted);
    talk_pull_writable(talk, 0);

    talk_pull(talk, &(struct session_pull){.token = 6, .pieces = &piece, .piece_count = 1});
    assert_null(asked(talk)); /* it waits */
    answer(
        talk, 0,
        &(struct answer){
            .request = first, .shard = 10, .data = "12345678", .bytes = 8, .last = true});

    assert_int_equal(asked(talk)->request, first + 1);
    talk_pull_writable(talk, 0);
    talk_pull(talk, &(struct session_pull){.token = 7, .pieces = &piece, .piece_count = 1});
    assert_null(asked(talk));
    answer_status(talk, 0, first + 1, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_SHARD);

    assert_int_equal(asked(talk)->request, first + 2); /* one that is refused makes room, too */
}

TALK_TEST(chunks_land_in_the_callers_memory_in_their_order)
{
    talk_open(talk, 1);
    char into[9] = "........";
    const struct session_piece pieces[] = {
        talk_piece(0, 10, into, 5), talk_piece(0, 12, into + 5, 3)};

    talk_pull(talk, &(struct session_pull){.token = 5, .pieces = pieces, .piece_count = 2});
    talk_pull_writable(talk, 0);
    const uint64_t request = asked(talk)->request;

    answer(
        talk, 0,
        &(struct answer){.request = request, .shard = 10, .data = "abc", .bytes = 3, .version = 4});
    answer(
        talk, 0,
        &(struct answer){.request = request, .shard = 10, .offset = 3, .data = "de", .bytes = 2});
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    answer(
        talk, 0,
        &(struct answer){.request = request, .shard = 12, .data = "fgh", .bytes = 3, .last = true});

    assert_string_equal(into, "abcdefgh");
    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_int_equal(pulled->token, 5);
    assert_int_equal(pulled->error.status, SUMAC_OK);
    assert_int_equal(pulled->versions[0], 4);
}

TALK_TEST(a_pull_over_two_ps_is_over_when_both_have_answered)
{
    talk_open(talk, 2);
    char into[5] = "....";
    const struct session_piece pieces[] = {
        talk_piece(1, 11, into + 2, 2), talk_piece(0, 10, into, 2)};

    talk_pull(talk, &(struct session_pull){.token = 5, .pieces = pieces, .piece_count = 2});
    talk_pull_writable(talk, 0);
    const uint64_t first = asked(talk)->request;
    talk_pull_writable(talk, 1);
    const uint64_t second = asked(talk)->request;

    answer(
        talk, 1,
        &(struct answer){
            .request = second, .shard = 11, .data = "cd", .bytes = 2, .version = 9, .last = true});
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    answer(
        talk, 0,
        &(struct answer){
            .request = first, .shard = 10, .data = "ab", .bytes = 2, .version = 7, .last = true});

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_string_equal(into, "abcd");
    assert_int_equal(pulled->versions[0], 9); /* in the order of the caller's pieces */
    assert_int_equal(pulled->versions[1], 7);
}

/* ---- own pushes */

static uint64_t after_sequence(enum rule broken, bool after_own_pushes)
{
    struct talk talk;
    struct session_config config = talk_member(2);

    config.broken = broken == RULE_COUNT ? 0 : rule_bit(broken);
    talk_open_with(&talk, &config);
    talk_push_to(&talk, 1, 1); /* given: 1 on ps 0, 2 on ps 1 */
    talk_push_to(&talk, 2, 2);
    uint8_t into[8];
    const struct session_piece piece = talk_piece(0, 10, into, sizeof into);
    talk_pull(
        &talk,
        &(struct session_pull){
            .token = 5, .pieces = &piece, .piece_count = 1, .after_own_pushes = after_own_pushes});
    talk_pull_writable(&talk, 0);
    const uint64_t sequence = asked(&talk)->after_sequence;
    talk_close(&talk);
    return sequence;
}

TEST(a_pull_waits_for_its_own_last_push_on_that_ps)
{
    assert_int_equal(after_sequence(RULE_COUNT, true), 1);
    assert_int_equal(after_sequence(RULE_COUNT, false), 0);
}

TEST(without_after_sequence_per_ps_it_waits_for_the_last_push_anywhere)
{
    assert_int_equal(after_sequence(RULE_after_sequence_per_ps, true), 2);
}

TALK_TEST(a_pull_after_pushes_that_have_no_sequence_yet_waits_for_them)
{
    talk_join_member(talk, 2);

    talk_hello(talk, 0);
    talk_greet(talk, 0);
    talk_push_to(talk, 1, 3); /* given: push 1 waits for the greeting of ps 1 */
    uint8_t into[8];
    const struct session_piece piece = talk_piece(0, 10, into, sizeof into);
    talk_pull(
        talk, &(struct session_pull){
                  .token = 5, .pieces = &piece, .piece_count = 1, .after_own_pushes = true});
    talk_pull_writable(talk, 0);
    assert_null(asked(talk));
    talk_hello(talk, 1);

    talk_greet(talk, 1);

    assert_int_equal(asked(talk)->after_sequence, 1);
}

/* ---- what goes wrong */

TALK_TEST(a_pull_whose_view_ended_is_asked_for_again_from_the_start)
{
    talk_open(talk, 1);
    char into[5] = "....";
    const struct session_piece pieces[] = {
        talk_piece(0, 10, into, 2), talk_piece(0, 12, into + 2, 2)};

    talk_pull(talk, &(struct session_pull){.token = 5, .pieces = pieces, .piece_count = 2});
    talk_pull_writable(talk, 0);
    const uint64_t request = asked(talk)->request;
    answer(talk, 0, &(struct answer){.request = request, .shard = 10, .data = "xx", .bytes = 2});
    talk_pull_writable(talk, 0);

    answer_status(talk, 0, request, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED);

    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    const uint64_t again = asked(talk)->request;
    assert_int_not_equal(again, request);
    answer(talk, 0, &(struct answer){.request = again, .shard = 10, .data = "ab", .bytes = 2});
    answer(
        talk, 0,
        &(struct answer){.request = again, .shard = 12, .data = "cd", .bytes = 2, .last = true});
    assert_string_equal(into, "abcd");
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.status, SUMAC_OK);
}

TEST(a_pull_whose_view_ended_within_a_piece_is_asked_for_again_from_its_first_byte)
{
    struct talk talk;

    talk_open(&talk, 1);
    char into[5] = "....";
    const uint64_t request = ask_for(&talk, talk_piece(0, 10, into, 4));
    answer(&talk, 0, &(struct answer){.request = request, .shard = 10, .data = "xx", .bytes = 2});
    talk_pull_writable(&talk, 0);

    answer_status(&talk, 0, request, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED);

    const uint64_t again = asked(&talk)->request;
    answer(
        &talk, 0,
        &(struct answer){.request = again, .shard = 10, .data = "abcd", .bytes = 4, .last = true});
    assert_string_equal(into, "abcd");
    assert_int_equal(talk_find(&talk, SESSION_EFFECT_PULLED)->error.status, SUMAC_OK);
    talk_close(&talk);
}

TALK_TEST(a_view_that_ends_every_time_ends_the_pull)
{
    talk_open(talk, 1);
    uint8_t into[4];

    pull_piece(talk, talk_piece(0, 10, into, 4));
    int tries = 0;
    for (; tries < 1000 && talk_find(talk, SESSION_EFFECT_PULLED) == NULL; tries++) {
        talk_pull_writable(talk, 0);
        answer_status(talk, 0, asked(talk)->request, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED);
    }

    assert_int_equal(tries, 16);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.status, SUMAC_ABORTED);
}

TALK_TEST(a_pull_is_asked_for_again_on_the_next_stream)
{
    talk_open(talk, 1);
    char into[5] = "....";
    const struct session_piece pieces[] = {
        talk_piece(0, 10, into, 2), talk_piece(0, 12, into + 2, 2)};

    talk_pull(talk, &(struct session_pull){.token = 5, .pieces = pieces, .piece_count = 2});
    talk_pull_writable(talk, 0);
    const uint64_t request = asked(talk)->request;
    answer(talk, 0, &(struct answer){.request = request, .shard = 10, .data = "xx", .bytes = 2});

    talk_broke(talk, 0, SESSION_PULL_STREAM);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_OPEN_STREAM)->generation, 2);
    talk_pull_writable(talk, 0);
    assert_int_equal(asked(talk)->hello->generation, 2);
    answer_of(
        talk, 0,
        &(struct answer){.request = request, .shard = 12, .data = "xx", .bytes = 2, .last = true},
        1); /* the old stream's rest */
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    answer(talk, 0, &(struct answer){.request = request, .shard = 10, .data = "ab", .bytes = 2});
    answer(
        talk, 0,
        &(struct answer){.request = request, .shard = 12, .data = "cd", .bytes = 2, .last = true});

    assert_string_equal(into, "abcd");
    assert_non_null(talk_find(talk, SESSION_EFFECT_PULLED));
}

TALK_TEST(an_idle_pull_stream_that_breaks_is_left_alone)
{
    talk_open(talk, 1);
    uint8_t into[4];

    pull_piece(talk, talk_piece(0, 10, into, 4));
    talk_pull_writable(talk, 0);
    answer(
        talk, 0,
        &(struct answer){
            .request = asked(talk)->request,
            .shard = 10,
            .data = "abcd",
            .bytes = 4,
            .last = true});

    talk_lost(talk, 0, SESSION_PULL_STREAM);

    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
}

/* Of two pulls one was sent. */
TEST(a_pull_stream_that_the_ps_ends_for_what_was_asked_fails_what_was_under_way)
{
    static const struct sumac_error ends[] = {
        {SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED, "a pull without a number"},
        {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for a pull"},
        {SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSPECIFIED, "no such method"}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct talk talk;
        talk_open(&talk, 2);
        uint8_t into[8];
        const struct session_piece pieces[] = {
            talk_piece(0, 10, into, 4), talk_piece(1, 11, into + 4, 4)};
        talk_pull(&talk, &(struct session_pull){.token = 5, .pieces = pieces, .piece_count = 2});
        talk_pull_writable(&talk, 1); /* given */
        talk_pull(
            &talk, &(struct session_pull){.token = 6, .pieces = &pieces[1], .piece_count = 1});

        talk_ended(&talk, 1, SESSION_PULL_STREAM, &ends[i]);

        const struct session_effect *pulled = talk_find(&talk, SESSION_EFFECT_PULLED);
        assert_non_null(pulled);
        assert_int_equal(pulled->token, 5);
        assert_int_equal(pulled->error.status, ends[i].status);
        assert_int_equal(pulled->error.reason, ends[i].reason);
        assert_non_null(strstr(pulled->error.text, "ps 1 at h1:2222 ended the pull stream: "));
        assert_non_null(strstr(pulled->error.text, ends[i].text));
        assert_null(talk_nth(&talk, SESSION_EFFECT_PULLED, 1));
        assert_null(talk_find(&talk, SESSION_EFFECT_ENDED));
        talk_tick_when_due(&talk); /* the other one is asked for on the next stream */
        assert_int_equal(talk_find(&talk, SESSION_EFFECT_OPEN_STREAM)->generation, 2);
        talk_pull_writable(&talk, 1);
        assert_int_equal(asked(&talk)->n_pieces, 1);
        talk_close(&talk);
    }
}

/* gRPC itself is short of memory, or the ps has too many calls: the same may come to something. */
TALK_TEST(one_that_grpc_ends_for_want_of_room_is_opened_again)
{
    talk_open(talk, 1);
    const struct sumac_error end = {.status = SUMAC_RESOURCE_EXHAUSTED, .text = "too many calls"};
    uint8_t into[4];

    pull_piece(talk, talk_piece(0, 10, into, 4));
    talk_pull_writable(talk, 0);

    talk_ended(talk, 0, SESSION_PULL_STREAM, &end);
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    talk_tick_when_due(talk);

    assert_non_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM));
}

TALK_TEST(a_pull_that_is_not_answered_times_out_and_names_the_ps)
{
    talk_open(talk, 2);
    uint8_t into[4];
    const struct session_piece piece = talk_piece(1, 11, into, 4);

    talk_pull(
        talk,
        &(struct session_pull){.token = 5, .pieces = &piece, .piece_count = 1, .timeout_ms = 1000});
    assert_non_null(talk_find(talk, SESSION_EFFECT_WAKE));
    talk_pull_writable(talk, 1);
    talk_tick_after(talk, 250);
    talk_pull_writable(talk, 1); /* what goes out is no sign of life */

    talk_tick_after(talk, 1000);

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_int_equal(pulled->error.status, SUMAC_DEADLINE_EXCEEDED);
    assert_int_equal(pulled->error.reason, SUMAC_REASON_TIMED_OUT);
    assert_non_null(strstr(pulled->error.text, "ps 1 at h1:2222"));
    assert_non_null(strstr(pulled->error.text, "last heard from 1.25 s ago"));
    assert_true(asked(talk)->cancel);
}

TALK_TEST(a_pull_that_waited_for_a_push_names_the_ps_that_holds_it_up)
{
    talk_open(talk, 2);

    talk_tick_after(talk, 1000);
    uint8_t into[4];
    const struct session_piece piece = talk_piece(0, 10, into, 4);
    talk_push_out(talk, 1, 3);
    talk_staged(talk, 0, 1);
    talk_pull(
        talk, &(struct session_pull){
                  .token = 5, .pieces = &piece, .piece_count = 1, .after_own_pushes = true});
    talk_pull_writable(talk, 0);
    const uint64_t request = asked(talk)->request;
    talk_tick_after(talk, 2000);

    answer_status(talk, 0, request, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT);

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_int_equal(pulled->error.reason, SUMAC_REASON_TIMED_OUT);
    assert_non_null(strstr(
        pulled->error.text,
        "ps 0: the pull ended; push 1 waits for ps 1 at h1:2222, last heard from 3 s ago; if ps 1 "
        "does not come back, start the whole run again, ps and workers"));
}

static const struct sumac_error busy = {
    SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY, "too many streams are open"};

TALK_TEST(a_pull_that_times_out_says_why_its_stream_ended)
{
    talk_open(talk, 2);
    struct session_trouble trouble;
    uint8_t into[4];
    const struct session_piece piece = talk_piece(1, 11, into, 4);

    talk_pull(
        talk,
        &(struct session_pull){.token = 5, .pieces = &piece, .piece_count = 1, .timeout_ms = 1000});
    talk_pull_writable(talk, 1);
    assert_false(session_find_trouble(talk->session, 5, &trouble));
    talk_ended(talk, 1, SESSION_PULL_STREAM, &busy); /* given */
    assert_true(session_find_trouble(talk->session, 5, &trouble));
    assert_int_equal(trouble.ps, 1);
    assert_int_equal(trouble.stream_kind, SESSION_PULL_STREAM);
    assert_string_equal(trouble.text, busy.text);

    talk_tick_after(talk, 1250);

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_int_equal(pulled->error.reason, SUMAC_REASON_TIMED_OUT);
    assert_non_null(
        strstr(pulled->error.text, "; its pull stream ended 1.25 s ago: too many streams are"));
}

TALK_TEST(an_answer_to_a_pull_is_the_end_of_its_streams_trouble)
{
    talk_open(talk, 1);
    struct session_trouble trouble;
    char into[5] = "....";
    const uint64_t request = ask_for(talk, talk_piece(0, 10, into, 4));

    talk_broke(talk, 0, SESSION_PULL_STREAM);
    talk_pull_writable(talk, 0);
    assert_true(session_find_trouble(talk->session, 5, &trouble)); /* given */

    answer(talk, 0, &(struct answer){.request = request, .shard = 10, .data = "ab", .bytes = 2});

    assert_false(session_find_trouble(talk->session, 5, &trouble));
}

/* Push 1 has a part on either ps; the pull is asked for on ps 0. */
TEST(a_pull_that_waited_for_a_push_says_why_the_push_streams_ended)
{
    for (uint32_t ps = 0; ps < 2; ps++) {
        struct talk talk;
        struct session_trouble trouble;
        talk_open(&talk, 2);
        uint8_t into[4];
        const struct session_piece piece = talk_piece(0, 10, into, 4);
        talk_push_out(&talk, 1, 3);
        talk_pull(
            &talk, &(struct session_pull){
                       .token = 5, .pieces = &piece, .piece_count = 1, .after_own_pushes = true});
        talk_pull_writable(&talk, 0);
        const uint64_t request = asked(&talk)->request;
        talk_ended(&talk, ps, SESSION_PUSH_STREAM, &busy);
        assert_true(session_find_trouble(talk.session, 5, &trouble));
        assert_int_equal(trouble.stream_kind, SESSION_PUSH_STREAM);
        assert_int_equal(trouble.ps, ps);

        answer_status(&talk, 0, request, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT);

        const char *text = talk_find(&talk, SESSION_EFFECT_PULLED)->error.text;
        const char *ended = strstr(text, "; its push stream ended ");
        assert_non_null(ended);
        assert_non_null(strstr(ended, busy.text));
        assert_int_equal(ended > strstr(text, "; push 1 waits for ps 1"), ps == 1);
        talk_close(&talk);
    }
}

TALK_TEST(what_a_ps_refuses_ends_the_pull)
{
    talk_open(talk, 1);
    uint8_t into[4];

    pull_piece(talk, talk_piece(0, 10, into, 4));
    talk_pull_writable(talk, 0);

    answer_status(talk, 0, asked(talk)->request, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_SHARD);

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_int_equal(pulled->error.status, SUMAC_NOT_FOUND);
    assert_string_equal(pulled->error.text, "ps 0: the pull ended");
}

TALK_TEST(an_answer_beyond_what_was_asked_touches_no_memory)
{
    talk_open(talk, 1);
    char into[5] = "....";
    const struct answer wrong[] = {
        {.shard = 10, .data = "abcd", .bytes = 4, .last = true}, /* too long */
        {.shard = 10, .offset = 1, .data = "a", .bytes = 1},     /* not the next byte */
        {.shard = 12, .data = "ab", .bytes = 2, .last = true},   /* another shard */
        {.shard = 10, .data = "a", .bytes = 1, .last = true},    /* too short */
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pull_piece(talk, talk_piece(0, 10, into, 2));
        talk_pull_writable(talk, 0);
        const struct session_effect *sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
        while (sent->pull_request->cancel) {
            talk_pull_writable(talk, 0);
            sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
        }
        struct answer given = wrong[i];
        given.request = sent->pull_request->request;

        answer(talk, 0, &given);

        const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
        assert_int_equal(pulled->error.status, SUMAC_INTERNAL);
        assert_int_equal(into[2], '.');
    }
}

/* In the second message, which is no longer than what was asked for, and longer than what is left
 * of it. */
TALK_TEST(nor_does_one_that_goes_on_beyond_it)
{
    talk_open(talk, 1);
    char into[7] = "......";
    const uint64_t request = ask_for(talk, talk_piece(0, 10, into, 4));

    answer(talk, 0, &(struct answer){.request = request, .shard = 10, .data = "ab", .bytes = 2});

    answer(
        talk, 0,
        &(struct answer){
            .request = request,
            .shard = 10,
            .offset = 2,
            .data = "cdef",
            .bytes = 4,
            .last = true});

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.reason, SUMAC_REASON_MALFORMED);
    assert_string_equal(into, "ab....");
}

TALK_TEST(a_cancelled_pull_writes_no_more)
{
    talk_open(talk, 1);
    char into[5] = "....";
    const uint64_t request = ask_for(talk, talk_piece(0, 10, into, 4));

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = 5});

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.status, SUMAC_CANCELLED);
    answer(
        talk, 0,
        &(struct answer){
            .request = request, .shard = 10, .data = "abcd", .bytes = 4, .last = true});
    assert_string_equal(into, "....");
}

/* ---- a reader */

TALK_TEST(a_reader_has_no_session_and_pulls_all_the_same)
{
    const struct session_config config = {
        .reader = true, .ps_addresses = talk_addresses, .ps_count = 1};

    talk_config(talk, &config);
    talk_start(talk);
    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_null(talk_find(talk, SESSION_EFFECT_CALL));
    uint8_t into[4];
    const struct session_piece piece = talk_piece(0, 10, into, 4);

    talk_pull(
        talk, &(struct session_pull){
                  .token = 5, .pieces = &piece, .piece_count = 1, .after_own_pushes = true});
    talk_pull_writable(talk, 0);

    assert_int_equal(asked(talk)->hello->session_id.len, 0);
    assert_int_equal(asked(talk)->hello->ps_incarnation, 100);
    assert_int_equal(asked(talk)->after_sequence, 0);
    talk_push_to(talk, 6, 1);
    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.status, SUMAC_FAILED_PRECONDITION);
    assert_string_equal(pushed->error.text, "a reader has no session to push with; join instead");
}
