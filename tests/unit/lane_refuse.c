/* SPDX-License-Identifier: Apache-2.0 */
/* lane_refuse.c -- parts that are refused: for what, and that a refused part keeps its place in the
 * order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "part_state.h"
#include "lane_talk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SUM 5u    /* assign_add, four float32 */
#define MATRIX 6u /* momentum, two rows of four */

static const float one[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static uint64_t begin_with(struct talk *talk, const struct lane_config *config)
{
    talk_start(talk, config);
    talk_open(talk, 1);
    talk_variable(talk, SUM, 4, UPDATE_ASSIGN_ADD);
    talk_add(talk, MATRIX, 2, 4, SUMAC_FLOAT32, UPDATE_MOMENTUM, WIRE_INITIALIZER_ZEROS);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk) { return begin_with(talk, NULL); }

static struct talk_part part(uint64_t sequence, uint64_t previous)
{
    return (struct talk_part){
        .sequence = sequence,
        .previous = previous,
        .shard = SUM,
        .shards = 1,
        .values = one,
        .count = 4};
}

/* ---- for what ---- */

/* A part that is wrong in one way. The members that a row leaves out are those of a good part. */
TEST(each_part_is_refused_for_what_is_wrong_with_it)
{
    const struct {
        const char *name;
        struct talk_part wrong;
        const char *reason;
    } rows[] = {
        {"a_shard_that_is_not_here_is_refused", {.shard = 77}, "UNKNOWN_SHARD"},
        {"a_stale_layout_is_refused", {.layout_epoch = 3}, "STALE_LAYOUT"},
        {"a_piece_that_ends_past_the_shard_is_refused", {.offset = 1}, "WRONG_SHAPE"},
        {"an_unknown_function_is_refused", {.function = 4711}, "UNKNOWN_FUNCTION"},
        {"a_function_whose_slots_the_variable_lacks_is_refused",
         {.function = UPDATE_ADAM},
         "MISSING_SLOTS"},
        {"half_a_row_for_a_function_with_slots_is_refused",
         {.shard = MATRIX, .count = 2},
         "WHOLE_SHARD"},
        {"a_synchronous_part_needs_a_ps_that_knows_the_members",
         {.synchronous = true},
         "UNSUPPORTED"},
        {"fewer_bytes_than_declared_are_refused", {.declared = 20}, "MALFORMED"},
        {"more_bytes_than_declared_are_refused", {.declared = 12}, "MALFORMED"},
        {"a_payload_with_another_checksum_is_refused",
         {.checksum = XXH3_64bits(one, 16) + 1},
         "MALFORMED"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct talk_part sent = rows[i].wrong;
        void *made = NULL;
        char expected[64];
        print_message("%s\n", rows[i].name);
        assert_int_equal(talk_setup(&made), 0);
        const uint64_t stream = begin(made);
        sent.sequence = sent.shards = 1;
        sent.shard = sent.shard != 0 ? sent.shard : SUM;
        sent.count = sent.count != 0 ? sent.count : 4;
        sent.values = one;

        talk_part(made, stream, &sent);

        (void)snprintf(expected, sizeof expected, "refused 1 %s\n", rows[i].reason);
        talk_expect((struct talk *)made, expected);
        assert_int_equal(talk_teardown(&made), 0);
    }
}

/* A layout that was before the present one is as stale as one that is to come. */
TALK_TEST(so_is_one_that_was_before_it)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    store_shard(&talk->lane->store, SUM)->layout_epoch = 4;
    sent.layout_epoch = 3;

    talk_part(talk, stream, &sent);

    talk_expect(talk, "refused 1 STALE_LAYOUT\n");
}

/* One piece of SUM, at any byte. */
static void send_bytes(
    struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t offset_bytes, uint64_t bytes)
{
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;

    piece.shard_id = SUM;
    piece.offset_bytes = offset_bytes;
    piece.bytes = bytes;
    header.sequence = sequence;
    header.previous = sequence - 1;
    header.first = header.last = true;
    header.bytes = bytes;
    header.pieces = pieces;
    header.n_pieces = 1;
    talk_push_part(talk, stream, &header, one, bytes);
}

TALK_TEST(a_piece_that_begins_or_ends_within_an_element_is_refused)
{
    const uint64_t stream = begin(talk);

    send_bytes(talk, stream, 1, 2, 4); /* whole elements' bytes, in the middle of two */
    send_bytes(talk, stream, 2, 0, 2);
    send_bytes(talk, stream, 3, 2, 0); /* nothing, in the middle of one */
    send_bytes(talk, stream, 4, 4, 4);

    talk_expect(
        talk, "refused 1 WRONG_SHAPE\nrefused 2 WRONG_SHAPE\nrefused 3 WRONG_SHAPE\nstaged 4\n");
}

/* An empty piece that lies outside is as wrong as any other. */
TALK_TEST(an_empty_piece_past_the_shards_end_is_refused)
{
    const uint64_t stream = begin(talk);

    send_bytes(talk, stream, 1, 16, 0); /* at its end */
    send_bytes(talk, stream, 2, 20, 0);
    send_bytes(talk, stream, 3, UINT64_MAX - 3, 8);

    talk_expect(talk, "staged 1\nrefused 2 WRONG_SHAPE\nrefused 3 WRONG_SHAPE\n");
}

/* The talk looks whether the refusal can be read. */
TALK_TEST(a_refusal_that_is_cut_is_cut_between_characters)
{
    char name[1024] = "x";

    for (size_t i = 1; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 3);
    talk->name = name;
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        struct talk_part sent = part(sequence, sequence - 1);
        sent.offset = sequence == 1 ? 1 : sequence == 2 ? 10 : 100; /* figures of every length */
        talk_part(talk, stream, &sent);
    }

    talk_expect(talk, "refused 1 WRONG_SHAPE\nrefused 2 WRONG_SHAPE\nrefused 3 WRONG_SHAPE\n");
}

