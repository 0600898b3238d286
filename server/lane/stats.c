/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c -- what a ps is doing, in numbers: since its start, per session, and what it waits
 * for. */
#include "handlers.h"

#include "identity.h"

#define PART_WAITS_MAX 64u
#define ROOM_WAITS_MAX 8u
#define SESSIONS_SAID_MAX 1000u
#define WORK_OF_A_SESSION 8u    /* three histograms */
#define CONNECTION_BYTES 32768u /* about 18 KiB of gRPC's, and of the heap's, as measured */
#define CALL_BYTES                                                                                 \
    40960u /* about 12 KiB as measured; 36 with 8 KiB of headers that are all short */

static wire_histogram *pack_histogram(struct lane *lane, const struct histogram *histogram)
{
    wire_histogram *message = arena_take(&lane->arena, sizeof *message);
    size_t used = HISTOGRAM_BUCKETS;

    if (message == NULL)
        return NULL;
    *message = (wire_histogram)WIRE_HISTOGRAM_INIT;
    while (used > 0 && histogram->counts[used - 1] == 0)
        used--;
    message->counts = arena_take(&lane->arena, used * sizeof *message->counts);
    if (message->counts == NULL)
        return NULL;
    for (size_t i = 0; i < used; i++)
        message->counts[i] = histogram->counts[i];
    message->n_counts = used;
    assert(used <= HISTOGRAM_BUCKETS);
    message->count = histogram->count;
    message->sum = histogram->sum;
    return message;
}

static wire_session_stats *pack_session(struct lane *lane, struct lane_session *session)
{
    wire_session_stats *message = arena_take(&lane->arena, sizeof *message);
    const struct session_counts *counts = &session->counts;

    const char *const open = session->closing ? "closing" : "open";
    const char *const closed = session->done ? "done" : "lost";

    assert(!session->closed || session->closing);
    assert(lane->now_us >= session->heard_us);
    if (message == NULL)
        return NULL;
    *message = (wire_session_stats)WIRE_SESSION_STATS_INIT;
    message->task = session->task;
    message->attempt = session->attempt;
    message->state = out_text(&lane->out, "%s", session->closed ? closed : open);
    message->pushes = counts->pushes;
    message->push_bytes = counts->push_bytes;
    message->pulls = counts->pulls;
    message->pull_bytes = counts->pull_bytes;
    message->refused = counts->refused;
    message->non_finite = counts->non_finite;
    message->late = counts->late;
    message->duplicates = counts->duplicates;
    message->clock = session->clock;
    message->weight = session->weight;
    message->last_heard_ms = (lane->now_us - session->heard_us) / 1000;
    message->staleness = pack_histogram(lane, &counts->staleness);
    message->push_us = pack_histogram(lane, &counts->push_us);
    message->pull_us = pack_histogram(lane, &counts->pull_us);
    message->staged_bytes = session->staged_bytes + lane_claims_bytes(lane, session);
    const bool whole =
        message->staleness != NULL && message->push_us != NULL && message->pull_us != NULL;
    return whole ? message : NULL;
}

/* The open ones, then the closed ones, newest first. False: no memory. */
static bool pack_sessions(struct lane *lane, wire_stats_reply *reply)
{
    reply->sessions = arena_take(&lane->arena, SESSIONS_SAID_MAX * sizeof *reply->sessions);
    if (reply->sessions == NULL)
        return false;
    for (struct lane_session *session = NULL;
         (session = lane_session_after(lane, session)) != NULL;) {
        lane->work += WORK_OF_A_SESSION;
        if (reply->n_sessions == SESSIONS_SAID_MAX) {
            reply->sessions_left_out++;
            continue;
        }
        wire_session_stats *packed = pack_session(lane, session);
        if (packed == NULL)
            return false;
        assert(reply->n_sessions < SESSIONS_SAID_MAX);
        reply->sessions[reply->n_sessions++] = packed;
    }
    return true;
}

