/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective_attempts.c -- rounds that belong to one attempt of each task: what becomes of
 * them, and of a later attempt, when a task is started again. */
#include "lane_collective.h"

#define VARIABLE 7u
#define AGAIN 4u /* the session of worker 2's second attempt */

static void open_as(struct world *world, uint8_t session, uint32_t index, uint64_t attempt)
{
    uint8_t id[16];
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    task.job = (char *)(uintptr_t) "worker";
    task.index = index;
    open.session_id = talk_id(session, id);
    open.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    open.task = &task;
    open.attempt = attempt;
    talk_order_of(world->talk, open, &open);
    world->push[session] = talk_push_stream(world->talk, session, 1);
    world->pull[session] = talk_pull_stream(world->talk, session);
    world->last[session] = 0;
}

/* Workers 1 and 2, each in its first attempt. */
static void begin_attempts(struct world *world, struct talk *talk)
{
    const struct lane_config config = talk_config();

    begin_empty(world, talk, &config);
    for (uint8_t i = 1; i <= 2; i++)
        open_as(world, i, i, 1);
    world->shape[0] = 1;
    talk_forget(talk);
}

/* Come to a round with what the session knows of the attempts of workers 1 and 2, and ask. */
static void
come_as(struct world *world, uint8_t session, uint64_t round, uint64_t one, uint64_t two)
{
    uint64_t attempts[] = {one, two};

    world->collective.round = round;
    world->collective.attempts = attempts;
    world->collective.n_attempts = 2;
    come_with(world, session, session);
    ask(world, session);
    world->collective.attempts = NULL;
}

/* Settle a session. `attempt` is the one that has joined; 0: none has. */
static void settle_for(struct world *world, uint8_t session, int kind, uint64_t attempt)
{
    wire_close_cause cause = WIRE_CLOSE_CAUSE_INIT;

    cause.kind = (Sumac__V1__CloseCause__Kind)kind;
    cause.attempt = attempt;
    talk_close_for(world->talk, session, &cause);
    talk_decide(world->talk, session, world->last[session], 0);
}

static void lose(struct world *world, uint8_t session)
{
    settle_for(world, session, WIRE_CLOSE_LEASE_OVER, 0);
}

/* Another attempt of a task joins: the session of the one before is settled with that. */
static void
replace_by(struct world *world, uint8_t session, uint8_t next, uint32_t index, uint64_t attempt)
{
    settle_for(world, session, WIRE_CLOSE_NEWER_ATTEMPT, attempt);
    open_as(world, next, index, attempt);
}

static void replace(struct world *world) { replace_by(world, 2, AGAIN, 2, 2); }

#define heard(world, text) assert_int_equal(talk_times_said((world).talk, text), 1)

TALK_TEST(a_round_that_waits_for_an_attempt_ends_when_another_has_replaced_it)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.talk->shows_logs = true;
    come_as(&world, 1, 73, 1, 1);

    replace(&world); /* when */

    heard(world, "pulled 1 error MEMBER_GONE"); /* then */
    heard(
        world,
        "has failed: worker 2 did not contribute, and its session is over: "
        "another process has taken this task's place, attempt 2: a later attempt cannot take "
        "the place of an earlier one, whose state is lost; start all of them again; if that "
        "process is of another run, set SUMAC_RUN to a different value in each run");
}

/* An attempt is known to the others from its first contribution on. */
TALK_TEST(a_round_waits_for_any_attempt_of_a_task_that_has_not_come_yet)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 1, 1, 0);
    replace(&world);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);

    come_as(&world, AGAIN, 1, 0, 2); /* when */

    heard(world, "met 1 float32 [1] 5"); /* then */
    heard(world, "met 4 float32 [1] 5");
}

/* Tasks that were all lost are started again one after the other. */
TALK_TEST(a_first_round_awaits_a_task_that_was_lost_before_and_one_that_is_lost)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    lose(&world, 1);
    lose(&world, 2);
    open_as(&world, 3, 1, 2);
    talk_forget(world.talk);
    come_as(&world, 3, 1, 2, 0);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);
    open_as(&world, AGAIN, 2, 2);
    lose(&world, AGAIN);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);
    open_as(&world, 5, 2, 3);

    come_as(&world, 5, 1, 0, 3); /* when */

    heard(world, "met 3 float32 [1] 8"); /* then */
    heard(world, "met 5 float32 [1] 8");
}

TALK_TEST(a_first_round_ends_when_a_task_has_left)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 1, 1, 0);

    settle_for(&world, 2, WIRE_CLOSE_LEFT, 0); /* when */

    heard(world, "pulled 1 error MEMBER_GONE"); /* then */
}

