/* SPDX-License-Identifier: Apache-2.0 */
/* hazards.h -- what ends a ps, or the run with it: it hangs, crashes, or is told to terminate. */
#pragma once

#include "world.h"

void hazard_hang_some_ps(struct world *world);
/* Once in a run; rarely once more: what is left of the cluster ends. */
void hazard_crash_some_ps(struct world *world);
void hazard_terminate_some_ps(struct world *world);
/* A ps or a client. */
void hazard_shorten_some(struct world *world);

/* In what it does for a pull some take of a ps fails: now? */
bool hazard_fail_some_take(struct world *world, uint32_t ps);
void hazard_fail_no_more(struct world *world, uint32_t ps);
