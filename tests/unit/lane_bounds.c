/* SPDX-License-Identifier: Apache-2.0 */
/* lane_bounds.c -- every bound of a lane is reached, and said. */
#include <inttypes.h>
#include <stdio.h>

#include "peer_state.h"
#include "pull_state.h"
#include "handlers.h"
#include "lane_talk.h"

#define VARIABLE 5u
#define UNASSIGNED 9u
#define LARGE 20u
#define FIRST_OF_MANY 1000u

static const float one[] = {1};

static uint64_t begin_with(struct talk *talk, const struct lane_config *config)
{
    talk_start(talk, config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static uint64_t begin(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 16u << 20;
    return begin_with(talk, &config);
}

static void send(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous)
{
    const struct talk_part part = {
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = one,
        .count = 1};

    talk_part(talk, stream, &part);
}

TALK_TEST(a_session_has_so_many_parts_that_are_not_done)
{
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= LANE_PARTS_PER_SESSION_MAX; sequence++)
        send(talk, stream, sequence, sequence - 1);
    talk_forget(talk);

    send(talk, stream, LANE_PARTS_PER_SESSION_MAX + 1, LANE_PARTS_PER_SESSION_MAX);

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n");
}

/* The same part over and over: as many as there may be, and one more. */
TALK_TEST(a_message_has_so_many_parts)
{
    const uint64_t stream = begin(talk);
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[LANE_PARTS_PER_SESSION_MAX + 1];
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    header.sequence = 1;
    header.first = header.last = true;
    for (size_t i = 0; i <= LANE_PARTS_PER_SESSION_MAX; i++)
        parts[i] = &header;
    request.parts = parts;
    request.n_parts = LANE_PARTS_PER_SESSION_MAX;
    talk_push(talk, stream, &request, NULL, 0);
    assert_null(strstr(talk->text, "end of stream"));
    talk_forget(talk);

    request.n_parts = LANE_PARTS_PER_SESSION_MAX + 1;
    talk_push(talk, stream, &request, NULL, 0);

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n");
}

/* In an order that begins at neither end and never goes on where it was. */
TALK_TEST(parts_come_and_come_again_in_any_order)
{
    enum { parts = 101, stride = 37 };
    const uint64_t stream = begin(talk);
    char said[32];

    for (uint64_t i = 0; i < parts; i++) {
        const uint64_t sequence = 2 * (1 + i * stride % parts);
        send(talk, stream, sequence, sequence - 2);
    }
    talk_forget(talk);

    for (uint64_t i = 0; i < parts; i++) {
        const uint64_t sequence = 2 * (1 + i * 2 * stride % parts);
        send(talk, stream, sequence, sequence - 2);
        (void)snprintf(said, sizeof said, "staged %u\n", (unsigned)sequence);
        talk_expect(talk, said);
    }
    send(talk, stream, 51, 50);

    talk_expect(talk, "end of stream MALFORMED\n"); /* the one behind it follows 50 */
    assert_int_equal(talk->lane->sessions.first->part_count, parts);
}

/* It keeps its bytes until the last of them is written. */
TALK_TEST(a_part_that_is_being_applied_is_one_of_those)
{
    const uint64_t stream = begin(talk);
    static const float many[40] = {1};
    const struct talk_part large = {
        .sequence = 1, .eager = true, .shard = LARGE, .shards = 1, .values = many, .count = 40};

    talk_variable(talk, LARGE, 40, UPDATE_ASSIGN_ADD);
    talk->holds_compute = true;
    talk_part(talk, stream, &large);
    for (uint64_t sequence = 2; sequence <= LANE_PARTS_PER_SESSION_MAX; sequence++)
        send(talk, stream, sequence, sequence - 1);
    talk_forget(talk);

    send(talk, stream, LANE_PARTS_PER_SESSION_MAX + 1, LANE_PARTS_PER_SESSION_MAX);

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n");
    talk_compute(talk);
}

/* With all of them under way the connection is cut: those that come again are no more than
 * before. */
TALK_TEST(parts_that_are_sent_again_do_not_count_again)
{
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= LANE_PARTS_PER_SESSION_MAX; sequence++)
        send(talk, stream, sequence, sequence - 1);
    talk_hang_up(talk, stream);
    talk_forget(talk);

    const uint64_t again = talk_push_stream(talk, 1, 2);
    for (uint64_t sequence = 1; sequence <= LANE_PARTS_PER_SESSION_MAX; sequence++)
        send(talk, again, sequence, sequence - 1);
    talk_commit(talk, again, LANE_PARTS_PER_SESSION_MAX, 0, 0);
    talk_tick(talk, 0); /* so many take two steps */

    assert_null(strstr(talk->text, "end of stream"));
    assert_non_null(strstr(talk->text, "done 1024 [1024]\n"));
}

