/* SPDX-License-Identifier: Apache-2.0 */
/* judge_join.c -- joining: who may, what it waits for, and that a retry is the same join. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "judge_world.h"

static void a_join_is_answered_once_every_ps_has_opened_the_session(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1); /* given */

    world_all_up(world);
    world->ps[1].silent = true;

    const uint64_t join = world_join(world, "worker", 0, 1); /* when */
    world_settle_down(world);
    assert_null(world_answer(world, join));
    world->ps[1].silent = false;
    world_settle_down(world);

    const struct world_answer *answer = world_answer(world, join); /* then */
    assert_non_null(answer);
    assert_int_equal(answer->attempt, 1);
    assert_int_equal(answer->ps_count, 2);
    assert_int_equal(answer->cluster_id, judge_cluster_id(world->judge));
    assert_memory_equal(world_told(world, 1, ORDER_OPEN)->session_id, answer->session_id, 16);
    world_free(world);
}

static void a_cluster_of_one_ps_joins_without_any_stream(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    const struct world_answer *answer = world_joined(world, "worker", 0, 1);

    assert_int_equal(answer->ps_count, 1);
    world_free(world);
}

static void a_retry_with_the_same_nonce_gives_the_same_session(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const struct world_answer *first = world_joined(world, "worker", 0, 1);

    const struct world_answer *again = world_joined(world, "worker", 0, 1);

    assert_memory_equal(again->session_id, first->session_id, 16);
    assert_int_equal(again->attempt, 1);
    assert_int_equal(world_told_count(world, 1, ORDER_OPEN), 1);
    world_free(world);
}

static void a_retry_takes_the_place_of_a_join_that_still_waits(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    const uint64_t first = world_join(world, "worker", 0, 1);
    const uint64_t again = world_join(world, "worker", 0, 1);
    world_all_up(world);

    assert_int_equal(world_answer(world, first)->status, SUMAC_ABORTED);
    assert_int_equal(world_answer(world, again)->status, SUMAC_OK);
    assert_int_equal(world_told_count(world, 1, ORDER_OPEN), 1);
    world_free(world);
}

static void a_retry_of_a_join_whose_session_was_closed_is_told_so(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    world_joined(world, "worker", 0, 1);
    world_pass(world, 12 * SECOND);

    const uint64_t retry = world_join(world, "worker", 0, 1);

    assert_non_null(world_answer(world, retry));
    assert_int_equal(world_answer(world, retry)->reason, SUMAC_REASON_SESSION_CLOSED);
    world_free(world);
}

/* Its program has given up: nobody would use the session, or leave it. */
static void a_join_that_was_given_up_opens_no_session_once_its_lease_is_over(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_cancel(world, world_join(world, "worker", 0, 1));

    world_pass(world, 12 * SECOND);
    world_up(world, 1);
    world_settle_down(world);

    assert_null(world_told(world, 1, ORDER_OPEN));
    world_joined(world, "worker", 1, 2);
    assert_int_equal(world_told_count(world, 1, ORDER_OPEN), 1);
    world_free(world);
}

static void without_the_rule_join_nonce_a_retry_opens_another_session(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 1);

    world->config.broken = 1u << RULE_join_nonce;
    world_begin(world);

    const struct world_answer *first = world_joined(world, "worker", 0, 1);
    const struct world_answer *again = world_joined(world, "worker", 0, 1);

    assert_memory_not_equal(again->session_id, first->session_id, 16);
    world_free(world);
}

static void a_join_waits_for_a_ps_and_a_line_names_it(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);
    const uint64_t join = world_join(world, "worker", 0, 1);

    world_pass(world, 6 * SECOND);

    assert_null(world_answer(world, join));
    assert_true(world_logged(world, "ps 0 waits for ps 1 at h1:1, never heard from"));
    world_free(world);
}

static void before_the_first_join_a_ps_waits_without_limit_and_names_the_members(void **state)
{
    (void)state;
    struct world *world = world_new(2, 3);

    world_pass(world, 300 * SECOND);
    assert_false(world->exited);
    assert_true(world_logged(
        world, "ps 0 waits for ps 1 at h1:1, never heard from; until somebody joins this wait has "
               "no limit"));
    assert_true(world_logged(
        world, "ps 0 waits for the first join, of worker 0, worker 1, worker 2; this wait has no "
               "limit"));
    assert_true(world_waits(
        world, "ps 0 waits for the first join, of worker 0, worker 1, worker 2; this wait has no "
               "limit"));

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    assert_false(world_waits(world, "ps 0 waits for the first join"));
    world_free(world);
}

