/* SPDX-License-Identifier: Apache-2.0 */
/* lane_message.c -- parts that share a message: whatever becomes of the first one, the second one
 * has its own bytes. */
#include <math.h>

#include "lane_opened.h"
#include "step.h"

#define UNKNOWN 4711u
#define PIECES_MAX 2u

/* The first part: pieces of 16 bytes each. */
struct first {
    uint64_t sequence;
    uint32_t count;
    struct {
        uint64_t shard, offset_bytes;
        int kind;
    } pieces[PIECES_MAX];
    float value; /* of every element */
};

/* The second one follows it, and has 1, 2, 3, 4. */
static void send_with_another(struct talk *talk, uint64_t stream, const struct first *first)
{
    const float second[] = {1, 2, 3, 4};
    float payload[4 * (PIECES_MAX + 1)];
    wire_piece pieces[PIECES_MAX + 1];
    wire_piece *pointers[] = {&pieces[0], &pieces[1], &pieces[2]};
    wire_part parts[] = {WIRE_PART_INIT, WIRE_PART_INIT}, *both[] = {&parts[0], &parts[1]};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const uint32_t count = first->count;

    for (uint32_t i = 0; i <= count; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = i < count ? first->pieces[i].shard : VARIABLE;
        pieces[i].offset_bytes = i < count ? first->pieces[i].offset_bytes : 0;
        pieces[i].kind = (Sumac__V1__Piece__Kind)(i < count ? first->pieces[i].kind : 0);
        pieces[i].bytes = sizeof second;
    }
    for (uint32_t i = 0; i < 4 * count; i++)
        payload[i] = first->value;
    memcpy(payload + 4 * count, second, sizeof second);
    for (uint32_t i = 0; i < 2; i++) {
        parts[i].first = parts[i].last = parts[i].eager = true;
        parts[i].sequence = first->sequence + i;
        parts[i].previous = parts[i].sequence - 1;
        parts[i].weight = 1;
        parts[i].pieces = i == 0 ? pointers : pointers + count;
        parts[i].n_pieces = i == 0 ? count : 1;
        parts[i].bytes = parts[i].n_pieces * sizeof second;
    }
    request.parts = both;
    request.n_parts = 2;
    talk_push(talk, stream, &request, payload, (4 * count + 4) * sizeof *payload);
}

static void expect_values(struct talk *talk, const char *line)
{
    talk_forget(talk);
    const uint64_t stream = talk_pull_stream(talk, 0);
    talk_forget(talk);
    talk_pull(talk, stream, 9, VARIABLE, 1, 0);
    talk_expect(talk, line);
}

TALK_TEST(a_part_behind_one_that_is_refused_has_its_own_bytes)
{
    static const struct first refused[] = {
        {.sequence = 1, .count = 1, .pieces = {{.shard = UNKNOWN}}, .value = 50},
        {.sequence = 3, .count = 2, .pieces = {{.shard = UNKNOWN}, {.shard = VARIABLE}}},
        {.sequence = 5, .count = 2, .pieces = {{.shard = VARIABLE}, {VARIABLE, 4, 0}}},
        {.sequence = 7,
         .count = 2,
         .pieces = {{.shard = VARIABLE}, {.shard = VARIABLE}},
         .value = NAN},
        {.sequence = 9,
         .count = 2,
         .pieces = {{VARIABLE, 8, WIRE_PIECE_ROW_INDICES}, {.shard = VARIABLE}}},
    };
    static const char *const values[] = {
        "pulled 9 [1] 1 2 3 4\n", "pulled 9 [2] 2 4 6 8\n", "pulled 9 [3] 3 6 9 12\n",
        "pulled 9 [4] 4 8 12 16\n", "pulled 9 [5] 5 10 15 20\n"};
    const uint64_t stream = begin(talk);

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        send_with_another(talk, stream, &refused[i]);

        assert_int_equal(talk_times_said(talk, "refused"), 1);
        expect_values(talk, values[i]);
    }
}

TALK_TEST(a_part_behind_a_duplicate_has_its_own_bytes)
{
    const struct first again = {
        .sequence = 1, .count = 1, .pieces = {{.shard = VARIABLE}}, .value = 50};
    const uint64_t stream = begin(talk);
    struct talk_part sent = part(1, 0);

    sent.eager = true;
    talk_part(talk, stream, &sent);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");

    send_with_another(talk, stream, &again);

    talk_expect(talk, "staged 2\ndone 1 [1]\ndone 2 [2]\n");
    assert_int_equal(talk_stats(talk)->duplicates, 1);
    assert_int_equal(talk_stats(talk)->sessions[0]->duplicates, 1);
    expect_values(talk, "pulled 9 [2] 2 3 4 5\n");
}

TALK_TEST(behind_a_part_that_ends_the_stream_nothing_is_taken)
{
    const struct first never = {.sequence = 0, .count = 1, .pieces = {{.shard = VARIABLE}}};
    const uint64_t stream = begin(talk);

    send_with_another(talk, stream, &never);

    talk_expect(talk, "end of stream MALFORMED\n");
    assert_string_equal(talk->closed.text, "a part of push 0: pushes are numbered from 1");
    assert_int_equal(talk->lane->sessions.first->part_count, 0);
    expect_values(talk, "pulled 9 [0] 0 0 0 0\n");
}
