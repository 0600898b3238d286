/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c -- from received bytes to a message: into an arena with a bound, with strings checked,
 * the payload in place. */
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "split.h"
#include "text.h"
#include "wire.h"

struct bounded {
    struct arena *arena;
    size_t bytes_max, bytes_used;
    bool exhausted;
};

static void *take(void *context, size_t bytes)
{
    struct bounded *bounded = context;
    void *data = NULL;

    bounded->bytes_used += bytes;
    if (bounded->bytes_used <= bounded->bytes_max)
        data = arena_take(bounded->arena, bytes);
    if (data == NULL)
        bounded->exhausted = true;
    return data;
}

/* An arena gives up all at once. */
static void give(void *context, void *data)
{
    (void)context;
    (void)data;
}

/* ---- what the types are like
 *
 * By name: every message asks, and a walk over the fields of a push would cost as much as a fifth
 * of its unpacking. A test compares the names with the descriptors.
 */

bool wire_has_payload(const wire_type *type)
{
    return type == &sumac__v1__push_request__descriptor ||
           type == &sumac__v1__pull_request__descriptor ||
           type == &sumac__v1__pull_answer__descriptor;
}

bool wire_may_have_strings(const wire_type *type)
{
    return type != &sumac__v1__push_request__descriptor &&
           type != &sumac__v1__pull_request__descriptor;
}

/* ---- strings */

static const ProtobufCFieldDescriptor *first_bad_string(const wire_message *message, bool *some);

/* Is the string, or every string of the submessage, that `member` points to valid? *some: there is
 * one that is not empty. */
static const ProtobufCFieldDescriptor *
bad_value(const ProtobufCFieldDescriptor *field, const void *member, bool *some)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(char *const *)member;
        *some = *some || (text != NULL && text != field->default_value);
        return text == NULL || text_is_utf8(text, strlen(text)) ? NULL : field;
    }
    const wire_message *message = *(wire_message *const *)member;
    return message == NULL ? NULL : first_bad_string(message, some);
}

static const ProtobufCFieldDescriptor *
bad_member(const wire_message *message, const ProtobufCFieldDescriptor *field, bool *some)
{
    const uint8_t *base = (const uint8_t *)message;
    const void *member = base + field->offset;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        const size_t count = *(const size_t *)(const void *)(base + field->quantifier_offset);
        void *const *items = *(void *const *const *)member;
        for (size_t i = 0; i < count; i++) {
            const ProtobufCFieldDescriptor *bad = bad_value(field, &items[i], some);
            if (bad != NULL)
                return bad;
        }
        return NULL;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id)
        return NULL;
    return bad_value(field, member, some);
}

/* The recursion ends: no message type of proto/ contains itself (a test reads the descriptor set).
 */
static const ProtobufCFieldDescriptor *first_bad_string(const wire_message *message, bool *some)
{
    const wire_type *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const ProtobufCFieldDescriptor *bad = bad_member(message, field, some);
        if (bad != NULL)
            return bad;
    }
    return NULL;
}

/* ---- a NUL in a string
 *
 * It ends the string in the message, so it is looked for in the bytes that the message was made of.
 */

static uint64_t read_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;

    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

static const ProtobufCFieldDescriptor *
first_cut_string(const wire_type *type, const uint8_t *bytes, size_t count);

/* Of a field of `count` bytes. */
static const ProtobufCFieldDescriptor *
cut_value(const ProtobufCFieldDescriptor *field, const uint8_t *bytes, size_t count)
{
    if (field == NULL)
        return NULL;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return memchr(bytes, 0, count) != NULL ? field : NULL;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return first_cut_string(field->descriptor, bytes, count);
    return NULL;
}

/* The bytes are those of a message of this type: they have been unpacked. */
static const ProtobufCFieldDescriptor *
first_cut_string(const wire_type *type, const uint8_t *bytes, size_t count)
{
    const uint8_t *at = bytes, *const end = bytes + count;

    if (count == 0 || memchr(bytes, 0, count) == NULL)
        return NULL;
    while (at < end) {
        const uint64_t tag = read_varint(&at, end);
        uint64_t skipped = 0;
        if ((tag & 7) == PROTOBUF_C_WIRE_TYPE_64BIT)
            skipped = 8;
        else if ((tag & 7) == PROTOBUF_C_WIRE_TYPE_32BIT)
            skipped = 4;
        else /* a number, or a length */
            skipped = read_varint(&at, end);
        if ((tag & 7) == PROTOBUF_C_WIRE_TYPE_VARINT)
            continue;
        if (skipped > (size_t)(end - at))
            break;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        const ProtobufCFieldDescriptor *cut = (tag & 7) == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED
                                                  ? cut_value(field, at, (size_t)skipped)
                                                  : NULL;
        if (cut != NULL)
            return cut;
        at += skipped;
    }
    return NULL;
}

