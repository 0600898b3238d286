/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from bytes and back: payloads in place, whatever the cuts between slices, and hostile
 * input refused. */

#include "unit.h"

#include "close_cause.h"
#include "identity.h"
#include "replaced.h"
#include "google/protobuf/descriptor.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "split.h"
#include "wire_unpack.h"

#define MESSAGE_BYTES_MAX 4096u

/* A PushRequest with one part of two pieces and a function, and a payload of 100 bytes; packed,
 * payload and all. */
static size_t pack_push(uint8_t *out)
{
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *rates[] = {&rate};

    rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE;
    rate.value = 0.125;
    wire_function function = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&function};
    function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    function.n_hyperparameters = 1;
    function.hyperparameters = rates;
    wire_piece pieces[2] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT};
    wire_piece *piece_list[] = {&pieces[0], &pieces[1]};
    pieces[0].shard_id = 300;
    pieces[0].bytes = 60;
    pieces[1].shard_id = UINT64_MAX;
    pieces[1].bytes = 40;
    wire_part part = WIRE_PART_INIT;
    wire_part *parts[] = {&part};
    part.sequence = 70000;
    part.n_pieces = 2;
    part.pieces = piece_list;
    part.n_functions = 1;
    part.functions = functions;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    request.n_parts = 1;
    request.parts = parts;
    const size_t bytes = wire_packed_bytes(&request.base, 100);
    wire_pack(&request.base, 100, out);
    for (size_t i = 0; i < 100; i++)
        out[bytes + i] = (uint8_t)(i + 1);
    return bytes + 100;
}

static void assert_is_push(const struct wire_received *received)
{
    const wire_push_request *request = (const wire_push_request *)(const void *)received->message;

    assert_int_equal(request->n_parts, 1);
    assert_int_equal(request->parts[0]->sequence, 70000);
    assert_int_equal(request->parts[0]->n_pieces, 2);
    assert_int_equal(request->parts[0]->pieces[0]->shard_id, 300);
    assert_true(request->parts[0]->pieces[1]->shard_id == UINT64_MAX);
    assert_true(request->parts[0]->functions[0]->hyperparameters[0]->value == 0.125);
    assert_int_equal(request->payload.len, 0);
    assert_int_equal(received->payload_bytes, 100);
    size_t at = 0;
    for (size_t i = 0; i < received->payload_spans; i++) {
        assert_true(received->payload[i].bytes > 0);
        for (size_t j = 0; j < received->payload[i].bytes; j++)
            assert_int_equal(received->payload[i].data[j], ++at);
    }
    assert_int_equal(at, 100);
}

