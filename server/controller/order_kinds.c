/* SPDX-License-Identifier: Apache-2.0 */
/* order_kinds.c -- the kinds of orders, a row each: what is sent, what an answer says, and what
 * follows when every ps has answered. */
#include "catalogue.h"
#include "controller_collectives.h"
#include "controller_orders.h"
#include "controller_members.h"

#include <assert.h>
#include <inttypes.h>

#include "collective.h"

/* ---- texts ---- */

static const char *
first_step_text(const struct controller *controller, const struct controller_order *order)
{
    return out_text(
        controller->out, "to count %s in synchronous steps from %" PRIu64 " on",
        order->session->label, order->session->first_step);
}

static const char *
decide_text(const struct controller *controller, const struct controller_order *order)
{
    return out_text(
        controller->out, "to settle the session of %s at push %" PRIu64, order->session->label,
        order->session->final);
}

static const char *
take_text(const struct controller *controller, const struct controller_order *order)
{
    (void)order;
    return out_text(controller->out, "to take synchronous step %" PRIu64, controller->step_taken);
}

static const char *
collective_text(const struct controller *controller, const struct controller_order *order)
{
    const struct collective *collective = order->collective->collective;

    return out_text(
        controller->out, "to hear how round %" PRIu64 " of collective %.100s ended",
        collective->round, collective->name);
}

/* ---- messages ---- */

/* Each of these makes its submessage. A submessage that found no memory is in no order: `out` says
 * that it is missing. */
static void pack_open(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    const struct controller_session *session = order->session;
    wire_open_session *open = OUT_MESSAGE(controller->out, open_session);
    wire_task_name *task = OUT_MESSAGE(controller->out, task_name);

    task->job = out_text(controller->out, "%s", session->job);
    task->index = session->index;
    open->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    open->role = session->role;
    open->task = session->job[0] != '\0' ? task : NULL;
    open->attempt = session->attempt;
    open->membership_epoch = controller->membership_epoch;
    open->initial = session->initial;
    message->open = open;
}

static void pack_first_step(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    const struct controller_session *session = order->session;
    wire_first_step *first = OUT_MESSAGE(controller->out, first_step);

    assert(session->first_step != 0);
    first->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    first->step = session->first_step;
    message->first_step = first;
}

/* Do the steps that lack its contribution fail? Not when its client said that it leaves, nor when a
 * ps could not open it: they wait for its task's next attempt. */
static bool is_lost(const struct controller *controller, const struct controller_session *session)
{
    return controller->config->loss_fails && session->opened && session->first_step != 0 &&
           !session->left;
}

static void pack_close(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    const struct controller_session *session = order->session;

    assert(session->state >= CONTROLLER_SESSION_CLOSING);
    wire_close_session *close = OUT_MESSAGE(controller->out, close_session);
    wire_close_cause *cause = OUT_MESSAGE(controller->out, close_cause);
    wire_close_cause_fill(&session->cause, cause);
    close->session_id = (wire_bytes){CONTROLLER_ID_BYTES, (uint8_t *)session->id};
    close->cause = cause;
    close->lost = is_lost(controller, session);
    message->close = close;
}

static void pack_decide(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    const struct controller_session *session = order->session;

    assert(session->state >= CONTROLLER_SESSION_DECIDING);
    wire_decide_session *decide = OUT_MESSAGE(controller->out, decide_session);
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
}

static void pack_membership(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    (void)order;
    size_t count = 0;

    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller)
        count += task->member;
    wire_membership *membership = OUT_MESSAGE(controller->out, membership);
    wire_task_name *names = out_take(controller->out, count * sizeof *names + 1);
    wire_task_name **pointers = out_take(controller->out, count * sizeof *pointers + 1);
    if (names == NULL || pointers == NULL)
        return;
    membership->membership_epoch = controller->membership_epoch;
    membership->members = pointers;
    LIST_FOREACH(struct controller_task, task, &controller->tasks, in_controller) {
        if (!task->member)
            continue;
        const size_t i = membership->n_members++;
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = task->key.job;
        names[i].index = task->key.index;
        pointers[i] = &names[i];
    }
    message->membership = membership;
}

