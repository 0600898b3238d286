/* SPDX-License-Identifier: Apache-2.0 */
/* definition.c -- what a create asks for: read, checked, and compared with what is there. */
#include "judge_state.h"

#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "text.h"

#define TEXT_BYTES 128

/* ---- names ---- */

/* Shards are called name/part_0, name/part_1, … */
static bool ends_like_a_shard(const char *name)
{
    const char *slash = strrchr(name, '/');
    if (slash == NULL || strncmp(slash, "/part_", 6) != 0 || slash[6] == '\0')
        return false;
    for (const char *digit = slash + 6; *digit != '\0'; digit++)
        if (*digit < '0' || *digit > '9')
            return false;
    return true;
}

enum sumac_status judge_name_check(const char *name, struct sumac_error *error)
{
    if (name[0] == '\0')
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME, "the variable's name is empty");
    if (strlen(name) > JUDGE_NAME_BYTES_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the variable's name has %zu bytes, at most %u may be: %.40s…", strlen(name),
            JUDGE_NAME_BYTES_MAX, name);
    if (!text_is_utf8(name, strlen(name)))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the variable's name is not UTF-8");
    if (text_has_control(name, strlen(name)))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the variable's name has a control character, shown here as ?: %s", name);
    if (ends_like_a_shard(name))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the variable's name %s ends like a shard's (/part_ and digits)", name);
    return SUMAC_OK;
}

/* ---- reading ---- */

/* "[2, 3]" */
static const char *print_extents(const wire_variable *variable, char text[TEXT_BYTES])
{
    size_t used = text_print(text, TEXT_BYTES, "[");
    for (size_t axis = 0; axis < variable->n_shape; axis++)
        used += text_print(
            text + used, TEXT_BYTES - used, "%s%llu", axis > 0 ? ", " : "",
            (unsigned long long)variable->shape[axis]);
    text_print(text + used, TEXT_BYTES - used, "]");
    return text;
}

static enum sumac_status read_shape(
    const wire_variable *variable, enum sumac_dtype dtype, struct sumac_shape *shape,
    struct sumac_error *error)
{
    char text[TEXT_BYTES];
    uint64_t elements = 0;
    uint64_t bytes = 0;
    if (variable->n_shape > SUMAC_RANK_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
            "%s: shape %s has %zu axes, at most %d may be", variable->name,
            print_extents(variable, text), variable->n_shape, SUMAC_RANK_MAX);
    *shape = (struct sumac_shape){.rank = (uint32_t)variable->n_shape};
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        shape->extent[axis] = variable->shape[axis];
        if (shape->extent[axis] > INT64_MAX)
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
                "%s: shape %s has an extent above 2^63 - 1 (as a signed number it is %lld)",
                variable->name, print_extents(variable, text), (long long)shape->extent[axis]);
    }
    if (sumac_shape_size(shape, dtype, &elements, &bytes) != SUMAC_OK)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
            "%s: shape %s of %s is more than 2^63 - 1 bytes", variable->name,
            print_extents(variable, text), sumac_dtype_name(dtype));
    return SUMAC_OK;
}

static enum sumac_status read_kinds(
    const wire_variable *variable, struct judge_definition *definition, struct sumac_error *error)
{
    char known[64];
    definition->dtype = (enum sumac_dtype)variable->data_type;
    definition->aggregation = (uint32_t)variable->aggregation;
    definition->synchronization = (uint32_t)variable->synchronization;
    definition->trainable = variable->trainable;
    if (variable->data_type == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: its data type (dtype) is not set; types are %s", variable->name,
            dtype_list_print(known, sizeof known));
    if (sumac_dtype_bytes(definition->dtype) == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: data type %u is none; types are %s", variable->name, (uint32_t)variable->data_type,
            dtype_list_print(known, sizeof known));
    if (definition->aggregation > SUMAC__V1__AGGREGATION__AGGREGATION_ONLY_FIRST_REPLICA)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSUPPORTED, "%s: aggregation %u is none",
            variable->name, definition->aggregation);
    if (definition->synchronization > SUMAC__V1__SYNCHRONIZATION__SYNCHRONIZATION_ON_READ)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSUPPORTED,
            "%s: synchronization %u is none", variable->name, definition->synchronization);
    if (definition->aggregation == SUMAC__V1__AGGREGATION__AGGREGATION_MEAN &&
        !sumac_dtype_is_float(definition->dtype))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: aggregation MEAN needs a float type, not %s", variable->name,
            sumac_dtype_name(definition->dtype));
    return SUMAC_OK;
}

