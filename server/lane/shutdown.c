/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown.c -- how a ps comes to its end: SIGTERM, the run's end, a state that is lost, a ps 0
 * that is silent.
 *
 * What is in flight is finished first: parts that have begun to arrive, vector work, answers that
 * wait to be written. Parts that begin later are not taken, so nobody was promised anything. Their
 * push streams end with the reason of the ps's end, once all that was taken from their sessions is
 * answered. The client may have a part of the same push on another ps. That ps waits for the commit
 * until the client goes. When a ps is lost the run's state is, and no part is finished for its
 * sake: its commit may never come.
 */
#include "handlers.h"

#include "end_status.h"
#include "error.h"
#include "listing.h"
#include "loopback.h"
#include "silence.h"

#define EXIT_TERMINATED 143 /* as a shell says of SIGTERM */
#define START_PS0 "start ps 0 there, or correct its address"
#define MOVE_PS0 "correct the host, --port or --bind of ps 0, or that address in the list"

/* On ps 0 its controller has logged why the run ends, when it ended it. */
static void exit_now(struct lane *lane, int exit_code, enum sumac_reason reason, const char *text)
{
    assert(reason != SUMAC_REASON_UNSPECIFIED || exit_code == 0 || lane->ended);
    if (lane->exited)
        return;
    lane->exited = true;
    out_exit(&lane->out, exit_code, reason, text, lane->index == 0 && lane->ended ? "" : text);
}

static void stop_serving(struct lane *lane)
{
    if (!lane->serving)
        return;
    lane->serving = false;
    out_add(&lane->out, LANE_EFFECT_SERVING)->serving = false;
}

void lane_shutdown_lost(struct lane *lane, enum sumac_reason reason, const char *format, ...)
{
    char text[SUMAC_ERROR_TEXT_BYTES];
    va_list arguments;

    assert(reason != SUMAC_REASON_UNSPECIFIED);
    va_start(arguments, format);
    (void)text_print_line_values(text, sizeof text, format, arguments);
    va_end(arguments);
    stop_serving(lane);
    exit_now(lane, LANE_EXIT_PS_LOST, reason, text);
}

void lane_shutdown_misconfigured(struct lane *lane, const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    stop_serving(lane);
    exit_now(lane, LANE_EXIT_MISCONFIGURED, error->reason, error->text);
}

void lane_shutdown_terminate(struct lane *lane, const struct lane_event *event)
{
    static const char *const how[] = {
        [LANE_SIGNAL_TERM] = "terminated",
        [LANE_SIGNAL_INT] = "interrupted (SIGINT, exit code 130)",
        [LANE_SIGNAL_HUP] = "stopped (SIGHUP, exit code 129)",
    };

    if (lane->terminating)
        return;
    lane->terminating = true;
    lane->exit_by_us = lane->now_us + (uint64_t)lane->config.terminate_ms * 1000;
    if (!lane->ended) {
        lane->exit_code = EXIT_TERMINATED;
        lane->exit_reason = SUMAC_REASON_TERMINATED;
        (void)text_print_line(
            lane->exit_text, sizeof lane->exit_text,
            "ps %u was %s before the run ended; to go on, start the whole run again, ps and "
            "workers",
            lane->index, how[event->signal]);
    }
    out_log(&lane->out, "ps %u was told to terminate: it finishes what is in flight", lane->index);
    stop_serving(lane);
}

void lane_shutdown_end(struct lane *lane, uint64_t number, const wire_end *end)
{
    lane->end_number = number;
    if (lane->ended)
        return;
    lane->ended = true;
    lane->exit_code = (int)end->exit_code;
    lane->exit_reason = (enum sumac_reason)end->reason;
    (void)text_print_line(lane->exit_text, sizeof lane->exit_text, "%s", end->message);
    if (!lane->terminating)
        lane->exit_by_us = lane->now_us + (uint64_t)lane->config.terminate_ms * 1000;
    stop_serving(lane);
}

/* A contribution that has its turn waits for those of other members. Their contributions that are
 * here are in flight themselves, and no other comes. An end tells the clients to stop: no commit
 * comes where the session has no stream. */
static bool may_be_applied(const struct lane *lane, const struct lane_session *session)
{
    const struct lane_part *first = session->parts.first;

    if (first == NULL || (session->turn == TURN_CONTRIBUTED && !lane_turn_has_more(lane)))
        return false;
    return !lane->ended || session->push_stream != NULL ||
           first->sequence <= session->commit_through;
}

