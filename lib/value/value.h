/* SPDX-License-Identifier: Apache-2.0 */
/* value.h (lib/value) -- what a value is made of, for the files that compute with them. */
#pragma once

#include <stdatomic.h>

#include "sumac/value.h"

struct sumac_value {
    atomic_uint_fast32_t references;
    enum sumac_value_kind kind;
    uint32_t depth;                /* of what is nested in it */
    bool distributed;              /* a leaf is per_replica or mirrored */
    uint32_t first;                /* replica; of a distributed leaf */
    uint32_t count;                /* of items */
    struct sumac_value **items;    /* (count), one reference of each */
    char **keys;                   /* (count), of a dict */
    struct sumac_tensor tensor;    /* of a tensor; its buffer has a reference of it */
    struct sumac_shape dense;      /* of slices */
    atomic_uint_fast64_t likeness; /* of a leaf that has copies; place.c */
    bool own;                      /* one replica's own copy; place.c */
};

/* An array of values of one's own, lent to who borrows them. */
static inline const struct sumac_value *const *value_lend(struct sumac_value *const *items)
{
    return (const struct sumac_value *const *)items; /* which C converts by a cast alone */
}

/* An uninitialized tensor, to be written before anybody else has it. NULL: no memory. */
struct sumac_value *
value_make_tensor(enum sumac_dtype dtype, const struct sumac_shape *shape, void **elements);

/* Is it a list, a tuple or a dict? */
bool value_is_nest(const struct sumac_value *value);
/* per_replica or mirrored? */
bool value_is_leaf_of_replicas(const struct sumac_value *value);

/* ---- place.c: where the elements are */

/* Does the host see the elements of a tensor, or of all tensors of slices? */
bool value_is_here(const struct sumac_value *leaf);
/* A leaf, not distributed, whose elements the host sees: itself, or a copy.
 * Gives *here. Fails  as host_copy_read, RESOURCE_EXHAUSTED. */
enum sumac_status value_bring_here(
    const struct sumac_value *leaf, struct sumac_value **here, struct sumac_error *error);

/* A leaf and its copies are alike: they have the same elements. */
uint64_t value_new_likeness(void); /* that nothing has yet */
void value_liken(struct sumac_value *copy, const struct sumac_value *leaf);
bool value_are_alike(const struct sumac_value *const *leaves, uint32_t count);
/* Has each replica the same elements of a leaf, as far as is known: is it mirrored, or has each its
 * own copy of one leaf? */
bool value_is_same_in_replicas(const struct sumac_value *leaf);

/* One replica's own copy of a leaf that all have: another object with the leaf's elements, in the
 * same memory. Regrouped, such copies are per_replica. A nest has one of each leaf.
 * Gives *own. Fails  RESOURCE_EXHAUSTED. */
enum sumac_status
value_own(const struct sumac_value *value, struct sumac_value **own, struct sumac_error *error);

/* May they be slices of a tensor of that shape: what sumac_value_indexed_slices looks at, beside
 * memory? */
bool value_fit_slices(
    const struct sumac_value *values, const struct sumac_value *indices,
    const struct sumac_shape *dense_shape);
/* As sumac_value_mirrored, of what each replica has a copy of its own of. Takes  the items. */
struct sumac_value *
value_mirrored_each(struct sumac_value *const *items, uint32_t count, uint32_t first);
/* A list, a tuple or a dict. Takes  the items. */
struct sumac_value *value_make_nest(
    enum sumac_value_kind kind, char *const *keys, struct sumac_value *const *items,
    uint32_t count);
/* A list, a tuple or a value of replicas, with a reference of each of the items. NULL: as those
 * that take them. `first` is a value of replicas' own. */
struct sumac_value *value_hold(
    enum sumac_value_kind kind, const struct sumac_value *const *items, uint32_t count,
    uint32_t first);

/* "['w'][1]": where in a nest one is, while it is walked. */
struct value_path {
    const struct value_path *above; /* NULL: the whole */
    const struct sumac_value *nest;
    uint32_t index;
};
/* Into `text`: "" of the whole. Returns text. */
const char *value_path_print(const struct value_path *path, char *text, size_t text_bytes);

/* Make a value of each leaf – of what is neither list, tuple nor dict – in the same nest.
 * `leaf` gives a value, or fails. Gives *mapped (NULL: nothing, and `leaf` gives nothing). */
typedef enum sumac_status value_map_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error);
enum sumac_status value_map(
    const struct sumac_value *value, value_map_leaf *leaf, void *context,
    struct sumac_value **mapped, struct sumac_error *error);
/* The same of several that have the same nest, as value_same_nest says: `leaf` is given the leaf of
 * each. */
typedef enum sumac_status value_zip_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error);
enum sumac_status value_zip(
    const struct sumac_value *const *values, uint32_t count, value_zip_leaf *leaf, void *context,
    struct sumac_value **mapped, struct sumac_error *error);

/* As sumac_value_regroup of an array; what differs becomes `kind`, per_replica or mirrored. */
enum sumac_status value_regroup_as(
    enum sumac_value_kind kind, const struct sumac_value *const *items, uint32_t count,
    uint32_t first, struct sumac_value **regrouped, struct sumac_error *error);

/* RESOURCE_EXHAUSTED: no memory for a value. */
enum sumac_status value_fail_for_memory(struct sumac_error *error);
/* Gives *given: the value that was made. Fails  RESOURCE_EXHAUSTED: `made` is NULL. */
enum sumac_status
value_give(struct sumac_value *made, struct sumac_value **given, struct sumac_error *error);
/* One reference less of each; NULL has none. */
void value_unref_all(struct sumac_value *const *items, uint32_t count);
