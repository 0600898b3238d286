/* SPDX-License-Identifier: Apache-2.0 */
/* replay_check.c -- two lanes side by side: the cluster, sessions, parts, refusals, variables,
 * every byte of what they hold. */
#include "replay_check.h"

#include <inttypes.h>
#include <string.h>

#include "handlers.h"
#include "operation_state.h"
#include "replay_pair.h"
#include "store_check.h"

/* ---- the cluster ---- */

/* A step that ends is over by the records. */
static void same_steps(const struct pair *pair)
{
    const struct turns *const a = pair->lane->turns, *const b = pair->lane_again->turns;
    const enum operation_state state = a->step.state;
    const bool over = state == OPERATION_RAISING || state == OPERATION_FREEING;

    same(
        pair, pair->lane->step_over + over, pair->lane_again->step_over, "the last step",
        "the lane");
    same(pair, a->taken_step, b->taken_step, "the last step that ps 0 took", "the lane");
    same(pair, a->step_begun, b->step_begun, "members that begin with step 1", "the lane");
    same(pair, a->fails_from, b->fails_from, "the first step that fails", "the lane");
    same_text(pair, a->lost_task, b->lost_task, "lost member", "the lane");
    same(
        pair, a->collective_order, b->collective_order, "the last order that ended a round",
        "the lane");
}

static void same_cluster(const struct pair *pair)
{
    const struct lane *a = pair->lane, *b = pair->lane_again;
    const char *whom = "the cluster";

    if (!a->any_hello && !b->any_hello) /* ps 0's own lane has its number from its controller */
        return;
    same(pair, a->any_hello, b->any_hello, "the first hello", whom);
    same(pair, a->cluster_id, b->cluster_id, "the number", whom);
    same(pair, a->epoch, b->epoch, "the epoch", whom);
    same(pair, a->membership_epoch, b->membership_epoch, "the membership epoch", whom);
    same(pair, a->controller_incarnation, b->controller_incarnation, "ps 0", whom);
    same(pair, a->controller_secret, b->controller_secret, "the secret", whom);
    same(pair, a->controller_hello, b->controller_hello, "the last hello", whom);
    same(pair, a->joined_once, b->joined_once, "the first session", whom);
    same(pair, a->ps_count, b->ps_count, "how many ps", whom);
    same_steps(pair);
    same(pair, a->step_members, b->step_members, "how many members a step has", whom);
    same(pair, a->step_quorum, b->step_quorum, "how many a step needs", whom);
    for (uint32_t i = 0; i < a->ps_count && check_is_good(pair->check); i++) {
        same(pair, a->ps_incarnations[i], b->ps_incarnations[i], "the incarnation of a ps", whom);
        same_text(pair, a->ps_addresses[i], b->ps_addresses[i], "address of a ps", whom);
    }
}

/* ---- parts ---- */

static const struct shard *shard_of(const struct lane_part *part, const struct run *run)
{
    return part->entries[run->entry].shard;
}

/* The bytes of a run, from one of its chunks to the next. */
struct reader {
    const struct chunk *chunk;
    uint64_t offset;
};

static uint8_t next_byte(struct reader *reader)
{
    while (reader->offset >= reader->chunk->used) {
        reader->offset -= reader->chunk->used;
        reader->chunk = reader->chunk->in_part.next;
    }
    return reader->chunk->data[reader->offset++];
}

/* As many rows, and the same, in the same order; their values are compared by the store's. */
static void same_rows(
    const struct pair *pair, const struct row_list *was, const struct row_list *is,
    const char *whom)
{
    const struct row_piece *a = was->first, *b = is->first;

    same(pair, was->row_count, is->row_count, "the rows of a list", whom);
    for (; a != NULL && b != NULL && check_is_good(pair->check); a = a->next, b = b->next) {
        same(pair, a->count, b->count, "the rows of a piece", whom);
        if (a->count == b->count && memcmp(a->keys, b->keys, a->count * sizeof *a->keys) != 0)
            differ(pair, "rows", whom);
    }
}

