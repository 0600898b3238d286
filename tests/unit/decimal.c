/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.c (test) -- a decimal number becomes the double that is nearest. */
#include <inttypes.h>

#include "unit.h"
#include "assert_number.h"
#include "decimal.h"

static double read_whole(const char *text)
{
    double number = -1;

    if (!decimal_read(text, strlen(text), &number))
        fail_msg("%s is refused", text);
    return number;
}

/* What strtod reads of the same text, in the locale that a program begins with. */
TEST(numbers_are_the_nearest)
{
    static const char *const texts[] = {
        "0",
        "1",
        "0.1",
        "1e-4",
        "12.5",
        ".5",
        "5.",
        "0.001",
        "1E+3",
        "000001",
        "0.000e99999999999",
        "9007199254740993",
        "9007199254740992.5",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "3.4028234663852886e38",
        "9999999999999999999",
        "1e22",
        "1e23",
        "8.5e-7",
        "0.3333333333333333",
        "1e-400",
        "4e-310"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) /* given, when, then */
        assert_number_equal(read_whole(texts[i]), strtod(texts[i], NULL));
}

TEST(any_number_is_the_nearest)
{
    uint64_t bits = 1;

    for (int i = 0; i < 20000; i++) {
        char text[64]; /* given */
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        const int exponent = (int)(bits >> 40) % 600 - 310;
        snprintf(text, sizeof text, "%" PRIu64 "e%d", bits >> 4, exponent - 18);
        const double expected = strtod(text, NULL);
        if (expected < 2.3e-308 || expected > 1.7e308)
            continue;

        assert_number_equal(read_whole(text), expected); /* when, then */
    }
}

TEST(what_is_no_number_is_refused)
{
    static const char *const texts[] = {
        "",
        ".",
        "e5",
        "1e",
        "1e+",
        "1x",
        "1.2.3",
        "-1",
        "+1",
        " 1",
        "1 ",
        "nan",
        "inf",
        "0x10",
        "1e309",
        "1e999999999999",
        "12345678901234567890",
        "1,5"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double kept = 7; /* given */

        if (decimal_read(texts[i], strlen(texts[i]), &kept)) /* when */
            fail_msg("%s is read as %g", texts[i], kept);
        assert_number_equal(kept, 7); /* then */
    }
}
