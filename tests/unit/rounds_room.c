/* SPDX-License-Identifier: Apache-2.0 */
/* rounds_room.c -- room beyond the bound, rounds that ps 0 orders, and what gives way to what. */

#include "unit.h"
#include "rounds_check.h"

#define ROOM_BYTES 4096u

static const struct collective_task tasks[] = {{.chief = true}, {.index = 1}};
#define TASKS (sizeof tasks / sizeof *tasks)

struct desk {
    struct rounds rounds;
    struct sized_pool pool;
    struct round *round; /* that was come to last */
    struct sumac_error error;
};

static const struct sumac_error passed = {.status = SUMAC_OK};
static const struct sumac_error failed = {
    .status = SUMAC_DEADLINE_EXCEEDED, .reason = SUMAC_REASON_ROUND_TIMED_OUT, .text = "late"};

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

static void begin(struct desk *desk, uint64_t room_bytes_max)
{
    memset(desk, 0, sizeof *desk);
    sized_pool_init(&desk->pool, &memory_heap, 0);
    rounds_init(
        &desk->rounds, &desk->pool,
        &(struct round_owner){.give = give, .end = end_none, .context = desk}, room_bytes_max);
}

static void expect_consistent(const struct desk *desk)
{
    struct check check = {.text = ""};

    rounds_check(&desk->rounds, &check);
    assert_string_equal(check.text, "");
}

static void end(struct desk *desk)
{
    expect_consistent(desk);
    rounds_deinit(&desk->rounds);
    sized_pool_deinit(&desk->pool);
}

static struct collective collective_of(const char *name, uint32_t place, uint64_t number)
{
    return (struct collective){
        .name = name,
        .round = number,
        .tasks = tasks,
        .task_count = TASKS,
        .own = place,
        .operation = COLLECTIVE_GATHER,
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(2, 3),
        .elements = 6,
        .axis = 1,
        .timeout_ms = 1000};
}

static enum rounds_came come(struct desk *desk, const struct collective *collective)
{
    const struct round_arrival arrival = {
        .reserved = rounds_reserve(&desk->rounds, collective, 24, &desk->error),
        .contribution = desk,
        .weight = 1};

    assert_non_null(arrival.reserved);
    const enum rounds_came came = rounds_come(&desk->rounds, &arrival, &desk->round, &desk->error);
    expect_consistent(desk);
    return came;
}

static struct round *
order(struct desk *desk, const char *name, uint64_t number, const struct sumac_error *how)
{
    const struct collective collective = collective_of(name, 0, number);
    struct round *const reserved = rounds_reserve_order(&desk->rounds, &collective);

    assert_non_null(reserved);
    return rounds_ordered(&desk->rounds, reserved, how);
}

/* An order cannot be refused: its room is counted beyond the bound. */
TEST(an_order_has_its_room_where_there_is_none)
{
    struct desk desk;
    const struct collective collective = collective_of("grads", 0, 1);

    begin(&desk, 16);
    struct round *const reserved = rounds_reserve_order(&desk.rounds, &collective);
    assert_int_equal(desk.rounds.room_bytes, reserved->room_bytes);
    assert_true(desk.rounds.room_bytes > 16);

    assert_null(rounds_reserve(&desk.rounds, &collective, 0, &desk.error)); /* nor is there more */

    rounds_unreserve(&desk.rounds, reserved);
    assert_int_equal(desk.rounds.room_bytes, 0);
    end(&desk);
}

/* Beyond the bound, too: it may take more than there is. */
TEST(what_the_owner_has_yet_to_give_back_takes_of_the_room)
{
    static const uint64_t beside[] = {ROOM_BYTES, 2 * ROOM_BYTES};
    const struct collective collective = collective_of("grads", 0, 1);
    struct desk desk;

    begin(&desk, ROOM_BYTES);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        char taken[64];
        desk.rounds.beside_bytes = beside[i];

        assert_null(rounds_reserve(&desk.rounds, &collective, 24, &desk.error));

        (void)text_print(
            taken, sizeof taken, "and %" PRIu64 " are taken of at most %u", beside[i], ROOM_BYTES);
        assert_non_null(strstr(desk.error.text, taken));
    }
    desk.rounds.beside_bytes = 0;
    end(&desk);
}

TEST(a_round_that_is_kept_gives_way_and_is_counted)
{
    const struct collective first = collective_of("grads", 0, 1),
                            other = collective_of("other", 0, 1);
    struct desk desk;

    begin(&desk, ROOM_BYTES);
    assert_int_equal(come(&desk, &first), ROUNDS_TAKEN);
    rounds_end(&desk.rounds, desk.round, &failed);
    rounds_heard(&desk.rounds, desk.round, 0);
    assert_true(desk.round->kept);

    struct round *const reserved =
        rounds_reserve(&desk.rounds, &other, ROOM_BYTES - desk.round->block_bytes, &desk.error);

    assert_non_null(reserved);
    assert_int_equal(desk.rounds.given_way_count, 1);
    assert_int_equal(desk.rounds.kept_count, 0);
    rounds_unreserve(&desk.rounds, reserved);
    end(&desk);
}

