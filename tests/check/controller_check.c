/* SPDX-License-Identifier: Apache-2.0 */
/* controller_check.c -- is all that a controller keeps consistent? Every list is walked, every
 * counter counted again. */
#include "controller_check.h"

#include <inttypes.h>
#include <string.h>

#include "barrier.h"
#include "catalogue.h"
#include "controller_collectives.h"
#include "collective.h"
#include "controller_members.h"

struct sums {
    const struct controller *controller;
    struct check *check;
};

static bool
has_session(const struct controller *controller, const struct controller_session *session)
{
    const struct controller_session *at = controller->sessions.first;

    while (at != NULL && at != session)
        at = at->in_controller.next;
    return at != NULL;
}

static bool
has_variable(const struct controller *controller, const struct controller_variable *variable)
{
    const struct controller_variable *at = controller->variables.first;

    while (at != NULL && at != variable)
        at = at->in_controller.next;
    return at != NULL;
}

static bool has_order(const struct controller *controller, const struct controller_order *order)
{
    const struct controller_order *at = controller->orders.first;

    while (at != NULL && at != order)
        at = at->in_controller.next;
    return at != NULL;
}

/* ---- tasks and sessions ---- */

static void check_tasks(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    uint64_t listed = 0;

    for (const struct controller_task *task = controller->tasks.first;
         task != NULL && listed <= controller->tasks_pool.used;
         task = task->in_controller.next, listed++) {
        const wire_task_name name = {
            .job = (char *)(uintptr_t)task->key.job, .index = task->key.index};
        if (controller_task_find(controller, &name) != task)
            check_object(
                sums->check, "task %s %u is not found by its name", task->key.job, task->key.index);
        if (task->done && !task->joined)
            check_object(
                sums->check, "task %s %u is done and has never joined", task->key.job,
                task->key.index);
    }
    check_same(
        sums->check, controller->tasks_by_key.count, listed, "tasks by name", "the controller");
    check_same(sums->check, controller->tasks_pool.used, listed, "tasks", "the controller");
}

static uint32_t
orders_of(const struct controller *controller, const void *session, const void *variable)
{
    uint32_t count = 0;

    for (const struct controller_order *order = controller->orders.first; order != NULL;
         order = order->in_controller.next)
        count += (session != NULL && order->session == session) ||
                 (variable != NULL && order->variable == variable);
    return count;
}

/* Two sessions of one task are not open at once, and no two have one id or nonce. */
static void check_others(const struct sums *sums, const struct controller_session *session)
{
    const bool live = session->state != CONTROLLER_SESSION_WAITING &&
                      session->state != CONTROLLER_SESSION_SETTLED;

    for (const struct controller_session *other = session->in_controller.next; other != NULL;
         other = other->in_controller.next) {
        const bool other_live = other->state != CONTROLLER_SESSION_WAITING &&
                                other->state != CONTROLLER_SESSION_SETTLED;
        if (memcmp(other->id, session->id, CONTROLLER_ID_BYTES) == 0 ||
            memcmp(other->nonce, session->nonce, CONTROLLER_ID_BYTES) == 0)
            check_object(
                sums->check, "%s and %s have one id, or one nonce", session->label, other->label);
        if (live && other_live && session->task != NULL && session->task == other->task)
            check_object(sums->check, "%s has two sessions at once", session->label);
    }
}

static void check_session(const struct sums *sums, const struct controller_session *session)
{
    const enum controller_session_state state = session->state;
    const bool settles =
        state == CONTROLLER_SESSION_CLOSING || state == CONTROLLER_SESSION_DECIDING;

    if (controller_session_find(sums->controller, session->id, CONTROLLER_ID_BYTES) != session)
        check_object(sums->check, "the session of %s is not found by its id", session->label);
    check_same(
        sums->check, session->orders, orders_of(sums->controller, session, NULL), "orders",
        session->label);
    if (session->join_call != 0 && state >= CONTROLLER_SESSION_OPEN)
        check_object(
            sums->check, "the join of %s waits, and its session is past that", session->label);
    if (session->leave_call != 0 && !settles)
        check_object(
            sums->check, "the leave of %s waits, and nothing is under way", session->label);
    /* One that is closed while it is being opened has both orders. */
    if (session->orders > (state == CONTROLLER_SESSION_CLOSING ? 2u : 1u) ||
        (session->orders > 0 && !settles && state != CONTROLLER_SESSION_OPENING))
        check_object(
            sums->check, "%u orders for the session of %s are under way", session->orders,
            session->label);
    check_others(sums, session);
}

