/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c -- Barrier: who comes to a round, who waits for it, and how it ends for all.
 *
 * 1. The request is checked against the barrier of its name, which is made if there is none.
 * 2. It names the round after the last whose end it has heard of, so that one that is said again is
 *    the same arrival: to the open round, to the next, or to one that is over, whose end it is
 * told.
 * 3. The round ends when all tasks have come; or when the first deadline of those that came is
 *    over; or when a task that has not come is settled, and no other attempt of it is there; or
 *    when no task that came has an open session.
 */
#include "barrier.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "listing.h"
#include "text.h"
#include "controller_members.h"

#define PLACES_FREE_SHARE 8u /* of the places for calls: left for those who have not come yet */

/* ---- calls that wait */

void controller_barriers_of_session_fail(
    struct controller *controller, const struct controller_session *session)
{
    LIST_FOREACH_SAFE(struct controller_waiting, waiting, &controller->waiting, in_controller) {
        if (waiting->session != session)
            continue;
        controller_fail_closed(controller, waiting->call, session);
        controller_barrier_drop_waiting(controller, waiting);
    }
}

void controller_barriers_fail(struct controller *controller, const struct sumac_error *error)
{
    while (controller->waiting.first != NULL) {
        controller_fail_with(controller, controller->waiting.first->call, error);
        controller_barrier_drop_waiting(controller, controller->waiting.first);
    }
}

void controller_barrier_call_forget(struct controller *controller, uint64_t call)
{
    LIST_FOREACH_SAFE(struct controller_waiting, waiting, &controller->waiting, in_controller)
        if (waiting->call == call)
            controller_barrier_drop_waiting(controller, waiting);
}

/* ---- the request */

static const char *
tasks_text(const struct controller *controller, const struct controller_barrier *barrier)
{
    struct listing listing = {0};

    if (barrier->of_all)
        return "all members";
    for (uint32_t i = 0; i < barrier->place_count; i++)
        listing_add_task(
            &listing, controller_barrier_job(&barrier->places[i]), barrier->places[i].index);
    return out_text(controller->out, "%s", listing_end(&listing));
}

static const char *
wanted_text(const struct controller *controller, const wire_barrier_request *request)
{
    struct listing listing = {0};

    if (request->n_tasks == 0)
        return "all members";
    for (size_t i = 0; i < request->n_tasks; i++)
        listing_add_task(&listing, request->tasks[i]->job, request->tasks[i]->index);
    return out_text(controller->out, "%s", listing_end(&listing));
}

static enum sumac_status check_name(const char *name, struct sumac_error *error)
{
    const size_t bytes = strlen(name);

    if (bytes == 0 || bytes > CONTROLLER_BARRIER_NAME_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "a barrier's name has 1 to %u bytes, given %zu",
            CONTROLLER_BARRIER_NAME_BYTES_MAX, bytes);
    if (text_has_control(name, bytes))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "the barrier's name has a control character, shown here as ?: %s", name);
    return SUMAC_OK;
}

static bool is_after(const wire_task_name *task, const wire_task_name *before)
{
    const bool chief = controller_barrier_is_job(task->job, true),
               chief_before = controller_barrier_is_job(before->job, true);

    return chief == chief_before ? task->index > before->index : chief_before;
}

static enum sumac_status check_task(
    const struct controller *controller, const wire_barrier_request *request, size_t i,
    struct sumac_error *error)
{
    const wire_task_name *name = request->tasks[i];

    if (!controller_barrier_is_job(name->job, true) && !controller_barrier_is_job(name->job, false))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "barrier \"%.100s\" names task %.64s %u; only tasks of the jobs chief and worker are "
            "members",
            request->name, name->job, name->index);
    if (i > 0 && !is_after(name, request->tasks[i - 1]))
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "barrier \"%.100s\" names %s %u after %s %u; name the chief first, then the workers by "
            "index, each once",
            request->name, name->job, name->index, request->tasks[i - 1]->job,
            request->tasks[i - 1]->index);
    const struct controller_task *task = controller_task_find(controller, name);
    if (controller->members_listed && (task == NULL || !task->listed))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "barrier \"%.100s\" names %s %u, and the cluster lists %s", request->name, name->job,
            name->index, controller_tasks_text(controller, CONTROLLER_TASKS_LISTED));
    return SUMAC_OK;
}

