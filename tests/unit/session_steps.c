/* SPDX-License-Identifier: Apache-2.0 */
/* session_steps.c (test) -- synchronous pushes: a part on every ps, steps in their order, and
 * nothing that is committed past one that is not done. */
#include "session_talk.h"

static uint8_t bytes[8];

/* A contribution with a piece for one ps, and, with `pieces` 0, for none. */
static void contribute(struct talk *talk, uint64_t token, uint32_t ps, uint32_t pieces)
{
    const struct session_piece piece = talk_piece(ps, 10 + ps, bytes, sizeof bytes);
    const struct session_push push = {
        .token = token, .pieces = &piece, .piece_count = pieces, .weight = 3, .synchronous = true};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
}

static const wire_part *sent_part(const struct talk *talk, uint32_t ps)
{
    const wire_push_request *request = talk_request(talk, ps);

    return request == NULL || request->n_parts == 0 ? NULL : request->parts[0];
}

static const wire_commit *sent_commit(const struct talk *talk, uint32_t ps)
{
    const wire_push_request *request = talk_request(talk, ps);

    return request == NULL ? NULL : request->commit;
}

static void writable(struct talk *talk, uint32_t ps_count)
{
    for (uint32_t ps = 0; ps < ps_count; ps++)
        talk_writable(talk, ps);
}

/* In ticks that are no sleep. */
static void pass(struct talk *talk, uint64_t ms)
{
    for (uint64_t passed_ms = 0; passed_ms < ms; passed_ms += 100) {
        talk->now_us += 100000;
        talk_step(talk, (struct session_event){.kind = SESSION_EVENT_TICK});
        if (talk_called(talk, WIRE_SESSIONS_RENEW) != NULL)
            talk_renewed(talk);
    }
}

TALK_TEST(a_contribution_has_a_part_on_every_ps)
{
    talk_open(talk, 3);

    contribute(talk, 1, 1, 1);

    for (uint32_t ps = 0; ps < 3; ps++) {
        const wire_part *part = sent_part(talk, ps);
        assert_non_null(part);
        assert_true(part->first && part->last && part->synchronous && !part->eager);
        assert_int_equal(part->step, 1);
        assert_true(part->weight >= 3 && part->weight <= 3);
        assert_int_equal(part->n_pieces, ps == 1);
        assert_int_equal(part->bytes, ps == 1 ? sizeof bytes : 0);
    }
}

TALK_TEST(steps_are_numbered_from_the_members_first_one_on)
{
    talk_found(talk, 1);

    talk->first_step = 7;
    talk_joined(talk, 1);
    talk_hello(talk, 0);
    talk_greet(talk, 0);
    assert_int_equal(talk_state(talk).first_step, 7);

    contribute(talk, 1, 0, 1);
    assert_int_equal(sent_part(talk, 0)->step, 7);
    talk_writable(talk, 0);
    talk_push_to(talk, 2, 1); /* an ordinary one is of no step */
    assert_int_equal(sent_part(talk, 0)->step, 0);
    talk_writable(talk, 0);
    contribute(talk, 3, 0, 0);

    assert_int_equal(sent_part(talk, 0)->step, 8);
    assert_int_equal(talk_state(talk).last_step, 8);
}

/* On one ps, too: it may have to wait for the other members. */
TALK_TEST(a_contribution_is_never_eager)
{
    talk_open(talk, 1);

    contribute(talk, 1, 0, 1);
    assert_false(sent_part(talk, 0)->eager);
    talk_writable(talk, 0);
    talk_staged(talk, 0, 1);

    assert_int_equal(sent_commit(talk, 0)->commit_through, 1);
}

TALK_TEST(nothing_is_committed_past_a_contribution_that_is_not_done)
{
    talk_open(talk, 2);

    contribute(talk, 1, 0, 1);
    writable(talk, 2);
    talk_push_out(talk, 2, 1);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 0, 2);
    talk_staged(talk, 1, 1);
    assert_int_equal(talk_state(talk).commit_through, 1);
    writable(talk, 2);

    talk_done(talk, 0, 1); /* on one ps only */
    assert_int_equal(talk_state(talk).commit_through, 1);
    talk_done(talk, 1, 1);

    assert_int_equal(talk_state(talk).commit_through, 2);
}

