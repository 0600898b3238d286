/* SPDX-License-Identifier: Apache-2.0 */
/* lane_work.c -- whatever a peer asks, no step does much more than so much work: the rest goes on
 * with the next event, which the lane asks for. Counted is what a step looks at, makes and copies.
 */
#include <stdio.h>
#include <stdlib.h>

#include "pull_state.h"
#include "lane_talk.h"

#define VARIABLE 5u
#define LAST_ONE_WORK (PULLS_PER_STREAM_MAX + WORK_PER_STEP_MAX / 8) /* what was begun is ended */

static struct lane_config ample_config(void)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 256u << 20;
    config.report_ms = 1000000;
    config.inline_bytes = 0; /* as a ps has it */
    config.copied_pull_bytes_max = 0;
    config.block_bytes = 0;
    return config;
}

/* The lane wants to go on at once, and does, until it has done everything. Returns how many steps
 * that took. */
static uint32_t go_on(struct talk *talk)
{
    uint32_t steps = 0;

    while (talk->wake_us <= talk->now_us && steps < 10000) {
        talk->wake_us = UINT64_MAX;
        talk_tick(talk, 0);
        steps++;
    }
    return steps;
}

static void assert_steps_were_short(const struct talk *talk)
{
    assert_in_range(talk->most_work, 1, WORK_PER_STEP_MAX + LAST_ONE_WORK);
}

/* A pull of the variable that waits for that push; nobody looks into the lane after each of
 * thousands. */
static void pull_after(struct talk *talk, uint64_t stream, uint64_t number, uint64_t push)
{
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    struct lane_effects effects;

    piece.shard_id = VARIABLE;
    request.request = number;
    request.after_sequence = push;
    request.pieces = pieces;
    request.n_pieces = 1;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL,
        .now_us = talk->now_us,
        .stream = stream,
        .pull_request = &request};

    lane_step(talk->lane, &event, &effects);
}

static void pull_quietly(struct talk *talk, uint64_t stream, uint64_t number)
{
    pull_after(talk, stream, number, 1);
}

/* So many parts of one session are staged, each small enough to be applied at once. Gives its push
 * stream. */
static uint64_t stage_parts(struct talk *talk, uint64_t parts)
{
    enum { elements = 32768 };
    const struct lane_config config = ample_config();
    float *values = calloc(elements, sizeof *values);

    assert_non_null(values);
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, elements, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    for (uint64_t sequence = 1; sequence <= parts; sequence++) {
        const struct talk_part part = {
            .sequence = sequence,
            .previous = sequence - 1,
            .shard = VARIABLE,
            .shards = 1,
            .values = values,
            .count = elements};
        talk_part(talk, stream, &part);
    }
    free(values);
    return stream;
}

/* One commit is for all of them. */
TALK_TEST(many_parts_are_committed_at_once)
{
    enum { parts = 200 };
    const uint64_t stream = stage_parts(talk, parts);

    talk_forget(talk);
    talk->most_work = 0;

    talk_commit(talk, stream, parts, 0, 0);
    assert_true(talk_times_said(talk, "done ") < parts / 2);
    const uint32_t steps = go_on(talk);

    assert_int_equal(talk_times_said(talk, "done "), parts);
    assert_in_range(steps, 2, parts);
    assert_steps_were_short(talk);
}

/* A session is decided while its last parts wait for the next step: the order is answered behind
 * them. */
TALK_TEST(a_decision_waits_for_the_parts_that_had_no_time)
{
    enum { parts = 100 };

    (void)stage_parts(talk, parts);
    talk_close(talk, 1);
    talk_forget(talk);

    talk_decide(talk, 1, parts, 0);
    assert_null(strstr(talk->text, "report "));
    (void)go_on(talk);

    assert_int_equal(talk_times_said(talk, "done "), parts);
    assert_int_equal(talk_times_said(talk, "report "), 1);
}

