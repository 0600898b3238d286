/* SPDX-License-Identifier: Apache-2.0 */
/* checker_told.c -- what is told of pushes that are over: to a task that begins again, to whoever
 * leaves, to ps 0 by a ps that closes a session, and why one was refused.
 */
#include <string.h>

#include "checker.h"
#include "process_client.h"

/* ---- a task that begins again */

static const struct sim_session *
previous_of(const struct world *world, const struct sim_session *life, uint64_t attempt)
{
    const struct checker *checker = world->checker;
    const struct client *client = world->clients[life->client];

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *other = checker->lives[i];
        const struct client *its = world->clients[other->client];
        if (client->member && its->member && its->task == client->task && other->joined &&
            other->attempt + 1 == attempt)
            return other;
    }
    return NULL;
}

static bool is_listed(const wire_join_reply *reply, uint64_t sequence)
{
    for (size_t i = 0; i < reply->n_previous_voided; i++)
        if (reply->previous_voided[i] == sequence)
            return true;
    return false;
}

/* Up to the final all count but the voided; of those up to acked_through its client had heard. */
void checker_resumed(
    struct world *world, const struct sim_session *life, const wire_join_reply *reply)
{
    const struct checker *checker = world->checker;
    const struct sim_session *previous =
        life == NULL ? NULL : previous_of(world, life, reply->attempt);

    for (uint32_t i = 0; previous != NULL && i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (push->session != previous || push->seed || push->sequence == 0 ||
            push->sequence > reply->previous_final)
            continue;
        const bool heard = push->sequence <= reply->previous_acked_through;
        if (!heard && push->defect != DEFECT_NONE && !is_listed(reply, push->sequence))
            checker_violation(world, "a resuming task takes a refused push for applied");
        if (heard && push->fate == FATE_UNDER_WAY)
            checker_violation(world, "a task is told that it had heard what it had not");
    }
}

/* ---- whoever leaves as done */

void checker_left(struct world *world, struct sim_session *life)
{
    if (life != NULL && life->says_done && world->clients[life->client]->member)
        life->counts_as_done = true;
}

static bool has_ended_well(const struct world *world)
{
    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        if (world->ps[ps]->ending && world->ps[ps]->exit_code == 0)
            return true;
    return false;
}

/* A run that has ended well needs no leave of those that are still there. */
void checker_has_left(struct world *world, const struct sim_session *life)
{
    if (!life->leave_heard && world->clients[life->client]->member && !has_ended_well(world))
        checker_violation(world, "a member has left, and ps 0 has not heard of it");
}

void checker_check_done(struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (!push->session->counts_as_done || push->defect != DEFECT_NONE || push->seed ||
            push->sequence == 0 || checker_may_be_void(world, push))
            continue;
        for (uint32_t ps = 0; ps < world->ps_count; ps++)
            if ((push->participants >> ps & 1) != 0 &&
                (checker->applied[ps] >> push->number & 1) == 0)
                checker_violation(world, "a session counts as done though a push of it is dropped");
    }
}

/* ---- refusals that a ps still remembers */

void checker_heard_acked(
    struct world *world, const struct stream *stream, const wire_push_request *request)
{
    struct sim_session *life = checker_life_of(world, stream->caller, stream->caller_life);
    const bool taken = life != NULL && (life->closing >> stream->ps & 1) == 0 && !stream->over;

    if (taken && request->commit != NULL &&
        life->acked_said[stream->ps] < request->commit->acked_through)
        life->acked_said[stream->ps] = request->commit->acked_through;
    if (life != NULL && request->commit != NULL)
        checker_commits(world, life, request);
}

/* From then on the ps takes nothing from the session. */
void checker_told_to_close(struct world *world, uint32_t ps, const wire_peer_order *order)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; order->close != NULL && i < checker->life_count; i++)
        if (memcmp(checker->lives[i]->id, order->close->session_id.data, 16) == 0)
            checker->lives[i]->closing |= (uint8_t)(1u << ps);
}

void checker_closes(struct world *world, uint32_t ps, const wire_close_report *close)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (memcmp(push->session->id, close->session_id.data, 16) != 0 || push->sequence == 0 ||
            (push->participants >> ps & 1) == 0 || push->fate != FATE_REFUSED)
            continue;
        const bool acked = push->sequence <= push->session->acked_said[ps];
        for (size_t k = 0; acked && k < close->n_voided; k++)
            if (close->voided[k] == push->sequence)
                checker_violation(world, "a refusal is remembered though its client knows of it");
    }
}

/* ---- why it was refused */

/* Of a function with slots, pushed to a variable that has none: the data type is looked at
 * first. */
static enum sumac_reason reason_of_function(const struct world *world, const struct sim_push *push)
{
    const struct sim_variable *grad = &world->checker->variables[GRAD];

    for (uint32_t i = 0; i < push->piece_count; i++)
        for (uint32_t row = 0; row < grad->rows; row++)
            if (push->pieces[i].ps == push->bad_ps && push->pieces[i].function == 1 &&
                push->pieces[i].shard_id == grad->shards[row].id)
                return SUMAC_REASON_MISSING_SLOTS;
    return SUMAC_REASON_WRONG_DATA_TYPE;
}

static enum sumac_reason reason_of(const struct world *world, const struct sim_push *push)
{
    switch (push->defect) {
    case DEFECT_NON_FINITE:
        return SUMAC_REASON_NON_FINITE;
    case DEFECT_UNKNOWN_SHARD:
        return SUMAC_REASON_UNKNOWN_SHARD;
    case DEFECT_STALE_LAYOUT:
        return SUMAC_REASON_STALE_LAYOUT;
    case DEFECT_BEYOND_THE_END:
        return SUMAC_REASON_WRONG_SHAPE;
    case DEFECT_WRONG_DATA_TYPE:
        return reason_of_function(world, push);
    case DEFECT_TOO_LARGE:
        return SUMAC_REASON_PART_TOO_LARGE;
    case DEFECT_CORRUPTED:
        return SUMAC_REASON_MALFORMED;
    case DEFECT_OF_STEP:
        return SUMAC_REASON_STEP_DIFFERS;
    case DEFECT_LATE:
        return SUMAC_REASON_STEP_LATE;
    case DEFECT_CANCELLED:
        return SUMAC_REASON_CANCELLED;
    case DEFECT_NONE:
    case DEFECT_NO_MEMORY:
    case DEFECT_ELSEWHERE: /* of a contribution to a collective */
        break;
    }
    return SUMAC_REASON_UNSPECIFIED;
}

void checker_refused(
    struct world *world, const struct sim_push *push, const struct sumac_error *error)
{
    const char *name = world->processes[push->bad_ps].name;

    made_if(world, MADE_corrupted, push->defect == DEFECT_CORRUPTED);
    if (push->defect == DEFECT_NO_MEMORY || world_was_short(world)) /* that may be the reason */
        return;
    const bool of_step =
        error->reason == SUMAC_REASON_STEP_DIFFERS && checker_may_differ(world, push);
    if (error->reason != reason_of(world, push) && !of_step)
        checker_violation(world, "a push is refused for another reason than it has given");
    if (!of_step && push->defect != DEFECT_LATE && push->defect != DEFECT_CANCELLED &&
        strstr(error->text, name) == NULL)
        checker_violation(world, "a refusal does not name the ps");
}
