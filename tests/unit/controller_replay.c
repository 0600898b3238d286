/* SPDX-License-Identifier: Apache-2.0 */
/* controller_replay.c -- a controller that is made of what another one has written down; every
 * simulated run ends with one, too (tests/sim). */

#include "unit.h"
#include "barrier.h"
#include "controller_desk.h"
#include "controller_replay_check.h"
#include "little_endian.h"
#include "controller_collectives.h"
#include "controller_members.h"

/* ---- a controller that begins again */

DESK_TEST(a_controller_made_again_answers_a_repeated_join_and_create_the_same)
{
    uint8_t session[16];

    desk_begin(desk);
    desk_join(desk, 1);
    desk_settle_down(desk);
    desk_create(desk, "w", false);
    desk_settle_down(desk);
    memcpy(session, desk->session, 16);
    desk->text[0] = '\0';

    desk_begin_again(desk);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "hello\nmembership\n"));
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    desk_settle_down(desk);
    assert_null(strstr(desk->text, "close\n")); /* its lease begins anew */
    desk->text[0] = '\0';

    desk_join(desk, 1);
    desk_expect(desk, "joined 1, before 0 voided 0\n");
    assert_memory_equal(session, desk->session, 16);
    desk_create(desk, "w", false);
    desk_expect(desk, "created 1 of 2 shards\n");
    desk_create(desk, "v", false);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "created 2 of 2 shards\n"));
}

DESK_TEST(a_controller_made_again_knows_how_many_bytes_are_placed)
{
    uint64_t placed[LANE_PS_MAX];

    desk_begin(desk);
    desk_joined(desk, 1);
    for (uint32_t i = 0; i < 3; i++) {
        desk_create(desk, (const char *[]){"u", "v", "w"}[i], false);
        desk_settle_down(desk);
    }
    desk_delete(desk, "v");
    desk_settle_down(desk);
    memcpy(placed, desk->controller->placed_bytes, sizeof placed);
    assert_int_not_equal(placed[0], 0);

    desk_begin_again(desk);

    assert_memory_equal(placed, desk->controller->placed_bytes, sizeof placed);
}

/* And the next attempt is told how the last one ended. */
DESK_TEST(a_controller_made_again_answers_a_repeated_leave_the_same)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_leave(desk);
    desk_settle_down(desk);
    desk_begin_again(desk);
    desk_settle_down(desk);
    desk->text[0] = '\0';

    desk_leave(desk);

    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "left at 7\n"));
    desk->text[0] = '\0';
    desk_join(desk, 2);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "joined 2, before 7 voided 2\n"));
}

/* A ps may not have heard it; and what each session's contribution came to does not change. */
DESK_TEST(a_step_that_was_taken_is_ordered_again)
{
    wire_contributed one = WIRE_CONTRIBUTED_INIT;
    wire_contributed *all[] = {&one};
    wire_peer_report report = WIRE_PEER_REPORT_INIT;

    desk->config.step_quorum = desk->config.step_members = 1;
    desk_begin(desk);
    desk_joined(desk, 1);
    report.ps_incarnation = desk->config.incarnation;
    one.session_id = (wire_bytes){16, desk->session};
    one.step = 1;
    report.contributed = all;
    report.n_contributed = 1;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_REPORT, .report = &report});
    desk_expect(desk, "record 4\n"); /* and the order waits for it */
    desk_write_down(desk);
    desk_expect(desk, "take\n");

    desk_begin_again(desk);
    desk->text[0] = '\0';
    desk_settle_down(desk);

    assert_non_null(strstr(desk->text, "take\n"));
    assert_int_equal(desk->controller->step_taken, 1);
    assert_int_equal(desk->controller->sessions.first->taken_step, 1);
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_REPORT, .report = &report});
    assert_int_equal(desk->controller->step_taken, 1); /* once */
}

