/* SPDX-License-Identifier: Apache-2.0 */
/* create.h -- a worker whose replicas run on devices of a given kind; sumac_worker_create makes one
 * on the kind that device.c says. */
#ifndef WORKER_CREATE_H
#define WORKER_CREATE_H

#include "device.h"
#include "sumac/worker.h"

/* As sumac_worker_create, with the kind of devices, which has collectives. */
enum sumac_status worker_create(
    const struct device_ops *devices, const struct sumac_worker_options *options,
    struct sumac_worker **worker, struct sumac_error *error);

#endif
