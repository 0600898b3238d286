/* SPDX-License-Identifier: Apache-2.0 */
/* print_array.c -- numpy/core/arrayprint.py's rules for bools, integers and floats; and
 * nested arrays of JSON, written as they are read: a large tensor needs no second copy. */
#include "print_array.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "json.h"
#include "number.h"

#define EDGE 3
#define LINE_CHARACTERS 75
#define PRECISION 8
#define ELEMENT_BYTES 64

struct printer {
    const struct sumac_tensor *tensor;
    FILE *file;
    /* How every shown number is written: found by looking at all of them first. */
    bool exponent;                   /* 1.5e-05 */
    int decimals;                    /* most digits after the point */
    int width;                       /* of an element, padded to the left */
    bool shortened;                  /* only the edges of each axis are shown */
    uint64_t stride[SUMAC_RANK_MAX]; /* elements from one index to the next */
    int column, blanks;       /* characters on this line, and blanks that are to follow them */
    double largest, smallest; /* absolute, of the finite numbers that are not 0 */
};

/* ---- one element */

/* The fewest decimals, up to PRECISION, that give the number again. */
static int decimals_of(enum sumac_dtype dtype, double value, bool exponent)
{
    char text[512];

    for (int decimals = 0; decimals < PRECISION; decimals++) {
        (void)snprintf(text, sizeof text, exponent ? "%.*e" : "%.*f", decimals, value);
        if (number_reads_as(dtype, text, value))
            return decimals;
    }
    /* None is enough: rounded to PRECISION, without the zeros at the end. */
    (void)snprintf(text, sizeof text, exponent ? "%.*e" : "%.*f", PRECISION, value);
    const char *point = strchr(text, '.');
    size_t digits = strcspn(point, "e");
    while (digits > 1 && point[digits - 1] == '0')
        digits--;
    return (int)digits - 1;
}

static int write_float(const struct printer *printer, double value, char text[ELEMENT_BYTES])
{
    const int decimals = printer->decimals;

    if (isnan(value))
        return snprintf(text, ELEMENT_BYTES, "nan");
    if (isinf(value))
        return snprintf(text, ELEMENT_BYTES, value < 0 ? "-inf" : "inf");
    if (printer->exponent)
        return snprintf(text, ELEMENT_BYTES, decimals == 0 ? "%#.*e" : "%.*e", decimals, value);
    /* NumPy pads each number to the decimals of the longest with blanks, not zeros. */
    const int own = decimals_of(printer->tensor->dtype, value, false);
    const int used = snprintf(text, ELEMENT_BYTES, "%#.*f", own, value);
    return used + snprintf(text + used, ELEMENT_BYTES - (size_t)used, "%*s", decimals - own, "");
}

static bool bool_at(const struct sumac_tensor *tensor, uint64_t element)
{
    return ((const uint8_t *)sumac_tensor_data(tensor))[element] != 0;
}

static int write_element(const struct printer *printer, uint64_t element, char text[ELEMENT_BYTES])
{
    const struct sumac_tensor *tensor = printer->tensor;
    char number[NUMBER_BYTES];

    if (sumac_dtype_is_float(tensor->dtype))
        return write_float(printer, number_at(tensor, element), text);
    if (tensor->dtype == SUMAC_BOOL)
        return snprintf(text, ELEMENT_BYTES, bool_at(tensor, element) ? "True" : "False");
    return snprintf(text, ELEMENT_BYTES, "%s", number_print_integer(tensor, element, number));
}

/* ---- the elements that are shown */

static uint64_t extent(const struct printer *printer, uint32_t axis)
{
    return printer->tensor->shape.extent[axis];
}

static bool skips(const struct printer *printer, uint32_t axis)
{
    return printer->shortened && extent(printer, axis) > 2 * EDGE;
}

typedef void visitor(struct printer *printer, uint64_t element);

static void visit_all(struct printer *printer, visitor *visit, uint32_t axis, uint64_t first)
{
    if (axis == printer->tensor->shape.rank) {
        visit(printer, first);
        return;
    }
    for (uint64_t i = 0; i < extent(printer, axis); i++) {
        if (skips(printer, axis) && i == EDGE)
            i = extent(printer, axis) - EDGE;
        visit_all(printer, visit, axis + 1, first + i * printer->stride[axis]);
    }
}

static void see_range(struct printer *printer, uint64_t element)
{
    const double value = fabs(number_at(printer->tensor, element));

    if (!isfinite(value) || value == 0)
        return;
    if (value > printer->largest)
        printer->largest = value;
    if (printer->smallest == 0 || value < printer->smallest)
        printer->smallest = value;
}

static void see_decimals(struct printer *printer, uint64_t element)
{
    const double value = number_at(printer->tensor, element);

    if (!isfinite(value))
        return;
    const int decimals = decimals_of(printer->tensor->dtype, value, printer->exponent);
    if (decimals > printer->decimals)
        printer->decimals = decimals;
}

static void see_width(struct printer *printer, uint64_t element)
{
    char text[ELEMENT_BYTES];
    const int width = write_element(printer, element, text);

    if (width > printer->width)
        printer->width = width;
}