static enum sumac_status read_function(
    const wire_variable *variable, struct judge_definition *definition, struct sumac_error *error)
{
    const wire_function *given = variable->function;
    const bool said = given != NULL && given->function != 0;
    const wire_function none = WIRE_FUNCTION_INIT;
    const uint32_t number = said ? (uint32_t)given->function
                                 : (uint32_t)SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    definition->function = update_find(number);
    if (definition->function == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNKNOWN_FUNCTION,
            "%s: update function %u is none", variable->name, number);
    enum sumac_status status = update_hyperparameters_read(
        definition->function, NULL, given == NULL ? &none : given, &definition->hyperparameters,
        error);
    if (status == SUMAC_OK)
        status = update_check(
            definition->function, definition->function, definition->dtype, variable->name, error);
    if (status == SUMAC_OK)
        status = update_hyperparameters_check(
            definition->function, definition->dtype, &definition->hyperparameters, error);
    return status;
}

static enum sumac_status read_initializer(
    const wire_variable *variable, struct judge_definition *definition, struct sumac_error *error)
{
    const wire_initializer zeros = WIRE_INITIALIZER_INIT;
    const wire_initializer *given = variable->initializer == NULL ? &zeros : variable->initializer;
    const uint32_t kind = (uint32_t)given->kind;
    if (kind > WIRE_INITIALIZER_ASSIGNED)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSUPPORTED, "%s: initializer %u is none",
            variable->name, kind);
    const enum sumac_status status = initializer_check(given, definition->dtype, error);
    if (status != SUMAC_OK)
        return status;
    const bool random = kind == WIRE_INITIALIZER_UNIFORM || kind == WIRE_INITIALIZER_NORMAL;
    definition->initializer.kind = kind;
    definition->initializer.a = random || kind == WIRE_INITIALIZER_CONSTANT ? given->a : 0;
    definition->initializer.b = random ? given->b : 0;
    definition->initializer.seed = random ? given->seed : 0;
    return SUMAC_OK;
}

enum sumac_status judge_definition_read(
    const wire_variable *variable, struct judge_definition *definition, struct sumac_error *error)
{
    struct judge_definition read = {0};
    enum sumac_status status = judge_name_check(variable->name, error);
    if (status == SUMAC_OK)
        status = read_kinds(variable, &read, error);
    if (status == SUMAC_OK)
        status = read_shape(variable, read.dtype, &read.shape, error);
    if (status == SUMAC_OK)
        status = read_function(variable, &read, error);
    if (status == SUMAC_OK)
        status = read_initializer(variable, &read, error);
    if (status == SUMAC_OK)
        status = placement_rule_read(variable->partitioner, &read.partitioner, error);
    if (status == SUMAC_OK)
        *definition = read;
    return status;
}

/* ---- comparing ---- */

/* Bit by bit: a NaN is the same as itself. */
static bool same_number(double a, double b)
{
    uint64_t a_bits, b_bits;
    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    return a_bits == b_bits;
}

static void print_initializer(const struct judge_definition *definition, char text[TEXT_BYTES])
{
    static const char *const kinds[] = {"zeros",   "ones",   "constant",
                                        "uniform", "normal", "assigned"};
    assert(definition->initializer.kind < sizeof kinds / sizeof *kinds);
    text_print(
        text, TEXT_BYTES, "%s(%.17g, %.17g, seed %llu)", kinds[definition->initializer.kind],
        definition->initializer.a, definition->initializer.b,
        (unsigned long long)definition->initializer.seed);
}

static void print_partitioner(const struct judge_definition *definition, char text[TEXT_BYTES])
{
    const struct placement_rule *rule = &definition->partitioner;
    if (rule->kind == WIRE_PARTITIONER_FIXED_SHARDS)
        text_print(text, TEXT_BYTES, "fixed_shards(%lld)", (long long)rule->num_shards);
    else if (rule->kind == WIRE_PARTITIONER_MIN_SIZE)
        text_print(
            text, TEXT_BYTES, "min_size(%lld bytes, at most %lld)",
            (long long)rule->min_shard_bytes, (long long)rule->max_shards);
    else if (rule->kind == WIRE_PARTITIONER_MAX_SIZE)
        text_print(
            text, TEXT_BYTES, "max_size(%lld bytes, at most %lld)",
            (long long)rule->max_shard_bytes, (long long)rule->max_shards);
    else
        text_print(text, TEXT_BYTES, "none");
}

