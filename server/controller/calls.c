/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c -- calls that change the catalogue and wait: for what, until when, and which of them
 * fail. */
#include "catalogue.h"

#include <assert.h>

#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"

/* "create of w", … */
static const char *
call_text(const struct controller *controller, const struct controller_call *call)
{
    assert((call->function != NULL) == (call->kind == CONTROLLER_CALL_DEFINE));
    if (call->kind == CONTROLLER_CALL_DEFINE)
        return out_text(
            controller->out, "define of %s",
            controller_function_known(controller, call->function)->row.name);
    return out_text(
        controller->out, "%s of %s", call->kind == CONTROLLER_CALL_CREATE ? "create" : "delete",
        call->variable->name);
}

void controller_list_give(struct controller *controller, struct controller_list *list)
{
    if (list != NULL)
        memory_give(controller->memory, list, sizeof *list + list->count * sizeof list->ids[0]);
}

void controller_wait_call(
    struct controller *controller, struct controller_call wanted, uint32_t timeout_ms)
{
    assert(wanted.call != 0);
    assert((wanted.variable != NULL) == (wanted.kind != CONTROLLER_CALL_DEFINE));
    const bool too_many = controller->calls_pool.used >= CONTROLLER_CALLS_MAX;
    struct controller_call *call = too_many ? NULL : pool_take(&controller->calls_pool);
    if (too_many)
        controller_fail(
            controller, wanted.call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%zu creates, deletes and defines wait already, at most %u do: the %s has to be asked "
            "for again later",
            controller->calls_pool.used, CONTROLLER_CALLS_MAX, call_text(controller, &wanted));
    else if (call == NULL)
        controller_fail(
            controller, wanted.call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps 0 has no memory to let the %s wait; it goes on without an answer: ask again",
            call_text(controller, &wanted));
    if (call == NULL) {
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

void controller_call_drop(struct controller *controller, struct controller_call *call)
{
    assert(controller->calls_pool.used > 0);
    assert(controller->calls.first != NULL);
    LIST_REMOVE(&controller->calls, call, in_controller);
    if (call->variable != NULL)
        LIST_REMOVE(&call->variable->waiting, call, of_variable);
    controller_list_give(controller, call->list);
    pool_give(&controller->calls_pool, call);
}

void controller_calls_fail(struct controller *controller, const struct sumac_error *error)
{
    while (controller->calls.first != NULL) {
        controller_fail_with(controller, controller->calls.first->call, error);
        controller_call_drop(controller, controller->calls.first);
    }
}

void controller_call_forget(struct controller *controller, uint64_t number)
{
    LIST_FOREACH_SAFE(struct controller_call, call, &controller->calls, in_controller)
        if (call->call == number)
            controller_call_drop(controller, call);
}

void controller_calls_of_session_fail(
    struct controller *controller, const struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_CLOSING);
    LIST_FOREACH_SAFE(struct controller_call, call, &controller->calls, in_controller) {
        if (call->session != session)
            continue;
        controller_fail_closed(controller, call->call, session);
        controller_call_drop(controller, call);
    }
}

/* The first ps that owes an answer to this call's order. ps_count: all have answered. */
static uint32_t
find_slow_ps(const struct controller *controller, const struct controller_call *call)
{
    LIST_FOREACH(const struct controller_order, order, &controller->orders, in_controller)
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
        return out_text(
            controller->out, "%s waits for %s", what, controller_peer_text(controller, slow));
    if (!ordered && !published)
        return out_text(
            controller->out, "%s waits: ps 0 has no memory for its order to the ps", what);
    if (variable != NULL && variable->creator != NULL)
        return out_text(
            controller->out, "%s waits for %s to assign it, last heard from %s", what,
            variable->creator->label, controller_ago(controller, variable->creator->heard_us));
    return out_text(controller->out, "%s waits", what);
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
    LIST_FOREACH_SAFE(struct controller_call, call, &controller->calls, in_controller) {
        if (controller->now_us < call->until_us)
            continue;
        controller_fail(
            controller, call->call, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "after %s %s%s", text_time_ms(call->timeout_ms).text,
            controller_call_wait(controller, call), remedy(controller, call));
        controller_call_drop(controller, call);
    }
}

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
