/* SPDX-License-Identifier: Apache-2.0 */
/* replica.h (worker) -- what a replica is made of, for workers and strategies. */
#pragma once

#include "arguments.h"
#include "sumac/replica.h"

struct sumac_strategy;

struct sumac_replica {
    uint32_t id, count;          /* as the public functions say */
    struct sumac_device *device; /* NULL: the caller's thread */
    /* of a worker's step */
    uint64_t step;
    const struct sumac_tensor *values, *gradients; /* (value_count, gradient_count) */
    uint32_t value_count, gradient_count;
    double weight;
    /* of a run */
    struct sumac_strategy *strategy;
    uint32_t index; /* among the replicas of this process */
    struct arguments own;
};
