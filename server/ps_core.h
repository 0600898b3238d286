/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core.h -- the whole behaviour of a ps: its lane, on ps 0 the controller beside it, and the
 * queue between the two.
 *
 *   driver ── event ──► lane ◄── orders, streams ── queue ◄── effects for ps 0 ── controller
 *                         └──── reports ──► queue ── reports, peers ──► controller
 *
 * The controller's stream to its own ps is as any other: dialled, opened, one order and one report
 * on their way at a time, told that it is writable when that is out; when it breaks it is dialled
 * again with the next tick. It stays in the process: each message on it waits in the queue. What an
 * order or a report points to is in the step's memory of the one who said it, and lent until the
 * next step: no step ends before it is delivered. The word that it is out may wait, and does when
 * the step has brought on as many as a step should: so the next order is the next event's.
 *
 * Pure like lane and controller: no clock, socket, lock or malloc.
 */
#ifndef PS_CORE_H
#define PS_CORE_H

#include "controller.h"
#include "lane.h"
#include "numbers.h"

struct ps_core;

/* Gives  a ps, or NULL when the source has no memory. Copies the config's strings. */
struct ps_core *ps_core_create(const struct lane_config *config, const struct memory *memory);
void ps_core_destroy(struct ps_core *core);

/* One event. The effects, in order, are lent until the next step; the caller carries out all of
 * them. */
void ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects);

/* What this ps has counted, for metrics; between two steps. */
void ps_core_numbers(const struct ps_core *core, struct lane_numbers *numbers);
/* To look at, between two steps. */
struct lane *ps_core_lane(const struct ps_core *core);
struct controller *ps_core_controller(const struct ps_core *core); /* NULL but on ps 0 */

#endif
