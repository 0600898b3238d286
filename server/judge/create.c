/* SPDX-License-Identifier: Apache-2.0 */
/* create.c -- Create and Delete: from the request to all ps, and who waits for what.
 *
 * 1. The definition is checked; an equal variable is answered, a differing one refused.
 * 2. The shards are placed, and added unpublished at every ps.
 * 3. When all have made theirs, the variable is published at every ps; then the caller is answered.
 * One that could not be made is deleted everywhere again.
 * 4. The first creator of a variable that is to be assigned is told so; later ones wait until every
 * shard is, or until the first is settled and the one that has waited longest takes its place.
 */
#include "catalogue.h"
#include "define.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "text.h"

/* ---- calls that wait ---- */

/* "create of w", … */
static const char *call_text(const struct judge *judge, const struct judge_call *call)
{
    assert((call->function != NULL) == (call->kind == JUDGE_CALL_DEFINE));
    if (call->kind == JUDGE_CALL_DEFINE)
        return judge_text(
            judge, "define of %s", judge_function_known(judge, call->function)->row.name);
    return judge_text(
        judge, "%s of %s", call->kind == JUDGE_CALL_CREATE ? "create" : "delete",
        call->variable->name);
}

void judge_wait_call(struct judge *judge, struct judge_call wanted, uint32_t timeout_ms)
{
    assert(wanted.call != 0);
    assert((wanted.variable != NULL) == (wanted.kind != JUDGE_CALL_DEFINE));
    if (judge->calls_pool.used >= JUDGE_CALLS_MAX) {
        judge_fail(
            judge, wanted.call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%zu creates, deletes and defines wait already, at most %u do: the %s has to be asked "
            "for again later",
            judge->calls_pool.used, JUDGE_CALLS_MAX, call_text(judge, &wanted));
        judge_list_give(judge, wanted.list);
        return;
    }
    struct judge_call *call = pool_take(&judge->calls_pool);
    if (call == NULL) {
        judge_fail(
            judge, wanted.call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory to let the %s wait; it goes on without an answer: ask again",
            call_text(judge, &wanted));
        judge_list_give(judge, wanted.list);
        return;
    }
    *call = wanted;
    call->timeout_ms = timeout_ms == 0 ? JUDGE_CREATE_MS : timeout_ms;
    call->until_us = judge->now_us + judge_ms(call->timeout_ms);
    LIST_APPEND(&judge->calls, call, in_judge);
    if (call->variable != NULL)
        LIST_APPEND(&call->variable->waiting, call, of_variable);
    judge_wake(judge, call->until_us);
}

struct judge_call *judge_call_drop(struct judge *judge, struct judge_call *call)
{
    assert(judge->calls_pool.used > 0);
    assert(judge->calls.first != NULL);
    struct judge_call *next = call->in_judge.next;
    LIST_REMOVE(&judge->calls, call, in_judge);
    if (call->variable != NULL)
        LIST_REMOVE(&call->variable->waiting, call, of_variable);
    judge_list_give(judge, call->list);
    pool_give(&judge->calls_pool, call);
    return next;
}

/* Fail every create that waits for this variable. */
static void fail_calls_of(
    struct judge *judge, const struct judge_variable *variable, const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    for (struct judge_call *call = variable->waiting.first, *next; call != NULL; call = next) {
        next = call->of_variable.next;
        assert(call->kind == JUDGE_CALL_CREATE); /* a delete makes it DELETING first */
        judge_fail(judge, call->call, error->status, error->reason, "%s", error->text);
        (void)judge_call_drop(judge, call);
    }
}

void judge_calls_fail(
    struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text)
{
    assert(status != SUMAC_OK);
    struct judge_call *call = judge->calls.first;
    while (call != NULL) {
        judge_fail(judge, call->call, status, reason, "%s", text);
        call = judge_call_drop(judge, call);
    }
}

void judge_call_forget(struct judge *judge, uint64_t number)
{
    struct judge_call *call = judge->calls.first;

    while (call != NULL)
        call = call->call == number ? judge_call_drop(judge, call) : call->in_judge.next;
}

