/* SPDX-License-Identifier: Apache-2.0 */
/* peers_state.h -- what peers.c and sums.c have of the other workers. */
#pragma once

#include <pthread.h>

#include "pack.h"
#include "peers.h"

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
    uint32_t tensors, tensor; /* how many it has, and the one that is alone */
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
    uint64_t *attempts; /* (count), that the rounds belong to; 0: not heard yet */
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

/* ---- peers_round.c */
/* Has it heard which attempts of the workers the rounds belong to? Until then nothing is summed
 * apart beside a block: a later attempt of a worker could have a part in it. */
bool peers_know_attempts(const struct strategy_peers *peers);
/* The options of the next round, which is counted here: all workers begin the same ones. */
struct sumac_collective_options peers_next_round(struct strategy_peers *peers, uint32_t timeout_ms);
/* What a round says of those who have not come, in the words of a collective. */
enum sumac_status
peers_fail_round(const struct call *call, const struct sumac_error *why, struct sumac_error *error);
/* Its memory is the caller's again; how it ended, others say. NULL is fine. */
void peers_wait_out(struct sumac_collective *collective);

/* ---- sums.c */
/* Which rounds sum what of a call with that value: how many are under way from its beginning. What
 * is planned is the call's until sums_end. */
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
