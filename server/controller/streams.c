/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c -- the streams to the ps: greeting, giving orders one at a time, hearing reports.
 *
 * A stream's first order is a hello. The other orders follow when the ps has answered the hello,
 * because another incarnation of the ps must not obey them.
 */
#include "controller_collectives.h"

#include <assert.h>
#include <string.h>

#include "identity.h"
#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"
#include "catalogue.h"

/* ---- giving ---- */

/* An answer, or a stream, is missing since then, or for longer. Of ps 0 itself nothing ever is. */
static void miss(const struct controller *controller, uint32_t ps, uint64_t since_us)
{
    struct controller_peer *peer = &controller->peers[ps];

    if ((peer->silent_us == 0 || since_us < peer->silent_us) &&
        !controller_peer_is_self(controller, ps))
        peer->silent_us = since_us;
}

static bool send_order(struct controller *controller, uint32_t ps, const wire_peer_order *message)
{
    struct controller_peer *peer = &controller->peers[ps];

    assert(ps < controller->ps_count);
    assert(peer->up);
    assert(peer->writable);
    if (message == NULL)
        return false;
    struct lane_effect *effect = out_add(controller->out, LANE_EFFECT_ORDER);
    effect->ps = ps;
    effect->order = message;
    peer->writable = false;
    if (message->number != 0) {
        peer->unanswered++;
        miss(controller, ps, controller->now_us);
    }
    return true;
}

/* Those of ps 0's own configuration. */
static void list_members(struct controller *controller, wire_peer_hello *hello)
{
    const struct lane_config *config = controller->config;
    wire_task_name *names = out_take(controller->out, config->member_count * sizeof *names + 1);
    wire_task_name **pointers =
        out_take(controller->out, config->member_count * sizeof *pointers + 1);

    if (names == NULL || pointers == NULL)
        return;
    for (uint32_t i = 0; i < config->member_count; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = (char *)config->members_jobs[i];
        names[i].index = config->members_indices[i];
        pointers[i] = &names[i];
    }
    hello->members = pointers;
    hello->n_members = config->member_count;
    hello->members_partial = config->members_partial;
}

/* Which plug-ins' functions this ps has. */
static void list_plugins(struct controller *controller, wire_peer_hello *hello)
{
    const struct plugins *const plugins = controller->config->plugins;
    const uint32_t count = plugins_count(plugins);
    wire_plugin_function *said = out_take(controller->out, (count + 1) * sizeof *said);
    wire_plugin_function **pointers = out_take(controller->out, (count + 1) * sizeof *pointers);

    assert(count <= SUMAC_PLUGIN_FUNCTIONS_MAX);
    if (said == NULL || pointers == NULL)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct plugin_function *const function = plugins->functions[i];
        said[i] = (wire_plugin_function)WIRE_PLUGIN_FUNCTION_INIT;
        said[i].name = (char *)(uintptr_t)function->row.name;
        said[i].plugin = (char *)(uintptr_t)function->row.plugin;
        said[i].digest = function->digest;
        pointers[i] = &said[i];
    }
    hello->plugin_functions = pointers;
    hello->n_plugin_functions = count;
}

static const wire_peer_order *pack_hello(struct controller *controller, uint32_t ps)
{
    assert(ps < controller->ps_count);
    wire_peer_order *message = OUT_MESSAGE(controller->out, peer_order);
    wire_peer_hello *hello = OUT_MESSAGE(controller->out, peer_hello);
    wire_identity *identity = OUT_MESSAGE(controller->out, identity);
    list_members(controller, hello);
    list_plugins(controller, hello);
    hello->n_ps_addresses = hello->n_ps_incarnations =
        controller_list_ps(controller, &hello->ps_addresses, &hello->ps_incarnations);
    if (controller->out->is_short)
        return NULL;
    hello->protocol_version = WIRE_PROTOCOL_VERSION;
    hello->cluster_id = controller->cluster_id;
    hello->epoch = CONTROLLER_EPOCH;
    hello->controller_incarnation = controller->config->incarnation;
    hello->controller_secret = controller->secret;
    hello->step_members = controller_step_members(controller);
    hello->quorum = controller->config->step_quorum;
    wire_identity_fill(&controller->config->identity, identity);
    hello->identity = identity;
    hello->index = ps;
    hello->expected_incarnation = controller->peers[ps].incarnation;
    message->number = ++controller->orders_given;
    message->hello = hello;
    return message;
}

static void give_hello(struct controller *controller, uint32_t ps)
{
    assert(controller->peers[ps].hello == 0);
    const wire_peer_order *message = pack_hello(controller, ps);
    if (message != NULL && send_order(controller, ps, message))
        controller->peers[ps].hello = message->number;
}