void judge_calls_of_session_fail(struct judge *judge, const struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_CLOSING);
    for (struct judge_call *call = judge->calls.first; call != NULL;) {
        if (call->session != session) {
            call = call->in_judge.next;
            continue;
        }
        judge_fail_closed(judge, call->call, session);
        call = judge_call_drop(judge, call);
    }
}

/* The first ps that has not answered the order that this call waits for; ps_count: none. */
static uint32_t find_slow_ps(const struct judge *judge, const struct judge_call *call)
{
    for (const struct judge_order *order = judge->orders.first; order != NULL;
         order = order->in_judge.next)
        for (uint32_t ps = 0; order->variable == call->variable &&
                              order->function == call->function && ps < judge->ps_count;
             ps++)
            if (judge_mask_has(&order->pending, ps))
                return ps;
    return judge->ps_count;
}

const char *judge_call_wait(const struct judge *judge, const struct judge_call *call)
{
    const struct judge_variable *variable = call->variable;
    const char *what = call_text(judge, call);
    const uint32_t slow = find_slow_ps(judge, call);
    const bool ordered = variable == NULL ? call->function->orders > 0 : variable->orders > 0;
    const bool published = variable != NULL && variable->state == JUDGE_VARIABLE_PUBLISHED;

    if (slow < judge->ps_count)
        return judge_text(judge, "%s waits for %s", what, judge_peer_text(judge, slow));
    if (!ordered && !published)
        return judge_text(judge, "%s waits: ps 0 has no memory for its order to the ps", what);
    if (variable != NULL && variable->creator != NULL)
        return judge_text(
            judge, "%s waits for %s to assign it, last heard from %s", what,
            variable->creator->label, judge_ago(judge, variable->creator->heard_us));
    return judge_text(judge, "%s waits", what);
}

/* A ps that is slow is still there. */
static const char *remedy(const struct judge *judge, const struct judge_call *call)
{
    const uint32_t slow = find_slow_ps(judge, call);
    const bool missing =
        slow < judge->ps_count && (!judge->peers[slow].met || judge_peer_is_late(judge, slow));

    return missing ? judge_peer_remedy(judge, slow) : "call again, or allow the call more time";
}

void judge_calls_tick(struct judge *judge)
{
    for (struct judge_call *call = judge->calls.first; call != NULL;) {
        if (judge->now_us < call->until_us) {
            call = call->in_judge.next;
            continue;
        }
        judge_fail(
            judge, call->call, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "after %s %s; %s",
            text_time_ms(call->timeout_ms).text, judge_call_wait(judge, call), remedy(judge, call));
        call = judge_call_drop(judge, call);
    }
}

/* ---- answering a create ---- */

static void answer_create(
    struct judge *judge, uint64_t call, const struct judge_variable *variable, bool assign)
{
    assert(variable->state == JUDGE_VARIABLE_PUBLISHED);
    wire_create_reply *reply = arena_take(&judge->said->arena, sizeof *reply);
    wire_variable *message = judge_variable_message(judge, variable);
    if (reply == NULL || message == NULL) {
        judge_reply_or_fail(judge, call, NULL);
        return;
    }
    *reply = (wire_create_reply)WIRE_CREATE_REPLY_INIT;
    reply->variable = message;
    reply->assign = assign;
    judge_reply_or_fail(judge, call, &reply->base);
}

/* Answer a create if what it waits for is there; whoever comes when nobody is to assign a value is
 * the one. */
static bool try_answer(
    struct judge *judge, uint64_t call, struct judge_session *session,
    struct judge_variable *variable)
{
    if (variable->state != JUDGE_VARIABLE_PUBLISHED)
        return false;
    if (judge_mask_empty(&variable->unassigned)) {
        answer_create(judge, call, variable, false);
        return true;
    }
    if (variable->creator == NULL) {
        variable->creator = session;
        judge_variable_changed(judge, variable);
    }
    if (variable->creator != session)
        return false;
    answer_create(judge, call, variable, true);
    return true;
}

