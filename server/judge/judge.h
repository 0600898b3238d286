/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h -- the coordinator inside ps 0: sessions, leases, membership, the catalogue, the end of the run.
 *
 * The one judge of who is alive. It speaks to every ps, its own included, only by orders and reports (proto: Peer), so a
 * cluster of one runs the same code as a cluster of many: an ORDER effect for ps 0 is put by lane.c on its own list and
 * obeyed there, and the report comes back through judge_report, all within the same step.
 *
 * What the judge expects of every ps's lane:
 * - Each order with a number is answered by a report with that number; orders come in their order. ps 0 gets a hello of its
 *   own too: at the start, and again when it learns addresses. A hello that expects another incarnation is answered, so that
 *   the judge learns of it, and not taken: the run ends, and that ps belongs to the next one.
 * - `open` is answered with the slowest member's clock; a ps starts the session at the larger of that and the order's.
 * - `close` is answered with a close_report, also when it is given again; `open` of a session that is there, and
 *   `add_shards`, `publish`, `delete`, `decide` that were obeyed before, do nothing.
 * - `assigned` names a variable once all shards here that have bytes were assigned; a report after a new hello says it again.
 * - `end` is obeyed by finishing what is in flight, answering, then EXIT. ps 0's own is the last one: its EXIT, when it has
 *   answered, comes from the judge.
 *
 * Pure like the lane: no clock, socket, lock or malloc. Owns its copies of everything that it is told.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "lane.h"
#include "out.h"

struct judge;

/* The config is ps 0's lane's, borrowed for the judge's life. Gives  a judge, or NULL. */
struct judge *judge_create(const struct lane_config *config, const struct memory *memory);
void judge_destroy(struct judge *judge);

/* The event gives time and randomness; of calls: call, call_kind and request. */
void judge_start(struct judge *judge, const struct lane_event *event, struct out *out);
void judge_call(
    struct judge *judge, const struct lane_event *event,
    struct out *out); /* join, renew, leave, create, delete */
void judge_call_cancelled(struct judge *judge, uint64_t call);
void judge_peer_up(struct judge *judge, const struct lane_event *event, struct out *out);
void judge_peer_down(struct judge *judge, const struct lane_event *event, struct out *out);
void judge_report(
    struct judge *judge, const struct lane_event *event, uint32_t ps,
    const wire_peer_report *report, struct out *out);
/* ps 0 itself got a message of this session: its lease is renewed. Unknown ids are ignored. */
void judge_heard(struct judge *judge, const uint8_t session_id[16], uint64_t now_us);
void judge_tick(struct judge *judge, const struct lane_event *event, struct out *out);
/* SIGTERM: no more joins or creates. */
void judge_terminate(struct judge *judge, const struct lane_event *event, struct out *out);
/* The time for telling the others is over: what ps 0 itself is to do is ordered at once. */
void judge_end_now(struct judge *judge, const struct lane_event *event, struct out *out);

/* For Stats: sentences for what is being waited for ("join of worker 1 waits for ps 1 at h2:2222, never heard from"), and
 * how many there was no room for. */
uint32_t judge_waits(
    struct judge *judge, uint64_t now_us, struct out *out, char ***waits, uint64_t *left_out);
/* The most that it keeps of sessions, and of the tasks that are known at present. */
uint64_t judge_sessions_bytes_max(const struct judge *judge);
/* It has ended, though not every ps may have heard of it. */
bool judge_run_is_over(const struct judge *judge);
uint64_t judge_cluster_id(const struct judge *judge);

#endif
