/* SPDX-License-Identifier: Apache-2.0 */
/* orders.c -- the one list of orders, each unanswered by some ps, and the message for each order.
 *
 * Each ps gets its orders in the list's order. When every ps that an order is for has answered, the
 * order leaves the list and its consequence follows. Until then each new stream gives the order
 * again, so obeying an order twice must do nothing.
 */
#include "catalogue.h"
#include "define.h"
#include "controller_collectives.h"
#include "quorum.h"
#include "controller_orders.h"
#include "controller_members.h"
#include "controller_creates.h"

#include <assert.h>
#include <inttypes.h>

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

/* One for every ps; NULL when there is no memory (logged). */
static struct controller_order *add(struct controller *controller, enum controller_order_kind kind)
{
    const struct controller_mask all = controller_every_ps(controller);
    struct controller_order *order = pool_take(&controller->orders_pool);

    if (order == NULL)
        controller_log(controller, "ps 0 has no memory for another order to the ps");
    else
        give(controller, order, kind, &all);
    return order;
}

void controller_order_session(
    struct controller *controller, enum controller_order_kind kind,
    struct controller_session *session)
{
    assert(session->state > CONTROLLER_SESSION_WAITING);
    assert(session->state < CONTROLLER_SESSION_SETTLED);
    struct controller_order *order = add(controller, kind);
    if (order == NULL)
        return;
    order->session = session;
    session->orders++;
}

bool controller_order_variable(
    struct controller *controller, enum controller_order_kind kind,
    struct controller_variable *variable)
{
    assert(variable->state != CONTROLLER_VARIABLE_PUBLISHED);
    struct controller_order *order = add(controller, kind);
    if (order == NULL) {
        controller->variable_without_order = true;
        return false;
    }
    order->variable = variable;
    variable->orders++;
    return true;
}

bool controller_order_function(struct controller *controller, struct controller_function *function)
{
    assert(function->state == CONTROLLER_FUNCTION_DEFINING);
    struct controller_order *order = add(controller, CONTROLLER_ORDER_DEFINE);
    if (order == NULL)
        return false;
    order->function = function;
    function->orders++;
    return true;
}

void controller_order_collective(
    struct controller *controller, struct controller_collective *collective)
{
    const struct controller_mask all = controller_every_ps(controller);

    assert(collective->order.collective == collective);
    give(controller, &collective->order, CONTROLLER_ORDER_COLLECTIVE, &all);
}

static bool tell_membership(struct controller *controller)
{
    const bool told = controller->membership_told == controller->membership_epoch;

    if (told || add(controller, CONTROLLER_ORDER_MEMBERSHIP) == NULL)
        return told;
    controller->membership_told = controller->membership_epoch;
    controller_cluster_changed(controller);
    return true;
}

void controller_order_open(struct controller *controller, struct controller_session *session)
{
    assert(session->state == CONTROLLER_SESSION_OPENING);
    if (tell_membership(controller))
        controller_order_session(controller, CONTROLLER_ORDER_OPEN, session);
}

void controller_orders_begin_again(struct controller *controller)
{
    controller_collectives_begin_again(controller);
    controller_steps_begin_again(controller);
    if (controller->member_joined && add(controller, CONTROLLER_ORDER_MEMBERSHIP) == NULL)
        controller->membership_told = 0;
    controller->variable_without_order =
        true; /* variables come after the functions that they name */
    controller_orders_tick(controller);
}

void controller_order_take(struct controller *controller)
{
    assert(controller->step_taken > 0);
    controller->step_without_order = add(controller, CONTROLLER_ORDER_TAKE) == NULL;
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
    struct controller_order *order = controller->orders.first;

    while (order != NULL && order->number != number)
        order = order->in_controller.next;
    return order;
}

struct controller_order *controller_order_next(struct controller_order *order, uint32_t ps)
{
    while (order != NULL && !controller_mask_has(&order->pending, ps))
        order = order->in_controller.next;
    return order;
}

