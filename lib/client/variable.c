/* SPDX-License-Identifier: Apache-2.0 */
/* variable.c -- what is known of a variable, memory that fits it, and whether a caller's tensor is
 * right for its rows: type, shape and memory. */
#include "transfer.h"

#include "error.h"

const char *sumac_client_variable_name(const struct sumac_client_variable *variable)
{
    return variable == NULL ? NULL : variable->name;
}

enum sumac_dtype sumac_client_variable_dtype(const struct sumac_client_variable *variable)
{
    return variable == NULL ? SUMAC_DTYPE_UNSPECIFIED : variable->dtype;
}

struct sumac_shape sumac_client_variable_shape(const struct sumac_client_variable *variable)
{
    return variable == NULL ? SUMAC_SCALAR : variable->shape;
}

uint32_t sumac_client_variable_shards(const struct sumac_client_variable *variable)
{
    return variable == NULL ? 0 : variable->shard_count;
}

struct sumac_shard
sumac_client_variable_shard(const struct sumac_client_variable *variable, uint32_t index)
{
    if (index >= sumac_client_variable_shards(variable))
        return (struct sumac_shard){.ps = 0};
    assert(variable->shards != NULL);
    const struct variable_shard *shard = &variable->shards[index];
    return (struct sumac_shard){
        .ps = shard->ps, .rows = {.first = shard->first_row, .count = shard->rows}};
}

enum sumac_status sumac_client_variable_tensor(
    const struct sumac_client_variable *variable, struct sumac_tensor *tensor,
    struct sumac_error *error)
{
    if (variable == NULL || tensor == NULL)
        return fail_for_null(
            error, "sumac_client_variable_tensor", variable == NULL ? "variable" : "tensor");
    const uint64_t bytes = variable->rows * variable->row_bytes;
    struct sumac_buffer *buffer;
    enum sumac_status status = sumac_buffer_create(bytes, &buffer);
    if (status != SUMAC_OK)
        return fail(
            error, status, SUMAC_REASON_OUT_OF_MEMORY, "no memory for the %" PRIu64 " bytes of %s",
            bytes, variable->name);
    *tensor =
        (struct sumac_tensor){.buffer = buffer, .shape = variable->shape, .dtype = variable->dtype};
    assert(sumac_tensor_bytes(tensor) == sumac_buffer_bytes(buffer));
    return SUMAC_OK;
}

/* ---- is a tensor right? */

enum sumac_status client_check_memory(
    const struct sumac_tensor *tensor, uint64_t bytes, const char *what, const char *name,
    struct sumac_error *error)
{
    if (tensor->buffer == NULL) {
        if (tensor->memory == NULL && bytes > 0)
            return fail_argument(
                error,
                "%s of %s: the tensor has no memory; make it with sumac_tensor_over, "
                "sumac_tensor_view or sumac_client_variable_tensor",
                what, name);
        if (tensor->offset_bytes != 0)
            return fail_argument(
                error,
                "%s of %s: the tensor is over plain memory, and its offset_bytes is %" PRIu64
                "; move the pointer, or use sumac_tensor_slice_rows",
                what, name, tensor->offset_bytes);
        return SUMAC_OK;
    }
    if (sumac_buffer_place(tensor->buffer).kind == SUMAC_PLACE_CUDA)
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED,
            "%s of %s: the tensor is in a device's memory; copy it to the host first", what, name);
    const uint64_t buffer_bytes = sumac_buffer_bytes(tensor->buffer);
    if (tensor->offset_bytes > buffer_bytes || bytes > buffer_bytes - tensor->offset_bytes)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSPECIFIED,
            "%s of %s: the tensor's %" PRIu64 " bytes begin at byte %" PRIu64
            " of a buffer of %" PRIu64 "; make it with sumac_tensor_view",
            what, name, bytes, tensor->offset_bytes, buffer_bytes);
    return SUMAC_OK;
}

/* The type that a tensor for the selection has. */
static enum sumac_dtype dtype_of(const struct selection *selection)
{
    const enum sumac_dtype own = selection->variable->dtype;
    const bool half = sumac_dtype_kind(own) == SUMAC_KIND_HALF;

    return (selection->synchronous || selection->slot != NULL) && half ? SUMAC_FLOAT32 : own;
}

uint64_t selection_row_bytes(const struct selection *selection)
{
    const struct sumac_client_variable *variable = selection->variable;

    assert(sumac_dtype_bytes(variable->dtype) > 0);
    return variable->row_bytes / sumac_dtype_bytes(variable->dtype) *
           sumac_dtype_bytes(dtype_of(selection));
}

enum sumac_status
selection_check_tensor(const struct selection *selection, uint64_t rows, struct sumac_error *error)
{
    const struct sumac_client_variable *variable = selection->variable;
    const struct sumac_tensor *tensor = selection->tensor;
    const enum sumac_dtype dtype = dtype_of(selection);
    struct sumac_shape shape = variable->shape; /* of the tensor, with `rows` rows */
    char expected[128], given[128];

    if (shape.rank > 0)
        shape.extent[0] = rows;
    if (tensor->dtype != dtype)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s of %s: expected %s, given %s%s",
            selection->verb, variable->name, sumac_dtype_name(dtype),
            sumac_dtype_name(tensor->dtype),
            dtype == variable->dtype  ? ""
            : selection->slot != NULL ? "; a slot of a half type is float32"
                                      : "; a synchronous push of a half type is float32");
    if (!sumac_shape_equal(&shape, &tensor->shape))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE, "%s of %s: expected shape %s, given %s",
            selection->verb, variable->name, sumac_shape_print(&shape, expected, sizeof expected),
            sumac_shape_print(&tensor->shape, given, sizeof given));
    return client_check_memory(
        tensor, rows * selection_row_bytes(selection), selection->verb, variable->name, error);
}
