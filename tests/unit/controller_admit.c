/* SPDX-License-Identifier: Apache-2.0 */
/* controller_admit.c -- who may join: refusals, and what they say. */

#include "unit.h"
#include "controller_world.h"

TEST(a_join_of_another_protocol_version_is_refused)
{
    struct world *world = world_new(1, 1);
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    world_forget(world);

    request.protocol_version = WIRE_PROTOCOL_VERSION - 1;

    world_join_as(world, &request);

    world_expect(
        world, "1: FAILED_PRECONDITION PROTOCOL_VERSION join of an observer: it speaks "
               "protocol version 1, ps 0 version 2: use one release of both\n");
    world_free(world);
}

TEST(a_join_meant_for_another_cluster_is_refused)
{
    struct world *world = world_new(1, 1);
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    world_forget(world);

    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.cluster_id = 12345;

    world_join_as(world, &request);

    /* which of them, nobody here can know */
    world_expect(
        world, "1: FAILED_PRECONDITION WRONG_CLUSTER join of an observer: it is meant for "
               "cluster 0000000000003039, this is 0000000000001001: the cluster has "
               "restarted, or the configurations list its ps differently\n");
    uint8_t nonce[16] = {1};
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.cluster_id = controller_cluster_id(world->controller);
    world_join_as(world, &request);
    world_settle_down(world);
    assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    world_free(world);
}

TEST(a_join_without_a_whole_nonce_is_refused)
{
    struct world *world = world_new(1, 1);
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    world_forget(world);

    request.protocol_version = WIRE_PROTOCOL_VERSION;

    world_join_as(world, &request);

    world_expect(
        world, "1: INVALID_ARGUMENT MALFORMED join of an observer: its "
               "nonce has 0 bytes; give 16 random ones\n");
    world_free(world);
}

TEST(more_sessions_than_the_option_allows_are_refused_and_the_option_is_named)
{
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 2;
    world_begin(world);
    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world_forget(world);

    world_join(world, "worker", 2, 3);

    world_expect(
        world, "3: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 2: 2 sessions "
               "are open: start the ps with a larger --sessions-max\n");
    world_free(world);
}

