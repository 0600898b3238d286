/* SPDX-License-Identifier: Apache-2.0 */
/* json.h -- what --json prints, and the records of runs: one of the project's two doors to Jansson.
 *
 * A value that is put into another belongs to it.
 */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wire.h"

/* Jansson's integers are signed: what is larger keeps its magnitude as a real. */
static inline json_t *json_number(uint64_t number)
{
    return number > INT64_MAX ? json_real((double)number) : json_integer((json_int_t)number);
}

/* One that is not finite becomes null: JSON has none. */
static inline json_t *json_finite(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

/* Takes  value. NULL is left out. */
static inline void json_put(json_t *object, const char *key, json_t *value)
{
    (void)json_object_set_new(object, key, value);
}

/* An object with these members, {key, value} each. Takes  the values. NULL is left out. */
#define JSON_OBJECT(...)                                                                           \
    json_put_members(json_object(), (const struct json_member[]){__VA_ARGS__, {NULL, NULL}})
struct json_member {
    const char *key;
    json_t *value;
};
json_t *json_put_members(json_t *object, const struct json_member *members);

static inline void json_add(json_t *array, json_t *value)
{
    (void)json_array_append_new(array, value);
}

/* Put the fields of a message that have these names in the proto. Each is a number that is not
 * negative, or a text. */
#define JSON_PUT_FIELDS(object, message, ...)                                                      \
    json_put_fields(object, message, (const char *const[]){__VA_ARGS__, NULL})
void json_put_fields(json_t *object, const wire_message *message, const char *const *names);

/* The value as one document, or `line` as one line of a log of them, with a newline at its end.
 * Numbers have the fewest digits that read back as the same. Takes  value. False: it could not be
 * written. */
bool json_print(json_t *value, bool line, FILE *file);
/* A text alone, in quotes. */
bool json_print_text(const char *text, FILE *file);
