/* SPDX-License-Identifier: Apache-2.0 */
/* definition.c -- how a variable is defined: read from a message, written into one, compared. */
#include <math.h>

#include "unit.h"
#include "definition.h"
#include "each_byte.h"
#include "memory.h"

/* A message in which every attribute is given, and none as its default. */
struct given {
    uint64_t extents[3];
    wire_initializer initializer;
    wire_partitioner partitioner;
    wire_hyperparameter rate;
    wire_hyperparameter *hyperparameters[1];
    wire_schedule schedule;
    wire_function function;
    wire_variable variable;
};

static wire_variable *give(struct given *given)
{
    static char name[] = "W";

    *given = (struct given){
        .extents = {30, 4, 5},
        .initializer = WIRE_INITIALIZER_INIT,
        .partitioner = WIRE_PARTITIONER_INIT,
        .rate = WIRE_HYPERPARAMETER_INIT,
        .schedule = WIRE_SCHEDULE_INIT,
        .function = WIRE_FUNCTION_INIT,
        .variable = WIRE_VARIABLE_INIT,
    };
    given->initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_UNIFORM;
    given->initializer.a = -0.5;
    given->initializer.b = 0.25;
    given->initializer.seed = 7;
    given->partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_MIN_SIZE;
    given->partitioner.min_shard_bytes = 100;
    given->partitioner.max_shards = 3;
    given->rate.name = (Sumac__V1__HyperparameterName)UPDATE_HYPERPARAMETER_LEARNING_RATE;
    given->rate.value = 0.125;
    given->hyperparameters[0] = &given->rate;
    given->function.function = (Sumac__V1__UpdateFunction)UPDATE_ADAM;
    given->function.n_hyperparameters = 1;
    given->function.hyperparameters = given->hyperparameters;
    given->schedule.kind = SUMAC__V1__SCHEDULE__KIND__KIND_COSINE_DECAY;
    given->schedule.decay_steps = 100;
    given->schedule.alpha = 0.5;
    given->function.schedule = &given->schedule;
    wire_variable *variable = &given->variable;
    variable->name = name;
    variable->data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    variable->shape = given->extents;
    variable->n_shape = 3;
    variable->aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_MEAN;
    variable->synchronization = SUMAC__V1__SYNCHRONIZATION__SYNCHRONIZATION_ON_READ;
    variable->trainable = true;
    variable->initializer = &given->initializer;
    variable->partitioner = &given->partitioner;
    variable->function = &given->function;
    return variable;
}

static struct definition read(const wire_variable *variable)
{
    struct definition definition;
    struct sumac_error error = {0};

    assert_int_equal(definition_read(variable, NULL, &definition, &error), SUMAC_OK);
    return definition;
}

/* What definition_compare says of the message as it is and as `change` has made it. */
static const char *compared_after(void (*change)(struct given *given))
{
    static struct sumac_error error;
    struct given given;
    const struct definition before = read(give(&given));

    change(&given);
    const struct definition after = read(&given.variable);

    error = (struct sumac_error){0};
    assert_int_equal(definition_compare("W", &before, &after, &error), SUMAC_ALREADY_EXISTS);
    assert_int_equal(error.reason, SUMAC_REASON_ALREADY_EXISTS);
    return error.text;
}

TEST(what_is_written_is_read_as_the_same)
{
    struct given given;
    struct arena arena;
    wire_variable message = WIRE_VARIABLE_INIT;
    const struct definition definition = read(give(&given));

    arena_init(&arena, &memory_heap, 1 << 16);
    message.name = given.variable.name;

    assert_true(definition_write(&definition, &arena, &message));

    const struct definition again = read(&message);
    assert_int_equal(definition_compare("W", &definition, &again, NULL), SUMAC_OK);
    assert_memory_equal(&again.shape, &definition.shape, sizeof again.shape);
    assert_int_equal(again.hyperparameters.set, definition.hyperparameters.set);
    arena_deinit(&arena);
}

