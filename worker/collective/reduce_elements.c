/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_elements.c -- tensors of several replicas are reduced element by element. */
#include "collect.h"

#include <assert.h>

#include "array_pass.h"
#include "axes.h"
#include "dtype.h"
#include "host_copy.h"
#include "reduce.h"

static void sum_share(const void *context, uint64_t first, uint64_t count)
{
    pass_sum(context, first, count);
}

enum sumac_status collect_reduce_elements(
    const struct collect *collect, const struct sumac_tensor *const *tensors,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_tensor *first = tensors[0];
    const uint64_t bytes = sumac_tensor_bytes(first);
    const void *from[SUMAC_REPLICAS_MAX];
    void *to;

    assert(collect->count <= SUMAC_REPLICAS_MAX);
    if (!reduce_has(collect->op, first->dtype)) /* a mean of integers */
        return axes_reduce(
            &(struct axes_reduction){.op = collect->op}, tensors, collect->count, result, error);
    if (!host_copy_is_here(first->buffer))
        return on_device_add(
            collect->on_device,
            &(struct on_device_call){
                .kind = collect->is_for_one ? GROUP_REDUCE : GROUP_ALL_REDUCE, .op = collect->op},
            tensors, &first->shape, result, error);
    struct sumac_value *value =
        results_make_tensor(collect->strategy->results, first->dtype, &first->shape, &to);
    if (value == NULL)
        return value_fail_for_memory(error);
    for (uint32_t i = 0; i < collect->count; i++)
        from[i] = sumac_tensor_data(tensors[i]);
    struct pass_sum sum = {
        .op = collect->op, .dtype = first->dtype, .from = from, .count = collect->count, .to = to};
    struct shares shares = {
        .function = sum_share,
        .context = &sum,
        .bytes = bytes * (collect->count + 1),
        .units = bytes / dtype_bytes(first->dtype),
        .units_at_once = COLLECT_BYTES_AT_ONCE / dtype_bytes(first->dtype)};
    sum.stream = shares.bytes >= COLLECT_STREAMED_BYTES_MIN;
    shares_run(collect->strategy, &shares);
    *result = value;
    return SUMAC_OK;
}

enum sumac_status collect_own_sum(
    struct sumac_strategy *strategy, const struct sumac_value *const *leaves,
    struct sumac_value **sum, struct sumac_error *error)
{
    const struct collect own = {
        .strategy = strategy, .op = SUMAC_REDUCE_SUM, .count = strategy->replicas};
    const struct sumac_tensor *tensors[SUMAC_REPLICAS_MAX];

    assert(strategy->replicas <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        assert(value_is_here(leaves[i])); /* they go to other workers */
        tensors[i] = &leaves[i]->tensor;
    }
    if (strategy->replicas > 1)
        return collect_reduce_elements(&own, tensors, sum, error);
    *sum = sumac_value_ref(leaves[0]);
    return SUMAC_OK;
}
