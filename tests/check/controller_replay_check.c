/* SPDX-License-Identifier: Apache-2.0 */
/* controller_replay_check.c -- two controllers side by side: the cluster, its ps, tasks, sessions,
 * the catalogue, barriers, rounds of collectives. */
#include "controller_replay_check.h"

#include <inttypes.h>
#include <string.h>

#include "barrier.h"
#include "controller_collectives.h"
#include "collective.h"
#include "controller_members.h"
#include "replay_pair.h"

static void same_voided(
    const struct pair *pair, const struct controller_voided *a, const struct controller_voided *b,
    const char *whom)
{
    const uint32_t count = a == NULL ? 0 : a->count;

    same(pair, count, b == NULL ? 0 : b->count, "how many voided pushes", whom);
    for (uint32_t i = 0; i < count && check_is_good(pair->check); i++)
        same(pair, a->sequence[i], b->sequence[i], "a voided push", whom);
}

/* ---- the cluster ---- */

static void same_peer(const struct pair *pair, uint32_t ps)
{
    const struct controller_peer *a = &pair->controller->peers[ps],
                                 *b = &pair->controller_again->peers[ps];

    same(pair, a->incarnation, b->incarnation, "the incarnation", a->address);
    same_text(pair, a->address, b->address, "address", a->address);
}

static void same_end(const struct pair *pair)
{
    const struct controller *a = pair->controller, *b = pair->controller_again;
    const char *whom = "the run's end";

    same(pair, a->phase, b->phase, "the phase", whom);
    same(pair, (uint64_t)a->exit_code, (uint64_t)b->exit_code, "the code", whom);
    same(pair, (uint64_t)a->end_reason, (uint64_t)b->end_reason, "the reason", whom);
    same(pair, a->ends_of_itself, b->ends_of_itself, "that nothing was lost", whom);
    same_text(pair, a->end_text, b->end_text, "text", whom);
}

static void same_cluster(const struct pair *pair)
{
    const struct controller *a = pair->controller, *b = pair->controller_again;
    const char *whom = "the cluster";

    same(pair, a->cluster_id, b->cluster_id, "the number", whom);
    same(pair, a->secret, b->secret, "the secret", whom);
    same(pair, a->beginnings, b->beginnings, "how often it began", whom);
    same(pair, a->membership_epoch, b->membership_epoch, "the membership epoch", whom);
    same(pair, a->membership_told, b->membership_told, "the membership that was told", whom);
    same(pair, a->member_joined, b->member_joined, "that a member has joined", whom);
    same(pair, a->members_whole, b->members_whole, "that all members are listed", whom);
    same(pair, a->initials, b->initials, "members that begin with step 1", whom);
    same(pair, a->step_taken, b->step_taken, "the last step that was taken", whom);
    same(pair, a->some_left_done, b->some_left_done, "that one has left as done", whom);
    same(pair, a->observers, b->observers, "how many observers", whom);
    same(pair, a->attempts_forgotten, b->attempts_forgotten, "the attempts forgotten", whom);
    same(pair, a->ps_count, b->ps_count, "how many ps", whom);
    for (uint32_t ps = 0; ps < a->ps_count && check_is_good(pair->check); ps++)
        same_peer(pair, ps);
    same_end(pair);
}

/* ---- tasks and sessions ---- */

static void
same_task(const struct pair *pair, const struct controller_task *a, const struct controller_task *b)
{
    char whom[CONTROLLER_LABEL_BYTES];

    (void)text_print(
        whom, sizeof whom, "task %s %u", (a != NULL ? a : b)->key.job,
        (a != NULL ? a : b)->key.index);
    if (one_only(pair, a, b, whom))
        return;
    same_text(pair, a->key.job, b->key.job, "job", whom);
    same(pair, a->key.index, b->key.index, "the index", whom);
    same(pair, a->listed, b->listed, "that it is listed", whom);
    same(pair, a->member, b->member, "that it is a member", whom);
    same(pair, a->joined, b->joined, "that it has joined", whom);
    same(pair, a->done, b->done, "that it is done", whom);
    same(pair, a->left, b->left, "that it has left", whom);
    same(pair, a->attempts, b->attempts, "the attempts", whom);
    same(pair, a->final, b->final, "final", whom);
    same(pair, a->acked_through, b->acked_through, "acked_through", whom);
    same_voided(pair, a->voided, b->voided, whom);
}

/* What the ps answer counts when all have. */
static void same_ends(
    const struct pair *pair, const struct controller_session *a, const struct controller_session *b)
{
    if (a->state == CONTROLLER_SESSION_OPEN)
        same(pair, a->start_clock, b->start_clock, "the clock that it starts at", a->label);
    if (a->state < CONTROLLER_SESSION_DECIDING)
        return;
    same(pair, a->made_step, b->made_step, "the last step that it contributed to", a->label);
    same(pair, a->made_sequence, b->made_sequence, "its last contribution", a->label);
    same(pair, a->final, b->final, "final", a->label);
    same(pair, a->acked_through, b->acked_through, "acked_through", a->label);
    same_voided(pair, a->voided, b->voided, a->label);
}

