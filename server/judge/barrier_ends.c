/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_ends.c -- how a round of a barrier ends, for all who came alike: all have come, one never
 * will, all who came have left, or its time is over.
 */
#include "barrier.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define END_LOG_US_MIN 1000000u

/* The session of it that is not settled; NULL: there is none. */
static const struct judge_session *
live_session(const struct judge *judge, const struct judge_task *task)
{
    const struct judge_session *session = judge->sessions.last;

    while (session != NULL && (session->task != task || session->state == JUDGE_SESSION_SETTLED))
        session = session->in_judge.prev;
    return session;
}

/* In the step's arena; NULL: no memory. */
const wire_message *
judge_barrier_reply(struct judge *judge, uint64_t round, const struct sumac_error *end)
{
    wire_barrier_reply *reply = arena_take(&judge->said->arena, sizeof *reply);

    if (reply == NULL)
        return NULL;
    *reply = (wire_barrier_reply)WIRE_BARRIER_REPLY_INIT;
    reply->round = round;
    reply->status = (uint32_t)end->status;
    reply->reason = (Sumac__V1__Reason)end->reason;
    if (end->status != SUMAC_OK)
        reply->message = judge_text(judge, "%s", end->text);
    return &reply->base;
}

void judge_barrier_drop_waiting(struct judge *judge, struct judge_waiting *waiting)
{
    assert(judge->waiting_pool.used > 0);
    assert(waiting->barrier->waiting.first != NULL);
    LIST_REMOVE(&judge->waiting, waiting, in_judge);
    LIST_REMOVE(&waiting->barrier->waiting, waiting, of_barrier);
    pool_give(&judge->waiting_pool, waiting);
}

/* One line a second: who comes with short times ends thousands of rounds. */
static void log_end(struct judge *judge, const struct sumac_error *end)
{
    const bool is_soon =
        judge->end_logged_us != 0 && judge->now_us - judge->end_logged_us < END_LOG_US_MIN;

    if (is_soon) {
        judge->ends_unlogged++;
        return;
    }
    if (judge->ends_unlogged > 0)
        judge_log(
            judge, "%s (and %" PRIu64 " rounds of barriers since the last such line)", end->text,
            judge->ends_unlogged);
    else
        judge_log(judge, "%s", end->text);
    judge->end_logged_us = judge->now_us;
    judge->ends_unlogged = 0;
}

void judge_barrier_end(
    struct judge *judge, struct judge_barrier *barrier, const struct sumac_error *end)
{
    assert(barrier->open);
    barrier->open = false;
    barrier->round++;
    barrier->end_known = true;
    barrier->end = *end;
    barrier->come_count = 0;
    judge_barrier_changed(judge, barrier);
    if (end->status != SUMAC_OK)
        log_end(judge, end);
    const wire_message *reply = judge_barrier_reply(judge, barrier->round, end);
    while (barrier->waiting.first != NULL) {
        judge_reply_or_fail(judge, barrier->waiting.first->call, reply);
        judge_barrier_drop_waiting(judge, barrier->waiting.first);
    }
    assert(!barrier->open); /* whoever hears of the end comes to another round */
}

static const char *how_it_went(const struct judge_task *task)
{
    assert(task->joined);
    return task->done ? "has left as done" : task->left ? "has left" : "was lost";
}

/* It never will come, or as another attempt: nobody waits for that. */
static void end_without(
    struct judge *judge, struct judge_barrier *barrier, const struct judge_place *place,
    const struct judge_task *task)
{
    struct sumac_error end = {0};

    assert(!judge_barrier_has(barrier, place));
    (void)fail(
        &end, task->done ? SUMAC_FAILED_PRECONDITION : SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "round %" PRIu64 " of barrier \"%.100s\" cannot pass: %s, %s without coming to it; %s",
        barrier->round + 1, barrier->name, judge_barrier_place_text(judge, place),
        how_it_went(task),
        task->done ? "name the tasks that are left, under another name"
                   : "come again when another attempt of it has joined");
    judge_barrier_end(judge, barrier, &end);
}

/* Each task that has a session which is not settled. Returns what these are marked with. */
static uint64_t mark_live(struct judge *judge)
{
    const uint64_t look = ++judge->lists_looked_at;

    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if (session->task != NULL && session->state != JUDGE_SESSION_SETTLED)
            session->task->named = look;
    return look;
}

