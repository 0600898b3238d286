/* SPDX-License-Identifier: Apache-2.0 */
/* expression_loops.h -- a loop for each operation of a plan, a table for each instruction set they
 * were compiled for.
 *
 * A loop runs one tile. All tables hold the same source (expression_loops_body.h) and give the same
 * bits; only their speed differs.
 */
#pragma once

#include "dtype.h"
#include "expression.h"

#define EXPRESSION_VARIANTS 8u /* which of three operands are scalars, a bit each */

enum expression_arithmetic { EXPRESSION_FLOAT32, EXPRESSION_FLOAT64, EXPRESSION_ARITHMETICS };

/* out[i] = operation(in[0][i] or scalar[0], …): `out` may be any of `in`, and overlaps them in no
 * other way. */
typedef void expression_loop(void *out, const void *const *in, const double *scalar, size_t count);
/* By which operands are scalars; NULL: no plan has it. */
typedef expression_loop *expression_variants[EXPRESSION_VARIANTS];
/* Of half types: to float32 and from it. */
typedef void expression_convert(void *restrict out, const void *restrict in, size_t count);

struct expression_loops {
    const char *name; /* of the instruction set: "plain", "avx2", "avx512" */
    expression_variants run[EXPRESSION_ARITHMETICS][EXPRESSION_OPERATIONS];
    expression_convert *widen[DTYPES_MAX + 1], *narrow[DTYPES_MAX + 1]; /* half types only */
};

extern const struct expression_loops expression_loops_plain;
#if defined(__x86_64__)
extern const struct expression_loops expression_loops_avx2;
extern const struct expression_loops expression_loops_avx512;
#endif

/* The fastest table that this processor can run. */
const struct expression_loops *expression_loops_select(void);
/* All that it can run, plain first: NULL past the end. */
const struct expression_loops *expression_loops_at(uint32_t index);

/* expression_run with a table. */
void expression_run_with(
    const struct expression_loops *loops, const struct expression_plan *plan,
    const struct expression_slice *slice);