static void same_replaced(
    const struct pair *pair, const struct replaced *a, const struct replaced *b, const char *whom)
{
    same(pair, a->attempt, b->attempt, "the attempt that it replaced", whom);
    same_text(pair, a->host, b->host, "host of the attempt that it replaced", whom);
    same(pair, a->pid, b->pid, "the process that it replaced", whom);
    same(pair, a->alive, b->alive, "that the replaced one lived", whom);
    same(pair, a->silent_ms, b->silent_ms, "the silence of the replaced one", whom);
}

static void same_session(
    const struct pair *pair, const struct controller_session *a, const struct controller_session *b)
{
    const char *whom = (a != NULL ? a : b)->label;

    if (one_only(pair, a, b, whom))
        return;
    if (controller_session_find(pair->controller_again, a->id, sizeof a->id) != b)
        differ(pair, "number", whom);
    if (controller_session_find_nonce(pair->controller_again, a->nonce) != b)
        differ(pair, "nonce", whom);
    same(pair, a->state, b->state, "the state", whom);
    same(pair, a->role, b->role, "the role", whom);
    same_text(pair, a->job, b->job, "job", whom);
    same(pair, a->index, b->index, "the index", whom);
    same_text(pair, a->label, b->label, "name", whom);
    same(pair, a->task != NULL, b->task != NULL, "the task", whom);
    same(pair, a->attempt, b->attempt, "the attempt", whom);
    same(pair, a->initial, b->initial, "which of those that begin with step 1", whom);
    same(pair, a->first_step, b->first_step, "the first step", whom);
    same(pair, a->taken_step, b->taken_step, "the last step that was taken with it", whom);
    same(pair, a->opened, b->opened, "that it was open", whom);
    same(pair, a->done, b->done, "that it is done", whom);
    same(pair, a->left, b->left, "that its client left", whom);
    same(pair, a->last_sequence, b->last_sequence, "the last push", whom);
    same(pair, (uint64_t)a->cause.kind, (uint64_t)b->cause.kind, "the cause of its end", whom);
    same(pair, a->cause.attempt, b->cause.attempt, "the attempt that ended it", whom);
    same(pair, a->cause.silent_ms, b->cause.silent_ms, "its silence", whom);
    same_text(pair, a->cause.host, b->cause.host, "host of the attempt that ended it", whom);
    same(pair, a->cause.pid, b->cause.pid, "the process that ended it", whom);
    same_text(pair, a->host, b->host, "host", whom);
    same(pair, a->pid, b->pid, "the process", whom);
    same_replaced(pair, &a->replaced, &b->replaced, whom);
    same_ends(pair, a, b);
}

/* ---- the catalogue ---- */

static void same_creator(
    const struct pair *pair, const struct controller_session *a, const struct controller_session *b,
    const char *whom)
{
    if ((a == NULL) != (b == NULL) || (a != NULL && memcmp(a->id, b->id, sizeof a->id) != 0))
        differ(pair, "creator", whom);
}

static void same_variable(
    const struct pair *pair, const struct controller_variable *a,
    const struct controller_variable *b)
{
    const char *whom = (a != NULL ? a : b)->name;
    struct sumac_error error;

    if (one_only(pair, a, b, whom))
        return;
    same(pair, a->id, b->id, "the number", whom);
    same_text(pair, a->name, b->name, "name", whom);
    same(pair, a->state, b->state, "the state", whom);
    same_creator(pair, a->creator, b->creator, whom);
    if (memcmp(&a->unassigned, &b->unassigned, sizeof a->unassigned) != 0)
        differ(pair, "ps that lack a value", whom);
    if (definition_compare(whom, &a->definition, &b->definition, &error) != SUMAC_OK)
        check_object(pair->check, "by the controller's records: %s", error.text);
    same(pair, a->shards_before, b->shards_before, "the numbers of the shards", whom);
    same(pair, a->turns, b->turns, "the turns of the ps", whom);
    same(pair, a->shard_count, b->shard_count, "how many shards", whom);
    if (a->shard_count == b->shard_count && memcmp(a->places, b->places, a->shard_count) != 0)
        differ(pair, "where its shards are", whom);
}

static void same_functions(const struct pair *pair)
{
    const struct functions *a = &pair->controller->functions,
                           *b = &pair->controller_again->functions;

    same(pair, a->count, b->count, "how many functions", "the controller");
    for (uint32_t i = 0; i < a->count && check_is_good(pair->check); i++) {
        const struct controller_function *was = &pair->controller->defined[i],
                                         *is = &pair->controller_again->defined[i];
        same(pair, was->state, is->state, "the state of a function", a->known[i].row.name);
        same_text(pair, a->known[i].row.name, b->known[i].row.name, "a function's name", "it");
        same(pair, a->known[i].text_bytes, b->known[i].text_bytes, "a function's text", "it");
    }
}

/* ---- barriers ---- */

