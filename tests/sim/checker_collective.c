/* SPDX-License-Identifier: Apache-2.0 */
/* checker_collective.c -- rounds of collectives: each that passes has the very bits of what its
 * members contributed, once each and in their order; each ends for all alike; and none is waited
 * for that need not be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "lane_check.h"
#include "collectives.h"
#include "process_client.h"

struct sim_collective *checker_collective(struct world *world, struct sim_session *life)
{
    struct checker *checker = world->checker;

    if (checker->collective_count == SIM_COLLECTIVES_MAX)
        return NULL;
    struct sim_collective *collective = world_take(world, sizeof *collective);
    collective->number = checker->collective_count;
    collective->session = life;
    collective->token = SIM_COLLECTIVE_TOKENS + collective->number;
    checker->collectives[checker->collective_count++] = collective;
    return collective;
}

struct sim_collective *checker_find_collective(const struct world *world, uint64_t token)
{
    const struct checker *checker = world->checker;

    return token < SIM_COLLECTIVE_TOKENS ||
                   token >= SIM_COLLECTIVE_TOKENS + checker->collective_count
               ? NULL
               : checker->collectives[token - SIM_COLLECTIVE_TOKENS];
}

static bool is_of(const struct sim_collective *collective, const struct sim_collective *other)
{
    return collective->name == other->name && collective->round == other->round;
}

/* Before its session was there, somebody had come to that round: it may be over, and all have heard
 * of it. */
bool checker_collectives_again(const struct world *world, const struct sim_collective *collective)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->collective_count; i++) {
        const struct sim_collective *other = checker->collectives[i];
        if (is_of(collective, other) && other->made_us != 0 &&
            other->made_us <= collective->session->joined_us)
            return true;
    }
    return false;
}

/* ---- contributions */

static enum sumac_reason reason_of(const struct sim_collective *collective)
{
    if (collective->defect == DEFECT_NON_FINITE)
        return SUMAC_REASON_NON_FINITE;
    return collective->defect == DEFECT_ELSEWHERE ? SUMAC_REASON_MALFORMED
                                                  : SUMAC_REASON_UNSPECIFIED;
}

static void check_refused(
    struct world *world, const struct sim_collective *collective, const struct sumac_error *error)
{
    const bool room =
        world->collective_bytes_max != 0 && strstr(error->text, "--collectives-max") != NULL;

    made_if(world, MADE_collective_no_room, room);
    made_if(world, MADE_collective_refused, collective->defect != DEFECT_NONE);
    if (room || checker_is_for_memory(world, error))
        return;
    if (collective->defect == DEFECT_NONE)
        checker_violation(world, "a contribution without a fault is refused");
    else if (error->reason != reason_of(collective) && !world_was_short(world))
        checker_violation(world, "a contribution is refused for another reason than it has given");
}

void checker_contributed(
    struct world *world, struct sim_collective *collective, const struct session_effect *effect,
    bool session_over)
{
    const struct sumac_error *error = &effect->error;

    trace_say(
        world, "%s: its contribution to round %u of %s is answered %s %s",
        world->processes[process_of_client(collective->session->client)].name,
        (unsigned)collective->round, collective_name(collective->name),
        sumac_status_name(error->status), error->status == SUMAC_OK ? "" : error->text);
    if (collective->fate != FATE_UNDER_WAY)
        checker_violation(world, "a contribution is answered twice");
    collective->fate = checker_fate(error);
    collective->by_settle = session_over;
    memset(collective->data, 0x5a, collective->bytes); /* lent no longer */
    if (collective->fate == FATE_OK && collective->defect != DEFECT_NONE)
        checker_violation(world, "a contribution with a fault is answered OK");
    if (collective->fate == FATE_REFUSED)
        check_refused(world, collective, error);
}

/* That a contribution was made is a record. */
void checker_kept_contribution(
    struct world *world, uint32_t ps, uint64_t sequence, const uint8_t *id, uint64_t record)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->collective_count; i++) {
        struct sim_collective *collective = checker->collectives[i];
        if (collective->sequence == sequence && memcmp(collective->session->id, id, 16) == 0)
            collective->applied_record[ps] = record;
    }
}

