/* SPDX-License-Identifier: Apache-2.0 */
/* device_update.h -- update functions of arrays in a device's memory, put into one of its queues:
 * what update_run (lib/update/update.h) does with arrays of the host's, with the same bits.
 */
#pragma once

#include <stdbool.h>

#include "device.h"
#include "update.h"

struct device_update {
    /* Of addresses in the device's memory. One that is of rows, of several sources or of an
     * expression is not for a device; `scale` and `clip` are. */
    struct update_slice slice;
    bool is_wide;               /* of a half type: the gradient is float32 */
    struct device_queue *queue; /* that it was put into */
};

/* Does the kind of device update values of that type by this function? If not, the host does. */
bool device_has_update(
    const struct device_ops *ops, const struct update_function *function, enum sumac_dtype dtype);

/* Put it into the queue, after what it has, of what device_has_update.
 * Borrows  *update, until the queue is waited for.
 * Fails    by the next wait: RESOURCE_EXHAUSTED, the device has no memory for the function's code.
 * Threads  one at a time for a queue. */
void device_update(struct device_queue *queue, struct device_update *update);