TALK_TEST(a_function_that_its_part_does_not_have_is_refused)
{
    const uint64_t stream = begin(talk);
    wire_function sgd = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&sgd};
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;

    sgd.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    piece.shard_id = SUM;
    piece.bytes = 16;
    piece.function = 2; /* of one */
    header.sequence = 1;
    header.first = header.last = true;
    header.bytes = 16;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = pieces;
    header.n_pieces = 1;

    talk_push_part(talk, stream, &header, one, 16);

    talk_expect(talk, "refused 1 UNKNOWN_FUNCTION\n");
}

/* Every function that keeps slots, against variables of every other. */
TALK_TEST(slots_are_those_that_a_variable_was_created_with)
{
    const uint64_t stream = begin(talk);
    static const uint32_t with_slots[] = {UPDATE_MOMENTUM, UPDATE_ADAM};
    uint64_t sequence = 0;

    for (uint32_t own = UPDATE_ASSIGN; own <= UPDATE_FUNCTIONS_MAX; own++) {
        talk_variable(talk, 20 + own, 4, own);
        for (uint32_t i = 0; i < 2; i++) {
            struct talk_part sent = part(sequence + 1, sequence);
            char expected[64];
            sequence++;
            sent.shard = 20 + own;
            sent.function = with_slots[i];
            sent.eager = true;
            talk_part(talk, stream, &sent);
            (void)snprintf(
                expected, sizeof expected,
                own == with_slots[i] ? "staged %u\ndone %u [1]\n"
                                     : "refused %u MISSING_SLOTS\ndone %u voided\n",
                (unsigned)sequence, (unsigned)sequence);
            talk_expect(talk, expected);
        }
    }
}