TEST(a_task_may_come_back_when_all_sessions_are_taken)
{
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 1;
    world_begin(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_joined(world, "worker", 0, 2);

    world_expect(
        world, "ps 0: close 1: another process has taken this task's place, attempt 2\n"
               "ps 0: decide 1 at 0\n"
               "ps 0: open 2\n"
               "2: joined 2 attempt 2 of 1 ps epoch 1\n");
    world_free(world);
}

TEST(a_task_that_the_configuration_does_not_list_is_refused_with_the_list)
{
    struct world *world = world_new(1, 2);

    world_forget(world);

    world_join(world, "worker", 77, 1);

    world_expect(
        world, "1: FAILED_PRECONDITION WRONG_CLUSTER join of worker 77: it is no member "
               "of this cluster, which lists worker 0, worker 1: give every task the "
               "same cluster configuration, or join as an observer\n");
    world_joined(world, "worker", 1, 2);
    world_free(world);
}

TEST(a_long_list_of_members_is_cut_and_says_how_many_there_are)
{
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
    world_forget(world);

    world_join(world, "worker", 300, 1);

    world_expect(
        world, "1: FAILED_PRECONDITION WRONG_CLUSTER join of worker 300: it is no member of this "
               "cluster, which lists worker 0, worker 1, worker 2, worker 3, worker 4, worker 5, "
               "worker 6, worker 7, worker 8, worker 9, worker 10, worker 11, … 300 in all: give "
               "every task the same cluster configuration, or join as an observer\n");
    world_free(world);
}

TEST(only_chief_and_workers_are_members)
{
    struct world *world = world_new(1, 0);

    world_forget(world);

    world_join(world, "ps", 0, 1);
    world_join(world, "banana", 0, 2);

    world_expect(
        world, "1: INVALID_ARGUMENT BAD_NAME join of ps 0: only tasks of the jobs "
               "chief and worker are members; join as an observer\n"
               "2: INVALID_ARGUMENT BAD_NAME join of banana 0: only tasks of the "
               "jobs chief and worker are members; join as an observer\n");
    world_joined(world, "chief", 0, 3);
    world_free(world);
}

/* Barriers and the end of the run would wait for it. */
TEST(only_chief_and_workers_are_listed_as_members)
{
    static const char *const jobs[] = {"", "ps", "b0", "w\xc3\xb6rker"};
    struct world *world = world_new(1, 0);
    uint8_t nonce[16] = {9};
    wire_task_name task = WIRE_TASK_NAME_INIT, listed = WIRE_TASK_NAME_INIT;
    wire_task_name *members[] = {&task, &listed};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = "worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.task = &task;
    request.members = members;
    request.n_members = 2;
    for (size_t i = 0; i < 4 * sizeof jobs / sizeof *jobs; i++) {
        listed.job = (char *)(uintptr_t)jobs[i / 4];
        members[0] = i % 4 < 2 ? &task : &listed; /* those that may be listed come first, or last */
        members[1] = i % 4 < 2 ? &listed : &task;
        request.role = i % 2 == 0 ? SUMAC__V1__ROLE__ROLE_MEMBER : SUMAC__V1__ROLE__ROLE_OBSERVER;
        world_forget(world);
        world_join_as(world, &request);
        assert_non_null(strstr(world->text, "INVALID_ARGUMENT BAD_NAME join of worker 0"));
        assert_non_null(strstr(world->text, ": it lists "));
    }
    world_free(world);
}

TEST(a_nonce_of_another_task_is_refused_and_both_are_named)
{
    struct world *world = world_new(1, 2);

    world_joined(world, "worker", 0, 1);
    world_forget(world);

    world_join(world, "worker", 1, 1);

    world_expect(
        world, "2: INVALID_ARGUMENT NONCE_TAKEN join of worker 1: its nonce is the one that "
               "worker 0 has joined with: draw 16 random bytes for each client\n");
    world_join(world, NULL, 0, 1);
    world_expect(
        world, "3: INVALID_ARGUMENT NONCE_TAKEN join of an observer: its nonce is the one that "
               "worker 0 has joined with: draw 16 random bytes for each client\n");
    world_join(world, "chief", 0, 1); /* of the same index */
    world_expect_answer(world, "INVALID_ARGUMENT NONCE_TAKEN join of chief 0: …");
    world_joined(world, "worker", 0, 1); /* its own retry */
    world_free(world);
}

/* An observer may name its task; it is another client all the same. */
TEST(the_same_task_in_another_role_has_another_nonce)
{
    struct world *world = world_new(1, 1);
    uint8_t nonce[16] = {1, 0, 1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    world_joined(world, "worker", 0, 1);
    world_forget(world);
    task.job = "worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.task = &task;

    world_join_as(world, &request);

    world_expect(
        world,
        "2: INVALID_ARGUMENT NONCE_TAKEN join of worker 0 as an observer: its nonce is the one "
        "that worker 0 has joined with: draw 16 random bytes for each client\n");
    nonce[0] = 2;
    world_join_as(world, &request);
    world_joined(world, NULL, 0, 3);
    world_forget(world);
    world_join(world, "worker", 0, 2);
    world_expect_answer(
        world, "… its nonce is the one that worker 0, as an observer, has joined with: …");
    world_join(world, "worker", 0, 3);
    world_expect_answer(world, "… its nonce is the one that observer 2 has joined with: …");
    world_free(world);
}

/* Of 4 places, so many members being listed, two are taken by observers, and a third is refused. */
static struct world *refuse_third_observer(uint32_t listed)
{
    struct world *world = world_prepare(1, listed);

    world->config.sessions_max = 4;
    world_begin(world);
    world_joined(world, NULL, 0, 90);
    world_joined(world, NULL, 0, 91);
    world_forget(world);

    world_join(world, NULL, 0, 92);

    world_expect(
        world,
        "3: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of an observer: 2 observers are open, and "
        "2 of 4 places are the members': start the ps with a larger --sessions-max\n");
    return world;
}

TEST(observers_do_not_take_the_places_of_members)
{
    struct world *world = refuse_third_observer(2);

    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world_joined(world, "worker", 1, 3);
    world_free(world);
}

TEST(without_a_list_half_of_the_places_are_the_members)
{
    struct world *world = refuse_third_observer(0);

    world_joined(world, "worker", 0, 1);
    world_joined(world, "worker", 1, 2);
    world_free(world);
}

static uint32_t first_named; /* index of the first worker that a list names */

/* A join of the first with a list of so many names, of that many workers. */
static void join_with_list(struct world *world, uint32_t count, uint32_t distinct)
{
    static wire_task_name names[5000];
    static wire_task_name *pointers[5000];
    static uint8_t nonce[16] = {200};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    for (uint32_t i = 0; i < count; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = "worker";
        names[i].index = first_named + i % distinct;
        pointers[i] = &names[i];
    }
    nonce[1]++;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &names[0];
    request.members = pointers;
    request.n_members = count;
    world_join_as(world, &request);
    world_settle_down(world);
}

static void join_naming(struct world *world, uint32_t count)
{
    join_with_list(world, count, count);
}

TEST(a_join_whose_list_is_too_long_is_refused_whatever_it_names)
{
    struct world *world = world_new(1, 0); /* given */

    world_forget(world);

    join_naming(world, 2);
    world_expect(
        world, "ps 0: members 2 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n");

    join_with_list(world, 1025, 2); /* when */

    world_expect_answer(
        world, "RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 0: it names 1025 members, and "
               "ps 0 takes 1024 at most: list them in its own cluster configuration");
    join_with_list(world, 1024, 2);
    world_expect(
        world, "ps 0: close 1: another process has taken this task's place, attempt 2\n"
               "ps 0: decide 1 at 0\n"
               "ps 0: open 2\n"
               "3: joined 2 attempt 2 of 1 ps epoch 1\n");
    world_free(world);
}

TEST(a_join_that_is_refused_leaves_nothing_behind)
{
    struct world *world = world_prepare(1, 0);

    world->config.sessions_max = 2;
    world_begin(world);
    world_forget(world);

    join_naming(world, 5000);
    join_naming(world, 1025);

    world_joined(world, "worker", 4000, 1);
    world_joined(world, "worker", 4001, 2);
    world_expect(
        world,
        "1: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 0: it names 5000 members, and "
        "ps 0 takes 1024 at most: list them in its own cluster configuration\n"
        "2: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 0: it names 1025 members, and "
        "ps 0 takes 1024 at most: list them in its own cluster configuration\n"
        "ps 0: members 1 epoch 1\n"
        "ps 0: open 1\n"
        "3: joined 1 attempt 1 of 1 ps epoch 1\n"
        "ps 0: members 2 epoch 2\n"
        "ps 0: open 2\n"
        "4: joined 2 attempt 1 of 1 ps epoch 2\n");
    join_naming(world, 3); /* no place */
    world_joined(world, "worker", 4001, 3);
    world_expect(
        world, "5: RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 0: 2 sessions "
               "are open: start the ps with a larger --sessions-max\n"
               "ps 0: close 2: another process has taken this task's place, attempt 2\n"
               "ps 0: decide 2 at 0\n"
               "ps 0: open 3\n"
               "6: joined 3 attempt 2 of 1 ps epoch 2\n");
    world_free(world);
}

TEST(jobs_that_cannot_be_printed_are_refused)
{
    struct world *world = world_new(1, 0);
    const char *const jobs[] = {"wor\nker", "\x1b]0;a\a", "w\x7f", "w\xc2\x80"};

    world_forget(world);

    for (uint32_t i = 0; i < 4; i++)
        world_join(world, jobs[i], 0, i + 1);
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
    world_join_as(world, &request);
    world_expect(
        world, "1: INVALID_ARGUMENT BAD_NAME join of wor?ker 0: its job name has "
               "a control character, shown here as ?: wor?ker\n"
               "2: INVALID_ARGUMENT BAD_NAME join of ?]0;a? 0: its job name has "
               "a control character, shown here as ?: ?]0;a?\n"
               "3: INVALID_ARGUMENT BAD_NAME join of w? 0: its job name has "
               "a control character, shown here as ?: w?\n"
               "4: INVALID_ARGUMENT BAD_NAME join of w?? 0: its job name has "
               "a control character, shown here as ?: w??\n"
               "5: INVALID_ARGUMENT BAD_NAME join of worker 0: its job name has "
               "a control character, shown here as ?: wor?ker\n");
    assert_null(strstr(world->log, "\nker"));
    world_free(world);
}

/* What a join says of itself, and how it is refused; NULL: it is not. */
struct told {
    const char *job; /* NULL: no task is named */
    uint32_t role;
    size_t ps_count, address_bytes;
    const char *answer;
};

static void join_told(struct world *world, const struct told *told)
{
    static char address[300], *addresses[300];
    static uint8_t nonce[16] = {77};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    memset(address, 'a', sizeof address);
    address[told->address_bytes] = '\0';
    for (size_t ps = 0; ps < told->ps_count; ps++)
        addresses[ps] = address;
    nonce[1]++;
    task.job = (char *)told->job;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = (Sumac__V1__Role)told->role;
    request.task = told->job == NULL ? NULL : &task;
    request.ps_addresses = addresses;
    request.n_ps_addresses = told->ps_count;
    world_join_as(world, &request);
    world_settle_down(world);
}

#define OF_64_BYTES "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(a_join_that_no_client_makes_is_refused_with_what_is_wrong)
{
    static const struct told rows[] = {
        {"worker", 2, 0, 0, "…MALFORMED join of …: its role is 2; give member or observer"},
        {"worker", 9, 0, 0, "…MALFORMED join of …: its role is 9; give member or observer"},
        {NULL, WIRE_ROLE_MEMBER, 0, 0,
         "…MALFORMED join of a member that names no task: give the task, of the job chief or "
         "worker"},
        {"", WIRE_ROLE_MEMBER, 0, 0,
         "…MALFORMED join of a member that names no task: give the task, of the job chief or "
         "worker"},
        {OF_64_BYTES "X", WIRE_ROLE_OBSERVER, 0, 0,
         "…BAD_NAME join of …: its job name has 65 bytes, at most 64 may be: " OF_64_BYTES "X"},
        {NULL, WIRE_ROLE_OBSERVER, 257, 1,
         "…MALFORMED join of …: it names 257 ps; a cluster has at most 256"},
        {NULL, WIRE_ROLE_OBSERVER, 1, 256,
         "…MALFORMED join of …: its address of ps 0 is longer than 255 bytes"},
    };
    static const struct told taken[] = {
        {OF_64_BYTES, WIRE_ROLE_OBSERVER, 0, 0, NULL},
        {"", WIRE_ROLE_OBSERVER, 0, 0, NULL},
        {NULL, WIRE_ROLE_OBSERVER, 1, 255, NULL},
    };
    struct world *world = world_new(1, 0);

    world_forget(world);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        join_told(world, &rows[i]);
        world_expect_answer(world, rows[i].answer);
    }

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        join_told(world, &taken[i]);
        assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    }
    world_free(world);
}

