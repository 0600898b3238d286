/* SPDX-License-Identifier: Apache-2.0 */
/* lane_quorum.c (test) -- synchronous steps of K of N: a step is made of what ps 0 says, on every
 * ps alike, and what comes later is late. */
#include "handlers.h"
#include "lane_members.h"

static struct members begin_quorum(struct talk *talk, uint32_t count, uint32_t quorum)
{
    talk->quorum = quorum;
    struct members members = begin(talk, count);

    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    return members;
}

TALK_TEST(a_step_is_made_of_what_ps_0_says)
{
    struct members members = begin_quorum(talk, 3, 2);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[3], 1, (float[]){4}, 1);
    talk_expect(talk, "staged 1\nreport 1 has come to 1\nstaged 1\nreport 3 has come to 1\n");
    assert_value_is(talk, &members, 0); /* two are enough, and it is not theirs to say */

    talk_take(talk, 1, "13");

    talk_expect(talk, "done 1 [1]\ndone 1 [1]\nreport 7\nreport step 1 over\n");
    assert_int_equal(talk->open_step, 2); /* both hear which step is the next */
    assert_value_is(talk, &members, 5);
}

/* Whose contribution ps 0 knows of from another ps. */
TALK_TEST(a_step_that_is_taken_waits_for_those_that_it_is_made_of)
{
    struct members members = begin_quorum(talk, 3, 2);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    const struct talk_part second = contribution(1, (float[]){2}, 1);
    talk_part(talk, members.push[2], &second);
    talk_forget(talk);
    talk_take(talk, 1, "12");
    talk_expect(talk, "report 7\n");
    contribute(talk, members.push[3], 1, (float[]){4}, 1); /* which ps 0 did not know of */
    talk_expect(talk, "staged 1\nreport 3 has come to 1\n");

    talk_commit(talk, members.push[2], 1, 0, 0);

    talk_expect(
        talk, "refused 1 STEP_LATE\ndone 1 voided\ndone 1 [1]\ndone 1 [1]\n"
              "report 2 has come to 1 step 1 over\n");
    assert_value_is(talk, &members, 3);
}

TALK_TEST(what_comes_late_is_refused_and_counts_nowhere)
{
    struct members members = begin_quorum(talk, 2, 1);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_take(talk, 1, "1");
    talk_forget(talk);

    contribute(talk, members.push[2], 1, (float[]){2}, 1);

    talk_expect(
        talk,
        "staged 1\nrefused 1 STEP_LATE\ndone 1 voided\nreport 2 has come to 1 with nothing\n");
    assert_non_null(strstr(talk->refused, "worker 2"));
    assert_non_null(strstr(talk->refused, "--step-deadline"));
    assert_value_is(talk, &members, 1);
    assert_int_equal(talk->lane->counts.late, 1);
    assert_int_equal(talk->lane->counts.refused, 1);
    const wire_stats_reply *const stats = talk_stats(talk);
    assert_int_equal(stats->n_sessions, 2);
    for (size_t i = 0; i < stats->n_sessions; i++)
        assert_int_equal(
            stats->sessions[i]->late, strcmp(stats->sessions[i]->task, "worker 2") == 0);
}

/* It would be late for ever else. */
TALK_TEST(who_was_late_goes_on_with_a_step_that_is_not_over)
{
    struct members members = begin_quorum(talk, 2, 1);
    struct talk_part part = contribution(1, (float[]){2}, 1);

    for (uint64_t step = 1; step <= 3; step++) {
        contribute(talk, members.push[1], step, (float[]){1}, 1);
        talk_take(talk, step, "1");
    }
    contribute(talk, members.push[2], 1, (float[]){2}, 1);
    talk_forget(talk);

    part = contribution(2, (float[]){2}, 1);
    part.step = 6; /* another ps may have ended one step more than this one */
    expect_refused(talk, members.push[2], &part, "WRONG_STEP", "step 6");
    talk_commit(talk, members.push[2], 2, 2, 0);
    part = contribution(3, (float[]){2}, 1);
    part.step = 5;
    talk_forget(talk);
    talk_part(talk, members.push[2], &part);
    talk_commit(talk, members.push[2], 3, 0, 0);
    talk_expect(talk, "staged 3\nreport 2 has come to 5\n");
    talk_take(talk, 4, "2");
    talk_take(talk, 5, "2");

    talk_expect(talk, "report 9\nreport step 4 over\ndone 3 [4]\nreport 10\nreport step 5 over\n");
    assert_value_is(talk, &members, 5);
}