TALK_TEST(a_session_has_so_many_voided_pushes)
{
    const uint64_t stream = begin(talk);

    for (uint64_t sequence = 1; sequence <= LANE_VOIDED_PER_SESSION_MAX; sequence++)
        talk_commit(talk, stream, 0, sequence, 0);
    talk_expect(talk, "");

    talk_commit(talk, stream, 0, LANE_VOIDED_PER_SESSION_MAX + 1, 0);

    talk_expect(talk, "end of stream TOO_MANY_REFUSED\n");
}

/* Answers to a part that is sent over and over take of the grant, and of what is kept beside it for
 * refusals. */
TALK_TEST(answers_that_are_not_read_take_of_the_grant)
{
    struct lane_config config = talk_config();
    const uint32_t part_bytes = 1024 - ANSWERS_COST_BYTES + PIECE_ROOM_BYTES + 4;
    const uint32_t max = (8192 + ANSWERS_BESIDE_BYTES_MAX - part_bytes) / ANSWER_ROOM_BYTES;

    /* the last of them fits exactly */
    config.staging_bytes_max =
        config.sessions_max *
        (uint64_t)(part_bytes + max * ANSWER_ROOM_BYTES - ANSWERS_BESIDE_BYTES_MAX);
    const uint64_t stream = begin_with(talk, &config);
    send(talk, stream, 1, 0);
    talk->deaf = stream;
    for (uint32_t i = 0; i <= max; i++)
        send(talk, stream, 1, 0); /* the first of them is written */
    talk_forget(talk);

    send(talk, stream, 1, 0);

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n");
    const uint64_t again = talk_push_stream(talk, 1, 2); /* and what they took is free */
    talk->deaf = again;
    talk_forget(talk);
    for (uint32_t i = 0; i <= max; i++)
        send(talk, again, 1, 0);
    talk_expect(talk, "staged 1\n");
}

/* With room for a few answers more, and for none of a part. */
TALK_TEST(parts_take_of_what_answers_have_left_of_the_grant)
{
    struct lane_config config = talk_config();
    const uint64_t stream = begin_with(talk, &config);
    const uint32_t part_bytes = 1024 - ANSWERS_COST_BYTES + PIECE_ROOM_BYTES + 4;
    const uint32_t max = (8192 + ANSWERS_BESIDE_BYTES_MAX - part_bytes) / ANSWER_ROOM_BYTES;
    const struct lane_session *const session = talk->lane->sessions.first;

    send(talk, stream, 1, 0);
    talk->deaf = stream;
    for (uint32_t i = 0; i + 4 < max; i++)
        send(talk, stream, 1, 0);
    assert_int_equal(session->staged_bytes, part_bytes);

    send(talk, stream, 2, 1);

    assert_null(strstr(talk->text, "end of stream"));
    assert_int_equal(session->staged_bytes, part_bytes);
}

