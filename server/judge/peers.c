/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c -- the streams to the ps: dialling, greeting, giving orders one at a time, hearing
 * reports.
 *
 * A stream's first order is a hello; the rest follow when it is answered, because an order for
 * another incarnation is nobody's. ps 0 itself is a ps like the others, whose stream stays in the
 * process; it is never missing.
 */
#include "meet.h"
#include "quorum.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "identity.h"
#include "loopback.h"
#include "text.h"

static bool is_self(const struct judge *judge, uint32_t ps) { return ps == judge->config->index; }

static void set_text(char *text, size_t text_bytes, const char *from)
{
    (void)text_print_line(text, text_bytes, "%s", from == NULL ? "" : from);
}

/* An answer, or a stream, is missing since then, or for longer. Of ps 0 itself nothing ever is. */
static void miss(const struct judge *judge, uint32_t ps, uint64_t since_us)
{
    struct judge_peer *peer = &judge->peers[ps];

    if ((peer->silent_us == 0 || since_us < peer->silent_us) && !is_self(judge, ps))
        peer->silent_us = since_us;
}

/* ---- addresses ---- */

/* ps 0 itself needs no address. */
static void dial(struct judge *judge, uint32_t ps)
{
    assert(ps < judge->ps_count);
    struct judge_peer *peer = &judge->peers[ps];
    if (peer->dialled || (!is_self(judge, ps) && peer->address[0] == '\0'))
        return;
    struct judge_effect *effect = judge_effect_add(judge, JUDGE_EFFECT_DIAL);
    effect->ps = ps;
    effect->text = peer->address;
    peer->dialled = true;
}

/* ps 0 itself is told of each change of addresses, on the stream that it has. */
static void greet_self(struct judge *judge)
{
    assert(judge->config->index < judge->ps_count);
    struct judge_peer *self = &judge->peers[judge->config->index];
    self->incarnation = judge->config->incarnation;
    judge_peer_changed(judge, judge->config->index);
    self->hello = 0;
}

void judge_peers_start(struct judge *judge)
{
    const struct lane_config *config = judge->config;

    assert(config->ps_count <= LANE_PS_MAX);
    if (config->ps_count > 0)
        judge->ps_count = config->ps_count;
    if (judge->ps_count == 0)
        return;
    for (uint32_t ps = 0; ps < judge->ps_count; ps++) {
        if (ps < config->ps_count) {
            const char *address = config->ps_addresses == NULL ? NULL : config->ps_addresses[ps];
            set_text(judge->peers[ps].address, sizeof judge->peers[ps].address, address);
            judge_peer_changed(judge, ps);
        }
        dial(judge, ps);
    }
    greet_self(judge);
}

void judge_peers_learn(struct judge *judge, const wire_join_request *request)
{
    const size_t count = request->n_ps_addresses;
    bool learnt = judge->ps_count == 0;

    if (judge->ps_count == 0)
        judge->ps_count = (uint32_t)count;
    if (learnt)
        judge_cluster_changed(judge);
    for (uint32_t ps = 0; ps < judge->ps_count && count == judge->ps_count; ps++) {
        struct judge_peer *peer = &judge->peers[ps];
        if (peer->address[0] != '\0')
            continue;
        set_text(peer->address, sizeof peer->address, request->ps_addresses[ps]);
        judge_peer_changed(judge, ps);
        dial(judge, ps);
        learnt = true;
    }
    assert(judge->ps_count > 0);
    assert(judge->ps_count <= LANE_PS_MAX);
    if (learnt)
        greet_self(judge);
}

/* ---- who is there ---- */

bool judge_peers_all_met(const struct judge *judge)
{
    if (judge->ps_count == 0)
        return false;
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (!judge->peers[ps].met)
            return false;
    return true;
}

uint32_t judge_peers_missing(const struct judge *judge)
{
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (!judge->peers[ps].met)
            return ps;
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (judge->peers[ps].silent_us != 0)
            return ps;
    return judge->ps_count;
}

const char *judge_peer_text(const struct judge *judge, uint32_t ps)
{
    assert(ps < judge->ps_count);
    const struct judge_peer *peer = &judge->peers[ps];
    const bool troubled = peer->trouble[0] != '\0';
    const bool heard = peer->heard_us != 0;
    return judge_text(
        judge, "ps %u at %s, %s%s%s%.200s%s", ps, /* what is said after it has room */
        peer->address[0] == '\0' ? "an unknown address" : peer->address,
        heard ? "last heard from " : "never heard from",
        heard ? judge_ago(judge, peer->heard_us) : "", troubled ? " (" : "", peer->trouble,
        troubled ? ")" : "");
}

