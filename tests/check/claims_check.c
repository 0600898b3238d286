/* SPDX-License-Identifier: Apache-2.0 */
/* claims_check.c -- is the sum of the claims on the pool what the pool counts? */
#include "claims_check.h"

#include <inttypes.h>

#include "part_state.h"
#include "peer_state.h"

/* Of answers that take their room there. */
static uint64_t count_answers(const struct lane *lane)
{
    uint64_t bytes = 0;

    for (const struct lane_stream *stream = lane->streams.first; stream != NULL;
         stream = stream->in_lane.next) {
        for (const struct answer *answer = stream->answers.first; answer != NULL;
             answer = answer->in_stream.next)
            bytes += answer->pooled ? answer->room_bytes : 0;
    }
    return bytes;
}

static void check_claim(const struct claim *claim, struct check *check)
{
    const bool held = claim->state == CLAIM_HELD;

    if (held != (claim->part != NULL) || (held && claim->part->claim != claim) ||
        (held && claim->part->sequence != claim->sequence) || claim->used_bytes > claim->room_bytes)
        check_object(
            check, "the claim of push %" PRIu64 " of %s is in state %d, against its part",
            claim->sequence, claim->session->task, (int)claim->state);
    if (claim->session->closing && !held)
        check_object(
            check, "push %" PRIu64 " of %s waits for room after the end of its session",
            claim->sequence, claim->session->task);
}

void claims_check(const struct lane *lane, uint64_t floors_bytes, struct check *check)
{
    const struct claims *claims = &lane->claims;
    const uint64_t max = lane->config.staging_bytes_max;
    uint64_t bytes = count_answers(lane), waiting = 0, count = 0;

    for (const struct claim *claim = claims->all.first; claim != NULL;
         claim = claim->in_lane.next) {
        check_claim(claim, check);
        waiting += claim->state == CLAIM_WAITS;
        bytes += claim->state == CLAIM_WAITS ? 0 : claim->room_bytes;
        count++;
    }
    check_same(check, claims->waiting, waiting, "claims that wait", "the lane");
    check_same(check, claims->bytes, bytes, "bytes of the pool", "the lane");
    check_same(check, lane->parts->claims.used, count, "claims", "the lane");
    if (bytes > claims->bytes_max)
        check_object(check, "%" PRIu64 " bytes are taken of the pool", bytes);
    check_same(check, lane->staged_bytes, floors_bytes + bytes, "staged bytes", "the lane");
    check_same(
        check, lane->bytes.spare_bytes_max, max > lane->staged_bytes ? max - lane->staged_bytes : 0,
        "bytes of staging that may be spare", "the lane");
}
