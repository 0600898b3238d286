/* SPDX-License-Identifier: Apache-2.0 */
/* row_bytes.h -- what rows are made of: numbers, texts, messages, and the fields of a struct.
 * Private to this folder.
 *
 * A row is written twice, first to count its bytes. What is read may be anything: a reader that has
 * failed gives zeros, and whoever reads looks at `failed` before what was read is believed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct controller;

struct row_writer {
    struct controller *controller;
    uint8_t *out; /* NULL: they are counted */
    size_t bytes;
    const wire_message *message; /* that is in it: made when it is counted */
    bool failed;                 /* there was no memory for it */
};

void row_put_bytes(struct row_writer *writer, const void *data, size_t bytes);
void row_put_number(struct row_writer *writer, uint64_t value);
void row_put_text(struct row_writer *writer, const char *text);
/* Packed, with its bytes' count before it. NULL: there was no memory for it. */
void row_put_message(struct row_writer *writer);

struct row_reader {
    const uint8_t *at;
    size_t left;
    bool failed; /* it ended too early, or says what cannot be */
};

/* Has the reader failed before, or does this make it? */
static inline bool row_fails(struct row_reader *reader, bool fails)
{
    reader->failed |= fails;
    return reader->failed;
}

/* Lends  what was written. NULL: there are not so many. */
const uint8_t *row_take_bytes(struct row_reader *reader, uint64_t bytes);
uint64_t row_take_number(struct row_reader *reader);
void row_take_text(struct row_reader *reader, char *text, size_t text_bytes);
/* Of that type, in the arena; it refers to what was written. NULL: it is none, or there is no
 * memory. */
const wire_message *
row_take_message(struct row_reader *reader, const wire_type *type, struct arena *arena);

/* ---- fields ---- */

enum row_field_kind { ROW_FIELD_NUMBER, ROW_FIELD_TEXT };

struct row_field {
    size_t offset, bytes;
    enum row_field_kind kind;
    uint64_t most; /* of an enumeration; 0: all that it has bytes for */
};

#define MEMBER(type, member)                                                                       \
    .offset = offsetof(struct type, member), .bytes = sizeof((struct type *)NULL)->member
#define NUMBER(type, member)                                                                       \
    {                                                                                              \
        MEMBER(type, member), .kind = ROW_FIELD_NUMBER                                             \
    }
#define ENUMERATION(type, member, last)                                                            \
    {                                                                                              \
        MEMBER(type, member), .kind = ROW_FIELD_NUMBER, .most = (uint64_t)(last)                   \
    }
#define TEXT(type, member)                                                                         \
    {                                                                                              \
        MEMBER(type, member), .kind = ROW_FIELD_TEXT                                               \
    }

void row_put_fields(
    struct row_writer *writer, const struct row_field *fields, size_t count, const void *object);
void row_take_fields(
    struct row_reader *reader, const struct row_field *fields, size_t count, void *object);

#define PUT_FIELDS(writer, fields, object)                                                         \
    row_put_fields(writer, fields, sizeof fields / sizeof fields[0], object)
#define TAKE_FIELDS(reader, fields, object)                                                        \
    row_take_fields(reader, fields, sizeof fields / sizeof fields[0], object)

/* ---- kinds ---- */

/* How a kind of row is written and read, and how the row that says that its object is gone. NULL:
 * its objects stay. */
struct row_functions {
    void (*put)(struct row_writer *writer, const void *object);
    void (*take)(struct controller *controller, struct row_reader *reader);
    void (*put_gone)(struct row_writer *writer, const void *object);
    void (*take_gone)(struct controller *controller, struct row_reader *reader);
};

/* write_rows.c: by enum controller_row_kind. */
extern const struct row_functions row_functions[];