/* However many it leaves out; and another ps says that one step more is over. */
TALK_TEST(who_comes_after_many_steps_is_not_far_ahead)
{
    struct lane_config config = talk_config();

    config.parts_per_session_max = 1;
    talk->quorum = 1;
    talk->step_members = 2;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_open(talk, 2);
    const uint64_t first = talk_push_stream(talk, 1, 1), second = talk_push_stream(talk, 2, 1);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    for (uint64_t step = 1; step <= 5; step++) {
        contribute(talk, first, step, (float[]){1}, 1);
        talk_take(talk, step, "1");
    }
    struct talk_part part = contribution(1, (float[]){2}, 1);
    part.step = 7;
    talk_forget(talk);

    talk_part(talk, second, &part);

    talk_expect(talk, "staged 1\n");
}

TALK_TEST(what_is_over_or_was_said_is_obeyed_again_by_doing_nothing)
{
    struct members members = begin_quorum(talk, 2, 1);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_take(talk, 1, "2"); /* it waits for that one */
    talk_forget(talk);
    talk_take(talk, 1, "12"); /* it is not so */
    talk_expect(talk, "report 7\n");
    contribute(talk, members.push[2], 1, (float[]){2}, 1);
    talk_forget(talk);

    talk_take(talk, 1, "1");

    talk_expect(talk, "report 8\n");
    assert_value_is(talk, &members, 2);
    assert_int_equal(talk->lane->step_over, 1);
    talk_take(talk, 2, "1");
    talk_forget(talk);
    talk_take(talk, 1, "1"); /* another one is taken by now */
    talk_expect(talk, "report 10\n");
}

TALK_TEST(a_step_that_is_not_the_next_is_not_taken)
{
    (void)begin_quorum(talk, 1, 1);

    talk_take(talk, 2, "1");

    talk_expect(talk, "report 5 error WRONG_STEP\n");
}

TALK_TEST(without_a_quorum_ps_0_takes_no_steps)
{
    struct members members = begin_quorum(talk, 2, 0);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_expect(talk, "staged 1\n");

    talk_take(talk, 1, "1");

    talk_expect(talk, "report 6 error WRONG_STEP\n");
    assert_value_is(talk, &members, 0);
}

TALK_TEST(a_voided_contribution_has_come_with_nothing)
{
    struct members members = begin_quorum(talk, 2, 1);
    const struct talk_part part = contribution(1, (float[]){1}, 1);

    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 1, 0);

    talk_expect(talk, "staged 1\ndone 1 voided\nreport 1 has come to 1 with nothing\n");
}

/* K of these would make a step that is refused, and who comes with something would be late. */
TALK_TEST(a_contribution_without_weight_has_come_with_nothing)
{
    struct members members = begin_quorum(talk, 2, 1);
    struct talk_part part = contribution(1, (float[]){1}, 1);

    part.zero_weight = true;
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);

    talk_expect(talk, "staged 1\nreport 1 has come to 1 with nothing\n");
}

TALK_TEST(who_has_come_is_said_over_reports)
{
    struct lane_config config = talk_config();

    config.sessions_max = talk->step_members = 70;
    talk->quorum = 1;
    talk_start(talk, &config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk->deaf = talk->controller;
    for (uint8_t i = 1; i <= 70; i++)
        talk_open(talk, i);
    for (uint8_t i = 1; i <= 70; i++) {
        const uint64_t stream = talk_push_stream(talk, i, 1);
        contribute(talk, stream, 1, (float[]){1}, 1);
    }
    talk_forget(talk);

    talk->deaf = 0;
    talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "has come to 1"), 70);
    assert_int_equal(talk_times_said(talk, "64 has come to 1"), 1);
    assert_int_equal(talk_times_said(talk, "report 65 has come to 1"), 1);
}

