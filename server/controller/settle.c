/* SPDX-License-Identifier: Apache-2.0 */
/* settle.c -- how a session ends (leave, lease), the same way on every ps.
 *
 * 1. CLOSE to every ps: from now on it takes nothing from the session, and reports its
 * commit_through and voided.
 * 2. The largest commit_through and the union of voided are the session's end: DECIDE to every ps.
 * 3. When all have confirmed, a leave is answered, and the task's next attempt may open.
 */

#include <assert.h>
#include <inttypes.h>

#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"
#include "catalogue.h"
#include "barrier.h"

/* ---- the end of a session ---- */

void controller_settle(
    struct controller *controller, struct controller_session *session,
    const struct close_cause *cause)
{
    assert(
        session->state == CONTROLLER_SESSION_OPENING || session->state == CONTROLLER_SESSION_OPEN);
    assert(session->leave_call == 0 || session->left);
    assert(session->voided == NULL); /* no ps has reported it yet */
    session->state = CONTROLLER_SESSION_CLOSING;
    session->cause = *cause;
    session->settling_us = controller->now_us;
    controller_row_changed(controller, &session->row);
    controller_calls_of_session_fail(controller, session);
    controller_barriers_of_session_fail(controller, session);
    controller_order_session(controller, session);
}

/* A ps is connected to its client: the join of the attempt that replaces it will say so. */
static void
note_replaced_lives(struct controller *controller, const struct controller_session *replaced)
{
    assert(replaced->state == CONTROLLER_SESSION_CLOSING);
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller) {
        if (!controller_session_is_earlier(replaced, session) ||
            session->replaced.attempt != replaced->attempt)
            continue;
        session->replaced.alive = session->replaced.silent_ms <= controller->config->lease_ms;
        controller_row_changed(controller, &session->row);
    }
}

bool controller_close_reported(
    struct controller *controller, struct controller_session *session,
    const wire_peer_report *report)
{
    assert(report->status == 0);
    const wire_close_report *close = report->close_report;
    if (close == NULL)
        return true;
    if (!controller_steps_close_reported(controller, session, close))
        return false;
    if (close->commit_through > session->final)
        session->final = close->commit_through;
    if (close->acked_through > session->acked_through)
        session->acked_through = close->acked_through;
    if (close->connected)
        note_replaced_lives(controller, session);
    if (!rule_holds(controller->config->broken, RULE_carry_refusals))
        return true;
    for (size_t i = 0; i < close->n_voided; i++)
        if (!controller_voided_add(controller, &session->voided, close->voided[i]))
            return false;
    return true;
}

void controller_close_complete(struct controller *controller, const struct controller_order *order)
{
    struct controller_session *session = order->session;

    assert(session->state == CONTROLLER_SESSION_CLOSING);
    session->state = CONTROLLER_SESSION_DECIDING;
    controller_row_changed(controller, &session->row);
    controller_order_session(controller, session);
    controller_steps_closed(controller, session);
}

/* Does every push that the client has reported count? If the client did not leave by itself, its
 * last_sequence must be the very last push: a client that reports no push may have lost some. */
static bool
lacks_none(const struct controller *controller, const struct controller_session *session)
{
    assert(session->state > CONTROLLER_SESSION_OPEN);
    if (session->left && session->last_sequence == 0)
        return true;
    if (!rule_holds(controller->config->broken, RULE_done_when_nothing_is_dropped))
        return true;
    return session->left ? session->last_sequence <= session->final
                         : session->last_sequence == session->final;
}

bool controller_left_as_done(
    const struct controller *controller, const struct controller_session *session)
{
    return session->done && lacks_none(controller, session);
}

static void answer_leave(struct controller *controller, struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_SETTLED);
    if (session->leave_call == 0)
        return;
    if (session->done && !lacks_none(controller, session)) {
        controller_fail(
            controller, session->leave_call, SUMAC_FAILED_PRECONDITION,
            wire_close_cause_reason(&session->cause),
            "%s leaves as done after push %" PRIu64 ", and its session was settled at push %" PRIu64
            "%s: it does not count as done; %s",
            session->label, session->last_sequence, session->final,
            session->last_sequence > session->final ? ", pushes after that were dropped" : "",
            wire_close_cause_remedy(&session->cause));
        session->leave_call = 0;
        return;
    }
    wire_leave_reply *reply = OUT_MESSAGE(controller->out, leave_reply);
    reply->final = session->final;
    controller_reply_or_fail(controller, session->leave_call, &reply->base);
    session->leave_call = 0;
}

static void remember_done(struct controller *controller, const struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_SETTLED);
    if (!controller_left_as_done(controller, session) || session->task == NULL)
        return;
    controller->some_left_done = true;
    controller_row_changed(controller, &controller->row);
    if (session->attempt == session->task->attempts)
        session->task->done = true;
    controller_row_changed(controller, &session->task->row);
}

