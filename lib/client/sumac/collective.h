/* SPDX-License-Identifier: Apache-2.0 */
/* collective.h -- collectives among the members of a run: all_reduce, all_gather, concatenate,
 * broadcast and barrier, as in MPI and tf.distribute.
 *
 * Rounds: a collective has a name, and a name has rounds 1, 2, 3, … Each participant contributes to
 * a round once. A contribution counts exactly once, even if the client sends it again. Rounds of
 * several names, and pushes, may be under way at the same time.
 *
 * Results: every participant gets the same bits. The ps combine contributions in one order: the
 * chief first, then the workers by index.
 *
 * Waiting: `collective` NULL makes a call wait until its round is over. Otherwise the call returns
 * at once with a handle. A handle ends with sumac_collective_wait, at the latest with the close.
 *
 * Leaving: wait for your result before you leave, also as the root of a broadcast. If every
 * participant that has joined a round leaves, the round fails (MEMBER_GONE).
 *
 * Restarts: a restarted task has a new client, which counts rounds from 1 again. The other tasks
 * are further on, so the restarted task gives `round` in its first call for each name. Take the
 * number of the round that the other tasks are at, for example from a checkpoint that all tasks
 * share. The client counts on from there. A barrier needs no number: ps 0 knows the open round.
 *
 * Threads: any. All participants call the rounds of one name in the same order.
 */
#ifndef SUMAC_COLLECTIVE_H
#define SUMAC_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/buffer.h"
#include "sumac/cluster.h"
#include "sumac/reduce.h"
#include "sumac/status.h"
#include "sumac/tensor.h"

#define SUMAC_COLLECTIVE_TASKS_MAX 512
#define SUMAC_COLLECTIVE_NAMES_MAX 1024 /* whose rounds one client counts */

struct sumac_client;
struct sumac_collective; /* one contribution to a round */

/* Zeroed members have their defaults. A member that belongs to another operation must be zero. */
struct sumac_collective_options {
    const char *name; /* UTF-8, 1 to 256 bytes, no control characters */
    uint64_t round;   /* 0: the client's next round of this name. A barrier takes only 0 */
    /* The participants, in any order, this task included. Every call of a round lists the same
     * tasks. 0: all members of the cluster configuration. */
    const struct sumac_member *tasks;
    uint32_t task_count;             /* at most SUMAC_COLLECTIVE_TASKS_MAX */
    uint32_t axis;                   /* all_gather: join along this axis */
    const struct sumac_tensor *into; /* all_reduce: where the result goes. NULL: over `value` */
    double weight;                   /* MEAN: finite, at least 0 (0: the default, 1) */
    bool zero_weight;                /* MEAN: the contribution is not counted */
    bool allow_non_finite;           /* accept infinities and NaNs; a ps refuses them by default */
    /* The round fails when this time is over. The earliest time of all participants counts. At most
     * a day. 0: 60 s; for a call that waits, and for a barrier, the client's timeout_ms. */
    uint32_t timeout_ms;
};

/* Rows by index, as in tf.IndexedSlices. */
struct sumac_indexed_slices {
    struct sumac_tensor values;  /* (rows, …) */
    struct sumac_tensor indices; /* (rows) int64 */
};

/* The result of all_gather or concatenate. */
struct sumac_collective_result {
    struct sumac_buffer *buffer; /* holds both tensors; release it with sumac_buffer_unref */
    struct sumac_tensor value;
    struct sumac_tensor indices; /* concatenate: (rows) int64 */
};

