/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c -- the calls of a session that lives on (renew) or ends (leave). */
#include "controller_members.h"

#include <assert.h>
#include <string.h>

#include "text.h"

void controller_renew_call(struct controller *controller, const struct lane_event *event)
{
    const wire_renew_request *request = (const wire_renew_request *)event->request;
    struct controller_session *session =
        controller_session_of_call(controller, event->call, &request->session_id);

    if (session == NULL)
        return;
    wire_renew_reply *reply = OUT_MESSAGE(controller->out, renew_reply);
    reply->epoch = CONTROLLER_EPOCH;
    reply->membership_epoch = controller->membership_epoch;
    controller_reply_or_fail(controller, event->call, &reply->base);
}

/* A replaced process says that it lives. After a few of them within a minute the present
 * one stays. */
static void count_replaced(struct controller *controller, struct controller_session *session)
{
    struct controller_task *task = session->task;

    assert(session->state != CONTROLLER_SESSION_WAITING);
    if (task == NULL || session->acknowledged || session->cause.kind != WIRE_CLOSE_NEWER_ATTEMPT)
        return;
    session->acknowledged = true;
    memmove(
        task->flapped_us, task->flapped_us + 1,
        sizeof task->flapped_us - sizeof task->flapped_us[0]);
    task->flapped_us[CONTROLLER_FLAPS_MAX - 1] = controller->now_us;
    if (task->contested || task->flapped_us[0] == 0 ||
        controller->now_us - task->flapped_us[0] > CONTROLLER_FLAPS_US)
        return;
    task->contested = true;
    out_log(
        controller->out,
        "ps 0 keeps the present process of %s: %u processes of it that live were replaced within "
        "%s; end all but one",
        session->label, CONTROLLER_FLAPS_MAX, text_time_ms(CONTROLLER_FLAPS_US / 1000u).text);
}

static void wait_for_settle(
    struct controller *controller, struct controller_session *session,
    const struct lane_event *event, const wire_leave_request *request)
{
    assert(session->state != CONTROLLER_SESSION_WAITING);
    if (session->leave_call != 0)
        controller_fail(
            controller, session->leave_call, SUMAC_ABORTED, SUMAC_REASON_TIMED_OUT,
            "a retry of this leave took its place");
    session->leave_call = event->call;
    session->done = request->done;
    /* A later call does not lower last_sequence: the client made that push. */
    if (request->done && request->last_sequence > session->last_sequence)
        session->last_sequence = request->last_sequence;
    controller_row_changed(controller, &session->row);
    if (session->state == CONTROLLER_SESSION_SETTLED) {
        controller_leave_settled(controller, session);
        controller_run_check(controller);
    } else if (session->state < CONTROLLER_SESSION_CLOSING) {
        out_log(controller->out, "%s leaves%s", session->label, request->done ? " as done" : "");
        session->left = true;
        controller_settle(controller, session, &(struct close_cause){.kind = WIRE_CLOSE_LEFT});
    }
    assert(session->leave_call == 0 || session->state != CONTROLLER_SESSION_SETTLED);
}

/* A leave of a session that was settled meanwhile is answered like the first: the work is done all
 * the same, unless pushes were dropped. */
void controller_leave_call(struct controller *controller, const struct lane_event *event)
{
    const wire_leave_request *request = (const wire_leave_request *)event->request;
    struct controller_session *session =
        controller_session_find(controller, request->session_id.data, request->session_id.len);

    if (session == NULL || session->state == CONTROLLER_SESSION_WAITING) {
        controller_fail(
            controller, event->call, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN,
            "ps 0 knows no such session: there is nothing to leave");
        return;
    }
    if (controller->phase != CONTROLLER_RUNNING && session->state != CONTROLLER_SESSION_SETTLED) {
        controller_fail_over(controller, event->call);
        return;
    }
    count_replaced(controller, session);
    wait_for_settle(controller, session, event, request);
}