/* It does not know the others itself: who joins first names them. */
TEST(a_ps_that_was_told_only_itself_admits_nobody_who_names_no_ps)
{
    static const struct told rows[] = {
        {NULL, WIRE_ROLE_OBSERVER, 0, 0,
         "UNAVAILABLE PS_MISSING join of an observer: ps 0 was told only itself, and no member has "
         "joined yet that names the ps"},
        {NULL, WIRE_ROLE_OBSERVER, 1, 4,
         "UNAVAILABLE PS_MISSING join of an observer: ps 0 was told only itself, and no member has "
         "joined yet that names the ps"},
        {"worker", WIRE_ROLE_MEMBER, 0, 0,
         "FAILED_PRECONDITION WRONG_CLUSTER join of worker 0: ps 0 was told only itself and it "
         "names no ps: give ps_addresses"},
    };
    struct world *world = world_new(0, 0);

    world_forget(world);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        join_told(world, &rows[i]);
        world_expect_answer(world, rows[i].answer);
    }
    join_told(world, &(struct told){"worker", WIRE_ROLE_MEMBER, 1, 4, NULL});

    assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    join_told(world, &(struct told){NULL, WIRE_ROLE_OBSERVER, 0, 0, NULL});
    assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    world_free(world);
}

/* Each names other members: 1000 of them are known by the first. */
TEST(members_that_several_joins_name_are_counted_together)
{
    struct world *world = world_new(1, 0);

    join_naming(world, 1000);
    first_named = 5000;
    world_forget(world);

    join_naming(world, 25);

    world_expect_answer(
        world, "RESOURCE_EXHAUSTED TOO_MANY_SESSIONS join of worker 5000: it names 25 members, ps "
               "0 knows 1000 and takes 1024 in all: list them in its own cluster configuration");
    join_naming(world, 24);
    first_named = 0;
    assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    world_free(world);
}

