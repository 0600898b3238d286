/* SPDX-License-Identifier: Apache-2.0 */
/* pull_room.c -- what pulls take of memory while they wait or are under way, and who may take how
 * much.
 *
 *   pulls_bytes_max: | readers, 7/16 | all sessions, 7/32 | shares, 7/32 | refused, 1/8 |
 *
 * Readers have no session; of the shares each session has one.
 *
 * A session takes its share first, then of what is for all sessions: nobody takes another's share.
 * A pull that finds no room is answered so; until that answer is read it takes of the last eighth,
 * and beyond that its stream ends. A session that is closed has no share: its pulls are a reader's,
 * and streams of it that find no room as such end with it.
 *
 * Pieces of pulls that come in one size after the other leave room between those that stay, which
 * serves their own sizes only. Parts find no memory when the pool is full of it, so pulls that take
 * of what is not their session's share stop before that.
 */
#include "pull_state.h"

#include "error.h"

#define PIECES_AT_ONCE 1024u /* that are let go of */

static struct pull_bounds share_out(const struct lane_config *config)
{
    const uint64_t refused = config->pulls_bytes_max / 8;
    const uint64_t admitted = config->pulls_bytes_max - refused;

    assert(config->sessions_max > 0);
    return (struct pull_bounds){
        .readers_max = admitted / 2,
        .common_max = admitted / 4,
        .share_max = admitted / 4 / config->sessions_max,
        .refused_max = refused};
}

bool lane_pull_init(struct lane *lane)
{
    struct pulls *pulls = memory_take(lane->memory, sizeof *pulls);

    assert(lane->pulls == NULL);
    if (pulls == NULL)
        return false;
    *pulls = (struct pulls){.bounds = share_out(&lane->config), .due_next_us = UINT64_MAX};
    lane->pulls_due_us = UINT64_MAX;
    pool_init(&pulls->holds, lane->memory, sizeof(struct hold), 64);
    lane->pulls = pulls;
    return true;
}

void lane_pull_deinit(struct lane *lane)
{
    if (lane->pulls == NULL)
        return;
    assert(lane->pull_bytes == 0);
    pool_deinit(&lane->pulls->holds);
    memory_give(lane->memory, lane->pulls, sizeof *lane->pulls);
    lane->pulls = NULL;
}

static uint64_t beyond_share(const struct lane *lane, uint64_t bytes)
{
    const uint64_t share = lane->pulls->bounds.share_max;

    return bytes > share ? bytes - share : 0;
}

/* What a pull takes before it has memory for its pieces. */
static uint64_t own_bytes(void) { return sized_pool_bytes(sizeof(struct lane_pull)); }

static uint64_t bytes_of(const struct lane_pull *pull, uint64_t pieces)
{
    const uint64_t indices = pull->index_count;

    return own_bytes() + sized_pool_bytes(pieces * sizeof(struct pull_piece)) +
           (indices == 0 ? 0 : sized_pool_bytes(indices * sizeof(int64_t))) +
           (pull->result_bytes == 0 ? 0 : sized_pool_bytes(pull->result_bytes));
}

/* Do its pulls take the room of readers? */
static bool is_reader(const struct lane_session *session)
{
    return session == NULL || session->closed;
}

static enum sumac_status refuse_reader(
    const struct lane *lane, const struct lane_pull *pull, uint64_t pieces, uint64_t bytes,
    struct sumac_error *error)
{
    assert(pull->room_bytes == 0);
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "pull %" PRIu64 " of %" PRIu64 " pieces takes %" PRIu64 " bytes: ps %u keeps %" PRIu64
        " for pulls of readers without a session, and %" PRIu64
        " are taken: pull again later, or join",
        pull->request, pieces, bytes, lane->index, lane->pulls->bounds.readers_max,
        lane->pulls->reader_bytes);
}

