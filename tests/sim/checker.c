/* SPDX-License-Identifier: Apache-2.0 */
/* checker.c -- what is promised to each session, push and pull, and to the run as a whole. */
#include "checker.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "process_client.h"

struct checker *checker_make(struct world *world)
{
    return world_take(world, sizeof(struct checker));
}

void checker_violation(struct world *world, const char *text)
{
    struct checker *checker = world->checker;

    if (checker->violations++ == 0)
        snprintf(checker->first, sizeof checker->first, "%s", text);
    trace_say(world, "VIOLATION: %s", text);
}

void checker_state(struct world *world, const char *process, const struct check *check)
{
    struct checker *checker = world->checker;

    if (check_is_good(check))
        return;
    if (checker->violations++ == 0)
        snprintf(checker->first, sizeof checker->first, "%s: %s", process, check->text);
    trace_say(world, "INCONSISTENT: %s: %s", process, check->text);
}

uint32_t checker_violations(const struct world *world) { return world->checker->violations; }

static bool is_gone(const struct client *client)
{
    return client->phase == PHASE_GONE || client->hung;
}

static bool some_member_joined(const struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->life_count; i++)
        if (checker->lives[i]->joined && world->clients[checker->lives[i]->client]->member)
            return true;
    return false;
}

/* Without a member a ps waits without limit; one that joined and did not live to hear of it has its
 * lease. */
bool checker_over(struct world *world)
{
    struct checker *checker = world->checker;

    for (uint32_t i = 0; i < world->client_count; i++)
        if (!is_gone(world->clients[i]))
            return false;
    if (checker->gone_us == 0)
        checker->gone_us = world->now_us;
    const bool waits = checker->state_lost || !some_member_joined(world);
    if (waits && world->now_us > checker->gone_us + 12 * SIM_LEASE_MS * 1000u)
        return true;
    for (uint32_t i = 0; i < world->ps_count; i++)
        if (!world->ps[i]->exited)
            return false;
    return true;
}

/* ---- sessions */

bool checker_of_lost_run(const struct world *world, const struct sim_session *life)
{
    const struct checker *checker = world->checker;

    return checker->state_lost && life->joined && life->joined_us < checker->lost_us;
}

struct sim_session *checker_life(struct world *world, uint32_t client)
{
    struct checker *checker = world->checker;

    assert(checker->life_count < LIVES_MAX);
    struct sim_session *life = world_take(world, sizeof *life);
    life->number = checker->life_count;
    life->client = client;
    life->began_us = world->now_us;
    life->process_life = world->processes[process_of_client(client)].life;
    checker->lives[checker->life_count++] = life;
    return life;
}

void checker_joined(
    struct world *world, struct sim_session *life, const struct session_state *state)
{
    const struct checker *checker = world->checker;

    life->joined = true;
    life->joined_us = world->now_us;
    life->attempt = state->attempt;
    life->previous_final = state->previous_final;
    life->first_clock = state->clock;
    life->last_step = state->last_step;
    made_if(world, MADE_step_joined, state->first_step > 1);
    life->speaks_by_us = world->now_us + SIM_LEASE_MS * 1000ull / 3 + 1000;
    memcpy(life->id, state->session_id, sizeof life->id);
    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *other = checker->lives[i];
        if (other != life && other->joined && memcmp(other->id, life->id, sizeof life->id) == 0)
            checker_violation(world, "two clients have the same session");
    }
}

/* Does the end of a session say which of its pushes count? Only ps 0's answer to a call does
 * not. */
static bool says_what_came(const struct sumac_error *error)
{
    return strstr(error->text, "did not say") == NULL &&
           strstr(error->text, "was not said") == NULL;
}

/* Whoever ends for want of a ps names it, and it is one that has crashed. Started again, for a
 * session that it had not spoken to before it is of another cluster. */
static bool is_of_a_loss(const struct world *world, const struct sumac_error *error)
{
    bool named = false;

    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        named = named ||
                (world->ps[ps]->crashed && strstr(error->text, world->processes[ps].name) != NULL);
    return error->reason == SUMAC_REASON_SESSION_UNKNOWN ||
           (named &&
            (error->reason == SUMAC_REASON_STATE_LOST || error->reason == SUMAC_REASON_PS_MISSING ||
             error->reason == SUMAC_REASON_WRONG_CLUSTER));
}

