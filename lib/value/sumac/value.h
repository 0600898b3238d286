/* SPDX-License-Identifier: Apache-2.0 */
/* value.h -- what a distributed program computes with: tensors, sparse slices, nests of them, and
 * values that each replica has its own of.
 *
 *     value ─┬─ none
 *            ├─ tensor                    dtype, shape, elements
 *            ├─ slices                    rows by index of a dense shape (tf.IndexedSlices)
 *            ├─ list, tuple ── items      a nest, as tf.nest knows them
 *            ├─ dict ── keys, items       in the order of the keys' bytes
 *            ├─ per_replica ── one item for each replica (tf.distribute.DistributedValues)
 *            └─ mirrored ── likewise, the same in all
 *
 * A value does not change once it is made, and is counted. Whose it is, its type says, here and in
 * every function and callback that has to do with values:
 *
 *     const struct sumac_value *value    a parameter, or a member of options: borrowed
 *     struct sumac_value *value          a parameter: taken, also when the call fails
 *     struct sumac_value *const *items   a parameter: each is taken, likewise
 *     struct sumac_value **result        given: the caller's, to sumac_value_unref
 *     struct sumac_value *               returned: given
 *     const struct sumac_value *         returned: lent, by the value or context that was asked
 *
 * sumac_value_ref makes one's own of what is borrowed or lent; without it, a compiler that warns of
 * discarded qualifiers does not let that be taken. Functions that make a value of others fail
 * (NULL) for what is NULL, so that calls nest and one look at the end is enough:
 *
 *     struct sumac_value *batch = sumac_value_dict(
 *         (const char *const[]){"x", "y"},
 *         (struct sumac_value *const[]){sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(8, 64), x),
 *                                       sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(8), y)}, 2);
 *
 * NULL, from any of them, means that there is no memory, or that what was asked for is no value;
 * whoever is given it says INVALID_ARGUMENT.
 *
 * Elements are in the host's memory, or in a device's (sumac_replica_to_device). What looks at them
 * here – comparing, printing, slices and rows – does so wherever they are. Work in a stream of the
 * program's own holds no reference: keep one until that work has read the elements.
 *
 * Threads  any, of one value too: it does not change. Its elements are read only.
 */
#ifndef SUMAC_VALUE_H
#define SUMAC_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sumac/reduce.h"
#include "sumac/status.h"
#include "sumac/tensor.h"

#define SUMAC_VALUE_DEPTH_MAX 64u       /* nests within nests */
#define SUMAC_VALUE_ITEMS_MAX 1048576u  /* of one nest */
#define SUMAC_VALUE_KEY_BYTES_MAX 1024u /* of a dict */
#define SUMAC_VALUE_REPLICAS_MAX 65536u /* in sync: those of all workers */

struct sumac_value;

enum sumac_value_kind {
    SUMAC_VALUE_NONE = 0,
    SUMAC_VALUE_TENSOR = 1,
    SUMAC_VALUE_INDEXED_SLICES = 2,
    SUMAC_VALUE_LIST = 3,
    SUMAC_VALUE_TUPLE = 4,
    SUMAC_VALUE_DICT = 5,
    SUMAC_VALUE_PER_REPLICA = 6,
    SUMAC_VALUE_MIRRORED = 7,
};

/* ---- made */

/* No value: what a function that returns nothing returns. */
SUMAC_API struct sumac_value *sumac_value_none(void);

/* As many elements as the shape says, row-major, copied from `data` (NULL: zeros).
 * Gives    a value, with one reference: release with sumac_value_unref. So do all that follow. */
SUMAC_API struct sumac_value *
sumac_value_tensor(enum sumac_dtype dtype, struct sumac_shape shape, const void *data);

/* The same of a tensor, whose elements are copied; and one whose elements stay where they are, in
 * the tensor's buffer, which gets a reference (without a buffer they are copied). */
SUMAC_API struct sumac_value *sumac_value_copy(const struct sumac_tensor *tensor);
SUMAC_API struct sumac_value *sumac_value_of(const struct sumac_tensor *tensor);

/* One element: 0-dimensional tensors. */
SUMAC_API struct sumac_value *sumac_value_float32(float element);
SUMAC_API struct sumac_value *sumac_value_float64(double element);
SUMAC_API struct sumac_value *sumac_value_int32(int32_t element);
SUMAC_API struct sumac_value *sumac_value_int64(int64_t element);

/* Rows of a dense tensor by index: `values` has one row for each of `indices`, a vector of int64 or
 * int32. An index may occur several times, and may lie anywhere: who uses the slices looks at that.
 * Takes    values, indices: tensors. Counterpart: tf.IndexedSlices. */