/* The first field in which two definitions differ, NULL for none; both values as text. */
static const char *difference(
    const struct judge_definition *a, const struct judge_definition *b, char a_text[TEXT_BYTES],
    char b_text[TEXT_BYTES])
{
    static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
    static const char *const synchronizations[] = {"AUTO", "NONE", "ON_WRITE", "ON_READ"};
    if (a->dtype != b->dtype) {
        text_print(a_text, TEXT_BYTES, "%s", sumac_dtype_name(a->dtype));
        text_print(b_text, TEXT_BYTES, "%s", sumac_dtype_name(b->dtype));
        return "data_type";
    }
    if (!sumac_shape_equal(&a->shape, &b->shape)) {
        sumac_shape_print(&a->shape, a_text, TEXT_BYTES);
        sumac_shape_print(&b->shape, b_text, TEXT_BYTES);
        return "shape";
    }
    if (a->aggregation != b->aggregation) {
        text_print(a_text, TEXT_BYTES, "%s", aggregations[a->aggregation]);
        text_print(b_text, TEXT_BYTES, "%s", aggregations[b->aggregation]);
        return "aggregation";
    }
    if (a->synchronization != b->synchronization) {
        text_print(a_text, TEXT_BYTES, "%s", synchronizations[a->synchronization]);
        text_print(b_text, TEXT_BYTES, "%s", synchronizations[b->synchronization]);
        return "synchronization";
    }
    if (a->trainable != b->trainable) {
        text_print(a_text, TEXT_BYTES, "%s", a->trainable ? "true" : "false");
        text_print(b_text, TEXT_BYTES, "%s", b->trainable ? "true" : "false");
        return "trainable";
    }
    if (a->initializer.kind != b->initializer.kind ||
        !same_number(a->initializer.a, b->initializer.a) ||
        !same_number(a->initializer.b, b->initializer.b) ||
        a->initializer.seed != b->initializer.seed) {
        print_initializer(a, a_text);
        print_initializer(b, b_text);
        return "initializer";
    }
    return NULL;
}

static const char *how_it_is_split_differs(
    const struct judge_definition *a, const struct judge_definition *b, char a_text[TEXT_BYTES],
    char b_text[TEXT_BYTES])
{
    const struct placement_rule *x = &a->partitioner;
    const struct placement_rule *y = &b->partitioner;
    if (x->kind == y->kind && x->num_shards == y->num_shards &&
        x->min_shard_bytes == y->min_shard_bytes && x->max_shard_bytes == y->max_shard_bytes &&
        x->max_shards == y->max_shards)
        return NULL;
    print_partitioner(a, a_text);
    print_partitioner(b, b_text);
    return "partitioner";
}

static const char *how_it_is_updated_differs(
    const struct judge_definition *a, const struct judge_definition *b, char a_text[TEXT_BYTES],
    char b_text[TEXT_BYTES])
{
    if (a->function != b->function) {
        text_print(a_text, TEXT_BYTES, "%s", a->function->name);
        text_print(b_text, TEXT_BYTES, "%s", b->function->name);
        return "function";
    }
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        const double x = a->hyperparameters.value[i];
        const double y = b->hyperparameters.value[i];
        if ((a->function->hyperparameters >> i & 1u) == 0 || same_number(x, y))
            continue;
        text_print(a_text, TEXT_BYTES, "%.17g", x);
        text_print(b_text, TEXT_BYTES, "%.17g", y);
        return update_hyperparameter_name(i);
    }
    return NULL;
}

enum sumac_status judge_definition_compare(
    const char *name, const struct judge_definition *existing, const struct judge_definition *given,
    struct sumac_error *error)
{
    char there[TEXT_BYTES];
    char here[TEXT_BYTES];
    const char *field = difference(existing, given, there, here);
    if (field == NULL)
        field = how_it_is_split_differs(existing, given, there, here);
    if (field == NULL)
        field = how_it_is_updated_differs(existing, given, there, here);
    if (field == NULL)
        return SUMAC_OK;
    return fail(
        error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
        "%s exists with %s %s, this create says %s", name, field, there, here);
}
