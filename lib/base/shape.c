/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c -- element types and shapes; arithmetic only. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "dtype.h"
#include "text.h"

/* By number; 0 is no dtype. */
static const struct {
    const char *name;
    enum sumac_dtype_kind kind;
} dtypes[] = {
    {"unspecified", SUMAC_KIND_NONE},
#define X(NAME, number, bytes, kind, name, numpy) [number] = {#name, SUMAC_KIND_##kind},
    SUMAC_DTYPE_LIST(X)
#undef X
};
_Static_assert(
    sizeof dtypes / sizeof dtypes[0] == DTYPES_MAX + 1, "the dtypes' numbers have no gaps");

static unsigned row_of(enum sumac_dtype dtype)
{
    return (unsigned)dtype <= DTYPES_MAX ? (unsigned)dtype : SUMAC_DTYPE_UNSPECIFIED;
}

uint32_t sumac_dtype_bytes(enum sumac_dtype dtype) { return dtype_bytes(dtype); }

const char *sumac_dtype_name(enum sumac_dtype dtype) { return dtypes[row_of(dtype)].name; }

enum sumac_dtype_kind sumac_dtype_kind(enum sumac_dtype dtype)
{
    return dtypes[row_of(dtype)].kind;
}

enum sumac_dtype sumac_dtype_parse(const char *name)
{
    for (unsigned number = 1; name != NULL && number <= DTYPES_MAX; number++)
        if (strcmp(name, dtypes[number].name) == 0)
            return (enum sumac_dtype)number;
    return SUMAC_DTYPE_UNSPECIFIED;
}

bool sumac_dtype_is_float(enum sumac_dtype dtype)
{
    const enum sumac_dtype_kind kind = sumac_dtype_kind(dtype);

    return kind == SUMAC_KIND_HALF || kind == SUMAC_KIND_FLOAT;
}

const char *dtype_list_print(char *text, size_t text_bytes)
{
    (void)text_print(
        text, text_bytes, "1 (%s) to %u (%s)", dtypes[1].name, DTYPES_MAX, dtypes[DTYPES_MAX].name);
    return text;
}

/* The extents other than 0 are multiplied even when the shape is empty, as NumPy does: the size of
 * a row is then known to fit as well. */
enum sumac_status sumac_shape_size(
    const struct sumac_shape *shape, enum sumac_dtype dtype, uint64_t *elements, uint64_t *bytes)
{
    const uint64_t element_bytes = sumac_dtype_bytes(dtype);

    if (shape == NULL || shape->rank > SUMAC_RANK_MAX || element_bytes == 0)
        return SUMAC_INVALID_ARGUMENT;
    const uint64_t elements_max = (uint64_t)INT64_MAX / element_bytes;
    uint64_t product = 1;
    bool empty = false;
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        const uint64_t extent = shape->extent[axis];
        if (extent == 0) {
            empty = true;
            continue;
        }
        if (extent > elements_max / product)
            return SUMAC_INVALID_ARGUMENT;
        product *= extent;
    }
    if (elements != NULL)
        *elements = empty ? 0 : product;
    if (bytes != NULL)
        *bytes = empty ? 0 : product * element_bytes;
    return SUMAC_OK;
}

bool sumac_shape_equal(const struct sumac_shape *a, const struct sumac_shape *b)
{
    if (a == NULL || b == NULL || a->rank != b->rank)
        return false;
    for (uint32_t axis = 0; axis < a->rank && axis < SUMAC_RANK_MAX; axis++) {
        if (a->extent[axis] != b->extent[axis])
            return false;
    }
    return true;
}

/* Append formatted text at *end, as far as it fits. */
__attribute__((format(printf, 4, 5))) static void
append(char *text, size_t text_bytes, size_t *end, const char *format, ...)
{
    if (*end + 1 >= text_bytes)
        return;
    va_list arguments;
    va_start(arguments, format);
    *end += text_print_values(text + *end, text_bytes - *end, format, arguments);
    va_end(arguments);
}

const char *sumac_shape_print(const struct sumac_shape *shape, char *text, size_t text_bytes)
{
    if (text == NULL || text_bytes == 0)
        return "";
    text[0] = '\0';
    if (shape == NULL)
        return text;
    size_t end = 0;
    append(text, text_bytes, &end, "[");
    for (uint32_t axis = 0; axis < shape->rank && axis < SUMAC_RANK_MAX; axis++)
        append(text, text_bytes, &end, axis == 0 ? "%" PRIu64 : ", %" PRIu64, shape->extent[axis]);
    append(text, text_bytes, &end, "]");
    return text;
}