/* ---- who may have been counted */

/* An attempt's that is later than one whose contribution is there was passed over. */
static bool
may_count(const struct world *world, const struct sim_collective *collective, bool again)
{
    const struct checker *checker = world->checker;
    const bool is_void = collective->fate == FATE_REFUSED ||
                         (collective->fate == FATE_CLOSED && !checker->state_lost);

    if (collective->made_us == 0 || collective->differs || collective->defect != DEFECT_NONE ||
        is_void)
        return false;
    for (uint32_t i = 0; !again && i < checker->collective_count; i++) {
        const struct sim_collective *other = checker->collectives[i];
        if (is_of(collective, other) && other->task == collective->task && other->fate == FATE_OK &&
            other->session->attempt < collective->session->attempt)
            return false;
    }
    return true;
}

struct candidates {
    const struct sim_collective *of[SIM_CLIENTS_MAX][LIVES_MAX];
    uint32_t count[SIM_CLIENTS_MAX];
};

static void find_candidates(
    const struct world *world, const struct sim_collective *collective, struct candidates *found)
{
    const struct checker *checker = world->checker;
    const bool again = checker_collectives_again(world, collective);

    *found = (struct candidates){.count = {0}};
    for (uint32_t i = 0; i < checker->collective_count; i++) {
        const struct sim_collective *other = checker->collectives[i];
        if (is_of(collective, other) && may_count(world, other, again))
            found->of[other->task][found->count[other->task]++] = other;
    }
}

/* ---- what it came to */

static bool is_result(
    const struct sim_collective *collective, const struct session_effect *effect,
    const struct collective_result *result)
{
    const wire_collective_result *given = effect->result;
    const bool joins = collective_joins(&collective->form);
    const uint8_t *const data = joins ? effect->joined.data : collective->into;

    if (given == NULL || given->n_shape != result->shape.rank ||
        (enum sumac_dtype)given->data_type != collective->form.dtype ||
        (joins && effect->joined.bytes != result->bytes))
        return false;
    for (uint32_t axis = 0; axis < result->shape.rank; axis++)
        if (given->shape[axis] != result->shape.extent[axis])
            return false;
    return result->bytes == 0 || memcmp(data, result->data, result->bytes) == 0;
}

/* What it shows has been on disk since it went out. */
static void check_records(struct world *world, const struct sim_collective *const *from)
{
    for (uint32_t task = 0; world->records && task < world->member_count; task++)
        for (uint32_t ps = 0; ps < world->ps_count; ps++)
            if (!world->ps[ps]->crashed &&
                world->ps[ps]->journals[LANE_JOURNAL_OWN].done < from[task]->applied_record[ps])
                checker_violation(world, "a result shows what is not on disk");
}

/* Is it what some choice of one contribution of each member comes to? */
static bool is_combined(
    struct world *world, const struct sim_collective *collective,
    const struct session_effect *effect)
{
    struct candidates candidates;
    struct collective_result *result = arena_take_zeroed(&world->scratch, sizeof *result);
    const struct sim_collective *from[SIM_CLIENTS_MAX];
    uint32_t choices = 1;

    find_candidates(world, collective, &candidates);
    for (uint32_t task = 0; task < world->member_count; task++)
        choices *= candidates.count[task];
    for (uint32_t choice = 0; choice < choices; choice++) {
        uint32_t left = choice;
        for (uint32_t task = 0; task < world->member_count; task++) {
            from[task] = candidates.of[task][left % candidates.count[task]];
            left /= candidates.count[task];
        }
        combine_round(world, from, result);
        if (!is_result(collective, effect, result))
            continue;
        check_records(world, from);
        return true;
    }
    return false;
}

