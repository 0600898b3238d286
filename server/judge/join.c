/* SPDX-License-Identifier: Apache-2.0 */
/* join.c -- Join: from the request to a session that every ps knows.
 *
 * 1. A retry (the same nonce) takes the place of the call before it, or is given the same answer
 * again.
 * 2. The attempt is counted; an earlier session of the same member task is settled.
 * 3. Once every ps has been met and no earlier session is left, every ps is told to open the
 * session.
 * 4. When all have answered, so is the caller.
 */
#include "quorum.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"

static bool is_earlier(const struct judge_session *other, const struct judge_session *session)
{
    return other != session && other->task != NULL && other->task == session->task &&
           other->state != JUDGE_SESSION_SETTLED;
}

static const struct judge_session *
find_earlier(const struct judge *judge, const struct judge_session *session)
{
    const struct judge_session *other = judge->sessions.first;

    while (other != NULL && !is_earlier(other, session))
        other = other->in_judge.next;
    return other;
}

bool judge_join_replaces(const struct judge *judge, const struct judge_session *session)
{
    return session->task != NULL && find_earlier(judge, session) != NULL;
}

/* ---- answering ---- */

/* False: no memory. */
static bool list_ps(struct judge *judge, wire_join_reply *reply)
{
    assert(judge->ps_count > 0);
    char **addresses = arena_take(&judge->said->arena, judge->ps_count * sizeof *addresses);
    uint64_t *incarnations =
        arena_take(&judge->said->arena, judge->ps_count * sizeof *incarnations);
    if (addresses == NULL || incarnations == NULL)
        return false;
    for (uint32_t ps = 0; ps < judge->ps_count; ps++) {
        addresses[ps] = judge->peers[ps].address;
        incarnations[ps] = judge->peers[ps].incarnation;
    }
    reply->n_ps_addresses = reply->n_ps_incarnations = judge->ps_count;
    reply->ps_addresses = addresses;
    reply->ps_incarnations = incarnations;
    return true;
}

/* False: no memory. */
static bool
list_previous(struct judge *judge, const struct judge_task *task, wire_join_reply *reply)
{
    if (task == NULL)
        return true;
    reply->previous_final = task->final;
    if (rule_holds(judge->config->broken, RULE_tell_acked_through))
        reply->previous_acked_through = task->acked_through;
    if (task->voided == NULL)
        return true;
    const size_t bytes = task->voided->count * sizeof(uint64_t);
    reply->previous_voided = arena_take(&judge->said->arena, bytes);
    if (reply->previous_voided == NULL)
        return false;
    memcpy(reply->previous_voided, task->voided->sequence, bytes);
    reply->n_previous_voided = task->voided->count;
    return true;
}

/* False: no memory. */
static bool
name_replaced(struct judge *judge, const struct replaced *replaced, wire_join_reply *reply)
{
    if (replaced->attempt == 0)
        return true;
    reply->replaced = arena_take(&judge->said->arena, sizeof *reply->replaced);
    if (reply->replaced == NULL)
        return false;
    wire_replaced_fill(replaced, reply->replaced);
    return true;
}

/* NULL: no memory. */
static const wire_message *make_reply(struct judge *judge, const struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_OPEN);
    wire_join_reply *reply = arena_take(&judge->said->arena, sizeof *reply);
    uint8_t *id = arena_take(&judge->said->arena, JUDGE_ID_BYTES);
    if (reply == NULL || id == NULL)
        return NULL;
    memcpy(id, session->id, JUDGE_ID_BYTES);
    *reply = (wire_join_reply)WIRE_JOIN_REPLY_INIT;
    reply->cluster_id = judge->cluster_id;
    reply->epoch = JUDGE_EPOCH;
    reply->session_id = (wire_bytes){JUDGE_ID_BYTES, id};
    reply->attempt = session->attempt;
    reply->lease_ms = judge->config->lease_ms;
    reply->clock = session->start_clock;
    reply->first_step = session->first_step;
    reply->step_members = judge_step_members(judge);
    reply->step_quorum = judge->config->step_quorum;
    reply->on_loss = (Sumac__V1__OnLoss)judge_on_loss(judge);
    reply->step_deadline_ms = judge->config->step_deadline_ms;
    reply->membership_epoch = judge->membership_epoch;
    reply->ps_lost_ms = judge->config->ps_lost_ms;
    const bool whole = list_ps(judge, reply) && list_previous(judge, session->task, reply) &&
                       name_replaced(judge, &session->replaced, reply);
    return whole ? &reply->base : NULL;
}