/* Clients that push rows read it. */
TEST(every_shard_is_named_where_steps_are_counted_or_a_schedule_is)
{
    static const struct {
        uint32_t function;
        bool scheduled, every_shard;
    } cases[] = {{UPDATE_SGD, false, false},      {UPDATE_SGD, true, true},
                 {UPDATE_MOMENTUM, false, false}, {UPDATE_ADAGRAD, false, false},
                 {UPDATE_ADAM, false, true},      {UPDATE_ADAM, true, true},
                 {UPDATE_NADAM, false, true},     {UPDATE_ASSIGN, false, false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given given;
        struct arena arena;
        wire_schedule schedule = WIRE_SCHEDULE_INIT;
        wire_function function = WIRE_FUNCTION_INIT;
        wire_variable message = WIRE_VARIABLE_INIT;
        give(&given);
        schedule.warmup_steps = 3;
        schedule.warmup_target = 1;
        function.function = (Sumac__V1__UpdateFunction)cases[i].function;
        function.schedule = cases[i].scheduled ? &schedule : NULL;
        given.variable.function = &function;
        const struct definition definition = read(&given.variable);
        arena_init(&arena, &memory_heap, 1 << 16);

        assert_true(definition_write(&definition, &arena, &message));

        assert_int_equal(message.every_shard, cases[i].every_shard);
        arena_deinit(&arena);
    }
}

TEST(what_there_is_no_room_for_is_not_written)
{
    struct given given;
    const struct definition definition = read(give(&given));
    size_t needed = 0;

    for (size_t bytes_max = 16;; bytes_max += 16) {
        struct arena arena;
        wire_variable message = WIRE_VARIABLE_INIT;
        arena_init(&arena, &memory_heap, bytes_max);
        const bool whole = definition_write(&definition, &arena, &message);
        needed = arena.bytes_used;
        arena_deinit(&arena);
        if (whole)
            break;
        assert_true(bytes_max < 4096);
    }
    assert_true(needed > 64);
}

static void other_dtype(struct given *given)
{
    given->variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
}
static void other_shape(struct given *given) { given->extents[2] = 6; }
static void other_aggregation(struct given *given)
{
    given->variable.aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_SUM;
}
static void other_synchronization(struct given *given)
{
    given->variable.synchronization = SUMAC__V1__SYNCHRONIZATION__SYNCHRONIZATION_ON_WRITE;
}
static void other_trainable(struct given *given) { given->variable.trainable = false; }
static void other_seed(struct given *given) { given->initializer.seed = 8; }
static void other_partitioner(struct given *given) { given->partitioner.max_shards = 4; }
static void other_rate(struct given *given) { given->rate.value = 0.1; }
static void other_schedule(struct given *given) { given->schedule.alpha = 0.25; }
static void no_schedule(struct given *given) { given->function.schedule = NULL; }
static void other_function(struct given *given)
{
    given->function.function = (Sumac__V1__UpdateFunction)UPDATE_SGD;
}

TEST(each_attribute_that_differs_is_named_with_both_values)
{
    assert_string_equal(
        compared_after(other_dtype), "W exists with data_type float64, this create says float32");
    assert_string_equal(
        compared_after(other_shape), "W exists with shape [30, 4, 5], this create says [30, 4, 6]");
    assert_string_equal(
        compared_after(other_aggregation), "W exists with aggregation MEAN, this create says SUM");
    assert_string_equal(
        compared_after(other_synchronization),
        "W exists with synchronization ON_READ, this create says ON_WRITE");
    assert_string_equal(
        compared_after(other_trainable), "W exists with trainable true, this create says false");
    assert_string_equal(
        compared_after(other_seed),
        "W exists with initializer uniform(-0.5, 0.25, seed 7), this create says "
        "uniform(-0.5, 0.25, seed 8)");
    assert_string_equal(
        compared_after(other_partitioner),
        "W exists with partitioner min_size(100 bytes, at most 3), this create says "
        "min_size(100 bytes, at most 4)");
    assert_string_equal(
        compared_after(other_function), "W exists with function adam, this create says sgd");
    assert_string_equal(
        compared_after(other_rate), "W exists with learning_rate 0.125, this create says 0.1");
    assert_string_equal(
        compared_after(other_schedule),
        "W exists with schedule cosine_decay(decay_steps 100, alpha 0.5), this create says "
        "cosine_decay(decay_steps 100, alpha 0.25)");
    assert_string_equal(
        compared_after(no_schedule),
        "W exists with schedule cosine_decay(decay_steps 100, alpha 0.5), this create says none");
}

static void partition_fixed(struct given *given)
{
    given->partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    given->partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    given->partitioner.num_shards = 3;
}
static void partition_by_max_size(struct given *given)
{
    given->partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    given->partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_MAX_SIZE;
    given->partitioner.max_shard_bytes = 200;
    given->partitioner.max_shards = 5;
}
static void partition_without_cap(struct given *given)
{
    partition_by_max_size(given);
    given->partitioner.max_shards = 0;
}
static void partition_none(struct given *given)
{
    given->partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
}

TEST(each_partitioner_is_named_with_its_own_figures)
{
#define BEFORE "W exists with partitioner min_size(100 bytes, at most 3), this create says "
    assert_string_equal(compared_after(partition_fixed), BEFORE "fixed_shards(3)");
    assert_string_equal(
        compared_after(partition_by_max_size), BEFORE "max_size(200 bytes, at most 5)");
    assert_string_equal(compared_after(partition_without_cap), BEFORE "max_size(200 bytes)");
    assert_string_equal(compared_after(partition_none), BEFORE "none");
#undef BEFORE
}

/* What is refused leaves the caller's definition as it was. */
/* ---- field by field */

#define FIELDS_MAX 64u

/* Fields of Variable that no create defines, and one that never differs alone: another kind of
 * schedule has other numbers (unit/schedule). */
static const char *const not_defined[] = {"name",    "variable_id",   "shards",      "published",
                                          "current", "colocate_with", "every_shard", NULL};

struct walk {
    uint32_t fields, changed; /* the fields so far, and the index of the one to change */
    const char *name;         /* of the changed field; NULL: none yet */
};

static bool is_defined(const ProtobufCMessageDescriptor *of, const char *name)
{
    for (size_t i = 0; of == &sumac__v1__variable__descriptor && not_defined[i] != NULL; i++)
        if (strcmp(not_defined[i], name) == 0)
            return false;
    return of != &sumac__v1__schedule__descriptor || strcmp(name, "kind") != 0;
}

static void change_number(ProtobufCType type, void *at)
{
    uint64_t whole = 0;
    double number;

    switch (type) {
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&number, at, sizeof number);
        number += 0.0625;
        memcpy(at, &number, sizeof number);
        return;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        memcpy(&whole, at, sizeof(uint64_t));
        whole++;
        memcpy(at, &whole, sizeof(uint64_t));
        return;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BOOL:
        memcpy(&whole, at, sizeof(uint32_t));
        whole = whole == 1 && type == PROTOBUF_C_TYPE_BOOL ? 0 : whole > 1 ? whole - 1 : whole + 1;
        memcpy(at, &whole, sizeof(uint32_t));
        return;
    default:
        fail_msg("a field of type %d: say here how it is changed", (int)type);
    }
}

