/* SPDX-License-Identifier: Apache-2.0 */
/* create.c -- Create and Delete: from the request to all ps, and who waits for what.
 *
 * 1. The definition is checked; an equal variable is answered, a differing one refused.
 * 2. The shards are placed, and added unpublished at every ps.
 * 3. When all have made theirs, the variable is published at every ps; then the caller is answered.
 * One that could not be made is deleted everywhere again.
 * 4. ps 0 asks the first creator of a variable that is to be assigned to assign it. Later creators
 * wait until every shard is assigned. If the first creator's session is settled before that, the
 * creator that has waited longest takes its place.
 */
#include "catalogue.h"
#include "define.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"
#include "controller_creates.h"

/* ---- calls that wait ---- */

/* "create of w", … */
static const char *
call_text(const struct controller *controller, const struct controller_call *call)
{
    assert((call->function != NULL) == (call->kind == CONTROLLER_CALL_DEFINE));
    if (call->kind == CONTROLLER_CALL_DEFINE)
        return controller_text(
            controller, "define of %s",
            controller_function_known(controller, call->function)->row.name);
    return controller_text(
        controller, "%s of %s", call->kind == CONTROLLER_CALL_CREATE ? "create" : "delete",
        call->variable->name);
}

void controller_wait_call(
    struct controller *controller, struct controller_call wanted, uint32_t timeout_ms)
{
    assert(wanted.call != 0);
    assert((wanted.variable != NULL) == (wanted.kind != CONTROLLER_CALL_DEFINE));
    if (controller->calls_pool.used >= CONTROLLER_CALLS_MAX) {
        controller_fail(
            controller, wanted.call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%zu creates, deletes and defines wait already, at most %u do: the %s has to be asked "
            "for again later",
            controller->calls_pool.used, CONTROLLER_CALLS_MAX, call_text(controller, &wanted));
        controller_list_give(controller, wanted.list);
        return;
    }
    struct controller_call *call = pool_take(&controller->calls_pool);
    if (call == NULL) {
        controller_fail(
            controller, wanted.call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory to let the %s wait; it goes on without an answer: ask again",
            call_text(controller, &wanted));
        controller_list_give(controller, wanted.list);
        return;
    }
    *call = wanted;
    call->timeout_ms = timeout_ms == 0 ? CONTROLLER_CREATE_MS : timeout_ms;
    call->until_us = controller->now_us + controller_ms(call->timeout_ms);
    LIST_APPEND(&controller->calls, call, in_controller);
    if (call->variable != NULL)
        LIST_APPEND(&call->variable->waiting, call, of_variable);
    controller_wake(controller, call->until_us);
}

struct controller_call *
controller_call_drop(struct controller *controller, struct controller_call *call)
{
    assert(controller->calls_pool.used > 0);
    assert(controller->calls.first != NULL);
    struct controller_call *next = call->in_controller.next;
    LIST_REMOVE(&controller->calls, call, in_controller);
    if (call->variable != NULL)
        LIST_REMOVE(&call->variable->waiting, call, of_variable);
    controller_list_give(controller, call->list);
    pool_give(&controller->calls_pool, call);
    return next;
}

/* Fail every create that waits for this variable. */
static void fail_calls_of(
    struct controller *controller, const struct controller_variable *variable,
    const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    for (struct controller_call *call = variable->waiting.first, *next; call != NULL; call = next) {
        next = call->of_variable.next;
        assert(call->kind == CONTROLLER_CALL_CREATE); /* a delete makes it DELETING first */
        controller_fail(controller, call->call, error->status, error->reason, "%s", error->text);
        (void)controller_call_drop(controller, call);
    }
}

void controller_calls_fail(
    struct controller *controller, enum sumac_status status, enum sumac_reason reason,
    const char *text)
{
    assert(status != SUMAC_OK);
    struct controller_call *call = controller->calls.first;
    while (call != NULL) {
        controller_fail(controller, call->call, status, reason, "%s", text);
        call = controller_call_drop(controller, call);
    }
}

void controller_call_forget(struct controller *controller, uint64_t number)
{
    struct controller_call *call = controller->calls.first;

    while (call != NULL)
        call = call->call == number ? controller_call_drop(controller, call)
                                    : call->in_controller.next;
}

