/* SPDX-License-Identifier: Apache-2.0 */
/* given_call.c -- the caller's own calls: taken in, answered, failed. */
#include "deeds.h"

static const wire_message *lend_request(struct session *session, const struct unary *call)
{
    (void)session;
    assert(call->wanted.token != 0);
    return call->wanted.request;
}

/* A list has to be of the cluster that the session is of, or of none yet: else variables of two
 * clusters would be mixed. */
static bool is_of_this_cluster(
    const struct session *session, const struct unary *call, const wire_message *message,
    struct sumac_error *why)
{
    const wire_list_reply *reply = (const wire_list_reply *)message;
    const struct link *link = &session->links[call->wanted.ps];

    if (message->descriptor != &sumac__v1__list_reply__descriptor)
        return true;
    const struct ps_identity it = {
        .cluster_id = reply->cluster_id,
        .epoch = reply->epoch != 0 ? reply->epoch : session->state.epoch,
        .incarnation = reply->ps_incarnation != 0 ? reply->ps_incarnation : link->incarnation};
    return link_is_same(session, link, &it, why);
}

/* A session whose ps has lost its state has ended with it. */
static void over(
    struct session *session, const struct unary *call, const wire_message *reply,
    const struct sumac_error *error)
{
    call_tell(session, &call->wanted, reply, error);
    if (error == NULL)
        return;
    session_heard(session, error);
    if (error->reason == SUMAC_REASON_STATE_LOST && session->phase == PHASE_OPEN)
        session_end(session, error, NULL);
}

/* Not after TIMED_OUT: the time that the request itself names is over. With ABORTED the same call
 * has come again, as a call of a connection that is gone may. */
static bool may_go_well(
    const struct session *session, const struct unary *call, const struct sumac_error *error)
{
    (void)session;
    return is_worth_retrying(error) && !call->wanted.once &&
           (error->reason != SUMAC_REASON_TIMED_OUT || error->status == SUMAC_ABORTED);
}

static const struct unary_kind given = {
    .compose = lend_request,
    .accepts = is_of_this_cluster,
    .over = over,
    .is_made_again = may_go_well};

/* Every ps knows the catalogue: one that has answered, else ps 0. */
static uint32_t knowing_ps(const struct session *session)
{
    assert(session->phase >= PHASE_OPEN);
    for (uint32_t ps = 0; ps < session->link_count; ps++)
        if (session->links[ps].found)
            return ps;
    return 0;
}

static bool may_accept(
    const struct session *session, const struct session_call *wanted, struct sumac_error *error)
{
    if (session->phase == PHASE_OVER)
        *error = session->end;
    else if (session->phase < PHASE_OPEN)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "the session is not open yet");
    else if (wanted->needs_session && session->config.reader)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_CLOSED,
            "a reader has no session; open the client as an observer or a member");
    else if (wanted->ps >= session->link_count)
        (void)fail_argument(
            error, "ps %" PRIu32 " is called, and there are %" PRIu32, wanted->ps,
            session->link_count);
    else if (session->given_calls >= SESSION_CALLS_MAX)
        (void)fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "%d calls are under way, no more may be; wait for one of them first",
            SESSION_CALLS_MAX);
    else
        return true;
    return false;
}

void call_accept(struct session *session, const struct session_call *wanted)
{
    assert(wanted->token != 0);
    assert(wanted->timeout_ms > 0);
    struct sumac_error error;
    struct unary *call = NULL;
    if (may_accept(session, wanted, &error)) {
        call = call_take(session, &given, session->now_us + 1000 * (uint64_t)wanted->timeout_ms);
        if (call == NULL)
            (void)fail_for_memory(&error, "no memory for a call to ps %" PRIu32, wanted->ps);
    }
    if (call == NULL) {
        call_tell(session, wanted, NULL, &error);
        return;
    }
    call->wanted = *wanted;
    if (wanted->any_ps)
        call->wanted.ps = knowing_ps(session);
    session->given_calls++;
    call_try(session, call);
}
