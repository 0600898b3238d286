/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c -- what is being waited for, in sentences: for the statistics, and for a line every few
 * seconds. */
#include "barrier.h"

#include <assert.h>

#include "listing.h"
#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"
#include "catalogue.h"

#define WAITS_MAX 256u /* sentences in one answer */
#define ABSENCE_SAID_US_MIN 1000000u

/* A sentence without room is counted, and not made. */
static bool has_room(struct controller_waits *sentences)
{
    sentences->left_out += sentences->count == WAITS_MAX;
    return sentences->count < WAITS_MAX;
}

static void say(struct controller_waits *sentences, const char *text)
{
    assert(sentences->count < WAITS_MAX);
    sentences->items[sentences->count++] = (char *)text;
}

/* "25 s" */
static const char *so_far(const struct controller *controller, uint64_t since_us)
{
    assert(since_us <= controller->now_us);
    return out_text(controller->out, "%s", text_time_us(controller->now_us - since_us).text);
}

static bool settles(const struct controller_session *session)
{
    return session->state == CONTROLLER_SESSION_CLOSING ||
           session->state == CONTROLLER_SESSION_DECIDING;
}

static bool joins(const struct controller_session *session)
{
    return session->state < CONTROLLER_SESSION_OPEN;
}

/* All sessions that wait for that ps to join, or to be settled, in one sentence. */
static void say_held_up(
    const struct controller *controller, struct controller_waits *sentences, const char *what,
    bool (*waits)(const struct controller_session *session), uint32_t ps)
{
    uint64_t since_us = controller->now_us;
    struct listing names = {0};

    assert(ps < controller->ps_count);
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller) {
        if (!waits(session))
            continue;
        listing_add(&names, session->label);
        const uint64_t began_us = joins(session) ? session->joined_us : session->settling_us;
        since_us = began_us < since_us ? began_us : since_us;
    }
    if (names.count > 0 && has_room(sentences))
        say(sentences,
            out_text(
                controller->out, "%s%s of %s wait%s for %s; so far %s", what,
                names.count == 1 ? "" : "s", listing_end(&names), names.count == 1 ? "s" : "",
                controller_peer_text(controller, ps), so_far(controller, since_us)));
}

static const char *
join_wait(const struct controller *controller, const struct controller_session *session)
{
    assert(joins(session));
    return out_text(
        controller->out, "join of %s waits for %s; so far %s", session->label,
        session->state == CONTROLLER_SESSION_WAITING ? "its earlier session to be settled"
                                                     : "every ps to open it",
        so_far(controller, session->joined_us));
}

static const char *
settle_wait(const struct controller *controller, const struct controller_session *session)
{
    assert(settles(session));
    const uint32_t short_of_memory = controller_order_short(controller, session);
    if (short_of_memory < controller->ps_count)
        return out_text(
            controller->out,
            "settle of %s waits for memory for what was refused, as %s has it; so far %s",
            session->label, controller_peer_text(controller, short_of_memory),
            so_far(controller, session->settling_us));
    return out_text(
        controller->out, "settle of %s is under way; so far %s", session->label,
        so_far(controller, session->settling_us));
}

static void say_sessions(const struct controller *controller, struct controller_waits *sentences)
{
    const uint32_t missing = controller_peers_missing(controller);

    assert(sentences->items != NULL);
    if (missing < controller->ps_count) {
        say_held_up(controller, sentences, "join", joins, missing);
        say_held_up(controller, sentences, "settle", settles, missing);
        return;
    }
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        if ((joins(session) || settles(session)) && has_room(sentences))
            say(sentences, settles(session) ? settle_wait(controller, session)
                                            : join_wait(controller, session));
}

/* "worker 0, worker 1", or a general text if the configuration lists no task. */
static const char *expected(const struct controller *controller)
{
    return controller_tasks_any(controller, CONTROLLER_TASKS_LISTED)
               ? controller_tasks_text(controller, CONTROLLER_TASKS_LISTED)
               : "any chief or worker, its configuration lists none";
}

/* Nobody knows when a scheduler starts the workers, so only SIGTERM ends it. */
static const char *first_join_wait(const struct controller *controller)
{
    return out_text(
        controller->out, "ps 0 waits for the first join, of %s; this wait has no limit, so far %s",
        expected(controller), so_far(controller, controller->config->started_us));
}

/* "ps 0 waits for ps 1 at h2:2222, never heard from; gives up in 35 s" */
static const char *peer_wait(const struct controller *controller, uint32_t ps)
{
    const struct controller_order *order = controller_order_next(controller->orders.first, ps);
    const bool told = controller->peers[ps].met && order != NULL;

    return out_text(
        controller->out, "ps 0 waits for %s%s%s; %s", controller_peer_text(controller, ps),
        told ? ", " : "", told ? controller_order_text(controller, order) : "",
        controller_peer_limit(controller, ps));
}