SUMAC_API struct sumac_value *sumac_value_indexed_slices(
    struct sumac_value *values, struct sumac_value *indices, struct sumac_shape dense_shape);

/* Nests. Keys are UTF-8 without a NUL, each once, and are copied.
 * Takes    the items. */
SUMAC_API struct sumac_value *sumac_value_list(struct sumac_value *const *items, uint32_t count);
SUMAC_API struct sumac_value *sumac_value_tuple(struct sumac_value *const *items, uint32_t count);
SUMAC_API struct sumac_value *
sumac_value_dict(const char *const *keys, struct sumac_value *const *items, uint32_t count);

/* One for each replica, at least one, in the order of replica_id_in_sync_group. No item is one of
 * these itself. `first` is the id of the first: under several workers each has its own replicas'.
 * Takes    the items. Counterparts: tf.distribute.DistributedValues, PerReplica and Mirrored. */
SUMAC_API struct sumac_value *
sumac_value_per_replica(struct sumac_value *const *items, uint32_t count, uint32_t first);
/* The same value in `count` replicas: counted, not copied. */
SUMAC_API struct sumac_value *
sumac_value_mirrored(struct sumac_value *item, uint32_t count, uint32_t first);

/* Take a reference, and return the same value as one's own; give one back. NULL does nothing. */
SUMAC_API struct sumac_value *sumac_value_ref(const struct sumac_value *value);
SUMAC_API void sumac_value_unref(struct sumac_value *value);

/* ---- read */

/* NONE for NULL. */
SUMAC_API enum sumac_value_kind sumac_value_kind(const struct sumac_value *value);
/* "tensor", "per_replica". Lends  a constant string. */
SUMAC_API const char *sumac_value_kind_name(enum sumac_value_kind kind);

/* How many items it has; 0 of what has none. */
SUMAC_API uint32_t sumac_value_count(const struct sumac_value *value);
/* Of slices, item 0 are the values and item 1 the indices. NULL: it has no such item.
 * Lends    valid with the value. */
SUMAC_API const struct sumac_value *
sumac_value_item(const struct sumac_value *value, uint32_t index);
/* Of a dict: the key of an item; the item of a key. NULL: none, or no dict.
 * Lends    valid with the value. */
SUMAC_API const char *sumac_value_key(const struct sumac_value *value, uint32_t index);
SUMAC_API const struct sumac_value *
sumac_value_find(const struct sumac_value *value, const char *key);

/* Of a tensor. NULL: it is none; of slices the dense shape's tensor is none either.
 * Lends    a view of its elements, to be read, valid with the value. Where they are on a device
 *          (sumac_buffer_place of its buffer), their address is that device's: sumac_value_to_host
 *          brings them to where the host reads. */
SUMAC_API const struct sumac_tensor *sumac_value_as_tensor(const struct sumac_value *value);
/* The first element: the same as sumac_tensor_data of that. NULL: no tensor. */
SUMAC_API const void *sumac_value_data(const struct sumac_value *value);
/* The element of a tensor that has one, of that type, whatever its shape and wherever it is.
 * Anything else is NaN, or of integers 0. Counterpart: float(), int(). */
SUMAC_API float sumac_value_as_float32(const struct sumac_value *value);
SUMAC_API double sumac_value_as_float64(const struct sumac_value *value);
SUMAC_API int32_t sumac_value_as_int32(const struct sumac_value *value);
SUMAC_API int64_t sumac_value_as_int64(const struct sumac_value *value);
/* Of slices the dense shape; of a tensor its own; of anything else a scalar's. */
SUMAC_API struct sumac_shape sumac_value_shape(const struct sumac_value *value);

/* Is a leaf of it per_replica or mirrored? Which replica has item 0? */
SUMAC_API bool sumac_value_is_distributed(const struct sumac_value *value);
SUMAC_API uint32_t sumac_value_first_replica(const struct sumac_value *value);

/* What that replica has of it: each per_replica and mirrored leaf is replaced by its item.
 * Gives    *local: release with sumac_value_unref.
 * Fails    OUT_OF_RANGE: a leaf has no item of that replica. RESOURCE_EXHAUSTED. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_select(
    const struct sumac_value *value, uint32_t replica, struct sumac_value **local,
    struct sumac_error *error);

/* The same with all elements in the host's memory; that is itself, where they are. What replicas
 * have copies of, each on its device, is copied once.
 *
 * Of what a device's work has yet to write it waits for in that work's order: in the function of a
 * replica for that replica's own.
 * Gives    *here: release with sumac_value_unref.
 * Fails    RESOURCE_EXHAUSTED. FAILED_PRECONDITION: no strategy, or worker, has opened the device.
 *          As the device. Counterpart: tf.device("CPU"), numpy(). */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_to_host(
    const struct sumac_value *value, struct sumac_value **here, struct sumac_error *error);

