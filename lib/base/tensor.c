/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c -- views of memory's, or a buffer's, bytes. */
#include "sumac/tensor.h"

struct sumac_tensor
sumac_tensor_over(void *memory, enum sumac_dtype dtype, struct sumac_shape shape)
{
    return (struct sumac_tensor){.memory = memory, .shape = shape, .dtype = dtype};
}

enum sumac_status sumac_tensor_view(
    struct sumac_buffer *buffer, uint64_t offset_bytes, enum sumac_dtype dtype,
    const struct sumac_shape *shape, struct sumac_tensor *tensor)
{
    uint64_t elements = 0, bytes = 0;
    const enum sumac_status status = sumac_shape_size(shape, dtype, &elements, &bytes);

    if (status != SUMAC_OK)
        return status;
    if (buffer == NULL || tensor == NULL)
        return SUMAC_INVALID_ARGUMENT;
    if (offset_bytes % sumac_dtype_bytes(dtype) != 0)
        return SUMAC_INVALID_ARGUMENT;
    const uint64_t buffer_bytes = sumac_buffer_bytes(buffer);
    if (offset_bytes > buffer_bytes || bytes > buffer_bytes - offset_bytes)
        return SUMAC_OUT_OF_RANGE;
    *tensor = (struct sumac_tensor){
        .buffer = buffer, .offset_bytes = offset_bytes, .shape = *shape, .dtype = dtype};
    return SUMAC_OK;
}

enum sumac_status sumac_tensor_slice_rows(
    const struct sumac_tensor *whole, struct sumac_range range, struct sumac_tensor *rows)
{
    uint64_t bytes = 0;

    if (whole == NULL || rows == NULL || whole->shape.rank == 0 ||
        sumac_shape_size(&whole->shape, whole->dtype, NULL, &bytes) != SUMAC_OK)
        return SUMAC_INVALID_ARGUMENT;
    const uint64_t extent = whole->shape.extent[0];
    if (range.first > extent || range.count > extent - range.first)
        return SUMAC_OUT_OF_RANGE;
    struct sumac_tensor slice = *whole;
    const uint64_t skipped_bytes = extent == 0 ? 0 : bytes / extent * range.first;
    if (slice.buffer != NULL)
        slice.offset_bytes += skipped_bytes;
    else if (slice.memory != NULL)
        slice.memory = (char *)slice.memory + skipped_bytes;
    slice.shape.extent[0] = range.count;
    *rows = slice;
    return SUMAC_OK;
}

void *sumac_tensor_data(const struct sumac_tensor *tensor)
{
    if (tensor == NULL)
        return NULL;
    if (tensor->buffer == NULL)
        return tensor->memory;
    char *data = sumac_buffer_data(tensor->buffer);
    return data == NULL ? NULL : data + tensor->offset_bytes;
}

uint64_t sumac_tensor_bytes(const struct sumac_tensor *tensor)
{
    uint64_t bytes = 0;

    if (tensor == NULL || sumac_shape_size(&tensor->shape, tensor->dtype, NULL, &bytes) != SUMAC_OK)
        return 0;
    return bytes;
}