/* In whichever state, with numbers that no order had before (keep_order looks). */
DESK_TEST(what_was_under_way_is_ordered_again)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "added", true);
    desk_settle_down(desk);
    desk_define(desk, "mine");
    desk_create(desk, "w", false);
    desk_join(desk, 100);
    desk_delete(desk, "added");
    desk_leave(desk);
    desk_write_down(desk);
    desk->text[0] = '\0';

    desk_begin_again(desk);
    desk_settle_down(desk);

    const char *const orders[] = {"membership\n", "open\n",    "close\n",  "decide\n",
                                  "add\n",        "publish\n", "delete\n", "define\n"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        assert_non_null(strstr(desk->text, orders[i]));
    assert_int_equal(desk->controller->variables.last->state, CONTROLLER_VARIABLE_PUBLISHED);
    assert_int_equal(desk->controller->defined[0].state, CONTROLLER_FUNCTION_DEFINED);
    assert_string_equal(desk->controller->functions.known[0].row.name, "mine");
}

/* Whoever was to assign it is asked for still, and another once that one has gone. */
DESK_TEST(who_is_to_assign_a_variable_is_not_forgotten)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", true);
    desk_settle_down(desk);
    desk_begin_again(desk);
    desk_settle_down(desk);
    desk->text[0] = '\0';

    desk_create(desk, "w", true);
    desk_expect(desk, "created 1 of 2 shards, assign\n");
    desk_leave(desk);
    desk_settle_down(desk);
    desk_joined(desk, 2);
    desk_create(desk, "w", true);
    desk_settle_down(desk);

    desk_expect(desk, "record 13\ncreated 1 of 2 shards, assign\n");
}

DESK_TEST(a_run_that_was_being_ended_is_ended_by_a_controller_made_again)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TERMINATE});
    assert_int_equal(desk->controller->phase, CONTROLLER_ENDED);
    desk_begin_again(desk);
    assert_int_equal(/* the others have as long as they had to answer */
                     desk->controller->end_until_us,
                     desk->controller->end_began_us + 1000 * (uint64_t)desk->config.terminate_ms);
    desk_settle_down(desk);

    assert_non_null(strstr(desk->text, "over\nhello\nend\n"));
    desk->text[0] = '\0';
    desk_join(desk, 1);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "failed TERMINATED\n"));
}

/* ---- barriers */

DESK_TEST(who_has_come_to_a_barrier_is_not_forgotten)
{
    uint8_t zero[16];

    desk_begin(desk);
    desk_join_as(desk, 0, 1);
    memcpy(zero, desk->session, 16);
    desk_come(desk, "alone", 0, 0);
    desk_come(desk, "both", 0, 1);
    desk_settle_down(desk);
    desk_expect(desk, "record 4\nrecord 5\nround 1 OK\n");
    desk_begin_again(desk);
    desk_settle_down(desk);
    desk->text[0] = '\0';

    desk_come(desk, "alone", 1, 0); /* its answer was lost */
    desk_expect(desk, "round 1 OK\n");
    desk_join_as(desk, 1, 2);
    desk_come(desk, "both", 0, 1);
    desk_settle_down(desk);
    desk_expect(desk, "record 9\nround 1 OK\n");
    memcpy(desk->session, zero, 16);
    desk_come(desk, "both", 1, 1);
    desk_expect(desk, "round 1 OK\n");
    desk_come(desk, "both", 2, 1);
    desk_settle_down(desk);
    desk_expect(desk, "record 10\n");
}

DESK_TEST(which_attempt_has_come_is_not_forgotten)
{
    desk_begin(desk);
    desk_join_as(desk, 0, 1);
    desk_come(desk, "both", 0, 1);
    desk_join_as(desk, 0, 2);
    desk_come(desk, "both", 0, 1);
    desk_settle_down(desk);

    assert_int_equal(desk->controller->barriers.first->places[0].attempt, 2);
    desk_compare(desk);
}

/* Its time begins anew, as those of all others do. */
DESK_TEST(a_round_that_is_open_ends_at_its_deadline_though_the_controller_begins_again)
{
    desk_begin(desk);
    desk_join_as(desk, 0, 1);
    desk_come(desk, "both", 0, 1);
    desk_settle_down(desk);
    desk->now_us += 4000000;
    desk_begin_again(desk);
    desk_settle_down(desk);
    desk->text[0] = '\0';

    desk->now_us += 4000000;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    assert_true(desk->controller->barriers.first->open);
    desk->now_us += 1000000;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    assert_false(desk->controller->barriers.first->open);
    desk_settle_down(desk);
    desk->text[0] = '\0';
    desk_come(desk, "both", 1, 1);
    desk_expect(desk, "round 1 DEADLINE_EXCEEDED\n");
}

