/* SPDX-License-Identifier: Apache-2.0 */
/* session.c -- what a ps knows of one session: who it is of, and its parts by sequence. */
#include "lane_state.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "text.h"

static struct lane_session *find_from(struct lane_session *session, const uint8_t id[16])
{
    while (session != NULL && memcmp(session->id, id, sizeof session->id) != 0)
        session = session->in_lane.next;
    return session;
}

struct lane_session *lane_session_find(const struct lane *lane, const uint8_t id[16])
{
    struct lane_session *session = find_from(lane->sessions.first, id);

    return session != NULL ? session : find_from(lane->closed_sessions.first, id);
}

struct lane_session *lane_session_open(struct lane *lane, const wire_open_session *open)
{
    struct lane_session *session = pool_take(&lane->sessions_pool);

    assert(open->session_id.len == sizeof session->id);
    assert(lane_session_find(lane, open->session_id.data) == NULL);
    if (session == NULL)
        return NULL;
    memcpy(session->id, open->session_id.data, sizeof session->id);
    session->role = (uint32_t)open->role;
    session->attempt = open->attempt;
    session->clock = session->clock_said = open->clock;
    session->heard_us = lane->now_us;
    if (open->task != NULL && open->task->job[0] != '\0')
        (void)text_print_line(
            session->task, sizeof session->task, "%s %u", open->task->job, open->task->index);
    else
        (void)text_print(session->task, sizeof session->task, "observer %" PRIu64, open->attempt);
    LIST_APPEND(&lane->sessions, session, in_lane);
    return session;
}

static void free_session(struct lane *lane, struct lane_session *session)
{
    lane_session_drop_parts(lane, session);
    assert(session->part_count == 0);
    lane_voided_drop(lane, session);
    for (struct lane_stream *stream = lane->streams.first; stream != NULL;
         stream = stream->in_lane.next) {
        if (stream->session != session)
            continue;
        lane_answers_drop(lane, stream);
        stream->session = NULL;
    }
    pool_give(&lane->sessions_pool, session);
}

static void forget(struct lane *lane, struct lane_session *session)
{
    assert(session->closed);
    assert(lane->closed_count > 0);
    LIST_REMOVE(&lane->closed_sessions, session, in_lane);
    lane->closed_count--;
    free_session(lane, session);
}

void lane_session_destroy_all(struct lane *lane)
{
    for (struct lane_session *session; (session = lane->sessions.first) != NULL;) {
        LIST_REMOVE(&lane->sessions, session, in_lane);
        free_session(lane, session);
    }
    while (lane->closed_sessions.first != NULL)
        forget(lane, lane->closed_sessions.first);
}

static uint64_t voided_bytes(const struct lane_session *session)
{
    assert(session->voided_count <= session->voided_capacity);
    return session->voided_capacity * sizeof *session->voided;
}

/* Of the closed ones before the newest the oldest that have no part left are forgotten: their
 * clients, if there are any, are told to join again. */
static void forget_beyond_bounds(struct lane *lane)
{
    struct lane_session *newest = lane->closed_sessions.first, *before;
    uint64_t bytes = 0;

    for (const struct lane_session *at = newest; at != NULL; at = at->in_lane.next)
        bytes += voided_bytes(at);
    for (struct lane_session *session = lane->closed_sessions.last; session != newest;
         session = before) {
        before = session->in_lane.prev;
        if (lane->closed_count <= CLOSED_SESSIONS_MAX && bytes <= CLOSED_VOIDED_BYTES_MAX)
            return;
        if (session->parts.first != NULL)
            continue;
        bytes -= voided_bytes(session);
        forget(lane, session);
    }
}

/* What is left of it is to be said soon, and its places are others'. */
static void estrange_streams(struct lane *lane, const struct lane_session *session)
{
    assert(session->closed);
    for (struct lane_stream *stream = lane->streams.first; stream != NULL;
         stream = stream->in_lane.next) {
        if (stream->session == session && stream->state != STREAM_ENDED)
            lane_place_estrange(lane, stream);
    }
}

void lane_session_end(struct lane *lane, struct lane_session *session)
{
    assert(session->closed);
    if (rule_holds(
            lane->config.broken, RULE_tell_closed_client)) /* a stream's end would tell it, too */
        estrange_streams(lane, session);
    LIST_REMOVE(&lane->sessions, session, in_lane);
    LIST_PREPEND(&lane->closed_sessions, session, in_lane);
    lane->closed_count++;
    forget_beyond_bounds(lane);
}

/* Of whoever was silent for a while ps 0 hears at once: it may be about to close the session. */
void lane_session_heard(struct lane *lane, struct lane_session *session)
{
    const uint64_t while_us = (uint64_t)lane->config.lease_ms * 1000 / 4;

    assert(lane->now_us >= session->heard_us);
    if (lane->now_us - session->heard_us > while_us && lane->coordinator != NULL) {
        lane->renew_due_us = 0;
        lane_stream_attend(lane, lane->coordinator);
    }
    session->heard_us = lane->now_us;
    session->heard = true;
}

