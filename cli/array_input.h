/* SPDX-License-Identifier: Apache-2.0 */
/* array_input.h -- values out of a NumPy .npy file (formats 1 to 3: numpy/lib/format.py). */
#pragma once

#include <stdio.h>

#include "sumac/status.h"
#include "sumac/tensor.h"

/* Read one array, of this type and shape and no other, row-major; `name` is what the file is called
 * in a sentence. bfloat16 is uint16 there, the bits of its elements. A file with more behind the
 * array is refused as one that is cut is.
 *
 * Gives    tensor->buffer; release with sumac_buffer_unref.
 * Fails    INVALID_ARGUMENT, naming what is expected and what is there; RESOURCE_EXHAUSTED. */
enum sumac_status array_input_read(
    FILE *file, const char *name, enum sumac_dtype dtype, const struct sumac_shape *shape,
    struct sumac_tensor *tensor, struct sumac_error *error);
