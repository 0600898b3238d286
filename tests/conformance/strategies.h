/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.h -- the cases of `run`, `values_from_function`, `reduce`, `reduce_to`,
 * `batch_reduce_to`, `all_reduce`, `gather` and `all_gather`: what a strategy does. */
#ifndef CONFORMANCE_STRATEGIES_H
#define CONFORMANCE_STRATEGIES_H

#include "cases.h"

/* NULL-terminated; each is a row for cases_each_of. */
extern const struct cases_operation strategy_operations[];

#endif
