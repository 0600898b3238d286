/* SPDX-License-Identifier: Apache-2.0 */
/* join.c -- Join: from the request to a session that every ps knows.
 *
 * 1. A retry (the same nonce) takes the place of the call before it, or is given the same answer
 * again.
 * 2. The attempt is counted; an earlier session of the same member task is settled.
 * 3. Once every ps has been met and no earlier session is left, ps 0 orders every ps to open the
 * session.
 * 4. When all ps have answered, ps 0 answers the caller.
 */

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"

/* ---- answering ---- */

static void list_previous(
    struct controller *controller, const struct controller_task *task, wire_join_reply *reply)
{
    reply->previous_final = task->final;
    if (rule_holds(controller->config->broken, RULE_tell_acked_through))
        reply->previous_acked_through = task->acked_through;
    if (task->voided == NULL)
        return;
    reply->n_previous_voided = task->voided->count;
    reply->previous_voided =
        out_copy(controller->out, task->voided->sequence, task->voided->count * sizeof(uint64_t));
}

static const wire_message *
make_reply(struct controller *controller, const struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_OPEN);
    wire_join_reply *reply = OUT_MESSAGE(controller->out, join_reply);
    reply->cluster_id = controller->cluster_id;
    reply->epoch = CONTROLLER_EPOCH;
    reply->session_id = (wire_bytes){
        CONTROLLER_ID_BYTES, out_copy(controller->out, session->id, CONTROLLER_ID_BYTES)};
    reply->attempt = session->attempt;
    reply->lease_ms = controller->config->lease_ms;
    reply->clock = session->start_clock;
    reply->first_step = session->first_step;
    reply->step_members = controller_step_members(controller);
    reply->step_quorum = controller->config->step_quorum;
    reply->on_loss = (Sumac__V1__OnLoss)controller_on_loss(controller);
    reply->step_deadline_ms = controller->config->step_deadline_ms;
    reply->membership_epoch = controller->membership_epoch;
    reply->ps_lost_ms = controller->config->ps_lost_ms;
    reply->n_ps_addresses = reply->n_ps_incarnations =
        controller_list_ps(controller, &reply->ps_addresses, &reply->ps_incarnations);
    if (session->task != NULL)
        list_previous(controller, session->task, reply);
    if (session->replaced.attempt != 0) {
        reply->replaced = OUT_MESSAGE(controller->out, replaced);
        wire_replaced_fill(&session->replaced, reply->replaced);
    }
    return &reply->base;
}

static void answer(struct controller *controller, struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_OPEN);
    if (session->join_call != 0)
        controller_reply_or_fail(controller, session->join_call, make_reply(controller, session));
    session->join_call = 0;
}

static void refuse(
    struct controller *controller, struct controller_session *session, enum sumac_status status,
    enum sumac_reason reason, const char *text)
{
    assert(status != SUMAC_OK);
    if (session->join_call != 0)
        controller_fail(controller, session->join_call, status, reason, "%s", text);
    session->join_call = 0;
}

/* ---- opening ---- */

/* A task that was not one yet is a member of the steps to come; once the ps have been told the
 * members, that is a new membership. */
static void add_member(struct controller *controller, struct controller_task *task)
{
    assert(controller->membership_told <= controller->membership_epoch);
    if (!task->member && controller->membership_told == controller->membership_epoch)
        controller->membership_epoch++;
    controller_row_changed(controller, &controller->row);
    task->member = true;
    controller_row_changed(controller, &task->row);
}

/* The first that come, each task once, are those that the steps begin with. */
static void number_initial(struct controller *controller, struct controller_session *session)
{
    if (session->task->joined || controller->initials >= controller_step_members(controller))
        return;
    session->initial = ++controller->initials;
    session->first_step = 1; /* add_member changes the cluster's row */
}