static void give(struct controller *controller, uint32_t ps)
{
    struct controller_peer *peer = &controller->peers[ps];

    assert(peer->up || (!peer->writable && !peer->greeted));
    if (!peer->up || !peer->writable)
        return;
    if (peer->hello == 0 && controller_cluster_is_recorded(controller)) {
        give_hello(controller, ps);
        return;
    }
    struct controller_order *order = peer->next_order;
    if (!peer->greeted || order == NULL || !controller_order_is_recorded(controller, order))
        return;
    if (send_order(controller, ps, controller_order_pack(controller, order)))
        peer->next_order = controller_order_next(order->in_controller.next, ps);
}

void controller_streams_give(struct controller *controller)
{
    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        give(controller, ps);
}

static void give_alive(struct controller *controller, uint32_t ps)
{
    assert(ps < controller->ps_count);
    const struct controller_peer *peer = &controller->peers[ps];
    assert(peer->alive_us <= controller->now_us);
    const uint32_t quarter_ms = controller->config->ps_lost_ms / 4;
    const uint32_t alive_ms = quarter_ms < CONTROLLER_ALIVE_MS ? quarter_ms : CONTROLLER_ALIVE_MS;
    const bool due = controller->now_us - peer->alive_us >= controller_ms(alive_ms);
    if (!peer->up || !peer->writable || !peer->greeted || !due)
        return;
    wire_peer_order *message = OUT_MESSAGE(controller->out, peer_order);
    message->alive = true;
    if (send_order(controller, ps, controller->out->is_short ? NULL : message))
        controller->peers[ps].alive_us = controller->now_us;
}

static bool is_missing_too_long(const struct controller *controller, uint32_t ps)
{
    const struct controller_peer *peer = &controller->peers[ps];

    return !peer->met && peer->refused_us == 0 && controller->first_join_us != 0 &&
           controller->now_us - controller->first_join_us >=
               controller_ms(controller->config->ps_lost_ms);
}

static bool is_refused_long_enough(const struct controller *controller, uint32_t ps)
{
    const uint64_t refused_us = controller->peers[ps].refused_us;

    return refused_us != 0 &&
           controller->now_us - refused_us >= controller_ms(CONTROLLER_REFUSED_MS);
}

void controller_streams_tick(struct controller *controller)
{
    const struct text_time patience = text_time_ms(controller->config->ps_lost_ms);

    for (uint32_t ps = 0; ps < controller->ps_count && controller->phase == CONTROLLER_RUNNING;
         ps++) {
        if (controller_peer_is_lost(controller, ps))
            controller_run_fail(
                controller, SUMAC_REASON_STATE_LOST,
                "%s, is lost with its state: not reached for %s; start the whole run again, ps and "
                "workers",
                controller_peer_text(controller, ps), patience.text);
        else if (is_refused_long_enough(controller, ps))
            controller_run_fail(
                controller, SUMAC_REASON_WRONG_CLUSTER, "ps %u at %s refuses ps 0: %s", ps,
                controller->peers[ps].address, controller->peers[ps].trouble);
        else if (is_missing_too_long(controller, ps))
            controller_run_fail(
                controller, SUMAC_REASON_PS_MISSING, "%s, did not appear within %s%s",
                controller_peer_text(controller, ps), patience.text,
                controller_peer_remedy(controller, ps));
    }
    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        give_alive(controller, ps);
}

/* ---- streams come and go; their events carry a ps that was dialled ---- */

void controller_stream_up(struct controller *controller, const struct lane_event *event)
{
    const uint32_t ps = event->ps;
    struct controller_peer *peer = &controller->peers[ps];

    if (ps >= controller->ps_count)
        return;
    assert(peer->dialled);
    if (!peer->up) {
        peer->up = true;
        peer->ended = false;
        if (peer->trouble_reason == SUMAC_REASON_UNSPECIFIED) /* else it has refused ps 0 */
            (void)text_print_line(
                peer->trouble, sizeof peer->trouble,
                "it is reached, but its answer to the hello of ps 0 is missing");
        peer->hello = 0;
        peer->unanswered = 0;
        peer->next_order = controller_order_next(controller->orders.first, ps);
    }
    peer->writable = true;
}

/* A ps that was never met, and refuses this configuration or this release, ends the run soon: no
 * wait mends a configuration. Processes that start beside it can reach ps 0 until then. */
static void
note_trouble(struct controller *controller, uint32_t ps, const char *text, enum sumac_reason reason)
{
    struct controller_peer *peer = &controller->peers[ps];
    const bool refused =
        reason == SUMAC_REASON_WRONG_CLUSTER || reason == SUMAC_REASON_PROTOCOL_VERSION;

    if (peer->refused_us != 0 && !refused)
        return; /* it ended after its refusal */
    (void)text_print_line(peer->trouble, sizeof peer->trouble, "%s", text == NULL ? "" : text);
    peer->trouble_reason = reason;
    if (peer->met || !refused || peer->refused_us != 0)
        return;
    peer->refused_us = controller->now_us;
    out_log(
        controller->out, "ps %u at %s refuses ps 0, which ends the run in %s: %s", ps,
        peer->address, text_time_ms(CONTROLLER_REFUSED_MS).text, peer->trouble);
}

