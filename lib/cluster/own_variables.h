/* SPDX-License-Identifier: Apache-2.0 */
/* own_variables.h -- what Sumac's variables in this process's environment say. */
#pragma once

#include <stdbool.h>

#include "error.h"

#define MISSPELT_VARIABLE_BYTES 64

/* Find the first "SUMAC_…" that no process of Sumac reads and that is near a name that one reads.
 * Other names are left alone: they may be the user's own.
 *
 * Lends    `name`, and the name that is meant; NULL: no name is misspelt.
 * Threads  any, while none sets the environment. */
const char *misspelt_variable(char name[MISSPELT_VARIABLE_BYTES]);

/* *synchronous: SUMAC_SYNCHRONOUS is 1, as `sumac run --synchronous` sets it.
 *
 * Fails    INVALID_ARGUMENT: it is neither 1 nor 0.
 * Threads  any, while none sets the environment. */
enum sumac_status synchronous_from_environment(bool *synchronous, struct sumac_error *error);
