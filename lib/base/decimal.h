/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.h -- a decimal number becomes a double, whatever the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DECIMAL_DIGITS_MAX 19u

/* The whole of `text`: digits, or digits with one '.' among them, and perhaps e, a sign and digits:
 * "12", "0.5", "1e-4". The nearest double, of two the even one (of a subnormal one of the two next
 * to it). False, *number left alone: it is no such text, it has more than DECIMAL_DIGITS_MAX
 * digits (zeros in front not counted), or it is beyond double's range. Threads  any. */
bool decimal_read(const char *text, size_t bytes, double *number);
