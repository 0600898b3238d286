/* SPDX-License-Identifier: Apache-2.0 */
/* planned.h -- what runs functions that have an expression. */
#ifndef UPDATE_PLANNED_H
#define UPDATE_PLANNED_H

#include "update.h"

extern const struct update_runner planned_runner;

/* Run a slice that has no plan yet. */
void planned_run(const struct update_slice *slice);

#endif
