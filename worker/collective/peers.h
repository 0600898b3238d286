/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h -- the other workers of a strategy: what a call of all of them has in each, by rounds of
 * one collective on the ps, whose result is the same bits in all. */
#pragma once

#include "strategy.h"

/* Who they are, and which of them this one is, among `workers`.
 * Gives    *peers. Fails  INVALID_ARGUMENT: this process's task is none of them, or too many. */
enum sumac_status peers_open(
    const struct sumac_strategy_options *options, struct strategy_peers **peers,
    struct sumac_error *error);
/* Waits for what was given up, if anything was. NULL is fine. */
void peers_close(struct strategy_peers *peers);

uint32_t peers_count(const struct strategy_peers *peers);
uint32_t peers_index(const struct strategy_peers *peers); /* this worker's */

/* A run begins: its calls are told apart from those of others. */
void peers_begin_run(struct strategy_peers *peers);

/* Tell the others what this worker brings, and begin what is summed apart, and hear what they do.
 * `own` has a value for each replica of this worker; or this worker has failed already, which all
 * others hear.
 *
 * Gives    all[0 … in_sync - 1], a reference each, of every worker's in order: own ones are `own`;
 *          of others large tensors that will be summed by the ps come without elements.
 * Fails    alike in all: as the first worker says that failed; INVALID_ARGUMENT: they call
 *          something else, or come with other values, naming who and how; DEADLINE_EXCEEDED: some
 *          have not come; UNAVAILABLE: one is gone. */
enum sumac_status peers_exchange(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value **all, struct sumac_error *error);

/* The call is over here, well or not: nothing of it is under way any more. */
void peers_finish(struct strategy_peers *peers);

/* `call` was given up here, and the others are to hear why. Does not wait for them. */
void peers_give_up(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_error *why);

/* Is a tensor of this reduction summed by the ps, rather than sent to each? */
bool peers_sum_apart(
    const struct sumac_strategy *strategy, enum sumac_reduce_op op,
    const struct sumac_tensor *tensor);
/* Of the exchange that was, the next tensor that is summed apart, in the order of the leaves: Σ
 * over all replicas, of MEAN ÷ all. `tensor` has its type and shape. Gives    *sum. Fails  as the
 * exchange. */
enum sumac_status peers_take_sum(
    struct sumac_strategy *strategy, const struct sumac_tensor *tensor, struct sumac_value **sum,
    struct sumac_error *error);
