/* SPDX-License-Identifier: Apache-2.0 */
/* on_device_memory.c -- memory of values on a replica's device. A driver takes time to give memory,
 * and may wait for all work on the device. So memory of earlier values is used again.
 *
 * Work in the replica's stream may still read a value that was given up. So a block is used again
 * in two cases only. The replica's own thread takes it, which writes to it in the same stream. Or
 * all replicas are in a call, behind the work in their streams, or nothing runs.
 */
#include <assert.h>

#include "on_device.h"

#define BLOCK_BYTES_MIN 512u

static enum sumac_status
make(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    return device_buffer_create(context, bytes, buffer, error);
}

static bool spare(void *context) { return kept_free_idle(context); }

struct kept *on_device_memory_open(struct device *device)
{
    assert(device->spare == NULL);
    struct kept *memory = kept_open(&(struct kept_source){
        .make = make,
        .context = device,
        .count_max = ON_DEVICE_KEPT_MAX,
        .bytes_max = ON_DEVICE_KEPT_BYTES_MAX});
    if (memory == NULL)
        return NULL;
    device->spare = spare; /* whoever wants memory of the device's beside the strategy */
    device->spare_context = memory;
    return memory;
}

void on_device_memory_close(struct device *device, struct kept *memory)
{
    device->spare = NULL;
    kept_close(memory);
}

enum sumac_status on_device_memory_take(
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
