/* SPDX-License-Identifier: Apache-2.0 */
/* lane_push.c -- pushing: staged, committed, applied in order, exactly once, whatever streams
 * break. */
#include "lane_talk.h"

#define VARIABLE 5u

/* One session, one variable of four zeros with assign_add, a push and a pull stream. */
struct streams {
    uint64_t push, pull;
};

static struct streams begin_with(struct talk *talk, const struct lane_config *config)
{
    struct streams streams;

    talk_start(talk, config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    streams.push = talk_push_stream(talk, 1, 1);
    streams.pull = talk_pull_stream(talk, 1);
    talk_forget(talk);
    return streams;
}

static struct streams begin(struct talk *talk) { return begin_with(talk, NULL); }

static struct streams begin_without(struct talk *talk, enum rule rule)
{
    struct lane_config config = talk_config();

    config.broken = rule_bit(rule);
    return begin_with(talk, &config);
}

static const float one[] = {1, 1, 1, 1};
static const float ten[] = {10, 10, 10, 10};

static struct talk_part part(uint64_t sequence, uint64_t previous, const float *values)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = 4};
}

static void
send(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous, const float *values)
{
    const struct talk_part sent = part(sequence, previous, values);

    talk_part(talk, stream, &sent);
}

static void expect_values(struct talk *talk, uint64_t stream, const char *line)
{
    talk_forget(talk);
    talk_pull(talk, stream, 99, VARIABLE, 1, 0);
    talk_expect(talk, line);
}

/* ---- the ordinary course ---- */

TALK_TEST(a_stream_is_greeted_before_anything_else)
{
    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_forget(talk);

    (void)talk_push_stream(talk, 1, 1);

    talk_expect(talk, "greeting\n");
}

TALK_TEST(a_part_changes_nothing_until_it_is_committed)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 1, 0, one);

    talk_expect(talk, "staged 1\n");
    expect_values(talk, streams.pull, "pulled 99 [0] 0 0 0 0\n");
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_expect(talk, "done 1 [1]\n");
    expect_values(talk, streams.pull, "pulled 99 [1] 1 1 1 1\n");
}

/* What was promised stays promised. */
TALK_TEST(a_commit_never_goes_back)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 1, 0, one);
    talk_commit(talk, streams.push, 3, 0, 0);
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_forget(talk);

    send(talk, streams.push, 3, 1, one);

    talk_expect(talk, "staged 3\ndone 3 [2]\n");
}

TALK_TEST(a_part_in_several_messages_counts_with_the_last)
{
    const struct streams streams = begin(talk);
    struct talk_part sent = part(1, 0, one);

    sent.eager = true;

    talk_part_in_steps(talk, streams.push, &sent, 1);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(an_eager_part_carries_its_own_commit)
{
    const struct streams streams = begin(talk);
    struct talk_part sent = part(1, 0, one);

    sent.eager = true;

    talk_part(talk, streams.push, &sent);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(a_part_waits_for_the_one_before_it)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 7, 3, ten);
    talk_commit(talk, streams.push, 7, 0, 0);
    talk_expect(talk, "staged 7\n");

    send(talk, streams.push, 3, 0, one);

    talk_expect(talk, "staged 3\ndone 3 [1]\ndone 7 [2]\n");
}

TALK_TEST(without_follow_previous_a_part_overtakes)
{
    const struct streams streams = begin_without(talk, RULE_follow_previous);

    send(talk, streams.push, 7, 3, ten);
    talk_commit(talk, streams.push, 7, 0, 0);

    talk_expect(talk, "staged 7\ndone 7 [1]\n");
}

/* What it says to follow is below the mark, or not before it, or a staged neighbour says otherwise:
 * it would wait for ever. */
