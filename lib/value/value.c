/* SPDX-License-Identifier: Apache-2.0 */
/* value.c -- values are made, counted and read. */
#include "value.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "text.h"
#include "host_copy.h"

enum sumac_status value_fail_for_memory(struct sumac_error *error)
{
    return fail_for_memory(error, "no memory for a value");
}

enum sumac_status
value_give(struct sumac_value *made, struct sumac_value **given, struct sumac_error *error)
{
    *given = made;
    return made == NULL ? value_fail_for_memory(error) : SUMAC_OK;
}

bool value_is_nest(const struct sumac_value *value)
{
    return value->kind == SUMAC_VALUE_LIST || value->kind == SUMAC_VALUE_TUPLE ||
           value->kind == SUMAC_VALUE_DICT;
}

bool value_is_leaf_of_replicas(const struct sumac_value *value)
{
    return value->kind == SUMAC_VALUE_PER_REPLICA || value->kind == SUMAC_VALUE_MIRRORED;
}

/* ---- counted */

static void free_value(struct sumac_value *value)
{
    for (uint32_t i = 0; value->items != NULL && i < value->count; i++)
        sumac_value_unref(value->items[i]);
    for (uint32_t i = 0; value->keys != NULL && i < value->count; i++)
        free(value->keys[i]);
    sumac_buffer_unref(value->tensor.buffer);
    free(value->items);
    free(value->keys);
    free(value);
}

struct sumac_value *sumac_value_ref(const struct sumac_value *value)
{
    struct sumac_value *own = (struct sumac_value *)value; /* the count is no part of the value */

    if (own != NULL)
        atomic_fetch_add_explicit(&own->references, 1, memory_order_relaxed);
    return own;
}

void sumac_value_unref(struct sumac_value *value)
{
    if (value == NULL)
        return;
    const uint_fast32_t before =
        atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        free_value(value);
}

/* ---- made */

static struct sumac_value *make(enum sumac_value_kind kind)
{
    struct sumac_value *value = calloc(1, sizeof *value);

    if (value == NULL)
        return NULL;
    atomic_init(&value->references, 1);
    value->kind = kind;
    return value;
}

struct sumac_value *sumac_value_none(void) { return make(SUMAC_VALUE_NONE); }

struct sumac_value *
value_make_tensor(enum sumac_dtype dtype, const struct sumac_shape *shape, void **elements)
{
    uint64_t bytes;

    if (sumac_shape_size(shape, dtype, NULL, &bytes) != SUMAC_OK)
        return NULL;
    struct sumac_value *value = make(SUMAC_VALUE_TENSOR);
    if (value == NULL)
        return NULL;
    value->tensor.dtype = dtype;
    value->tensor.shape = *shape;
    if (sumac_buffer_create(bytes, &value->tensor.buffer) != SUMAC_OK) {
        free(value);
        return NULL;
    }
    *elements = sumac_buffer_data(value->tensor.buffer);
    return value;
}

struct sumac_value *
sumac_value_tensor(enum sumac_dtype dtype, struct sumac_shape shape, const void *data)
{
    void *elements;
    struct sumac_value *value = value_make_tensor(dtype, &shape, &elements);

    if (value != NULL && data != NULL && sumac_tensor_bytes(&value->tensor) > 0)
        memcpy(elements, data, (size_t)sumac_tensor_bytes(&value->tensor));
    return value;
}

static bool is_there(const struct sumac_tensor *tensor)
{
    uint64_t bytes;

    if (tensor == NULL || sumac_shape_size(&tensor->shape, tensor->dtype, NULL, &bytes) != SUMAC_OK)
        return false;
    if (tensor->buffer != NULL)
        return tensor->offset_bytes <= sumac_buffer_bytes(tensor->buffer) &&
               bytes <= sumac_buffer_bytes(tensor->buffer) - tensor->offset_bytes;
    return bytes == 0 || tensor->memory != NULL;
}

struct sumac_value *sumac_value_copy(const struct sumac_tensor *tensor)
{
    struct sumac_error error;
    void *elements;

    if (!is_there(tensor))
        return NULL;
    struct sumac_value *value = value_make_tensor(tensor->dtype, &tensor->shape, &elements);
    if (value == NULL || host_copy_read(tensor, elements, &error) == SUMAC_OK)
        return value;
    sumac_value_unref(value);
    return NULL;
}