DESK_TEST(a_barrier_that_gave_way_is_gone_from_the_records_too)
{
    char name[16];

    desk_begin(desk);
    desk_join_as(desk, 0, 1);
    for (uint32_t i = 0; i <= CONTROLLER_BARRIERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        desk_come(desk, name, 0, 0);
        if (i == 100)
            desk_come(desk, "0", 2, 0); /* used since */
        desk_settle_down(desk);
        desk->text[0] = '\0';
    }

    assert_null(controller_barrier_find(desk->controller, "1"));
    assert_non_null(controller_barrier_find(desk->controller, "0"));
    desk_compare(desk);
}

/* ---- rounds of collectives */

/* Some ps may have obeyed it, whose number says so, and others may have not. */
DESK_TEST(a_controller_made_again_orders_the_end_of_a_round_again_and_takes_no_other)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_propose(desk, "grads", 3, SUMAC_DEADLINE_EXCEEDED);
    desk_write_down(desk);
    desk_expect(desk, "record 4\ncollective grads 3 DEADLINE_EXCEEDED it is so\n");
    const uint64_t number = desk->last_collective;

    for (uint32_t beginnings = 1; beginnings < 3; beginnings++) {
        desk_begin_again(desk);
        desk_propose(desk, "grads", 3, SUMAC_OK);
        desk_write_down(desk);
        desk_obey_one(desk); /* the hello, and not the end of the round */
        assert_non_null(
            strstr(desk->text, "hello\ncollective grads 3 DEADLINE_EXCEEDED it is so\n"));
        assert_null(strstr(desk->text, "grads 3 OK"));
        assert_int_equal(desk->last_collective, number);
        desk->text[0] = '\0';
    }
}

/* In the order of their numbers, and before whatever else is ordered. */
DESK_TEST(rounds_are_ordered_again_in_the_order_in_which_they_were_proposed)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", false);
    desk_propose(desk, "b", 1, SUMAC_OK);
    desk_propose(desk, "a", 1, SUMAC_OK);
    desk_begin_again(desk);
    desk_propose(desk, "a", 2, SUMAC_ABORTED);
    desk->text[0] = '\0';

    desk_settle_down(desk);

    const char *const first = strstr(desk->text, "hello\ncollective b 1 OK\n");
    const char *const second = strstr(desk->text, "collective a 1 OK\n");
    const char *const added = strstr(desk->text, "add\n");
    const char *const third = strstr(desk->text, "collective a 2 ABORTED it is so\n");
    assert_non_null(first);
    assert_true(first < second && second < added && added < third);
    assert_true(desk->last_collective > desk->orders_before);
    assert_int_equal(desk->controller->collective_count, 0);
}

DESK_TEST(a_round_that_every_ps_has_heard_of_is_gone_from_the_records_too)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_propose(desk, "grads", 3, SUMAC_OK);
    desk_propose(desk, "grads", 4, SUMAC_OK);
    desk_write_down(desk);
    desk_obey_one(desk);
    desk_write_down(desk);
    assert_int_equal(desk->controller->collective_count, 1);
    desk_begin_again(desk);
    desk->text[0] = '\0';

    desk_settle_down(desk);

    assert_null(strstr(desk->text, "collective grads 3"));
    assert_non_null(strstr(desk->text, "collective grads 4"));
}

/* Is record `from`, with that number behind its only row's head, taken after so many others? */
static bool is_taken(const struct desk *desk, uint64_t others, uint64_t from, uint64_t number)
{
    const struct span whole = desk->written.records[from];
    uint8_t *const bytes = malloc(whole.bytes);
    const struct span record = {.data = bytes, .bytes = whole.bytes};
    struct controller *again = controller_create(&desk->config, &desk->memory);
    struct sumac_error error;

    assert_non_null(bytes);
    assert_int_equal(whole.data[0], CONTROLLER_ROW_COLLECTIVE);
    memcpy(bytes, whole.data, whole.bytes);
    little_endian_put(bytes + CONTROLLER_ROW_HEAD_BYTES, 8, number);
    for (uint64_t i = 0; i < others; i++)
        assert_int_equal(controller_replay(again, &desk->written.records[i], &error), SUMAC_OK);
    const bool taken = controller_replay(again, &record, &error) == SUMAC_OK;
    controller_destroy(again);
    free(bytes);
    return taken;
}

