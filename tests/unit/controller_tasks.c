/* SPDX-License-Identifier: Apache-2.0 */
/* controller_tasks.c -- the limit of tasks that ps 0 keeps when its configuration lists none, and
 * the task that a new one replaces. */

#include "unit.h"
#include "controller_world.h"

#define TASKS_MAX 4096u
#define REMEMBERED_MAX 256u /* settled sessions: theirs are the tasks that stay at least */
#define VISITOR 100000u     /* index of the first of many */
#define NONCES 1000000u     /* above those that a test names itself */

static void come_and_go(struct world *world, uint32_t index, bool done)
{
    const uint32_t nonce = NONCES + (uint32_t)world->drawn; /* another each time */
    const uint32_t joined = world_joined(world, "worker", index, nonce);

    world_leave(world, joined, done);
    world_settle_down(world);
    world->answer_count = 0; /* room for more */
    world_forget(world);
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

TEST(a_task_that_has_left_gives_its_place_to_a_new_one)
{
    struct world *world = crowded_world();

    world->holds_orders = false;
    world_joined(world, "worker", 0, 1);

    world_expect(
        world, "ps 0: members 4096 epoch 4097\n"
               "ps 0: open 4097\n"
               "8193: joined 4097 attempt 2 of 1 ps epoch 4097\n");
    world_free(world);
}

/* The first visitor is forgotten, the last is not: each one's attempt goes up. */
TEST(attempts_of_a_task_that_was_forgotten_go_up)
{
    struct world *world = world_new(1, 0);

    world->holds_orders = true;
    for (uint32_t i = 0; i < 3; i++)
        come_and_go(world, VISITOR, false);
    come_and_go_all(world, VISITOR + 1, TASKS_MAX);
    world->holds_orders = false;

    world_joined(world, "worker", VISITOR, 1);
    world_expect(
        world, "ps 0: members 4096 epoch 4098\n"
               "ps 0: open 4100\n"
               "8199: joined 4100 attempt 4 of 1 ps epoch 4098\n");
    world_joined(world, "worker", VISITOR + TASKS_MAX - 1, 2);
    world_expect(
        world, "ps 0: open 4101\n"
               "8200: joined 4101 attempt 2 of 1 ps epoch 4098\n");
    world_free(world);
}

/* The new task's attempts follow those of the task that was forgotten: the second visitor made
 * three. The first one has been back since. */
TEST(the_task_that_left_first_is_forgotten_first)
{
    struct world *world = world_new(1, 0);

    world->holds_orders = true; /* given */
    come_and_go(world, VISITOR, false);
    for (uint32_t i = 0; i < 3; i++)
        come_and_go(world, VISITOR + 1, false);
    world_pass(world, 1000);
    come_and_go(world, VISITOR, false);
    come_and_go_all(world, VISITOR + 2, TASKS_MAX - 2);
    world->holds_orders = false;

    world_joined(world, "worker", 0, 1); /* when, then */

    world_expect(
        world, "ps 0: members 4096 epoch 4097\n"
               "ps 0: open 4100\n"
               "8199: joined 4100 attempt 4 of 1 ps epoch 4097\n");
    world_free(world);
}

/* It left before all others, and has a session again: the second visitor gives its place. */
TEST(a_task_that_has_come_back_is_not_forgotten)
{
    struct world *world = world_new(1, 0);

    world->holds_orders = true; /* given */
    come_and_go(world, VISITOR, false);
    world_pass(world, 1000);
    const uint32_t back = world_joined(world, "worker", VISITOR, 1);
    world->answer_count = 0;
    come_and_go_all(world, VISITOR + 1, TASKS_MAX - 1);

    world_joined(world, "worker", 0, 2); /* when */

    assert_non_null(
        strstr(world->text, "attempt 2 of 1 ps")); /* then: one more than the second's */
    world_leave(world, back, false);
    world_settle_down(world);
    world_free(world);
}

/* Its client was cut off: it may come back, and is told how its session ended. */
TEST(a_task_that_lost_its_session_without_leaving_is_not_forgotten)
{
    struct world *world = world_new(1, 0);

    world->ps[0].commit_through = 7;
    world_joined(world, "worker", 0, 1);
    const uint32_t stays = world_joined(world, "worker", 1, 2);

    world_forget(world);
    for (uint32_t i = 0; i < 2; i++) {
        world_pass(world, 6 * SECOND);
        world_renew(world, stays);
    }
    world->ps[0].commit_through = 0;
    world->answer_count = 0;
    world->holds_orders = true;
    come_and_go_all(world, VISITOR, TASKS_MAX + REMEMBERED_MAX);

    world_joined(world, "worker", 0, 3);
    world_expect(
        world, "ps 0: open 4355\n"
               "8709: joined 4355 attempt 2 of 1 ps after 7 epoch 4354\n");
    world_free(world);
}

/* It is one of the 256 whose end is remembered: a leave that is said again is answered. */
TEST(a_task_whose_leave_may_be_said_again_is_not_forgotten)
{
    struct world *world = crowded_world();
    const uint32_t id = world_joined(world, "worker", 0, 1);

    world_leave(world, id, false);
    world_settle_down(world);
    for (uint32_t i = 0; i < REMEMBERED_MAX - 1; i++)
        come_and_go(world, i + 1, false);

    world_leave(world, id, true);

    world_expect(world, "8705: left at 0\n");
    world_free(world);
}

/* Who was done is so although its task is forgotten: the run ends with 0. */
TEST(a_run_that_has_forgotten_who_was_done_ends_well)
{
    struct world *world = world_new(1, 0);

    world_forget(world);

    world->holds_orders = true;
    come_and_go(world, 0, true);
    come_and_go_all(world, VISITOR, TASKS_MAX);

    world_pass(world, 11 * SECOND);

    world_expect(
        world,
        "ps 0: end 0 RUN_ENDED no worker has been in the run for 10 s, one has left as done\n"
        "exit 0 RUN_ENDED …\n");
    world_free(world);
}

/* Its session. */
static uint32_t join_naming(struct world *world, uint32_t self, uint32_t named, uint32_t nonce)
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
    world_join_as(world, &request);
    world_settle_down(world);
    return world->session_count;
}