static wire_memory_stats *pack_memory(struct lane *lane, const struct lane_event *event)
{
    wire_memory_stats *message = arena_take(&lane->arena, sizeof *message);
    const struct lane_config *config = &lane->config;
    const struct store *store = &lane->store;

    assert(config->sessions_max > 0);
    if (message == NULL)
        return NULL;
    *message = (wire_memory_stats)WIRE_MEMORY_STATS_INIT;
    message->resident_bytes = event->resident_bytes;
    message->base_bytes = config->base_bytes;
    message->state_bytes = store_state_bytes(store);
    message->state_bytes_max = store->state_bytes_max;
    message->view_bytes = store->view_bytes;
    message->view_bytes_max = store_view_bytes_max(store);
    message->staged_bytes = lane->staged_bytes;
    message->staging_bytes_max = config->staging_bytes_max;
    message->pull_bytes = lane->pull_bytes;
    message->pulls_bytes_max = config->pulls_bytes_max;
    message->collective_bytes = lane->rounds.room_bytes + lane->rounds.beside_bytes;
    message->collective_bytes_max = config->collective_bytes_max;
    message->sessions_bytes_max = lane_sessions_bytes_max(lane);
    if (event->told != NULL)
        message->sessions_bytes_max += event->told->sessions_bytes_max;
    message->connections_bytes_max = (uint64_t)config->connections_max * CONNECTION_BYTES;
    message->calls_bytes_max = (uint64_t)config->calls_max * CALL_BYTES;
    message->unread_answers_bytes_max = config->unread_answers_bytes_max;
    message->step_bytes_max = WIRE_ARENA_BYTES_MAX + STEP_MEMORY_BYTES_MAX;
    message->grpc_memory_bytes_max = config->grpc_memory_bytes_max;
    return message;
}

/* A session's first part that has had its place for a while, and not its turn. NULL: none. */
static const struct lane_part *
first_long_wait(struct lane *lane, const struct lane_session *session, uint32_t *behind)
{
    const struct lane_part *first = NULL;

    *behind = 0;
    LIST_FOREACH(const struct lane_part, part, &session->parts, in_session) {
        lane->work++;
        *behind += first != NULL;
        if (first == NULL && part->state != PART_APPLYING &&
            lane->now_us >= part->first_us + WAIT_SAID_US_MIN)
            first = part;
    }
    return first;
}

/* One sentence of each session, since its later parts wait for the first one. All contributions to
 * the next synchronous step share theirs. */
static void say_parts(struct lane *lane, wire_stats_reply *reply)
{
    char text[SUMAC_ERROR_TEXT_BYTES];
    uint32_t said = 0;
    bool step_said = false;

    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane) {
        if (!lane_has_time(lane)) {
            reply->waits_left_out += session->part_count > 0;
            continue;
        }
        uint32_t behind;
        const struct lane_part *const part = first_long_wait(lane, session, &behind);
        const bool for_step = part != NULL && lane_turn_waits_for_step(lane, part);
        if (part == NULL || (for_step && step_said))
            continue;
        if (said == PART_WAITS_MAX) {
            reply->waits_left_out++;
            continue;
        }
        if (for_step)
            lane_step_describe_wait(lane, text, sizeof text);
        else
            lane_turn_describe_wait(lane, part, text, sizeof text);
        step_said = step_said || for_step;
        reply->waits[reply->n_waits++] =
            for_step || behind == 0 ? out_text(&lane->out, "%s", text)
                                    : out_text(
                                          &lane->out, "%s; %u later %s for it", text, behind,
                                          behind == 1 ? "push waits" : "pushes wait");
        said++;
    }
}

/* Large parts that wait for room, and who holds it. */
static void say_room(struct lane *lane, wire_stats_reply *reply)
{
    uint32_t said = 0;

    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->state != CLAIM_WAITS)
            continue;
        if (said == ROOM_WAITS_MAX) {
            reply->waits_left_out++;
            continue;
        }
        reply->waits[reply->n_waits++] =
            out_text(&lane->out, "%s: %s", claim->session->task, lane_claims_describe(lane, claim));
        assert(said < ROOM_WAITS_MAX);
        said++;
    }
}

