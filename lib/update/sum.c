/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c -- a gradient that has to be made first – of several contributions, or scaled and clipped –
 * and its update, in one pass over memory.
 *
 *   source 0 ··|░░░░|····        tile by tile: (source 0 + source 1 + …) ÷ divisor goes into a tile
 *   source 1 ··|░░░░|····  ──►   that stays in the first-level cache, then the function's own loop
 *   source 2 ··|░░░░|····        runs on it; four sources are read at a time, so that memory is
 *                                asked for all of them at once, and the tile is written once
 *
 * Each element is summed in the order of the sources, so neither the tiles nor where a source's
 * bytes lie change a bit.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "loops.h"

/* Small: the processor goes on with the next tile while it waits for this one's memory. */
#define TILE_BYTES 1024u
#define GROUPS_KEPT 21u

/* Sources that are read at once, where they have come to, and how much of all of them lies together
 * from there on. */
struct group {
    const uint8_t *data[LOOPS_SUMMANDS];
    uint64_t together;
};

struct sum_reader {
    const struct update_slice *slice;
    const struct loops *loops;
    size_t element;                   /* bytes of a contribution's */
    uint64_t at;                      /* byte of the run that the tile begins with */
    struct group groups[GROUPS_KEPT]; /* those beyond are looked up for each tile */
    uint8_t (*scaled)[TILE_BYTES];    /* (LOOPS_SUMMANDS), where sources are that are scaled */
};

bool update_can_add(enum sumac_dtype dtype) { return loops_plain.sum[dtype] != NULL; }

bool update_can_divide(enum sumac_dtype dtype) { return loops_plain.mean[dtype] != NULL; }

/* Find the sources of the group, from byte `at` of the run on. */
static void find_group(
    const struct sum_reader *reader, uint32_t first, uint32_t count, uint64_t at,
    struct group *group)
{
    const struct update_sources *const sources = reader->slice->sources;

    assert(count <= LOOPS_SUMMANDS && first + count <= sources->count);
    group->together = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t together = 0;
        group->data[i] = sources->find(sources->context, first + i, reader->slice, at, &together);
        if (together < group->together)
            group->together = together;
    }
}

/* The bytes of a source, or, where it is scaled, what is made of them at its place among the
 * summands. */
static const void *
scale_source(struct sum_reader *reader, uint32_t source, uint32_t place, const void *data, size_t n)
{
    const struct update_sources *const sources = reader->slice->sources;
    const double scale =
        sources->scale_of == NULL ? 1 : sources->scale_of(sources->context, source);

    assert(place < LOOPS_SUMMANDS);
    assert(n <= TILE_BYTES);
    if (scale >= 1 && scale <= 1)
        return data;
    reader->loops->condition[reader->slice->dtype](
        reader->scaled[place], data, scale, HUGE_VAL, n / reader->element);
    return reader->scaled[place];
}

/* Sources `first` … onto the tile, which has the sum of those before them. */
static void add_group(
    struct sum_reader *reader, struct group *group, uint32_t first, uint8_t *tile, size_t bytes)
{
    const struct update_slice *const slice = reader->slice;
    const uint32_t before = first == 0 ? 0 : 1, left = slice->sources->count - first;
    const uint32_t count = left < LOOPS_SUMMANDS - before ? left : LOOPS_SUMMANDS - before;
    const double divisor = count == left ? slice->divisor : 1;
    uint64_t at = reader->at;

    while (bytes > 0) {
        struct summands summands;
        if (group->together == 0)
            find_group(reader, first, count, at, group);
        const size_t taken = group->together < bytes ? (size_t)group->together : bytes;
        assert(taken >= reader->element && taken % reader->element == 0);
        summands.data[0] = tile;
        summands.count = before + count;
        summands.element = reader->element;
        for (uint32_t i = 0; i < count; i++) {
            summands.data[before + i] =
                scale_source(reader, first + i, before + i, group->data[i], taken);
            group->data[i] += taken;
        }
        loops_add(reader->loops, slice->dtype, tile, &summands, divisor, taken / reader->element);
        group->together -= taken;
        tile += taken;
        at += taken;
        bytes -= taken;
    }
}

/* The tile's gradient. */
static void fill_tile(struct sum_reader *reader, uint8_t *tile, size_t bytes)
{
    uint32_t number = 0;

    for (uint32_t first = 0; first < reader->slice->sources->count; number++) {
        struct group beyond = {.together = 0};
        add_group(
            reader, number < GROUPS_KEPT ? &reader->groups[number] : &beyond, first, tile, bytes);
        first += first == 0 ? LOOPS_SUMMANDS : LOOPS_SUMMANDS - 1;
    }
}

/* As fill_tile, of one gradient of the variable's own type. */
static void fill_own(const struct sum_reader *reader, uint64_t first, uint8_t *tile, size_t count)
{
    const struct update_slice *const slice = reader->slice;
    const enum sumac_dtype dtype = slice->dtype;
    const uint8_t *own =
        (const uint8_t *)slice->gradient + (size_t)first * sumac_dtype_bytes(dtype);

    if (reader->loops->widen[dtype] != NULL) {
        reader->loops->widen[dtype]((float *)(void *)tile, own, count);
        own = tile;
    }
    reader->loops->condition[dtype](
        tile, own, slice->scale == 0 ? 1 : slice->scale, slice->clip > 0 ? slice->clip : HUGE_VAL,
        count);
}

/* The gradient of the slice's elements from `first` on. */
static void fill(struct sum_reader *reader, uint64_t first, size_t count, uint8_t *tile)
{
    const struct update_slice *const slice = reader->slice;

    if (slice->sources == NULL) {
        fill_own(reader, first, tile, count);
        return;
    }
    reader->at = slice->source_at + first * reader->element;
    fill_tile(reader, tile, count * reader->element);
    if (slice->clip > 0)
        reader->loops->condition[slice->dtype](tile, tile, 1, slice->clip, count);
}

void update_run_made(const struct update_slice *slice)
{
    _Alignas(64) uint8_t gradient[TILE_BYTES], scaled[LOOPS_SUMMANDS][TILE_BYTES];
    const struct loops *const loops = loops_select();
    update_loop *const run = loops_find(loops, slice->function, slice->dtype, true);
    const size_t element = sumac_dtype_bytes(update_contribution_dtype(slice->dtype));
    struct sum_reader reader = {
        .slice = slice, .loops = loops, .element = element, .scaled = scaled};
    struct update_slice tile = *slice;

    assert(run != NULL);
    assert(slice->sources != NULL || loops->condition[slice->dtype] != NULL);
    assert(slice->sources == NULL || slice->sources->count > 0);
    assert(slice->sources == NULL || slice->sources->count == 1 || update_can_add(slice->dtype));
    assert(slice->sources == NULL || slice->divisor == 1 || update_can_divide(slice->dtype));
    tile.sources = NULL;
    tile.wide = true;
    tile.gradient = gradient;
    for (uint64_t first = 0; first < slice->count; first += tile.count) {
        const uint64_t left = slice->count - first;
        const uint64_t room = TILE_BYTES / element;
        tile.count = left < room ? left : room;
        fill(&reader, first, (size_t)tile.count, gradient);
        loops_aim(slice, first, &tile);
        run(&tile);
    }
}
