/* SPDX-License-Identifier: Apache-2.0 */
/* reserved_array.h -- an array that grows, with a reserve for what has to be said when it cannot.
 *
 *   |<-------- count -------->|<-- free: the reserve at the least -->| lost |
 *
 * It doubles when only the reserve is left, and is never given back, so that in the long run it
 * takes nothing. Where the source has no memory for it, what can be done without is left out, then
 * the reserve is used, and its last place is for the item that says so. What has no place at all is
 * filled in behind the last one and read by nobody; `lost` tells that it was needed. So adding
 * cannot fail: whoever adds an item fills it in, and has nothing to look after.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

#define RESERVED_ARRAY_RESERVE 16u /* places that are left when the array is to grow */

/* Which places an item may take where the array cannot grow. */
enum reserved_place {
    RESERVED_PLACE_NONE, /* it can be done without */
    RESERVED_PLACE_ANY,  /* it is needed: any but the last one */
    RESERVED_PLACE_LAST, /* it says that something was lost: the last one, too */
};

struct reserved_array {
    const struct memory *memory;
    uint8_t *items; /* capacity of them, and the one that is not read */
    size_t item_bytes;
    size_t zeroed_bytes; /* of each, at its begin: all, unless its user says less after the init */
    uint32_t count, capacity;
    bool lost; /* something that was needed had no place */
};

/* Refs  memory, until reserved_array_deinit. Capacity: more than the reserve. False: no memory. */
bool reserved_array_init(
    struct reserved_array *array, const struct memory *memory, size_t item_bytes,
    uint32_t capacity);
void reserved_array_deinit(struct reserved_array *array);
/* What reserved_array_add does when only the reserve is left. */
void *reserved_array_add_grown(struct reserved_array *array, enum reserved_place place);

/* An item at the end, zeroed; never NULL. Lends  it until the next one is added. */
static inline void *reserved_array_add(struct reserved_array *array, enum reserved_place place)
{
    if (array->capacity - array->count <= RESERVED_ARRAY_RESERVE)
        return reserved_array_add_grown(array, place);
    return memset(array->items + array->count++ * array->item_bytes, 0, array->zeroed_bytes);
}

static inline void reserved_array_reset(struct reserved_array *array)
{
    array->count = 0;
    array->lost = false;
}
