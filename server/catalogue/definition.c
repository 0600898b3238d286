/* SPDX-License-Identifier: Apache-2.0 */
/* definition.c -- what a create asks for: a row for each attribute says how it is read from a
 * message, compared, printed, and written into one.
 */
#include "definition.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "text.h"

#define TEXT_BYTES 128
#define NAMES_BYTES 128
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- names ---- */

size_t definition_shard_name(const char *name, uint64_t *shard)
{
    const char *slash = strrchr(name, '/');
    uint64_t number = 0;

    *shard = 0;
    if (slash == NULL || strncmp(slash, "/part_", 6) != 0 || slash[6] == '\0')
        return strlen(name);
    for (const char *digit = slash + 6; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9')
            return strlen(name);
        number = number > PLACEMENT_SHARDS_MAX ? number : number * 10 + (uint64_t)(*digit - '0');
    }
    *shard = number;
    return (size_t)(slash - name);
}

enum sumac_status definition_name_check(const char *name, struct sumac_error *error)
{
    if (name[0] == '\0')
        return fail_invalid(error, SUMAC_REASON_BAD_NAME, "the variable's name is empty");
    if (strlen(name) > DEFINITION_NAME_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "the variable's name has %zu bytes, at most %u may be: %.40s…", strlen(name),
            DEFINITION_NAME_BYTES_MAX, name);
    if (!text_is_utf8(name, strlen(name)))
        return fail_invalid(error, SUMAC_REASON_BAD_NAME, "the variable's name is not UTF-8");
    if (text_has_control(name, strlen(name)))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "the variable's name has a control character, shown here as ?: %s", name);
    uint64_t shard;
    if (name[definition_shard_name(name, &shard)] != '\0')
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "the variable's name %s ends like a shard's (/part_ and digits)", name);
    return SUMAC_OK;
}

/* ---- data type ---- */

static enum sumac_status read_dtype(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    char known[64];

    (void)functions;
    definition->dtype = (enum sumac_dtype)message->data_type;
    if (message->data_type == 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: its data type (dtype) is not set; types are %s", message->name,
            dtype_list_print(known, sizeof known));
    if (sumac_dtype_bytes(definition->dtype) == 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s: data type %u is not known; types are %s",
            message->name, (uint32_t)message->data_type, dtype_list_print(known, sizeof known));
    return SUMAC_OK;
}

static bool same_dtype(const struct definition *a, const struct definition *b)
{
    return a->dtype == b->dtype;
}

static void print_dtype(const struct definition *definition, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "%s", sumac_dtype_name(definition->dtype));
}

static bool
write_dtype(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    (void)arena;
    message->data_type = (Sumac__V1__DataType)definition->dtype;
    return true;
}

/* ---- shape ---- */

/* "[2, 3]" */
static const char *print_extents(const wire_variable *message, char text[TEXT_BYTES])
{
    size_t used = text_print(text, TEXT_BYTES, "[");

    for (size_t axis = 0; axis < message->n_shape; axis++)
        used += text_print(
            text + used, TEXT_BYTES - used, "%s%" PRIu64, axis > 0 ? ", " : "",
            message->shape[axis]);
    (void)text_print(text + used, TEXT_BYTES - used, "]");
    return text;
}

static enum sumac_status read_shape(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    struct sumac_shape *shape = &definition->shape;
    char text[TEXT_BYTES];
    uint64_t elements = 0;
    uint64_t bytes = 0;

    (void)functions;
    assert(sumac_dtype_bytes(definition->dtype) > 0);
    if (message->n_shape > SUMAC_RANK_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE, "%s: shape %s has %zu axes, at most %d may be",
            message->name, print_extents(message, text), message->n_shape, SUMAC_RANK_MAX);
    *shape = (struct sumac_shape){.rank = (uint32_t)message->n_shape};
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        shape->extent[axis] = message->shape[axis];
        if (shape->extent[axis] > INT64_MAX)
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE,
                "%s: shape %s has an extent above 2^63 - 1 (as a signed number it is %" PRId64 ")",
                message->name, print_extents(message, text), shape->extent[axis]);
    }
    if (sumac_shape_size(shape, definition->dtype, &elements, &bytes) != SUMAC_OK)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE, "%s: shape %s of %s is more than 2^63 - 1 bytes",
            message->name, print_extents(message, text), sumac_dtype_name(definition->dtype));
    return SUMAC_OK;
}

