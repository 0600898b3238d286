/* SPDX-License-Identifier: Apache-2.0 */
/* array_input.c -- values out of a NumPy .npy file. */
#include "array_input.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "npy.h"

#define HEADER_BYTES_MAX 4096u /* a dictionary of three entries has some 100 */
#define DESCRIPTOR_BYTES 16u

/* What a header says. */
struct header {
    char descriptor[DESCRIPTOR_BYTES];
    bool by_columns; /* Fortran's order */
    struct sumac_shape shape;
};

static enum sumac_status fail_no_array(const char *name, struct sumac_error *error)
{
    return fail_argument(
        error, "%s is no .npy file: write one with numpy.save, or sumac get -o", name);
}

/* ---- the header */

/* What follows "'key':" and blanks; NULL: there is no such key. */
static const char *find(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (at == NULL)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " ");
}

static bool read_descriptor(const char *at, struct header *header)
{
    const char quote = at != NULL ? *at : '\0';
    const char *end = quote == '\'' || quote == '"' ? strchr(at + 1, quote) : NULL;

    if (end == NULL || (size_t)(end - at) > sizeof header->descriptor)
        return false;
    memcpy(header->descriptor, at + 1, (size_t)(end - at - 1));
    header->descriptor[end - at - 1] = '\0';
    return true;
}

static bool read_shape(const char *at, struct header *header)
{
    if (at == NULL || *at++ != '(')
        return false;
    for (at += strspn(at, " "); *at != ')'; at += strspn(at, " ,")) {
        char *end = NULL;
        if (!isdigit((unsigned char)*at) || header->shape.rank == SUMAC_RANK_MAX)
            return false;
        header->shape.extent[header->shape.rank++] = strtoull(at, &end, 10);
        at = end;
    }
    return true;
}

static bool read_dictionary(const char *text, struct header *header)
{
    const char *const order = find(text, "'fortran_order':");

    if (order == NULL)
        return false;
    header->by_columns = strncmp(order, "True", 4) == 0;
    return read_descriptor(find(text, "'descr':"), header) &&
           read_shape(find(text, "'shape':"), header);
}

static bool read_header(FILE *file, struct header *header)
{
    uint8_t preamble[12];
    char text[HEADER_BYTES_MAX + 1];

    if (fread(preamble, 1, 10, file) != 10 || memcmp(preamble, "\x93NUMPY", 6) != 0 ||
        preamble[6] < 1 || preamble[6] > 3)
        return false;
    uint32_t bytes = preamble[8] | (uint32_t)preamble[9] << 8;
    if (preamble[6] > 1) { /* four bytes of length */
        if (fread(preamble + 10, 1, 2, file) != 2)
            return false;
        bytes |= (uint32_t)preamble[10] << 16 | (uint32_t)preamble[11] << 24;
    }
    if (bytes > HEADER_BYTES_MAX || fread(text, 1, bytes, file) != bytes)
        return false;
    text[bytes] = '\0';
    return read_dictionary(text, header);
}

/* ---- the values */

static enum sumac_status check(
    const struct header *header, const char *name, enum sumac_dtype dtype,
    const struct sumac_shape *shape, struct sumac_error *error)
{
    char expected[128], given[128];

    if (strcmp(header->descriptor, npy_descriptor(dtype)) != 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s has elements of type %s; expected %s, which is %s", name, header->descriptor,
            npy_descriptor(dtype), sumac_dtype_name(dtype));
    if (!sumac_shape_equal(&header->shape, shape))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE, "%s has shape %s; expected %s", name,
            sumac_shape_print(&header->shape, given, sizeof given),
            sumac_shape_print(shape, expected, sizeof expected));
    if (header->by_columns && shape->rank > 1)
        return fail_argument(
            error, "%s is in Fortran's order: save numpy.ascontiguousarray of it", name);
    return SUMAC_OK;
}

enum sumac_status array_input_read(
    FILE *file, const char *name, enum sumac_dtype dtype, const struct sumac_shape *shape,
    struct sumac_tensor *tensor, struct sumac_error *error)
{
    struct header header = {.by_columns = false};
    struct sumac_buffer *buffer = NULL;
    uint64_t bytes = 0;

    if (!read_header(file, &header))
        return fail_no_array(name, error);
    enum sumac_status status = check(&header, name, dtype, shape, error);
    if (status != SUMAC_OK)
        return status;
    status = sumac_shape_size(shape, dtype, NULL, &bytes);
    if (status == SUMAC_OK)
        status = sumac_buffer_create(bytes, &buffer);
    if (status == SUMAC_OK)
        status = sumac_tensor_view(buffer, 0, dtype, shape, tensor);
    if (status != SUMAC_OK) {
        sumac_buffer_unref(buffer);
        return fail(
            error, status, SUMAC_REASON_UNSPECIFIED, "no memory for the %" PRIu64 " bytes of %s",
            bytes, name);
    }
    if (fread(sumac_tensor_data(tensor), 1, bytes, file) == bytes && fgetc(file) == EOF)
        return SUMAC_OK;
    sumac_buffer_unref(buffer);
    tensor->buffer = NULL;
    return fail_argument(
        error,
        "%s does not end where its %" PRIu64
        " bytes of values do: it is cut, or has more behind them",
        name, bytes);
}
