/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h -- what the descriptor set of proto/ says: which methods stream, and the files that
 * reflection gives away. */
#pragma once

#include <stdbool.h>

#include "memory.h"

#define SCHEMA_FILES_MAX 64u

struct schema;

/* NULL: no memory, or the set is none. */
struct schema *schema_create(void);
void schema_destroy(struct schema *schema);

struct schema_method {
    bool client_streams;
    bool server_streams;
};

/* False: the set has no such method. */
bool schema_find_method(
    const struct schema *schema, const char *service, const char *method,
    struct schema_method *found);

/* The index of the file of that path, or of the one that declares a full name
 * ("sumac.v1.Transfer.Push"); -1: none. */
int schema_find_file(const struct schema *schema, const char *path);
int schema_find_symbol(const struct schema *schema, const char *symbol);
/* Is it the full name of a message? */
bool schema_has_message(const struct schema *schema, const char *name);

/* A file as it was serialized. Lends  for the schema's life. */
struct span schema_file(const struct schema *schema, int file);
/* The file and all that it imports, each once, into files[SCHEMA_FILES_MAX]; returns how many. */
unsigned schema_closure(const struct schema *schema, int file, int *files);
