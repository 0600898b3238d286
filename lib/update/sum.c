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
#define PLACES_KEPT 64u

/* Where each source has come to; of those beyond PLACES_KEPT it is looked up for each tile. */
struct sum_reader {
    const struct update_slice *slice;
    const struct loops *loops;
    size_t element; /* bytes of a contribution's */
    uint64_t at;    /* byte of the run that the tile begins with */
    struct {
        const uint8_t *data;
        uint64_t together;
    } place[PLACES_KEPT];
    uint8_t (*scaled)[TILE_BYTES];   /* (LOOPS_SUMMANDS), where sources are that are scaled */
    const void *few[LOOPS_SUMMANDS]; /* of no more sources where they have come to, … */
    uint64_t few_together; /* … and how much of all of them lies together from there on */
};

bool update_can_add(enum sumac_dtype dtype) { return loops_plain.sum[dtype] != NULL; }

bool update_can_divide(enum sumac_dtype dtype) { return loops_plain.mean[dtype] != NULL; }

/* Of the source, from byte `at` of the run on; *bytes: no more than lie together. */
static const uint8_t *
read_source(struct sum_reader *reader, uint32_t source, uint64_t at, size_t *bytes)
{
    const struct update_sources *sources = reader->slice->sources;
    const bool kept = source < PLACES_KEPT;
    const uint8_t *data = kept ? reader->place[source].data : NULL;
    uint64_t together = kept ? reader->place[source].together : 0;

    assert(source < sources->count);
    if (together == 0)
        data = sources->find(sources->context, source, reader->slice, at, &together);
    if (together < *bytes)
        *bytes = (size_t)together;
    if (kept) {
        reader->place[source].data = data;
        reader->place[source].together = together;
    }
    return data;
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

static void go_on(struct sum_reader *reader, uint32_t source, size_t bytes)
{
    if (source >= PLACES_KEPT)
        return;
    assert(reader->place[source].together >= bytes);
    reader->place[source].data += bytes;
    reader->place[source].together -= bytes;
}

/* Some sources onto the tile, which has the sum of those before them; divisor 1: none. */
static void add_sources(
    struct sum_reader *reader, uint32_t first, uint32_t count, uint8_t *tile, size_t bytes,
    double divisor)
{
    const struct loops *const loops = reader->loops;
    const enum sumac_dtype dtype = reader->slice->dtype;
    uint64_t at = reader->at;

    while (bytes > 0) {
        const void *summands[LOOPS_SUMMANDS] = {tile};
        uint32_t summand_count = first == 0 ? 0 : 1;
        size_t taken = bytes;
        for (uint32_t i = 0; i < count; i++)
            summands[summand_count++] = read_source(reader, first + i, at, &taken);
        assert(taken >= reader->element && taken % reader->element == 0);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t place = summand_count - count + i;
            summands[place] = scale_source(reader, first + i, place, summands[place], taken);
        }
        if (divisor != 1)
            loops->mean[dtype](tile, summands, summand_count, divisor, taken / reader->element);
        else if (summand_count > 1)
            loops->sum[dtype](tile, summands, summand_count, taken / reader->element);
        else
            memcpy(tile, summands[0], taken);
        for (uint32_t i = 0; i < count; i++)
            go_on(reader, first + i, taken);
        tile += taken;
        at += taken;
        bytes -= taken;
    }
}

/* The tile's gradient. */
static void fill_tile(struct sum_reader *reader, uint8_t *tile, size_t bytes)
{
    const uint32_t sources = reader->slice->sources->count;

    for (uint32_t first = 0; first < sources;) {
        const uint32_t room = first == 0 ? LOOPS_SUMMANDS : LOOPS_SUMMANDS - 1;
        const uint32_t count = sources - first < room ? sources - first : room;
        const bool last = first + count == sources;
        add_sources(reader, first, count, tile, bytes, last ? reader->slice->divisor : 1);
        first += count;
    }
}

/* As fill_tile where all sources are read at once, which is most of all steps: as far as all of
 * them lie together. Returns how much that is. */
static size_t fill_few(struct sum_reader *reader, uint8_t *tile, size_t bytes)
{
    const struct update_slice *const slice = reader->slice;
    const uint32_t count = slice->sources->count;

    assert(count <= LOOPS_SUMMANDS);
    if (reader->few_together == 0) {
        reader->few_together = UINT64_MAX;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t together = 0;
            reader->few[i] =
                slice->sources->find(slice->sources->context, i, slice, reader->at, &together);
            if (together < reader->few_together)
                reader->few_together = together;
        }
    }
    if (reader->few_together < bytes)
        bytes = (size_t)reader->few_together;
    assert(bytes >= reader->element && bytes % reader->element == 0);
    const void *summands[LOOPS_SUMMANDS];
    for (uint32_t i = 0; i < count; i++)
        summands[i] = scale_source(reader, i, i, reader->few[i], bytes);
    if (slice->divisor != 1)
        reader->loops->mean[slice->dtype](
            tile, summands, count, slice->divisor, bytes / reader->element);
    else if (count > 1)
        reader->loops->sum[slice->dtype](tile, summands, count, bytes / reader->element);
    else
        memcpy(tile, summands[0], bytes);
    for (uint32_t i = 0; i < count; i++)
        reader->few[i] = (const uint8_t *)reader->few[i] + bytes;
    reader->few_together -= bytes;
    return bytes;
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

/* The outputs and inputs of elements `first` … of the whole. */
static void aim(const struct update_slice *whole, uint64_t first, struct update_slice *tile)
{
    const size_t bytes = (size_t)first * sumac_dtype_bytes(whole->dtype);
    const size_t slot_bytes = (size_t)first * sumac_dtype_bytes(update_slot_dtype(whole->dtype));

    assert(first < whole->count);
    tile->value_out = (uint8_t *)whole->value_out + bytes;
    tile->value_in = (const uint8_t *)whole->value_in + bytes;
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX && whole->slot_out[i] != NULL; i++) {
        tile->slot_out[i] = (uint8_t *)whole->slot_out[i] + slot_bytes;
        tile->slot_in[i] = (const uint8_t *)whole->slot_in[i] + slot_bytes;
    }
}

/* The gradient of the slice's elements from `first` on, as many as the tile has room for or lie
 * together. Returns how many. */
static uint64_t fill(struct sum_reader *reader, uint64_t first, uint64_t count, uint8_t *tile)
{
    const struct update_slice *const slice = reader->slice;
    const size_t bytes = (size_t)count * reader->element;

    if (slice->sources == NULL) {
        fill_own(reader, first, tile, (size_t)count);
        return count;
    }
    reader->at = slice->source_at + first * reader->element;
    if (slice->sources->count <= LOOPS_SUMMANDS)
        count = fill_few(reader, tile, bytes) / reader->element;
    else
        fill_tile(reader, tile, bytes);
    if (slice->clip > 0)
        reader->loops->condition[slice->dtype](tile, tile, 1, slice->clip, (size_t)count);
    return count;
}

void update_run_made(const struct update_slice *slice)
{
    _Alignas(64) uint8_t gradient[TILE_BYTES], scaled[LOOPS_SUMMANDS][TILE_BYTES];
    const struct loops *const loops = loops_select();
    update_loop *const run = loops_wide(loops, slice->function, slice->dtype);
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
    tile.gradient = gradient;
    for (uint64_t first = 0; first < slice->count; first += tile.count) {
        const uint64_t left = slice->count - first;
        const uint64_t room = TILE_BYTES / element;
        tile.count = fill(&reader, first, left < room ? left : room, gradient);
        aim(slice, first, &tile);
        run(&tile);
    }
}
