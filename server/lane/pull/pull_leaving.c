/* SPDX-License-Identifier: Apache-2.0 */
/* pull_leaving.c -- pulls that are over let go of their pieces as steps have time.
 *
 * A stream may end with thousands of pulls, and all of them together have a million pieces. A short
 * one goes at once; the others wait in a list of the lane, and what they take is a reader's until
 * they are gone.
 */
#include "pull_state.h"

#define PIECES_AT_ONCE 1024u

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
        lane_pull_give_room(lane, session, pull);
        free_pull(lane, pull);
        return;
    }
    lane_pull_disown_room(lane, session, pull);
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
    lane_pull_give_room(lane, NULL, pull);
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
