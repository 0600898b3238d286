/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective_refuses.c -- contributions and pulls of rounds of collectives that a ps refuses.
 */
#include <math.h>
#include <stdio.h>

#include "lane_collective.h"

/* ---- contributions ---- */

static void expect_refused(struct world *world, const char *reason, const char *words)
{
    char line[96];

    const unsigned sequence = (unsigned)world->last[1];
    (void)snprintf(
        line, sizeof line, "refused %u %s\ndone %u voided\n", sequence, reason, sequence);
    talk_expect(world->talk, line);
    if (strstr(world->talk->refused, words) == NULL)
        fail_msg("%s: %s", words, world->talk->refused);
    talk_forget(world->talk);
}

TALK_TEST(what_is_wrong_with_it_refuses_the_part)
{
    struct world world;
    static const float four[] = {1, 2, 3, 4}, odd[] = {1, NAN, 3, 4};

    begin(&world, talk);
    come(&world, 1, four, 12);
    expect_refused(&world, "MALFORMED", "declares 12 bytes for round 1 of collective h");
    come(&world, 1, odd, sizeof odd);
    expect_refused(&world, "NON_FINITE", "is not finite");
    world.collective.name = (wire_bytes){.len = 1, .data = (uint8_t *)(uintptr_t) "g"};
    come(&world, 1, four, sizeof four);
    expect_refused(&world, "MALFORMED", "by its name it is at home on ps 0");
    world.collective.name.data = (uint8_t *)(uintptr_t)HERE;
    world.collective.tasks = &world.tasks[1];
    come(&world, 1, four, sizeof four);
    expect_refused(&world, "MALFORMED", "is not one of the 2 tasks");
    world.collective.tasks = world.tasks;
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    world.weight = -1;
    come(&world, 1, four, sizeof four);
    expect_refused(&world, "MALFORMED", "has weight -1");
    assert_string_equal(world.talk->expected, "0, or 2^-60 to 2^60");
    assert_string_equal(world.talk->given, "-1");
    expect_nothing_kept(&world);
}

/* At once: the round would wait out its time. */
TALK_TEST(a_task_that_is_not_listed_is_refused)
{
    static const char *const jobs[] = {"chief", "worker", "worker"};
    static const uint32_t indices[] = {0, 1, 2};
    static const uint64_t lists[][2] = {
        {2 * 1 + 1, 2 * 9 + 1}, {2 * 0 + 1, 2 * 1 + 1}, {2 * 1, 2 * 1 + 1}};
    static const char *const unlisted[] = {
        "names worker 9, ", "names worker 0, ", "names chief 1, "};
    struct world world;
    struct lane_config config = talk_config();
    char words[96];

    config.members_jobs = jobs; /* given */
    config.members_indices = indices;
    config.member_count = 3;
    begin_with(&world, talk, &config);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        memcpy(world.tasks, lists[i], sizeof lists[i]);
        come_with(&world, 1, 1, 2, 3, 4); /* when */
        (void)snprintf(
            words, sizeof words, "%sand the cluster lists chief 0, worker 1, worker 2",
            unlisted[i]);
        expect_refused(&world, "BAD_NAME", words); /* then */
    }
    expect_nothing_kept(&world);
}

TALK_TEST(any_task_may_come_where_more_may_be_than_are_listed)
{
    static const char *const jobs[] = {"worker"};
    static const uint32_t indices[] = {1};
    struct world world;
    struct lane_config config = talk_config();

    config.members_jobs = jobs;
    config.members_indices = indices;
    config.member_count = 1;
    config.members_partial = true;
    begin_with(&world, talk, &config);

    come_with(&world, 1, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "refused"), 0);
    assert_int_equal(world.talk->lane->rounds.count, 1);
}

TALK_TEST(a_task_contributes_once)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);

    expect_refused(&world, "ALREADY_EXISTS", "push 1 has done so");
}

/* They have their room, and their rounds are entered when their turn comes. */
TALK_TEST(of_one_name_a_session_has_so_many_that_wait_for_their_turn)
{
    struct world world;
    struct lane_config config = talk_config();

    config.staging_bytes_max = UINT64_C(4) << 22;
    begin_with(&world, talk, &config);
    world.waits = true;
    for (world.collective.round = 1; world.collective.round <= ROUNDS_OF_NAME_MAX;
         world.collective.round++)
        come_with(&world, 1, 1, 2, 3, 4);
    assert_int_equal(talk_times_said(world.talk, "refused"), 0);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "refused 65 BUSY"), 1);
    assert_non_null(strstr(world.talk->refused, "it waits for 64 rounds of collective"));
    world.collective.name = (wire_bytes){.len = 1, .data = (uint8_t *)(uintptr_t) "j"};
    talk_forget(world.talk);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_expect(world.talk, "staged 66\n");
}