/* 1 - beta_2 is 1e-10 in float64 and nothing in float32. */
TALK_TEST(a_hyperparameter_is_checked_in_the_variables_type)
{
    const uint64_t stream = begin(talk);
    const double wide[4] = {1, 1, 1, 1};
    wire_hyperparameter beta = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *betas[] = {&beta};
    wire_function adam = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&adam};
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;

    talk_add(talk, 20, 4, 1, SUMAC_FLOAT32, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS);
    talk_add(talk, 21, 4, 1, SUMAC_FLOAT64, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    beta.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_BETA_2;
    beta.value = 0.9999999999;
    adam.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM;
    adam.hyperparameters = betas;
    adam.n_hyperparameters = 1;
    piece.function = 1;
    header.first = header.last = true;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = pieces;
    header.n_pieces = 1;

    for (uint64_t i = 0; i < 2; i++) {
        piece.shard_id = 20 + i;
        header.sequence = 1 + i;
        header.previous = i;
        piece.bytes = header.bytes = i == 0 ? sizeof one / 4 : sizeof wide;
        talk_push_part(talk, stream, &header, i == 0 ? (const void *)one : wide, piece.bytes);
    }

    talk_expect(talk, "refused 1 BAD_HYPERPARAMETER\nstaged 2\n");
}

/* What comes behind it ends a run, unless it has no bytes. */
TALK_TEST(half_a_row_with_another_piece_behind_it_is_refused)
{
    const uint64_t stream = begin(talk);
    wire_part header = WIRE_PART_INIT;
    wire_piece pieces[3];
    wire_piece *pointers[] = {&pieces[0], &pieces[1], &pieces[2]};

    for (uint32_t i = 0; i < 3; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = i == 1 ? SUM : MATRIX;
        pieces[i].bytes = 8;
    }
    pieces[2].offset_bytes = 8;
    header.first = header.last = true;
    header.pieces = pointers;

    for (uint64_t i = 0; i < 2; i++) {
        header.sequence = 1 + i;
        header.previous = i;
        pieces[1].bytes = i == 0 ? 8 : 0;
        header.n_pieces = i == 0 ? 2 : 3; /* the last run of the first one is fine */
        header.bytes = 16;
        talk_push_part(talk, stream, &header, one, header.bytes);
    }

    talk_expect(talk, "refused 1 WHOLE_SHARD\nstaged 2\n");
}

TALK_TEST(rows_in_messages_that_end_within_one_are_whole_rows)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    sent.shard = MATRIX;
    sent.count = 8;
    sent.eager = true;

    talk_part_in_steps(talk, stream, &sent, 3);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(a_part_larger_than_the_grant_is_refused_with_both_figures)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    sent.declared = 8192; /* as much as the grant, but the part itself takes some */
    talk->shows_logs = true;

    talk_part(talk, stream, &sent);

    talk_expect(
        talk,
        "log ps 1 refused push 1 of worker 1: takes 9920 bytes of staging on ps 1 so far, "
        "beside 0 of parts that are not done there and 0 of answers that were not read; the "
        "session's grant is 8192 bytes (0 MiB; a part takes its bytes, an eighth more of the last "
        "1048576 of them, and 1024; each piece of it 192, each function 256; a row "
        "by index 9 and an eighth more): push less at once, or "
        "start the ps with a --staging-max of 8M, or with less than its --sessions-max 4\n"
        "refused 1 PART_TOO_LARGE\n");
    assert_string_equal(talk->expected, "8192");
    assert_string_equal(talk->given, "9920");
    talk->shows_logs = false;
    sent = part(2, 1); /* a part that takes some of the grant */
    talk_part(talk, stream, &sent);
    const uint64_t left = 8192 - talk->lane->sessions.first->staged_bytes;
    sent = part(3, 2);
    sent.declared = 8192;
    talk_part(talk, stream, &sent);
    assert_true(left < 8192);
    assert_int_equal(strtoull(talk->expected, NULL, 10), left);
}

