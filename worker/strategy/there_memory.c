/* SPDX-License-Identifier: Apache-2.0 */
/* there_memory.c -- the memory of values on a replica's device, which a driver takes its time for,
 * and may wait for all that runs there: that of earlier values is taken again.
 *
 * Whoever gives a value up may have work in the replica's stream that still reads it. So a block is
 * taken again only by that replica's own thread, which writes to it in the same stream, while all
 * replicas are in a call, behind what they had in their streams, or while nothing runs.
 */
#include <assert.h>

#include "there.h"

#define BLOCK_BYTES_MIN 512u

static enum sumac_status make(void *context, uint64_t bytes, struct sumac_buffer **buffer)
{
    return device_buffer_create(context, bytes, buffer);
}

struct kept *there_memory_open(struct device *device)
{
    assert(device != NULL);
    return kept_open(&(struct kept_source){
        .make = make,
        .context = device,
        .count_max = THERE_KEPT_MAX,
        .bytes_max = THERE_KEPT_BYTES_MAX});
}

struct sumac_buffer *there_memory_take(struct kept *memory, uint64_t bytes, bool again)
{
    if (bytes > PTRDIFF_MAX - BLOCK_BYTES_MIN)
        return NULL;
    const uint64_t blocks = bytes / BLOCK_BYTES_MIN + (bytes % BLOCK_BYTES_MIN != 0 || bytes == 0);
    return kept_take(
        memory,
        &(struct kept_wish){.bytes = bytes, .room = blocks * BLOCK_BYTES_MIN, .is_new = !again});
}
