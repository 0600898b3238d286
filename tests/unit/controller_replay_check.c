/* SPDX-License-Identifier: Apache-2.0 */
/* controller_replay_check.c -- the comparison of a controller with one that its records make
 * objects to each difference. */
#include "controller_replay_check.h"
#include "controller_busy.h"
#include "collective.h"

/* Another value, of the controller that the records make. */
#define differs(place, words)                                                                      \
    corrupt(controller_replay_check(controller, again, &said), place, !(place), words)
#define wrong(place, value, words)                                                                 \
    corrupt(controller_replay_check(controller, again, &said), place, value, words)

/* The text begins with another character. */
#define text_differs(place, words) wrong((place)[0], '?', words)

static void expect_right(const struct controller *controller, const struct controller *again)
{
    struct check check = {.text = ""};

    controller_replay_check(controller, again, &check);
    assert_string_equal(check.text, "");
}

DESK_TEST(a_difference_of_the_cluster_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);

    expect_right(controller, again);

    wrong(again->last_record, 1, "the last record of the controller");
    differs(again->cluster_id, "the number of the cluster");
    differs(again->secret, "the secret of the cluster");
    differs(again->beginnings, "it began of the cluster");
    differs(again->membership_epoch, "the membership epoch of the cluster");
    differs(again->membership_told, "the membership that was told of the cluster");
    differs(again->member_joined, "that a member has joined of the cluster");
    differs(again->members_whole, "that all members are listed of the cluster");
    differs(again->initials, "members that begin with step 1 of the cluster");
    differs(again->step_taken, "the last step that was taken of the cluster");
    differs(again->some_left_done, "that one has left as done of the cluster");
    differs(again->observers, "observers of the cluster");
    differs(again->attempts_forgotten, "the attempts forgotten of the cluster");
    differs(again->ps_count, "ps of the cluster");
    differs(again->peers[0].incarnation, "the incarnation of h0:1");
    text_differs(again->peers[0].address, "address of h0:1");
    wrong(again->phase, CONTROLLER_ENDED, "the phase of the run's end");
    differs(again->exit_code, "the code of the run's end");
    wrong(again->end_reason, SUMAC_REASON_TIMED_OUT, "the reason of the run's end");
    differs(again->ends_of_itself, "that nothing was lost of the run's end");
    text_differs(again->end_text, "text of the run's end");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_difference_of_a_task_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);
    struct controller_task *task = again->tasks.first;

    expect_right(controller, again);

    wrong(again->tasks.first, NULL, "the controller's records lack task worker 0");
    text_differs(task->key.job, "job of task worker 0");
    differs(task->key.index, "the index of task worker 0");
    differs(task->listed, "that it is listed of task worker 0");
    differs(task->member, "that it is a member of task worker 0");
    differs(task->joined, "that it has joined of task worker 0");
    differs(task->done, "that it is done of task worker 0");
    differs(task->left, "that it has left of task worker 0");
    differs(task->attempts, "the attempts of task worker 0");
    differs(task->final, "final of task worker 0");
    differs(task->acked_through, "acked_through of task worker 0");
    wrong(task->voided, NULL, "voided pushes of task worker 0");
    wrong(task->voided->sequence[1], 6, "a voided push of task worker 0");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_difference_of_a_session_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);
    struct controller_session *settled = again->sessions.first, *open = settled->in_controller.next;

    expect_right(controller, again);

    wrong(again->sessions.first, NULL, "the controller's records lack worker 0");
    differs(settled->id[0], "number of worker 0");
    differs(settled->nonce[0], "nonce of worker 0");
    wrong(settled->state, CONTROLLER_SESSION_DECIDING, "the state of worker 0");
    differs(settled->role, "the role of worker 0");
    text_differs(settled->job, "job of worker 0");
    differs(settled->index, "the index of worker 0");
    text_differs(settled->label, "name of worker 0");
    wrong(settled->task, NULL, "the task of worker 0");
    differs(settled->attempt, "the attempt of worker 0");
    differs(settled->initial, "which of those that begin with step 1 of worker 0");
    differs(settled->first_step, "the first step of worker 0");
    differs(settled->taken_step, "the last step that was taken with it of worker 0");
    differs(settled->opened, "that it was open of worker 0");
    differs(settled->done, "that it is done of worker 0");
    differs(settled->left, "that its client left of worker 0");
    differs(settled->last_sequence, "the last push of worker 0");
    differs(settled->cause.kind, "the cause of its end of worker 0");
    differs(settled->cause.attempt, "the attempt that ended it of worker 0");
    differs(settled->cause.silent_ms, "its silence of worker 0");
    text_differs(settled->cause.host, "host of the attempt that ended it of worker 0");
    differs(settled->cause.pid, "the process that ended it of worker 0");
    text_differs(settled->host, "host of worker 0");
    differs(settled->pid, "the process of worker 0");
    differs(settled->replaced.attempt, "the attempt that it replaced of worker 0");
    text_differs(settled->replaced.host, "host of the attempt that it replaced of worker 0");
    differs(settled->replaced.pid, "the process that it replaced of worker 0");
    differs(settled->replaced.alive, "that the replaced one lived of worker 0");
    differs(settled->replaced.silent_ms, "the silence of the replaced one of worker 0");
    differs(settled->made_step, "the last step that it contributed to of worker 0");
    differs(settled->made_sequence, "its last contribution of worker 0");
    differs(settled->final, "final of worker 0");
    differs(settled->acked_through, "acked_through of worker 0");
    wrong(settled->voided, again->tasks.first->voided, "voided pushes of worker 0");
    differs(open->start_clock, "the clock that it starts at of worker 0");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_session_that_the_records_do_not_find_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);

    expect_right(controller, again);

    wrong(again->sessions_by_id, (struct key_map){0}, "number of worker 0");
    wrong(again->sessions_by_nonce, (struct key_map){0}, "nonce of worker 0");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_difference_of_a_variable_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);
    struct controller_variable *variable = again->variables.first->in_controller.next;
    struct controller_session other = *variable->creator;

    other.id[0]++;
    expect_right(controller, again);

    wrong(again->variables.first, NULL, "the controller's records lack w");
    differs(variable->id, "the number of v");
    wrong(variable->name, "x", "name of v");
    wrong(variable->state, CONTROLLER_VARIABLE_DELETING, "the state of v");
    wrong(variable->creator, NULL, "creator of v");
    wrong(variable->creator, &other, "creator of v");
    differs(variable->unassigned.word[0], "ps that lack a value of v");
    wrong(variable->definition.dtype, SUMAC_FLOAT64, "by the controller's records: ");
    differs(variable->shards_before, "the numbers of the shards of v");
    differs(variable->turns, "the turns of the ps of v");
    differs(variable->shard_count, "shards of v");
    differs(variable->places[1], "where its shards are of v");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_difference_of_a_function_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);

    expect_right(controller, again);

    differs(again->functions.count, "functions of the controller");
    wrong(again->defined[0].state, CONTROLLER_FUNCTION_DEFINED, "the state of a function of mine");
    text_differs(again->functions.known[0].row.name, "a function's name of it");
    differs(again->functions.known[0].text_bytes, "a function's text of it");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_difference_of_a_barrier_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);
    struct controller_barrier *barrier = again->barriers.first;

    expect_right(controller, again);

    wrong(again->barriers.first, NULL, "the controller's records lack both");
    wrong(barrier->name, "x", "name of both");
    wrong(again->barriers_by_name, (struct key_map){0}, "that it is found of both");
    differs(barrier->of_all, "that it is of all of both");
    differs(barrier->open, "that a round is open of both");
    differs(barrier->round, "the round of both");
    differs(barrier->timeout_ms, "the time that it waits of both");
    differs(barrier->come_count, "have come of both");
    differs(barrier->end_known, "that its last end is known of both");
    wrong(barrier->end.status, SUMAC_ABORTED, "its last end of both");
    wrong(barrier->end.reason, SUMAC_REASON_TIMED_OUT, "why it ended of both");
    text_differs(barrier->end.text, "last end of both");
    differs(barrier->place_count, "tasks of both");
    differs(barrier->places[1].chief, "the job of a task of both");
    differs(barrier->places[1].index, "the index of a task of both");
    differs(barrier->places[1].round, "the round that a task has come to of both");
    differs(barrier->places[1].attempt, "the attempt that has come of both");
    expect_right(controller, again);

    controller_destroy(again);
}

DESK_TEST(a_difference_of_the_end_of_a_round_is_found)
{
    const struct controller *controller = busy(desk);
    struct controller *again = desk_replayed(desk);
    struct controller_collective *collective = again->collectives.first;

    expect_right(controller, again);

    wrong(again->collectives.first, NULL, "the controller's records lack grads");
    differs(collective->order.number, "the number of the order of grads");
    wrong(collective->collective->name, "x", "name of grads");
    differs(collective->collective->round, "the round of grads");
    wrong(collective->end.status, SUMAC_ABORTED, "the end of grads");
    wrong(collective->end.reason, SUMAC_REASON_TIMED_OUT, "why it ended of grads");
    text_differs(collective->end.text, "end of grads");
    differs(collective->collective->timeout_ms, "the time that it waits of grads");
    wrong(collective->collective->dtype, SUMAC_FLOAT64, "by the controller's records: ");
    expect_right(controller, again);

    controller_destroy(again);
}