const char *judge_peer_remedy(const struct judge *judge, uint32_t ps)
{
    const struct lane_config *const config = judge->config;

    assert(ps < judge->ps_count);
    if (judge->peers[ps].met)
        return "if that ps does not come back, start the whole run again, ps and workers";
    return loopback_remedy(
        judge->peers[ps].address, (struct address_list){config->ps_addresses, config->ps_count},
        (struct address_list){config->members_addresses, config->member_count},
        "start it, or correct its address");
}

/* ---- giving ---- */

static bool send_order(struct judge *judge, uint32_t ps, const wire_peer_order *message)
{
    struct judge_peer *peer = &judge->peers[ps];

    assert(ps < judge->ps_count);
    assert(peer->up);
    assert(peer->writable);
    if (message == NULL)
        return false;
    struct judge_effect *effect = judge_effect_add(judge, JUDGE_EFFECT_ORDER);
    effect->ps = ps;
    effect->order = message;
    peer->writable = false;
    if (message->number != 0) {
        peer->unanswered++;
        miss(judge, ps, judge->now_us);
    }
    return true;
}

static wire_peer_order *new_order(struct judge *judge)
{
    wire_peer_order *message = arena_take(&judge->said->arena, sizeof *message);

    if (message != NULL)
        *message = (wire_peer_order)WIRE_PEER_ORDER_INIT;
    return message;
}

/* Those of ps 0's own configuration. False: no memory. */
static bool list_members(struct judge *judge, wire_peer_hello *hello)
{
    const struct lane_config *config = judge->config;
    wire_task_name *names =
        arena_take(&judge->said->arena, config->member_count * sizeof *names + 1);

    hello->members =
        arena_take(&judge->said->arena, config->member_count * sizeof *hello->members + 1);
    if (names == NULL || hello->members == NULL)
        return false;
    for (uint32_t i = 0; i < config->member_count; i++) {
        names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[i].job = (char *)config->members_jobs[i];
        names[i].index = config->members_indices[i];
        hello->members[i] = &names[i];
    }
    hello->n_members = config->member_count;
    hello->members_partial = config->members_partial;
    return true;
}

/* Which plug-ins' functions this ps has. False: no memory. */
static bool list_plugins(struct judge *judge, wire_peer_hello *hello)
{
    const struct plugins *const plugins = judge->config->plugins;
    const uint32_t count = plugins_count(plugins);
    wire_plugin_function *said = arena_take(&judge->said->arena, (count + 1) * sizeof *said);

    assert(count <= SUMAC_PLUGIN_FUNCTIONS_MAX);
    hello->plugin_functions =
        arena_take(&judge->said->arena, (count + 1) * sizeof *hello->plugin_functions);
    if (said == NULL || hello->plugin_functions == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct plugin_function *const function = plugins->functions[i];
        said[i] = (wire_plugin_function)WIRE_PLUGIN_FUNCTION_INIT;
        said[i].name = (char *)(uintptr_t)function->row.name;
        said[i].plugin = (char *)(uintptr_t)function->row.plugin;
        said[i].digest = function->digest;
        hello->plugin_functions[i] = &said[i];
    }
    hello->n_plugin_functions = count;
    return true;
}