/* Or finds a ps gone that it had not heard of it from. */
static bool is_of_sigterm(const struct sumac_error *error)
{
    return error->reason == SUMAC_REASON_TERMINATED || error->reason == SUMAC_REASON_STATE_LOST ||
           error->reason == SUMAC_REASON_PS_MISSING || error->reason == SUMAC_REASON_RUN_ENDED;
}

/* The run does not wait for observers, and for nobody who has not joined: they may find it ended,
 * or gone, or give up. */
static bool is_too_late(
    const struct world *world, const struct sim_session *life, const struct sumac_error *error)
{
    const bool holds_up_the_end = life->joined && world->clients[life->client]->member;
    const struct checker *checker = world->checker;
    const bool gone = checker->ps_exited || checker->state_lost || checker->terminated;

    return !holds_up_the_end &&
           (error->reason == SUMAC_REASON_RUN_ENDED || error->reason == SUMAC_REASON_TERMINATED ||
            (gone && error->reason == SUMAC_REASON_PS_MISSING) ||
            (!life->joined && world->now_us >= life->began_us + SIM_PATIENCE_US));
}

/* For want of memory; a ps that has none to keep why it refused a part says so. */
bool checker_is_for_memory(const struct world *world, const struct sumac_error *error)
{
    return world_was_short(world) && (error->reason == SUMAC_REASON_OUT_OF_MEMORY ||
                                      strstr(error->text, "its reason was lost") != NULL);
}

/* A ps that it could not reach for so long it has to take for lost. */
bool checker_is_out_of_reach(
    const struct world *world, const struct sim_session *life, const struct sumac_error *error)
{
    return error->reason == SUMAC_REASON_PS_MISSING && life->joined &&
           world->now_us >= life->joined_us + SIM_PATIENCE_US &&
           !checker_was_calm(world, life, world->now_us - SIM_WAIT_US);
}

void checker_ended(struct world *world, struct sim_session *life, const struct sumac_error *error)
{
    const struct checker *checker = world->checker;
    const bool lost = checker->state_lost;

    life->ended = true;
    if (!says_what_came(error) && !world->checker->ps_exited && !lost)
        checker_violation(world, "a live client is not told what came of its session");
    if (!life->joined && world_was_short(world) &&
        (error->reason == SUMAC_REASON_SESSION_CLOSED ||
         error->reason == SUMAC_REASON_TOO_MANY_SESSIONS))
        return; /* it could not be opened everywhere, which an answer that was lost said; or others
                   not be settled yet */
    if (checker_is_for_memory(world, error)) {
        made(world, MADE_session_no_memory);
        checker_died(world, life); /* of what it had under way nothing is said */
        return;
    }
    life->excused = checker_may_be_closed(world, life);
    if (life->excused || checker_is_out_of_reach(world, life, error) ||
        is_too_late(world, life, error) || (lost && is_of_a_loss(world, error)) ||
        (checker->terminated && is_of_sigterm(error)))
        return;
    if (error->reason == SUMAC_REASON_SESSION_CLOSED)
        checker_violation(world, "a session is closed though its client was heard from");
    else if (checker_of_lost_run(world, life))
        checker_violation(world, "a session ends without the name of the ps that crashed");
    else if (!lost)
        checker_violation(world, "a session ends for no reason");
}

void checker_died(struct world *world, struct sim_session *life)
{
    (void)world;
    life->dead = true;
}

/* ---- variables */

void checker_created(struct world *world, enum variable variable, const wire_variable *made)
{
    struct sim_variable *known = &world->checker->variables[variable];
    const uint32_t rows = (uint32_t)made->n_shards;
    const bool next_run = world->checker->state_lost && world_was_short(world);

    if (rows > 2 * world->ps_count || (known->known && known->rows != rows)) {
        checker_violation(world, "a variable has other shards than were asked for");
        return;
    }
    for (uint32_t i = 0; i < rows; i++) {
        const wire_shard *shard = made->shards[i];
        const struct sim_shard given = {
            shard->shard_id, shard->ps, shard->layout_epoch, shard->bytes};
        if (given.ps >= world->ps_count || given.ps != (made->shards[0]->ps + i) % world->ps_count)
            checker_violation(world, "shards are not placed in turn");
        if (known->known && !next_run && /* without trouble its numbers are the same */
            (known->shards[i].id != given.id || known->shards[i].ps != given.ps))
            checker_violation(world, "two clients know one variable with different shards");
        known->shards[i] = given;
    }
    known->known = true;
    known->rows = rows;
}

