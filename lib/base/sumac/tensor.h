/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h -- element types, and a typed, shaped view of bytes: the caller's own memory, or what a
 * sumac_buffer owns.
 *
 * A tensor is a small value: copy it, pass it, drop it. It neither allocates nor frees.
 * It is valid for as long as its memory is, or somebody holds a reference on its buffer.
 */
#ifndef SUMAC_TENSOR_H
#define SUMAC_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/buffer.h"
#include "sumac/status.h"

#define SUMAC_RANK_MAX 8

/* What an element is, and so how it is computed with. */
enum sumac_dtype_kind {
    SUMAC_KIND_NONE = 0, /* of a number that is no dtype */
    SUMAC_KIND_BOOL = 1, /* 0 or 1 */
    SUMAC_KIND_INT = 2,  /* two's complement; wraps around */
    SUMAC_KIND_UINT = 3,
    SUMAC_KIND_HALF = 4,  /* computed in float32, and rounded once */
    SUMAC_KIND_FLOAT = 5, /* with arithmetic of its own */
};

/* The numbers are those of enum DataType on the wire.
 * X(NAME, number, bytes of an element, its kind, its name, NumPy's descriptor) */
#define SUMAC_DTYPE_LIST(X)                                                                        \
    X(BOOL, 1, 1, BOOL, bool, "|b1")                                                               \
    X(INT8, 2, 1, INT, int8, "|i1")                                                                \
    X(INT16, 3, 2, INT, int16, "<i2")                                                              \
    X(INT32, 4, 4, INT, int32, "<i4")                                                              \
    X(INT64, 5, 8, INT, int64, "<i8")                                                              \
    X(UINT8, 6, 1, UINT, uint8, "|u1")                                                             \
    X(UINT16, 7, 2, UINT, uint16, "<u2")                                                           \
    X(UINT32, 8, 4, UINT, uint32, "<u4")                                                           \
    X(UINT64, 9, 8, UINT, uint64, "<u8")                                                           \
    X(FLOAT16, 10, 2, HALF, float16, "<f2")                                                        \
    X(BFLOAT16, 11, 2, HALF, bfloat16, "<u2")                                                      \
    X(FLOAT32, 12, 4, FLOAT, float32, "<f4")                                                       \
    X(FLOAT64, 13, 8, FLOAT, float64, "<f8")

enum sumac_dtype {
    SUMAC_DTYPE_UNSPECIFIED = 0,
#define X(NAME, number, bytes, kind, name, numpy) SUMAC_##NAME = number,
    SUMAC_DTYPE_LIST(X)
#undef X
};

/* A run of rows: first, first + 1, … first + count - 1. */
struct sumac_range {
    uint64_t first;
    uint64_t count;
};

struct sumac_shape {
    uint64_t extent[SUMAC_RANK_MAX]; /* elements along each axis, row-major */
    uint32_t rank;                   /* axes in use; 0 is a scalar */
};

/* SUMAC_SHAPE(64, 128) is a matrix of 64 rows and 128 columns, SUMAC_SCALAR one element. */
#ifdef __cplusplus
extern "C++" {
template <typename... Extents> constexpr sumac_shape sumac_shape_of(Extents... extents)
{
    static_assert(sizeof...(extents) <= SUMAC_RANK_MAX, "a shape has at most SUMAC_RANK_MAX axes");
    return sumac_shape{{static_cast<uint64_t>(extents)...}, sizeof...(extents)};
}
}
#define SUMAC_SHAPE(...) sumac_shape_of(__VA_ARGS__)
#define SUMAC_SCALAR sumac_shape_of()
#else
#define SUMAC_SHAPE(...)                                                                           \
    ((struct sumac_shape){                                                                         \
        .extent = {__VA_ARGS__},                                                                   \
        .rank = (uint32_t)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))})
#define SUMAC_SCALAR ((struct sumac_shape){.rank = 0})
#endif

