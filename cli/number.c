/* SPDX-License-Identifier: Apache-2.0 */
/* number.c -- floating numbers of a tensor, and their shortest text.
 *
 * Digits are tried from the most that every decimal number of so many survives in the dtype (FLT_DIG): where fewer are enough, %g
 * leaves them out itself. Below the smallest normal number they are fewer, and all are tried.
 */
#include "number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "text.h"

double number_at(const struct sumac_tensor *tensor, uint64_t element)
{
    const uint8_t *at =
        (const uint8_t *)sumac_tensor_data(tensor) + element * sumac_dtype_bytes(tensor->dtype);
    uint16_t half = 0;
    float single = 0;
    double value = 0;
    switch (tensor->dtype) {
    case SUMAC_FLOAT16:
        memcpy(&half, at, sizeof half);
        return (double)float32_of_float16(half);
    case SUMAC_BFLOAT16:
        memcpy(&half, at, sizeof half);
        return (double)float32_of_bfloat16(half);
    case SUMAC_FLOAT32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    default:
        memcpy(&value, at, sizeof value);
        return value;
    }
}

bool number_reads_as(enum sumac_dtype dtype, const char *text, double value)
{
    const double read = strtod(text, NULL);
    switch (dtype) {
    case SUMAC_FLOAT16:
        return float16_of_float32((float)read) == float16_of_float32((float)value);
    case SUMAC_BFLOAT16:
        return bfloat16_of_float32((float)read) == bfloat16_of_float32((float)value);
    case SUMAC_FLOAT32:
        return strtof(text, NULL) == (float)value;
    default:
        return read == value;
    }
}

/* The fewest digits worth a try, and the smallest normal number. */
static int first_digits(enum sumac_dtype dtype, double value)
{
    const double magnitude = fabs(value);
    switch (dtype) {
    case SUMAC_FLOAT16:
        return magnitude < 0x1p-14 ? 1 : 3;
    case SUMAC_BFLOAT16:
        return magnitude < (double)FLT_MIN ? 1 : 2;
    case SUMAC_FLOAT32:
        return magnitude < (double)FLT_MIN ? 1 : FLT_DIG;
    default:
        return magnitude < DBL_MIN ? 1 : DBL_DIG;
    }
}

const char *number_print(enum sumac_dtype dtype, double value, char text[NUMBER_BYTES])
{
    int digits = first_digits(dtype, value);
    text_print(text, NUMBER_BYTES, "%.*g", digits, value);
    while (digits < DBL_DECIMAL_DIG && !number_reads_as(dtype, text, value))
        text_print(text, NUMBER_BYTES, "%.*g", ++digits, value);
    if (strpbrk(text, ".e") == NULL)
        text_print(text + strlen(text), NUMBER_BYTES - strlen(text), ".0");
    return text;
}