static bool same_shape(const struct definition *a, const struct definition *b)
{
    return sumac_shape_equal(&a->shape, &b->shape);
}

static void print_shape(const struct definition *definition, char text[TEXT_BYTES])
{
    (void)sumac_shape_print(&definition->shape, text, TEXT_BYTES);
}

static bool
write_shape(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    const uint32_t rank = definition->shape.rank;

    message->shape = arena_take(arena, rank * sizeof *message->shape);
    if (message->shape == NULL)
        return false;
    memcpy(message->shape, definition->shape.extent, rank * sizeof *message->shape);
    message->n_shape = rank;
    return true;
}

/* "0 (NONE), 1 (SUM), …": what a number that is not known might have been. */
static const char *list_names(const char *const *names, uint32_t count, char text[NAMES_BYTES])
{
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++)
        at += text_print(text + at, NAMES_BYTES - at, "%s%u (%s)", i == 0 ? "" : ", ", i, names[i]);
    return text;
}

/* ---- aggregation ---- */

static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};

static enum sumac_status read_aggregation(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    char known[NAMES_BYTES];

    (void)functions;
    definition->aggregation = (uint32_t)message->aggregation;
    if (definition->aggregation >= COUNT(aggregations))
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED, "%s: aggregation %u is not known; aggregations are %s",
            message->name, definition->aggregation,
            list_names(aggregations, COUNT(aggregations), known));
    if (definition->aggregation == SUMAC__V1__AGGREGATION__AGGREGATION_MEAN &&
        !sumac_dtype_is_float(definition->dtype))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s: aggregation MEAN needs a float type, not %s",
            message->name, sumac_dtype_name(definition->dtype));
    return SUMAC_OK;
}

static bool same_aggregation(const struct definition *a, const struct definition *b)
{
    return a->aggregation == b->aggregation;
}

static void print_aggregation(const struct definition *definition, char text[TEXT_BYTES])
{
    assert(definition->aggregation < COUNT(aggregations));
    (void)text_print(text, TEXT_BYTES, "%s", aggregations[definition->aggregation]);
}

static bool
write_aggregation(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    (void)arena;
    message->aggregation = (Sumac__V1__Aggregation)definition->aggregation;
    return true;
}

/* ---- synchronization ---- */

static const char *const synchronizations[] = {"AUTO", "NONE", "ON_WRITE", "ON_READ"};

static enum sumac_status read_synchronization(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    char known[NAMES_BYTES];

    (void)functions;
    definition->synchronization = (uint32_t)message->synchronization;
    if (definition->synchronization >= COUNT(synchronizations))
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED,
            "%s: synchronization %u is not known; synchronizations are %s", message->name,
            definition->synchronization,
            list_names(synchronizations, COUNT(synchronizations), known));
    return SUMAC_OK;
}

static bool same_synchronization(const struct definition *a, const struct definition *b)
{
    return a->synchronization == b->synchronization;
}

static void print_synchronization(const struct definition *definition, char text[TEXT_BYTES])
{
    assert(definition->synchronization < COUNT(synchronizations));
    (void)text_print(text, TEXT_BYTES, "%s", synchronizations[definition->synchronization]);
}

static bool write_synchronization(
    const struct definition *definition, struct arena *arena, wire_variable *message)
{
    (void)arena;
    message->synchronization = (Sumac__V1__Synchronization)definition->synchronization;
    return true;
}

/* ---- trainable ---- */

static enum sumac_status read_trainable(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    (void)functions;
    (void)error;
    definition->trainable = message->trainable != 0;
    return SUMAC_OK;
}

static bool same_trainable(const struct definition *a, const struct definition *b)
{
    return a->trainable == b->trainable;
}