static void lay_out(struct printer *printer)
{
    if (sumac_dtype_is_float(printer->tensor->dtype)) {
        visit_all(printer, see_range, 0, 0);
        printer->exponent = printer->largest >= 1e8 ||
                            (printer->smallest != 0 && printer->smallest < 1e-4) ||
                            (printer->smallest != 0 && printer->largest / printer->smallest > 1e3);
        visit_all(printer, see_decimals, 0, 0);
    }
    visit_all(printer, see_width, 0, 0);
    if (printer->tensor->dtype == SUMAC_BOOL)
        printer->width = (int)strlen("False"); /* even when all are True */
}

/* ---- brackets and lines */

/* A new line, or several between blocks of rows, as far in as what `axis` has is. */
static void break_lines(struct printer *printer, uint32_t axis, uint32_t lines)
{
    while (lines-- > 0)
        fputc('\n', printer->file);
    fprintf(printer->file, "%*s", (int)axis + 1, "");
    printer->column = (int)axis + 1;
}

/* A word of a row, on this line while it fits. Blanks at a word's end are kept back: at the end of
 * a line there are none. */
static void put_word(struct printer *printer, const char *word, uint32_t axis, bool first)
{
    const int width = (int)strlen(word);
    const int limit = LINE_CHARACTERS - 1 - (int)axis; /* room for the closing brackets */
    int inked = width;

    while (inked > 0 && word[inked - 1] == ' ')
        inked--;
    if (!first && printer->column + printer->blanks + 1 + width > limit) {
        break_lines(printer, axis, 1);
    } else {
        printer->blanks += !first;
        fprintf(printer->file, "%*s", printer->blanks, "");
        printer->column += printer->blanks;
    }
    fprintf(printer->file, "%.*s", inked, word);
    printer->column += inked;
    printer->blanks = width - inked;
}

static void print_row(struct printer *printer, uint32_t axis, uint64_t first)
{
    const uint64_t count = extent(printer, axis);

    for (uint64_t i = 0; i < count; i++) {
        char text[ELEMENT_BYTES], padded[2 * ELEMENT_BYTES];
        if (skips(printer, axis) && i == EDGE) {
            put_word(printer, "...", axis, false);
            i = count - EDGE;
        }
        (void)write_element(printer, first + i * printer->stride[axis], text);
        (void)snprintf(padded, sizeof padded, "%*s", printer->width, text);
        put_word(printer, padded, axis, i == 0);
    }
    fprintf(printer->file, "%*s", printer->blanks, "");
    printer->blanks = 0;
}

static void print_axis(struct printer *printer, uint32_t axis, uint64_t first)
{
    const uint32_t inner = printer->tensor->shape.rank - axis - 1; /* axes */

    fputc('[', printer->file);
    printer->column++;
    if (inner == 0)
        print_row(printer, axis, first);
    for (uint64_t i = 0; inner > 0 && i < extent(printer, axis); i++) {
        if (i > 0)
            break_lines(printer, axis, inner);
        if (skips(printer, axis) && i == EDGE) {
            fputs("...", printer->file);
            break_lines(printer, axis, inner);
            i = extent(printer, axis) - EDGE;
        }
        print_axis(printer, axis + 1, first + i * printer->stride[axis]);
    }
    fputc(']', printer->file);
    printer->column++;
}

void print_array(const struct sumac_tensor *tensor, FILE *file)
{
    uint64_t elements = 1;
    struct printer printer = {.tensor = tensor, .file = file};

    for (uint32_t axis = tensor->shape.rank; axis-- > 0;) {
        printer.stride[axis] = elements;
        elements *= tensor->shape.extent[axis];
    }
    printer.shortened = elements > PRINT_ARRAY_ELEMENTS_MAX;
    if (elements == 0) {
        fputs("[]\n", file);
        return;
    }
    lay_out(&printer);
    if (tensor->shape.rank == 0) {
        char text[ELEMENT_BYTES];
        (void)write_element(&printer, 0, text);
        fputs(text, file);
    } else {
        print_axis(&printer, 0, 0);
    }
    fputc('\n', file);
}

/* ---- as JSON */

static void print_json_element(const struct sumac_tensor *tensor, uint64_t index, FILE *file)
{
    char text[NUMBER_BYTES];

    if (tensor->dtype == SUMAC_BOOL)
        fputs(bool_at(tensor, index) ? "true" : "false", file);
    else if (!sumac_dtype_is_float(tensor->dtype))
        fputs(number_print_integer(tensor, index, text), file);
    else if (!isfinite(number_at(tensor, index)))
        fputs("null", file);
    else
        fputs(number_print(tensor->dtype, number_at(tensor, index), text), file);
}

/* The elements from *next on, nested from `axis` inwards; a line for each row of the innermost. */
static void
print_nested(const struct sumac_tensor *tensor, uint32_t axis, uint64_t *next, FILE *file)
{
    if (axis == tensor->shape.rank) {
        print_json_element(tensor, (*next)++, file);
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
