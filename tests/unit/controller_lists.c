/* SPDX-License-Identifier: Apache-2.0 */
/* controller_lists.c -- configurations that contradict that of ps 0 are refused with both lists,
 * and what goes with it is not. */

#include "unit.h"
#include "controller_world.h"

/* A join of worker 0 as this configuration makes it: so many workers, from `first` on, and these
 * ps. */
struct configured {
    const char *ps[3];
    uint32_t ps_count, workers, first;
    bool partial, observer;
};

static const struct world_answer *join_configured(struct world *world, struct configured given)
{
    static uint8_t nonce[16] = {77};
    wire_task_name names[4], *pointers[4];
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    for (uint32_t i = 0; i < given.workers; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = "worker";
        names[i].index = given.first + i;
        pointers[i] = &names[i];
    }
    nonce[1]++;
    task.job = "worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = given.observer ? SUMAC__V1__ROLE__ROLE_OBSERVER : SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = given.observer ? NULL : &task;
    request.ps_addresses = (char **)given.ps;
    request.n_ps_addresses = given.ps_count;
    request.members = pointers;
    request.n_members = given.workers;
    request.members_partial = given.partial;
    const uint64_t join = world_join_as(world, &request);
    world_settle_down(world);
    return world_answer(world, join);
}

static void refused_with(struct world *world, struct configured given, const char *text)
{
    char answer[600];

    world_forget(world);
    join_configured(world, given);

    (void)snprintf(answer, sizeof answer, "FAILED_PRECONDITION WRONG_CLUSTER %s", text);
    world_expect_answer(world, answer);
}

TEST(a_member_whose_list_of_workers_is_another_one_is_refused_with_both)
{
    struct world *world = world_new(1, 2);

    refused_with(
        world, (struct configured){.workers = 3},
        "join of worker 0: its configuration lists worker 0, worker 1, worker 2, that of ps 0 "
        "worker 0, worker 1; give every task the same");
    refused_with(
        world, (struct configured){.workers = 1},
        "join of worker 0: its configuration lists worker 0, that of ps 0 worker 0, worker 1; give "
        "every task the same");
    assert_int_equal(join_configured(world, (struct configured){.workers = 2})->status, SUMAC_OK);
    world_free(world);
}

/* As a TFJob's dynamic form writes it: each worker is told itself. */
TEST(a_list_that_need_not_be_whole_contradicts_nothing_by_what_it_leaves_out)
{
    struct world *world = world_new(1, 2);

    assert_int_equal(
        join_configured(world, (struct configured){.workers = 1, .partial = true})->status,
        SUMAC_OK);
    refused_with(
        world, (struct configured){.workers = 2, .first = 1, .partial = true},
        "join of worker 0: its configuration lists worker 1, worker 2, that of ps 0 worker 0, "
        "worker 1; give every task the same");
    world_free(world);

    world = world_prepare(1, 1);
    world->config.members_partial = true;
    world_begin(world);
    assert_int_equal(join_configured(world, (struct configured){.workers = 3})->status, SUMAC_OK);
    world_free(world);

    world = world_prepare(1, 0); /* nor by its length */
    world->config.step_members = 3;
    world_begin(world);
    assert_int_equal(
        join_configured(world, (struct configured){.workers = 1, .partial = true})->status,
        SUMAC_OK);
    world_free(world);
}

TEST(who_says_no_list_is_asked_for_none)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);

    assert_int_equal(join_configured(world, (struct configured){.ps_count = 0})->status, SUMAC_OK);
    const struct configured one = {.ps = {"elsewhere:1"}, .ps_count = 1, .observer = true};
    assert_int_equal(join_configured(world, one)->status, SUMAC_OK);
    world_free(world);
}

TEST(a_list_of_the_ps_in_another_order_or_length_is_refused_with_both)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);

    refused_with(
        world, (struct configured){.ps = {"h1:1", "h0:1"}, .ps_count = 2},
        "join of worker 0: its configuration has the ps h1:1, h0:1, that of ps 0 h0:1, h1:1; give "
        "every task the same, in the same order");
    refused_with(
        world, (struct configured){.ps = {"h0:1"}, .ps_count = 1},
        "join of worker 0: its configuration has the ps h0:1, that of ps 0 h0:1, h1:1; give every "
        "task the same, in the same order");
    refused_with(
        world, (struct configured){.ps = {"h0:1", "h1:1", "h2:1"}, .ps_count = 3, .observer = true},
        "join of an observer: its configuration has the ps h0:1, h1:1, h2:1, that of ps 0 h0:1, "
        "h1:1; give every task the same, in the same order");
    refused_with(
        world, (struct configured){.ps = {"h0:1", "h1:2"}, .ps_count = 2},
        "join of worker 0: its configuration has ps 1 at h1:2, that of ps 0 at h1:1; give every "
        "task the same");
    const struct configured named = {.ps = {"h0:1", "proxy-of-h1:7"}, .ps_count = 2};
    assert_int_equal(join_configured(world, named)->status, SUMAC_OK);
    world_free(world);
}

