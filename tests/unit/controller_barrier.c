/* SPDX-License-Identifier: Apache-2.0 */
/* controller_barrier.c -- members that wait for each other: who may come, and to which round. */

#include "unit.h"
#include "barrier.h"
#include "controller_arrivals.h"

/* ---- rounds ---- */

TEST(a_round_passes_for_all_when_the_last_has_come)
{
    struct world *world = of_two_joined(); /* given */

    come(world, 1, 0); /* when */
    world_expect(world, "");
    come(world, 2, 0);

    world_expect(world, "3: round 1 passes\n4: round 1 passes\n"); /* then */
    come(world, 2, 2);
    come(world, 1, 2);
    world_expect(world, "5: round 2 passes\n6: round 2 passes\n");
    world_free(world);
}

TEST(who_comes_again_takes_the_place_of_its_first_call)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    come(world, 1, 0);
    world_expect(world, "3: ABORTED TIMED_OUT a retry of this call took its place\n");
    come(world, 1, 1);
    world_expect(world, "4: ABORTED TIMED_OUT a retry of this call took its place\n");

    come(world, 2, 0);

    world_expect(world, "5: round 1 passes\n6: round 1 passes\n");
    world_free(world);
}

/* Its answer was lost: it says what it said before, and nobody waits for a second arrival. Of round
 * 0 ps 0 cannot know which was lost: a client that always says 0 would pass each barrier alone. */
TEST(who_says_an_arrival_again_is_told_how_that_round_ended)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    come(world, 1, 0); /* the round is open still */
    come(world, 2, 0);
    world_forget(world);

    come(world, 1, 0);
    world_expect_answer(
        world,
        "round 1 ends FAILED_PRECONDITION ROUND_OVER worker 0 calls barrier \"epoch\" with round "
        "0, "
        "and has come to its round 1, which is over: call it with round 1 to hear how that one "
        "ended, or with round 2 to come to the next");
    come(world, 1, 1);
    world_expect_answer(world, "round 1 passes");
    come(world, 2, 1);
    world_expect_answer(world, "round 1 passes");

    come(world, 2, 2); /* the next one has begun meanwhile */
    world_expect(world, "");
    come(world, 1, 0);
    world_expect_answer(world, "round 1 ends FAILED_PRECONDITION ROUND_OVER …");
    come(world, 1, 2);
    world_expect(world, "9: round 2 passes\n11: round 2 passes\n");
    world_free(world);
}

TEST(without_the_rule_arrival_counts_once_it_waits_for_another_round)
{
    struct world *world = world_prepare(1, 2);

    world->config.broken = rule_bit(RULE_arrival_counts_once);
    world_begin(world);
    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    come(world, 1, 0);
    come(world, 2, 0);
    world_forget(world);

    come(world, 1, 0);
    world_expect(world, "");
    world_free(world);
}

TEST(a_round_that_is_over_for_long_is_not_known_and_the_next_is_said)
{
    struct world *world = of_two_joined();

    for (uint64_t round = 1; round <= 3; round++) {
        come(world, 1, round);
        come(world, 2, round);
    }
    world_forget(world);

    come(world, 1, 2);

    world_expect_answer(
        world,
        "round 3 ends ABORTED ROUND_OVER round 2 of barrier \"epoch\" is over, and how it ended "
        "is not known any more; the next is round 4");
    come(world, 1, 4);
    come(world, 2, 4);
    world_expect(world, "10: round 4 passes\n11: round 4 passes\n");
    world_free(world);
}

TEST(a_round_beyond_the_next_is_refused)
{
    struct world *world = of_two_joined();

    come(world, 1, 1);
    come(world, 2, 1);
    world_forget(world);
    come(world, 1, 2);
    come(world, 2, 3);

    world_expect_answer(
        world,
        "FAILED_PRECONDITION MALFORMED worker 1 comes to round 3 of barrier \"epoch\", and the "
        "next is round 2");
    come(world, 2, UINT64_MAX);
    world_expect_answer(
        world, "INVALID_ARGUMENT MALFORMED round 18446744073709551615 of a barrier is asked for; "
               "they count from 1");
    world_free(world);
}

/* One that had come to the round before, and has left, does not come to that one. */
TEST(a_round_that_is_counted_on_from_does_not_wait_for_who_is_gone)
{
    struct world *world = world_new(1, 3);

    for (uint32_t i = 0; i < 3; i++)
        (void)world_joined(world, "worker", i, i + 1);
    come(world, 1, 0);
    come(world, 3, 0);
    world_leave(world, 3, false);
    world_settle_down(world);
    world_forget(world);

    come(world, 2, 7);

    world_expect(
        world, "4: RESOURCE_EXHAUSTED BUSY …: come again\n"
               "7: round 7 ends ABORTED MEMBER_GONE round 7 of barrier \"epoch\" cannot pass "
               "without worker 2 "
               "(last heard from … ago, left); …\n");
    world_free(world);
}

