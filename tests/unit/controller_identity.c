/* SPDX-License-Identifier: Apache-2.0 */
/* controller_identity.c -- whose run a member is of, and which process has a task's place. */

#include "unit.h"
#include "controller_world.h"

#define REPLACED_WITHIN (60 * SECOND)

static struct run_identity identity_of(uint32_t source, const char *run)
{
    struct run_identity identity = {.source = source, .pid = 12};

    (void)snprintf(identity.run, sizeof identity.run, "%s", run);
    (void)snprintf(identity.host, sizeof identity.host, "node3");
    return identity;
}

/* A world whose ps 0 is of that run. */
static struct world *world_of(uint32_t source, const char *run)
{
    struct world *world = world_prepare(1, 2);

    world->config.identity = identity_of(source, run);
    world_begin(world);
    world_forget(world);
    return world;
}

/* Worker 0, or an observer, of a run joins as that process; the call is answered. */
static const struct world_answer *
join_as(struct world *world, bool member, uint32_t source, const char *run, uint32_t pid)
{
    uint8_t nonce[16] = {(uint8_t)pid, 7};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_identity identity = WIRE_IDENTITY_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = (char[]){"worker"};
    identity.run = (char *)(uintptr_t)run;
    identity.source = (Sumac__V1__Identity__Source)source;
    identity.host = (char[]){"node4"};
    identity.pid = pid;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = member ? SUMAC__V1__ROLE__ROLE_MEMBER : SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.task = member ? &task : NULL;
    request.identity = &identity;
    const uint64_t call = world_join_as(world, &request);
    world_settle_down(world);
    return world_answer(world, call);
}

static enum sumac_status
join(struct world *world, bool member, uint32_t source, const char *run, uint32_t pid)
{
    return join_as(world, member, source, run, pid)->status;
}

TEST(a_member_of_another_run_is_refused_and_both_runs_are_named)
{
    struct world *world = world_of(RUN_SOURCE_ENVIRONMENT, "red"); /* given */

    const struct world_answer *answer =
        join_as(world, true, RUN_SOURCE_ENVIRONMENT, "blue", 5); /* when */

    assert_int_equal(answer->status, SUMAC_FAILED_PRECONDITION); /* then */
    assert_int_equal(answer->reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_non_null(strstr(answer->text, "run \"blue\" (SUMAC_RUN), process 5 on node4"));
    assert_non_null(strstr(answer->text, "run \"red\" (SUMAC_RUN), process 12 on node3"));
    world_free(world);
}

TEST(runs_are_compared_only_when_both_are_named_by_one_source)
{
    const struct {
        uint32_t source;
        const char *run;
        bool member;
    } taken[] = {
        {RUN_SOURCE_ENVIRONMENT, "red", true},
        {RUN_SOURCE_NONE, "", true},
        {RUN_SOURCE_SLURM, "4711", true},
        {RUN_SOURCE_ENVIRONMENT, "blue", false}};

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        struct world *world = world_of(RUN_SOURCE_ENVIRONMENT, "red");
        assert_int_equal(join(world, taken[i].member, taken[i].source, taken[i].run, 5), SUMAC_OK);
        world_free(world);
    }
    struct world *world = world_of(RUN_SOURCE_NONE, "");
    assert_int_equal(join(world, true, RUN_SOURCE_ENVIRONMENT, "blue", 5), SUMAC_OK);
    world_free(world);
}

TEST(an_identity_that_is_too_long_is_malformed_and_leaves_nothing)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");
    char longest[RUN_NAME_BYTES_MAX + 2];

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const struct world_answer *answer = join_as(world, true, RUN_SOURCE_ENVIRONMENT, longest, 5);
    assert_int_equal(answer->reason, SUMAC_REASON_MALFORMED);

    longest[RUN_NAME_BYTES_MAX] = '\0';
    answer = join_as(world, true, RUN_SOURCE_ENVIRONMENT, longest, 6);
    assert_int_equal(answer->status, SUMAC_OK);
    world_expect(
        world, "1: INVALID_ARGUMENT MALFORMED …\n"
               "ps 0: members 2 epoch 1\n"
               "ps 0: open 1\n"
               "2: joined 1 attempt 1 of 1 ps epoch 1\n");
    world_free(world);
}

