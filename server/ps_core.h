/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core.h -- the whole behaviour of a ps: its lane, on ps 0 the controller beside it, and the
 * queue between the two.
 *
 *   driver ── event ──► lane ◄── orders, streams ── queue ◄── controller
 *                         └──── reports ──► queue ── reports, peers ──► controller
 *
 * Overview: the controller's stream to its own ps is like any other. The controller dials and opens
 * it, and has one order and one report on their way at a time. When a message is out, its sender
 * gets a notice that the stream is writable. If the stream breaks, the next tick dials it again.
 *
 * This stream stays in the process: each message waits in the queue. An order or a report points
 * into the step's memory of its sender, which is lent until the next step. So each message is
 * delivered before its step ends. Only the notice that the stream is writable may wait: it waits
 * when the step has delivered as many messages as a step should. The next order then goes with the
 * next event.
 *
 * Pure like lane and controller: no clock, socket, lock or malloc.
 */
#pragma once

#include "controller.h"
#include "lane.h"

struct ps_core;

/* Gives  a ps, or NULL when the source has no memory. Copies the config's strings. */
struct ps_core *ps_core_create(const struct lane_config *config, const struct memory *memory);
void ps_core_destroy(struct ps_core *core);

/* One event. The effects, in order, are lent until the next step; the caller carries out all of
 * them. */
void ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects);

/* To look at, between two steps. */
struct lane *ps_core_lane(const struct ps_core *core);
struct controller *ps_core_controller(const struct ps_core *core); /* NULL but on ps 0 */
