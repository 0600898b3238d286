/* SPDX-License-Identifier: Apache-2.0 */
/* orders.c -- the one list of orders that some ps has not answered, and what is sent for each.
 *
 * Each ps gets them in the list's order. An order leaves the list, and its consequence follows,
 * when every ps that it is for has answered; until then it is given again on every new stream, so
 * obeying one twice must do nothing.
 */
#include "catalogue.h"
#include "define.h"
#include "meet.h"
#include "quorum.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

struct judge_mask judge_every_ps(const struct judge *judge)
{
    struct judge_mask mask = {{0}};

    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        judge_mask_add(&mask, ps);
    return mask;
}

/* Number it, unless a judge before this one has, and append it. The peers that had been given
 * everything are given this next. */
static void give(
    struct judge *judge, struct judge_order *order, enum judge_order_kind kind,
    const struct judge_mask *pending)
{
    assert(!judge_mask_empty(pending));
    assert(order->in_judge.next == NULL);
    order->kind = kind;
    if (order->number == 0)
        order->number = ++judge->orders_given;
    order->pending = *pending;
    assert(judge->orders.last == NULL || judge->orders.last->number < order->number);
    LIST_APPEND(&judge->orders, order, in_judge);
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (judge->peers[ps].next_order == NULL && judge_mask_has(&order->pending, ps))
            judge->peers[ps].next_order = order;
}

/* One for every ps; NULL when there is no memory (logged). */
static struct judge_order *add(struct judge *judge, enum judge_order_kind kind)
{
    const struct judge_mask all = judge_every_ps(judge);
    struct judge_order *order = pool_take(&judge->orders_pool);

    if (order == NULL)
        judge_log(judge, "ps 0 has no memory for another order to the ps");
    else
        give(judge, order, kind, &all);
    return order;
}

void judge_order_session(
    struct judge *judge, enum judge_order_kind kind, struct judge_session *session)
{
    assert(session->state > JUDGE_SESSION_WAITING);
    assert(session->state < JUDGE_SESSION_SETTLED);
    struct judge_order *order = add(judge, kind);
    if (order == NULL)
        return;
    order->session = session;
    session->orders++;
}

bool judge_order_variable(
    struct judge *judge, enum judge_order_kind kind, struct judge_variable *variable)
{
    assert(variable->state != JUDGE_VARIABLE_PUBLISHED);
    struct judge_order *order = add(judge, kind);
    if (order == NULL) {
        judge->variable_without_order = true;
        return false;
    }
    order->variable = variable;
    variable->orders++;
    return true;
}

bool judge_order_function(struct judge *judge, struct judge_function *function)
{
    assert(function->state == JUDGE_FUNCTION_DEFINING);
    struct judge_order *order = add(judge, JUDGE_ORDER_DEFINE);
    if (order == NULL)
        return false;
    order->function = function;
    function->orders++;
    return true;
}

void judge_order_meeting(struct judge *judge, struct judge_meeting *meeting)
{
    const struct judge_mask all = judge_every_ps(judge);

    assert(meeting->order.meeting == meeting);
    give(judge, &meeting->order, JUDGE_ORDER_MEET, &all);
}

static bool tell_membership(struct judge *judge)
{
    const bool told = judge->membership_told == judge->membership_epoch;

    if (told || add(judge, JUDGE_ORDER_MEMBERSHIP) == NULL)
        return told;
    judge->membership_told = judge->membership_epoch;
    judge_cluster_changed(judge);
    return true;
}

void judge_order_open(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_OPENING);
    if (tell_membership(judge))
        judge_order_session(judge, JUDGE_ORDER_OPEN, session);
}

void judge_orders_begin_again(struct judge *judge)
{
    judge_meetings_begin_again(judge);
    judge_steps_begin_again(judge);
    if (judge->member_joined && add(judge, JUDGE_ORDER_MEMBERSHIP) == NULL)
        judge->membership_told = 0;
    judge->variable_without_order = true; /* variables come after the functions that they name */
    judge_orders_tick(judge);
}