/* Its stream may have lost what was said. */
TALK_TEST(a_ps_0_that_says_hello_is_told_all_of_it_again)
{
    struct members members = begin_quorum(talk, 3, 2); /* the third comes to none */

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[2], 1, (float[]){1}, 1);
    talk_take(talk, 1, "12");
    contribute(talk, members.push[1], 2, (float[]){1}, 1);
    talk_forget(talk);

    talk_hang_up(talk, talk->controller);
    talk_hello(talk);

    assert_int_equal(talk_times_said(talk, "1 has come to 2"), 1);
    assert_int_equal(talk_times_said(talk, "2 has come to 1"), 1);
    assert_int_equal(talk_times_said(talk, "step 1 over"), 1);
}

/* What of it waits here may be in its step, or late: ps 0 knows which. */
TALK_TEST(the_end_of_a_session_says_what_it_has_contributed)
{
    struct members members = begin_quorum(talk, 2, 2);

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[2], 1, (float[]){1}, 1);
    talk_take(talk, 1, "12");
    contribute(talk, members.push[1], 2, (float[]){1}, 1);
    const struct talk_part uncommitted = contribution(3, (float[]){1}, 1);
    talk_part(talk, members.push[1], &uncommitted);
    talk_forget(talk);

    talk_close(talk, 1);
    talk_close(talk, 2);

    talk_expect(
        talk, "report 7 commit_through 2 made step 2 by 2\n"
              "report 8 commit_through 1 made step 1 by 0\n");
}

/* As when the controller beside it says so in the step that a pull is answered in: what was
 * answered lies in the blocks, and goes out after both. */
TALK_TEST(a_step_that_follows_another_writes_to_nothing_that_it_shows)
{
    struct lane_config config = talk_config();
    uint8_t id[16];
    wire_bytes named = talk_id(1, id);
    wire_take_step take = WIRE_TAKE_STEP_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    config.gathered_bytes_max = 1;
    talk->quorum = talk->step_members = 1;
    talk_start(talk, &config);
    talk_open(talk, 1);
    const struct members members = {
        .push = {0, talk_push_stream(talk, 1, 1)}, .pull = talk_pull_stream(talk, 0)};
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk->deaf = members.pull; /* no step is between */
    assert_value_is(talk, &members, 0);
    talk->deaf = 0;
    take.step = 1;
    take.session_ids = &named;
    take.n_session_ids = 1;
    order.take = &take;
    order.number = ++talk->orders;

    talk_step(
        talk, &(struct lane_event){
                  .kind = LANE_EVENT_ORDER,
                  .stream = talk->controller,
                  .order = &order,
                  .follows = true});

    assert_int_equal(talk->lane->step_over, 0);
    talk_forget(talk);
    talk_writable(talk, members.pull);
    talk_tick(talk, 0);
    talk_expect(talk, "done 1 [1]\nreport step 1 over\n");
    assert_value_is(talk, &members, 1);
}

TALK_TEST(a_wait_names_ps_0_until_it_has_taken_the_step)
{
    struct members members = begin_quorum(talk, 2, 2);
    char text[256];

    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    assert_non_null(strstr(lane_step_missing(talk->lane, text, sizeof text), "ps 0, which"));
    assert_non_null(strstr(text, "worker 2 "));

    talk_take(talk, 1, "12");

    assert_non_null(strstr(lane_step_missing(talk->lane, text, sizeof text), "worker 2 "));
}

TALK_TEST(a_quorum_is_not_said_to_do_without_a_member_that_has_never_joined)
{
    char text[256];

    talk->quorum = 1;
    struct members members = begin_with(talk, 1, 2);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);

    assert_non_null(strstr(
        lane_step_missing(talk->lane, text, sizeof text),
        "; the first step waits for all 2 members, even with --quorum 1"));
    assert_null(strstr(text, "--step-deadline"));
}