DESK_TEST(a_round_that_does_not_follow_from_the_records_before_it_is_refused)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_propose(desk, "grads", 3, SUMAC_OK);
    desk_propose(desk, "grads", 4, SUMAC_OK);
    const uint64_t first = desk->controller->collectives.first->order.number;
    const uint64_t second = desk->controller->collectives.last->order.number;

    assert_true(is_taken(desk, 4, 4, second));
    assert_false(is_taken(desk, 4, 4, first));
    assert_false(is_taken(desk, 4, 4, 0));
    assert_false(
        is_taken(desk, 4, 4, second + (UINT64_C(1) << CONTROLLER_ORDERS_OF_BEGINNING_BITS)));
    assert_false(is_taken(desk, 5, 4, second + 1)); /* the round is there */
    assert_false(is_taken(desk, 0, 4, second));     /* of no cluster */
}

/* ---- what is gone */

/* A session is forgotten as it is settled, when others that joined later were before it. */
DESK_TEST(what_is_forgotten_is_gone_from_the_records_too)
{
    uint8_t first[16];

    desk_begin(desk);
    desk_joined(desk, 1);
    memcpy(first, desk->session, 16);
    desk_create(desk, "w", true);
    desk_settle_down(desk);
    for (uint32_t i = 0; i <= CONTROLLER_SETTLED_MAX; i++) {
        desk_joined(desk, 100 + i);
        desk_leave(desk);
        desk_settle_down(desk);
    }
    assert_int_equal(desk->controller->sessions_pool.used, CONTROLLER_SETTLED_MAX + 1);
    memcpy(desk->session, first, 16);
    desk_delete(desk, "w");
    desk_settle_down(desk);
    assert_int_equal(desk->controller->variable_count, 0);
    desk_compare(desk);

    desk_leave(desk);
    desk_settle_down(desk);

    assert_null(controller_session_find(desk->controller, first, 16));
}

/* Of more tasks than are known the one that left longest ago makes room, and in a record that says
 * so it is gone before the next one is there. */
DESK_TEST(a_task_that_gave_way_is_gone_from_the_records_too)
{
    wire_task_name name = WIRE_TASK_NAME_INIT;

    desk_begin(desk); /* given */
    name.job = (char *)"evaluator";
    for (uint32_t i = 0; i < CONTROLLER_TASKS_MAX; i++) {
        name.index = i;
        assert_non_null(controller_task_find_or_add(desk->controller, &name));
    }
    name.index = 0;
    controller_task_find(desk->controller, &name)->left_us =
        1; /* the others at 0, so task 1 before it */
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    desk_settle_down(desk);
    desk_compare(desk);

    desk_joined(desk, 1); /* when */

    name.index = 1; /* then */
    assert_null(controller_task_find(desk->controller, &name));
    assert_int_equal(desk->controller->tasks_pool.used, CONTROLLER_TASKS_MAX);
    desk_compare(desk);
}

/* No row says anything of them, but those that it was made of. */
DESK_TEST(sessions_that_a_controller_made_again_forgets_are_gone_from_the_records_too)
{
    uint8_t first[16];

    desk_begin(desk);
    for (uint32_t i = 0; i < CONTROLLER_SETTLED_MAX; i++) {
        desk_joined(desk, 100 + i);
        if (i == 0)
            memcpy(first, desk->session, 16);
        desk_leave(desk);
        desk_settle_down(desk);
    }
    desk_begin_again(desk);
    desk_settle_down(desk);
    assert_non_null(controller_session_find(desk->controller, first, 16));

    desk_joined(desk, 100 + CONTROLLER_SETTLED_MAX);
    desk_leave(desk);
    desk_settle_down(desk);

    assert_null(controller_session_find(desk->controller, first, 16));
    desk_compare(desk);
}

