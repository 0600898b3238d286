/* json.c -- JSON values over Jansson: a value is one of its json_t. */
#include "json.h"

#include <jansson.h>
#include <math.h>

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

bool value_print(const struct value *value, FILE *file)
{
    return value != NULL &&
           json_dumpf(of(value), file, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 &&
           fputc('\n', file) != EOF;
}

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
