/* SPDX-License-Identifier: Apache-2.0 */
/* each_take.h -- memory that fails once: take number n of a core, wherever the core takes from.
 *
 * The linker puts these functions in place of those of pools, arenas and maps. Each call is a take,
 * even if a pool could answer it from what it has. The bytes that a core holds of its pools are
 * counted. Takes from memory_heap itself are the test's, and never fail.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

/* A source whose takes count, too. For cores that are created while memory is short. */
extern const struct memory each_take_source;
/* Bytes of it that have not been given back since each_take_reset. */
int64_t each_take_held(void);

/* Nothing is counted before. */
void each_take_reset(void);
/* From here on the take with that number fails, from 1; 0: none. */
void each_take_begin(uint64_t failing);
/* The same, with `run` takes that fail one after the other. */
void each_take_begin_run(uint64_t failing, uint64_t run);
/* And from here on none does. Returns the takes since each_take_begin. */
uint64_t each_take_end(void);
/* Bytes that are out of pools since each_take_reset. */
int64_t each_take_out(void);
