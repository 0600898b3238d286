/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h -- two variables whose function has slots, one row on each ps: what is pushed to them,
 * and what they say.
 *
 * `slow` (float32, momentum) has a rate and a momentum of 1: a push adds 1 in its column of the
 * slot, and every push after it takes as much from the value again. So a column of n is "applied,
 * and n - 1 pushes after it": the row says which pushes are applied, once each, and in which order,
 * and `adam` (float64) is what a plain loop makes of that order.
 */
#pragma once

#include "checker.h"

/* Their part of a definition: the function and its hyperparameters, kept in the world's memory. */
wire_function *slots_function(struct world *world, enum variable which);
/* The whole row of both, zeros but for the push's own column. Returns where its data ends. */
uint8_t *slots_put(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data);
/* What it sets of `adam`, as the only function that its pieces name. Its draws are made once. */
wire_function *const *slots_draw_rate(struct world *world, struct sim_push *push);
/* What a snapshot of one ps says; `applied` are those that its other rows have. */
void slots_examine(
    struct world *world, uint32_t ps, const struct snapshot *snapshot, uint64_t applied);
