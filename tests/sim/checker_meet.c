/* SPDX-License-Identifier: Apache-2.0 */
/* checker_meet.c -- rounds of rendezvous: each that passes has the very bits of what its members
 * contributed, once each and in their order; each ends for all alike; and none is waited for that
 * need not be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "lane_check.h"
#include "meets.h"
#include "process_client.h"

/* What befalls a round so long before the first of its times is over ends it before that. */
#define IN_TIME_US 20000000u

struct sim_meet *checker_meet(struct world *world, struct sim_session *life)
{
    struct checker *checker = world->checker;

    if (checker->meet_count == SIM_MEETS_MAX)
        return NULL;
    struct sim_meet *meet = world_take(world, sizeof *meet);
    meet->number = checker->meet_count;
    meet->session = life;
    meet->token = SIM_MEET_TOKENS + meet->number;
    checker->meets[checker->meet_count++] = meet;
    return meet;
}

struct sim_meet *checker_find_meet(const struct world *world, uint64_t token)
{
    const struct checker *checker = world->checker;

    return token < SIM_MEET_TOKENS || token >= SIM_MEET_TOKENS + checker->meet_count
               ? NULL
               : checker->meets[token - SIM_MEET_TOKENS];
}

static bool is_of(const struct sim_meet *meet, const struct sim_meet *other)
{
    return meet->name == other->name && meet->round == other->round;
}

/* Before its session was there, somebody had come to that round: it may be over, and all have heard
 * of it. */
bool checker_meets_again(const struct world *world, const struct sim_meet *meet)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->meet_count; i++) {
        const struct sim_meet *other = checker->meets[i];
        if (is_of(meet, other) && other->made_us != 0 && other->made_us <= meet->session->joined_us)
            return true;
    }
    return false;
}

/* ---- contributions */

static enum sumac_reason reason_of(const struct sim_meet *meet)
{
    if (meet->defect == DEFECT_NON_FINITE)
        return SUMAC_REASON_NON_FINITE;
    return meet->defect == DEFECT_ELSEWHERE ? SUMAC_REASON_MALFORMED : SUMAC_REASON_UNSPECIFIED;
}

static void
check_refused(struct world *world, const struct sim_meet *meet, const struct sumac_error *error)
{
    const bool room = world->meet_bytes_max != 0 && strstr(error->text, "--meet-max") != NULL;

    made_if(world, MADE_meet_no_room, room);
    made_if(world, MADE_meet_refused, meet->defect != DEFECT_NONE);
    if (room || checker_is_for_memory(world, error))
        return;
    if (meet->defect == DEFECT_NONE)
        checker_violation(world, "a contribution without a fault is refused");
    else if (error->reason != reason_of(meet) && !world_was_short(world))
        checker_violation(world, "a contribution is refused for another reason than it has given");
}

void checker_contributed(
    struct world *world, struct sim_meet *meet, const struct session_effect *effect,
    bool session_over)
{
    const struct sumac_error *error = &effect->error;

    trace_say(
        world, "%s: its contribution to round %u of %s is answered %s %s",
        world->processes[process_of_client(meet->session->client)].name, (unsigned)meet->round,
        meet_name(meet->name), sumac_status_name(error->status),
        error->status == SUMAC_OK ? "" : error->text);
    if (meet->fate != FATE_UNDER_WAY)
        checker_violation(world, "a contribution is answered twice");
    meet->fate = checker_fate(error);
    meet->by_settle = session_over;
    memset(meet->data, 0x5a, meet->bytes); /* lent no longer */
    if (meet->fate == FATE_OK && meet->defect != DEFECT_NONE)
        checker_violation(world, "a contribution with a fault is answered OK");
    if (meet->fate == FATE_REFUSED)
        check_refused(world, meet, error);
}

/* That a deposit was made is a record. */
void checker_deposited(
    struct world *world, uint32_t ps, uint64_t sequence, const uint8_t *id, uint64_t record)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->meet_count; i++) {
        struct sim_meet *meet = checker->meets[i];
        if (meet->sequence == sequence && memcmp(meet->session->id, id, 16) == 0)
            meet->applied_record[ps] = record;
    }
}

/* ---- who may have been counted */

