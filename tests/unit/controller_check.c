/* SPDX-License-Identifier: Apache-2.0 */
/* controller_check.c -- the check of a controller's consistency objects to each wrong field. */
#include "controller_check.h"
#include "controller_busy.h"

#define wrong(place, value, words) corrupt(controller_check(controller, &said), place, value, words)

static void expect_right(const struct controller *controller)
{
    struct check check = {.text = ""};

    controller_check(controller, &check);
    assert_string_equal(check.text, "");
}

DESK_TEST(a_wrong_task_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_task *task = controller->tasks.first;

    expect_right(controller);

    wrong(task->key.index, 9, "task worker 9 is not found by its name");
    task->done = true;
    wrong(task->joined, false, "task worker 0 is done and has never joined");
    task->done = false;
    wrong(controller->tasks_by_key.count, 2, "tasks by name of the controller");
    wrong(controller->tasks_pool.used, 2, "tasks of the controller");
    expect_right(controller);
}

DESK_TEST(a_wrong_session_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_session *settled = controller->sessions.first;
    struct controller_session *open = settled->in_controller.next,
                              *opening = open->in_controller.next;

    expect_right(controller);
    assert_int_equal(settled->state, CONTROLLER_SESSION_SETTLED);
    assert_int_equal(open->state, CONTROLLER_SESSION_OPEN);
    assert_int_equal(opening->state, CONTROLLER_SESSION_OPENING);

    wrong(
        open->id[0], (uint8_t)(open->id[0] + 1), "the session of worker 0 is not found by its id");
    wrong(open->orders, 1, "orders of worker 0");
    wrong(open->join_call, 99, "the join of worker 0 waits, and its session is past that");
    wrong(open->leave_call, 99, "the leave of worker 0 waits");
    opening->orders = 2;
    wrong(controller->orders.first->session, opening, "2 orders for the session of");
    opening->orders = 1;
    const uint64_t call = opening->join_call;
    opening->join_call = 0;
    wrong(opening->state, CONTROLLER_SESSION_OPEN, "1 orders for the session of");
    opening->join_call = call;
    wrong(opening->task, open->task, "worker 0 has two sessions at once");
    wrong(controller->sessions_pool.used, 4, "sessions of the controller");
    wrong(controller->sessions_by_id.count, 4, "sessions by id of the controller");
    wrong(controller->sessions_by_nonce.count, 4, "sessions by nonce of the controller");
    expect_right(controller);
}

DESK_TEST(two_sessions_with_one_id_or_nonce_are_found)
{
    struct controller *controller = busy(desk);
    struct controller_session *settled = controller->sessions.first,
                              *open = settled->in_controller.next;
    const struct controller_session before = *open;

    expect_right(controller);

    memcpy(open->id, settled->id, sizeof open->id);
    wrong(open->orders, 0, "worker 0 and worker 0 have one id, or one nonce");
    memcpy(open->id, before.id, sizeof open->id);
    memcpy(open->nonce, settled->nonce, sizeof open->nonce);
    wrong(open->orders, 0, "worker 0 and worker 0 have one id, or one nonce");
    memcpy(open->nonce, before.nonce, sizeof open->nonce);
    expect_right(controller);
}

DESK_TEST(more_sessions_than_the_controller_keeps_are_found)
{
    struct controller *controller = busy(desk);
    struct lane_config config = *controller->config;

    expect_right(controller);
    config.settled_sessions_max = 1;
    config.sessions_max = 1;

    wrong(controller->config, &config, "3 sessions are kept, and 2 are counted with");
    expect_right(controller);
}

DESK_TEST(a_wrong_order_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_order *first = controller->orders.first, *last = controller->orders.last;
    struct controller_collective *collective = controller->collectives.first;
    struct controller_session session = *controller->sessions.first;
    struct controller_variable variable = *controller->variables.first;

    expect_right(controller);

    wrong(first->in_controller.next->number, first->number, "is in the list after order");
    wrong(first->pending.word[0], 0, "waits for");
    wrong(first->again.word[1], 1, "is to be given again to a ps that has answered it");
    wrong(first->session, &session, "names what is forgotten");
    wrong(first->variable, &variable, "names what is forgotten");
    wrong(collective->order.collective, controller->collectives.last, "names what is forgotten");
    wrong(controller->orders.last, first, "the last order is not the last of the list");
    wrong(controller->orders_given, last->number - 1, "the last order is not the last of the list");
    wrong(controller->orders_pool.used, 0, "orders of the controller");
    expect_right(controller);
}

DESK_TEST(a_wrong_ps_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_order order = *controller->orders.first;
    struct controller_peer *peer = &controller->peers[0];

    expect_right(controller);

    wrong(peer->next_order, &order, "ps 0 is to be given an order that is over");
    peer->next_order = controller->orders.first;
    controller->orders.first->pending.word[0] = 2;
    wrong(peer->greeted, true, "ps 0 is to be given an order that is over, or is not for it");
    controller->orders.first->pending.word[0] = 1;
    peer->writable = false;
    wrong(peer->up, false, "ps 0 is writable or greeted without a stream");
    peer->greeted = false;
    peer->writable = true;
    wrong(peer->up, false, "ps 0 is writable or greeted without a stream");
}