TALK_TEST(what_finds_no_room_is_refused)
{
    struct world world;
    struct lane_config config = talk_config();

    config.collective_bytes_max = 4096;
    begin_with(&world, talk, &config);
    come_with(&world, 1, 1, 2, 3, 4);
    world.collective.round = 2;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_forget(world.talk);
    world.collective.round = 3;

    come_with(&world, 1, 1, 2, 3, 4);

    expect_refused(&world, "OUT_OF_MEMORY", "of at most 4096 (--collectives-max)");
    acknowledge(&world, 1); /* they are open: nothing is given back yet */
    assert_int_equal(world.talk->lane->rounds.count, 2);
}

/* Its session has given back all of it, and its reader has yet to take it. */
TALK_TEST(what_is_lent_of_a_result_takes_room)
{
    struct world world;
    struct lane_config config = talk_config();
    float values[1000] = {0};

    config.gathered_bytes_max = 8;
    config.pull_chunk_bytes = 4096;
    config.collective_bytes_max = 16384;
    begin_with(&world, talk, &config); /* given */
    world.shape[0] = 1000;
    world.talk->holds_released = true;
    come(&world, 1, values, sizeof values);
    come(&world, 2, values, sizeof values);
    ask(&world, 1);
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    assert_int_equal(world.talk->lane->rounds.count, 0);
    for (world.collective.round = 2; world.collective.round <= 3; world.collective.round++)
        come(&world, 1, values, sizeof values);
    talk_forget(world.talk);

    come(&world, 1, values, sizeof values); /* when */

    expect_refused(&world, "OUT_OF_MEMORY", "of at most 16384 (--collectives-max)"); /* then */
    talk_release(world.talk);
    come(&world, 2, values, sizeof values);
    talk_expect(world.talk, "staged 2\ndone 2 []\n");
}

/* More than pulls may take, and more than may lie between pieces. */
TALK_TEST(contributions_take_none_of_the_room_of_pulls)
{
    enum { elements = 1 << 18 };
    struct world world;
    struct lane_config config = talk_config();
    float *values = test_calloc(elements, sizeof *values);

    config.staging_bytes_max = 16u << 20;
    config.pulls_bytes_max = SIZED_POOL_EMPTY_BYTES_MAX / 2;
    begin_with(&world, talk, &config);
    talk_variable(world.talk, 5, 1, UPDATE_ASSIGN_ADD);
    world.shape[0] = elements;
    for (; world.collective.round <= 4; world.collective.round++)
        come(&world, 1, values, elements * sizeof *values);
    assert_int_equal(world.talk->lane->rounds.count, 4);
    const uint64_t reader = talk_pull_stream(world.talk, 0);
    talk_forget(world.talk);

    talk_pull(world.talk, reader, 7, 5, 1, 0);

    talk_expect(world.talk, "pulled 7 [0] 0\n");
    test_free(values);
}

/* Two contributions of 32 bytes are combined in the step; more are vector work. */
TALK_TEST(contributions_are_combined_at_once_up_to_so_many_bytes)
{
    struct world world;

    begin(&world, talk);
    world.shape[0] = 8;
    for (uint8_t i = 1; i <= 2; i++)
        come_with(&world, i, 1, 2, 3, 4, 5, 6, 7, 8);
    assert_int_equal(world.talk->computes, 0);
    world.collective.round = 2;
    world.shape[0] = 9;

    for (uint8_t i = 1; i <= 2; i++)
        come_with(&world, i, 1, 2, 3, 4, 5, 6, 7, 8, 9);

    assert_int_equal(world.talk->computes, 1);
}

