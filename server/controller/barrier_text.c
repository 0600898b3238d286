/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_text.c -- what is said of a barrier: whom it waits for, and of whom it is. */
#include "barrier.h"

#include <assert.h>
#include <inttypes.h>

#include "listing.h"
#include "text.h"

#define MISSING_NAMED_MAX 3u       /* in one sentence; the others are counted */
#define PLACES_LOOKED_AT_MAX 4096u /* for where one of them waits */

static const struct controller_session *
last_session(const struct controller *controller, const struct controller_task *task)
{
    const struct controller_session *session = controller->sessions.last;

    while (session != NULL && session->task != task)
        session = session->in_controller.prev;
    return session;
}

/* "worker 1, last heard from 2.1 s ago" */
const char *controller_barrier_place_text(
    const struct controller *controller, const struct controller_place *place)
{
    const struct controller_task *task = controller_barrier_task(controller, place);
    const struct controller_session *session = task == NULL ? NULL : last_session(controller, task);

    if (session == NULL)
        return controller_text(
            controller, "%s %u, never heard from", controller_barrier_job(place), place->index);
    return controller_text(
        controller, "%s %u, last heard from %s", controller_barrier_job(place), place->index,
        controller_ago(controller, session->heard_us));
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

static const char *
missing_place_text(const struct controller *controller, const struct controller_place *place)
{
    const struct controller_barrier *const other = find_arrival(controller, place);
    const char *const who = controller_barrier_place_text(controller, place);

    return other == NULL
               ? who
               : controller_text(controller, "%s, waiting at barrier \"%.40s\"", who, other->name);
}

const char *controller_barrier_missing_text(
    const struct controller *controller, const struct controller_barrier *barrier)
{
    assert(barrier->come_count <= barrier->place_count);
    const uint32_t missing = barrier->place_count - barrier->come_count;
    const char *text = "";
    uint32_t named = 0;

    assert(missing > 0);
    for (uint32_t i = 0; i < barrier->place_count && named < MISSING_NAMED_MAX; i++) {
        if (controller_barrier_has(barrier, &barrier->places[i]))
            continue;
        named++;
        const char *const between = named == 1 ? "" : named == missing ? ", and " : ", ";
        text = controller_text(
            controller, "%s%s%s", text, between,
            missing_place_text(controller, &barrier->places[i]));
    }
    return missing == named
               ? text
               : controller_text(controller, "%s, and %u others", text, missing - named);
}

const char *controller_barrier_wait(
    const struct controller *controller, const struct controller_barrier *barrier)
{
    const uint64_t left_us =
        barrier->until_us > controller->now_us ? barrier->until_us - controller->now_us : 0;

    assert(barrier->open);
    return controller_text(
        controller,
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
    return controller_text(controller, "%s", listing_end(&listing));
}

const char *controller_barrier_wanted_text(
    const struct controller *controller, const wire_barrier_request *request)
{
    struct listing listing = {0};

    if (request->n_tasks == 0)
        return "all members";
    for (size_t i = 0; i < request->n_tasks; i++)
        listing_add_task(&listing, request->tasks[i]->job, request->tasks[i]->index);
    return controller_text(controller, "%s", listing_end(&listing));
}
