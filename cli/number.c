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

/* Of each float dtype: decimal digits that every number of so many survives in it, and its smallest
 * normal number. */
static const struct {
    int digits;
    double normal_min;
} floats[DTYPES_MAX + 1] = {
    [SUMAC_FLOAT16] = {3, 0x1p-14},
    [SUMAC_BFLOAT16] = {2, (double)FLT_MIN},
    [SUMAC_FLOAT32] = {FLT_DIG, (double)FLT_MIN},
    [SUMAC_FLOAT64] = {DBL_DIG, DBL_MIN},
};

static const uint8_t *place_of(const struct sumac_tensor *tensor, uint64_t element)
{
    return (const uint8_t *)sumac_tensor_data(tensor) + element * sumac_dtype_bytes(tensor->dtype);
}

double number_at(const struct sumac_tensor *tensor, uint64_t element)
{
    union {
        uint16_t half;
        float single;
        double wide;
    } bits = {.wide = 0};

    assert(floats[tensor->dtype].digits > 0);
    memcpy(&bits, place_of(tensor, element), sumac_dtype_bytes(tensor->dtype));
    if (tensor->dtype == SUMAC_FLOAT64)
        return bits.wide;
    if (tensor->dtype == SUMAC_FLOAT16)
        bits.single = float32_of_float16(bits.half);
    if (tensor->dtype == SUMAC_BFLOAT16)
        bits.single = float32_of_bfloat16(bits.half);
    return (double)bits.single;
}

bool number_reads_as(enum sumac_dtype dtype, const char *text, double value)
{
    const double read = strtod(text, NULL);

    assert(floats[dtype].digits > 0);
    if (dtype == SUMAC_FLOAT64)
        return read == value;
    if (dtype == SUMAC_FLOAT32)
        return strtof(text, NULL) == (float)value; /* rounded once */
    return dtype == SUMAC_FLOAT16
               ? float16_of_float32((float)read) == float16_of_float32((float)value)
               : bfloat16_of_float32((float)read) == bfloat16_of_float32((float)value);
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