static void open_session(struct controller *controller, struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_WAITING);
    assert(session->orders == 0);
    assert(controller->phase == CONTROLLER_RUNNING);
    session->state = CONTROLLER_SESSION_OPENING;
    if (session->task != NULL) {
        number_initial(controller, session);
        session->task->joined = true;
        session->task->done = false;
        controller->member_joined = true;
        add_member(controller, session->task);
    }
    controller_row_changed(controller, &session->row);
    controller_order_session(controller, session);
}

void controller_joins_go_on(struct controller *controller)
{
    if (controller->phase != CONTROLLER_RUNNING || !controller_peers_all_met(controller))
        return;
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller)
        if (session->state == CONTROLLER_SESSION_WAITING &&
            controller_session_find_earlier(controller, session) == NULL)
            open_session(controller, session);
}

void controller_join_opened(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    struct controller_session *session = order->session;

    if (report->clock > session->start_clock)
        session->start_clock = report->clock;
    if (report->seen_step > session->seen_step && report->seen_step < CONTROLLER_STEPS_MAX)
        session->seen_step = report->seen_step;
    if (report->status == 0 || session->state != CONTROLLER_SESSION_OPENING)
        return;
    refuse(
        controller, session, (enum sumac_status)report->status, (enum sumac_reason)report->reason,
        out_text(controller->out, "ps %u cannot open the session: %s", ps, report->message));
    controller_settle(
        controller, session, &(struct close_cause){0}); /* its client has no session to close */
}

/* A member that comes later counts in the step after the largest that any ps has seen: each ps is
 * told before its client is. */
static bool
lacks_first_step(const struct controller *controller, const struct controller_session *session)
{
    return session->task != NULL && session->first_step == 0 &&
           controller_step_members(controller) != 0;
}

void controller_join_complete(struct controller *controller, const struct controller_order *order)
{
    struct controller_session *session = order->session;

    assert(session->state != CONTROLLER_SESSION_WAITING);
    if (session->state != CONTROLLER_SESSION_OPENING)
        return;
    if (lacks_first_step(controller, session)) {
        session->first_step = session->seen_step + 1;
        controller_row_changed(controller, &session->row);
        controller_order_session(controller, session);
        return;
    }
    session->state = CONTROLLER_SESSION_OPEN;
    session->opened = true;
    controller_row_changed(controller, &session->row);
    session->heard_us = controller->now_us;
    if (controller->phase == CONTROLLER_RUNNING)
        out_log(
            controller->out, "ps 0 opened the session of %s, attempt %" PRIu64, session->label,
            session->attempt);
    answer(controller, session);
    if (controller->config->step_quorum > 0)
        controller_steps_consider(controller);
}

/* ---- the request ---- */

/* Whoever runs the cluster reads of it in the log. */
static void refuse_request(
    struct controller *controller, const struct lane_event *event, const wire_join_request *request,
    const struct sumac_error *error)
{
    controller_fail(
        controller, event->call, error->status, error->reason, "join of %s: %s",
        refused_joins_who(request).text, error->text);
    struct refused_line line;
    if (refused_joins_line(
            &controller->refused_joins, controller->now_us, controller->config->index, request,
            error->text, &line))
        out_log(controller->out, "%s", line.text);
}

/* ---- a retry ---- */

static bool is_same_task(const struct controller_session *session, const wire_join_request *request)
{
    const char *job = request->task == NULL ? "" : request->task->job;
    const uint32_t index = job[0] == '\0' ? 0 : request->task->index;

    return session->role == (uint32_t)request->role && session->index == index &&
           strcmp(session->job, job) == 0;
}

/* Two clients with one session would each lose what the other pushes. */
static void refuse_nonce(
    struct controller *controller, const struct lane_event *event,
    const struct controller_session *session, const wire_join_request *request)
{
    struct sumac_error error = {0};

    (void)fail_invalid(
        &error, SUMAC_REASON_NONCE_TAKEN,
        "its nonce is the one that %s%s has joined with: draw %d random bytes for each client",
        session->label, session->task == NULL && session->job[0] != '\0' ? ", as an observer," : "",
        CONTROLLER_ID_BYTES);
    refuse_request(controller, event, request, &error);
}

