/* SPDX-License-Identifier: Apache-2.0 */
/* session.c -- what a ps knows of one session: who it is of, and its parts by sequence. */
#include "peer_state.h"

#include "voided.h"

bool lane_peer_init(struct lane *lane)
{
    struct peers *peers = memory_take(lane->memory, sizeof *peers);

    assert(lane->peers == NULL);
    if (peers == NULL)
        return false;
    *peers = (struct peers){
        .slowest_clock = UINT64_MAX,
        .renew_due_us = lane->config.started_us + (uint64_t)lane->config.lease_ms * 1000 / 4};
    pool_init(&peers->streams, lane->memory, sizeof(struct lane_stream), 16);
    pool_init(&peers->sessions, lane->memory, sizeof(struct lane_session), 8);
    pool_init(&peers->reports, lane->memory, sizeof(struct report), 16);
    id_map_init(&peers->by_id, lane->memory);
    lane->peers = peers;
    return true;
}

void lane_peer_deinit(struct lane *lane)
{
    struct peers *peers = lane->peers;

    if (peers == NULL)
        return;
    assert(peers->streams.used == 0);
    assert(peers->sessions.used == 0);
    assert(peers->reports.used == 0);
    id_map_deinit(&peers->by_id);
    pool_deinit(&peers->reports);
    pool_deinit(&peers->sessions);
    pool_deinit(&peers->streams);
    memory_give(lane->memory, peers, sizeof *peers);
    lane->peers = NULL;
}

/* A walk, of a few microseconds at most: there are sessions_max open ones and
 * LANE_CLOSED_SESSIONS_MAX others, and only a stream's hello and what is said of a session's end
 * look for one. A push and a pull have theirs by their stream. */
struct lane_session *lane_session_find(const struct lane *lane, const uint8_t id[16])
{
    struct lane_session *session = lane_session_after(lane, NULL);

    while (session != NULL && memcmp(session->id, id, sizeof session->id) != 0)
        session = lane_session_after(lane, session);
    return session;
}

/* Do pulls wait for its clock? Not for an observer's, and not for a settled member's. */
static bool is_waited_for(const struct lane *lane, const struct lane_session *session)
{
    const bool settled =
        session->closed && rule_holds(lane->config.broken, RULE_settled_hold_up_nothing);

    return (int)session->role == WIRE_ROLE_MEMBER && !settled;
}

static bool is_slowest(const struct lane *lane, const struct lane_session *session)
{
    return is_waited_for(lane, session) && session->clock == lane->peers->slowest_clock;
}

static void count_clock(const struct lane *lane, const struct lane_session *session)
{
    struct peers *peers = lane->peers;

    if (!is_waited_for(lane, session) || session->clock > peers->slowest_clock)
        return;
    if (session->clock < peers->slowest_clock)
        peers->slowest_count = 0;
    peers->slowest_clock = session->clock;
    peers->slowest_count++;
}

/* One of the slowest is so no longer. When it was the last, all are looked at: once in a step of
 * theirs. */
static void leave_slowest(struct lane *lane)
{
    struct peers *peers = lane->peers;

    assert(peers->slowest_count > 0);
    if (--peers->slowest_count > 0)
        return;
    peers->slowest_clock = UINT64_MAX;
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane)
        count_clock(lane, session);
    lane->work += peers->sessions.used / PIECES_PER_WORK;
    lane->turns_taken = true;
}

void lane_session_set_clock(struct lane *lane, struct lane_session *session, uint64_t clock)
{
    const bool was_slowest = is_slowest(lane, session);

    assert(clock > session->clock);
    assert(clock <= session->clock_said);
    session->clock = clock;
    if (was_slowest)
        leave_slowest(lane);
}

struct lane_session *lane_session_open(struct lane *lane, const wire_open_session *open)
{
    struct lane_session *session = pool_take(&lane->peers->sessions);

    assert(open->session_id.len == sizeof session->id);
    assert(lane_session_find(lane, open->session_id.data) == NULL);
    if (session == NULL)
        return NULL;
    memcpy(session->id, open->session_id.data, sizeof session->id);
    session->role = (uint32_t)open->role;
    session->attempt = open->attempt;
    session->clock = session->clock_said = open->clock;
    session->heard_us = lane->now_us;
    if (open->task != NULL) {
        (void)text_print_line(session->job, sizeof session->job, "%s", open->task->job);
        session->index = open->task->index;
    }
    if (open->task != NULL && open->task->job[0] != '\0')
        (void)text_print_line(
            session->task, sizeof session->task, "%s %u", open->task->job, open->task->index);
    else
        (void)text_print(session->task, sizeof session->task, "observer %" PRIu64, open->attempt);
    LIST_APPEND(&lane->sessions, session, in_lane);
    count_clock(lane, session);
    return session;
}

static void free_session(struct lane *lane, struct lane_session *session)
{
    lane_session_drop_parts(lane, session, 0);
    lane_claims_drop(lane, session);
    lane_contributions_heard(lane, session, UINT64_MAX);
    assert(session->part_count == 0);
    lane_voided_drop(lane, session);
    lane_come_forget(lane, session);
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        if (stream->session != session)
            continue;
        lane_answers_drop(lane, stream);
        stream->session = NULL;
    }
    pool_give(&lane->peers->sessions, session);
}