static void answer(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_OPEN);
    if (session->join_call != 0)
        judge_reply_or_fail(judge, session->join_call, make_reply(judge, session));
    session->join_call = 0;
}

static void refuse(
    struct judge *judge, struct judge_session *session, enum sumac_status status,
    enum sumac_reason reason, const char *text)
{
    assert(status != SUMAC_OK);
    if (session->join_call != 0)
        judge_fail(judge, session->join_call, status, reason, "%s", text);
    session->join_call = 0;
}

/* ---- opening ---- */

/* A task that was not one yet is a member of the steps to come; once the ps have been told the
 * members, that is a new membership. */
static void add_member(struct judge *judge, struct judge_task *task)
{
    assert(judge->membership_told <= judge->membership_epoch);
    if (!task->member && judge->membership_told == judge->membership_epoch)
        judge->membership_epoch++;
    judge_cluster_changed(judge);
    task->member = true;
    judge_task_changed(judge, task);
}

uint32_t judge_step_members(const struct judge *judge)
{
    const struct lane_config *config = judge->config;

    if (config->step_members != 0)
        return config->step_members;
    return config->members_partial ? 0 : config->member_count;
}

/* The first that come, each task once, are those that the steps begin with. */
static void number_initial(struct judge *judge, struct judge_session *session)
{
    if (session->task->joined || judge->initials >= judge_step_members(judge))
        return;
    session->initial = ++judge->initials;
    session->first_step = 1; /* add_member changes the cluster's row */
}

static void open_session(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_WAITING);
    assert(session->orders == 0);
    assert(judge->phase == JUDGE_RUNNING);
    session->state = JUDGE_SESSION_OPENING;
    if (session->task != NULL) {
        number_initial(judge, session);
        session->task->joined = true;
        session->task->done = false;
        judge->member_joined = true;
        add_member(judge, session->task);
    }
    judge_session_changed(judge, session);
    judge_order_open(judge, session);
}

void judge_joins_go_on(struct judge *judge)
{
    if (judge->phase != JUDGE_RUNNING || !judge_peers_all_met(judge))
        return;
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if (session->state == JUDGE_SESSION_WAITING && find_earlier(judge, session) == NULL)
            open_session(judge, session);
}

void judge_join_opened(
    struct judge *judge, struct judge_session *session, uint32_t ps, const wire_peer_report *report)
{
    if (report->clock > session->start_clock)
        session->start_clock = report->clock;
    if (report->seen_step > session->seen_step && report->seen_step < JUDGE_STEPS_MAX)
        session->seen_step = report->seen_step;
    if (report->status == 0 || session->state != JUDGE_SESSION_OPENING)
        return;
    refuse(
        judge, session, (enum sumac_status)report->status, (enum sumac_reason)report->reason,
        judge_text(judge, "ps %u cannot open the session: %s", ps, report->message));
    judge_settle(judge, session, &(struct close_cause){0}); /* its client has no session to close */
}

/* A member that comes later counts in the step after the largest that any ps has seen: each ps is
 * told before its client is. */
static bool lacks_first_step(const struct judge *judge, const struct judge_session *session)
{
    return session->task != NULL && session->first_step == 0 && judge_step_members(judge) != 0;
}

void judge_first_step_complete(struct judge *judge, struct judge_session *session)
{
    assert(session->first_step != 0 || session->state != JUDGE_SESSION_OPENING);
    judge_join_complete(judge, session);
}

void judge_join_complete(struct judge *judge, struct judge_session *session)
{
    if (session->state != JUDGE_SESSION_OPENING)
        return;
    if (lacks_first_step(judge, session)) {
        session->first_step = session->seen_step + 1;
        judge_session_changed(judge, session);
        judge_order_session(judge, JUDGE_ORDER_FIRST_STEP, session);
        return;
    }
    session->state = JUDGE_SESSION_OPEN;
    session->opened = true;
    judge_session_changed(judge, session);
    session->heard_us = judge->now_us;
    if (!judge_run_is_over(judge))
        judge_log(
            judge, "ps 0 opened the session of %s, attempt %" PRIu64, session->label,
            session->attempt);
    answer(judge, session);
    judge_steps_consider(judge);
}

/* ---- the request ---- */

static enum sumac_status check_phase(const struct judge *judge, struct sumac_error *error)
{
    if (judge->phase != JUDGE_RUNNING)
        return fail(
            error, status_of_end(judge->end_reason), judge->end_reason, "the run is over: %s",
            judge->end_text);
    if (judge->terminating)
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
            "ps 0 was told to stop and takes no more joins");
    return SUMAC_OK;
}

