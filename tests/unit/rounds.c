/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c -- who has come to a round, how it ends, who hears of it, and that nothing is left. */

#include "unit.h"
#include "rounds_check.h"

#define TENSOR_BYTES 24u

static const struct collective_task tasks[] = {{.chief = true}, {.index = 1}, {.index = 7}};
#define TASKS (sizeof tasks / sizeof *tasks)

struct desk {
    struct rounds rounds;
    struct sized_pool pool;
    uint32_t given; /* contributions that came back */
    struct sumac_error error;
    struct round *round; /* that was come to last */
};

static void note_given(void *context, void *contribution)
{
    assert_ptr_equal(contribution, context);
    ((struct desk *)context)->given++;
}

static void end_late(void *context, struct round *round);

static void begin_with(struct desk *desk, uint64_t room_bytes_max)
{
    memset(desk, 0, sizeof *desk);
    sized_pool_init(&desk->pool, &memory_heap, 0);
    rounds_init(
        &desk->rounds, &desk->pool,
        &(struct round_owner){.give = note_given, .end = end_late, .context = desk},
        room_bytes_max);
}

static void begin(struct desk *desk) { begin_with(desk, 1u << 20); }

static void expect_consistent(const struct desk *desk)
{
    struct check check = {.text = ""};

    rounds_check(&desk->rounds, &check);
    assert_string_equal(check.text, "");
}

/* Nothing may be left when all has been given back. */
static void end(struct desk *desk)
{
    expect_consistent(desk);
    rounds_deinit(&desk->rounds);
    assert_int_equal(desk->rounds.room_bytes, 0);
    sized_pool_deinit(&desk->pool);
}

/* A test whose *state is a desk, of which nothing may be left afterwards. */

static int open_desk(void **state)
{
    struct desk *desk = malloc(sizeof *desk);

    assert_non_null(desk);
    begin(desk);
    *state = desk;
    return 0;
}

static int close_desk(void **state)
{
    end(*state);
    free(*state);
    return 0;
}

static struct collective collective_of(uint32_t place, uint64_t number)
{
    return (struct collective){
        .name = "grads",
        .round = number,
        .tasks = tasks,
        .task_count = TASKS,
        .own = place,
        .operation = COLLECTIVE_SUM,
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(2, 3),
        .elements = 6,
        .timeout_ms = 1000};
}

static struct round *take_reserved(struct desk *desk, const struct collective *collective)
{
    struct round *reserved = rounds_reserve(&desk->rounds, collective, TENSOR_BYTES, &desk->error);

    assert_non_null(reserved);
    return reserved;
}

static enum rounds_came use_reserved(struct desk *desk, struct round *reserved, uint64_t now_us)
{
    const struct round_arrival arrival = {
        .reserved = reserved, .contribution = desk, .weight = 1, .now_us = now_us};

    const enum rounds_came came = rounds_come(&desk->rounds, &arrival, &desk->round, &desk->error);
    expect_consistent(desk);
    return came;
}

static enum rounds_came
come_as(struct desk *desk, const struct collective *collective, uint64_t now_us)
{
    return use_reserved(desk, take_reserved(desk, collective), now_us);
}

static enum rounds_came come(struct desk *desk, uint32_t place, uint64_t number)
{
    const struct collective collective = collective_of(place, number);

    return come_as(desk, &collective, 0);
}

static const struct sumac_error passed = {.status = SUMAC_OK};
static const struct sumac_error late = {
    .status = SUMAC_DEADLINE_EXCEEDED, .reason = SUMAC_REASON_ROUND_TIMED_OUT, .text = "worker 7"};

static void end_late(void *context, struct round *round)
{
    rounds_end(&((struct desk *)context)->rounds, round, &late);
}

static struct round *find_named(struct desk *desk, const char *name, uint64_t number)
{
    struct collective collective = collective_of(0, number);

    collective.name = name;
    expect_consistent(desk);
    return rounds_find(&desk->rounds, &collective);
}

static struct round *find(struct desk *desk, uint64_t number)
{
    return find_named(desk, "grads", number);
}

static bool is_over(struct desk *desk, const char *name, uint64_t number)
{
    struct collective collective = collective_of(0, number);

    collective.name = name;
    return rounds_are_over(&desk->rounds, &collective);
}