static void answer_waiting(struct judge *judge, struct judge_variable *variable)
{
    for (struct judge_call *call = variable->waiting.first, *next; call != NULL; call = next) {
        next = call->of_variable.next;
        assert(call->kind == JUDGE_CALL_CREATE);
        if (call->list != NULL ? judge_list_go_on(judge, call)
                               : try_answer(judge, call->call, call->session, variable))
            (void)judge_call_drop(judge, call);
    }
}

void judge_assigned(struct judge *judge, uint32_t ps, uint64_t variable_id)
{
    struct judge_variable *variable = judge_variable_by_id(judge, variable_id);

    if (variable == NULL || variable->state == JUDGE_VARIABLE_DELETING)
        return;
    if (judge_mask_has(&variable->unassigned, ps))
        judge_variable_changed(judge, variable);
    judge_mask_remove(&variable->unassigned, ps);
    if (!judge_mask_empty(&variable->unassigned))
        return;
    variable->creator = NULL;
    answer_waiting(judge, variable);
}

void judge_creator_settled(struct judge *judge, const struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_SETTLED);
    for (struct judge_variable *variable = judge->variables.first; variable != NULL;
         variable = variable->in_judge.next) {
        if (variable->creator != session)
            continue;
        variable->creator = NULL;
        if (variable->state != JUDGE_VARIABLE_DELETING)
            answer_waiting(judge, variable);
    }
}

/* ---- what the ps answered ---- */

static void delete_everywhere(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->state != JUDGE_VARIABLE_DELETING);
    variable->state = JUDGE_VARIABLE_DELETING;
    judge_variable_changed(judge, variable);
    judge_variable_hide(judge, variable);
    (void)judge_order_variable(judge, JUDGE_ORDER_DELETE, variable);
}

void judge_add_answered(
    struct judge *judge, struct judge_variable *variable, uint32_t ps,
    const wire_peer_report *report)
{
    if (report->status == 0 || variable->failure.status != SUMAC_OK)
        return;
    (void)fail(
        &variable->failure, (enum sumac_status)report->status, (enum sumac_reason)report->reason,
        "ps %u at %s cannot make its part of %s: %s", ps, judge->peers[ps].address, variable->name,
        report->message);
    judge_log(judge, "%s", variable->failure.text);
}

/* Fail every create of several that names this variable, whichever of them it waits for. At most
 * JUDGE_CALLS_MAX lists are looked through, and each that has it is gone then. */
static void fail_lists_of(struct judge *judge, const struct judge_variable *variable)
{
    for (struct judge_call *call = judge->calls.first; call != NULL;) {
        if (call->list == NULL || !judge_list_has(call->list, variable->id)) {
            call = call->in_judge.next;
            continue;
        }
        judge_fail(
            judge, call->call, variable->failure.status, variable->failure.reason, "%s",
            variable->failure.text);
        call = judge_call_drop(judge, call);
    }
}

void judge_add_complete(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->state == JUDGE_VARIABLE_ADDING);
    if (variable->failure.status != SUMAC_OK) {
        fail_calls_of(judge, variable, &variable->failure);
        fail_lists_of(judge, variable);
        delete_everywhere(judge, variable);
        return;
    }
    variable->state = JUDGE_VARIABLE_PUBLISHING;
    judge_variable_changed(judge, variable);
    (void)judge_order_variable(judge, JUDGE_ORDER_PUBLISH, variable);
}

void judge_publish_complete(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->state == JUDGE_VARIABLE_PUBLISHING);
    variable->state = JUDGE_VARIABLE_PUBLISHED;
    judge_variable_changed(judge, variable);
    answer_waiting(judge, variable);
}

void judge_delete_complete(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->state == JUDGE_VARIABLE_DELETING);
    for (struct judge_call *call = variable->waiting.first, *next; call != NULL; call = next) {
        next = call->of_variable.next;
        wire_delete_reply *reply = arena_take(&judge->said->arena, sizeof *reply);
        if (reply != NULL)
            *reply = (wire_delete_reply)WIRE_DELETE_REPLY_INIT;
        judge_reply_or_fail(judge, call->call, reply == NULL ? NULL : &reply->base);
        (void)judge_call_drop(judge, call);
    }
    assert(variable->orders == 0);
    judge_variable_free(judge, variable);
}