static enum sumac_status check_tasks(
    const struct controller *controller, const struct controller_session *session,
    const wire_barrier_request *request, struct sumac_error *error)
{
    const uint32_t tasks_max = controller_barrier_tasks_max(controller);
    bool has_own = request->n_tasks == 0;

    if (request->n_tasks > tasks_max)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "barrier \"%.100s\" names %zu tasks, and %u are the most (a 32nd of --calls-max, at "
            "most %u)",
            request->name, request->n_tasks, tasks_max, WIRE_BARRIER_TASKS_MAX);
    for (size_t i = 0; i < request->n_tasks; i++) {
        const enum sumac_status status = check_task(controller, request, i, error);
        if (status != SUMAC_OK)
            return status;
        has_own |= request->tasks[i]->index == session->index &&
                   strcmp(request->tasks[i]->job, session->job) == 0;
    }
    if (!has_own)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "%s comes to barrier \"%.100s\", which it says is of %s: name it among them",
            session->label, request->name, wanted_text(controller, request));
    return SUMAC_OK;
}

static enum sumac_status check(
    const struct controller *controller, const struct controller_session *session,
    const wire_barrier_request *request, struct sumac_error *error)
{
    if (controller->terminating)
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
            "ps 0 was told to stop and ends every barrier");
    if (session->task == NULL)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "%s is no member, and only members come to a barrier: open the client as a member",
            session->label);
    if (request->round > INT64_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "round %" PRIu64 " of a barrier is asked for; they count from 1", request->round);
    if (check_name(request->name, error) != SUMAC_OK)
        return error->status;
    return check_tasks(controller, session, request, error);
}

/* ---- all members */

/* How many are listed now, all of them chiefs and workers; 0: it is not known of all. */
static uint32_t count_members(const struct controller *controller)
{
    return controller->members_listed || controller->members_whole
               ? controller_tasks_count(controller, CONTROLLER_TASKS_LISTED)
               : 0;
}

static enum sumac_status check_members(
    const struct controller *controller, const struct controller_session *session,
    const wire_barrier_request *request, struct sumac_error *error)
{
    const uint32_t count = count_members(controller),
                   tasks_max = controller_barrier_tasks_max(controller);

    if (count == 0)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "barrier \"%.100s\" is of all members, and ps 0 has no list of them: name its tasks, "
            "or list every chief and worker in the cluster configuration of ps 0",
            request->name);
    if (!session->task->listed)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "barrier \"%.100s\" is of all members, which are %s, and %s is none of them: list it "
            "in the "
            "cluster configuration of every task",
            request->name, controller_tasks_text(controller, CONTROLLER_TASKS_LISTED),
            session->label);
    if (count > tasks_max)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "barrier \"%.100s\" is of all %u members, and %u tasks are the most (a 32nd of "
            "--calls-max, at most %u)",
            request->name, count, tasks_max, WIRE_BARRIER_TASKS_MAX);
    return SUMAC_OK;
}

static struct controller_place place_of(const char *job, uint32_t index)
{
    return (struct controller_place){.chief = controller_barrier_is_job(job, true), .index = index};
}

/* Those that were there keep what they have come to. */
static void fill_with_members(
    struct controller *controller, struct controller_place *places,
    const struct controller_barrier *old)
{
    uint32_t count = 0;

    assert(places != NULL);
    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller) {
        if (!task->listed)
            continue;
        const struct controller_place *place =
            old == NULL ? NULL : controller_barrier_place(old, task->key.job, task->key.index);
        places[count++] = place != NULL ? *place : place_of(task->key.job, task->key.index);
    }
}

/* ---- the barrier of that name */

/* Between two rounds: joins may have listed more members. */
static bool renew_members(struct controller *controller, struct controller_barrier *barrier)
{
    const uint32_t count = count_members(controller);
    const struct controller_barrier old = *barrier;

    assert(!barrier->open);
    if (count == barrier->place_count)
        return true;
    if (!controller_barrier_resize(controller, barrier, count))
        return false;
    fill_with_members(controller, barrier->places, &old);
    controller_barrier_places_give(controller, &old);
    controller_barrier_changed(controller, barrier);
    return true;
}

