/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h -- the other workers of a strategy: what a call of all of them has in each, by rounds of
 * one collective on the ps, whose result is the same bits in all. */
#pragma once

#include "pack.h"
#include "strategy.h"

/* Who they are, and which of them this one is, among the options' workers: strategy->peers, and
 * which replicas of all its own are.
 * Fails  INVALID_ARGUMENT: this process's task is not listed, or there are too many. */
enum sumac_status peers_open(struct sumac_strategy *strategy, struct sumac_error *error);
/* Waits for what was given up, if anything was. NULL is fine. */
void peers_close(struct strategy_peers *peers);

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

/* ---- what peers.c and sums.c have of them */

#define PEERS_NAME_BYTES_MAX 200u
#define SUMS_UNDER_WAY_MAX 12u /* rounds at once: of as many that fail a ps keeps the ends */
/* Calls that are given up here and wait for the other workers. With the present call their rounds
 * are fewer than the 64 of one name that a ps has open. */
#define GIVEN_UP_MAX 3u

/* ---- sums.c: what the ps sum of a call, in rounds of their own */

/* A tensor of the call, in the order of the leaves, and where its sum is. */
struct summed {
    enum sumac_dtype dtype;
    struct sumac_shape shape;
    uint64_t bytes;
    struct sumac_value *partial; /* of this worker; NULL: it was not begun */
    struct sumac_value *sum;     /* of one that is alone in its rounds */
    uint32_t pack, packs;        /* its rounds, of which one with others is the only one */
    uint64_t offset_bytes;       /* in the pack */
};

/* A round. */
struct summing {
    enum sumac_dtype dtype;
    uint32_t tensors, tensor; /* their count, and the one that is alone */
    uint64_t bytes;
    uint64_t first_byte;                 /* of that one */
    struct sumac_collective *collective; /* NULL: not begun, or over */
    struct sumac_value *partial, *sum;
};

struct sums {
    struct summed *tensors; /* (tensor_count) */
    uint32_t tensor_count, tensor_room, next_taken;
    struct summing *packs; /* (pack_count) */
    uint32_t pack_count, pack_room, begun;
    uint32_t timeout_ms;
    bool mean, failed; /* failed: there was no memory for a plan */
    bool agreed;       /* all workers take these sums, so they wait for the rounds to begin */
    struct sumac_collective
        *differing[SUMS_UNDER_WAY_MAX]; /* rounds in which this worker differs */
    uint32_t differing_count;
};

/* A call that was given up here: its rounds are over when the other workers have come to them. */
struct given_up {
    struct pack block;                   /* says why; its room is always there */
    struct sumac_collective *collective; /* of the block; NULL: over, or not begun */
    struct sumac_collective *differing[SUMS_UNDER_WAY_MAX];
    uint32_t differing_count;
};

struct strategy_peers {
    struct sumac_client *client;
    struct sumac_member *workers; /* (worker_count), with their jobs; NULL: all members */
    uint32_t worker_count;
    uint32_t count, index;
    uint64_t
        attempts[SUMAC_REPLICAS_MAX]; /* (count), that the rounds belong to; 0: not heard yet */
    char name[PEERS_NAME_BYTES_MAX + 1];
    pthread_mutex_t mutex; /* guards what follows; held while a call lasts */
    uint64_t round;        /* the last one */
    uint64_t run, call;    /* begun, and calls since then: of all workers the same */
    bool in_call;          /* from the exchange until it is finished, by one thread */
    struct sums sums;      /* of that */
    struct given_up given_up[GIVEN_UP_MAX]; /* in turn */
    uint32_t given_up_next;
    struct pack failure; /* a block that says why this worker failed; its room is always there */
};

/* ---- sums.c: rounds */
/* Has it heard which attempts of the workers the rounds belong to? Until then nothing is summed
 * apart beside a block: a later attempt of a worker could have a part in it. */
bool peers_know_attempts(const struct strategy_peers *peers);
/* The options of the next round, which is counted here: all workers begin the same ones. */
struct sumac_collective_options peers_next_round(struct strategy_peers *peers, uint32_t timeout_ms);
/* The error of a round that failed, in the words of a collective. */
enum sumac_status
peers_fail_round(const struct call *call, const struct sumac_error *why, struct sumac_error *error);
/* Its memory is the caller's again; how it ended, others say. NULL is fine. */
void peers_wait_out(struct sumac_collective *collective);

/* Plan the rounds that sum a call with that value, until sums_end. Returns the count of rounds that
 * begin with the call. */
uint32_t sums_plan(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *value,
    uint32_t timeout_ms);
/* Begin those, of what each replica of this process has. */
enum sumac_status sums_begin(
    struct sumac_strategy *strategy, const struct sumac_value *const *own,
    struct sumac_error *error);
/* Contribute what differs to the next `rounds` rounds: they end for all workers, in an error. */
void sums_differ(struct strategy_peers *peers, uint32_t rounds);
/* This worker begins no more sums. Differ in each round that the others begin before they notice:
 * then all workers are at the same round again. */
void sums_give_up(struct strategy_peers *peers);
/* Wait out what is under way, and forget it. */
void sums_end(struct sums *sums);
