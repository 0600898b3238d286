/* SPDX-License-Identifier: Apache-2.0 */
/* quorum.c -- synchronous steps of K of N members: which contributions each is made of.
 *
 *   report of a ps ─► who has come to which step ─► all, or K and the deadline is over ─► take
 *
 * Every ps says whose contribution has its turn there; who has come has come on all. The step is
 * taken once, with all that have come by then, and every ps is told the same; what comes later is
 * late, and counts nowhere. The next one is taken when this one is over on every ps, so no ps has
 * more than one to remember. docs/protocol/PROTOCOL.md, "Synchronous steps", rule 7.
 */
#include "quorum.h"

#include <assert.h>
#include <inttypes.h>

#define AUTO_MULTIPLE 2u

/* ---- who has come ---- */

/* The last step that it has come to on every ps: one that lacks it would wait for it, whatever the
 * others do. Of one that is settled it is decided: what has come somewhere it has made. */
static uint64_t came_to(const struct judge *judge, const struct judge_session *session)
{
    assert(session->come_count <= judge->ps_count);
    if (session->state >= JUDGE_SESSION_DECIDING)
        return session->made_step;
    return session->come_count == judge->ps_count ? session->come_step : 0;
}

static bool is_member(const struct judge_session *session, uint64_t step)
{
    return session->first_step != 0 && session->first_step <= step;
}

/* Of the next step. */
struct attendance {
    uint32_t members, come; /* that are not settled without having come; of them, who have come … */
    uint32_t counting;      /* … with what counts */
    bool later;             /* a member begins after it */
    bool closing;           /* whether one has come is not known yet: it is being settled */
};

static struct attendance look_at(const struct judge *judge, uint64_t step)
{
    struct attendance attendance = {0};

    assert(step == judge->step_taken + 1);
    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next) {
        const uint64_t come = came_to(judge, session);
        attendance.later |= session->first_step > step;
        if (!is_member(session, step) || (come < step && session->state >= JUDGE_SESSION_DECIDING))
            continue;
        attendance.closing |= come < step && session->state == JUDGE_SESSION_CLOSING;
        attendance.members++;
        attendance.come += come >= step;
        attendance.counting += come == step && session->come_step == step && !session->come_voided;
    }
    return attendance;
}

/* ---- until when the others are waited for ---- */

/* Of two in the middle the shorter one: a slow step makes none but itself wait, be it the first. */
static uint64_t median_us(const struct judge *judge)
{
    uint64_t times[JUDGE_STEP_TIMES];
    const uint32_t count =
        judge->step_times < JUDGE_STEP_TIMES ? judge->step_times : JUDGE_STEP_TIMES;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && times[at - 1] > judge->step_times_us[i]; at--)
            times[at] = times[at - 1];
        times[at] = judge->step_times_us[i];
    }
    return times[(count - 1) / 2];
}

static uint64_t deadline_us(const struct judge *judge)
{
    const uint32_t given_ms = judge->config->step_deadline_ms;
    const uint64_t wait_us =
        given_ms == LANE_DEADLINE_AUTO ? AUTO_MULTIPLE * median_us(judge) : judge_ms(given_ms);

    assert(judge->step_enough);
    return judge->step_first_us + wait_us;
}

/* Is it time for the step, though not all have come? */
static bool is_due(struct judge *judge, const struct attendance *attendance)
{
    if (attendance->counting > 0 && judge->step_first_us == 0)
        judge->step_first_us = judge->now_us;
    if (attendance->counting < judge->config->step_quorum)
        return false;
    if (!judge->step_enough) {
        judge->step_enough = true;
        judge->step_times_us[judge->step_times++ % JUDGE_STEP_TIMES] =
            judge->now_us - judge->step_first_us;
    }
    if (judge->now_us >= deadline_us(judge))
        return true;
    judge_wake(judge, deadline_us(judge));
    return false;
}

/* ---- it is taken ---- */

static bool is_over(const struct judge *judge, uint64_t step)
{
    assert(step == judge->step_taken);
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (judge->peers[ps].step_over < step)
            return false;
    return true;
}