/* An attempt's that is later than one whose contribution is there was passed over. */
static bool may_count(const struct world *world, const struct sim_meet *meet, bool again)
{
    const struct checker *checker = world->checker;
    const bool is_void =
        meet->fate == FATE_REFUSED || (meet->fate == FATE_CLOSED && !checker->state_lost);

    if (meet->made_us == 0 || meet->differs || meet->defect != DEFECT_NONE || is_void)
        return false;
    for (uint32_t i = 0; !again && i < checker->meet_count; i++) {
        const struct sim_meet *other = checker->meets[i];
        if (is_of(meet, other) && other->task == meet->task && other->fate == FATE_OK &&
            other->session->attempt < meet->session->attempt)
            return false;
    }
    return true;
}

struct candidates {
    const struct sim_meet *of[SIM_CLIENTS_MAX][LIVES_MAX];
    uint32_t count[SIM_CLIENTS_MAX];
};

static void
find_candidates(const struct world *world, const struct sim_meet *meet, struct candidates *found)
{
    const struct checker *checker = world->checker;
    const bool again = checker_meets_again(world, meet);

    *found = (struct candidates){.count = {0}};
    for (uint32_t i = 0; i < checker->meet_count; i++) {
        const struct sim_meet *other = checker->meets[i];
        if (is_of(meet, other) && may_count(world, other, again))
            found->of[other->task][found->count[other->task]++] = other;
    }
}

/* ---- what it came to */

static bool is_result(
    const struct sim_meet *meet, const struct session_effect *effect,
    const struct meet_result *result)
{
    const wire_met *met = effect->met;
    const bool joins = meet_joins(&meet->form);
    const uint8_t *const data = joins ? effect->joined.data : meet->into;

    if (met == NULL || met->n_shape != result->shape.rank ||
        (enum sumac_dtype)met->data_type != meet->form.dtype ||
        (joins && effect->joined.bytes != result->bytes))
        return false;
    for (uint32_t axis = 0; axis < result->shape.rank; axis++)
        if (met->shape[axis] != result->shape.extent[axis])
            return false;
    return result->bytes == 0 || memcmp(data, result->data, result->bytes) == 0;
}

/* What it shows has been on disk since it went out. */
static void check_records(struct world *world, const struct sim_meet *const *from)
{
    for (uint32_t task = 0; world->records && task < world->member_count; task++)
        for (uint32_t ps = 0; ps < world->ps_count; ps++)
            if (!world->ps[ps]->crashed &&
                world->ps[ps]->journals[LANE_JOURNAL_OWN].done < from[task]->applied_record[ps])
                checker_violation(world, "a result shows what is not on disk");
}

/* Is it what some choice of one contribution of each member comes to? */
static bool
is_combined(struct world *world, const struct sim_meet *meet, const struct session_effect *effect)
{
    struct candidates candidates;
    struct meet_result *result = arena_take_zeroed(&world->scratch, sizeof *result);
    const struct sim_meet *from[SIM_CLIENTS_MAX];
    uint32_t choices = 1;

    find_candidates(world, meet, &candidates);
    for (uint32_t task = 0; task < world->member_count; task++)
        choices *= candidates.count[task];
    for (uint32_t choice = 0; choice < choices; choice++) {
        uint32_t left = choice;
        for (uint32_t task = 0; task < world->member_count; task++) {
            from[task] = candidates.of[task][left % candidates.count[task]];
            left /= candidates.count[task];
        }
        meet_combine(world, from, result);
        if (!is_result(meet, effect, result))
            continue;
        check_records(world, from);
        return true;
    }
    return false;
}

static void note_passed(struct world *world, const struct sim_meet *meet)
{
    static const enum made operations[] = {
        [MEETING_SUM] = MADE_meet_sum,
        [MEETING_MEAN] = MADE_meet_mean,
        [MEETING_MIN] = MADE_meet_min,
        [MEETING_MAX] = MADE_meet_max,
        [MEETING_GATHER] = MADE_meet_gather,
        [MEETING_BROADCAST] = MADE_meet_broadcast,
        [MEETING_CONCATENATE] = MADE_meet_concatenate};

    made(world, operations[meet->form.operation]);
    made_if(world, MADE_meet_split, meet->form.split && world->ps_count > 1);
    made_if(world, MADE_meet_again, checker_meets_again(world, meet));
}

/* ---- how it ended */

static const struct sim_meet *
next_of(const struct world *world, const struct sim_meet *meet, uint32_t *at)
{
    const struct checker *checker = world->checker;

    while (*at < checker->meet_count) {
        const struct sim_meet *other = checker->meets[(*at)++];
        if (is_of(meet, other) && other->made_us != 0)
            return other;
    }
    return NULL;
}