static void leave(struct desk *desk, uint32_t place) { rounds_left(&desk->rounds, &tasks[place]); }

static void hear_all(struct desk *desk, uint64_t number)
{
    for (uint32_t place = 0; place < TASKS; place++)
        rounds_heard(&desk->rounds, find(desk, number), place);
}

/* Its first participant comes alone, and has heard that the round failed. */
static void fail_alone(struct desk *desk, uint64_t number)
{
    assert_int_equal(come(desk, 0, number), ROUNDS_TAKEN);
    rounds_end(&desk->rounds, desk->round, &late);
    rounds_heard(&desk->rounds, desk->round, 0);
}

/* ---- who comes ---- */

TEST(a_round_is_whole_when_all_have_come)
{
    struct desk desk;

    begin(&desk);
    assert_null(find(&desk, 1));
    assert_int_equal(come(&desk, 2, 1), ROUNDS_TAKEN);
    assert_int_equal(come(&desk, 0, 1), ROUNDS_TAKEN);

    assert_false(round_is_whole(desk.round));
    assert_int_equal(round_missing(desk.round, 0), 1);
    assert_int_equal(round_missing(desk.round, 2), UINT32_MAX);
    assert_false(desk.round->places[1].came);
    assert_true(desk.round->places[2].came);
    assert_int_equal(come(&desk, 1, 1), ROUNDS_TAKEN);
    assert_true(round_is_whole(desk.round));
    assert_int_equal(desk.given, 0);
    end(&desk);
    assert_int_equal(desk.given, TASKS);
}

#define DESK_TEST(name) FIXTURE_TEST(name, struct desk *const desk, open_desk, close_desk)

DESK_TEST(rounds_and_names_are_apart)
{
    struct collective other = collective_of(0, 1);

    other.name = "more";
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    assert_int_equal(come(desk, 0, 2), ROUNDS_TAKEN);
    assert_int_equal(come_as(desk, &other, 0), ROUNDS_TAKEN);

    assert_ptr_not_equal(find(desk, 1), find(desk, 2));
    assert_ptr_equal(find_named(desk, "more", 1), desk->round);
}

DESK_TEST(who_comes_again_adds_nothing)
{
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    const uint64_t room_bytes = desk->rounds.room_bytes;

    assert_int_equal(come(desk, 0, 1), ROUNDS_AGAIN);

    assert_int_equal(desk->given, 1);
    assert_int_equal(desk->rounds.room_bytes, room_bytes);
    assert_int_equal(desk->round->came_count, 1);
}

DESK_TEST(who_differs_is_told_how)
{
    struct collective other = collective_of(1, 1);

    other.shape.extent[1] = 4;
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);

    assert_int_equal(come_as(desk, &other, 0), ROUNDS_DIFFERS);

    assert_int_equal(desk->error.reason, SUMAC_REASON_STEP_DIFFERS);
    assert_non_null(strstr(desk->error.text, "worker 1 says that its shape is [2, 4]"));
    assert_int_equal(desk->given, 1);
    rounds_end(&desk->rounds, desk->round, &desk->error);
    assert_int_equal(desk->given, 2);
}

DESK_TEST(who_is_no_participant_differs)
{
    static const struct collective_task others[] = {{.index = 1}, {.index = 8}};
    struct collective other = collective_of(1, 1);

    other.tasks = others;
    other.task_count = 2;
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);

    assert_int_equal(come_as(desk, &other, 0), ROUNDS_DIFFERS);

    assert_non_null(strstr(desk->error.text, "worker 8 says that its participants are 2 tasks"));
    assert_false(desk->round->torn); /* it lacks nobody */
    assert_int_equal(desk->round->came_count, 1);
}

DESK_TEST(the_first_time_that_is_over_counts)
{
    struct collective collective = collective_of(0, 1);

    assert_int_equal(come_as(desk, &collective, 5000), ROUNDS_TAKEN);
    assert_int_equal(desk->round->until_us, 1005000);
    collective.own = 1;
    collective.timeout_ms = 10;
    assert_int_equal(come_as(desk, &collective, 6000), ROUNDS_TAKEN);
    assert_int_equal(desk->round->until_us, 16000);
    assert_int_equal(desk->round->until_ms, 10);
    collective.own = 2;
    collective.timeout_ms = UINT32_MAX;
    assert_int_equal(come_as(desk, &collective, 7000), ROUNDS_TAKEN);
    assert_int_equal(desk->round->until_us, 16000);
}