void judge_order_take(struct judge *judge)
{
    assert(judge->step_taken > 0);
    judge->step_without_order = add(judge, JUDGE_ORDER_TAKE) == NULL;
}

/* There is never more than one: ps 0 tells itself when the others have answered. */
void judge_order_end(struct judge *judge, const struct judge_mask *pending)
{
    assert(judge->phase != JUDGE_RUNNING);
    judge->end_order = (struct judge_order){0};
    give(judge, &judge->end_order, JUDGE_ORDER_END, pending);
}

struct judge_order *judge_order_find(const struct judge *judge, uint64_t number)
{
    struct judge_order *order = judge->orders.first;

    while (order != NULL && order->number != number)
        order = order->in_judge.next;
    return order;
}

struct judge_order *judge_order_next(struct judge_order *order, uint32_t ps)
{
    while (order != NULL && !judge_mask_has(&order->pending, ps))
        order = order->in_judge.next;
    return order;
}

const char *judge_order_text(const struct judge *judge, const struct judge_order *order)
{
    assert(order->kind < JUDGE_ORDER_KINDS);
    switch (order->kind) {
    case JUDGE_ORDER_OPEN:
        return judge_text(judge, "to open the session of %s", order->session->label);
    case JUDGE_ORDER_FIRST_STEP:
        return judge_text(
            judge, "to count %s in synchronous steps from %" PRIu64 " on", order->session->label,
            order->session->first_step);
    case JUDGE_ORDER_CLOSE:
        return judge_text(judge, "to close the session of %s", order->session->label);
    case JUDGE_ORDER_DECIDE:
        return judge_text(
            judge, "to settle the session of %s at push %" PRIu64, order->session->label,
            order->session->final);
    case JUDGE_ORDER_MEMBERSHIP:
        return "to hear who the members are";
    case JUDGE_ORDER_TAKE:
        return judge_text(judge, "to take synchronous step %" PRIu64, judge->step_taken);
    case JUDGE_ORDER_DEFINE:
        return judge_text(
            judge, "to take the function %s",
            judge_function_known(judge, order->function)->row.name);
    case JUDGE_ORDER_MEET:
        return judge_meeting_text(judge, order->meeting);
    case JUDGE_ORDER_ADD_SHARDS:
        return judge_text(judge, "to make its shards of %.200s", order->variable->name);
    case JUDGE_ORDER_PUBLISH:
        return judge_text(judge, "to publish %.200s", order->variable->name);
    case JUDGE_ORDER_DELETE:
        return judge_text(judge, "to delete %.200s", order->variable->name);
    case JUDGE_ORDER_END:
        return "to end";
    case JUDGE_ORDER_KINDS:
        break;
    }
    return "";
}

static void complete(struct judge *judge, const struct judge_order *order)
{
    struct judge_session *const session = order->session;
    struct judge_variable *const variable = order->variable;

    assert((session != NULL) == (order->kind <= JUDGE_ORDER_DECIDE));
    switch (order->kind) {
    case JUDGE_ORDER_OPEN:
        judge_join_complete(judge, session);
        break;
    case JUDGE_ORDER_FIRST_STEP:
        judge_first_step_complete(judge, session);
        break;
    case JUDGE_ORDER_CLOSE:
        judge_close_complete(judge, session);
        break;
    case JUDGE_ORDER_DECIDE:
        judge_decide_complete(judge, session);
        break;
    case JUDGE_ORDER_DEFINE:
        judge_define_complete(judge, order->function);
        break;
    case JUDGE_ORDER_MEET:
        judge_meeting_complete(judge, order->meeting);
        break;
    case JUDGE_ORDER_ADD_SHARDS:
        judge_add_complete(judge, variable);
        break;
    case JUDGE_ORDER_PUBLISH:
        judge_publish_complete(judge, variable);
        break;
    case JUDGE_ORDER_DELETE:
        judge_delete_complete(judge, variable);
        break;
    case JUDGE_ORDER_END:
        judge_end_complete(judge);
        break;
    case JUDGE_ORDER_MEMBERSHIP:
    case JUDGE_ORDER_TAKE:
    case JUDGE_ORDER_KINDS:
        break;
    }
}

