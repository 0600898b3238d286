/* SPDX-License-Identifier: Apache-2.0 */
/* axes.h -- tensors of replicas summed over axes, and over the replicas. */
#pragma once

#include "sumac/strategy.h"

/* What becomes of SUM or MEAN of values of that type: SUM has it, MEAN of integers is of float32
 * (8 and 16 bits) or float64. UNSPECIFIED: it cannot be reduced. */
enum sumac_dtype axes_result_dtype(enum sumac_reduce_op op, enum sumac_dtype dtype);

/* A bit for each axis of a tensor of that rank.
 * Fails    INVALID_ARGUMENT: one is out of range, or is named twice. */
enum sumac_status axes_read(
    const struct sumac_axes *axes, uint32_t rank, uint32_t *summed, struct sumac_error *error);

struct axes_reduction {
    enum sumac_reduce_op op;
    uint32_t summed;  /* axes, a bit each */
    uint64_t divisor; /* of MEAN; 0: how many elements each sum has, of all tensors together */
};
/* Σ over these axes of each, and over all, in their order; MEAN divides. The tensors agree in their
 * type, rank and the extents of other axes. Sums are taken in the type itself, of half types in
 * float32, rounded once, of MEAN in that of the result.
 * Gives    *result. Fails  RESOURCE_EXHAUSTED. */
enum sumac_status axes_reduce(
    const struct axes_reduction *reduction, const struct sumac_tensor *const *tensors,
    uint32_t count, struct sumac_value **result, struct sumac_error *error);