TALK_TEST(a_part_whose_turn_can_never_come_ends_the_stream)
{
    const struct {
        uint64_t sequence, previous;
        const char *says;
    } wrong[] = {
        {9, 9, "which is not before it: 9;"},
        {9, 12, "which is not before it: 9;"},
        {9, 1, "its mark has come to a later one: 2;"},
        {9, 3, "a later one than that is staged: 7;"},
        {6, 5, "one that is staged follows an earlier one than this: 7;"},
        {5, 2, "as it is staged it follows another: 4;"},
        {7, 4, "as it is staged it follows another: 5;"},
        {9, UINT64_MAX, "push 18446744073709551615 (2^64 - 1) on ps 1, which is not before it"}};
    const struct streams streams = begin(talk);
    uint64_t stream = streams.push;
    send(talk, stream, 1, 0, one);
    send(talk, stream, 2, 1, one);
    talk_commit(talk, stream, 2, 0, 0);
    send(talk, stream, 5, 4, one); /* given: mark 2, and 5 waits for 4, 7 for 5 */
    send(talk, stream, 7, 5, one);
    talk_forget(talk);

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        send(talk, stream, wrong[i].sequence, wrong[i].previous, one);
        talk_expect(talk, "end of stream MALFORMED\n");
        assert_non_null(strstr(talk->closed.text, wrong[i].says));
        stream = talk_push_stream(talk, 1, 2 + i);
        talk_expect(talk, "greeting\n");
    }

    send(talk, stream, 4, 2, one); /* and nothing has changed */
    talk_commit(talk, stream, 7, 0, 0);
    talk_expect(talk, "staged 4\ndone 4 [3]\ndone 5 [4]\ndone 7 [5]\n");
}

TALK_TEST(a_voided_push_takes_its_turn_and_changes_nothing)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 1, 0, one);
    send(talk, streams.push, 2, 1, ten);
    talk_forget(talk);

    talk_commit(talk, streams.push, 2, 1, 0);

    talk_expect(talk, "done 1 voided\ndone 2 [1]\n");
    expect_values(talk, streams.pull, "pulled 99 [1] 10 10 10 10\n");
}

TALK_TEST(without_done_says_voided_a_voided_push_looks_applied)
{
    const struct streams streams = begin_without(talk, RULE_done_says_voided);

    send(talk, streams.push, 1, 0, one);
    talk_forget(talk);

    talk_commit(talk, streams.push, 1, 1, 0);

    talk_expect(talk, "done 1 [0]\n");
}

TALK_TEST(answers_of_a_stream_that_is_not_read_go_out_together)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 1, 0, one);
    talk_forget(talk);
    talk->deaf = streams.push;
    send(talk, streams.push, 2, 1, one);
    talk_expect(talk, "staged 2\n");
    send(talk, streams.push, 3, 2, one);
    talk_commit(talk, streams.push, 3, 0, 0);
    talk_expect(talk, "");

    talk_writable(talk, streams.push);

    talk_expect(talk, "staged 3\ndone 1 [1]\ndone 2 [2]\ndone 3 [3]\n");
}

/* ---- streams break ---- */

TALK_TEST(a_duplicate_is_done_again_with_the_present_version)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 1, 0, one);
    send(talk, streams.push, 2, 1, one);
    talk_commit(talk, streams.push, 2, 0, 0);
    talk_forget(talk);

    send(talk, streams.push, 1, 0, one);

    talk_expect(talk, "done 1 [2]\n");
    expect_values(talk, streams.pull, "pulled 99 [2] 2 2 2 2\n");
}

TALK_TEST(without_recognise_duplicates_a_duplicate_is_staged)
{
    const struct streams streams = begin_without(talk, RULE_recognise_duplicates);

    send(talk, streams.push, 1, 0, one);
    talk_commit(talk, streams.push, 1, 0, 0);
    talk_forget(talk);

    send(talk, streams.push, 1, 0, one);

    talk_expect(talk, "staged 1\n");
}

TALK_TEST(a_part_sent_again_on_a_new_stream_is_staged_once)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 1, 0, one);
    talk_hang_up(talk, streams.push);
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);

    send(talk, again, 1, 0, one);
    talk_commit(talk, again, 1, 0, 0);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_values(talk, streams.pull, "pulled 99 [1] 1 1 1 1\n");
}

static void expect_nothing_staged(struct talk *talk)
{
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_STATS, .request = &request.base};

    talk_forget(talk);
    talk_step(talk, &call);
    assert_non_null(strstr(talk->text, " staged 0\n"));
}