static const wire_peer_order *pack_hello(struct judge *judge, uint32_t ps)
{
    assert(ps < judge->ps_count);
    wire_peer_order *message = new_order(judge);
    wire_peer_hello *hello = arena_take(&judge->said->arena, sizeof *hello);
    char **addresses = arena_take(&judge->said->arena, judge->ps_count * sizeof *addresses);
    uint64_t *incarnations =
        arena_take(&judge->said->arena, judge->ps_count * sizeof *incarnations);
    wire_identity *identity = arena_take(&judge->said->arena, sizeof *identity);
    if (message == NULL || hello == NULL || addresses == NULL || incarnations == NULL ||
        identity == NULL)
        return NULL;
    for (uint32_t i = 0; i < judge->ps_count; i++) {
        addresses[i] = judge->peers[i].address;
        incarnations[i] = judge->peers[i].incarnation;
    }
    *hello = (wire_peer_hello)WIRE_PEER_HELLO_INIT;
    if (!list_members(judge, hello) || !list_plugins(judge, hello))
        return NULL;
    hello->protocol_version = WIRE_PROTOCOL_VERSION;
    hello->cluster_id = judge->cluster_id;
    hello->epoch = JUDGE_EPOCH;
    hello->coordinator_incarnation = judge->config->incarnation;
    hello->coordinator_secret = judge->secret;
    hello->step_members = judge_step_members(judge);
    hello->quorum = judge->config->step_quorum;
    wire_identity_fill(&judge->config->identity, identity);
    hello->identity = identity;
    hello->index = ps;
    hello->n_ps_addresses = hello->n_ps_incarnations = judge->ps_count;
    hello->ps_addresses = addresses;
    hello->ps_incarnations = incarnations;
    hello->expected_incarnation = judge->peers[ps].incarnation;
    message->number = ++judge->orders_given;
    message->hello = hello;
    return message;
}

static void give_hello(struct judge *judge, uint32_t ps)
{
    assert(judge->peers[ps].hello == 0);
    const wire_peer_order *message = pack_hello(judge, ps);
    if (message != NULL && send_order(judge, ps, message))
        judge->peers[ps].hello = message->number;
}

static void give(struct judge *judge, uint32_t ps)
{
    struct judge_peer *peer = &judge->peers[ps];

    assert(peer->up || (!peer->writable && !peer->greeted));
    if (!peer->up || !peer->writable)
        return;
    if (peer->hello == 0 && judge_cluster_is_recorded(judge)) {
        give_hello(judge, ps);
        return;
    }
    struct judge_order *order = peer->next_order;
    if (!peer->greeted || order == NULL || !judge_order_is_recorded(judge, order))
        return;
    if (send_order(judge, ps, judge_order_pack(judge, order)))
        peer->next_order = judge_order_next(order->in_judge.next, ps);
}

void judge_peers_give(struct judge *judge)
{
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        give(judge, ps);
}

static void give_alive(struct judge *judge, uint32_t ps)
{
    assert(ps < judge->ps_count);
    const struct judge_peer *peer = &judge->peers[ps];
    assert(peer->alive_us <= judge->now_us);
    const uint32_t quarter_ms = judge->config->ps_lost_ms / 4;
    const uint32_t alive_ms = quarter_ms < JUDGE_ALIVE_MS ? quarter_ms : JUDGE_ALIVE_MS;
    const bool due = judge->now_us - peer->alive_us >= judge_ms(alive_ms);
    if (!peer->up || !peer->writable || !peer->greeted || !due)
        return;
    wire_peer_order *message = new_order(judge);
    if (message == NULL)
        return;
    message->alive = true;
    if (send_order(judge, ps, message))
        judge->peers[ps].alive_us = judge->now_us;
}

/* How long nothing has been heard of it that was due by now: a stream, an answer, a sign of
 * life. */
static uint64_t overdue_us(const struct judge *judge, uint32_t ps)
{
    assert(ps < judge->ps_count);
    const struct judge_peer *peer = &judge->peers[ps];
    if (is_self(judge, ps))
        return 0;
    assert(peer->heard_us <= judge->now_us);
    const uint64_t quiet_us = peer->up ? judge->now_us - peer->heard_us : 0;
    const uint64_t silent_us = peer->silent_us == 0 ? 0 : judge->now_us - peer->silent_us;
    return quiet_us > silent_us ? quiet_us : silent_us;
}

bool judge_peer_is_lost(const struct judge *judge, uint32_t ps)
{
    return judge->peers[ps].met && overdue_us(judge, ps) >= judge_ms(judge->config->ps_lost_ms);
}

bool judge_peer_is_late(const struct judge *judge, uint32_t ps)
{
    const uint32_t half_ms = judge->config->ps_lost_ms / 2;

    return overdue_us(judge, ps) >= judge_ms(half_ms < LANE_QUIET_MS ? half_ms : LANE_QUIET_MS);
}

static bool is_missing_too_long(const struct judge *judge, uint32_t ps)
{
    const struct judge_peer *peer = &judge->peers[ps];

    return !peer->met && peer->refused_us == 0 && judge->first_join_us != 0 &&
           judge->now_us - judge->first_join_us >= judge_ms(judge->config->ps_lost_ms);
}