static const char *const order_names[JUDGE_ORDER_KINDS] = {
    [JUDGE_ORDER_OPEN] = "open",
    [JUDGE_ORDER_FIRST_STEP] = "first_step",
    [JUDGE_ORDER_CLOSE] = "close",
    [JUDGE_ORDER_DECIDE] = "decide",
    [JUDGE_ORDER_MEMBERSHIP] = "membership",
    [JUDGE_ORDER_TAKE] = "take",
    [JUDGE_ORDER_DEFINE] = "define",
    [JUDGE_ORDER_MEET] = "meet",
    [JUDGE_ORDER_ADD_SHARDS] = "add_shards",
    [JUDGE_ORDER_PUBLISH] = "publish",
    [JUDGE_ORDER_DELETE] = "delete",
    [JUDGE_ORDER_END] = "end",
};

/* False: for want of memory it was not obeyed, or its answer was not kept. What a settle does not
 * know it must not decide. */
static bool take_answer(
    struct judge *judge, const struct judge_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    const bool settles = order->kind == JUDGE_ORDER_CLOSE || order->kind == JUDGE_ORDER_DECIDE;

    if (settles && report->status != 0 && (int)report->reason == SUMAC_REASON_OUT_OF_MEMORY)
        return false;
    if (order->kind == JUDGE_ORDER_OPEN)
        judge_join_opened(judge, order->session, ps, report);
    else if (order->kind == JUDGE_ORDER_ADD_SHARDS)
        judge_add_answered(judge, order->variable, ps, report);
    else if (order->kind == JUDGE_ORDER_DEFINE)
        judge_define_answered(judge, order->function, ps, report);
    else if (report->status != 0)
        judge_log(
            judge, "ps %u did not obey %s: %s", ps, order_names[order->kind], report->message);
    else if (order->kind == JUDGE_ORDER_CLOSE)
        return judge_close_reported(judge, order->session, report);
    return true;
}

/* It stays pending, and is given to this ps again a little later. */
static void put_off(struct judge *judge, struct judge_order *order, uint32_t ps)
{
    assert(order->session != NULL);
    assert(judge_mask_has(&order->pending, ps));
    if (order->again_us == 0)
        judge_log(
            judge,
            "settle of %s waits for memory: %s of ps %u cannot be kept, and is asked for again "
            "until it can",
            order->session->label,
            order->kind == JUDGE_ORDER_CLOSE ? "the list of refused pushes" : "the decision", ps);
    judge_mask_add(&order->again, ps);
    order->again_us = judge->now_us + judge_ms(JUDGE_AGAIN_MS);
}

uint32_t judge_order_short(const struct judge *judge, const struct judge_session *session)
{
    for (const struct judge_order *order = judge->orders.first; order != NULL;
         order = order->in_judge.next)
        for (uint32_t ps = 0; order->session == session && ps < judge->ps_count; ps++)
            if (judge_mask_has(&order->again, ps))
                return ps;
    return judge->ps_count;
}

/* The ps that had no memory for it get it as the next one; what they have been given after it, they
 * get once more. */
static void give_again(struct judge *judge, struct judge_order *order)
{
    assert(order->again_us != 0);
    for (uint32_t ps = 0; ps < judge->ps_count; ps++) {
        struct judge_peer *peer = &judge->peers[ps];
        if (!judge_mask_has(&order->again, ps))
            continue;
        if (peer->next_order == NULL || peer->next_order->number > order->number)
            peer->next_order = order;
    }
    order->again_us = judge->now_us + judge_ms(JUDGE_AGAIN_MS);
}

/* A session that moves on by an order that there was no memory for. */
static void order_missing(struct judge *judge, struct judge_session *session)
{
    if (session->orders > 0)
        return;
    if (session->state == JUDGE_SESSION_OPENING && session->first_step != 0 &&
        session->initial == 0) /* that all ps have answered to the first is on disk with it */
        judge_order_session(judge, JUDGE_ORDER_FIRST_STEP, session);
    else if (session->state == JUDGE_SESSION_OPENING)
        judge_order_open(judge, session);
    else if (session->state == JUDGE_SESSION_CLOSING)
        judge_order_session(judge, JUDGE_ORDER_CLOSE, session);
    else if (session->state == JUDGE_SESSION_DECIDING)
        judge_order_session(judge, JUDGE_ORDER_DECIDE, session);
}