static bool session_in_flight(const struct lane *lane, const struct lane_session *session)
{
    return !lane_session_rests(session) || may_be_applied(lane, session) ||
           session->decide_number != 0;
}

/* Is a part arriving whose client waits for what becomes of it? */
static bool takes_part(const struct lane_stream *stream)
{
    const struct lane_part *part = stream->receiving;

    assert(part == NULL || part->state < PART_STAGED);
    return part != NULL && (part->state == PART_RECEIVING || part->state == PART_REFUSED);
}

/* Does its client wait for what will not come? */
static bool is_unserved(const struct lane *lane, const struct lane_stream *stream)
{
    if (stream->state != STREAM_GREETED || stream->kind != LANE_STREAM_PUSH ||
        stream->session == NULL || stream->session->closing)
        return false;
    return stream->unserved || lane_claims_count(lane, stream->session) > 0;
}

/* True: it has ended a stream. */
static bool end_unserved(struct lane *lane)
{
    bool any = false;

    if (lane->exit_reason == SUMAC_REASON_UNSPECIFIED) /* the order to end gave none */
        return false;
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        if (!is_unserved(lane, stream) || takes_part(stream) || stream->answers.first != NULL ||
            stream->due != 0 || !stream->writable || lane_pull_under_way(stream) != NULL ||
            session_in_flight(lane, stream->session))
            continue;
        (void)lane_stream_fail(
            lane, stream, status_of_end(lane->exit_reason), lane->exit_reason, "%s",
            lane->exit_text);
        any = true;
    }
    return any;
}

static bool in_flight(const struct lane *lane)
{
    const bool lost = lane->exit_code == LANE_EXIT_PS_LOST;

    if (lane_operation_is_any(lane) || lane_rounds_are_used(lane))
        return true;
    for (const struct lane_session *session = NULL;
         !lost && (session = lane_session_after(lane, session)) != NULL;) {
        if (session_in_flight(lane, session))
            return true;
    }
    LIST_FOREACH(const struct lane_stream, stream, &lane->streams, in_lane) {
        if (!lost && takes_part(stream))
            return true;
        if (stream->answers.first != NULL || (stream->due & DUE_CLOSED) != 0 ||
            stream->reports.first != NULL)
            return true;
        if (lane_pull_under_way(stream) != NULL)
            return true;
    }
    return false;
}

bool lane_shutdown_goes_on(struct lane *lane)
{
    assert(lane->terminating || lane->ended);
    if (lane->exited)
        return false;
    const bool late = lane->now_us >= lane->exit_by_us;
    const bool ends_streams = end_unserved(lane);
    /* On ps 0 the controller ends the other ps first, and then this lane. It does so no later than
     * the tick at which time is up, and the controller gets that tick before the lane. A controller
     * without a cluster has no ps to end, so then this lane ends at that tick by itself. */
    const bool controller_ends_it =
        lane->index == 0 && !lane->ended && (!late || lane->event->kind != LANE_EVENT_TICK);
    if ((in_flight(lane) && !late) || controller_ends_it)
        return ends_streams;
    const bool answers = lane->ended && !lane->end_answered;
    if (answers) {
        lane->end_answered = true;
        lane_report_answer(lane, lane->end_number, NULL);
    } else {
        exit_now(lane, lane->exit_code, lane->exit_reason, lane->exit_text);
    }
    return answers;
}

/* Told of others, a ps gives up after ps_lost_ms; told only itself, it waits for its first call. */
static bool has_limit(const struct lane *lane)
{
    return lane->any_hello || lane->config.ps_count != 0;
}

static uint64_t gives_up_us(const struct lane *lane)
{
    return lane->controller_heard_us + (uint64_t)lane->config.ps_lost_ms * 1000;
}

static struct text_time time_left(const struct lane *lane)
{
    const uint64_t until_us = gives_up_us(lane);

    return text_time_left(until_us > lane->now_us ? until_us - lane->now_us : 0);
}

