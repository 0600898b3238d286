/* SPDX-License-Identifier: Apache-2.0 */
/* session_asked.c -- pulls: what their messages say, which pushes they wait for, and what is left
 * of one whose stream ends. */
#include "session_talk.h"

static uint8_t into[64];

static void writable(struct talk *talk) { talk_pull_writable(talk, 0); }

/* Pull that of ps 0, after the session's own pushes. */
static void begin(struct talk *talk, const struct session_piece *pieces, uint32_t count)
{
    const struct session_pull wanted = {
        .token = 5, .pieces = pieces, .piece_count = count, .after_own_pushes = true};

    talk_pull(talk, &wanted);
}

static void begin_plain(struct talk *talk)
{
    const struct session_piece piece = talk_piece(0, 10, into, 8);

    begin(talk, &piece, 1);
}

/* What the last event asked ps 0 for; NULL: nothing. */
static const struct session_effect *asked(const struct talk *talk)
{
    return talk_find(talk, SESSION_EFFECT_SEND_PULL);
}

/* ps 0 answers the pull that was asked for by the last event. */
static const struct sumac_error *
answer_with(struct talk *talk, wire_pull_answer *answer, const struct span *payload)
{
    answer->request = asked(talk)->pull_request->request;
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PULL_ANSWER,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[0][SESSION_PULL_STREAM],
                  .pull_answer = answer,
                  .payload = payload,
                  .payload_spans = payload != NULL});
    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_non_null(pulled);
    return &pulled->error;
}

/* ---- what a message says */

TALK_TEST(a_pull_of_a_slot_names_the_slot)
{
    struct session_piece piece = talk_piece(0, 10, into, 8);

    piece.kind = WIRE_PIECE_SLOT_VALUE;
    piece.slot = 2;
    talk_open(talk, 1);
    begin(talk, &piece, 1);

    writable(talk);

    const wire_piece *wire = asked(talk)->pull_request->pieces[0];
    assert_int_equal(wire->kind, SUMAC__V1__PIECE__KIND__KIND_SLOT_VALUE);
    assert_int_equal(wire->slot, 2);
    assert_int_equal(wire->layout_epoch, 1);
}

TALK_TEST(a_pull_of_rows_sends_their_indices)
{
    static const int64_t rows[] = {7, 3};
    struct session_piece pieces[] = {talk_piece(0, 10, into, 16), talk_piece(0, 11, into, 0)};

    pieces[0].rows = pieces[1].rows = rows; /* of the second one none */
    pieces[0].row_bytes = pieces[1].row_bytes = 8;
    talk_open(talk, 1);
    begin(talk, pieces, 2);

    writable(talk);

    const struct session_effect *sent = asked(talk);
    assert_int_equal(sent->pull_request->pieces[0]->kind, SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES);
    assert_int_equal(sent->pull_request->pieces[0]->bytes, sizeof rows);
    assert_int_equal(sent->payload_count, 1);
    assert_int_equal(sent->payload[0].token, 5);
    assert_int_equal(sent->payload[0].bytes.bytes, sizeof rows);
    assert_memory_equal(sent->payload[0].bytes.data, rows, sizeof rows);
}

/* The ps hears from the session by a pull, too. */
TALK_TEST(a_session_that_pulls_needs_no_renewal)
{
    talk_open(talk, 1);

    talk_tick_after(talk, LEASE_MS / 3 - 1);
    begin_plain(talk);
    writable(talk);
    assert_non_null(asked(talk));

    talk_tick_after(talk, 1);

    assert_null(talk_called(talk, WIRE_SESSIONS_RENEW));
}

/* ---- which pushes it waits for */

/* The ps remembers one refused push at most, so push 2 has its number when push 1 is done. */
TALK_TEST(a_pull_waits_for_the_number_of_the_last_push_before_it)
{
    wire_limits limits = WIRE_LIMITS_INIT;
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    const struct session_config config = talk_member(1);

    talk_config(talk, &config);
    talk_start(talk);
    talk_joined(talk, 1);
    talk_hello(talk, 0);
    limits.voided_max = 1;
    greeting.cluster_id = 42;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.staging_grant_bytes = GRANT;
    greeting.limits = &limits;
    answer.greeting = &greeting;
    talk_answer(talk, 0, &answer);
    for (uint64_t token = 1; token <= 3; token++)
        talk_push_out(talk, token, 1);
    begin_plain(talk);
    writable(talk);
    assert_null(asked(talk));

    talk_done(talk, 0, 1);
    assert_null(asked(talk));
    talk_writable(talk, 0);
    talk_done(talk, 0, 2);

    assert_non_null(asked(talk));
    assert_int_equal(asked(talk)->pull_request->after_sequence, 3);
}