/* Its next contribution would be late. */
TALK_TEST(a_session_knows_the_first_step_that_is_not_over)
{
    talk_open(talk, 1);
    struct session_state told;

    contribute(talk, 1, 0, 1);
    assert_int_equal(sent_part(talk, 0)->step, 1);
    talk->open_step = 5;
    talk_done(talk, 0, 1);
    session_read(talk->session, &told);
    assert_int_equal(told.open_step, 5);
    writable(talk, 1);

    const struct session_piece piece = talk_piece(0, 10, bytes, sizeof bytes);
    struct session_push push = {
        .token = 2,
        .pieces = &piece,
        .piece_count = 1,
        .weight = 3,
        .synchronous = true,
        .step_least = told.open_step};
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    assert_int_equal(sent_part(talk, 0)->step, 5);
    writable(talk, 1);
    push.token = 3; /* what was heard is older than what was made since */
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});

    assert_int_equal(sent_part(talk, 0)->step, 6);
}

TALK_TEST(what_is_pushed_after_one_that_is_not_done_is_not_eager)
{
    talk_open(talk, 1);

    contribute(talk, 1, 0, 1);
    talk_writable(talk, 0);
    talk_staged(talk, 0, 1);
    talk_writable(talk, 0);
    talk_push_to(talk, 2, 1);
    assert_false(sent_part(talk, 0)->eager);
    talk_writable(talk, 0);
    talk_staged(talk, 0, 2);
    talk_done(talk, 0, 1);
    talk_writable(talk, 0);

    talk_push_to(talk, 3, 1);

    assert_true(sent_part(talk, 0)->eager);
}

/* It waits for other members, and they may take long: but what a ps has not even staged it owes. */
TALK_TEST(a_ps_where_a_contribution_waits_is_not_lost)
{
    talk_open(talk, 1);

    contribute(talk, 1, 0, 1);
    talk_writable(talk, 0);
    talk_staged(talk, 0, 1);
    talk_writable(talk, 0);

    pass(talk, 10 * LOST_MS);
    assert_false(talk_state(talk).ended);
    talk_push_out(talk, 2, 1);
    pass(talk, 2 * LOST_MS);

    assert_true(talk_state(talk).ended);
}

TALK_TEST(a_refused_contribution_is_voided_and_holds_back_like_any)
{
    talk_open(talk, 2);

    contribute(talk, 1, 0, 1);
    writable(talk, 2);
    contribute(talk, 2, 0, 1);
    writable(talk, 2);
    talk_refused(talk, 0, 1);
    talk_staged(talk, 1, 1);
    writable(talk, 2);
    talk_staged(talk, 0, 2);
    talk_staged(talk, 1, 2);
    assert_int_equal(talk_state(talk).commit_through, 1);

    talk_done_with(talk, 0, 1, 0, true);
    talk_done_with(talk, 1, 1, 0, true);

    assert_int_equal(talk_state(talk).commit_through, 2);
}

/* ---- pulls at a step */

static void pull_at(struct talk *talk, uint64_t at_step)
{
    const struct session_piece piece = talk_piece(0, 10, bytes, sizeof bytes);
    const struct session_pull wanted = {
        .token = 99,
        .pieces = &piece,
        .piece_count = 1,
        .after_own_pushes = true,
        .at_step = at_step};

    talk_pull(talk, &wanted);
    talk_pull_writable(talk, 0);
}

static const wire_pull_request *asked(const struct talk *talk)
{
    return talk_find(talk, SESSION_EFFECT_SEND_PULL)->pull_request;
}

static void refuse_pull(
    struct talk *talk, uint64_t request, enum sumac_status status, enum sumac_reason reason,
    uint64_t step)
{
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    answer.request = request;
    answer.last = true;
    answer.status = (uint32_t)status;
    answer.reason = (Sumac__V1__Reason)reason;
    answer.message = "no";
    answer.step = step;
    talk_pull_answer(talk, 0, &answer);
}

static bool waits_at(const struct talk *talk, uint64_t token, uint32_t *ps, uint64_t *step)
{
    return session_find_step(talk->session, token, ps, step);
}

