/* SPDX-License-Identifier: Apache-2.0 */
/* assert_number.h -- a number is the one that was expected, to the last bit but for the sign of 0.
 *
 * CMocka's assert_float_equal asks whether the difference is beyond its bound, and that of a NaN
 * never is: it passes for any. */
#pragma once

#include <stdbool.h>

#include "unit.h"

static inline bool number_is(double given, double expected) { return given == expected; }

#define assert_number_equal(given, expected)                                                       \
    do {                                                                                           \
        const double number = (double)(given), right = (double)(expected);                         \
        if (!number_is(number, right))                                                             \
            fail_msg("%.17g is given, and %.17g was expected", number, right);                     \
    } while (false)
