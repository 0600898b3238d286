/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c -- what a lane keeps at most of its sessions, as the published formula says it. */
#include "handlers.h"

/* Until a session is settled it has its own list, and then the union of those of all ps. A list
 * that has grown has less than twice the places that it needs, and while it grows there are two of
 * them. */
static uint64_t voided_bytes_max(const struct lane *lane)
{
    const uint64_t count = (1 + (uint64_t)lane->ps_count) * lane->config.voided_per_session_max;
    const uint64_t places = count < VOIDED_CAPACITY_MIN ? VOIDED_CAPACITY_MIN : count;

    return 3 * places * sizeof(struct voided);
}

/* Of it, what lane->bytes holds: arrays of a part that grow, … */
#define GROWING_BYTES_MAX (LANE_PIECES_PER_PART_MAX * sizeof(struct run) / 2)

/* … and what nobody else's parts and pulls may hinder. */
static uint64_t reserved_bytes_max(const struct lane *lane)
{
    const uint64_t slices =
        SLICES_PER_OPERATION_MAX * (sizeof(struct update_slice) + sizeof(struct block *));

    return voided_bytes_max(lane) + ANSWERS_BESIDE_BYTES_MAX + slices;
}

static uint64_t session_bytes_max(const struct lane *lane)
{
    const uint64_t records = lane->config.voided_per_session_max * sizeof(struct refusal) +
                             lane->config.parts_per_session_max * sizeof(struct lane_part) +
                             2 * lane->config.parts_per_session_max * sizeof(struct contribution) +
                             lane->config.parts_per_session_max * sizeof(struct claim);

    return sizeof(struct lane_session) + records + GROWING_BYTES_MAX + reserved_bytes_max(lane);
}

void lane_session_bound_pool(struct lane *lane)
{
    const uint64_t sessions_max = lane->config.sessions_max, most = UINT64_MAX / 8;
    const uint64_t staging = lane->config.staging_bytes_max, pulls = lane->config.pulls_bytes_max;
    const uint64_t collective = lane->config.collective_bytes_max;

    assert(sessions_max > 0);
    lane->bytes.held_bytes_max = (staging < most ? staging : most) + (pulls < most ? pulls : most) +
                                 (collective < most ? collective : most) +
                                 sessions_max * GROWING_BYTES_MAX + SIZED_POOL_EMPTY_BYTES_MAX;
    lane->bytes.reserve_bytes = sessions_max * (reserved_bytes_max(lane) + voided_bytes_max(lane)) +
                                2 * (uint64_t)CLOSED_VOIDED_BYTES_MAX;
}

/* As many sessions again may be open without a grant (grants.c): nothing of theirs is staged. Small
 * lists that are given back are kept for others of their size: as much again. */
uint64_t lane_sessions_bytes_max(const struct lane *lane)
{
    const uint64_t empty = 2 * (uint64_t)SIZED_POOL_EMPTY_BYTES_MAX; /* of the lane, of the store */
    const uint64_t grantless = sizeof(struct lane_session) + voided_bytes_max(lane);
    const uint64_t closed = lane->config.closed_sessions_max * sizeof(struct lane_session) +
                            2 * (uint64_t)CLOSED_VOIDED_BYTES_MAX;

    assert(lane->ps_count <= LANE_PS_MAX);
    return lane->config.sessions_max * (session_bytes_max(lane) + grantless) + closed + empty +
           FUNCTIONS_BYTES;
}