static bool is_refused_long_enough(const struct judge *judge, uint32_t ps)
{
    const uint64_t refused_us = judge->peers[ps].refused_us;

    return refused_us != 0 && judge->now_us - refused_us >= judge_ms(JUDGE_REFUSED_MS);
}

static const char *peer_limit(const struct judge *judge, uint32_t ps)
{
    const uint64_t patience_us = judge_ms(judge->config->ps_lost_ms);
    uint64_t waited_us = overdue_us(judge, ps);

    if (judge->peers[ps].refused_us != 0)
        return "the run ends for it";
    if (!judge->peers[ps].met && judge->first_join_us == 0)
        return judge_text(
            judge, "until a member joins this wait has no limit, so far %s",
            text_time_us(judge->now_us - judge->config->started_us).text);
    if (!judge->peers[ps].met)
        waited_us = judge->now_us - judge->first_join_us;
    return judge_text(
        judge, "gives up in %s",
        text_time_left(patience_us > waited_us ? patience_us - waited_us : 0).text);
}

const char *judge_peer_wait(const struct judge *judge, uint32_t ps)
{
    const struct judge_order *order = judge_order_next(judge->orders.first, ps);
    const bool told = judge->peers[ps].met && order != NULL;

    return judge_text(
        judge, "ps 0 waits for %s%s%s; %s", judge_peer_text(judge, ps), told ? ", " : "",
        told ? judge_order_text(judge, order) : "", peer_limit(judge, ps));
}

void judge_peers_tick(struct judge *judge)
{
    for (uint32_t ps = 0; ps < judge->ps_count && judge->phase == JUDGE_RUNNING; ps++) {
        if (judge_peer_is_lost(judge, ps))
            judge_state_lost(
                judge,
                judge_text(
                    judge,
                    "%s, is lost with its state: not reached for %s; start the whole run "
                    "again, ps and workers",
                    judge_peer_text(judge, ps), text_time_ms(judge->config->ps_lost_ms).text));
        else if (is_refused_long_enough(judge, ps))
            judge_ps_misconfigured(
                judge, judge_text(
                           judge, "ps %u at %s refuses ps 0: %s", ps, judge->peers[ps].address,
                           judge->peers[ps].trouble));
        else if (is_missing_too_long(judge, ps))
            judge_ps_missing(
                judge,
                judge_text(
                    judge, "%s, did not appear within %s; %s", judge_peer_text(judge, ps),
                    text_time_ms(judge->config->ps_lost_ms).text, judge_peer_remedy(judge, ps)));
    }
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        give_alive(judge, ps);
}

/* ---- streams come and go; their events carry a ps that was dialled ---- */

void judge_stream_up(struct judge *judge, uint32_t ps)
{
    assert(ps < judge->ps_count);
    struct judge_peer *peer = &judge->peers[ps];
    assert(peer->dialled);
    if (!peer->up) {
        peer->up = true;
        peer->ended = false;
        if (peer->trouble_reason == SUMAC_REASON_UNSPECIFIED) /* else it has refused ps 0 */
            set_text(
                peer->trouble, sizeof peer->trouble,
                "it is reached, and has not answered the hello of ps 0");
        peer->hello = 0;
        peer->unanswered = 0;
        peer->next_order = judge_order_next(judge->orders.first, ps);
    }
    peer->writable = true;
}

/* A ps that was never met, and refuses this configuration or this release, ends the run soon: no
 * wait mends a configuration. Processes that start beside it can reach ps 0 until then. */
static void
note_trouble(struct judge *judge, uint32_t ps, const char *text, enum sumac_reason reason)
{
    struct judge_peer *peer = &judge->peers[ps];
    const bool refused =
        reason == SUMAC_REASON_WRONG_CLUSTER || reason == SUMAC_REASON_PROTOCOL_VERSION;

    if (peer->refused_us != 0 && !refused)
        return; /* it ended after its refusal */
    set_text(peer->trouble, sizeof peer->trouble, text);
    peer->trouble_reason = reason;
    if (peer->met || !refused || peer->refused_us != 0)
        return;
    peer->refused_us = judge->now_us;
    judge_log(
        judge, "ps %u at %s refuses ps 0, which ends the run in %s: %s", ps, peer->address,
        text_time_ms(JUDGE_REFUSED_MS).text, peer->trouble);
}

