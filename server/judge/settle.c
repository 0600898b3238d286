/* SPDX-License-Identifier: Apache-2.0 */
/* settle.c -- how a session lives on (renew) and how it ends (leave, lease), the same way on every
 * ps.
 *
 * 1. CLOSE to every ps: from now on it takes nothing from the session, and reports its
 * commit_through and voided.
 * 2. The largest commit_through and the union of voided are the session's end: DECIDE to every ps.
 * 3. When all have confirmed, a leave is answered, and the task's next attempt may open.
 */
#include "quorum.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "text.h"

/* ---- the end of a session ---- */

void judge_settle(
    struct judge *judge, struct judge_session *session, const struct close_cause *cause)
{
    assert(session->state == JUDGE_SESSION_OPENING || session->state == JUDGE_SESSION_OPEN);
    assert(session->leave_call == 0 || session->left);
    assert(session->voided == NULL); /* nobody has reported it yet */
    session->state = JUDGE_SESSION_CLOSING;
    session->cause = *cause;
    session->settling_us = judge->now_us;
    judge_session_changed(judge, session);
    judge_calls_of_session_fail(judge, session);
    judge_barriers_of_session_fail(judge, session);
    judge_order_session(judge, JUDGE_ORDER_CLOSE, session);
}

bool judge_close_reported(
    struct judge *judge, struct judge_session *session, const wire_peer_report *report)
{
    assert(report->status == 0);
    const wire_close_report *close = report->close_report;
    if (close == NULL)
        return true;
    if (!judge_steps_close_reported(judge, session, close))
        return false;
    if (close->commit_through > session->final)
        session->final = close->commit_through;
    if (close->acked_through > session->acked_through)
        session->acked_through = close->acked_through;
    if (close->connected)
        judge_join_replaced_lives(judge, session);
    if (!rule_holds(judge->config->broken, RULE_carry_refusals))
        return true;
    for (size_t i = 0; i < close->n_voided; i++)
        if (!judge_voided_add(judge, &session->voided, close->voided[i]))
            return false;
    return true;
}

void judge_close_complete(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_CLOSING);
    session->state = JUDGE_SESSION_DECIDING;
    judge_session_changed(judge, session);
    judge_order_session(judge, JUDGE_ORDER_DECIDE, session);
    judge_steps_closed(judge, session);
}

/* Does every push count that its client has made, as far as it says? Of a session that something
 * else has settled it must name the very last one: a client that names none may have lost some. */
static bool lacks_none(const struct judge *judge, const struct judge_session *session)
{
    assert(session->state > JUDGE_SESSION_OPEN);
    if (session->left && session->last_sequence == 0)
        return true;
    if (!rule_holds(judge->config->broken, RULE_done_when_nothing_is_dropped))
        return true;
    return session->left ? session->last_sequence <= session->final
                         : session->last_sequence == session->final;
}

bool judge_left_as_done(const struct judge *judge, const struct judge_session *session)
{
    return session->done && lacks_none(judge, session);
}

static void answer_leave(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_SETTLED);
    if (session->leave_call == 0)
        return;
    if (session->done && !lacks_none(judge, session)) {
        judge_fail(
            judge, session->leave_call, SUMAC_FAILED_PRECONDITION,
            wire_close_cause_reason(&session->cause),
            "%s leaves as done after push %" PRIu64 ", and its session was settled at push %" PRIu64
            "%s: it does not count as done; %s",
            session->label, session->last_sequence, session->final,
            session->last_sequence > session->final ? ", pushes after that were dropped" : "",
            wire_close_cause_remedy(&session->cause));
        session->leave_call = 0;
        return;
    }
    wire_leave_reply *reply = arena_take(&judge->said->arena, sizeof *reply);
    if (reply != NULL) {
        *reply = (wire_leave_reply)WIRE_LEAVE_REPLY_INIT;
        reply->final = session->final;
    }
    judge_reply_or_fail(judge, session->leave_call, reply == NULL ? NULL : &reply->base);
    session->leave_call = 0;
}