void controller_leave_settled(struct controller *controller, struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_SETTLED);
    remember_done(controller, session);
    answer_leave(controller, session);
}

void controller_sessions_forget_oldest(struct controller *controller)
{
    uint32_t settled = 0;

    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        settled += session->state == CONTROLLER_SESSION_SETTLED && session->orders == 0;
    LIST_FOREACH_SAFE(struct controller_session, session, &controller->sessions, in_controller) {
        if (settled <= controller_settled_max(controller))
            return;
        if (session->state != CONTROLLER_SESSION_SETTLED || session->orders > 0 ||
            controller_steps_need(controller, session))
            continue;
        controller_session_forget(controller, session);
        settled--;
    }
}

void controller_decide_complete(struct controller *controller, struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_DECIDING);
    struct controller_task *task = session->task;
    assert(task == NULL || session->attempt <= task->attempts);
    session->state = CONTROLLER_SESSION_SETTLED;
    controller_row_changed(controller, &session->row);
    out_log(
        controller->out, "ps 0 settled the session of %s at push %" PRIu64, session->label,
        session->final);
    if (task != NULL) {
        controller_voided_drop(controller, &task->voided);
        task->final = session->final;
        task->acked_through = session->acked_through;
        task->left = session->left;
        task->left_us = controller->now_us;
        task->voided = session->voided;
        session->voided = NULL;
        controller_row_changed(controller, &task->row);
        controller->memberless_since_us = controller->now_us;
    }
    controller_voided_drop(controller, &session->voided); /* of an observer: never asked for */
    controller_leave_settled(controller, session);
    controller_creator_settled(controller, session);
    if (task != NULL)
        controller_barriers_settled(controller, task);
}

void controller_leaves_fail(struct controller *controller, const struct sumac_error *error)
{
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller) {
        if (session->leave_call != 0)
            controller_fail_with(controller, session->leave_call, error);
        session->leave_call = 0;
    }
}

/* ---- leases ---- */

void controller_leases_tick(struct controller *controller)
{
    const uint64_t lease_us = controller_ms(controller->config->lease_ms);

    LIST_FOREACH_SAFE(struct controller_session, session, &controller->sessions, in_controller) {
        assert(session->heard_us <= controller->now_us);
        if (controller->now_us - session->heard_us <= lease_us)
            continue;
        if (session->state == CONTROLLER_SESSION_WAITING && session->join_call == 0 &&
            controller_session_find_earlier(controller, session) == NULL) {
            controller_session_forget(controller, session);
            continue;
        }
        if (session->state != CONTROLLER_SESSION_OPEN)
            continue;
        out_log(
            controller->out, "ps 0 closes the session of %s: last heard from %s, its lease is %s",
            session->label, controller_ago(controller, session->heard_us),
            text_time_ms(controller->config->lease_ms).text);
        controller_settle(
            controller, session,
            &(struct close_cause){
                .kind = WIRE_CLOSE_LEASE_OVER,
                .silent_ms = controller_silent_ms(controller, session)});
    }
}

/* ---- room for large parts ---- */

/* Does any other session wait for room, on whatever ps? Reports come every quarter of a lease. */
static bool
others_wait(const struct controller *controller, const struct controller_session *session)
{
    const uint64_t while_us = controller_ms(controller->config->lease_ms) / 2;

    LIST_FOREACH(const struct controller_session, other, &controller->sessions, in_controller) {
        assert(other->room_wait_us <= controller->now_us);
        if (other != session && other->state == CONTROLLER_SESSION_OPEN &&
            other->room_wait_us != 0 && controller->now_us - other->room_wait_us <= while_us)
            return true;
    }
    return false;
}

void controller_room_reported(
    struct controller *controller, uint32_t ps, const wire_peer_report *report)
{
    struct controller_session *session = NULL;

    for (size_t i = 0; i < report->n_waiting; i++) {
        session =
            controller_session_find(controller, report->waiting[i].data, report->waiting[i].len);
        if (session != NULL)
            session->room_wait_us = controller->now_us;
    }
    for (size_t i = 0; i < report->n_stalled; i++) {
        session =
            controller_session_find(controller, report->stalled[i].data, report->stalled[i].len);
        if (session == NULL || session->state != CONTROLLER_SESSION_OPEN ||
            !others_wait(controller, session))
            continue;
        out_log(
            controller->out,
            "ps 0 closes the session of %s: pushes of others wait for room, and for two leases of "
            "%s each it neither sent the elements that ps %u asked for nor gave way",
            session->label, text_time_ms(controller->config->lease_ms).text, ps);
        controller_settle(controller, session, &(struct close_cause){.kind = WIRE_CLOSE_STALLED});
    }
}