/* SUMAC_SYNCHRONOUS of this worker is not that of the others: it keeps no step with them. */
static void push_alone(struct world *world, uint8_t session)
{
    static const float values[] = {1, 2, 3, 4};
    const struct talk_part part = {
        .sequence = ++world->last[session],
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = 4,
        .eager = true};

    talk_variable(world->talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    talk_part(world->talk, world->push[session], &part);
}

TALK_TEST(a_round_says_that_the_worker_which_left_was_not_synchronous)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.talk->shows_logs = true;
    come_as(&world, 1, 1, 1, 0);
    push_alone(&world, 2);

    settle_for(&world, 2, WIRE_CLOSE_LEFT, 0); /* when */

    heard(world, "pulled 1 error STEP_DIFFERS"); /* then */
    heard(
        world, "round 1 of collective h has failed: worker 2 has left without it; its pushes were "
               "asynchronous; start all workers with the same SUMAC_SYNCHRONOUS");
}

TALK_TEST(a_round_whose_time_is_over_says_that_a_worker_is_not_synchronous)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.talk->shows_logs = true;
    world.collective.timeout_ms = 300;
    push_alone(&world, 2);
    come_as(&world, 1, 1, 1, 0);

    talk_tick(world.talk, 300); /* when */

    heard(world, "pulled 1 error STEP_DIFFERS"); /* then */
    heard(world, "for worker 2 (its pushes are asynchronous, ");
    heard(world, "); start all workers with the same SUMAC_SYNCHRONOUS");
}

/* Its attempt is known: it has kept step before, whatever it pushes beside. */
TALK_TEST(a_worker_that_came_before_is_not_called_asynchronous)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.collective.timeout_ms = 300;
    push_alone(&world, 2);
    come_as(&world, 1, 2, 1, 1);

    talk_tick(world.talk, 300); /* when */

    heard(world, "pulled 1 error ROUND_TIMED_OUT"); /* then */
}

/* The others were started again, and do not know its attempt. */
TALK_TEST(a_worker_that_has_only_met_is_not_called_asynchronous)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 1, 1, 0);
    come_as(&world, 2, 1, 1, 1);
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    replace_by(&world, 1, 3, 1, 2);
    talk_forget(world.talk);
    world.collective.timeout_ms = 300;
    come_as(&world, 3, 1, 2, 0);

    talk_tick(world.talk, 300); /* when */

    heard(world, "pulled 3 error ROUND_TIMED_OUT"); /* then */
}

TALK_TEST(a_round_whose_worker_has_left_says_to_look_at_its_log)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.talk->shows_logs = true;
    come_as(&world, 1, 1, 1, 0);

    settle_for(&world, 2, WIRE_CLOSE_LEFT, 0); /* when */

    heard(
        world, /* then */
        "worker 2 did not contribute, and its session is over: it has left; see its log");
}

TALK_TEST(a_round_ends_when_the_attempt_that_it_waits_for_is_lost)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.talk->shows_logs = true;
    come_as(&world, 1, 2, 1, 1);

    lose(&world, 2); /* when */

    heard(world, "pulled 1 error MEMBER_GONE"); /* then */
    heard(
        world, ": a later attempt cannot take the place of an earlier one, whose state is lost; "
               "start all of them again");
}

TALK_TEST(a_later_attempt_ends_the_rounds_in_which_the_others_wait_and_is_told)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 73, 1, 0);
    replace(&world);
    world.talk->shows_logs = true;
    talk_forget(world.talk);
    come_as(&world, AGAIN, 1, 0, 2);

    come_as(&world, 1, 74, 1, 1); /* when */

    heard(world, "pulled 4 error MEMBER_GONE"); /* then */
    heard(world, "pulled 1 error MEMBER_GONE");
    assert_in_range(
        talk_times_said(
            world.talk,
            "round 74 of collective h names attempt 1 of worker 2, and round 1 belongs "
            "to attempt 2: a later attempt cannot take the place of an earlier one, whose state "
            "is lost; start all of them again; if the two attempts are of two runs, "
            "set SUMAC_RUN to a different value in each run"),
        1, 2); /* in the log, for each round */
}

/* Each attempt has its own session: worker 1's second is session 3. */
static void begin_after_a_failure(struct world *world, struct talk *talk)
{
    begin_attempts(world, talk);
    come_as(world, 1, 1, 1, 1);
    replace(world);
    heard(*world, "pulled 1 error MEMBER_GONE");
}

TALK_TEST(a_later_attempt_that_came_first_is_told_when_the_others_come)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    replace(&world);
    come_as(&world, AGAIN, 1, 0, 2);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);

    come_as(&world, 1, 74, 1, 1); /* when */

    heard(world, "pulled 4 error MEMBER_GONE"); /* then */
    heard(world, "pulled 1 error MEMBER_GONE");
}