static void note_passed(struct world *world, const struct sim_collective *collective)
{
    static const enum made operations[] = {
        [COLLECTIVE_SUM] = MADE_collective_sum,
        [COLLECTIVE_MEAN] = MADE_collective_mean,
        [COLLECTIVE_MIN] = MADE_collective_min,
        [COLLECTIVE_MAX] = MADE_collective_max,
        [COLLECTIVE_GATHER] = MADE_collective_gather,
        [COLLECTIVE_BROADCAST] = MADE_collective_broadcast,
        [COLLECTIVE_CONCATENATE] = MADE_collective_concatenate};

    made(world, operations[collective->form.operation]);
    made_if(world, MADE_collective_split, collective->form.split && world->ps_count > 1);
    made_if(world, MADE_collective_again, checker_collectives_again(world, collective));
}

/* ---- how it ended */

static const struct sim_collective *
next_of(const struct world *world, const struct sim_collective *collective, uint32_t *at)
{
    const struct checker *checker = world->checker;

    while (*at < checker->collective_count) {
        const struct sim_collective *other = checker->collectives[(*at)++];
        if (is_of(collective, other) && other->made_us != 0)
            return other;
    }
    return NULL;
}

/* When the first who came may say that the round has waited long enough. */
static uint64_t first_until_us(const struct world *world, const struct sim_collective *collective)
{
    uint64_t until_us = UINT64_MAX;
    uint32_t at = 0;

    for (const struct sim_collective *other; (other = next_of(world, collective, &at)) != NULL;)
        if (other->made_us + other->timeout_ms * 1000ull < until_us)
            until_us = other->made_us + other->timeout_ms * 1000ull;
    return until_us;
}

/* Have all come long before, and has nothing befallen anybody since? */
static bool should_have_passed(const struct world *world, const struct sim_collective *collective)
{
    const uint64_t until_us = first_until_us(world, collective);
    uint32_t came = 0, at = 0;

    for (const struct sim_collective *other; (other = next_of(world, collective, &at)) != NULL;) {
        if (other->differs || other->defect != DEFECT_NONE || other->fate == FATE_REFUSED ||
            other->session->dead || other->session->ended ||
            other->made_us + CHECKER_IN_TIME_US > until_us ||
            !checker_was_calm(world, other->session, other->made_us - CHECKER_IN_TIME_US))
            return false;
        came |= 1u << other->task;
    }
    return came == (1u << world->member_count) - 1 && !world_was_short(world);
}

static void check_late(
    struct world *world, const struct sim_collective *collective, const struct sumac_error *error)
{
    char name[32];

    made(world, MADE_collective_late);
    if (world->now_us < first_until_us(world, collective))
        checker_violation(world, "a round is late before its time");
    /* Where there is room for one part, two rounds may wait for each other until their time. */
    if (world->parts_max == 0 && should_have_passed(world, collective))
        checker_violation(world, "a round is late to which all had come in time");
    for (uint32_t task = 0; task < world->member_count && world->closed_max == 0; task++) {
        snprintf(name, sizeof name, "worker %u (", task);
        if (strstr(error->text, name) != NULL &&
            checker_had_left(world, task, first_until_us(world, collective)))
            checker_violation(world, "a round waits for a member that has left");
    }
}

/* The session of an unanswered join may end before its client knows the session. */
static bool is_over(const struct world *world, const struct sim_session *life)
{
    return checker_may_be_closed(world, life) || life->left || life->leave_heard || life->dead ||
           life->ended || life->told_closed || life->excused || life->rivalled || life->decided ||
           life->closing != 0 || (!life->joined && life->calls[LANE_CALL_JOIN].count > 0);
}

/* Was there one of that task, and is one over? */
static bool one_is_over(const struct world *world, uint32_t task)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct client *client = world->clients[checker->lives[i]->client];
        if (client->member && client->task == task && is_over(world, checker->lives[i]))
            return true;
    }
    return false;
}

/* It is one whose session is over; or all are who have contributed, and the last one is named. */
static void check_gone(struct world *world, const struct sumac_error *error)
{
    const char *const text = strstr(error->text, " worker ");
    const uint32_t task = text == NULL ? UINT32_MAX : (uint32_t)atoi(text + 8);

    made(world, MADE_collective_gone);
    made_if(world, MADE_collective_deserted, strstr(error->text, "that contributed to it") != NULL);
    if (!one_is_over(world, task))
        checker_violation(world, "a round goes on without a member whose session is open");
}

