/* SPDX-License-Identifier: Apache-2.0 */
/* controller_records.c -- what a controller writes down, and what waits until it is on disk. */

#include "unit.h"
#include "controller_desk.h"
#include "little_endian.h"
#include "row_bytes.h"

/* ---- what waits */

DESK_TEST(nobody_hears_of_a_cluster_before_it_is_on_disk)
{
    desk_start(desk);
    desk_expect(desk, "record 1\n");

    desk_write_down(desk);

    desk_expect(desk, "hello\n");
}

/* What it changes at once is one record; that all ps have opened it another. */
DESK_TEST(a_join_is_two_records_and_its_orders_and_its_answer_wait_for_them)
{
    desk_begin(desk);
    desk_join(desk, 1);
    desk_expect(desk, "record 2\n");

    desk_write_down(desk);
    desk_expect(desk, "membership\n");
    desk_obey(desk);
    desk_expect(desk, "open\nrecord 3\n");

    desk_write_down(desk);
    desk_expect(desk, "joined 1, before 0 voided 0\n");
}

DESK_TEST(a_create_is_three_records)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", false);
    desk_expect(desk, "record 4\n");

    desk_write_down(desk);
    desk_obey_one(desk);
    desk_expect(desk, "add\nrecord 5\n");
    desk_write_down(desk);
    desk_obey_one(desk);
    desk_expect(desk, "publish\nrecord 6\n");
    desk_write_down(desk);

    desk_expect(desk, "created 1 of 2 shards\n");
}

DESK_TEST(a_leave_is_three_records)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_leave(desk);
    desk_expect(desk, "record 4\n");

    desk_write_down(desk);
    desk_obey_one(desk);
    desk_expect(desk, "close\nrecord 5\n");
    desk_write_down(desk);
    desk_obey_one(desk);
    desk_expect(desk, "decide\nrecord 6\n");
    desk_write_down(desk);

    desk_expect(desk, "left at 7\n");
}

/* Of what is on disk already, and of what is not: it might be another's by then. */
DESK_TEST(an_answer_that_changes_nothing_waits_only_for_what_it_may_reveal)
{
    desk_begin(desk);
    desk_joined(desk, 1);

    desk_renew(desk);
    desk_expect(desk, "renewed\n");

    desk_create(desk, "w", false);
    desk_renew(desk);
    desk_delete(desk, "v");
    desk_expect(desk, "record 4\n");
    desk_write_down(desk);
    desk_expect(desk, "renewed\nfailed UNKNOWN_VARIABLE\nadd\n");
}

DESK_TEST(nobody_hears_that_the_run_is_over_before_that_is_on_disk)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TERMINATE});
    desk_join(desk, 2);
    desk_expect(desk, "record 4\n");

    desk_write_down(desk);

    desk_expect(desk, "failed TERMINATED\nover\nend\n");
    desk_renew(desk);
    desk_expect(desk, "failed TERMINATED\n");
}

/* And that every ps has heard it another. */
DESK_TEST(the_end_of_a_round_is_a_record_and_its_order_waits_for_it)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_propose(desk, "grads", 3, SUMAC_OK);
    desk_propose(desk, "grads", 3, SUMAC_DEADLINE_EXCEEDED); /* it is known */
    desk_expect(desk, "record 4\n");

    desk_write_down(desk);
    desk_expect(desk, "collective grads 3 OK\n");
    assert_int_equal(desk->controller->orders_pool.used, 0); /* it is a part of what it is of */
    desk_obey(desk);

    desk_expect(desk, "record 5\n");
    assert_int_equal(desk->controller->collective_count, 0);
    assert_true(desk->written.records[4].bytes < desk->written.records[3].bytes);
    desk_propose(desk, "grads", 4, SUMAC_OK);
    desk_compare(desk);
}

/* A disk that has written the first of two records has not written the second. */
DESK_TEST(each_answer_waits_for_its_own_record)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", false);
    desk_renew(desk);
    desk_create(desk, "v", false);
    desk_renew(desk);
    desk_expect(desk, "record 4\nrecord 5\n");

    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_RECORDED, .record = 4});

    desk_expect(desk, "renewed\nadd\n");
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_PEER_UP});
    desk_expect(desk, "");
    desk_write_down(desk);
    desk_expect(desk, "renewed\nadd\n");
}

/* What it says is what the session is by then. */
DESK_TEST(an_order_waits_for_what_has_changed_since_it_was_made)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", false);
    desk_write_down(desk);
    desk_leave(desk);
    desk_write_down(desk);
    desk_expect(desk, "record 4\nadd\nrecord 5\nfailed SESSION_CLOSED\n");
    desk_leave(desk); /* says it again */
    desk_expect(desk, "record 6\n");

    desk_obey_one(desk);

    desk_expect(desk, "record 7\n");
    desk_write_down(desk);
    desk_expect(desk, "failed TIMED_OUT\nclose\n");
}

