/* SPDX-License-Identifier: Apache-2.0 */
/* quorum.c -- synchronous steps of K of N members: which contributions each is made of.
 *
 *   a ps reports ─► who has arrived at which step ─► all, or K and the deadline is over ─► take
 *
 * Overview: each ps reports the contributions that have their turn there. A member has arrived when
 * every ps has reported its contribution. ps 0 takes the step once, with all members that have
 * arrived by then, and tells every ps the same. A later contribution is late and is discarded. ps 0
 * takes the next step when this one is over on every ps, so no ps has more than one step to
 * remember. docs/protocol/PROTOCOL.md, "Synchronous steps", rule 7.
 */
#include "controller_orders.h"
#include "controller_members.h"

#include <assert.h>

#define AUTO_MULTIPLE 2u

/* ---- who has come ---- */

/* The last step that the session has reached on every ps. A ps that lacks the contribution would
 * wait for it, whatever the other ps do. For a settled session the step is decided: a contribution
 * that has reached any ps counts as made. */
static uint64_t
came_to(const struct controller *controller, const struct controller_session *session)
{
    assert(session->come_count <= controller->ps_count);
    if (session->state >= CONTROLLER_SESSION_DECIDING)
        return session->made_step;
    return session->come_count == controller->ps_count ? session->come_step : 0;
}

static bool is_member(const struct controller_session *session, uint64_t step)
{
    return session->first_step != 0 && session->first_step <= step;
}

/* The members of the next step. */
struct attendance {
    uint32_t members, come; /* that are not settled without having come; of them, who have come … */
    uint32_t counting;      /* … with what counts */
    bool later;             /* a member begins after it */
    bool closing;           /* whether one has come is not known yet: it is being settled */
};

static struct attendance look_at(const struct controller *controller, uint64_t step)
{
    struct attendance attendance = {0};

    assert(step == controller->step_taken + 1);
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller) {
        const uint64_t come = came_to(controller, session);
        attendance.later |= session->first_step > step;
        if (!is_member(session, step) ||
            (come < step && session->state >= CONTROLLER_SESSION_DECIDING))
            continue;
        attendance.closing |= come < step && session->state == CONTROLLER_SESSION_CLOSING;
        attendance.members++;
        attendance.come += come >= step;
        attendance.counting += come == step && session->come_step == step && !session->come_voided;
    }
    return attendance;
}

/* ---- until when the others are waited for ---- */

/* With two times in the middle, the shorter one. So a slow step, even the first, delays only
 * itself. */
static uint64_t median_us(const struct controller *controller)
{
    uint64_t times[CONTROLLER_STEP_TIMES];
    const uint32_t count = controller->step_times < CONTROLLER_STEP_TIMES ? controller->step_times
                                                                          : CONTROLLER_STEP_TIMES;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && times[at - 1] > controller->step_times_us[i]; at--)
            times[at] = times[at - 1];
        times[at] = controller->step_times_us[i];
    }
    return times[(count - 1) / 2];
}

static uint64_t deadline_us(const struct controller *controller)
{
    const uint32_t given_ms = controller->config->step_deadline_ms;
    const uint64_t wait_us = given_ms == LANE_DEADLINE_AUTO ? AUTO_MULTIPLE * median_us(controller)
                                                            : controller_ms(given_ms);

    assert(controller->step_enough);
    return controller->step_first_us + wait_us;
}

/* Is it time for the step, though not all have come? */
static bool is_due(struct controller *controller, const struct attendance *attendance)
{
    if (attendance->counting > 0 && controller->step_first_us == 0)
        controller->step_first_us = controller->now_us;
    if (attendance->counting < controller->config->step_quorum)
        return false;
    if (!controller->step_enough) {
        controller->step_enough = true;
        controller->step_times_us[controller->step_times++ % CONTROLLER_STEP_TIMES] =
            controller->now_us - controller->step_first_us;
    }
    if (controller->now_us >= deadline_us(controller))
        return true;
    controller_wake(controller, deadline_us(controller));
    return false;
}

/* ---- it is taken ---- */

