/* SPDX-License-Identifier: Apache-2.0 */
/* lane_piece.c -- the pieces of a part: every sequence of full and empty ones is applied as the
 * plain loop says, and versions are said in their order. */
#include <inttypes.h>
#include <stdio.h>

#include "lane_talk.h"

#define FLOATS 5u  /* float32, assign_add */
#define DOUBLES 6u /* float64, assign_add */
#define ROWLESS 7u /* float32, no rows */
#define COUNTED 8u /* float32, adam */
#define TWIN 9u    /* likewise */
#define ELEMENTS 24u
#define PIECES_MAX 4u

/* What one piece of a sequence is. */
struct letter {
    uint64_t shard;
    uint32_t elements;
    uint32_t function; /* 0: the variable's own; 1: assign */
};

/* With an element of four bytes and one of eight, aligned runs of few elements end in the middle of
 * a chunk of 64 bytes, and those of six reach over its end. */
static const struct letter letters[] = {
    {FLOATS, 0, 0},  {FLOATS, 1, 0},  {FLOATS, 6, 0},  {FLOATS, 0, 1},
    {FLOATS, 1, 1},  {FLOATS, 6, 1},  {DOUBLES, 0, 0}, {DOUBLES, 1, 0},
    {DOUBLES, 6, 0}, {DOUBLES, 0, 1}, {DOUBLES, 1, 1}, {DOUBLES, 6, 1},
};

#define LETTERS (sizeof letters / sizeof *letters)

/* The plain loop's variables, and what was pushed to them so far. */
struct plain {
    double floats[ELEMENTS], doubles[ELEMENTS];
    unsigned versions[2];
};

/* One push being put together. */
struct sent {
    wire_piece pieces[PIECES_MAX];
    wire_piece *pointers[PIECES_MAX];
    uint32_t count;
    uint8_t payload[PIECES_MAX * ELEMENTS * sizeof(double)];
    size_t piece_begins[PIECES_MAX + 1];
    uint32_t at[2]; /* elements of each shard that have been sent */
    uint64_t touched[2];
    uint32_t touched_count;
};