/* Whoever runs the cluster reads of it in the log. */
static void refuse_request(
    struct judge *judge, const struct judge_event *event, const wire_join_request *request,
    const struct sumac_error *error)
{
    judge_fail(
        judge, event->call, error->status, error->reason, "join of %s: %s",
        refused_joins_who(request).text, error->text);
    struct refused_line line;
    if (refused_joins_line(
            &judge->refused_joins, judge->now_us, judge->config->index, request, error->text,
            &line))
        judge_log(judge, "%s", line.text);
}

/* ---- a retry ---- */

static bool is_same_task(const struct judge_session *session, const wire_join_request *request)
{
    const char *job = request->task == NULL ? "" : request->task->job;
    const uint32_t index = job[0] == '\0' ? 0 : request->task->index;

    return session->role == (uint32_t)request->role && session->index == index &&
           strcmp(session->job, job) == 0;
}

/* Two clients with one session would each lose what the other pushes. */
static void refuse_nonce(
    struct judge *judge, const struct judge_event *event, const struct judge_session *session,
    const wire_join_request *request)
{
    struct sumac_error error = {0};

    (void)fail(
        &error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_NONCE_TAKEN,
        "its nonce is the one that %s%s has joined with: draw %d random bytes for each client",
        session->label, session->task == NULL && session->job[0] != '\0' ? ", as an observer," : "",
        JUDGE_ID_BYTES);
    refuse_request(judge, event, request, &error);
}

/* Answer a retry; false: the nonce is new. */
static bool
answer_retry(struct judge *judge, const struct judge_event *event, const wire_join_request *request)
{
    if (!rule_holds(judge->config->broken, RULE_join_nonce))
        return false;
    struct judge_session *session = judge_session_find_nonce(judge, request->nonce.data);
    if (session == NULL)
        return false;
    if (!is_same_task(session, request)) {
        refuse_nonce(judge, event, session, request);
        return true;
    }
    refuse(
        judge, session, SUMAC_ABORTED, SUMAC_REASON_TIMED_OUT,
        "a retry of this join took its place");
    if (session->state >= JUDGE_SESSION_CLOSING) {
        judge_fail_closed(judge, event->call, session);
        return true;
    }
    session->join_call = event->call;
    session->heard_us = judge->now_us;
    if (session->state == JUDGE_SESSION_OPEN)
        answer(judge, session);
    return true;
}

/* ---- the session ---- */

/* Members of the configuration, where this ps's own names none: those of every member's join
 * together, since a task may be told only itself. */
static void learn_members(struct judge *judge, const wire_join_request *request)
{
    if (judge->members_listed)
        return;
    judge->members_whole |= request->n_members > 0 && !request->members_partial;
    for (size_t i = 0; i < request->n_members; i++) {
        struct judge_task *task = judge_task_find_or_add(judge, request->members[i]);
        if (task == NULL)
            continue;
        task->listed = true;
        add_member(judge, task);
    }
}

static uint32_t silent_ms(const struct judge *judge, const struct judge_session *session)
{
    const uint64_t silent_us = judge->now_us - session->heard_us;

    assert(session->heard_us <= judge->now_us);
    return silent_us / 1000 < UINT32_MAX ? (uint32_t)(silent_us / 1000) : UINT32_MAX;
}

/* A client that waits for its join is alive. Whether a client with a session is alive is known when
 * the ps close that session: a process that was killed has no stream, though it has a lease. */
static void
note_replaced(const struct judge *judge, struct judge_session *session, struct judge_session *other)
{
    if (other->state >= JUDGE_SESSION_CLOSING)
        return;
    session->replaced = (struct replaced){
        .attempt = other->attempt,
        .pid = other->pid,
        .silent_ms = silent_ms(judge, other),
        .alive = other->join_call != 0};
    (void)text_print(session->replaced.host, sizeof session->replaced.host, "%s", other->host);
}

void judge_join_replaced_lives(struct judge *judge, const struct judge_session *replaced)
{
    assert(replaced->state == JUDGE_SESSION_CLOSING);
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next) {
        if (!is_earlier(replaced, session) || session->replaced.attempt != replaced->attempt)
            continue;
        session->replaced.alive = session->replaced.silent_ms <= judge->config->lease_ms;
        judge_session_changed(judge, session);
    }
}

