/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c -- what is being waited for, in sentences: for the statistics, and for a line every few
 * seconds. */
#include "barrier.h"

#include <assert.h>

#include "listing.h"
#include "text.h"

#define WAITS_MAX 256u /* sentences in one answer */
#define ABSENCE_SAID_US_MIN 1000000u

/* A sentence that there is no room for is counted, and not made. */
static bool has_room(struct judge_waits *sentences)
{
    sentences->left_out += sentences->count == WAITS_MAX;
    return sentences->count < WAITS_MAX;
}

static void say(struct judge_waits *sentences, const char *text)
{
    assert(sentences->count < WAITS_MAX);
    sentences->items[sentences->count++] = (char *)text;
}

/* "25 s" */
static const char *so_far(const struct judge *judge, uint64_t since_us)
{
    assert(since_us <= judge->now_us);
    return judge_text(judge, "%s", text_time_us(judge->now_us - since_us).text);
}

static bool settles(const struct judge_session *session)
{
    return session->state == JUDGE_SESSION_CLOSING || session->state == JUDGE_SESSION_DECIDING;
}

static bool joins(const struct judge_session *session)
{
    return session->state < JUDGE_SESSION_OPEN;
}

/* All sessions that wait for that ps to join, or to be settled, in one sentence. */
static void say_held_up(
    const struct judge *judge, struct judge_waits *sentences, const char *what,
    bool (*waits)(const struct judge_session *session), uint32_t ps)
{
    uint64_t since_us = judge->now_us;
    struct listing names = {0};

    assert(ps < judge->ps_count);
    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next) {
        if (!waits(session))
            continue;
        listing_add(&names, session->label);
        const uint64_t began_us = joins(session) ? session->joined_us : session->settling_us;
        since_us = began_us < since_us ? began_us : since_us;
    }
    if (names.count > 0 && has_room(sentences))
        say(sentences,
            judge_text(
                judge, "%s%s of %s wait%s for %s; so far %s", what, names.count == 1 ? "" : "s",
                listing_end(&names), names.count == 1 ? "s" : "", judge_peer_text(judge, ps),
                so_far(judge, since_us)));
}

static const char *join_wait(const struct judge *judge, const struct judge_session *session)
{
    assert(joins(session));
    return judge_text(
        judge, "join of %s waits for %s; so far %s", session->label,
        session->state == JUDGE_SESSION_WAITING ? "its earlier session to be settled"
                                                : "every ps to open it",
        so_far(judge, session->joined_us));
}

static const char *settle_wait(const struct judge *judge, const struct judge_session *session)
{
    assert(settles(session));
    const uint32_t short_of_memory = judge_order_short(judge, session);
    if (short_of_memory < judge->ps_count)
        return judge_text(
            judge, "settle of %s waits for memory for what was refused, as %s has it; so far %s",
            session->label, judge_peer_text(judge, short_of_memory),
            so_far(judge, session->settling_us));
    return judge_text(
        judge, "settle of %s is under way; so far %s", session->label,
        so_far(judge, session->settling_us));
}

static void say_sessions(const struct judge *judge, struct judge_waits *sentences)
{
    const uint32_t missing = judge_peers_missing(judge);

    assert(sentences->items != NULL);
    if (missing < judge->ps_count) {
        say_held_up(judge, sentences, "join", joins, missing);
        say_held_up(judge, sentences, "settle", settles, missing);
        return;
    }
    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if ((joins(session) || settles(session)) && has_room(sentences))
            say(sentences,
                settles(session) ? settle_wait(judge, session) : join_wait(judge, session));
}

/* "worker 0, worker 1", or what a configuration that lists nobody leaves open. */
static const char *expected(const struct judge *judge)
{
    return judge_tasks_any(judge, JUDGE_TASKS_LISTED)
               ? judge_tasks_text(judge, JUDGE_TASKS_LISTED)
               : "any chief or worker, its configuration lists none";
}

/* Nobody knows when a scheduler starts the workers, so only SIGTERM ends it. */
static const char *first_join_wait(const struct judge *judge)
{
    return judge_text(
        judge, "ps 0 waits for the first join, of %s; this wait has no limit, so far %s",
        expected(judge), so_far(judge, judge->config->started_us));
}

static bool is_waited_for(const struct judge *judge, uint32_t ps)
{
    return !judge->peers[ps].met || judge_peer_is_late(judge, ps);
}

