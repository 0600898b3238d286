/* SPDX-License-Identifier: Apache-2.0 */
/* json.h -- JSON values: what --json prints, and the records of runs. json.c is one of the
 * project's two doors to Jansson.
 *
 * A value that is put into another belongs to it. No memory: the value is NULL, and putting NULL
 * anywhere does nothing.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct value;

/* Gives  a new value; release with value_free unless it was put into another. */
struct value *value_object(void);
struct value *value_array(void);
struct value *value_text(const char *text); /* UTF-8 */
struct value *value_number(uint64_t number);
struct value *value_integer(int64_t number);
struct value *value_real(double number); /* one that is not finite becomes null: JSON has none */
struct value *value_bool(bool truth);
void value_free(struct value *value);

/* Takes  value. */
void value_put(struct value *object, const char *key, struct value *value);
void value_add(struct value *array, struct value *value);

/* The value as one document, or as one line of a log of them, with a newline at its end. Numbers
 * have the fewest digits that read back as the same. False: it could not be written. */
bool value_print(const struct value *value, FILE *file);
bool value_print_line(const struct value *value, FILE *file);
/* A text alone, in quotes, with no newline. */
bool value_print_text(const char *text, FILE *file);

/* Gives  the value in `text`, or NULL: not JSON. */
struct value *value_parse(const char *text);
/* Lends  valid with the object. NULL: no such key, or another type. */
const char *value_get_text(const struct value *object, const char *key);
const struct value *value_get_array(const struct value *object, const char *key);
/* `otherwise` when there is none. */
uint64_t value_get_number(const struct value *object, const char *key, uint64_t otherwise);
size_t value_count(const struct value *array);
const char *value_item_text(const struct value *array, size_t index);

#endif