/* A tick that no client hears anything of. Does the lane want to go on at once? */
static bool tick_quietly(struct talk *talk, uint64_t later_ms)
{
    struct lane_effects effects;
    bool at_once = false;

    talk->now_us += later_ms * 1000;
    const struct lane_event event = {.kind = LANE_EVENT_TICK, .now_us = talk->now_us};

    lane_step(talk->lane, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        at_once |=
            effects.items[i].kind == LANE_EFFECT_WAKE && effects.items[i].at_us <= talk->now_us;
    talk->most_work = lane_work(talk->lane, talk->most_work);
    assert_int_equal(effects.took_us, lane_work(talk->lane, 0) / WORK_PER_US);
    return at_once;
}

static uint32_t pulls_that_wait(const struct talk *talk)
{
    uint32_t count = 0;

    for (const struct lane_stream *stream = talk->lane->streams.first; stream != NULL;
         stream = stream->in_lane.next) {
        for (const struct lane_pull *pull = stream->pulls.first; pull != NULL;
             pull = pull->in_stream.next)
            count += pull->error.status == SUMAC_OK;
    }
    return count;
}

/* Its client has read on. Returns the work of that. */
static uint64_t read_on_quietly(struct talk *talk, uint64_t stream)
{
    struct lane_effects effects;
    const struct lane_event event = {
        .kind = LANE_EVENT_STREAM_WRITABLE, .now_us = talk->now_us, .stream = stream};

    lane_step(talk->lane, &event, &effects);
    return lane_work(talk->lane, 0);
}

static void push_one(struct talk *talk, uint64_t stream)
{
    const float values[4] = {0};
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = values, .count = 4};

    talk_part(talk, stream, &part);
}

/* Half of them wait behind the others' push. */
TALK_TEST(pulls_that_are_answered_do_not_look_at_those_that_wait)
{
    enum { half = 2000, work_of_one = 64 };
    const struct lane_config config = ample_config();
    uint64_t work = 0;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_open(talk, 2);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    const uint64_t own = talk_push_stream(talk, 1, 1), other = talk_push_stream(talk, 2, 1);
    const uint64_t stream = talk_pull_stream(talk, 1);
    for (uint64_t i = 1; i <= 2 * half; i++)
        pull_after(talk, stream, i, i <= half ? 2 : 1);
    assert_int_equal(pulls_that_wait(talk), 2 * half);

    talk->most_work = 0;
    push_one(talk, other);
    assert_in_range(talk->most_work, 1, half / 2);

    talk->deaf = stream;
    push_one(talk, own);
    for (uint32_t i = 0; i < half; i++)
        work += read_on_quietly(talk, stream);

    assert_int_equal(pulls_that_wait(talk), half);
    assert_in_range(work, half, half * work_of_one);
}

/* Pulls that wait for a push that does not come, whose time is over together. */
TALK_TEST(many_pulls_time_out_at_once)
{
    enum { streams = 3, pulls = 4000 };
    const struct lane_config config = ample_config();
    uint32_t steps = 1;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    for (uint32_t i = 0; i < streams; i++) {
        const uint64_t stream = talk_pull_stream(talk, 1);
        for (uint32_t j = 1; j <= pulls; j++)
            pull_quietly(talk, stream, j);
    }
    assert_int_equal(pulls_that_wait(talk), streams * pulls);
    talk->most_work = 0;

    for (bool at_once = tick_quietly(talk, 61000); at_once && steps < 10000; steps++)
        at_once = tick_quietly(talk, 0);

    assert_int_equal(pulls_that_wait(talk), 0);
    assert_in_range(steps, streams * pulls * WORK_OF_AN_ERROR / WORK_PER_STEP_MAX, 1000);
    assert_steps_were_short(talk);
}