/* A number, or the last of a list of them. */
static void change_field(struct walk *walk, const ProtobufCFieldDescriptor *field, void *at)
{
    if (walk->fields++ != walk->changed)
        return;
    walk->name = field->name;
    change_number(field->type, at);
}

static void walk_message(struct walk *walk, ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        uint8_t *const at = (uint8_t *)message + field->offset;
        const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        void *first = NULL;
        if (!is_defined(message->descriptor, field->name))
            continue;
        if (repeated || field->type == PROTOBUF_C_TYPE_MESSAGE)
            memcpy(&first, at, sizeof first);
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            change_field(walk, field, repeated ? first : at);
        else
            walk_message(walk, repeated ? *(ProtobufCMessage **)first : first);
    }
}

static void as_it_is(struct given *given) { (void)given; }

static void with_a_staircase(struct given *given)
{
    given->schedule.kind = SUMAC__V1__SCHEDULE__KIND__KIND_EXPONENTIAL_DECAY;
    given->schedule.alpha = 0;
    given->schedule.decay_rate = 0.5;
    given->schedule.warmup_steps = 3;
    given->schedule.warmup_target = 0.5;
}

static void with_momentum(struct given *given)
{
    given->function.function = (Sumac__V1__UpdateFunction)UPDATE_MOMENTUM;
}