static uint64_t begin_with(struct talk *talk, struct lane_config config)
{
    config.staging_bytes_max = 1u << 20;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_add(talk, FLOATS, ELEMENTS, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_add(talk, DOUBLES, ELEMENTS, 1, SUMAC_FLOAT64, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_add(talk, ROWLESS, 0, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk) { return begin_with(talk, talk_config()); }

/* The next piece of a push: elements that follow those sent before, with values that differ,
 * applied to the plain variable, too. */
static void add_piece(struct sent *sent, struct plain *plain, const struct letter *letter)
{
    const bool wide = letter->shard == DOUBLES;
    const size_t element = wide ? sizeof(double) : sizeof(float);
    double *const values = wide ? plain->doubles : plain->floats;
    wire_piece *const piece = &sent->pieces[sent->count];
    size_t used = sent->piece_begins[sent->count];

    *piece = (wire_piece)WIRE_PIECE_INIT;
    piece->shard_id = letter->shard;
    piece->function = letter->function;
    piece->offset_bytes = sent->at[wide] * element;
    piece->bytes = letter->elements * element;
    for (uint32_t i = 0; i < letter->elements; i++) {
        const uint32_t place = sent->at[wide]++;
        const double value = 1 + 7 * sent->count + place;
        const float narrow = (float)value;
        memcpy(sent->payload + used, wide ? (const void *)&value : (const void *)&narrow, element);
        used += element;
        values[place] = letter->function == 1 ? value : values[place] + value;
    }
    bool known = false;
    for (uint32_t i = 0; i < sent->touched_count; i++)
        known = known || sent->touched[i] == letter->shard;
    if (!known)
        sent->touched[sent->touched_count++] = letter->shard;
    sent->pointers[sent->count++] = piece;
    sent->piece_begins[sent->count] = used;
}

/* Send pieces first … beyond - 1 as one message. */
static void send_some(
    struct talk *talk, uint64_t stream, struct sent *sent, uint64_t sequence, uint32_t first,
    uint32_t beyond)
{
    wire_function assign = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&assign};
    wire_part header = WIRE_PART_INIT;

    assign.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    header.sequence = sequence;
    header.last = beyond == sent->count;
    if (first == 0) {
        header.first = header.eager = true;
        header.previous = sequence - 1;
        header.bytes = sent->piece_begins[sent->count];
        header.functions = functions;
        header.n_functions = 1;
    }
    header.pieces = sent->pointers + first;
    header.n_pieces = beyond - first;
    talk_push_part(
        talk, stream, &header, sent->payload + sent->piece_begins[first],
        sent->piece_begins[beyond] - sent->piece_begins[first]);
}

static void
expect_done(struct talk *talk, const struct sent *sent, struct plain *plain, uint64_t sequence)
{
    char expected[96];
    size_t used = (size_t)snprintf(
        expected, sizeof expected, "staged %" PRIu64 "\ndone %" PRIu64 " [", sequence, sequence);

    for (uint32_t i = 0; i < sent->touched_count; i++)
        used += (size_t)snprintf(
            expected + used, sizeof expected - used, i == 0 ? "%u" : " %u",
            ++plain->versions[sent->touched[i] == DOUBLES]);
    (void)snprintf(expected + used, sizeof expected - used, "]\n");
    talk_expect(talk, expected);
}

static void expect_values(struct talk *talk, const struct plain *plain)
{
    float floats[ELEMENTS];
    double doubles[ELEMENTS];

    assert_int_equal(
        lane_peek(talk->lane, FLOATS, (uint8_t *)floats, sizeof floats), sizeof floats);
    assert_int_equal(
        lane_peek(talk->lane, DOUBLES, (uint8_t *)doubles, sizeof doubles), sizeof doubles);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        assert_true((double)floats[i] == plain->floats[i]); /* small whole numbers: exact */
        assert_true(doubles[i] == plain->doubles[i]);
    }
}

/* The plain variables start again from nothing, as do the lane's. */
static void assign_zeros(struct talk *talk, uint64_t stream, struct plain *plain, uint64_t sequence)
{
    static const struct letter whole[] = {{FLOATS, ELEMENTS, 1}, {DOUBLES, ELEMENTS, 1}};
    struct sent sent = {.count = 0};

    for (uint32_t i = 0; i < 2; i++)
        add_piece(&sent, plain, &whole[i]);
    memset(sent.payload, 0, sizeof sent.payload);
    memset(plain->floats, 0, sizeof plain->floats);
    memset(plain->doubles, 0, sizeof plain->doubles);
    send_some(talk, stream, &sent, sequence, 0, sent.count);
    expect_done(talk, &sent, plain, sequence);
}

TALK_TEST(every_sequence_of_pieces_is_applied_as_it_says)
{
    const uint64_t stream = begin(talk);
    struct plain plain = {.versions = {0, 0}};
    uint64_t sequence = 0, sequences = 1;

    for (uint32_t length = 1; length <= PIECES_MAX; length++) {
        sequences *= LETTERS;
        for (uint64_t word = 0; word < sequences; word++) {
            struct sent sent = {.count = 0};
            uint64_t rest = word;
            if (word % 64 == 0) /* so that sums stay small */
                assign_zeros(talk, stream, &plain, ++sequence);
            for (uint32_t i = 0; i < length; i++, rest /= LETTERS)
                add_piece(&sent, &plain, &letters[rest % LETTERS]);
            const uint32_t cut = (uint32_t)(word % (length + 1)); /* in one message, or in two */
            sequence++;
            if (cut > 0 && cut < length)
                send_some(talk, stream, &sent, sequence, 0, cut);
            send_some(talk, stream, &sent, sequence, cut < length ? cut : 0, length);
            expect_done(talk, &sent, &plain, sequence);
            expect_values(talk, &plain);
        }
    }
}

TALK_TEST(a_shard_without_rows_is_touched)
{
    const uint64_t stream = begin(talk);
    const struct talk_part sent = {
        .sequence = 1, .eager = true, .shard = ROWLESS, .shards = 1, .values = (const float[]){0}};

    talk_part(talk, stream, &sent);

    talk_expect(talk, "staged 1\ndone 1 [1]\n");
}

/* One push to two shards of adam: a gradient for the first `count` elements of COUNTED (0: a piece
 * without bytes), and for all elements of TWIN. */
struct adam_push {
    uint64_t sequence;
    float gradient;
    uint32_t count;
    uint32_t function; /* of the piece for COUNTED; 1: assign */
    bool assigns;      /* the first element of COUNTED, before that piece */
};

static void push_to_adam(struct talk *talk, uint64_t stream, const struct adam_push *push)
{
    float payload[1 + 2 * ELEMENTS] = {3};
    wire_function assign = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&assign};
    wire_piece assigned = WIRE_PIECE_INIT, counted = WIRE_PIECE_INIT, twin = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&assigned, &counted, &twin};
    wire_part header = WIRE_PART_INIT;

    assign.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    assigned.shard_id = counted.shard_id = COUNTED;
    assigned.function = 1;
    assigned.bytes = push->assigns ? sizeof(float) : 0;
    counted.function = push->function;
    counted.bytes = push->count * sizeof(float);
    twin.shard_id = TWIN;
    twin.bytes = ELEMENTS * sizeof(float);
    for (uint32_t i = 0; i < 2 * ELEMENTS; i++)
        payload[push->assigns + i] = push->gradient;
    header.sequence = push->sequence;
    header.first = header.last = header.eager = true;
    header.previous = push->sequence - 1;
    header.bytes = assigned.bytes + counted.bytes + twin.bytes;
    header.functions = functions;
    header.n_functions = 1;
    header.pieces = push->assigns ? pieces : pieces + 1;
    header.n_pieces = 2 + push->assigns;
    talk_push_part(talk, stream, &header, (const uint8_t *)payload, header.bytes);
}

