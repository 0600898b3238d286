/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.h -- what a GPU and its queue are made of, for cuda_group.c, which puts NCCL's
 * calls into the same streams. */
#pragma once

#include "device.h"
#include "driver.h"
#include "dtype.h"
#include "list.h"

/* The kernels of update functions (kernels.c). */
struct cuda_updates {
    CUmodule module; /* NULL: not loaded */
    CUfunction functions[UPDATE_FUNCTIONS_MAX + 1][DTYPES_MAX + 1];
    uint32_t blocks_max; /* of a launch; with fewer each thread takes more */
};

struct cuda_device {
    struct device base;
    const struct cuda_driver *driver;
    CUdevice number;
    CUcontext context;           /* the primary one: libraries that a step uses have the same */
    CUstream zeroing;            /* of new memory */
    pthread_mutex_t mutex;       /* guards what follows */
    LIST(struct image) images;   /* of the program's own kernels */
    struct cuda_updates updates; /* loaded by the first update */
};

struct cuda_event {
    struct device_event base;
    CUevent event;
};

struct cuda_queue {
    struct device_queue base;
    CUstream stream;
};

/* Note of a device what the driver's result says of it. Returns  the result. */
CUresult cuda_device_note(struct device *device, CUresult result);

/* Make the device's context current on this thread, and pop it again: streams, events, memory and
 * modules are made and destroyed in between. Leave only after an enter that succeeded. */
CUresult cuda_device_enter(const struct cuda_device *device);
void cuda_device_leave(const struct cuda_device *device);
CUresult cuda_device_create_event(const struct cuda_device *device, CUevent *event);
void cuda_device_destroy_event(const struct cuda_device *device, CUevent event); /* NULL is fine */

/* Let lib/base/host_copy.h copy from and to GPUs: such a copy is done when the call returns.
 * Threads any. */
void cuda_host_copy_begin(void);

/* The kernel of that launch, which may have as much shared memory as the launch says, with the
 * device's context current. An image is loaded once, at the first launch of one of its kernels.
 * CUDA_ERROR_NOT_FOUND: its image has none of the name. Lends  *function, until images_unload.
 * Threads  any. */
CUresult
images_find(struct cuda_device *device, const struct sumac_launch *launch, CUfunction *function);
/* With the device's context current. */
void images_unload(struct cuda_device *device);
