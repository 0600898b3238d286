/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c -- SUM and MEAN over the local replicas, one pass over memory, in the order of the
 * replicas. */
#include "reduce.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "dtype.h"
#include "elements.h"

/* Elements that are reduced over all replicas before the next ones are: the partial result stays in
 * the first cache. */
#define ELEMENTS_AT_ONCE 2048u
#define ELEMENT_BYTES_MAX 8u

bool reduce_has(enum sumac_reduce_op op, enum sumac_dtype dtype)
{
    const enum sumac_dtype_kind kind = sumac_dtype_kind(dtype);

    if (kind == SUMAC_KIND_NONE || kind == SUMAC_KIND_BOOL)
        return false;
    return op == SUMAC_REDUCE_SUM || sumac_dtype_is_float(dtype);
}

/* Where element `first` of an array is. */
static const uint8_t *from_of(const struct reduce_input *input, uint32_t replica, uint64_t first)
{
    assert(replica < input->replicas);
    return (const uint8_t *)input->from[replica] + first * sumac_dtype_bytes(input->dtype);
}

static uint8_t *to_of(const struct reduce_input *input, uint32_t target, uint64_t first)
{
    assert(target < input->targets);
    return (uint8_t *)input->to[target] + first * sumac_dtype_bytes(input->dtype);
}

/* Every target gets elements first … first + count - 1 of `from`. */
static void
spread(const struct reduce_input *input, const uint8_t *from, uint64_t first, size_t count)
{
    for (uint32_t i = 0; i < input->targets; i++) {
        uint8_t *to = to_of(input, i, first);
        if (to != from)
            memcpy(to, from, count * sumac_dtype_bytes(input->dtype));
    }
}

/* A replica of weight 0 has no examples. Its gradients may be 0 ÷ 0, and 0 × NaN is NaN. */
static uint32_t first_that_counts(const struct reduce_input *input, const double *weights)
{
    uint32_t i = 0;

    while (weights != NULL && weights[i] <= 0)
        i++;
    assert(i < input->replicas); /* the weights are not all 0 */
    return i;
}

/* Reduce elements first … first + count - 1: in their place where that is replica 0's own, so that
 * the values pass through the processor once. `weights` is NULL for a sum; `total` is theirs. */
static void reduce_run(
    const struct reduce_input *input, const double *weights, double total, uint64_t first,
    size_t count)
{
    _Alignas(64) uint8_t scratch[ELEMENTS_AT_ONCE * ELEMENT_BYTES_MAX];
    const struct arithmetic *own = arithmetic_of(input->dtype);
    const bool in_place = input->to[0] == input->from[0];
    uint8_t *sum = in_place ? to_of(input, 0, first) : scratch;
    const uint32_t begin = first_that_counts(input, weights);
    assert(count <= ELEMENTS_AT_ONCE);
    assert(sumac_dtype_bytes(input->dtype) <= ELEMENT_BYTES_MAX);
    if (!in_place || begin > 0)
        memcpy(sum, from_of(input, begin, first), count * sumac_dtype_bytes(input->dtype));
    if (weights != NULL)
        own->scale(sum, weights[begin], count);
    for (uint32_t i = begin + 1; i < input->replicas; i++) {
        if (weights == NULL)
            own->add(sum, from_of(input, i, first), count);
        else if (weights[i] > 0)
            own->add_scaled(sum, from_of(input, i, first), weights[i], count);
    }
    if (weights != NULL)
        own->divide(sum, total, count);
    spread(input, sum, first, count);
}

/* The same for a half type. */
static void reduce_half_run(
    const struct reduce_input *input, const double *weights, double total, uint64_t first,
    size_t count)
{
    assert(count <= ELEMENTS_AT_ONCE);
    float sum[ELEMENTS_AT_ONCE], g[ELEMENTS_AT_ONCE];
    const struct arithmetic *own = arithmetic_of(input->dtype);
    const struct arithmetic *wide = arithmetic_of(SUMAC_FLOAT32);
    const uint32_t begin = first_that_counts(input, weights);
    own->widen(from_of(input, begin, first), sum, count);
    if (weights != NULL)
        wide->scale(sum, weights[begin], count);
    for (uint32_t i = begin + 1; i < input->replicas; i++) {
        if (weights != NULL && weights[i] <= 0)
            continue;
        own->widen(from_of(input, i, first), g, count);
        wide->add_scaled(sum, g, weights == NULL ? 1.0 : weights[i], count);
    }
    if (weights != NULL)
        wide->divide(sum, total, count);
    for (uint32_t i = 0; i < input->targets; i++)
        own->narrow(sum, to_of(input, i, first), count);
}

void reduce_values(enum sumac_reduce_op op, const struct reduce_input *input)
{
    assert(reduce_has(op, input->dtype));
    assert(input->replicas > 0);
    if (input->replicas == 1) {
        spread(input, from_of(input, 0, input->first), input->first, input->elements);
        return;
    }
    const double *weights = op == SUMAC_REDUCE_MEAN ? input->weights : NULL;
    double total = 0;
    for (uint32_t i = 0; weights != NULL && i < input->replicas; i++)
        total += weights[i];
    assert(weights == NULL || total > 0);
    const bool half = sumac_dtype_kind(input->dtype) == SUMAC_KIND_HALF;
    const uint64_t beyond = input->first + input->elements;
    for (uint64_t first = input->first; first < beyond; first += ELEMENTS_AT_ONCE) {
        const size_t run = beyond - first < ELEMENTS_AT_ONCE ? beyond - first : ELEMENTS_AT_ONCE;
        (half ? reduce_half_run : reduce_run)(input, weights, total, first, run);
    }
}
