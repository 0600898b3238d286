/* npy.h -- write a tensor as a NumPy .npy file (format 1.0: numpy/lib/format.py).
 *
 *   | \x93NUMPY 1 0 | u16 bytes of the dictionary | {'descr': '<f4', …} padded to 64 bytes | the
 * elements, row-major |
 *
 * NumPy has no bfloat16: such a tensor is written as uint16, the bits of its elements.
 */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include <stdio.h>

#include "sumac/tensor.h"

/* Write `tensor` to `file`, and flush it. `name` is what messages call it.
 * Fails    INVALID_ARGUMENT: the tensor's bytes are on a device. As npy_save, for the system's
 * reasons. Threads  any; the file is the caller's. */
SUMAC_CHECKED enum sumac_status npy_write(
    FILE *file, const char *name, const struct sumac_tensor *tensor, struct sumac_error *error);

/* Write `tensor` to the file at `path`: whole, or not at all (a temporary file beside it is
 * renamed). A path that is there and no regular file, /dev/stdout for one, is written to as it is.
 * Fails    RESOURCE_EXHAUSTED: the disk is full. PERMISSION_DENIED. NOT_FOUND: no such folder.
 * INTERNAL: the rest. The text names the path and the system's reason. What was at `path` is then
 * as it was. Threads  any. */
SUMAC_CHECKED enum sumac_status
npy_save(const char *path, const struct sumac_tensor *tensor, struct sumac_error *error);

#endif
