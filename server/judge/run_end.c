/* SPDX-License-Identifier: Apache-2.0 */
/* run_end.c -- how a run ends, and that every ps hears of it.
 *
 * Of itself: every listed member has left as done, or no worker has been in the run for a while;
 * well, if one has left as done. Else badly: a ps lost its state, is not reached any more, never
 * appeared, or was told to stop. Either way the other ps are told and answer (they flush first),
 * then ps 0 tells itself, and exits.
 */
#include "judge_state.h"

#include <assert.h>
#include <string.h>

#include "text.h"

#define EXIT_TERMINATED 143       /* as a shell says of SIGTERM */
#define EXIT_INTERRUPTED 130      /* of SIGINT */
#define EXIT_CODE_NOBODY_DONE 143 /* likewise: a scheduler may try again */

static void tell_self(struct judge *judge)
{
    assert(judge->phase != JUDGE_ENDED);
    assert(judge->end_reason != SUMAC_REASON_UNSPECIFIED); /* every exit says why */
    struct judge_mask self = {{0}};
    judge_mask_add(&self, judge->config->index);
    judge->phase = JUDGE_ENDED;
    judge_cluster_changed(judge);
    judge_order_end(judge, &self);
}

/* Everyone but ps 0; where a ps is lost or was told to stop only those who can hear it at once. An
 * incarnation that was never greeted is in no cluster, and waits for the next one's ps 0. Where the
 * configurations contradict each other there is no next one: whoever is reached is told. */
static struct judge_mask others_to_tell(const struct judge *judge, enum sumac_reason reason)
{
    assert(judge->phase == JUDGE_RUNNING);
    struct judge_mask others = {{0}};
    for (uint32_t ps = 0; ps < judge->ps_count; ps++) {
        const struct judge_peer *peer = &judge->peers[ps];
        const bool hears = reason == SUMAC_REASON_WRONG_CLUSTER ? peer->up : peer->greeted;
        if (ps != judge->config->index &&
            (judge->ends_of_itself || (hears && !judge_peer_is_lost(judge, ps))))
            judge_mask_add(&others, ps);
    }
    assert(!judge_mask_has(&others, judge->config->index)); /* it is told last, and then exits */
    return others;
}

void judge_run_over_say(struct judge *judge)
{
    if (judge->phase == JUDGE_RUNNING || judge->run_over_said || !judge_cluster_is_recorded(judge))
        return;
    assert(judge->end_reason != SUMAC_REASON_UNSPECIFIED);
    judge->run_over_said = true;
    (void)judge_effect_add(judge, JUDGE_EFFECT_RUN_OVER);
}

void judge_run_end_again(struct judge *judge)
{
    struct judge_mask others = judge_every_ps(judge);

    assert(judge->phase != JUDGE_RUNNING);
    judge_mask_remove(&others, judge->config->index);
    judge->end_began_us = judge->now_us;
    judge->end_until_us = judge->now_us + judge_ms(judge->config->terminate_ms);
    judge->phase = JUDGE_ENDING;
    if (judge_mask_empty(&others))
        tell_self(judge);
    else
        judge_order_end(judge, &others);
}

static void end_run(struct judge *judge, int exit_code, enum sumac_reason reason, const char *text)
{
    assert(judge->phase == JUDGE_RUNNING);
    assert(reason != SUMAC_REASON_UNSPECIFIED);
    assert((exit_code == 0) == (reason == SUMAC_REASON_RUN_ENDED)); /* to clients it means: well */
    const bool lost = !judge->ends_of_itself;
    const struct judge_mask others = others_to_tell(judge, reason);
    judge->phase = JUDGE_ENDING;
    judge_cluster_changed(judge);
    judge->exit_code = exit_code;
    judge->end_reason = reason;
    judge->end_began_us = judge->now_us;
    judge->end_until_us =
        judge->now_us + judge_ms(lost ? judge->config->terminate_ms : judge->config->ps_lost_ms);
    (void)text_print_line(judge->end_text, sizeof judge->end_text, "%s", text);
    judge_log(judge, "run ends with code %d: %s", exit_code, text);
    if (judge_mask_empty(&others))
        tell_self(judge);
    else
        judge_order_end(judge, &others);
}

static void
fail_all(struct judge *judge, enum sumac_status status, enum sumac_reason reason, const char *text)
{
    assert(judge->phase != JUDGE_RUNNING);
    judge_joins_fail(judge, status, reason, text);
    judge_calls_fail(judge, status, reason, text);
    judge_leaves_fail(judge, status, reason, text);
    judge_barriers_fail(judge, status, reason, text);
}

/* For want of members: no ps is lost, so all of them hear of it, however long one is away. What a
 * member that left as done has pushed counts; where none did the work is not done, and starting
 * again may help. */
static void end_of_itself(struct judge *judge, bool done, const char *text)
{
    const enum sumac_reason reason = done ? SUMAC_REASON_RUN_ENDED : SUMAC_REASON_TERMINATED;

    judge->ends_of_itself = true;
    end_run(judge, done ? 0 : EXIT_CODE_NOBODY_DONE, reason, text);
    fail_all(judge, status_of_end(reason), reason, judge->end_text);
}

