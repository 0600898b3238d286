/* SPDX-License-Identifier: Apache-2.0 */
/* slice.c -- parts of a tensor: NumPy's basic slicing. */
#include "value.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "plural.h"

/* One axis of what is read: elements first, first + step, …, `count` of them. */
struct walked {
    uint64_t first, count, stride_bytes; /* stride_bytes: between elements of the axis */
    int64_t step;
    bool dropped; /* an index: the axis is not the result's */
};

struct slice_walk {
    uint32_t rank;
    struct walked axes[SUMAC_RANK_MAX];
    uint64_t element_bytes;
};

static enum sumac_status
fail_slice(struct sumac_error *error, enum sumac_status status, uint32_t entry, const char *why)
{
    return fail(error, status, SUMAC_REASON_UNSPECIFIED, "slice: entry %" PRIu32 " %s", entry, why);
}

/* ---- an axis */

static enum sumac_status take_index(
    const struct sumac_slice *slice, uint64_t extent, uint32_t entry, struct walked *axis,
    struct sumac_error *error)
{
    const int64_t size = (int64_t)extent;
    const int64_t index = slice->index < 0 ? slice->index + size : slice->index;

    assert(size >= 0);
    if (index < 0 || index >= size)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSPECIFIED,
            "slice: entry %" PRIu32 " is %" PRId64 ", and its axis has %" PRIu64 " element%s",
            entry, slice->index, extent, plural(extent));
    *axis = (struct walked){.first = (uint64_t)index, .count = 1, .step = 1, .dropped = true};
    return SUMAC_OK;
}

/* As Python clamps a bound. */
static int64_t clamp(int64_t bound, int64_t size, int64_t least, int64_t most)
{
    if (bound < 0)
        bound += size;
    return bound < least ? least : bound > most ? most : bound;
}

static enum sumac_status take_range(
    const struct sumac_slice *slice, uint64_t extent, uint32_t entry, struct walked *axis,
    struct sumac_error *error)
{
    const int64_t size = (int64_t)extent, step = slice->has_step ? slice->step : 1;

    if (step == 0)
        return fail_slice(error, SUMAC_INVALID_ARGUMENT, entry, "has the step 0");
    /* backwards it may begin at the last, and stop before the first */
    const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? size - 1 : size;
    const int64_t start = slice->has_start ? clamp(slice->start, size, least, most)
                          : step < 0       ? most
                                           : least;
    const int64_t stop = slice->has_stop ? clamp(slice->stop, size, least, most)
                         : step < 0      ? least
                                         : most;
    uint64_t count = 0;
    if (step > 0 && start < stop)
        count = ((uint64_t)(stop - start) - 1) / (uint64_t)step + 1;
    else if (step < 0 && start > stop)
        count = ((uint64_t)(start - stop) - 1) / (0 - (uint64_t)step) + 1;
    /* no step leads from one element to another: it may be of any size */
    *axis = (struct walked){
        .first = count > 0 ? (uint64_t)start : 0, .count = count, .step = count > 1 ? step : 1};
    return SUMAC_OK;
}

static void take_whole(uint64_t extent, struct walked *axis)
{
    *axis = (struct walked){.count = extent, .step = 1};
}

/* ---- all of them */

static enum sumac_status find_ellipsis(
    const struct sumac_slice *slices, uint32_t count, uint32_t rank, uint32_t *at,
    struct sumac_error *error)
{
    *at = count; /* none: behind the last */
    for (uint32_t i = 0; i < count; i++) {
        if ((uint32_t)slices[i].kind > SUMAC_SLICE_ELLIPSIS)
            return fail_slice(
                error, SUMAC_INVALID_ARGUMENT, i, "is neither an index, a range nor an ellipsis");
        if (slices[i].kind != SUMAC_SLICE_ELLIPSIS)
            continue;
        if (*at < count)
            return fail_slice(error, SUMAC_INVALID_ARGUMENT, i, "is a second ellipsis");
        *at = i;
    }
    if (count - (*at < count) <= rank)
        return SUMAC_OK;
    return fail_argument(
        error, "slice: %" PRIu32 " entries of a tensor with %" PRIu32 " axes",
        count - (*at < count), rank);
}

static enum sumac_status plan(
    const struct sumac_tensor *tensor, const struct sumac_slice *slices, uint32_t count,
    struct slice_walk *walk, struct sumac_error *error)
{
    const uint32_t rank = tensor->shape.rank;
    uint32_t ellipsis, entry = 0;
    enum sumac_status status = find_ellipsis(slices, count, rank, &ellipsis, error);