/* The same of a variable. False: there is no memory for it yet. */
static bool variable_order_missing(struct judge *judge, struct judge_variable *variable)
{
    if (variable->orders > 0)
        return true;
    switch (variable->state) {
    case JUDGE_VARIABLE_ADDING:
        return judge_order_variable(judge, JUDGE_ORDER_ADD_SHARDS, variable);
    case JUDGE_VARIABLE_PUBLISHING:
        return judge_order_variable(judge, JUDGE_ORDER_PUBLISH, variable);
    case JUDGE_VARIABLE_DELETING:
        return judge_order_variable(judge, JUDGE_ORDER_DELETE, variable);
    case JUDGE_VARIABLE_PUBLISHED:
        break;
    }
    return true;
}

/* There may be very many variables: they are looked through only after one was left without its
 * order. */
static void variables_orders_missing(struct judge *judge)
{
    if (!judge->variable_without_order)
        return;
    struct judge_variable *variable = judge->variables.first;
    while (variable != NULL && variable_order_missing(judge, variable))
        variable = variable->in_judge.next;
    judge->variable_without_order = variable != NULL;
}

void judge_orders_tick(struct judge *judge)
{
    if (judge->member_joined) /* a first membership goes out with the first session */
        (void)tell_membership(judge);
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        order_missing(judge, session);
    judge_defines_order(judge);
    variables_orders_missing(judge);
    for (struct judge_order *order = judge->orders.first; order != NULL;
         order = order->in_judge.next)
        if (order->again_us != 0 && judge->now_us >= order->again_us)
            give_again(judge, order);
}

/* The others are a part of what they are of. */
static bool is_pooled(const struct judge_order *order)
{
    return order->kind != JUDGE_ORDER_END && order->kind != JUDGE_ORDER_MEET;
}

void judge_order_answered(
    struct judge *judge, struct judge_order *order, uint32_t ps, const wire_peer_report *report)
{
    assert(ps < judge->ps_count);
    if (!judge_mask_has(&order->pending, ps))
        return;
    if (report != NULL && !take_answer(judge, order, ps, report)) {
        put_off(judge, order, ps);
        return;
    }
    judge_mask_remove(&order->pending, ps);
    judge_mask_remove(&order->again, ps);
    struct judge_peer *peer = &judge->peers[ps];
    if (peer->next_order == order) /* answered on an older stream, before it was given again */
        peer->next_order = judge_order_next(order->in_judge.next, ps);
    if (!judge_mask_empty(&order->pending))
        return;
    const struct judge_order done = *order;
    LIST_REMOVE(&judge->orders, order, in_judge);
    if (is_pooled(order))
        pool_give(&judge->orders_pool, order);
    assert(done.session == NULL || done.session->orders > 0);
    assert(done.variable == NULL || done.variable->orders > 0);
    if (done.session != NULL)
        done.session->orders--;
    if (done.variable != NULL)
        done.variable->orders--;
    if (done.function != NULL)
        done.function->orders--;
    complete(judge, &done);
}

/* Each of these makes its submessage. False: no memory, which `out` says. */
static bool
pack_open(struct judge *judge, const struct judge_session *session, wire_peer_order *message)
{
    wire_open_session *open = arena_take(&judge->said->arena, sizeof *open);
    wire_task_name *task = arena_take(&judge->said->arena, sizeof *task);

    if (open == NULL || task == NULL)
        return false;
    *task = (wire_task_name)WIRE_TASK_NAME_INIT;
    task->job = judge_text(judge, "%s", session->job);
    task->index = session->index;
    *open = (wire_open_session)WIRE_OPEN_SESSION_INIT;
    open->session_id = (wire_bytes){JUDGE_ID_BYTES, (uint8_t *)session->id};
    open->role = session->role;
    open->task = session->job[0] != '\0' ? task : NULL;
    open->attempt = session->attempt;
    open->membership_epoch = judge->membership_epoch;
    open->initial = session->initial;
    message->open = open;
    return true;
}