static bool is_same(const struct controller_barrier *barrier, const wire_barrier_request *request)
{
    if (barrier->of_all || request->n_tasks == 0)
        return barrier->of_all && request->n_tasks == 0;
    if (barrier->place_count != request->n_tasks)
        return false;
    for (uint32_t i = 0; i < barrier->place_count; i++)
        if (barrier->places[i].index != request->tasks[i]->index ||
            !controller_barrier_is_job(request->tasks[i]->job, barrier->places[i].chief))
            return false;
    return true;
}

/* Its rounds are counted anew from the one that is named, when somebody comes to it again. False:
 * a round of each is open. */
static bool forget_one(struct controller *controller)
{
    LIST_FOREACH(struct controller_barrier, barrier, &controller->barriers, in_controller) {
        if (barrier->open)
            continue;
        controller_barrier_forget(controller, barrier);
        assert(controller->barriers_by_name.count < CONTROLLER_BARRIERS_MAX);
        return true;
    }
    return false;
}

static enum sumac_status check_arrivals(
    const struct controller *controller, const struct controller_session *session,
    const wire_barrier_request *request, struct sumac_error *error)
{
    uint32_t count = 0;

    LIST_FOREACH(const struct controller_barrier, barrier, &controller->barriers, in_controller) {
        const struct controller_place *place =
            controller_barrier_place(barrier, session->job, session->index);
        count += place != NULL && controller_barrier_has(barrier, place);
    }
    assert(count <= CONTROLLER_ARRIVALS_OF_TASK_MAX);
    if (count < CONTROLLER_ARRIVALS_OF_TASK_MAX)
        return SUMAC_OK;
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "%s has come to %u barriers whose rounds are open, which are the most: come to %.100s "
        "later",
        session->label, count, request->name);
}

static enum sumac_status make(
    struct controller *controller, const wire_barrier_request *request,
    struct controller_barrier **made, struct sumac_error *error)
{
    const bool of_all = request->n_tasks == 0;
    const uint32_t count = of_all ? count_members(controller) : (uint32_t)request->n_tasks;

    assert(count > 0);
    assert(count <= controller_barrier_tasks_max(controller));
    if (controller->barriers_by_name.count >= CONTROLLER_BARRIERS_MAX && !forget_one(controller))
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "rounds of %zu barriers are open, and %u are the most: come to %.100s later",
            controller->barriers_by_name.count, CONTROLLER_BARRIERS_MAX, request->name);
    struct controller_barrier *barrier = controller_barrier_add(controller, request->name, count);
    if (barrier == NULL)
        return fail_for_memory(
            error, "ps 0 has no memory for barrier \"%.100s\" of %u tasks", request->name, count);
    barrier->of_all = of_all;
    if (of_all)
        fill_with_members(controller, barrier->places, NULL);
    for (uint32_t i = 0; i < request->n_tasks; i++)
        barrier->places[i] = place_of(request->tasks[i]->job, request->tasks[i]->index);
    *made = barrier;
    return SUMAC_OK;
}

static enum sumac_status find_or_make(
    struct controller *controller, const struct controller_session *session,
    const wire_barrier_request *request, struct controller_barrier **barrier,
    struct sumac_error *error)
{
    if (request->n_tasks == 0 && check_members(controller, session, request, error) != SUMAC_OK)
        return error->status;
    *barrier = controller_barrier_find(controller, request->name);
    const struct controller_place *place =
        *barrier == NULL ? NULL : controller_barrier_place(*barrier, session->job, session->index);
    if ((place == NULL || !controller_barrier_has(*barrier, place)) &&
        check_arrivals(controller, session, request, error) != SUMAC_OK)
        return error->status;
    if (*barrier == NULL)
        return make(controller, request, barrier, error);
    if (!is_same(*barrier, request))
        return fail(
            error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
            "barrier \"%.100s\" is of %s, and this call says of %s: all who come to it "
            "name the same",
            request->name, tasks_text(controller, *barrier), wanted_text(controller, request));
    if ((*barrier)->of_all && !(*barrier)->open && !renew_members(controller, *barrier))
        return fail_for_memory(
            error, "ps 0 has no memory for barrier \"%.100s\" of all members", request->name);
    return SUMAC_OK;
}

/* ---- an arrival */

/* Round 0 is the open one, or the next. A session that has come to a round that is over may say 0
 * because it has not heard of the end, or because it does not count rounds: it names the round. */
