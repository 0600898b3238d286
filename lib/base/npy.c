/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c -- the header of a NumPy .npy file. */
#include "npy.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "text.h"

#define PREAMBLE_BYTES 10u
#define ALIGNMENT_BYTES 64u

/* By the dtype's number. */
static const char *const descriptors[DTYPES_MAX + 1] = {
    "",
#define X(NAME, number, bytes, kind, name, numpy) [number] = numpy,
    SUMAC_DTYPE_LIST(X)
#undef X
};

const char *npy_descriptor(enum sumac_dtype dtype)
{
    return (unsigned)dtype <= DTYPES_MAX ? descriptors[dtype] : "";
}

size_t npy_header(
    enum sumac_dtype dtype, const struct sumac_shape *shape, uint64_t offset,
    char header[NPY_HEADER_BYTES_MAX])
{
    char extents[200];
    size_t end = 0;

    extents[0] = '\0';
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        end += text_print(
            extents + end, sizeof extents - end, "%s%" PRIu64, axis > 0 ? ", " : "",
            shape->extent[axis]);
    const char *comma = shape->rank == 1 ? "," : ""; /* Python's tuple of one */
    memset(header, ' ', NPY_HEADER_BYTES_MAX);
    const size_t written = text_print(
        header + PREAMBLE_BYTES, NPY_HEADER_BYTES_MAX - PREAMBLE_BYTES,
        "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", npy_descriptor(dtype),
        extents, comma);
    const size_t used = PREAMBLE_BYTES + written;
    const size_t before = (size_t)(offset % ALIGNMENT_BYTES);
    const size_t bytes =
        (before + used + 1 + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES - before;
    assert(bytes <= NPY_HEADER_BYTES_MAX);
    header[used] = ' ';
    header[bytes - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    const size_t dictionary = bytes - PREAMBLE_BYTES;
    header[8] = (char)(dictionary & 0xff);
    header[9] = (char)(dictionary >> 8);
    return bytes;
}
