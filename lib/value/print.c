/* SPDX-License-Identifier: Apache-2.0 */
/* print.c -- a value as one line of text. */
#include "value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dtype.h"
#include "half.h"
#include "text.h"
#include "host_copy.h"

#define ELEMENTS_PRINTED_MAX 16u
#define KEY_PRINTED_MAX 64 /* bytes */

/* What does not fit is counted all the same. */
struct line {
    FILE *stream; /* NULL: into text */
    char *text;
    size_t room, used; /* used: of the whole */
};

static void say(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct line *line, const char *format, ...)
{
    char piece[320];
    va_list values;

    va_start(values, format);
    const size_t bytes = text_print_values(piece, sizeof piece, format, values);
    va_end(values);
    if (line->stream != NULL)
        (void)fputs(piece, line->stream);
    else if (line->used < line->room)
        (void)text_print(line->text + line->used, line->room - line->used, "%s", piece);
    line->used += bytes;
}

typedef void say_element(struct line *line, const void *elements, uint64_t i);

/* How an element of each kind is printed. */
#define SAID_BOOL(name, element) "%s", (element) != 0 ? "true" : "false"
#define SAID_INT(name, element) "%" PRId64, (int64_t)(element)
#define SAID_UINT(name, element) "%" PRIu64, (uint64_t)(element)
#define SAID_HALF(name, element) "%.5g", (double)HALF_WIDEN_##name(element)
#define SAID_FLOAT(name, element) "%.*g", (int)sizeof(element) * 2 + 1, (double)(element)
#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    static void say_##name(struct line *line, const void *elements, uint64_t i)                    \
    {                                                                                              \
        say(line, SAID_##kind(name, ((const ELEMENT_##kind(name) *)elements)[i]));                 \
    }
SUMAC_DTYPE_LIST(X)
#undef X
#define X(NAME, number, bytes, kind, name, numpy) [number] = say_##name,
static say_element *const elements_say[DTYPES_MAX + 1] = {SUMAC_DTYPE_LIST(X)};
#undef X

/* The first elements, up to `count`, where the host sees them. false: nobody gets at them. */
static bool
read_first(const struct sumac_tensor *tensor, uint64_t count, uint64_t room[ELEMENTS_PRINTED_MAX])
{
    struct sumac_tensor first = *tensor;
    struct sumac_error error;

    first.shape = SUMAC_SHAPE(count < ELEMENTS_PRINTED_MAX ? count : ELEMENTS_PRINTED_MAX);
    return host_copy_read(&first, room, &error) == SUMAC_OK;
}

/* "float32[2, 3] 1 2 3 4 5 6", "float32[2] on GPU:1 1 2"; of many elements the first ones. */
static void say_tensor(struct line *line, const struct sumac_tensor *tensor)
{
    char shape[128];
    const uint64_t elements = sumac_tensor_bytes(tensor) / dtype_bytes(tensor->dtype);
    uint64_t data[ELEMENTS_PRINTED_MAX]; /* the widest is of 8 bytes */

    say(line, "%s%s", sumac_dtype_name(tensor->dtype),
        sumac_shape_print(&tensor->shape, shape, sizeof shape));
    if (!host_copy_is_here(tensor->buffer))
        say(line, " on GPU:%" PRIu32, sumac_buffer_place(tensor->buffer).device);
    if (!read_first(tensor, elements, data)) {
        say(line, " (not to be read)");
        return;
    }
    for (uint64_t i = 0; i < elements && i < ELEMENTS_PRINTED_MAX; i++) {
        say(line, " ");
        elements_say[tensor->dtype](line, data, i);
    }
    if (elements > ELEMENTS_PRINTED_MAX)
        say(line, " ... (%" PRIu64 " elements)", elements);
}

static void say_value(struct line *line, const struct sumac_value *value)
{
    static const char *const opens[] = {
        [SUMAC_VALUE_INDEXED_SLICES] = "(",
        [SUMAC_VALUE_LIST] = "[",
        [SUMAC_VALUE_TUPLE] = "(",
        [SUMAC_VALUE_DICT] = "{",
        [SUMAC_VALUE_PER_REPLICA] = "per_replica(",
        [SUMAC_VALUE_MIRRORED] = "mirrored("};
    const enum sumac_value_kind kind = sumac_value_kind(value);
    char shape[128], key[2 * KEY_PRINTED_MAX];

    if (kind == SUMAC_VALUE_NONE) {
        say(line, "%s", value == NULL ? "NULL" : "none");
        return;
    }
    if (kind == SUMAC_VALUE_TENSOR) {
        say_tensor(line, &value->tensor);
        return;
    }
    if (kind == SUMAC_VALUE_INDEXED_SLICES)
        say(line, "slices of %s", sumac_shape_print(&value->dense, shape, sizeof shape));
    say(line, "%s", opens[kind]);
    for (uint32_t i = 0; i < value->count; i++) {
        if (i > 0)
            say(line, ", ");
        if (value->keys != NULL) {
            (void)text_print_line(key, sizeof key, "\"%.*s\": ", KEY_PRINTED_MAX, value->keys[i]);
            say(line, "%s", key);
        }
        if (value_is_leaf_of_replicas(value))
            say(line, "%" PRIu32 ": ", value->first + i);
        say_value(line, value->items[i]);
    }
    if (kind == SUMAC_VALUE_TUPLE && value->count == 1)
        say(line, ",");
    say(line, "%s", kind == SUMAC_VALUE_LIST ? "]" : kind == SUMAC_VALUE_DICT ? "}" : ")");
}

size_t sumac_value_print(const struct sumac_value *value, char *text, size_t text_bytes)
{
    struct line line = {.text = text, .room = text == NULL ? 0 : text_bytes};

    if (line.room > 0)
        text[0] = '\0';
    say_value(&line, value);
    return line.used;
}

void sumac_value_fprint(FILE *stream, const struct sumac_value *value)
{
    struct line line = {.stream = stream};

    if (stream != NULL)
        say_value(&line, value);
}