static void same_run(
    const struct pair *pair, const struct lane_part *a, const struct lane_part *b, uint32_t i,
    const char *whom)
{
    const struct run *was = &a->runs[i], *is = &b->runs[i];

    same(pair, was->sets, is->sets, "the kind of a run", whom);
    same(pair, was->by_rows, is->by_rows, "the kind of a run", whom);
    same(pair, shard_of(a, was)->id, shard_of(b, is)->id, "the shard of a run", whom);
    if (was->by_rows && is->by_rows) {
        same(pair, was->bytes, is->bytes, "the bytes of a run", whom);
        same(pair, was->function, is->function, "the function of a run", whom);
        same_rows(pair, was->list, is->list, whom);
        return;
    }
    struct reader of_a = {was->chunk, was->chunk_offset}, of_b = {is->chunk, is->chunk_offset};

    same(pair, was->offset, is->offset, "the place of a run", whom);
    same(pair, was->bytes, is->bytes, "the bytes of a run", whom);
    same(pair, was->function, is->function, "the function of a run", whom);
    const uint64_t bytes = was->bytes * lane_part_widens(a, shard_of(a, was));
    for (uint64_t at = 0; at < bytes && check_is_good(pair->check); at++)
        if (next_byte(&of_a) != next_byte(&of_b))
            differ(pair, "values", whom);
}

static void same_functions(
    const struct pair *pair, const struct lane_part *a, const struct lane_part *b, const char *whom)
{
    same(pair, a->function_count, b->function_count, "how many functions", whom);
    for (uint32_t i = 0; i < a->function_count && check_is_good(pair->check); i++) {
        const struct part_function *was = &a->functions[i], *is = &b->functions[i];
        same(pair, was->function->number, is->function->number, "a function", whom);
        same(pair, was->given.set, is->given.set, "hyperparameters", whom);
        if (memcmp(was->given.value, is->given.value, sizeof was->given.value) != 0)
            differ(pair, "value of a hyperparameter", whom);
        if (!update_schedule_same(&was->given.schedule, &is->given.schedule))
            differ(pair, "schedule", whom);
    }
}

/* An operation that ends is recorded before its shards get their versions, … */
static bool is_raised(const struct shard *shard)
{
    const struct shard_busy *busy = (const struct shard_busy *)(const void *)shard->of_user;

    return busy->operation == NULL || busy->operation->state != OPERATION_RAISING;
}

/* … and its part is over by the records. NULL: none. */
static const struct lane_part *ending_part(const struct lane *lane, struct lane_session *session)
{
    const bool contributes = session->applying != NULL && session->applying->step != 0;
    const enum operation_state state =
        contributes ? lane->turns->step.state : operation_of(session)->state;

    return state == OPERATION_RAISING || state == OPERATION_FREEING ? session->applying : NULL;
}

static void same_part(const struct pair *pair, const struct lane_part *a, const struct lane_part *b)
{
    char whom[160];

    (void)text_print(
        whom, sizeof whom, "push %" PRIu64 " of %s", (a != NULL ? a : b)->sequence,
        (a != NULL ? a : b)->session->task);
    if (one_only(pair, a, b, whom))
        return;
    same(pair, a->sequence, b->sequence, "the number", whom);
    same(pair, a->previous, b->previous, "what comes before", whom);
    same(pair, a->state == PART_VOID, b->state == PART_VOID, "the refusal", whom);
    same(pair, a->step, b->step, "the synchronous step", whom);
    if (a->state == PART_VOID)
        return;
    same(pair, a->bytes, b->bytes, "the bytes", whom);
    if (b->eager) /* else a duplicate said so, which its client says again */
        same(pair, a->eager, b->eager, "that it carries its commit", whom);
    same(pair, a->is_collective, b->is_collective, "that it is to a round", whom);
    same(pair, a->allow_non_finite, b->allow_non_finite, "what is allowed", whom);
    if (memcmp(&a->weight, &b->weight, sizeof a->weight) != 0)
        differ(pair, "weight", whom);
    if (memcmp(&a->scale, &b->scale, sizeof a->scale) != 0)
        differ(pair, "scale", whom);
    same(pair, a->entry_count, b->entry_count, "how many shards", whom);
    for (uint32_t i = 0; i < a->entry_count && check_is_good(pair->check); i++) {
        same(pair, a->entries[i].shard->id, b->entries[i].shard->id, "a shard", whom);
        same(
            pair, a->entries[i].based_on, b->entries[i].based_on, "what a shard is based on", whom);
        if (!is_raised(a->entries[i].shard))
            continue;
        same(
            pair, a->entries[i].shard->version, b->entries[i].shard->version,
            "the version of a shard", whom);
    }
    same_functions(pair, a, b, whom);
    same(pair, a->run_count, b->run_count, "how many runs", whom);
    for (uint32_t i = 0; i < a->run_count && check_is_good(pair->check); i++)
        same_run(pair, a, b, i, whom);
}