const struct sim_shard *
checker_shard(const struct world *world, enum variable variable, uint32_t ps, uint32_t nth)
{
    const struct sim_variable *known = &world->checker->variables[variable];

    for (uint32_t i = 0; i < known->rows; i++)
        if (known->shards[i].ps == ps && nth-- == 0)
            return &known->shards[i];
    return NULL;
}

/* ---- pushes */

struct sim_push *checker_push(struct world *world, struct sim_session *life)
{
    struct checker *checker = world->checker;

    if (checker->push_count == COLUMNS)
        return NULL;
    struct sim_push *push = world_take(world, sizeof *push);
    push->number = checker->push_count;
    push->session = life;
    push->token = push->number + 1;
    checker->pushes[checker->push_count++] = push;
    memcpy(push->versions_told, checker->versions_told, sizeof push->versions_told);
    return push;
}

struct sim_push *checker_find_push(const struct world *world, uint64_t token)
{
    const struct checker *checker = world->checker;

    return token == 0 || token > checker->push_count ? NULL : checker->pushes[token - 1];
}

enum fate checker_fate(const struct sumac_error *error)
{
    if (error->status == SUMAC_OK)
        return FATE_OK;
    if (error->reason == SUMAC_REASON_SESSION_CLOSED)
        return says_what_came(error) ? FATE_CLOSED : FATE_UNKNOWN;
    if (error->reason == SUMAC_REASON_CANCELLED)
        return FATE_REFUSED;
    if (error->status == SUMAC_UNAVAILABLE || error->reason >= SUMAC_REASON_PS_MISSING)
        return FATE_UNKNOWN;
    return FATE_REFUSED;
}

bool checker_is_for_room(const struct world *world, Sumac__V1__Reason reason)
{
    return (enum sumac_reason)reason == SUMAC_REASON_PART_TOO_LARGE && world->pool_bytes > 0 &&
           world_has(world, FAULT_STEPS);
}

