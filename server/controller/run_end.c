/* SPDX-License-Identifier: Apache-2.0 */
/* run_end.c -- ends a run at every ps.
 *
 * A run ends of itself in two cases, and succeeds if a member has left as done:
 *   - every listed member has left as done.
 *   - no worker has been in the run for a while.
 *
 * A run fails if:
 *   - a ps lost its state.
 *   - a ps cannot be reached any more.
 *   - a ps never appeared.
 *   - a ps is configured for another cluster.
 *   - a ps has ended, for example because of SIGTERM.
 *
 * In each case ps 0 orders the other ps to end. They flush, then answer. Last, ps 0 orders itself
 * to end, and exits.
 */
#include "barrier.h"
#include "catalogue.h"
#include "controller_members.h"
#include "controller_orders.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define EXIT_TERMINATED 143       /* another ps than ps 0 */
#define EXIT_CODE_NOBODY_DONE 143 /* as for SIGTERM: a scheduler may try again */

/* What a signal to ps 0 makes of the run; the codes are a shell's. */
static const struct {
    int exit_code;
    const char *how;
} stops[] = {
    [LANE_SIGNAL_TERM] = {143, "terminated"},
    [LANE_SIGNAL_INT] = {130, "interrupted (SIGINT)"},
    [LANE_SIGNAL_HUP] = {129, "stopped (SIGHUP)"},
};

static void tell_self(struct controller *controller)
{
    assert(controller->phase != CONTROLLER_ENDED);
    assert(controller->end_reason != SUMAC_REASON_UNSPECIFIED); /* every exit says why */
    struct controller_mask self = {{0}};
    controller_mask_add(&self, controller->config->index);
    controller->phase = CONTROLLER_ENDED;
    controller_row_changed(controller, &controller->row);
    controller_order_end(controller, &self);
}

/* The others first, if there are any. */
static void tell(struct controller *controller, const struct controller_mask *others)
{
    if (controller_mask_empty(others))
        tell_self(controller);
    else
        controller_order_end(controller, others);
}

/* The ps that get the order to end before ps 0 does. A run that ends of itself orders every other
 * ps. Otherwise ps 0 orders only the ps that can receive the order at once. A ps that was never
 * greeted is in no cluster and waits for the next cluster's ps 0. If configurations contradict each
 * other there is no next cluster, so ps 0 orders every ps that it reaches. */
static struct controller_mask
others_to_tell(const struct controller *controller, enum sumac_reason reason)
{
    assert(controller->phase == CONTROLLER_RUNNING);
    struct controller_mask others = {{0}};
    for (uint32_t ps = 0; ps < controller->ps_count; ps++) {
        const struct controller_peer *peer = &controller->peers[ps];
        const bool hears = reason == SUMAC_REASON_WRONG_CLUSTER ? peer->up : peer->greeted;
        if (ps != controller->config->index &&
            (controller->ends_of_itself || (hears && !controller_peer_is_lost(controller, ps))))
            controller_mask_add(&others, ps);
    }
    assert(!controller_mask_has(
        &others, controller->config->index)); /* ps 0 ends last, and then exits */
    return others;
}

void controller_run_over_say(struct controller *controller)
{
    assert(controller->phase != CONTROLLER_RUNNING);
    if (controller->run_over_said || !controller_cluster_is_recorded(controller))
        return;
    assert(controller->end_reason != SUMAC_REASON_UNSPECIFIED);
    controller->run_over_said = true;
    (void)out_add(controller->out, LANE_EFFECT_RUN_OVER);
}

void controller_run_end_again(struct controller *controller)
{
    struct controller_mask others = controller_every_ps(controller);

    assert(controller->phase != CONTROLLER_RUNNING);
    controller_mask_remove(&others, controller->config->index);
    controller->end_began_us = controller->now_us;
    controller->end_until_us = controller->now_us + controller_ms(controller->config->terminate_ms);
    controller->phase = CONTROLLER_ENDING;
    tell(controller, &others);
}