TALK_TEST(many_streams_say_no_hello_in_time)
{
    enum { streams = 1500 };
    const struct lane_config config = ample_config();
    talk_start(talk, &config);
    talk_forget(talk);
    for (uint32_t i = 0; i < streams; i++)
        (void)talk_stream(talk, LANE_STREAM_PULL);
    for (uint32_t ms = 0; ms < LANE_HELLO_MS_MAX;
         ms += LANE_HELLO_MS_MAX / 5) /* it did not sleep */
        talk_tick(talk, LANE_HELLO_MS_MAX / 5 - 1);
    talk->most_work = 0;

    talk_tick(talk, 5);
    assert_in_range(talk_times_said(talk, "end of stream TIMED_OUT\n"), 1, streams - 1);
    (void)go_on(talk);

    assert_int_equal(talk_times_said(talk, "end of stream TIMED_OUT\n"), streams);
    assert_steps_were_short(talk);
}

static void call(struct talk *talk, enum lane_call_kind kind, const wire_message *request)
{
    const struct lane_event event = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = kind, .request = request};

    talk_step(talk, &event);
}

/* Statistics, and lists by name and of everything, of a ps that has much to say. */
TALK_TEST(much_is_asked_for_at_once)
{
    enum { variables = WIRE_LIST_NAMES_MAX, streams = 6, pulls = 4000 };
    const struct lane_config config = ample_config();
    static char texts[variables][16];
    char *names[variables];
    wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    talk_start(talk, &config);
    talk_open(talk, 1);
    for (uint32_t i = 0; i < variables; i++) {
        talk_variable(talk, VARIABLE + i, 1, UPDATE_ASSIGN_ADD);
        (void)snprintf(texts[i], sizeof texts[i], "v%u", VARIABLE + i);
        names[i] = texts[i];
        talk_forget(talk);
    }
    for (uint32_t i = 0; i < streams; i++) {
        const uint64_t stream = talk_pull_stream(talk, 1);
        for (uint32_t j = 1; j <= pulls; j++)
            pull_quietly(talk, stream, j);
        talk_forget(talk);
    }
    talk_tick(talk, 2000);
    talk->most_work = 0;
    talk_forget(talk);

    call(talk, LANE_CALL_LIST, &list.base);
    list.names = names;
    list.n_names = variables;
    call(talk, LANE_CALL_LIST, &list.base);
    call(talk, LANE_CALL_STATS, &stats.base);

    assert_int_equal(talk_times_said(talk, "reply ListReply\n"), 2);
    assert_int_equal(talk_times_said(talk, "reply StatsReply"), 1);
    assert_steps_were_short(talk);
}

/* What is kept of each element until it is assigned is written with its initial value: the order
 * itself is short, whatever the size. */
TALK_TEST(a_large_variable_is_made_that_its_creator_assigns)
{
    enum { elements = 3 * STORE_BLOCK_BYTES / 4 + 100 };
    static float values[elements];
    struct lane_config config = ample_config();
    const struct talk_part all = {
        .sequence = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = elements,
        .function = UPDATE_ASSIGN};
    config.pull_chunk_bytes = 0;
    talk_start(talk, &config);
    talk_open(talk, 1);

    talk_add(
        talk, VARIABLE, elements, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD,
        WIRE_INITIALIZER_ASSIGNED); /* and published, as ps 0 does it only when it is made */
    const struct shard *shard = store_shard(&talk->lane->store, VARIABLE);
    assert_non_null(shard->unassigned[0]);
    assert_null(shard->unassigned[1]); /* it is not its turn yet */
    assert_false(shard->variable->filled);
    (void)go_on(talk);
    assert_true(shard->variable->filled);
    assert_int_equal(shard->unassigned[1]->bits[STORE_BLOCK_BYTES / 4 / 64 - 1], UINT64_MAX);
    assert_int_equal(shard->unassigned[3]->bits[1], (UINT64_C(1) << 100 % 64) - 1);
    talk_part(talk, talk_push_stream(talk, 1, 1), &all);

    assert_null(shard->unassigned);
    assert_non_null(strstr(talk->text, "assigned 5\n"));
}

