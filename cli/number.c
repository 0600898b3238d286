/* SPDX-License-Identifier: Apache-2.0 */
/* number.c -- numbers of a tensor, and their shortest text.
 *
 * Digits are tried from the most that every decimal number of so many survives in the dtype
 * (FLT_DIG): where fewer are enough, %g leaves them out itself. Below the smallest normal number
 * they are fewer, and all are tried.
 */
#include "number.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "half.h"
#include "text.h"

/* A float dtype's: the number at `at`; is the text that number again? */
#define NUMBER_FLOAT(name, type, parse)                                                            \
    static double read_##name(const uint8_t *at)                                                   \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return (double)value;                                                                      \
    }                                                                                              \
    static bool reads_as_##name(const char *text, double value)                                    \
    {                                                                                              \
        return parse(text, NULL) == (type)value;                                                   \
    }
#define NUMBER_HALF(name)                                                                          \
    static double read_##name(const uint8_t *at)                                                   \
    {                                                                                              \
        uint16_t half;                                                                             \
        memcpy(&half, at, sizeof half);                                                            \
        return (double)HALF_WIDEN_##name(half);                                                    \
    }                                                                                              \
    static bool reads_as_##name(const char *text, double value)                                    \
    {                                                                                              \
        return HALF_NARROW_##name((float)strtod(text, NULL)) == HALF_NARROW_##name((float)value);  \
    }
NUMBER_HALF(float16)
NUMBER_HALF(bfloat16)
NUMBER_FLOAT(float32, float, strtof)
NUMBER_FLOAT(float64, double, strtod)

static const struct {
    double (*read)(const uint8_t *at);
    bool (*reads_as)(const char *text, double value);
    int digits;        /* decimal digits that every number of so many survives in it */
    double normal_min; /* its smallest normal number */
} floats[DTYPES_MAX + 1] = {
    [SUMAC_FLOAT16] = {read_float16, reads_as_float16, 3, 0x1p-14},
    [SUMAC_BFLOAT16] = {read_bfloat16, reads_as_bfloat16, 2, (double)FLT_MIN},
    [SUMAC_FLOAT32] = {read_float32, reads_as_float32, FLT_DIG, (double)FLT_MIN},
    [SUMAC_FLOAT64] = {read_float64, reads_as_float64, DBL_DIG, DBL_MIN},
};

static const uint8_t *place_of(const struct sumac_tensor *tensor, uint64_t element)
{
    return (const uint8_t *)sumac_tensor_data(tensor) + element * sumac_dtype_bytes(tensor->dtype);
}

double number_at(const struct sumac_tensor *tensor, uint64_t element)
{
    assert(floats[tensor->dtype].read != NULL);
    return floats[tensor->dtype].read(place_of(tensor, element));
}

bool number_reads_as(enum sumac_dtype dtype, const char *text, double value)
{
    return floats[dtype].reads_as(text, value);
}

/* Little-endian, as everything is that a ps has: the bytes that are not there are the sign's. */
const char *
number_print_integer(const struct sumac_tensor *tensor, uint64_t element, char text[NUMBER_BYTES])
{
    const uint32_t bytes = sumac_dtype_bytes(tensor->dtype);
    const uint8_t *at = place_of(tensor, element);
    const bool negative =
        sumac_dtype_kind(tensor->dtype) == SUMAC_KIND_INT && (at[bytes - 1] & 0x80u) != 0;
    uint64_t bits = negative ? UINT64_MAX : 0;

    memcpy(&bits, at, bytes);
    if (negative)
        (void)text_print(text, NUMBER_BYTES, "%" PRId64, (int64_t)bits);
    else
        (void)text_print(text, NUMBER_BYTES, "%" PRIu64, bits);
    return text;
}

const char *number_print(enum sumac_dtype dtype, double value, char text[NUMBER_BYTES])
{
    int digits = fabs(value) < floats[dtype].normal_min ? 1 : floats[dtype].digits;

    (void)text_print(text, NUMBER_BYTES, "%.*g", digits, value);
    while (digits < DBL_DECIMAL_DIG && !number_reads_as(dtype, text, value))
        (void)text_print(text, NUMBER_BYTES, "%.*g", ++digits, value);
    if (strpbrk(text, ".e") == NULL)
        (void)text_print(text + strlen(text), NUMBER_BYTES - strlen(text), ".0");
    return text;
}