static void check_differs(struct world *world, const struct sim_collective *collective)
{
    uint32_t at = 0;
    bool differs = false;

    made(world, MADE_collective_differs);
    for (const struct sim_collective *other; (other = next_of(world, collective, &at)) != NULL;)
        differs = differs || other->differs;
    if (!differs)
        checker_violation(world, "a round ends for a difference that there is not");
}

static void check_zero_weight(struct world *world, const struct sim_collective *collective)
{
    uint32_t at = 0;
    double weight = 0;

    made(world, MADE_collective_zero_weight);
    for (const struct sim_collective *other; (other = next_of(world, collective, &at)) != NULL;)
        weight += other->weight;
    if (collective->form.operation != COLLECTIVE_MEAN || weight > 0)
        checker_violation(world, "a round is taken for a mean of nothing");
}

static void first_heard(
    struct world *world, const struct sim_collective *collective, const struct sumac_error *end)
{
    if (end->status == SUMAC_OK)
        made(world, MADE_collective_passed);
    else if (end->reason == SUMAC_REASON_ROUND_TIMED_OUT)
        check_late(world, collective, end);
    else if (end->reason == SUMAC_REASON_MEMBER_GONE)
        check_gone(world, end);
    else if (end->reason == SUMAC_REASON_STEP_DIFFERS)
        check_differs(world, collective);
    else
        check_zero_weight(world, collective);
}

/* Without the name of the ps that has said so. */
static const char *text_of(const struct sumac_error *error)
{
    const char *const text = strstr(error->text, ": ");

    return strncmp(error->text, "ps ", 3) == 0 && text != NULL ? text + 2 : error->text;
}

/* What is said of the round, and not of the pull alone. */
static bool is_verdict(const struct sumac_error *error)
{
    return error->status == SUMAC_OK || error->reason == SUMAC_REASON_STEP_DIFFERS ||
           error->reason == SUMAC_REASON_MEMBER_GONE || error->reason == SUMAC_REASON_ZERO_WEIGHT ||
           error->reason == SUMAC_REASON_ROUND_TIMED_OUT ||
           error->reason == SUMAC_REASON_ROUND_OVER;
}

/* On its home a round that some split and some do not is one; on the other ps it is another. */
static bool some_split(const struct world *world, const struct sim_collective *collective)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->collective_count; i++)
        if (is_of(collective, checker->collectives[i]) &&
            checker->collectives[i]->form.split != collective->form.split)
            return true;
    return false;
}

/* A round that failed is known for as long as one who was told has an open session. */
static bool
one_who_was_told_is_here(const struct world *world, const struct sim_collective *collective)
{
    uint32_t at = 0;

    for (const struct sim_collective *other; (other = next_of(world, collective, &at)) != NULL;)
        if (other->heard && !checker_collectives_again(world, other) &&
            other->session != collective->session && other->session->joined &&
            !is_over(world, other->session))
            return true;
    return false;
}

/* Where there is no room for more, an end is forgotten before those who come late hear of it. */
static void check_verdict(
    struct world *world, const struct sim_collective *collective, const struct sumac_error *end)
{
    struct collective_seen *seen =
        &world->checker->collectives_seen[collective->name][collective->round];
    const bool again = checker_collectives_again(world, collective);
    const bool kept = !again || (seen->heard && seen->end.status != SUMAC_OK &&
                                 one_who_was_told_is_here(world, collective));
    const bool alike = kept && !some_split(world, collective) && world->collective_bytes_max == 0;

    if (world->checker->state_lost)
        return;
    made_if(world, MADE_collective_told_again, again && alike);
    if (!seen->heard && alike) {
        *seen = (struct collective_seen){.heard = true, .end = *end};
        first_heard(world, collective, end);
    } else if (
        alike && (seen->end.status != end->status || seen->end.reason != end->reason ||
                  strcmp(text_of(&seen->end), text_of(end)) != 0)) {
        checker_violation(world, "a round of a collective ends for one otherwise than for another");
    }
}

static void check_failed(
    struct world *world, const struct sim_collective *collective, const struct sumac_error *error)
{
    const struct checker *checker = world->checker;
    const bool gone = checker->ps_exited || checker->state_lost || checker->terminated;

