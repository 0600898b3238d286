/* SPDX-License-Identifier: Apache-2.0 */
/* update_rows.c -- a push by rows: its occurrences put in the order of their rows, and their
 * updates.
 *
 *   rows of the push   7 2 7 9 …     in order   2 7 7 9 …     summed   2 (7+7) 9 ….
 *
 * A row that occurs once goes through the function's own loop where it lies. Several occurrences
 * are first summed, tile by tile, in the order of the push. The sum has the same bits as that of
 * contributions (sum.c). A row that is scaled or clipped takes the same way. Rows of a large table
 * lie anywhere, so the next rows are fetched while one is computed.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "loops.h"

#define TILE_BYTES 1024u
#define ROWS_AHEAD 8u
#define ROWS_NEAR 2u
#define LINE_BYTES 64u
/* Bytes fetched of a row: the processor itself fetches the rest of a longer one. */
#define FETCHED_BYTES_MAX 512u

/* ---- their order ---- */

#define DIGIT_BITS 8u
#define DIGITS (1u << DIGIT_BITS)
#define FEW 48u

static bool are_in_order(const uint64_t *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (keys[i - 1] > keys[i])
            return false;
    return true;
}

/* Each goes back to its place among those before it. */
static void order_few(uint64_t *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t key = keys[i];
        uint32_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* By one digit, keeping the order of those that have the same. */
static void
order_by_digit(const uint64_t *restrict from, uint64_t *restrict to, uint32_t count, unsigned shift)
{
    uint32_t next[DIGITS] = {0};
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        next[from[i] >> shift & (DIGITS - 1)]++;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        const uint32_t here = next[digit];
        next[digit] = sum;
        sum += here;
    }
    for (uint32_t i = 0; i < count; i++)
        to[next[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

void update_rows_order(uint64_t *restrict keys, uint64_t *restrict scratch, uint32_t count)
{
    uint64_t *from = keys, *to = scratch;
    uint64_t largest = 0;

    assert(count <= UPDATE_ROWS_TOGETHER_MAX);
    if (are_in_order(keys, count))
        return;
    if (count <= FEW) {
        order_few(keys, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        largest |= keys[i];
    for (unsigned shift = UPDATE_ROW_PLACE_BITS; shift < 64 && largest >> shift != 0;
         shift += DIGIT_BITS) {
        order_by_digit(from, to, count, shift);
        uint64_t *const ordered = to;
        to = from;
        from = ordered;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
    assert(keys[0] <= keys[count - 1]);
}

/* ---- their updates ---- */

/* One slice of rows. */
struct occurrences {
    const struct update_slice *slice;
    const struct loops *loops;
    size_t element;  /* bytes of a sum's */
    bool widens;     /* a half type's gradients become float32 before they are summed */
    bool conditions; /* each row's gradient is scaled or clipped when it is whole */
};

static bool scales(double scale) { return (scale < 1 || scale > 1) && scale != 0; }

/* Elements `first` … of one occurrence's gradient, as they are summed. */
static const void *
read_row(const struct occurrences *all, uint32_t row, size_t first, size_t count, float *scratch)
{
    const struct update_slice *const slice = all->slice;
    const uint8_t *const gradient = slice->rows[row].gradient;
    const double scale = slice->rows[row].scale;
    const void *read = gradient + first * all->element;

    assert(row < slice->row_count);
    if (all->widens) {
        all->loops->widen[slice->dtype](scratch, gradient + first * sizeof(uint16_t), count);
        read = scratch;
    }
    if (!scales(scale))
        return read;
    all->loops->condition[slice->dtype](scratch, read, scale, HUGE_VAL, count);
    return scratch;
}

/* Occurrences begin … end - 1 of one row, after what is summed of it already (NULL: nothing); of
 * them elements `first` …, no more than a tile has. */
struct tile {
    uint32_t begin, end;
    const uint8_t *before; /* of the whole row */
    size_t first, count;
};

/* (before + occurrence `begin` + …) ÷ divisor into `sum`, which may be what is before. */
static void
sum_rows(const struct occurrences *all, const struct tile *tile, double divisor, void *sum)
{
    _Alignas(64) float scratch[LOOPS_SUMMANDS][TILE_BYTES / sizeof(float)];
    const size_t count = tile->count;
    struct summands summands = {.element = all->element};

    assert(tile->begin < tile->end);
    assert(count * all->element <= TILE_BYTES);
    if (tile->before != NULL)
        summands.data[summands.count++] = tile->before + tile->first * all->element;
    for (uint32_t row = tile->begin; row < tile->end;) {
        for (; summands.count < LOOPS_SUMMANDS && row < tile->end; summands.count++)
            summands.data[summands.count] =
                read_row(all, row++, tile->first, count, scratch[summands.count]);
        loops_add(
            all->loops, all->slice->dtype, sum, &summands, row == tile->end ? divisor : 1, count);
        summands.data[0] = sum;
        summands.count = 1;
    }
}

/* A row of the table, from element `first` on; a slot that there is not is NULL. */
static void
aim(const struct update_slice *slice, const struct update_row *row, size_t first,
    struct update_slice *one)
{
    const size_t bytes = first * sumac_dtype_bytes(slice->dtype);
    const size_t slot_bytes = first * sumac_dtype_bytes(update_slot_dtype(slice->dtype));

    one->value_out = row->at[0] + bytes;
    one->value_in = one->value_out;
    for (uint32_t i = 0; i < slice->function->slot_count && row->at[1 + i] != NULL; i++) {
        one->slot_out[i] = row->at[1 + i] + slot_bytes;
        one->slot_in[i] = one->slot_out[i];
    }
}

/* The next tile of the row, from what is at hand. False: there is none. */
static bool next_tile(const struct occurrences *all, struct tile *tile)
{
    const size_t most = TILE_BYTES / all->element;

    tile->first += tile->count;
    const size_t left = all->slice->count - tile->first;
    tile->count = left < most ? left : most;
    return left > 0;
}

/* They are summed, and what that makes is applied. */
static void run_summed(const struct occurrences *all, struct tile tile)
{
    _Alignas(64) uint8_t sum[TILE_BYTES];
    const struct update_slice *const slice = all->slice;
    update_loop *const run = loops_find(all->loops, slice->function, slice->dtype, true);
    struct update_slice part = *slice;

    assert(run != NULL);
    part.rows = NULL;
    part.wide = true;
    part.gradient = sum;
    while (next_tile(all, &tile)) {
        sum_rows(all, &tile, slice->divisor, sum);
        if (all->conditions)
            all->loops->condition[slice->dtype](
                sum, sum, scales(slice->scale) ? slice->scale : 1,
                slice->clip > 0 ? slice->clip : HUGE_VAL, tile.count);
        part.count = tile.count;
        aim(slice, &slice->rows[tile.begin], tile.first, &part);
        run(&part);
    }
}

/* What there is of the last row goes to the carry, undivided. */
static void carry_rows(const struct occurrences *all, struct tile tile)
{
    uint8_t *const carry = all->slice->carry;

    assert(carry != NULL);
    while (next_tile(all, &tile))
        sum_rows(all, &tile, 1, carry + tile.first * all->element);
}

/* Of the row far ahead the first line of its value and of each slot; of the one that is near the
 * others. That was faster than all lines at once (bench/README.md, "rows"), as if each of them
 * waited for the page's lookup, and held up what the present row reads. */
static inline void fetch_ahead(const struct update_slice *slice, uint32_t row, size_t row_bytes)
{
    if (slice->row_count - row <= ROWS_AHEAD)
        return;
    const struct update_row *const next = &slice->rows[row + ROWS_AHEAD];
    const struct update_row *const near = &slice->rows[row + ROWS_NEAR];
    for (uint32_t i = 0; i <= slice->function->slot_count && next->at[i] != NULL; i++)
        __builtin_prefetch(next->at[i], 1);
    for (uint32_t i = 0; i <= slice->function->slot_count && near->at[i] != NULL; i++) {
        for (size_t byte = LINE_BYTES; byte < row_bytes; byte += LINE_BYTES)
            __builtin_prefetch(near->at[i] + byte, 1);
    }
    for (size_t byte = 0; byte < row_bytes; byte += LINE_BYTES)
        __builtin_prefetch(next->gradient + byte);
}

void update_run_rows(const struct update_slice *slice)
{
    const struct loops *const loops = loops_select();
    const bool sums = slice->function->repeats == UPDATE_REPEATS_SUM;
    const struct occurrences all = {
        .slice = slice,
        .loops = loops,
        .element = sumac_dtype_bytes(update_contribution_dtype(slice->dtype)),
        .widens = loops->widen[slice->dtype] != NULL && !slice->wide,
        .conditions = scales(slice->scale) || slice->clip > 0};

    update_loop *const run = loops_find(loops, slice->function, slice->dtype, slice->wide);
    const size_t bytes = slice->count * sumac_dtype_bytes(slice->dtype);
    const size_t fetched = bytes < FETCHED_BYTES_MAX ? bytes : FETCHED_BYTES_MAX;
    struct update_slice one = *slice;

    assert(run != NULL);
    assert(!all.conditions || loops->condition[slice->dtype] != NULL);
    assert(sums || (!slice->carried && !slice->carries));
    one.rows = NULL;
    for (uint32_t begin = 0, end; begin < slice->row_count; begin = end) {
        const struct update_row *const row = &slice->rows[begin];
        const uint8_t *const before = begin == 0 && slice->carried ? slice->carry : NULL;

        for (end = begin + 1;
             sums && end < slice->row_count && row->at[0] == row[end - begin].at[0]; end++) {
        }
        fetch_ahead(slice, begin, fetched);
        if (end == slice->row_count && slice->carries) {
            carry_rows(&all, (struct tile){.begin = begin, .end = end, .before = before});
        } else if (
            end - begin > 1 || before != NULL || slice->divisor != 1 || all.conditions ||
            scales(row->scale)) {
            run_summed(&all, (struct tile){.begin = begin, .end = end, .before = before});
        } else {
            one.gradient = row->gradient;
            aim(slice, row, 0, &one);
            run(&one);
        }
    }
}
