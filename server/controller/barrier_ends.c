/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_ends.c -- how a round of a barrier ends, with one result for every task that arrived, and
 * whom it waits for until then:
 *
 *   - every task has arrived
 *   - a task will never arrive
 *   - every task that arrived has left
 *   - the round has timed out
 */
#include "barrier.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"
#include "missing_tasks.h"
#include "text.h"

#define END_LOG_US_MIN 1000000u
#define PLACES_LOOKED_AT_MAX 4096u /* for where one of them waits */

/* ---- whom it waits for */

static const struct controller_session *
last_session(const struct controller *controller, const struct controller_task *task)
{
    const struct controller_session *session = controller->sessions.last;

    while (session != NULL && session->task != task)
        session = session->in_controller.prev;
    return session;
}

/* An open barrier that the task has come to; NULL: none was found. */
static const struct controller_barrier *
find_arrival(const struct controller *controller, const struct controller_place *place)
{
    const char *const job = controller_barrier_job(place);
    uint32_t looked_at = 0;

    for (const struct controller_barrier *barrier = controller->barriers.first;
         barrier != NULL && looked_at < PLACES_LOOKED_AT_MAX;
         barrier = barrier->in_controller.next) {
        looked_at += barrier->place_count;
        const struct controller_place *there = controller_barrier_place(barrier, job, place->index);
        if (there != NULL && controller_barrier_has(barrier, there))
            return barrier;
    }
    return NULL;
}

static enum missing_state
find_state(const struct controller_task *task, const struct controller_session *last)
{
    if (last != NULL && last->state != CONTROLLER_SESSION_SETTLED)
        return MISSING_PRESENT;
    if (task == NULL || !task->joined)
        return MISSING_NEVER_JOINED;
    return task->done ? MISSING_DONE : task->left ? MISSING_LEFT : MISSING_LOST;
}

static void add_missing(
    const struct controller *controller, const struct controller_place *place,
    struct missing_tasks *missing)
{
    const struct controller_task *task = controller_barrier_task(controller, place);
    const struct controller_session *last = task == NULL ? NULL : last_session(controller, task);
    struct missing_task said = {
        .name = out_text(controller->out, "%s %u", controller_barrier_job(place), place->index),
        .state = find_state(task, last)};

    if (said.state == MISSING_NEVER_JOINED && task != NULL)
        said.address = task->address;
    if (last != NULL)
        said.silence = out_text(
            controller->out, "last heard from %s", controller_ago(controller, last->heard_us));
    const struct controller_barrier *other =
        said.state == MISSING_PRESENT ? find_arrival(controller, place) : NULL;
    if (other != NULL)
        said.barrier = other->name;
    missing_tasks_add(missing, &said);
}

static const char *
place_text(const struct controller *controller, const struct controller_place *place)
{
    struct missing_tasks missing = {.never_joined = false};

    add_missing(controller, place, &missing);
    return out_text(controller->out, "%s", missing_tasks_end(&missing));
}

/* "worker 1 (last heard from 2.1 s ago, waiting at barrier "b"), worker 2 (never joined)" */
static const char *
missing_text(const struct controller *controller, const struct controller_barrier *barrier)
{
    struct missing_tasks missing = {.never_joined = false};

    assert(barrier->come_count < barrier->place_count);
    for (uint32_t i = 0; i < barrier->place_count; i++)
        if (controller_barrier_has(barrier, &barrier->places[i]))
            continue;
        else if (missing_tasks_is_full(&missing))
            missing_tasks_count(&missing);
        else
            add_missing(controller, &barrier->places[i], &missing);
    return out_text(controller->out, "%s", missing_tasks_end(&missing));
}

const char *controller_barrier_wait(
    const struct controller *controller, const struct controller_barrier *barrier)
{
    const uint64_t left_us =
        barrier->until_us > controller->now_us ? barrier->until_us - controller->now_us : 0;

    assert(barrier->open);
    return out_text(
        controller->out,
        "round %" PRIu64
        " of barrier \"%s\" waits for %s; %u of %u tasks have come, it gives up in %s",
        barrier->round + 1, barrier->name, missing_text(controller, barrier), barrier->come_count,
        barrier->place_count, text_time_left(left_us).text);
}