TEST(so_is_that_of_an_observer_that_names_a_task)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");
    char longest[RUN_NAME_BYTES_MAX + 2];
    uint8_t nonce[16] = {7};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_identity identity = WIRE_IDENTITY_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    task.job = (char *)"evaluator";
    identity.run = longest;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.task = &task;
    request.identity = &identity;

    world_join_as(world, &request);

    world_expect(world, "1: INVALID_ARGUMENT MALFORMED …\n");
    world_free(world);
}

TEST(the_replaced_client_is_told_who_took_its_place)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 5), SUMAC_OK);
    world_forget(world);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 6), SUMAC_OK);

    world_expect(
        world, "ps 0: close 1: process 6 on node4 has taken this task's place, attempt 2\n"
               "ps 0: decide 1 at 0\n"
               "ps 0: open 2\n"
               "ps 0: count 2 from step 1 on\n"
               "2: joined 2 attempt 2 of 1 ps epoch 1\n");
    world_free(world);
}

/* Some ps has a push stream of it. */
TEST(a_join_says_which_living_process_it_replaced)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    world->ps[0].connected = true; /* given */
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 5), SUMAC_OK);
    assert_string_equal(world->replaced, "");
    world_pass(world, SECOND / 2);

    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 6), SUMAC_OK); /* when */

    const char *const said =
        "; takes the place of process 5 on node4, which was alive 500 ms ago; if that process is "
        "of another run, set SUMAC_RUN to a different value in each run";
    assert_string_equal(world->replaced, said); /* then */
    world->replaced[0] = '\0';
    world_pass(world, SECOND);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 6), SUMAC_OK);
    assert_string_equal(world->replaced, said); /* a retry hears the same */
    world_free(world);
}

TEST(a_join_only_names_the_process_that_it_replaced_if_that_one_is_dead)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 5), SUMAC_OK);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 6), SUMAC_OK);

    assert_string_equal(world->replaced, "; takes the place of process 5 on node4");
    world_free(world);
}

/* Its lease ran out, or it has left: there was no place to take. */
TEST(a_join_replaces_no_process_that_has_left)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    world->ps[0].connected = true;
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 5), SUMAC_OK);
    world_leave(world, 1, false);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 6), SUMAC_OK);
    world_settle_down(world);
    assert_int_equal(world->replaced_attempt, 0);

    world_pass(world, 12 * SECOND);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 7), SUMAC_OK);
    assert_int_equal(world->replaced_attempt, 0);
    world_free(world);
}

/* Process after process, each of which is told that it was replaced: the number that came in. */
static uint32_t replace_living(struct world *world, uint32_t first_pid, uint64_t apart_us)
{
    uint32_t admitted = 0;

    while (admitted < 20 &&
           join(world, true, RUN_SOURCE_NONE, "", first_pid + admitted) == SUMAC_OK) {
        admitted++;
        if (world->session_count > 1)
            world_leave(world, world->session_count - 1, false);
        world_settle_down(world);
        world_pass(world, apart_us);
    }
    return admitted;
}

TEST(after_three_replacements_of_living_processes_the_present_one_stays)
{
    struct world *world = world_of(RUN_SOURCE_NONE, ""); /* given */

    assert_int_equal(replace_living(world, 1, SECOND), 4); /* when */

    const struct world_answer *answer = join_as(world, true, RUN_SOURCE_NONE, "", 9); /* then */
    assert_int_equal(answer->reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_non_null(strstr(answer->text, "worker 0 is process 4 on node4"));
    world_free(world);
}

TEST(that_the_present_one_stays_is_said_once)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    for (uint32_t pid = 1; pid <= 5; pid++)
        assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", pid), SUMAC_OK);
    for (uint32_t replaced = 1; replaced <= 4; replaced++)
        world_leave(world, replaced, false);

    const char *const said = strstr(world->log, "keeps the present process of worker 0");
    assert_non_null(said);
    assert_null(strstr(said + 1, "keeps the present process"));
    world_free(world);
}

