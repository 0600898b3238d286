/* SPDX-License-Identifier: Apache-2.0 */
/* options.h -- a worker's options as it goes by them. */
#pragma once

#include <stdbool.h>

#include "devices.h"
#include "sumac/worker.h"

/* Those given, with what SUMAC_DEVICES, SUMAC_REPLICAS, SUMAC_SYNCHRONOUS and SUMAC_TRACE say and
 * the defaults where they say nothing; `step` is that of the devices, a trace that is none is NULL.
 * *devices, where they have no kind yet, are chosen. Fails  as sumac_worker_create. */
enum sumac_status worker_options_read(
    const struct sumac_worker_options *options, struct sumac_worker_options *filled,
    struct devices *devices, struct sumac_error *error);