/* Of a wait that has no limit one speaks less and less often. */
static void plan_next_report(struct lane *lane, bool silent)
{
    const uint64_t first_us = (uint64_t)lane->config.report_ms * 1000;
    const bool unlimited = lane->any_hello ? !silent : !has_limit(lane);

    lane->report_us = unlimited ? 2 * lane->report_us : first_us;
    if (lane->report_us > first_us * LANE_REPORTS_APART_MAX)
        lane->report_us = first_us * LANE_REPORTS_APART_MAX;
    lane->report_due_us = lane->now_us + lane->report_us;
}

/* As this ps's own configuration lists them. In the step's arena. */
static const char *expected_members(struct lane *lane)
{
    struct listing listing = {0};

    for (uint32_t i = 0; i < lane->config.member_count; i++)
        listing_add_task(&listing, lane->config.members_jobs[i], lane->config.members_indices[i]);
    if (listing.count == 0)
        return "any chief or worker, its configuration lists none";
    return out_text(&lane->out, "%s", listing_end(&listing));
}

static const char *controller_address(const struct lane *lane)
{
    const char *const address = lane_ps0_address(lane);

    return address != NULL ? address : "an address that it was not told";
}

static const char *ps0_remedy(const struct lane *lane, const char *otherwise)
{
    const struct lane_config *const config = &lane->config;

    return loopback_remedy(
        lane_ps0_address(lane), (struct address_list){config->ps_addresses, config->ps_count},
        (struct address_list){config->members_addresses, config->member_count}, otherwise);
}

/* ": start ps 0 there" after controller_found; "" if a process answers there, or the text names the
 * remedy. */
static const char *silent_remedy(struct lane *lane, const char *otherwise)
{
    if (!lane->controller_silent)
        return "";
    const char *const remedy = silence_remedy(lane->controller_found, ps0_remedy(lane, otherwise));
    return remedy[0] == '\0' ? "" : out_text(&lane->out, ": %s", remedy);
}

/* "" if all is well: the ps 0 that has called answers there. Before that call ps 0 says where it
 * looks for this ps. */
static void describe_found(struct lane *lane, const wire_list_reply *reply)
{
    char *const found = lane->controller_found;
    const size_t bytes = sizeof lane->controller_found;
    const char *const its =
        lane->index < reply->n_ps_addresses ? reply->ps_addresses[lane->index] : "";
    struct sumac_error error;
    const bool lists_differ =
        reply->n_ps_addresses > 0 && lane_check_ps_list(
                                         lane, (const char *const *)reply->ps_addresses,
                                         reply->n_ps_addresses, &error) != SUMAC_OK;

    lane->controller_differs = reply->ps != 0 || lists_differ;
    lane->controller_confirmed =
        reply->ps == 0 && lane->any_hello && reply->cluster_id == lane->cluster_id;
    if (lane->controller_confirmed)
        found[0] = '\0';
    else if (reply->ps != 0)
        (void)text_print_line(
            found, bytes, "is that of ps %u: %s", reply->ps, ps0_remedy(lane, OTHER_PS_REMEDY));
    else if (lane->any_hello)
        (void)text_print_line(
            found, bytes,
            "is that of another ps 0, of cluster %016" PRIx64
            "; give each run its own addresses, or correct the index of one of them",
            reply->cluster_id);
    else if (lists_differ)
        (void)text_print_line(found, bytes, "answers, but %s", error.text);
    else if (its[0] == '\0')
        (void)text_print_line(
            found, bytes, "answers, and ps 0 has no address of ps %u yet", lane->index);
    else
        (void)text_print_line(
            found, bytes,
            "answers, and ps 0 does not reach ps %u at %.200s; check that this is the address of "
            "ps %u, and that no firewall closes it",
            lane->index, its, lane->index);
}

bool lane_seeks_ps0(const struct lane *lane)
{
    return !lane->joined_once && !lane->ended && !lane->exited && !lane->controller_confirmed;
}

void lane_shutdown_probed(struct lane *lane, const struct lane_event *event)
{
    lane->controller_silent = event->text != NULL;
    lane->controller_differs = false;
    if (event->text == NULL)
        describe_found(lane, (const wire_list_reply *)event->request);
    else
        (void)text_print_line(
            lane->controller_found, sizeof lane->controller_found, "does not answer (%s)",
            event->text);
}