    if (error->reason >= SUMAC_REASON_SESSION_UNKNOWN || collective->cancelled ||
        checker_is_for_memory(world, error) || (gone && error->reason == SUMAC_REASON_PS_MISSING) ||
        checker_is_out_of_reach(world, collective->session, error))
        return;
    /* the attempt before it has its place there, and the result is of what that said */
    if (collective->differs && error->reason == SUMAC_REASON_MALFORMED &&
        checker_collectives_again(world, collective))
        return;
    if (error->reason != SUMAC_REASON_TIMED_OUT)
        checker_violation(world, "a pull of a round fails");
    else if (!checker_collectives_again(world, collective))
        checker_violation(world, "a round is never over for one who waits for it");
}

/* Has a later attempt of its task come to the round? Then what it said does not count any more. */
static bool is_replaced(const struct checker *checker, uint32_t index)
{
    const struct sim_collective *collective = checker->collectives[index];

    for (uint32_t i = index + 1; i < checker->collective_count; i++)
        if (is_of(collective, checker->collectives[i]) &&
            checker->collectives[i]->task == collective->task &&
            checker->collectives[i]->session != collective->session)
            return true;
    return false;
}

/* Has another member said something else? They may be unlike others in the same way. */
static bool some_differ_from_it(const struct world *world, const struct sim_collective *collective)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->collective_count; i++) {
        const struct sim_collective *other = checker->collectives[i];
        if (is_of(collective, other) && other->task != collective->task && !other->differs &&
            !checker_collectives_again(world, other) && !is_replaced(checker, i))
            return true;
    }
    return false;
}

/* Has an attempt before it said of that round what others do not? Its place is what it said. */
static bool differed_before(const struct world *world, const struct sim_collective *collective)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->collective_count; i++)
        if (is_of(collective, checker->collectives[i]) &&
            checker->collectives[i]->task == collective->task && checker->collectives[i]->differs)
            return checker_collectives_again(world, collective);
    return false;
}

void checker_result(
    struct world *world, struct sim_collective *collective, const struct session_effect *effect)
{
    const struct sumac_error *error = &effect->error;

    trace_say(
        world, "%s: what round %u of %s came to is answered %s %s",
        world->processes[process_of_client(collective->session->client)].name,
        (unsigned)collective->round, collective_name(collective->name),
        sumac_status_name(error->status), error->status == SUMAC_OK ? "" : error->text);
    if (collective->heard)
        checker_violation(world, "what a round came to is told twice");
    collective->heard = true;
    if (!is_verdict(error)) {
        check_failed(world, collective, error);
        return;
    }
    check_verdict(world, collective, error);
    if (error->status != SUMAC_OK)
        return;
    if (differed_before(world, collective))
        return;
    if (collective->differs && some_differ_from_it(world, collective))
        checker_violation(world, "a round passes for one who said of it what others did not");
    if (collective->differs)
        return;
    if (is_combined(world, collective, effect))
        note_passed(world, collective);
    else
        checker_violation(
            world, "a round is not made of each member's contribution, once and in their order");
}

/* ---- at rest */

static bool all_joined(const struct world *world)
{
    const struct checker *checker = world->checker;
    uint32_t joined = 0;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct client *client = world->clients[checker->lives[i]->client];
        if (client->member && checker->lives[i]->joined)
            joined |= 1u << client->task;
    }
    return joined == (1u << world->member_count) - 1;
}

/* All members have been there and are settled: nobody may ask for any round any more. Of one whose
 * session a ps has forgotten it does not know that it is. */
void checker_collectives_rest(struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < world->ps_count; i++) {
        const struct ps *ps = world->ps[i];
        if (!world_has(world, FAULT_COLLECTIVES) || checker->terminated || ps->crashed ||
            !ps->exited || ps->exit_code != 0 || world_was_short(world) || world->closed_max != 0 ||
            !all_joined(world))
            continue;
        if (lane_rounds(ps_core_lane(ps->core)) != 0)
            checker_violation(world, "a round is kept that nobody can ask for");
    }
}