/* Its task joins and is replaced again and again; each attempt leaves a contribution. */
TALK_TEST(a_round_that_nobody_who_came_waits_for_gives_way)
{
    struct world world;
    struct lane_config config = talk_config();
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    config.collective_bytes_max = 4096;
    begin_with(&world, talk, &config);
    for (world.collective.round = 1; world.collective.round <= 2; world.collective.round++)
        come_with(&world, 2, 1, 2, 3, 4);
    cause.kind = (Sumac__V1__CloseCause__Kind)WIRE_CLOSE_NEWER_ATTEMPT;
    talk_close_for(world.talk, 2, &cause);
    talk_decide(world.talk, 2, 2, 0);
    world.talk->shows_logs = true;
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);

    talk_expect(
        world.talk, "log ps 1: round 1 of collective h has failed: no session that contributed to "
                    "it, of worker 2 first, waits for its result, and another contribution needs "
                    "its room (--collectives-max)\n"
                    "staged 1\ndone 1 []\n");
    const struct collective second = {.name = HERE, .round = 2};
    assert_false(rounds_find(&world.talk->lane->rounds, &second)->over);
}

TALK_TEST(a_stranger_hears_nothing)
{
    struct world world;

    begin(&world, talk);
    come_with(&world, 1, 1, 2, 3, 4);
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);

    ask(&world, 3);

    talk_expect(world.talk, "pulled 3 error MALFORMED\n");
}

static void scale(wire_part *header, wire_piece *piece)
{
    (void)piece;
    header->scale = 2;
}

static void be_synchronous(wire_part *header, wire_piece *piece)
{
    (void)piece;
    header->synchronous = true;
    header->step = 1;
    header->eager = false;
}

static void name_a_function(wire_part *header, wire_piece *piece)
{
    static wire_function function;
    static wire_function *functions[] = {&function};

    (void)piece;
    function = (wire_function)WIRE_FUNCTION_INIT;
    function.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN;
    header->functions = functions;
    header->n_functions = 1;
}

static void name_a_shard(wire_part *header, wire_piece *piece)
{
    (void)header;
    piece->shard_id = 5;
}

static void begin_later(wire_part *header, wire_piece *piece)
{
    (void)header;
    piece->offset_bytes = 4;
}

static void say_more(wire_part *header, wire_piece *piece)
{
    (void)piece;
    header->bytes = 16;
}

static const struct spoiled {
    void (*spoil)(wire_part *header, wire_piece *piece);
    const char *words;
    size_t bytes;
} cases[] = {
    {scale, "has a scale", 16},
    {name_a_function, "names update functions", 16},
    {name_a_shard, "of shard 5, with 16 bytes at 0: those of a contribution", 16},
    {begin_later, "with 16 bytes at 4: those of a contribution", 16},
    {say_more, "with 6 bytes at 0: those of a contribution", 6},
};

TALK_TEST(what_does_not_go_with_a_contribution_refuses_it)
{
    struct world world;
    static const float four[] = {1, 2, 3, 4};

    begin(&world, talk);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world.spoil = cases[i].spoil;
        come(&world, 1, four, cases[i].bytes);
        expect_refused(&world, "MALFORMED", cases[i].words);
    }
    expect_nothing_kept(&world);
}

TALK_TEST(what_is_for_a_synchronous_step_meets_nobody)
{
    struct world world;

    begin(&world, talk);
    world.spoil = be_synchronous;

    come_with(&world, 1, 1, 2, 3, 4);

    assert_int_equal(talk_times_said(world.talk, "refused 1"), 1);
    expect_nothing_kept(&world);
}

TALK_TEST(who_is_no_chief_and_no_worker_contributes_nothing)
{
    struct world world;

    talk->job = "evaluator";
    begin(&world, talk);

    come_with(&world, 1, 1, 2, 3, 4);

    expect_refused(&world, "MALFORMED", "is of a task that takes no part");
}

/* By their sum a mean is divided, on every ps. */
TALK_TEST(weights_are_numbers_that_can_be_added_up)
{
    struct world world;
    static const double weights[] = {0x1p61, 0x1p-61, INFINITY, NAN, -0x1p-1};

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        world.weight = weights[i];
        come_with(&world, 1, 1, 2, 3, 4);
        expect_refused(&world, "MALFORMED", "has weight");
    }
    expect_nothing_kept(&world);
}

struct row {
    int64_t index;
    float values[2];
};

/* As floats these are none. */
TALK_TEST(row_indices_may_be_any_bits)
{
    struct world world;
    const struct row row = {0x7fc000007fc00000, {1, 2}};

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_CONCATENATE;
    world.collective.n_tasks = 1;
    world.collective.n_shape = 2;
    world.shape[0] = 1;
    world.shape[1] = 2;
    come(&world, 1, &row, sizeof row);

    ask(&world, 1);

    assert_int_equal(world.talk->pulled_bytes, sizeof row);
    assert_memory_equal(world.talk->pulled, &row, sizeof row);
}