/* A second copy would wait for a turn that has come and gone. */
TALK_TEST(a_part_sent_again_while_it_is_applied_is_not_staged_again)
{
    struct lane_config config = talk_config();

    config.inline_bytes = 8;
    const struct streams streams = begin_with(talk, &config);
    struct talk_part sent = part(1, 0, one);
    sent.eager = true;
    talk->holds_compute = true;
    talk_part(talk, streams.push, &sent);
    talk_hang_up(talk, streams.push);
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);

    talk_part(talk, again, &sent);
    talk_compute(talk);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    expect_nothing_staged(talk);
}

/* What was before it has been committed meanwhile. */
TALK_TEST(a_part_sent_again_may_carry_its_own_commit)
{
    const struct streams streams = begin(talk);
    struct talk_part sent = part(1, 0, one);

    talk_part(talk, streams.push, &sent);
    talk_hang_up(talk, streams.push);
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);

    sent.eager = true;
    talk_part(talk, again, &sent);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

/* The duplicate is older: it was sent before its client could commit it. */
TALK_TEST(a_part_sent_again_without_its_own_commit_keeps_the_one_that_it_had)
{
    const struct streams streams = begin(talk);
    struct talk_part first = part(1, 0, one), second = part(2, 1, ten);

    first.eager = second.eager = true;
    talk_part(talk, streams.push, &second);
    second.eager = false;
    talk_part(talk, streams.push, &second); /* when */
    talk_expect(talk, "staged 2\nstaged 2\n");
    talk_part(talk, streams.push, &first);

    talk_expect(talk, "staged 1\ndone 1 [1]\ndone 2 [2]\n"); /* then */
}

/* It is looked for where the last one was found. */
TALK_TEST(a_part_that_was_sent_again_and_is_done_may_come_once_more)
{
    const struct streams streams = begin(talk);

    for (uint64_t sequence = 1; sequence <= 4; sequence++)
        send(talk, streams.push, sequence, sequence - 1, one);
    send(talk, streams.push, 2, 1, one);
    talk_commit(talk, streams.push, 2, 0, 0);
    talk_forget(talk);

    send(talk, streams.push, 2, 1, one);

    talk_expect(talk, "done 2 [2]\n");
}

TALK_TEST(a_part_that_broke_off_is_dropped)
{
    const struct streams streams = begin(talk);
    const struct talk_part broken = part(1, 0, one);

    talk_part_step(talk, streams.push, &broken, 0, 2); /* given: the first half of a part */

    talk_hang_up(talk, streams.push); /* when its stream breaks */
    const uint64_t again = talk_push_stream(talk, 1, 2);
    send(talk, again, 1, 0, ten);
    talk_commit(talk, again, 1, 0, 0);

    talk_expect(talk, "greeting\nstaged 1\ndone 1 [1]\n"); /* then the whole one counts */
    expect_values(talk, streams.pull, "pulled 99 [1] 10 10 10 10\n");
}

TALK_TEST(what_has_come_of_a_part_when_its_session_closes_is_dropped)
{
    const struct streams streams = begin(talk);
    const struct talk_part broken = part(1, 0, one);

    talk_part_step(talk, streams.push, &broken, 0, 2);

    talk_close(talk, 1);

    expect_nothing_staged(talk);
}

TALK_TEST(a_stream_of_a_larger_generation_ends_the_older_one)
{
    const struct streams streams = begin(talk);

    (void)talk_push_stream(talk, 1, 2);
    talk_expect(talk, "end of stream STREAM_REPLACED\ngreeting\n");
    send(talk, streams.push, 1, 0, one);

    talk_expect(talk, "");
}

TALK_TEST(a_stream_of_no_larger_generation_is_refused)
{
    (void)begin(talk);
    (void)talk_push_stream(talk, 1, 5);
    talk_forget(talk);

    (void)talk_push_stream(talk, 1, 4);
    talk_expect(talk, "end of stream STREAM_REPLACED\n");
    (void)talk_push_stream(talk, 1, 5); /* nor one of the same: whose answers would they be? */

    talk_expect(talk, "end of stream STREAM_REPLACED\n");
}

TALK_TEST(without_generation_an_older_stream_is_still_taken)
{
    const struct streams streams = begin_without(talk, RULE_generation);

    (void)talk_push_stream(talk, 1, 2);
    talk_expect(talk, "greeting\n");

    send(talk, streams.push, 1, 0, one);

    talk_expect(talk, "staged 1\n");
}

