/* SPDX-License-Identifier: Apache-2.0 */
/* definition.c -- what a create asks for: how each attribute is read from a message, compared,
 * printed, and written into one. */
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

static enum sumac_status check_name(const char *name, struct sumac_error *error)
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

static enum sumac_status
read_dtype(const wire_variable *message, struct definition *definition, struct sumac_error *error)
{
    char known[64];

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

static enum sumac_status
read_shape(const wire_variable *message, struct definition *definition, struct sumac_error *error)
{
    struct sumac_shape *shape = &definition->shape;
    char text[TEXT_BYTES];
    uint64_t elements = 0;
    uint64_t bytes = 0;

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

/* ---- what has a name by its number ---- */

static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
static const char *const synchronizations[] = {"AUTO", "NONE", "ON_WRITE", "ON_READ"};
static const char *const initializers[] = {"zeros",   "ones",   "constant",
                                           "uniform", "normal", "assigned"};

/* One that is not known might have been "0 (NONE), 1 (SUM), …". */
static enum sumac_status check_known(
    const wire_variable *message, const char *what, uint32_t given, const char *const *names,
    uint32_t count, struct sumac_error *error)
{
    char known[NAMES_BYTES];
    size_t at = 0;

    if (given < count)
        return SUMAC_OK;
    for (uint32_t i = 0; i < count; i++)
        at +=
            text_print(known + at, NAMES_BYTES - at, "%s%u (%s)", i == 0 ? "" : ", ", i, names[i]);
    return fail_invalid(
        error, SUMAC_REASON_UNSUPPORTED, "%s: %s %u is not known; %ss are %s", message->name, what,
        given, what, known);
}

static enum sumac_status read_aggregation(
    const wire_variable *message, struct definition *definition, struct sumac_error *error)
{
    definition->aggregation = (uint32_t)message->aggregation;
    if (definition->aggregation == SUMAC__V1__AGGREGATION__AGGREGATION_MEAN &&
        !sumac_dtype_is_float(definition->dtype))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "%s: aggregation MEAN needs a float type, not %s",
            message->name, sumac_dtype_name(definition->dtype));
    return check_known(
        message, "aggregation", definition->aggregation, aggregations, COUNT(aggregations), error);
}

static enum sumac_status read_synchronization(
    const wire_variable *message, struct definition *definition, struct sumac_error *error)
{
    definition->synchronization = (uint32_t)message->synchronization;
    return check_known(
        message, "synchronization", definition->synchronization, synchronizations,
        COUNT(synchronizations), error);
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

/* Bit by bit: a NaN is the same as itself. */
static bool same_number(double a, double b)
{
    uint64_t a_bits, b_bits;

    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    return a_bits == b_bits;
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

static enum sumac_status read_initializer(
    const wire_variable *message, struct definition *definition, struct sumac_error *error)
{
    const wire_initializer zeros = WIRE_INITIALIZER_INIT;
    const wire_initializer *given = message->initializer == NULL ? &zeros : message->initializer;
    const uint32_t kind = (uint32_t)given->kind;
    enum sumac_status status =
        check_known(message, "initializer", kind, initializers, COUNT(initializers), error);

    if (status == SUMAC_OK)
        status = initializer_check(given, definition->dtype, error);
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

/* ---- partitioner ---- */

static enum sumac_status read_partitioner(
    const wire_variable *message, struct definition *definition, struct sumac_error *error)
{
    struct sumac_error cause = {0};
    const enum sumac_status status =
        placement_rule_read(message->partitioner, &definition->partitioner, &cause);

    if (status == SUMAC_OK)
        return SUMAC_OK;
    return fail(error, status, cause.reason, "%s: %s", message->name, cause.text);
}

static bool same_partitioner(const struct placement_rule *a, const struct placement_rule *b)
{
    return a->kind == b->kind && a->num_shards == b->num_shards &&
           a->min_shard_bytes == b->min_shard_bytes && a->max_shard_bytes == b->max_shard_bytes &&
           a->max_shards == b->max_shards;
}

static void print_partitioner(const struct placement_rule *rule, char text[TEXT_BYTES])
{
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

/* ---- all of them ---- */

/* One may rely on those before it. */
static enum sumac_status (*const readers[])(
    const wire_variable *message, struct definition *definition, struct sumac_error *error) = {
    read_dtype,           read_shape,       read_aggregation,
    read_synchronization, read_initializer, read_partitioner,
};

enum sumac_status definition_read(
    const wire_variable *message, const struct functions *functions, struct definition *definition,
    struct sumac_error *error)
{
    struct definition read = {.trainable = message->trainable != 0};
    enum sumac_status status = check_name(message->name, error);

    for (size_t i = 0; status == SUMAC_OK && i < COUNT(readers); i++)
        status = readers[i](message, &read, error);
    if (status == SUMAC_OK)
        status = read_function(message, functions, &read, error);
    if (status == SUMAC_OK)
        *definition = read;
    return status;
}

/* The first attribute in which two definitions differ, and what each says. */
struct contrast {
    const char *field; /* of the message; NULL: none differs */
    char there[TEXT_BYTES], here[TEXT_BYTES];
};

static void
differ(struct contrast *contrast, const char *field, const char *there, const char *here)
{
    contrast->field = field;
    (void)text_print(contrast->there, TEXT_BYTES, "%s", there);
    (void)text_print(contrast->here, TEXT_BYTES, "%s", here);
}

static void compare_hyperparameters(
    const struct definition *a, const struct definition *b, struct contrast *contrast)
{
    const struct update_hyperparameters *const x = &a->hyperparameters, *const y =
                                                                            &b->hyperparameters;

    assert(a->function->number == b->function->number);
    for (uint32_t i = 1; contrast->field == NULL && i <= UPDATE_HYPERPARAMETERS_MAX; i++)
        if ((a->function->hyperparameters >> i & 1u) != 0 && !same_number(x->value[i], y->value[i]))
            differ(
                contrast, update_hyperparameter_of(a->function, i)->name,
                text_double(x->value[i]).text, text_double(y->value[i]).text);
    if (contrast->field != NULL || update_schedule_same(&x->schedule, &y->schedule))
        return;
    contrast->field = "schedule";
    (void)update_schedule_print(&x->schedule, contrast->there, TEXT_BYTES);
    (void)update_schedule_print(&y->schedule, contrast->here, TEXT_BYTES);
}

static void
compare(const struct definition *a, const struct definition *b, struct contrast *contrast)
{
    char *const there = contrast->there, *const here = contrast->here;

    if (a->dtype != b->dtype) {
        differ(contrast, "data_type", sumac_dtype_name(a->dtype), sumac_dtype_name(b->dtype));
    } else if (!sumac_shape_equal(&a->shape, &b->shape)) {
        contrast->field = "shape";
        (void)sumac_shape_print(&a->shape, there, TEXT_BYTES);
        (void)sumac_shape_print(&b->shape, here, TEXT_BYTES);
    } else if (a->aggregation != b->aggregation) {
        differ(contrast, "aggregation", aggregations[a->aggregation], aggregations[b->aggregation]);
    } else if (a->synchronization != b->synchronization) {
        differ(
            contrast, "synchronization", synchronizations[a->synchronization],
            synchronizations[b->synchronization]);
    } else if (a->trainable != b->trainable) {
        differ(
            contrast, "trainable", a->trainable ? "true" : "false",
            b->trainable ? "true" : "false");
    } else if (!same_initializer(a, b)) {
        contrast->field = "initializer";
        print_initializer(a, there);
        print_initializer(b, here);
    } else if (!same_partitioner(&a->partitioner, &b->partitioner)) {
        contrast->field = "partitioner";
        print_partitioner(&a->partitioner, there);
        print_partitioner(&b->partitioner, here);
    } else if (a->function->number != b->function->number) { /* of two tables, perhaps */
        differ(contrast, "function", a->function->name, b->function->name);
    } else {
        compare_hyperparameters(a, b, contrast);
    }
}

enum sumac_status definition_compare(
    const char *name, const struct definition *existing, const struct definition *given,
    struct sumac_error *error)
{
    struct contrast contrast = {.field = NULL};

    compare(existing, given, &contrast);
    if (contrast.field == NULL)
        return SUMAC_OK;
    return fail(
        error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
        "%s exists with %s %s, this create says %s", name, contrast.field, contrast.there,
        contrast.here);
}

static wire_initializer *write_initializer(const struct definition *definition, struct arena *arena)
{
    wire_initializer *initializer = arena_take(arena, sizeof *initializer);

    if (initializer == NULL)
        return NULL;
    *initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    initializer->kind = (Sumac__V1__Initializer__Kind)definition->initializer.kind;
    initializer->a = definition->initializer.a;
    initializer->b = definition->initializer.b;
    initializer->seed = definition->initializer.seed;
    return initializer;
}

static wire_partitioner *write_partitioner(const struct placement_rule *rule, struct arena *arena)
{
    wire_partitioner *partitioner = arena_take(arena, sizeof *partitioner);

    if (partitioner == NULL)
        return NULL;
    *partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    partitioner->kind = (Sumac__V1__Partitioner__Kind)rule->kind;
    partitioner->num_shards = (uint64_t)rule->num_shards;
    partitioner->min_shard_bytes = (uint64_t)rule->min_shard_bytes;
    partitioner->max_shard_bytes = (uint64_t)rule->max_shard_bytes;
    partitioner->max_shards = rule->max_shards == PLACEMENT_NO_CAP ? 0 : (uint64_t)rule->max_shards;
    return partitioner;
}

bool definition_write(
    const struct definition *definition, struct arena *arena, wire_variable *message)
{
    const struct update_hyperparameters *const own = &definition->hyperparameters;
    const uint32_t rank = definition->shape.rank;

    assert(definition->function != NULL);
    message->data_type = (Sumac__V1__DataType)definition->dtype;
    message->shape = arena_take(arena, rank * sizeof *message->shape);
    message->aggregation = (Sumac__V1__Aggregation)definition->aggregation;
    message->synchronization = (Sumac__V1__Synchronization)definition->synchronization;
    message->trainable = definition->trainable;
    message->initializer = write_initializer(definition, arena);
    message->partitioner = write_partitioner(&definition->partitioner, arena);
    message->function = definition_write_current(definition->function, own, arena);
    message->every_shard |=
        definition->function->counts_steps || update_schedule_is_any(&own->schedule);
    if (message->shape == NULL || message->initializer == NULL || message->partitioner == NULL ||
        message->function == NULL)
        return false;
    memcpy(message->shape, definition->shape.extent, rank * sizeof *message->shape);
    message->n_shape = rank;
    return true;
}