static void pack_take(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    (void)order;
    size_t count = 0;

    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        count += session->taken_step == controller->step_taken;
    wire_take_step *take = OUT_MESSAGE(controller->out, take_step);
    wire_bytes *ids = out_take(controller->out, count * sizeof *ids + 1);
    if (ids == NULL)
        return;
    take->step = controller->step_taken;
    take->session_ids = ids;
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller)
        if (session->taken_step == controller->step_taken)
            ids[take->n_session_ids++] = (wire_bytes){CONTROLLER_ID_BYTES, session->id};
    message->take = take;
}

static void pack_define(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    message->define = controller_function_message(controller, order->function);
}

static void pack_collective(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    message->collective = controller_collective_message(controller, order->collective);
    controller->out->is_short |= message->collective == NULL;
}

static void pack_add_shards(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    assert(order->variable->state == CONTROLLER_VARIABLE_ADDING);
    message->add_shards = OUT_MESSAGE(controller->out, add_shards);
    message->add_shards->variable = controller_variable_message(controller, order->variable);
}

static void pack_publish(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    assert(order->variable->state == CONTROLLER_VARIABLE_PUBLISHING);
    message->publish = OUT_MESSAGE(controller->out, publish);
    message->publish->variable_id = order->variable->id;
}

static void pack_delete(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    assert(order->variable->state == CONTROLLER_VARIABLE_DELETING);
    message->delete_ = OUT_MESSAGE(controller->out, delete_variable);
    message->delete_->variable_id = order->variable->id;
}

static void pack_end(
    struct controller *controller, const struct controller_order *order, wire_peer_order *message)
{
    (void)order;
    assert(controller->phase != CONTROLLER_RUNNING);
    wire_end *end = OUT_MESSAGE(controller->out, end);
    end->exit_code = (uint32_t)controller->exit_code;
    end->message = controller->end_text;
    end->reason = (Sumac__V1__Reason)controller->end_reason;
    message->end = end;
}

/* ---- answers ---- */

/* A settled session lets go what waited for it: the next attempt of its task, and the run's end. */
static void decided(struct controller *controller, const struct controller_order *order)
{
    controller_decide_complete(controller, order->session);
    controller_joins_go_on(controller);
    controller_run_check(controller);
    controller_sessions_forget_oldest(controller);
}

/* ---- the table ---- */

static const struct {
    const char *what; /* "to open the session of "; the object's name follows, if it has one */
    const char *(*text)(const struct controller *controller, const struct controller_order *order);
    void (*pack)(/* makes the submessage */
                 struct controller *controller, const struct controller_order *order,
                 wire_peer_order *message);
    void (*answer)(/* takes the answer of one ps. NULL: a refusal is logged */
                   struct controller *controller, const struct controller_order *order, uint32_t ps,
                   const wire_peer_report *report);
    /* Every ps has answered; the order is gone from the list. NULL: nothing follows. */
    void (*complete)(struct controller *controller, const struct controller_order *order);
    const char *settles; /* what an answer has that a settle must not decide without; NULL: none */
} kinds[CONTROLLER_ORDER_KINDS] = {
    [CONTROLLER_ORDER_OPEN] =
        {.what = "to open the session of ",
         .pack = pack_open,
         .answer = controller_join_opened,
         .complete = controller_join_complete},
    [CONTROLLER_ORDER_FIRST_STEP] =
        {.text = first_step_text, .pack = pack_first_step, .complete = controller_join_complete},
    [CONTROLLER_ORDER_CLOSE] =
        {.what = "to close the session of ",
         .pack = pack_close,
         .complete = controller_close_complete,
         .settles = "the list of refused pushes"},
    [CONTROLLER_ORDER_DECIDE] =
        {.text = decide_text, .pack = pack_decide, .complete = decided, .settles = "the decision"},
    [CONTROLLER_ORDER_MEMBERSHIP] =
        {.what = "to hear who the members are", .pack = pack_membership},
    [CONTROLLER_ORDER_TAKE] = {.text = take_text, .pack = pack_take},
    [CONTROLLER_ORDER_DEFINE] =
        {.what = "to take the function ",
         .pack = pack_define,
         .answer = controller_define_answered,
         .complete = controller_define_complete},
    [CONTROLLER_ORDER_COLLECTIVE] =
        {.text = collective_text,
         .pack = pack_collective,
         .complete = controller_collective_complete},
    [CONTROLLER_ORDER_ADD_SHARDS] =
        {.what = "to make its shards of ",
         .pack = pack_add_shards,
         .answer = controller_add_answered,
         .complete = controller_add_complete},
    [CONTROLLER_ORDER_PUBLISH] =
        {.what = "to publish ", .pack = pack_publish, .complete = controller_publish_complete},
    [CONTROLLER_ORDER_DELETE] =
        {.what = "to delete ", .pack = pack_delete, .complete = controller_delete_complete},
    [CONTROLLER_ORDER_END] =
        {.what = "to end", .pack = pack_end, .complete = controller_end_complete},
};