TALK_TEST(a_pull_waits_for_no_push_that_comes_after_it)
{
    talk_open(talk, 1);

    talk_push_out(talk, 1, 1);
    begin_plain(talk); /* its stream is not open yet */
    talk_push_out(talk, 2, 1);

    writable(talk);

    assert_int_equal(asked(talk)->pull_request->after_sequence, 1);
}

/* ---- how it ends */

/* Its ps is not told: the stream on which it was asked for is gone. */
TEST(a_pull_that_was_cancelled_is_not_on_the_next_stream)
{
    static const struct sumac_error ends[] = {
        {.status = SUMAC_UNAVAILABLE, .text = "Socket closed"},
        {.status = SUMAC_INVALID_ARGUMENT, .reason = SUMAC_REASON_MALFORMED, .text = "no piece"}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct talk talk;
        talk_open(&talk, 1); /* given */
        begin_plain(&talk);
        writable(&talk);
        talk_step(&talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = 5});
        assert_null(asked(&talk)); /* the stream has taken no more */
        const uint64_t generation = talk.generation[0][SESSION_PULL_STREAM];

        talk_ended(&talk, 0, SESSION_PULL_STREAM, &ends[i]); /* when */
        talk_tick_after(&talk, 2500);

        assert_int_equal(talk.generation[0][SESSION_PULL_STREAM], generation); /* then */
        begin_plain(&talk);
        writable(&talk);
        assert_non_null(asked(&talk));
        assert_false(asked(&talk)->pull_request->cancel);
        talk_close(&talk);
    }
}

/* Pieces of 2 bytes of shard 10 and of 4 of shard 11 are answered with one span. */
static const struct sumac_error *answer_two(struct talk *talk, size_t payload_bytes)
{
    static const uint8_t data[] = "abcdef";
    const struct span payload = {.data = data, .bytes = payload_bytes};
    const struct session_piece pieces[] = {
        talk_piece(0, 10, into, 2), talk_piece(0, 11, into + 2, 4)};
    wire_piece first = WIRE_PIECE_INIT, second = WIRE_PIECE_INIT;
    wire_piece *list[] = {&first, &second};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    memset(into, '.', sizeof into);
    begin(talk, pieces, 2);
    writable(talk);
    first.shard_id = 10;
    first.bytes = 2;
    second.shard_id = 11;
    second.bytes = 4;
    answer.n_pieces = 2;
    answer.pieces = list;
    answer.last = true;
    return answer_with(talk, &answer, &payload);
}

TALK_TEST(several_pieces_come_in_one_span)
{
    talk_open(talk, 1);

    assert_int_equal(answer_two(talk, 6)->status, SUMAC_OK);

    assert_memory_equal(into, "abcdef..", 8);
}

TALK_TEST(an_answer_with_fewer_bytes_than_its_pieces_say_ends_the_pull)
{
    talk_open(talk, 1);

    const struct sumac_error *error = answer_two(talk, 3);

    assert_int_equal(error->reason, SUMAC_REASON_MALFORMED);
    assert_string_equal(error->text, "ps 0 answered a pull with other pieces than were asked for");
}

struct answered {
    uint32_t runs; /* of 8 bytes each, of the shards 10, 12 and 11 */
    uint64_t versions[3];
    uint32_t version_count;
};

/* What ps 0 answers to a pull of shard 10 and 12 from it, and of shard 11 from ps 1. */
static void answer_of_two(struct talk *talk, const struct answered *given)
{
    static const uint8_t bytes[24] = {1, [8] = 2, [16] = 3};
    static const uint64_t shards[] = {10, 12, 11};
    const struct span payload = {.data = bytes, .bytes = 8 * given->runs};
    wire_piece runs[3] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *list[3];
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    for (uint32_t i = 0; i < 3; i++) {
        runs[i].shard_id = shards[i];
        runs[i].bytes = 8;
        list[i] = &runs[i];
    }
    answer.request = asked(talk)->pull_request->request;
    answer.pieces = list;
    answer.n_pieces = given->runs;
    answer.versions = (uint64_t *)(uintptr_t)given->versions;
    answer.n_versions = given->version_count;
    answer.last = true;
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PULL_ANSWER,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[0][SESSION_PULL_STREAM],
                  .pull_answer = &answer,
                  .payload = &payload,
                  .payload_spans = 1});
}