/* Combine the values of all participants, element by element, in place.
 *
 * op          SUM, MIN and MAX take every dtype but bool; MEAN takes float dtypes. MEAN divides the
 *             sum of the values by the sum of the weights: multiply a value by its weight first.
 * value       The shape and the dtype are the same for all participants.
 * into        has the shape of `value` (SUMAC_FLOAT16 and SUMAC_BFLOAT16 need it for SUM and MEAN:
 *             such an `into` gets the result of a float32 `value`).
 *
 * Borrows  the tensors' bytes until the round is over, everything else until the call returns.
 * Gives    *collective, unless `collective` is NULL.
 * Fails    at once: INVALID_ARGUMENT (name, tasks, weight, dtype, shape, memory), OUT_OF_RANGE (a
 *          tensor ends past its buffer), RESOURCE_EXHAUSTED (PART_TOO_LARGE; no memory; the client
 *          already counts SUMAC_COLLECTIVE_NAMES_MAX names: give `round`, or use fewer names).
 *          Later: as sumac_collective_wait. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_all_reduce(
    struct sumac_client *client, const struct sumac_collective_options *options,
    enum sumac_reduce_op op, const struct sumac_tensor *value, struct sumac_collective **collective,
    struct sumac_error *error);

/* Join the values of all participants along options->axis. Only that extent may differ.
 *
 * Borrows  value's bytes, and *result, until the round is over.
 * Gives    *result when the round is over, on success only (result NULL: discarded); *collective,
 *          unless `collective` is NULL.
 * Fails    as sumac_client_all_reduce. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_all_gather(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct sumac_tensor *value, struct sumac_collective_result *result,
    struct sumac_collective **collective, struct sumac_error *error);

/* Join the rows of all participants, and their indices. Only the number of rows may differ. Equal
 * indices are not summed.
 *
 * Borrows, Gives, Fails  as sumac_client_all_gather. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_concatenate(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct sumac_indexed_slices *slices, struct sumac_collective_result *result,
    struct sumac_collective **collective, struct sumac_error *error);

/* Copy root's value to all participants, in place. `root` is one of the participants.
 *
 * Borrows, Gives, Fails  as sumac_client_all_reduce. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_broadcast(
    struct sumac_client *client, const struct sumac_collective_options *options,
    struct sumac_member root, const struct sumac_tensor *value,
    struct sumac_collective **collective, struct sumac_error *error);

/* Wait until the round is over. timeout_ms 0: the client's.
 *
 * Takes    collective, unless the status is DEADLINE_EXCEEDED: then the round is still open. Wait
 *          again.
 * Fails    for all participants: FAILED_PRECONDITION (STEP_DIFFERS): contributions differ.
 *          UNAVAILABLE (ROUND_TIMED_OUT): participants are missing; the text names them. ABORTED
 *          (MEMBER_GONE): a missing participant was lost or has left. ABORTED (ROUND_OVER): the
 *          round failed earlier, and the ps has forgotten why. INVALID_ARGUMENT (ZERO_WEIGHT).
 *          For this participant alone: NON_FINITE; ALREADY_EXISTS: it contributed before;
 *          RESOURCE_EXHAUSTED (OUT_OF_MEMORY): --collectives-max of a ps; ABORTED
 *          (SESSION_CLOSED). */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_collective_wait(
    struct sumac_collective *collective, uint32_t timeout_ms, struct sumac_error *error);

/* Is the round over? Never blocks; polls the network once. */
SUMAC_API bool sumac_collective_done(struct sumac_collective *collective);

/* Wait until all participants have called the barrier of this name. A round ends alike for all
 * participants. A barrier says nothing about pushes: to let the others read your pushes, wait for
 * these pushes first.
 *
 * A barrier uses the options `name`, `tasks` and `timeout_ms`. Barriers and other collectives may
 * share a name; their rounds are counted apart. A participant that has arrived stays arrived until
 * the round is over, even if its process ends. If ps 0 is silent (DEADLINE_EXCEEDED, UNAVAILABLE),
 * the same call asks again for the same round. After ROUND_TIMED_OUT that round is over, and the
 * next call is of a new one. ps 0 remembers the last round of each of 256 names.
 *
 * Borrows  the options until the call returns. The client keeps the name until the close.
 * Gives    *round: the number of the round that has passed (round NULL: discarded).
 * Fails    DEADLINE_EXCEEDED (ROUND_TIMED_OUT): participants are missing; the text names them.
 *          ABORTED, FAILED_PRECONDITION (MEMBER_GONE): a missing participant was lost, or has left.
 *          ABORTED (ROUND_OVER): the round is too old. ALREADY_EXISTS: others list other tasks.
 *          INVALID_ARGUMENT: name, tasks, another operation's option. FAILED_PRECONDITION: this
 *          client is not a member; no tasks are listed and ps 0 has no list of the members;
 *          another thread of this client waits at this name. RESOURCE_EXHAUSTED (BUSY): too many
 *          barriers are open. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_barrier(
    struct sumac_client *client, const struct sumac_collective_options *options, uint64_t *round,
    struct sumac_error *error);

#endif