/* Of a message that was unpacked from these bytes. */
static enum sumac_status check_strings(
    const wire_message *message, const uint8_t *bytes, size_t count, struct sumac_error *error)
{
    const wire_type *type = message->descriptor;
    bool some = false;
    const ProtobufCFieldDescriptor *bad = first_bad_string(message, &some);

    if (bad != NULL)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "malformed %s: string field `%s` is not UTF-8",
            type->name, bad->name);
    const ProtobufCFieldDescriptor *cut = some ? first_cut_string(type, bytes, count) : NULL;
    if (cut != NULL)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "malformed %s: string field `%s` has a NUL in it",
            type->name, cut->name);
    return SUMAC_OK;
}

static enum sumac_status unpack_header(
    const wire_type *type, const uint8_t *header, size_t bytes, struct arena *arena,
    const wire_message **unpacked, struct sumac_error *error)
{
    /* a PullRequest is pieces above all, and has the bound of a request */
    const bool is_bounded = wire_has_payload(type) && type != &sumac__v1__pull_request__descriptor;
    struct bounded bounded = {
        .arena = arena, .bytes_max = is_bounded ? WIRE_HEADER_ARENA_BYTES_MAX : arena->bytes_max};
    ProtobufCAllocator allocator = {.alloc = take, .free = give, .allocator_data = &bounded};
    const wire_message *message = protobuf_c_message_unpack(type, &allocator, bytes, header);

    if (message == NULL && bounded.exhausted)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_MESSAGE_TOO_LARGE,
            "%s takes more than %zu bytes of memory to unpack; send it in smaller messages",
            type->name, bounded.bytes_max);
    if (message == NULL)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "malformed %s: its %zu bytes are not that message",
            type->name, bytes);
    const enum sumac_status status =
        wire_may_have_strings(type) ? check_strings(message, header, bytes, error) : SUMAC_OK;
    if (status == SUMAC_OK)
        *unpacked = message;
    return status;
}

enum sumac_status wire_unpack(
    const wire_type *type, const struct span *spans, size_t span_count, struct arena *arena,
    struct wire_received *received, struct sumac_error *error)
{
    struct wire_split split = {0};

    if (wire_has_payload(type)) {
        const char *wrong = split_find(spans, span_count, &split);
        const uint64_t beside = split.field + (split.total - split.payload_end);
        if (wrong == NULL && beside > WIRE_HEADER_BYTES_MAX)
            return fail_invalid(
                error, SUMAC_REASON_MALFORMED,
                "malformed %s: it has %" PRIu64 " bytes beside its payload, at most %u are taken",
                type->name, beside, WIRE_HEADER_BYTES_MAX);
        if (wrong != NULL)
            return fail_invalid(
                error, SUMAC_REASON_MALFORMED, "malformed %s: it %s", type->name, wrong);
    } else {
        for (size_t i = 0; i < span_count; i++)
            split.total += spans[i].bytes;
        split.field = split.payload_begin = split.payload_end = split.total;
    }
    struct wire_received result = {.payload_bytes = split.payload_end - split.payload_begin};
    const uint8_t *header = split_join(spans, span_count, &split, arena);
    if (header == NULL ||
        !split_payload(spans, span_count, &split, arena, &result.payload, &result.payload_spans))
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_MESSAGE_TOO_LARGE,
            "%s takes more than %zu bytes of memory to unpack; send it in smaller messages",
            type->name, arena->bytes_max);
    const size_t header_bytes = (size_t)(split.field + (split.total - split.payload_end));
    const enum sumac_status status =
        unpack_header(type, header, header_bytes, arena, &result.message, error);
    result.arena_bytes = arena->bytes_used;
    if (status == SUMAC_OK)
        *received = result;
    return status;
}
