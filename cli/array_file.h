/* SPDX-License-Identifier: Apache-2.0 */
/* array_file.h -- NumPy files: the one that values are read into, one .npy, or several in a .npz;
 * and one that a value is read from.
 *
 * It is mapped, and has all its bytes before the first value comes: values need no memory beside
 * it, and a disk that is too small says so at once. It gets its name when it is whole. What is no
 * regular file (a pipe, /dev/stdout) is kept in memory and written in one go.
 *
 * A .npz is a ZIP archive of stored .npy files (PKWARE's APPNOTE 6.3, with the 64-bit fields of
 * 4.3.14 throughout). No library writes one in place, behind values that are already where they
 * belong; zlib has the checksum.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sumac/status.h"
#include "sumac/tensor.h"

struct array_file;

struct array_entry {
    const char *name; /* in a .npz, without its .npy; UTF-8, at most 65 000 bytes */
    enum sumac_dtype dtype;
    struct sumac_shape shape;
};

/* Make the file for `path` ("-": standard output), one .npy or, `zip`, a .npz of `count` entries.
 * From now on SIGINT, SIGTERM and SIGHUP leave nothing of it behind. One file at a time.
 *
 * Borrows  path and the entries' names, until the file is kept or dropped.
 * Gives    *file; ends with array_file_keep or array_file_drop.
 * Fails    RESOURCE_EXHAUSTED: the disk is full, or the memory. PERMISSION_DENIED. NOT_FOUND: no
 *          such folder. INTERNAL: the rest. The text names the path and the system's reason. */
enum sumac_status array_file_open(
    const char *path, bool zip, const struct array_entry *entries, size_t count,
    struct array_file **file, struct sumac_error *error);

/* Where the values of an entry belong. Lends  until the file is kept or dropped. */
void *array_file_values(const struct array_file *file, size_t index);

/* The values are there: write what is not written yet, down to the disk, and give the file its
 * name. What was there before is replaced as a whole. Takes  file, whatever the status is. Fails
 * as array_file_open; what was at the path is then as it was. */
enum sumac_status array_file_keep(struct array_file *file, struct sumac_error *error);

/* Leave nothing behind. NULL is fine. Takes  file. */
void array_file_drop(struct array_file *file);

/* A tensor for the values of `name`: over `values`, or, for NULL, in a buffer of its own.
 *
 * Gives    tensor->buffer; release with sumac_buffer_unref.
 * Fails    RESOURCE_EXHAUSTED. */
enum sumac_status array_make_room(
    void *values, enum sumac_dtype dtype, const struct sumac_shape *shape, const char *name,
    struct sumac_tensor *tensor, struct sumac_error *error);

/* Read one array, of this type and shape and no other, row-major; `name` is what the file is called
 * in a sentence. bfloat16 is uint16 there, the bits of its elements. A file with more behind the
 * array is refused as one that is cut is. Formats 1 to 3 are read: numpy/lib/format.py.
 *
 * Gives    tensor->buffer; release with sumac_buffer_unref.
 * Fails    INVALID_ARGUMENT, naming what is expected and what is there; RESOURCE_EXHAUSTED. */
enum sumac_status array_input_read(
    FILE *file, const char *name, enum sumac_dtype dtype, const struct sumac_shape *shape,
    struct sumac_tensor *tensor, struct sumac_error *error);
