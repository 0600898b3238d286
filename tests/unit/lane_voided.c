/* SPDX-License-Identifier: Apache-2.0 */
/* lane_voided.c -- what is remembered of refused pushes: as long as it is wanted, and no more than
 * that. */
#include <math.h>

#include "assert_number.h"
#include "handlers.h"
#include "part_state.h"
#include "peer_state.h"
#include "lane_talk.h"

#define VARIABLE 5u

static uint64_t begin_as(struct talk *talk, bool records)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 16u << 20;
    config.records = talk->disk_is_quick = records;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk) { return begin_as(talk, false); }

/* A push of one element to this ps alone. */
static struct talk_part part(uint64_t sequence, uint64_t previous, const float *value)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = previous,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = value,
        .count = 1};
}

static const float nan_value[] = {NAN};
static const float one[] = {1};

static void send_refused(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous)
{
    const struct talk_part sent = part(sequence, previous, nan_value);

    talk_part(talk, stream, &sent);
}

static const struct lane_session *session_of(const struct talk *talk)
{
    return talk->lane->sessions.first;
}

/* Pushes 1, 3, 5 … are refused here, 2, 4, 6 … go elsewhere: what the client knows of is always
 * beyond the mark. */
TALK_TEST(what_is_acknowledged_beyond_the_mark_counts_up_to_the_mark)
{
    const uint64_t stream = begin(talk);
    const uint64_t pushes = 4 * LANE_VOIDED_PER_SESSION_MAX;

    for (uint64_t sequence = 1; sequence < pushes; sequence += 2) {
        send_refused(talk, stream, sequence, sequence == 1 ? 0 : sequence - 2);
        talk_commit(talk, stream, sequence + 1, sequence, sequence + 1);
        assert_null(strstr(talk->text, "end of stream"));
        talk_forget(talk);
    }

    assert_int_equal(session_of(talk)->voided_count, 0);
    assert_int_equal(session_of(talk)->acked_through, session_of(talk)->mark);
}

TALK_TEST(what_is_staged_here_is_not_forgotten_whatever_is_acknowledged)
{
    const uint64_t stream = begin(talk);
    struct talk_part staged = part(1, 0, one), bad = part(2, 1, nan_value);

    staged.eager = bad.eager = false;
    talk_part(talk, stream, &staged);
    talk_part(talk, stream, &bad);
    talk_commit(talk, stream, 0, 1, 1000); /* given: neither has had its turn */

    talk_commit(talk, stream, 2, 2, 1000);

    talk_expect(talk, "staged 1\nrefused 2 NON_FINITE\ndone 1 voided\ndone 2 voided\n");
}

/* The acknowledgement that comes with a part makes room for it. */
TALK_TEST(an_acknowledgement_counts_before_the_parts_of_its_message)
{
    const uint64_t stream = begin(talk);
    const uint64_t last = LANE_VOIDED_PER_SESSION_MAX;
    wire_commit commit = WIRE_COMMIT_INIT;

    for (uint64_t sequence = 1; sequence <= last; sequence++)
        send_refused(talk, stream, sequence, sequence - 1);
    talk_forget(talk);
    struct talk_part sent = part(last + 1, last, nan_value);
    commit.commit_through = commit.acked_through = last;
    sent.commit = &commit;

    talk_part(talk, stream, &sent);

    talk_expect(talk, "refused 1025 NON_FINITE\ndone 1025 voided\n");
    assert_int_equal(session_of(talk)->voided_count, 1);
}

/* Eager parts that are refused and never acknowledged: the stream ends, and on the next one the
 * client can say what it has heard and send the part again. */
TALK_TEST(refused_parts_that_nobody_acknowledges_are_bounded)
{
    const uint64_t stream = begin(talk);
    const uint64_t last = LANE_VOIDED_PER_SESSION_MAX;

    for (uint64_t sequence = 1; sequence <= last; sequence++)
        send_refused(talk, stream, sequence, sequence - 1);
    assert_null(strstr(talk->text, "end of stream"));
    talk_forget(talk);

    send_refused(talk, stream, last + 1, last);

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n");
    assert_string_equal(
        talk->closed.text,
        "push 1025 of session worker 1 is refused, and ps 1 keeps the numbers of 1024 refused "
        "pushes of that session, the most that it keeps: say with acked_through, which is 0, up to "
        "where the client has heard the answers, then send it again");
    assert_int_equal(session_of(talk)->voided_count, last);
    assert_int_equal(session_of(talk)->counts.refused, last);
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_commit(talk, again, last, 0, last);
    talk_forget(talk);
    send_refused(talk, again, last + 1, last);
    talk_expect(talk, "refused 1025 NON_FINITE\ndone 1025 voided\n");
}