/* When the first who came may say that the round has waited long enough. */
static uint64_t first_until_us(const struct world *world, const struct sim_meet *meet)
{
    uint64_t until_us = UINT64_MAX;
    uint32_t at = 0;

    for (const struct sim_meet *other; (other = next_of(world, meet, &at)) != NULL;)
        if (other->made_us + other->timeout_ms * 1000ull < until_us)
            until_us = other->made_us + other->timeout_ms * 1000ull;
    return until_us;
}

/* Have all come long before, and has nothing befallen anybody since? */
static bool should_have_passed(const struct world *world, const struct sim_meet *meet)
{
    const uint64_t until_us = first_until_us(world, meet);
    uint32_t came = 0, at = 0;

    for (const struct sim_meet *other; (other = next_of(world, meet, &at)) != NULL;) {
        if (other->differs || other->defect != DEFECT_NONE || other->fate == FATE_REFUSED ||
            other->session->dead || other->session->ended ||
            other->made_us + IN_TIME_US > until_us ||
            !checker_was_calm(world, other->session, other->made_us - IN_TIME_US))
            return false;
        came |= 1u << other->task;
    }
    return came == (1u << world->member_count) - 1 && !world_was_short(world);
}

/* All that were ever of this task have left, and heard so long before its time was over. */
static bool had_left(const struct world *world, const struct sim_meet *meet, uint32_t task)
{
    const struct checker *checker = world->checker;
    const uint64_t until_us = first_until_us(world, meet);
    bool left = false;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *life = checker->lives[i];
        const struct client *client = world->clients[life->client];
        if (!client->member || client->task != task)
            continue;
        if (!life->left || life->left_us + IN_TIME_US > until_us)
            return false;
        left = true;
    }
    return left;
}

static void
check_late(struct world *world, const struct sim_meet *meet, const struct sumac_error *error)
{
    char name[32];

    made(world, MADE_meet_late);
    if (world->now_us < first_until_us(world, meet))
        checker_violation(world, "a round is late before its time");
    /* Where there is room for one part, two rounds may wait for each other until their time. */
    if (world->parts_max == 0 && should_have_passed(world, meet))
        checker_violation(world, "a round is late to which all had come in time");
    for (uint32_t task = 0; task < world->member_count && world->closed_max == 0; task++) {
        snprintf(name, sizeof name, "worker %u (", task);
        if (strstr(error->text, name) != NULL && had_left(world, meet, task))
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

    made(world, MADE_meet_gone);
    made_if(world, MADE_meet_deserted, strstr(error->text, "that contributed to it") != NULL);
    if (!one_is_over(world, task))
        checker_violation(world, "a round goes on without a member whose session is open");
}

static void check_differs(struct world *world, const struct sim_meet *meet)
{
    uint32_t at = 0;
    bool differs = false;

    made(world, MADE_meet_differs);
    for (const struct sim_meet *other; (other = next_of(world, meet, &at)) != NULL;)
        differs = differs || other->differs;
    if (!differs)
        checker_violation(world, "a round ends for a difference that there is not");
}

static void check_weightless(struct world *world, const struct sim_meet *meet)
{
    uint32_t at = 0;
    double weight = 0;

    made(world, MADE_meet_weightless);
    for (const struct sim_meet *other; (other = next_of(world, meet, &at)) != NULL;)
        weight += other->weight;
    if (meet->form.operation != MEETING_MEAN || weight > 0)
        checker_violation(world, "a round is taken for a mean of nothing");
}

static void
first_heard(struct world *world, const struct sim_meet *meet, const struct sumac_error *end)
{
    if (end->status == SUMAC_OK)
        made(world, MADE_meet_passed);
    else if (end->reason == SUMAC_REASON_ROUND_TIMED_OUT)
        check_late(world, meet, end);
    else if (end->reason == SUMAC_REASON_MEMBER_GONE)
        check_gone(world, end);
    else if (end->reason == SUMAC_REASON_STEP_DIFFERS)
        check_differs(world, meet);
    else
        check_weightless(world, meet);
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
static bool some_split(const struct world *world, const struct sim_meet *meet)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->meet_count; i++)
        if (is_of(meet, checker->meets[i]) && checker->meets[i]->form.split != meet->form.split)
            return true;
    return false;
}