static enum sumac_status refuse_session(
    const struct lane *lane, const struct lane_session *session, const struct lane_pull *pull,
    uint64_t pieces, uint64_t bytes, struct sumac_error *error)
{
    assert(!session->closed);
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "pull %" PRIu64 " of %" PRIu64 " pieces takes %" PRIu64 " bytes beside %" PRIu64
        " of session %s: ps %u keeps %" PRIu64 " for each session and %" PRIu64
        " for all, of which %" PRIu64 " are taken: wait for other pulls, or pull less at once",
        pull->request, pieces, bytes, session->pull_bytes, session->task, lane->index,
        lane->pulls->bounds.share_max, lane->pulls->bounds.common_max, lane->pulls->common_bytes);
}

/* Is there more between small pieces than pulls may have in all? What is in use is known as it is
 * counted for its owners; the little that sessions have beside that is taken for what is
 * between. */
static bool is_riddled(const struct lane *lane)
{
    const struct sized_pool *pool = &lane->bytes;
    const uint64_t collective = lane->rounds.room_bytes + lane->rounds.beside_bytes;
    const uint64_t in_use = lane->staged_bytes + lane->pull_bytes + collective;

    return pool->held_bytes - pool->spare_bytes >
           in_use + lane->config.pulls_bytes_max + SIZED_POOL_EMPTY_BYTES_MAX;
}

static enum sumac_status refuse_riddled(
    const struct lane *lane, const struct lane_pull *pull, uint64_t pieces,
    struct sumac_error *error)
{
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "pull %" PRIu64 " of %" PRIu64 " pieces: ps %u holds %" PRIu64
        " bytes for pushes and pulls that take %" PRIu64
        ", the rest lies between small pieces and serves others of their sizes only; at most "
        "%" PRIu64 " may: pull again later, or less at once",
        pull->request, pieces, lane->index, (lane->bytes.held_bytes - lane->bytes.spare_bytes),
        (lane->staged_bytes + lane->pull_bytes), lane->config.pulls_bytes_max);
}

static void change_session(struct lane *lane, struct lane_session *session, uint64_t pull_bytes)
{
    assert(lane->pulls->common_bytes >= beyond_share(lane, session->pull_bytes));
    lane->pulls->common_bytes -= beyond_share(lane, session->pull_bytes);
    lane->pulls->common_bytes += beyond_share(lane, pull_bytes);
    session->pull_bytes = pull_bytes;
}

enum sumac_status lane_pull_take_room(
    struct lane *lane, struct lane_session *session, struct lane_pull *pull, uint64_t pieces,
    struct sumac_error *error)
{
    const uint64_t bytes = bytes_of(pull, pieces);
    const bool shared = is_reader(session) || beyond_share(lane, session->pull_bytes + bytes) > 0;

    assert(pull->room_bytes == 0);
    if (shared && is_riddled(lane))
        return refuse_riddled(lane, pull, pieces, error);
    if (is_reader(session)) {
        if (lane->pulls->reader_bytes + bytes > lane->pulls->bounds.readers_max)
            return refuse_reader(lane, pull, pieces, bytes, error);
        lane->pulls->reader_bytes += bytes;
    } else {
        const uint64_t common = beyond_share(lane, session->pull_bytes + bytes) -
                                beyond_share(lane, session->pull_bytes);
        if (lane->pulls->common_bytes + common > lane->pulls->bounds.common_max)
            return refuse_session(lane, session, pull, pieces, bytes, error);
        change_session(lane, session, session->pull_bytes + bytes);
    }
    pull->room_bytes = bytes;
    lane->pull_bytes += bytes;
    return SUMAC_OK;
}

bool lane_pull_take_last_room(struct lane *lane, struct lane_pull *pull)
{
    assert(pull->room_bytes == 0);
    if (lane->pulls->refused_bytes + own_bytes() > lane->pulls->bounds.refused_max)
        return false;
    pull->room_bytes = own_bytes();
    pull->refused_room = true;
    lane->pull_bytes += pull->room_bytes;
    lane->pulls->refused_bytes += pull->room_bytes;
    return true;
}

