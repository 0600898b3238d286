/* SPDX-License-Identifier: Apache-2.0 */
/* run.c -- which way a slice is run: by its plan, by rows, tile by tile, or by its function's own
 * loop. */
#include <assert.h>

#include "loops.h"

/* A microsecond, on the thread that runs the slice. */
static void run_planned(const struct update_slice *slice)
{
    struct expression_plan plan;
    struct update_slice planned = *slice;

    assert(slice->plan == NULL);
    expression_plan(slice->function->expression, slice->dtype, slice->scalar, slice->step, &plan);
    planned.plan = &plan;
    update_run(&planned);
}

/* Do `bytes` bytes at both places have none in common? */
static bool are_apart(const void *one, const void *other, size_t bytes)
{
    const uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;

    return a >= b ? a - b >= bytes : b - a >= bytes;
}

void update_run(const struct update_slice *slice)
{
    const bool scaled = slice->scale < 1 || slice->scale > 1;

    if (slice->function->expression != NULL && slice->plan == NULL) {
        run_planned(slice);
        return;
    }
    if (slice->rows != NULL) {
        update_run_rows(slice);
        return;
    }
    if (slice->sources != NULL || (scaled && slice->scale != 0) || slice->clip > 0) {
        update_run_made(slice);
        return;
    }
    update_loop *const run = loops_find(loops_select(), slice->function, slice->dtype, false);
    const size_t bytes = slice->count * dtype_bytes(slice->dtype);

    assert(run != NULL);
    assert(
        slice->value_in == slice->value_out || are_apart(slice->value_in, slice->value_out, bytes));
    assert(are_apart(slice->gradient, slice->value_out, bytes));
    run(slice);
}