const char *
controller_order_text(const struct controller *controller, const struct controller_order *order)
{
    assert(order->kind < CONTROLLER_ORDER_KINDS);
    switch (order->kind) {
    case CONTROLLER_ORDER_OPEN:
        return controller_text(controller, "to open the session of %s", order->session->label);
    case CONTROLLER_ORDER_FIRST_STEP:
        return controller_text(
            controller, "to count %s in synchronous steps from %" PRIu64 " on",
            order->session->label, order->session->first_step);
    case CONTROLLER_ORDER_CLOSE:
        return controller_text(controller, "to close the session of %s", order->session->label);
    case CONTROLLER_ORDER_DECIDE:
        return controller_text(
            controller, "to settle the session of %s at push %" PRIu64, order->session->label,
            order->session->final);
    case CONTROLLER_ORDER_MEMBERSHIP:
        return "to hear who the members are";
    case CONTROLLER_ORDER_TAKE:
        return controller_text(
            controller, "to take synchronous step %" PRIu64, controller->step_taken);
    case CONTROLLER_ORDER_DEFINE:
        return controller_text(
            controller, "to take the function %s",
            controller_function_known(controller, order->function)->row.name);
    case CONTROLLER_ORDER_COLLECTIVE:
        return controller_collective_text(controller, order->collective);
    case CONTROLLER_ORDER_ADD_SHARDS:
        return controller_text(controller, "to make its shards of %.200s", order->variable->name);
    case CONTROLLER_ORDER_PUBLISH:
        return controller_text(controller, "to publish %.200s", order->variable->name);
    case CONTROLLER_ORDER_DELETE:
        return controller_text(controller, "to delete %.200s", order->variable->name);
    case CONTROLLER_ORDER_END:
        return "to end";
    case CONTROLLER_ORDER_KINDS:
        break;
    }
    return "";
}

static void complete(struct controller *controller, const struct controller_order *order)
{
    struct controller_session *const session = order->session;
    struct controller_variable *const variable = order->variable;

    assert((session != NULL) == (order->kind <= CONTROLLER_ORDER_DECIDE));
    switch (order->kind) {
    case CONTROLLER_ORDER_OPEN:
        controller_join_complete(controller, session);
        break;
    case CONTROLLER_ORDER_FIRST_STEP:
        controller_first_step_complete(controller, session);
        break;
    case CONTROLLER_ORDER_CLOSE:
        controller_close_complete(controller, session);
        break;
    case CONTROLLER_ORDER_DECIDE:
        controller_decide_complete(controller, session);
        break;
    case CONTROLLER_ORDER_DEFINE:
        controller_define_complete(controller, order->function);
        break;
    case CONTROLLER_ORDER_COLLECTIVE:
        controller_collective_complete(controller, order->collective);
        break;
    case CONTROLLER_ORDER_ADD_SHARDS:
        controller_add_complete(controller, variable);
        break;
    case CONTROLLER_ORDER_PUBLISH:
        controller_publish_complete(controller, variable);
        break;
    case CONTROLLER_ORDER_DELETE:
        controller_delete_complete(controller, variable);
        break;
    case CONTROLLER_ORDER_END:
        controller_end_complete(controller);
        break;
    case CONTROLLER_ORDER_MEMBERSHIP:
    case CONTROLLER_ORDER_TAKE:
    case CONTROLLER_ORDER_KINDS:
        break;
    }
}

