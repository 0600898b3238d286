/* SPDX-License-Identifier: Apache-2.0 */
/* json_array.c -- nested arrays of numbers, written as they are read: a large tensor needs no
 * second copy. */
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
    const uint8_t *bools = sumac_tensor_data(tensor);
    char text[NUMBER_BYTES];

    switch (sumac_dtype_kind(tensor->dtype)) {
    case SUMAC_KIND_HALF:
    case SUMAC_KIND_FLOAT:
        print_float(tensor, index, file);
        break;
    case SUMAC_KIND_INT:
    case SUMAC_KIND_UINT:
        fputs(number_print_integer(tensor, index, text), file);
        break;
    case SUMAC_KIND_BOOL:
    case SUMAC_KIND_NONE:
        fputs(bools[index] != 0 ? "true" : "false", file);
        break;
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
    const bool printed = json_print_text(name, file);
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