/* A client may name every refused push to every ps, also those that have no part there. */
TALK_TEST(what_was_refused_elsewhere_and_has_no_part_here_takes_no_room)
{
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= 4 * LANE_VOIDED_PER_SESSION_MAX; sequence++)
        talk_commit(talk, stream, sequence, sequence, sequence);

    talk_expect(talk, "");
    assert_true(session_of(talk)->voided_count <= LANE_VOIDED_PER_SESSION_MAX);
}

static void name_voided(
    struct talk *talk, uint64_t stream, uint64_t commit_through, const uint64_t *voided,
    size_t count)
{
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    commit.commit_through = commit_through;
    commit.voided = (uint64_t *)voided;
    commit.n_voided = count;
    request.commit = &commit;
    talk_push(talk, stream, &request, NULL, 0);
}

/* As many as a session may have, over and over, of which the list takes one. */
TALK_TEST(a_commit_names_no_more_than_a_session_may_have)
{
    const uint64_t stream = begin(talk);
    uint64_t voided[LANE_VOIDED_PER_SESSION_MAX + 1];

    for (size_t i = 0; i <= LANE_VOIDED_PER_SESSION_MAX; i++)
        voided[i] = 7;
    name_voided(talk, stream, 0, voided, LANE_VOIDED_PER_SESSION_MAX);
    talk_expect(talk, "");

    name_voided(talk, stream, 0, voided, LANE_VOIDED_PER_SESSION_MAX + 1);

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n");
    assert_string_equal(
        talk->closed.text,
        "a commit of session worker 1 names 1025 refused pushes above acked_through, which is 0, "
        "and ps 1 takes at most 1024 of a commit: name each push once, and none up to "
        "acked_through");
    assert_int_equal(session_of(talk)->voided_count, 1);
}

/* Nothing was refused here: it is the commit that names too many. */
TALK_TEST(a_commit_that_names_more_than_are_kept_is_told_so)
{
    const uint64_t stream = begin(talk);
    uint64_t voided[LANE_VOIDED_PER_SESSION_MAX + 1];

    for (size_t i = 0; i <= LANE_VOIDED_PER_SESSION_MAX; i++)
        voided[i] = 100 + i;

    name_voided(talk, stream, 3, voided, LANE_VOIDED_PER_SESSION_MAX + 1);

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n");
    assert_string_equal(
        talk->closed.text,
        "a commit of session worker 1 names 1025 refused pushes above acked_through, which is 0, "
        "and ps 1 takes at most 1024 of a commit: name each push once, and none up to "
        "acked_through");
}

TALK_TEST(a_commit_that_finds_the_list_full_is_told_which_there_is_no_room_for)
{
    const uint64_t stream = begin_as(talk, true); /* the first of two is all that is recorded */
    const uint64_t more[] = {7, 8};
    uint64_t voided[LANE_VOIDED_PER_SESSION_MAX - 1];

    for (size_t i = 0; i < LANE_VOIDED_PER_SESSION_MAX - 1; i++)
        voided[i] = 100 + i;
    name_voided(talk, stream, 3, voided, LANE_VOIDED_PER_SESSION_MAX - 1);
    talk_expect(talk, "");

    name_voided(talk, stream, 4, more, 2);

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n");
    assert_string_equal(
        talk->closed.text,
        "a commit of session worker 1 names push 8 as refused, when ps 1 keeps the numbers of 1024 "
        "such pushes of that session, the most that it keeps, with those that this commit named "
        "before: say with acked_through, which is 0, up to where the client has heard the answers, "
        "and name no others");
}

TALK_TEST(a_commit_that_there_is_no_memory_for_says_so)
{
    const uint64_t stream = begin(talk), one_more = 7;

    talk->out_of_memory = true;
    name_voided(talk, stream, 3, &one_more, 1);

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    assert_string_equal(talk->closed.text, "ps 1 has no memory for a part");
    talk->out_of_memory = false;
}

/* What the client is known to have heard of is passed over, and does not count. */
TALK_TEST(a_commit_may_name_what_was_acknowledged)
{
    const uint64_t stream = begin(talk);
    uint64_t voided[LANE_VOIDED_PER_SESSION_MAX + 1];

    send_refused(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 1);
    talk_forget(talk);
    for (size_t i = 0; i <= LANE_VOIDED_PER_SESSION_MAX; i++)
        voided[i] = 1;

    name_voided(talk, stream, 1, voided, LANE_VOIDED_PER_SESSION_MAX + 1);

    talk_expect(talk, "");
    assert_int_equal(session_of(talk)->voided_count, 0);
}