/* It is gone from the table, or ps 0 is another: those who know go on counting. */
TEST(a_name_that_is_not_known_begins_with_the_round_that_is_named)
{
    struct world *world = of_two_joined();

    come(world, 1, 7);
    come(world, 2, 0);

    world_expect(world, "3: round 7 passes\n4: round 7 passes\n");
    come(world, 1, 6);
    world_expect_answer(world, "round 7 ends ABORTED ROUND_OVER round 6 …");
    world_free(world);
}

/* The first to come is an attempt that has heard of none. */
TEST(who_knows_more_rounds_of_a_forgotten_name_is_believed)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    world_expect(world, "");
    come(world, 2, 7);

    world_expect(
        world,
        "3: RESOURCE_EXHAUSTED BUSY barrier \"epoch\" had been forgotten, and is at round 7: "
        "come again\n");
    come(world, 1, 0);
    world_expect(world, "4: round 7 passes\n5: round 7 passes\n");
    world_free(world);
}

/* Its round is over for the others: it does not count for theirs. */
TEST(a_call_of_long_ago_for_a_forgotten_name_counts_for_its_own_round_alone)
{
    struct world *world = of_two_joined();

    come(world, 1, 3);
    come(world, 2, 7);
    world_forget(world);

    come(world, 1, 3);

    world_expect_answer(world, "round 6 ends ABORTED ROUND_OVER round 3 …");
    come(world, 1, 7);
    world_expect(world, "4: round 7 passes\n6: round 7 passes\n");
    world_free(world);
}

TEST(how_the_round_before_the_first_ended_is_not_known)
{
    struct world *world = of_two_joined();

    come(world, 1, 7);
    come(world, 2, 6);

    world_expect_answer(
        world, "round 6 ends ABORTED ROUND_OVER round 6 of barrier \"epoch\" is over, …");
    world_free(world);
}

/* ---- who takes part ---- */

TEST(a_list_of_tasks_waits_for_these_alone)
{
    const uint32_t outer[] = {0, 2, END};
    struct world *world = world_new(1, 3);
    const uint32_t zero = world_joined(world, "worker", 0, 1);
    const uint32_t two = world_joined(world, "worker", 2, 3);

    world_forget(world);
    come_of(world, zero, outer);
    world_expect(world, "");
    come_of(world, two, outer);

    world_expect(world, "3: round 1 passes\n4: round 1 passes\n");
    world_free(world);
}

TEST(as_many_other_tasks_are_another_list)
{
    const uint32_t outer[] = {0, 2, END};
    struct world *world = world_new(1, 3);

    (void)world_joined(world, "worker", 0, 1);
    world_forget(world);
    come_of(world, 1, first_two);
    come_of(world, 1, outer);
    world_expect_answer(
        world,
        "ALREADY_EXISTS ALREADY_EXISTS barrier \"some\" is of worker 0, worker 1, and this call "
        "says of worker 0, worker 2: …");
    world_free(world);
}

TEST(who_names_other_tasks_is_refused_with_both_lists)
{
    const uint32_t one[] = {1, END}, more[] = {0, 1, 2, END};
    struct world *world = world_new(1, 3);

    (void)world_joined(world, "worker", 0, 1);
    (void)world_joined(world, "worker", 1, 2);
    world_forget(world);
    come_of(world, 1, first_two);
    come_of(world, 2, one);
    world_expect_answer(
        world,
        "ALREADY_EXISTS ALREADY_EXISTS barrier \"some\" is of worker 0, worker 1, and this call "
        "says of worker 1: all who come to it name the same");
    come_of(world, 2, more);
    world_expect_answer(world, "ALREADY_EXISTS ALREADY_EXISTS …");
    come_of(world, 2, NULL);
    world_expect_answer(
        world,
        "ALREADY_EXISTS ALREADY_EXISTS barrier \"some\" is of worker 0, worker 1, and this call "
        "says of all members: …");
    come_of(world, 2, first_two);
    world_expect(world, "3: round 1 passes\n7: round 1 passes\n");
    world_free(world);
}

/* That they are the same tasks now is no reason: others may be listed later. */
TEST(who_names_all_tasks_of_a_barrier_of_all_is_refused)
{
    struct world *world = of_two_joined();

    come(world, 1, 0);
    world_come(world, 2, &(struct world_arrival){.name = "epoch", .workers = first_two});

    world_expect_answer(
        world,
        "ALREADY_EXISTS ALREADY_EXISTS barrier \"epoch\" is of all members, and this call says of "
        "worker 0, worker 1: …");
    world_free(world);
}