/* ---- how it ends ---- */

DESK_TEST(a_round_that_passed_is_there_until_all_have_heard)
{
    for (uint32_t place = 0; place < TASKS; place++)
        assert_int_equal(come(desk, place, 1), ROUNDS_TAKEN);
    rounds_end(&desk->rounds, desk->round, &passed);
    rounds_heard(&desk->rounds, desk->round, 0);
    rounds_heard(&desk->rounds, desk->round, 0);
    rounds_heard(&desk->rounds, desk->round, 2);
    assert_ptr_equal(find(desk, 1), desk->round);
    assert_int_equal(desk->given, 0);

    rounds_heard(&desk->rounds, desk->round, 1);

    assert_null(find(desk, 1));
    assert_int_equal(desk->given, TASKS);
    assert_int_equal(desk->rounds.room_bytes, 0);
}

DESK_TEST(what_is_heard_before_the_end_counts)
{
    for (uint32_t place = 0; place < TASKS; place++) {
        assert_int_equal(come(desk, place, 1), ROUNDS_TAKEN);
        rounds_heard(&desk->rounds, desk->round, place);
    }
    assert_ptr_equal(find(desk, 1), desk->round);

    rounds_end(&desk->rounds, desk->round, &passed);

    assert_null(find(desk, 1));
}

DESK_TEST(a_round_that_failed_gives_all_back_and_says_the_same_to_the_late)
{
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    rounds_end(&desk->rounds, desk->round, &late);
    /* it is over */
    rounds_end(
        &desk->rounds, desk->round,
        &(struct sumac_error){.status = SUMAC_ABORTED, .text = "another end"});
    rounds_end(&desk->rounds, desk->round, &passed);
    assert_int_equal(desk->given, 1);
    assert_int_equal(desk->rounds.room_bytes, desk->round->block_bytes);
    rounds_heard(&desk->rounds, desk->round, 0);

    assert_int_equal(come(desk, 2, 1), ROUNDS_OVER);
    assert_int_equal(desk->given, 2);
    assert_string_equal(find(desk, 1)->end.text, "worker 7");
    rounds_heard(&desk->rounds, desk->round, 2);
    assert_int_equal(come(desk, 1, 1), ROUNDS_OVER);
    rounds_heard(&desk->rounds, desk->round, 1);

    assert_true(find(desk, 1)->kept); /* a later attempt of each may come */
    for (uint32_t place = 0; place < TASKS; place++)
        leave(desk, place);
    assert_null(find(desk, 1));
}

DESK_TEST(of_one_name_some_that_failed_are_kept_for_the_late)
{
    for (uint64_t number = 1; number <= 100000; number++)
        fail_alone(desk, number);

    assert_int_equal(desk->rounds.count, ROUNDS_KEPT_OF_NAME_MAX);
    assert_null(find(desk, 100000 - ROUNDS_KEPT_OF_NAME_MAX));
    assert_non_null(find(desk, 100000 - ROUNDS_KEPT_OF_NAME_MAX + 1));
    assert_non_null(find(desk, 100000));
}

DESK_TEST(a_round_for_which_somebody_late_has_come_is_not_one_of_those)
{
    fail_alone(desk, 1);
    assert_int_equal(come(desk, 1, 1), ROUNDS_OVER);
    for (uint64_t number = 2; number <= 2 * ROUNDS_KEPT_OF_NAME_MAX; number++)
        fail_alone(desk, number);

    assert_non_null(find(desk, 1)); /* kept for its task */
    rounds_heard(&desk->rounds, find(desk, 1), 1);
    assert_true(find(desk, 1)->kept); /* in the place of the one that has been kept longest */
    assert_int_equal(desk->rounds.count, ROUNDS_KEPT_OF_NAME_MAX);
}