TALK_TEST(a_session_has_so_many_that_it_has_not_heard_of)
{
    struct world world;
    struct lane_config config = talk_config();

    config.parts_per_session_max = 4;
    begin_with(&world, talk, &config);
    for (; world.collective.round <= 4; world.collective.round++)
        come_with(&world, 1, 1, 2, 3, 4);
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);
    expect_refused(&world, "BUSY", "waits for 4 rounds, the most that ps 1 keeps for it");

    acknowledge(&world, 1);
    come_with(&world, 1, 1, 2, 3, 4);
    talk_expect(world.talk, "staged 6\ndone 6 []\n");
}

/* A lane that is made again from its records may apply contributions earlier than this one. */
TALK_TEST(contributions_that_wait_for_their_turn_are_among_them)
{
    struct world world;
    struct lane_config config = talk_config();

    config.parts_per_session_max = 4;
    begin_with(&world, talk, &config);
    for (; world.collective.round <= 4; world.collective.round++) {
        world.waits = world.collective.round > 2;
        come_with(&world, 1, 1, 2, 3, 4);
    }
    talk_forget(world.talk);

    come_with(&world, 1, 1, 2, 3, 4);

    talk_expect(world.talk, "refused 5 BUSY\n");
}

TALK_TEST(collectives_through_does_not_go_back)
{
    struct world world;

    begin(&world, talk);
    world.collective.n_tasks = 1;
    world.last[1] = 10;
    acknowledge(&world, 1);
    world.last[1] = 0;
    acknowledge(&world, 1);

    come_with(&world, 1, 1, 2, 3, 4);

    expect_nothing_kept(&world); /* it wanted no more of it */
}

static void
acknowledge_except(struct world *world, uint8_t session, uint64_t *waiting, size_t count)
{
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    commit.collectives_through = world->last[session];
    commit.waiting = waiting;
    commit.n_waiting = count;
    request.commit = &commit;
    talk_push(world->talk, world->push[session], &request, NULL, 0);
}

TALK_TEST(a_round_that_waits_keeps_no_result_of_later_ones)
{
    struct world world;
    uint64_t waiting[] = {1, 3};

    begin(&world, talk); /* given */
    const struct lane *lane = world.talk->lane;
    for (; world.collective.round <= 4; world.collective.round++) {
        come_with(&world, 1, 1, 2, 3, 4);
        if (world.collective.round > 1)
            come_with(&world, 2, 1, 2, 3, 4);
    }
    acknowledge(&world, 2);
    assert_int_equal(lane->rounds.count, 4);

    acknowledge_except(&world, 1, waiting, 2); /* when */

    assert_int_equal(lane->rounds.count, 2); /* then */
    acknowledge_except(&world, 1, waiting, 1);
    assert_int_equal(lane->rounds.count, 1);

    world.collective.round = 1; /* when */
    come_with(&world, 2, 1, 2, 3, 4);
    talk_forget(world.talk);
    ask(&world, 1);

    talk_expect(world.talk, "met 1 float32 [4] 2 4 6 8\n"); /* then */
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    expect_nothing_kept(&world);
}

/* No other part of the commit is news: collectives_through stays before the round that waits. A
 * lane that is made of the records is compared at the end. */
TALK_TEST(results_that_a_commit_gives_back_are_given_back_from_the_records_too)
{
    struct world world;
    struct lane_config config = talk_config();
    uint64_t waiting[] = {1};

    config.records = talk->disk_is_quick = true;
    begin_with(&world, talk, &config); /* given */
    for (; world.collective.round <= 3; world.collective.round++) {
        come_with(&world, 1, 1, 2, 3, 4);
        if (world.collective.round > 1)
            come_with(&world, 2, 1, 2, 3, 4);
    }
    acknowledge(&world, 2);
    talk_tick(talk, 0); /* which combines them, since they are on disk */
    assert_int_equal(talk->lane->rounds.count, 3);
    const uint64_t records = talk->last_record;

    acknowledge_except(&world, 1, waiting, 1); /* when */

    assert_int_equal(talk->lane->rounds.count, 1); /* then */
    assert_int_equal(talk->last_record, records + 1);
}

/* The records are compared with the lane at the end. */
TALK_TEST(what_a_session_has_heard_of_is_recorded_though_nothing_is_given_back)
{
    struct lane_config config = talk_config();
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct world world;

    config.records = true;
    begin_with(&world, talk, &config);
    talk_recorded(world.talk);
    const uint64_t recorded = world.talk->last_record;
    commit.collectives_through = 7;
    request.commit = &commit;

    talk_push(world.talk, world.push[1], &request, NULL, 0);

    assert_int_equal(world.talk->last_record, recorded + 1);
    talk_recorded(world.talk);
}