/* The calls that wait fail with `status`. */
static void end_run(
    struct controller *controller, int exit_code, enum sumac_status status,
    enum sumac_reason reason, const char *text)
{
    assert(controller->phase == CONTROLLER_RUNNING);
    assert(reason != SUMAC_REASON_UNSPECIFIED);
    assert((exit_code == 0) == (reason == SUMAC_REASON_RUN_ENDED)); /* to clients: success */
    const bool lost = !controller->ends_of_itself;
    const struct controller_mask others = others_to_tell(controller, reason);
    struct sumac_error end = {0};
    controller->phase = CONTROLLER_ENDING;
    controller_row_changed(controller, &controller->row);
    controller->exit_code = exit_code;
    controller->end_reason = reason;
    controller->end_began_us = controller->now_us;
    controller->end_until_us =
        controller->now_us +
        controller_ms(lost ? controller->config->terminate_ms : controller->config->ps_lost_ms);
    (void)text_print_line(controller->end_text, sizeof controller->end_text, "%s", text);
    out_log(controller->out, "run ends with code %d: %s", exit_code, text);
    tell(controller, &others);
    (void)fail(&end, status, reason, "%s", controller->end_text);
    controller_joins_fail(controller, &end);
    controller_calls_fail(controller, &end);
    controller_leaves_fail(controller, &end);
    controller_barriers_fail(controller, &end);
}

/* The run ends because no member is left. No ps is lost, so every ps gets the order to end, even
 * after a long absence. The pushes of a member that left as done count. If no member left as done,
 * the work is not done, and a new start may help. */
static void end_of_itself(struct controller *controller, bool done, const char *text)
{
    const enum sumac_reason reason = done ? SUMAC_REASON_RUN_ENDED : SUMAC_REASON_TERMINATED;

    controller->ends_of_itself = true;
    end_run(controller, done ? 0 : EXIT_CODE_NOBODY_DONE, status_of_end(reason), reason, text);
}

void controller_run_fail(
    struct controller *controller, enum sumac_reason reason, const char *format, ...)
{
    char text[SUMAC_ERROR_TEXT_BYTES];
    va_list arguments;

    if (controller->phase != CONTROLLER_RUNNING)
        return;
    va_start(arguments, format);
    (void)text_print_line_values(text, sizeof text, format, arguments);
    va_end(arguments);
    if (reason == SUMAC_REASON_WRONG_CLUSTER)
        end_run(controller, LANE_EXIT_MISCONFIGURED, SUMAC_FAILED_PRECONDITION, reason, text);
    else
        end_run(controller, LANE_EXIT_PS_LOST, status_of_end(reason), reason, text);
}

/* ps 0 waits for a settle in progress before it obeys SIGTERM: the settle may belong to the leave
 * of the last member. */
static const struct controller_session *find_settling(const struct controller *controller)
{
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        if (session->state == CONTROLLER_SESSION_CLOSING ||
            session->state == CONTROLLER_SESSION_DECIDING)
            return session;
    return NULL;
}

static void terminated(struct controller *controller)
{
    const enum sumac_reason reason = SUMAC_REASON_TERMINATED;
    const char *text = out_text(
        controller->out,
        "ps 0 was %s before the run ended, and its state goes with it; to go on, start the "
        "whole run again, ps and workers",
        stops[controller->signal].how);

    end_run(controller, stops[controller->signal].exit_code, status_of_end(reason), reason, text);
}

/* A ps that ends loses its state, whatever ended it. A SIGTERM of one ps ends the whole run: every
 * ps exits with the same code, whichever ps received SIGTERM first. */