DESK_TEST(a_round_that_failed_goes_when_each_participant_has_left)
{
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    assert_int_equal(come(desk, 1, 1), ROUNDS_TAKEN);
    leave(desk, 2); /* before its end */
    rounds_end(&desk->rounds, desk->round, &late);
    round_left(&desk->rounds, desk->round, &tasks[2]); /* it has no session */
    for (uint32_t place = 0; place < 2; place++) {
        assert_non_null(find(desk, 1));
        rounds_heard(&desk->rounds, find(desk, 1), place);
        leave(desk, place);
    }

    assert_null(find(desk, 1));
    assert_int_equal(desk->rounds.room_bytes, 0);
}

DESK_TEST(who_has_left_and_comes_again_is_told_as_before)
{
    fail_alone(desk, 1);
    leave(desk, 0);
    leave(desk, 1);
    assert_int_equal(come(desk, 0, 1), ROUNDS_BACK); /* a later attempt of each */
    assert_int_equal(come(desk, 1, 1), ROUNDS_OVER);
    leave(desk, 2);

    assert_non_null(find(desk, 1));
    rounds_heard(&desk->rounds, find(desk, 1), 0);
    rounds_heard(&desk->rounds, find(desk, 1), 1);
    leave(desk, 1);
    assert_non_null(find(desk, 1)); /* the other one is here */
    leave(desk, 0);
    assert_null(find(desk, 1));
}

DESK_TEST(a_round_is_deserted_when_all_who_came_have_left)
{
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    assert_int_equal(come(desk, 1, 1), ROUNDS_TAKEN);
    struct round *const round = desk->round;
    round_left(&desk->rounds, round, &tasks[0]);
    round_left(&desk->rounds, round, &tasks[2]);
    assert_false(round_is_deserted(round));

    round_left(&desk->rounds, round, &tasks[1]);
    assert_true(round_is_deserted(round));

    assert_int_equal(come(desk, 1, 1), ROUNDS_AGAIN);
    assert_false(round_is_deserted(round));
}

/* What is kept of failed rounds is bounded whatever they are called. */
TEST(of_all_names_so_many_that_failed_are_kept)
{
    struct desk desk;
    char name[16];

    begin_with(&desk, 1u << 21);
    for (uint32_t i = 0; i <= ROUNDS_KEPT_MAX; i++) {
        struct collective collective = collective_of(0, 1);
        (void)snprintf(name, sizeof name, "name %u", i);
        collective.name = name;
        assert_int_equal(come_as(&desk, &collective, 0), ROUNDS_TAKEN);
        rounds_end(&desk.rounds, desk.round, &late);
        rounds_heard(&desk.rounds, desk.round, 0);
    }

    assert_int_equal(desk.rounds.count, ROUNDS_KEPT_MAX);
    assert_int_equal(desk.rounds.kept_count, ROUNDS_KEPT_MAX);
    assert_null(find_named(&desk, "name 0", 1));
    assert_non_null(find_named(&desk, "name 1", 1));
    end(&desk);
    assert_int_equal(desk.rounds.kept_count, 0);
}

/* Of one that gave way another of its name knows that it is over. */
DESK_TEST(one_that_gave_way_is_known_to_be_over)
{
    for (uint64_t number = 1; number <= ROUNDS_KEPT_OF_NAME_MAX + 3; number++)
        fail_alone(desk, number);

    assert_true(is_over(desk, "grads", 1));
    assert_true(is_over(desk, "grads", 3));
    assert_false(is_over(desk, "grads", 4));
    assert_false(is_over(desk, "others", 1));
}

/* ---- by an order ---- */

static void order(struct desk *desk, uint64_t number, const struct sumac_error *how)
{
    const struct collective collective = collective_of(0, number);
    struct round *reserved = rounds_reserve(&desk->rounds, &collective, 0, &desk->error);

    assert_non_null(reserved);
    struct round *round = rounds_ordered(&desk->rounds, reserved, how);
    if (round != NULL && !round->passes)
        rounds_end(&desk->rounds, round, how);
}