    walk->rank = rank;
    const uint32_t given = count - (ellipsis < count);
    for (uint32_t axis = 0; status == SUMAC_OK && axis < rank; axis++) {
        const uint64_t extent = tensor->shape.extent[axis];
        const bool filled = axis >= ellipsis && axis < ellipsis + rank - given;
        if (entry == ellipsis && !filled)
            entry++;
        if (filled || entry >= count)
            take_whole(extent, &walk->axes[axis]);
        else if (slices[entry].kind == SUMAC_SLICE_INDEX)
            status = take_index(&slices[entry], extent, entry, &walk->axes[axis], error);
        else
            status = take_range(&slices[entry], extent, entry, &walk->axes[axis], error);
        entry += !filled;
    }
    uint64_t stride = dtype_bytes(tensor->dtype);
    walk->element_bytes = stride;
    for (uint32_t axis = rank; status == SUMAC_OK && axis-- > 0;) {
        walk->axes[axis].stride_bytes = stride;
        stride *= tensor->shape.extent[axis];
    }
    return status;
}

/* From which axis on it lies together, and how many bytes. */
static uint32_t
find_run(const struct slice_walk *walk, const struct sumac_tensor *tensor, uint64_t *bytes)
{
    uint32_t axis = walk->rank;
    bool whole = true;

    *bytes = walk->element_bytes;
    while (axis > 0 && whole && walk->axes[axis - 1].step == 1) {
        axis--;
        *bytes *= walk->axes[axis].count;
        whole = walk->axes[axis].count == tensor->shape.extent[axis];
    }
    return axis;
}

static uint8_t *copy_axis(
    const struct slice_walk *walk, uint32_t axis, uint32_t run_axis, uint64_t run_bytes,
    const uint8_t *from, uint8_t *to)
{
    const struct walked *walked = &walk->axes[axis];

    assert(axis <= run_axis);
    if (axis == run_axis) {
        for (uint32_t i = axis; i < walk->rank; i++)
            from += walk->axes[i].first * walk->axes[i].stride_bytes;
        memcpy(to, from, (size_t)run_bytes);
        return to + run_bytes;
    }
    const int64_t step = walked->step * (int64_t)walked->stride_bytes;
    from += walked->first * walked->stride_bytes;
    for (uint64_t i = 0; i < walked->count; i++)
        to = copy_axis(walk, axis + 1, run_axis, run_bytes, from + (int64_t)i * step, to);
    return to;
}

/* Of one that lies on a device. */
static enum sumac_status slice_there(
    const struct sumac_value *value, const struct sumac_slice *slices, uint32_t count,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *here = NULL;

    assert(!value_is_here(value));
    enum sumac_status status = value_bring_here((void *)(uintptr_t)value, &here, error);
    if (status == SUMAC_OK)
        status = sumac_value_slice(here, slices, count, result, error);
    sumac_value_unref(here);
    return status;
}

enum sumac_status sumac_value_slice(
    const struct sumac_value *value, const struct sumac_slice *slices, uint32_t count,
    struct sumac_value **result, struct sumac_error *error)
{
    static const char call[] = "sumac_value_slice";
    struct slice_walk walk;
    struct sumac_shape shape = {.rank = 0};
    uint64_t elements = 1, run_bytes;
    void *made;

    if (value == NULL || (slices == NULL && count > 0) || result == NULL)
        return fail_for_null(
            error, call,
            value == NULL    ? "value"
            : result == NULL ? "result"
                             : "slices");
    if (value->kind != SUMAC_VALUE_TENSOR)
        return fail_argument(
            error, "%s: the value is a %s", call, sumac_value_kind_name(value->kind));
    if (!value_is_here(value))
        return slice_there(value, slices, count, result, error);
    const enum sumac_status status = plan(&value->tensor, slices, count, &walk, error);
    if (status != SUMAC_OK)
        return status;
    for (uint32_t axis = 0; axis < walk.rank; axis++) {
        elements *= walk.axes[axis].count;
        if (!walk.axes[axis].dropped)
            shape.extent[shape.rank++] = walk.axes[axis].count;
    }
    struct sumac_value *copy = value_make_tensor(value->tensor.dtype, &shape, &made);
    if (copy == NULL)
        return value_fail_for_memory(error);
    const uint32_t run_axis = find_run(&walk, &value->tensor, &run_bytes);
    if (elements > 0)
        (void)copy_axis(&walk, 0, run_axis, run_bytes, sumac_tensor_data(&value->tensor), made);
    *result = copy;
    return SUMAC_OK;
}