static const char *const order_names[CONTROLLER_ORDER_KINDS] = {
    [CONTROLLER_ORDER_OPEN] = "open",
    [CONTROLLER_ORDER_FIRST_STEP] = "first_step",
    [CONTROLLER_ORDER_CLOSE] = "close",
    [CONTROLLER_ORDER_DECIDE] = "decide",
    [CONTROLLER_ORDER_MEMBERSHIP] = "membership",
    [CONTROLLER_ORDER_TAKE] = "take",
    [CONTROLLER_ORDER_DEFINE] = "define",
    [CONTROLLER_ORDER_COLLECTIVE] = "collective",
    [CONTROLLER_ORDER_ADD_SHARDS] = "add_shards",
    [CONTROLLER_ORDER_PUBLISH] = "publish",
    [CONTROLLER_ORDER_DELETE] = "delete",
    [CONTROLLER_ORDER_END] = "end",
};

/* False: the ps had no memory to obey the order, or ps 0 had none to keep the answer. A settle must
 * not decide without that answer. */
static bool take_answer(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    const bool settles =
        order->kind == CONTROLLER_ORDER_CLOSE || order->kind == CONTROLLER_ORDER_DECIDE;

    if (settles && report->status != 0 && (int)report->reason == SUMAC_REASON_OUT_OF_MEMORY)
        return false;
    if (order->kind == CONTROLLER_ORDER_OPEN)
        controller_join_opened(controller, order->session, ps, report);
    else if (order->kind == CONTROLLER_ORDER_ADD_SHARDS)
        controller_add_answered(controller, order->variable, ps, report);
    else if (order->kind == CONTROLLER_ORDER_DEFINE)
        controller_define_answered(controller, order->function, ps, report);
    else if (report->status != 0)
        controller_log(
            controller, "ps %u did not obey %s: %s", ps, order_names[order->kind], report->message);
    else if (order->kind == CONTROLLER_ORDER_CLOSE)
        return controller_close_reported(controller, order->session, report);
    return true;
}

/* It stays pending, and is given to this ps again a little later. */
static void put_off(struct controller *controller, struct controller_order *order, uint32_t ps)
{
    assert(order->session != NULL);
    assert(controller_mask_has(&order->pending, ps));
    if (order->again_us == 0)
        controller_log(
            controller,
            "settle of %s waits for memory: %s of ps %u cannot be kept, and is asked for again "
            "until it can",
            order->session->label,
            order->kind == CONTROLLER_ORDER_CLOSE ? "the list of refused pushes" : "the decision",
            ps);
    controller_mask_add(&order->again, ps);
    order->again_us = controller->now_us + controller_ms(CONTROLLER_AGAIN_MS);
}