static void assert_malformed(const uint8_t *data, size_t bytes)
{
    struct sumac_error error;

    assert_int_equal(
        unpack_all(&sumac__v1__push_request__descriptor, data, bytes, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_non_null(strstr(error.text, "sumac.v1.PushRequest"));
}

/* Two cuts anywhere: every varint, tag, length, header and payload straddles some boundary. */
TEST(a_message_cut_anywhere_is_the_same_message)
{
    uint8_t bytes[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(bytes); /* given */
    struct arena arena;

    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    for (size_t first = 0; first <= total; first++) {
        for (size_t second = first; second <= total; second++) {
            const struct span spans[3] = {
                {bytes, first}, {bytes + first, second - first}, {bytes + second, total - second}};
            struct wire_received received;
            arena_reset(&arena);
            assert_int_equal(/* when */
                             wire_unpack(
                                 &sumac__v1__push_request__descriptor, spans, 3, &arena, &received,
                                 NULL),
                             SUMAC_OK);
            assert_is_push(&received); /* then */
        }
    }
    arena_deinit(&arena);
}

/* What lies behind the first span in memory is not the message's. */
TEST(spans_need_not_lie_side_by_side)
{
    uint8_t bytes[MESSAGE_BYTES_MAX], head[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(bytes);
    struct arena arena;

    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    for (size_t first = 0; first <= total; first++) {
        const struct span spans[2] = {{head, first}, {bytes + first, total - first}};
        struct wire_received received;
        memset(head, 0xff, sizeof head);
        memcpy(head, bytes, first);
        arena_reset(&arena);
        assert_int_equal(
            wire_unpack(&sumac__v1__push_request__descriptor, spans, 2, &arena, &received, NULL),
            SUMAC_OK);
        assert_is_push(&received);
    }
    arena_deinit(&arena);
}

/* Field 100, of every encoding that there is, before a payload of three bytes. */
TEST(fields_of_every_encoding_are_stepped_over)
{
    static const struct {
        uint8_t bytes[16];
        size_t count;
    } fields[] = {
        {{0xa0, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12}, /* a varint */
        {{0xa1, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 10},          /* 64 bits */
        {{0xa2, 6, 3, 0xff, 0xff, 0xff}, 6},                                      /* bytes */
        {{0xa5, 6, 0xff, 0xff, 0xff, 0xff}, 6},                                   /* 32 bits */
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint8_t bytes[32];
        const size_t at = fields[i].count;
        struct wire_split split;
        memcpy(bytes, fields[i].bytes, at);
        bytes[at] = (uint8_t)((WIRE_PAYLOAD_FIELD << 3 | 2) & 0x7f) | 0x80;
        bytes[at + 1] = (uint8_t)((WIRE_PAYLOAD_FIELD << 3 | 2) >> 7);
        bytes[at + 2] = 3;
        const struct span span = {.data = bytes, .bytes = at + 6};
        assert_null(split_find(&span, 1, &split));
        assert_int_equal(split.field, at);
        assert_int_equal(split.payload_begin, at + 3);
        assert_int_equal(split.payload_end, at + 6);
    }
}

/* Fields 1 to 4, whose tags have one byte, before a payload and after it; each encoding, the
 * longest varint, a length of two bytes. */
TEST(small_fields_are_stepped_over_wherever_the_message_is_cut)
{
    static const uint8_t small[] = {0x08, 1,    0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 1,    0x12, 0,    0x12, 2,    0x7a, 0x7a, 0x1d,
                                    0x7a, 0x7a, 0x7a, 0x7a, 0x21, 0x7a, 0x7a, 0x7a, 0x7a, 0x7a,
                                    0x7a, 0x7a, 0x7a, 0x12, 0x82, 0,    0x7a, 0x7a, 0x08, 0x7f};
    static const uint8_t payload[] = {0x7a, 3, 1, 2, 3};
    uint8_t bytes[2 * sizeof small + sizeof payload];

    memcpy(bytes, small, sizeof small);
    memcpy(bytes + sizeof small, payload, sizeof payload);
    memcpy(bytes + sizeof small + sizeof payload, small, sizeof small);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        const struct span spans[2] = {{bytes, cut}, {bytes + cut, sizeof bytes - cut}};
        struct wire_split split;
        assert_null(split_find(spans, 2, &split));
        assert_int_equal(split.field, sizeof small);
        assert_int_equal(split.payload_begin, sizeof small + 2);
        assert_int_equal(split.payload_end, sizeof small + sizeof payload);
    }
}

TEST(a_small_field_ends_within_its_message)
{
    static const struct {
        uint8_t bytes[16];
        size_t count;
    } fields[] = {
        {{0x08}, 1},
        {{0x12, 3, 1, 2}, 4},
        {{0x12}, 1},
        {{0x08, 0xff}, 2},
        {{0x1d, 1, 2, 3}, 4},
        {{0x13, 1}, 2},
        /* a varint of eleven bytes */
        {{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct span span = {.data = fields[i].bytes, .bytes = fields[i].count};
        struct wire_split split;
        assert_string_equal(split_find(&span, 1, &split), "is cut short in the middle of a field");
    }
}

/* Field 100 in the lower bits of a tag, and the highest of 64 set. */
TEST(the_highest_bit_of_a_tag_counts)
{
    static const uint8_t bytes[] = {0xa0, 0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0};
    const struct span span = {.data = bytes, .bytes = sizeof bytes};
    struct wire_split split;

    assert_string_equal(split_find(&span, 1, &split), "has a field whose number is out of range");
}

TEST(a_message_in_spans_of_one_byte_is_the_same_message)
{
    uint8_t bytes[MESSAGE_BYTES_MAX];
    struct span spans[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(bytes);

    for (size_t i = 0; i < total; i++)
        spans[i] = (struct span){bytes + i, 1};
    struct arena arena;
    struct wire_received received;
    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    assert_int_equal(
        wire_unpack(&sumac__v1__push_request__descriptor, spans, total, &arena, &received, NULL),
        SUMAC_OK);
    assert_is_push(&received);
    arena_deinit(&arena);
}

TEST(a_payload_may_come_before_the_other_fields)
{
    uint8_t packed[MESSAGE_BYTES_MAX], turned[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(packed);
    const size_t payload_field = 2 + 100;

    memcpy(turned, packed + total - payload_field, payload_field);
    memcpy(turned + payload_field, packed, total - payload_field);
    struct arena arena;
    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    for (size_t cut = 0; cut <= total; cut++) {
        const struct span spans[2] = {{turned, cut}, {turned + cut, total - cut}};
        struct wire_received received;
        arena_reset(&arena);
        assert_int_equal(
            wire_unpack(&sumac__v1__push_request__descriptor, spans, 2, &arena, &received, NULL),
            SUMAC_OK);
        assert_is_push(&received);
    }
    arena_deinit(&arena);
}

TEST(a_payload_is_not_copied)
{
    uint8_t bytes[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(bytes);
    const struct span span = {bytes, total};
    struct arena arena;
    struct wire_received received;

    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    assert_int_equal(
        wire_unpack(&sumac__v1__push_request__descriptor, &span, 1, &arena, &received, NULL),
        SUMAC_OK);
    assert_ptr_equal(received.payload[0].data, bytes + total - 100);
    arena_deinit(&arena);
}

TEST(every_truncation_is_refused)
{
    uint8_t bytes[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(bytes);

    /* The part, the only field before the payload, is whole at its end: that prefix is a message.
     */
    for (size_t kept = 1; kept < total; kept++)
        if (kept != total - 102)
            assert_malformed(bytes, kept);
}

TEST(a_second_payload_is_refused)
{
    const uint8_t bytes[] = {0x7a, 1, 'a', 0x7a, 1, 'b'};

    assert_malformed(bytes, sizeof bytes);
    const uint8_t empty_first[] = {0x7a, 0, 0x7a, 1, 'b'};
    assert_malformed(empty_first, sizeof empty_first);
}

TEST(hostile_bytes_are_refused)
{
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        assert_malformed(bytes, sizeof bytes);                                                     \
    } while (0)
    REFUSED(0x80);                               /* a varint without an end */
    REFUSED(0x7a, 0x64, 1, 2);                   /* a length past the end */
    REFUSED(0x7a, 0xff, 0xff, 0xff, 0xff, 0x0f); /* 2^32 - 1 bytes */
    REFUSED(0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f);       /* 2^63 - 1 bytes */
    REFUSED(0x7a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01); /* 2^64 - 1 */
    REFUSED(0x0b); /* wire types 3, 4, 6, 7 */
    REFUSED(0x0c);
    REFUSED(0x0e);
    REFUSED(0x0f);
    REFUSED(0x02, 0x00);                                                             /* field 0 */
    REFUSED(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00); /* 11 bytes */
    REFUSED(0x7a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00); /* a length */
    REFUSED(0x12, 0x03, 0x08, 0x80, 0x80); /* within a part */
    REFUSED(0x10, 0x01);                   /* a part that is a number */
#undef REFUSED
}

TEST(a_field_whose_number_is_out_of_range_is_said_to_be)
{
    static const uint8_t none[] = {0x00, 0x01}, too_large[] = {0x80, 0x80, 0x80, 0x80, 0x10, 0x01};
    static const struct span wrong[] = {{none, sizeof none}, {too_large, sizeof too_large}};

    for (size_t i = 0; i < 2; i++) {
        struct sumac_error error;
        assert_int_equal(
            unpack_all(&sumac__v1__push_request__descriptor, wrong[i].data, wrong[i].bytes, &error),
            SUMAC_INVALID_ARGUMENT);
        assert_string_equal(
            error.text,
            "malformed sumac.v1.PushRequest: it has a field whose number is out of range");
    }
}

/* Ten bytes beside a payload. */
TEST(the_largest_number_is_one)
{
    uint8_t bytes[64];
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    struct arena arena;
    struct wire_received received;
    struct sumac_error error;

    answer.position = UINT64_MAX;
    const size_t header_bytes = wire_packed_bytes(&answer.base, 3);
    wire_pack(&answer.base, 3, bytes);
    memcpy(bytes + header_bytes, "abc", 3);
    const struct span span = {.data = bytes, .bytes = header_bytes + 3};
    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);

    assert_int_equal(
        wire_unpack(&sumac__v1__pull_answer__descriptor, &span, 1, &arena, &received, &error),
        SUMAC_OK);

    assert_true(((const wire_pull_answer *)(const void *)received.message)->position == UINT64_MAX);
    assert_int_equal(received.payload_bytes, 3);
    arena_deinit(&arena);
}

/* Of empty submessages. So many would fit into the arena. */
TEST(what_inflates_beyond_its_bound_is_refused)
{
    const size_t bytes = 2u * 16384;
    uint8_t *data = memory_take(&memory_heap, bytes);

    for (size_t i = 0; i < bytes; i += 2) {
        data[i] = 0x12; /* an empty part */
        data[i + 1] = 0;
    }
    struct sumac_error error;
    const enum sumac_status status =
        unpack_all(&sumac__v1__push_request__descriptor, data, bytes, &error);
    memory_give(&memory_heap, data, bytes);
    assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, "2097152 bytes"));
}

/* 256 parts, 4096 pieces and 1280 functions of four hyperparameters, each with all that it may say,
 * and 1024 voided pushes. */
TEST(the_largest_header_of_a_client_is_unpacked)
{
    enum { parts = 256, pieces = WIRE_PUSH_PIECES_MAX, functions = 1280, given = 4, voided = 1024 };
    static wire_part all_parts[parts];
    static wire_part *part_pointers[parts];
    static wire_piece *piece_pointers[pieces];
    static wire_function *function_pointers[functions];
    static uint64_t numbers[voided];
    wire_hyperparameter value = WIRE_HYPERPARAMETER_INIT;
    wire_hyperparameter *values[given] = {&value, &value, &value, &value};
    wire_function function = WIRE_FUNCTION_INIT;
    wire_piece piece = WIRE_PIECE_INIT;
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const uint64_t large = UINT64_MAX;

    value.name = (Sumac__V1__HyperparameterName)1;
    value.value = 0.5;
    function.function = (Sumac__V1__UpdateFunction)1;
    function.hyperparameters = values;
    function.n_hyperparameters = given;
    piece.shard_id = piece.offset_bytes = piece.bytes = piece.based_on = large;
    piece.layout_epoch = piece.function = UINT32_MAX;
    for (size_t i = 0; i < pieces; i++)
        piece_pointers[i] = &piece;
    for (size_t i = 0; i < functions; i++)
        function_pointers[i] = &function;
    for (size_t i = 0; i < voided; i++)
        numbers[i] = large;
    for (size_t i = 0; i < parts; i++) {
        all_parts[i] = (wire_part)WIRE_PART_INIT;
        all_parts[i].first = all_parts[i].last = all_parts[i].eager = true;
        all_parts[i].sequence = all_parts[i].previous = all_parts[i].bytes = large;
        all_parts[i].started_at_us = large;
        all_parts[i].weight = 0.1;
        all_parts[i].pieces = piece_pointers + i * (pieces / parts);
        all_parts[i].n_pieces = pieces / parts;
        all_parts[i].functions = function_pointers + i * (functions / parts);
        all_parts[i].n_functions = functions / parts;
        part_pointers[i] = &all_parts[i];
    }
    commit.voided = numbers;
    commit.n_voided = voided;
    request.commit = &commit;
    request.parts = part_pointers;
    request.n_parts = parts;
    const size_t bytes = wire_packed_bytes(&request.base, 0);
    uint8_t *data = memory_take(&memory_heap, bytes);

    wire_pack(&request.base, 0, data);
    const enum sumac_status status =
        unpack_all(&sumac__v1__push_request__descriptor, data, bytes, NULL);

    memory_give(&memory_heap, data, bytes);
    assert_int_equal(status, SUMAC_OK);
}

TEST(a_header_above_its_bound_is_refused)
{
    const size_t filler = WIRE_HEADER_BYTES_MAX;
    const size_t bytes = filler + 20;
    uint8_t *data = memory_take(&memory_heap, bytes);

    memset(data, 0, bytes);
    const uint8_t head[] = {0xa2, 0x01, 0x80, 0x80, 0x40}; /* unknown field 20, 1 MiB long */
    const uint8_t tail[] = {0x7a, 1, 'x'};
    memcpy(data, head, sizeof head);
    memcpy(data + sizeof head + filler, tail, sizeof tail);
    assert_malformed(data, sizeof head + filler + sizeof tail);
    memory_give(&memory_heap, data, bytes);
}

TEST(a_header_may_have_all_that_its_bound_says)
{
    const uint8_t head[] = {0xa2, 0x01, 0xfb, 0xff, 0x3f}; /* unknown field 20, the rest of a MiB */
    const uint8_t tail[] = {0x7a, 1, 'x'};
    const size_t bytes = WIRE_HEADER_BYTES_MAX + sizeof tail;
    uint8_t *data = memory_take(&memory_heap, bytes);

    memset(data, 0, bytes);
    memcpy(data, head, sizeof head);
    memcpy(data + WIRE_HEADER_BYTES_MAX, tail, sizeof tail);
    const enum sumac_status status =
        unpack_all(&sumac__v1__push_request__descriptor, data, bytes, NULL);
    memory_give(&memory_heap, data, bytes);
    assert_int_equal(status, SUMAC_OK);
}

/* A header of that beginning and 1 MiB, which is more than its bound. */
static void expect_header_too_long(const uint8_t *head, size_t head_bytes)
{
    const size_t bytes = head_bytes + WIRE_HEADER_BYTES_MAX;
    uint8_t *data = memory_take(&memory_heap, bytes);
    struct sumac_error error;

    memset(data, 0, bytes);
    memcpy(data, head, head_bytes);
    const enum sumac_status status =
        unpack_all(&sumac__v1__push_request__descriptor, data, bytes, &error);
    memory_give(&memory_heap, data, bytes);
    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "1048581 bytes beside its payload, at most 1048576"));
}

TEST(so_is_one_that_lies_behind_the_payload)
{
    const uint8_t head[] = {0x7a, 1, 'x', 0xa2, 0x01, 0x80, 0x80, 0x40}; /* field 20, 1 MiB long */

    expect_header_too_long(head, sizeof head);
}

TEST(so_is_one_of_a_message_that_has_no_payload)
{
    const uint8_t head[] = {0xa2, 0x01, 0x80, 0x80, 0x40}; /* unknown field 20, 1 MiB long */

    expect_header_too_long(head, sizeof head);
}

TEST(an_empty_message_is_a_message)
{
    assert_int_equal(unpack_all(&sumac__v1__push_request__descriptor, NULL, 0, NULL), SUMAC_OK);
    assert_int_equal(unpack_all(&sumac__v1__stats_request__descriptor, NULL, 0, NULL), SUMAC_OK);
}

TEST(unpacking_again_and_again_takes_no_new_memory)
{
    uint8_t bytes[MESSAGE_BYTES_MAX];
    const size_t total = pack_push(bytes);
    const struct span spans[2] = {{bytes, 50}, {bytes + 50, total - 50}};
    struct arena arena;
    struct wire_received received;

    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    const struct arena_chunk *first = NULL;
    for (int i = 0; i < 1000; i++) {
        arena_reset(&arena);
        assert_int_equal(
            wire_unpack(&sumac__v1__push_request__descriptor, spans, 2, &arena, &received, NULL),
            SUMAC_OK);
        if (i == 0)
            first = arena.current;
        assert_ptr_equal(arena.current, first);
    }
    arena_deinit(&arena);
}

/* ---- why a session was closed */

TEST(whose_place_a_join_has_taken_is_what_was_said_of_it)
{
    const struct {
        struct replaced replaced;
        const char *said;
    } rows[] = {
        {{0}, ""},
        {{.attempt = 1}, "; takes the place of attempt 1"},
        {{.attempt = 1, .pid = 12}, "; takes the place of process 12 on an unknown host"},
        {{.attempt = 1, .pid = 12, .host = "h1", .silent_ms = 400},
         "; takes the place of process 12 on h1"},
        {{.attempt = 1, .pid = 12, .host = "h1", .alive = true, .silent_ms = 400},
         "; takes the place of process 12 on h1, which was alive 400 ms ago; if that process is of "
         "another run, set SUMAC_RUN to a different value in each run"}};
    char text[REPLACED_TEXT_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wire_replaced wire;
        wire_replaced_fill(&rows[i].replaced, &wire);

        const struct replaced again = wire_replaced_of(&wire);

        assert_string_equal(wire_replaced_print(&again, text), rows[i].said);
    }
    struct replaced longest = {
        .attempt = UINT64_MAX, .pid = UINT32_MAX, .alive = true, .silent_ms = UINT32_MAX};
    memset(longest.host, 'h', RUN_HOST_BYTES_MAX);
    assert_non_null(strstr(wire_replaced_print(&longest, text), "value in each run"));
    const struct replaced just_now = {.attempt = 2, .alive = true};
    assert_non_null(strstr(wire_replaced_print(&just_now, text), "which was alive 1 ms ago"));
    assert_int_equal(wire_replaced_of(NULL).attempt, 0);
}

TEST(the_cause_of_a_close_is_what_was_said_of_it)
{
    const struct close_cause lease = {.kind = WIRE_CLOSE_LEASE_OVER, .silent_ms = 9000};
    const struct close_cause newer = {.kind = WIRE_CLOSE_NEWER_ATTEMPT, .attempt = 3};
    const struct close_cause known = {
        .kind = WIRE_CLOSE_NEWER_ATTEMPT, .attempt = 4, .pid = 71, .host = "h2"};
    char text[CLOSE_CAUSE_TEXT_BYTES];
    wire_close_cause of_lease, of_newer;

    wire_close_cause_fill(&lease, &of_lease);
    wire_close_cause_fill(&newer, &of_newer);
    const struct close_cause lease_again = wire_close_cause_of(&of_lease);
    const struct close_cause newer_again = wire_close_cause_of(&of_newer);

    assert_string_equal(
        wire_close_cause_print(&lease_again, text),
        ": its lease ran out, no ps had heard from it for 9 s");
    assert_string_equal(
        wire_close_cause_print(&newer_again, text),
        ": another process has taken this task's place, attempt 3");
    wire_close_cause_fill(&known, &of_newer);
    const struct close_cause known_again = wire_close_cause_of(&of_newer);
    assert_string_equal(
        wire_close_cause_print(&known_again, text),
        ": process 71 on h2 has taken this task's place, attempt 4");
    assert_string_equal(wire_close_cause_hint(&lease), "");
    assert_string_equal(
        wire_close_cause_hint(&newer), "; if that process is of another run, set SUMAC_RUN to a "
                                       "different value in each run");
}

TEST(an_identity_that_cannot_be_kept_is_refused_by_what_is_wrong)
{
    wire_identity wire = WIRE_IDENTITY_INIT;
    struct run_identity identity = {.pid = 7};
    struct sumac_error error = {0};

    wire.host = (char *)(uintptr_t) "h\n1";

    assert_int_equal(wire_identity_read(&wire, &identity, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "a host with a control character"));
    assert_int_equal(identity.pid, 7);
}

/* ---- what the served types must be for all this to hold */

static const Google__Protobuf__DescriptorProto *
find_message(const Google__Protobuf__FileDescriptorSet *set, const char *full_name)
{
    for (size_t i = 0; i < set->n_file; i++) {
        const size_t prefix = strlen(set->file[i]->package);
        if (strncmp(full_name + 1, set->file[i]->package, prefix) != 0 ||
            full_name[1 + prefix] != '.')
            continue;
        for (size_t j = 0; j < set->file[i]->n_message_type; j++)
            if (strcmp(set->file[i]->message_type[j]->name, full_name + prefix + 2) == 0)
                return set->file[i]->message_type[j];
    }
    return NULL;
}

/* How deep submessages nest below `type`; fails beyond 16. */
static void assert_shallow(
    const Google__Protobuf__FileDescriptorSet *set, const Google__Protobuf__DescriptorProto *type,
    unsigned depth)
{
    assert_true(depth < 16);
    for (size_t i = 0; i < type->n_field; i++) {
        const Google__Protobuf__FieldDescriptorProto *field = type->field[i];
        if (field->type != GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE)
            continue;
        const Google__Protobuf__DescriptorProto *below = find_message(set, field->type_name);
        assert_non_null(below); /* a message of another message, or a map, would need more here */
        assert_shallow(set, below, depth + 1);
    }
}

/* protobuf-c unpacks as deep as a message nests: a type that contained itself could be sent deep
 * enough to end the stack. */
TEST(no_message_type_contains_itself)
{
    Google__Protobuf__FileDescriptorSet *set = google__protobuf__file_descriptor_set__unpack(
        NULL, (size_t)(wire_descriptor_set_end - wire_descriptor_set), wire_descriptor_set);

    assert_non_null(set);
    for (size_t i = 0; i < set->n_file; i++)
        for (size_t j = 0; j < set->file[i]->n_message_type; j++)
            assert_shallow(set, set->file[i]->message_type[j], 0);
    google__protobuf__file_descriptor_set__free_unpacked(set, NULL);
}

TEST(the_services_have_the_methods_their_numbers_say)
{
    assert_string_equal(WIRE_SESSIONS->methods[WIRE_SESSIONS_JOIN].name, "Join");
    assert_string_equal(WIRE_SESSIONS->methods[WIRE_SESSIONS_RENEW].name, "Renew");
    assert_string_equal(WIRE_SESSIONS->methods[WIRE_SESSIONS_LEAVE].name, "Leave");
    assert_int_equal(WIRE_SESSIONS->n_methods, WIRE_SESSIONS_METHODS);
    assert_string_equal(WIRE_VARIABLES->methods[WIRE_VARIABLES_CREATE].name, "Create");
    assert_string_equal(WIRE_VARIABLES->methods[WIRE_VARIABLES_DELETE].name, "Delete");
    assert_string_equal(WIRE_VARIABLES->methods[WIRE_VARIABLES_LIST].name, "List");
    assert_int_equal(WIRE_VARIABLES->n_methods, WIRE_VARIABLES_METHODS);
    assert_string_equal(WIRE_TRANSFER->methods[WIRE_TRANSFER_PUSH].name, "Push");
    assert_string_equal(WIRE_TRANSFER->methods[WIRE_TRANSFER_PULL].name, "Pull");
    assert_int_equal(WIRE_TRANSFER->n_methods, WIRE_TRANSFER_METHODS);
    assert_string_equal(WIRE_OBSERVE->methods[WIRE_OBSERVE_STATS].name, "Stats");
    assert_int_equal(WIRE_OBSERVE->n_methods, WIRE_OBSERVE_METHODS);
    assert_string_equal(WIRE_PEER->methods[WIRE_PEER_ATTEND].name, "Attend");
    assert_int_equal(WIRE_PEER->n_methods, WIRE_PEER_METHODS);
}

static bool has_payload(const wire_type *type)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(type, WIRE_PAYLOAD_FIELD);

    return field != NULL && field->type == PROTOBUF_C_TYPE_BYTES &&
           strcmp(field->name, "payload") == 0;
}

static bool has_strings(const wire_type *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].type == PROTOBUF_C_TYPE_STRING ||
            (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE &&
             has_strings(type->fields[i].descriptor)))
            return true;
    }
    return false;
}

static void assert_type_is_as_said(const wire_type *type)
{
    assert_int_equal(wire_has_payload(type), has_payload(type));
    assert_true(wire_may_have_strings(type) || !has_strings(type));
}

TEST(the_types_that_are_served_are_what_is_said_of_them)
{
    const wire_service *const services[] = {
        WIRE_SESSIONS, WIRE_VARIABLES, WIRE_TRANSFER, WIRE_OBSERVE, WIRE_PEER};

    for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
        for (unsigned j = 0; j < services[i]->n_methods; j++) {
            assert_type_is_as_said(services[i]->methods[j].input);
            assert_type_is_as_said(services[i]->methods[j].output);
        }
    }
    assert_true(wire_has_payload(&sumac__v1__push_request__descriptor));
    assert_false(wire_has_payload(&sumac__v1__part__descriptor)); /* its field 15 is functions */
    assert_false(wire_has_payload(&grpc__health__v1__health_check_request__descriptor));
    assert_true(wire_may_have_strings(&grpc__health__v1__health_check_request__descriptor));
}
