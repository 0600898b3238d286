/* SPDX-License-Identifier: Apache-2.0 */
/* reserved_array.c -- an array that grows, and what it does when it cannot. */
#include "reserved_array.h"

#include <assert.h>

static size_t bytes_of(const struct reserved_array *array, uint32_t capacity)
{
    return ((size_t)capacity + 1) * array->item_bytes;
}

bool reserved_array_init(
    struct reserved_array *array, const struct memory *memory, size_t item_bytes, uint32_t capacity)
{
    assert(capacity > RESERVED_ARRAY_RESERVE);
    *array = (struct reserved_array){
        .memory = memory, .item_bytes = item_bytes, .zeroed_bytes = item_bytes};
    array->items = memory_take(memory, bytes_of(array, capacity));
    array->capacity = array->items == NULL ? 0 : capacity;
    return array->items != NULL;
}

void reserved_array_deinit(struct reserved_array *array)
{
    assert(array->count <= array->capacity);
    if (array->items != NULL)
        memory_give(array->memory, array->items, bytes_of(array, array->capacity));
    *array = (struct reserved_array){.memory = array->memory, .item_bytes = array->item_bytes};
}

static bool grow(struct reserved_array *array)
{
    assert(array->capacity > 0);
    if (array->capacity > UINT32_MAX / 2)
        return false;
    uint8_t *items = memory_take(array->memory, bytes_of(array, 2 * array->capacity));
    if (items == NULL)
        return false;
    memcpy(items, array->items, array->count * array->item_bytes);
    memory_give(array->memory, array->items, bytes_of(array, array->capacity));
    array->items = items;
    array->capacity *= 2;
    return true;
}

static bool has_place(const struct reserved_array *array, enum reserved_place place)
{
    const uint32_t left = array->capacity - array->count;

    assert(left <= RESERVED_ARRAY_RESERVE);
    switch (place) {
    case RESERVED_PLACE_NONE:
        return false;
    case RESERVED_PLACE_ANY:
        return left > 1;
    case RESERVED_PLACE_LAST:
        return left > 0;
    }
    return false;
}

void *reserved_array_add_grown(struct reserved_array *array, enum reserved_place place)
{
    const bool fits = grow(array) || has_place(array, place);
    const uint32_t at = fits ? array->count++ : array->capacity;

    assert(at <= array->capacity);
    array->lost |= !fits && place != RESERVED_PLACE_NONE;
    return memset(array->items + at * array->item_bytes, 0, array->zeroed_bytes);
}
