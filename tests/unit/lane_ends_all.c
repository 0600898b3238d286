/* SPDX-License-Identifier: Apache-2.0 */
/* lane_ends_all.c -- how ps 0 ends the run: it tells the others first, whatever comes meanwhile. */
#include "lane_talk.h"

/* ---- ps 0 and another ps, which the test plays ---- */

/* ps 1 has taken the last order, answers it, and takes the next, until there is none or it is the
 * end. */
static void ps_1_answers(struct talk *talk)
{
    while (talk->ordered != 0 && !talk->ordered_end) {
        wire_peer_report report = WIRE_PEER_REPORT_INIT;
        const struct lane_event answer = {.kind = LANE_EVENT_REPORT, .ps = 1, .report = &report};
        const struct lane_event taken = {.kind = LANE_EVENT_PEER_UP, .ps = 1};
        report.answers = talk->ordered;
        report.ps_incarnation = 0x1001;
        talk->ordered = 0;
        talk_step(talk, &answer);
        talk_step(talk, &taken);
    }
}

/* Of worker 0, or of an observer whose session's id is all 2. */
static void join_at_ps_0(struct talk *talk, bool observer)
{
    static uint8_t nonces[2][16] = {{3}, {4}};
    const uint64_t twos = UINT64_C(0x0202020202020202);
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request join = WIRE_JOIN_REQUEST_INIT;
    struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .call = 1,
        .call_kind = LANE_CALL_JOIN,
        .request = &join.base,
        .random = {21, 22}};

    task.job = "worker";
    join.protocol_version = WIRE_PROTOCOL_VERSION;
    join.nonce = (wire_bytes){.len = sizeof nonces[0], .data = nonces[observer]};
    join.role = observer ? SUMAC__V1__ROLE__ROLE_OBSERVER : SUMAC__V1__ROLE__ROLE_MEMBER;
    join.task = observer ? NULL : &task;
    join.local_replicas = 1;
    if (observer)
        call.random[0] = call.random[1] = twos;

    talk_step(talk, &call);
}

/* ps 0 of a cluster that lists worker 0, which has joined. */
static void begin_as_ps_0(struct talk *talk, uint32_t ps_count)
{
    static const char *const jobs[] = {"worker"};
    static const uint32_t indices[] = {0};
    const struct lane_event up = {.kind = LANE_EVENT_PEER_UP, .ps = 1};
    struct lane_config config = talk_config();

    config.index = 0;
    config.ps_count = ps_count;
    config.members_jobs = jobs;
    config.members_indices = indices;
    config.member_count = 1;
    talk_start(talk, &config);
    if (ps_count > 1)
        talk_step(talk, &up);
    ps_1_answers(talk);
    talk_forget(talk);
    join_at_ps_0(talk, false);
    ps_1_answers(talk);
    talk_expect(talk, "reply JoinReply\n");
}

TALK_TEST(ps_0_obeys_its_own_orders_within_the_step) { begin_as_ps_0(talk, 1); }

static void leave_at_ps_0(struct talk *talk)
{
    uint64_t id[2] = {21, 22};
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 2, .call_kind = LANE_CALL_LEAVE, .request = &leave.base};

    leave.session_id = (wire_bytes){.len = sizeof id, .data = (uint8_t *)id};
    leave.done = true;

    talk_step(talk, &call);
}

static void end_is_answered(struct talk *talk)
{
    assert_true(talk->ordered_end);
    talk->ordered_end = false;
    ps_1_answers(talk);
}

TALK_TEST(sigterm_while_ps_0_tells_the_others_the_end_changes_neither)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    begin_as_ps_0(talk, 2);
    leave_at_ps_0(talk);
    ps_1_answers(talk);
    talk_expect(talk, "reply LeaveReply\n");

    talk_step(talk, &terminate);
    talk_tick(talk, 1000);
    talk_expect(talk, "");
    assert_int_equal(talk->ordered_exit_code, 0);
    end_is_answered(talk);

    talk_expect(talk, "exit 0 RUN_ENDED\n");
}

/* Its clients hear of it from the others first. */
TALK_TEST(while_ps_0_tells_the_end_no_line_speaks_of_a_sessions_lease)
{
    begin_as_ps_0(talk, 2);
    join_at_ps_0(talk, true);
    ps_1_answers(talk);
    const uint64_t observer = talk_push_stream(talk, 2, 1);
    leave_at_ps_0(talk);
    ps_1_answers(talk);
    assert_true(talk->ordered_end);
    assert_null(strstr(talk->text, "end of stream"));
    talk_forget(talk);
    talk->shows_logs = true;

    talk_hang_up(talk, observer);

    talk_expect(talk, "");
}

TALK_TEST(sigterm_waits_for_the_others_no_longer_than_it_may)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    begin_as_ps_0(talk, 2);
    leave_at_ps_0(talk);
    ps_1_answers(talk);
    talk_forget(talk);
    talk_step(talk, &terminate);

    for (int i = 0; i < 4; i++)
        talk_tick(talk, 1000);
    talk_expect(talk, "");
    talk_tick(talk, 1000);

    talk_expect(talk, "exit 0 RUN_ENDED\n");
}

TALK_TEST(sigterm_of_ps_0_ends_the_run_on_every_ps)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    begin_as_ps_0(talk, 2);

    talk_step(talk, &terminate);
    talk_expect(talk, "");
    assert_int_equal(talk->ordered_exit_code, 143);
    end_is_answered(talk);

    talk_expect(talk, "exit 143 TERMINATED\n");
}

/* Its part on ps 1 may be staged there, and then ps 1 waits for that client's commit or end. */
TALK_TEST(sigterm_of_ps_0_reaches_a_client_before_ps_1_has_answered)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    const float value = 1;
    const struct talk_part part = {.sequence = 1, .shards = 1, .values = &value, .count = 1};

    begin_as_ps_0(talk, 2); /* given */
    join_at_ps_0(talk, true);
    ps_1_answers(talk);
    const uint64_t stream = talk_push_stream(talk, 2, 1);
    talk_forget(talk);
    talk_step(talk, &terminate);
    assert_int_equal(talk->ordered_exit_code, 143);

    talk_part(talk, stream, &part); /* when */

    talk_expect(talk, "end of stream TERMINATED\n"); /* then */
}

/* It is the last one's: the run has ended when it is through. */
TALK_TEST(sigterm_of_ps_0_lets_a_leave_be_answered)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    begin_as_ps_0(talk, 2);
    leave_at_ps_0(talk);

    talk_step(talk, &terminate);
    ps_1_answers(talk);
    talk_expect(talk, "reply LeaveReply\n");
    end_is_answered(talk);

    talk_expect(talk, "exit 0 RUN_ENDED\n");
}

TALK_TEST(sigterm_of_ps_0_waits_for_no_settle_that_cannot_be_through)
{
    const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

    begin_as_ps_0(talk, 2);
    leave_at_ps_0(talk); /* ps 1 does not answer the close */
    talk_step(talk, &terminate);

    talk_tick(talk, 5000);

    talk_expect(talk, "failed TERMINATED\nexit 143 TERMINATED\n");
}