/* A client that counts its parts until they are done has the room for it. */
TALK_TEST(a_duplicate_whose_versions_find_no_room_ends_the_stream)
{
    struct lane_config config = talk_config();
    const uint64_t stream = begin_with(talk, &config);
    const float values[8] = {1};
    const struct talk_part many = {
        .sequence = 1, .eager = true, .shard = 100, .shards = 8, .values = values, .count = 1};

    for (uint32_t i = 0; i < many.shards; i++)
        talk_variable(talk, many.shard + i, 1, UPDATE_ASSIGN_ADD);
    talk_part(talk, stream, &many);
    for (uint64_t sequence = 2; strstr(talk->text, "refused") == NULL; sequence++)
        send(talk, stream, sequence, sequence - 1);
    talk_forget(talk);

    talk_part(talk, stream, &many);

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n");
    assert_non_null(strstr(talk->closed.text, "its grant of 8192 has no room for the versions"));
}

/* As many pushes as a client may have in flight, each of many shards, sent twice, and not one
 * answer read. */
TALK_TEST(a_client_that_keeps_to_its_grant_never_meets_the_bound)
{
    struct lane_config config = talk_config();

    enum { shards = 100, parts = 40, parts_in_flight_bytes = parts * (1024 + shards * 192 + 450) };
    config.staging_bytes_max = 4 * parts_in_flight_bytes; /* 400 bytes of payload, an eighth */
    const uint64_t stream = begin_with(talk, &config);
    const float values[shards] = {1};
    struct talk_part sent = {.eager = true, .shard = 100, .shards = shards, .values = values};
    sent.count = 1;
    for (uint32_t i = 0; i < shards; i++)
        talk_variable(talk, 100 + i, 1, UPDATE_ASSIGN_ADD);
    talk->deaf = stream;

    for (uint64_t sequence = 1; sequence <= parts; sequence++) {
        sent.sequence = sequence;
        sent.previous = sequence - 1;
        talk_part(talk, stream, &sent);
    }
    talk->deaf = 0;
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk->deaf = again;
    for (uint64_t sequence = 1; sequence <= parts; sequence++) {
        sent.sequence = sequence;
        sent.previous = sequence - 1;
        talk_part(talk, again, &sent);
    }
    assert_null(strstr(talk->text, "refused"));
    assert_null(strstr(talk->text, "end of stream TOO"));
    talk_forget(talk);
    talk->deaf = 0;
    talk_writable(talk, again);

    for (uint64_t sequence = 2; sequence <= parts; sequence++) { /* the first is out already */
        char expected[32];
        (void)snprintf(expected, sizeof expected, "done %" PRIu64 " [1", sequence);
        expected[strlen(expected) - 1] = '\0';
        assert_non_null(strstr(talk->text, expected));
    }
}

static uint32_t count_refused(const struct talk *talk) { return talk_times_said(talk, "refused "); }

/* Parts of a shard that is nowhere, each sent twice and refused twice; the first answer is written,
 * the others are more than a message takes. Returns how many there are. */
static uint32_t refuse_many(struct talk *talk, uint64_t stream)
{
    struct talk_part part = {.shard = 4711, .shards = 1, .values = one, .count = 1};
    const uint32_t parts = 1000, refusals = 2 * parts;

    talk->deaf = stream;
    for (uint32_t i = 0; i < refusals; i++) {
        part.sequence = i % parts + 1;
        part.previous = i % parts;
        talk_part(talk, stream, &part);
    }
    return refusals;
}

/* A client takes messages of a few megabytes: answers with long texts go out in several. */
TALK_TEST(answers_that_fill_a_message_go_on_in_the_next)
{
    const uint64_t stream = begin(talk);
    const uint32_t refusals = refuse_many(talk, stream);
    const uint32_t first = count_refused(talk);

    talk_forget(talk);

    talk_writable(talk, stream);
    const uint32_t second = count_refused(talk);
    talk_forget(talk);
    talk_writable(talk, stream);

    assert_int_equal(first, 1);
    assert_true(second < refusals - 1);
    assert_int_equal(first + second + count_refused(talk), refusals);
}

