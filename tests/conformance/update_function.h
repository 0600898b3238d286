/* SPDX-License-Identifier: Apache-2.0 */
/* update_function.h -- the `update_function` cases. */
#pragma once

#include "target.h"

/* What cases_each takes; `context` is the target, open. */
extern const char *const update_function_keys[];
enum cases_result update_function_run(struct cases_run *run, json_t *given, void *context);