void controller_stream_down(struct controller *controller, const struct lane_event *event)
{
    const uint32_t ps = event->ps;
    const char *const text = event->text;
    const enum sumac_reason reason = event->reason; /* of an exit; UNSPECIFIED: the stream broke */
    struct controller_peer *peer = &controller->peers[ps];
    const bool greeted = peer->greeted;

    if (ps >= controller->ps_count)
        return;
    if (peer->greeted && controller->phase == CONTROLLER_RUNNING)
        out_log(
            controller->out, "ps 0 lost its stream to ps %u at %s: %s", ps, peer->address,
            text == NULL ? "closed" : text);
    /* It may have been silent for a while before the stream broke, or an order went out. */
    if (peer->heard_us != 0)
        miss(controller, ps, peer->heard_us);
    if (peer->up)
        peer->down_us = controller->now_us;
    peer->up = peer->writable = peer->greeted = false;
    note_trouble(controller, ps, text, reason);
    const bool exit = reason >= SUMAC_REASON_STATE_LOST || reason == SUMAC_REASON_PS_MISSING;
    if (!greeted || !exit)
        return;
    peer->ended = true;
    controller_ps_ended(controller, ps, reason, text);
}

/* ---- reports ---- */

/* False: this ps is not the one that was met. */
static bool take_incarnation(struct controller *controller, uint32_t ps, uint64_t incarnation)
{
    struct controller_peer *peer = &controller->peers[ps];

    if (peer->incarnation == 0) {
        peer->incarnation = incarnation;
        controller_row_changed(controller, &controller->peers[ps].row);
    }
    if (peer->incarnation == incarnation)
        return true;
    controller_run_fail(
        controller, SUMAC_REASON_STATE_LOST,
        "ps %u at %s came back without its state; start the whole run again, ps and workers", ps,
        peer->address);
    return false;
}

static void greeted(struct controller *controller, uint32_t ps)
{
    struct controller_peer *peer = &controller->peers[ps];

    if (!peer->met && !controller_peer_is_self(controller, ps))
        out_log(controller->out, "ps 0 met ps %u at %s", ps, peer->address);
    peer->greeted = peer->met = true;
    peer->trouble[0] = '\0';
    peer->refused_us = 0;
}

/* A ps that will not have ps 0 is as good as not there. */
static void
refused(struct controller *controller, uint32_t ps, enum sumac_reason reason, const char *text)
{
    struct controller_peer *peer = &controller->peers[ps];
    const bool new = strcmp(peer->trouble, text) != 0;

    note_trouble(controller, ps, text, reason);
    if (new && peer->refused_us == 0)
        out_log(controller->out, "ps %u at %s refuses ps 0: %s", ps, peer->address, text);
}

static void hear(struct controller *controller, struct controller_peer *peer, bool answers)
{
    if (answers && peer->unanswered > 0)
        peer->unanswered--;
    if (peer->unanswered == 0)
        peer->silent_us = 0;
    else if (answers && peer->silent_us != 0) /* a sign of life is no answer */
        peer->silent_us = controller->now_us;
}

static void hear_hello(struct controller *controller, uint32_t ps, const wire_peer_report *report)
{
    if (report->status != 0) {
        refused(controller, ps, (enum sumac_reason)report->reason, report->message);
        return;
    }
    hear(controller, &controller->peers[ps], true);
    greeted(controller, ps);
    controller_joins_go_on(controller);
}

void controller_hear_report(struct controller *controller, const struct lane_event *event)
{
    const uint32_t ps = event->ps;
    const wire_peer_report *const report = event->report;
    struct controller_peer *peer = &controller->peers[ps];
    const bool stale = report->epoch != 0 && report->epoch != CONTROLLER_EPOCH;

    if (ps >= controller->ps_count || stale ||
        !take_incarnation(controller, ps, report->ps_incarnation))
        return;
    peer->heard_us = controller->now_us;
    for (size_t i = 0; i < report->n_renewed; i++)
        controller_renewed(controller, &report->renewed[i]);
    for (size_t i = 0; i < report->n_assigned; i++)
        controller_assigned(controller, ps, report->assigned[i]);
    if (report->n_waiting > 0 || report->n_stalled > 0)
        controller_room_reported(controller, ps, report);
    if (report->n_contributed > 0 || report->step_over > peer->step_over)
        controller_steps_reported(controller, ps, report);
    if (report->n_collectives > 0)
        controller_collectives_reported(controller, report);
    if (report->answers != 0 && report->answers == peer->hello) {
        hear_hello(controller, ps, report);
        return;
    }
    hear(controller, peer, report->answers != 0);
    struct controller_order *order =
        report->answers == 0 ? NULL : controller_order_find(controller, report->answers);
    if (order != NULL)
        controller_order_answered(controller, order, ps, report);
}
