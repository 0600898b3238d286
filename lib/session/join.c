/* SPDX-License-Identifier: Apache-2.0 */
/* join.c -- a session begins, keeps its lease, and leaves. */
#include "deeds.h"

#include <string.h>

#include "identity.h"

static void mint_nonce(struct session *session)
{
    memcpy(session->nonce, session->event->random, sizeof session->nonce);
}

static wire_task_name *
take_names(struct session *session, uint32_t count, wire_task_name ***pointers)
{
    wire_task_name *names = step_take(session, count * sizeof *names);

    *pointers = step_take(session, count * sizeof **pointers);
    for (uint32_t i = 0; names != NULL && *pointers != NULL && i < count; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        (*pointers)[i] = &names[i];
    }
    return *pointers == NULL ? NULL : names;
}

static const wire_message *compose_join(struct session *session, const struct unary *call)
{
    assert(session->phase == PHASE_JOINING);
    const struct session_config *config = &session->config;
    wire_join_request *join = step_take(session, sizeof *join);
    wire_task_name **members;
    wire_task_name *names = take_names(session, config->member_count + 1, &members);
    wire_identity *identity = step_take(session, sizeof *identity);
    if (join == NULL || names == NULL || identity == NULL)
        return NULL;
    if (call->failures > 0 && !holds(session, RULE_join_nonce))
        mint_nonce(session);
    *join = (wire_join_request)WIRE_JOIN_REQUEST_INIT;
    join->protocol_version = WIRE_PROTOCOL_VERSION;
    join->nonce = (wire_bytes){.data = session->nonce, .len = sizeof session->nonce};
    join->role = (Sumac__V1__Role)config->role;
    for (uint32_t i = 0; i < config->member_count; i++) {
        names[i].job = (char *)(uintptr_t)config->members_jobs[i];
        names[i].index = config->members_indices[i];
    }
    if (config->job[0] != '\0') {
        join->task = &names[config->member_count];
        join->task->job = (char *)(uintptr_t)config->job;
        join->task->index = config->task;
    }
    join->local_replicas = config->local_replicas;
    join->n_ps_addresses = config->ps_count;
    join->ps_addresses = (char **)(uintptr_t)config->ps_addresses;
    join->n_members = config->member_count;
    join->members = members;
    join->members_partial = config->members_partial;
    if (config->members_addresses != NULL) {
        join->n_member_addresses = config->member_count;
        join->member_addresses = (char **)(uintptr_t)config->members_addresses;
    }
    wire_identity_fill(&config->identity, identity);
    join->identity = identity;
    join->step_members = config->step_members;
    join->step_quorum = config->step_quorum;
    join->on_loss = (Sumac__V1__OnLoss)config->on_loss;
    join->cluster_id = session->state.cluster_id;
    return &join->base;
}

/* A ps that was tried in vain for so long is named by its address. */
static struct sumac_error name_unanswered(
    const struct session *session, const char *what_it_did_not, const struct sumac_error *error)
{
    struct sumac_error named = *error;

    if (error->reason == SUMAC_REASON_UNSPECIFIED && is_worth_retrying(error))
        (void)fail(
            &named, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "ps 0 at %s did not %s within %s (%.200s)", ps_address(session, 0), what_it_did_not,
            text_time_ms(session->config.ps_lost_ms).text, error->text);
    return named;
}

/* The client says more than ps 0 does about a ps that is still missing. */
static void fail_join(struct session *session, const struct sumac_error *error)
{
    struct sumac_error named = name_unanswered(session, "open a session at every ps", error);

    if (named.reason == SUMAC_REASON_PS_MISSING)
        (void)find_missing(session, &named);
    session_end(session, &named, NULL);
}

static uint64_t third_of_lease_us(const struct session *session)
{
    assert(!session->config.reader);
    return (uint64_t)session->state.lease_ms * 1000 / 3;
}

