/* SPDX-License-Identifier: Apache-2.0 */
/* split.c -- the walk over a message's top-level wire fields. Tags, lengths and values may straddle
 * spans anywhere. */
#include "split.h"

#include <string.h>

#include "wire.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 };

struct split_cursor {
    const struct span *span; /* the one that `at` is in */
    const struct span *spans_end;
    size_t at;
    uint64_t offset; /* in the message */
    uint64_t total;
};

static const char *const cut_short = "is cut short in the middle of a field";

/* Step over spans that are used up, so that there is a byte at the cursor unless the message is
 * over. */
static inline void settle(struct split_cursor *cursor)
{
    while (cursor->span < cursor->spans_end && cursor->at == cursor->span->bytes) {
        cursor->span++;
        cursor->at = 0;
    }
}

static bool skip(struct split_cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor->total - cursor->offset)
        return false;
    cursor->offset += bytes;
    while (bytes > 0) {
        const size_t here = cursor->span->bytes - cursor->at;
        const size_t step = bytes < here ? (size_t)bytes : here;
        cursor->at += step;
        bytes -= step;
        settle(cursor);
    }
    return true;
}

/* A varint of at most ten bytes. False: the message ends within it, or it is longer. */
static bool read_varint(struct split_cursor *cursor, uint64_t *value)
{
    uint64_t read = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (cursor->offset == cursor->total)
            return false;
        const uint8_t byte = cursor->span->data[cursor->at];
        cursor->at++;
        cursor->offset++;
        settle(cursor);
        if (shift < 64)
            read |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = read;
            return true;
        }
    }
    return false;
}

/* Over the value of a field other than payload. */
static bool skip_value(struct split_cursor *cursor, unsigned encoding)
{
    uint64_t value;

    switch (encoding) {
    case VARINT:
        return read_varint(cursor, &value);
    case FIXED64:
        return skip(cursor, 8);
    case LENGTH_DELIMITED:
        return read_varint(cursor, &value) && skip(cursor, value);
    case FIXED32:
        return skip(cursor, 4);
    default:
        return false;
    }
}

#define PAYLOAD_TAG (WIRE_PAYLOAD_FIELD << 3 | LENGTH_DELIMITED)
_Static_assert(PAYLOAD_TAG < 0x80, "the payload's tag has one byte");

/* Where the field at `at` ends, if its tag, and its length, have one byte each, it is not the
 * payload, and it lies within the span; else 0. */
static inline size_t field_end(const struct span *span, size_t at)
{
    const uint8_t *const data = span->data;
    const size_t bytes = span->bytes, value = at + 1;
    size_t end = 0;

    if (value >= bytes || data[at] >= 0x80 || data[at] < 8 || data[at] == PAYLOAD_TAG)
        return 0;
    switch (data[at] & 7) {
    case VARINT:
        for (end = value; end < bytes && end < value + 9 && data[end] >= 0x80;)
            end++;
        if (end == bytes || data[end] >= 0x80)
            return 0;
        end++;
        break;
    case LENGTH_DELIMITED:
        if (data[value] < 0x80)
            end = value + 1 + data[value];
        break;
    default:
        break;
    }
    return end <= bytes ? end : 0;
}

/* Over small fields, as nearly all are. */
static void skip_small(struct split_cursor *cursor)
{
    size_t at = cursor->at;

    if (cursor->span == cursor->spans_end)
        return;
    for (size_t end; (end = field_end(cursor->span, at)) > 0;)
        at = end;
    cursor->offset += at - cursor->at;
    cursor->at = at;
    settle(cursor);
}

static const char *
note_payload(struct split_cursor *cursor, uint64_t field, struct wire_split *split)
{
    uint64_t bytes;

    if (split->field != split->total)
        return "has two payloads";
    if (!read_varint(cursor, &bytes))
        return cut_short;
    split->field = field;
    split->payload_begin = cursor->offset;
    if (!skip(cursor, bytes))
        return "has a payload that is cut short";
    split->payload_end = cursor->offset;
    return NULL;
}

const char *split_find(const struct span *spans, size_t span_count, struct wire_split *split)
{
    uint64_t total = 0;

    for (size_t i = 0; i < span_count; i++)
        total += spans[i].bytes;
    *split = (struct wire_split){
        .total = total, .field = total, .payload_begin = total, .payload_end = total};
    struct split_cursor cursor = {.span = spans, .spans_end = spans + span_count, .total = total};
    settle(&cursor);
    for (skip_small(&cursor); cursor.offset < total; skip_small(&cursor)) {
        const uint64_t field = cursor.offset;
        uint64_t tag;
        if (!read_varint(&cursor, &tag))
            return cut_short;
        if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
            return "has a field whose number is out of range";
        if (tag == PAYLOAD_TAG) {
            const char *wrong = note_payload(&cursor, field, split);
            if (wrong != NULL)
                return wrong;
        } else if (!skip_value(&cursor, (unsigned)(tag & 7))) {
            return cut_short;
        }
    }
    return NULL;
}

/* Copy the bytes [begin, end) of the message to `out`; returns the end of the copy. */
static uint8_t *
copy(const struct span *spans, size_t span_count, uint64_t begin, uint64_t end, uint8_t *out)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < span_count && offset < end; i++) {
        const uint64_t span_end = offset + spans[i].bytes;
        const uint64_t from = begin > offset ? begin : offset;
        const uint64_t to = end < span_end ? end : span_end;
        if (from < to) {
            memcpy(out, spans[i].data + (from - offset), (size_t)(to - from));
            out += to - from;
        }
        offset = span_end;
    }
    return out;
}

const uint8_t *split_join(
    const struct span *spans, size_t span_count, const struct wire_split *split,
    struct arena *arena)
{
    static const uint8_t nothing[1];
    const uint64_t header_bytes = split->field + (split->total - split->payload_end);

    if (header_bytes == 0)
        return nothing;
    if (split->payload_end == split->total && split->field <= spans[0].bytes)
        return spans[0].data;
    uint8_t *joined = arena_take(arena, (size_t)header_bytes);
    if (joined == NULL)
        return NULL;
    uint8_t *end = copy(spans, span_count, 0, split->field, joined);
    (void)copy(spans, span_count, split->payload_end, split->total, end);
    return joined;
}

bool split_payload(
    const struct span *spans, size_t span_count, const struct wire_split *split,
    struct arena *arena, const struct span **payload, size_t *payload_spans)
{
    *payload = NULL;
    *payload_spans = 0;
    if (split->payload_begin == split->payload_end)
        return true;
    struct span *parts = arena_take(arena, span_count * sizeof *parts);
    if (parts == NULL)
        return false;
    size_t count = 0;
    uint64_t offset = 0;
    for (size_t i = 0; i < span_count && offset < split->payload_end; i++) {
        const uint64_t span_end = offset + spans[i].bytes;
        const uint64_t from = split->payload_begin > offset ? split->payload_begin : offset;
        const uint64_t to = split->payload_end < span_end ? split->payload_end : span_end;
        if (from < to)
            parts[count++] = (struct span){
                .data = spans[i].data + (from - offset), .bytes = (size_t)(to - from)};
        offset = span_end;
    }
    *payload = parts;
    *payload_spans = count;
    return true;
}
