/* SPDX-License-Identifier: Apache-2.0 */
/* array_file.c -- a file's image: laid out first, filled in by whoever has the values, and then
 * kept.
 *
 *   .npy | header | values |
 *   .npz | local header, name | header | values | … each entry … | directory | its end, thrice |
 */
#include "array_file.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "alloc.h"
#include "error.h"
#include "npy.h"
#include "text.h"

#define ATTEMPTS_MAX 100
#define LOCAL_BYTES (30u + 20u)     /* with its 64-bit sizes */
#define DIRECTORY_BYTES (46u + 28u) /* of one entry, with its 64-bit sizes and offset */
#define END_BYTES (56u + 20u + 22u) /* the 64-bit end, where it is, and the old end */
#define VERSION_NEEDED 45u          /* 64-bit fields */
#define NAMES_ARE_UTF8 0x0800u
#define FIRST_DAY 0x0021u /* 1 January 1980, as DOS has it: files of equal values are equal */
#define SUFFIX ".npy"

/* Where an entry is in the image. */
struct file_place {
    char *name; /* with its suffix */
    size_t name_bytes;
    uint64_t local_at, header_at, values_at, end_at;
};

struct array_file {
    const char *said; /* what messages call it */
    const char *path; /* what it becomes; NULL: it is written to as it is */
    char *temporary;  /* what it is until then; NULL: nothing has to be removed */
    int opened;
    bool zip, mapped;
    uint8_t *image;
    uint64_t bytes, directory_at;
    size_t count;
    struct file_place *places; /* (count) */
};

/* Which status an errno is, with a sentence that names what was tried on which file. */
static enum sumac_status
fail_system(struct sumac_error *error, int number, const char *deed, const char *name)
{
    enum sumac_status status = SUMAC_INTERNAL;

    if (number == ENOSPC || number == EDQUOT || number == EFBIG || number == ENOMEM)
        status = SUMAC_RESOURCE_EXHAUSTED;
    else if (number == EACCES || number == EPERM || number == EROFS)
        status = SUMAC_PERMISSION_DENIED;
    else if (number == ENOENT || number == ENOTDIR)
        status = SUMAC_NOT_FOUND;
    else if (number == EISDIR || number == ENAMETOOLONG)
        status = SUMAC_INVALID_ARGUMENT;
    char reason[128] = "";
    if (strerror_r(number, reason, sizeof reason) != 0)
        (void)text_print(reason, sizeof reason, "error %d", number);
    return fail(error, status, SUMAC_REASON_UNSPECIFIED, "cannot %s %s: %s", deed, name, reason);
}

/* ---- signals: the file that has no name yet goes with the process */

static const char *volatile unfinished;

/* At exit, too: a command without memory does not return here. */
static void remove_unfinished(void)
{
    if (unfinished != NULL)
        (void)unlink(unfinished);
}

static void leave_nothing(int number)
{
    remove_unfinished();
    (void)raise(number); /* with the handler that it had before, when this returns */
}

/* A signal that is ignored stays so. */
static void watch_signals(const char *path)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    unfinished = path;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before, action = {.sa_flags = (int)SA_RESETHAND};
        action.sa_handler = path != NULL ? leave_nothing : SIG_DFL;
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* the call that would write too much says so, too */
}

/* ---- layout */

#define IMAGE_BYTES_MAX ((uint64_t)PTRDIFF_MAX) /* what can be mapped; no disk has more */

/* `bytes` more; false: the image would be too large for a file. */
static bool extend(struct array_file *file, uint64_t bytes)
{
    if (bytes > IMAGE_BYTES_MAX - file->bytes)
        return false;
    file->bytes += bytes;
    return true;
}

/* False: the image would be too large for a file. */
static bool lay_out(struct array_file *file, const struct array_entry *entries)
{
    char header[NPY_HEADER_BYTES_MAX];
    uint64_t directory_bytes = 0, value_bytes = 0;

    for (size_t i = 0; i < file->count; i++) {
        struct file_place *place = &file->places[i];
        place->name_bytes = strlen(entries[i].name) + strlen(SUFFIX);
        place->name = cli_alloc(place->name_bytes + 1, 1);
        (void)text_print(place->name, place->name_bytes + 1, "%s" SUFFIX, entries[i].name);
        place->local_at = file->bytes;
        if (!extend(file, file->zip ? LOCAL_BYTES + place->name_bytes : 0))
            return false;
        place->header_at = file->bytes;
        if (!extend(file, npy_header(entries[i].dtype, &entries[i].shape, file->bytes, header)))
            return false;
        place->values_at = file->bytes;
        if (sumac_shape_size(&entries[i].shape, entries[i].dtype, NULL, &value_bytes) != SUMAC_OK ||
            !extend(file, value_bytes))
            return false;
        place->end_at = file->bytes;
        directory_bytes += DIRECTORY_BYTES + place->name_bytes;
    }
    file->directory_at = file->bytes;
    return !file->zip || extend(file, directory_bytes + END_BYTES);
}

