/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c -- a value as bytes, and back.
 *
 *     value    kind, then
 *       tensor   dtype, rank, extents, 1 and the elements, or 0
 *       slices   dense rank and extents, rows, indices
 *       nest     count, items; of a dict each after its key
 */
#include "pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "host_copy.h"

#include "dtype.h"
#include "text.h"

/* ---- written */

void pack_deinit(struct pack *pack)
{
    free(pack->bytes);
    *pack = (struct pack){.bytes = NULL};
}

bool pack_reserve(struct pack *pack, size_t count)
{
    size_t room = pack->room < 256 ? 256 : pack->room;

    if (pack->failed || count > SIZE_MAX / 4 - pack->used) {
        pack->failed = true;
        return false;
    }
    while (room < pack->used + count)
        room *= 2;
    if (room == pack->room)
        return true;
    uint8_t *bytes = realloc(pack->bytes, room);
    pack->failed = bytes == NULL;
    if (bytes != NULL) {
        pack->bytes = bytes;
        pack->room = room;
    }
    return bytes != NULL;
}

void pack_bytes(struct pack *pack, const void *bytes, size_t count)
{
    if (count == 0 || !pack_reserve(pack, count))
        return;
    assert(pack->used + count <= pack->room);
    memcpy(pack->bytes + pack->used, bytes, count);
    pack->used += count;
}

void pack_u32(struct pack *pack, uint32_t number) { pack_bytes(pack, &number, sizeof number); }

void pack_u64(struct pack *pack, uint64_t number) { pack_bytes(pack, &number, sizeof number); }

void pack_text(struct pack *pack, const char *text)
{
    const size_t bytes = text == NULL ? 0 : strlen(text);

    assert(bytes <= UINT32_MAX);
    pack_u32(pack, (uint32_t)bytes);
    pack_bytes(pack, text, bytes);
}

static void pack_shape(struct pack *pack, const struct sumac_shape *shape)
{
    assert(shape->rank <= SUMAC_RANK_MAX);
    pack_u32(pack, shape->rank);
    for (uint32_t i = 0; i < shape->rank; i++)
        pack_u64(pack, shape->extent[i]);
}

static void pack_elements_of(struct pack *pack, const struct sumac_tensor *tensor)
{
    const size_t bytes = (size_t)sumac_tensor_bytes(tensor);
    struct sumac_error error;

    if (bytes == 0 || !pack_reserve(pack, bytes))
        return;
    if (host_copy_read(tensor, pack->bytes + pack->used, &error) == SUMAC_OK)
        pack->used += bytes;
    else
        pack->failed = true;
}

static void pack_tensor(
    struct pack *pack, const struct sumac_tensor *tensor, pack_elements *elements,
    const void *context)
{
    const bool go_along = elements == NULL || elements(context, tensor);

    pack_u32(pack, (uint32_t)tensor->dtype);
    pack_shape(pack, &tensor->shape);
    pack_u32(pack, go_along);
    if (go_along)
        pack_elements_of(pack, tensor);
}

/* Its values, counted up to `most` + 1. */
static uint32_t count_values(const struct sumac_value *value, uint32_t most)
{
    uint32_t count = 1;

    for (uint32_t i = 0; i < value->count && count <= most; i++)
        count += count_values(value->items[i], most - count);
    return count;
}

bool pack_fits(const struct sumac_value *value)
{
    return count_values(value, PACK_VALUES_MAX) <= PACK_VALUES_MAX;
}

void pack_value(
    struct pack *pack, const struct sumac_value *value, pack_elements *elements,
    const void *context)
{
    assert(!value->distributed);
    pack_u32(pack, (uint32_t)value->kind);
    if (value->kind == SUMAC_VALUE_TENSOR) {
        pack_tensor(pack, &value->tensor, elements, context);
        return;
    }
    if (value->kind == SUMAC_VALUE_INDEXED_SLICES) {
        pack_shape(pack, &value->dense);
        pack_tensor(pack, &value->items[0]->tensor, NULL, NULL);
        pack_tensor(pack, &value->items[1]->tensor, NULL, NULL);
        return;
    }
    pack_u32(pack, value->count);
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == SUMAC_VALUE_DICT)
            pack_text(pack, value->keys[i]);
        pack_value(pack, value->items[i], elements, context);
    }
}