const char *
controller_order_text(const struct controller *controller, const struct controller_order *order)
{
    assert(order->kind < CONTROLLER_ORDER_KINDS);
    if (kinds[order->kind].text != NULL)
        return kinds[order->kind].text(controller, order);
    const char *const name = order->session != NULL    ? order->session->label
                             : order->variable != NULL ? order->variable->name
                             : order->function != NULL
                                 ? controller_function_known(controller, order->function)->row.name
                                 : "";
    return out_text(controller->out, "%s%.200s", kinds[order->kind].what, name);
}

const wire_peer_order *
controller_order_pack(struct controller *controller, const struct controller_order *order)
{
    assert(!controller_mask_empty(&order->pending));
    if (controller->packed_order == order)
        return controller->packed;
    wire_peer_order *message = OUT_MESSAGE(controller->out, peer_order);
    message->number = order->number;
    if (!controller->out->is_short)
        kinds[order->kind].pack(controller, order, message);
    if (controller->out->is_short)
        return NULL;
    controller->packed_order = order;
    controller->packed = message;
    return message;
}

/* It stays pending, and is given to this ps again a little later. */
static void put_off(struct controller *controller, struct controller_order *order, uint32_t ps)
{
    assert(order->session != NULL);
    assert(controller_mask_has(&order->pending, ps));
    if (order->again_us == 0)
        out_log(
            controller->out,
            "settle of %s waits for memory: %s of ps %u cannot be kept, and is asked for again "
            "until it can",
            order->session->label, kinds[order->kind].settles, ps);
    controller_mask_add(&order->again, ps);
    order->again_us = controller->now_us + controller_ms(CONTROLLER_AGAIN_MS);
}

void controller_order_answered(
    struct controller *controller, struct controller_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    const bool short_of_memory =
        report->status != 0 && (int)report->reason == SUMAC_REASON_OUT_OF_MEMORY;
    struct controller_order done;

    assert((order->session != NULL) == (order->kind <= CONTROLLER_ORDER_DECIDE));
    assert(ps < controller->ps_count);
    if (!controller_mask_has(&order->pending, ps))
        return;
    const bool closes = order->kind == CONTROLLER_ORDER_CLOSE && report->status == 0;
    if ((short_of_memory && kinds[order->kind].settles != NULL) ||
        (closes && !controller_close_reported(controller, order->session, report))) {
        put_off(controller, order, ps);
        return;
    }
    if (kinds[order->kind].answer != NULL)
        kinds[order->kind].answer(controller, order, ps, report);
    else if (report->status != 0)
        out_log(
            controller->out, "ps %u did not obey the order %s: %s", ps,
            controller_order_text(controller, order), report->message);
    if (controller_order_confirm(controller, order, ps, &done) && kinds[done.kind].complete != NULL)
        kinds[done.kind].complete(controller, &done);
}