TEST(an_observer_is_refused)
{
    struct world *world = of_two_joined();
    const uint32_t observer = world_joined(world, NULL, 0, 3);

    world_forget(world);
    come(world, observer, 0);

    world_expect_answer(
        world, "FAILED_PRECONDITION MALFORMED observer 1 is no member, and only members come to a "
               "barrier: open the client as a member");
    world_free(world);
}

TEST(tasks_that_cannot_come_or_are_out_of_order_are_refused)
{
    const uint32_t other[] = {1, END}, twice[] = {0, 0, END}, back[] = {1, 0, END};
    const uint32_t stranger[] = {0, 9, END};
    struct world *world = of_two_joined();

    come_of(world, 1, other);
    world_expect_answer(
        world, "INVALID_ARGUMENT MALFORMED worker 0 comes to barrier \"some\", which it says is of "
               "worker 1: name it among them");
    come_of(world, 1, twice);
    world_expect_answer(
        world,
        "INVALID_ARGUMENT MALFORMED barrier \"some\" names worker 0 after worker 0; name the "
        "chief first, then the workers by index, each once");
    come_of(world, 1, back);
    world_expect_answer(
        world, "INVALID_ARGUMENT MALFORMED barrier \"some\" names worker 0 after …");
    come_of(world, 1, stranger);
    world_expect_answer(
        world,
        "INVALID_ARGUMENT BAD_NAME barrier \"some\" names worker 9, and the cluster lists worker "
        "0, worker 1");
    assert_null(world->controller->barriers.first);
    world_free(world);
}

TEST(a_task_of_another_job_is_refused_and_the_chief_comes_first)
{
    wire_task_name names[] = {WIRE_TASK_NAME_INIT, WIRE_TASK_NAME_INIT};
    wire_task_name *tasks[] = {&names[0], &names[1]};
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;
    struct world *world = world_new(1, 0);
    const uint32_t chief = world_joined(world, "chief", 0, 1);

    world_forget(world);
    names[0].job = (char *)"worker";
    names[1].job = (char *)"chief";
    request.session_id = (wire_bytes){16, world->sessions[chief - 1]};
    request.name = (char *)"mixed";
    request.tasks = tasks;
    request.n_tasks = 2;

    world_ask(world, LANE_CALL_BARRIER, &request.base);
    world_expect_answer(
        world, "INVALID_ARGUMENT MALFORMED barrier \"mixed\" names chief 0 after worker 0; …");
    names[0].job = (char *)"chief";
    world_ask(world, LANE_CALL_BARRIER, &request.base); /* twice */
    world_expect_answer(
        world, "INVALID_ARGUMENT MALFORMED barrier \"mixed\" names chief 0 after chief 0; …");
    names[1].job = (char *)"evaluator";
    world_ask(world, LANE_CALL_BARRIER, &request.base);
    world_expect_answer(
        world,
        "INVALID_ARGUMENT BAD_NAME barrier \"mixed\" names task evaluator 0; only tasks of the "
        "jobs chief and worker are members");
    names[1].job = (char *)"worker";
    world_ask(world, LANE_CALL_BARRIER, &request.base);
    world_expect(world, "");
    assert_true(
        world_waits(world, "round 1 of barrier \"mixed\" waits for worker 0 (never joined)"));
    const uint32_t worker = world_joined(world, "worker", 0, 2);
    world_forget(world);
    request.session_id = (wire_bytes){16, world->sessions[worker - 1]};
    request.n_tasks = 1; /* the chief alone */
    world_ask(world, LANE_CALL_BARRIER, &request.base);
    world_expect_answer(
        world,
        "INVALID_ARGUMENT MALFORMED worker 0 comes to barrier \"mixed\", which it says is of "
        "chief 0: name it among them");
    request.tasks = &tasks[1]; /* itself alone */
    request.name = (char *)"own";
    world_ask(world, LANE_CALL_BARRIER, &request.base);
    world_forget(world);
    request.session_id = (wire_bytes){16, world->sessions[chief - 1]};
    request.tasks = tasks;
    world_ask(world, LANE_CALL_BARRIER, &request.base);
    world_expect_answer(
        world,
        "ALREADY_EXISTS ALREADY_EXISTS barrier \"own\" is of worker 0, and this call says of "
        "chief 0: …");
    world_free(world);
}

