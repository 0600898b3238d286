/* SPDX-License-Identifier: Apache-2.0 */
/* create.h -- a worker whose replicas run on given devices; sumac_worker_create makes one on those
 * that its options say. */
#pragma once

#include "devices.h"
#include "sumac/worker.h"

/* As sumac_worker_create, with the devices, whose kind has collectives; one of no kind (zeroed): as
 * the options say. */
enum sumac_status worker_create(
    const struct devices *devices, const struct sumac_worker_options *options,
    struct sumac_worker **worker, struct sumac_error *error);