void judge_stream_down(struct judge *judge, uint32_t ps, const char *text, enum sumac_reason reason)
{
    assert(ps < judge->ps_count);
    struct judge_peer *peer = &judge->peers[ps];
    const bool greeted = peer->greeted;
    if (peer->greeted && judge->phase == JUDGE_RUNNING)
        judge_log(
            judge, "ps 0 lost its stream to ps %u at %s: %s", ps, peer->address,
            text == NULL ? "closed" : text);
    /* It may have been silent for a while before the stream broke, or an order went out. */
    if (peer->heard_us != 0)
        miss(judge, ps, peer->heard_us);
    if (peer->up)
        peer->down_us = judge->now_us;
    peer->up = peer->writable = peer->greeted = false;
    note_trouble(judge, ps, text, reason);
    const bool exit = reason >= SUMAC_REASON_STATE_LOST || reason == SUMAC_REASON_PS_MISSING;
    if (!greeted || !exit)
        return;
    peer->ended = true;
    judge_ps_ended(judge, ps, reason, text);
}

/* ---- reports ---- */

/* False: this ps is not the one that was met. */
static bool take_incarnation(struct judge *judge, uint32_t ps, uint64_t incarnation)
{
    struct judge_peer *peer = &judge->peers[ps];

    if (peer->incarnation == 0) {
        peer->incarnation = incarnation;
        judge_peer_changed(judge, ps);
    }
    if (peer->incarnation == incarnation)
        return true;
    judge_state_lost(
        judge, judge_text(
                   judge,
                   "ps %u at %s came back without its state; start the whole run again, ps and "
                   "workers",
                   ps, peer->address));
    return false;
}

static void greeted(struct judge *judge, uint32_t ps)
{
    struct judge_peer *peer = &judge->peers[ps];

    if (!peer->met && !is_self(judge, ps))
        judge_log(judge, "ps 0 met ps %u at %s", ps, peer->address);
    peer->greeted = peer->met = true;
    peer->trouble[0] = '\0';
    peer->refused_us = 0;
}

/* A ps that will not have ps 0 is as good as not there. */
static void refused(struct judge *judge, uint32_t ps, enum sumac_reason reason, const char *text)
{
    struct judge_peer *peer = &judge->peers[ps];
    const bool new = strcmp(peer->trouble, text) != 0;

    note_trouble(judge, ps, text, reason);
    if (new && peer->refused_us == 0)
        judge_log(judge, "ps %u at %s refuses ps 0: %s", ps, peer->address, text);
}

static void hear(struct judge *judge, struct judge_peer *peer, bool answers)
{
    if (answers && peer->unanswered > 0)
        peer->unanswered--;
    if (peer->unanswered == 0)
        peer->silent_us = 0;
    else if (answers && peer->silent_us != 0) /* a sign of life is no answer */
        peer->silent_us = judge->now_us;
}

static void hear_hello(struct judge *judge, uint32_t ps, const wire_peer_report *report)
{
    if (report->status != 0) {
        refused(judge, ps, (enum sumac_reason)report->reason, report->message);
        return;
    }
    hear(judge, &judge->peers[ps], true);
    greeted(judge, ps);
    judge_joins_go_on(judge);
}

void judge_hear_report(struct judge *judge, uint32_t ps, const wire_peer_report *report)
{
    assert(ps < judge->ps_count);
    struct judge_peer *peer = &judge->peers[ps];
    const bool stale = report->epoch != 0 && report->epoch != JUDGE_EPOCH;
    if (stale || !take_incarnation(judge, ps, report->ps_incarnation))
        return;
    peer->heard_us = judge->now_us;
    for (size_t i = 0; i < report->n_renewed; i++)
        judge_renewed(judge, &report->renewed[i]);
    for (size_t i = 0; i < report->n_assigned; i++)
        judge_assigned(judge, ps, report->assigned[i]);
    judge_room_reported(judge, ps, report);
    judge_steps_reported(judge, ps, report);
    judge_meetings_reported(judge, report);
    if (report->answers != 0 && report->answers == peer->hello) {
        hear_hello(judge, ps, report);
        return;
    }
    hear(judge, peer, report->answers != 0);
    struct judge_order *order =
        report->answers == 0 ? NULL : judge_order_find(judge, report->answers);
    if (order != NULL)
        judge_order_answered(judge, order, ps, report);
}
