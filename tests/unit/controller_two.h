/* SPDX-License-Identifier: Apache-2.0 */
/* controller_two.h -- two workers that create and delete variables, for the controller's unit
 * tests. */
#pragma once

#include "unit.h"
#include "controller_world.h"

/* A world of two ps in which workers 0 and 1 have joined. */
struct two {
    struct world *world;
    uint32_t first, second;
};

static inline struct two two_workers(void)
{
    struct two two = {.world = world_new(2, 3)};

    world_all_up(two.world);
    two.first = world_joined(two.world, "worker", 0, 1);
    two.second = world_joined(two.world, "worker", 1, 2);
    return two;
}

/* A matrix of 4 × 3 float32, split over two shards. */
struct definition {
    wire_variable variable;
    wire_partitioner partitioner;
    wire_initializer initializer;
    wire_function function;
    wire_hyperparameter rate;
    wire_hyperparameter *rates[1];
    uint64_t shape[SUMAC_RANK_MAX + 1];
};

static inline void define(struct definition *definition, const char *name)
{
    *definition = (struct definition){
        .variable = WIRE_VARIABLE_INIT,
        .partitioner = WIRE_PARTITIONER_INIT,
        .initializer = WIRE_INITIALIZER_INIT,
        .function = WIRE_FUNCTION_INIT,
        .rate = WIRE_HYPERPARAMETER_INIT,
        .shape = {4, 3},
    };
    definition->variable.name = (char *)name;
    definition->variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    definition->variable.shape = definition->shape;
    definition->variable.n_shape = 2;
    definition->variable.partitioner = &definition->partitioner;
    definition->variable.initializer = &definition->initializer;
    definition->variable.function = &definition->function;
    definition->partitioner.kind = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS;
    definition->partitioner.num_shards = 2;
    definition->function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    definition->rates[0] = &definition->rate;
    definition->rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE;
    definition->function.hyperparameters = definition->rates;
}

/* They have yet to create it. */
static inline struct two two_workers_defining_w(struct definition *definition)
{
    struct two two = two_workers();

    define(definition, "w");
    world_forget(two.world);
    return two;
}

static inline const struct world_answer *
created(struct two *two, const struct definition *definition)
{
    const uint64_t call = world_create(two->world, two->first, &definition->variable, 0);

    world_settle_down(two->world);
    assert_non_null(world_answer(two->world, call));
    return world_answer(two->world, call);
}

/* The create is refused at once, and no ps hears of it. */
static inline void assert_refused(
    struct two *two, const struct definition *definition, enum sumac_reason reason,
    const char *text)
{
    char answer[1200];

    world_forget(two->world);
    created(two, definition);

    (void)snprintf(answer, sizeof answer, "… %s …%s…", sumac_reason_name(reason), text);
    world_expect_answer(two->world, answer);
}