/* Of nothing but pieces, functions, or parts: each takes some of the grant, and gives it back. */
TALK_TEST(what_has_no_bytes_takes_of_the_grant_too)
{
    const uint64_t stream = begin(talk);

    enum { shards = 64 };
    for (uint32_t i = 0; i < shards; i++)
        talk_variable(talk, 100 + i, 1, UPDATE_ASSIGN_ADD);
    struct talk_part empty = part(1, 0);
    empty.shard = 100;
    empty.count = 0;

    empty.shards = 38; /* 1024 - 320 for the answers, and 168 each: 7088 of 8192 */
    talk_part(talk, stream, &empty);
    talk_expect(talk, "staged 1\n");
    empty.sequence = 2;
    empty.previous = 1;
    empty.shards = 3;
    talk_part(talk, stream, &empty);
    talk_expect(talk, "refused 2 PART_TOO_LARGE\n");
    talk_commit(talk, stream, 2, 2, 2);
    talk_forget(talk);

    empty.sequence = 3;
    empty.previous = 2;
    empty.shards = 38;
    empty.eager = true;
    talk_part(talk, stream, &empty); /* all of it is free again */
    assert_non_null(strstr(talk->text, "staged 3\ndone 3 ["));
}

/* A piece that goes on where the one before ended is no more than that one. */
TALK_TEST(a_piece_that_is_continued_takes_room_once)
{
    const uint64_t stream = begin(talk);

    enum { elements = 512 };
    float values[elements];
    for (int i = 0; i < elements; i++)
        values[i] = 1;
    talk_variable(talk, 100, elements, UPDATE_ASSIGN_ADD);
    struct talk_part sent = part(1, 0);
    sent.shard = 100;
    sent.values = values;
    sent.count = elements;
    sent.eager = true;

    talk_part_in_steps(talk, stream, &sent, 2);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

TALK_TEST(parts_that_together_exceed_the_grant_are_refused)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 4 * 2048; /* two parts of 16 bytes, no third */
    const uint64_t stream = begin_with(talk, &config);
    struct talk_part sent = part(1, 0);
    talk_part(talk, stream, &sent);
    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);
    talk_forget(talk);

    sent.previous = sent.sequence++;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "refused 3 PART_TOO_LARGE\n");
}

TALK_TEST(room_is_free_again_when_a_part_is_done)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 4 * 1024; /* one of them */
    const uint64_t stream = begin_with(talk, &config);
    struct talk_part sent = part(1, 0);
    sent.eager = true;
    talk_part(talk, stream, &sent);
    talk_forget(talk);

    sent.sequence = 2;
    sent.previous = 1;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 2\ndone 2 [2]\n");
}

TALK_TEST(a_value_that_is_not_finite_is_refused)
{
    const uint64_t stream = begin(talk);
    const float values[] = {1, 2, NAN, 4};
    struct talk_part sent = part(1, 0);

    sent.values = values;
    talk->shows_logs = true;

    talk_part(talk, stream, &sent);

    talk_expect(
        talk, "log ps 1 refused push 1 of worker 1: what it has for variable v5 "
              "is not finite; it is applied nowhere (allow it with allow_non_finite)\n"
              "refused 1 NON_FINITE\n");
}

TALK_TEST(an_option_allows_what_is_not_finite)
{
    const uint64_t stream = begin(talk);
    const float values[] = {1, 2, INFINITY, 4};
    struct talk_part sent = part(1, 0);

    sent.values = values;
    sent.allow_non_finite = true;
    sent.eager = true;

    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

/* It would be summed up: one of them, and the session's weight is no number any more. */
TALK_TEST(a_weight_that_is_no_count_is_refused)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    sent.weight = NAN;
    talk_part(talk, stream, &sent);
    sent = part(2, 1);
    sent.weight = INFINITY;
    talk_part(talk, stream, &sent);
    sent = part(3, 2);
    sent.weight = -1;
    talk_part(talk, stream, &sent);

    talk_expect(talk, "refused 1 MALFORMED\nrefused 2 MALFORMED\nrefused 3 MALFORMED\n");
}