/* Each field of the messages that say how a variable is defined, as protoc lists them: in one of
 * these definitions it makes a difference alone. */
TEST(each_field_of_a_definition_makes_a_difference)
{
    static void (*const bases[])(struct given * given) = {
        as_it_is,        with_a_staircase,      with_momentum,
        partition_fixed, partition_by_max_size, partition_none};
    uint32_t fields = FIELDS_MAX;

    for (uint32_t changed = 0; changed < fields; changed++) {
        struct walk walk = {.changed = changed};
        bool differs = false;
        for (size_t i = 0; i < sizeof bases / sizeof *bases && !differs; i++) {
            struct given given;
            struct definition after;
            give(&given);
            bases[i](&given);
            const struct definition before = read(&given.variable);
            walk = (struct walk){.changed = changed};
            walk_message(&walk, &given.variable.base);
            differs = definition_read(&given.variable, NULL, &after, NULL) == SUMAC_OK &&
                      definition_compare("W", &before, &after, NULL) == SUMAC_ALREADY_EXISTS;
        }
        fields = walk.fields;
        if (!differs)
            fail_msg("%s is not compared (field %u of %u)", walk.name, changed, fields);
    }
    assert_true(fields > 20 && fields < FIELDS_MAX);
}

/* The same of what a push sets. */
/* A NaN is the same as itself. */
TEST(of_the_hyperparameters_those_that_are_asked_for_are_written)
{
    struct given given;
    struct definition definition = read(give(&given));
    struct arena arena;
    const uint32_t last = UPDATE_HYPERPARAMETER_EPSILON;

    arena_init(&arena, &memory_heap, 4096);
    const wire_function *const written = definition_write_function(
        definition.function, &definition.hyperparameters, 1u << last, &arena);
    assert_int_equal(written->n_hyperparameters, 1);
    assert_int_equal(written->hyperparameters[0]->name, last);
    assert_null(written->schedule);
    arena_deinit(&arena);
    const struct update_hyperparameters one = definition.hyperparameters;
    definition.hyperparameters.value[last] = (double)NAN;
    assert_false(definition_same_hyperparameters(&one, &definition.hyperparameters));
    assert_true(
        definition_same_hyperparameters(&definition.hyperparameters, &definition.hyperparameters));
}

TEST(hyperparameters_that_differ_in_one_number_are_not_the_same)
{
    static const struct member left_alone[] = {
        MEMBER(struct update_hyperparameters, set),
        MEMBER(struct update_hyperparameters, value[0])};
    const struct update_hyperparameters own = {.value = {[1] = 0.5, [2] = 3}};
    uint8_t holds[sizeof own], bytes[sizeof own];
    struct update_hyperparameters other;

    SAY_BYTES(struct update_hyperparameters, holds);
    for (size_t i = 0; i < sizeof holds; i++) {
        if (holds[i] == 0 || is_among(left_alone, sizeof left_alone / sizeof *left_alone, i))
            continue;
        memcpy(bytes, &own, sizeof bytes);
        bytes[i] ^= 1;
        memcpy(&other, bytes, sizeof other);
        if (definition_same_hyperparameters(&own, &other))
            fail_msg("byte %zu is not compared", i);
    }
}