void controller_calls_of_session_fail(
    struct controller *controller, const struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_CLOSING);
    for (struct controller_call *call = controller->calls.first; call != NULL;) {
        if (call->session != session) {
            call = call->in_controller.next;
            continue;
        }
        controller_fail_closed(controller, call->call, session);
        call = controller_call_drop(controller, call);
    }
}

/* The first ps that owes an answer to this call's order. ps_count: all have answered. */
static uint32_t
find_slow_ps(const struct controller *controller, const struct controller_call *call)
{
    for (const struct controller_order *order = controller->orders.first; order != NULL;
         order = order->in_controller.next)
        for (uint32_t ps = 0; order->variable == call->variable &&
                              order->function == call->function && ps < controller->ps_count;
             ps++)
            if (controller_mask_has(&order->pending, ps))
                return ps;
    return controller->ps_count;
}

const char *
controller_call_wait(const struct controller *controller, const struct controller_call *call)
{
    const struct controller_variable *variable = call->variable;
    const char *what = call_text(controller, call);
    const uint32_t slow = find_slow_ps(controller, call);
    const bool ordered = variable == NULL ? call->function->orders > 0 : variable->orders > 0;
    const bool published = variable != NULL && variable->state == CONTROLLER_VARIABLE_PUBLISHED;

    if (slow < controller->ps_count)
        return controller_text(
            controller, "%s waits for %s", what, controller_peer_text(controller, slow));
    if (!ordered && !published)
        return controller_text(
            controller, "%s waits: ps 0 has no memory for its order to the ps", what);
    if (variable != NULL && variable->creator != NULL)
        return controller_text(
            controller, "%s waits for %s to assign it, last heard from %s", what,
            variable->creator->label, controller_ago(controller, variable->creator->heard_us));
    return controller_text(controller, "%s waits", what);
}

/* A ps that is slow is still there. */
static const char *remedy(const struct controller *controller, const struct controller_call *call)
{
    const uint32_t slow = find_slow_ps(controller, call);
    const bool missing = slow < controller->ps_count && (!controller->peers[slow].met ||
                                                         controller_peer_is_late(controller, slow));

    return missing ? controller_peer_remedy(controller, slow)
                   : "; call again, or allow the call more time";
}

void controller_calls_tick(struct controller *controller)
{
    for (struct controller_call *call = controller->calls.first; call != NULL;) {
        if (controller->now_us < call->until_us) {
            call = call->in_controller.next;
            continue;
        }
        controller_fail(
            controller, call->call, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "after %s %s%s", text_time_ms(call->timeout_ms).text,
            controller_call_wait(controller, call), remedy(controller, call));
        call = controller_call_drop(controller, call);
    }
}

/* ---- answering a create ---- */

static void answer_create(
    struct controller *controller, uint64_t call, const struct controller_variable *variable,
    bool assign)
{
    assert(variable->state == CONTROLLER_VARIABLE_PUBLISHED);
    wire_create_reply *reply = arena_take(&controller->said->arena, sizeof *reply);
    wire_variable *message = controller_variable_message(controller, variable);
    if (reply == NULL || message == NULL) {
        controller_reply_or_fail(controller, call, NULL);
        return;
    }
    *reply = (wire_create_reply)WIRE_CREATE_REPLY_INIT;
    reply->variable = message;
    reply->assign = assign;
    controller_reply_or_fail(controller, call, &reply->base);
}

/* Answer a create if its variable is ready. If no session is to assign the value yet, this
 * session must. */
static bool try_answer(
    struct controller *controller, uint64_t call, struct controller_session *session,
    struct controller_variable *variable)
{
    if (variable->state != CONTROLLER_VARIABLE_PUBLISHED)
        return false;
    if (controller_mask_empty(&variable->unassigned)) {
        answer_create(controller, call, variable, false);
        return true;
    }
    if (variable->creator == NULL) {
        variable->creator = session;
        controller_variable_changed(controller, variable);
    }
    if (variable->creator != session)
        return false;
    answer_create(controller, call, variable, true);
    return true;
}

static void answer_waiting(struct controller *controller, struct controller_variable *variable)
{
    for (struct controller_call *call = variable->waiting.first, *next; call != NULL; call = next) {
        next = call->of_variable.next;
        assert(call->kind == CONTROLLER_CALL_CREATE);
        if (call->list != NULL ? controller_list_go_on(controller, call)
                               : try_answer(controller, call->call, call->session, variable))
            (void)controller_call_drop(controller, call);
    }
}