TALK_TEST(a_ps_that_waits_for_others_is_known_with_the_step)
{
    talk_open(talk, 2);
    uint32_t ps = 9;
    uint64_t step = 9;

    contribute(talk, 1, 0, 1);
    contribute(talk, 2, 0, 1);
    writable(talk, 2);
    talk_staged(talk, 0, 1);
    assert_false(waits_at(talk, 1, &ps, &step)); /* for ps 1 to stage it */
    talk_staged(talk, 1, 1);
    assert_true(waits_at(talk, 1, &ps, &step));
    assert_int_equal(ps, 0);
    assert_int_equal(step, 1);
    assert_false(waits_at(talk, 2, &ps, &step)); /* behind the first */
    assert_false(waits_at(talk, 3, &ps, &step));

    talk_done(talk, 0, 1);
    assert_true(waits_at(talk, 1, &ps, &step));
    assert_int_equal(ps, 1);
    talk_done(talk, 1, 1);

    assert_false(waits_at(talk, 1, &ps, &step));
}

TALK_TEST(what_pushes_alone_waits_with_no_step)
{
    talk_open(talk, 1);
    const struct session_piece piece = talk_piece(0, 10, bytes, sizeof bytes);
    const struct session_push push = {.token = 1, .pieces = &piece, .piece_count = 1};
    uint32_t ps;
    uint64_t step;

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    talk_staged(talk, 0, 1);

    assert_false(waits_at(talk, 1, &ps, &step));
}

TALK_TEST(a_pull_of_nothing_at_a_step_asks_one_ps)
{
    talk_open(talk, 2);
    const struct session_wait wait = {.ps = 1, .at_step = 3};
    const struct session_pull wanted = {.token = 99, .asks = &wait, .timeout_ms = 500};

    talk_pull(talk, &wanted);
    talk_pull_writable(talk, 1);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_SEND_PULL)->ps, 1);
    assert_int_equal(asked(talk)->n_pieces, 0);
    assert_int_equal(asked(talk)->at_step, 3);
}

/* It ends when the step does. */
TALK_TEST(a_pull_of_no_variable_waits_for_its_step_on_ps_0)
{
    talk_open(talk, 2);
    const struct session_pull wanted = {.token = 99, .at_step = 3};

    talk_pull(talk, &wanted);

    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_OPEN_STREAM)->ps, 0);
}

/* It may have pushed for the next one already. */
TALK_TEST(a_pull_at_a_step_waits_for_that_and_for_no_push)
{
    talk_open(talk, 1);

    contribute(talk, 1, 0, 1);

    pull_at(talk, 7);
    assert_int_equal(asked(talk)->at_step, 7);
    assert_int_equal(asked(talk)->after_sequence, 0);
    refuse_pull(talk, asked(talk)->request, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_SHARD, 0);

    pull_at(talk, 0);
    assert_int_equal(asked(talk)->at_step, 0);
    assert_int_equal(asked(talk)->after_sequence, 1);
}

TALK_TEST(the_newest_step_that_an_answer_said_is_known)
{
    talk_open(talk, 1);

    pull_at(talk, 3);
    refuse_pull(talk, asked(talk)->request, SUMAC_OUT_OF_RANGE, SUMAC_REASON_STEP_OVER, 9);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.reason, SUMAC_REASON_STEP_OVER);
    assert_int_equal(talk_state(talk).newest_step, 9);

    pull_at(talk, 3); /* another ps is not as far */
    refuse_pull(talk, asked(talk)->request, SUMAC_OUT_OF_RANGE, SUMAC_REASON_STEP_OVER, 8);

    assert_int_equal(talk_state(talk).newest_step, 9);
}

/* Another try would come to nothing else. */
TALK_TEST(a_step_that_is_never_over_is_asked_for_once)
{
    talk_open(talk, 1);

    pull_at(talk, 3);
    refuse_pull(talk, asked(talk)->request, SUMAC_ABORTED, SUMAC_REASON_MEMBER_LOST, 2);

    const struct session_effect *over = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_non_null(over);
    assert_int_equal(over->error.status, SUMAC_ABORTED);
    assert_int_equal(over->error.reason, SUMAC_REASON_MEMBER_LOST);
}