DESK_TEST(a_task_that_a_controller_made_again_forgets_is_gone_from_the_records_too)
{
    wire_task_name name = WIRE_TASK_NAME_INIT;

    desk_begin(desk);
    name.job = (char *)"evaluator";
    for (; name.index < CONTROLLER_TASKS_MAX; name.index++)
        assert_non_null(controller_task_find_or_add(desk->controller, &name));
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    desk_settle_down(desk);
    desk_begin_again(desk);
    desk_settle_down(desk);
    name.index = 0;
    controller_task_find(desk->controller, &name)->left_us =
        1; /* the others at 0, so task 1 before it */

    desk_joined(desk, 1);

    name.index = 1;
    assert_null(controller_task_find(desk->controller, &name));
    desk_compare(desk);
}

DESK_TEST(a_barrier_that_a_controller_made_again_forgets_is_gone_from_the_records_too)
{
    char name[16];

    desk_begin(desk);
    desk_join_as(desk, 0, 1);
    for (uint32_t i = 0; i <= CONTROLLER_BARRIERS_MAX; i++) {
        if (i == CONTROLLER_BARRIERS_MAX)
            desk_begin_again(desk);
        (void)snprintf(name, sizeof name, "%u", i);
        desk_come(desk, name, 0, 0);
        desk_settle_down(desk);
        desk->text[0] = '\0';
    }

    assert_null(controller_barrier_find(desk->controller, "0"));
    desk_compare(desk);
}

/* Its client was silent, and the next one was replaced. The records are compared at the end. */
DESK_TEST(how_a_session_ended_is_in_the_records)
{
    uint8_t silent[16], replaced[16];

    desk_begin(desk);
    desk_joined(desk, 101);
    memcpy(silent, desk->session, 16);
    for (uint32_t i = 0; i < 12; i++) {
        desk->now_us += 1000000;
        desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    }
    desk_settle_down(desk);
    desk_joined(desk, 1);
    memcpy(replaced, desk->session, 16);

    desk_joined(desk, 2);

    const struct controller_session *session =
        controller_session_find(desk->controller, silent, 16);
    assert_in_range(session->cause.silent_ms, 10000, 12000);
    session = controller_session_find(desk->controller, replaced, 16);
    assert_int_equal((int)session->cause.kind, WIRE_CLOSE_NEWER_ATTEMPT);
    assert_string_equal(session->cause.host, "node4");
    assert_int_equal(session->cause.pid, 2);
    session = controller_session_find(desk->controller, desk->session, 16);
    assert_string_equal(session->replaced.host, "node4");
    assert_int_equal(session->replaced.pid, 1);
}

/* ---- what is no record */

/* To synchronous step 1. */
static void contribute(struct desk *desk)
{
    wire_contributed one = WIRE_CONTRIBUTED_INIT;
    wire_contributed *all[] = {&one};
    wire_peer_report report = WIRE_PEER_REPORT_INIT;

    report.ps_incarnation = desk->config.incarnation;
    one.session_id = (wire_bytes){16, desk->session};
    one.step = 1;
    report.contributed = all;
    report.n_contributed = 1;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_REPORT, .report = &report});
    assert_int_equal(desk->controller->step_taken, 1);
}

/* Bytes that another disk has put there: refused, or taken for what they say. */
DESK_TEST(what_no_controller_wrote_does_no_harm)
{
    uint32_t refused = 0;

    desk->config.step_quorum = desk->config.step_members = 1;
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", true);
    desk_settle_down(desk);
    desk_come(desk, "alone", 0, 0);
    desk_come(desk, "both", 0, 1);
    desk_propose(desk, "grads", 3, SUMAC_ABORTED);
    contribute(desk);
    desk_delete(desk, "w");
    desk_leave(desk);
    desk_settle_down(desk);
    for (uint64_t at = 0; at < desk->written.count; at++) {
        const struct span whole = desk->written.records[at];
        for (size_t byte = 0; byte < whole.bytes; byte++) {
            uint8_t *const bytes = malloc(whole.bytes);
            struct controller *again = controller_create(&desk->config, &desk->memory);
            struct sumac_error error;
            assert_non_null(bytes);
            memcpy(bytes, whole.data, whole.bytes);
            bytes[byte] ^= 0x55;
            for (uint64_t i = 0; i < at; i++)
                assert_int_equal(
                    controller_replay(again, &desk->written.records[i], &error), SUMAC_OK);
            const struct span broken = {.data = bytes, .bytes = whole.bytes};
            refused += controller_replay(again, &broken, &error) != SUMAC_OK;
            const struct span cut = {.data = bytes, .bytes = byte};
            (void)controller_replay(again, &cut, &error);
            controller_destroy(again);
            free(bytes);
        }
    }
    assert_true(refused > 100);
}

