/* SPDX-License-Identifier: Apache-2.0 */
/* end.c -- a session is closed by ps 0, and ends. */
#include "deeds.h"

#include "close_cause.h"

void session_closed(struct session *session, const wire_closed *closed)
{
    assert(session->phase != PHASE_OVER);
    const struct close_cause cause = wire_close_cause_of(closed->cause);
    if (session->phase == PHASE_LEAVING) { /* the leave's answer says the rest, and is asked for */
        session->leave_heard |= cause.kind == WIRE_CLOSE_LEFT;
        return;
    }
    const enum sumac_reason reason = wire_close_cause_reason(&cause);
    const enum sumac_status status =
        reason == SUMAC_REASON_REPLACED ? SUMAC_FAILED_PRECONDITION : SUMAC_ABORTED;
    const char *remedy = wire_close_cause_remedy(&cause);
    struct sumac_error error;
    char text[CLOSE_CAUSE_TEXT_BYTES];
    if (closed->decided) {
        (void)fail(
            &error, status, reason, "ps 0 closed this session at push %" PRIu64 "%s; %s",
            closed->final, wire_close_cause_print(&cause, text), remedy);
        session_end(session, &error, closed);
        return;
    }
    (void)fail(
        &error, status, reason,
        "ps 0 closed this session%s, and did not say which of the pushes under way count; %s",
        wire_close_cause_print(&cause, text), remedy);
    session_settle(session, &error);
}

void session_end(
    struct session *session, const struct sumac_error *error, const wire_closed *closed)
{
    if (session->phase == PHASE_OVER)
        return;
    session->phase = PHASE_OVER;
    session->end = error == &session->end ? session->end : *error;
    if (session->config.reader || session->link_count == 0)
        closed = NULL;
    calls_end(session);
    session->acknowledging = false;
    if (session->end.reason == SUMAC_REASON_REPLACED)
        session_acknowledge(session);
    pushes_end(session, closed);
    pulls_end(session);
    streams_close(session);
    if (!session->acknowledging)
        session_say_ended(session);
}