static void joined(
    struct session *session, const struct unary *call, const wire_message *message,
    const struct sumac_error *error)
{
    (void)call;
    assert(session->phase == PHASE_JOINING);
    if (error != NULL) {
        fail_join(session, error);
        return;
    }
    const wire_join_reply *reply = (const wire_join_reply *)message;
    if (reply->session_id.len != sizeof session->state.session_id || reply->n_ps_addresses == 0 ||
        reply->n_ps_addresses > SESSION_PS_MAX || reply->lease_ms == 0) {
        (void)fail(
            &session->end, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps 0 answered the join with %zu bytes of session id, %zu ps and a lease of %" PRIu32
            " ms",
            reply->session_id.len, reply->n_ps_addresses, reply->lease_ms);
        session_end(session, &session->end, NULL);
        return;
    }
    find_end(session);
    if (!links_learn(session, reply->ps_addresses, reply->n_ps_addresses))
        return;
    memcpy(session->state.session_id, reply->session_id.data, sizeof session->state.session_id);
    session->state.cluster_id = reply->cluster_id;
    session->state.epoch = reply->epoch;
    session->state.attempt = reply->attempt;
    session->state.membership_epoch = reply->membership_epoch;
    session->state.previous_final = reply->previous_final;
    session->state.replaced = wire_replaced_of(reply->replaced);
    session->state.clock = session->steps_finished = reply->clock;
    session->state.first_step = reply->first_step;
    session->state.last_step = reply->first_step > 0 ? reply->first_step - 1 : 0;
    session->state.step_members = reply->step_members;
    session->state.step_quorum = reply->step_quorum;
    session->state.on_loss = (uint32_t)reply->on_loss;
    session->state.step_deadline_ms = reply->step_deadline_ms;
    session->state.lease_ms = reply->lease_ms;
    if (reply->ps_lost_ms > 0)
        session->config.ps_lost_ms = reply->ps_lost_ms;
    session->sent_us = session->now_us;
    session->phase = PHASE_OPEN;
    (void)effect_add(session, SESSION_EFFECT_JOINED);
    for (uint32_t i = 0; i < session->link_count; i++) {
        if (i < reply->n_ps_incarnations)
            session->links[i].incarnation = reply->ps_incarnations[i];
        stream_open(session, &session->links[i], SESSION_PUSH_STREAM);
    }
    effect_wake(session, session->now_us + third_of_lease_us(session));
    links_check(session);
}

static const struct unary_kind join_call = {
    .service = WIRE_SESSIONS,
    .method = WIRE_SESSIONS_JOIN,
    .compose = compose_join,
    .over = joined};

void join_begin(struct session *session)
{
    assert(session->phase == PHASE_FOUND);
    if (session->config.reader) {
        find_end(session);
        session->phase = PHASE_OPEN;
        (void)effect_add(session, SESSION_EFFECT_JOINED);
        return;
    }
    session->phase = PHASE_JOINING;
    session->patience_until_us = session->now_us + patience_us(session);
    mint_nonce(session);
    call_begin(session, &join_call, 0, session->patience_until_us);
}

static void left(struct session *session)
{
    assert(session->phase == PHASE_LEAVING);
    session->phase = PHASE_OVER;
    (void)fail(
        &session->end, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_CLOSED,
        "the session has left; open another client");
    pulls_end(session);
    streams_close(session);
    calls_end(session);
    (void)effect_add(session, SESSION_EFFECT_LEFT);
}

/* Not when the leave was heard, or the run has ended well: what it was to do is done, whichever
 * answer was lost. */
static bool is_to_leave_again(
    const struct session *session, const struct unary *call, const struct sumac_error *error)
{
    (void)call;
    return is_worth_retrying(error) && !session->leave_heard;
}

/* The leave does not count, or the run was lost before all ps had settled the session. */
static bool is_against(enum sumac_reason reason)
{
    return reason == SUMAC_REASON_SESSION_CLOSED || reason == SUMAC_REASON_STATE_LOST ||
           reason == SUMAC_REASON_TERMINATED;
}

static void leave_over(
    struct session *session, const struct unary *call, const wire_message *reply,
    const struct sumac_error *error)
{
    (void)call;
    assert(session->phase == PHASE_LEAVING);
    if (reply != NULL || ((session->leave_heard || error->reason == SUMAC_REASON_RUN_ENDED) &&
                          !is_against(error->reason))) {
        left(session);
        return;
    }
    const struct sumac_error named = name_unanswered(session, "answer the leave", error);
    session_end(session, &named, NULL);
}

