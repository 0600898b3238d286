/* SPDX-License-Identifier: Apache-2.0 */
/* loops.h -- the loops of update functions, a table for each instruction set they were compiled
 * for.
 *
 * A loop runs one slice. All tables hold the same source (loops_body.h) and give the same bits;
 * only their speed differs.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "update.h"

#define LOOPS_FUNCTIONS (UPDATE_FUNCTIONS_MAX + 1) /* by number, as on the wire */
#define LOOPS_DTYPES (DTYPES_MAX + 1)              /* likewise */
#define LOOPS_SUMMANDS 4u

/* out = min(max(in·scale, −clip), clip); out may be in */
typedef void update_condition(void *out, const void *in, double scale, double clip, size_t count);
typedef bool update_copy(void *restrict out, const void *restrict in, size_t bytes);
typedef bool update_scan(const void *data, size_t bytes);
/* half types to float32 and back, rounded to nearest, ties to even */
typedef void update_widen(float *restrict out, const void *restrict from, size_t count);
typedef void update_narrow(void *restrict to, const void *restrict from, size_t count);
/* of 2 to LOOPS_SUMMANDS in their order, one of which may be `sum`; … */
typedef void
update_sum(void *sum, const void *const *summands, uint32_t summand_count, size_t count);
/* … and of 1 to as many, divided */
typedef void update_mean(
    void *sum, const void *const *summands, uint32_t summand_count, double divisor, size_t count);

struct loops {
    const char *name; /* of the instruction set: "plain", "avx2", "avx512", … */
    update_loop *run[LOOPS_FUNCTIONS][LOOPS_DTYPES]; /* NULL: not on this type */
    update_loop *assign_wide[LOOPS_DTYPES]; /* half types: by a gradient of float32, assign, … */
    update_loop *run_wide[LOOPS_DTYPES];    /* … and whatever function the slice has */
    update_widen *widen[LOOPS_DTYPES];      /* half types only */
    update_narrow *narrow[LOOPS_DTYPES];    /* likewise */
    /* by update_contribution_dtype's elements; float types only */
    update_condition *condition[LOOPS_DTYPES];
    update_sum *sum[LOOPS_DTYPES];          /* of contributions: half types add float32; not bool */
    update_mean *mean[LOOPS_DTYPES];        /* likewise; float types only */
    update_copy *copy_finite[LOOPS_DTYPES]; /* float types only */
    update_scan *all_finite[LOOPS_DTYPES];  /* float types only */
};

extern const struct loops loops_plain;
#if defined(__x86_64__)
extern const struct loops loops_avx2;
extern const struct loops loops_avx512;
extern const struct loops loops_avx512bf16;
#endif

/* What runs a function on a variable of the type, by its own gradient or a `wide` one. */
static inline update_loop *loops_find(
    const struct loops *loops, const struct update_function *function, enum sumac_dtype dtype,
    bool wide)
{
    if (function->loop != NULL)
        return function->loop;
    if (!wide || loops->run_wide[dtype] == NULL)
        return loops->run[function->number][dtype];
    return function->number == UPDATE_ASSIGN ? loops->assign_wide[dtype] : loops->run_wide[dtype];
}

/* What is added up at once. */
struct summands {
    const void *data[LOOPS_SUMMANDS];
    uint32_t count;
    size_t element; /* bytes */
};

/* (summand 0 + summand 1 + …) ÷ divisor (1: none) into `sum`, which may be the first of them: of
 * update_contribution_dtype's elements. */
static inline void loops_add(
    const struct loops *loops, enum sumac_dtype dtype, void *sum, const struct summands *summands,
    double divisor, size_t count)
{
    if (divisor != 1)
        loops->mean[dtype](sum, summands->data, summands->count, divisor, count);
    else if (summands->count > 1)
        loops->sum[dtype](sum, summands->data, summands->count, count);
    else
        memcpy(sum, summands->data[0], count * summands->element);
}

/* The value and slots of elements `first` … of the whole. */
static inline void
loops_aim(const struct update_slice *whole, uint64_t first, struct update_slice *tile)
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

/* The fastest table that this processor can run. */
const struct loops *loops_select(void);
/* All that it can run, plain first: NULL past the end. */
const struct loops *loops_at(uint32_t index);