DESK_TEST(whoever_has_gone_is_not_answered_when_the_record_is_on_disk)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", false);
    desk_renew(desk);
    desk->text[0] = '\0';

    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_CALL_CANCELLED, .call = desk->calls});
    desk_write_down(desk);

    desk_expect(desk, "add\n");
}

/* ---- without memory */

DESK_TEST(a_record_that_cannot_be_made_ends_the_ps_and_nobody_is_answered)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_leave(desk);
    desk_write_down(desk);
    desk_obey_one(desk);
    desk_write_down(desk);
    desk->text[0] = '\0';
    desk->controller->out->arena->bytes_max = 256; /* for its answer, and not for a row */

    desk_obey_one(desk);

    desk_expect(desk, "exit STATE_LOST\n");
    assert_int_equal(desk->written.count, 5);
}

/* It is told so, when what it asked for is on disk: it may ask again. */
DESK_TEST(an_answer_that_cannot_be_kept_fails_for_memory)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_renew(desk);
    desk_create(desk, "w", false);
    desk->text[0] = '\0';
    desk->out_of_memory = true;

    desk_renew(desk);

    desk_expect(desk, "");
    desk->out_of_memory = false;
    desk_write_down(desk);
    desk_expect(desk, "failed OUT_OF_MEMORY\nadd\n");
}

/* With the last member the run ends, and what somebody else waits for fails. */
DESK_TEST(an_answer_is_kept_when_its_step_fails_another_call_after_it)
{
    uint8_t member[16];
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;

    desk_begin(desk);
    desk_join_as(desk, 0, 1); /* the only one that is listed */
    memcpy(member, desk->session, sizeof member);
    desk_joined(desk, 100);
    desk_create(desk, "w", true);
    desk_settle_down(desk);
    desk_joined(desk, 101);
    desk_create(desk, "w", true); /* it waits for what the first observer is to assign */
    leave.session_id = (wire_bytes){sizeof member, member};
    leave.done = true;
    leave.last_sequence = 7;
    desk_step(
        desk, (struct lane_event){
                  .kind = LANE_EVENT_CALL,
                  .call = ++desk->calls,
                  .call_kind = LANE_CALL_LEAVE,
                  .request = &leave.base});
    desk_write_down(desk);
    desk_obey_one(desk);
    desk_write_down(desk);
    desk->text[0] = '\0';

    desk_obey_one(desk); /* the session is settled */

    assert_null(desk->controller->held.first->reply); /* which was in the step's memory */
    assert_ptr_not_equal(desk->controller->held.first, desk->controller->held.last);
    desk_write_down(desk);
    assert_non_null(strstr(desk->text, "left at 7\nfailed "));
}

DESK_TEST(answers_that_wait_are_kept_within_a_bound)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk->shards = PLACEMENT_SHARDS_MAX;
    desk_create(desk, "wide", false);
    desk_settle_down(desk);
    desk->shards = 0;
    desk_create(desk, "w", false);
    desk->shards = PLACEMENT_SHARDS_MAX;

    for (uint32_t i = 0; i < 300; i++)
        desk_create(desk, "wide", false);

    assert_true(desk->controller->held_bytes <= CONTROLLER_HELD_BYTES_MAX);
    assert_true(desk->controller->held_bytes > CONTROLLER_HELD_BYTES_MAX / 2);
    assert_int_equal(desk->controller->held_pool.used, 300);
    assert_true(controller_held_bytes_max(desk->controller) >= CONTROLLER_HELD_BYTES_MAX);
    desk->text[0] = '\0';
    desk_write_down(desk);
    assert_non_null(strstr(desk->text, "created 1 of 4096 shards\nfailed OUT_OF_MEMORY\n"));
}

/* ---- rows */

TEST(a_text_that_does_not_fit_or_has_a_nul_is_none)
{
    const struct {
        size_t bytes;
        const char *text;
        bool fits;
    } rows[] = {{3, "abc", true}, {4, "abcd", false}, {0, "", true}, {3, "a\0c", false}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t written[16];
        char text[4] = "---";

        little_endian_put(written, 8, rows[i].bytes);
        memcpy(written + 8, rows[i].text, rows[i].bytes);
        struct row_reader reader = {.at = written, .left = 8 + rows[i].bytes};

        row_take_text(&reader, text, 4);

        assert_int_equal(reader.failed, !rows[i].fits);
        if (rows[i].fits)
            assert_string_equal(text, rows[i].text);
    }
}

TEST(what_ends_before_its_bytes_do_is_none)
{
    const uint8_t written[16] = {1};

    for (size_t left = 0; left <= 9; left++) {
        struct row_reader number = {.at = written, .left = left};
        struct row_reader bytes = {.at = written, .left = left};

        (void)row_take_number(&number);
        (void)row_take_bytes(&bytes, 9);

        assert_int_equal(number.failed, left < 8);
        assert_int_equal(bytes.failed, left < 9);
    }
}