static void check_sessions(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    uint64_t listed = 0;

    for (const struct controller_session *session = controller->sessions.first;
         session != NULL && listed <= controller->sessions_pool.used;
         session = session->in_controller.next, listed++)
        check_session(sums, session);
    check_same(sums->check, controller->sessions_pool.used, listed, "sessions", "the controller");
    check_same(
        sums->check, controller->sessions_by_id.count, listed, "sessions by id", "the controller");
    check_same(
        sums->check, controller->sessions_by_nonce.count, listed, "sessions by nonce",
        "the controller");
    if (listed > controller_sessions_max(controller))
        check_object(
            sums->check, "%" PRIu64 " sessions are kept, and %" PRIu64 " are counted with", listed,
            controller_sessions_max(controller));
}

/* ---- orders ---- */

static void check_orders(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    const struct controller_order *before = NULL;
    uint64_t pooled = 0, number = 0;

    for (const struct controller_order *order = controller->orders.first; order != NULL;
         order = order->in_controller.next) {
        if (order->number <= number) {
            check_object(
                sums->check, "order %" PRIu64 " is in the list after order %" PRIu64, order->number,
                number);
            return;
        }
        if (controller_mask_empty(&order->pending))
            check_object(sums->check, "order %" PRIu64 " waits for nobody", order->number);
        for (uint32_t i = 0; i < CONTROLLER_MASK_WORDS; i++) {
            if ((order->again.word[i] & ~order->pending.word[i]) != 0)
                check_object(
                    sums->check,
                    "order %" PRIu64 " is to be given again to a ps that has answered it",
                    order->number);
        }
        if ((order->session != NULL && !has_session(controller, order->session)) ||
            (order->collective != NULL &&
             controller_collective_by_number(controller, order->number) != order->collective) ||
            (order->variable != NULL && !has_variable(controller, order->variable)))
            check_object(sums->check, "order %" PRIu64 " names what is forgotten", order->number);
        pooled += order != &controller->end_order && order->collective == NULL;
        number = order->number;
        before = order;
    }
    if (controller->orders.last != before || number > controller->orders_given)
        check_object(sums->check, "the last order is not the last of the list");
    check_same(sums->check, controller->orders_pool.used, pooled, "orders", "the controller");
}

static void check_peers(const struct sums *sums)
{
    const struct controller *controller = sums->controller;

    for (uint32_t ps = 0; ps < controller->ps_count; ps++) {
        const struct controller_peer *peer = &controller->peers[ps];
        if (peer->next_order != NULL && (!has_order(controller, peer->next_order) ||
                                         !controller_mask_has(&peer->next_order->pending, ps)))
            check_object(
                sums->check, "ps %u is to be given an order that is over, or is not for it", ps);
        if ((peer->writable || peer->greeted) && !peer->up)
            check_object(sums->check, "ps %u is writable or greeted without a stream", ps);
    }
}

/* ---- the catalogue ---- */

static void check_variable(const struct sums *sums, const struct controller_variable *variable)
{
    const struct controller *controller = sums->controller;
    const bool named = controller_variable_find(controller, variable->name) == variable;

    if (controller_variable_by_id(controller, variable->id) != variable)
        check_object(sums->check, "variable %.200s is not found by its id", variable->name);
    if (named == (variable->state == CONTROLLER_VARIABLE_DELETING))
        check_object(
            sums->check, "variable %.200s is %s by its name", variable->name,
            named ? "deleted and found" : "not found");
    check_same(
        sums->check, variable->orders, orders_of(controller, NULL, variable),
        "orders of a variable", variable->name);
    if (variable->creator != NULL && !has_session(controller, variable->creator))
        check_object(sums->check, "the creator of %.200s is forgotten", variable->name);
    if (variable->creator != NULL && controller_mask_empty(&variable->unassigned))
        check_object(
            sums->check, "%.200s is assigned, and its creator is to assign it", variable->name);
}

