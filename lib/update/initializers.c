/* SPDX-License-Identifier: Apache-2.0 */
/* initializers.c -- what a new variable holds, any run of its elements at a time. */
#include "update.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error.h"
#include "half.h"
#include "random.h"

#define RUN_ELEMENTS 256u /* drawn at once, even */

/* `value` rounded to a float type. */
static double rounded(enum sumac_dtype dtype, double value)
{
    switch (dtype) {
    case SUMAC_FLOAT16:
        return (double)float32_of_float16(float16_of_float32((float)value));
    case SUMAC_BFLOAT16:
        return (double)float32_of_bfloat16(bfloat16_of_float32((float)value));
    case SUMAC_FLOAT32:
        return (double)(float)value;
    default:
        return value;
    }
}

/* May an element of `dtype` be made of this number without losing more than a float's rounding
 * does? */
static bool fits(enum sumac_dtype dtype, double value)
{
    if (!isfinite(value))
        return false;
    if (sumac_dtype_is_float(dtype))
        return isfinite(rounded(dtype, value));
    if (dtype == SUMAC_BOOL)
        return value == 0 || value == 1;
    const bool has_sign = dtype >= SUMAC_INT8 && dtype <= SUMAC_INT64;
    const int bits = 8 * (int)sumac_dtype_bytes(dtype);
    const double beyond = ldexp(1, has_sign ? bits - 1 : bits);
    return value == floor(value) && value < beyond && value >= (has_sign ? -beyond : 0);
}

static enum sumac_status
check_random(const wire_initializer *initializer, enum sumac_dtype dtype, struct sumac_error *error)
{
    const bool uniform = (int)initializer->kind == WIRE_INITIALIZER_UNIFORM;
    const char *const name = uniform ? "uniform" : "normal";
    const double a = initializer->a, b = initializer->b;
    if (!sumac_dtype_is_float(dtype))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "initializer %s makes floats, the variable is of type %s", name,
            sumac_dtype_name(dtype));
    if (!fits(dtype, a) || !fits(dtype, b) || (uniform && !isfinite(b - a)))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_INITIALIZER,
            "initializer %s with a = %.9g and b = %.9g is beyond %s", name, a, b,
            sumac_dtype_name(dtype));
    if (uniform && b < a)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_INITIALIZER,
            "initializer uniform needs a <= b, given a = %.9g and b = %.9g", a, b);
    if (!uniform && b < 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_INITIALIZER,
            "initializer normal needs a standard deviation b >= 0, given %.9g", b);
    return SUMAC_OK;
}

enum sumac_status initializer_check(
    const wire_initializer *initializer, enum sumac_dtype dtype, struct sumac_error *error)
{
    switch ((int)initializer->kind) {
    case WIRE_INITIALIZER_ZEROS:
    case WIRE_INITIALIZER_ONES:
    case WIRE_INITIALIZER_ASSIGNED:
        return SUMAC_OK;
    case WIRE_INITIALIZER_CONSTANT:
        if (fits(dtype, initializer->a))
            return SUMAC_OK;
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_INITIALIZER,
            "initializer constant with a = %.17g does not fit in %s", initializer->a,
            sumac_dtype_name(dtype));
    case WIRE_INITIALIZER_UNIFORM:
    case WIRE_INITIALIZER_NORMAL:
        return check_random(initializer, dtype, error);
    default:
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSUPPORTED,
            "initializer number %d is not known here", (int)initializer->kind);
    }
}

