/* SPDX-License-Identifier: Apache-2.0 */
/* call.c -- unary calls, the session's own and the caller's: each is made when it is due, and
 * again, after a wait that doubles, while another try may come to something and there is time. */
#include "deeds.h"

bool is_worth_retrying(const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    if (error->reason != SUMAC_REASON_UNSPECIFIED)
        return error->reason >= SUMAC_REASON_PS_MISSING &&
               error->reason < SUMAC_REASON_SESSION_UNKNOWN &&
               error->reason != SUMAC_REASON_NOT_CONTROLLER;
    return error->status == SUMAC_UNAVAILABLE || error->status == SUMAC_DEADLINE_EXCEEDED ||
           error->status == SUMAC_CANCELLED || error->status == SUMAC_ABORTED ||
           error->status == SUMAC_UNKNOWN || error->status == SUMAC_INTERNAL ||
           error->status == SUMAC_RESOURCE_EXHAUSTED;
}

void call_try(struct session *session, struct unary *call)
{
    assert(call->number == 0);
    assert(call->due_us <= session->now_us);
    const wire_message *request = call->kind->compose(session, call);
    if (request == NULL)
        return;
    call->number = ++session->last_call;
    call->due_us = NEVER;
    struct session_effect *effect = effect_add(session, SESSION_EFFECT_CALL);
    effect->call = call->number;
    effect->ps = call->wanted.ps;
    effect->service = call->wanted.service;
    effect->method = call->wanted.method;
    effect->request = request;
    effect->at_us = call->until_us;
    effect_wake(session, call->until_us);
}

struct unary *call_take(struct session *session, const struct unary_kind *kind, uint64_t until_us)
{
    assert(until_us > session->now_us);
    struct unary *call = pool_take(&session->calls);
    if (call == NULL)
        return NULL;
    call->kind = kind;
    call->due_us = session->now_us;
    call->until_us = until_us;
    LIST_APPEND(&session->live_calls, call, links);
    return call;
}

void call_begin(
    struct session *session, const struct unary_kind *kind, uint32_t ps, uint64_t until_us)
{
    assert(kind->service != NULL);
    struct unary *call = call_take(session, kind, until_us);
    if (call == NULL) {
        session->exhausted = true;
        return;
    }
    call->wanted.ps = ps;
    call->wanted.service = kind->service;
    call->wanted.method = kind->method;
    call_try(session, call);
}

/* It is over: nothing is heard of it any more. */
static void drop(struct session *session, struct unary *call)
{
    assert(call->wanted.token == 0 || session->given_calls > 0);
    session->given_calls -= call->wanted.token != 0;
    LIST_REMOVE(&session->live_calls, call, links);
    if (call->number != 0)
        effect_add(session, SESSION_EFFECT_CANCEL_CALL)->call = call->number;
    pool_give(&session->calls, call);
}

static void conclude(
    struct session *session, struct unary *call, const wire_message *reply,
    const struct sumac_error *error)
{
    assert((reply == NULL) != (error == NULL));
    const struct unary over = *call;
    drop(session, call);
    over.kind->over(session, &over, reply, error);
}

static struct unary *find(const struct session *session, uint64_t number)
{
    assert(number <= session->last_call);
    struct unary *call = session->live_calls.first;
    while (call != NULL && (call->number != number || number == 0))
        call = call->links.next;
    return call;
}

static bool is_made_again(
    const struct session *session, const struct unary *call, const struct sumac_error *error)
{
    return call->kind->is_made_again == NULL ? is_worth_retrying(error)
                                             : call->kind->is_made_again(session, call, error);
}

/* This try has failed: another one is due, or it has for good. */
static void fail_try(struct session *session, struct unary *call, const struct sumac_error *error)
{
    const uint64_t wait_us = 1000 * (uint64_t)backoff_ms(session, call->failures++);

    call->number = 0;
    call->undone = false;
    call->why = *error;
    if (session->now_us + wait_us < call->until_us && !call->kind->once &&
        is_made_again(session, call, error)) {
        call->due_us = session->now_us + wait_us;
        effect_wake(session, call->due_us);
        return;
    }
    conclude(session, call, NULL, error);
}

void call_answered(struct session *session, const struct session_event *event)
{
    struct unary *call = find(session, event->call);

    if (call == NULL)
        return;
    struct sumac_error why;
    if (call->kind->accepts != NULL && !call->kind->accepts(session, call, event->reply, &why)) {
        fail_try(session, call, &why);
        return;
    }
    call->number = 0;
    conclude(session, call, event->reply, NULL);
}

void call_failed(struct session *session, const struct session_event *event)
{
    struct unary *call = find(session, event->call);

    if (call != NULL)
        fail_try(session, call, event->error);
}

void call_undone(struct session *session, uint64_t number)
{
    struct unary *call = find(session, number);

    if (call != NULL)
        call->undone = true;
}

/* The first that is due, or whose time is over, or that could not be begun; NULL: none is. */
static struct unary *find_due(const struct session *session)
{
    struct unary *call = session->live_calls.first;

    while (call != NULL && !call->undone && session->now_us < call->due_us &&
           session->now_us < call->until_us)
        call = call->links.next;
    return call;
}

void calls_check(struct session *session)
{
    struct sumac_error late, undone;
    struct unary *call;

    (void)fail(&late, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_UNSPECIFIED, "no answer in time");
    (void)fail(
        &undone, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
        "this process had no memory for a call to a ps");
    while (!session->exhausted && (call = find_due(session)) != NULL) {
        if (session->now_us >= call->until_us)
            conclude(session, call, NULL, &late);
        else if (call->undone)
            fail_try(session, call, &undone);
        else
            call_try(session, call);
    }
    for (call = session->live_calls.first; call != NULL; call = call->links.next)
        effect_wake(session, call->due_us < call->until_us ? call->due_us : call->until_us);
}

void calls_forget(struct session *session)
{
    assert(session->phase == PHASE_OVER);
    while (session->live_calls.first != NULL)
        drop(session, session->live_calls.first);
}

void calls_drop(struct session *session, const struct unary_kind *kind)
{
    LIST_FOREACH_SAFE(struct unary, call, &session->live_calls, links) {
        if (call->kind == kind)
            drop(session, call);
    }
}

const struct unary *
call_of_kind(const struct session *session, const struct unary_kind *kind, uint32_t ps)
{
    const struct unary *call = session->live_calls.first;

    while (call != NULL && (call->kind != kind || call->wanted.ps != ps))
        call = call->links.next;
    return call;
}

void call_tell(
    struct session *session, const struct session_call *wanted, const wire_message *reply,
    const struct sumac_error *error)
{
    assert((reply == NULL) != (error == NULL));
    struct session_effect *effect =
        effect_over(session, SESSION_EFFECT_ANSWERED, wanted->token, error);
    effect->ps = wanted->ps;
    effect->reply = reply;
}

void calls_end(struct session *session)
{
    assert(session->phase == PHASE_OVER);
    while (session->live_calls.first != NULL) {
        const struct session_call wanted = session->live_calls.first->wanted;
        drop(session, session->live_calls.first);
        if (wanted.token != 0)
            call_tell(session, &wanted, NULL, &session->end);
    }
}
