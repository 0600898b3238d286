/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_text.c -- what is said of a barrier: whom it waits for, and of whom it is. */
#include "barrier.h"

#include <assert.h>
#include <inttypes.h>

#include "missing_tasks.h"
#include "text.h"

#define PLACES_LOOKED_AT_MAX 4096u /* for where one of them waits */

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

const char *controller_barrier_place_text(
    const struct controller *controller, const struct controller_place *place)
{
    struct missing_tasks missing = {.never_joined = false};

    add_missing(controller, place, &missing);
    return out_text(controller->out, "%s", missing_tasks_end(&missing));
}

const char *controller_barrier_missing_text(
    const struct controller *controller, const struct controller_barrier *barrier)
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
        barrier->round + 1, barrier->name, controller_barrier_missing_text(controller, barrier),
        barrier->come_count, barrier->place_count, text_time_left(left_us).text);
}

const char *controller_barrier_tasks_text(
    const struct controller *controller, const struct controller_barrier *barrier)
{
    struct listing listing = {0};

    if (barrier->of_all)
        return "all members";
    for (uint32_t i = 0; i < barrier->place_count; i++)
        listing_add_task(
            &listing, controller_barrier_job(&barrier->places[i]), barrier->places[i].index);
    return out_text(controller->out, "%s", listing_end(&listing));
}

const char *controller_barrier_wanted_text(
    const struct controller *controller, const wire_barrier_request *request)
{
    struct listing listing = {0};

    if (request->n_tasks == 0)
        return "all members";
    for (size_t i = 0; i < request->n_tasks; i++)
        listing_add_task(&listing, request->tasks[i]->job, request->tasks[i]->index);
    return out_text(controller->out, "%s", listing_end(&listing));
}