/* ---- the requests ---- */

bool judge_may_change_catalogue(struct judge *judge, uint64_t call)
{
    if (judge->terminating)
        judge_fail(
            judge, call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
            "ps 0 was told to stop and changes the catalogue no more");
    else if (judge->orders_pool.used >= JUDGE_ORDERS_MAX)
        judge_fail(
            judge, call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%zu orders wait for the ps already, and %u are the most: create, delete or define "
            "later",
            judge->orders_pool.used, JUDGE_ORDERS_MAX);
    else
        return true;
    return false;
}

enum sumac_status judge_find_or_make(
    struct judge *judge, const wire_variable *wanted, struct judge_variable **variable,
    struct sumac_error *error)
{
    struct definition definition;
    enum sumac_status status = definition_read(wanted, &judge->functions, &definition, error);

    if (status != SUMAC_OK)
        return status;
    *variable = judge_variable_find(judge, wanted->name);
    if (*variable != NULL)
        return judge_variable_compare(judge, *variable, wanted, &definition, error);
    uint8_t beside[PLACEMENT_SHARDS_MAX];
    const uint8_t *places = NULL;
    if (wanted->colocate_with[0] != '\0') {
        uint32_t ps = 0;
        status = judge_variable_beside(judge, wanted, &ps, error);
        memset(beside, (int)ps, sizeof beside);
        places = beside;
    }
    if (status == SUMAC_OK)
        status = judge_variable_make(judge, wanted->name, &definition, places, variable, error);
    if (status != SUMAC_OK)
        return status;
    (void)judge_order_variable(judge, JUDGE_ORDER_ADD_SHARDS, *variable);
    return SUMAC_OK;
}

void judge_create_call(struct judge *judge, const struct judge_event *event)
{
    const wire_create_request *request = (const wire_create_request *)event->request;
    struct judge_session *session = judge_session_of_call(judge, event->call, &request->session_id);

    if (session == NULL || !judge_may_change_catalogue(judge, event->call))
        return;
    if (request->n_variables > 0) {
        judge_create_many(judge, event, session);
        return;
    }
    if (request->variable == NULL) {
        judge_fail(
            judge, event->call, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "create names no variable");
        return;
    }
    struct judge_variable *variable = NULL;
    struct sumac_error error = {0};
    if (judge_find_or_make(judge, request->variable, &variable, &error) != SUMAC_OK) {
        judge_fail(judge, event->call, error.status, error.reason, "%s", error.text);
        return;
    }
    if (try_answer(judge, event->call, session, variable))
        return;
    const struct judge_call call = {
        .kind = JUDGE_CALL_CREATE, .call = event->call, .variable = variable, .session = session};
    judge_wait_call(judge, call, request->timeout_ms);
}

void judge_delete_call(struct judge *judge, const struct judge_event *event)
{
    const wire_delete_request *request = (const wire_delete_request *)event->request;
    struct judge_session *session = judge_session_of_call(judge, event->call, &request->session_id);

    if (session == NULL || !judge_may_change_catalogue(judge, event->call))
        return;
    struct judge_variable *variable = judge_variable_find(judge, request->name);
    if (variable == NULL) {
        judge_fail(
            judge, event->call, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
            "there is no variable %s to delete", *request->name == 0 ? "\"\"" : request->name);
        return;
    }
    if (variable->state != JUDGE_VARIABLE_PUBLISHED) {
        judge_fail(
            judge, event->call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNKNOWN_VARIABLE,
            "%s is being created: delete it when its create was answered", request->name);
        return;
    }
    struct sumac_error deleted = {0};
    (void)fail(
        &deleted, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
        "%s was deleted by %s before it was assigned", request->name, session->label);
    fail_calls_of(judge, variable, &deleted);
    judge_log(judge, "%s deletes %s", session->label, request->name);
    delete_everywhere(judge, variable);
    const struct judge_call call = {
        .kind = JUDGE_CALL_DELETE, .call = event->call, .variable = variable, .session = session};
    judge_wait_call(judge, call, request->timeout_ms);
}
