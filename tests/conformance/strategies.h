/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.h -- the cases of `run`, `values_from_function`, `reduce`, `reduce_to`,
 * `batch_reduce_to`, `all_reduce`, `gather` and `all_gather`: what a strategy does. */
#pragma once

#include "cases.h"
#include "sumac/strategy.h"

/* NULL-terminated; each is a row for cases_each_of. */
extern const struct cases_operation strategy_operations[];

/* The axes that a case gives, null, an integer or a list, into `axes`. NULL: none. */
const struct sumac_axes *case_axes_read(json_t *given, struct sumac_axes *axes);