/* The run waits for it, and says in the end that it never came. */
TEST(a_task_that_somebody_lists_is_not_forgotten)
{
    struct world *world = world_new(1, 0);
    const uint32_t session = join_naming(world, 0, 1, 1);

    world_forget(world);

    world_leave(world, session, true);
    world_settle_down(world);
    world->answer_count = 0;
    world->holds_orders = true;
    come_and_go_all(world, VISITOR, TASKS_MAX);

    world_pass(world, 61 * SECOND);

    world_expect(
        world, "ps 0: end 0 RUN_ENDED no worker has been in the run for 60 s, one "
               "has left as done; never joined: worker 1\n"
               "exit 0 RUN_ENDED …\n");
    world_free(world);
}

/* None of the 4096 that it knows has left: it says so, and what to do. */
TEST(a_task_more_than_may_be_known_is_refused_while_none_has_left)
{
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = TASKS_MAX + 1;
    world_begin(world);
    world->holds_orders = true;
    for (uint32_t i = 0; i < TASKS_MAX; i++) {
        world_joined(world, "worker", i, i + 1);
        world->answer_count = 0;
        world_forget(world);
    }

    world_join(world, "worker", TASKS_MAX, TASKS_MAX + 1);

    world_expect(
        world,
        "4097: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 4096: ps 0 knows 4096 tasks, it "
        "names 0 more, 4096 are the most, and too few have left: list the members in the cluster "
        "configuration of ps 0\n");
    world_free(world);
}

/* Worker 7 gave up its join before ps 0 opened a session. */
TEST(a_task_that_never_joined_is_not_named_as_one_to_come_back)
{
    struct world *world = world_new(2, 0); /* given */

    world_cancel(world, world_join(world, "worker", 7, 1));
    world_pass(world, 12 * SECOND); /* its lease is over */
    world_up(world, 1);
    come_and_go(world, 0, false);

    world_pass(world, 4 * SECOND); /* when */

    assert_true(
        world_waits(/* then */
                    world, "no worker is left; the run ends in 6 s unless worker 0 joins again"));
    world_free(world);
}

TEST(the_last_line_counts_who_left_as_done_and_names_who_was_lost)
{
    struct world *world = world_new(1, 5); /* given */

    world_joined(world, "worker", 1, 60);
    const uint32_t undone = world_joined(world, "worker", 3, 61);
    const uint32_t late = world_joined(world, "worker", 4, 62);
    come_and_go(world, 0, true);
    come_and_go(world, 2, true);
    world_leave(world, undone, false);
    world_settle_down(world);

    world_pass(world, 12 * SECOND); /* when */
    world_leave(world, late, true); /* its lease is over */
    world_pass(world, 10 * SECOND);

    assert_true(world_logged(
        world,
        "run ends with code 0: no worker has been in the run for 10 s, 3 have left as done; lost: "
        "worker 1\n")); /* then */
    world_free(world);
}
