/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c -- tensors of conformance cases: their bytes, and when two of them are equal. */
#include "tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

static const char *const tensor_keys[] = {"dtype", "shape", "data", NULL};

static bool read_shape(struct cases_run *run, const json_t *given, struct sumac_shape *shape)
{
    if (!json_is_array(given) || json_array_size(given) > SUMAC_RANK_MAX)
        return cases_fail(run, "a tensor's shape is no list of at most %d", SUMAC_RANK_MAX);
    *shape = (struct sumac_shape){.rank = (uint32_t)json_array_size(given)};
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        shape->extent[axis] = (uint64_t)json_integer_value(json_array_get(given, axis));
    return true;
}

static bool read_float(const json_t *value, double *number)
{
    if (json_is_number(value)) {
        *number = json_number_value(value);
        return true;
    }
    const char *text = json_string_value(value);
    if (text == NULL)
        return false;
    *number = strcmp(text, "nan") == 0   ? (double)NAN
              : strcmp(text, "inf") == 0 ? (double)INFINITY
                                         : -(double)INFINITY;
    return strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0;
}

/* A whole number as its 64 bits, two's complement below 0. */
static bool read_integer(const json_t *value, uint64_t *bits)
{
    if (json_is_boolean(value)) {
        *bits = json_is_true(value);
        return true;
    }
    if (json_is_integer(value)) {
        *bits = (uint64_t)json_integer_value(value);
        return true;
    }
    const char *text = json_string_value(value);
    if (text == NULL || text[0] == '\0')
        return false;
    char *end = NULL;
    errno = 0;
    *bits = text[0] == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Write one element. Little-endian machines only, as on the wire: the low bytes of an integer come
 * first. */
static bool write_element(enum sumac_dtype dtype, const json_t *value, uint8_t *out)
{
    double number = 0;
    uint64_t bits = 0;

    if (sumac_dtype_is_float(dtype) ? !read_float(value, &number) : !read_integer(value, &bits))
        return false;
    const float single = (float)number;
    if (dtype == SUMAC_FLOAT64)
        memcpy(&bits, &number, sizeof number);
    else if (dtype == SUMAC_FLOAT32)
        memcpy(&bits, &single, sizeof single);
    else if (dtype == SUMAC_FLOAT16)
        bits = float16_of_float32(single);
    else if (dtype == SUMAC_BFLOAT16)
        bits = bfloat16_of_float32(single);
    memcpy(out, &bits, sumac_dtype_bytes(dtype));
    return true;
}

bool case_tensor_read(struct cases_run *run, json_t *value, struct case_tensor *tensor)
{
    *tensor = (struct case_tensor){0};
    if (!json_is_object(value) || !cases_keys_known(run, value, "a tensor", tensor_keys))
        return cases_fail(run, "not a tensor");
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    json_t *data = json_object_get(value, "data");
    tensor->dtype = dtype != NULL ? sumac_dtype_parse(dtype) : SUMAC_DTYPE_UNSPECIFIED;
    if (!read_shape(run, json_object_get(value, "shape"), &tensor->shape))
        return false;
    if (sumac_shape_size(&tensor->shape, tensor->dtype, &tensor->elements, &tensor->bytes) !=
            SUMAC_OK ||
        tensor->elements != json_array_size(data))
        return cases_fail(run, "a tensor's dtype, shape and data do not go together");
    uint8_t *bytes = malloc(tensor->bytes > 0 ? (size_t)tensor->bytes : 1);
    if (bytes == NULL)
        return cases_fail(run, "no memory for a tensor");
    const size_t element_bytes = sumac_dtype_bytes(tensor->dtype);
    for (size_t i = 0; i < tensor->elements; i++) {
        if (!write_element(tensor->dtype, json_array_get(data, i), bytes + i * element_bytes)) {
            free(bytes);
            return cases_fail(run, "element %zu of a tensor is no %s", i, dtype);
        }
    }
    tensor->data = bytes;
    return true;
}

void case_tensor_deinit(struct case_tensor *tensor)
{
    free(tensor->data);
    *tensor = (struct case_tensor){0};
}

static double read_element(enum sumac_dtype dtype, const uint8_t *at)
{
    double number = 0;
    float single = 0;
    uint16_t half = 0;

    if (dtype == SUMAC_FLOAT64) {
        memcpy(&number, at, sizeof number);
        return number;
    }
    if (dtype == SUMAC_FLOAT32) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&half, at, sizeof half);
    return (double)(dtype == SUMAC_FLOAT16 ? float32_of_float16(half) : float32_of_bfloat16(half));
}