/* Is no task that came to the open round among those that are marked so? */
static bool
is_deserted(const struct judge *judge, const struct judge_barrier *barrier, uint64_t live)
{
    assert(barrier->open && barrier->come_count > 0);
    for (uint32_t i = 0; i < barrier->place_count; i++) {
        const struct judge_task *task = judge_barrier_has(barrier, &barrier->places[i])
                                            ? judge_barrier_task(judge, &barrier->places[i])
                                            : NULL;
        if (task != NULL && task->named == live)
            return false;
    }
    return true;
}

/* No call waits for its end, and none will. */
static void
end_deserted(struct judge *judge, struct judge_barrier *barrier, const struct judge_task *task)
{
    struct sumac_error end = {0};

    assert(barrier->waiting.first == NULL);
    (void)fail(
        &end, SUMAC_ABORTED, SUMAC_REASON_MEMBER_GONE,
        "round %" PRIu64
        " of barrier \"%.100s\" cannot pass: no task that came to it is left; %s %u "
        "%s; come to the next round",
        barrier->round + 1, barrier->name, task->job, task->index, how_it_went(task));
    judge_barrier_end(judge, barrier, &end);
}

void judge_barriers_settled(struct judge *judge, const struct judge_task *task)
{
    if (judge->phase != JUDGE_RUNNING || !task->joined || live_session(judge, task) != NULL ||
        !rule_holds(judge->config->broken, RULE_barrier_without_the_settled))
        return;
    const uint64_t live = mark_live(judge);
    for (struct judge_barrier *barrier = judge->barriers.first, *next; barrier != NULL;
         barrier = next) {
        next = barrier->in_judge.next;
        const struct judge_place *place =
            barrier->open ? judge_barrier_place(barrier, task->job, task->index) : NULL;
        if (place == NULL)
            continue;
        if (!judge_barrier_has(barrier, place))
            end_without(judge, barrier, place, task);
        else if (is_deserted(judge, barrier, live))
            end_deserted(judge, barrier, task);
    }
}

/* As a round is opened: is somebody gone already? */
void judge_barrier_look_for_gone(struct judge *judge, struct judge_barrier *barrier)
{
    assert(barrier->open);
    assert(barrier->come_count == 1); /* whoever opened it */
    if (!rule_holds(judge->config->broken, RULE_barrier_without_the_settled))
        return;
    const uint64_t look = mark_live(judge);
    for (uint32_t i = 0; i < barrier->place_count; i++) {
        const struct judge_place *place = &barrier->places[i];
        const struct judge_task *task = judge_barrier_task(judge, place);
        if (task != NULL && task->joined && task->named != look &&
            !judge_barrier_has(barrier, place)) {
            end_without(judge, barrier, place, task);
            return;
        }
    }
}

static void end_late(struct judge *judge, struct judge_barrier *barrier)
{
    struct sumac_error end = {0};

    assert(barrier->open);
    assert(judge->now_us >= barrier->until_us);
    (void)fail(
        &end, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_ROUND_TIMED_OUT,
        "round %" PRIu64 " of barrier \"%.100s\" has waited %s for %s; %u of %u tasks have come",
        barrier->round + 1, barrier->name, text_time_ms(barrier->timeout_ms).text,
        judge_barrier_missing_text(judge, barrier), barrier->come_count, barrier->place_count);
    if (rule_holds(judge->config->broken, RULE_barrier_ends_for_all)) {
        judge_barrier_end(judge, barrier, &end);
        return;
    }
    barrier->until_us = judge->now_us + judge_ms(barrier->timeout_ms);
    if (barrier->waiting.first == NULL)
        return;
    const uint64_t call = barrier->waiting.first->call;
    judge_barrier_drop_waiting(judge, barrier->waiting.first);
    judge_reply_or_fail(judge, call, judge_barrier_reply(judge, barrier->round + 1, &end));
}

void judge_barriers_tick(struct judge *judge)
{
    for (struct judge_barrier *barrier = judge->barriers.first, *next; barrier != NULL;
         barrier = next) {
        next = barrier->in_judge.next;
        if (barrier->open && judge->now_us >= barrier->until_us)
            end_late(judge, barrier);
    }
}

void judge_barriers_begin_again(struct judge *judge)
{
    for (struct judge_barrier *barrier = judge->barriers.first; barrier != NULL;
         barrier = barrier->in_judge.next) {
        assert(barrier->waiting.first == NULL);
        barrier->until_us = judge->now_us + judge_ms(barrier->timeout_ms);
        if (barrier->open)
            judge_wake(judge, barrier->until_us);
    }
}
