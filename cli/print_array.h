/* SPDX-License-Identifier: Apache-2.0 */
/* print_array.h -- a tensor's values as NumPy prints them. */
#pragma once

#include <stdio.h>

#include "sumac/tensor.h"

#define PRINT_ARRAY_ELEMENTS_MAX                                                                   \
    1000 /* of more, the first and last three along each axis are shown */

/* As numpy.array2string does with its defaults: aligned columns, 75 characters a line, the fewest
 * digits that tell the numbers of the dtype apart, at most eight after the point. A newline ends
 * it. Borrows  the tensor; its place is HOST. */
void print_array(const struct sumac_tensor *tensor, FILE *file);