/* The list is full but for one, and a commit names what was committed long ago, and has no part
 * here: it is looked through for room once, not for each of them. */
TALK_TEST(a_full_list_is_looked_through_once_for_a_commit)
{
    enum { kept = LANE_VOIDED_PER_SESSION_MAX - 1, committed = 5000 };
    const uint64_t stream = begin(talk);
    const uint64_t useless[] = {10, 11, 12};
    uint64_t voided[kept];

    for (uint64_t i = 0; i < kept; i++)
        voided[i] = committed + 1 + i;
    name_voided(talk, stream, committed, voided, kept);
    name_voided(talk, stream, committed, useless, 2); /* 10 gives way to 11 */
    talk_expect(talk, "");
    assert_int_equal(session_of(talk)->voided_count, kept + 1);

    name_voided(talk, stream, committed, useless, 3); /* 11 gives way to 10, and that to none */

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n");
}

TALK_TEST(on_a_new_stream_only_unacknowledged_refusals_are_said_again)
{
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= 3; sequence++)
        send_refused(talk, stream, sequence, sequence - 1);
    talk_commit(talk, stream, 3, 0, 2);
    talk_hang_up(talk, stream);
    talk_forget(talk);

    const uint64_t again = talk_push_stream(talk, 1, 2);

    talk_expect(talk, "greeting\nrefused 3 NON_FINITE\n");
    send_refused(talk, again, 3, 2); /* and its part is not taken twice */
    talk_expect(talk, "refused 3 NON_FINITE\ndone 3 voided\n");
    assert_int_equal(session_of(talk)->counts.refused, 3);
}

/* A hello and the beginning of a part, in one message. */
static void say_hello_and_begin(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    uint8_t id[16];
    wire_hello hello = WIRE_HELLO_INIT;
    wire_part begun = WIRE_PART_INIT;
    wire_part *parts[] = {&begun};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    memset(id, 1, sizeof id);
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.epoch = talk->lane->epoch;
    hello.ps_incarnation = talk->lane->config.incarnation;
    hello.session_id = (wire_bytes){.len = sizeof id, .data = id};
    hello.generation = 2;
    begun.sequence = sequence;
    begun.previous = sequence - 1;
    begun.bytes = sizeof one;
    begun.first = true;
    request.hello = &hello;
    request.parts = parts;
    request.n_parts = 1;
    talk_push(talk, stream, &request, NULL, 0);
}

TALK_TEST(a_stream_that_ends_while_they_are_said_again_takes_no_part)
{
    const uint64_t stream = begin(talk);
    const uint64_t many = LANE_VOIDED_PER_SESSION_MAX; /* more answers than a slab has */

    for (uint64_t sequence = 1; sequence <= many; sequence++)
        send_refused(talk, stream, sequence, sequence - 1);
    talk_commit(talk, stream, many, 0, 0);
    talk_hang_up(talk, stream);
    const uint64_t again = talk_stream(talk, LANE_STREAM_PUSH);
    talk_forget(talk);
    talk->out_of_memory = true;

    say_hello_and_begin(talk, again, many + 1);

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    assert_int_equal(talk->lane->parts->parts.used, 0);
    assert_int_equal(session_of(talk)->staged_bytes, 0);
}

TALK_TEST(a_refusal_that_is_heard_meanwhile_is_not_said)
{
    const uint64_t stream = begin(talk);

    send_refused(talk, stream, 1, 0);
    talk_forget(talk);
    talk->deaf = stream;
    send_refused(talk, stream, 1, 0);
    talk_expect(talk, "refused 1 NON_FINITE\ndone 1 voided\n");
    send_refused(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 1);

    talk_writable(talk, stream);

    talk_expect(talk, "done 1 voided\n");
}

/* A part counts when it is here whole, a refused one as well: what is cut off comes again. */
TALK_TEST(a_refused_part_that_is_cut_off_counts_when_it_is_whole)
{
    uint64_t stream = begin(talk);
    wire_part header = WIRE_PART_INIT;
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};

    piece.shard_id = VARIABLE;
    piece.bytes = 4;
    header.sequence = 1;
    header.first = true;
    header.bytes = 8;
    header.pieces = pieces;
    header.n_pieces = 1;
    for (uint64_t generation = 2; generation < 7; generation++) {
        talk_push_part(talk, stream, &header, nan_value, 4);
        talk_hang_up(talk, stream);
        stream = talk_push_stream(talk, 1, generation);
    }
    assert_int_equal(session_of(talk)->counts.refused, 0);
    talk_forget(talk);

    send_refused(talk, stream, 1, 0);

    talk_expect(talk, "refused 1 NON_FINITE\ndone 1 voided\n");
    assert_int_equal(session_of(talk)->counts.refused, 1);
    assert_int_equal(session_of(talk)->counts.non_finite, 1);
    assert_int_equal(talk->lane->counts.refused, 1);
}

