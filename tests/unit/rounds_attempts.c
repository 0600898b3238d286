/* SPDX-License-Identifier: Apache-2.0 */
/* rounds_attempts.c -- which round an attempt of a task may ask for. */

#include "unit.h"
#include "rounds_check.h"

/* What is known of the attempts: that of worker 7 is not. */
static const struct collective_task tasks[] = {
    {.chief = true, .attempt = 1}, {.index = 1, .attempt = 2}, {.index = 7}};

static const struct sumac_error failed = {
    .status = SUMAC_DEADLINE_EXCEEDED, .reason = SUMAC_REASON_ROUND_TIMED_OUT, .text = "late"};

struct desk {
    struct rounds rounds;
    struct sized_pool pool;
    struct round *round;
    struct sumac_error error;
};

static void give(void *context, void *contribution)
{
    (void)context;
    (void)contribution;
}

static void end_none(void *context, struct round *round)
{
    (void)context;
    (void)round;
}

static struct collective
collective_of(const struct collective_task *of, uint32_t own, bool of_attempts)
{
    return (struct collective){
        .name = "grads",
        .round = 1,
        .tasks = of,
        .task_count = sizeof tasks / sizeof *tasks,
        .own = own,
        .operation = COLLECTIVE_SUM,
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(2, 3),
        .elements = 6,
        .timeout_ms = 1000,
        .of_attempts = of_attempts};
}

static enum rounds_came come(struct desk *desk, const struct collective *collective)
{
    struct round *const reserved = rounds_reserve(&desk->rounds, collective, 24, &desk->error);

    assert_non_null(reserved);
    const struct round_arrival arrival = {.reserved = reserved, .contribution = desk, .weight = 1};
    return rounds_come(&desk->rounds, &arrival, &desk->round, &desk->error);
}

/* The chief has come to round 1, which belongs to attempts or to none. */
static void begin(struct desk *desk, bool of_attempts)
{
    const struct collective collective = collective_of(tasks, 0, of_attempts);

    memset(desk, 0, sizeof *desk);
    sized_pool_init(&desk->pool, &memory_heap, 0);
    rounds_init(
        &desk->rounds, &desk->pool,
        &(struct round_owner){.give = give, .end = end_none, .context = desk}, 1u << 20);
    assert_int_equal(come(desk, &collective), ROUNDS_TAKEN);
}

static void end(struct desk *desk)
{
    struct check check = {.text = ""};

    rounds_check(&desk->rounds, &check);
    assert_string_equal(check.text, "");
    rounds_deinit(&desk->rounds);
    sized_pool_deinit(&desk->pool);
}

static bool is_found(const struct desk *desk, uint64_t number, struct collective_task task)
{
    return rounds_find_for(&desk->rounds, "grads", number, &task) == desk->round;
}

TEST(an_attempt_finds_its_own_round_and_no_other_attempts)
{
    struct desk desk;

    begin(&desk, true);

    assert_true(is_found(&desk, 1, tasks[0]));
    assert_false(is_found(&desk, 2, tasks[0]));
    assert_false(is_found(&desk, 1, (struct collective_task){.chief = true, .attempt = 2}));
    assert_false(is_found(&desk, 1, (struct collective_task){.index = 1, .attempt = 1}));
    assert_true(
        is_found(&desk, 1, (struct collective_task){.index = 3, .attempt = 1})); /* no part */
    end(&desk);
}

TEST(any_attempt_finds_a_round_of_no_attempts)
{
    struct desk desk;

    begin(&desk, false);

    assert_true(is_found(&desk, 1, (struct collective_task){.chief = true, .attempt = 2}));
    end(&desk);
}

/* It may come to an open round, and not to one that was over before. */
TEST(an_attempt_that_no_round_names_finds_an_open_one_alone)
{
    struct desk desk;
    const struct collective_task unnamed = {.index = 7, .attempt = 5};
    const struct sumac_error late = {
        .status = SUMAC_DEADLINE_EXCEEDED, .reason = SUMAC_REASON_ROUND_TIMED_OUT};

    begin(&desk, true);
    assert_true(is_found(&desk, 1, unnamed));

    rounds_end(&desk.rounds, desk.round, &late);

    assert_false(is_found(&desk, 1, unnamed));
    assert_true(is_found(&desk, 1, tasks[0]));
    end(&desk);
}

/* What differs is known here before ps 0 has decided. */
TEST(a_round_that_is_to_fail_keeps_later_attempts_back_until_it_is_over)
{
    static const struct collective_task again[] = {
        {.chief = true, .attempt = 3}, {.index = 1, .attempt = 2}, {.index = 7}};
    const struct collective later = collective_of(again, 0, true);
    struct collective other = collective_of(tasks, 1, true);
    struct desk desk;

    begin(&desk, true);
    other.shape.extent[1] = 4;
    assert_int_equal(come(&desk, &other), ROUNDS_DIFFERS);
    assert_ptr_equal(rounds_other_attempt(&desk.rounds, &later, NULL), desk.round);

    rounds_end(&desk.rounds, desk.round, &desk.error);

    assert_null(rounds_other_attempt(&desk.rounds, &later, NULL));
    end(&desk);
}