static void write_headers(struct array_file *file, const struct array_entry *entries)
{
    char header[NPY_HEADER_BYTES_MAX];

    for (size_t i = 0; i < file->count; i++) {
        const struct file_place *place = &file->places[i];
        (void)npy_header(entries[i].dtype, &entries[i].shape, place->header_at, header);
        memcpy(
            file->image + place->header_at, header, (size_t)(place->values_at - place->header_at));
    }
}

/* ---- ZIP */

struct field {
    size_t bytes; /* 0 ends a list of fields */
    uint64_t value;
};

/* Little-endian; returns where the next field is. */
static uint8_t *put(uint8_t *at, const struct field *fields)
{
    for (; fields->bytes != 0; fields++) {
        const uint64_t value = htole64(fields->value);
        memcpy(at, &value, fields->bytes);
        at += fields->bytes;
    }
    return at;
}

#define PUT(at, ...) put(at, (const struct field[]){__VA_ARGS__, {0}})

/* The fields that a local header and an entry of the directory share, up to the name. The entry is
 * stored, and its sizes are in the 64-bit field. */
static uint8_t *
put_entry(uint8_t *at, const struct file_place *place, uint32_t checksum, size_t extra_bytes)
{
    at = PUT(at, {2, VERSION_NEEDED}, {2, NAMES_ARE_UTF8}, {4, 0}, {2, FIRST_DAY}, {4, checksum});
    return PUT(at, {4, UINT32_MAX}, {4, UINT32_MAX}, {2, place->name_bytes}, {2, extra_bytes});
}

/* The name and the 64-bit field. */
static uint8_t *put_name(uint8_t *at, const struct file_place *place, size_t extra_bytes)
{
    const uint64_t bytes = place->end_at - place->header_at;

    memcpy(at, place->name, place->name_bytes);
    return PUT(at + place->name_bytes, {2, 1}, {2, extra_bytes - 4}, {8, bytes}, {8, bytes});
}

/* The directory's entry begins at `at`; returns where the next one does. */
static uint8_t *write_entry(struct array_file *file, const struct file_place *place, uint8_t *at)
{
    const uint32_t checksum = (uint32_t)crc32_z(
        0, file->image + place->header_at, (size_t)(place->end_at - place->header_at));
    uint8_t *local = PUT(file->image + place->local_at, {4, 0x04034b50});

    local = put_entry(local, place, checksum, 20);
    (void)put_name(local, place, 20);
    at = PUT(at, {4, 0x02014b50}, {2, VERSION_NEEDED}); /* made by */
    at = put_entry(at, place, checksum, 28);
    /* No comment, the first disk, nothing about the file, and where it is in the 64-bit field. */
    at = PUT(at, {2, 0}, {2, 0}, {2, 0}, {4, 0}, {4, UINT32_MAX});
    at = put_name(at, place, 28);
    return PUT(at, {8, place->local_at});
}

/* The 64-bit end, of 44 bytes behind its length; where it is, on the first of one disk; and the old
 * end, which refers to it with each field that has its largest value. */
static void write_end(struct array_file *file, uint8_t *at)
{
    const uint64_t end_at = (uint64_t)(at - file->image), count = file->count;

    at = PUT(at, {4, 0x06064b50}, {8, 44}, {2, VERSION_NEEDED}, {2, VERSION_NEEDED}, {8, 0});
    at = PUT(at, {8, count}, {8, count}, {8, end_at - file->directory_at});
    at = PUT(at, {8, file->directory_at});
    at = PUT(at, {4, 0x07064b50}, {4, 0}, {8, end_at}, {4, 1});
    at = PUT(at, {4, 0x06054b50}, {4, 0}, {2, UINT16_MAX}, {2, UINT16_MAX});
    (void)PUT(at, {4, UINT32_MAX}, {4, UINT32_MAX}, {2, 0});
}