/* A part that is done is answered again, with its versions, whenever it comes again. */
TALK_TEST(versions_that_fill_a_message_go_on_in_the_next)
{
    enum { shards = 1024, times = 112 };
    struct lane_config config = talk_config();
    static const float values[shards];
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = 100, .shards = shards, .values = values, .count = 1};

    config.staging_bytes_max = 64u << 20;
    const uint64_t stream = begin_with(talk, &config);
    for (uint32_t i = 0; i < shards; i++)
        talk_variable(talk, part.shard + i, 1, UPDATE_ASSIGN_ADD);
    talk_part(talk, stream, &part);
    talk->deaf = stream;
    for (uint32_t i = 0; i <= times; i++)
        talk_part(talk, stream, &part);
    talk_forget(talk);

    talk_writable(talk, stream);

    const uint32_t first = talk_times_said(talk, "done ");
    assert_in_range(first, 50, times - 1); /* a MiB, of ten bytes for each at most */
}

/* After it nothing more is said of them. */
TALK_TEST(the_end_of_a_session_is_said_behind_what_is_said_of_its_pushes)
{
    const uint64_t stream = begin(talk);
    const uint32_t refusals = refuse_many(talk, stream);

    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    talk_forget(talk);

    talk_writable(talk, stream);
    const uint32_t second = count_refused(talk);
    assert_true(second < refusals - 1);
    assert_null(strstr(talk->text, "closed"));
    talk_forget(talk);
    talk_writable(talk, stream);

    assert_int_equal(1 + second + count_refused(talk), refusals);
    assert_non_null(strstr(talk->text, "closed 0"));
}

TALK_TEST(a_stream_has_so_many_pulls)
{
    (void)begin(talk);
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk_forget(talk);
    for (uint64_t round = 0; round < 2; round++) { /* those that are cancelled do not count */
        for (uint64_t request = 1; request <= PULLS_PER_STREAM_MAX; request++)
            talk_pull(talk, stream, request, VARIABLE, 1, 1);
        for (uint64_t request = 1; round == 0 && request <= PULLS_PER_STREAM_MAX; request++)
            talk_cancel(talk, stream, request);
    }
    talk_expect(talk, "");

    talk_pull(talk, stream, PULLS_PER_STREAM_MAX + 1, VARIABLE, 1, 1);

    talk_expect(talk, "end of stream BUSY\n");
}

#define PULL_BYTES (sized_pool_bytes(sizeof(struct lane_pull)) + 64) /* of one piece */

/* A lane with room for 128 pulls: 16 of them refused, 56 of readers, 28 of all sessions, and 7 for
 * each of four. */
static void begin_with_room_for_pulls(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.pulls_bytes_max = 128 * PULL_BYTES;
    (void)begin_with(talk, &config);
    talk_open(talk, 2);
    talk_forget(talk);
}

/* Pulls that wait, until one is refused. Returns how many wait. */
static uint32_t pull_until_refused(struct talk *talk, uint64_t stream)
{
    for (uint32_t request = 1; request <= 64; request++) {
        char refused[32];
        talk_pull(talk, stream, request, VARIABLE, 1, 1);
        (void)snprintf(refused, sizeof refused, "pulled %u error BUSY\n", request);
        const bool is_refused = strcmp(talk->text, refused) == 0;
        if (!is_refused)
            talk_expect(talk, "");
        talk_forget(talk);
        if (is_refused)
            return request - 1;
    }
    return 64;
}

/* What a session has of its own nobody else can take. */
TALK_TEST(pulls_that_wait_share_a_bound)
{
    begin_with_room_for_pulls(talk);
    const uint64_t stream = talk_pull_stream(talk, 1), other = talk_pull_stream(talk, 2);
    talk_forget(talk);

    assert_int_equal(pull_until_refused(talk, stream), 28 + 7);
    assert_int_equal(pull_until_refused(talk, other), 7);

    for (uint32_t request = 1; request <= 28 + 7; request++) /* all that was taken is free again */
        talk_cancel(talk, stream, request);
    talk_cancel(talk, other, 1);
    assert_int_equal(pull_until_refused(talk, other), 28 + 1);
    talk_hang_up(talk, other);
    assert_int_equal(pull_until_refused(talk, stream), 28 + 7);
}

