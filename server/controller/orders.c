/* SPDX-License-Identifier: Apache-2.0 */
/* orders.c -- the one list of orders, each unanswered by some ps.
 *
 * Each ps gets its orders in the list's order. When every ps that an order is for has answered, the
 * order leaves the list and its consequence follows. Until then each new stream gives the order
 * again, so obeying an order twice must do nothing.
 */
#include "controller_collectives.h"
#include "controller_orders.h"

#include <assert.h>

struct controller_mask controller_every_ps(const struct controller *controller)
{
    struct controller_mask mask = {{0}};

    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        controller_mask_add(&mask, ps);
    return mask;
}

/* Number it, unless a controller before this one has, and append it. The peers that had been given
 * everything are given this next. */
static void give(
    struct controller *controller, struct controller_order *order, enum controller_order_kind kind,
    const struct controller_mask *pending)
{
    assert(!controller_mask_empty(pending));
    assert(order->in_controller.next == NULL);
    order->kind = kind;
    if (order->number == 0)
        order->number = ++controller->orders_given;
    order->pending = *pending;
    assert(controller->orders.last == NULL || controller->orders.last->number < order->number);
    LIST_APPEND(&controller->orders, order, in_controller);
    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        if (controller->peers[ps].next_order == NULL && controller_mask_has(&order->pending, ps))
            controller->peers[ps].next_order = order;
}

/* One for every ps, of the object with this row and count; NULL when there is no memory (logged).
 */
static struct controller_order *
add(struct controller *controller, enum controller_order_kind kind, struct controller_row *row,
    uint32_t *count)
{
    const struct controller_mask all = controller_every_ps(controller);
    struct controller_order *order = pool_take(&controller->orders_pool);

    if (order == NULL) {
        out_log(controller->out, "ps 0 has no memory for another order to the ps");
        return NULL;
    }
    give(controller, order, kind, &all);
    order->row = row;
    order->count = count;
    if (count != NULL)
        ++*count;
    return order;
}

static bool tell_membership(struct controller *controller)
{
    const bool told = controller->membership_told == controller->membership_epoch;

    if (told || add(controller, CONTROLLER_ORDER_MEMBERSHIP, NULL, NULL) == NULL)
        return told;
    controller->membership_told = controller->membership_epoch;
    controller_row_changed(controller, &controller->row);
    return true;
}

/* The order that a session of this state waits for. */
static enum controller_order_kind kind_of(const struct controller_session *session)
{
    assert(session->state > CONTROLLER_SESSION_WAITING);
    assert(session->state < CONTROLLER_SESSION_SETTLED);
    if (session->state == CONTROLLER_SESSION_DECIDING)
        return CONTROLLER_ORDER_DECIDE;
    if (session->state == CONTROLLER_SESSION_CLOSING)
        return CONTROLLER_ORDER_CLOSE;
    /* That all ps have answered to the first is on disk with first_step. */
    return session->first_step != 0 && session->initial == 0 ? CONTROLLER_ORDER_FIRST_STEP
                                                             : CONTROLLER_ORDER_OPEN;
}

void controller_order_session(struct controller *controller, struct controller_session *session)
{
    const enum controller_order_kind kind = kind_of(session);

    if (kind == CONTROLLER_ORDER_OPEN && !tell_membership(controller))
        return;
    struct controller_order *order = add(controller, kind, &session->row, &session->orders);
    if (order != NULL)
        order->session = session;
}

bool controller_order_variable(struct controller *controller, struct controller_variable *variable)
{
    static const enum controller_order_kind kinds[] = {
        [CONTROLLER_VARIABLE_ADDING] = CONTROLLER_ORDER_ADD_SHARDS,
        [CONTROLLER_VARIABLE_PUBLISHING] = CONTROLLER_ORDER_PUBLISH,
        [CONTROLLER_VARIABLE_DELETING] = CONTROLLER_ORDER_DELETE};

    assert(variable->state != CONTROLLER_VARIABLE_PUBLISHED);
    struct controller_order *order =
        add(controller, kinds[variable->state], &variable->row, &variable->orders);
    if (order == NULL)
        controller->variable_without_order = true;
    else
        order->variable = variable;
    return order != NULL;
}

bool controller_order_function(struct controller *controller, struct controller_function *function)
{
    assert(function->state == CONTROLLER_FUNCTION_DEFINING);
    struct controller_order *order =
        add(controller, CONTROLLER_ORDER_DEFINE, &function->row, &function->orders);
    if (order != NULL)
        order->function = function;
    return order != NULL;
}

void controller_order_collective(
    struct controller *controller, struct controller_collective *collective)
{
    const struct controller_mask all = controller_every_ps(controller);

