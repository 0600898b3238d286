/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h -- the yardstick of bench/device_group: loops that one would write by hand, each over
 * arrays that are there already, by one thread or a share by each of several.
 */
#pragma once

#include <stdint.h>

#include "crew.h"

#define PASS_REPLICAS_MAX 4u

/* from[0] + from[1] (+ from[2] + from[3]) into `to`, (elements); or one after the other, (replicas
 * × elements). */
struct pass {
    const float *from[PASS_REPLICAS_MAX];
    float *to;
    uint64_t elements;
    uint32_t replicas;
};

/* The ways to do it; which is the best depends on how much it is. */
enum {
    PASS_ONE_THREAD,  /* the loop, or memcpy */
    PASS_ALL_THREADS, /* a share each, as many as there are cores */
    PASS_STREAMED,    /* the same, with stores that go round the caches */
    PASS_WAYS
};

void by_hand_sum(const struct pass *pass, uint32_t way, struct crew *crew, uint32_t threads);
void by_hand_gather(const struct pass *pass, uint32_t way, struct crew *crew, uint32_t threads);