/* ---- read */

const uint8_t *unpack_bytes(struct unpack *unpack, size_t count)
{
    const uint8_t *const at = unpack->at;

    assert(unpack->at <= unpack->end);
    if (unpack->failed || count > (size_t)(unpack->end - unpack->at)) {
        unpack->failed = true;
        return NULL;
    }
    unpack->at += count;
    return at;
}

uint32_t unpack_u32(struct unpack *unpack)
{
    uint32_t number = 0;
    const uint8_t *at = unpack_bytes(unpack, sizeof number);

    if (at != NULL)
        memcpy(&number, at, sizeof number);
    return number;
}

uint64_t unpack_u64(struct unpack *unpack)
{
    uint64_t number = 0;
    const uint8_t *at = unpack_bytes(unpack, sizeof number);

    if (at != NULL)
        memcpy(&number, at, sizeof number);
    return number;
}

const char *unpack_text(struct unpack *unpack, char *text, size_t text_bytes)
{
    const uint32_t bytes = unpack_u32(unpack);
    const uint8_t *at = unpack_bytes(unpack, bytes);
    const size_t fits = bytes < text_bytes ? bytes : text_bytes - 1;

    assert(text_bytes > 0);
    if (at != NULL)
        memcpy(text, at, fits);
    text[at == NULL ? 0 : fits] = '\0';
    return text;
}

static struct sumac_shape unpack_shape(struct unpack *unpack)
{
    struct sumac_shape shape = {.rank = unpack_u32(unpack)};

    if (shape.rank > SUMAC_RANK_MAX) {
        unpack->failed = true;
        return (struct sumac_shape){.rank = 0};
    }
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.extent[i] = unpack_u64(unpack);
    return shape;
}

/* NULL of what could be made: there is no memory. */
static struct sumac_value *made(struct unpack *unpack, struct sumac_value *value)
{
    unpack->no_memory = unpack->no_memory || value == NULL;
    return value;
}

/* As sumac_value_tensor, of which the bytes are there; NULL: they are not, or no memory. */
static struct sumac_value *unpack_tensor(struct unpack *unpack)
{
    const enum sumac_dtype dtype = (enum sumac_dtype)unpack_u32(unpack);
    const struct sumac_shape shape = unpack_shape(unpack);
    uint64_t bytes = 0;

    const bool has_elements = unpack_u32(unpack) != 0;
    if (unpack->failed || sumac_shape_size(&shape, dtype, NULL, &bytes) != SUMAC_OK)
        return NULL;
    if (has_elements) {
        const uint8_t *at = bytes > SIZE_MAX ? NULL : unpack_bytes(unpack, (size_t)bytes);
        return at == NULL ? NULL : made(unpack, sumac_value_tensor(dtype, shape, at));
    }
    struct sumac_value *value = made(unpack, sumac_value_tensor(dtype, SUMAC_SHAPE(0), NULL));
    if (value != NULL) {
        sumac_buffer_unref(value->tensor.buffer);
        value->tensor.buffer = NULL;
        value->tensor.shape = shape;
    }
    return value;
}

/* Count the items of a nest. False: the value would have too many, or the bytes left are too few.
 */
static bool count_items(struct unpack *unpack, uint32_t count)
{
    const size_t item_bytes = 2 * sizeof(uint32_t); /* at least: a kind, and a count or a type */

    if (unpack->failed || count > (size_t)(unpack->end - unpack->at) / item_bytes ||
        count > PACK_VALUES_MAX - unpack->values)
        return false;
    unpack->values += count;
    return true;
}

/* A tensor with its elements. NULL: it has none, or there is no memory. */
static struct sumac_value *unpack_whole_tensor(struct unpack *unpack)
{
    struct sumac_value *value = unpack_tensor(unpack);

    if (value == NULL || value_has_elements(value))
        return value;
    sumac_value_unref(value);
    return NULL;
}

static struct sumac_value *unpack_slices(struct unpack *unpack)
{
    const struct sumac_shape dense = unpack_shape(unpack);

    if (!count_items(unpack, 2))
        return NULL;
    struct sumac_value *rows = unpack_whole_tensor(unpack);
    struct sumac_value *indices = unpack_whole_tensor(unpack);
    if (rows != NULL && indices != NULL && value_fit_slices(rows, indices, &dense))
        return made(unpack, sumac_value_indexed_slices(rows, indices, dense));
    sumac_value_unref(rows);
    sumac_value_unref(indices);
    return NULL;
}