TALK_TEST(a_payload_with_its_checksum_is_staged)
{
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    sent.checksum = XXH3_64bits(one, 16);

    talk_part_in_steps(talk, stream, &sent, 3);

    talk_expect(talk, "staged 1\n");
}

TALK_TEST(more_pieces_than_a_part_may_have_are_refused)
{
    const uint64_t stream = begin(talk);

    enum { per_message = 4096 };
    wire_part header = WIRE_PART_INIT;
    for (uint32_t i = 0; i < per_message; i++) {
        talk->pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        talk->pieces[i].shard_id = SUM;
        talk->piece_pointers[i] = &talk->pieces[i];
    }
    header.sequence = 1;
    header.pieces = talk->piece_pointers;
    header.n_pieces = per_message;

    for (uint32_t sent = 0; sent <= LANE_PIECES_PER_PART_MAX; sent += per_message) {
        header.first = sent == 0;
        header.last = sent == LANE_PIECES_PER_PART_MAX;
        header.n_pieces = header.last ? 1 : per_message;
        talk_push_part(talk, stream, &header, NULL, 0);
    }

    talk_expect(talk, "refused 1 TOO_MANY_PIECES\n");
}

/* ---- what follows ---- */

TALK_TEST(a_refused_part_takes_its_turn)
{
    const uint64_t stream = begin(talk);
    struct talk_part bad = part(1, 0), good = part(2, 1);

    bad.offset = 1;
    talk_part(talk, stream, &bad);
    talk_part(talk, stream, &good);
    talk_expect(talk, "refused 1 WRONG_SHAPE\nstaged 2\n");

    talk_commit(talk, stream, 2, 1, 0);

    talk_expect(talk, "done 1 voided\ndone 2 [1]\n");
}

TALK_TEST(a_refused_eager_part_is_voided_here)
{
    const uint64_t stream = begin(talk);
    struct talk_part bad = part(1, 0);

    bad.offset = 1;
    bad.eager = true;

    talk_part(talk, stream, &bad);

    talk_expect(talk, "refused 1 WRONG_SHAPE\ndone 1 voided\n");
}

TALK_TEST(a_refusal_is_remembered_until_it_was_heard)
{
    const uint64_t stream = begin(talk);
    struct talk_part bad = part(1, 0);

    bad.offset = 1;
    bad.eager = true;
    talk_part(talk, stream, &bad);
    talk_forget(talk);

    talk_part(talk, stream, &bad); /* again, after a reconnect, say */
    talk_expect(talk, "refused 1 WRONG_SHAPE\ndone 1 voided\n");
    talk_commit(talk, stream, 1, 1, 1);
    talk_part(talk, stream, &bad);

    talk_expect(talk, "done 1 [0]\n"); /* its client has said that it knows */
}

TALK_TEST(without_acked_through_a_refusal_is_forgotten_at_once)
{
    struct lane_config config = talk_config();

    config.broken = rule_bit(RULE_acked_through);
    const uint64_t stream = begin_with(talk, &config);
    struct talk_part bad = part(1, 0);
    bad.offset = 1;
    bad.eager = true;
    talk_part(talk, stream, &bad);
    talk_forget(talk);

    talk_part(talk, stream, &bad);

    talk_expect(talk, "done 1 [0]\n");
}

/* The first eight of a session, then the 16th, the 32nd, … */
TALK_TEST(lines_of_refused_pushes_become_rarer)
{
    const uint64_t stream = begin(talk);
    const float values[] = {NAN, 2, 3, 4};
    char line[64];

    talk->shows_logs = true;
    for (uint64_t sequence = 1; sequence <= 33; sequence++) {
        const bool said = sequence <= 8 || sequence == 16 || sequence == 32;
        struct talk_part sent = part(sequence, sequence - 1);
        sent.values = values;
        talk_part(talk, stream, &sent);
        (void)snprintf(line, sizeof line, "log ps 1 refused push %u of", (unsigned)sequence);
        assert_int_equal(strstr(talk->text, line) != NULL, said);
        talk_forget(talk);
    }
}
