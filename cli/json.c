/* SPDX-License-Identifier: Apache-2.0 */
/* json.c -- JSON values over Jansson: a value is one of its json_t. */
#include "json.h"

#include <jansson.h>
#include <math.h>

#include "number.h"

static json_t *of(const struct value *value) { return (json_t *)(uintptr_t)value; }

static struct value *as_value(json_t *json) { return (struct value *)(void *)json; }

struct value *value_object(void) { return as_value(json_object()); }
struct value *value_array(void) { return as_value(json_array()); }
struct value *value_text(const char *text) { return as_value(json_string(text)); }
struct value *value_integer(int64_t number) { return as_value(json_integer(number)); }
struct value *value_bool(bool truth) { return as_value(json_boolean(truth)); }
void value_free(struct value *value) { json_decref(of(value)); }

/* Jansson's integers are signed: what is larger keeps its magnitude as a real. */
struct value *value_number(uint64_t number)
{
    if (number > INT64_MAX)
        return as_value(json_real((double)number));
    return as_value(json_integer((json_int_t)number));
}

struct value *value_real(double number)
{
    return as_value(isfinite(number) ? json_real(number) : json_null());
}

void value_put(struct value *object, const char *key, struct value *value)
{
    (void)json_object_set_new(of(object), key, of(value));
}

void value_add(struct value *array, struct value *value)
{
    (void)json_array_append_new(of(array), of(value));
}

/* ---- print */

/* Jansson prints every real with one number of digits, and so none in its shortest form: numbers
 * are printed here. */
static bool print_node(const json_t *node, int depth, FILE *file);

/* A new line, as far in as `depth` says; below 0: a blank. */
static void begin_line(int depth, FILE *file)
{
    if (depth < 0)
        fputc(' ', file);
    else
        fprintf(file, "\n%*s", 2 * depth, "");
}

static bool print_object(const json_t *node, int depth, FILE *file)
{
    const int inner = depth < 0 ? depth : depth + 1;
    bool printed = true, first = true;
    const char *key = NULL;
    json_t *item = NULL;

    fputc('{', file);
    json_object_foreach((json_t *)(uintptr_t)node, key, item)
    {
        if (!first)
            fputc(',', file);
        if (!first || inner >= 0)
            begin_line(inner, file);
        first = false;
        printed = value_print_text(key, file) && printed;
        fputs(": ", file);
        printed = print_node(item, inner, file) && printed;
    }
    if (!first && depth >= 0)
        begin_line(depth, file);
    fputc('}', file);
    return printed;
}

static bool print_list(const json_t *node, int depth, FILE *file)
{
    const int inner = depth < 0 ? depth : depth + 1;
    bool printed = true;
    size_t index = 0;
    json_t *item = NULL;

    fputc('[', file);
    json_array_foreach(node, index, item)
    {
        if (index > 0)
            fputc(',', file);
        if (index > 0 || inner >= 0)
            begin_line(inner, file);
        printed = print_node(item, inner, file) && printed;
    }
    if (index > 0 && depth >= 0)
        begin_line(depth, file);
    fputc(']', file);
    return printed;
}

static bool print_node(const json_t *node, int depth, FILE *file)
{
    char text[NUMBER_BYTES];

    if (json_is_object(node))
        return print_object(node, depth, file);
    if (json_is_array(node))
        return print_list(node, depth, file);
    if (json_is_real(node))
        return fputs(number_print(SUMAC_FLOAT64, json_real_value(node), text), file) >= 0;
    return json_dumpf(node, file, JSON_ENCODE_ANY) == 0;
}

bool value_print(const struct value *value, FILE *file)
{
    return value != NULL && print_node(of(value), 0, file) && fputc('\n', file) != EOF;
}

bool value_print_line(const struct value *value, FILE *file)
{
    return value != NULL && print_node(of(value), -1, file) && fputc('\n', file) != EOF;
}

bool value_print_text(const char *text, FILE *file)
{
    json_t *node = json_string(text);
    const bool printed = node != NULL && json_dumpf(node, file, JSON_ENCODE_ANY) == 0;

    json_decref(node);
    return printed;
}

/* ---- read */

struct value *value_parse(const char *text) { return as_value(json_loads(text, 0, NULL)); }

const char *value_get_text(const struct value *object, const char *key)
{
    return json_string_value(json_object_get(of(object), key));
}

const struct value *value_get_array(const struct value *object, const char *key)
{
    json_t *found = json_object_get(of(object), key);

    return json_is_array(found) ? as_value(found) : NULL;
}

uint64_t value_get_number(const struct value *object, const char *key, uint64_t otherwise)
{
    const json_t *found = json_object_get(of(object), key);

    return json_is_integer(found) ? (uint64_t)json_integer_value(found) : otherwise;
}

size_t value_count(const struct value *array) { return json_array_size(of(array)); }

const char *value_item_text(const struct value *array, size_t index)
{
    return json_string_value(json_array_get(of(array), index));
}