static void give_room(struct lane *lane, struct lane_session *session, struct lane_pull *pull)
{
    assert(lane->pull_bytes >= pull->room_bytes);
    assert(
        pull->refused_room || !is_reader(session) || lane->pulls->reader_bytes >= pull->room_bytes);
    assert(pull->refused_room || is_reader(session) || session->pull_bytes >= pull->room_bytes);
    assert(!pull->refused_room || lane->pulls->refused_bytes >= pull->room_bytes);
    lane->pull_bytes -= pull->room_bytes;
    if (pull->refused_room)
        lane->pulls->refused_bytes -= pull->room_bytes;
    else if (is_reader(session))
        lane->pulls->reader_bytes -= pull->room_bytes;
    else
        change_session(lane, session, session->pull_bytes - pull->room_bytes);
    assert(lane->pulls->refused_bytes + lane->pulls->reader_bytes <= lane->pull_bytes);
}

void lane_pull_disown_session(struct lane *lane, struct lane_session *session)
{
    assert(session->closed);
    lane->pulls->reader_bytes += session->pull_bytes;
    change_session(lane, session, 0);
}

/* ---- it is over. A stream may end with thousands of pulls, and all of them together have a
 * million pieces. A short one goes at once; the others wait in a list of the lane, and what they
 * take is a reader's until they are gone. */

/* Let go of the last of its pieces. False: some are left. */
static bool let_go(struct lane *lane, struct lane_pull *pull)
{
    const uint32_t left =
        pull->piece_count > PIECES_AT_ONCE ? pull->piece_count - PIECES_AT_ONCE : 0;

    lane->work += (pull->piece_count - left) / PIECES_PER_WORK;
    while (pull->piece_count > left)
        store_let_go(&lane->store, pull->pieces[--pull->piece_count].shard);
    return left == 0;
}

static void free_pull(struct lane *lane, struct lane_pull *pull)
{
    assert(pull->piece_count == 0);
    sized_pool_give(&lane->bytes, pull->pieces, pull->piece_capacity * sizeof *pull->pieces);
    sized_pool_give(&lane->bytes, pull->indices, pull->index_count * sizeof *pull->indices);
    sized_pool_give(&lane->bytes, pull->collective, pull->result_bytes);
    sized_pool_give(&lane->bytes, pull, sizeof *pull);
}

void lane_pull_leave(struct lane *lane, struct lane_session *session, struct lane_pull *pull)
{
    assert(!pull->active);
    assert(pull->piece_count <= pull->piece_capacity);
    if (lane_has_time(lane) && let_go(lane, pull)) {
        give_room(lane, session, pull);
        free_pull(lane, pull);
        return;
    }
    if (!pull->refused_room && !is_reader(session)) { /* from here on a reader's */
        assert(session->pull_bytes >= pull->room_bytes);
        change_session(lane, session, session->pull_bytes - pull->room_bytes);
        lane->pulls->reader_bytes += pull->room_bytes;
    }
    pull->next_piece = pull->kept_count = 0; /* no more of it is said, or looked up */
    LIST_APPEND(&lane->pulls_leaving, pull, in_stream);
}

/* The oldest goes on. */
static void reclaim_some(struct lane *lane)
{
    struct lane_pull *pull = lane->pulls_leaving.first;

    lane->work++;
    if (!let_go(lane, pull))
        return;
    LIST_REMOVE(&lane->pulls_leaving, pull, in_stream);
    give_room(lane, NULL, pull);
    free_pull(lane, pull);
}

void lane_pull_reclaim(struct lane *lane)
{
    while (lane->pulls_leaving.first != NULL && lane_has_time(lane))
        reclaim_some(lane);
}

void lane_pull_reclaim_all(struct lane *lane)
{
    while (lane->pulls_leaving.first != NULL)
        reclaim_some(lane);
    assert(lane->pull_bytes == 0);
}
