/* SPDX-License-Identifier: Apache-2.0 */
/* rounds_check.c -- the check of the rounds' consistency objects to each wrong field. */

#include "unit.h"
#include "corrupt.h"
#include "rounds_check.h"

#define wrong(place, value, words) corrupt(rounds_check(&desk->rounds, &said), place, value, words)

static const struct collective_task tasks[] = {{.chief = true}, {.index = 1}};
#define TASKS (sizeof tasks / sizeof *tasks)

struct desk {
    struct rounds rounds;
    struct sized_pool pool;
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

/* The chief contributes to that round. */
static struct round *come(struct desk *desk, uint64_t number)
{
    const struct collective collective = {
        .name = "grads",
        .round = number,
        .tasks = tasks,
        .task_count = TASKS,
        .operation = COLLECTIVE_SUM,
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(2, 3),
        .elements = 6};
    struct sumac_error error;
    struct round *round = NULL;
    const struct round_arrival arrival = {
        .reserved = rounds_reserve(&desk->rounds, &collective, 24, &error),
        .contribution = desk,
        .weight = 1};

    assert_non_null(arrival.reserved);
    assert_int_equal(rounds_come(&desk->rounds, &arrival, &round, &error), ROUNDS_TAKEN);
    return round;
}

static void expect_right(const struct desk *desk)
{
    struct check check = {.text = ""};

    rounds_check(&desk->rounds, &check);
    assert_string_equal(check.text, "");
}

/* Round 1 is open. Round 2 is open and unwanted. Round 3 has failed, and the chief has
 * yet to hear that. Round 4 has failed, and is kept for worker 1. */
TEST(each_wrong_field_of_a_round_is_found)
{
    struct desk made, *const desk = &made;
    const struct sumac_error failed = {.status = SUMAC_DEADLINE_EXCEEDED};
    struct round *rounds[5];

    sized_pool_init(&desk->pool, &memory_heap, 0);
    rounds_init(
        &desk->rounds, &desk->pool,
        &(struct round_owner){.give = give, .end = end_none, .context = desk}, 1u << 20);
    for (uint64_t number = 1; number <= 4; number++)
        rounds[number] = come(desk, number);
    rounds_heard(&desk->rounds, rounds[2], 0);
    rounds_end(&desk->rounds, rounds[3], &failed);
    rounds_end(&desk->rounds, rounds[4], &failed);
    rounds_heard(&desk->rounds, rounds[4], 0);
    expect_right(desk);

    wrong(rounds[1]->came_count, 2, "those who came of a round");
    wrong(rounds[1]->heard_count, 1, "those told of a round");
    wrong(rounds[1]->left_count, 1, "those who have left of a round");
    wrong(rounds[1]->places[0].left, true, "those who have left of a round");
    wrong(
        rounds[1]->places[1].contribution, desk,
        "round 1 of grads keeps a contribution without a reader");
    wrong(
        rounds[3]->places[0].contribution, desk,
        "round 3 of grads keeps a contribution without a reader");
    rounds[3]->heard_count = 1;
    wrong(rounds[3]->places[0].heard, true, "round 3 of grads is over, and kept without a reader");
    rounds[3]->heard_count = 0;
    rounds[4]->heard_count = 0;
    wrong(rounds[4]->places[0].heard, false, "round 4 of grads is kept, unwanted or torn");
    rounds[4]->heard_count = 1;
    wrong(rounds[1]->unwanted, true, "round 1 of grads is kept, unwanted or torn");
    wrong(rounds[1]->torn, true, "round 1 of grads is kept, unwanted or torn");
    wrong(rounds[1]->room_bytes, 1, "round 1 of grads takes 1 bytes");
    wrong(rounds[3]->room_bytes, 9999, "round 3 of grads takes 9999 bytes");
    wrong(rounds[1]->over, true, "round 1 of grads is in a list that is not its own");
    wrong(rounds[4]->kept, false, "round 4 of grads is in a list that is not its own");
    wrong(rounds[2]->in_list.prev, NULL, "round 2 of grads is in a list that is not its own");
    wrong(rounds[2]->unwanted, false, "unwanted rounds of a ps");
    wrong(desk->rounds.unwanted.first, NULL, "unwanted rounds of a ps");
    wrong(desk->rounds.kept_count, 0, "rounds that are kept of a ps");
    wrong(desk->rounds.count, 3, "rounds of a ps");
    wrong(rounds[1]->in_bucket.next, NULL, "rounds by name of a ps");
    wrong(desk->rounds.room_bytes, 1, "and counted are 1");
    expect_right(desk);

    rounds_deinit(&desk->rounds);
    sized_pool_deinit(&desk->pool);
}
