/* SPDX-License-Identifier: Apache-2.0 */
/* controller.h -- the controller on ps 0: sessions, leases, membership, the catalogue, the end of
 * the run.
 *
 * The one controller of who is alive. controller_step takes one event and gives effects, as
 * lane_step does. It speaks to every ps, its own included, only by orders and reports (proto:
 * Peer), so a cluster of one runs the same code as a cluster of many: that an order for ps 0 stays
 * in the process is ps_core.h's doing.
 *
 * What the controller expects of every ps's lane:
 * - Each order with a number is answered by a report with that number; orders come in their order.
 *   ps 0 gets a hello of its own too: at the start, and again when it learns addresses. A hello
 *   that expects another incarnation is answered, so that the controller learns of it, and not
 * taken: the run ends, and that ps belongs to the next one.
 * - `open` is answered with the slowest member's clock; a ps starts the session at the larger of
 *   that and the order's.
 * - `close` is answered with a close_report, also when it is given again; `open` of a session that
 *   is there, and `add_shards`, `publish`, `delete`, `decide` that were obeyed before, do nothing.
 * - `assigned` names a variable once all shards here that have bytes were assigned; a report after
 *   a new hello says it again.
 * - `end` is obeyed by finishing what is in flight, answering, then exiting. ps 0 is given it last.
 *
 * Where the configuration has records, each step that changes what must not be lost ends with one
 * (controller_rows.h): numbered from 1, apart from the lane's. What reveals it – answers, orders,
 * that the run is over – is said once RECORDED has told that it is on disk.
 *
 * Pure like the lane: no clock, socket, lock or malloc. Owns its copies of everything that it is
 * told.
 */
#pragma once

#include "lane.h"

struct controller;

/* The config is ps 0's lane's, borrowed for the controller's life. Gives  a controller, or NULL. */
struct controller *controller_create(const struct lane_config *config, const struct memory *memory);
void controller_destroy(struct controller *controller);

/* One event, and its effects, in order: of this event alone. The caller carries out all of them.
 *
 * The events are START, CALL, TICK, TERMINATE, RECORDED, and those that lane.h marks with *. The
 * effects are REPLY, FAIL, RECORD, LOG, EXIT, WAKE, and those that lane.h marks with *. They are
 * lent until the next step that does not follow. Orders point into what the controller keeps until
 * they are answered. */
void controller_step(
    struct controller *controller, const struct lane_event *event, struct lane_effects *effects);

/* Before the first step: take over one record, whole and in one piece, after the records before it.
 * After the last record the controller begins with START like any other, and has unfinished work
 * done again.
 * Fails  DATA_LOSS: not a record, out of order, or no memory. The controller is unusable then. */
enum sumac_status controller_replay(
    struct controller *controller, const struct span *record, struct sumac_error *error);

/* What is being waited for, in sentences ("join of worker 1 waits for ps 1 at h2:2222, never heard
 * from"). */
struct controller_waits {
    char **items; /* lent until the next step that does not follow (lane_event.follows) */
    uint32_t count;
    uint64_t left_out; /* sentences that there was no room for */
};
/* For Stats; a look between two steps. */
void controller_list_waits(
    struct controller *controller, uint64_t now_us, struct controller_waits *waits);
/* The most that it keeps of sessions, and of the tasks that are known at present. */
uint64_t controller_sessions_bytes_max(const struct controller *controller);
uint64_t controller_cluster_id(const struct controller *controller);