/* ---- sessions ---- */

/* Why a push was refused is told until its session is closed. */
static void
same_voided(const struct pair *pair, const struct lane_session *a, const struct lane_session *b)
{
    same(pair, a->voided_count, b->voided_count, "how many voided pushes", a->task);
    for (uint32_t i = 0; i < a->voided_count && check_is_good(pair->check); i++) {
        const struct refusal *was = a->voided[i].refusal, *is = b->voided[i].refusal;
        same(pair, a->voided[i].sequence, b->voided[i].sequence, "a voided push", a->task);
        if (a->closing)
            continue;
        same(pair, was != NULL, is != NULL, "a refusal", a->task);
        if (was == NULL || is == NULL)
            continue;
        same(pair, was->error.status, is->error.status, "the status of a refusal", a->task);
        same(pair, was->error.reason, is->error.reason, "the reason of a refusal", a->task);
        same_text(pair, was->error.text, is->error.text, "text of a refusal", a->task);
        same_text(pair, was->expected, is->expected, "text of a refusal", a->task);
        same_text(pair, was->given, is->given, "text of a refusal", a->task);
    }
}

static void
same_session(const struct pair *pair, struct lane_session *a, const struct lane_session *b)
{
    const struct lane_part *was, *is;
    const char *whom = (a != NULL ? a : b)->task;

    if (one_only(pair, a, b, whom))
        return;
    if (memcmp(a->id, b->id, sizeof a->id) != 0)
        differ(pair, "number", whom);
    same_text(pair, a->task, b->task, "task", whom);
    same(pair, a->first_step, b->first_step, "the first step", whom);
    same(pair, a->asks_step, b->asks_step, "that its first step is asked", whom);
    same(pair, a->seen_step, b->seen_step, "the step that ps 0 was told", whom);
    same(pair, a->taken_step, b->taken_step, "the last step that it was taken for", whom);
    same(pair, a->contributed_step, b->contributed_step, "the last contribution", whom);
    same(pair, a->role, b->role, "the role", whom);
    same(pair, a->attempt, b->attempt, "the attempt", whom);
    const struct lane_part *over = ending_part(pair->lane, a);
    same(pair, over == NULL ? a->mark : over->sequence, b->mark, "the mark", whom);
    same(pair, a->commit_through, b->commit_through, "commit_through", whom);
    same(pair, a->acked_through, b->acked_through, "acked_through", whom);
    same(pair, a->collectives_through, b->collectives_through, "collectives_through", whom);
    same(pair, a->contribution_count, b->contribution_count, "how many contributions", whom);
    same(pair, a->clock_said, b->clock_said, "the clock that was said", whom);
    if (over == NULL)
        same(pair, a->clock, b->clock, "the clock", whom);
    same(
        pair, over == NULL || over->step == 0 ? a->passed_step : over->step, b->passed_step,
        "the last step", whom);
    same(pair, a->closing, b->closing, "that it is closing", whom);
    same(pair, a->closed, b->closed, "that it is closed", whom);
    same(pair, a->done, b->done, "that it is done", whom);
    same(pair, a->final, b->final, "final", whom);
    same(pair, a->decided_acked_through, b->decided_acked_through, "acked_through of all", whom);
    same(pair, (uint64_t)a->cause.kind, (uint64_t)b->cause.kind, "the cause of its end", whom);
    same_voided(pair, a, b);
    for (was = over == NULL ? a->parts.first : over->in_session.next, is = b->parts.first;
         (was != NULL || is != NULL) && check_is_good(pair->check);
         was = was == NULL ? NULL : was->in_session.next,
        is = is == NULL ? NULL : is->in_session.next)
        same_part(pair, was, is);
}

static void
same_sessions(const struct pair *pair, struct lane_session *a, const struct lane_session *b)
{
    while ((a != NULL || b != NULL) && check_is_good(pair->check)) {
        same_session(pair, a, b);
        a = a == NULL ? NULL : a->in_lane.next;
        b = b == NULL ? NULL : b->in_lane.next;
    }
}

/* ---- variables ---- */

static void same_blocks(
    const struct pair *pair, struct block **a, struct block **b, uint32_t count, const char *whom)
{
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(a[i]->data, b[i]->data, a[i]->bytes) != 0)
            differ(pair, "values", whom);
    }
}

