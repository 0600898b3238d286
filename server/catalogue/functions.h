/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h -- the update functions that a cluster has, by their numbers: those of the table
 * (lib/update), those that somebody has defined, and those of plug-ins.
 *
 * A ps turns a number into a row here and nowhere else. Nothing is ever undefined, since variables
 * and records name it; so there are UPDATE_DEFINED_MAX at most, and room for all of them from the
 * beginning.
 */
#pragma once

#include <stdint.h>

#include "defined.h"
#include "memory.h"
#include "plugins.h"

struct defined_function {
    struct update_defined row;
    uint32_t text_bytes;
    char text[EXPRESSION_TEXT_BYTES_MAX];
};

struct functions {
    const struct memory *memory;
    const struct plugins *plugins; /* lent; NULL: none */
    struct defined_function
        *known; /* (UPDATE_DEFINED_MAX), by number from UPDATE_DEFINED_FIRST on */
    uint32_t count;
};

/* What is taken of memory for them, whether or not there are any. */
#define FUNCTIONS_BYTES (UPDATE_DEFINED_MAX * sizeof(struct defined_function))

/* Lends  plugins, NULL for none. False: no memory; it is to be ended nevertheless. */
bool functions_init(
    struct functions *functions, const struct memory *memory, const struct plugins *plugins);
void functions_deinit(struct functions *functions);

/* The row with this number, or of a defined one with this name; NULL: there is none. Without
 * `functions` there are those of the table. functions_at gives them all in the order of their
 * numbers, for listing: index from 0 until NULL. */
const struct update_function *functions_find(const struct functions *functions, uint32_t number);
const struct update_function *functions_at(const struct functions *functions, uint32_t index);
const struct defined_function *
functions_find_defined(const struct functions *functions, const char *name);

/* The number of the one that is added next. */
static inline uint32_t functions_next(const struct functions *functions)
{
    return UPDATE_DEFINED_FIRST + functions->count;
}

/* Add one, unless it is there already, with this number, name and text. Fails  INVALID_ARGUMENT:
 * the name or the text is none, or a plug-in's function has that name (BAD_NAME, BAD_EXPRESSION).
 * ALREADY_EXISTS: the name or the number has another text. RESOURCE_EXHAUSTED: there are
 * UPDATE_DEFINED_MAX. INVALID_ARGUMENT (MALFORMED): the number is not the next one. */
enum sumac_status functions_add(
    struct functions *functions, uint32_t number, const char *name, const char *text, size_t bytes,
    struct sumac_error *error);
