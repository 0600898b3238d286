/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_update.h -- update functions of arrays in a GPU's memory: the twin of update_run
 * (lib/update/update.h), by the same slice and with the same bits, but for the payload of a NaN.
 *
 * A component of a variable is updated so, all of whose arrays the device has:
 *
 *     if (!cuda_update_has(function, dtype))
 *         … on the host, with update_run
 *     struct device_update update = {.slice = {.function = function, .dtype = dtype, .count = …,
 *                                            .value_out = …, .value_in = …, .gradient = …}};
 *     update.slice.slot_out[i] = …, slot_in[i] = …       of those that there are
 *     update_prepare(function, dtype, hyperparameters, step, &update.slice);
 *     cuda_update(queue, &update);
 *     device_wait(queue)                                 or an event of the queue's
 *
 * What a pointer of the slice is: a number that the device knows as an address, that of
 * sumac_buffer_data, plus an offset of whole elements. It runs after what the queue has, copies and
 * reductions too; several may be put into it before a wait.
 */
#pragma once

#include <stdbool.h>

#include "cuda_device.h"

/* Is the function one of the table, and the type a float? Threads  any. */
bool cuda_update_has(const struct update_function *function, enum sumac_dtype dtype);

/* Put it into the queue of a GPU. The first one on a device loads the kernels there.
 * Borrows  *update, until the queue is waited for.
 * Fails    by the next wait, as whatever is put into a queue: RESOURCE_EXHAUSTED, the device has no
 *          memory for the kernels.
 * Threads  one at a time for a queue. */
void cuda_update(struct device_queue *queue, struct device_update *update);

/* ---- the kernels in a context, for those who have a stream; updates.cu has what they compute */

/* Load them into the context that is current; give them back in it. */
CUresult cuda_updates_load(const struct cuda_driver *driver, struct cuda_updates *updates);
void cuda_updates_unload(const struct cuda_driver *driver, struct cuda_updates *updates);

/* Put one into a stream of that context; its queue is not looked at. */
CUresult cuda_update_launch(
    const struct cuda_driver *driver, const struct cuda_updates *updates,
    const struct device_update *update, CUstream stream);