/* The bound is of one name: the oldest round of another name stays. */
TEST(a_round_gives_way_to_one_of_its_own_name)
{
    struct desk desk;

    begin(&desk, 1u << 20);
    for (uint64_t number = 0; number <= ROUNDS_KEPT_OF_NAME_MAX + 1; number++) {
        const struct collective collective =
            collective_of(number == 0 ? "other" : "grads", 0, number == 0 ? 1 : number);
        assert_int_equal(come(&desk, &collective), ROUNDS_TAKEN);
        rounds_end(&desk.rounds, desk.round, &failed);
        rounds_heard(&desk.rounds, desk.round, 0);
    }

    const struct collective other = collective_of("other", 0, 1),
                            oldest = collective_of("grads", 0, 1);
    assert_non_null(rounds_find(&desk.rounds, &other));
    assert_null(rounds_find(&desk.rounds, &oldest));
    assert_true(rounds_are_over(&desk.rounds, &oldest));
    end(&desk);
}

/* Without a contribution a round is neither deserted nor unwanted. */
TEST(a_round_that_is_ordered_before_anyone_came_is_kept_open)
{
    struct desk desk;

    begin(&desk, 1u << 20);
    struct round *const round = order(&desk, "grads", 1, &passed);
    assert_true(round->passes);
    assert_false(round_is_deserted(round));

    rounds_heard(&desk.rounds, round, 1);

    assert_false(round->unwanted);
    expect_consistent(&desk);
    rounds_end(&desk.rounds, round, &failed);
    end(&desk);
}

TEST(an_order_for_a_round_that_is_over_is_none)
{
    const struct collective collective = collective_of("grads", 0, 1);
    struct desk desk;

    begin(&desk, 1u << 20);
    assert_int_equal(come(&desk, &collective), ROUNDS_TAKEN);
    rounds_end(&desk.rounds, desk.round, &failed);

    assert_null(order(&desk, "grads", 1, &passed));

    assert_false(desk.round->passes);
    end(&desk);
}

TEST(what_is_joined_has_the_extent_of_each)
{
    struct collective collective = collective_of("grads", 0, 1);
    struct desk desk;

    begin(&desk, 1u << 20);
    assert_int_equal(come(&desk, &collective), ROUNDS_TAKEN);
    collective = collective_of("grads", 1, 1);
    collective.shape.extent[1] = 5;
    assert_int_equal(come(&desk, &collective), ROUNDS_TAKEN);

    assert_int_equal(desk.round->places[0].extent, 3);
    assert_int_equal(desk.round->places[1].extent, 5);
    end(&desk);
}

/* The first difference is what is proposed to ps 0. */
TEST(a_second_difference_does_not_replace_the_first)
{
    static const struct collective_task three[] = {{.chief = true}, {.index = 1}, {.index = 2}};
    struct collective collective = collective_of("grads", 0, 1);
    struct desk desk;
    char said[SUMAC_ERROR_TEXT_BYTES];

    begin(&desk, 1u << 20);
    collective.tasks = three;
    collective.task_count = 3;
    for (collective.own = 0; collective.own < 3; collective.own++) {
        const enum rounds_came came = come(&desk, &collective);
        assert_int_equal(came, collective.own == 0 ? ROUNDS_TAKEN : ROUNDS_DIFFERS);
        if (collective.own == 1)
            memcpy(said, desk.round->end.text, sizeof said);
        collective.shape.extent[0]++;
    }

    assert_string_equal(desk.round->end.text, said);
    end(&desk);
}

/* Its earlier attempt has heard: the later one asks in its place. */
TEST(who_comes_back_waits_for_the_round_again)
{
    const struct collective collective = collective_of("grads", 0, 1);
    struct desk desk;

    begin(&desk, 1u << 20);
    assert_int_equal(come(&desk, &collective), ROUNDS_TAKEN);
    rounds_end(&desk.rounds, desk.round, &failed);
    rounds_heard(&desk.rounds, desk.round, 0);
    assert_true(desk.round->kept);

    assert_int_equal(come(&desk, &collective), ROUNDS_BACK);

    assert_false(desk.round->kept || desk.round->places[0].heard);
    assert_int_equal(come(&desk, &collective), ROUNDS_AGAIN);
    end(&desk);
}