struct lane_part *lane_session_part(const struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = session->parts.last;

    while (part != NULL && part->sequence > sequence)
        part = part->in_session.prev;
    return part != NULL && part->sequence == sequence ? part : NULL;
}

void lane_session_insert(
    const struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    const bool whole = lane->config.broken == 0; /* no rule is missing */
    struct lane_part *before = session->parts.last;

    assert(!whole || part->sequence > session->mark);
    assert(part->state == PART_STAGED || part->state == PART_VOID);
    while (before != NULL && before->sequence > part->sequence)
        before = before->in_session.prev;
    assert(!whole || before == NULL || before->sequence < part->sequence);
    LIST_INSERT(&session->parts, before, part, in_session);
    const struct lane_part *after = part->in_session.next;
    assert(!whole || after == NULL || after->state != PART_APPLYING);
    session->part_count++;
    assert(!whole || session->part_count <= PARTS_PER_SESSION_MAX);
}

void lane_session_remove(struct lane_session *session, struct lane_part *part)
{
    assert(session->part_count > 0);
    assert(part->session == session);
    if (session->applying == part)
        session->applying = NULL;
    LIST_REMOVE(&session->parts, part, in_session);
    session->part_count--;
}

void lane_session_drop_parts(struct lane *lane, struct lane_session *session)
{
    while (session->parts.first != NULL) {
        struct lane_part *part = session->parts.first;
        lane_session_remove(session, part);
        lane_part_destroy(lane, part);
    }
}

uint64_t lane_session_slowest_clock(const struct lane *lane, uint64_t otherwise)
{
    uint64_t slowest = UINT64_MAX;

    for (const struct lane_session *session = lane->sessions.first; session != NULL;
         session = session->in_lane.next) {
        assert(session->clock <= session->clock_said);
        if ((int)session->role == WIRE_ROLE_MEMBER && !session->closed && session->clock < slowest)
            slowest = session->clock;
    }
    return slowest == UINT64_MAX ? otherwise : slowest;
}

/* Until a session is settled it has its own list, and then the union of those of all ps. A list
 * that has grown has less than twice the places that it needs, and while it grows there are two of
 * them. */
static uint64_t voided_bytes_max(const struct lane *lane)
{
    const uint64_t count = (1 + (uint64_t)lane->ps_count) * LANE_VOIDED_PER_SESSION_MAX;

    return 3 * count * sizeof(struct voided);
}

/* Of it, what lane->bytes holds: arrays of a part that grow, … */
static uint64_t growing_bytes_max(void)
{
    return LANE_PIECES_PER_PART_MAX * sizeof(struct run) / 2;
}

/* … and what nobody else's parts and pulls may hinder. */
static uint64_t reserved_bytes_max(const struct lane *lane)
{
    const uint64_t slices =
        SLICES_PER_OPERATION_MAX * (sizeof(struct update_slice) + sizeof(struct block *));

    return voided_bytes_max(lane) + ANSWERS_BESIDE_BYTES_MAX + slices;
}

static uint64_t session_bytes_max(const struct lane *lane)
{
    const uint64_t records = LANE_VOIDED_PER_SESSION_MAX * sizeof(struct refusal) +
                             PARTS_PER_SESSION_MAX * sizeof(struct lane_part);

    return sizeof(struct lane_session) + records + growing_bytes_max() + reserved_bytes_max(lane);
}

void lane_session_bound_pool(struct lane *lane)
{
    const uint64_t sessions_max = lane->config.sessions_max, most = UINT64_MAX / 4;
    const uint64_t staging = lane->config.staging_bytes_max, pulls = pulls_bytes_max(&lane->config);

    lane->bytes.held_bytes_max = (staging < most ? staging : most) + (pulls < most ? pulls : most) +
                                 sessions_max * growing_bytes_max() + SIZED_POOL_EMPTY_BYTES_MAX;
    lane->bytes.reserve_bytes =
        sessions_max * reserved_bytes_max(lane) + 2 * (uint64_t)CLOSED_VOIDED_BYTES_MAX;
}

/* Small lists that are given back are kept for others of their size: as much again. */
static uint64_t closed_bytes_max(void)
{
    return CLOSED_SESSIONS_MAX * sizeof(struct lane_session) +
           2 * (uint64_t)CLOSED_VOIDED_BYTES_MAX;
}

uint64_t lane_sessions_bytes_max(const struct lane *lane)
{
    const uint64_t empty = 2 * (uint64_t)SIZED_POOL_EMPTY_BYTES_MAX; /* of the lane, of the store */

    return lane->config.sessions_max * session_bytes_max(lane) + closed_bytes_max() + empty;
}
