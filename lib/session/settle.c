/* SPDX-License-Identifier: Apache-2.0 */
/* settle.c -- a session that was closed: which of its pushes count is asked for, and ps 0 learns
 * that a replaced process lives. */
#include "deeds.h"

#define ACKNOWLEDGE_MS UINT64_C(1000) /* how long a replaced client waits for ps 0 to hear it */

const wire_message *leave_compose(struct session *session, const struct unary *call)
{
    (void)call;
    assert(session->phase == PHASE_LEAVING || session->acknowledging);
    wire_leave_request *leave = step_take(session, sizeof *leave);
    if (leave == NULL)
        return NULL;
    *leave = (wire_leave_request)WIRE_LEAVE_REQUEST_INIT;
    leave->session_id = session_id_bytes(session);
    leave->done = session->leave_done && !session->acknowledging;
    leave->last_sequence = session->state.last_sequence;
    return &leave->base;
}

void session_say_ended(struct session *session)
{
    assert(session->phase == PHASE_OVER);
    effect_add(session, SESSION_EFFECT_ENDED)->error = session->end;
}

static void acknowledged(
    struct session *session, const struct unary *call, const wire_message *reply,
    const struct sumac_error *error)
{
    (void)call;
    (void)reply;
    (void)error;
    session->acknowledging = false;
    if (session->phase == PHASE_OVER)
        session_say_ended(session);
}

static const struct unary_kind acknowledge_call = {
    .service = WIRE_SESSIONS,
    .method = WIRE_SESSIONS_LEAVE,
    .once = true,
    .compose = leave_compose,
    .over = acknowledged};

void session_acknowledge(struct session *session)
{
    session->acknowledging = !session->leave_called;
    if (session->acknowledging)
        call_begin(session, &acknowledge_call, 0, session->now_us + ACKNOWLEDGE_MS * 1000);
}

void session_settle(struct session *session, const struct sumac_error *why)
{
    assert(session->phase != PHASE_OVER);
    if (session->phase == PHASE_SETTLING)
        return;
    session->phase = PHASE_SETTLING;
    session->settling_us = session->now_us;
    session->end = *why;
    if (why->reason == SUMAC_REASON_REPLACED)
        session_acknowledge(session);
    effect_wake(session, session->now_us + patience_us(session));
}

void session_closed_without_end(struct session *session, const struct sumac_error *error)
{
    struct sumac_error why;

    assert(session->phase == PHASE_OPEN);
    (void)fail(
        &why, error->status, error->reason,
        "%.300s (which of the pushes under way count was not said)", error->text);
    session_settle(session, &why);
}

void session_heard(struct session *session, const struct sumac_error *error)
{
    if (session->phase == PHASE_OPEN && error->reason == SUMAC_REASON_REPLACED)
        session_closed_without_end(session, error);
}
