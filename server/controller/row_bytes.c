/* SPDX-License-Identifier: Apache-2.0 */
/* row_bytes.c -- the bytes of a row (controller_rows.h). */
#include "row_bytes.h"

#include <assert.h>
#include <string.h>

#include "controller_rows.h"
#include "little_endian.h"

void row_put_bytes(struct row_writer *writer, const void *data, size_t bytes)
{
    assert(writer->bytes >= CONTROLLER_ROW_HEAD_BYTES);
    if (writer->out != NULL && bytes > 0)
        memcpy(writer->out + writer->bytes, data, bytes);
    writer->bytes += bytes;
}

void row_put_number(struct row_writer *writer, uint64_t value)
{
    uint8_t bytes[8];

    little_endian_put(bytes, sizeof bytes, value);
    row_put_bytes(writer, bytes, sizeof bytes);
}

void row_put_text(struct row_writer *writer, const char *text)
{
    row_put_number(writer, strlen(text));
    row_put_bytes(writer, text, strlen(text));
}

void row_put_message(struct row_writer *writer)
{
    assert(writer->out == NULL || writer->message != NULL); /* without it nothing is written */
    writer->failed |= writer->message == NULL;
    if (writer->failed)
        return;
    const size_t bytes = wire_packed_bytes(writer->message, 0);
    row_put_number(writer, bytes);
    if (writer->out != NULL)
        wire_pack(writer->message, 0, writer->out + writer->bytes);
    writer->bytes += bytes;
}

const uint8_t *row_take_bytes(struct row_reader *reader, uint64_t bytes)
{
    const uint8_t *at = reader->at;

    assert(reader->failed || reader->left == 0 || at != NULL);
    if (row_fails(reader, bytes > reader->left))
        return NULL;
    reader->at += bytes;
    reader->left -= (size_t)bytes;
    return at;
}

uint64_t row_take_number(struct row_reader *reader)
{
    const uint8_t *bytes = row_take_bytes(reader, 8);

    return bytes == NULL ? 0 : little_endian_get(bytes, 8);
}

void row_take_text(struct row_reader *reader, char *text, size_t text_bytes)
{
    const uint64_t count = row_take_number(reader);
    const uint8_t *bytes = row_take_bytes(reader, count);

    assert(text_bytes > 0);
    if (row_fails(reader, count >= text_bytes))
        return;
    reader->failed |= memchr(bytes, 0, (size_t)count) != NULL;
    memcpy(text, bytes, (size_t)count);
    text[count] = '\0';
}

const wire_message *
row_take_message(struct row_reader *reader, const wire_type *type, struct arena *arena)
{
    struct wire_received received;
    struct sumac_error error;
    const uint64_t bytes = row_take_number(reader);
    const struct span packed = {.data = row_take_bytes(reader, bytes), .bytes = (size_t)bytes};

    reader->failed |=
        reader->failed || wire_unpack(type, &packed, 1, arena, &received, &error) != SUMAC_OK;
    return reader->failed ? NULL : received.message;
}

/* ---- fields ---- */

static uint64_t load(const void *data, size_t bytes)
{
    uint32_t word;
    uint64_t number;

    assert(bytes == 1 || bytes == sizeof word || bytes == sizeof number);
    if (bytes == 1)
        return *(const uint8_t *)data != 0;
    if (bytes == sizeof word) {
        memcpy(&word, data, bytes);
        return word;
    }
    memcpy(&number, data, bytes);
    return number;
}

static void store(void *data, size_t bytes, uint64_t value)
{
    const uint32_t word = (uint32_t)value;

    assert(bytes == 1 || bytes == sizeof word || bytes == sizeof value);
    if (bytes == 1)
        *(bool *)data = value != 0;
    else
        memcpy(data, bytes == sizeof word ? (const void *)&word : &value, bytes);
}

void row_put_fields(
    struct row_writer *writer, const struct row_field *fields, size_t count, const void *object)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = (const uint8_t *)object + fields[i].offset;
        if (fields[i].kind == ROW_FIELD_TEXT)
            row_put_text(writer, (const char *)at);
        else
            row_put_number(writer, load(at, fields[i].bytes));
    }
}

static bool is_too_large(const struct row_field *field, uint64_t value)
{
    if (field->most > 0)
        return value > field->most;
    return field->bytes < 8 && value >> (field->bytes == 1 ? 1 : 8 * field->bytes) != 0;
}

void row_take_fields(
    struct row_reader *reader, const struct row_field *fields, size_t count, void *object)
{
    for (size_t i = 0; i < count && !reader->failed; i++) {
        uint8_t *at = (uint8_t *)object + fields[i].offset;
        if (fields[i].kind == ROW_FIELD_TEXT) {
            row_take_text(reader, (char *)at, fields[i].bytes);
            continue;
        }
        const uint64_t value = row_take_number(reader);
        reader->failed |= is_too_large(&fields[i], value);
        if (!reader->failed)
            store(at, fields[i].bytes, value);
    }
}