/* ---- settle, when memory is short ---- */

static void order_decide(struct talk *talk, uint64_t final, uint64_t voided_count)
{
    static uint64_t voided[3 * LANE_VOIDED_PER_SESSION_MAX];
    uint8_t id[16];
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;

    memset(id, 1, sizeof id);
    for (uint64_t i = 0; i < voided_count; i++)
        voided[i] = i + 1;
    decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    decide.final = final;
    decide.voided = voided;
    decide.n_voided = voided_count;
    talk_order_of(talk, decide, &decide);
}

/* What it could not void it would apply. */
TALK_TEST(a_decision_that_cannot_be_kept_is_not_obeyed)
{
    const uint64_t stream = begin(talk);
    const uint64_t many = 2 * LANE_VOIDED_PER_SESSION_MAX; /* the refusals of both ps together */
    float held = 0;
    struct talk_part staged = part(many, 0, one);

    staged.eager = false;
    talk_part(talk, stream, &staged);
    talk_hang_up(talk, stream);
    talk_close(talk, 1);
    talk_forget(talk);

    talk->out_of_memory = true;
    order_decide(talk, many, many);
    talk_expect(talk, "report 6 error OUT_OF_MEMORY\n");
    talk->out_of_memory = false;
    order_decide(talk, many, many);

    talk_expect(talk, "report 7\n");
    assert_int_equal(lane_peek(talk->lane, VARIABLE, (uint8_t *)&held, sizeof held), sizeof held);
    assert_number_equal(held, 0);
}

TALK_TEST(a_decision_that_voids_more_than_all_ps_remember_is_refused)
{
    (void)begin(talk);
    talk_close(talk, 1);
    talk_forget(talk);

    order_decide(talk, 1, 2 * LANE_VOIDED_PER_SESSION_MAX + 1);
    talk_expect(talk, "report 6 error MALFORMED\n");
    assert_false(session_of(talk)->closed);

    order_decide(talk, 1, 2 * LANE_VOIDED_PER_SESSION_MAX);
    assert_memory_equal(talk->text, "report 7\n", 9);
    assert_int_equal(talk->lane->peers->closed_count, 1);
}

/* The order is answered later, and whole. */
TALK_TEST(a_close_is_reported_when_there_is_memory_for_it)
{
    const uint64_t stream = begin(talk);
    struct talk_part bad = part(1, 0, nan_value);

    bad.eager = false;
    talk_part(talk, stream, &bad);
    /* given: reports that nobody takes have used up what there was */
    talk->deaf = talk->controller;
    talk->out_of_memory = true;
    while (talk->lane->peers->reports.free != NULL)
        talk_open(talk, 1);
    talk_close(talk, 1);
    talk->deaf = 0;
    talk_writable(talk, talk->controller);
    assert_null(strstr(talk->text, "commit_through"));

    talk->out_of_memory = false;
    talk_tick(talk, 100);

    assert_non_null(strstr(talk->text, " commit_through 0 voided 1\n"));
}

static void open_close_and_decide(struct talk *talk, uint8_t session, size_t voided_count)
{
    static uint64_t voided[16 * LANE_VOIDED_PER_SESSION_MAX];
    uint8_t id[16];
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;

    for (size_t i = 0; i < voided_count; i++)
        voided[i] = i + 1;
    talk_open(talk, session);
    talk_close(talk, session);
    memset(id, session, sizeof id);
    decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    decide.final = decide.n_voided = voided_count;
    decide.voided = voided;
    talk_order_of(talk, decide, &decide);
    talk_forget(talk);
}