/* Whoever began with the records of this moment would wait for the same, as long. */
TEST(who_has_come_and_until_when_the_others_are_waited_for_is_kept)
{
    static const uint32_t workers[] = {0, 1, 2, UINT32_MAX};
    struct world_arrival arrival = {.name = "epoch", .round = 1, .workers = workers};
    struct world *world = world_new(1, 3);

    for (uint32_t i = 0; i < 3; i++)
        (void)world_joined(world, "worker", i, i + 1);
    world_forget(world);
    arrival.timeout_ms = 5000;
    (void)world_come(world, 1, &arrival);
    arrival.timeout_ms = 60000;
    (void)world_come(world, 2, &arrival);
    arrival.timeout_ms = 3000; /* again */
    (void)world_come(world, 1, &arrival);
    assert_true(world_waits(world, "2 of 3 tasks have come, it gives up in 3 s"));

    world_free(world);
}

TEST(all_barriers_that_a_session_waits_at_end_for_it_with_the_session)
{
    static const uint32_t workers[] = {0, 1, UINT32_MAX};
    static const char *const names[] = {"first", "second"};
    struct world *world = of_two_joined();

    for (int i = 0; i < 2; i++)
        (void)world_come(
            world, 1, &(struct world_arrival){.name = names[i], .round = 1, .workers = workers});
    assert_true(world_waits(world, "of barrier \"first\" waits for worker 1"));
    assert_true(world_waits(world, "of barrier \"second\" waits for worker 1"));
    world_leave(world, 1, false);
    world_settle_down(world);

    for (uint64_t call = 3; call <= 4; call++)
        assert_int_equal(world_answer(world, call)->reason, SUMAC_REASON_SESSION_CLOSED);
    world_free(world);
}

TEST(after_sigterm_who_comes_is_refused)
{
    struct world *world = of_two_joined();

    world->ps[0].silent = true;
    world_leave(world, 1, false);
    world_terminate(world);
    world_forget(world);
    come(world, 2, 0);

    world_expect_answer(
        world, "UNAVAILABLE TERMINATED ps 0 was told to stop and ends every barrier");
    world_free(world);
}

TEST(a_name_that_is_none_is_refused)
{
    char longest[CONTROLLER_BARRIER_NAME_BYTES_MAX + 2];
    struct world *world = of_two_joined();

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    world_come(world, 1, &(struct world_arrival){.name = ""});
    world_expect_answer(
        world, "INVALID_ARGUMENT BAD_NAME a barrier's name has 1 to 256 bytes, given 0");
    world_come(world, 1, &(struct world_arrival){.name = longest});
    world_expect_answer(
        world, "INVALID_ARGUMENT BAD_NAME a barrier's name has 1 to 256 bytes, given 257");
    world_come(world, 1, &(struct world_arrival){.name = "a\nb"});
    world_expect_answer(
        world,
        "INVALID_ARGUMENT BAD_NAME the barrier's name has a control character, shown here as "
        "?: a?b");
    world_come(world, 1, &(struct world_arrival){.name = longest + 1});
    world_expect(world, "");
    world_free(world);
}

TEST(a_session_that_is_not_known_or_closed_is_told_so)
{
    struct world *world = of_two_joined();

    come(world, WORLD_NOBODY, 0);
    world_expect_answer(world, "NOT_FOUND SESSION_UNKNOWN …");
    world_leave(world, 1, false);
    world_settle_down(world);
    world_forget(world);
    come(world, 1, 0);
    world_expect_answer(world, "FAILED_PRECONDITION SESSION_CLOSED the session of worker 0 …");
    world_free(world);
}

/* ---- all members ---- */

static uint64_t join_naming(struct world *world, uint32_t worker, uint32_t members, bool partial)
{
    uint8_t nonce[16] = {(uint8_t)(worker + 1), 9};
    wire_task_name names[WORLD_COMERS_MAX], *all[WORLD_COMERS_MAX];
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    for (uint32_t i = 0; i < members; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = (char *)"worker";
        names[i].index = i;
        all[i] = &names[i];
    }
    wire_task_name own = WIRE_TASK_NAME_INIT;
    own.job = (char *)"worker";
    own.index = worker;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &own;
    request.members = all;
    request.n_members = members;
    request.members_partial = partial;
    return world_join_as(world, &request);
}

TEST(where_nobody_lists_the_members_a_barrier_of_all_is_refused)
{
    struct world *world = world_new(1, 0);

    (void)join_naming(world, 0, 2, true);  /* a list that may lack some */
    (void)join_naming(world, 1, 0, false); /* and none */
    world_settle_down(world);
    world_forget(world);
    come(world, 1, 0);

    world_expect_answer(
        world,
        "FAILED_PRECONDITION MALFORMED barrier \"epoch\" is of all members, and ps 0 has no list "
        "of them: name its tasks, or list every chief and worker in the cluster "
        "configuration of ps 0");
    world_free(world);
}