static bool must_name_round(
    const struct controller *controller, const struct controller_barrier *barrier,
    const struct controller_place *place, const struct controller_session *session, uint64_t named)
{
    assert(session->task != NULL);
    assert(session->attempt > 0);
    return named == 0 && place->round != 0 && place->attempt == session->attempt &&
           place->round <= barrier->round &&
           rule_holds(controller->config->broken, RULE_arrival_counts_once);
}

static void answer_must_name(
    struct controller *controller, uint64_t call, const struct controller_barrier *barrier,
    const struct controller_place *place)
{
    struct sumac_error why = {0};

    (void)fail(
        &why, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_ROUND_OVER,
        "%s %u calls barrier \"%.100s\" with round 0, and has come to its round %" PRIu64
        ", which is over: call it with round %" PRIu64
        " to hear how that one ended, or with round %" PRIu64 " to come to the next",
        controller_barrier_job(place), place->index, barrier->name, place->round, place->round,
        barrier->round + 1);
    controller_reply_or_fail(
        controller, call, controller_barrier_reply(controller, place->round, &why));
}

static void answer_over(
    struct controller *controller, uint64_t call, const struct controller_barrier *barrier,
    uint64_t round)
{
    struct sumac_error forgotten = {0};

    assert(round <= barrier->round);
    if (round == barrier->round && barrier->end_known) {
        controller_reply_or_fail(
            controller, call, controller_barrier_reply(controller, round, &barrier->end));
        return;
    }
    (void)fail(
        &forgotten, SUMAC_ABORTED, SUMAC_REASON_ROUND_OVER,
        "round %" PRIu64
        " of barrier \"%.100s\" is over, and how it ended is not known any more; the "
        "next is round %" PRIu64,
        round, barrier->name, barrier->round + 1);
    controller_reply_or_fail(
        controller, call, controller_barrier_reply(controller, barrier->round, &forgotten));
}

/* Of two calls of one session the later one is answered. */
static void take_place_of(
    struct controller *controller, struct controller_barrier *barrier,
    const struct controller_session *session)
{
    LIST_FOREACH_SAFE(struct controller_waiting, waiting, &barrier->waiting, of_barrier) {
        if (waiting->session != session)
            continue;
        controller_fail(
            controller, waiting->call, SUMAC_ABORTED, SUMAC_REASON_TIMED_OUT,
            "a retry of this call took its place");
        controller_barrier_drop_waiting(controller, waiting);
    }
}

static void note_deadline(
    struct controller *controller, struct controller_barrier *barrier, uint32_t timeout_ms)
{
    assert(barrier->open);
    const uint32_t wanted_ms = timeout_ms == 0 ? CONTROLLER_CREATE_MS : timeout_ms;
    const uint32_t ms = wanted_ms < WIRE_ROUND_MS_MAX ? wanted_ms : WIRE_ROUND_MS_MAX;
    const uint64_t until_us = controller->now_us + controller_ms(ms);

    if (barrier->come_count == 0)
        barrier->opened_us = controller->now_us;
    else if (barrier->until_us <= until_us)
        return;
    barrier->until_us = until_us;
    barrier->timeout_ms = ms;
    controller_barrier_changed(controller, barrier);
    controller_wake(controller, until_us);
}

/* A call that waits takes a place that another needs in order to come: where few are left, the one
 * that has waited longest asks again. */
static void leave_places(struct controller *controller)
{
    const uint32_t places = controller_barrier_tasks_max(controller);
    struct controller_waiting *oldest = controller->waiting.first;

    assert(oldest != NULL);
    if (controller->waiting_pool.used <= places - places / PLACES_FREE_SHARE)
        return;
    controller_fail(
        controller, oldest->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "%s has come to round %" PRIu64
        " of barrier \"%.100s\", and counts; %zu calls wait at barriers, "
        "of %u that may be open: ask again in a while how it ends",
        oldest->session->label, oldest->barrier->round + 1, oldest->barrier->name,
        controller->waiting_pool.used, places);
    controller_barrier_drop_waiting(controller, oldest);
}

/* It has come, and its call waits. */
static void come(
    struct controller *controller, struct controller_waiting *waiting,
    struct controller_place *place, uint32_t timeout_ms)
{
    struct controller_barrier *barrier = waiting->barrier;
    const bool opens = !barrier->open;