/* Of 16 ps each has refused others of a session's pushes. */
TALK_TEST(what_is_voided_of_closed_sessions_is_within_what_is_published)
{
    uint8_t oldest[16];

    talk_start(talk, NULL); /* given */
    talk->lane->ps_count = 16;
    const uint64_t before = talk->bytes_taken;
    open_close_and_decide(talk, 1, 16 * LANE_VOIDED_PER_SESSION_MAX);
    memcpy(oldest, talk->lane->closed_sessions.first->id, sizeof oldest);
    assert_non_null(lane_session_find(talk->lane, oldest));

    for (uint8_t session = 2; session < 255; session++) /* when */
        open_close_and_decide(talk, session, 16 * LANE_VOIDED_PER_SESSION_MAX);

    assert_true(talk->bytes_taken - before <= lane_sessions_bytes_max(talk->lane)); /* then */
    assert_true(talk->bytes_taken - before <= 4 * CLOSED_VOIDED_BYTES_MAX);
    assert_null(lane_session_find(talk->lane, oldest));
    const struct lane_session *newest = talk->lane->closed_sessions.first;
    const uint64_t one_bytes = newest->voided_capacity * sizeof *newest->voided;
    assert_true((talk->lane->peers->closed_count + 1) * one_bytes > CLOSED_VOIDED_BYTES_MAX);
    assert_int_equal(
        talk->lane->closed_sessions.first->voided_count, 16 * LANE_VOIDED_PER_SESSION_MAX);
}

/* Each with few: as many as there may be. */
TALK_TEST(closed_sessions_of_which_little_is_voided_are_remembered)
{
    talk_start(talk, NULL);

    for (uint8_t session = 1; session < 255; session++)
        open_close_and_decide(talk, session, 8);

    assert_int_equal(talk->lane->peers->closed_count, 254);
}

/* What is committed is applied, however many sessions are closed meanwhile. */
TALK_TEST(a_closed_session_with_a_part_to_apply_is_not_forgotten)
{
    static const float values[64] = {1};
    struct lane_config config = talk_config();
    float held[64];
    struct talk_part push = {
        .sequence = 1, .eager = true, .shard = 5, .shards = 1, .values = values, .count = 64};

    config.inline_bytes = 64;
    talk_start(talk, &config);
    talk->lane->ps_count = 16;
    talk_variable(talk, 5, 64, UPDATE_ASSIGN_ADD);
    talk->holds_compute = true;
    talk_open(talk, 253);
    talk_part(talk, talk_push_stream(talk, 253, 1), &push); /* given: its shard is busy, … */
    talk_open(talk, 254);
    push.eager = false;
    const uint64_t stream = talk_push_stream(talk, 254, 1);
    talk_part(talk, stream, &push);
    talk_commit(talk, stream, 1, 0, 0); /* … and another's part waits for it */
    talk_close(talk, 254);
    talk_decide(talk, 254, 1, 0);

    for (uint8_t session = 1; session < 250; session++)
        open_close_and_decide(talk, session, 16 * LANE_VOIDED_PER_SESSION_MAX);
    talk->holds_compute = false;
    talk_compute(talk);

    assert_true(talk->lane->peers->closed_count < 249); /* others were forgotten */
    assert_int_equal(lane_peek(talk->lane, 5, (uint8_t *)held, sizeof held), sizeof held);
    assert_number_equal(held[0], 2);
}

/* Its turn has passed, and its client may send it again. */
TALK_TEST(what_was_voided_and_not_heard_of_gives_no_room_to_others)
{
    enum { committed = 5000 };
    const uint64_t stream = begin(talk);
    struct talk_part staged = part(1, 0, one);
    uint64_t voided[LANE_VOIDED_PER_SESSION_MAX];

    staged.eager = false;
    talk_part(talk, stream, &staged);
    talk_commit(talk, stream, 1, 1, 0); /* given: another ps has refused it */
    talk_expect(talk, "staged 1\ndone 1 voided\n");
    for (uint64_t i = 0; i < LANE_VOIDED_PER_SESSION_MAX; i++)
        voided[i] = committed + 1 + i;
    name_voided(talk, stream, committed, voided, LANE_VOIDED_PER_SESSION_MAX - 1);
    talk_expect(talk, "");

    name_voided(talk, stream, committed, &voided[LANE_VOIDED_PER_SESSION_MAX - 1], 1); /* when */

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n"); /* then */
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);
    talk_part(talk, again, &staged);
    talk_expect(talk, "done 1 voided\n");
}

/* What a session's end says has no reasons. */
TALK_TEST(reasons_that_nobody_will_hear_are_given_back)
{
    const uint64_t stream = begin(talk);

    send_refused(talk, stream, 1, 0);
    assert_int_equal(talk->lane->parts->refusals.used, 1);
    talk_hang_up(talk, stream);
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 1);

    assert_int_equal(talk->lane->parts->refusals.used, 0);
    assert_int_equal(talk->lane->closed_sessions.first->voided_count, 1);
}
