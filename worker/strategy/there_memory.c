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

static enum sumac_status
make(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    return device_buffer_create(context, bytes, buffer, error);
}

static bool spare(void *context) { return kept_free_idle(context); }

struct kept *there_memory_open(struct device *device)
{
    assert(device->spare == NULL);
    struct kept *memory = kept_open(&(struct kept_source){
        .make = make,
        .context = device,
        .count_max = THERE_KEPT_MAX,
        .bytes_max = THERE_KEPT_BYTES_MAX});
    if (memory == NULL)
        return NULL;
    device->spare = spare; /* whoever wants memory of the device's beside the strategy */
    device->spare_context = memory;
    return memory;
}

void there_memory_close(struct device *device, struct kept *memory)
{
    device->spare = NULL;
    kept_close(memory);
}

enum sumac_status there_memory_take(
    struct kept *memory, uint64_t bytes, bool again, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    const bool fits = bytes <= PTRDIFF_MAX - BLOCK_BYTES_MIN;
    const uint64_t blocks = bytes / BLOCK_BYTES_MIN + (bytes % BLOCK_BYTES_MIN != 0 || bytes == 0);

    return fits ? kept_take(
                      memory,
                      &(struct kept_wish){
                          .bytes = bytes, .room = blocks * BLOCK_BYTES_MIN, .is_new = !again},
                      buffer, error)
                : value_fail_for_memory(error);
}
