/* SPDX-License-Identifier: Apache-2.0 */
/* checksum.c -- XXH3-64 of a part's payload: the one door to xxHash, which is header-only here. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "part_state.h"

void *lane_checksum_begin(struct lane *lane)
{
    XXH3_state_t *state = sized_pool_take(&lane->bytes, sizeof *state);

    if (state != NULL)
        (void)XXH3_64bits_reset(state);
    return state;
}

void lane_checksum_update(void *state, const void *data, size_t bytes)
{
    (void)XXH3_64bits_update(state, data, bytes);
}

uint64_t lane_checksum_end(struct lane *lane, void *state)
{
    const uint64_t sum = XXH3_64bits_digest(state);

    sized_pool_give(&lane->bytes, state, sizeof(XXH3_state_t));
    return sum;
}
