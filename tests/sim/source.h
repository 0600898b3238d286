/* SPDX-License-Identifier: Apache-2.0 */
/* source.h -- the memory that the cores of one run get: counted, filled with rubbish, and all
 * dropped at its end.
 *
 * Freed pieces are kept by size for the next taker, so that a run allocates little; a core that
 * reads what it never wrote, or what it gave back, finds rubbish that is the same in every run.
 * Under the address sanitizer each piece is malloc's own, so that it sees every step beyond one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#define SOURCE_CLASSES 48u

struct source_piece;

struct source {
    struct memory memory;                          /* what a core is given */
    struct source_piece *out;                      /* doubly linked: taken, not given back */
    struct source_piece *free[SOURCE_CLASSES + 1]; /* by size class */
    uint64_t taken, given;                         /* pieces of this run */
    uint64_t bytes_out;
    uint64_t sizes_wrong; /* given back with another size than taken */
};

void source_init(struct source *source);
void source_deinit(struct source *source);
/* Take back all that is out. Returns how many pieces were. */
uint64_t source_drop(struct source *source);