void judge_state_lost(struct judge *judge, const char *text)
{
    if (judge->phase != JUDGE_RUNNING)
        return;
    end_run(judge, LANE_EXIT_PS_LOST, SUMAC_REASON_STATE_LOST, text);
    fail_all(judge, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, judge->end_text);
}

void judge_ps_missing(struct judge *judge, const char *text)
{
    if (judge->phase != JUDGE_RUNNING)
        return;
    end_run(judge, LANE_EXIT_PS_LOST, SUMAC_REASON_PS_MISSING, text);
    fail_all(judge, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING, judge->end_text);
}

void judge_ps_misconfigured(struct judge *judge, const char *text)
{
    if (judge->phase != JUDGE_RUNNING)
        return;
    end_run(judge, LANE_EXIT_MISCONFIGURED, SUMAC_REASON_WRONG_CLUSTER, text);
    fail_all(judge, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER, judge->end_text);
}

/* ps 0 waits for a settle that is under way before it obeys SIGTERM: it may have been the last
 * one's leave. */
static const struct judge_session *find_settling(const struct judge *judge)
{
    const struct judge_session *session = judge->sessions.first;

    while (session != NULL && session->state != JUDGE_SESSION_CLOSING &&
           session->state != JUDGE_SESSION_DECIDING)
        session = session->in_judge.next;
    return session;
}

static void terminated(struct judge *judge)
{
    const char *text = judge_text(
        judge,
        "ps 0 was %s before the run ended, and its state goes with it; to go on, start the "
        "whole run again, ps and workers",
        judge->interrupted ? "interrupted (SIGINT)" : "terminated");

    end_run(
        judge, judge->interrupted ? EXIT_INTERRUPTED : EXIT_TERMINATED, SUMAC_REASON_TERMINATED,
        text);
    fail_all(judge, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED, judge->end_text);
}

/* Its state goes with it, whatever it was that ended it. SIGTERM of one is SIGTERM of the run: the
 * code of all is the same, whichever of them heard of it first. */
void judge_ps_ended(struct judge *judge, uint32_t ps, enum sumac_reason reason, const char *text)
{
    assert(ps < judge->ps_count);
    if (judge->phase == JUDGE_ENDING)
        judge_run_tick(judge); /* it is told, or need not be */
    if (judge->phase != JUDGE_RUNNING || reason == SUMAC_REASON_RUN_ENDED)
        return;
    if (judge->terminating) { /* no settle will be through without it */
        terminated(judge);
        return;
    }
    const char *why = judge_text(
        judge, "ps %u at %s has ended and its state with it: %s", ps, judge->peers[ps].address,
        text == NULL ? "it did not say why; start the whole run again, ps and workers" : text);
    const bool by_signal = reason == SUMAC_REASON_TERMINATED;
    end_run(judge, by_signal ? EXIT_TERMINATED : LANE_EXIT_PS_LOST, reason, why);
    fail_all(judge, SUMAC_UNAVAILABLE, reason, judge->end_text);
}

/* ---- a run that ends of itself ---- */

static bool all_listed_done(const struct judge *judge)
{
    bool any = false;

    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next) {
        any = any || task->listed;
        if (task->listed && !task->done)
            return false;
    }
    return any;
}

/* Members that are open, or about to be, or not settled yet. */
bool judge_run_has_members(const struct judge *judge)
{
    const struct judge_session *session = judge->sessions.first;

    while (session != NULL && (session->task == NULL || session->state == JUDGE_SESSION_SETTLED))
        session = session->in_judge.next;
    return session != NULL;
}

static bool is_memberless(const struct judge *judge)
{
    return judge->member_joined && !judge_run_has_members(judge);
}

static uint32_t patience_ms(const struct judge *judge)
{
    return judge_tasks_any(judge, JUDGE_TASKS_NEVER_JOINED) ? judge->config->rejoin_first_ms
                                                            : judge->config->rejoin_ms;
}

/* "worker 1 joins", before "worker 0 joins again": the longer wait is for the former. */
static const char *what_it_waits_for(const struct judge *judge)
{
    const bool missed = judge_tasks_any(judge, JUDGE_TASKS_NEVER_JOINED);
    const enum judge_tasks which = missed ? JUDGE_TASKS_NEVER_JOINED : JUDGE_TASKS_UNFINISHED;

    if (!judge_tasks_any(judge, which))
        return "another worker joins";
    const char *const tasks = judge_tasks_text(judge, which);
    return judge_text(
        judge, "%s%s joins%s", strchr(tasks, ',') != NULL ? "one of " : "", tasks,
        missed ? "" : " again");
}

const char *judge_run_wait(const struct judge *judge)
{
    if (judge->phase != JUDGE_RUNNING || judge->terminating || !is_memberless(judge))
        return NULL;
    assert(judge->memberless_since_us <= judge->now_us);
    const uint64_t waited_us = judge->now_us - judge->memberless_since_us;
    const uint64_t patience_us = judge_ms(patience_ms(judge));
    const uint64_t left_us = patience_us > waited_us ? patience_us - waited_us : 0;
    return judge_text(
        judge, "no worker is left; the run ends in %s unless %s", text_time_left(left_us).text,
        what_it_waits_for(judge));
}

