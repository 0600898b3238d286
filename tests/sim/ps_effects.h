/* SPDX-License-Identifier: Apache-2.0 */
/* ps_effects.h -- what a lane wants done, done. */
#ifndef SIM_PS_EFFECTS_H
#define SIM_PS_EFFECTS_H

#include "process_ps.h"

/* process_ps.c */
void ps_step(struct world *world, struct ps *ps, struct lane_event *event);

void ps_carry_out(struct world *world, struct ps *ps, const struct lane_effect *effect);

#endif
