/* tensor.c -- views of a buffer's bytes. */
#include "sumac/tensor.h"

enum sumac_status sumac_tensor_view(
    struct sumac_buffer *buffer, uint64_t offset_bytes, enum sumac_dtype dtype,
    const struct sumac_shape *shape, struct sumac_tensor *tensor)
{
    uint64_t elements = 0, bytes = 0;
    const enum sumac_status status = sumac_shape_size(shape, dtype, &elements, &bytes);
    if (status != SUMAC_OK)
        return status;
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
    if (whole->shape.rank == 0)
        return SUMAC_INVALID_ARGUMENT;
    const uint64_t extent = whole->shape.extent[0];
    if (range.first > extent || range.count > extent - range.first)
        return SUMAC_OUT_OF_RANGE;
    struct sumac_shape row = whole->shape;
    row.extent[0] = 1;
    uint64_t elements = 0, row_bytes = 0;
    const enum sumac_status status = sumac_shape_size(&row, whole->dtype, &elements, &row_bytes);
    if (status != SUMAC_OK)
        return status;
    struct sumac_tensor slice = *whole;
    slice.offset_bytes += range.first * row_bytes;
    slice.shape.extent[0] = range.count;
    *rows = slice;
    return SUMAC_OK;
}

void *sumac_tensor_data(const struct sumac_tensor *tensor)
{
    char *data = sumac_buffer_data(tensor->buffer);
    return data == NULL ? NULL : data + tensor->offset_bytes;
}

uint64_t sumac_tensor_bytes(const struct sumac_tensor *tensor)
{
    uint64_t elements = 0, bytes = 0;
    if (sumac_shape_size(&tensor->shape, tensor->dtype, &elements, &bytes) != SUMAC_OK)
        return 0; /* not a tensor that sumac_tensor_view made */
    return bytes;
}
