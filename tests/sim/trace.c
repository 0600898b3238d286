/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c -- messages as people read them: the fields that are set, by protobuf's own descriptors.
 */
#include "trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "world.h"

#define TEXT_BYTES 4096u

struct text {
    char bytes[TEXT_BYTES];
    size_t used;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int wanted =
        vsnprintf(text->bytes + text->used, TEXT_BYTES - text->used, format, arguments);
    va_end(arguments);
    text->used += wanted < 0 ? 0 : (size_t)wanted;
    if (text->used >= TEXT_BYTES)
        text->used = TEXT_BYTES - 1;
}

static void put_message(struct text *text, const wire_message *message);

static size_t value_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static void put_bytes(struct text *text, const ProtobufCBinaryData *bytes)
{
    for (size_t i = 0; i < bytes->len && i < 4; i++)
        put(text, "%02x", bytes->data[i]);
}

static void put_value(struct text *text, ProtobufCType type, const void *value)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
        put(text, "\"%s\"", *(const char *const *)value);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        put_bytes(text, value);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(text, *(const wire_message *const *)value);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        put(text, "%g", *(const double *)value);
        break;
    default:
        if (value_bytes(type) == 8)
            put(text, "%" PRIu64, *(const uint64_t *)value);
        else
            put(text, "%u", *(const uint32_t *)value);
    }
}

static bool is_set(const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return *(const char *const *)value != NULL && **(const char *const *)value != '\0';
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)value != NULL;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)value)->len > 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return *(const double *)value != 0;
    default:
        return value_bytes(field->type) == 8 ? *(const uint64_t *)value != 0
                                             : *(const uint32_t *)value != 0;
    }
}

static void put_repeated(
    struct text *text, const ProtobufCFieldDescriptor *field, const uint8_t *at, size_t count)
{
    const uint8_t *values = *(const uint8_t *const *)at;

    put(text, "[");
    for (size_t i = 0; i < count; i++) {
        put(text, i == 0 ? "" : " ");
        put_value(text, field->type, values + i * value_bytes(field->type));
    }
    put(text, "]");
}

static void put_message(struct text *text, const wire_message *message)
{
    const uint8_t *base = (const uint8_t *)message;
    bool first = true;

    put(text, "{");
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const uint8_t *at = base + field->offset;
        const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = 0;
        if (repeated)
            memcpy(&count, base + field->quantifier_offset, sizeof count);
        if (repeated ? count == 0 : !is_set(field, at))
            continue;
        put(text, "%s%s ", first ? "" : ", ", field->name);
        first = false;
        if (repeated)
            put_repeated(text, field, at, count);
        else
            put_value(text, field->type, at);
    }
    put(text, "}");
}

void trace_say(struct world *world, const char *format, ...)
{
    world->trace.lines++;
    if (world->trace.file == NULL)
        return;
    const uint64_t us = world->now_us - SIM_START_US;
    fprintf(world->trace.file, "%8" PRIu64 ".%03" PRIu64 " ms  ", (us / 1000), (us % 1000));
    va_list arguments;
    va_start(arguments, format);
    vfprintf(world->trace.file, format, arguments);
    va_end(arguments);
    fputc('\n', world->trace.file);
}

void trace_message(
    struct world *world, const char *from, const char *to, const char *what,
    const wire_message *message)
{
    if (world->trace.file == NULL) {
        world->trace.lines++;
        return;
    }
    struct text text = {.used = 0};
    put_message(&text, message);
    trace_say(world, "%s → %s: %s %s", from, to, what, text.bytes);
}
