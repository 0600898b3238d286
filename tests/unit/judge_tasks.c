/* SPDX-License-Identifier: Apache-2.0 */
/* judge_tasks.c -- how many tasks ps 0 knows where it lists none, and whose place a new one
 * gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "judge_world.h"

#define TASKS_MAX 4096u
#define REMEMBERED_MAX 256u /* settled sessions: theirs are the tasks that stay at least */
#define VISITOR 100000u     /* index of the first of many */
#define NONCES 1000000u     /* above those that a test names itself */

static void come_and_go(struct world *world, uint32_t index, bool done)
{
    const uint32_t nonce = NONCES + (uint32_t)world->drawn; /* another each time */
    const struct world_answer *joined = world_joined(world, "worker", index, nonce);

    world_leave(world, joined->session_id, done);
    world_settle_down(world);
    world->answer_count = 0; /* room for more */
}

static void come_and_go_all(struct world *world, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        come_and_go(world, first + i, false);
}

/* What is looked at after every step takes as long as there are tasks: not for thousands of
 * them. */
static struct world *crowded_world(void)
{
    struct world *world = world_new(1, 0);

    world->holds_orders = true;
    come_and_go_all(world, VISITOR, TASKS_MAX);
    return world;
}

static void a_task_that_has_left_gives_its_place_to_a_new_one(void **state)
{
    (void)state;
    struct world *world = crowded_world();

    world->holds_orders = false;
    assert_int_equal(world_joined(world, "worker", 0, 1)->status, SUMAC_OK);

    world_free(world);
}

/* The first visitor is forgotten, the last is not: each one's attempt goes up. */
static void attempts_of_a_task_that_was_forgotten_go_up(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    world->holds_orders = true;
    for (uint32_t i = 0; i < 3; i++)
        come_and_go(world, VISITOR, false);
    come_and_go_all(world, VISITOR + 1, TASKS_MAX);
    world->holds_orders = false;

    assert_int_equal(world_joined(world, "worker", VISITOR, 1)->attempt, 4);
    assert_int_equal(world_joined(world, "worker", VISITOR + TASKS_MAX - 1, 2)->attempt, 2);
    world_free(world);
}

/* Its client was cut off: it may come back, and is told how its session ended. */
static void a_task_that_lost_its_session_without_leaving_is_not_forgotten(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    world->ps[0].commit_through = 7;
    world_joined(world, "worker", 0, 1);
    const struct world_answer *stays = world_joined(world, "worker", 1, 2);
    for (uint32_t i = 0; i < 2; i++) {
        world_pass(world, 6 * SECOND);
        world_renew(world, stays->session_id);
    }
    world->ps[0].commit_through = 0;
    world->answer_count = 0;
    world->holds_orders = true;
    come_and_go_all(world, VISITOR, TASKS_MAX + REMEMBERED_MAX);

    const struct world_answer *back = world_joined(world, "worker", 0, 3);
    assert_int_equal(back->previous_final, 7);
    assert_int_equal(back->attempt, 2);
    world_free(world);
}

/* It is one of the 256 whose end is remembered: a leave that is said again is answered. */
static void a_task_whose_leave_may_be_said_again_is_not_forgotten(void **state)
{
    (void)state;
    struct world *world = crowded_world();
    uint8_t id[16];

    memcpy(id, world_joined(world, "worker", 0, 1)->session_id, sizeof id);
    world_leave(world, id, false);
    world_settle_down(world);
    for (uint32_t i = 0; i < REMEMBERED_MAX - 1; i++)
        come_and_go(world, i + 1, false);

    const uint64_t again = world_leave(world, id, true);

    assert_int_equal(world_answer(world, again)->status, SUMAC_OK);
    world_free(world);
}

/* Who was done is so although its task is forgotten: the run ends with 0. */
static void a_run_that_has_forgotten_who_was_done_ends_well(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    world->holds_orders = true;
    come_and_go(world, 0, true);
    come_and_go_all(world, VISITOR, TASKS_MAX);

    world_pass(world, 11 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    world_free(world);
}

static uint64_t join_naming(struct world *world, uint32_t self, uint32_t named, uint32_t nonce)
{
    char job[] = "worker";
    uint8_t random[16] = {0};
    wire_task_name self_name = WIRE_TASK_NAME_INIT, named_name = WIRE_TASK_NAME_INIT;
    wire_task_name *members[] = {&self_name, &named_name};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    memcpy(random, &nonce, sizeof nonce);
    random[15] = 1;
    self_name.job = named_name.job = job;
    self_name.index = self;
    named_name.index = named;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof random, random};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &self_name;
    request.members = members;
    request.n_members = 2;
    const uint64_t call = world_join_as(world, &request);
    world_settle_down(world);
    return call;
}

/* The run waits for it, and says in the end that it never came. */
static void a_task_that_somebody_lists_is_not_forgotten(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);
    const uint64_t call = join_naming(world, 0, 1, 1);

    world_leave(world, world_answer(world, call)->session_id, true);
    world_settle_down(world);
    world->answer_count = 0;
    world->holds_orders = true;
    come_and_go_all(world, VISITOR, TASKS_MAX);

    world_pass(world, 61 * SECOND);

    assert_true(world->exited);
    assert_int_equal(world->exit_code, 0);
    assert_non_null(strstr(world->exit_error.text, "never joined: worker 1"));
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_has_left_gives_its_place_to_a_new_one),
        cmocka_unit_test(attempts_of_a_task_that_was_forgotten_go_up),
        cmocka_unit_test(a_task_that_lost_its_session_without_leaving_is_not_forgotten),
        cmocka_unit_test(a_task_whose_leave_may_be_said_again_is_not_forgotten),
        cmocka_unit_test(a_run_that_has_forgotten_who_was_done_ends_well),
        cmocka_unit_test(a_task_that_somebody_lists_is_not_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
