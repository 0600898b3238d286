/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_updates.h -- the kernels of update functions in a context, for those who have a stream;
 * cuda_update.h is for those who have a queue. updates.cu has what they compute.
 */
#ifndef WORKER_CUDA_CUDA_UPDATES_H
#define WORKER_CUDA_CUDA_UPDATES_H

#include "cuda_device.h"
#include "cuda_update.h"
#include "dtype.h"

struct cuda_updates {
    CUmodule module; /* NULL: not loaded */
    CUfunction functions[UPDATE_FUNCTIONS_MAX + 1][DTYPES_MAX + 1];
    uint32_t blocks_max; /* of a launch; with fewer each thread takes more */
};

/* Load them into the context that is current; give them back in it. */
CUresult cuda_updates_load(const struct cuda_driver *driver, struct cuda_updates *updates);
void cuda_updates_unload(const struct cuda_driver *driver, struct cuda_updates *updates);

/* Put one into a stream of that context; its queue is not looked at. */
CUresult cuda_update_launch(
    const struct cuda_driver *driver, const struct cuda_updates *updates,
    const struct device_update *update, CUstream stream);

/* Of a device that closes, with its context current: nothing of its queues is left. */
void cuda_update_forget(struct cuda_device *device);

#endif