static bool
pack_first_step(struct judge *judge, const struct judge_session *session, wire_peer_order *message)
{
    wire_first_step *first = arena_take(&judge->said->arena, sizeof *first);

    assert(session->first_step != 0);
    if (first == NULL)
        return false;
    *first = (wire_first_step)WIRE_FIRST_STEP_INIT;
    first->session_id = (wire_bytes){JUDGE_ID_BYTES, (uint8_t *)session->id};
    first->step = session->first_step;
    message->first_step = first;
    return true;
}

/* Do the steps that lack its contribution fail? Not when its client said that it leaves, nor when a
 * ps could not open it: they wait for its task's next attempt. */
static bool is_lost(const struct judge *judge, const struct judge_session *session)
{
    return judge->config->loss_fails && session->opened && session->first_step != 0 &&
           !session->left;
}

static bool
pack_close(struct judge *judge, const struct judge_session *session, wire_peer_order *message)
{
    assert(session->state >= JUDGE_SESSION_CLOSING);
    wire_close_session *close = arena_take(&judge->said->arena, sizeof *close);
    wire_close_cause *cause = arena_take(&judge->said->arena, sizeof *cause);
    if (close == NULL || cause == NULL)
        return false;
    wire_close_cause_fill(&session->cause, cause);
    *close = (wire_close_session)WIRE_CLOSE_SESSION_INIT;
    close->session_id = (wire_bytes){JUDGE_ID_BYTES, (uint8_t *)session->id};
    close->cause = cause;
    close->lost = is_lost(judge, session);
    message->close = close;
    return true;
}

static bool
pack_decide(struct judge *judge, const struct judge_session *session, wire_peer_order *message)
{
    assert(session->state >= JUDGE_SESSION_DECIDING);
    wire_decide_session *decide = arena_take(&judge->said->arena, sizeof *decide);
    if (decide == NULL)
        return false;
    *decide = (wire_decide_session)WIRE_DECIDE_SESSION_INIT;
    decide->session_id = (wire_bytes){JUDGE_ID_BYTES, (uint8_t *)session->id};
    decide->final = session->final;
    decide->done = judge_left_as_done(judge, session);
    decide->acked_through = session->acked_through;
    decide->lost = is_lost(judge, session);
    decide->initial = session->initial;
    if (session->voided != NULL) {
        decide->n_voided = session->voided->count;
        decide->voided = session->voided->sequence;
    }
    message->decide = decide;
    return true;
}

