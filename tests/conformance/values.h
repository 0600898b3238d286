/* SPDX-License-Identifier: Apache-2.0 */
/* values.h -- values of conformance cases: nests of tensors and slices, and what replicas have. */
#pragma once

#include "cases.h"
#include "sumac/value.h"

/* Which replicas this worker has, of how many in all. */
struct case_replicas {
    uint32_t first, count, in_sync;
};

/* Read a value of the format, as far as it is of these replicas. Says what is wrong with it.
 * Gives  a value; NULL: it is none. */
struct sumac_value *
case_value_read(struct cases_run *run, json_t *given, const struct case_replicas *replicas);

/* Is a value what is expected: the same form, types, shapes, and elements as case_tensor_equal has
 * them? Says where it is not, with `what` as the name of the whole. */
bool case_value_equal(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    bool exactly);

/* The same, where an expected leaf says what these replicas have: `per_replica` with an item for
 * each in sync, or `mirrored`. The value's leaf has that form, and items of these replicas. */
bool case_value_equal_in_form(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    const struct case_replicas *replicas, bool exactly);

/* The same of what each of these replicas has: of a `per_replica` leaf its own, of any other that
 * one. */
bool case_value_equal_in_replicas(
    struct cases_run *run, json_t *expected, struct sumac_value *actual,
    const struct case_replicas *replicas, bool exactly);