/* A contribution that waits may come later. */
TALK_TEST(a_session_has_heard_of_what_is_before_the_first_that_waits)
{
    struct world world;
    uint64_t waiting[] = {4};
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    begin(&world, talk);
    const struct lane_session *const session = world.talk->lane->sessions.first;
    commit.collectives_through = 7;
    commit.waiting = waiting;
    commit.n_waiting = 1;
    request.commit = &commit;

    talk_push(world.talk, world.push[1], &request, NULL, 0);
    assert_int_equal(session->collectives_through, 3);
    waiting[0] = 9; /* beyond it */
    talk_push(world.talk, world.push[1], &request, NULL, 0);

    assert_int_equal(session->collectives_through, 7);
}

TALK_TEST(a_commit_names_so_many_rounds_that_wait)
{
    struct world world;
    static uint64_t waiting[WIRE_COMMIT_WAITING_MAX + 1];

    begin(&world, talk);
    for (uint64_t i = 0; i <= WIRE_COMMIT_WAITING_MAX; i++)
        waiting[i] = i + 1;
    acknowledge_except(&world, 1, waiting, WIRE_COMMIT_WAITING_MAX);
    talk_expect(world.talk, "");

    acknowledge_except(&world, 1, waiting, WIRE_COMMIT_WAITING_MAX + 1);

    talk_expect(world.talk, "end of stream TOO_MANY_PIECES\n");
}

/* ---- pulls ---- */

static void
pull_as(struct world *world, const char *name, size_t bytes, uint64_t at_step, size_t n_pieces)
{
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_collective_round asked = WIRE_COLLECTIVE_ROUND_INIT;
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = world->pull[1], .pull_request = &pull};

    asked.name = (wire_bytes){.len = bytes, .data = (uint8_t *)(uintptr_t)name};
    asked.round = 1;
    pull.request = 1;
    pull.collective = &asked;
    pull.at_step = at_step;
    pull.pieces = pieces;
    pull.n_pieces = n_pieces;
    talk_step(world->talk, &event);
}

TALK_TEST(a_pull_names_a_round_and_nothing_else)
{
    char longest[COLLECTIVE_NAME_BYTES_MAX + 1];
    struct world world;

    begin(&world, talk);
    talk_variable(world.talk, 5, 4, UPDATE_ASSIGN_ADD);
    talk_forget(world.talk);

    pull_as(&world, HERE, 1, 1, 0);
    talk_expect(world.talk, "pulled 1 error MALFORMED\n");
    pull_as(&world, HERE, 1, 0, 1);
    talk_expect(world.talk, "pulled 1 error MALFORMED\n");
    pull_as(&world, "h\0h", 3, 0, 0);
    talk_expect(world.talk, "pulled 1 error MALFORMED\n");
    pull_as(&world, "", 0, 0, 0);
    talk_expect(world.talk, "pulled 1 error MALFORMED\n");
    ask_for(&world, 1, HERE, 0);
    talk_expect(world.talk, "pulled 1 error MALFORMED\n");
    memset(longest, 'n', COLLECTIVE_NAME_BYTES_MAX + 1);
    pull_as(&world, longest, COLLECTIVE_NAME_BYTES_MAX + 1, 0, 0);
    talk_expect(world.talk, "pulled 1 error MALFORMED\n");
    pull_as(&world, longest, COLLECTIVE_NAME_BYTES_MAX, 0, 0);
    talk_expect(world.talk, ""); /* it waits */
}

TALK_TEST(of_a_closed_session_no_round_is_asked_for)
{
    struct world world;

    begin(&world, talk);
    talk_close(world.talk, 1);
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "pulled 1 error SESSION_UNKNOWN\n");
    assert_non_null(strstr(world.talk->refused, "its session is closed"));
}

TALK_TEST(of_no_session_no_round_is_asked_for)
{
    struct world world;

    begin(&world, talk);
    world.pull[1] = talk_pull_stream(world.talk, 0);
    talk_forget(world.talk);

    ask(&world, 1);

    talk_expect(world.talk, "pulled 1 error SESSION_UNKNOWN\n");
    assert_non_null(strstr(world.talk->refused, "its session is not known"));
}