    assert(collective->order.collective == collective);
    collective->order.row = &collective->row;
    give(controller, &collective->order, CONTROLLER_ORDER_COLLECTIVE, &all);
}

void controller_orders_begin_again(struct controller *controller)
{
    if (controller->member_joined &&
        add(controller, CONTROLLER_ORDER_MEMBERSHIP, NULL, NULL) == NULL)
        controller->membership_told = 0;
    controller->variable_without_order =
        true; /* variables come after the functions that they name */
    controller_orders_tick(controller);
}

void controller_order_take(struct controller *controller)
{
    assert(controller->step_taken > 0);
    controller->step_without_order = add(controller, CONTROLLER_ORDER_TAKE, NULL, NULL) == NULL;
}

/* There is never more than one: ps 0 tells itself when the others have answered. */
void controller_order_end(struct controller *controller, const struct controller_mask *pending)
{
    assert(controller->phase != CONTROLLER_RUNNING);
    controller->end_order = (struct controller_order){0};
    give(controller, &controller->end_order, CONTROLLER_ORDER_END, pending);
}

struct controller_order *controller_order_find(const struct controller *controller, uint64_t number)
{
    LIST_FOREACH(struct controller_order, order, &controller->orders, in_controller)
        if (order->number == number)
            return order;
    return NULL;
}

struct controller_order *controller_order_next(struct controller_order *order, uint32_t ps)
{
    while (order != NULL && !controller_mask_has(&order->pending, ps))
        order = order->in_controller.next;
    return order;
}

uint32_t controller_order_short(
    const struct controller *controller, const struct controller_session *session)
{
    LIST_FOREACH(const struct controller_order, order, &controller->orders, in_controller)
        for (uint32_t ps = 0; order->session == session && ps < controller->ps_count; ps++)
            if (controller_mask_has(&order->again, ps))
                return ps;
    return controller->ps_count;
}

/* The ps that had no memory for it get it as the next one; what they have been given after it, they
 * get once more. */
static void give_again(struct controller *controller, struct controller_order *order)
{
    assert(order->again_us != 0);
    for (uint32_t ps = 0; ps < controller->ps_count; ps++) {
        struct controller_peer *peer = &controller->peers[ps];
        if (!controller_mask_has(&order->again, ps))
            continue;
        if (peer->next_order == NULL || peer->next_order->number > order->number)
            peer->next_order = order;
    }
    order->again_us = controller->now_us + controller_ms(CONTROLLER_AGAIN_MS);
}

/* There may be very many variables: they are looked through only after one was left without its
 * order. */
static void order_variables(struct controller *controller)
{
    if (!controller->variable_without_order)
        return;
    struct controller_variable *variable = controller->variables.first;
    while (variable != NULL &&
           (variable->orders > 0 || variable->state == CONTROLLER_VARIABLE_PUBLISHED ||
            controller_order_variable(controller, variable)))
        variable = variable->in_controller.next;
    controller->variable_without_order = variable != NULL;
}

void controller_orders_tick(struct controller *controller)
{
    if (controller->member_joined) /* a first membership goes out with the first session */
        (void)tell_membership(controller);
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller)
        if (session->orders == 0 && session->state != CONTROLLER_SESSION_WAITING &&
            session->state != CONTROLLER_SESSION_OPEN &&
            session->state != CONTROLLER_SESSION_SETTLED)
            controller_order_session(controller, session);
    order_variables(controller);
    LIST_FOREACH(struct controller_order, order, &controller->orders, in_controller)
        if (order->again_us != 0 && controller->now_us >= order->again_us)
            give_again(controller, order);
}

/* The others are a part of what they are of. */
static bool is_pooled(const struct controller_order *order)
{
    return order->kind != CONTROLLER_ORDER_END && order->kind != CONTROLLER_ORDER_COLLECTIVE;
}

bool controller_order_confirm(
    struct controller *controller, struct controller_order *order, uint32_t ps,
    struct controller_order *done)
{
    struct controller_peer *peer = &controller->peers[ps];

    assert(ps < controller->ps_count);
    assert(controller_mask_has(&order->pending, ps));
    controller_mask_remove(&order->pending, ps);
    controller_mask_remove(&order->again, ps);
    if (peer->next_order == order) /* answered on an older stream, before it was given again */
        peer->next_order = controller_order_next(order->in_controller.next, ps);
    if (!controller_mask_empty(&order->pending))
        return false;
    *done = *order;
    LIST_REMOVE(&controller->orders, order, in_controller);
    if (is_pooled(order))
        pool_give(&controller->orders_pool, order);
    assert(done->count == NULL || *done->count > 0);
    if (done->count != NULL)
        --*done->count;
    return true;
}
