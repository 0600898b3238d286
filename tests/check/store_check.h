/* SPDX-License-Identifier: Apache-2.0 */
/* store_check.h -- is all that a store keeps consistent? For the tests; the cost grows with what
 * there is.
 *
 * Who uses a shard is not the store's to know, nor are deleted variables in a list of it: whoever
 * checks has both, counts what it knows into the sums, and compares at the end.
 */
#pragma once

#include "check.h"
#include "store.h"

/* What was counted on the way. */
struct store_sums {
    uint64_t state_bytes, own_bytes, controller_bytes;
    uint64_t shards, deleted, lent, views, chained, kept_rows, kept_bytes;
    uint64_t users_mix,
        views_mix; /* of each shard, as often as it says that it is used, or read by a view */
};

/* A number for the shard: sums of such tell whether two multisets of shards are the same. */
uint64_t store_mix(const struct shard *shard);
/* One variable, published or deleted, with its shards and their present blocks. */
void store_check_variable(
    const struct store *store, const struct variable *variable, struct store_sums *sums,
    struct check *check);
/* All variables that are in the list; views; old blocks. */
void store_check(const struct store *store, struct store_sums *sums, struct check *check);
/* Have two filled shards of the same elements the same ones yet to be assigned? */
bool store_check_same_unassigned(const struct shard *a, const struct shard *b);
/* With all that was counted. */
void store_check_sums(
    const struct store *store, const struct store_sums *sums, struct check *check);