static void begin_of_two(struct talk *talk)
{
    const struct session_piece pieces[] = {
        talk_piece(0, 10, into, 8), talk_piece(1, 11, into + 8, 8),
        talk_piece(0, 12, into + 16, 8)};

    memset(into, 0, sizeof into);
    talk_open(talk, 2);
    begin(talk, pieces, 3);
    writable(talk);
}

TALK_TEST(a_ps_that_answers_with_the_piece_of_another_is_refused)
{
    begin_of_two(talk);

    answer_of_two(talk, &(struct answered){.runs = 3});

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_non_null(pulled);
    assert_int_equal(pulled->error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(into[8], 0);
}

/* A ps that says more versions than it has pieces changes no other piece. */
TALK_TEST(each_pulled_piece_has_the_version_that_its_own_ps_says)
{
    wire_piece run = WIRE_PIECE_INIT;
    wire_piece *list[] = {&run};
    static const uint8_t bytes[8] = {9};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    begin_of_two(talk);
    assert_int_equal(asked(talk)->stream_kind, SESSION_PULL_STREAM);
    answer_of_two(talk, &(struct answered){.runs = 2, .versions = {3, 4, 5}, .version_count = 3});
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    talk_pull_writable(talk, 1);
    run.shard_id = 11;
    run.bytes = 8;
    answer.request = asked(talk)->pull_request->request;
    answer.pieces = list;
    answer.n_pieces = 1;
    answer.last = true;
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PULL_ANSWER,
                  .ps = 1,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[1][SESSION_PULL_STREAM],
                  .pull_answer = &answer,
                  .payload = &(struct span){.data = bytes, .bytes = 8},
                  .payload_spans = 1});

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_non_null(pulled);
    assert_int_equal(pulled->versions[0], 3);
    assert_int_equal(pulled->versions[1], 0); /* not said */
    assert_int_equal(pulled->versions[2], 4);
    assert_int_equal(into[0], 1);
    assert_int_equal(into[8], 9);
    assert_int_equal(into[16], 2);
}

/* A push on ps 1 that is not staged is no cause of these. */
TEST(a_pull_that_fails_for_its_own_reason_names_no_other_ps)
{
    static const struct {
        uint32_t before, after; /* the ps of a push before the pull, and of one after it */
        enum sumac_reason reason;
    } rows[] = {
        {0, 0, SUMAC_REASON_TIMED_OUT},
        {0, 2, SUMAC_REASON_TIMED_OUT},
        {3, 0, SUMAC_REASON_UNKNOWN_SHARD},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct talk talk;
        wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
        talk_open(&talk, 2); /* given */
        if (rows[i].before != 0)
            talk_push_out(&talk, 1, rows[i].before);
        begin_plain(&talk);
        if (rows[i].after != 0)
            talk_push_out(&talk, 2, rows[i].after);
        writable(&talk);
        answer.status = SUMAC_DEADLINE_EXCEEDED;
        answer.reason = (Sumac__V1__Reason)rows[i].reason;
        answer.message = "it is so";

        assert_string_equal(answer_with(&talk, &answer, NULL)->text, "ps 0: it is so"); /* then */
        talk_close(&talk);
    }
}

TEST(a_piece_of_no_bytes_is_passed_over)
{
    for (uint32_t said = 0; said < 2; said++) { /* a run of no bytes */
        struct session_piece pieces[] = {
            talk_piece(0, 10, into, 0), talk_piece(0, 11, into, 8), talk_piece(0, 12, into, 0),
            talk_piece(0, 13, into + 8, 8)};
        static const uint8_t bytes[16] = {1, [15] = 7};
        wire_piece runs[3] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT, WIRE_PIECE_INIT};
        wire_piece *list[] = {&runs[0], &runs[1], &runs[2]};
        wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
        struct talk talk;

        memset(into, 0, sizeof into);
        talk_open(&talk, 1);
        begin(&talk, pieces, 4);
        writable(&talk);
        runs[0].shard_id = 10;
        runs[1].shard_id = 11;
        runs[2].shard_id = 13;
        runs[1].bytes = runs[2].bytes = 8;
        answer.pieces = said == 0 ? list + 1 : list;
        answer.n_pieces = said == 0 ? 2 : 3;
        answer.last = true;

        const struct sumac_error *error =
            answer_with(&talk, &answer, &(struct span){.data = bytes, .bytes = sizeof bytes});

        assert_int_equal(error->status, SUMAC_OK);
        assert_memory_equal(into, bytes, sizeof bytes);
        talk_close(&talk);
    }
}
