/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c -- a gradient that several contributions make, and its update, in one pass over memory.
 *
 *   source 0 ··|░░░░|····        tile by tile: (source 0 + source 1 + …) ÷ divisor goes into a tile
 *   source 1 ··|░░░░|····  ──►   that stays in the first-level cache, then the function's own loop
 *   source 2 ··|░░░░|····        runs on it
 *
 * Each element is summed in the order of the sources, so neither the tiles nor where a source's
 * bytes lie change a bit.
 */
#include <assert.h>
#include <string.h>

#include "loops.h"

#define TILE_BYTES                                                                                 \
    8192u /* beside it the value's, a source's and two slots' tiles fit into 48 KiB */

static bool is_half(enum sumac_dtype dtype) { return sumac_dtype_kind(dtype) == SUMAC_KIND_HALF; }

enum sumac_dtype update_contribution_dtype(enum sumac_dtype dtype)
{
    return is_half(dtype) ? SUMAC_FLOAT32 : dtype;
}

bool update_can_add(enum sumac_dtype dtype) { return loops_plain.add[dtype] != NULL; }

bool update_can_divide(enum sumac_dtype dtype) { return loops_plain.divide[dtype] != NULL; }

/* One source's share of a tile of so many bytes. */
static void add_source(
    const struct update_slice *slice, uint32_t source, uint64_t at, uint8_t *tile, size_t bytes)
{
    update_add *const add = loops_select()->add[slice->dtype];
    const size_t element = sumac_dtype_bytes(update_contribution_dtype(slice->dtype));

    assert(source == 0 || add != NULL);
    while (bytes > 0) {
        uint64_t together = 0;
        const uint8_t *data =
            slice->sources->find(slice->sources->context, source, slice, at, &together);
        const size_t taken = together < bytes ? (size_t)together : bytes;
        assert(taken >= element && taken % element == 0);
        if (source == 0)
            memcpy(tile, data, taken);
        else
            add(tile, data, taken / element);
        tile += taken;
        at += taken;
        bytes -= taken;
    }
}

/* The outputs and inputs of elements `first` … of the whole. */
static void aim(const struct update_slice *whole, uint64_t first, struct update_slice *tile)
{
    const size_t bytes = (size_t)first * sumac_dtype_bytes(whole->dtype);

    assert(first < whole->count);
    tile->value_out = (uint8_t *)whole->value_out + bytes;
    tile->value_in = (const uint8_t *)whole->value_in + bytes;
    for (uint32_t i = 0; i < whole->function->slot_count; i++) {
        tile->slot_out[i] = (uint8_t *)whole->slot_out[i] + bytes;
        tile->slot_in[i] = (const uint8_t *)whole->slot_in[i] + bytes;
    }
}

void update_run_sum(const struct update_slice *slice)
{
    _Alignas(64) uint8_t sum[TILE_BYTES];
    const struct loops *const loops = loops_select();
    const uint32_t number = slice->function->number;
    update_loop *const run = is_half(slice->dtype) ? loops->run_wide[number][slice->dtype]
                                                   : loops->run[number][slice->dtype];
    const size_t element = sumac_dtype_bytes(update_contribution_dtype(slice->dtype));
    struct update_slice tile = *slice;

    assert(run != NULL);
    assert(slice->sources->count > 0);
    assert(slice->divisor == 1 || loops->divide[slice->dtype] != NULL);
    tile.sources = NULL;
    tile.gradient = sum;
    for (uint64_t first = 0; first < slice->count; first += tile.count) {
        const uint64_t left = slice->count - first;
        tile.count = left < TILE_BYTES / element ? left : TILE_BYTES / element;
        for (uint32_t i = 0; i < slice->sources->count; i++)
            add_source(
                slice, i, slice->source_at + first * element, sum, (size_t)tile.count * element);
        if (slice->divisor != 1)
            loops->divide[slice->dtype](sum, slice->divisor, (size_t)tile.count);
        aim(slice, first, &tile);
        run(&tile);
    }
}