/* A block given back to the system takes a tenth of a millisecond. */
TALK_TEST(a_large_variable_is_deleted)
{
    enum { blocks = 64 };
    struct lane_config config = ample_config();
    uint64_t bytes;

    config.view_bytes_max = 1;
    talk_start(talk, &config);
    talk_variable(talk, VARIABLE, blocks * STORE_BLOCK_BYTES / 4, UPDATE_ASSIGN_ADD);
    (void)go_on(talk);
    talk_variable(talk, VARIABLE + 1, 4, UPDATE_ASSIGN_ADD);
    bytes = talk->bytes_taken;
    assert_true(bytes > (uint64_t)blocks * STORE_BLOCK_BYTES);
    talk->most_work = 0;

    talk_delete(talk, VARIABLE);
    assert_true(talk_times_said(talk, "report ") == 1); /* answered at once, … */
    assert_true(bytes - talk->bytes_taken < bytes / 2);
    const uint32_t steps = go_on(talk); /* … and given back after it */

    assert_true(bytes - talk->bytes_taken >= (uint64_t)blocks * STORE_BLOCK_BYTES);
    assert_in_range(steps, 2, blocks);
    assert_steps_were_short(talk);
}

/* What is filled anew takes the place of what leaves: no more is held than the state may. */
TALK_TEST(what_is_created_after_a_delete_waits_for_what_leaves)
{
    enum { blocks = 64 };
    struct lane_config config = ample_config();
    uint32_t steps = 0;

    config.view_bytes_max = 1;
    config.state_bytes_max = (blocks + 4) * (uint64_t)STORE_BLOCK_BYTES;
    talk_start(talk, &config);
    talk_variable(talk, VARIABLE, blocks * STORE_BLOCK_BYTES / 4, UPDATE_ASSIGN_ADD);
    (void)go_on(talk);
    talk_forget(talk);
    talk_delete(talk, VARIABLE);

    talk_variable(talk, VARIABLE + 1, blocks * STORE_BLOCK_BYTES / 4, UPDATE_ASSIGN_ADD);
    talk->most_bytes_taken = talk->bytes_taken;
    const struct variable *next = store_find(&talk->lane->store, VARIABLE + 1);
    for (; talk->lane->store.leaving.first != NULL && steps < blocks; steps++) {
        assert_int_equal(next->made_count, 0); /* the last tick had no time for more */
        talk_tick(talk, 0);
    }
    (void)go_on(talk);

    assert_in_range(steps, 1, blocks - 1);
    assert_true(next->filled);
    assert_true(talk->most_bytes_taken <= config.state_bytes_max + 2 * SIZED_POOL_EMPTY_BYTES_MAX);
}

/* Of so many pieces, of one variable over and over. */
static void pull_much_but_for_one(
    struct talk *talk, uint64_t stream, uint64_t number, uint32_t count, uint32_t at,
    const wire_piece *other)
{
    wire_piece piece = WIRE_PIECE_INIT, another = *other;
    wire_piece **pieces = calloc(count, sizeof *pieces);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    struct lane_effects effects;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL,
        .now_us = talk->now_us,
        .stream = stream,
        .pull_request = &request};

    assert_non_null(pieces);
    piece.shard_id = VARIABLE;
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = i == at ? &another : &piece;
    request.request = number;
    request.after_sequence = 1;
    request.pieces = pieces;
    request.n_pieces = count;
    lane_step(talk->lane, &event, &effects);
    free(pieces);
}

static void pull_much_quietly(struct talk *talk, uint64_t stream, uint64_t number, uint32_t count)
{
    const wire_piece none = WIRE_PIECE_INIT;

    pull_much_but_for_one(talk, stream, number, count, UINT32_MAX, &none);
}

/* The most that a pull may name: they are looked up over several steps, and what it reads is chosen
 * in one. */