/* How far an element may be off, of its own magnitude. */
static double find_tolerance(enum sumac_dtype dtype)
{
    return dtype == SUMAC_FLOAT64   ? 1e-12
           : dtype == SUMAC_FLOAT32 ? 1e-5
           : dtype == SUMAC_FLOAT16 ? 2e-3
                                    : 2e-2;
}

/* Where elements cancel, as in θ − η·g, the error is that of what they were computed from, which
 * is about as large as the tensor's other elements: a tenth of the tolerance of the largest one is
 * always granted. For float32 that is 16 roundings. */
#define FLOOR 0.1

/* The largest magnitude of a tensor's finite elements. */
static double find_largest(const struct case_tensor *tensor)
{
    const size_t bytes = sumac_dtype_bytes(tensor->dtype);
    double largest = 0;

    for (size_t i = 0; i < tensor->elements; i++) {
        const double number =
            read_element(tensor->dtype, (const uint8_t *)tensor->data + i * bytes);
        if (isfinite(number))
            largest = fmax(largest, fabs(number));
    }
    return largest;
}

/* Two zeros are equal if their signs are. The first comparison takes in equal infinities. */
static bool close_enough(double tolerance, double expected, double actual, double largest)
{
    if (expected == actual)
        return expected != 0 || signbit(expected) == signbit(actual);
    if (isnan(expected) && isnan(actual))
        return true;
    return isfinite(expected) && isfinite(actual) &&
           fabs(actual - expected) <= tolerance * fmax(fabs(expected), FLOOR * largest);
}

/* An integer's value, or a bool's; of 64 unsigned bits as if they were signed. */
static int64_t read_whole(enum sumac_dtype dtype, const uint8_t *at)
{
    const size_t bytes = sumac_dtype_bytes(dtype);
    const unsigned unused = (unsigned)(8 * (sizeof(uint64_t) - bytes));
    uint64_t bits = 0;

    memcpy(&bits, at, bytes);
    return sumac_dtype_kind(dtype) == SUMAC_KIND_INT ? (int64_t)(bits << unused) >> unused
                                                     : (int64_t)bits;
}

static bool fail_of_integer(
    struct cases_run *run, const char *what, size_t i, enum sumac_dtype dtype,
    const uint8_t *wanted, const uint8_t *got)
{
    return cases_fail(
        run, "expected %s[%zu] to be %" PRId64 ", got %" PRId64, what, i, read_whole(dtype, wanted),
        read_whole(dtype, got));
}

bool case_tensor_equal(
    struct cases_run *run, const char *what, const struct case_tensor *expected, const void *actual,
    bool exactly)
{
    const size_t element_bytes = sumac_dtype_bytes(expected->dtype);
    const bool floats = sumac_dtype_is_float(expected->dtype);
    const double largest = floats ? find_largest(expected) : 0;
    const double tolerance = exactly || !floats ? 0 : find_tolerance(expected->dtype);

    for (size_t i = 0; i < expected->elements; i++) {
        const uint8_t *wanted = (const uint8_t *)expected->data + i * element_bytes;
        const uint8_t *got = (const uint8_t *)actual + i * element_bytes;
        if (!floats) {
            if (memcmp(wanted, got, element_bytes) != 0)
                return fail_of_integer(run, what, i, expected->dtype, wanted, got);
            continue;
        }
        const double should = read_element(expected->dtype, wanted);
        const double is = read_element(expected->dtype, got);
        if (!close_enough(tolerance, should, is, largest))
            return cases_fail(run, "expected %s[%zu] to be %.17g, got %.17g", what, i, should, is);
    }
    return true;
}
