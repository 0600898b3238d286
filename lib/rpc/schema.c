/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c -- the descriptor set, read once with the code generated for
 * google/protobuf/descriptor.proto.
 *
 * That type contains itself, so it is never unpacked from the network; this one set is the
 * program's own. */
#include "schema.h"

#include <string.h>

#include "google/protobuf/descriptor.pb-c.h"
#include "wire.h"

typedef Google__Protobuf__FileDescriptorSet file_set;
typedef Google__Protobuf__FileDescriptorProto file_proto;
typedef Google__Protobuf__ServiceDescriptorProto service_proto;
typedef Google__Protobuf__DescriptorProto message_proto;
typedef Google__Protobuf__EnumDescriptorProto enum_proto;

struct schema {
    file_set *set;
    struct span files[SCHEMA_FILES_MAX]; /* serialized, in the set's order */
};

/* The set is `repeated FileDescriptorProto file = 1`: note where each one lies. */
static bool find_files(struct schema *schema, const uint8_t *at, const uint8_t *end)
{
    unsigned count = 0;

    while (at < end) {
        size_t bytes = 0;
        if (*at++ != (1 << 3 | 2) || count == SCHEMA_FILES_MAX)
            return false;
        for (unsigned shift = 0; at < end; shift += 7) {
            bytes |= (size_t)(*at & 0x7f) << shift;
            if (*at++ < 0x80)
                break;
        }
        if (bytes > (size_t)(end - at))
            return false;
        schema->files[count++] = (struct span){.data = at, .bytes = bytes};
        at += bytes;
    }
    return count == schema->set->n_file;
}

struct schema *schema_create(void)
{
    struct schema *schema = memory_take(&memory_heap, sizeof *schema);

    if (schema == NULL)
        return NULL;
    const size_t bytes = (size_t)(wire_descriptor_set_end - wire_descriptor_set);
    schema->set = google__protobuf__file_descriptor_set__unpack(NULL, bytes, wire_descriptor_set);
    if (schema->set == NULL || !find_files(schema, wire_descriptor_set, wire_descriptor_set_end)) {
        schema_destroy(schema);
        return NULL;
    }
    return schema;
}

void schema_destroy(struct schema *schema)
{
    if (schema == NULL)
        return;
    google__protobuf__file_descriptor_set__free_unpacked(schema->set, NULL);
    memory_give(&memory_heap, schema, sizeof *schema);
}

/* What follows "prefix." in `name`, or `name` for an empty prefix; NULL when it does not begin so.
 */
static const char *after(const char *name, const char *prefix)
{
    const size_t bytes = strlen(prefix);

    if (bytes == 0)
        return name;
    return strncmp(name, prefix, bytes) == 0 && name[bytes] == '.' ? name + bytes + 1 : NULL;
}

static bool read_method(const service_proto *service, const char *name, struct schema_method *found)
{
    for (size_t i = 0; i < service->n_method; i++) {
        if (strcmp(service->method[i]->name, name) != 0)
            continue;
        *found = (struct schema_method){
            .client_streams = service->method[i]->client_streaming != 0,
            .server_streams = service->method[i]->server_streaming != 0};
        return true;
    }
    return false;
}

bool schema_find_method(
    const struct schema *schema, const char *service, const char *method,
    struct schema_method *found)
{
    for (size_t i = 0; i < schema->set->n_file; i++) {
        const file_proto *file = schema->set->file[i];
        const char *local = after(service, file->package);
        for (size_t j = 0; local != NULL && j < file->n_service; j++)
            if (strcmp(file->service[j]->name, local) == 0)
                return read_method(file->service[j], method, found);
    }
    return false;
}

int schema_find_file(const struct schema *schema, const char *path)
{
    for (size_t i = 0; i < schema->set->n_file; i++)
        if (strcmp(schema->set->file[i]->name, path) == 0)
            return (int)i;
    return -1;
}

static bool enum_declares(const enum_proto *type, const char *name)
{
    if (strcmp(type->name, name) == 0)
        return true;
    const char *rest = after(name, type->name);
    for (size_t i = 0; rest != NULL && i < type->n_value; i++)
        if (strcmp(type->value[i]->name, rest) == 0)
            return true;
    return false;
}

/* `members`: fields and enumeration values count as well. */
static bool message_declares(const message_proto *type, const char *name, bool members)
{
    if (strcmp(type->name, name) == 0)
        return true;
    const char *rest = after(name, type->name);
    if (rest == NULL)
        return false;
    for (size_t i = 0; i < type->n_nested_type; i++)
        if (message_declares(type->nested_type[i], rest, members))
            return true;
    for (size_t i = 0; members && i < type->n_enum_type; i++)
        if (enum_declares(type->enum_type[i], rest))
            return true;
    for (size_t i = 0; members && i < type->n_field; i++)
        if (strcmp(type->field[i]->name, rest) == 0)
            return true;
    return false;
}

static bool service_declares(const service_proto *service, const char *name)
{
    struct schema_method unused;

    if (strcmp(service->name, name) == 0)
        return true;
    const char *rest = after(name, service->name);
    return rest != NULL && read_method(service, rest, &unused);
}

static bool file_declares(const file_proto *file, const char *name)
{
    for (size_t i = 0; i < file->n_service; i++)
        if (service_declares(file->service[i], name))
            return true;
    for (size_t i = 0; i < file->n_message_type; i++)
        if (message_declares(file->message_type[i], name, true))
            return true;
    for (size_t i = 0; i < file->n_enum_type; i++)
        if (enum_declares(file->enum_type[i], name))
            return true;
    return false;
}

int schema_find_symbol(const struct schema *schema, const char *symbol)
{
    for (size_t i = 0; i < schema->set->n_file; i++) {
        const char *local = after(symbol, schema->set->file[i]->package);
        if (local != NULL && file_declares(schema->set->file[i], local))
            return (int)i;
    }
    return -1;
}

bool schema_has_message(const struct schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->set->n_file; i++) {
        const file_proto *file = schema->set->file[i];
        const char *local = after(name, file->package);
        for (size_t j = 0; local != NULL && j < file->n_message_type; j++)
            if (message_declares(file->message_type[j], local, false))
                return true;
    }
    return false;
}

struct span schema_file(const struct schema *schema, int file) { return schema->files[file]; }

unsigned schema_closure(const struct schema *schema, int file, int *files)
{
    bool seen[SCHEMA_FILES_MAX] = {false};
    unsigned count = 0;

    files[count++] = file;
    seen[file] = true;
    for (unsigned i = 0; i < count; i++) {
        const file_proto *of = schema->set->file[files[i]];
        for (size_t j = 0; j < of->n_dependency; j++) {
            const int needed = schema_find_file(schema, of->dependency[j]);
            if (needed < 0 || seen[needed])
                continue;
            seen[needed] = true;
            files[count++] = needed;
        }
    }
    return count;
}