/* The other way: put together what each of some replicas has, leaf by leaf. If all have the same
 * object, not only an equal one, that is the leaf. If all have copies of one object, each on its
 * device, it is mirrored. Else it is per_replica.
 *
 * A collective gives each replica another object, with the same elements, and so do reads and
 * writes of a variable: these become per_replica.
 *
 * items (a list or tuple, of one for each)
 * Gives    *regrouped.
 * Fails    INVALID_ARGUMENT: no such items; their nests differ, and the text says where and how.
 *          RESOURCE_EXHAUSTED.
 * Counterpart: the regrouping of tf.distribute's run. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_regroup(
    const struct sumac_value *items, uint32_t first, struct sumac_value **regrouped,
    struct sumac_error *error);

/* ---- parts of a tensor */

/* An entry of what is asked for of a tensor, for an axis each, from the first: NumPy's basic
 * slicing, t[2, 1:, ..., ::-1]. */
enum sumac_slice_kind {
    SUMAC_SLICE_RANGE = 0,    /* start:stop:step; zeroed: all of the axis */
    SUMAC_SLICE_INDEX = 1,    /* one element, and the result has no such axis */
    SUMAC_SLICE_ELLIPSIS = 2, /* all of as many axes as are left; at most one */
};
struct sumac_slice {
    enum sumac_slice_kind kind;
    int64_t index;             /* negative ones count from the end, as all here */
    int64_t start, stop, step; /* as far as they are given: */
    bool has_start, has_stop, has_step;
};

/* What the entries ask for; axes that have none are whole.
 * Gives    *result, a tensor with a copy.
 * Fails    INVALID_ARGUMENT: no tensor, more entries than axes, a second ellipsis, a step of 0.
 *          OUT_OF_RANGE: an index that the axis has not. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_slice(
    const struct sumac_value *value, const struct sumac_slice *slices, uint32_t count,
    struct sumac_value **result, struct sumac_error *error);

/* Rows of the first axis, in the order of `ids`, an int64 or int32 tensor of any shape: tf.gather.
 * Gives    *result, a tensor. Its shape is that of the ids, followed by that of a row.
 * Fails    INVALID_ARGUMENT: the value has no rows, the ids are no such tensor, a row is not there,
 *          or the result has more than SUMAC_RANK_MAX axes. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_rows(
    const struct sumac_value *value, const struct sumac_value *ids, struct sumac_value **result,
    struct sumac_error *error);

/* Combine rows: tf.nn.embedding_lookup_sparse. `bags` is a list. Each item is a tensor of ids, or a
 * tuple of ids and of their weights (sp_weights), a float tensor of the same shape, which may be
 * any. The rows of a bag, by their weights (1 without weights), become one by SUM, MEAN or SQRTN. A
 * row of the result is zeros if its bag has no ids or the divisor is 0. Rows of half types are
 * computed in float32.
 *
 * Gives    *result, a tensor with one row for each bag.
 * Fails    as sumac_value_rows; INVALID_ARGUMENT: MEAN, SQRTN or weights of integer rows; bools;
 *          weights that do not fit the ids. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_lookup(
    const struct sumac_value *value, const struct sumac_value *bags, enum sumac_reduce_op combiner,
    struct sumac_value **result, struct sumac_error *error);

/* ---- compared and printed */

/* The same form, types, shapes, keys, and the same bits. */
SUMAC_API bool sumac_value_equal(const struct sumac_value *a, const struct sumac_value *b);

/* The same nest: kinds, counts and keys, down to the leaves, which may be anything.
 * Fails    INVALID_ARGUMENT, saying at which place ("['w'][1]") they differ and how. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_value_same_nest(
    const struct sumac_value *a, const struct sumac_value *b, struct sumac_error *error);

/* In one line, {"loss": per_replica(0: float32[] 0.25, 1: float32[] 0.5)}, of a tensor at most 16
 * elements, into `text` (cut between characters, always terminated). Returns the bytes that it
 * would take, without the end, as snprintf does.
 * Lends    text. */
SUMAC_API size_t sumac_value_print(const struct sumac_value *value, char *text, size_t text_bytes);
/* The same, whole, to a stream: ferror tells whether it is written. */
SUMAC_API void sumac_value_fprint(FILE *stream, const struct sumac_value *value);

#endif