TEST(what_is_refused_is_not_read)
{
    struct given given;
    struct sumac_error error = {0};
    struct definition definition = {.synchronization = 77};

    give(&given)->function->function = (Sumac__V1__UpdateFunction)99;

    assert_int_equal(
        definition_read(&given.variable, NULL, &definition, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
    assert_int_equal(definition.synchronization, 77);
}

/* One attribute of each sort with a number that no release has had. */
TEST(what_is_not_known_is_refused_with_what_is)
{
    static const char *const said[] = {
        "W: data type 99 is not known; types are 1 (bool) to 13 (float64)",
        "W: aggregation 99 is not known; aggregations are 0 (NONE), 1 (SUM), 2 (MEAN), 3 "
        "(ONLY_FIRST_REPLICA)",
        "W: synchronization 99 is not known; synchronizations are 0 (AUTO), 1 (NONE), 2 "
        "(ON_WRITE), 3 (ON_READ)",
        "W: initializer 99 is not known; initializers are 0 (zeros), 1 (ones), 2 (constant), 3 "
        "(uniform), 4 (normal), 5 (assigned)",
        "W: partitioner 99 is not known; partitioners are 0 (none), 1 (fixed shards), 2 (min "
        "size), 3 (max size)",
    };

    for (int attribute = 0; attribute < 5; attribute++) {
        struct given given;
        struct definition definition;
        struct sumac_error error = {0};
        wire_variable *const variable = give(&given);

        if (attribute == 0)
            variable->data_type = (Sumac__V1__DataType)99;
        if (attribute == 1)
            variable->aggregation = (Sumac__V1__Aggregation)99;
        if (attribute == 2)
            variable->synchronization = (Sumac__V1__Synchronization)99;
        if (attribute == 3)
            variable->initializer->kind = (Sumac__V1__Initializer__Kind)99;
        if (attribute == 4)
            variable->partitioner->kind = (Sumac__V1__Partitioner__Kind)99;

        assert_int_equal(
            definition_read(variable, NULL, &definition, &error), SUMAC_INVALID_ARGUMENT);

        error.text[strlen(said[attribute])] = '\0';
        assert_string_equal(error.text, said[attribute]);
    }
}

/* The number behind the last one of each sort, and one axis or byte too many. */
TEST(the_first_number_beyond_each_bound_is_refused)
{
    static char name[DEFINITION_NAME_BYTES_MAX + 2];
    static uint64_t extents[SUMAC_RANK_MAX + 1];

    for (int attribute = 0; attribute < 7; attribute++) {
        struct given given;
        struct definition definition;
        struct sumac_error error = {0};
        wire_variable *const variable = give(&given);

        if (attribute == 0)
            variable->aggregation = (Sumac__V1__Aggregation)4;
        if (attribute == 1)
            variable->synchronization = (Sumac__V1__Synchronization)4;
        if (attribute == 2)
            variable->initializer->kind = (Sumac__V1__Initializer__Kind)6;
        if (attribute == 3)
            variable->name = memset(name, 'w', DEFINITION_NAME_BYTES_MAX + 1);
        if (attribute == 4) {
            variable->shape = extents;
            variable->n_shape = SUMAC_RANK_MAX + 1;
        }
        if (attribute == 5) { /* there is a mean of floating-point numbers alone */
            variable->data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_INT32;
            variable->aggregation = SUMAC__V1__AGGREGATION__AGGREGATION_MEAN;
            variable->function->function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN;
            variable->initializer->kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
        }
        if (attribute == 6) {
            given.extents[0] = UINT64_C(1) << 63;
            given.extents[1] = 0;
        }

        assert_int_equal(
            definition_read(variable, NULL, &definition, &error), SUMAC_INVALID_ARGUMENT);

        static const char *const said[] = {"aggregation 4",  "synchronization 4", "initializer 6",
                                           "has 1025 bytes", "has 9 axes",        "MEAN needs",
                                           "an extent above"};
        if (strstr(error.text, said[attribute]) == NULL)
            fail_msg("'%s' does not say '%s'", error.text, said[attribute]);
    }
}

TEST(what_an_initializer_does_not_have_is_no_difference)
{
    struct given given;
    struct sumac_error error = {0};

    (void)give(&given);
    given.initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_CONSTANT;
    given.initializer.a = 2;
    given.initializer.b = 3;
    const struct definition before = read(&given.variable);

    given.initializer.b = 4;
    given.initializer.seed++;
    const struct definition after = read(&given.variable);

    assert_int_equal(definition_compare("W", &before, &after, &error), SUMAC_OK);
}

TEST(a_cap_that_was_not_given_is_not_written)
{
    struct given given;
    struct arena arena;
    wire_variable message = WIRE_VARIABLE_INIT;

    (void)give(&given);
    given.partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_MAX_SIZE;
    given.partitioner.max_shard_bytes = 100;
    given.partitioner.max_shards = 0;
    const struct definition definition = read(&given.variable);

    arena_init(&arena, &memory_heap, 1 << 16);

    assert_true(definition_write(&definition, &arena, &message)); /* when */

    assert_int_equal(message.partitioner->max_shard_bytes, 100); /* then */
    assert_int_equal(message.partitioner->max_shards, 0);
    arena_deinit(&arena);
}