/* Answer a retry; false: the nonce is new. */
static bool answer_retry(
    struct controller *controller, const struct lane_event *event, const wire_join_request *request)
{
    if (!rule_holds(controller->config->broken, RULE_join_nonce))
        return false;
    struct controller_session *session =
        controller_session_find_nonce(controller, request->nonce.data);
    if (session == NULL)
        return false;
    if (!is_same_task(session, request)) {
        refuse_nonce(controller, event, session, request);
        return true;
    }
    refuse(
        controller, session, SUMAC_ABORTED, SUMAC_REASON_TIMED_OUT,
        "a retry of this join took its place");
    if (session->state >= CONTROLLER_SESSION_CLOSING) {
        controller_fail_closed(controller, event->call, session);
        return true;
    }
    session->join_call = event->call;
    session->heard_us = controller->now_us;
    if (session->state == CONTROLLER_SESSION_OPEN)
        answer(controller, session);
    return true;
}

/* ---- the session ---- */

/* If the configuration of ps 0 lists no members, the members are those that all joins list
 * together. A task's own configuration may list only that task. */
static void learn_members(struct controller *controller, const wire_join_request *request)
{
    if (controller->members_listed)
        return;
    controller->members_whole |= request->n_members > 0 && !request->members_partial;
    for (size_t i = 0; i < request->n_members; i++) {
        struct controller_task *task = controller_task_find_or_add(controller, request->members[i]);
        if (task == NULL)
            continue;
        task->listed = true;
        add_member(controller, task);
    }
}

/* A client that waits for its join is alive. Whether a client with a session is alive is known when
 * the ps close that session: a process that was killed has no stream, though it has a lease. */
static void note_replaced(
    const struct controller *controller, struct controller_session *session,
    struct controller_session *other)
{
    if (other->state >= CONTROLLER_SESSION_CLOSING)
        return;
    session->replaced = (struct replaced){
        .attempt = other->attempt,
        .pid = other->pid,
        .silent_ms = controller_silent_ms(controller, other),
        .alive = other->join_call != 0};
    (void)text_print(session->replaced.host, sizeof session->replaced.host, "%s", other->host);
}

/* A task has one session: those it had before are settled, or forgotten where no ps knows them. */
static void end_earlier(struct controller *controller, struct controller_session *session)
{
    assert(session->task != NULL);
    assert(session->state == CONTROLLER_SESSION_WAITING);
    LIST_FOREACH_SAFE(struct controller_session, other, &controller->sessions, in_controller) {
        if (!controller_session_is_earlier(other, session))
            continue;
        struct close_cause cause = {
            .kind = WIRE_CLOSE_NEWER_ATTEMPT, .attempt = session->attempt, .pid = session->pid};
        char text[CLOSE_CAUSE_TEXT_BYTES];
        note_replaced(controller, session, other);
        (void)text_print(cause.host, sizeof cause.host, "%s", session->host);
        (void)wire_close_cause_print(&cause, text);
        refuse(
            controller, other, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_REPLACED,
            out_text(
                controller->out, "the join of %s is over%s; %s", other->label, text,
                wire_close_cause_remedy(&cause)));
        if (other->state == CONTROLLER_SESSION_WAITING) {
            controller_session_forget(controller, other);
        } else if (other->state < CONTROLLER_SESSION_CLOSING) {
            out_log(controller->out, "ps 0 closes the session of %s%s", other->label, text);
            controller_settle(controller, other, &cause);
        }
    }
}