static uint64_t begin_adam(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.records = true;
    const uint64_t stream = begin_with(talk, config);

    talk_add(talk, COUNTED, ELEMENTS, 1, SUMAC_FLOAT32, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS);
    talk_add(talk, TWIN, ELEMENTS, 1, SUMAC_FLOAT32, UPDATE_ADAM, WIRE_INITIALIZER_ZEROS);
    talk_recorded(talk);
    talk_forget(talk);
    return stream;
}

/* After `first`, which has no gradient, one with a gradient of 1. Then the second element of either
 * shard. */
static void push_two(
    struct talk *talk, uint64_t stream, const struct adam_push *first, float *counted, float *twin)
{
    float values[ELEMENTS];

    push_to_adam(talk, stream, first);
    push_to_adam(
        talk, stream, &(struct adam_push){.sequence = 2, .gradient = 1, .count = ELEMENTS});
    talk_recorded(talk);
    talk_expect(talk, "staged 1\nstaged 2\ndone 1 [1 1]\ndone 2 [2 2]\n");
    assert_int_equal(
        lane_peek(talk->lane, COUNTED, (uint8_t *)values, sizeof values), sizeof values);
    *counted = values[1];
    assert_int_equal(lane_peek(talk->lane, TWIN, (uint8_t *)values, sizeof values), sizeof values);
    *twin = values[1];
}

#define AT_T_1(value) ((value) > -0.0011f && (value) < -0.0009f)
#define AT_T_2(value) ((value) > -0.00075f && (value) < -0.00074f)

/* TWIN counts a gradient of zeros, which leaves m and v at 0. */
TALK_TEST(a_piece_without_bytes_is_counted_by_a_function_that_counts)
{
    const uint64_t stream = begin_adam(talk);
    float counted, twin;

    push_two(talk, stream, &(struct adam_push){.sequence = 1}, &counted, &twin);

    assert_true(AT_T_2(twin));
    assert_true(AT_T_2(counted));
}

/* The journal has the piece, too: it is replayed when the test ends. */
TALK_TEST(a_piece_without_bytes_is_counted_beside_a_run_of_another_function)
{
    const uint64_t stream = begin_adam(talk);
    float counted, twin;

    push_two(talk, stream, &(struct adam_push){.sequence = 1, .assigns = true}, &counted, &twin);

    assert_true(AT_T_2(twin));
    assert_true(AT_T_2(counted));
}

TALK_TEST(a_piece_without_bytes_is_not_counted_by_another_function)
{
    const uint64_t stream = begin_adam(talk);
    float counted, twin;

    push_two(talk, stream, &(struct adam_push){.sequence = 1, .function = 1}, &counted, &twin);

    assert_true(AT_T_2(twin));
    assert_true(AT_T_1(counted));
}

/* Between its two messages another session's part touches the same shard. */
TALK_TEST(a_part_that_goes_on_knows_the_one_shard_that_it_has_touched)
{
    const uint64_t stream = begin(talk);
    struct plain plain = {.versions = {0, 0}};
    struct sent sent = {.count = 0}, other = {.count = 0};
    static const struct letter some = {FLOATS, 4, 0};

    talk_open(talk, 2);
    const uint64_t others = talk_push_stream(talk, 2, 1);
    talk_forget(talk);
    add_piece(&sent, &plain, &some);
    add_piece(&sent, &plain, &some);
    add_piece(&other, &plain, &some);
    send_some(talk, stream, &sent, 1, 0, 1);
    send_some(talk, others, &other, 1, 0, 1);
    expect_done(talk, &other, &plain, 1);

    send_some(talk, stream, &sent, 1, 1, 2);

    expect_done(talk, &sent, &plain, 1); /* one version, of one shard */
    expect_values(talk, &plain);
}