static void same_shard(const struct pair *pair, const struct shard *a, const struct shard *b)
{
    const char *whom = a->variable->name;

    same(pair, a->id, b->id, "the number of a shard", whom);
    if (!is_raised(a))
        return;
    same(pair, a->version, b->version, "the version", whom);
    same(pair, a->step_count, b->step_count, "the steps", whom);
    same(pair, a->unassigned_count, b->unassigned_count, "what is not assigned", whom);
    same_text(pair, a->last_worker, b->last_worker, "last worker", whom);
    if (!check_is_good(pair->check))
        return;
    if (!a->variable->filled)
        return;
    if (!store_check_same_unassigned(a, b))
        differ(pair, "assigned elements", whom);
    if (is_busy(a))
        return;
    if (!definition_same_hyperparameters(&a->hyperparameters, &b->hyperparameters))
        differ(pair, "hyperparameters", whom);
    for (uint32_t i = 0; i < a->list_count; i++)
        same_blocks(pair, a->list[i], b->list[i], a->block_count, whom);
}

static void
same_variable(const struct pair *pair, const struct variable *a, const struct variable *b)
{
    const char *whom = (a != NULL ? a : b)->name;
    struct sumac_error error;

    if (one_only(pair, a, b, whom))
        return;
    same_text(pair, a->name, b->name, "name", whom);
    same(pair, a->id, b->id, "the number", whom);
    same(pair, a->published, b->published, "that it is published", whom);
    if (pair->lane->turns->ending == 0)
        same(pair, a->assigned, b->assigned, "that it is assigned", whom);
    same(pair, a->held_count, b->held_count, "how many shards", whom);
    if (definition_compare(whom, &a->definition, &b->definition, &error) != SUMAC_OK)
        check_object(pair->check, "by the records: %s", error.text);
    for (uint32_t i = 0; i < a->made_count && check_is_good(pair->check); i++)
        same_shard(pair, &a->shards[i], &b->shards[i]);
}

static void same_variables(const struct pair *pair)
{
    const struct variable *a = pair->lane->store.variables.first;
    const struct variable *b = pair->lane_again->store.variables.first;

    while ((a != NULL || b != NULL) && check_is_good(pair->check)) {
        same_variable(pair, a, b);
        a = a == NULL ? NULL : a->in_store.next;
        b = b == NULL ? NULL : b->in_store.next;
    }
}

/* ---- rounds of collectives ---- */

/* Not those that are kept for who has not come: they may give way. One that is read from is there
 * for its readers, and replay has none. */
static void same_rounds(const struct pair *pair, const struct round *first, bool over)
{
    for (const struct round *was = first; was != NULL && check_is_good(pair->check);
         was = was->in_list.next) {
        if (was->uses != 0)
            continue;
        const char *const whom = was->collective->name;
        const struct round *is = rounds_find(&pair->lane_again->rounds, was->collective);
        if (one_only(pair, was, is, whom))
            return;
        same(pair, over, is->over && !is->kept, "that a round is over", whom);
        same(pair, was->passes, is->passes, "that a round passes", whom);
        if (over) { /* else it is what is proposed */
            same(pair, (uint64_t)was->end.status, (uint64_t)is->end.status, "its end", whom);
            same(pair, (uint64_t)was->end.reason, (uint64_t)is->end.reason, "its reason", whom);
            same_text(pair, was->end.text, is->end.text, "text of its end", whom);
        }
        for (uint32_t i = 0; i < was->collective->task_count; i++) {
            same(pair, was->places[i].came, is->places[i].came, "who has come", whom);
            same(pair, was->places[i].heard, is->places[i].heard, "who has heard", whom);
            same(pair, was->places[i].left, is->places[i].left, "who has left", whom);
        }
    }
}

void lane_replay_check(const struct lane *lane, const struct lane *again, struct check *check)
{
    const struct pair pair = {
        .lane = lane, .lane_again = again, .records = "the records", .check = check};

    same_cluster(&pair);
    same_sessions(&pair, lane->sessions.first, again->sessions.first);
    same_sessions(&pair, lane->closed_sessions.first, again->closed_sessions.first);
    same(&pair, lane->functions.count, again->functions.count, "how many functions", "the lane");
    same_variables(&pair);
    /* Where an end has given way, who comes begins a new round, which by the records is over. */
    if (lane->rounds.given_way_count == 0) {
        same_rounds(&pair, lane->rounds.open.first, false);
        same_rounds(&pair, lane->rounds.over.first, true);
    }
    if (!lane_operation_is_any(lane))
        same(&pair, lane->store.position, again->store.position, "the position", "the lane");
    same(&pair, lane->last_record, again->last_record, "the last record", "the lane");
}