static void expect_stale(struct talk *talk, uint64_t epoch, uint64_t incarnation)
{
    (void)begin(talk);
    uint8_t id[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t stream = talk_stream(talk, LANE_STREAM_PUSH);
    wire_hello hello = WIRE_HELLO_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.epoch = epoch;
    hello.ps_incarnation = incarnation;
    hello.session_id = (wire_bytes){.len = sizeof id, .data = id};
    hello.generation = 9;
    request.hello = &hello;

    talk_push(talk, stream, &request, NULL, 0);
    send(talk, stream, 1, 0, one);

    talk_expect(talk, "greeting\n");
}

TALK_TEST(a_stream_for_another_incarnation_is_greeted_and_not_obeyed)
{
    expect_stale(talk, 1, 0xDEAD);
}

TALK_TEST(a_stream_of_another_epoch_is_greeted_and_not_obeyed)
{
    expect_stale(talk, 2, talk_config().incarnation);
}

TALK_TEST(a_session_that_is_not_known_is_told_to_join_again)
{
    (void)begin(talk);

    const uint64_t stream = talk_push_stream(talk, 9, 1);
    talk_expect(talk, "greeting\nrejoin\n");
    send(talk, stream, 1, 0, one);

    talk_expect(talk, "rejoin\n");
}

/* ---- bad input ---- */

TALK_TEST(a_stream_that_says_no_hello_is_ended)
{
    (void)begin(talk);
    const uint64_t stream = talk_stream(talk, LANE_STREAM_PUSH);

    send(talk, stream, 1, 0, one);

    talk_expect(talk, "end of stream MALFORMED\n");
}

static void expect_refused(struct talk *talk, wire_hello *hello, const char *expected)
{
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    request.hello = hello;
    talk_push(talk, talk_stream(talk, LANE_STREAM_PUSH), &request, NULL, 0);
    talk_expect(talk, expected);
}

TALK_TEST(a_hello_of_another_version_or_cluster_or_of_no_session_is_refused)
{
    uint8_t id[16];
    wire_hello hello = WIRE_HELLO_INIT;

    (void)begin(talk);
    memset(id, 1, sizeof id);
    hello.protocol_version = WIRE_PROTOCOL_VERSION + 1;
    hello.cluster_id = 0xC1;
    hello.epoch = 1;
    hello.ps_incarnation = talk_config().incarnation;
    hello.session_id = (wire_bytes){.len = sizeof id, .data = id};
    hello.generation = 9;

    expect_refused(talk, &hello, "end of stream PROTOCOL_VERSION\n");
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = 0xC2;
    expect_refused(talk, &hello, "end of stream WRONG_CLUSTER\n");
    hello.cluster_id = 0xC1;
    hello.session_id.len = 15;
    expect_refused(talk, &hello, "end of stream MALFORMED\n");

    hello.session_id.len = 16; /* and without a fault it is taken */
    expect_refused(talk, &hello, "end of stream STREAM_REPLACED\ngreeting\n");
}

TALK_TEST(a_payload_that_is_longer_than_its_pieces_ends_the_stream)
{
    const struct streams streams = begin(talk);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    talk_push(talk, streams.push, &request, one, 8);

    talk_expect(talk, "end of stream MALFORMED\n");
}

/* The sum of both pieces, modulo 2^64, is what came. */
TALK_TEST(pieces_whose_sizes_wrap_around_end_the_stream)
{
    const struct streams streams = begin(talk);
    wire_piece first = WIRE_PIECE_INIT, second = WIRE_PIECE_INIT, last = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&first, &second, &last};
    wire_part header = WIRE_PART_INIT;

    first.shard_id = second.shard_id = last.shard_id = VARIABLE;
    first.bytes = UINT64_C(1) << 63;
    second.bytes = (UINT64_C(1) << 63) + 8;
    header.sequence = 1;
    header.first = header.last = true;
    header.bytes = 8;
    header.pieces = pieces;
    header.n_pieces = 3;

    talk_push_part(talk, streams.push, &header, one, 8);

    talk_expect(talk, "end of stream MALFORMED\n");
    assert_string_equal(
        talk->closed.text, "pieces of more than 2^64 - 1 bytes together in a message with a "
                           "payload of 8 bytes");
}