/* A task has one session: those it had before are settled, or forgotten where no ps knows them. */
static void end_earlier(struct judge *judge, struct judge_session *session)
{
    assert(session->task != NULL);
    assert(session->state == JUDGE_SESSION_WAITING);
    struct judge_session *next = NULL;
    for (struct judge_session *other = judge->sessions.first; other != NULL; other = next) {
        next = other->in_judge.next;
        if (!is_earlier(other, session))
            continue;
        struct close_cause cause = {
            .kind = WIRE_CLOSE_NEWER_ATTEMPT, .attempt = session->attempt, .pid = session->pid};
        char text[CLOSE_CAUSE_TEXT_BYTES];
        note_replaced(judge, session, other);
        (void)text_print(cause.host, sizeof cause.host, "%s", session->host);
        (void)wire_close_cause_print(&cause, text);
        refuse(
            judge, other, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_REPLACED,
            judge_text(
                judge, "the join of %s is over%s; %s", other->label, text,
                wire_close_cause_remedy(&cause)));
        if (other->state == JUDGE_SESSION_WAITING) {
            judge_session_forget(judge, other);
        } else if (other->state < JUDGE_SESSION_CLOSING) {
            judge_log(judge, "ps 0 closes the session of %s%s", other->label, text);
            judge_settle(judge, other, &cause);
        }
    }
}

static void name_session(struct judge_session *session, const wire_join_request *request)
{
    assert(request->nonce.len == JUDGE_ID_BYTES);
    if (request->identity != NULL) { /* judge_join_check has looked at it */
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
    struct judge *judge, const struct judge_event *event, const wire_join_request *request,
    struct judge_task *task)
{
    assert((task != NULL) == (request->role == SUMAC__V1__ROLE__ROLE_MEMBER));
    struct judge_session *session = judge_session_add(judge, judge->random, request->nonce.data);
    if (session == NULL) {
        judge_fail(
            judge, event->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory for another session");
        return;
    }
    session->role = (uint32_t)request->role;
    session->state = JUDGE_SESSION_WAITING;
    session->join_call = event->call;
    session->heard_us = session->joined_us = judge->now_us;
    session->task = task;
    session->attempt = task == NULL ? ++judge->observers : ++task->attempts;
    if (task != NULL)
        judge_task_changed(judge, task);
    name_session(session, request);
    if (task != NULL && judge->first_join_us == 0) {
        judge->first_join_us = judge->now_us;
        judge_reports_begin(judge);
    }
    if (task != NULL)
        end_earlier(judge, session);
    judge_joins_go_on(judge);
}

void judge_join_call(struct judge *judge, const struct judge_event *event)
{
    const wire_join_request *request = (const wire_join_request *)event->request;
    struct sumac_error error = {0};
    struct judge_task *task = NULL;

    if (check_phase(judge, &error) != SUMAC_OK) { /* what ended the run was logged */
        judge_fail(judge, event->call, error.status, error.reason, "%s", error.text);
        return;
    }
    if (judge_join_check(judge, request, &error) != SUMAC_OK) {
        refuse_request(judge, event, request, &error);
        return;
    }
    if (answer_retry(judge, event, request))
        return;
    if (judge_join_admit(judge, request, &error) != SUMAC_OK) {
        refuse_request(judge, event, request, &error);
        return;
    }
    judge_peers_learn(judge, request);
    if (request->role == SUMAC__V1__ROLE__ROLE_MEMBER) {
        learn_members(judge, request);
        task = judge_task_find_or_add(judge, request->task);
        if (task == NULL) {
            judge_fail(
                judge, event->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
                "ps 0 has no memory for another task");
            return;
        }
    }
    start_join(judge, event, request, task);
}

void judge_joins_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text)
{
    assert(status != SUMAC_OK);
    struct judge_session *next = NULL;
    for (struct judge_session *session = judge->sessions.first; session != NULL; session = next) {
        next = session->in_judge.next;
        refuse(judge, session, status, reason, text);
        if (session->state == JUDGE_SESSION_WAITING)
            judge_session_forget(judge, session);
    }
}

void judge_joins_tick(struct judge *judge)
{
    const uint64_t patience_us = judge_ms(judge->config->ps_lost_ms);
    const uint32_t missing = judge_peers_missing(judge);
    struct judge_session *next = NULL;

    for (struct judge_session *session = judge->sessions.first;
         session != NULL && missing < judge->ps_count; session = next) {
        next = session->in_judge.next;
        if (session->state != JUDGE_SESSION_WAITING || session->task != NULL ||
            judge->now_us - session->heard_us < patience_us)
            continue;
        refuse(
            judge, session, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            judge_text(
                judge, "the join of %s has waited %s for %s; %s", session->label,
                text_time_ms(judge->config->ps_lost_ms).text, judge_peer_text(judge, missing),
                judge_peer_remedy(judge, missing)));
        judge_session_forget(judge, session);
    }
}