static void print_trainable(const struct definition *definition, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "%s", definition->trainable ? "true" : "false");
}

static bool
write_trainable(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    (void)arena;
    message->trainable = definition->trainable;
    return true;
}

/* ---- function, with its hyperparameters ---- */

static enum sumac_status read_function(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    const wire_function none = WIRE_FUNCTION_INIT;
    const wire_function *given = message->function == NULL ? &none : message->function;
    const uint32_t number = given->function == 0 ? UPDATE_ASSIGN : (uint32_t)given->function;

    definition->function = functions_find(functions, number);
    if (definition->function == NULL)
        return fail_invalid(
            error, SUMAC_REASON_UNKNOWN_FUNCTION, "%s: update function %u is not known",
            message->name, number);
    enum sumac_status status = update_hyperparameters_read(
        definition->function, NULL, given, &definition->hyperparameters, error);
    if (status == SUMAC_OK)
        status = update_check(
            definition->function, definition->function, definition->dtype, message->name, error);
    if (status == SUMAC_OK)
        status = update_hyperparameters_check(
            definition->function, definition->dtype, &definition->hyperparameters, error);
    return status;
}

static bool same_function(const struct definition *a, const struct definition *b)
{
    return a->function->number == b->function->number; /* of two tables, perhaps */
}

static void print_function(const struct definition *definition, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "%s", definition->function->name);
}

wire_function *definition_write_function(
    const struct update_function *function, const struct update_hyperparameters *values,
    uint32_t which, struct arena *arena)
{
    wire_function *message = arena_take(arena, sizeof *message);
    wire_schedule *schedule = arena_take(arena, sizeof *schedule);
    wire_hyperparameter *named = arena_take(arena, UPDATE_HYPERPARAMETERS_MAX * sizeof *named);
    wire_hyperparameter **pointers =
        arena_take(arena, UPDATE_HYPERPARAMETERS_MAX * sizeof *pointers);

    if (message == NULL || schedule == NULL || named == NULL || pointers == NULL)
        return NULL;
    *message = (wire_function)WIRE_FUNCTION_INIT;
    message->function = (Sumac__V1__UpdateFunction)function->number;
    message->hyperparameters = pointers;
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((which >> i & 1u) == 0)
            continue;
        wire_hyperparameter *value = &named[message->n_hyperparameters];
        *value = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        value->name = (Sumac__V1__HyperparameterName)i;
        value->value = values->value[i];
        pointers[message->n_hyperparameters++] = value;
    }
    assert(message->n_hyperparameters <= UPDATE_HYPERPARAMETERS_MAX);
    if ((which & UPDATE_SCHEDULE_SET) == 0)
        return message;
    update_schedule_write(&values->schedule, schedule);
    message->schedule = schedule;
    return message;
}

static bool
write_function(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    const struct update_hyperparameters *own = &definition->hyperparameters;

    message->function = definition_write_current(definition->function, own, arena);
    return message->function != NULL;
}

/* Bit by bit: a NaN is the same as itself. */
static bool same_number(double a, double b)
{
    uint64_t a_bits, b_bits;

    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    return a_bits == b_bits;
}

/* The first hyperparameter of the same function in which two definitions differ; 0: none. */
static uint32_t differing_hyperparameter(const struct definition *a, const struct definition *b)
{
    assert(a->function->number == b->function->number);
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        const double x = a->hyperparameters.value[i];
        const double y = b->hyperparameters.value[i];
        if ((a->function->hyperparameters >> i & 1u) != 0 && !same_number(x, y))
            return i;
    }
    return 0;
}

bool definition_same_hyperparameters(
    const struct update_hyperparameters *a, const struct update_hyperparameters *b)
{
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        if (!same_number(a->value[i], b->value[i]))
            return false;
    return update_schedule_same(&a->schedule, &b->schedule);
}

/* ---- initializer ---- */

static const char *const initializers[] = {"zeros",   "ones",   "constant",
                                           "uniform", "normal", "assigned"};