/* ---- its end */

const wire_message *controller_barrier_reply(
    struct controller *controller, uint64_t round, const struct sumac_error *end)
{
    wire_barrier_reply *reply = OUT_MESSAGE(controller->out, barrier_reply);

    reply->round = round;
    reply->status = (uint32_t)end->status;
    reply->reason = (Sumac__V1__Reason)end->reason;
    if (end->status != SUMAC_OK)
        reply->message = out_text(controller->out, "%s", end->text);
    return &reply->base;
}

void controller_barrier_drop_waiting(
    struct controller *controller, struct controller_waiting *waiting)
{
    assert(controller->waiting_pool.used > 0);
    assert(waiting->barrier->waiting.first != NULL);
    LIST_REMOVE(&controller->waiting, waiting, in_controller);
    LIST_REMOVE(&waiting->barrier->waiting, waiting, of_barrier);
    pool_give(&controller->waiting_pool, waiting);
}

/* At most one line a second: tasks with short timeouts end thousands of rounds. */
static void log_end(struct controller *controller, const struct sumac_error *end)
{
    const bool is_soon = controller->end_logged_us != 0 &&
                         controller->now_us - controller->end_logged_us < END_LOG_US_MIN;

    if (is_soon) {
        controller->ends_unlogged++;
        return;
    }
    if (controller->ends_unlogged > 0)
        out_log(
            controller->out, "%s (and %" PRIu64 " rounds of barriers since the last such line)",
            end->text, controller->ends_unlogged);
    else
        out_log(controller->out, "%s", end->text);
    controller->end_logged_us = controller->now_us;
    controller->ends_unlogged = 0;
}

void controller_barrier_end(
    struct controller *controller, struct controller_barrier *barrier,
    const struct sumac_error *end)
{
    assert(barrier->open);
    barrier->open = false;
    barrier->round++;
    barrier->end_known = true;
    barrier->end = *end;
    barrier->come_count = 0;
    controller_barrier_changed(controller, barrier);
    if (end->status != SUMAC_OK)
        log_end(controller, end);
    const wire_message *reply = controller_barrier_reply(controller, barrier->round, end);
    while (barrier->waiting.first != NULL) {
        controller_reply_or_fail(controller, barrier->waiting.first->call, reply);
        controller_barrier_drop_waiting(controller, barrier->waiting.first);
    }
    assert(!barrier->open); /* no reply opens a round: later arrivals do */
}

/* The task will never arrive, or only as another attempt. The round does not wait for another
 * attempt. */
static void end_without(
    struct controller *controller, struct controller_barrier *barrier,
    const struct controller_place *place, const struct controller_task *task)
{
    struct sumac_error end = {0};

    assert(!controller_barrier_has(barrier, place));
    (void)fail(
        &end, task->done ? SUMAC_FAILED_PRECONDITION : SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "round %" PRIu64 " of barrier \"%.100s\" cannot pass without %s; %s", barrier->round + 1,
        barrier->name, place_text(controller, place),
        task->done ? "name the tasks that are left, under another name"
                   : "come again when another attempt of it has joined");
    controller_barrier_end(controller, barrier, &end);
}

/* Mark each task that has an unsettled session. Returns the mark. */
static uint64_t mark_live(struct controller *controller)
{
    const uint64_t look = ++controller->lists_looked_at;

    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        if (session->task != NULL && session->state != CONTROLLER_SESSION_SETTLED)
            session->task->named = look;
    return look;
}

/* True if no task that arrived at the open round has the mark `live`. */
static bool is_deserted(
    const struct controller *controller, const struct controller_barrier *barrier, uint64_t live)
{
    assert(barrier->open && barrier->come_count > 0);
    for (uint32_t i = 0; i < barrier->place_count; i++) {
        const struct controller_task *task =
            controller_barrier_has(barrier, &barrier->places[i])
                ? controller_barrier_task(controller, &barrier->places[i])
                : NULL;
        if (task != NULL && task->named == live)
            return false;
    }
    return true;
}

