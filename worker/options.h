/* SPDX-License-Identifier: Apache-2.0 */
/* options.h -- a worker's options as it goes by them. */
#ifndef WORKER_OPTIONS_H
#define WORKER_OPTIONS_H

#include "device.h"
#include "sumac/worker.h"

/* Those given, with what SUMAC_REPLICAS and SUMAC_SYNCHRONOUS say and the defaults where they say
 * nothing. Fails  as sumac_worker_create. */
enum sumac_status worker_options_read(
    const struct device_ops *devices, const struct sumac_worker_options *options,
    struct sumac_worker_options *filled, struct sumac_error *error);

/* How many replicas SUMAC_REPLICAS says, where *replicas says nothing (0). Fails
 * INVALID_ARGUMENT: it is no such number. */
enum sumac_status options_replicas(uint32_t *replicas, struct sumac_error *error);

#endif