static enum sumac_status read_initializer(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    const wire_initializer zeros = WIRE_INITIALIZER_INIT;
    const wire_initializer *given = message->initializer == NULL ? &zeros : message->initializer;
    const uint32_t kind = (uint32_t)given->kind;
    char known[NAMES_BYTES];

    (void)functions;
    if (kind >= COUNT(initializers))
        return fail_invalid(
            error, SUMAC_REASON_UNSUPPORTED, "%s: initializer %u is not known; initializers are %s",
            message->name, kind, list_names(initializers, COUNT(initializers), known));
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

static bool same_initializer(const struct definition *a, const struct definition *b)
{
    return a->initializer.kind == b->initializer.kind &&
           same_number(a->initializer.a, b->initializer.a) &&
           same_number(a->initializer.b, b->initializer.b) &&
           a->initializer.seed == b->initializer.seed;
}

static void print_initializer(const struct definition *definition, char text[TEXT_BYTES])
{
    assert(definition->initializer.kind < COUNT(initializers));
    (void)text_print(
        text, TEXT_BYTES, "%s(%s, %s, seed %" PRIu64 ")",
        initializers[definition->initializer.kind], text_double(definition->initializer.a).text,
        text_double(definition->initializer.b).text, definition->initializer.seed);
}

static bool
write_initializer(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    wire_initializer *initializer = arena_take(arena, sizeof *initializer);

    if (initializer == NULL)
        return false;
    *initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    initializer->kind = (Sumac__V1__Initializer__Kind)definition->initializer.kind;
    initializer->a = definition->initializer.a;
    initializer->b = definition->initializer.b;
    initializer->seed = definition->initializer.seed;
    message->initializer = initializer;
    return true;
}

/* ---- partitioner ---- */

static enum sumac_status read_partitioner(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    struct sumac_error cause = {0};
    const enum sumac_status status =
        placement_rule_read(message->partitioner, &definition->partitioner, &cause);

    (void)functions;
    if (status == SUMAC_OK)
        return SUMAC_OK;
    return fail(error, status, cause.reason, "%s: %s", message->name, cause.text);
}

static bool same_partitioner(const struct definition *a, const struct definition *b)
{
    const struct placement_rule *x = &a->partitioner;
    const struct placement_rule *y = &b->partitioner;

    return x->kind == y->kind && x->num_shards == y->num_shards &&
           x->min_shard_bytes == y->min_shard_bytes && x->max_shard_bytes == y->max_shard_bytes &&
           x->max_shards == y->max_shards;
}

static void print_partitioner(const struct definition *definition, char text[TEXT_BYTES])
{
    const struct placement_rule *rule = &definition->partitioner;

    if (rule->kind == WIRE_PARTITIONER_FIXED_SHARDS)
        (void)text_print(text, TEXT_BYTES, "fixed_shards(%" PRIu64 ")", (uint64_t)rule->num_shards);
    else if (rule->kind == WIRE_PARTITIONER_MIN_SIZE)
        (void)text_print(
            text, TEXT_BYTES, "min_size(%" PRIu64 " bytes, at most %" PRIu64 ")",
            (uint64_t)rule->min_shard_bytes, (uint64_t)rule->max_shards);
    else if (rule->kind == WIRE_PARTITIONER_MAX_SIZE && rule->max_shards == PLACEMENT_NO_CAP)
        (void)text_print(
            text, TEXT_BYTES, "max_size(%" PRIu64 " bytes)", (uint64_t)rule->max_shard_bytes);
    else if (rule->kind == WIRE_PARTITIONER_MAX_SIZE)
        (void)text_print(
            text, TEXT_BYTES, "max_size(%" PRIu64 " bytes, at most %" PRIu64 ")",
            (uint64_t)rule->max_shard_bytes, (uint64_t)rule->max_shards);
    else
        (void)text_print(text, TEXT_BYTES, "none");
}

static bool
write_partitioner(const struct definition *definition, struct arena *arena, wire_variable *message)
{
    const struct placement_rule *rule = &definition->partitioner;
    wire_partitioner *partitioner = arena_take(arena, sizeof *partitioner);

    if (partitioner == NULL)
        return false;
    *partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    partitioner->kind = (Sumac__V1__Partitioner__Kind)rule->kind;
    partitioner->num_shards = (uint64_t)rule->num_shards;
    partitioner->min_shard_bytes = (uint64_t)rule->min_shard_bytes;
    partitioner->max_shard_bytes = (uint64_t)rule->max_shard_bytes;
    partitioner->max_shards = rule->max_shards == PLACEMENT_NO_CAP ? 0 : (uint64_t)rule->max_shards;
    message->partitioner = partitioner;
    return true;
}

/* ---- all of them ---- */

struct attribute {
    const char *field; /* of the message, for an error */
    /* May rely on the rows above it. */
    enum sumac_status (*read)(
        const wire_variable *message, const struct functions *functions,
        struct definition *definition, struct sumac_error *error);
    bool (*same)(const struct definition *a, const struct definition *b);
    void (*print)(const struct definition *definition, char text[TEXT_BYTES]);
    bool (*write)(const struct definition *definition, struct arena *arena, wire_variable *message);
};

static const struct attribute attributes[] = {
    {"data_type", read_dtype, same_dtype, print_dtype, write_dtype},
    {"shape", read_shape, same_shape, print_shape, write_shape},
    {"aggregation", read_aggregation, same_aggregation, print_aggregation, write_aggregation},
    {"synchronization", read_synchronization, same_synchronization, print_synchronization,
     write_synchronization},
    {"trainable", read_trainable, same_trainable, print_trainable, write_trainable},
    {"initializer", read_initializer, same_initializer, print_initializer, write_initializer},
    {"partitioner", read_partitioner, same_partitioner, print_partitioner, write_partitioner},
    {"function", read_function, same_function, print_function, write_function},
};

#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

enum sumac_status definition_read(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    struct definition read = {0};
    enum sumac_status status = definition_name_check(message->name, error);

    for (size_t i = 0; status == SUMAC_OK && i < ATTRIBUTES; i++)
        status = attributes[i].read(message, functions, &read, error);
    if (status == SUMAC_OK)
        *definition = read;
    return status;
}

enum sumac_status definition_compare(
    const char *name, const struct definition *existing, const struct definition *given,
    struct sumac_error *error)
{
    char there[TEXT_BYTES];
    char here[TEXT_BYTES];
    const char *field = NULL;

    for (size_t i = 0; field == NULL && i < ATTRIBUTES; i++) {
        if (attributes[i].same(existing, given))
            continue;
        field = attributes[i].field;
        attributes[i].print(existing, there);
        attributes[i].print(given, here);
    }
    const uint32_t number = field == NULL ? differing_hyperparameter(existing, given) : 0;
    if (number != 0) {
        field = update_hyperparameter_of(existing->function, number)->name;
        (void)text_print(
            there, TEXT_BYTES, "%s", text_double(existing->hyperparameters.value[number]).text);
        (void)text_print(
            here, TEXT_BYTES, "%s", text_double(given->hyperparameters.value[number]).text);
    }
    if (field == NULL &&
        !update_schedule_same(
            &existing->hyperparameters.schedule, &given->hyperparameters.schedule)) {
        field = "schedule";
        (void)update_schedule_print(&existing->hyperparameters.schedule, there, TEXT_BYTES);
        (void)update_schedule_print(&given->hyperparameters.schedule, here, TEXT_BYTES);
    }
    if (field == NULL)
        return SUMAC_OK;
    return fail(
        error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
        "%s exists with %s %s, this create says %s", name, field, there, here);
}

bool definition_write(
    const struct definition *definition, struct arena *arena, wire_variable *message)
{
    assert(definition->function != NULL);
    bool whole = true;
    for (size_t i = 0; whole && i < ATTRIBUTES; i++)
        whole = attributes[i].write(definition, arena, message);
    message->every_shard |= definition->function->counts_steps ||
                            update_schedule_is_any(&definition->hyperparameters.schedule);
    return whole;
}
