/* SPDX-License-Identifier: Apache-2.0 */
/* controller_transcript.h -- the lines that controller_world.c makes of what the controller says.
 */
#pragma once

#include "controller_world.h"

void transcript_say(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void transcript_order(struct world *world, uint32_t ps, const struct world_order *order);
void transcript_answer(struct world *world, const struct lane_effect *effect);
/* A session's number, a new one if nobody has heard of it. */
uint32_t transcript_session(struct world *world, const uint8_t id[16]);