TALK_TEST(a_part_that_goes_on_without_a_beginning_ends_the_stream)
{
    const struct streams streams = begin(talk);
    wire_part header = WIRE_PART_INIT;

    header.sequence = 4;
    header.last = true;

    talk_push_part(talk, streams.push, &header, NULL, 0);

    talk_expect(talk, "end of stream MALFORMED\n");
}

TALK_TEST(parts_that_interleave_on_a_stream_end_it)
{
    const struct streams streams = begin(talk);
    const struct talk_part first = part(1, 0, one), second = part(2, 1, one);

    talk_part_step(talk, streams.push, &first, 0, 2);
    talk_part_step(talk, streams.push, &second, 2, 2); /* goes on with the other one */
    talk_expect(talk, "end of stream MALFORMED\n");
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_part_step(talk, again, &first, 0, 2);
    talk_part_step(talk, again, &second, 0, 2); /* begins another one */

    talk_expect(talk, "greeting\nend of stream MALFORMED\n");
    assert_string_equal(talk->closed.text, "parts interleave on one stream");
}

/* ---- records ---- */

static struct streams begin_with_records(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.records = true;
    const struct streams streams = begin_with(talk, &config);
    talk_recorded(talk);
    talk_forget(talk);
    return streams;
}

TALK_TEST(no_answer_overtakes_the_record_it_waits_for)
{
    const struct streams streams = begin_with_records(talk);

    send(talk, streams.push, 1, 0, one);
    talk_expect(talk, "");
    const uint64_t staged = talk->last_record;
    talk_commit(talk, streams.push, 1, 0, 0);
    const uint64_t applied = talk->last_record;
    assert_true(staged < applied);
    talk_expect(talk, "");

    talk_recorded_up_to(talk, staged - 1);
    talk_expect(talk, "");
    talk_recorded_up_to(talk, staged);
    talk_expect(talk, "staged 1\n");
    talk_recorded_up_to(talk, applied);
    talk_expect(talk, "done 1 [1]\n");
}

/* What it shows is chosen when it is ready: what is applied while it waits is not shown, and holds
 * nobody up. */
TALK_TEST(a_pull_waits_for_the_records_of_what_it_shows)
{
    const struct streams streams = begin_with_records(talk);

    send(talk, streams.push, 1, 0, one);
    talk_commit(talk, streams.push, 1, 0, 0);
    const uint64_t first = talk->last_record;

    talk_pull(talk, streams.pull, 1, VARIABLE, 1, 0);
    send(talk, streams.push, 2, 1, one);
    talk_commit(talk, streams.push, 2, 0, 0);
    talk_expect(talk, "");

    talk_recorded_up_to(talk, first);
    talk_expect(talk, "pulled 1 [1] 1 1 1 1\nstaged 1\ndone 1 [1]\n");
    talk_recorded(talk);
    talk_expect(talk, "staged 2\ndone 2 [2]\n");
    talk_pull(talk, streams.pull, 2, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 2 [2] 2 2 2 2\n");
}

/* Of those that wait the first holds back the rest, though their records are older: a part that
 * came again. */
TALK_TEST(answers_keep_their_order_while_they_wait)
{
    const struct streams streams = begin_with_records(talk);

    send(talk, streams.push, 1, 0, one);
    const uint64_t staged = talk->last_record;
    talk_commit(talk, streams.push, 1, 0, 0);
    send(talk, streams.push, 2, 1, one);
    talk_recorded_up_to(talk, staged);
    talk_expect(talk, "staged 1\n");

    talk_recorded(talk);

    talk_expect(talk, "staged 2\ndone 1 [1]\n");
}

TALK_TEST(refusals_ends_and_reports_wait_for_their_records)
{
    const struct streams streams = begin_with_records(talk);
    struct talk_part bad = part(1, 0, one);

    bad.offset = 1;

    talk_part(talk, streams.push, &bad);
    talk_expect(talk, "");
    talk_recorded(talk);
    talk_expect(talk, "refused 1 WRONG_SHAPE\n");
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_expect(talk, "");

    talk_recorded(talk);

    assert_non_null(strstr(talk->text, "closed 0 voided 1\n"));
    assert_non_null(strstr(talk->text, "report "));
}