/* What this ps itself waits for, and the pulls and parts that wait. Of those that a step has no
 * time to look at, all are counted as left out. False: no memory. */
static bool pack_waits(struct lane *lane, const struct lane_told *told, wire_stats_reply *reply)
{
    const uint32_t own_max = told == NULL ? 1 : told->wait_count;

    reply->waits_left_out = told == NULL ? 0 : told->waits_left_out;
    reply->waits = arena_take(
        &lane->arena,
        (PULL_WAITS_MAX + PART_WAITS_MAX + ROOM_WAITS_MAX + own_max) * sizeof *reply->waits);
    if (reply->waits == NULL)
        return false;
    for (uint32_t i = 0; told != NULL && i < told->wait_count; i++)
        reply->waits[reply->n_waits++] = told->waits[i];
    char *const wait = told == NULL ? lane_shutdown_wait(lane) : NULL;
    if (wait != NULL)
        reply->waits[reply->n_waits++] = wait;
    lane_pull_say_waits(lane, reply);
    say_room(lane, reply);
    say_parts(lane, reply);
    return true;
}

/* False: no memory. */
static bool pack_own(struct lane *lane, const struct lane_event *event, wire_stats_reply *reply)
{
    const char *address = lane->ps_addresses[lane->index];
    const struct session_counts *counts = &lane->counts; /* of all sessions */

    assert(lane->index < LANE_PS_MAX);
    assert(lane->recorded <= lane->last_record);
    assert(lane->now_us >= lane->config.started_us);
    *reply = (wire_stats_reply)WIRE_STATS_REPLY_INIT;
    reply->cluster_id = lane->cluster_id;
    reply->epoch = lane->epoch;
    reply->ps = lane->index;
    reply->ps_incarnation = lane->config.incarnation;
    reply->address = out_text(&lane->out, "%s", address == NULL ? "" : address);
    reply->uptime_ms = (lane->now_us - lane->config.started_us) / 1000;
    reply->position = lane->store.position;
    reply->pushes = counts->pushes;
    reply->push_bytes = counts->push_bytes;
    reply->pulls = counts->pulls;
    reply->pull_bytes = counts->pull_bytes;
    reply->refused = counts->refused;
    reply->non_finite = counts->non_finite;
    reply->late = counts->late;
    reply->duplicates = counts->duplicates;
    reply->variables = lane->store.variable_count;
    reply->shards = lane->store.shard_count;
    reply->staleness = pack_histogram(lane, &counts->staleness);
    reply->push_us = pack_histogram(lane, &counts->push_us);
    reply->pull_us = pack_histogram(lane, &counts->pull_us);
    reply->memory = pack_memory(lane, event);
    reply->connections = event->connections;
    reply->connections_max = lane->config.connections_max;
    reply->connections_refused = event->connections_refused;
    reply->identity = arena_take(&lane->arena, sizeof *reply->identity);
    assert(lane->config.identity.pid != 0 || lane->config.identity.run[0] == '\0');
    if (reply->identity != NULL)
        wire_identity_fill(&lane->config.identity, reply->identity);
    reply->user = lane->config.user;
    reply->version =
        out_text(&lane->out, "%s", lane->config.version == NULL ? "" : lane->config.version);
    return reply->staleness != NULL && reply->push_us != NULL && reply->pull_us != NULL &&
           reply->memory != NULL;
}

void lane_stats_call(struct lane *lane, const struct lane_event *event)
{
    wire_stats_reply *reply = arena_take(&lane->arena, sizeof *reply);
    const bool whole = reply != NULL && pack_own(lane, event, reply) &&
                       pack_sessions(lane, reply) && pack_waits(lane, event->told, reply);

    out_reply_or_fail(&lane->out, event->call, whole ? &reply->base : NULL);
}