static void remember_done(struct judge *judge, const struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_SETTLED);
    if (!judge_left_as_done(judge, session) || session->task == NULL)
        return;
    judge->some_left_done = true;
    judge_cluster_changed(judge);
    if (session->attempt == session->task->attempts)
        session->task->done = true;
    judge_task_changed(judge, session->task);
}

void judge_decide_complete(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_DECIDING);
    struct judge_task *task = session->task;
    assert(task == NULL || session->attempt <= task->attempts);
    session->state = JUDGE_SESSION_SETTLED;
    judge_session_changed(judge, session);
    judge_log(
        judge, "ps 0 settled the session of %s at push %" PRIu64, session->label, session->final);
    if (task != NULL) {
        judge_voided_drop(judge, &task->voided);
        task->final = session->final;
        task->acked_through = session->acked_through;
        task->left = session->left;
        task->left_us = judge->now_us;
        task->voided = session->voided;
        session->voided = NULL;
        judge_task_changed(judge, task);
        judge->memberless_since_us = judge->now_us;
    }
    judge_voided_drop(judge, &session->voided); /* of an observer: nobody will ask */
    remember_done(judge, session);
    answer_leave(judge, session);
    judge_creator_settled(judge, session);
    judge_joins_go_on(judge);
    if (task != NULL)
        judge_barriers_settled(judge, task);
    judge_run_check(judge);
    judge_sessions_forget_oldest(judge);
}

/* ---- renew and leave ---- */

void judge_renew_call(struct judge *judge, const struct judge_event *event)
{
    const wire_renew_request *request = (const wire_renew_request *)event->request;
    struct judge_session *session = judge_session_of_call(judge, event->call, &request->session_id);

    if (session == NULL)
        return;
    wire_renew_reply *reply = arena_take(&judge->said->arena, sizeof *reply);
    if (reply != NULL) {
        *reply = (wire_renew_reply)WIRE_RENEW_REPLY_INIT;
        reply->epoch = JUDGE_EPOCH;
        reply->membership_epoch = judge->membership_epoch;
    }
    judge_reply_or_fail(judge, event->call, reply == NULL ? NULL : &reply->base);
}

/* A replaced process says that it lives. After a few of them within a minute the present
 * one stays. */
static void count_replaced(struct judge *judge, struct judge_session *session)
{
    struct judge_task *task = session->task;

    assert(session->state != JUDGE_SESSION_WAITING);
    if (task == NULL || session->acknowledged || session->cause.kind != WIRE_CLOSE_NEWER_ATTEMPT)
        return;
    session->acknowledged = true;
    memmove(
        task->flapped_us, task->flapped_us + 1,
        sizeof task->flapped_us - sizeof task->flapped_us[0]);
    task->flapped_us[JUDGE_FLAPS_MAX - 1] = judge->now_us;
    if (task->contested || task->flapped_us[0] == 0 ||
        judge->now_us - task->flapped_us[0] > JUDGE_FLAPS_US)
        return;
    task->contested = true;
    judge_log(
        judge,
        "ps 0 keeps the present process of %s: %u processes of it that live were replaced within "
        "%s; end all but one",
        session->label, JUDGE_FLAPS_MAX, text_time_ms(JUDGE_FLAPS_US / 1000u).text);
}

static void wait_for_settle(
    struct judge *judge, struct judge_session *session, const struct judge_event *event,
    const wire_leave_request *request)
{
    assert(session->state != JUDGE_SESSION_WAITING);
    if (session->leave_call != 0)
        judge_fail(
            judge, session->leave_call, SUMAC_ABORTED, SUMAC_REASON_TIMED_OUT,
            "a retry of this leave took its place");
    session->leave_call = event->call;
    session->done = request->done;
    /* What it has said once is not unsaid: it made that push. */
    if (request->done && request->last_sequence > session->last_sequence)
        session->last_sequence = request->last_sequence;
    judge_session_changed(judge, session);
    if (session->state == JUDGE_SESSION_SETTLED) {
        remember_done(judge, session);
        answer_leave(judge, session);
        judge_run_check(judge);
    } else if (session->state < JUDGE_SESSION_CLOSING) {
        judge_log(judge, "%s leaves%s", session->label, request->done ? " as done" : "");
        session->left = true;
        judge_settle(judge, session, &(struct close_cause){.kind = WIRE_CLOSE_LEFT});
    }
    assert(session->leave_call == 0 || session->state != JUDGE_SESSION_SETTLED);
}