DESK_TEST(a_round_that_passes_is_over_when_it_is_whole_here)
{
    order(desk, 1, &passed); /* before the first task comes */
    for (uint32_t place = 0; place < TASKS; place++) {
        assert_false(find(desk, 1)->over);
        assert_int_equal(come(desk, place, 1), ROUNDS_TAKEN);
    }

    assert_true(desk->round->passes && round_is_whole(desk->round));
    order(desk, 1, &late); /* a second order changes nothing */
    rounds_end(&desk->rounds, desk->round, &passed);
    assert_int_equal(find(desk, 1)->end.status, SUMAC_OK);
    order(desk, 1, &passed); /* it is said again */
    assert_int_equal(desk->given, 0);
    hear_all(desk, 1);
    assert_null(find(desk, 1));
}

DESK_TEST(a_round_that_passes_may_fail_here_alone)
{
    struct collective other = collective_of(1, 1);

    other.shape.extent[1] = 4;
    order(desk, 1, &passed);
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    assert_int_equal(come_as(desk, &other, 0), ROUNDS_DIFFERS);
    assert_true(desk->round->torn);

    rounds_end(&desk->rounds, desk->round, &desk->error);

    assert_true(find(desk, 1)->over);
    assert_int_equal(find(desk, 1)->end.reason, SUMAC_REASON_STEP_DIFFERS);
}

DESK_TEST(a_round_that_nobody_has_come_to_fails_by_an_order)
{
    order(desk, 1, &late);
    assert_true(find(desk, 1)->kept);

    for (uint32_t place = 0; place < TASKS; place++) {
        assert_int_equal(come(desk, place, 1), ROUNDS_OVER);
        rounds_heard(&desk->rounds, desk->round, place);
    }

    assert_true(find(desk, 1)->kept);
    assert_int_equal(desk->given, TASKS);
}

/* ---- room ---- */

DESK_TEST(a_reserved_round_of_which_nothing_comes_leaves_nothing)
{
    const struct collective collective = collective_of(0, 1);

    struct round *reserved = rounds_reserve(&desk->rounds, &collective, TENSOR_BYTES, &desk->error);
    assert_non_null(reserved);
    assert_true(desk->rounds.room_bytes >= TENSOR_BYTES + sizeof *reserved);

    rounds_unreserve(&desk->rounds, reserved);

    assert_int_equal(desk->rounds.room_bytes, 0);
    assert_null(find(desk, 1));
}