static void write_directory(struct array_file *file)
{
    uint8_t *at = file->image + file->directory_at;

    for (size_t i = 0; i < file->count; i++)
        at = write_entry(file, &file->places[i], at);
    write_end(file, at);
}

/* ---- the file */

/* Owner, group and permissions, as far as may be. What a group could do that the file can't be
 * given to, its own group must not; a file that nothing can be changed of stays its owner's
 * alone. */
static void take_after(int file, const struct stat *replaced)
{
    const bool owned = fchown(file, replaced->st_uid, replaced->st_gid) == 0 ||
                       fchown(file, (uid_t)-1, replaced->st_gid) == 0;

    (void)fchmod(file, replaced->st_mode & (owned ? 0777u : 0707u));
}

/* Open a new file beside what is to be, with the permissions of the one that it replaces, or those
 * that the process gives. */
static enum sumac_status
open_beside(struct array_file *file, const struct stat *replaced, struct sumac_error *error)
{
    const size_t bytes = strlen(file->path) + 64;

    file->temporary = cli_alloc(bytes, 1);
    (void)atexit(remove_unfinished);
    int number = EEXIST;
    for (int attempt = 0; attempt < ATTEMPTS_MAX && number == EEXIST; attempt++) {
        (void)text_print(
            file->temporary, bytes, "%s.%ld-%d.tmp", file->path, (long)getpid(), attempt);
        watch_signals(file->temporary);
        file->opened = open(
            file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, replaced != NULL ? 0600 : 0666);
        if (file->opened >= 0 && replaced != NULL)
            take_after(file->opened, replaced);
        if (file->opened >= 0)
            return SUMAC_OK;
        number = errno; /* before other calls change it */
        watch_signals(NULL);
    }
    file->temporary = NULL;
    return fail_system(error, number, "create a file beside", file->said);
}

/* What a link leads to is replaced, not the link; what is no regular file is written to. */
static enum sumac_status
open_path(struct array_file *file, const char *path, struct sumac_error *error)
{
    struct stat there;

    if (strcmp(path, "-") == 0) {
        file->said = "standard output";
        file->opened = dup(STDOUT_FILENO);
        return file->opened >= 0 ? SUMAC_OK : fail_system(error, errno, "write", file->said);
    }
    const bool is_there = stat(path, &there) == 0;
    if (is_there && !S_ISREG(there.st_mode)) {
        file->opened = open(path, O_WRONLY | O_CLOEXEC);
        return file->opened >= 0 ? SUMAC_OK : fail_system(error, errno, "write", path);
    }
    file->path = is_there ? realpath(path, NULL) : path;
    if (file->path == NULL)
        return fail_system(error, errno, "write", path);
    return open_beside(file, is_there ? &there : NULL, error);
}

/* The image in the file itself where it can be mapped, else in memory. */
static enum sumac_status make_image(struct array_file *file, struct sumac_error *error)
{
    void *image = MAP_FAILED;

    if (file->temporary != NULL) {
        const int number = posix_fallocate(file->opened, 0, (off_t)file->bytes);
        if (number == ENOSPC || number == EDQUOT || number == EFBIG || number == EIO)
            return fail_system(error, number, "write", file->said);
        if (number == 0)
            image = mmap(
                NULL, (size_t)file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->opened, 0);
        file->mapped = image != MAP_FAILED;
    }
    if (image == MAP_FAILED)
        image = mmap(
            NULL, (size_t)file->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        return fail_system(error, errno, "keep in memory what is for", file->said);
    file->image = image;
    return SUMAC_OK;
}

static enum sumac_status write_image(struct array_file *file, struct sumac_error *error)
{
    uint64_t written = 0;

    while (!file->mapped && written < file->bytes) {
        const ssize_t some =
            write(file->opened, file->image + written, (size_t)(file->bytes - written));
        if (some < 0 && errno != EINTR)
            return fail_system(error, errno, "write", file->said);
        written += some > 0 ? (uint64_t)some : 0;
    }
    if (file->temporary != NULL && fsync(file->opened) != 0)
        return fail_system(error, errno, "write", file->said);
    return SUMAC_OK;
}

void array_file_drop(struct array_file *file)
{
    if (file == NULL)
        return;
    if (file->image != NULL)
        (void)munmap(file->image, (size_t)file->bytes);
    if (file->opened >= 0)
        (void)close(file->opened);
    if (file->temporary != NULL)
        (void)unlink(file->temporary);
    watch_signals(NULL);
}

enum sumac_status array_file_open(
    const char *path, bool zip, const struct array_entry *entries, size_t count,
    struct array_file **file, struct sumac_error *error)
{
    struct array_file *made = cli_alloc(1, sizeof *made);