TALK_TEST(all_rounds_that_it_had_come_to_end_with_that)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    replace(&world);
    for (uint64_t round = 1; round <= 3; round++)
        come_as(&world, AGAIN, round, 0, 2);

    come_as(&world, 1, 74, 1, 1); /* when */

    assert_int_equal(talk_times_said(world.talk, "pulled 4 error MEMBER_GONE"), 3); /* then */
    heard(world, "pulled 1 error MEMBER_GONE");
}

/* Another attempt is about to join. */
TALK_TEST(a_wait_names_a_task_that_had_joined)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 1, 1, 0);
    settle_for(&world, 2, WIRE_CLOSE_NEWER_ATTEMPT, 2);
    talk_tick(world.talk, 2000);

    const wire_stats_reply *const stats = talk_stats(world.talk); /* when */

    assert_int_equal(stats->n_waits, 1); /* then */
    assert_non_null(strstr(stats->waits[0], "worker 2 (no session)"));
    assert_null(strstr(stats->waits[0], "start each missing task"));
}

TALK_TEST(a_wait_says_that_a_task_was_lost)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 1, 1, 0);
    settle_for(&world, 2, WIRE_CLOSE_LEASE_OVER, 0);
    talk_tick(world.talk, 2000);

    const wire_stats_reply *const stats = talk_stats(world.talk); /* when */

    assert_non_null(strstr(stats->waits[0], "for worker 2 (lost)")); /* then */
    talk_forget(world.talk);
}

TALK_TEST(a_later_attempt_does_not_take_the_place_of_the_one_that_came)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 2, 1, 0, 1);
    come_as(&world, 1, 1, 1, 0);
    heard(world, "met 1 float32 [1] 3");
    replace(&world);
    talk_forget(world.talk);

    come_as(&world, AGAIN, 1, 0, 2); /* when */

    heard(world, "pulled 4 error MEMBER_GONE"); /* then */
}

/* Otherwise tasks that are all started again would hear of the earlier attempts for ever. */
TALK_TEST(what_failed_is_forgotten_when_all_that_it_belongs_to_are_over)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    come_as(&world, 1, 73, 1, 1);
    replace(&world);
    acknowledge(&world, 1);
    expect_ends_kept(&world, 1);

    leave(&world, 1); /* when */

    expect_nothing_kept(&world); /* then */
    open_as(&world, 3, 1, 2);
    talk_forget(world.talk);
    come_as(&world, 3, 1, 2, 0);
    come_as(&world, AGAIN, 1, 0, 2);
    heard(world, "met 3 float32 [1] 7");
}

TALK_TEST(what_failed_does_not_keep_back_later_attempts_while_a_session_is_open)
{
    struct world world;

    begin_after_a_failure(&world, talk); /* given: the session of worker 1 is open */
    come_as(&world, AGAIN, 1, 0, 2);
    assert_int_equal(talk_times_said(world.talk, "pulled 4"), 0);
    replace_by(&world, 1, 3, 1, 2);

    come_as(&world, 3, 1, 2, 0); /* when */

    heard(world, "met 3 float32 [1] 7"); /* then: of sessions 3 and 4 */
    heard(world, "met 4 float32 [1] 7");
}

/* It fails with attempt 2 of worker 2 alone: attempt 2 of worker 1 hears that, attempt 3 waits. */
TALK_TEST(each_attempt_is_told_once_how_a_first_round_failed)
{
    struct world world;

    begin_after_a_failure(&world, talk); /* given */
    come_as(&world, AGAIN, 1, 0, 2);
    come_as(&world, 1, 2, 1, 1);
    heard(world, "pulled 4 error MEMBER_GONE");
    replace_by(&world, 1, 3, 1, 2);
    come_as(&world, 3, 1, 2, 0);
    heard(world, "pulled 3 error MEMBER_GONE");
    replace_by(&world, 3, 5, 1, 3);
    talk_forget(world.talk);

    come_as(&world, 5, 1, 3, 0); /* when: the session of worker 2 is open still */

    assert_int_equal(talk_times_said(world.talk, "pulled"), 0); /* then */
    replace_by(&world, AGAIN, 6, 2, 3);
    come_as(&world, 6, 1, 0, 3);
    heard(world, "met 5 float32 [1] 11");
}