static bool pack_membership(struct judge *judge, wire_peer_order *message)
{
    size_t count = 0;

    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next)
        count += task->member;
    wire_membership *membership = arena_take(&judge->said->arena, sizeof *membership);
    wire_task_name *names = arena_take(&judge->said->arena, count * sizeof *names + 1);
    wire_task_name **pointers = arena_take(&judge->said->arena, count * sizeof *pointers + 1);
    if (membership == NULL || names == NULL || pointers == NULL)
        return false;
    *membership = (wire_membership)WIRE_MEMBERSHIP_INIT;
    membership->membership_epoch = judge->membership_epoch;
    membership->members = pointers;
    for (struct judge_task *task = judge->tasks.first; task != NULL; task = task->in_judge.next) {
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

static bool pack_take(struct judge *judge, wire_peer_order *message)
{
    size_t count = 0;

    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        count += session->taken_step == judge->step_taken;
    wire_take_step *take = arena_take(&judge->said->arena, sizeof *take);
    wire_bytes *ids = arena_take(&judge->said->arena, count * sizeof *ids + 1);
    if (take == NULL || ids == NULL)
        return false;
    *take = (wire_take_step)WIRE_TAKE_STEP_INIT;
    take->step = judge->step_taken;
    take->session_ids = ids;
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if (session->taken_step == judge->step_taken)
            ids[take->n_session_ids++] = (wire_bytes){JUDGE_ID_BYTES, session->id};
    message->take = take;
    return true;
}

static bool
pack_define(struct judge *judge, const struct judge_function *function, wire_peer_order *message)
{
    message->define = (wire_define_function *)(uintptr_t)judge_function_message(judge, function);
    return message->define != NULL;
}

static bool pack_add_shards(
    struct judge *judge, const struct judge_variable *variable, wire_peer_order *message)
{
    wire_add_shards *add = arena_take(&judge->said->arena, sizeof *add);
    wire_variable *whole = judge_variable_message(judge, variable);

    if (add == NULL || whole == NULL)
        return false;
    *add = (wire_add_shards)WIRE_ADD_SHARDS_INIT;
    add->variable = whole;
    message->add_shards = add;
    return true;
}

static bool pack_publish(struct judge *judge, uint64_t variable_id, wire_peer_order *message)
{
    wire_publish *publish = arena_take(&judge->said->arena, sizeof *publish);

    if (publish == NULL)
        return false;
    *publish = (wire_publish)WIRE_PUBLISH_INIT;
    publish->variable_id = variable_id;
    message->publish = publish;
    return true;
}

static bool pack_delete(struct judge *judge, uint64_t variable_id, wire_peer_order *message)
{
    wire_delete_variable *deleted = arena_take(&judge->said->arena, sizeof *deleted);

    if (deleted == NULL)
        return false;
    *deleted = (wire_delete_variable)WIRE_DELETE_VARIABLE_INIT;
    deleted->variable_id = variable_id;
    message->delete_ = deleted;
    return true;
}

static bool pack_end(struct judge *judge, wire_peer_order *message)
{
    assert(judge->phase != JUDGE_RUNNING);
    wire_end *end = arena_take(&judge->said->arena, sizeof *end);
    if (end == NULL)
        return false;
    *end = (wire_end)WIRE_END_INIT;
    end->exit_code = (uint32_t)judge->exit_code;
    end->message = judge->end_text;
    end->reason = (Sumac__V1__Reason)judge->end_reason;
    message->end = end;
    return true;
}

/* What is said of its kind. */
static bool
pack_body(struct judge *judge, const struct judge_order *order, wire_peer_order *message)
{
    switch (order->kind) {
    case JUDGE_ORDER_OPEN:
        return pack_open(judge, order->session, message);
    case JUDGE_ORDER_FIRST_STEP:
        return pack_first_step(judge, order->session, message);
    case JUDGE_ORDER_CLOSE:
        return pack_close(judge, order->session, message);
    case JUDGE_ORDER_DECIDE:
        return pack_decide(judge, order->session, message);
    case JUDGE_ORDER_MEMBERSHIP:
        return pack_membership(judge, message);
    case JUDGE_ORDER_TAKE:
        return pack_take(judge, message);
    case JUDGE_ORDER_DEFINE:
        return pack_define(judge, order->function, message);
    case JUDGE_ORDER_MEET:
        message->meet = judge_meeting_message(judge, order->meeting);
        return message->meet != NULL;
    case JUDGE_ORDER_ADD_SHARDS:
        return pack_add_shards(judge, order->variable, message);
    case JUDGE_ORDER_PUBLISH:
        return pack_publish(judge, order->variable->id, message);
    case JUDGE_ORDER_DELETE:
        return pack_delete(judge, order->variable->id, message);
    case JUDGE_ORDER_END:
        return pack_end(judge, message);
    case JUDGE_ORDER_KINDS:
        break;
    }
    return false;
}

const wire_peer_order *judge_order_pack(struct judge *judge, const struct judge_order *order)
{
    assert(!judge_mask_empty(&order->pending));
    if (judge->packed_order == order)
        return judge->packed;
    wire_peer_order *message = arena_take(&judge->said->arena, sizeof *message);
    if (message == NULL)
        return NULL;
    *message = (wire_peer_order)WIRE_PEER_ORDER_INIT;
    message->number = order->number;
    if (!pack_body(judge, order, message) || judge->said->texts_short)
        return NULL;
    judge->packed_order = order;
    judge->packed = message;
    return message;
}