/* A leave of a session that was settled meanwhile is answered like the first: the work is done all
 * the same, unless pushes were dropped. */
void judge_leave_call(struct judge *judge, const struct judge_event *event)
{
    const wire_leave_request *request = (const wire_leave_request *)event->request;
    struct judge_session *session =
        judge_session_find(judge, request->session_id.data, request->session_id.len);

    if (session == NULL || session->state == JUDGE_SESSION_WAITING) {
        judge_fail(
            judge, event->call, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN,
            "ps 0 knows no such session: there is nothing to leave");
        return;
    }
    if (judge->phase != JUDGE_RUNNING && session->state != JUDGE_SESSION_SETTLED) {
        judge_fail(
            judge, event->call, status_of_end(judge->end_reason), judge->end_reason,
            "the run is over: %s", judge->end_text);
        return;
    }
    count_replaced(judge, session);
    wait_for_settle(judge, session, event, request);
}

void judge_leaves_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text)
{
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next) {
        if (session->leave_call != 0)
            judge_fail(judge, session->leave_call, status, reason, "%s", text);
        session->leave_call = 0;
    }
}

/* ---- leases ---- */

void judge_leases_tick(struct judge *judge)
{
    const uint64_t lease_us = judge_ms(judge->config->lease_ms);
    struct judge_session *next = NULL;

    for (struct judge_session *session = judge->sessions.first; session != NULL; session = next) {
        next = session->in_judge.next;
        assert(session->heard_us <= judge->now_us);
        if (judge->now_us - session->heard_us <= lease_us)
            continue;
        if (session->state == JUDGE_SESSION_WAITING && session->join_call == 0 &&
            !judge_join_replaces(judge, session)) {
            judge_session_forget(judge, session);
            continue;
        }
        if (session->state != JUDGE_SESSION_OPEN)
            continue;
        judge_log(
            judge, "ps 0 closes the session of %s: last heard from %s, its lease is %s",
            session->label, judge_ago(judge, session->heard_us),
            text_time_ms(judge->config->lease_ms).text);
        const uint64_t silent_ms = (judge->now_us - session->heard_us) / 1000u;
        judge_settle(
            judge, session,
            &(struct close_cause){
                .kind = WIRE_CLOSE_LEASE_OVER,
                .silent_ms = silent_ms < UINT32_MAX ? (uint32_t)silent_ms : UINT32_MAX});
    }
}

/* ---- room for large parts ---- */

/* Does any other session wait for room, on whatever ps? Reports come every quarter of a lease. */
static bool others_wait(const struct judge *judge, const struct judge_session *session)
{
    const uint64_t while_us = judge_ms(judge->config->lease_ms) / 2;

    for (const struct judge_session *other = judge->sessions.first; other != NULL;
         other = other->in_judge.next) {
        assert(other->room_wait_us <= judge->now_us);
        if (other != session && other->state == JUDGE_SESSION_OPEN && other->room_wait_us != 0 &&
            judge->now_us - other->room_wait_us <= while_us)
            return true;
    }
    return false;
}

void judge_room_reported(struct judge *judge, uint32_t ps, const wire_peer_report *report)
{
    struct judge_session *session = NULL;

    for (size_t i = 0; i < report->n_waiting; i++) {
        session = judge_session_find(judge, report->waiting[i].data, report->waiting[i].len);
        if (session != NULL)
            session->room_wait_us = judge->now_us;
    }
    for (size_t i = 0; i < report->n_stalled; i++) {
        session = judge_session_find(judge, report->stalled[i].data, report->stalled[i].len);
        if (session == NULL || session->state != JUDGE_SESSION_OPEN || !others_wait(judge, session))
            continue;
        judge_log(
            judge,
            "ps 0 closes the session of %s: pushes of others wait for room, and for two leases of "
            "%s each it neither sent the elements that ps %u asked for nor gave way",
            session->label, text_time_ms(judge->config->lease_ms).text, ps);
        judge_settle(judge, session, &(struct close_cause){.kind = WIRE_CLOSE_STALLED});
    }
}