static void check_catalogue(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    const struct controller_variable *before = NULL;
    uint32_t listed = 0, named = 0;

    for (const struct controller_variable *variable = controller->variables.first; variable != NULL;
         variable = variable->in_controller.next) {
        if (variable->in_controller.prev != before || listed++ > controller->variable_count) {
            check_object(sums->check, "the list of variables is broken");
            return;
        }
        check_variable(sums, variable);
        named += variable->state != CONTROLLER_VARIABLE_DELETING;
        before = variable;
    }
    if (controller->variables.last != before)
        check_object(sums->check, "the last variable is not the last of the list");
    check_same(sums->check, controller->variable_count, listed, "variables", "the controller");
    check_same(
        sums->check, controller->variables_by_id.count, listed, "variables by number",
        "the controller");
    check_same(
        sums->check, controller->variables_by_name.count, named, "variables by name",
        "the controller");
}

/* Each call is in the list of the variable that it waits for. */
static void check_waiting(const struct sums *sums)
{
    uint64_t waiting = 0, listed = 0;

    for (const struct controller_call *call = sums->controller->calls.first; call != NULL;
         call = call->in_controller.next)
        waiting += call->variable != NULL;
    for (const struct controller_variable *variable = sums->controller->variables.first;
         variable != NULL; variable = variable->in_controller.next)
        for (const struct controller_call *call = variable->waiting.first;
             call != NULL && call->variable == variable && listed <= waiting;
             call = call->of_variable.next)
            listed++;
    check_same(sums->check, waiting, listed, "calls that wait for variables", "the controller");
}

static void check_calls(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    uint64_t count = 0;

    for (const struct controller_call *call = controller->calls.first;
         call != NULL && count <= controller->calls_pool.used;
         call = call->in_controller.next, count++) {
        if (call->kind == CONTROLLER_CALL_DEFINE) {
            if (call->function->state != CONTROLLER_FUNCTION_DEFINING || call->variable != NULL)
                check_object(sums->check, "a define waits for what is defined");
            continue;
        }
        if (!has_variable(controller, call->variable) || !has_session(controller, call->session)) {
            check_object(
                sums->check, "a call waits for a variable, or of a session, that is forgotten");
            return;
        }
        if ((call->kind == CONTROLLER_CALL_DELETE) !=
            (call->variable->state == CONTROLLER_VARIABLE_DELETING))
            check_object(
                sums->check, "a %s of %.200s waits, which is %sdeleted",
                call->kind == CONTROLLER_CALL_DELETE ? "delete" : "create", call->variable->name,
                call->kind == CONTROLLER_CALL_DELETE ? "not being " : "");
    }
    check_same(
        sums->check, controller->calls_pool.used, count, "calls that wait", "the controller");
    check_waiting(sums);
}

/* ---- barriers ---- */

/* Has it a session that is not settled? */
static bool is_there(const struct controller *controller, const struct controller_task *task)
{
    const struct controller_session *at = controller->sessions.first;

    while (at != NULL && (at->task != task || at->state == CONTROLLER_SESSION_SETTLED))
        at = at->in_controller.next;
    return at != NULL;
}

/* A task that is still missing must be able to arrive. */
static void check_place(
    const struct sums *sums, const struct controller_barrier *barrier,
    const struct controller_place *place)
{
    const wire_task_name name = {
        .job = (char *)(uintptr_t)(place->chief ? "chief" : "worker"), .index = place->index};
    const struct controller_task *task = controller_task_find(sums->controller, &name);

    if (place->round > barrier->round + barrier->open)
        check_object(
            sums->check, "%s %u has come to a round of %.200s that does not exist", name.job,
            name.index, barrier->name);
    if (barrier->open && place->round <= barrier->round && task != NULL && task->joined &&
        !is_there(sums->controller, task) && sums->controller->phase == CONTROLLER_RUNNING)
        check_object(
            sums->check, "barrier %.200s waits for %s %u, which was settled", barrier->name,
            name.job, name.index);
}

static uint32_t count_waiting(const struct sums *sums, const struct controller_barrier *barrier)
{
    uint32_t count = 0;

    for (const struct controller_waiting *waiting = barrier->waiting.first; waiting != NULL;
         waiting = waiting->of_barrier.next, count++) {
        if (waiting->barrier != barrier || !has_session(sums->controller, waiting->session) ||
            waiting->session->state > CONTROLLER_SESSION_OPEN)
            check_object(
                sums->check, "a call waits at %.200s that is not its, or of a session that is over",
                barrier->name);
    }
    if (count > 0 && !barrier->open)
        check_object(sums->check, "calls wait at %.200s, and no round is open", barrier->name);
    return count;
}