void checker_pushed(
    struct world *world, struct sim_push *push, const struct session_effect *effect,
    bool session_over)
{
    trace_say(
        world, "%s: push %u is answered %s %s%s%s",
        world->processes[process_of_client(push->session->client)].name, push->number,
        sumac_status_name(effect->error.status), sumac_reason_name(effect->error.reason),
        effect->error.status == SUMAC_OK ? "" : ": ",
        effect->error.status == SUMAC_OK ? "" : effect->error.text);
    if (push->fate != FATE_UNDER_WAY)
        checker_violation(world, "a push is answered twice");
    push->fate = checker_fate(&effect->error);
    push->by_settle = session_over;
    memset(push->data, 0x5a, push->data_bytes); /* lent no longer */
    if (push->fate == FATE_OK && push->defect != DEFECT_NONE)
        checker_violation(world, "a push with a fault is answered OK");
    const bool for_memory = checker_is_for_memory(world, &effect->error);
    made_if(world, MADE_push_no_memory, for_memory);
    if (push->fate == FATE_REFUSED && push->defect == DEFECT_NONE && for_memory)
        push->defect = DEFECT_NO_MEMORY;
    if (push->fate == FATE_REFUSED && push->cancelled &&
        effect->error.reason == SUMAC_REASON_CANCELLED)
        push->defect = DEFECT_CANCELLED;
    made_if(world, MADE_push_cancelled, push->defect == DEFECT_CANCELLED);
    if (push->fate == FATE_REFUSED &&
        checker_is_for_room(world, (Sumac__V1__Reason)effect->error.reason))
        push->defect = DEFECT_NO_MEMORY;
    if (push->fate == FATE_REFUSED && push->defect == DEFECT_NONE &&
        effect->error.reason == SUMAC_REASON_STEP_DIFFERS && checker_may_differ(world, push))
        push->defect = DEFECT_OF_STEP;
    if (push->fate == FATE_REFUSED && push->defect == DEFECT_NONE &&
        effect->error.reason == SUMAC_REASON_STEP_LATE)
        checker_late(world, push);
    if (effect->error.reason == SUMAC_REASON_MEMBER_LOST && !world->loss_fails)
        checker_violation(world, "a step fails for a loss that it is to go on without");
    made_if(world, MADE_step_lost, effect->error.reason == SUMAC_REASON_MEMBER_LOST);
    made_if(world, MADE_step_differs, push->defect == DEFECT_OF_STEP);
    made_if(world, MADE_step_done, push->step != 0 && push->fate == FATE_OK);
    if (push->fate == FATE_REFUSED && push->defect == DEFECT_NONE)
        checker_violation(world, "a push without a fault is refused");
    if (push->fate == FATE_REFUSED && effect->error.reason == SUMAC_REASON_UNSPECIFIED &&
        !for_memory)
        checker_violation(world, "a push is refused without a reason");
    else if (
        push->fate == FATE_REFUSED && push->defect != DEFECT_NONE &&
        !checker_is_for_room(world, (Sumac__V1__Reason)effect->error.reason))
        checker_refused(world, push, &effect->error);
    if (push->fate != FATE_OK)
        return;
    if (effect->version_count != push->piece_count) {
        checker_violation(world, "a push is answered without its versions");
        return;
    }
    memcpy(push->versions, effect->versions, push->piece_count * sizeof push->versions[0]);
    checker_versions_pushed(world, push);
}

bool checker_may_be_void(const struct world *world, const struct sim_push *push)
{
    const bool of_step = push->step != 0 && (world_has(world, FAULT_REFUSE) || world->loss_fails ||
                                             world->quorum != 0);

    if (push->fate ==
        FATE_OK) /* that it is committed its session's end says; a loss fails it yet */
        return push->step != 0 && push->by_settle && !checker_may_take_steps(world);
    return world_was_short(world) || of_step || push->cancelled;
}

/* ---- pulls */

struct sim_pull *checker_pull(struct world *world, struct sim_session *life)
{
    struct checker *checker = world->checker;

    if (checker->pull_count == sizeof checker->pulls / sizeof checker->pulls[0])
        return NULL;
    struct sim_pull *pull = world_take(world, sizeof *pull);
    pull->session = life;
    pull->began_us = world->now_us;
    pull->token = checker->pull_count + 1;
    checker->pulls[checker->pull_count++] = pull;
    for (uint32_t i = 0; i < checker->push_count; i++) {
        const struct sim_push *push = checker->pushes[i];
        if (push->defect != DEFECT_NONE || push->seed)
            continue;
        if (push->fate == FATE_OK && !push->by_settle)
            pull->due |= 1ull << i;
        if (push->session == life && push->fate == FATE_UNDER_WAY)
            pull->mine |= 1ull << i;
    }
    memcpy(pull->seen, checker->seen, sizeof pull->seen);
    memcpy(pull->versions_told, checker->versions_told, sizeof pull->versions_told);
    return pull;
}

struct sim_pull *checker_find_pull(const struct world *world, uint64_t token)
{
    const struct checker *checker = world->checker;

    return token == 0 || token > checker->pull_count ? NULL : checker->pulls[token - 1];
}

static uint64_t with_part_on(const struct world *world, uint64_t pushes, uint32_t ps)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if ((checker->pushes[i]->participants >> ps & 1) == 0 ||
            checker->pushes[i]->defect != DEFECT_NONE ||
            checker_may_be_void(world, checker->pushes[i]))
            pushes &= ~(1ull << i);
    return pushes;
}