    *made = (struct array_file){
        .said = path,
        .opened = -1,
        .zip = zip,
        .count = count,
        .places = cli_alloc(count, sizeof *made->places)};
    enum sumac_status status = open_path(made, path, error);
    if (status == SUMAC_OK)
        status = lay_out(made, entries) ? make_image(made, error)
                                        : fail_system(error, EFBIG, "write", made->said);
    if (status != SUMAC_OK) {
        array_file_drop(made);
        return status;
    }
    write_headers(made, entries);
    *file = made;
    return SUMAC_OK;
}

void *array_file_values(const struct array_file *file, size_t index)
{
    return file->image + file->places[index].values_at;
}

enum sumac_status array_file_keep(struct array_file *file, struct sumac_error *error)
{
    if (file->zip)
        write_directory(file);
    enum sumac_status status = write_image(file, error);
    const int opened = file->opened;
    file->opened = -1;
    if (close(opened) != 0 && status == SUMAC_OK)
        status = fail_system(error, errno, "write", file->said);
    if (status == SUMAC_OK && file->temporary != NULL && rename(file->temporary, file->path) != 0)
        status = fail_system(error, errno, "replace", file->said);
    if (status == SUMAC_OK)
        file->temporary = NULL; /* it has its name */
    array_file_drop(file);
    return status;
}

/* ---- reading one */

#define HEADER_BYTES_MAX 4096u /* a dictionary of three entries has some 100 */
#define DESCRIPTOR_BYTES 16u

/* The contents of a header. */
struct header {
    char descriptor[DESCRIPTOR_BYTES];
    bool by_columns; /* Fortran's order */
    struct sumac_shape shape;
};

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
    uint8_t preamble[8];
    char text[HEADER_BYTES_MAX + 1];
    uint32_t bytes = 0;

    if (fread(preamble, 1, sizeof preamble, file) != sizeof preamble ||
        memcmp(preamble, "\x93NUMPY", 6) != 0 || preamble[6] < 1 || preamble[6] > 3)
        return false;
    const size_t length_bytes = preamble[6] == 1 ? 2 : 4;
    if (fread(&bytes, 1, length_bytes, file) != length_bytes)
        return false;
    bytes = le32toh(bytes);
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

enum sumac_status array_make_room(
    void *values, enum sumac_dtype dtype, const struct sumac_shape *shape, const char *name,
    struct sumac_tensor *tensor, struct sumac_error *error)
{
    struct sumac_buffer *buffer = NULL;
    uint64_t bytes = 0;
    enum sumac_status status = sumac_shape_size(shape, dtype, NULL, &bytes);

    if (status == SUMAC_OK && values == NULL)
        status = sumac_buffer_create(bytes, &buffer);
    else if (status == SUMAC_OK)
        status = sumac_buffer_wrap(values, bytes, (struct sumac_place){0}, NULL, NULL, &buffer);
    if (status == SUMAC_OK)
        status = sumac_tensor_view(buffer, 0, dtype, shape, tensor);
    if (status == SUMAC_OK)
        return SUMAC_OK;
    sumac_buffer_unref(buffer);
    return fail(
        error, status, SUMAC_REASON_UNSPECIFIED, "no memory for the %" PRIu64 " bytes of %.300s",
        bytes, name);
}

enum sumac_status array_input_read(
    FILE *file, const char *name, enum sumac_dtype dtype, const struct sumac_shape *shape,
    struct sumac_tensor *tensor, struct sumac_error *error)
{
    struct header header = {.by_columns = false};

    if (!read_header(file, &header))
        return fail_argument(
            error, "%s is no .npy file: write one with numpy.save, or sumac get -o", name);
    enum sumac_status status = check(&header, name, dtype, shape, error);
    if (status == SUMAC_OK)
        status = array_make_room(NULL, dtype, shape, name, tensor, error);
    if (status != SUMAC_OK)
        return status;
    const uint64_t bytes = sumac_tensor_bytes(tensor);
    if (fread(sumac_tensor_data(tensor), 1, bytes, file) == bytes && fgetc(file) == EOF)
        return SUMAC_OK;
    sumac_buffer_unref(tensor->buffer);
    tensor->buffer = NULL;
    return fail_argument(
        error,
        "%s does not end where its %" PRIu64
        " bytes of values do: it is cut, or has more behind them",
        name, bytes);
}