void controller_assigned(struct controller *controller, uint32_t ps, uint64_t variable_id)
{
    struct controller_variable *variable = controller_variable_by_id(controller, variable_id);

    if (variable == NULL || variable->state == CONTROLLER_VARIABLE_DELETING)
        return;
    if (controller_mask_has(&variable->unassigned, ps))
        controller_variable_changed(controller, variable);
    controller_mask_remove(&variable->unassigned, ps);
    if (!controller_mask_empty(&variable->unassigned))
        return;
    variable->creator = NULL;
    answer_waiting(controller, variable);
}

void controller_creator_settled(
    struct controller *controller, const struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_SETTLED);
    for (struct controller_variable *variable = controller->variables.first; variable != NULL;
         variable = variable->in_controller.next) {
        if (variable->creator != session)
            continue;
        variable->creator = NULL;
        if (variable->state != CONTROLLER_VARIABLE_DELETING)
            answer_waiting(controller, variable);
    }
}

/* ---- what the ps answered ---- */

static void delete_everywhere(struct controller *controller, struct controller_variable *variable)
{
    assert(variable->state != CONTROLLER_VARIABLE_DELETING);
    variable->state = CONTROLLER_VARIABLE_DELETING;
    controller_variable_changed(controller, variable);
    controller_variable_hide(controller, variable);
    (void)controller_order_variable(controller, CONTROLLER_ORDER_DELETE, variable);
}

void controller_add_answered(
    struct controller *controller, struct controller_variable *variable, uint32_t ps,
    const wire_peer_report *report)
{
    if (report->status == 0 || variable->failure.status != SUMAC_OK)
        return;
    (void)fail(
        &variable->failure, (enum sumac_status)report->status, (enum sumac_reason)report->reason,
        "ps %u at %s cannot make its part of %s: %s", ps, controller->peers[ps].address,
        variable->name, report->message);
    controller_log(controller, "%s", variable->failure.text);
}

/* Fail every create of several that names this variable, whichever of them it waits for. At most
 * CONTROLLER_CALLS_MAX lists are looked through, and each that has it is gone then. */
static void fail_lists_of(struct controller *controller, const struct controller_variable *variable)
{
    for (struct controller_call *call = controller->calls.first; call != NULL;) {
        if (call->list == NULL || !controller_list_has(call->list, variable->id)) {
            call = call->in_controller.next;
            continue;
        }
        controller_fail(
            controller, call->call, variable->failure.status, variable->failure.reason, "%s",
            variable->failure.text);
        call = controller_call_drop(controller, call);
    }
}

void controller_add_complete(struct controller *controller, struct controller_variable *variable)
{
    assert(variable->state == CONTROLLER_VARIABLE_ADDING);
    if (variable->failure.status != SUMAC_OK) {
        fail_calls_of(controller, variable, &variable->failure);
        fail_lists_of(controller, variable);
        delete_everywhere(controller, variable);
        return;
    }
    variable->state = CONTROLLER_VARIABLE_PUBLISHING;
    controller_variable_changed(controller, variable);
    (void)controller_order_variable(controller, CONTROLLER_ORDER_PUBLISH, variable);
}

void controller_publish_complete(
    struct controller *controller, struct controller_variable *variable)
{
    assert(variable->state == CONTROLLER_VARIABLE_PUBLISHING);
    variable->state = CONTROLLER_VARIABLE_PUBLISHED;
    controller_variable_changed(controller, variable);
    answer_waiting(controller, variable);
}

void controller_delete_complete(struct controller *controller, struct controller_variable *variable)
{
    assert(variable->state == CONTROLLER_VARIABLE_DELETING);
    for (struct controller_call *call = variable->waiting.first, *next; call != NULL; call = next) {
        next = call->of_variable.next;
        wire_delete_reply *reply = arena_take(&controller->said->arena, sizeof *reply);
        if (reply != NULL)
            *reply = (wire_delete_reply)WIRE_DELETE_REPLY_INIT;
        controller_reply_or_fail(controller, call->call, reply == NULL ? NULL : &reply->base);
        (void)controller_call_drop(controller, call);
    }
    assert(variable->orders == 0);
    controller_variable_free(controller, variable);
}

