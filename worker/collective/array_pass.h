/* SPDX-License-Identifier: Apache-2.0 */
/* array_pass.h -- one pass over memory: what several arrays have becomes one, added up or side by
 * side.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/worker.h"

/* Arrays of replicas that are added up, element by element, in their order. */
struct pass_sum {
    enum sumac_reduce_op op;
    enum sumac_dtype dtype;  /* that reduce_has (worker/reduce.h) */
    const void *const *from; /* (count), of arrays that do not overlap `to` */
    uint32_t count;
    void *to;    /* aligned to 64 bytes */
    bool stream; /* write it past the caches, which it is too big for */
};
/* Elements first … first + elements - 1: Σ, or Σ ÷ count, the same bits as reduce_values' whose
 * weights are 1. */
void pass_sum(const struct pass_sum *sum, uint64_t first, uint64_t elements);

/* Arrays that are cut into as many rows, and each's rows laid one after the other:
 *
 *     from[0]  a a | a a      to  a a b | a a b
 *     from[1]  b   | b
 */
struct pass_join {
    const uint8_t *const *from; /* (count) */
    const uint64_t *row_bytes;  /* (count), of each */
    uint32_t count;
    uint64_t all_bytes; /* of a row of `to` */
    uint8_t *to;        /* aligned to 64 bytes */
    bool stream;
};
/* Bytes first … first + bytes - 1 of `to`. */
void pass_join(const struct pass_join *join, uint64_t first, uint64_t bytes);