TEST(the_whole_list_of_a_join_is_that_of_all_members)
{
    struct world *world = world_new(1, 0);

    (void)join_naming(world, 0, 2, false);
    world_settle_down(world);
    world_forget(world);
    come(world, 1, 0); /* worker 1 has yet to join */
    world_expect(world, "");
    (void)join_naming(world, 1, 2, false);
    world_settle_down(world);
    world_forget(world);

    come(world, 2, 0);

    world_expect(world, "2: round 1 passes\n4: round 1 passes\n");
    world_free(world);
}

TEST(members_that_are_listed_later_count_from_the_next_round_on)
{
    struct world *world = world_new(1, 0);

    (void)join_naming(world, 0, 2, false);
    (void)join_naming(world, 1, 2, false);
    world_settle_down(world);
    world_forget(world);
    come(world, 1, 0);
    (void)join_naming(world, 2, 3, false);
    world_settle_down(world);
    world_forget(world);

    come(world, 3, 0);
    world_expect_answer(
        world,
        "FAILED_PRECONDITION MALFORMED worker 2 was listed after round 1 of barrier \"epoch\" had "
        "begun without it: come to the next");
    come(world, 2, 0);
    world_expect(world, "3: round 1 passes\n6: round 1 passes\n");
    come(world, 1, 1); /* its answer was lost, and the list has grown */
    world_expect_answer(world, "round 1 passes");
    come(world, 1, 0);
    world_expect_answer(world, "round 1 ends FAILED_PRECONDITION ROUND_OVER …");
    come(world, 1, 2);
    come(world, 2, 2);
    world_expect(world, "");
    come(world, 3, 0);
    world_expect(world, "9: round 2 passes\n10: round 2 passes\n11: round 2 passes\n");
    world_free(world);
}

TEST(who_is_not_on_the_list_is_refused)
{
    struct world *world = world_new(1, 0);

    (void)join_naming(world, 0, 2, false);
    (void)join_naming(world, 5, 0, false);
    world_settle_down(world);
    world_forget(world);
    come(world, 2, 0);

    world_expect_answer(
        world,
        "FAILED_PRECONDITION MALFORMED barrier \"epoch\" is of all members, which are worker 0, "
        "worker 1, and worker 5 is none of them: list it in the cluster configuration of "
        "every task");
    world_free(world);
}

/* Worker 5 is known, and on no list. */
TEST(a_barrier_of_all_is_of_the_chief_too_and_of_none_who_is_not_listed)
{
    uint8_t nonce[16] = {1, 8};
    wire_task_name names[] = {WIRE_TASK_NAME_INIT, WIRE_TASK_NAME_INIT};
    wire_task_name *list[] = {&names[0], &names[1]};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;
    struct world *world = world_new(1, 0); /* given */
    const uint32_t chief = 3, worker = 2;

    (void)world_joined(world, "worker", 5, 1);
    (void)world_joined(world, "worker", 0, 2);
    names[0].job = (char *)"chief";
    names[1].job = (char *)"worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &names[0];
    request.members = list;
    request.n_members = 2;
    (void)world_join_as(world, &request);
    world_settle_down(world);
    world_forget(world);

    come(world, worker, 0); /* when */
    world_expect(world, "");
    assert_true(world_waits(world, "waits for chief 0 (last heard from 0 µs ago); 1 of 2 tasks"));
    come(world, chief, 0);

    world_expect(world, "4: round 1 passes\n5: round 1 passes\n"); /* then */
    world_free(world);
}

/* It has its places still, and comes again. */
TEST(a_list_that_there_is_no_memory_to_renew_for_is_refused_and_renewed_later)
{
    struct world *world = world_new(1, 0);

    (void)join_naming(world, 5, 0, false);
    (void)join_naming(world, 0, 2, false);
    (void)join_naming(world, 1, 2, false);
    world_settle_down(world);
    come(world, 2, 0);
    come(world, 3, 0);
    (void)join_naming(world, 2, 3, false);
    world_settle_down(world);
    world_forget(world);

    world->out_of_memory = true;
    come(world, 2, 2);
    world_expect_answer(
        world, "RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 0 has no memory for barrier \"epoch\" of all "
               "members");
    world->out_of_memory = false;
    come(world, 2, 2);
    come(world, 3, 2);
    world_expect(world, "");
    come(world, 4, 0);

    world_expect(world, "8: round 2 passes\n9: round 2 passes\n10: round 2 passes\n");
    world_free(world);
}
