/* SPDX-License-Identifier: Apache-2.0 */
/* printable.c -- the strings of a message, made safe for a terminal. */
#include <string.h>

#include "text.h"
#include "wire.h"

/* An update function's text has several lines. */
static bool has_lines(const ProtobufCFieldDescriptor *field, const wire_message *message)
{
    return message->descriptor == &sumac__v1__known_function__descriptor &&
           strcmp(field->name, "text") == 0;
}

static void make_lines(char *text)
{
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        text_make_line(text);
        *end = '\n';
    }
    text_make_line(text);
}

static void
make_value(const wire_message *message, const ProtobufCFieldDescriptor *field, void *const *value)
{
    if (*value == NULL || *value == field->default_value)
        return;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        wire_make_printable(*value);
    else if (has_lines(field, message))
        make_lines(*value);
    else
        text_make_line(*value);
}

/* The recursion ends: no message type of proto/ contains itself. */
void wire_make_printable(wire_message *message)
{
    const wire_type *type = message->descriptor;
    const uint8_t *base = (const uint8_t *)message;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const void *member = base + field->offset;
        const void *quantifier = base + field->quantifier_offset;
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            for (size_t j = 0; j < *(const size_t *)quantifier; j++)
                make_value(message, field, *(void *const *const *)member + j);
        } else if (
            (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0 ||
            *(const uint32_t *)quantifier == field->id) {
            make_value(message, field, member);
        }
    }
}
