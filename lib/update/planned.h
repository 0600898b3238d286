/* SPDX-License-Identifier: Apache-2.0 */
/* planned.h -- what update_prepare and update_run leave to functions that have an expression. */
#ifndef UPDATE_PLANNED_H
#define UPDATE_PLANNED_H

#include "update.h"

void planned_prepare(
    const struct update_function *function, const struct update_hyperparameters *hyperparameters,
    uint64_t step, struct update_slice *slice);

/* Run a slice that has no plan yet. */
void planned_run(const struct update_slice *slice);

#endif
