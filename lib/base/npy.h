/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h -- the header of a NumPy .npy file (format 1.0: numpy/lib/format.py).
 *
 *   | \x93NUMPY 1 0 | u16 bytes of the dictionary | {'descr': '<f4', …} and blanks | elements |
 *
 * The elements are row-major.
 *
 * NumPy has no bfloat16: such a tensor is written as uint16, the bits of its elements.
 */
#pragma once

#include "sumac/tensor.h"

#define NPY_HEADER_BYTES_MAX                                                                       \
    384u /* 8 extents of 20 digits, the dictionary around them, and the padding */

/* The header of a tensor that begins `offset` bytes into a file: so long that its elements begin at
 * a multiple of 64.
 * Returns its bytes. Threads  any. */
size_t npy_header(
    enum sumac_dtype dtype, const struct sumac_shape *shape, uint64_t offset,
    char header[NPY_HEADER_BYTES_MAX]);

/* Its 'descr', "<f4"; "" of a number that is no type. Lends  a constant string. Threads  any. */
const char *npy_descriptor(enum sumac_dtype dtype);