/* "2 have". One that left as done may have come back since. */
static const char *how_many_left_done(const struct judge *judge)
{
    const uint32_t count = judge_tasks_count(judge, JUDGE_TASKS_DONE);

    if (count > 1)
        return judge_text(judge, "%u have", count);
    return judge->some_left_done ? "one has" : "none has";
}

/* "; lost: worker 1", or "". */
static const char *
with_names(const struct judge *judge, const char *heading, enum judge_tasks which)
{
    return judge_tasks_any(judge, which)
               ? judge_text(judge, "; %s: %s", heading, judge_tasks_text(judge, which))
               : "";
}

/* Who was expected and is not coming is in the last line, however well the others did. */
static const char *end_of_patience(const struct judge *judge)
{
    return judge_text(
        judge, "no worker has been in the run for %s, %s left as done%s%s",
        text_time_ms(patience_ms(judge)).text, how_many_left_done(judge),
        with_names(judge, "lost", JUDGE_TASKS_LOST),
        with_names(judge, "never joined", JUDGE_TASKS_NEVER_JOINED));
}

void judge_run_check(struct judge *judge)
{
    if (judge->phase != JUDGE_RUNNING)
        return;
    const bool memberless = is_memberless(judge);
    if (memberless && all_listed_done(judge)) {
        end_of_itself(judge, true, "every listed member has left as done");
        return;
    }
    if (judge->terminating && find_settling(judge) == NULL) {
        terminated(judge);
        return;
    }
    if (judge->terminating || !memberless)
        return;
    assert(judge->memberless_since_us <= judge->now_us);
    if (judge->now_us - judge->memberless_since_us < judge_ms(patience_ms(judge)))
        return;
    end_of_itself(judge, judge->some_left_done, end_of_patience(judge));
}

/* ---- telling ---- */

static struct judge_order *find_end(const struct judge *judge)
{
    struct judge_order *order = judge->orders.first;

    while (order != NULL && order->kind != JUDGE_ORDER_END)
        order = order->in_judge.next;
    return order;
}

void judge_end_complete(struct judge *judge)
{
    assert(judge->phase != JUDGE_RUNNING);
    if (judge->phase == JUDGE_ENDING)
        tell_self(judge);
}

/* A ps that was told and whose stream is gone has most likely exited, and its answer was lost. Or
 * the order was: so it has a while to come back and be told again. Where a ps is lost nobody waits
 * for another. */
static bool is_gone(const struct judge *judge, uint32_t ps)
{
    assert(judge->phase == JUDGE_ENDING);
    const struct judge_peer *peer = &judge->peers[ps];
    assert(!peer->up || !peer->ended); /* who came back has not ended */
    const bool told = peer->next_order == NULL;
    const uint64_t down_us = judge->now_us - peer->down_us;
    if (peer->up)
        return false;
    if (peer->ended)
        return true;
    return !judge->ends_of_itself || (told && down_us >= judge_ms(judge->config->terminate_ms));
}

/* The ps that will not answer, or need not, count as if they had. */
static void excuse(struct judge *judge, bool everybody)
{
    struct judge_order *end = find_end(judge);

    for (uint32_t ps = 0; ps < judge->ps_count && judge->phase == JUDGE_ENDING; ps++)
        if (everybody || is_gone(judge, ps))
            judge_order_answered(judge, end, ps, NULL);
}

/* For whom ps 0 waits no longer: the first of them, and how many there are. */
static void say_unanswered(struct judge *judge, uint64_t waited_us)
{
    const struct judge_order *end = find_end(judge);
    uint32_t first = judge->ps_count, count = 0;

    assert(judge->phase == JUDGE_ENDING);
    for (uint32_t ps = judge->ps_count; ps-- > 0;)
        if (judge_mask_has(&end->pending, ps)) {
            first = ps;
            count++;
        }
    if (count > 0)
        judge_log(
            judge, "ps 0 ends: it has waited %s for %u ps to finish what is in flight: %s%s",
            text_time_us(waited_us).text, count, judge_peer_text(judge, first),
            count > 1 ? ", and others" : "");
}

void judge_run_end_now(struct judge *judge)
{
    const uint64_t waited_us = judge_ms(judge->config->terminate_ms);

    assert(judge->terminating);
    if (judge->phase == JUDGE_RUNNING) {
        const struct judge_session *settling = find_settling(judge);
        if (settling != NULL)
            judge_log(
                judge, "ps 0 ends: it has waited %s for the settle of %s",
                text_time_us(waited_us).text, settling->label);
        terminated(judge);
    } else {
        say_unanswered(judge, waited_us);
    }
    excuse(judge, true);
}

void judge_run_tick(struct judge *judge)
{
    judge_run_check(judge);
    const bool late = judge->phase == JUDGE_ENDING && judge->now_us >= judge->end_until_us;
    if (late)
        say_unanswered(judge, judge->now_us - judge->end_began_us);
    excuse(judge, late);
}