/* A text and its NUL. NULL: it is no key, or cut, or not behind `before` (NULL: it is the first),
 * as pack_value writes keys; or there is no memory. */
static char *unpack_key(struct unpack *unpack, const char *before)
{
    const uint32_t bytes = unpack_u32(unpack);
    const uint8_t *at = bytes > SUMAC_VALUE_KEY_BYTES_MAX ? NULL : unpack_bytes(unpack, bytes);

    if (at == NULL || !text_is_utf8((const char *)at, bytes))
        return NULL;
    char *key = malloc((size_t)bytes + 1);
    unpack->no_memory = unpack->no_memory || key == NULL;
    if (key == NULL)
        return NULL;
    memcpy(key, at, bytes);
    key[bytes] = '\0';
    if (before == NULL || strcmp(before, key) < 0)
        return key;
    free(key);
    return NULL;
}

static struct sumac_value *unpack_at_depth(struct unpack *unpack, uint32_t depth);

/* Its items; of a dict each after its key. */
static struct sumac_value *
unpack_nest(struct unpack *unpack, enum sumac_value_kind kind, uint32_t depth)
{
    const uint32_t count = unpack_u32(unpack);
    struct sumac_value *nest = NULL;

    if (!count_items(unpack, count))
        return NULL;
    struct sumac_value **items = calloc((size_t)count + 1, sizeof *items);
    char **keys = calloc((size_t)count + 1, sizeof *keys);
    bool complete = items != NULL && keys != NULL;
    unpack->no_memory = unpack->no_memory || !complete;
    for (uint32_t i = 0; complete && i < count; i++) {
        keys[i] = kind == SUMAC_VALUE_DICT ? unpack_key(unpack, i == 0 ? NULL : keys[i - 1]) : NULL;
        complete = kind != SUMAC_VALUE_DICT || keys[i] != NULL;
        items[i] = complete ? unpack_at_depth(unpack, depth + 1) : NULL;
        complete = items[i] != NULL;
    }
    if (complete)
        nest = made(unpack, value_make_nest(kind, keys, items, count));
    for (uint32_t i = 0; i < count; i++) {
        if (!complete && items != NULL)
            sumac_value_unref(items[i]);
        if (keys != NULL)
            free(keys[i]);
    }
    free(items);
    free(keys);
    return nest;
}

static struct sumac_value *unpack_at_depth(struct unpack *unpack, uint32_t depth)
{
    const enum sumac_value_kind kind = (enum sumac_value_kind)unpack_u32(unpack);

    if (unpack->failed || depth > SUMAC_VALUE_DEPTH_MAX)
        return NULL;
    switch (kind) {
    case SUMAC_VALUE_NONE:
        return unpack_u32(unpack) == 0 && !unpack->failed ? made(unpack, sumac_value_none()) : NULL;
    case SUMAC_VALUE_TENSOR:
        return unpack_tensor(unpack);
    case SUMAC_VALUE_INDEXED_SLICES:
        return unpack_slices(unpack);
    case SUMAC_VALUE_LIST:
    case SUMAC_VALUE_TUPLE:
    case SUMAC_VALUE_DICT:
        return unpack_nest(unpack, kind, depth);
    case SUMAC_VALUE_PER_REPLICA:
    case SUMAC_VALUE_MIRRORED:
        break;
    }
    return NULL;
}

enum sumac_status unpack_value(struct unpack *unpack, struct sumac_value **value)
{
    unpack->values = 1;
    struct sumac_value *read = unpack_at_depth(unpack, 0);
    unpack->failed = unpack->failed || read == NULL;
    if (read == NULL)
        return unpack->no_memory ? SUMAC_RESOURCE_EXHAUSTED : SUMAC_INVALID_ARGUMENT;
    assert(!unpack->no_memory);
    *value = read;
    return SUMAC_OK;
}

bool value_has_elements(const struct sumac_value *tensor)
{
    assert(tensor->kind == SUMAC_VALUE_TENSOR);
    return tensor->tensor.buffer != NULL || sumac_tensor_data(&tensor->tensor) != NULL;
}