uint32_t controller_order_short(
    const struct controller *controller, const struct controller_session *session)
{
    for (const struct controller_order *order = controller->orders.first; order != NULL;
         order = order->in_controller.next)
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

/* A session that moves on by an order that there was no memory for. */
static void order_missing(struct controller *controller, struct controller_session *session)
{
    if (session->orders > 0)
        return;
    if (session->state == CONTROLLER_SESSION_OPENING && session->first_step != 0 &&
        session->initial == 0) /* that all ps have answered to the first is on disk with it */
        controller_order_session(controller, CONTROLLER_ORDER_FIRST_STEP, session);
    else if (session->state == CONTROLLER_SESSION_OPENING)
        controller_order_open(controller, session);
    else if (session->state == CONTROLLER_SESSION_CLOSING)
        controller_order_session(controller, CONTROLLER_ORDER_CLOSE, session);
    else if (session->state == CONTROLLER_SESSION_DECIDING)
        controller_order_session(controller, CONTROLLER_ORDER_DECIDE, session);
}

/* The same of a variable. False: there is no memory for it yet. */
static bool
variable_order_missing(struct controller *controller, struct controller_variable *variable)
{
    if (variable->orders > 0)
        return true;
    switch (variable->state) {
    case CONTROLLER_VARIABLE_ADDING:
        return controller_order_variable(controller, CONTROLLER_ORDER_ADD_SHARDS, variable);
    case CONTROLLER_VARIABLE_PUBLISHING:
        return controller_order_variable(controller, CONTROLLER_ORDER_PUBLISH, variable);
    case CONTROLLER_VARIABLE_DELETING:
        return controller_order_variable(controller, CONTROLLER_ORDER_DELETE, variable);
    case CONTROLLER_VARIABLE_PUBLISHED:
        break;
    }
    return true;
}

/* There may be very many variables: they are looked through only after one was left without its
 * order. */
static void variables_orders_missing(struct controller *controller)
{
    if (!controller->variable_without_order)
        return;
    struct controller_variable *variable = controller->variables.first;
    while (variable != NULL && variable_order_missing(controller, variable))
        variable = variable->in_controller.next;
    controller->variable_without_order = variable != NULL;
}

void controller_orders_tick(struct controller *controller)
{
    if (controller->member_joined) /* a first membership goes out with the first session */
        (void)tell_membership(controller);
    for (struct controller_session *session = controller->sessions.first; session != NULL;
         session = session->in_controller.next)
        order_missing(controller, session);
    controller_defines_order(controller);
    variables_orders_missing(controller);
    for (struct controller_order *order = controller->orders.first; order != NULL;
         order = order->in_controller.next)
        if (order->again_us != 0 && controller->now_us >= order->again_us)
            give_again(controller, order);
}

/* The others are a part of what they are of. */
static bool is_pooled(const struct controller_order *order)
{
    return order->kind != CONTROLLER_ORDER_END && order->kind != CONTROLLER_ORDER_COLLECTIVE;
}

void controller_order_answered(
    struct controller *controller, struct controller_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    assert(ps < controller->ps_count);
    if (!controller_mask_has(&order->pending, ps))
        return;
    if (report != NULL && !take_answer(controller, order, ps, report)) {
        put_off(controller, order, ps);
        return;
    }
    controller_mask_remove(&order->pending, ps);
    controller_mask_remove(&order->again, ps);
    struct controller_peer *peer = &controller->peers[ps];
    if (peer->next_order == order) /* answered on an older stream, before it was given again */
        peer->next_order = controller_order_next(order->in_controller.next, ps);
    if (!controller_mask_empty(&order->pending))
        return;
    const struct controller_order done = *order;
    LIST_REMOVE(&controller->orders, order, in_controller);
    if (is_pooled(order))
        pool_give(&controller->orders_pool, order);
    assert(done.session == NULL || done.session->orders > 0);
    assert(done.variable == NULL || done.variable->orders > 0);
    if (done.session != NULL)
        done.session->orders--;
    if (done.variable != NULL)
        done.variable->orders--;
    if (done.function != NULL)
        done.function->orders--;
    complete(controller, &done);
}

/* Each of these makes its submessage. False: no memory, which `out` says. */
static bool pack_open(
    struct controller *controller, const struct controller_session *session,
    wire_peer_order *message)
{
    wire_open_session *open = arena_take(&controller->said->arena, sizeof *open);
    wire_task_name *task = arena_take(&controller->said->arena, sizeof *task);

    if (open == NULL || task == NULL)
        return false;
    *task = (wire_task_name)WIRE_TASK_NAME_INIT;
    task->job = controller_text(controller, "%s", session->job);
    task->index = session->index;
    *open = (wire_open_session)WIRE_OPEN_SESSION_INIT;
    open->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    open->role = session->role;
    open->task = session->job[0] != '\0' ? task : NULL;
    open->attempt = session->attempt;
    open->membership_epoch = controller->membership_epoch;
    open->initial = session->initial;
    message->open = open;
    return true;
}

static bool pack_first_step(
    struct controller *controller, const struct controller_session *session,
    wire_peer_order *message)
{
    wire_first_step *first = arena_take(&controller->said->arena, sizeof *first);

    assert(session->first_step != 0);
    if (first == NULL)
        return false;
    *first = (wire_first_step)WIRE_FIRST_STEP_INIT;
    first->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    first->step = session->first_step;
    message->first_step = first;
    return true;
}

/* Do the steps that lack its contribution fail? Not when its client said that it leaves, nor when a
 * ps could not open it: they wait for its task's next attempt. */
static bool is_lost(const struct controller *controller, const struct controller_session *session)
{
    return controller->config->loss_fails && session->opened && session->first_step != 0 &&
           !session->left;
}

static bool pack_close(
    struct controller *controller, const struct controller_session *session,
    wire_peer_order *message)
{
    assert(session->state >= CONTROLLER_SESSION_CLOSING);
    wire_close_session *close = arena_take(&controller->said->arena, sizeof *close);
    wire_close_cause *cause = arena_take(&controller->said->arena, sizeof *cause);
    if (close == NULL || cause == NULL)
        return false;
    wire_close_cause_fill(&session->cause, cause);
    *close = (wire_close_session)WIRE_CLOSE_SESSION_INIT;
    close->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    close->cause = cause;
    close->lost = is_lost(controller, session);
    message->close = close;
    return true;
}

static bool pack_decide(
    struct controller *controller, const struct controller_session *session,
    wire_peer_order *message)
{
    assert(session->state >= CONTROLLER_SESSION_DECIDING);
    wire_decide_session *decide = arena_take(&controller->said->arena, sizeof *decide);
    if (decide == NULL)
        return false;
    *decide = (wire_decide_session)WIRE_DECIDE_SESSION_INIT;
    decide->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    decide->final = session->final;
    decide->done = controller_left_as_done(controller, session);
    decide->acked_through = session->acked_through;
    decide->lost = is_lost(controller, session);
    decide->initial = session->initial;
    if (session->voided != NULL) {
        decide->n_voided = session->voided->count;
        decide->voided = session->voided->sequence;
    }
    message->decide = decide;
    return true;
}

static bool pack_membership(struct controller *controller, wire_peer_order *message)
{
    size_t count = 0;

    for (const struct controller_task *task = controller->tasks.first; task != NULL;
         task = task->in_controller.next)
        count += task->member;
    wire_membership *membership = arena_take(&controller->said->arena, sizeof *membership);
    wire_task_name *names = arena_take(&controller->said->arena, count * sizeof *names + 1);
    wire_task_name **pointers = arena_take(&controller->said->arena, count * sizeof *pointers + 1);
    if (membership == NULL || names == NULL || pointers == NULL)
        return false;
    *membership = (wire_membership)WIRE_MEMBERSHIP_INIT;
    membership->membership_epoch = controller->membership_epoch;
    membership->members = pointers;
    for (struct controller_task *task = controller->tasks.first; task != NULL;
         task = task->in_controller.next) {
        if (!task->member)
            continue;
        const size_t i = membership->n_members++;
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = task->job;
        names[i].index = task->index;
        pointers[i] = &names[i];
    }
    message->membership = membership;
    return true;
}

static bool pack_take(struct controller *controller, wire_peer_order *message)
{
    size_t count = 0;

    for (const struct controller_session *session = controller->sessions.first; session != NULL;
         session = session->in_controller.next)
        count += session->taken_step == controller->step_taken;
    wire_take_step *take = arena_take(&controller->said->arena, sizeof *take);
    wire_bytes *ids = arena_take(&controller->said->arena, count * sizeof *ids + 1);
    if (take == NULL || ids == NULL)
        return false;
    *take = (wire_take_step)WIRE_TAKE_STEP_INIT;
    take->step = controller->step_taken;
    take->session_ids = ids;
    for (struct controller_session *session = controller->sessions.first; session != NULL;
         session = session->in_controller.next)
        if (session->taken_step == controller->step_taken)
            ids[take->n_session_ids++] = (wire_bytes){CONTROLLER_ID_BYTES, session->id};
    message->take = take;
    return true;
}

static bool pack_define(
    struct controller *controller, const struct controller_function *function,
    wire_peer_order *message)
{
    message->define =
        (wire_define_function *)(uintptr_t)controller_function_message(controller, function);
    return message->define != NULL;
}

static bool pack_add_shards(
    struct controller *controller, const struct controller_variable *variable,
    wire_peer_order *message)
{
    wire_add_shards *add = arena_take(&controller->said->arena, sizeof *add);
    wire_variable *whole = controller_variable_message(controller, variable);

    if (add == NULL || whole == NULL)
        return false;
    *add = (wire_add_shards)WIRE_ADD_SHARDS_INIT;
    add->variable = whole;
    message->add_shards = add;
    return true;
}

static bool
pack_publish(struct controller *controller, uint64_t variable_id, wire_peer_order *message)
{
    wire_publish *publish = arena_take(&controller->said->arena, sizeof *publish);

    if (publish == NULL)
        return false;
    *publish = (wire_publish)WIRE_PUBLISH_INIT;
    publish->variable_id = variable_id;
    message->publish = publish;
    return true;
}

static bool
pack_delete(struct controller *controller, uint64_t variable_id, wire_peer_order *message)
{
    wire_delete_variable *deleted = arena_take(&controller->said->arena, sizeof *deleted);

    if (deleted == NULL)
        return false;
    *deleted = (wire_delete_variable)WIRE_DELETE_VARIABLE_INIT;
    deleted->variable_id = variable_id;
    message->delete_ = deleted;
    return true;
}

static bool pack_end(struct controller *controller, wire_peer_order *message)
{
    assert(controller->phase != CONTROLLER_RUNNING);
    wire_end *end = arena_take(&controller->said->arena, sizeof *end);
    if (end == NULL)
        return false;
    *end = (wire_end)WIRE_END_INIT;
    end->exit_code = (uint32_t)controller->exit_code;
    end->message = controller->end_text;
    end->reason = (Sumac__V1__Reason)controller->end_reason;
    message->end = end;
    return true;
}

/* What is said of its kind. */
static bool pack_body(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    switch (order->kind) {
    case CONTROLLER_ORDER_OPEN:
        return pack_open(controller, order->session, message);
    case CONTROLLER_ORDER_FIRST_STEP:
        return pack_first_step(controller, order->session, message);
    case CONTROLLER_ORDER_CLOSE:
        return pack_close(controller, order->session, message);
    case CONTROLLER_ORDER_DECIDE:
        return pack_decide(controller, order->session, message);
    case CONTROLLER_ORDER_MEMBERSHIP:
        return pack_membership(controller, message);
    case CONTROLLER_ORDER_TAKE:
        return pack_take(controller, message);
    case CONTROLLER_ORDER_DEFINE:
        return pack_define(controller, order->function, message);
    case CONTROLLER_ORDER_COLLECTIVE:
        message->collective = controller_collective_message(controller, order->collective);
        return message->collective != NULL;
    case CONTROLLER_ORDER_ADD_SHARDS:
        return pack_add_shards(controller, order->variable, message);
    case CONTROLLER_ORDER_PUBLISH:
        return pack_publish(controller, order->variable->id, message);
    case CONTROLLER_ORDER_DELETE:
        return pack_delete(controller, order->variable->id, message);
    case CONTROLLER_ORDER_END:
        return pack_end(controller, message);
    case CONTROLLER_ORDER_KINDS:
        break;
    }
    return false;
}

const wire_peer_order *
controller_order_pack(struct controller *controller, const struct controller_order *order)
{
    assert(!controller_mask_empty(&order->pending));
    if (controller->packed_order == order)
        return controller->packed;
    wire_peer_order *message = arena_take(&controller->said->arena, sizeof *message);
    if (message == NULL)
        return NULL;
    *message = (wire_peer_order)WIRE_PEER_ORDER_INIT;
    message->number = order->number;
    if (!pack_body(controller, order, message) || controller->said->texts_short)
        return NULL;
    controller->packed_order = order;
    controller->packed = message;
    return message;
}
