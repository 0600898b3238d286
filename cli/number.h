/* SPDX-License-Identifier: Apache-2.0 */
/* number.h -- numbers of a tensor, and their shortest text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/tensor.h"

#define NUMBER_BYTES 32

/* The element, of a dtype that is a float; its place is HOST. */
double number_at(const struct sumac_tensor *tensor, uint64_t element);

/* The element, of a dtype that is an integer. Lends  text. */
const char *
number_print_integer(const struct sumac_tensor *tensor, uint64_t element, char text[NUMBER_BYTES]);

/* Is the text the number again, in its dtype? */
bool number_reads_as(enum sumac_dtype dtype, const char *text, double value);

/* A finite number in the fewest digits that read back as the same number of that dtype: 0.1, 1.0,
 * 1e-07. It has a point or an exponent, and is a number of JSON. Lends  text. */
const char *number_print(enum sumac_dtype dtype, double value, char text[NUMBER_BYTES]);
