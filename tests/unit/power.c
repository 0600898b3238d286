/* SPDX-License-Identifier: Apache-2.0 */
/* power.c (test) -- x^y at the ends of what a float64 holds. */
#include <math.h>

#include "unit.h"
#include "power.h"

TEST(a_power_is_right_to_the_ends_of_its_type)
{
    static const struct {
        double x, y, power;
    } known[] = {
        {4, 0.5, 2},
        {0, 0, 1},
        {0, 0.5, 0},
        {INFINITY, 0, 1},
        {INFINITY, 0.5, INFINITY},
        {2, 1010, 0x1p1010},
        {2, 1e300, INFINITY},
        {0.5, 1050, 0x1p-1050}, /* less than every normal number */
        {0.5, 1e300, 0},
        {0x1p-1050, 0.5, 0x1p-525},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const double power = power_real(known[i].x, known[i].y);
        if (!(power <= known[i].power * (1 + 0x1p-40) && power >= known[i].power * (1 - 0x1p-40)))
            fail_msg("%g to the %g is %g", known[i].x, known[i].y, power);
    }
}