void controller_ps_ended(
    struct controller *controller, uint32_t ps, enum sumac_reason reason, const char *text)
{
    assert(ps < controller->ps_count);
    if (controller->phase == CONTROLLER_ENDING)
        controller_run_tick(controller); /* the ps has ended: it needs no order to end */
    if (controller->phase != CONTROLLER_RUNNING || reason == SUMAC_REASON_RUN_ENDED)
        return;
    if (controller->terminating) { /* no settle completes without this ps */
        terminated(controller);
        return;
    }
    const char *why = out_text(
        controller->out, "ps %u at %s has ended and its state with it: %s", ps,
        controller->peers[ps].address,
        text == NULL ? "it did not say why; start the whole run again, ps and workers" : text);
    const bool by_signal = reason == SUMAC_REASON_TERMINATED;
    end_run(
        controller, by_signal ? EXIT_TERMINATED : LANE_EXIT_PS_LOST, SUMAC_UNAVAILABLE, reason,
        why);
}

/* ---- a run that ends of itself ---- */

static bool all_listed_done(const struct controller *controller)
{
    bool any = false;

    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller) {
        any = any || task->listed;
        if (task->listed && !task->done)
            return false;
    }
    return any;
}

bool controller_run_has_members(const struct controller *controller)
{
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        if (session->task != NULL && session->state != CONTROLLER_SESSION_SETTLED)
            return true;
    return false;
}

static bool is_memberless(const struct controller *controller)
{
    return controller->member_joined && !controller_run_has_members(controller);
}

static uint32_t patience_ms(const struct controller *controller)
{
    return controller_tasks_any(controller, CONTROLLER_TASKS_NEVER_JOINED)
               ? controller->config->rejoin_first_ms
               : controller->config->rejoin_ms;
}

/* "worker 1 joins", before "worker 0 joins again": the longer wait is for the former. */
static const char *what_it_waits_for(const struct controller *controller)
{
    const bool missed = controller_tasks_any(controller, CONTROLLER_TASKS_NEVER_JOINED);
    const enum controller_tasks which =
        missed ? CONTROLLER_TASKS_NEVER_JOINED : CONTROLLER_TASKS_UNFINISHED;

    if (!controller_tasks_any(controller, which))
        return "another worker joins";
    const char *const tasks = controller_tasks_text(controller, which);
    return out_text(
        controller->out, "%s%s joins%s", strchr(tasks, ',') != NULL ? "one of " : "", tasks,
        missed ? "" : " again");
}

const char *controller_run_wait(const struct controller *controller)
{
    if (controller->phase != CONTROLLER_RUNNING || controller->terminating ||
        !is_memberless(controller))
        return NULL;
    assert(controller->memberless_since_us <= controller->now_us);
    const uint64_t waited_us = controller->now_us - controller->memberless_since_us;
    const uint64_t patience_us = controller_ms(patience_ms(controller));
    const uint64_t left_us = patience_us > waited_us ? patience_us - waited_us : 0;
    return out_text(
        controller->out, "no worker is left; the run ends in %s unless %s",
        text_time_left(left_us).text, what_it_waits_for(controller));
}

/* "2 have". A member that left as done may have joined again since. */
static const char *how_many_left_done(const struct controller *controller)
{
    const uint32_t count = controller_tasks_count(controller, CONTROLLER_TASKS_DONE);

    if (count > 1)
        return out_text(controller->out, "%u have", count);
    return controller->some_left_done ? "one has" : "none has";
}

/* "; lost: worker 1", or "". */
static const char *
with_names(const struct controller *controller, const char *heading, enum controller_tasks which)
{
    return controller_tasks_any(controller, which)
               ? out_text(
                     controller->out, "; %s: %s", heading, controller_tasks_text(controller, which))
               : "";
}

/* The last line names the expected workers that are missing, even if the others left as done. */
static const char *end_of_patience(const struct controller *controller)
{
    return out_text(
        controller->out, "no worker has been in the run for %s, %s left as done%s%s",
        text_time_ms(patience_ms(controller)).text, how_many_left_done(controller),
        with_names(controller, "lost", CONTROLLER_TASKS_LOST),
        with_names(controller, "never joined", CONTROLLER_TASKS_NEVER_JOINED));
}