static bool is_waited_for(const struct controller *controller, uint32_t ps)
{
    return !controller->peers[ps].met || controller_peer_is_late(controller, ps);
}

/* For a member that is listed and never joined. */
static const char *who_waits(const struct controller *controller)
{
    return controller->initials < controller_step_members(controller)
               ? "start each missing task; the first synchronous step waits until all have joined; "
                 "asynchronous pushes go on"
               : "start each missing task; the other tasks go on";
}

/* NULL: all that are listed have joined, or the first has done so for less than `after_us`. */
static const char *absence(const struct controller *controller, uint64_t after_us)
{
    const uint64_t since_us = controller->now_us - controller->first_join_us;

    assert(controller->first_join_us <= controller->now_us);
    if (!controller->member_joined || !controller_run_has_members(controller) ||
        since_us < after_us || !controller_tasks_any(controller, CONTROLLER_TASKS_NEVER_JOINED))
        return NULL;
    return out_text(
        controller->out, "%s never joined, %s after the first join; %s",
        controller_tasks_text(controller, CONTROLLER_TASKS_NEVER_JOINED),
        text_time_us(since_us).text, who_waits(controller));
}

/* What ps 0 itself waits for, beside its calls. */
static void say_own(struct controller *controller, struct controller_waits *sentences)
{
    const char *end_wait = controller_run_wait(controller);

    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        if (is_waited_for(controller, ps) && has_room(sentences))
            say(sentences, peer_wait(controller, ps));
    if (controller->first_join_us == 0 && has_room(sentences))
        say(sentences, first_join_wait(controller));
    if (end_wait != NULL && has_room(sentences))
        say(sentences, end_wait);
    const char *const missing = absence(controller, ABSENCE_SAID_US_MIN);
    if (missing != NULL && has_room(sentences))
        say(sentences, missing);
}

static const char *
call_wait(const struct controller *controller, const struct controller_call *call)
{
    const uint64_t left_us =
        call->until_us > controller->now_us ? call->until_us - controller->now_us : 0;

    return out_text(
        controller->out, "%s; gives up in %s", controller_call_wait(controller, call),
        text_time_left(left_us).text);
}

void controller_list_waits(
    struct controller *controller, uint64_t now_us, struct controller_waits *waits)
{
    *waits = (struct controller_waits){.items = NULL};
    controller_begin(controller, false);
    controller_notice_time(controller, now_us);
    waits->items = arena_take(controller->out->arena, WAITS_MAX * sizeof *waits->items);
    if (waits->items == NULL)
        return;
    say_own(controller, waits);
    say_sessions(controller, waits);
    LIST_FOREACH(const struct controller_call, call, &controller->calls, in_controller)
        if (has_room(waits))
            say(waits, call_wait(controller, call));
    LIST_FOREACH(const struct controller_barrier, barrier, &controller->barriers, in_controller)
        if (barrier->open && has_room(waits))
            say(waits, controller_barrier_wait(controller, barrier));
}

/* Double the interval between reports while ps 0 waits without a limit. */
static void plan_next(struct controller *controller)
{
    const uint64_t longest_us =
        controller_ms(controller->config->report_ms) * LANE_REPORTS_APART_MAX;

    if (controller->first_join_us == 0)
        controller->report_us =
            2 * controller->report_us < longest_us ? 2 * controller->report_us : longest_us;
    controller->next_report_us = controller->now_us + controller->report_us;
}

/* Once, while others train: the run goes on without them. */
static void tell_absence(struct controller *controller)
{
    const uint64_t after_us = controller_ms(controller->config->rejoin_first_ms);
    const char *const missing = controller->absence_told ? NULL : absence(controller, after_us);

    if (missing == NULL)
        return;
    controller->absence_told = true;
    out_log(controller->out, "%s", missing);
}

void controller_report_waits(struct controller *controller)
{
    if (controller->phase != CONTROLLER_RUNNING || controller->now_us < controller->next_report_us)
        return;
    plan_next(controller);
    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        if (is_waited_for(controller, ps))
            out_log(controller->out, "%s", peer_wait(controller, ps));
    if (controller->first_join_us == 0)
        out_log(controller->out, "%s", first_join_wait(controller));
    const char *const end_wait = controller_run_wait(controller);
    if (end_wait != NULL)
        out_log(controller->out, "%s", end_wait);
    tell_absence(controller);
}