TALK_TEST(a_pull_of_many_pieces_is_looked_up_and_answered)
{
    enum { pieces = WIRE_PULL_PIECES_MAX };
    struct lane_config config = ample_config();
    const struct shard *shard;
    uint32_t steps = 0;
    config.pull_chunk_bytes = 0;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    shard = store_shard(&talk->lane->store, VARIABLE);
    const uint64_t push = talk_push_stream(talk, 1, 1);
    const float one = 1;
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = &one, .count = 1};
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk_part(talk, push, &part);
    talk_forget(talk);
    talk->most_work = 0;

    pull_much_quietly(talk, stream, 1, pieces);
    talk->most_work = lane_work(talk->lane, talk->most_work);
    assert_in_range(shard->users, 1, pieces / 2); /* some have been looked up, … */
    assert_int_equal(lane_pull_under_way(talk->lane->streams.last), NULL);
    for (talk->wake_us = talk->now_us; talk->wake_us <= talk->now_us && steps < 1000; steps++) {
        talk->wake_us = UINT64_MAX;
        talk_tick(talk, 0); /* … and the others */
    }

    assert_int_equal(talk_times_said(talk, "pulled 1"), 2); /* its versions, and its values */
    assert_int_equal(talk->pulled_bytes, pieces * sizeof one);
    assert_int_equal(shard->users, 0);
    assert_in_range(steps, 2, 100);
    assert_steps_were_short(talk);
}

/* It is refused for the first thing that is wrong with it, when that has been looked at. */
TALK_TEST(a_pull_of_many_pieces_is_refused_for_one_of_them)
{
    enum { pieces = WIRE_PULL_PIECES_MAX, at = pieces - 100 };
    const struct lane_config config = ample_config();
    wire_piece unknown = WIRE_PIECE_INIT, odd = WIRE_PIECE_INIT, stale = WIRE_PIECE_INIT;
    wire_piece beyond = WIRE_PIECE_INIT, slot = WIRE_PIECE_INIT, no_slot = WIRE_PIECE_INIT;
    const struct {
        const wire_piece *piece;
        const char *answer;
    } rows[] = {
        {&unknown, "pulled 1 error UNKNOWN_SHARD\n"}, {&odd, "pulled 1 error UNSUPPORTED\n"},
        {&slot, "pulled 1 error MISSING_SLOTS\n"},    {&no_slot, "pulled 1 error MISSING_SLOTS\n"},
        {&stale, "pulled 1 error STALE_LAYOUT\n"},    {&beyond, "pulled 1 error WRONG_SHAPE\n"}};
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_pull_stream(talk, 1);
    unknown.shard_id = VARIABLE + 1;
    odd.shard_id = stale.shard_id = beyond.shard_id = slot.shard_id = no_slot.shard_id = VARIABLE;
    odd.kind = (Sumac__V1__Piece__Kind)99;
    slot.kind = no_slot.kind = (Sumac__V1__Piece__Kind)WIRE_PIECE_SLOT_VALUE;
    no_slot.slot = UINT32_MAX;
    stale.layout_epoch = 7;
    beyond.offset_bytes = 400;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        talk_forget(talk);
        pull_much_but_for_one(talk, stream, 1, pieces, at, rows[i].piece);
        talk->wake_us = talk->now_us;
        assert_in_range(go_on(talk), 1, 100);
        talk_expect(talk, rows[i].answer);
        assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->users, 0);
    }
}

