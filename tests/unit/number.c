/* SPDX-License-Identifier: Apache-2.0 */
/* number.c -- floating numbers in the fewest digits that read back as the same. */
#include <math.h>

#include "unit.h"
#include "half.h"
#include "number.h"

static void prints(enum sumac_dtype dtype, double value, const char *expected)
{
    char text[NUMBER_BYTES];

    assert_string_equal(number_print(dtype, value, text), expected);
}

TEST(a_float32_has_the_digits_of_a_float32)
{
    prints(SUMAC_FLOAT32, (double)0.1f, "0.1");
    prints(SUMAC_FLOAT32, (double)0.05888345f, "0.05888345");
    prints(SUMAC_FLOAT32, (double)1e-7f, "1e-07");
    prints(SUMAC_FLOAT32, (double)16777217.0f, "16777216.0");
    prints(SUMAC_FLOAT32, (double)3.4028235e38f, "3.4028235e+38");
    prints(SUMAC_FLOAT32, 0x1p-149, "1e-45");
}

TEST(a_float64_has_those_of_a_float64)
{
    prints(SUMAC_FLOAT64, 0.1, "0.1");
    prints(SUMAC_FLOAT64, 1e-7, "1e-07");
    prints(SUMAC_FLOAT64, 0.1 + 0.2, "0.30000000000000004");
    prints(SUMAC_FLOAT64, (double)0.1f, "0.10000000149011612");
    prints(SUMAC_FLOAT64, 5e-324, "5e-324");
    prints(SUMAC_FLOAT64, -1.7976931348623157e308, "-1.7976931348623157e+308");
}

TEST(halves_have_few)
{
    prints(SUMAC_FLOAT16, (double)float32_of_float16(float16_of_float32(0.1f)), "0.1");
    prints(SUMAC_FLOAT16, 65504, "6.55e+04");
    prints(SUMAC_BFLOAT16, (double)float32_of_bfloat16(bfloat16_of_float32(0.3f)), "0.3");
}

TEST(a_whole_number_is_still_a_float)
{
    prints(SUMAC_FLOAT32, 0, "0.0");
    prints(SUMAC_FLOAT32, (double)-0.0f, "-0.0");
    prints(SUMAC_FLOAT64, 3, "3.0");
}

/* One digit less would be another number. */
static void assert_shortest(enum sumac_dtype dtype, double value)
{
    char text[NUMBER_BYTES], shorter[400];

    number_print(dtype, value, text);
    assert_true(number_reads_as(dtype, text, value));
    int digits = 0;
    for (const char *at = text; *at != '\0' && *at != 'e'; at++)
        digits += *at >= '1' && *at <= '9';
    for (int fewer = 1; fewer < digits; fewer++) {
        snprintf(shorter, sizeof shorter, "%.*g", fewer, value);
        assert_false(number_reads_as(dtype, shorter, value));
    }
}

TEST(no_digit_is_too_many)
{
    uint64_t bits = 1;

    for (uint32_t half = 0; half < 65536; half += 41) {
        const double wide = (double)float32_of_float16((uint16_t)half);
        const double brief = (double)float32_of_bfloat16((uint16_t)half);
        if (isfinite(wide))
            assert_shortest(SUMAC_FLOAT16, wide);
        if (isfinite(brief))
            assert_shortest(SUMAC_BFLOAT16, brief);
    }
    for (int i = 0; i < 2000; i++) {
        double large;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&large, &bits, sizeof large);
        const float single = float32_of_bits((uint32_t)(bits >> 32));
        if (isfinite(large))
            assert_shortest(SUMAC_FLOAT64, large);
        if (isfinite(single))
            assert_shortest(SUMAC_FLOAT32, (double)single);
    }
}
