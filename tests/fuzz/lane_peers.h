/* SPDX-License-Identifier: Apache-2.0 */
/* lane_peers.h -- what ps 0, ps 1 and the callers of a lane say: orders, reports and calls, valid
 * and mangled. */
#pragma once

#include "input.h"
#include "lane_world.h"

/* Without an input: what a well-behaved peer says. */
void peers_hello(struct world *world, struct input *input);
void peers_open(struct world *world, struct input *input, uint32_t session);
void peers_add(struct world *world, struct input *input, uint64_t id);
void peers_join(struct world *world, struct input *input, uint32_t task);
void peers_create(struct world *world, struct input *input, uint32_t session, uint64_t id);
/* Any order, to ps 1; any report, to ps 0; any call. */
void peers_order(struct world *world, struct input *input);
void peers_report(struct world *world, struct input *input);
void peers_call(struct world *world, struct input *input);
/* Of the session with that number; lent by the world. */
wire_bytes peers_session_id(struct world *world, uint32_t session);