struct sumac_value *sumac_value_of(const struct sumac_tensor *tensor)
{
    if (!is_there(tensor) || tensor->buffer == NULL)
        return sumac_value_copy(tensor);
    struct sumac_value *value = make(SUMAC_VALUE_TENSOR);
    if (value == NULL)
        return NULL;
    value->tensor = *tensor;
    (void)sumac_buffer_ref(tensor->buffer);
    return value;
}

/* ---- made of others */

void value_unref_all(struct sumac_value *const *items, uint32_t count)
{
    for (uint32_t i = 0; items != NULL && i < count; i++)
        sumac_value_unref(items[i]);
}

/* What a value of these is beside them. False: one is NULL, or they are nested too deep. */
static bool look_at_items(struct sumac_value *value)
{
    for (uint32_t i = 0; i < value->count; i++) {
        const struct sumac_value *item = value->items[i];
        if (item == NULL || item->depth + 1 > SUMAC_VALUE_DEPTH_MAX)
            return false;
        if (item->depth + 1 > value->depth)
            value->depth = item->depth + 1;
        value->distributed = value->distributed || item->distributed;
    }
    return true;
}

/* The items are taken, whatever becomes of them. */
static struct sumac_value *
make_of(enum sumac_value_kind kind, struct sumac_value *const *items, uint32_t count)
{
    const bool counts = count <= SUMAC_VALUE_ITEMS_MAX && (items != NULL || count == 0);
    struct sumac_value *value = counts ? make(kind) : NULL;
    struct sumac_value **kept =
        value == NULL ? NULL : malloc((count == 0 ? 1 : count) * sizeof *kept);

    if (kept == NULL) {
        value_unref_all(items, count);
        free(value);
        return NULL;
    }
    if (count > 0)
        memcpy(kept, items, count * sizeof *kept);
    value->items = kept;
    value->count = count;
    if (!look_at_items(value)) {
        sumac_value_unref(value);
        return NULL;
    }
    return value;
}

struct sumac_value *sumac_value_list(struct sumac_value *const *items, uint32_t count)
{
    return make_of(SUMAC_VALUE_LIST, items, count);
}

struct sumac_value *sumac_value_tuple(struct sumac_value *const *items, uint32_t count)
{
    return make_of(SUMAC_VALUE_TUPLE, items, count);
}

bool value_fit_slices(
    const struct sumac_value *values, const struct sumac_value *indices,
    const struct sumac_shape *dense_shape)
{
    const struct sumac_tensor *rows = &values->tensor, *which = &indices->tensor;

    return values->kind == SUMAC_VALUE_TENSOR && indices->kind == SUMAC_VALUE_TENSOR &&
           (which->dtype == SUMAC_INT64 || which->dtype == SUMAC_INT32) && which->shape.rank == 1 &&
           rows->shape.rank > 0 && rows->shape.extent[0] == which->shape.extent[0] &&
           sumac_shape_size(dense_shape, rows->dtype, NULL, NULL) == SUMAC_OK;
}

struct sumac_value *sumac_value_indexed_slices(
    struct sumac_value *values, struct sumac_value *indices, struct sumac_shape dense_shape)
{
    struct sumac_value *const items[] = {values, indices};
    struct sumac_value *value = make_of(SUMAC_VALUE_INDEXED_SLICES, items, 2);

    if (value == NULL)
        return NULL;
    if (!value_fit_slices(values, indices, &dense_shape)) {
        sumac_value_unref(value);
        return NULL;
    }
    value->dense = dense_shape;
    return value;
}

/* ---- dicts */

static bool is_key(const char *key)
{
    const size_t bytes =
        key == NULL ? SUMAC_VALUE_KEY_BYTES_MAX + 1 : strnlen(key, SUMAC_VALUE_KEY_BYTES_MAX + 1);

    return bytes <= SUMAC_VALUE_KEY_BYTES_MAX && text_is_utf8(key, bytes);
}

struct dict_entry {
    const char *key;
    struct sumac_value *item;
};

static int compare_entries(const void *one, const void *other)
{
    return strcmp(((const struct dict_entry *)one)->key, ((const struct dict_entry *)other)->key);
}

