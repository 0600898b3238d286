/* npy.c -- write a tensor as a NumPy .npy file. */
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

#define HEADER_BYTES 320u /* 8 extents of 20 digits, the dictionary around them, and the padding   \
                           */
#define PREAMBLE_BYTES 10u
#define ALIGNMENT_BYTES 64u
#define ATTEMPTS_MAX 100

/* Which status an errno is, with a sentence that names what was tried on which file. */
static enum sumac_status
fail_system(struct sumac_error *error, int number, const char *deed, const char *name)
{
    enum sumac_status status = SUMAC_INTERNAL;
    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        status = SUMAC_RESOURCE_EXHAUSTED;
    else if (number == EACCES || number == EPERM || number == EROFS)
        status = SUMAC_PERMISSION_DENIED;
    else if (number == ENOENT || number == ENOTDIR)
        status = SUMAC_NOT_FOUND;
    else if (number == EISDIR || number == ENAMETOOLONG)
        status = SUMAC_INVALID_ARGUMENT;
    char reason[128] = "";
    if (strerror_r(number, reason, sizeof reason) != 0)
        text_print(reason, sizeof reason, "error %d", number);
    return fail(error, status, SUMAC_REASON_UNSPECIFIED, "cannot %s %s: %s", deed, name, reason);
}

static const char *descriptor(enum sumac_dtype dtype)
{
    switch (dtype) {
    case SUMAC_DTYPE_UNSPECIFIED:
        break;
#define X(name, number, bytes, text, numpy)                                                        \
    case SUMAC_##name:                                                                             \
        return numpy;
        SUMAC_DTYPE_LIST(X)
#undef X
    }
    return "";
}

/* The header of a tensor, in full. Returns its bytes, a multiple of ALIGNMENT_BYTES. */
static size_t print_header(const struct sumac_tensor *tensor, char header[HEADER_BYTES])
{
    char extents[200];
    size_t end = 0;
    extents[0] = '\0';
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        end += text_print(
            extents + end, sizeof extents - end, "%s%llu", axis > 0 ? ", " : "",
            (unsigned long long)tensor->shape.extent[axis]);
    const char *comma = tensor->shape.rank == 1 ? "," : ""; /* Python's tuple of one */
    memset(header, ' ', HEADER_BYTES);
    const size_t written = text_print(
        header + PREAMBLE_BYTES, HEADER_BYTES - PREAMBLE_BYTES,
        "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", descriptor(tensor->dtype),
        extents, comma);
    const size_t used = PREAMBLE_BYTES + written;
    const size_t bytes = (used + 1 + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
    header[used] = ' ';
    header[bytes - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    const size_t dictionary = bytes - PREAMBLE_BYTES;
    header[8] = (char)(dictionary & 0xff);
    header[9] = (char)(dictionary >> 8);
    return bytes;
}

enum sumac_status npy_write(
    FILE *file, const char *name, const struct sumac_tensor *tensor, struct sumac_error *error)
{
    if (sumac_buffer_place(tensor->buffer).kind == SUMAC_PLACE_CUDA)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "cannot write %s from a device's memory: copy the tensor to the host first", name);
    char header[HEADER_BYTES];
    const size_t header_bytes = print_header(tensor, header);
    const size_t bytes = (size_t)sumac_tensor_bytes(tensor);
    if (fwrite(header, 1, header_bytes, file) != header_bytes ||
        (bytes > 0 && fwrite(sumac_tensor_data(tensor), 1, bytes, file) != bytes) ||
        fflush(file) != 0)
        return fail_system(error, errno, "write", name);
    return SUMAC_OK;
}

/* Write through a descriptor of ours, which is closed either way. `sync`: down to the disk. */
static enum sumac_status write_and_close(
    int opened, bool sync, const char *name, const struct sumac_tensor *tensor,
    struct sumac_error *error)
{
    FILE *file = fdopen(opened, "wb");
    if (file == NULL) {
        const int number = errno;
        close(opened);
        return fail_system(error, number, "write", name);
    }
    enum sumac_status status = npy_write(file, name, tensor, error);
    if (status == SUMAC_OK && sync && fsync(opened) != 0)
        status = fail_system(error, errno, "write", name);
    if (fclose(file) != 0 && status == SUMAC_OK)
        status = fail_system(error, errno, "write", name);
    return status;
}

/* Open a new file beside `path`, with the permissions that the process gives new files. Returns -1,
 * errno set, if none could be made. */
static int open_beside(const char *path, char *name, size_t name_bytes)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        text_print(name, name_bytes, "%s.%ld-%d.tmp", path, (long)getpid(), attempt);
        const int opened = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (opened >= 0 || errno != EEXIST)
            return opened;
    }
    return -1;
}

static enum sumac_status
replace(const char *path, const struct sumac_tensor *tensor, struct sumac_error *error)
{
    const size_t name_bytes = strlen(path) + 64;
    char *name = malloc(name_bytes);
    if (name == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory to write %s",
            path);
    enum sumac_status status = SUMAC_OK;
    const int opened = open_beside(path, name, name_bytes);
    if (opened < 0) {
        status = fail_system(error, errno, "create a file beside", path);
        goto free_name;
    }
    status = write_and_close(opened, true, path, tensor, error);
    if (status == SUMAC_OK && rename(name, path) != 0)
        status = fail_system(error, errno, "replace", path);
    if (status != SUMAC_OK)
        unlink(name);
free_name:
    free(name);
    return status;
}

enum sumac_status
npy_save(const char *path, const struct sumac_tensor *tensor, struct sumac_error *error)
{
    struct stat there;
    if (stat(path, &there) != 0)
        return replace(path, tensor, error);
    if (!S_ISREG(there.st_mode)) {
        const int opened = open(path, O_WRONLY | O_CLOEXEC);
        if (opened < 0)
            return fail_system(error, errno, "write", path);
        return write_and_close(opened, false, path, tensor, error);
    }
    char *target = realpath(path, NULL); /* what a link leads to is replaced, not the link */
    if (target == NULL)
        return fail_system(error, errno, "write", path);
    const enum sumac_status status = replace(target, tensor, error);
    free(target);
    return status;
}