static void check_pulled(struct world *world, struct sim_pull *pull, uint32_t ps)
{
    struct checker *checker = world->checker;

    if (checker->state_lost && !checker_of_lost_run(world, pull->session))
        return; /* of another run, on a ps that has lost the state of this one */
    const uint64_t applied = values_examine(world, ps, &pull->snapshots[ps], false);
    checker->seen[ps] |= applied;
    pull->found[ps] = applied;
    checker_versions_pulled(world, pull, ps);
    checker_shown(world, ps, applied);
    if ((with_part_on(world, pull->due, ps) & ~applied) != 0)
        checker_violation(world, "a pull lacks an acknowledged push");
    if (pull->own && (with_part_on(world, pull->mine, ps) & ~applied) != 0)
        checker_violation(world, "a pull lacks one's own push");
    if ((pull->seen[ps] & ~applied) != 0)
        checker_violation(world, "a pull lacks what an earlier one has seen");
    if (pull->clock_awaited > 0)
        checker_lag(world, pull, ps, applied);
}

/* A reader keeps no ps in sight: it waits in vain for one that is gone. */
static bool may_time_out(const struct world *world, const struct sim_pull *pull)
{
    const struct checker *checker = world->checker;
    const bool gone = checker->ps_exited || checker->state_lost || checker->terminated;

    if (!world->clients[pull->session->client]->reader || pull->hurried)
        return pull->hurried;
    return gone || world_was_short(world) ||
           !checker_was_calm(world, pull->session, pull->began_us);
}

void checker_pulled(struct world *world, struct sim_pull *pull, const struct session_effect *effect)
{
    trace_say(
        world, "%s: pull %" PRIu64 " is answered %s %s",
        world->processes[process_of_client(pull->session->client)].name, pull->token,
        sumac_status_name(effect->error.status),
        effect->error.status == SUMAC_OK ? "" : effect->error.text);
    const struct checker *checker = world->checker;
    if (pull->over)
        checker_violation(world, "a pull is answered twice");
    pull->over = true;
    if (effect->error.status == SUMAC_OK && effect->version_count != pull->piece_count) {
        checker_violation(world, "a pull is answered without its versions");
        return;
    }
    if (effect->error.reason == SUMAC_REASON_TIMED_OUT && !may_time_out(world, pull))
        checker_violation(world, "a pull is never answered");
    made_if(world, MADE_pull_timed_out, effect->error.reason == SUMAC_REASON_TIMED_OUT);
    const bool late = pull->at_step != 0 && effect->error.reason == SUMAC_REASON_STEP_OVER;
    made_if(world, MADE_at_step_late, late);
    made_if(world, MADE_at_step_read, pull->at_step != 0 && effect->error.status == SUMAC_OK);
    made_if(world, MADE_pull_cancelled, effect->error.status == SUMAC_CANCELLED);
    const bool for_memory = checker_is_for_memory(world, &effect->error);
    made_if(world, MADE_pull_no_memory, for_memory);
    const bool wanted =
        !for_memory && (!pull->cancelled || effect->error.status != SUMAC_CANCELLED);
    const enum sumac_reason reason = effect->error.reason;
    const bool gone = checker->ps_exited || checker->state_lost || checker->terminated;
    /* a reader may have found a ps anew */
    const bool new_state = (reason == SUMAC_REASON_UNKNOWN_SHARD || pull->at_step != 0) &&
                           checker->state_lost && !pull->session->joined;
    const bool missing = (gone && reason == SUMAC_REASON_PS_MISSING) || new_state ||
                         checker_is_out_of_reach(world, pull->session, &effect->error);
    if (effect->error.status != SUMAC_OK) {
        if (wanted && !late && reason != SUMAC_REASON_TIMED_OUT &&
            reason != SUMAC_REASON_VIEW_ENDED && reason < SUMAC_REASON_SESSION_UNKNOWN && !missing)
            checker_violation(world, "a pull fails");
        return;
    }
    pull->answered = true;
    made_if(world, MADE_reader_pulled, world->clients[pull->session->client]->reader);
    for (uint32_t ps = 0; ps < world->ps_count; ps++) {
        if ((pull->asked >> ps & 1) == 0)
            continue;
        for (enum sim_row row = 0; row < ROWS; row++)
            if ((pull->snapshots[ps].has_version >> row & 1) != 0)
                pull->snapshots[ps].versions[row] = effect->versions[pull->versions_at[ps][row]];
        check_pulled(world, pull, ps);
    }
}
