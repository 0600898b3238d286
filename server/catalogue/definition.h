/* SPDX-License-Identifier: Apache-2.0 */
/* definition.h -- how a variable is defined: what a create says of it, and what a later, equal
 * create must say again.
 *
 * ps 0 reads it from a create and compares it, every ps reads it from ps 0's order, and both write
 * it into their answers. What a variable has beyond that (its number, its shards) is not of its
 * definition.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "functions.h"
#include "memory.h"
#include "placement.h"
#include "sumac/status.h"
#include "sumac/tensor.h"
#include "update.h"
#include "wire.h"

#define DEFINITION_NAME_BYTES_MAX 1024u
/* Of a variable in an answer, every number with as many bytes as it may take. */
#define DEFINITION_VARIABLE_BYTES_MAX 378u /* without its name and its shards, nor … */
#define DEFINITION_CURRENT_BYTES_MAX 176u  /* … its function as it is by now */
#define DEFINITION_SHARD_BYTES_MAX 70u     /* without the name of a task */

/* An attribute is a member here, and a field of the message. */
struct definition {
    enum sumac_dtype dtype;
    struct sumac_shape shape;
    uint32_t aggregation;
    uint32_t synchronization;
    bool trainable;
    struct {
        uint32_t kind;
        double a, b;
        uint64_t seed;
    } initializer; /* unused parameters are 0 */
    struct placement_rule partitioner;
    const struct update_function *function;
    struct update_hyperparameters hyperparameters; /* all that the function takes */
};

/* Shards are called name/part_0, name/part_1, …: so many bytes of it are the variable's name, and
 * that is its number (more than any where it is too large, 0 where it is no shard's). */
size_t definition_shard_name(const char *name, uint64_t *shard);

/* The name, and every attribute, with the defaults of what is left out; its function is one of
 * `functions` (NULL: of the table). Fails  INVALID_ARGUMENT, naming the variable and what is wrong
 * with it; *definition is left alone. */
enum sumac_status definition_read(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error);

/* OK, or ALREADY_EXISTS naming the first attribute that differs, with both values. */
enum sumac_status definition_compare(
    const char *name, const struct definition *existing, const struct definition *given,
    struct sumac_error *error);

/* Every attribute into the message, as copies in `arena`. False: it is full, and the message is not
 * to be used. */
bool definition_write(
    const struct definition *definition, struct arena *arena, wire_variable *message);

/* An update function with those hyperparameters that `which` has the bits of, UPDATE_SCHEDULE_SET
 * with its schedule, too; or with all that it takes, as they are. NULL: the arena is full. */
wire_function *definition_write_function(
    const struct update_function *function, const struct update_hyperparameters *values,
    uint32_t which, struct arena *arena);
static inline wire_function *definition_write_current(
    const struct update_function *function, const struct update_hyperparameters *values,
    struct arena *arena)
{
    const bool any = update_schedule_is_any(&values->schedule);

    return definition_write_function(
        function, values, function->hyperparameters | (any ? UPDATE_SCHEDULE_SET : 0), arena);
}
/* Are all of them the same? */
bool definition_same_hyperparameters(
    const struct update_hyperparameters *a, const struct update_hyperparameters *b);

/* Its creator gives it its value. */
static inline bool definition_is_assigned(const struct definition *definition)
{
    return definition->initializer.kind == WIRE_INITIALIZER_ASSIGNED;
}