static void forget(struct lane *lane, struct lane_session *session)
{
    assert(session->closed);
    assert(lane->peers->closed_count > 0);
    LIST_REMOVE(&lane->closed_sessions, session, in_lane);
    lane->peers->closed_count--;
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

/* While more closed sessions are remembered than may be, the oldest of those that have no part left
 * is forgotten, but never the newest: its client, if there is one, is told to join again. */
static void forget_beyond_bounds(struct lane *lane)
{
    struct lane_session *newest = lane->closed_sessions.first, *before;
    uint64_t bytes = 0;

    for (const struct lane_session *at = newest; at != NULL; at = at->in_lane.next)
        bytes += voided_bytes(at);
    for (struct lane_session *session = lane->closed_sessions.last; session != newest;
         session = before) {
        before = session->in_lane.prev;
        if (lane->peers->closed_count <= lane->config.closed_sessions_max &&
            bytes <= CLOSED_VOIDED_BYTES_MAX)
            return;
        if (session->parts.first != NULL || session->turn != TURN_IDLE)
            continue;
        bytes -= voided_bytes(session);
        forget(lane, session);
    }
}

/* Its streams give their places to others; what is left to be said on them goes out first. */
void lane_session_end(struct lane *lane, struct lane_session *session)
{
    assert(session->closed);
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        if (stream->session == session && stream->state != STREAM_ENDED)
            lane_place_estrange(lane, stream);
    }
    LIST_REMOVE(&lane->sessions, session, in_lane);
    LIST_PREPEND(&lane->closed_sessions, session, in_lane);
    lane->peers->closed_count++;
    forget_beyond_bounds(lane);
}

void lane_session_close(struct lane *lane, struct lane_session *session)
{
    struct lane_stream *stream = session->push_stream;

    session->closing = true;
    if (stream != NULL && stream->receiving != NULL) {
        assert(stream->receiving->session == session);
        lane_part_destroy(lane, stream->receiving);
        stream->receiving = NULL;
    }
    lane_claims_drop(lane, session);
}

void lane_session_decide(
    struct lane *lane, struct lane_session *session, const wire_decide_session *decided)
{
    const bool was_slowest = is_slowest(lane, session);

    assert(!session->closed);
    assert(session->voided_capacity >= session->voided_count + decided->n_voided);
    for (size_t i = 0; i < decided->n_voided; i++)
        (void)lane_voided_put(session, decided->voided[i]);
    lane_session_close(lane, session); /* which ps 0 need not have ordered before */
    session->closed = true;
    session->close_number = 0;
    session->done = decided->done;
    session->final = decided->final;
    session->decided_acked_through = decided->acked_through;
    if (session->commit_through < decided->final)
        session->commit_through = decided->final;
    assert(session->commit_through >= session->final);
    if (was_slowest && !is_slowest(lane, session))
        leave_slowest(lane);
}

/* Of whoever was silent for a while ps 0 hears at once: it may be about to close the session. */
void lane_session_heard(struct lane *lane, struct lane_session *session)
{
    const uint64_t while_us = (uint64_t)lane->config.lease_ms * 1000 / 4;

    assert(lane->now_us >= session->heard_us);
    if (lane->now_us - session->heard_us > while_us && lane->controller != NULL) {
        lane->peers->renew_due_us = 0;
        lane_stream_attend(lane, lane->controller);
    }
    session->heard_us = lane->now_us;
    session->heard = true;
}

/* ps 0 closes a session when its lease is over, and orders that at once. A session that is open
 * although it has been silent here for longer has renewed its lease at ps 0. */
static bool is_alive(const struct lane *lane, const struct lane_session *session)
{
    const uint64_t lease_us = (uint64_t)lane->config.lease_ms * 1000;
    const uint64_t since_us =
        session->heard_us > lane->resumed_us ? session->heard_us : lane->resumed_us;
    const bool hears_ps_0 =
        lane->index == 0 || lane->now_us - lane->controller_heard_us < lease_us / 2;

    assert(lane->now_us >= since_us);
    return !session->closing && !lane_run_is_over(lane) && hears_ps_0 &&
           lane->now_us - since_us > lease_us + lease_us / 2;
}

struct session_silence
lane_session_silence(const struct lane *lane, const struct lane_session *session)
{
    struct session_silence silence;

    (void)text_print(
        silence.text, sizeof silence.text, "%sno push or pull on ps %u for %s",
        is_alive(lane, session) ? "alive, " : "", lane->index,
        text_time_us(lane->now_us - session->heard_us).text);
    return silence;
}

bool lane_session_has_joined(const struct lane *lane, const char *job, uint32_t index)
{
    const struct lane_session *session = lane_session_after(lane, NULL);

    while (session != NULL && (session->index != index || strcmp(session->job, job) != 0))
        session = lane_session_after(lane, session);
    return session != NULL;
}

bool lane_session_pushes_alone(const struct lane_session *session)
{
    return session->contributed_step == 0 && session->counts.pushes > session->counts.collectives;
}

bool lane_session_is_behind(
    const struct lane *lane, const struct lane_session *session, uint64_t clock)
{
    return is_waited_for(lane, session) && session->clock < clock;
}

uint64_t lane_session_slowest_clock(const struct lane *lane, uint64_t otherwise)
{
    return lane->peers->slowest_count == 0 ? otherwise : lane->peers->slowest_clock;
}