/* In the order of their keys. NULL: no memory, or a key that is none, or is there twice. */
static struct dict_entry *
sort_entries(const char *const *keys, struct sumac_value *const *items, uint32_t count)
{
    struct dict_entry *entries = malloc((count == 0 ? 1 : count) * sizeof *entries);
    bool fits = entries != NULL;

    for (uint32_t i = 0; fits && i < count; i++) {
        fits = is_key(keys[i]);
        entries[i] = (struct dict_entry){.key = keys[i], .item = items[i]};
    }
    if (fits && count > 0)
        qsort(entries, count, sizeof *entries, compare_entries);
    for (uint32_t i = 1; fits && i < count; i++)
        fits = strcmp(entries[i - 1].key, entries[i].key) != 0;
    if (!fits) {
        free(entries);
        return NULL;
    }
    return entries;
}

static bool copy_keys(struct sumac_value *value, const struct dict_entry *entries)
{
    value->keys = calloc(value->count == 0 ? 1 : value->count, sizeof *value->keys);
    for (uint32_t i = 0; value->keys != NULL && i < value->count; i++) {
        value->keys[i] = strdup(entries[i].key);
        if (value->keys[i] == NULL)
            return false;
    }
    return value->keys != NULL;
}

struct sumac_value *
sumac_value_dict(const char *const *keys, struct sumac_value *const *items, uint32_t count)
{
    const bool counts =
        count <= SUMAC_VALUE_ITEMS_MAX && ((keys != NULL && items != NULL) || count == 0);
    struct dict_entry *entries = counts ? sort_entries(keys, items, count) : NULL;
    struct sumac_value *value = make_of(SUMAC_VALUE_DICT, items, count);

    for (uint32_t i = 0; value != NULL && entries != NULL && i < count; i++)
        value->items[i] = entries[i].item;
    if (value != NULL && (entries == NULL || !copy_keys(value, entries))) {
        sumac_value_unref(value);
        value = NULL;
    }
    free(entries);
    return value;
}

struct sumac_value *value_make_nest(
    enum sumac_value_kind kind, char *const *keys, struct sumac_value *const *items, uint32_t count)
{
    return kind == SUMAC_VALUE_DICT ? sumac_value_dict((const char *const *)keys, items, count)
                                    : make_of(kind, items, count);
}

/* ---- of replicas */

static struct sumac_value *note_replicas(struct sumac_value *value, uint32_t first)
{
    bool fits = value != NULL && value->count > 0 && value->count <= SUMAC_VALUE_REPLICAS_MAX &&
                first <= SUMAC_VALUE_REPLICAS_MAX - value->count;

    for (uint32_t i = 0; fits && i < value->count; i++)
        fits = !value->items[i]->distributed;
    if (!fits) {
        sumac_value_unref(value);
        return NULL;
    }
    value->distributed = true;
    value->first = first;
    return value;
}

struct sumac_value *
value_mirrored_each(struct sumac_value *const *items, uint32_t count, uint32_t first)
{
    return note_replicas(make_of(SUMAC_VALUE_MIRRORED, items, count), first);
}

struct sumac_value *
sumac_value_per_replica(struct sumac_value *const *items, uint32_t count, uint32_t first)
{
    return note_replicas(make_of(SUMAC_VALUE_PER_REPLICA, items, count), first);
}

struct sumac_value *sumac_value_mirrored(struct sumac_value *item, uint32_t count, uint32_t first)
{
    struct sumac_value *value = NULL;
    struct sumac_value **items =
        count == 0 || count > SUMAC_VALUE_REPLICAS_MAX ? NULL : malloc(count * sizeof *items);