/* The ps makes its result only then. */
TEST(a_round_is_wanted_until_each_place_has_heard_once)
{
    const struct collective other = collective_of(tasks, 1, true);
    struct desk desk;

    begin(&desk, true);
    rounds_heard(&desk.rounds, desk.round, 0);
    rounds_heard(&desk.rounds, desk.round, 0);
    rounds_heard(&desk.rounds, desk.round, 2);
    assert_true(round_is_wanted(desk.round));
    rounds_heard(&desk.rounds, desk.round, 1);
    assert_false(round_is_wanted(desk.round));

    assert_int_equal(come(&desk, &other), ROUNDS_TAKEN); /* a later attempt */

    assert_true(round_is_wanted(desk.round));
    rounds_heard(&desk.rounds, desk.round, 1);
    assert_false(round_is_wanted(desk.round));
    end(&desk);
}

/* Worker 7 names its attempt, and so the round is of it from then on. */
TEST(a_round_learns_the_attempts_that_come_to_it)
{
    static const struct collective_task named[] = {
        {.chief = true, .attempt = 1}, {.index = 1, .attempt = 2}, {.index = 7, .attempt = 4}};
    static const struct collective_task again[] = {
        {.chief = true}, {.index = 1}, {.index = 7, .attempt = 5}};
    const struct collective seventh = collective_of(named, 2, true),
                            later = collective_of(again, 2, true);
    struct desk desk;

    begin(&desk, true);
    assert_null(rounds_other_attempt(&desk.rounds, &later, NULL));

    assert_int_equal(come(&desk, &seventh), ROUNDS_TAKEN);

    assert_ptr_equal(rounds_other_attempt(&desk.rounds, &later, NULL), desk.round);
    assert_null(rounds_other_attempt(&desk.rounds, &later, desk.round));
    assert_null(rounds_find(&desk.rounds, &later));
    assert_ptr_equal(rounds_find(&desk.rounds, &seventh), desk.round);
    end(&desk);
}

/* ps 0 names the attempts of a round that has none here. */
TEST(a_round_learns_the_attempts_of_an_order)
{
    static const struct collective_task named[] = {
        {.chief = true, .attempt = 1}, {.index = 1, .attempt = 2}, {.index = 7, .attempt = 4}};
    static const struct collective_task again[] = {
        {.chief = true}, {.index = 1}, {.index = 7, .attempt = 5}};
    const struct collective order = collective_of(named, 0, true),
                            later = collective_of(again, 2, true);
    struct desk desk;

    begin(&desk, true);

    assert_ptr_equal(
        rounds_ordered(&desk.rounds, rounds_reserve_order(&desk.rounds, &order), &failed),
        desk.round);

    assert_ptr_equal(rounds_other_attempt(&desk.rounds, &later, NULL), desk.round);
    end(&desk);
}

/* One that failed keeps an earlier attempt back, and a mixture of both. */
TEST(a_failed_round_keeps_back_what_is_not_later_in_every_task)
{
    static const struct collective_task mixed[] = {
        {.chief = true, .attempt = 3}, {.index = 1, .attempt = 1}, {.index = 7}};
    const struct collective other = collective_of(mixed, 0, true);
    struct desk desk;

    begin(&desk, true);
    rounds_end(&desk.rounds, desk.round, &failed);

    assert_ptr_equal(rounds_other_attempt(&desk.rounds, &other, NULL), desk.round);
    end(&desk);
}

/* A round of any attempts stands beside one of some: an attempt finds the one that names it. */
TEST(an_attempt_finds_the_round_that_names_it_before_any_other)
{
    static const struct collective_task again[] = {
        {.chief = true, .attempt = 3}, {.index = 1, .attempt = 5}, {.index = 7}};
    const struct collective later = collective_of(again, 0, true);
    struct desk desk;

    begin(&desk, true);
    struct round *const first = desk.round;
    rounds_end(&desk.rounds, first, &failed);
    assert_int_equal(come(&desk, &later), ROUNDS_TAKEN);
    assert_ptr_not_equal(desk.round, first);

    assert_ptr_equal(rounds_find_for(&desk.rounds, "grads", 1, &tasks[0]), first);
    assert_ptr_equal(rounds_find_for(&desk.rounds, "grads", 1, &again[0]), desk.round);
    end(&desk);
}

/* Its owner leaves it to another ps to end: the reserved round is refused, and that ends. */
TEST(an_unwanted_round_that_its_owner_does_not_end_is_tried_once)
{
    const struct collective other = collective_of(tasks, 1, true);
    struct collective more = other;
    struct desk desk;

    begin(&desk, true);
    rounds_heard(&desk.rounds, desk.round, 0);
    assert_true(desk.round->unwanted);
    more.name = "great";

    assert_null(rounds_reserve(
        &desk.rounds, &more, desk.rounds.room_bytes_max - desk.round->block_bytes, &desk.error));

    assert_false(desk.round->unwanted);
    end(&desk);
}
