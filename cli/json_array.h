/* SPDX-License-Identifier: Apache-2.0 */
/* json_array.h -- a tensor as one JSON object: name, dtype, shape, values nested as the axes
 * are. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sumac/tensor.h"

/* Numbers have the fewest digits that read back as the same number of their dtype; NaN and
 * infinities, which JSON has not, are null. `rows` not NULL: these rows of the variable are what
 * the tensor has, and first_row says where they begin. No newline ends it. False: it could not be
 * written. */
bool json_array_print(
    const char *name, const struct sumac_range *rows, const struct sumac_tensor *tensor,
    FILE *file);