static const struct unary_kind leave_call = {
    .service = WIRE_SESSIONS,
    .method = WIRE_SESSIONS_LEAVE,
    .compose = leave_compose,
    .over = leave_over,
    .is_made_again = is_to_leave_again};

/* ---- the lease */

/* A ps 0 that does not know the session, and whose stream is gone, is another one than the session
 * was opened at. */
static bool ended_by_restart(struct session *session, const struct sumac_error *error)
{
    if (error->reason != SUMAC_REASON_SESSION_UNKNOWN || session->link_count == 0 ||
        session->links[0].unreached_us == NEVER)
        return false;
    fail_restarted(session, &session->links[0], &session->end);
    session_end(session, &session->end, NULL);
    return true;
}

/* The next renewal is due a third of the lease after this one was said. A lease is not renewed by
 * no fault of ours, or because the session is no more. */
static void renewed(
    struct session *session, const struct unary *call, const wire_message *reply,
    const struct sumac_error *error)
{
    (void)call;
    assert(session->renewing);
    session->renewing = false;
    effect_wake(session, session->sent_us + third_of_lease_us(session));
    if (reply != NULL || session->phase != PHASE_OPEN)
        return;
    if (error->reason == SUMAC_REASON_SESSION_CLOSED || error->reason == SUMAC_REASON_REPLACED)
        session_closed_without_end(session, error);
    else if (ended_by_restart(session, error))
        return;
    else if (error->reason >= SUMAC_REASON_SESSION_UNKNOWN)
        session_end(session, error, NULL);
}

static bool is_to_renew_again(
    const struct session *session, const struct unary *call, const struct sumac_error *error)
{
    (void)call;
    return is_worth_retrying(error) && session->phase == PHASE_OPEN;
}

static const wire_message *compose_renew(struct session *session, const struct unary *call)
{
    (void)call;
    assert(session->renewing);
    wire_renew_request *renew = step_take(session, sizeof *renew);
    if (renew == NULL)
        return NULL;
    *renew = (wire_renew_request)WIRE_RENEW_REQUEST_INIT;
    renew->session_id = session_id_bytes(session);
    renew->clock = session->state.clock;
    session->sent_us = session->now_us;
    return &renew->base;
}

static const struct unary_kind renew_call = {
    .service = WIRE_SESSIONS,
    .method = WIRE_SESSIONS_RENEW,
    .compose = compose_renew,
    .over = renewed,
    .is_made_again = is_to_renew_again};

static void renew(struct session *session)
{
    assert(!session->renewing);
    assert(session->phase == PHASE_OPEN);
    session->renewing = true;
    call_begin(session, &renew_call, 0, session->now_us + patience_us(session));
}

/* A third of the lease without a word to any ps: say so. And a settle that is never decided is not
 * waited for. */
void lease_check(struct session *session)
{
    if (session->config.reader || session->phase < PHASE_OPEN || session->phase == PHASE_OVER)
        return;
    const uint64_t third_us = third_of_lease_us(session);
    if (session->phase == PHASE_SETTLING) {
        const uint64_t until_us = session->settling_us + patience_us(session);
        if (session->now_us < until_us)
            effect_wake(session, until_us);
        else
            session_end(session, &session->end, NULL);
        return;
    }
    if (session->phase == PHASE_OPEN && !session->renewing &&
        session->now_us >= session->sent_us + third_us)
        renew(session);
    const bool silent = session->phase == PHASE_OPEN && !session->renewing;
    effect_wake(session, (silent ? session->sent_us : session->now_us) + third_us);
}

void leave_when_done(struct session *session)
{
    assert(session->leave_wanted);
    assert(!session->leave_called);
    if (session->config.reader && session->phase == PHASE_OPEN) {
        session->phase = PHASE_LEAVING;
        left(session);
        return;
    }
    if (session->phase != PHASE_OPEN || pushes_in_flight(session) > 0)
        return;
    session->leave_called = true;
    session->phase = PHASE_LEAVING;
    call_begin(session, &leave_call, 0, session->now_us + patience_us(session));
}
