/* SPDX-License-Identifier: Apache-2.0 */
/* images.h -- the kernels of the program's own that a device has loaded: an image once, at the
 * first launch of one of its kernels, until the device is closed. */
#pragma once

#include <pthread.h>

#include "driver.h"
#include "list.h"
#include "sumac/device.h"

struct image;

struct images {
    pthread_mutex_t mutex; /* guards what follows */
    LIST(struct image) loaded;
};

void images_init(struct images *images);
/* With the device's context current. */
void images_deinit(const struct cuda_driver *driver, struct images *images);

/* The kernel of that launch, which may have as much shared memory as the launch says, with the
 * device's context current. CUDA_ERROR_NOT_FOUND: its image has none of the name. Lends  *function,
 * until images_deinit. Threads  any. */
CUresult images_find(
    const struct cuda_driver *driver, struct images *images, const struct sumac_launch *launch,
    CUfunction *function);