/* For a member that is listed and never joined. */
static const char *who_waits(const struct judge *judge)
{
    return judge->initials < judge_step_members(judge)
               ? "start each missing task; the first synchronous step waits until all have joined; "
                 "asynchronous pushes go on"
               : "start each missing task; the other tasks go on";
}

/* NULL: all that are listed have joined, or the first has only just done so. */
static const char *absence(const struct judge *judge)
{
    const uint64_t since_us = judge->now_us - judge->first_join_us;

    assert(judge->first_join_us <= judge->now_us);
    if (!judge->member_joined || !judge_run_has_members(judge) || since_us < ABSENCE_SAID_US_MIN ||
        !judge_tasks_any(judge, JUDGE_TASKS_NEVER_JOINED))
        return NULL;
    return judge_text(
        judge, "%s never joined, %s after the first join; %s",
        judge_tasks_text(judge, JUDGE_TASKS_NEVER_JOINED), text_time_us(since_us).text,
        who_waits(judge));
}

/* What ps 0 itself waits for, beside its calls. */
static void say_own(struct judge *judge, struct judge_waits *sentences)
{
    const char *end_wait = judge_run_wait(judge);

    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (is_waited_for(judge, ps) && has_room(sentences))
            say(sentences, judge_peer_wait(judge, ps));
    if (judge->first_join_us == 0 && has_room(sentences))
        say(sentences, first_join_wait(judge));
    if (end_wait != NULL && has_room(sentences))
        say(sentences, end_wait);
    const char *const missing = absence(judge);
    if (missing != NULL && has_room(sentences))
        say(sentences, missing);
}

static const char *call_wait(const struct judge *judge, const struct judge_call *call)
{
    const uint64_t left_us = call->until_us > judge->now_us ? call->until_us - judge->now_us : 0;

    return judge_text(
        judge, "%s; gives up in %s", judge_call_wait(judge, call), text_time_left(left_us).text);
}

void judge_list_waits(struct judge *judge, uint64_t now_us, struct judge_waits *waits)
{
    *waits = (struct judge_waits){.items = NULL};
    judge_look(judge, now_us);
    waits->items = arena_take(&judge->said->arena, WAITS_MAX * sizeof *waits->items);
    if (waits->items == NULL)
        return;
    say_own(judge, waits);
    say_sessions(judge, waits);
    for (const struct judge_call *call = judge->calls.first; call != NULL;
         call = call->in_judge.next)
        if (has_room(waits))
            say(waits, call_wait(judge, call));
    for (const struct judge_barrier *barrier = judge->barriers.first; barrier != NULL;
         barrier = barrier->in_judge.next)
        if (barrier->open && has_room(waits))
            say(waits, judge_barrier_wait(judge, barrier));
}

void judge_reports_begin(struct judge *judge)
{
    judge->report_us = judge_ms(judge->config->report_ms);
    judge->next_report_us = judge->now_us + judge->report_us;
}

/* Of a wait that has no limit one speaks less and less often. */
static void plan_next(struct judge *judge)
{
    const uint64_t longest_us = judge_ms(judge->config->report_ms) * LANE_REPORTS_APART_MAX;

    if (judge->first_join_us == 0)
        judge->report_us = 2 * judge->report_us < longest_us ? 2 * judge->report_us : longest_us;
    judge->next_report_us = judge->now_us + judge->report_us;
}

/* Once, while others train: the run goes on without them. */
static void tell_absence(struct judge *judge)
{
    assert(judge->first_join_us <= judge->now_us);
    const uint64_t since_us = judge->now_us - judge->first_join_us;
    if (judge->absence_told || !judge->member_joined || !judge_run_has_members(judge) ||
        since_us < judge_ms(judge->config->rejoin_first_ms) ||
        !judge_tasks_any(judge, JUDGE_TASKS_NEVER_JOINED))
        return;
    judge->absence_told = true;
    judge_log(
        judge, "%s never joined, %s after the first join; %s",
        judge_tasks_text(judge, JUDGE_TASKS_NEVER_JOINED), text_time_us(since_us).text,
        who_waits(judge));
}

void judge_report_waits(struct judge *judge)
{
    const char *end_wait = NULL;

    if (judge->phase != JUDGE_RUNNING || judge->now_us < judge->next_report_us)
        return;
    plan_next(judge);
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (is_waited_for(judge, ps))
            judge_log(judge, "%s", judge_peer_wait(judge, ps));
    if (judge->first_join_us == 0)
        judge_log(judge, "%s", first_join_wait(judge));
    end_wait = judge_run_wait(judge);
    if (end_wait != NULL)
        judge_log(judge, "%s", end_wait);
    tell_absence(judge);
}