void controller_run_check(struct controller *controller)
{
    if (controller->phase != CONTROLLER_RUNNING)
        return;
    const bool memberless = is_memberless(controller);
    if (memberless && all_listed_done(controller)) {
        end_of_itself(controller, true, "every listed member has left as done");
        return;
    }
    if (controller->terminating && find_settling(controller) == NULL) {
        terminated(controller);
        return;
    }
    if (controller->terminating || !memberless)
        return;
    assert(controller->memberless_since_us <= controller->now_us);
    if (controller->now_us - controller->memberless_since_us <
        controller_ms(patience_ms(controller)))
        return;
    end_of_itself(controller, controller->some_left_done, end_of_patience(controller));
}

/* ---- telling ---- */

static struct controller_order *find_end(const struct controller *controller)
{
    LIST_FOREACH(struct controller_order, order, &controller->orders, in_controller)
        if (order->kind == CONTROLLER_ORDER_END)
            return order;
    return NULL;
}

void controller_end_complete(struct controller *controller, const struct controller_order *order)
{
    (void)order;
    assert(controller->phase != CONTROLLER_RUNNING);
    if (controller->phase == CONTROLLER_ENDING)
        tell_self(controller);
}

/* A ps that was sent the order and lost its stream has most likely exited, and its answer was lost.
 * The order may be lost instead, so the ps has terminate_ms to reconnect and receive the order
 * again. A run that does not end of itself waits for no disconnected ps. */
static bool is_gone(const struct controller *controller, uint32_t ps)
{
    assert(controller->phase == CONTROLLER_ENDING);
    const struct controller_peer *peer = &controller->peers[ps];
    assert(!peer->up || !peer->ended); /* a ps that reconnected is running */
    const bool told = peer->next_order == NULL;
    const uint64_t down_us = controller->now_us - peer->down_us;
    if (peer->up)
        return false;
    if (peer->ended)
        return true;
    return !controller->ends_of_itself ||
           (told && down_us >= controller_ms(controller->config->terminate_ms));
}

/* Count the ps that will not answer, or need not answer, as answered. */
static void excuse(struct controller *controller, bool everybody)
{
    struct controller_order *end = find_end(controller), done;

    for (uint32_t ps = 0; ps < controller->ps_count && controller->phase == CONTROLLER_ENDING; ps++)
        if (controller_mask_has(&end->pending, ps) && (everybody || is_gone(controller, ps)) &&
            controller_order_confirm(controller, end, ps, &done))
            controller_end_complete(controller, &done);
}

/* Log the ps that ps 0 stops waiting for: their count and the first of them. */
static void say_unanswered(struct controller *controller, uint64_t waited_us)
{
    const struct controller_order *end = find_end(controller);
    uint32_t first = controller->ps_count, count = 0;

    assert(controller->phase == CONTROLLER_ENDING);
    for (uint32_t ps = controller->ps_count; ps-- > 0;)
        if (controller_mask_has(&end->pending, ps)) {
            first = ps;
            count++;
        }
    if (count > 0)
        out_log(
            controller->out,
            "ps 0 ends: it has waited %s for %u ps to finish what is in flight: %s%s",
            text_time_us(waited_us).text, count, controller_peer_text(controller, first),
            count > 1 ? ", and others" : "");
}

void controller_run_end_now(struct controller *controller)
{
    const uint64_t waited_us = controller_ms(controller->config->terminate_ms);

    assert(controller->terminating);
    if (controller->phase == CONTROLLER_RUNNING) {
        const struct controller_session *settling = find_settling(controller);
        if (settling != NULL)
            out_log(
                controller->out, "ps 0 ends: it has waited %s for the settle of %s",
                text_time_us(waited_us).text, settling->label);
        terminated(controller);
    } else {
        say_unanswered(controller, waited_us);
    }
    excuse(controller, true);
}

void controller_run_tick(struct controller *controller)
{
    controller_run_check(controller);
    const bool late =
        controller->phase == CONTROLLER_ENDING && controller->now_us >= controller->end_until_us;
    if (late)
        say_unanswered(controller, controller->now_us - controller->end_began_us);
    excuse(controller, late);
}
