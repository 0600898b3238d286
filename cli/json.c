/* SPDX-License-Identifier: Apache-2.0 */
/* json.c -- messages as objects, and documents as text. */
#include "json.h"

#include <assert.h>

#include "number.h"

json_t *json_put_members(json_t *object, const struct json_member *members)
{
    for (; members->key != NULL; members++)
        json_put(object, members->key, members->value);
    return object;
}

void json_put_fields(json_t *object, const wire_message *message, const char *const *names)
{
    for (; *names != NULL; names++) {
        const ProtobufCFieldDescriptor *const field =
            protobuf_c_message_descriptor_get_field_by_name(message->descriptor, *names);
        assert(field != NULL && field->label != PROTOBUF_C_LABEL_REPEATED);
        const void *const at = (const char *)message + field->offset;
        if (field->type == PROTOBUF_C_TYPE_STRING)
            json_put(object, *names, json_string(*(char *const *)at));
        else if (field->type == PROTOBUF_C_TYPE_UINT64)
            json_put(object, *names, json_number(*(const uint64_t *)at));
        else
            json_put(object, *names, json_number(*(const uint32_t *)at));
    }
}

/* A new line, as far in as `depth` says; below 0: a blank, but not after a bracket. */
static void begin_line(int depth, bool after_bracket, FILE *file)
{
    if (depth >= 0)
        fprintf(file, "\n%*s", 2 * depth, "");
    else if (!after_bracket)
        fputc(' ', file);
}

/* Jansson prints every real with one number of digits, and so none in its shortest form: reals, and
 * what may hold them, are printed here. */
static bool print_node(json_t *node, int depth, FILE *file)
{
    char text[NUMBER_BYTES];
    const bool is_object = json_is_object(node);
    const size_t count = json_object_size(node) + json_array_size(node);
    const int inner = depth < 0 ? depth : depth + 1;
    bool printed = true;

    if (json_is_real(node))
        return fputs(number_print(SUMAC_FLOAT64, json_real_value(node), text), file) >= 0;
    if (count == 0)
        return json_dumpf(node, file, JSON_ENCODE_ANY) == 0;
    fputc(is_object ? '{' : '[', file);
    void *item = json_object_iter(node);
    for (size_t i = 0; i < count; i++, item = json_object_iter_next(node, item)) {
        if (i > 0)
            fputc(',', file);
        begin_line(inner, i == 0, file);
        if (is_object)
            printed = json_print_text(json_object_iter_key(item), file) && printed;
        if (is_object)
            fputs(": ", file);
        json_t *const value = is_object ? json_object_iter_value(item) : json_array_get(node, i);
        printed = print_node(value, inner, file) && printed;
    }
    begin_line(depth, true, file);
    return fputc(is_object ? '}' : ']', file) != EOF && printed;
}

bool json_print_text(const char *text, FILE *file)
{
    json_t *const value = json_string(text);
    const bool printed = json_dumpf(value, file, JSON_ENCODE_ANY) == 0;

    json_decref(value);
    return printed;
}

bool json_print(json_t *value, bool line, FILE *file)
{
    const bool printed = value != NULL && print_node(value, line ? -1 : 0, file);

    json_decref(value);
    return fputc('\n', file) != EOF && printed;
}