/* Its own time has gone on since their last word, and theirs to speak has not. */
DESK_TEST(who_begins_again_takes_no_silence_before_that_from_anybody)
{
    desk_begin(desk);
    desk_begin_again(desk);
    assert_int_equal(desk->controller->first_join_us, 0); /* no member has come */
    desk_settle_down(desk);
    desk_joined(desk, 1);
    desk->now_us += UINT64_C(3600) * 1000000;
    desk_begin_again(desk);
    const struct controller *const controller = desk->controller;
    assert_int_not_equal(controller->first_join_us, 0);
    assert_int_equal(controller->sessions.first->joined_us, controller->first_join_us);
    assert_int_equal(controller->sessions.first->settling_us, controller->first_join_us);
    desk_settle_down(desk);
    desk->text[0] = '\0';

    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TICK});
    desk_renew(desk);
    desk_write_down(desk);

    desk_expect(desk, "renewed\n");
}

/* The heap, of which one take fails. */
struct short_memory {
    uint64_t takes, bad_take;
};

static void *take_but_one(void *context, size_t bytes)
{
    struct short_memory *memory = context;

    return ++memory->takes == memory->bad_take ? NULL : memory_take(&memory_heap, bytes);
}

static void give_back(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_give(&memory_heap, data, bytes);
}

/* False: a record was refused. */
static bool is_made_of_all(const struct desk *desk, struct controller *again)
{
    struct sumac_error error;
    bool taken = true;

    for (uint64_t i = 0; taken && i < desk->written.count; i++)
        taken = controller_replay(again, &desk->written.records[i], &error) == SUMAC_OK;
    return taken;
}

/* What was voided, too: a push of these would count if it were lost. */
DESK_TEST(a_controller_that_memory_is_short_for_is_made_of_all_records_or_refuses_one)
{
    struct short_memory short_memory = {.bad_take = 1};
    const struct memory memory = {
        .take = take_but_one, .give = give_back, .context = &short_memory};
    uint32_t refused = 0;

    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", true);
    desk_define(desk, "mine");
    desk_come(desk, "both", 0, 1);
    desk_propose(desk, "grads", 3, SUMAC_ABORTED);
    desk_leave(desk);
    desk_settle_down(desk);
    do {
        struct check check = {.text = ""};
        short_memory.takes = 0;
        struct controller *again = controller_create(&desk->config, &memory);
        if (again != NULL && is_made_of_all(desk, again))
            controller_replay_check(desk->controller, again, &check);
        else
            refused++;
        controller_destroy(again);
        if (!check_is_good(&check))
            fail_msg("take %d: %s", (int)short_memory.bad_take, check.text);
    } while (short_memory.takes >= short_memory.bad_take++);

    assert_true(refused > 5);
}

/* What is gone cannot go again. */
DESK_TEST(a_record_that_is_there_twice_is_refused_where_it_says_what_is_gone)
{
    uint32_t gone = 0;

    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", false);
    desk_propose(desk, "grads", 3, SUMAC_ABORTED);
    desk_settle_down(desk);
    desk_delete(desk, "w");
    desk_settle_down(desk);
    for (uint32_t i = 0; i <= CONTROLLER_BARRIERS_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        desk_come(desk, name, 0, 0);
    }
    desk_settle_down(desk);
    for (uint64_t at = 0; at < desk->written.count; at++) {
        struct controller *again = controller_create(&desk->config, &desk->memory);
        struct sumac_error error;
        for (uint64_t i = 0; i <= at; i++)
            assert_int_equal(controller_replay(again, &desk->written.records[i], &error), SUMAC_OK);
        const bool taken = controller_replay(again, &desk->written.records[at], &error) == SUMAC_OK;
        controller_destroy(again);
        if (desk->written.records[at].data[1] == 1) /* its first row */
            assert_false(taken);
        gone += desk->written.records[at].data[1];
    }
    assert_int_equal(gone, 3); /* a round of a collective, a variable, a barrier */
}