TEST(the_present_one_stays_no_longer_than_its_lease)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    (void)replace_living(world, 1, SECOND);
    world_pass(world, 12 * SECOND);

    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 9), SUMAC_OK);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 10), SUMAC_OK); /* as before */
    world_free(world);
}

TEST(replacements_that_are_far_apart_are_no_flapping)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    world->config.lease_ms = 100000;
    assert_int_equal(replace_living(world, 1, REPLACED_WITHIN / 2 + 1), 20);
    world_free(world);
}

TEST(a_process_that_is_killed_and_started_again_is_never_refused)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    for (uint32_t pid = 1; pid < 20; pid++)
        assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", pid), SUMAC_OK);
    world_free(world);
}

TEST(a_join_that_is_said_again_replaces_nothing)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    for (int i = 0; i < 10; i++)
        assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 5), SUMAC_OK);

    assert_int_equal(world->session_count, 1);
    world_free(world);
}

/* A leave said again is one sign of life. */
TEST(a_client_that_says_twice_that_it_lives_counts_once)
{
    struct world *world = world_of(RUN_SOURCE_NONE, "");

    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 1), SUMAC_OK);
    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 2), SUMAC_OK);
    for (int i = 0; i < 4; i++)
        world_leave(world, 1, false);

    assert_int_equal(join(world, true, RUN_SOURCE_NONE, "", 3), SUMAC_OK);
    world_free(world);
}

static enum sumac_status join_with_addresses(struct world *world, char **addresses, size_t count)
{
    uint8_t nonce[16] = {9};
    wire_task_name names[2] = {WIRE_TASK_NAME_INIT, WIRE_TASK_NAME_INIT};
    wire_task_name *members[2] = {&names[0], &names[1]};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    names[0].job = names[1].job = (char[]){"worker"};
    names[1].index = 1;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &names[0];
    request.n_members = 2;
    request.members = members;
    request.n_member_addresses = count;
    request.member_addresses = addresses;
    const uint64_t call = world_join_as(world, &request);
    world_settle_down(world);
    return world_answer(world, call)->status;
}

TEST(workers_in_another_order_are_refused)
{
    static const char *const ours[] = {"h0:1", "h1:1"};
    char h0[] = "h0:1", h1[] = "h1:1", other[] = "10.0.0.7:1", empty[] = "", line[] = "h1:1\n";
    char turned[] = "\xe2\x80\xaeh1:1", longest[256] = {0}, too_long[257] = {0};

    const struct {
        char *addresses[2];
        size_t count;
        enum sumac_status status;
    } cases[] = {
        {{h1, h0}, 2, SUMAC_FAILED_PRECONDITION},
        {{h1, other}, 2, SUMAC_FAILED_PRECONDITION},
        {{h0, other}, 2, SUMAC_OK}, /* another name of the same task */
        {{h0, h1}, 2, SUMAC_OK},
        {{h0}, 1, SUMAC_INVALID_ARGUMENT},
        {{h0, empty}, 2, SUMAC_INVALID_ARGUMENT},
        {{h0, line}, 2, SUMAC_INVALID_ARGUMENT},
        {{h0, turned}, 2, SUMAC_INVALID_ARGUMENT},
        {{h0, longest}, 2, SUMAC_OK},
        {{h0, too_long}, 2, SUMAC_INVALID_ARGUMENT},
        {{NULL}, 0, SUMAC_OK}};

    memset(longest, 'a', 255);
    memset(too_long, 'a', 256);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *world = world_prepare(1, 2);
        world->config.members_addresses = ours;
        world_begin(world);
        char *addresses[2] = {cases[i].addresses[0], cases[i].addresses[1]};
        assert_int_equal(join_with_addresses(world, addresses, cases[i].count), cases[i].status);
        world_free(world);
    }
}
