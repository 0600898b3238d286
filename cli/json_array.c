/* SPDX-License-Identifier: Apache-2.0 */
/* json_array.c -- nested arrays of numbers, written as they are read: a large tensor needs no second copy. */
#include "json_array.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "json.h"
#include "number.h"

static void print_float(const struct sumac_tensor *tensor, uint64_t index, FILE *file)
{
    char text[NUMBER_BYTES];
    const double value = number_at(tensor, index);
    fputs(isfinite(value) ? number_print(tensor->dtype, value, text) : "null", file);
}

static void print_element(const struct sumac_tensor *tensor, uint64_t index, FILE *file)
{
    const uint8_t *at =
        (const uint8_t *)sumac_tensor_data(tensor) + index * sumac_dtype_bytes(tensor->dtype);
    if (sumac_dtype_is_float(tensor->dtype)) {
        print_float(tensor, index, file);
        return;
    }
    switch (tensor->dtype) {
#define INTEGER(name, type, format)                                                                \
    case SUMAC_##name: {                                                                           \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        fprintf(file, "%" format, value);                                                          \
        return;                                                                                    \
    }
        INTEGER(INT8, int8_t, PRId8)
        INTEGER(INT16, int16_t, PRId16)
        INTEGER(INT32, int32_t, PRId32)
        INTEGER(INT64, int64_t, PRId64)
        INTEGER(UINT8, uint8_t, PRIu8)
        INTEGER(UINT16, uint16_t, PRIu16)
        INTEGER(UINT32, uint32_t, PRIu32)
        INTEGER(UINT64, uint64_t, PRIu64)
#undef INTEGER
    default:
        fputs(*at != 0 ? "true" : "false", file);
    }
}

/* The elements from *next on, nested from `axis` inwards; a line for each row of the innermost. */
static void
print_nested(const struct sumac_tensor *tensor, uint32_t axis, uint64_t *next, FILE *file)
{
    if (axis == tensor->shape.rank) {
        print_element(tensor, (*next)++, file);
        return;
    }
    fputc('[', file);
    for (uint64_t i = 0; i < tensor->shape.extent[axis]; i++) {
        if (i > 0)
            fputs(axis + 1 < tensor->shape.rank ? ",\n    " : ", ", file);
        print_nested(tensor, axis + 1, next, file);
    }
    fputc(']', file);
}

bool json_array_print(
    const char *name, const struct sumac_range *rows, const struct sumac_tensor *tensor, FILE *file)
{
    uint64_t next = 0;
    fputs("{\n  \"name\": ", file);
    bool printed = value_print_text(name, file);
    fprintf(file, ",\n  \"dtype\": \"%s\",\n  \"shape\": [", sumac_dtype_name(tensor->dtype));
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        fprintf(file, axis > 0 ? ", %" PRIu64 : "%" PRIu64, tensor->shape.extent[axis]);
    fputs("],\n", file);
    if (rows != NULL)
        fprintf(file, "  \"first_row\": %" PRIu64 ",\n", rows->first);
    fputs("  \"values\": ", file);
    print_nested(tensor, 0, &next, file);
    fputs("\n}", file);
    return printed && ferror(file) == 0;
}