static void name_session(struct controller_session *session, const wire_join_request *request)
{
    assert(request->nonce.len == CONTROLLER_ID_BYTES);
    if (request->identity != NULL) { /* controller_join_check has looked at it */
        (void)text_print(session->host, sizeof session->host, "%s", request->identity->host);
        session->pid = request->identity->pid;
    }
    if (request->task != NULL && request->task->job[0] != '\0') {
        (void)text_print(session->job, sizeof session->job, "%s", request->task->job);
        session->index = request->task->index;
        (void)text_print_line(
            session->label, sizeof session->label, "%s %u", session->job, session->index);
    } else {
        (void)text_print(
            session->label, sizeof session->label, "observer %" PRIu64, session->attempt);
    }
}

static void start_join(
    struct controller *controller, const struct lane_event *event, const wire_join_request *request,
    struct controller_task *task)
{
    assert((task != NULL) == (request->role == SUMAC__V1__ROLE__ROLE_MEMBER));
    struct controller_session *session =
        controller_session_add(controller, event->random, request->nonce.data);
    if (session == NULL) {
        controller_fail(
            controller, event->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory for another session");
        return;
    }
    session->role = (uint32_t)request->role;
    session->state = CONTROLLER_SESSION_WAITING;
    session->join_call = event->call;
    session->heard_us = session->joined_us = controller->now_us;
    session->task = task;
    session->attempt = task == NULL ? ++controller->observers : ++task->attempts;
    if (task != NULL)
        controller_row_changed(controller, &task->row);
    name_session(session, request);
    if (task != NULL && controller->first_join_us == 0) {
        controller->first_join_us = controller->now_us;
        controller_reports_begin(controller);
    }
    if (task != NULL)
        end_earlier(controller, session);
    controller_joins_go_on(controller);
}

void controller_join_call(struct controller *controller, const struct lane_event *event)
{
    const wire_join_request *request = (const wire_join_request *)event->request;
    struct sumac_error error = {0};
    struct controller_task *task = NULL;

    if (controller->phase != CONTROLLER_RUNNING) { /* what ended the run was logged */
        controller_fail_over(controller, event->call);
        return;
    }
    if (controller->terminating) {
        controller_fail(
            controller, event->call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
            "ps 0 was told to stop and takes no more joins");
        return;
    }
    if (controller_join_check(controller, request, &error) == SUMAC_OK) {
        if (answer_retry(controller, event, request))
            return;
        (void)controller_join_admit(controller, request, &error);
    }
    if (error.status != SUMAC_OK) {
        refuse_request(controller, event, request, &error);
        return;
    }
    controller_peers_learn(controller, request);
    if (request->role == SUMAC__V1__ROLE__ROLE_MEMBER) {
        learn_members(controller, request);
        task = controller_task_find_or_add(controller, request->task);
        if (task == NULL) {
            controller_fail(
                controller, event->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
                "ps 0 has no memory for another task");
            return;
        }
    }
    start_join(controller, event, request, task);
}

void controller_joins_fail(struct controller *controller, const struct sumac_error *error)
{
    LIST_FOREACH_SAFE(struct controller_session, session, &controller->sessions, in_controller) {
        refuse(controller, session, error->status, error->reason, error->text);
        if (session->state == CONTROLLER_SESSION_WAITING)
            controller_session_forget(controller, session);
    }
}

void controller_joins_tick(struct controller *controller)
{
    const uint64_t patience_us = controller_ms(controller->config->ps_lost_ms);
    const uint32_t missing = controller_peers_missing(controller);

    if (missing == controller->ps_count)
        return;
    LIST_FOREACH_SAFE(struct controller_session, session, &controller->sessions, in_controller) {
        if (session->state != CONTROLLER_SESSION_WAITING || session->task != NULL ||
            controller->now_us - session->heard_us < patience_us)
            continue;
        refuse(
            controller, session, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            out_text(
                controller->out, "the join of %s has waited %s for %s%s", session->label,
                text_time_ms(controller->config->ps_lost_ms).text,
                controller_peer_text(controller, missing),
                controller_peer_remedy(controller, missing)));
        controller_session_forget(controller, session);
    }
}