TEST(what_finds_no_room_is_refused_with_both_figures)
{
    struct desk desk;
    const struct collective collective = collective_of(1, 1);

    begin_with(&desk, 20000);
    assert_null(rounds_reserve(&desk.rounds, &collective, 20000, &desk.error));
    assert_int_equal(desk.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(desk.error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_non_null(strstr(desk.error.text, "round 1 of collective grads takes 2"));
    assert_non_null(strstr(desk.error.text, "at most 20000 (--collectives-max)"));
    assert_null(rounds_reserve(&desk.rounds, &collective, UINT64_MAX, &desk.error));
    assert_null(rounds_reserve(&desk.rounds, &collective, UINT64_MAX / 2, &desk.error));
    assert_int_equal(desk.rounds.room_bytes, 0);

    assert_int_equal(come(&desk, 0, 1), ROUNDS_TAKEN);
    end(&desk);
}

static void *take_nothing(void *context, size_t bytes)
{
    (void)context;
    (void)bytes;
    return NULL;
}

/* Each shortage would take room for ever. */
TEST(what_finds_no_memory_leaves_the_room_as_it_was)
{
    struct desk desk;
    const struct collective collective = collective_of(0, 1);

    memset(&desk, 0, sizeof desk);
    sized_pool_init(&desk.pool, &(struct memory){.take = take_nothing}, 0);
    rounds_init(
        &desk.rounds, &desk.pool, &(struct round_owner){.give = note_given, .context = &desk},
        1u << 20);

    assert_null(rounds_reserve(&desk.rounds, &collective, TENSOR_BYTES, &desk.error));
    assert_int_equal(desk.error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_null(rounds_reserve_order(&desk.rounds, &collective));

    end(&desk);
}

/* The only participant that came is settled. */
DESK_TEST(an_open_round_that_nobody_who_came_wants_gives_way)
{
    for (uint64_t number = 1; number <= 3; number++)
        assert_int_equal(come(desk, 0, number), ROUNDS_TAKEN);
    assert_int_equal(come(desk, 1, 1), ROUNDS_TAKEN);
    rounds_heard(&desk->rounds, find(desk, 1), 0); /* the other waits for it */
    const struct collective again = collective_of(0, 3);
    struct round *const reserved = take_reserved(desk, &again);
    rounds_heard(&desk->rounds, find(desk, 3), 0);
    rounds_heard(&desk->rounds, find(desk, 2), 0);
    assert_int_equal(
        use_reserved(desk, reserved, 0), ROUNDS_BACK); /* a later attempt waits for it */
    desk->rounds.room_bytes_max = desk->rounds.room_bytes;

    assert_int_equal(come(desk, 1, 4), ROUNDS_TAKEN);

    assert_false(find(desk, 1)->over);
    assert_null(find(desk, 2));
    assert_false(find(desk, 3)->over);
}

DESK_TEST(an_unwanted_round_does_not_give_way_to_its_own_participant)
{
    assert_int_equal(come(desk, 0, 1), ROUNDS_TAKEN);
    assert_int_equal(come(desk, 0, 2), ROUNDS_TAKEN);
    rounds_heard(&desk->rounds, find(desk, 1), 0);
    rounds_heard(&desk->rounds, find(desk, 2), 0);
    desk->rounds.room_bytes_max = desk->rounds.room_bytes;

    assert_int_equal(come(desk, 1, 1), ROUNDS_TAKEN);

    assert_int_equal(find(desk, 1)->came_count, 2);
    assert_null(find(desk, 2));
}

TEST(one_that_never_fits_makes_none_give_way)
{
    struct desk desk;
    const struct collective collective = collective_of(0, 2);

    begin_with(&desk, 20000);
    fail_alone(&desk, 1);

    assert_null(rounds_reserve(&desk.rounds, &collective, 20000, &desk.error));

    assert_non_null(find(&desk, 1));
    assert_int_equal(desk.rounds.given_way_count, 0);
    end(&desk);
}

TEST(what_is_kept_gives_way)
{
    struct desk desk;
    char name[16];

    begin_with(&desk, 20000);
    for (uint32_t i = 0; i < 1000; i++) { /* of as many names */
        struct collective collective = collective_of(0, 1);
        (void)snprintf(name, sizeof name, "name %u", i);
        collective.name = name;
        assert_int_equal(come_as(&desk, &collective, 0), ROUNDS_TAKEN);
        rounds_end(&desk.rounds, desk.round, &late);
        rounds_heard(&desk.rounds, desk.round, 0);
        assert_true(desk.rounds.room_bytes <= 20000);
    }

    assert_non_null(find_named(&desk, "name 999", 1));
    assert_null(find_named(&desk, "name 0", 1));
    end(&desk);
}

DESK_TEST(of_one_name_so_many_rounds_may_be_under_way)
{
    const struct collective next = collective_of(0, ROUNDS_OF_NAME_MAX + 1);

    for (uint64_t number = 1; number <= ROUNDS_OF_NAME_MAX; number++)
        assert_int_equal(come(desk, 0, number), ROUNDS_TAKEN);

    assert_null(rounds_reserve(&desk->rounds, &next, 0, &desk->error));
    assert_int_equal(desk->error.reason, SUMAC_REASON_BUSY);
    assert_int_equal(come(desk, 1, ROUNDS_OF_NAME_MAX), ROUNDS_TAKEN);
    rounds_end(&desk->rounds, desk->round, &late);
    rounds_heard(&desk->rounds, desk->round, 0);
    rounds_heard(&desk->rounds, desk->round, 1); /* kept for the third: it is not under way */
    assert_int_equal(come(desk, 0, ROUNDS_OF_NAME_MAX + 1), ROUNDS_TAKEN);
}

DESK_TEST(many_rounds_leave_nothing)
{
    for (uint64_t number = 1; number <= 100000; number++) {
        for (uint32_t place = 0; place < TASKS; place++)
            assert_int_equal(come(desk, place, number), ROUNDS_TAKEN);
        rounds_end(&desk->rounds, desk->round, &passed);
        hear_all(desk, number);
    }

    assert_int_equal(desk->rounds.room_bytes, 0);
    assert_int_equal(desk->rounds.count, 0);
    assert_int_equal(desk->given, 100000 * TASKS);
    assert_true(desk->pool.held_bytes <= SIZED_POOL_EMPTY_BYTES_MAX);
}
