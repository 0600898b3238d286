/* SPDX-License-Identifier: Apache-2.0 */
/* combine.c -- sums and means in one pass over all contributions; the least and the largest in
 * tiles, so that what one contribution leaves is in the first-level cache when the next one comes.
 */
#include "combine.h"

#include <assert.h>
#include <string.h>

#include "dtype.h"

#define TILE_BYTES 8192u

/* A slice of that function, which keeps no slots; no clip_value is given. */
static struct update_slice
slice_of(const struct combine_slice *slice, const char *function, uint64_t count, void *out)
{
    const struct update_hyperparameters none = {0};
    struct update_slice made = {
        .function = update_find_by_name(function),
        .dtype = slice->collective->dtype,
        .count = count,
        .value_out = out,
        .value_in = out,
        .divisor = 1};

    assert(made.function != NULL);
    assert(made.function->slot_count == 0);
    update_prepare(made.function, made.dtype, &none, 1, &made);
    return made;
}

static void add_up(const struct combine_slice *slice)
{
    const enum sumac_dtype dtype = collective_contribution_dtype(slice->collective);
    struct update_slice made = slice_of(slice, "assign", slice->count, slice->out);

    assert(slice->sources->count > 0);
    made.sources = slice->sources;
    made.source_at = slice->first * dtype_bytes(dtype);
    if (slice->collective->operation == COLLECTIVE_MEAN)
        made.divisor = slice->weight;
    assert(made.divisor > 0);
    update_run(&made);
}

/* The same elements of one source onto those of the ones before it. */
static void take_source(
    const struct combine_slice *slice, uint32_t source, const struct update_slice *tile,
    uint64_t at)
{
    const size_t element = dtype_bytes(slice->collective->dtype);

    for (uint64_t done = 0; done < tile->count;) {
        struct update_slice made = *tile;
        uint64_t together = 0;
        made.gradient = slice->sources->find(
            slice->sources->context, source, tile, at + done * element, &together);
        made.value_out = (uint8_t *)tile->value_out + done * element;
        made.value_in = made.value_out;
        made.count = tile->count - done;
        assert(together >= element);
        if (together / element < made.count)
            made.count = together / element;
        if (made.gradient != made.value_out) /* else the first one is where the result is to be */
            update_run(&made);
        done += made.count;
    }
}

static void compare(const struct combine_slice *slice)
{
    const char *const function = slice->collective->operation == COLLECTIVE_MIN ? "min" : "max";
    const size_t element = dtype_bytes(slice->collective->dtype);
    const uint64_t most = TILE_BYTES / element;

    for (uint64_t done = 0; done < slice->count;) {
        const uint64_t left = slice->count - done, count = left < most ? left : most;
        uint8_t *const out = (uint8_t *)slice->out + done * element;
        const uint64_t at = (slice->first + done) * element;
        const struct update_slice first = slice_of(slice, "assign", count, out);
        const struct update_slice others = slice_of(slice, function, count, out);
        take_source(slice, 0, &first, at);
        for (uint32_t source = 1; source < slice->sources->count; source++)
            take_source(slice, source, &others, at);
        done += count;
    }
}

void combine_run(const struct combine_slice *slice)
{
    const enum collective_operation operation = slice->collective->operation;

    assert(operation >= COLLECTIVE_SUM);
    assert(operation <= COLLECTIVE_MAX); /* of what is joined nothing is computed */
    if (operation == COLLECTIVE_SUM || operation == COLLECTIVE_MEAN)
        add_up(slice);
    else
        compare(slice);
}