/* Neighbouring ranges of one shard, each with a function of its own. */
TALK_TEST(a_piece_with_another_function_is_not_continued)
{
    const uint64_t stream = begin(talk);
    struct plain plain = {.versions = {0, 0}};
    struct sent sent = {.count = 0};
    static const struct letter add_all = {FLOATS, ELEMENTS, 0}, add = {FLOATS, 4, 0},
                               assign = {FLOATS, 4, 1};

    add_piece(&sent, &plain, &add_all);
    send_some(talk, stream, &sent, 1, 0, 1);
    expect_done(talk, &sent, &plain, 1);
    sent = (struct sent){.count = 0};

    add_piece(&sent, &plain, &assign);
    add_piece(&sent, &plain, &add);
    add_piece(&sent, &plain, &assign);
    send_some(talk, stream, &sent, 2, 0, 3);

    expect_done(talk, &sent, &plain, 2);
    expect_values(talk, &plain);
}

/* Its client knows whose version each is by their order. */
TALK_TEST(a_duplicate_is_done_with_the_versions_before_a_deleted_shard)
{
    const float values[3] = {1, 1, 1};
    const struct talk_part sent = {
        .sequence = 1, .eager = true, .shard = FLOATS, .shards = 3, .values = values, .count = 1};

    talk_start(talk, NULL);
    talk_open(talk, 1);
    for (uint32_t i = 0; i < sent.shards; i++)
        talk_variable(talk, sent.shard + i, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_part(talk, stream, &sent);
    talk_delete(talk, sent.shard + 1);
    talk_forget(talk);

    talk_part(talk, stream, &sent);

    talk_expect(talk, "done 1 [1]\n");
}

/* One of `letters`, of that kind and codec. */
static void send_odd(struct talk *talk, uint64_t stream, uint64_t sequence, int kind, int codec)
{
    struct plain plain = {.versions = {0}};
    struct sent sent = {.count = 0};

    add_piece(&sent, &plain, &letters[1]);
    sent.pieces[0].kind = (Sumac__V1__Piece__Kind)kind;
    sent.pieces[0].codec = (Sumac__V1__Piece__Codec)codec;
    send_some(talk, stream, &sent, sequence, 0, 1);
}

TALK_TEST(a_piece_of_a_kind_or_codec_that_is_not_known_is_refused)
{
    const struct plain nothing = {.versions = {0}};
    const int identity = SUMAC__V1__PIECE__CODEC__CODEC_IDENTITY;
    const uint64_t stream = begin(talk);

    send_odd(talk, stream, 1, WIRE_PIECE_ROW_INDICES, 99);
    send_odd(talk, stream, 2, WIRE_PIECE_SLOT_VALUE, identity);
    send_odd(talk, stream, 3, 99, identity);
    send_odd(talk, stream, 4, WIRE_PIECE_VALUES, 99);

    talk_expect(
        talk, "refused 1 UNSUPPORTED\ndone 1 voided\nrefused 2 UNSUPPORTED\ndone 2 voided\n"
              "refused 3 UNSUPPORTED\ndone 3 voided\nrefused 4 UNSUPPORTED\ndone 4 voided\n");
    expect_values(talk, &nothing);
}

/* As a float32 those bits are a finite number. */
TALK_TEST(a_half_that_is_not_finite_is_refused)
{
    static const uint16_t halves[] = {0x7e00, 0, 0x7e00, 0}; /* NaN, 0, … */
    const uint64_t stream = begin(talk);
    const uint64_t id = 30;
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_part part = WIRE_PART_INIT;

    talk_add(talk, id, 4, 1, SUMAC_FLOAT16, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_forget(talk);
    piece.shard_id = id;
    piece.bytes = part.bytes = sizeof halves;
    part.sequence = 1;
    part.first = part.last = part.eager = true;
    part.pieces = pieces;
    part.n_pieces = 1;

    talk_push_part(talk, stream, &part, halves, sizeof halves);

    talk_expect(talk, "refused 1 NON_FINITE\ndone 1 voided\n");
}