TALK_TEST(who_asks_for_a_round_that_is_over_before_it_comes_hears_of_it_when_it_has_come)
{
    uint64_t attempts[] = {0, 1};
    struct world world;

    begin_attempts(&world, talk); /* given */
    world.collective.timeout_ms = 300;
    come_as(&world, 1, 1, 1, 0);
    talk_tick(world.talk, 300);
    heard(world, "pulled 1 error ROUND_TIMED_OUT");
    ask(&world, 2);
    assert_int_equal(talk_times_said(world.talk, "pulled 2"), 0);

    world.collective.attempts = attempts;
    world.collective.n_attempts = 2;
    come_with(&world, 2, 2); /* when */
    world.collective.attempts = NULL;

    heard(world, "pulled 2 error ROUND_TIMED_OUT"); /* then */
}

TALK_TEST(an_attempt_hears_how_its_own_round_ended_when_a_later_one_has_begun)
{
    struct world world;

    begin_after_a_failure(&world, talk); /* given */
    come_as(&world, AGAIN, 1, 0, 2);
    talk_forget(world.talk);

    ask(&world, 1); /* when */

    heard(world, "pulled 1 error MEMBER_GONE"); /* then */
    assert_int_equal(talk_times_said(world.talk, "pulled 4"), 0);
}

TALK_TEST(what_was_forgotten_of_earlier_attempts_does_not_end_rounds_of_later_ones)
{
    struct world world;

    begin_after_a_failure(&world, talk); /* given */
    for (uint64_t round = 2; round <= ROUNDS_KEPT_OF_NAME_MAX + 2; round++)
        come_as(&world, 1, round, 1, 1);
    acknowledge(&world, 1);
    expect_ends_kept(&world, ROUNDS_KEPT_OF_NAME_MAX);
    talk_forget(world.talk);

    come_as(&world, AGAIN, 1, 0, 2); /* when */

    assert_int_equal(talk_times_said(world.talk, "pulled"), 0); /* then */
}

TALK_TEST(an_order_about_earlier_attempts_does_not_end_a_round_of_later_ones)
{
    struct world world;
    wire_collective_end end = WIRE_COLLECTIVE_END_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    uint64_t attempts[] = {1, 1};

    begin_attempts(&world, talk); /* given */
    replace(&world);
    world.collective.split = true;
    come_as(&world, AGAIN, 2, 1, 2);
    world.collective.attempts = attempts;
    world.collective.n_attempts = 2;
    end.collective = &world.collective;
    end.status = SUMAC_ABORTED;
    end.reason = SUMAC__V1__REASON__REASON_MEMBER_GONE;
    end.message = (char *)(uintptr_t) "worker 2 is gone";
    order.collective = &end;

    talk_order(world.talk, &order); /* when */

    assert_int_equal(talk_times_said(world.talk, "pulled"), 0); /* then */
    attempts[1] = 2;
    talk_order(world.talk, &order);
    heard(world, "pulled 4 error MEMBER_GONE");
}

/* Before such a task comes, the round answers its pull only if an order has named its attempt. */
TALK_TEST(who_asks_for_a_round_that_is_over_hears_of_it_when_ps_0_names_its_attempt)
{
    struct world world;
    wire_collective_end end = WIRE_COLLECTIVE_END_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;
    uint64_t attempts[] = {1, 0};

    begin_attempts(&world, talk); /* given */
    world.collective.split = true;
    world.collective.attempts = attempts;
    world.collective.n_attempts = 2;
    end.collective = &world.collective;
    end.status = SUMAC_ABORTED;
    end.reason = SUMAC__V1__REASON__REASON_MEMBER_GONE;
    end.message = (char *)(uintptr_t) "worker 3 is gone";
    order.collective = &end;
    talk_order(world.talk, &order);
    ask(&world, 2);
    assert_int_equal(talk_times_said(world.talk, "pulled"), 0);

    attempts[1] = 1;
    talk_order(world.talk, &order); /* when */

    heard(world, "pulled 2 error MEMBER_GONE"); /* then */
}

TALK_TEST(who_names_another_attempt_as_its_own_is_refused)
{
    struct world world;

    begin_attempts(&world, talk);

    come_as(&world, 1, 1, 7, 0);

    heard(world, "MALFORMED");
}

/* One of the two rounds is split: its home sees both, and ps 0 alone says how a split one ends. */
TALK_TEST(the_home_proposes_the_end_of_a_split_round_of_another_attempt)
{
    struct world world;

    begin_attempts(&world, talk); /* given */
    replace(&world);
    world.shape[0] = 2; /* an element on each ps */
    world.collective.split = true;
    come_as(&world, AGAIN, 1, 0, 2);
    talk_forget(world.talk);

    world.shape[0] = 1;
    world.collective.split = false;
    come_as(&world, 1, 74, 1, 1); /* when */

    heard(world, "report proposes h 1 MEMBER_GONE"); /* then */
    heard(world, "pulled 1 error MEMBER_GONE");
}
