/* SPDX-License-Identifier: Apache-2.0 */
/* shortage.h -- the memory of one process: the run's source, until some takes of it fail.
 *
 * A shortage begins after a few more takes, for one of them or for a stretch, so that any take of a
 * core may be the one. It ends after a while, whoever takes or not.
 */
#pragma once

#include <stdint.h>

#include "memory.h"

struct shortage {
    struct memory memory; /* what a core is given */
    const struct memory *source;
    uint32_t passes, fails; /* so many takes more succeed, then so many fail */
    uint64_t failed;
};

void shortage_init(struct shortage *shortage, const struct memory *source);
void shortage_begin(struct shortage *shortage, uint32_t passes, uint32_t fails);
void shortage_end(struct shortage *shortage);