/* "; that address does not answer (Connection refused)", or "". */
static const char *found_text(struct lane *lane)
{
    if (lane->controller_found[0] == '\0')
        return "";
    if (!lane->any_hello)
        return out_text(
            &lane->out, "; that address %s%s", lane->controller_found,
            silent_remedy(lane, START_PS0));
    return out_text(
        &lane->out, "; ps 0 has called, but its listed address %s %s%s", controller_address(lane),
        lane->controller_found, silent_remedy(lane, MOVE_PS0));
}

static uint64_t silent_for_ms(const struct lane *lane)
{
    return (lane->now_us - lane->controller_heard_us) / 1000;
}

/* Has ps 0, if it has called, been silent for so long that one should speak of it? */
static bool is_silent(const struct lane *lane)
{
    const uint32_t half_ms = lane->config.ps_lost_ms / 2;
    const uint32_t late_ms = half_ms < LANE_QUIET_MS ? half_ms : LANE_QUIET_MS;
    const uint32_t report_ms = lane->config.report_ms;

    return silent_for_ms(lane) >= (report_ms > late_ms ? report_ms : late_ms);
}

/* One that was never there has lost no state. Another start does not mend configurations that
 * differ. Until now the answer may have come from a ps that was about to end. */
static void give_up(struct lane *lane)
{
    const struct text_time silent = text_time_ms(silent_for_ms(lane));
    struct sumac_error error;

    assert(has_limit(lane));
    if (lane->any_hello) {
        lane_shutdown_lost(
            lane, SUMAC_REASON_STATE_LOST,
            "ps 0 at %s is lost with its state: ps %u heard nothing from ps 0 for %s; start the "
            "whole run again, ps and workers",
            controller_address(lane), lane->index, silent.text);
        return;
    }
    (void)fail(
        &error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "ps 0 at %s has never called ps %u, which has waited %s%s", controller_address(lane),
        lane->index, silent.text,
        lane->controller_found[0] == '\0' ? "; start it, or correct its address"
                                          : found_text(lane));
    if (lane->controller_differs)
        lane_shutdown_misconfigured(lane, &error);
    else
        lane_shutdown_lost(lane, SUMAC_REASON_PS_MISSING, "%s", error.text);
}

char *lane_shutdown_wait(struct lane *lane)
{
    const uint64_t silent_ms = silent_for_ms(lane);
    const bool silent = is_silent(lane), found = lane->controller_found[0] != '\0';

    /* Its listed address does not lead to this ps 0. The controller says for whom it waits. */
    if (lane->index == 0 && (lane->ended || lane->joined_once || !found))
        return NULL;
    if (lane->index == 0)
        return out_text(
            &lane->out, "the listed address of ps 0, %s, %s%s", controller_address(lane),
            lane->controller_found, silent_remedy(lane, MOVE_PS0));
    if (lane->ended || (lane->joined_once && !silent))
        return NULL;
    if (!lane->any_hello && has_limit(lane))
        return out_text(
            &lane->out, "ps %u waits for its first call from ps 0 at %s%s; gives up in %s",
            lane->index, controller_address(lane), found_text(lane), time_left(lane).text);
    if (!lane->any_hello)
        return out_text(
            &lane->out,
            "ps %u waits for its first call from ps 0 at %s; this wait has no limit, so far %s",
            lane->index, controller_address(lane), text_time_ms(silent_ms).text);
    if (silent)
        return out_text(
            &lane->out, "ps %u waits for ps 0 at %s, last heard from %s ago; gives up in %s",
            lane->index, controller_address(lane), text_time_ms(silent_ms).text,
            time_left(lane).text);
    return out_text(
        &lane->out, "ps %u waits for the first join, of %s%s; this wait has no limit, so far %s",
        lane->index, expected_members(lane), found_text(lane),
        text_time_us(lane->now_us - lane->config.started_us).text);
}

void lane_shutdown_watch(struct lane *lane)
{
    assert(lane->now_us >= lane->controller_heard_us);
    if (lane->exited || lane->ended)
        return;
    if (lane->index != 0 && has_limit(lane) && lane->now_us >= gives_up_us(lane)) {
        give_up(lane);
        return;
    }
    const char *wait = lane->now_us < lane->report_due_us ? NULL : lane_shutdown_wait(lane);
    if (wait == NULL)
        return;
    plan_next_report(lane, lane->index != 0 && is_silent(lane));
    out_log(&lane->out, "%s", wait);
}
