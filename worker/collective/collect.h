/* SPDX-License-Identifier: Apache-2.0 */
/* collect.h -- what replicas have becomes one, leaf by leaf: for those that say of which values
 * (call.c, reduce_across.c, gradient.c). */
#pragma once

#include "strategy.h"
#include "on_device.h"

/* What one thread computes of a result before it takes the next share. */
#define COLLECT_BYTES_AT_ONCE 65536u
/* Bytes that are read and written together: more than caches hold. */
#define COLLECT_STREAMED_BYTES_MIN (UINT64_C(32) << 20)

/* What is reduced or gathered, of how many replicas. */
struct collect {
    struct sumac_strategy *strategy; /* whose threads and memory it takes */
    enum sumac_reduce_op op;
    const struct sumac_axes *axes; /* NULL: none are given */
    int64_t axis;
    uint32_t count;
    const char *call;
    value_zip_leaf *leaf; /* what is made of the leaves, … */
    bool marks;           /* … beside which there is what the whole is (mark_leaf) */
    bool is_for_one;      /* of what lies on devices one result is wanted, wherever it is */
    bool stays;           /* … or what all replicas get stays there */
    struct on_device_calls *on_device; /* … that lie on devices */
    uint32_t item, items;              /* of a batch of `items`; 0: no batch */
};

/* Of a leaf, which is lent as all leaves are that a nest is walked with: reduced, or gathered. */
value_zip_leaf collect_reduce_leaf, collect_gather_leaf;

/* All leaves, of which those that lie on devices are exchanged together. `values` has one of each
 * replica in sync, and with collect->marks one more. */
enum sumac_status collect_all(
    struct collect *collect, const struct sumac_value *const *values,
    const struct sumac_communication_options *options, struct sumac_value **result,
    struct sumac_error *error);

/* Have the tensors (collect->count) collect->axis, and are they alike but for that? */
enum sumac_status collect_check_axis(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    const struct value_path *path, struct sumac_error *error);

/* reduce_elements.c */
/* Element by element, in one pass over all tensors (collect->count). */
enum sumac_status collect_reduce_elements(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    struct sumac_value **result, struct sumac_error *error);

/* INVALID_ARGUMENT: "reduce: the value at ['w'] has …". */
enum sumac_status collect_fail_leaf(
    const struct collect *collect, const struct value_path *path, const char *why,
    struct sumac_error *error);
