/* SPDX-License-Identifier: Apache-2.0 */
/* session_cancel.c -- pushes that their caller cancels: before they are sent, before they are
 * committed, and too late. */
#include "session_talk.h"

static void cancel(struct talk *talk, uint64_t token)
{
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PUSH, .token = token});
}

static const wire_part *only_part(const struct talk *talk, uint32_t ps)
{
    const wire_push_request *request = talk_request(talk, ps);

    assert_non_null(request);
    assert_int_equal(request->n_parts, 1);
    return request->parts[0];
}

TALK_TEST(the_parts_of_a_cancelled_push_are_sent_again_without_bytes)
{
    talk_open(talk, 2);
    talk_push_out(talk, 70, 3);

    cancel(talk, 70);

    for (uint32_t ps = 0; ps < 2; ps++) {
        const wire_part *part = only_part(talk, ps);
        assert_int_equal(part->sequence, 1);
        assert_true(part->first && part->last && part->cancelled);
        assert_int_equal(part->bytes, 0);
        assert_int_equal(part->n_pieces, 0);
        assert_int_equal(talk_sent(talk, ps)->payload_count, 0);
    }
    talk_done_with(talk, 0, 1, 0, true);
    talk_done_with(talk, 1, 1, 0, true);
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED)); /* its caller was told at once */
}

TALK_TEST(the_caller_of_a_push_over_two_ps_is_told_at_once)
{
    talk_open(talk, 2);
    talk_push_out(talk, 70, 3);

    cancel(talk, 70);

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_non_null(pushed);
    assert_int_equal(pushed->token, 70);
    assert_int_equal(pushed->error.status, SUMAC_CANCELLED);
    assert_int_equal(pushed->error.reason, SUMAC_REASON_CANCELLED);
    cancel(talk, 70); /* again: the session has forgotten it */
    assert_null(talk_find(talk, SESSION_EFFECT_PUSHED));
}

TALK_TEST(the_caller_of_a_push_that_waits_for_its_number_is_told_at_once)
{
    (void)talk_join_member(talk, 2); /* given: no ps has said its grant */
    struct session_piece pieces[] = {{.ps = 0, .shard_id = 10}, {.ps = 1, .shard_id = 11}};
    talk_push(talk, 70, pieces, 2);

    cancel(talk, 70);

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_non_null(pushed);
    assert_int_equal(pushed->error.reason, SUMAC_REASON_CANCELLED);
}

/* A ps may have answered STAGED before it heard: the commit voids the push there, too. */
TALK_TEST(the_commit_names_a_cancelled_push_whatever_the_ps_answer)
{
    talk_open(talk, 2);
    talk_push_out(talk, 70, 3);
    talk_staged(talk, 0, 1);
    cancel(talk, 70);
    talk_writable(talk, 0);
    talk_writable(talk, 1);

    talk_staged(talk, 1, 1);

    const wire_push_request *request = talk_request(talk, 1);
    assert_non_null(request);
    assert_int_equal(request->commit->commit_through, 1);
    assert_int_equal(request->commit->n_voided, 1);
}

TALK_TEST(the_ps_of_a_push_with_its_own_commit_decides)
{
    talk_open(talk, 1);
    talk_push_out(talk, 70, 1);

    cancel(talk, 70);

    assert_true(only_part(talk, 0)->cancelled && only_part(talk, 0)->eager);
    talk_done(talk, 0, 1); /* then: it was quicker */
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.status, SUMAC_OK);
}

TALK_TEST(a_committed_push_is_not_cancelled)
{
    talk_open(talk, 2);
    talk_push_out(talk, 70, 3);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_writable(talk, 0);
    talk_writable(talk, 1);

    cancel(talk, 70);

    assert_null(talk_find(talk, SESSION_EFFECT_SEND_PUSH));
    talk_done(talk, 0, 1);
    talk_done(talk, 1, 1);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.status, SUMAC_OK);
}

TALK_TEST(after_a_break_a_cancelled_part_goes_out_once_and_without_bytes)
{
    talk_open(talk, 2);
    talk_push_out(talk, 70, 3);
    cancel(talk, 70);

    talk_reconnect(talk, 1);

    const wire_part *part = only_part(talk, 1);
    assert_true(part->cancelled);
    assert_int_equal(talk_sent(talk, 1)->payload_count, 0);
}

/* Its step is made without it, and its next contribution is for the next step. */
TALK_TEST(a_contribution_that_is_cancelled_before_it_has_a_number_takes_its_step)
{
    (void)talk_join_member(talk, 1); /* given: no ps has said its grant */
    struct session_piece piece = {.shard_id = 10};
    const struct session_push contribution = {
        .token = 70, .pieces = &piece, .piece_count = 1, .weight = 1, .synchronous = true};
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &contribution});

    cancel(talk, 70);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PUSHED)->error.reason, SUMAC_REASON_CANCELLED);
    talk_hello(talk, 0);
    talk_greet(talk, 0);
    const wire_part *part = only_part(talk, 0);
    assert_true(part->cancelled && part->synchronous);
    assert_int_equal(part->step, 1);
}