static void take(struct judge *judge, uint64_t step)
{
    assert(step == judge->step_taken + 1);
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if (is_member(session, step) && came_to(judge, session) >= step)
            session->taken_step = step;
    judge->step_taken = step;
    judge->step_first_us = 0;
    judge->step_enough = false;
    judge_row_changed(judge, JUDGE_ROW_STEP, &judge->step_row);
    judge_order_take(judge);
}

void judge_steps_consider(struct judge *judge)
{
    const uint64_t step = judge->step_taken + 1;

    if (judge->config->step_quorum == 0 || judge->phase != JUDGE_RUNNING ||
        judge->initials < judge_step_members(judge) || !is_over(judge, judge->step_taken))
        return;
    const struct attendance attendance = look_at(judge, step);
    if (attendance.closing)
        return;
    const bool all = attendance.come == attendance.members;
    if (all ? attendance.come > 0 || attendance.later : is_due(judge, &attendance))
        take(judge, step);
}

void judge_steps_tick(struct judge *judge)
{
    judge_steps_consider(judge);
    if (judge->step_without_order)
        judge_order_take(judge);
}

void judge_steps_begin_again(struct judge *judge)
{
    if (judge->step_taken != 0 && rule_holds(judge->config->broken, RULE_quorum_says_again))
        judge_order_take(judge);
}

/* ---- what is heard ---- */

/* Of what it has heard of before a ps says the same, or less. */
static void contributed(struct judge *judge, uint32_t ps, const wire_contributed *contributed)
{
    struct judge_session *session =
        judge_session_find(judge, contributed->session_id.data, contributed->session_id.len);

    if (session == NULL || contributed->step < session->come_step ||
        contributed->step >= JUDGE_STEPS_MAX)
        return;
    if (contributed->step > session->come_step) {
        session->come_step = contributed->step;
        session->come_voided = false;
        session->come_on = (struct judge_mask){{0}};
        session->come_count = 0;
    }
    session->come_voided |= contributed->voided;
    session->come_count += !judge_mask_has(&session->come_on, ps);
    judge_mask_add(&session->come_on, ps);
}

void judge_steps_reported(struct judge *judge, uint32_t ps, const wire_peer_report *report)
{
    struct judge_peer *peer = &judge->peers[ps];

    assert(ps < judge->ps_count);
    if (report->n_contributed == 0 && report->step_over <= peer->step_over)
        return;
    for (size_t i = 0; i < report->n_contributed; i++)
        contributed(judge, ps, report->contributed[i]);
    if (report->step_over > peer->step_over)
        peer->step_over = report->step_over;
    judge_steps_consider(judge);
}

/* Its step was taken without it; none is taken without a member that is being settled. */
static bool is_late(
    const struct judge *judge, const struct judge_session *session, const wire_close_report *close)
{
    return judge->config->step_quorum != 0 && close->made_sequence != 0 &&
           close->made_step <= judge->step_taken && session->taken_step < close->made_step;
}

bool judge_steps_close_reported(
    struct judge *judge, struct judge_session *session, const wire_close_report *close)
{
    assert(session->state == JUDGE_SESSION_CLOSING);
    if (is_late(judge, session, close) &&
        !judge_voided_add(judge, &session->voided, close->made_sequence))
        return false;
    if (close->made_step > session->made_step) {
        session->made_step = close->made_step;
        session->made_sequence = close->made_sequence;
    }
    return true;
}

void judge_steps_closed(struct judge *judge, struct judge_session *session)
{
    if (judge_voided_has(session->voided, session->made_sequence))
        session->made_sequence = 0;
    judge_steps_consider(judge);
}

bool judge_steps_need(const struct judge *judge, const struct judge_session *session)
{
    if (judge->config->step_quorum == 0)
        return false;
    if (session->taken_step == judge->step_taken && !is_over(judge, judge->step_taken))
        return true;
    return session->made_sequence != 0 && session->made_step > judge->step_taken;
}