/* Whether ps 0 has a list of its own, or was told only itself. */
TEST(a_list_that_has_one_address_under_two_indexes_is_refused)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);

    refused_with(
        world, (struct configured){.ps = {"h0:1", "h0:1"}, .ps_count = 2},
        "join of worker 0: its configuration has h0:1 as ps 0 and as ps 1; give each ps its own "
        "address");
    refused_with(
        world, (struct configured){.ps = {"h1:1", "h1:1"}, .ps_count = 2, .observer = true},
        "join of an observer: its configuration has h1:1 as ps 0 and as ps 1; give each ps its own "
        "address");
    refused_with(
        world, (struct configured){.ps = {"proxy:7", "proxy:7"}, .ps_count = 2},
        "join of worker 0: its configuration has proxy:7 as ps 0 and as ps 1; give each ps its own "
        "address");
    world_free(world);

    world = world_new(0, 0);
    refused_with(
        world, (struct configured){.ps = {"h0:1", "h1:1", "h0:1"}, .ps_count = 3},
        "join of worker 0: its configuration has h0:1 as ps 0 and as ps 2; give each ps its own "
        "address");
    const struct configured mended = {.ps = {"h0:1", "h1:1"}, .ps_count = 2};
    assert_null(join_configured(world, mended)); /* waits for ps 1: nothing else has stayed */
    world_up(world, 1);
    world_settle_down(world);
    assert_int_equal(join_configured(world, mended)->status, SUMAC_OK);
    world_free(world);
}

TEST(a_ps_that_was_configured_otherwise_ends_those_who_wait_with_2)
{
    struct world *world = world_new(2, 1);

    world_forget(world);
    world_join(world, "worker", 0, 1);

    world_ended(world, 1, SUMAC_REASON_WRONG_CLUSTER, "the configuration of ps 1 has the ps h1:1");
    world_pass(world, 6 * SECOND);

    world_expect(
        world, "1: FAILED_PRECONDITION WRONG_CLUSTER ps 1 at h1:1 refuses ps "
               "0: the configuration of ps 1 has the ps h1:1\n"
               "ps 0: end 2 WRONG_CLUSTER …\n"
               "exit 2 WRONG_CLUSTER …\n");
    world_free(world);
}

/* ---- what the log says of them ---- */

TEST(who_is_refused_has_a_line_with_both_lists)
{
    struct world *world = world_new(1, 2);

    join_configured(world, (struct configured){.workers = 1});

    assert_true(world_logged(
        world, "ps 0 refused the join of worker 0: its configuration lists worker 0, that of ps 0 "
               "worker 0, worker 1; give every task the same\n"));
    world_free(world);
}

static size_t count_lines(const struct world *world, const char *text)
{
    size_t count = 0;

    for (const char *at = world->log; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

TEST(a_worker_that_tries_again_and_again_has_a_line_a_minute)
{
    struct world *world = world_new(1, 2);
    const char *refused = "ps 0 refused the join of worker 0: ";

    for (int i = 0; i < 20; i++)
        join_configured(world, (struct configured){.workers = 1});
    world_pass(world, 59 * SECOND);
    join_configured(world, (struct configured){.workers = 1});
    assert_int_equal(count_lines(world, refused), 1);

    world_pass(world, 2 * SECOND);
    join_configured(world, (struct configured){.workers = 1});

    assert_int_equal(count_lines(world, refused), 2);
    assert_true(world_logged(world, " (20 more joins were refused since the last such line)\n"));
    world_pass(world, 61 * SECOND); /* they were said */
    join_configured(world, (struct configured){.workers = 1});
    assert_int_equal(count_lines(world, refused), 3);
    assert_int_equal(count_lines(world, "more joins were refused"), 1);
    world_free(world);
}

/* The reason is part of the line. */
TEST(a_worker_that_is_refused_for_another_reason_has_another_line)
{
    struct world *world = world_new(1, 2);

    join_configured(world, (struct configured){.workers = 1});
    join_configured(world, (struct configured){.workers = 3});

    assert_int_equal(count_lines(world, "ps 0 refused the join of worker 0: "), 2);
    world_free(world);
}

TEST(one_that_tries_again_and_again_does_not_hide_another)
{
    struct world *world = world_new(1, 2);

    for (int i = 0; i < 20; i++)
        join_configured(world, (struct configured){.workers = 1});

    world_join(world, "worker", 7, 1);

    assert_int_equal(count_lines(world, "ps 0 refused the join of worker 7: it is no member"), 1);
    world_free(world);
}

/* Whoever makes up names makes no more of them. */
TEST(there_are_at_most_16_different_lines_a_minute)
{
    struct world *world = world_new(1, 2);

    for (uint32_t i = 0; i < 40; i++)
        world_join(world, "worker", 10 + i, 1);

    assert_int_equal(count_lines(world, "ps 0 refused the join of worker"), 16);
    world_free(world);
}