/* Whichever take fails, the contribution is late as before: a tick tries again. */
static void converse_late_without_memory(uint32_t takes)
{
    void *state = NULL;
    struct lane_config config = talk_config();

    assert_int_equal(talk_setup(&state), 0);
    struct talk *const talk = state;
    talk->quorum = 1;
    struct members members = begin_bare(talk, 2, 2, &config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    talk_take(talk, 1, "1");
    const struct talk_part late = contribution(1, (float[]){2}, 1);
    talk_part(talk, members.push[2], &late); /* given */
    talk_forget(talk);
    talk->scarce = talk->short_once = true;
    talk->takes_left = takes;

    talk_commit(talk, members.push[2], 1, 0, 0); /* when */
    talk->scarce = false;

    assert_true(talk_says_in_time(/* then */
                                  talk, "refused 1 STEP_LATE\ndone 1 voided\n",
                                  talk->now_us + 1000 * (uint64_t)config.lease_ms / 4));
    assert_int_equal(talk_teardown(&state), 0);
}

TEST(a_late_contribution_is_refused_though_memory_was_short_once)
{
    for (uint32_t takes = 0; takes < 8; takes++)
        converse_late_without_memory(takes);
}

/* A report of what has come was in line on a stream of ps 0 that broke. */
TALK_TEST(what_has_come_is_told_to_the_next_stream_of_ps_0)
{
    struct members members = begin_quorum(talk, 3, 2);

    talk->deaf = talk->controller; /* given */
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    contribute(talk, members.push[2], 1, (float[]){1}, 1);
    talk_hang_up(talk, talk->controller);
    talk->deaf = 0;
    contribute(talk, members.push[3], 1, (float[]){1}, 1); /* when */
    talk_forget(talk);
    talk_hello(talk);

    assert_non_null(strstr(talk->text, "1 has come to 1")); /* then */
    assert_non_null(strstr(talk->text, "2 has come to 1"));
    assert_non_null(strstr(talk->text, "3 has come to 1"));
}

/* ps 0 counts who has come on every ps, a closed session as well. */
TALK_TEST(what_has_come_of_a_closed_session_is_told_again)
{
    struct members members = begin_quorum(talk, 3, 2);

    contribute(talk, members.push[1], 1, (float[]){1}, 1); /* given */
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 0);
    talk_forget(talk);

    talk_hang_up(talk, talk->controller); /* when */
    talk_hello(talk);

    assert_int_equal(talk_times_said(talk, "1 has come to 1"), 1); /* then */
}

/* By the records of a ps that starts again: ps 0 may have been told, or another was. */
/* The report waits for its stream. Meanwhile more sessions are closed than are remembered. */
TALK_TEST(what_has_come_of_a_session_that_is_forgotten_is_not_told)
{
    struct lane_config config = talk_config();

    config.closed_sessions_max = 1;
    talk->quorum = 2;
    struct members members = begin_as(talk, 3, 3, config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    talk->deaf = talk->controller;
    talk_delete(talk, 4711); /* given: its answer is on its way */
    contribute(talk, members.push[1], 1, (float[]){1}, 1);
    for (uint8_t session = 1; session <= 2; session++) {
        talk_close(talk, session);
        talk_decide(talk, session, 0, 0);
    }
    talk_forget(talk);

    for (uint32_t i = 0; i < 10; i++) /* when ps 0 reads on */
        talk_writable(talk, talk->controller);

    assert_int_equal(talk_times_said(talk, "1 has come"), 0); /* then */
    assert_ptr_equal(talk->lane->closed_sessions.first, talk->lane->closed_sessions.last);
}

/* Worker 1 has come to a step that is over, worker 2 to the next one as well. The contribution of
 * worker 3 waits for its commit, that of worker 4 for another push. */
TALK_TEST(what_records_say_has_come_is_told_to_ps_0)
{
    struct members members = begin_quorum(talk, 4, 2);
    struct talk_part behind = contribution(1, (float[]){1}, 1);
    static const uint64_t come[] = {0, 1, 2, 0, 0};

    for (uint32_t m = 1; m <= 2; m++)
        contribute(talk, members.push[m], 1, (float[]){1}, 1);
    talk_take(talk, 1, "12");
    contribute(talk, members.push[2], 2, (float[]){1}, 1);
    talk_part(talk, members.push[3], &behind);
    behind.sequence = 2;
    behind.previous = 1; /* push 1 is missing */
    talk_part(talk, members.push[4], &behind);
    talk_commit(talk, members.push[4], 2, 0, 0);
    talk_forget(talk);
    struct lane *const again = talk_replayed(talk); /* given */

    lane_step_say_again(again); /* when */

    for (const struct lane_session *session = again->sessions.first; session != NULL; /* then */
         session = session->in_lane.next) {
        assert_int_equal(session->come_step, come[session->index]);
        assert_false(session->come_voided);
    }
    lane_destroy(again);
}