/* ---- the requests ---- */

bool controller_may_change_catalogue(struct controller *controller, uint64_t call)
{
    if (controller->terminating)
        controller_fail(
            controller, call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
            "ps 0 was told to stop and changes the catalogue no more");
    else if (controller->orders_pool.used >= CONTROLLER_ORDERS_MAX)
        controller_fail(
            controller, call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%zu orders wait for the ps already, and %u are the most: create, delete or define "
            "later",
            controller->orders_pool.used, CONTROLLER_ORDERS_MAX);
    else
        return true;
    return false;
}

enum sumac_status controller_find_or_make(
    struct controller *controller, const wire_variable *wanted,
    struct controller_variable **variable, struct sumac_error *error)
{
    struct definition definition;
    enum sumac_status status = definition_read(wanted, &controller->functions, &definition, error);

    if (status != SUMAC_OK)
        return status;
    *variable = controller_variable_find(controller, wanted->name);
    if (*variable != NULL)
        return controller_variable_compare(controller, *variable, wanted, &definition, error);
    uint8_t beside[PLACEMENT_SHARDS_MAX];
    const uint8_t *places = NULL;
    if (wanted->colocate_with[0] != '\0') {
        uint32_t ps = 0;
        status = controller_variable_beside(controller, wanted, &ps, error);
        memset(beside, (int)ps, sizeof beside);
        places = beside;
    }
    if (status == SUMAC_OK)
        status = controller_variable_make(
            controller, wanted->name, &definition, places, variable, error);
    if (status != SUMAC_OK)
        return status;
    (void)controller_order_variable(controller, CONTROLLER_ORDER_ADD_SHARDS, *variable);
    return SUMAC_OK;
}

void controller_create_call(struct controller *controller, const struct controller_event *event)
{
    const wire_create_request *request = (const wire_create_request *)event->request;
    struct controller_session *session =
        controller_session_of_call(controller, event->call, &request->session_id);

    if (session == NULL || !controller_may_change_catalogue(controller, event->call))
        return;
    if (request->n_variables > 0) {
        controller_create_many(controller, event, session);
        return;
    }
    if (request->variable == NULL) {
        controller_fail(
            controller, event->call, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "create names no variable");
        return;
    }
    struct controller_variable *variable = NULL;
    struct sumac_error error = {0};
    if (controller_find_or_make(controller, request->variable, &variable, &error) != SUMAC_OK) {
        controller_fail(controller, event->call, error.status, error.reason, "%s", error.text);
        return;
    }
    if (try_answer(controller, event->call, session, variable))
        return;
    const struct controller_call call = {
        .kind = CONTROLLER_CALL_CREATE,
        .call = event->call,
        .variable = variable,
        .session = session};
    controller_wait_call(controller, call, request->timeout_ms);
}

void controller_delete_call(struct controller *controller, const struct controller_event *event)
{
    const wire_delete_request *request = (const wire_delete_request *)event->request;
    struct controller_session *session =
        controller_session_of_call(controller, event->call, &request->session_id);

    if (session == NULL || !controller_may_change_catalogue(controller, event->call))
        return;
    struct controller_variable *variable = controller_variable_find(controller, request->name);
    if (variable == NULL) {
        controller_fail(
            controller, event->call, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
            "there is no variable %s to delete", *request->name == 0 ? "\"\"" : request->name);
        return;
    }
    if (variable->state != CONTROLLER_VARIABLE_PUBLISHED) {
        controller_fail(
            controller, event->call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNKNOWN_VARIABLE,
            "%s is being created: delete it when its create was answered", request->name);
        return;
    }
    struct sumac_error deleted = {0};
    (void)fail(
        &deleted, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
        "%s was deleted by %s before it was assigned", request->name, session->label);
    fail_calls_of(controller, variable, &deleted);
    controller_log(controller, "%s deletes %s", session->label, request->name);
    delete_everywhere(controller, variable);
    const struct controller_call call = {
        .kind = CONTROLLER_CALL_DELETE,
        .call = event->call,
        .variable = variable,
        .session = session};
    controller_wait_call(controller, call, request->timeout_ms);
}