    assert(waiting->call != 0);
    assert(waiting->session->state <= CONTROLLER_SESSION_OPEN);
    assert(place->round <= barrier->round + 1);
    barrier->open = true;
    take_place_of(controller, barrier, waiting->session);
    LIST_APPEND(&controller->waiting, waiting, in_controller);
    LIST_APPEND(&barrier->waiting, waiting, of_barrier);
    note_deadline(controller, barrier, timeout_ms);
    barrier->come_count += !controller_barrier_has(barrier, place);
    if (!controller_barrier_has(barrier, place) || place->attempt != waiting->session->attempt)
        controller_barrier_changed(controller, barrier);
    place->round = barrier->round + 1;
    place->attempt = waiting->session->attempt;
    assert(barrier->come_count <= barrier->place_count);
    if (barrier->come_count == barrier->place_count)
        controller_barrier_end(controller, barrier, &(struct sumac_error){0});
    else if (opens)
        controller_barrier_look_for_gone(controller, barrier);
    if (controller->waiting.first != NULL)
        leave_places(controller);
}

/* No round of it has ended since ps 0 knows the name, which it may have known before: somebody who
 * has heard of more rounds than those who came says so, and comes. They ask again, each for the
 * round it means. */
static void
count_on_from(struct controller *controller, struct controller_barrier *barrier, uint64_t round)
{
    assert(!barrier->end_known);
    assert(round > barrier->round + 1);
    while (barrier->waiting.first != NULL) {
        struct controller_waiting *waiting = barrier->waiting.first;
        controller_fail(
            controller, waiting->call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "barrier \"%.100s\" had been forgotten, and is at round %" PRIu64 ": come again",
            barrier->name, round);
        controller_barrier_drop_waiting(controller, waiting);
    }
    for (uint32_t i = 0; i < barrier->place_count; i++)
        barrier->places[i].round = barrier->places[i].attempt = 0;
    barrier->round = round - 1;
    barrier->come_count = 0;
    barrier->open = false;
}

/* False: the call was answered, or failed. */
static bool may_come(
    struct controller *controller, const struct lane_event *event,
    const struct controller_session *session, struct controller_barrier *barrier)
{
    const wire_barrier_request *request = (const wire_barrier_request *)event->request;
    const struct controller_place *place =
        controller_barrier_place(barrier, session->job, session->index);

    if (place == NULL) {
        controller_fail(
            controller, event->call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "%s was listed after round %" PRIu64
            " of barrier \"%.100s\" had begun without it: come to "
            "the next",
            session->label, barrier->round + 1, barrier->name);
        return false;
    }
    if (must_name_round(controller, barrier, place, session, request->round)) {
        answer_must_name(controller, event->call, barrier, place);
        return false;
    }
    const bool is_next =
        request->round == 0 || !rule_holds(controller->config->broken, RULE_arrival_counts_once);
    const uint64_t round = is_next ? barrier->round + 1 : request->round;
    if (round > barrier->round + 1 && !barrier->end_known)
        count_on_from(controller, barrier, round);
    if (round <= barrier->round)
        answer_over(controller, event->call, barrier, round);
    else if (round > barrier->round + 1)
        controller_fail(
            controller, event->call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_MALFORMED,
            "%s comes to round %" PRIu64 " of barrier \"%.100s\", and the next is round %" PRIu64,
            session->label, round, barrier->name, barrier->round + 1);
    return round == barrier->round + 1;
}

void controller_barrier_call(struct controller *controller, const struct lane_event *event)
{
    const wire_barrier_request *request = (const wire_barrier_request *)event->request;
    struct controller_session *session =
        controller_session_of_call(controller, event->call, &request->session_id);
    struct controller_barrier *barrier = NULL;
    struct sumac_error error = {0};

    if (session == NULL)
        return;
    struct controller_waiting *waiting = pool_take(&controller->waiting_pool);
    if (waiting == NULL)
        (void)fail_for_memory(
            &error, "ps 0 has no memory to let %s wait at a barrier: come again later",
            session->label);
    else if (check(controller, session, request, &error) == SUMAC_OK)
        (void)find_or_make(controller, session, request, &barrier, &error);
    if (error.status != SUMAC_OK)
        controller_fail_with(controller, event->call, &error);
    if (error.status != SUMAC_OK || !may_come(controller, event, session, barrier)) {
        pool_give(&controller->waiting_pool, waiting);
        return;
    }
    waiting->call = event->call;
    waiting->barrier = barrier;
    waiting->session = session;
    come(
        controller, waiting, controller_barrier_place(barrier, session->job, session->index),
        request->timeout_ms);
}