/* What happens while it is looked up: its variable is deleted, it is cancelled, its stream ends. */
TALK_TEST(a_pull_that_is_looked_up_may_end)
{
    enum { pieces = WIRE_PULL_PIECES_MAX };
    const struct lane_config config = ample_config();
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    talk_variable(talk, VARIABLE + 1, 1, UPDATE_ASSIGN_ADD);
    const struct shard *shard = store_shard(&talk->lane->store, VARIABLE);
    const uint64_t stream = talk_pull_stream(talk, 1);
    const uint64_t other = talk_pull_stream(talk, 1);
    const uint64_t last = talk_pull_stream(talk, 1);
    talk_forget(talk);

    pull_much_quietly(talk, stream, 1, pieces);
    talk_cancel(talk, stream, 1);
    (void)go_on(talk);
    assert_int_equal(shard->users, 0);
    pull_much_quietly(talk, stream, 2, pieces);
    talk_hang_up(talk, stream);
    (void)go_on(talk);
    assert_int_equal(shard->users, 0);
    talk_expect(talk, "");

    pull_much_quietly(talk, other, 3, pieces);
    talk_pull(talk, other, 4, VARIABLE + 1, 1, 0); /* one behind it does not wait for it */
    talk_expect(talk, "pulled 4 [0] 0\n");
    talk_hang_up(talk, other);
    (void)go_on(talk);
    pull_much_quietly(talk, last, 5, pieces);
    talk_delete(talk, VARIABLE);
    (void)go_on(talk);
    assert_int_equal(talk_times_said(talk, "pulled 5 error UNKNOWN_SHARD\n"), 1);
    assert_int_equal(talk->lane->pull_bytes, 0);
    assert_int_equal(talk->lane->store.deleted_count, 0);
}

/* Half a million pieces: to let go of them takes several milliseconds. */
TALK_TEST(a_stream_with_many_pulls_goes)
{
    enum { pulls = 32, pieces = WIRE_PULL_PIECES_MAX };
    struct lane_config config = ample_config();
    uint32_t steps = 1;

    config.pulls_bytes_max = 256u << 20;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_pull_stream(talk, 1);
    for (uint32_t i = 1; i <= pulls; i++)
        pull_much_quietly(talk, stream, i, pieces);
    while (tick_quietly(talk, 0)) /* they are looked up */
        assert_steps_were_short(talk);
    const uint64_t room = talk->lane->pull_bytes;
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->users, pulls * pieces);
    talk->most_work = 0;

    talk_hang_up(talk, stream);
    assert_in_range(talk->lane->pull_bytes, room / 4, room - 1); /* what is left counts, … */
    assert_int_equal(talk->lane->sessions.first->pull_bytes, 0); /* … and not as the session's */
    steps += go_on(talk);

    assert_int_equal(talk->lane->pull_bytes, 0);
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->users, 0);
    assert_in_range(steps, pulls * pieces / PIECES_PER_WORK / WORK_PER_STEP_MAX, pulls);
    assert_steps_were_short(talk);
}

/* Parts of so many pieces, one element each of as many variables. */
static uint64_t stage_pieces(struct talk *talk, uint64_t parts, uint32_t pieces)
{
    static const float ones[TALK_PIECES_MAX] = {1};
    const struct lane_config config = ample_config();

    talk_start(talk, &config);
    talk_open(talk, 1);
    for (uint32_t i = 0; i < pieces; i++)
        talk_variable(talk, VARIABLE + i, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    for (uint64_t sequence = 1; sequence <= parts; sequence++) {
        const struct talk_part part = {
            .sequence = sequence,
            .previous = sequence - 1,
            .shard = VARIABLE,
            .shards = pieces,
            .values = ones,
            .count = 1};
        talk_part(talk, stream, &part);
    }
    talk_forget(talk);
    talk->most_work = 0;
    return stream;
}

/* Few bytes, and a slice for each of them: they are given out. */
TALK_TEST(a_part_of_many_pieces_is_applied)
{
    enum { pieces = 1500 };
    const uint64_t stream = stage_pieces(talk, 1, pieces);

    talk_commit(talk, stream, 1, 0, 0);
    (void)go_on(talk);

    assert_int_equal(talk_times_said(talk, "done 1 "), 1);
    assert_in_range(talk->computes, pieces / SLICES_PER_OPERATION_MAX + 1, pieces);
    assert_steps_were_short(talk);
}

/* As many as a message may have, which a step takes: its turn is the next step's, and its blocks
 * are looked for over several. */
TALK_TEST(a_message_of_the_most_pieces_is_taken_and_then_applied)
{
    static const float ones[WIRE_PUSH_PIECES_MAX] = {1};
    const struct talk_part part = {
        .sequence = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = WIRE_PUSH_PIECES_MAX,
        .values = ones,
        .count = 1};
    const uint64_t stream = stage_pieces(talk, 0, WIRE_PUSH_PIECES_MAX);

    talk_part(talk, stream, &part);
    assert_int_equal(talk->lane->store.position, 0);
    (void)go_on(talk);

    assert_int_equal(talk_times_said(talk, "staged 1\n"), 1);
    assert_int_equal(talk_times_said(talk, "done 1 "), 1);
    assert_int_equal(talk->lane->store.position, 1);
    assert_in_range(
        talk->computes, WIRE_PUSH_PIECES_MAX * WORK_OF_A_RUN / WORK_PER_STEP_MAX,
        WIRE_PUSH_PIECES_MAX / 100);
    assert_steps_were_short(talk);
}

TALK_TEST(many_parts_are_dropped_by_a_decision)
{
    enum { parts = 40, pieces = 1000 };

    (void)stage_pieces(talk, parts, pieces);
    talk_close(talk, 1);
    talk_forget(talk);
    talk->most_work = 0;

    talk_decide(talk, 1, 0, 0);
    assert_null(strstr(talk->text, "report ")); /* answered when they are gone */
    (void)go_on(talk);

    assert_int_equal(talk_times_said(talk, "report "), 1);
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->users, 0);
    assert_steps_were_short(talk);
}