TEST(who_goes_by_other_rules_of_steps_is_refused_with_both)
{
    static const struct {
        uint32_t members, quorum, on_loss;
        const char *text; /* NULL: it is taken */
    } rows[] = {
        {4, 0, 0, "synchronous steps to begin with 4 members, and ps 0 with 3"},
        {0, 3, 0, "a synchronous step to need 3 contributions, and ps 0 2"},
        {0, 0, 2, "a loss to fail synchronous steps, and ps 0 was started with --on-loss continue"},
        {0, 0, 7, "a loss to do what no version knows"},
        {3, 2, 1, NULL},
    };
    struct world *world = world_prepare(1, 3);

    world->config.step_quorum = 2;
    world_begin(world);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wire_task_name name = WIRE_TASK_NAME_INIT;
        wire_join_request request = WIRE_JOIN_REQUEST_INIT;
        uint8_t nonce[16] = {(uint8_t)(i + 1)};
        name.job = "worker";
        request.protocol_version = WIRE_PROTOCOL_VERSION;
        request.nonce = (wire_bytes){sizeof nonce, nonce};
        request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
        request.task = &name;
        request.step_members = rows[i].members;
        request.step_quorum = rows[i].quorum;
        request.on_loss = (Sumac__V1__OnLoss)rows[i].on_loss;
        world_join_as(world, &request);
        world_settle_down(world);
        const struct world_answer *answer = world_answer(world, world->calls);
        assert_int_equal(
            answer->status, rows[i].text == NULL ? SUMAC_OK : SUMAC_FAILED_PRECONDITION);
        assert_true(rows[i].text == NULL || strstr(answer->text, rows[i].text) != NULL);
    }
    world_free(world);
}