struct sumac_tensor {
    struct sumac_buffer *buffer; /* borrowed; NULL: the elements are in `memory` */
    void *memory;                /* borrowed: element 0, when there is no buffer */
    uint64_t offset_bytes;       /* of element 0, from the start of buffer; of memory: 0 */
    struct sumac_shape shape;
    enum sumac_dtype dtype;
};

/* Bytes of one element, 0 for an unknown type. Threads  any. */
SUMAC_API uint32_t sumac_dtype_bytes(enum sumac_dtype dtype);

/* "float32"; "unspecified" for a number that is none. Lends  a constant string. Threads  any. */
SUMAC_API const char *sumac_dtype_name(enum sumac_dtype dtype);

/* The type of that name, "float32", or SUMAC_DTYPE_UNSPECIFIED, which is no error in options: there
 * it means the default. Threads  any. */
SUMAC_API enum sumac_dtype sumac_dtype_parse(const char *name);

/* SUMAC_KIND_NONE for an unknown type. Threads  any. */
SUMAC_API enum sumac_dtype_kind sumac_dtype_kind(enum sumac_dtype dtype);

/* Of kind HALF or FLOAT: float16, bfloat16, float32, float64? Threads  any. */
SUMAC_API bool sumac_dtype_is_float(enum sumac_dtype dtype);

/* Elements, and bytes, that a shape takes up, in this order (NULL: not wanted). A scalar has one
 * element.
 * Fails    INVALID_ARGUMENT: rank above SUMAC_RANK_MAX, an unknown dtype, or more than 2^63 - 1
 *          bytes.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_shape_size(
    const struct sumac_shape *shape, enum sumac_dtype dtype, uint64_t *elements, uint64_t *bytes);

/* The same rank, and the same extents. Threads  any. */
SUMAC_API bool sumac_shape_equal(const struct sumac_shape *a, const struct sumac_shape *b);

/* "[64, 128]", "[]" for a scalar, into `text` (cut to fit, always terminated). Lends  text, or ""
 * of NULL. Threads  any. */
SUMAC_API const char *
sumac_shape_print(const struct sumac_shape *shape, char *text, size_t text_bytes);

/* A tensor over plain memory: a variable, an array, what malloc gave; of as many elements as the
 * shape says, row-major. What is wrong with it (no memory, a shape that is none) is said by the
 * call that it is given to.
 *
 * Borrows  memory, for as long as the tensor is in use: of a push or a pull, until that is over.
 * Threads  any. */
SUMAC_API struct sumac_tensor
sumac_tensor_over(void *memory, enum sumac_dtype dtype, struct sumac_shape shape);

/* View bytes of `buffer` as a tensor, from offset_bytes on.
 *
 * Borrows  buffer; no reference is taken.
 * Fails    INVALID_ARGUMENT: as sumac_shape_size, or offset_bytes no multiple of the element's
 *          size. OUT_OF_RANGE: the view would end past the buffer.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_tensor_view(
    struct sumac_buffer *buffer, uint64_t offset_bytes, enum sumac_dtype dtype,
    const struct sumac_shape *shape, struct sumac_tensor *tensor);

/* View the rows of `whole` that `range` names, as `*rows`.
 *
 * Borrows  whole's buffer or memory; no reference is taken.
 * Fails    INVALID_ARGUMENT: `whole` is a scalar, or its shape as sumac_shape_size. OUT_OF_RANGE:
 *          `range` ends past whole's rows.
 * Threads  any; reads its arguments only. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_tensor_slice_rows(
    const struct sumac_tensor *whole, struct sumac_range range, struct sumac_tensor *rows);

/* The first element, and the size of all elements in bytes.
 * Lends    the elements, as long as the buffer has a reference, or the memory is there.
 * Threads  any. */
SUMAC_API void *sumac_tensor_data(const struct sumac_tensor *tensor);
SUMAC_API uint64_t sumac_tensor_bytes(const struct sumac_tensor *tensor);

#endif