DESK_TEST(a_wrong_variable_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_variable *deleted = controller->variables.first;
    struct controller_variable *assigned = deleted->in_controller.next;
    struct controller_session session = *controller->sessions.first;

    expect_right(controller);

    wrong(assigned->id, 99, "variable v is not found by its id");
    wrong(assigned->name, "x", "variable x is not found by its name");
    wrong(
        assigned->state, CONTROLLER_VARIABLE_DELETING,
        "variable v is deleted and found by its name");
    wrong(assigned->orders, 1, "orders of a variable of v");
    wrong(assigned->creator, &session, "the creator of v is forgotten");
    wrong(assigned->unassigned.word[0], 0, "v is assigned, and its creator is to assign it");
    wrong(assigned->in_controller.prev, NULL, "the list of variables is broken");
    wrong(controller->variable_count, 1, "the list of variables is broken");
    wrong(controller->variables.last, assigned, "the last variable is not the last of the list");
    wrong(controller->variable_count, 4, "variables of the controller");
    wrong(controller->variables_by_id.count, 4, "variables by number of the controller");
    wrong(controller->variables_by_name.count, 3, "variables by name of the controller");
    expect_right(controller);
}

DESK_TEST(a_wrong_call_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_call *define = controller->calls.first, *create = define->in_controller.next;
    struct controller_variable variable = *controller->variables.first;
    struct controller_session session = *controller->sessions.first;

    expect_right(controller);

    wrong(
        define->function->state, CONTROLLER_FUNCTION_DEFINED, "a define waits for what is defined");
    wrong(define->variable, &variable, "a define waits for what is defined");
    wrong(create->variable, &variable, "a call waits for a variable, or of a session");
    wrong(create->session, &session, "a call waits for a variable, or of a session");
    wrong(create->kind, CONTROLLER_CALL_DELETE, "a delete of u waits, which is not being deleted");
    wrong(controller->calls_pool.used, 99, "calls that wait of the controller");
    expect_right(controller);
}

DESK_TEST(a_wrong_barrier_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_barrier *barrier = controller->barriers.first;
    struct controller_waiting *waiting = barrier->waiting.first;
    struct controller_session session = *controller->sessions.last;

    expect_right(controller);

    wrong(barrier->name, "x", "barrier x is not found by its name");
    wrong(barrier->places[0].round, 2, "worker 0 has come to a round of both");
    wrong(waiting->barrier, NULL, "a call waits at both that is not its");
    wrong(waiting->session, &session, "a call waits at both that is not its");
    wrong(waiting->session, controller->sessions.first, "a call waits at both that is not its");
    barrier->places[0].round = 0;
    barrier->come_count = 0;
    wrong(barrier->open, false, "calls wait at both, and no round is open");
    wrong(barrier->places[1].index, 6, "barrier both is open, and none of its tasks have come");
    barrier->places[0].round = 1;
    wrong(barrier->come_count, 2, "tasks that have come of both");
    barrier->come_count = 2;
    wrong(barrier->places[1].round, 1, "barrier both is open, and all of its tasks have come");
    barrier->come_count = 1;
    wrong(controller->barriers_by_name.count, 2, "barriers by name of the controller");
    wrong(controller->waiting_pool.used, 2, "calls at barriers of the controller");
    expect_right(controller);
}

DESK_TEST(a_barrier_that_waits_for_a_settled_task_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_barrier *barrier = controller->barriers.first;

    expect_right(controller);

    barrier->places[0].round = 0;
    barrier->places[1].round = 1;
    wrong(
        controller->sessions.last->in_controller.prev->task, NULL,
        "both waits for worker 0, which was settled");
    barrier->places[0].round = 1;
    barrier->places[1].round = 0;
    expect_right(controller);
}

DESK_TEST(a_wrong_end_of_a_round_is_found)
{
    struct controller *controller = busy(desk);
    struct controller_collective *first = controller->collectives.first;

    expect_right(controller);

    LIST_REMOVE(&controller->collectives, first, in_controller);
    LIST_APPEND(&controller->collectives, first, in_controller);
    wrong(controller->collective_count, 2, "the end of grads is ordered out of its turn");
    LIST_REMOVE(&controller->collectives, first, in_controller);
    LIST_PREPEND(&controller->collectives, first, in_controller);
    struct controller_order *const before = first->order.in_controller.prev;
    LIST_REMOVE(&controller->orders, &first->order, in_controller);
    wrong(controller->collective_count, 2, "the end of grads is there, and is not ordered");
    LIST_INSERT(&controller->orders, before, &first->order, in_controller);
    wrong(controller->collective_count, 3, "ends of rounds of the controller");
    expect_right(controller);
}

DESK_TEST(a_wrong_answer_that_waits_is_found)
{
    struct controller *controller = busy(desk);

    desk_join(desk, 101);
    desk_create(desk, "v", true);
    struct controller_held *first = controller->held.first, *last = controller->held.last;
    expect_right(controller);
    assert_int_equal(first->record, controller->recorded + 1);
    assert_int_equal(last->record, controller->recorded + 2);

    wrong(first->record, controller->recorded, "an answer waits for record");
    wrong(last->record, controller->last_record + 1, "an answer waits for record");
    last->record--;
    wrong(first->record, controller->last_record, "an answer waits for record");
    last->record++;
    wrong(controller->held_pool.used, 99, "answers that wait of the controller");
    wrong(controller->held_bytes, 1, "bytes of answers that wait of the controller");
    wrong(controller->row_count, 1, "1 rows have changed, and no record says so");
    expect_right(controller);
}
