/* SPDX-License-Identifier: Apache-2.0 */
/* own_functions.h -- the update functions of a strategy's variables. */
#pragma once

#include "strategy.h"
#include "sumac/variable.h"
#include "update.h"

/* The table's, or the strategy's own. NULL: there is none of that name. */
const struct update_function *
functions_find(const struct sumac_strategy *strategy, const char *name);
/* Nobody has a variable of it any more. */
void functions_forget(struct sumac_strategy *strategy);