/* Readers without a session wait for busy shards, or are too slow to read. */
TALK_TEST(readers_without_a_session_have_at_most_half)
{
    begin_with_room_for_pulls(talk);
    const uint64_t stream = talk_pull_stream(talk, 1), reader = talk_pull_stream(talk, 0);
    talk->deaf = reader;
    talk_forget(talk);

    const uint32_t refused =
        (uint32_t)(16 * PULL_BYTES / sized_pool_bytes(sizeof(struct lane_pull)));
    for (uint32_t request = 0; request <= 56 + refused; request++) /* the first is said at once */
        talk_pull(talk, reader, 1 + request, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 1 [0] 0\n");
    talk_pull(talk, stream, 1, VARIABLE, 1, 0); /* whoever has a session is served all the same */
    talk_expect(talk, "pulled 1 [0] 0\n");

    talk_pull(talk, reader, 999, VARIABLE, 1, 0);
    talk_expect(talk, "end of stream BUSY\n");
    talk_pull(talk, stream, 2, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 2 [0] 0\n");
}

/* Pulls before it is closed, and after. Returns their stream. */
static uint64_t pull_and_leave(struct talk *talk, uint8_t session)
{
    talk_open(talk, session);
    const uint64_t stream = talk_pull_stream(talk, session);

    for (uint32_t request = 1; request <= 20; request++)
        talk_pull(talk, stream, request, UNASSIGNED, 1, 0);
    talk_close(talk, session);
    talk_forget(talk);
    talk_decide(talk, session, 0, 0);
    for (uint32_t request = 21; request <= 30; request++)
        talk_pull(talk, stream, request, UNASSIGNED, 1, 0);
    return stream;
}

/* However many come and go, what they leave waiting takes the room of readers. */
TALK_TEST(a_closed_session_has_no_room_for_pulls_of_its_own)
{
    uint64_t streams[10];

    begin_with_room_for_pulls(talk);
    talk_add(talk, UNASSIGNED, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);

    streams[0] = pull_and_leave(talk, 3);
    assert_null(strstr(talk->text, "BUSY"));
    streams[1] = pull_and_leave(talk, 4);
    assert_non_null(strstr(talk->text, "pulled 27 error BUSY\n")); /* 30 + 26 are all there is */
    assert_null(strstr(talk->text, "end of stream"));
    for (uint8_t i = 2; i < 10; i++) {
        streams[i] = pull_and_leave(talk, (uint8_t)(i + 3));
        assert_non_null(strstr(talk->text, "end of stream BUSY\n"));
    }

    assert_int_equal(talk->lane->pull_bytes, 56 * PULL_BYTES);
    assert_int_equal(talk->lane->pulls->reader_bytes, 56 * PULL_BYTES);
    assert_int_equal(talk->lane->pulls->common_bytes, 0);
    for (uint32_t i = 0; i < 10; i++)
        talk_hang_up(talk, streams[i]);
    assert_int_equal(talk->lane->pull_bytes, 0);
    assert_int_equal(talk->lane->pulls->reader_bytes, 0);
}

/* Though the other's stream is the newer one. */
TALK_TEST(what_a_closed_session_has_no_room_for_ends_nobody_elses_pulls)
{
    begin_with_room_for_pulls(talk); /* given: 56 places of readers are taken */
    talk_add(talk, UNASSIGNED, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    (void)pull_and_leave(talk, 3);
    (void)pull_and_leave(talk, 4);
    talk_open(talk, 5);
    talk_pull(talk, talk_pull_stream(talk, 5), 1, UNASSIGNED, 1, 0);
    const uint64_t other = talk_pull_stream(talk, 2);
    talk_pull(talk, other, 1, UNASSIGNED, 1, 0);
    talk_close(talk, 5);
    talk_forget(talk);

    talk_decide(talk, 5, 0, 0);

    assert_non_null(strstr(talk->text, "end of stream BUSY\n"));
    talk_forget(talk);
    talk_pull(talk, other, 2, VARIABLE, 1, 0);
    talk_expect(talk, "pulled 2 [0] 0\n");
}

/* One of 65 536 pieces that are not there takes as much as any. */
TALK_TEST(pieces_take_room_for_as_long_as_their_pull_waits)
{
    begin_with_room_for_pulls(talk);
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk_forget(talk);

    talk_pull(talk, stream, 1, VARIABLE, TALK_PIECES_MAX, 1);

    talk_expect(talk, "pulled 1 error BUSY\n");
}

/* As many pulls of so many pieces as find room. Of each slab that their pieces lie in, one stays.
 * Returns the last one's number. */
static uint64_t riddle(struct talk *talk, uint64_t stream, uint64_t request, size_t bytes)
{
    const uint64_t first = request + 1, of_slab = (MEMORY_SLAB_BYTES - 64) / bytes;

    do {
        talk_forget(talk);
        talk_pull(
            talk, stream, ++request, FIRST_OF_MANY, (uint32_t)(bytes / sizeof(struct pull_piece)),
            9);
    } while (talk->text[0] == '\0');
    for (uint64_t other = first; other < request; other++)
        if ((other - first) % of_slab != 0)
            talk_cancel(talk, stream, other);
    talk_forget(talk);
    return request;
}

/* Of pulls of one size after the other few stay, and the memory between them serves no other size.
 * Pushes go on. */
TALK_TEST(what_lies_between_the_pieces_of_pulls_is_bounded)
{
    enum { pulls_max = 4 << 20 };
    struct lane_config config = talk_config();
    uint64_t request = 0, most = 0;
    config.pulls_bytes_max = pulls_max;
    (void)begin_with(talk, &config);
    talk_open(talk, 2);
    for (uint64_t i = 0; i < 4096 / sizeof(struct pull_piece); i++)
        talk_variable(talk, FIRST_OF_MANY + i, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_pull_stream(talk, 1), other = talk_push_stream(talk, 2, 1);
    const struct sized_pool *const pool = &talk->lane->bytes;
    talk_forget(talk);

    for (size_t bytes = 4096; bytes >= 512; bytes -= bytes / 9) {
        request = riddle(talk, stream, request, bytes);
        most = pool->held_bytes > most ? pool->held_bytes : most;
    }

    assert_in_range(most, pulls_max, 2 * pulls_max + SIZED_POOL_EMPTY_BYTES_MAX);
    assert_true(most <= pool->held_bytes_max);
    send(talk, other, 1, 0);
    talk_commit(talk, other, 1, 0, 0);
    assert_non_null(strstr(talk->text, "done 1"));
    talk_hang_up(talk, stream);
    assert_true(pool->held_bytes <= SIZED_POOL_EMPTY_BYTES_MAX + MEMORY_SLAB_BYTES);
}

/* As if others had riddled the pool: it holds all that it may, and little of that is in use. What
 * was there goes on. */
TALK_TEST(a_part_that_needs_more_than_the_pool_may_hold_is_refused)
{
    const uint64_t stream = begin(talk);
    struct sized_pool *const pool = &talk->lane->bytes;

    send(talk, stream, 1, 0);
    const uint64_t held_bytes_max = pool->held_bytes_max;
    pool->held_bytes_max = pool->held_bytes;
    talk_forget(talk);

    const float values[2000] = {1};
    talk_variable(talk, VARIABLE + 1, 2000, UPDATE_ASSIGN_ADD);
    const struct talk_part large = {
        .sequence = 2,
        .previous = 1,
        .shard = VARIABLE + 1,
        .shards = 1,
        .values = values,
        .count = 2000};
    talk_forget(talk);
    talk_part(talk, stream, &large);
    talk_expect(talk, "refused 2 OUT_OF_MEMORY\n");
    talk_commit(talk, stream, 1, 0, 0);

    assert_non_null(strstr(talk->text, "done 1"));
    pool->held_bytes_max = held_bytes_max;
}

/* The least that there is of memory is kept for its pieces. */
TALK_TEST(a_pull_of_no_pieces_takes_as_much_room_as_one_of_one)
{
    begin_with_room_for_pulls(talk);
    const uint64_t stream = talk_pull_stream(talk, 1);

    talk_pull(talk, stream, 1, VARIABLE, 0, 1);

    assert_int_equal(talk->lane->pull_bytes, PULL_BYTES);
    talk_cancel(talk, stream, 1);
    assert_int_equal(talk->lane->pull_bytes, 0);
}

TALK_TEST(a_part_names_so_many_functions)
{
    const uint64_t stream = begin(talk);
    wire_function function = WIRE_FUNCTION_INIT;
    wire_function *functions[FUNCTIONS_PER_PART_MAX + 1];
    wire_part header = WIRE_PART_INIT;

    function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    for (uint32_t i = 0; i <= FUNCTIONS_PER_PART_MAX; i++)
        functions[i] = &function;
    header.sequence = 1;
    header.first = header.last = true;
    header.functions = functions;
    header.n_functions = FUNCTIONS_PER_PART_MAX + 1;

    talk_push_part(talk, stream, &header, NULL, 0);

    talk_expect(talk, "refused 1 TOO_MANY_PIECES\n");
}

/* A session with an id of its own, opened, closed and decided. */
static void come_and_go(struct talk *talk, uint32_t number)
{
    uint8_t id[16] = {0xFF};
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    memcpy(id + 4, &number, sizeof number);
    open.session_id = decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    order.open = &open;
    talk_order(talk, &order);
    order.open = NULL;
    order.decide = &decide;
    talk_order(talk, &order);
    talk_forget(talk);
}

TALK_TEST(a_ps_remembers_so_many_closed_sessions)
{
    (void)begin(talk);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    for (uint32_t i = 1; i < LANE_CLOSED_SESSIONS_MAX; i++)
        come_and_go(talk, i);
    (void)talk_push_stream(talk, 1, 2);
    talk_expect(talk, "end of stream STREAM_REPLACED\ngreeting\nclosed 0\n");

    come_and_go(talk, LANE_CLOSED_SESSIONS_MAX);

    (void)talk_push_stream(talk, 1, 3);
    talk_expect(talk, "greeting\nrejoin\n");
}

TALK_TEST(smaller_bounds_of_sessions_are_said_and_take_less_memory)
{
    struct lane_config config = talk_config();

    struct lane *const usual = lane_create(&config, &memory_heap);
    assert_non_null(usual);
    const uint64_t usual_bytes = lane_sessions_bytes_max(usual);
    lane_destroy(usual);
    config.parts_per_session_max = 2;
    config.voided_per_session_max = 3;
    config.closed_sessions_max = 1;
    begin_with(talk, &config);

    assert_int_equal(talk->limits.parts_in_flight_max, 2);
    assert_int_equal(talk->limits.voided_max, 3);
    assert_true(lane_sessions_bytes_max(talk->lane) < usual_bytes);
}

/* The bounds that the tests above reach. */
TALK_TEST(a_greeting_says_the_bounds_that_are_in_force)
{
    struct lane_config config = talk_config();

    config.sessions_max = 2;
    config.streams_max = 48;
    begin_with(talk, &config);

    assert_int_equal(talk->limits.parts_in_flight_max, LANE_PARTS_PER_SESSION_MAX);
    assert_int_equal(talk->limits.voided_max, LANE_VOIDED_PER_SESSION_MAX);
    assert_int_equal(talk->limits.pieces_per_part_max, LANE_PIECES_PER_PART_MAX);
    assert_int_equal(talk->limits.functions_per_part_max, FUNCTIONS_PER_PART_MAX);
    assert_int_equal(talk->limits.pulls_per_stream_max, PULLS_PER_STREAM_MAX);
    assert_int_equal(talk->limits.pieces_per_pull_max, WIRE_PULL_PIECES_MAX);
    assert_int_equal(talk->limits.pieces_per_message_max, WIRE_PUSH_PIECES_MAX);
    assert_int_equal(talk->limits.message_bytes_max, 4 << 20);
    assert_int_equal(talk->limits.header_bytes_max, WIRE_HEADER_BYTES_MAX);
    assert_int_equal(talk->limits.pull_request_bytes_max, WIRE_PULL_BYTES_MAX);
    assert_int_equal(talk->limits.streams_per_session_max, 6);
}