static void check_barriers(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    uint64_t listed = 0, waiting = 0;

    for (const struct controller_barrier *barrier = controller->barriers.first; barrier != NULL;
         barrier = barrier->in_controller.next, listed++) {
        uint64_t come = 0;
        if (controller_barrier_find(controller, barrier->name) != barrier)
            check_object(sums->check, "barrier %.200s is not found by its name", barrier->name);
        for (uint32_t i = 0; i < barrier->place_count; i++) {
            check_place(sums, barrier, &barrier->places[i]);
            come += barrier->open && barrier->places[i].round == barrier->round + 1;
        }
        check_same(sums->check, barrier->come_count, come, "tasks that have come", barrier->name);
        if (barrier->open && (come == 0 || come == barrier->place_count))
            check_object(
                sums->check, "barrier %.200s is open, and %s of its tasks have come", barrier->name,
                come == 0 ? "none" : "all");
        waiting += count_waiting(sums, barrier);
    }
    check_same(
        sums->check, controller->barriers_by_name.count, listed, "barriers by name",
        "the controller");
    check_same(
        sums->check, controller->waiting_pool.used, waiting, "calls at barriers", "the controller");
}

/* ---- rounds of collectives ---- */

/* Each is ordered, and as long as it is some ps has yet to answer; one of a controller that is only
 * made of its records will be. */
static void check_collectives(const struct sums *sums)
{
    uint64_t listed = 0, number = 0;

    for (const struct controller_collective *collective = sums->controller->collectives.first;
         collective != NULL; collective = collective->in_controller.next, listed++) {
        const char *name = collective->collective->name;
        if (collective->order.number <= number)
            check_object(sums->check, "the end of %.200s is ordered out of its turn", name);
        if (has_order(sums->controller, &collective->order) ==
            controller_mask_empty(&collective->order.pending))
            check_object(sums->check, "the end of %.200s is there, and is not ordered", name);
        number = collective->order.number;
    }
    check_same(
        sums->check, sums->controller->collective_count, listed, "ends of rounds",
        "the controller");
}

/* ---- the run's end ---- */

/* Every call that waited was answered with it, and no other call waits. */
static void check_end(const struct sums *sums)
{
    const struct controller *controller = sums->controller;

    if (controller->phase == CONTROLLER_RUNNING)
        return;
    for (const struct controller_session *session = controller->sessions.first; session != NULL;
         session = session->in_controller.next)
        if (session->join_call != 0 || session->leave_call != 0 ||
            session->state == CONTROLLER_SESSION_WAITING)
            check_object(sums->check, "%s waits, and the run is over", session->label);
    if (controller->calls.first != NULL || controller->waiting.first != NULL)
        check_object(sums->check, "a call waits, and the run is over");
}

/* Between two steps nothing is left to be recorded, and answers wait in the order of their
 * records. */
static void check_records(const struct sums *sums)
{
    const struct controller *controller = sums->controller;
    uint64_t count = 0, bytes = 0, record = controller->recorded;

    for (const struct controller_held *held = controller->held.first;
         held != NULL && count <= controller->held_pool.used;
         held = held->in_controller.next, count++) {
        if (!controller->out->effects.lost && /* it ends with them */
            (held->record <= controller->recorded || held->record < record ||
             held->record > controller->last_record))
            check_object(
                sums->check,
                "an answer waits for record %" PRIu64 ", of %" PRIu64 " and %" PRIu64 " on disk",
                held->record, controller->last_record, controller->recorded);
        record = held->record;
        bytes += held->byte_count;
    }
    check_same(
        sums->check, controller->held_pool.used, count, "answers that wait", "the controller");
    check_same(
        sums->check, controller->held_bytes, bytes, "bytes of answers that wait", "the controller");
    if (controller->row_count != 0 && !controller->out->effects.lost)
        check_object(
            sums->check, "%u rows have changed, and no record says so", controller->row_count);
}

void controller_check(const struct controller *controller, struct check *check)
{
    const struct sums sums = {.controller = controller, .check = check};

    if (controller->config->broken != 0)
        return;
    check_tasks(&sums);
    check_sessions(&sums);
    check_orders(&sums);
    check_peers(&sums);
    check_catalogue(&sums);
    check_calls(&sums);
    check_barriers(&sums);
    check_collectives(&sums);
    check_end(&sums);
    check_records(&sums);
}