static void same_place(
    const struct pair *pair, const struct controller_place *a, const struct controller_place *b,
    const char *whom)
{
    same(pair, a->chief, b->chief, "the job of a task", whom);
    same(pair, a->index, b->index, "the index of a task", whom);
    same(pair, a->round, b->round, "the round that a task has come to", whom);
    same(pair, a->attempt, b->attempt, "the attempt that has come", whom);
}

static void same_barrier(
    const struct pair *pair, const struct controller_barrier *a, const struct controller_barrier *b)
{
    const char *whom = (a != NULL ? a : b)->name;

    if (one_only(pair, a, b, whom))
        return;
    same_text(pair, a->name, b->name, "name", whom);
    same(
        pair, controller_barrier_find(pair->controller_again, a->name) == b, true,
        "that it is found", whom);
    same(pair, a->of_all, b->of_all, "that it is of all", whom);
    same(pair, a->open, b->open, "that a round is open", whom);
    same(pair, a->round, b->round, "the round", whom);
    same(pair, a->timeout_ms, b->timeout_ms, "the time that it waits", whom);
    same(pair, a->come_count, b->come_count, "how many have come", whom);
    same(pair, a->end_known, b->end_known, "that its last end is known", whom);
    same(pair, (uint64_t)a->end.status, (uint64_t)b->end.status, "its last end", whom);
    same(pair, (uint64_t)a->end.reason, (uint64_t)b->end.reason, "why it ended", whom);
    same_text(pair, a->end.text, b->end.text, "last end", whom);
    same(pair, a->place_count, b->place_count, "how many tasks", whom);
    for (uint32_t i = 0; i < a->place_count && check_is_good(pair->check); i++)
        same_place(pair, &a->places[i], &b->places[i], whom);
}

static void same_barriers(const struct pair *pair)
{
    const struct controller_barrier *a = pair->controller->barriers.first,
                                    *b = pair->controller_again->barriers.first;

    for (; (a != NULL || b != NULL) && check_is_good(pair->check);
         a = a == NULL ? NULL : a->in_controller.next, b = b == NULL ? NULL : b->in_controller.next)
        same_barrier(pair, a, b);
}

/* ---- rounds of collectives ---- */

static void same_collective(
    const struct pair *pair, const struct controller_collective *a,
    const struct controller_collective *b)
{
    const char *whom = (a != NULL ? a : b)->collective->name;
    struct sumac_error error;

    if (one_only(pair, a, b, whom))
        return;
    same(pair, a->order.number, b->order.number, "the number of the order", whom);
    same_text(pair, a->collective->name, b->collective->name, "name", whom);
    same(pair, a->collective->round, b->collective->round, "the round", whom);
    same(pair, (uint64_t)a->end.status, (uint64_t)b->end.status, "the end", whom);
    same(pair, (uint64_t)a->end.reason, (uint64_t)b->end.reason, "why it ended", whom);
    same_text(pair, a->end.text, b->end.text, "end", whom);
    same(
        pair, a->collective->timeout_ms, b->collective->timeout_ms, "the time that it waits", whom);
    if (check_is_good(pair->check) &&
        collective_compare(a->collective, b->collective, &error) != SUMAC_OK)
        check_object(pair->check, "by the controller's records: %s", error.text);
}

static void same_collectives(const struct pair *pair)
{
    const struct controller_collective *a = pair->controller->collectives.first,
                                       *b = pair->controller_again->collectives.first;

    for (; (a != NULL || b != NULL) && check_is_good(pair->check);
         a = a == NULL ? NULL : a->in_controller.next, b = b == NULL ? NULL : b->in_controller.next)
        same_collective(pair, a, b);
}

void controller_replay_check(
    const struct controller *controller, const struct controller *again, struct check *check)
{
    const struct pair pair = {
        .controller = controller,
        .controller_again = again,
        .records = "the controller's records",
        .check = check};
    const struct controller_task *task = controller->tasks.first, *task_again = again->tasks.first;
    const struct controller_session *session = controller->sessions.first;
    const struct controller_session *session_again = again->sessions.first;
    const struct controller_variable *variable = controller->variables.first;
    const struct controller_variable *variable_again = again->variables.first;

    same(&pair, controller->last_record, again->last_record, "the last record", "the controller");
    same_cluster(&pair);
    for (; (task != NULL || task_again != NULL) && check_is_good(check);
         task = task == NULL ? NULL : task->in_controller.next,
         task_again = task_again == NULL ? NULL : task_again->in_controller.next)
        same_task(&pair, task, task_again);
    for (; (session != NULL || session_again != NULL) && check_is_good(check);
         session = session == NULL ? NULL : session->in_controller.next,
         session_again = session_again == NULL ? NULL : session_again->in_controller.next)
        same_session(&pair, session, session_again);
    for (; (variable != NULL || variable_again != NULL) && check_is_good(check);
         variable = variable == NULL ? NULL : variable->in_controller.next,
         variable_again = variable_again == NULL ? NULL : variable_again->in_controller.next)
        same_variable(&pair, variable, variable_again);
    same_functions(&pair);
    same_barriers(&pair);
    same_collectives(&pair);
}
