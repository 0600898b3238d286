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

#include <assert.h>

#include "error.h"
#include "controller_orders.h"
#include "controller_members.h"

/* Fail every create that waits for this variable. */
static void fail_calls_of(
    struct controller *controller, const struct controller_variable *variable,
    const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    LIST_FOREACH_SAFE(struct controller_call, call, &variable->waiting, of_variable) {
        assert(call->kind == CONTROLLER_CALL_CREATE); /* a delete makes it DELETING first */
        controller_fail_with(controller, call->call, error);
        controller_call_drop(controller, call);
    }
}

/* ---- answering a create ---- */

static void answer_create(
    struct controller *controller, uint64_t call, const struct controller_variable *variable,
    bool assign)
{
    assert(variable->state == CONTROLLER_VARIABLE_PUBLISHED);
    wire_create_reply *reply = OUT_MESSAGE(controller->out, create_reply);
    reply->variable = controller_variable_message(controller, variable);
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
        controller_row_changed(controller, &variable->row);
    }
    if (variable->creator != session)
        return false;
    answer_create(controller, call, variable, true);
    return true;
}

static void answer_waiting(struct controller *controller, struct controller_variable *variable)
{
    LIST_FOREACH_SAFE(struct controller_call, call, &variable->waiting, of_variable) {
        assert(call->kind == CONTROLLER_CALL_CREATE);
        if (call->list != NULL ? controller_list_go_on(controller, call)
                               : try_answer(controller, call->call, call->session, variable))
            controller_call_drop(controller, call);
    }
}

void controller_assigned(struct controller *controller, uint32_t ps, uint64_t variable_id)
{
    struct controller_variable *variable = controller_variable_by_id(controller, variable_id);

    if (variable == NULL || variable->state == CONTROLLER_VARIABLE_DELETING)
        return;
    if (controller_mask_has(&variable->unassigned, ps))
        controller_row_changed(controller, &variable->row);
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
    LIST_FOREACH(struct controller_variable, variable, &controller->variables, in_controller) {
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
    controller_row_changed(controller, &variable->row);
    controller_variable_hide(controller, variable);
    (void)controller_order_variable(controller, variable);
}

void controller_add_answered(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    struct controller_variable *variable = order->variable;

    if (report->status == 0 || variable->failure.status != SUMAC_OK)
        return;
    (void)fail(
        &variable->failure, (enum sumac_status)report->status, (enum sumac_reason)report->reason,
        "ps %u at %s cannot make its part of %s: %s", ps, controller->peers[ps].address,
        variable->name, report->message);
    out_log(controller->out, "%s", variable->failure.text);
}

/* Fail every create of several that names this variable, whichever of them it waits for. At most
 * CONTROLLER_CALLS_MAX lists are looked through, and each that has it is gone then. */
static void fail_lists_of(struct controller *controller, const struct controller_variable *variable)
{
    LIST_FOREACH_SAFE(struct controller_call, call, &controller->calls, in_controller) {
        if (call->list == NULL || !controller_list_has(call->list, variable->id))
            continue;
        controller_fail_with(controller, call->call, &variable->failure);
        controller_call_drop(controller, call);
    }
}

void controller_add_complete(struct controller *controller, const struct controller_order *order)
{
    struct controller_variable *variable = order->variable;

    assert(variable->state == CONTROLLER_VARIABLE_ADDING);
    if (variable->failure.status != SUMAC_OK) {
        fail_calls_of(controller, variable, &variable->failure);
        fail_lists_of(controller, variable);
        delete_everywhere(controller, variable);
        return;
    }
    variable->state = CONTROLLER_VARIABLE_PUBLISHING;
    controller_row_changed(controller, &variable->row);
    (void)controller_order_variable(controller, variable);
}

void controller_publish_complete(
    struct controller *controller, const struct controller_order *order)
{
    struct controller_variable *variable = order->variable;

    assert(variable->state == CONTROLLER_VARIABLE_PUBLISHING);
    variable->state = CONTROLLER_VARIABLE_PUBLISHED;
    controller_row_changed(controller, &variable->row);
    answer_waiting(controller, variable);
}

void controller_delete_complete(struct controller *controller, const struct controller_order *order)
{
    struct controller_variable *variable = order->variable;

    assert(variable->state == CONTROLLER_VARIABLE_DELETING);
    LIST_FOREACH_SAFE(struct controller_call, call, &variable->waiting, of_variable) {
        controller_reply_or_fail(
            controller, call->call, &OUT_MESSAGE(controller->out, delete_reply)->base);
        controller_call_drop(controller, call);
    }
    assert(variable->orders == 0);
    controller_variable_free(controller, variable);
}

/* ---- the requests ---- */

void controller_create_call(struct controller *controller, const struct lane_event *event)
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
    if (controller_variable_find_or_make(controller, request->variable, &variable, &error) !=
        SUMAC_OK) {
        controller_fail_with(controller, event->call, &error);
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

void controller_delete_call(struct controller *controller, const struct lane_event *event)
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
    out_log(controller->out, "%s deletes %s", session->label, request->name);
    delete_everywhere(controller, variable);
    const struct controller_call call = {
        .kind = CONTROLLER_CALL_DELETE,
        .call = event->call,
        .variable = variable,
        .session = session};
    controller_wait_call(controller, call, request->timeout_ms);
}
