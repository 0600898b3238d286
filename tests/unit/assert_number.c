/* SPDX-License-Identifier: Apache-2.0 */
/* assert_number.c -- what is no number is not the one that was expected. */
#include <math.h>

#include "assert_number.h"

TEST(a_number_is_itself_and_nan_is_none)
{
    assert_true(number_is(0.25, 0.25));
    assert_true(number_is(-0.0, 0.0));
    assert_false(number_is(nextafter(1, 2), 1));
    assert_false(number_is((double)NAN, 0));
    assert_false(number_is(0, (double)NAN));
    assert_false(number_is((double)INFINITY, (double)-INFINITY));
}