/* A round that failed is known for as long as one who was told has an open session. */
static bool one_who_was_told_is_here(const struct world *world, const struct sim_meet *meet)
{
    uint32_t at = 0;

    for (const struct sim_meet *other; (other = next_of(world, meet, &at)) != NULL;)
        if (other->heard && !checker_meets_again(world, other) && other->session != meet->session &&
            other->session->joined && !is_over(world, other->session))
            return true;
    return false;
}

/* Where there is no room for more, an end is forgotten before those who come late hear of it. */
static void
check_verdict(struct world *world, const struct sim_meet *meet, const struct sumac_error *end)
{
    struct meet_seen *seen = &world->checker->meets_seen[meet->name][meet->round];
    const bool again = checker_meets_again(world, meet);
    const bool kept = !again || (seen->heard && seen->end.status != SUMAC_OK &&
                                 one_who_was_told_is_here(world, meet));
    const bool alike = kept && !some_split(world, meet) && world->meet_bytes_max == 0;

    if (world->checker->state_lost)
        return;
    made_if(world, MADE_meet_told_again, again && alike);
    if (!seen->heard && alike) {
        *seen = (struct meet_seen){.heard = true, .end = *end};
        first_heard(world, meet, end);
    } else if (
        alike && (seen->end.status != end->status || seen->end.reason != end->reason ||
                  strcmp(text_of(&seen->end), text_of(end)) != 0)) {
        checker_violation(world, "a round of a rendezvous ends for one otherwise than for another");
    }
}

static void
check_failed(struct world *world, const struct sim_meet *meet, const struct sumac_error *error)
{
    const struct checker *checker = world->checker;
    const bool gone = checker->ps_exited || checker->state_lost || checker->terminated;

    if (error->reason >= SUMAC_REASON_SESSION_UNKNOWN || meet->cancelled ||
        checker_is_for_memory(world, error) || (gone && error->reason == SUMAC_REASON_PS_MISSING) ||
        checker_is_out_of_reach(world, meet->session, error))
        return;
    /* the attempt before it has its place there, and the result is of what that said */
    if (meet->differs && error->reason == SUMAC_REASON_MALFORMED &&
        checker_meets_again(world, meet))
        return;
    if (error->reason != SUMAC_REASON_TIMED_OUT)
        checker_violation(world, "a pull of a round fails");
    else if (!checker_meets_again(world, meet))
        checker_violation(world, "a round is never over for one who waits for it");
}

/* Has another member said something else? They may be unlike others in the same way. */
static bool some_differ_from_it(const struct world *world, const struct sim_meet *meet)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->meet_count; i++) {
        const struct sim_meet *other = checker->meets[i];
        if (is_of(meet, other) && other->task != meet->task && !other->differs &&
            !checker_meets_again(world, other))
            return true;
    }
    return false;
}

/* Has an attempt before it said of that round what others do not? Its place is what it said. */
static bool differed_before(const struct world *world, const struct sim_meet *meet)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->meet_count; i++)
        if (is_of(meet, checker->meets[i]) && checker->meets[i]->task == meet->task &&
            checker->meets[i]->differs)
            return checker_meets_again(world, meet);
    return false;
}

void checker_met(struct world *world, struct sim_meet *meet, const struct session_effect *effect)
{
    const struct sumac_error *error = &effect->error;

    trace_say(
        world, "%s: what round %u of %s came to is answered %s %s",
        world->processes[process_of_client(meet->session->client)].name, (unsigned)meet->round,
        meet_name(meet->name), sumac_status_name(error->status),
        error->status == SUMAC_OK ? "" : error->text);
    if (meet->heard)
        checker_violation(world, "what a round came to is told twice");
    meet->heard = true;
    if (!is_verdict(error)) {
        check_failed(world, meet, error);
        return;
    }
    check_verdict(world, meet, error);
    if (error->status != SUMAC_OK)
        return;
    if (differed_before(world, meet))
        return;
    if (meet->differs && some_differ_from_it(world, meet))
        checker_violation(world, "a round passes for one who said of it what others did not");
    if (meet->differs)
        return;
    if (is_combined(world, meet, effect))
        note_passed(world, meet);
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
void checker_meets_rest(struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < world->ps_count; i++) {
        const struct ps *ps = world->ps[i];
        if (!world_has(world, FAULT_MEETS) || checker->terminated || ps->crashed || !ps->exited ||
            ps->exit_code != 0 || world_was_short(world) || world->closed_max != 0 ||
            !all_joined(world))
            continue;
        if (lane_rounds(ps_core_lane(ps->core)) != 0)
            checker_violation(world, "a round is kept that nobody can ask for");
    }
}