static void a_ps_that_lists_nobody_waits_for_anybody(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    world_pass(world, 6 * SECOND);

    assert_true(world_logged(
        world, "ps 0 waits for the first join, of any chief or worker, its configuration lists "
               "none; this wait has no limit"));
    world_free(world);
}

static unsigned lines_with(const struct world *world, const char *text)
{
    unsigned lines = 0;

    for (const char *at = world->log; (at = strstr(at, text)) != NULL; at++)
        lines++;
    return lines;
}

static void a_wait_without_limit_says_so_less_and_less_often(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    world_pass(world, 6 * SECOND); /* after 5 s, */
    assert_int_equal(lines_with(world, "waits for the first join"), 1);
    world_pass(world, 8 * SECOND);
    assert_int_equal(lines_with(world, "waits for the first join"), 1);
    world_pass(world, 2 * SECOND); /* 15, */
    assert_int_equal(lines_with(world, "waits for the first join"), 2);
    world_pass(world, 61 * SECOND); /* 35, 75, */
    assert_int_equal(lines_with(world, "waits for the first join"), 4);
    world_pass(world, 600 * SECOND); /* and then every 60 s */
    assert_int_equal(lines_with(world, "waits for the first join"), 14);
    world_free(world);
}

static void a_wait_for_a_ps_has_a_limit_once_somebody_has_joined(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_pass(world, 200 * SECOND);
    const unsigned before = lines_with(world, "waits for ps 1");

    world_join(world, "worker", 0, 1);
    world_pass(world, 21 * SECOND);

    assert_int_equal(lines_with(world, "waits for ps 1") - before, 4); /* every 5 s */
    assert_true(
        world_logged(world, "ps 0 waits for ps 1 at h1:1, never heard from; gives up in 55 s"));
    assert_true(
        world_logged(world, "ps 0 waits for ps 1 at h1:1, never heard from; gives up in 40 s"));
    world_free(world);
}

/* An observer begins no run, so it ends none; its own join has its limit all the same. */
static void an_observer_that_waits_for_a_ps_ends_no_run(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);
    const uint64_t join = world_join(world, NULL, 0, 1);

    world_pass(world, 59 * SECOND);
    assert_null(world_answer(world, join));
    world_pass(world, 200 * SECOND);

    assert_false(world->exited);
    assert_int_equal(world_answer(world, join)->reason, SUMAC_REASON_PS_MISSING);
    assert_string_equal(
        world_answer(world, join)->text,
        "the join of observer 1 has waited 60 s for ps 1 at h1:1, never heard from");
    assert_false(world_waits(world, "join of observer 1"));
    world_free(world);
}

static void a_ps_that_never_appears_ends_those_who_wait_for_it(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);
    const uint64_t join = world_join(world, "worker", 0, 1);

    world_pass(world, 59 * SECOND);
    assert_null(world_answer(world, join));
    world_pass(world, 2 * SECOND);

    assert_int_equal(world_answer(world, join)->status, SUMAC_UNAVAILABLE);
    assert_int_equal(world_answer(world, join)->reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(world_answer(world, join)->text, "ps 1 at h1:1, never heard from"));
    assert_true(world->exited);
    assert_true(world->exit_code >= 128);
    world_free(world);
}

static void the_reason_why_a_ps_is_not_reached_is_said(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);

    world_down(world, 1);

    world_pass(world, 6 * SECOND);

    assert_true(world_logged(world, "never heard from (connection refused)"));
    world_free(world);
}