/* It has asked for much, and gives it so much time and no more. */
TALK_TEST(a_pull_that_is_looked_up_waits_no_longer_than_it_said)
{
    enum { pieces = WIRE_PULL_PIECES_MAX };
    const struct lane_config config = ample_config();
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    push_one(talk, talk_push_stream(talk, 1, 1));
    const uint64_t stream = talk_pull_stream(talk, 1);
    pull_much_quietly(talk, stream, 1, pieces);
    talk_forget(talk);

    talk_tick(talk, 60000); /* its timeout, as it named none */

    talk_expect(talk, "report renewed 1\npulled 1 error TIMED_OUT\n");
    (void)go_on(talk);
    assert_int_equal(store_shard(&talk->lane->store, VARIABLE)->users, 0);
}

/* A push of one element each to many large blocks that a reader keeps: so many bytes are copied in
 * a step, and the rest goes on. */
TALK_TEST(a_small_push_to_many_blocks_that_are_read)
{
    enum { variables = 20, elements = STORE_BLOCK_BYTES / 4 };
    static float values[variables];
    struct lane_config config = ample_config();
    float held[2];

    config.inline_bytes = 1024;
    config.view_bytes_max = 64u << 20;
    talk_start(talk, &config);
    talk_open(talk, 1);
    for (uint64_t i = 0; i < variables; i++) {
        values[i] = 1;
        talk_variable(talk, VARIABLE + i, elements, UPDATE_ASSIGN_ADD);
        (void)go_on(talk); /* it is filled */
    }
    const uint64_t stream = talk_push_stream(talk, 1, 1), pull = talk_pull_stream(talk, 1);
    talk->deaf = pull;
    talk->holds_released = true;
    talk_pull(talk, pull, 1, VARIABLE, variables, 0); /* given */
    talk_forget(talk);
    talk->most_work = 0;
    const struct talk_part push = {
        .sequence = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = variables,
        .values = values,
        .count = 1};

    talk->computes = 0;
    talk_part(talk, stream, &push); /* when */

    assert_in_range(talk->computes, 1, 3); /* then */
    assert_non_null(strstr(talk->text, "done 1 [1 1 1"));
    for (uint64_t i = 0; i < variables; i++) {
        const struct shard *shard = store_shard(&talk->lane->store, VARIABLE + i);
        const struct block *block = shard->list[STORE_VALUE][0];
        memcpy(held, block->data, sizeof held);
        assert_true(held[0] == 1 && held[1] == 0);
    }
    talk->deaf = 0;
    talk->holds_released = false;
    talk_hang_up(talk, pull);
    talk_release(talk);
}
