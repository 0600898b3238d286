/* SPDX-License-Identifier: Apache-2.0 */
/* gradient.c -- the gradient of what was gathered: of the sum of all replicas' each one's own part.
 */
#include "collect.h"

#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "error.h"

/* Rows first … first + count - 1 along an axis. Along the first axis with more than one element
 * they are one piece, and of a device's tensor it stays there. */
static enum sumac_status
cut(const struct sumac_value *whole, uint32_t axis, struct sumac_range range,
    struct sumac_value **part, struct sumac_error *error)
{
    struct sumac_slice slices[SUMAC_RANK_MAX] = {{.kind = SUMAC_SLICE_RANGE}};
    struct sumac_tensor view = whole->tensor;
    bool is_piece = true;

    assert(axis < view.shape.rank);
    assert(range.first + range.count <= view.shape.extent[axis]);
    for (uint32_t i = 0; i < axis; i++)
        is_piece = is_piece && view.shape.extent[i] == 1;
    if (is_piece && !value_is_here(whole)) {
        const uint64_t extent = view.shape.extent[axis];
        view.offset_bytes += extent == 0 ? 0 : sumac_tensor_bytes(&view) / extent * range.first;
        view.shape.extent[axis] = range.count;
        return value_give(sumac_value_of(&view), part, error);
    }
    slices[axis] = (struct sumac_slice){
        .start = (int64_t)range.first,
        .stop = (int64_t)(range.first + range.count),
        .has_start = true,
        .has_stop = true};
    return sumac_value_slice(whole, slices, axis + 1, part, error);
}

static enum sumac_status extent_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct collect *collect = context;
    const struct sumac_tensor *tensor = &leaf->tensor;

    assert(collect->count == 1);
    if (leaf->kind != SUMAC_VALUE_TENSOR)
        return collect_fail_leaf(collect, path, "is no tensor", error);
    const enum sumac_status status = collect_check_axis(collect, &tensor, path, error);
    if (status != SUMAC_OK)
        return status;
    const uint64_t *const extent = &tensor->shape.extent[collect->axis];
    return value_give(sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), extent), mapped, error);
}

struct own_part {
    struct collect collect;
    uint32_t replica;
};

/* Of what was gathered, its own: `leaves` are the sum, and each replica's extent. */
static enum sumac_status own_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct own_part *own = context;
    const uint64_t *extents = sumac_value_data(leaves[1]);
    const struct sumac_tensor *sum = &leaves[0]->tensor;
    struct sumac_range range = {.first = 0, .count = extents[own->replica]};
    uint64_t all = 0;

    assert(own->replica < leaves[1]->tensor.shape.extent[0]);
    if (leaves[0]->kind != SUMAC_VALUE_TENSOR)
        return collect_fail_leaf(&own->collect, path, "is no tensor", error);
    const enum sumac_status status = collect_check_axis(&own->collect, &sum, path, error);
    if (status != SUMAC_OK)
        return status;
    for (uint32_t i = 0; i < (uint32_t)leaves[1]->tensor.shape.extent[0]; i++) {
        range.first += i < own->replica ? extents[i] : 0;
        all += extents[i];
    }
    if (sum->shape.extent[own->collect.axis] != all)
        return collect_fail_leaf(
            &own->collect, path, "is no gradient of what the replicas have gathered together",
            error);
    return cut(leaves[0], (uint32_t)own->collect.axis, range, mapped, error);
}

enum sumac_status sumac_replica_all_gather_gradient(
    struct sumac_replica *replica, const struct sumac_value *upstream,
    const struct sumac_value *local, int64_t axis, struct sumac_value **gradient,
    struct sumac_error *error)
{
    struct own_part own = {
        .collect = {.axis = axis, .count = 1, .call = "all_gather_gradient"}, /* of one, here */
        .replica = sumac_replica_id(replica)};
    struct sumac_value *extents = NULL, *all = NULL, *sum = NULL, *part = NULL;
    struct sumac_error why = {.status = SUMAC_OK};

    const char *const null = upstream == NULL   ? "upstream"
                             : local == NULL    ? "local"
                             : gradient == NULL ? "gradient"
                                                : NULL;
    enum sumac_status status = null != NULL
                                   ? fail_for_null(&why, "sumac_replica_all_gather_gradient", null)
                                   : sumac_value_same_nest(upstream, local, &why);
    if (status == SUMAC_OK)
        status = value_map(local, extent_leaf, &own.collect, &extents, &why);
    if (status != SUMAC_OK) /* all replicas hear it in its first call */
        return context_is_of(replica) ? call_refuse(replica, CALL_ALL_GATHER, &why, error)
                                      : fail_again(error, &why);
    status = sumac_replica_all_gather(replica, extents, 0, NULL, &all, error);
    if (status == SUMAC_OK)
        status = sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, upstream, NULL, &sum, error);
    if (status == SUMAC_OK) {
        const struct sumac_value *const both[] = {sum, all};
        status = value_zip(both, 2, own_leaf, &own, &part, &why);
        if (status == SUMAC_OK)
            status = on_device_place_like(
                replica->strategy, replica->index, upstream, part, gradient, &why);
        if (status != SUMAC_OK)
            status = fail_again(error, &why);
    }
    sumac_value_unref(part);
    sumac_value_unref(extents);
    sumac_value_unref(all);
    sumac_value_unref(sum);
    return status;
}