/* Both would wait for steps of other members. */
TEST(a_list_of_another_length_than_ps_0_was_told_is_refused_with_both)
{
    static const struct {
        uint32_t named;
        const char *answer; /* NULL: it is taken */
    } rows[] = {
        {3,
         "FAILED_PRECONDITION WRONG_CLUSTER join of worker 0: its configuration lists 3 chiefs and "
         "workers, and ps 0 was started with --members 2: give both the same number, or list no "
         "workers"},
        {1,
         "FAILED_PRECONDITION WRONG_CLUSTER join of worker 0: its configuration lists 1 chiefs and "
         "workers, and ps 0 was started with --members 2: give both the same number, or list no "
         "workers"},
        {2, NULL},
        {0, NULL},
    };
    struct world *world = world_prepare(1, 0);

    world->config.step_members = 2;
    world_begin(world);
    world_forget(world);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        join_naming(world, rows[i].named);
        if (rows[i].answer != NULL)
            world_expect_answer(world, rows[i].answer);
        else
            assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    }
    world_free(world);
}

/* The members of the first steps have joined: a later member counts in a later step. */
TEST(a_list_that_comes_after_the_first_members_may_be_of_another_length)
{
    struct world *world = world_prepare(1, 0);

    world->config.step_members = 1;
    world_begin(world);
    join_naming(world, 1);
    first_named = 8;

    join_naming(world, 2);

    first_named = 0;
    assert_int_equal(world_answer(world, world->calls)->status, SUMAC_OK);
    world_free(world);
}

/* That many are the most that a join may name where ps 0 lists none. */
TEST(a_list_that_ps_0_has_too_may_name_more_than_1024_members)
{
    enum { MANY = 1025 };
    static const char *jobs[MANY];
    static uint32_t indices[MANY];
    static wire_task_name names[MANY], *members[MANY];
    uint8_t nonce[16] = {1, 7};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;
    struct world *world = world_prepare(1, 0); /* given */

    for (uint32_t i = 0; i < MANY; i++) {
        jobs[i] = "worker";
        indices[i] = i;
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = (char *)"worker";
        names[i].index = i;
        members[i] = &names[i];
    }
    world->config.members_jobs = jobs;
    world->config.members_indices = indices;
    world->config.member_count = MANY;
    world_begin(world);
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &names[0];
    request.members = members;
    request.n_members = MANY;

    const uint64_t join = world_join_as(world, &request); /* when */
    world_settle_down(world);

    assert_int_equal(world_answer(world, join)->status, SUMAC_OK); /* then */
    world_free(world);
}

/* Of members that it names there is no room for any, nor for itself. */
TEST(a_join_that_there_is_no_memory_for_is_refused_and_then_is_not)
{
    uint8_t nonce[16] = {1, 7};
    wire_task_name task = WIRE_TASK_NAME_INIT, *members[] = {&task};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;
    struct world *world = world_prepare(1, 0);

    task.job = (char *)"worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &task;
    request.members = members;
    request.n_members = 1;
    world->config.records = false; /* for which an answer has to wait, somewhere */
    world_begin(world);
    world_forget(world);
    world->out_of_memory = true;
    world_join_as(world, &request);
    world_expect_answer(
        world, "RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 0 has no memory for another task");
    world->out_of_memory = false;

    const uint64_t join = world_join_as(world, &request);
    world_settle_down(world);

    assert_int_equal(world_answer(world, join)->status, SUMAC_OK);
    world_free(world);
}
