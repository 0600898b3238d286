/* SPDX-License-Identifier: Apache-2.0 */
/* replica.h (worker) -- what a replica is made of, for workers and strategies: what a program's
 * function is given in one replica, or for one component, and what it returns there. */
#pragma once

#include <stdbool.h>

#include "sumac/replica.h"
#include "sumac/value.h"

struct sumac_strategy;

struct arguments {
    struct sumac_value *args, *kwargs; /* NULL: the function does not run */
    struct sumac_value *returned;      /* NULL: nothing … */
    bool has_returned;                 /* … yet; else there was no memory for it */
};

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

/* Are they a tuple or list, and a dict? NULL will do. `of` begins the text: "update of w".
 * Fails  INVALID_ARGUMENT. */
enum sumac_status arguments_check(
    const char *of, const struct sumac_value *args, const struct sumac_value *kwargs,
    struct sumac_error *error);
/* The replica's own of both; of NULL an empty tuple and an empty dict. arguments_end ends them,
 * also where it fails. Fails  as sumac_value_select. */
enum sumac_status arguments_select(
    const struct sumac_value *args, const struct sumac_value *kwargs, uint32_t replica,
    struct arguments *own, struct sumac_error *error);
/* Takes  value. */
void arguments_return(struct arguments *own, struct sumac_value *value);
/* The function has returned `status`.
 * Gives  *returned: what it returned, or `none`; NULL where it failed. Zeroes `own`.
 * Fails  with status; RESOURCE_EXHAUSTED. */
enum sumac_status arguments_end(
    struct arguments *own, enum sumac_status status, struct sumac_value **returned,
    struct sumac_error *error);
/* What a program's function has said with another status than OK, as one line: of itself if it set
 * the error's status, or else behind who returned what. Fails  always, so. */
enum sumac_status
function_failed(struct sumac_error *said, enum sumac_status status, const char *whose);
