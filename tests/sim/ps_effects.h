/* SPDX-License-Identifier: Apache-2.0 */
/* ps_effects.h -- what a lane wants done, done. */
#pragma once

#include "process_ps.h"

/* process_ps.c */
void ps_step(struct world *world, struct ps *ps, struct lane_event *event);

void ps_carry_out(struct world *world, struct ps *ps, const struct lane_effect *effect);