static void a_ps_that_was_told_only_itself_learns_the_others_from_the_first_join(void **state)
{
    (void)state;
    struct world *world = world_prepare(0, 0); /* given */
    char *addresses[] = {(char *)"h0:1", (char *)"h1:1"};
    uint8_t nonce[16] = {1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = (char *)"worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){16, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &task;
    request.ps_addresses = addresses;
    request.n_ps_addresses = 2;
    world_begin(world);
    assert_int_equal(world_told_count(world, 0, ORDER_HELLO), 0);
    const uint64_t early = world_join(world, NULL, 0, 9); /* an observer knows no better */
    assert_int_equal(world_answer(world, early)->reason, SUMAC_REASON_PS_MISSING);

    const uint64_t join = world_join_as(world, &request); /* when */
    assert_true(world->dialled[1]);
    world_up(world, 1);
    world_settle_down(world);

    assert_int_equal(world_answer(world, join)->ps_count, 2); /* then */
    assert_int_equal(world_told(world, 0, ORDER_HELLO)->addresses, 2);
    world_free(world);
}

static void a_join_of_another_protocol_version_is_refused(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    request.protocol_version = 2;

    const struct world_answer *answer = world_answer(world, world_join_as(world, &request));

    assert_int_equal(answer->reason, SUMAC_REASON_PROTOCOL_VERSION);
    world_free(world);
}

static void a_join_meant_for_another_cluster_is_refused(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.cluster_id = 12345;

    const struct world_answer *answer = world_answer(world, world_join_as(world, &request));

    assert_int_equal(answer->reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_non_null(strstr(answer->text, "it is meant for cluster 0000000000003039, this is "));
    assert_non_null(
        strstr(/* which of them, nobody here can know */
               answer->text,
               ": the cluster has restarted, or the configurations list its ps differently"));
    world_free(world);
}

static void a_join_without_a_whole_nonce_is_refused(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    request.protocol_version = WIRE_PROTOCOL_VERSION;

    const struct world_answer *answer = world_answer(world, world_join_as(world, &request));

    assert_int_equal(answer->status, SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(answer->text, "nonce"));
    world_free(world);
}

static void more_sessions_than_the_option_allows_are_refused_and_the_option_is_named(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 2;
    world_begin(world);
    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);

    const struct world_answer *third = world_answer(world, world_join(world, "worker", 2, 3));

    assert_int_equal(third->reason, SUMAC_REASON_TOO_MANY_SESSIONS);
    assert_non_null(strstr(third->text, "--sessions-max"));
    world_free(world);
}

static void a_task_may_come_back_when_all_sessions_are_taken(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 1;
    world_begin(world);
    world_joined(world, "worker", 0, 1);

    const struct world_answer *again = world_joined(world, "worker", 0, 2);

    assert_int_equal(again->attempt, 2);
    world_free(world);
}

static void a_task_that_the_configuration_does_not_list_is_refused_with_the_list(void **state)
{
    (void)state;
    struct world *world = world_new(1, 2);

    const struct world_answer *other = world_answer(world, world_join(world, "worker", 77, 1));

    assert_int_equal(other->status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal(other->reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_non_null(strstr(
        other->text,
        "join of worker 77: it is no member of this cluster, which lists worker 0, worker 1: "));
    world_joined(world, "worker", 1, 2);
    world_free(world);
}

static void a_long_list_of_members_is_cut_and_says_how_many_there_are(void **state)
{
    (void)state;
    static const char *jobs[300];
    static uint32_t indices[300];

    for (uint32_t i = 0; i < 300; i++) {
        jobs[i] = "worker";
        indices[i] = i;
    }
    struct world *world = world_prepare(1, 0);
    world->config.members_jobs = jobs;
    world->config.members_indices = indices;
    world->config.member_count = 300;
    world_begin(world);

    const struct world_answer *other = world_answer(world, world_join(world, "worker", 300, 1));

    assert_non_null(strstr(other->text, "which lists worker 0, worker 1, "));
    assert_non_null(strstr(other->text, ", … 300 in all: give every task the same cluster"));
    world_free(world);
}

static void only_chief_and_workers_are_members(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    const struct world_answer *ps = world_answer(world, world_join(world, "ps", 0, 1));
    const struct world_answer *banana = world_answer(world, world_join(world, "banana", 0, 2));

    assert_int_equal(ps->status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(banana->reason, SUMAC_REASON_BAD_NAME);
    assert_non_null(strstr(banana->text, "banana 0"));
    world_joined(world, "chief", 0, 3);
    world_free(world);
}

static void a_nonce_of_another_task_is_refused_and_both_are_named(void **state)
{
    (void)state;
    struct world *world = world_new(1, 2);

    world_joined(world, "worker", 0, 1);

    const struct world_answer *second = world_answer(world, world_join(world, "worker", 1, 1));

    assert_int_equal(second->status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(second->reason, SUMAC_REASON_NONCE_TAKEN);
    assert_non_null(strstr(
        second->text,
        "join of worker 1: its nonce is the one that worker 0 has joined with: draw 16"));
    const struct world_answer *observer = world_answer(world, world_join(world, NULL, 0, 1));
    assert_int_equal(observer->reason, SUMAC_REASON_NONCE_TAKEN);
    world_joined(world, "worker", 0, 1); /* its own retry */
    world_free(world);
}

/* An observer may name its task; it is another client all the same. */
static void the_same_task_in_another_role_has_another_nonce(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);
    uint8_t nonce[16] = {1, 0, 1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    world_joined(world, "worker", 0, 1);
    task.job = "worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.task = &task;

    const struct world_answer *observer = world_answer(world, world_join_as(world, &request));

    assert_int_equal(observer->reason, SUMAC_REASON_NONCE_TAKEN);
    assert_non_null(strstr(observer->text, "join of worker 0 as an observer: its nonce is"));
    world_free(world);
}

static void observers_do_not_take_the_places_of_members(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 2);

    world->config.sessions_max = 4;
    world_begin(world);
    world_joined(world, NULL, 0, 90);
    world_joined(world, NULL, 0, 91);

    const struct world_answer *third = world_answer(world, world_join(world, NULL, 0, 92));

    assert_int_equal(third->reason, SUMAC_REASON_TOO_MANY_SESSIONS);
    assert_non_null(
        strstr(third->text, "2 observers are open, and 2 of 4 places are the members'"));
    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world_joined(world, "worker", 1, 3);
    world_free(world);
}

static void without_a_list_half_of_the_places_are_the_members(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 4;
    world_begin(world);
    world_joined(world, NULL, 0, 90);
    world_joined(world, NULL, 0, 91);

    const struct world_answer *third = world_answer(world, world_join(world, NULL, 0, 92));

    assert_int_equal(third->reason, SUMAC_REASON_TOO_MANY_SESSIONS);
    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world_free(world);
}

/* A join of worker 0 with a list of so many names, of workers 0 to distinct - 1. */
static const struct world_answer *
join_with_list(struct world *world, uint32_t count, uint32_t distinct)
{
    static wire_task_name names[5000];
    static wire_task_name *pointers[5000];
    static uint8_t nonce[16] = {200};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    for (uint32_t i = 0; i < count; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = "worker";
        names[i].index = i % distinct;
        pointers[i] = &names[i];
    }
    nonce[1]++;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &names[0];
    request.members = pointers;
    request.n_members = count;
    const uint64_t join = world_join_as(world, &request);
    world_settle_down(world);
    return world_answer(world, join);
}

static const struct world_answer *join_naming(struct world *world, uint32_t count)
{
    return join_with_list(world, count, count);
}

static void a_join_whose_list_is_too_long_is_refused_whatever_it_names(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0); /* given */

    assert_int_equal(join_naming(world, 2)->status, SUMAC_OK);

    const struct world_answer *repeated = join_with_list(world, 1025, 2); /* when */

    assert_int_equal(repeated->reason, SUMAC_REASON_TOO_MANY_SESSIONS); /* then */
    assert_non_null(strstr(repeated->text, "it names 1025 members, and ps 0 takes 1024 at most"));
    assert_int_equal(join_with_list(world, 1024, 2)->status, SUMAC_OK);
    world_free(world);
}

static void a_join_that_is_refused_leaves_nothing_behind(void **state)
{
    (void)state;
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 2;
    world_begin(world);

    assert_int_equal(join_naming(world, 5000)->reason, SUMAC_REASON_TOO_MANY_SESSIONS);
    assert_int_equal(join_naming(world, 1025)->reason, SUMAC_REASON_TOO_MANY_SESSIONS);

    assert_int_equal(world_joined(world, "worker", 4000, 1)->membership_epoch, 1);
    world_joined(world, "worker", 4001, 2);
    assert_int_equal(world_told(world, 0, ORDER_MEMBERSHIP)->members, 2);
    assert_int_equal(join_naming(world, 3)->reason, SUMAC_REASON_TOO_MANY_SESSIONS); /* no place */
    assert_int_equal(world_joined(world, "worker", 4001, 3)->membership_epoch, 2);
    world_free(world);
}

static void a_joiner_starts_at_the_largest_of_the_slowest_clocks(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world->ps[0].clock = 4;
    world->ps[1].clock = 6;
    world_all_up(world);

    assert_int_equal(world_joined(world, "worker", 0, 1)->clock, 6);
    world_free(world);
}

static void an_observer_joins_without_a_task_and_settles_nobody(void **state)
{
    (void)state;
    struct world *world = world_new(1, 1);

    world_joined(world, "worker", 0, 1);

    const uint64_t first = world_joined(world, NULL, 0, 2)->attempt;
    const uint64_t second = world_joined(world, NULL, 0, 3)->attempt;

    assert_int_equal(first, 1); /* what tells them apart, in logs and statistics */
    assert_int_equal(second, 2);
    assert_int_equal(world_told_count(world, 0, ORDER_CLOSE), 0);
    world_free(world);
}

static void without_a_list_a_task_that_was_not_known_is_a_new_membership(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);

    assert_int_equal(world_joined(world, "worker", 0, 1)->membership_epoch, 1);

    const struct world_answer *late = world_joined(world, "worker", 7, 2);

    assert_int_equal(late->membership_epoch, 2);
    assert_int_equal(world_told(world, 0, ORDER_MEMBERSHIP)->members, 2);
    world_free(world);
}

static void a_join_after_sigterm_is_refused(void **state)
{
    (void)state;
    struct world *world = world_new(2, 1);
    const uint64_t waiting = world_join(world, "worker", 0, 1);

    world_terminate(world);

    assert_int_equal(world_answer(world, waiting)->status, SUMAC_UNAVAILABLE);
    assert_int_equal(world_answer(world, waiting)->reason, SUMAC_REASON_TERMINATED);
    const uint64_t late = world_join(world, "worker", 0, 2);
    assert_int_equal(world_answer(world, late)->status, SUMAC_UNAVAILABLE);
    assert_int_equal(world_answer(world, late)->reason, SUMAC_REASON_TERMINATED);
    world_free(world);
}

/* Before ps 0 has ended: it waits for a settle that is under way. */
static void so_is_one_while_sigterm_waits_for_a_settle(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const struct world_answer *first = world_joined(world, "worker", 0, 1);
    world->ps[1].silent = true;
    world_leave(world, first->session_id, true);
    world_settle_down(world);
    world_terminate(world);

    const uint64_t late = world_join(world, "worker", 1, 2);

    assert_non_null(world_answer(world, late));
    assert_int_equal(world_answer(world, late)->reason, SUMAC_REASON_TERMINATED);
    world_free(world);
}

static void jobs_that_cannot_be_printed_are_refused(void **state)
{
    (void)state;
    struct world *world = world_new(1, 0);
    const char *const jobs[] = {"wor\nker", "\x1b]0;a\a", "w\x7f", "w\xc2\x80"};

    for (uint32_t i = 0; i < 4; i++) {
        const struct world_answer *answer =
            world_answer(world, world_join(world, jobs[i], 0, i + 1));
        assert_int_equal(answer->status, SUMAC_INVALID_ARGUMENT);
        assert_int_equal(answer->reason, SUMAC_REASON_BAD_NAME);
        assert_non_null(strstr(answer->text, "a control character, shown here as ?: "));
    }
    /* Nor may a member be listed under such a name. */
    uint8_t nonce[16] = {9};
    wire_task_name task = WIRE_TASK_NAME_INIT, listed = WIRE_TASK_NAME_INIT;
    wire_task_name *members[] = {&task, &listed};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;
    task.job = "worker";
    listed.job = "wor\nker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &task;
    request.members = members;
    request.n_members = 2;
    assert_int_equal(
        world_answer(world, world_join_as(world, &request))->reason, SUMAC_REASON_BAD_NAME);
    assert_null(strstr(world->log, "\nker"));
    world_free(world);
}

static void the_statistics_say_what_is_waited_for(void **state)
{
    (void)state;
    struct world *world = world_new(2, 2);
    struct judge_waits waits;

    world_join(world, "worker", 1, 1);

    judge_list_waits(world->judge, world->now_us, &waits);

    assert_int_equal(waits.count, 2);
    assert_int_equal(waits.left_out, 0);
    assert_string_equal(
        waits.items[0], "ps 0 waits for ps 1 at h1:1, never heard from; gives up in 60 s");
    assert_string_equal(
        waits.items[1], "join of worker 1 waits for ps 1 at h1:1, never heard from");
    world_free(world);
}

static void
a_membership_that_memory_is_short_for_is_told_before_the_session_that_waits_for_it(void **state)
{
    (void)state;
    struct world *world = world_prepare(2, 0); /* given */

    world->config.sessions_max = 200;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_use_up_orders(world);
    const size_t opened = world_told_count(world, 0, ORDER_OPEN);

    const uint64_t call = world_join(world, "worker", 1, 2); /* when */
    world_pass(world, SECOND);

    assert_int_equal(world_told_count(world, 0, ORDER_OPEN), opened); /* then */
    assert_int_equal(world_told(world, 0, ORDER_MEMBERSHIP)->members, 1);
    world->out_of_pools = false;
    world_pass(world, SECOND);
    const struct world_order *membership = world_told(world, 0, ORDER_MEMBERSHIP);
    assert_int_equal(membership->members, 2);
    assert_int_equal(world_told_count(world, 0, ORDER_OPEN), opened + 1);
    assert_true(membership->number < world_told(world, 0, ORDER_OPEN)->number);
    assert_int_equal(world_answer(world, call)->membership_epoch, membership->membership_epoch);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_is_answered_once_every_ps_has_opened_the_session),
        cmocka_unit_test(a_cluster_of_one_ps_joins_without_any_stream),
        cmocka_unit_test(a_retry_with_the_same_nonce_gives_the_same_session),
        cmocka_unit_test(a_retry_takes_the_place_of_a_join_that_still_waits),
        cmocka_unit_test(a_retry_of_a_join_whose_session_was_closed_is_told_so),
        cmocka_unit_test(a_join_that_was_given_up_opens_no_session_once_its_lease_is_over),
        cmocka_unit_test(without_the_rule_join_nonce_a_retry_opens_another_session),
        cmocka_unit_test(a_join_waits_for_a_ps_and_a_line_names_it),
        cmocka_unit_test(before_the_first_join_a_ps_waits_without_limit_and_names_the_members),
        cmocka_unit_test(a_ps_that_lists_nobody_waits_for_anybody),
        cmocka_unit_test(a_wait_without_limit_says_so_less_and_less_often),
        cmocka_unit_test(a_wait_for_a_ps_has_a_limit_once_somebody_has_joined),
        cmocka_unit_test(an_observer_that_waits_for_a_ps_ends_no_run),
        cmocka_unit_test(a_ps_that_never_appears_ends_those_who_wait_for_it),
        cmocka_unit_test(the_reason_why_a_ps_is_not_reached_is_said),
        cmocka_unit_test(a_ps_that_was_told_only_itself_learns_the_others_from_the_first_join),
        cmocka_unit_test(a_join_of_another_protocol_version_is_refused),
        cmocka_unit_test(a_join_meant_for_another_cluster_is_refused),
        cmocka_unit_test(a_join_without_a_whole_nonce_is_refused),
        cmocka_unit_test(more_sessions_than_the_option_allows_are_refused_and_the_option_is_named),
        cmocka_unit_test(a_task_may_come_back_when_all_sessions_are_taken),
        cmocka_unit_test(a_task_that_the_configuration_does_not_list_is_refused_with_the_list),
        cmocka_unit_test(a_long_list_of_members_is_cut_and_says_how_many_there_are),
        cmocka_unit_test(only_chief_and_workers_are_members),
        cmocka_unit_test(a_nonce_of_another_task_is_refused_and_both_are_named),
        cmocka_unit_test(the_same_task_in_another_role_has_another_nonce),
        cmocka_unit_test(observers_do_not_take_the_places_of_members),
        cmocka_unit_test(without_a_list_half_of_the_places_are_the_members),
        cmocka_unit_test(a_join_that_is_refused_leaves_nothing_behind),
        cmocka_unit_test(a_join_whose_list_is_too_long_is_refused_whatever_it_names),
        cmocka_unit_test(a_joiner_starts_at_the_largest_of_the_slowest_clocks),
        cmocka_unit_test(an_observer_joins_without_a_task_and_settles_nobody),
        cmocka_unit_test(without_a_list_a_task_that_was_not_known_is_a_new_membership),
        cmocka_unit_test(a_join_after_sigterm_is_refused),
        cmocka_unit_test(so_is_one_while_sigterm_waits_for_a_settle),
        cmocka_unit_test(jobs_that_cannot_be_printed_are_refused),
        cmocka_unit_test(the_statistics_say_what_is_waited_for),
        cmocka_unit_test(
            a_membership_that_memory_is_short_for_is_told_before_the_session_that_waits_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