/* No call waits for the round's end, and no call will. */
static void end_deserted(
    struct controller *controller, struct controller_barrier *barrier,
    const struct controller_place *place)
{
    struct sumac_error end = {0};

    assert(barrier->waiting.first == NULL);
    (void)fail(
        &end, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "round %" PRIu64
        " of barrier \"%.100s\" cannot pass: every task that reached it is gone, at last %s; "
        "come to the next round",
        barrier->round + 1, barrier->name, place_text(controller, place));
    controller_barrier_end(controller, barrier, &end);
}

void controller_barriers_settled(struct controller *controller, const struct controller_task *task)
{
    if (controller->phase != CONTROLLER_RUNNING || !task->joined ||
        !rule_holds(controller->config->broken, RULE_barrier_without_the_settled))
        return;
    const uint64_t live = mark_live(controller);
    if (task->named == live) /* another session of the task is live */
        return;
    LIST_FOREACH_SAFE(struct controller_barrier, barrier, &controller->barriers, in_controller) {
        const struct controller_place *place =
            barrier->open ? controller_barrier_place(barrier, task->key.job, task->key.index)
                          : NULL;
        if (place == NULL)
            continue;
        if (!controller_barrier_has(barrier, place))
            end_without(controller, barrier, place, task);
        else if (is_deserted(controller, barrier, live))
            end_deserted(controller, barrier, place);
    }
}

void controller_barrier_look_for_gone(
    struct controller *controller, struct controller_barrier *barrier)
{
    assert(barrier->open);
    assert(barrier->come_count == 1); /* the task that opened it */
    if (!rule_holds(controller->config->broken, RULE_barrier_without_the_settled))
        return;
    const uint64_t look = mark_live(controller);
    for (uint32_t i = 0; i < barrier->place_count; i++) {
        const struct controller_place *place = &barrier->places[i];
        const struct controller_task *task = controller_barrier_task(controller, place);
        if (task != NULL && task->joined && task->named != look &&
            !controller_barrier_has(barrier, place)) {
            end_without(controller, barrier, place, task);
            return;
        }
    }
}

static void end_late(struct controller *controller, struct controller_barrier *barrier)
{
    const uint64_t waited_us = barrier->until_us - barrier->opened_us;
    struct sumac_error end = {0};

    assert(barrier->open);
    assert(controller->now_us >= barrier->until_us);
    /* False: the deadline is that of the task that opened the round. */
    const bool shortened = waited_us != controller_ms(barrier->timeout_ms);
    (void)fail(
        &end, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_ROUND_TIMED_OUT,
        "round %" PRIu64
        " of barrier \"%.100s\" has waited %s for %s; %u of %u tasks have come%s%s",
        barrier->round + 1, barrier->name, text_time_us(waited_us).text,
        missing_text(controller, barrier), barrier->come_count, barrier->place_count,
        shortened ? "; a task that came later gave the round " : "",
        shortened ? text_time_ms(barrier->timeout_ms).text : "");
    if (rule_holds(controller->config->broken, RULE_barrier_ends_for_all)) {
        controller_barrier_end(controller, barrier, &end);
        return;
    }
    barrier->until_us = controller->now_us + controller_ms(barrier->timeout_ms);
    if (barrier->waiting.first == NULL)
        return;
    const uint64_t call = barrier->waiting.first->call;
    controller_barrier_drop_waiting(controller, barrier->waiting.first);
    controller_reply_or_fail(
        controller, call, controller_barrier_reply(controller, barrier->round + 1, &end));
}

void controller_barriers_tick(struct controller *controller)
{
    LIST_FOREACH_SAFE(struct controller_barrier, barrier, &controller->barriers, in_controller) {
        if (barrier->open && controller->now_us >= barrier->until_us)
            end_late(controller, barrier);
    }
}

void controller_barriers_begin_again(struct controller *controller)
{
    LIST_FOREACH(struct controller_barrier, barrier, &controller->barriers, in_controller) {
        assert(barrier->waiting.first == NULL);
        barrier->opened_us = controller->now_us;
        barrier->until_us = controller->now_us + controller_ms(barrier->timeout_ms);
        if (barrier->open)
            controller_wake(controller, barrier->until_us);
    }
}