static bool is_over(const struct controller *controller, uint64_t step)
{
    assert(step == controller->step_taken);
    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        if (controller->peers[ps].step_over < step)
            return false;
    return true;
}

static void take(struct controller *controller, uint64_t step)
{
    assert(step == controller->step_taken + 1);
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller)
        if (is_member(session, step) && came_to(controller, session) >= step)
            session->taken_step = step;
    controller->step_taken = step;
    controller->step_first_us = 0;
    controller->step_enough = false;
    controller_row_changed(controller, &controller->step_row);
    controller_order_take(controller);
}

void controller_steps_consider(struct controller *controller)
{
    const uint64_t step = controller->step_taken + 1;

    if (controller->config->step_quorum == 0 || controller->phase != CONTROLLER_RUNNING ||
        controller->initials < controller_step_members(controller) ||
        !is_over(controller, controller->step_taken))
        return;
    const struct attendance attendance = look_at(controller, step);
    if (attendance.closing)
        return;
    const bool all = attendance.come == attendance.members;
    if (all ? attendance.come > 0 || attendance.later : is_due(controller, &attendance))
        take(controller, step);
}

void controller_steps_tick(struct controller *controller)
{
    controller_steps_consider(controller);
    if (controller->step_without_order)
        controller_order_take(controller);
}

void controller_steps_begin_again(struct controller *controller)
{
    if (controller->step_taken != 0 &&
        rule_holds(controller->config->broken, RULE_quorum_says_again))
        controller_order_take(controller);
}

/* ---- what is heard ---- */

/* A ps may report a contribution again: then it names the same step, or an earlier one. */
static void
contributed(struct controller *controller, uint32_t ps, const wire_contributed *contributed)
{
    struct controller_session *session = controller_session_find(
        controller, contributed->session_id.data, contributed->session_id.len);

    if (session == NULL || contributed->step < session->come_step ||
        contributed->step >= CONTROLLER_STEPS_MAX)
        return;
    if (contributed->step > session->come_step) {
        session->come_step = contributed->step;
        session->come_voided = false;
        session->come_on = (struct controller_mask){{0}};
        session->come_count = 0;
    }
    session->come_voided |= contributed->voided;
    session->come_count += !controller_mask_has(&session->come_on, ps);
    controller_mask_add(&session->come_on, ps);
}

void controller_steps_reported(
    struct controller *controller, uint32_t ps, const wire_peer_report *report)
{
    struct controller_peer *peer = &controller->peers[ps];

    assert(ps < controller->ps_count);
    for (size_t i = 0; i < report->n_contributed; i++)
        contributed(controller, ps, report->contributed[i]);
    if (report->step_over > peer->step_over)
        peer->step_over = report->step_over;
    controller_steps_consider(controller);
}

/* Its step was taken without it; none is taken without a member that is being settled. */
static bool is_late(
    const struct controller *controller, const struct controller_session *session,
    const wire_close_report *close)
{
    return controller->config->step_quorum != 0 && close->made_sequence != 0 &&
           close->made_step <= controller->step_taken && session->taken_step < close->made_step;
}

bool controller_steps_close_reported(
    struct controller *controller, struct controller_session *session,
    const wire_close_report *close)
{
    assert(session->state == CONTROLLER_SESSION_CLOSING);
    if (is_late(controller, session, close) &&
        !controller_voided_add(controller, &session->voided, close->made_sequence))
        return false;
    if (close->made_step > session->made_step) {
        session->made_step = close->made_step;
        session->made_sequence = close->made_sequence;
    }
    return true;
}

void controller_steps_closed(struct controller *controller, struct controller_session *session)
{
    if (controller_voided_has(session->voided, session->made_sequence))
        session->made_sequence = 0;
    controller_steps_consider(controller);
}

bool controller_steps_need(
    const struct controller *controller, const struct controller_session *session)
{
    if (controller->config->step_quorum == 0)
        return false;
    if (session->taken_step == controller->step_taken &&
        !is_over(controller, controller->step_taken))
        return true;
    return session->made_sequence != 0 && session->made_step > controller->step_taken;
}
