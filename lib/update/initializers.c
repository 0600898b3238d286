/* SPDX-License-Identifier: Apache-2.0 */
/* initializers.c -- what a new variable holds, any run of its elements at a time. */
#include "update.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "half.h"
#include "random.h"
#include "text.h"

#define RUN_ELEMENTS 256u /* drawn at a time; an even number */

/* An element made of a number that fits, and the number that it is. */
#define MADE_BOOL(name, value) (uint8_t)(value)
#define MADE_INT(name, value) (name##_t)(value)
#define MADE_UINT(name, value) (name##_t)(value)
#define MADE_HALF(name, value) HALF_NARROW_##name((float)(value))
#define MADE_FLOAT(name, value) (ELEMENT_##name)(value)
#define NUMBER_BOOL(name, element) (double)(element)
#define NUMBER_INT(name, element) (double)(element)
#define NUMBER_UINT(name, element) (double)(element)
#define NUMBER_HALF(name, element) (double)HALF_WIDEN_##name(element)
#define NUMBER_FLOAT(name, element) (double)(element)

/* For each dtype: the number that an element holds once it is made of `value`; and `count` elements
 * made of as many numbers, one after the other. */
#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    static double rounded_##NAME(double value)                                                     \
    {                                                                                              \
        const ELEMENT_##kind(name) element = MADE_##kind(name, value);                             \
        return NUMBER_##kind(name, element);                                                       \
    }                                                                                              \
    static void store_##NAME(const double *restrict values, size_t count, uint8_t *restrict out)   \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            const ELEMENT_##kind(name) element = MADE_##kind(name, values[i]);                     \
            memcpy(out + i * sizeof element, &element, sizeof element);                            \
        }                                                                                          \
    }
SUMAC_DTYPE_LIST(X)
#undef X

static const struct {
    double (*rounded)(double value);
    void (*store)(const double *restrict values, size_t count, uint8_t *restrict out);
} elements[DTYPES_MAX + 1] = {
#define X(NAME, number, bytes, kind, name, numpy) [number] = {rounded_##NAME, store_##NAME},
    SUMAC_DTYPE_LIST(X)
#undef X
};

/* May an element of `dtype` be made of this number without losing more than a float's rounding
 * does? */
static bool fits(enum sumac_dtype dtype, double value)
{
    if (!isfinite(value))
        return false;
    const enum sumac_dtype_kind kind = sumac_dtype_kind(dtype);
    if (kind == SUMAC_KIND_HALF || kind == SUMAC_KIND_FLOAT)
        return isfinite(elements[dtype].rounded(value));
    if (kind == SUMAC_KIND_BOOL)
        return value == 0 || value == 1;
    const bool has_sign = kind == SUMAC_KIND_INT;
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
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "initializer %s makes floats, the variable is of type %s", name,
            sumac_dtype_name(dtype));
    if (!fits(dtype, a) || !fits(dtype, b) || (uniform && !isfinite(b - a)))
        return fail_invalid(
            error, SUMAC_REASON_BAD_INITIALIZER,
            "initializer %s with a = %.9g and b = %.9g is beyond %s", name, a, b,
            sumac_dtype_name(dtype));
    if (uniform && b <= a)
        return fail_invalid(
            error, SUMAC_REASON_BAD_INITIALIZER,
            "initializer uniform needs a < b, given a = %.9g and b = %.9g", a, b);
    if (!uniform && b <= 0)
        return fail_invalid(
            error, SUMAC_REASON_BAD_INITIALIZER,
            "initializer normal needs a standard deviation b > 0, given %.9g", b);
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
        return fail_invalid(
            error, SUMAC_REASON_BAD_INITIALIZER,
            "initializer constant with a = %s does not fit in %s", text_double(initializer->a).text,
            sumac_dtype_name(dtype));
    case WIRE_INITIALIZER_UNIFORM:
    case WIRE_INITIALIZER_NORMAL:
        return check_random(initializer, dtype, error);
    default:
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED, "initializer number %d is not known here",
            (int)initializer->kind);
    }
}

/* Elements 2·pair, 2·pair + 1, …: `count` of them, even. */
static void draw(
    const wire_initializer *initializer, enum sumac_dtype dtype, uint64_t pair,
    double *restrict values, size_t count)
{
    const double a = initializer->a, b = initializer->b;
    const uint64_t seed = initializer->seed;

    assert(count % 2 == 0);
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
        const double value = elements[dtype].rounded(a + (b - a) * values[i]);
        /* The interval is open at b, but rounding may arrive there. */
        values[i] = value < b ? value : a;
    }
}

void initializer_fill(
    const wire_initializer *initializer, enum sumac_dtype dtype, uint64_t first, uint64_t count,
    void *out)
{
    const int kind = (int)initializer->kind;
    const bool random = kind == WIRE_INITIALIZER_UNIFORM || kind == WIRE_INITIALIZER_NORMAL;
    const size_t element_bytes = sumac_dtype_bytes(dtype);
    uint8_t *to = out;
    double values[RUN_ELEMENTS];

    assert(element_bytes > 0);
    assert(!random || sumac_dtype_is_float(dtype));
    if (!random && kind != WIRE_INITIALIZER_ONES && kind != WIRE_INITIALIZER_CONSTANT) {
        memset(out, 0, count * element_bytes);
        return;
    }
    for (size_t i = 0; i < RUN_ELEMENTS; i++)
        values[i] = kind == WIRE_INITIALIZER_CONSTANT ? initializer->a : 1;
    assert(random || fits(dtype, values[0]));
    while (count > 0) {
        const size_t skipped = first & 1u;
        const size_t drawn = count + skipped < RUN_ELEMENTS
                                 ? ((size_t)count + skipped + 1) & ~(size_t)1
                                 : RUN_ELEMENTS;
        const size_t used = count < drawn - skipped ? (size_t)count : drawn - skipped;
        assert(used > 0 && skipped + used <= drawn);
        if (random)
            draw(initializer, dtype, first / 2, values, drawn);
        elements[dtype].store(values + skipped, used, to);
        first += used;
        count -= used;
        to += used * element_bytes;
    }
}