    if (items == NULL) {
        sumac_value_unref(item);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        items[i] = i == 0 ? item : sumac_value_ref(item);
    value = note_replicas(make_of(SUMAC_VALUE_MIRRORED, items, count), first);
    free(items);
    return value;
}

struct sumac_value *value_hold(
    enum sumac_value_kind kind, const struct sumac_value *const *items, uint32_t count,
    uint32_t first)
{
    struct sumac_value **own = malloc((count == 0 ? 1 : count) * sizeof *own);

    assert(kind != SUMAC_VALUE_DICT);
    if (own == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        own[i] = sumac_value_ref(items[i]);
    struct sumac_value *value = make_of(kind, own, count);
    free(own);
    return kind == SUMAC_VALUE_PER_REPLICA || kind == SUMAC_VALUE_MIRRORED
               ? note_replicas(value, first)
               : value;
}

/* ---- read */

enum sumac_value_kind sumac_value_kind(const struct sumac_value *value)
{
    return value == NULL ? SUMAC_VALUE_NONE : value->kind;
}

const char *sumac_value_kind_name(enum sumac_value_kind kind)
{
    static const char *const names[] = {
        [SUMAC_VALUE_NONE] = "none",
        [SUMAC_VALUE_TENSOR] = "tensor",
        [SUMAC_VALUE_INDEXED_SLICES] = "slices",
        [SUMAC_VALUE_LIST] = "list",
        [SUMAC_VALUE_TUPLE] = "tuple",
        [SUMAC_VALUE_DICT] = "dict",
        [SUMAC_VALUE_PER_REPLICA] = "per_replica",
        [SUMAC_VALUE_MIRRORED] = "mirrored"};

    return (uint32_t)kind < sizeof names / sizeof *names ? names[kind] : "";
}

uint32_t sumac_value_count(const struct sumac_value *value)
{
    return value == NULL ? 0 : value->count;
}

const struct sumac_value *sumac_value_item(const struct sumac_value *value, uint32_t index)
{
    return index < sumac_value_count(value) ? value->items[index] : NULL;
}

const char *sumac_value_key(const struct sumac_value *value, uint32_t index)
{
    return index < sumac_value_count(value) && value->keys != NULL ? value->keys[index] : NULL;
}

const struct sumac_value *sumac_value_find(const struct sumac_value *value, const char *key)
{
    if (value == NULL || value->keys == NULL || key == NULL)
        return NULL;
    for (uint32_t i = 0; i < value->count; i++)
        if (strcmp(value->keys[i], key) == 0)
            return value->items[i];
    return NULL;
}

const struct sumac_tensor *sumac_value_as_tensor(const struct sumac_value *value)
{
    return sumac_value_kind(value) == SUMAC_VALUE_TENSOR ? &value->tensor : NULL;
}

const void *sumac_value_data(const struct sumac_value *value)
{
    const struct sumac_tensor *tensor = sumac_value_as_tensor(value);

    return tensor == NULL ? NULL : sumac_tensor_data(tensor);
}

/* false: it is not one element of that type, or its device does not give it. */
static bool read_one(const struct sumac_value *value, enum sumac_dtype dtype, void *element)
{
    const struct sumac_tensor *tensor = sumac_value_as_tensor(value);
    struct sumac_error error;

    return tensor != NULL && tensor->dtype == dtype &&
           sumac_tensor_bytes(tensor) == dtype_bytes(dtype) &&
           host_copy_read(tensor, element, &error) == SUMAC_OK;
}

/* A tensor of one element, made and read. */
#define SCALAR(NAME, name, type, none)                                                             \
    struct sumac_value *sumac_value_##name(type element)                                           \
    {                                                                                              \
        return sumac_value_tensor(SUMAC_##NAME, SUMAC_SCALAR, &element);                           \
    }                                                                                              \
    type sumac_value_as_##name(const struct sumac_value *value)                                    \
    {                                                                                              \
        type element;                                                                              \
        return read_one(value, SUMAC_##NAME, &element) ? element : (none);                         \
    }
SCALAR(FLOAT32, float32, float, NAN)
SCALAR(FLOAT64, float64, double, (double)NAN)
SCALAR(INT32, int32, int32_t, 0)
SCALAR(INT64, int64, int64_t, 0)

struct sumac_shape sumac_value_shape(const struct sumac_value *value)
{
    const enum sumac_value_kind kind = sumac_value_kind(value);

    return kind == SUMAC_VALUE_TENSOR           ? value->tensor.shape
           : kind == SUMAC_VALUE_INDEXED_SLICES ? value->dense
                                                : SUMAC_SCALAR;
}

bool sumac_value_is_distributed(const struct sumac_value *value)
{
    return value != NULL && value->distributed;
}

uint32_t sumac_value_first_replica(const struct sumac_value *value)
{
    return value == NULL ? 0 : value->first;
}
