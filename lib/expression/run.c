/* SPDX-License-Identifier: Apache-2.0 */
/* run.c -- a plan's instructions over a slice, tile by tile.
 *
 * All registers together have SCRATCH_BYTES, which stay in the first-level cache: the more there
 * are, the smaller the tiles. A tile of memory is an operand where it lies.
 */
#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "expression_loops.h"

#define SCRATCH_BYTES 32768u
#define TILE_BYTES_MAX 2048u
#define TILE_BYTES_MIN 128u
_Static_assert(
    (EXPRESSION_NODES_MAX + 2) * TILE_BYTES_MIN <= SCRATCH_BYTES,
    "as many registers as there may be, and the two tiles of a half type");

/* A slice's run: where each place is in the tile at hand. */
struct tile_run {
    const struct expression_plan *plan;
    const struct expression_slice *slice;
    const struct expression_loops *loops;
    size_t element, value_element, gradient_element; /* bytes */
    size_t tile_bytes;
    uint8_t *place[EXPRESSION_PLACES];
    uint8_t *value_tile, *gradient_tile; /* of float32 for a half type; NULL: none is needed */
};

static bool is_half(enum sumac_dtype dtype) { return sumac_dtype_kind(dtype) == SUMAC_KIND_HALF; }

/* Inputs are never written: the places of both are pointers of one table. */
static uint8_t *input(const void *data)
{
    uint8_t *bytes;

    memcpy(&bytes, &data, sizeof bytes);
    return bytes;
}

static void begin(struct tile_run *run, uint8_t *scratch)
{
    const struct expression_plan *const plan = run->plan;
    const struct expression_slice *const slice = run->slice;
    const bool half = is_half(plan->dtype);
    const uint32_t tiles = plan->register_count + (half ? 2u : 0u);

    run->element = plan->dtype == SUMAC_FLOAT64 ? sizeof(double) : sizeof(float);
    run->value_element = sumac_dtype_bytes(plan->dtype);
    run->gradient_element = sumac_dtype_bytes(slice->gradient_dtype);
    run->tile_bytes = TILE_BYTES_MAX;
    while (tiles * run->tile_bytes > SCRATCH_BYTES)
        run->tile_bytes /= 2;
    assert(run->tile_bytes >= TILE_BYTES_MIN);
    for (uint32_t i = 0; i < plan->register_count; i++)
        run->place[i] = scratch + i * run->tile_bytes;
    if (half) {
        run->value_tile = scratch + plan->register_count * run->tile_bytes;
        run->gradient_tile =
            is_half(slice->gradient_dtype) ? run->value_tile + run->tile_bytes : NULL;
    }
    assert(
        run->gradient_tile == NULL ||
        run->gradient_tile + run->tile_bytes <= scratch + SCRATCH_BYTES);
}

/* The places of elements first … first + count - 1 of the slice; half types are widened. */
static void aim(struct tile_run *run, uint64_t first, size_t count)
{
    const struct expression_slice *const slice = run->slice;
    uint8_t **const in = &run->place[EXPRESSION_PLACE_IN];
    uint8_t **const out = &run->place[EXPRESSION_PLACE_OUT];
    uint8_t *const gradient = input(slice->gradient) + first * run->gradient_element;

    assert(first < slice->count && count > 0);
    in[0] = input(slice->value_in) + first * run->value_element;
    out[0] = (uint8_t *)slice->value_out + first * run->value_element;
    run->place[EXPRESSION_PLACE_GRADIENT] = gradient;
    for (uint32_t i = 1; i < run->plan->result_count; i++) {
        in[i] = input(slice->slot_in[i - 1]) + first * run->element;
        out[i] = (uint8_t *)slice->slot_out[i - 1] + first * run->element;
    }
    if (run->value_tile != NULL) {
        run->loops->widen[run->plan->dtype](run->value_tile, in[0], count);
        in[0] = out[0] = run->value_tile;
    }
    if (run->gradient_tile != NULL) {
        run->loops->widen[slice->gradient_dtype](run->gradient_tile, gradient, count);
        run->place[EXPRESSION_PLACE_GRADIENT] = run->gradient_tile;
    }
}

/* A half type's value is rounded, once. */
static void end_tile(const struct tile_run *run, uint64_t first, size_t count)
{
    uint8_t *const out = (uint8_t *)run->slice->value_out + first * run->value_element;

    if (run->value_tile != NULL)
        run->loops->narrow[run->plan->dtype](out, run->value_tile, count);
}

static void run_tile(const struct tile_run *run, size_t count)
{
    const struct expression_plan *const plan = run->plan;
    const uint32_t arithmetic =
        plan->dtype == SUMAC_FLOAT64 ? EXPRESSION_FLOAT64 : EXPRESSION_FLOAT32;

    for (uint32_t i = 0; i < plan->instruction_count; i++) {
        const struct expression_instruction *const made = &plan->instructions[i];
        expression_loop *const loop = run->loops->run[arithmetic][made->operation][made->scalars];
        const void *const in[4] = {
            run->place[made->in[0]], run->place[made->in[1]], run->place[made->in[2]],
            run->place[made->in[3]]};
        assert(loop != NULL);
        assert(run->place[made->out] != NULL);
        if (made->operation != EXPRESSION_COPY || in[0] != run->place[made->out])
            loop(run->place[made->out], in, made->scalar, count);
    }
}

void expression_run_with(
    const struct expression_loops *loops, const struct expression_plan *plan,
    const struct expression_slice *slice)
{
    _Alignas(64) uint8_t scratch[SCRATCH_BYTES];
    struct tile_run run = {.plan = plan, .slice = slice, .loops = loops};

    assert(expression_takes(plan->dtype));
    assert(
        slice->gradient_dtype == plan->dtype ||
        (is_half(plan->dtype) && slice->gradient_dtype == SUMAC_FLOAT32));
    begin(&run, scratch);
    const uint64_t most = run.tile_bytes / run.element;
    for (uint64_t first = 0; first < slice->count; first += most) {
        const uint64_t left = slice->count - first;
        const size_t count = (size_t)(left < most ? left : most);
        aim(&run, first, count);
        run_tile(&run, count);
        end_tile(&run, first, count);
    }
}

void expression_run(const struct expression_plan *plan, const struct expression_slice *slice)
{
    expression_run_with(expression_loops_select(), plan, slice);
}