/* Elements as they lie in memory, of any type; a number that fits. */
static void
store(enum sumac_dtype dtype, const double *restrict values, size_t count, uint8_t *restrict out)
{
#define STORE(type, element)                                                                       \
    for (size_t i = 0; i < count; i++) {                                                           \
        const type stored = (element);                                                             \
        memcpy(out + i * sizeof stored, &stored, sizeof stored);                                   \
    }                                                                                              \
    break
    switch (dtype) {
    case SUMAC_INT8:
        STORE(int8_t, (int8_t)values[i]);
    case SUMAC_INT16:
        STORE(int16_t, (int16_t)values[i]);
    case SUMAC_INT32:
        STORE(int32_t, (int32_t)values[i]);
    case SUMAC_INT64:
        STORE(int64_t, (int64_t)values[i]);
    case SUMAC_BOOL:
    case SUMAC_UINT8:
        STORE(uint8_t, (uint8_t)values[i]);
    case SUMAC_UINT16:
        STORE(uint16_t, (uint16_t)values[i]);
    case SUMAC_UINT32:
        STORE(uint32_t, (uint32_t)values[i]);
    case SUMAC_UINT64:
        STORE(uint64_t, (uint64_t)values[i]);
    case SUMAC_FLOAT16:
        STORE(uint16_t, float16_of_float32((float)values[i]));
    case SUMAC_BFLOAT16:
        STORE(uint16_t, bfloat16_of_float32((float)values[i]));
    case SUMAC_FLOAT32:
        STORE(float, (float)values[i]);
    case SUMAC_FLOAT64:
        STORE(double, values[i]);
    default:
        assert(false);
    }
#undef STORE
}

/* Elements 2·pair, 2·pair + 1, …: `count` of them, even. */
static void draw(
    const wire_initializer *initializer, enum sumac_dtype dtype, uint64_t pair,
    double *restrict values, size_t count)
{
    const double a = initializer->a, b = initializer->b;
    const uint64_t seed = initializer->seed;
    if ((int)initializer->kind == WIRE_INITIALIZER_NORMAL) {
        for (size_t i = 0; i < count; i += 2)
            random_normal_pair(seed, pair + i / 2, &values[i]);
        for (size_t i = 0; i < count; i++)
            values[i] = a + b * values[i];
        return;
    }
    for (size_t i = 0; i < count; i += 2)
        random_uniform_pair(seed, pair + i / 2, &values[i]);
    for (size_t i = 0; i < count; i++) {
        const double value = rounded(dtype, a + (b - a) * values[i]);
        /* The interval is open at b, but rounding may arrive there. */
        values[i] = value < b ? value : a;
    }
}

static void fill_random(
    const wire_initializer *initializer, enum sumac_dtype dtype, uint64_t first, uint64_t count,
    uint8_t *out)
{
    double values[RUN_ELEMENTS];
    const size_t element_bytes = sumac_dtype_bytes(dtype);
    while (count > 0) {
        const size_t skipped = first & 1u;
        const size_t drawn = count + skipped < RUN_ELEMENTS
                                 ? ((size_t)count + skipped + 1) & ~(size_t)1
                                 : RUN_ELEMENTS;
        const size_t used = count < drawn - skipped ? (size_t)count : drawn - skipped;
        draw(initializer, dtype, first / 2, values, drawn);
        store(dtype, values + skipped, used, out);
        first += used;
        count -= used;
        out += used * element_bytes;
    }
}

static void fill_constant(double value, enum sumac_dtype dtype, uint64_t count, uint8_t *out)
{
    double values[RUN_ELEMENTS];
    for (size_t i = 0; i < RUN_ELEMENTS; i++)
        values[i] = value;
    while (count > 0) {
        const size_t used = count < RUN_ELEMENTS ? (size_t)count : RUN_ELEMENTS;
        store(dtype, values, used, out);
        count -= used;
        out += used * sumac_dtype_bytes(dtype);
    }
}

void initializer_fill(
    const wire_initializer *initializer, enum sumac_dtype dtype, uint64_t first, uint64_t count,
    void *out)
{
    switch ((int)initializer->kind) {
    case WIRE_INITIALIZER_UNIFORM:
    case WIRE_INITIALIZER_NORMAL:
        fill_random(initializer, dtype, first, count, out);
        break;
    case WIRE_INITIALIZER_ONES:
        fill_constant(1, dtype, count, out);
        break;
    case WIRE_INITIALIZER_CONSTANT:
        fill_constant(initializer->a, dtype, count, out);
        break;
    default:
        memset(out, 0, count * sumac_dtype_bytes(dtype));
    }
}