TEST(a_number_that_does_not_fit_its_field_is_none)
{
    struct object {
        bool flag;
        uint32_t word, kind;
        uint64_t number;
    };
    static const struct row_field flag = NUMBER(object, flag), word = NUMBER(object, word),
                                  number = NUMBER(object, number),
                                  kind = ENUMERATION(object, kind, 3);
    static const struct {
        const struct row_field *field;
        uint64_t value;
        bool fits;
    } rows[] = {
        {&flag, 1, true},
        {&flag, 2, false},
        {&word, UINT32_MAX, true},
        {&word, UINT64_C(1) << 32, false},
        {&number, UINT64_MAX, true},
        {&kind, 3, true},
        {&kind, 4, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t written[8];
        struct object object = {0};

        little_endian_put(written, 8, rows[i].value);
        struct row_reader reader = {.at = written, .left = 8};

        row_take_fields(&reader, rows[i].field, 1, &object);

        assert_int_equal(reader.failed, !rows[i].fits);
    }
}

DESK_TEST(an_arrival_that_is_said_again_is_no_record)
{
    desk_begin(desk);
    desk_join_as(desk, 0, 1);
    desk_come(desk, "both", 0, 1);
    desk_settle_down(desk);
    const uint64_t records = desk->written.count;

    desk_come(desk, "both", 1, 1);
    desk_settle_down(desk);

    assert_int_equal(desk->written.count, records);
}

/* Another controller is made of it at the end. */
DESK_TEST(a_barrier_of_as_many_tasks_as_may_be_is_in_the_records)
{
    wire_task_name names[WIRE_BARRIER_TASKS_MAX], *tasks[WIRE_BARRIER_TASKS_MAX];
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    desk_begin(desk);
    desk_joined(desk, 1);
    for (uint32_t i = 0; i < WIRE_BARRIER_TASKS_MAX; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = (char *)"worker";
        names[i].index = i;
        tasks[i] = &names[i];
    }
    request.session_id = (wire_bytes){16, desk->session};
    request.name = (char *)"all";
    request.tasks = tasks;
    request.n_tasks = WIRE_BARRIER_TASKS_MAX;

    desk_step(
        desk, (struct lane_event){
                  .kind = LANE_EVENT_CALL,
                  .call = ++desk->calls,
                  .call_kind = LANE_CALL_BARRIER,
                  .request = &request.base});

    desk_expect(desk, "record 4\n");
    assert_int_equal(desk->controller->barriers_by_name.count, 1);
}

/* ps 0 was told only itself, and will be when it begins again. */
DESK_TEST(ps_that_a_join_has_named_are_in_the_records)
{
    char *addresses[] = {(char *)"h0:1", (char *)"h1:1"};
    uint8_t nonce[16] = {1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    desk->config.ps_count = 0;
    task.job = (char *)"worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof nonce, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &task;
    request.ps_addresses = addresses;
    request.n_ps_addresses = 2;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_START, .random = {0, 9}});
    desk_step(
        desk, (struct lane_event){
                  .kind = LANE_EVENT_CALL,
                  .call = ++desk->calls,
                  .call_kind = LANE_CALL_JOIN,
                  .request = &request.base});
    struct controller *again = desk_replayed(desk);

    assert_int_equal(again->ps_count, 2);
    assert_string_equal(again->peers[0].address, "h0:1");
    assert_string_equal(again->peers[1].address, "h1:1");
    controller_destroy(again);
    desk->config.incarnation++;
    desk_begin_again(desk);
    assert_int_equal(desk->controller->peers[0].incarnation, desk->config.incarnation);
    assert_string_equal(desk->controller->peers[1].address, "h1:1");
}

static void report_assigned(struct desk *desk, uint64_t variable_id)
{
    wire_peer_report report = WIRE_PEER_REPORT_INIT;

    report.ps_incarnation = desk->config.incarnation;
    report.epoch = CONTROLLER_EPOCH;
    report.assigned = &variable_id;
    report.n_assigned = 1;
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_REPORT, .report = &report});
}

/* Those who wait for the value are answered, and a controller made again knows that it is there. */
DESK_TEST(what_is_assigned_is_so_in_the_records)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_create(desk, "w", true);
    desk_settle_down(desk);
    assert_non_null(strstr(desk->text, "assign"));
    const uint64_t before = desk->written.count;

    report_assigned(desk, 1);

    assert_int_equal(desk->written.count, before + 1);
    desk_write_down(desk);
    desk_compare(desk);
    report_assigned(desk, 1); /* again: nothing is new */
    assert_int_equal(desk->written.count, before + 1);
    desk_delete(desk, "w");
    report_assigned(desk, 1); /* while it goes */
    desk_settle_down(desk);
}
