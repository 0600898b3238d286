/* SPDX-License-Identifier: Apache-2.0 */
/* absurd_variable.c -- the calls of sumac/variable.h, with nothing and with what makes no
 * sense. */
#include "absurd.h"

#include <stddef.h>

#include "sumac/variable.h"

static struct sumac_strategy *strategy;
static struct sumac_variable *variable;
static struct sumac_value *number, *result;

static void try_creating(void)
{
    const struct sumac_variable_options good = {.name = "w", .initial = number};
    const struct sumac_variable_options nothing = {.name = "w"};
    const struct sumac_variable_options odd = {
        .name = "w", .initial = number, .aggregation = (enum sumac_reduce_op)77};
    const struct sumac_variable_options trained = {
        .name = "w", .initial = number, .trainable = (enum sumac_trainable)77};
    struct sumac_variable *none = NULL;

    REFUSED(
        sumac_variable_create, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_variable_create(NULL, &good, &none, error));
    REFUSED(
        sumac_variable_create, "no options", INVALID_ARGUMENT, "options is NULL",
        sumac_variable_create(strategy, NULL, &none, error));
    REFUSED(
        sumac_variable_create, "no variable", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_create(strategy, &good, NULL, error));
    REFUSED(
        sumac_variable_create, "no tensor", INVALID_ARGUMENT, "initial is no tensor",
        sumac_variable_create(strategy, &nothing, &none, error));
    REFUSED(
        sumac_variable_create, "aggregation 77", INVALID_ARGUMENT, "no such aggregation",
        sumac_variable_create(strategy, &odd, &none, error));
    REFUSED(
        sumac_variable_create, "trainable 77", INVALID_ARGUMENT, "trainable is neither",
        sumac_variable_create(strategy, &trained, &none, error));
    HOLDS(sumac_variable_create, "untouched", none == NULL);
    HOLDS(sumac_variable_destroy, "NULL", (sumac_variable_destroy(NULL), true));
    HOLDS(
        sumac_variable_create, "good",
        sumac_variable_create(strategy, &good, &variable, error) == SUMAC_OK);
}

static void try_describing(void)
{
    HOLDS(sumac_variable_name, "NULL", sumac_variable_name(NULL) == NULL);
    HOLDS(sumac_variable_dtype, "NULL", (int)sumac_variable_dtype(NULL) == 0);
    HOLDS(sumac_variable_shape, "NULL", sumac_variable_shape(NULL).rank == 0);
    HOLDS(sumac_variable_trainable, "NULL", !sumac_variable_trainable(NULL));
    HOLDS(sumac_variable_synchronization, "NULL", !sumac_variable_synchronization(NULL));
    HOLDS(sumac_variable_aggregation, "NULL", !sumac_variable_aggregation(NULL));
    HOLDS(sumac_variable_created_in_scope, "NULL", !sumac_variable_created_in_scope(NULL, NULL));
    HOLDS(sumac_write_name, "77", sumac_write_name((enum sumac_write)77) == NULL);
    HOLDS(sumac_write_parse, "NULL", (int)sumac_write_parse(NULL) == 0);
}

static void try_writing(void)
{
    REFUSED(
        sumac_variable_read, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_read(NULL, NULL, &result, error));
    REFUSED(
        sumac_variable_read, "no value", INVALID_ARGUMENT, "value is NULL",
        sumac_variable_read(variable, NULL, NULL, error));
    REFUSED(
        sumac_variable_components, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_components(NULL, &result, error));
    REFUSED(
        sumac_variable_write, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_write(NULL, NULL, SUMAC_WRITE_ASSIGN, number, &result, error));
    REFUSED(
        sumac_variable_write, "77", INVALID_ARGUMENT, "77 is no way to write",
        sumac_variable_write(variable, NULL, (enum sumac_write)77, number, &result, error));
    REFUSED(
        sumac_variable_assign, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_variable_assign(variable, NULL, NULL, &result, error));
    REFUSED(
        sumac_variable_assign_add, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_assign_add(NULL, NULL, number, &result, error));
    REFUSED(
        sumac_variable_assign_sub, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_assign_sub(NULL, NULL, number, &result, error));
}

static void try_parts(void)
{
    const struct sumac_slice odd = {.kind = (enum sumac_slice_kind)77};
    struct sumac_value *ids = sumac_value_int32(0), *list = sumac_value_list(NULL, 0);
    struct sumac_value *vector = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), NULL);

    REFUSED(
        sumac_value_slice, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_value_slice(NULL, &odd, 1, &result, error));
    REFUSED(
        sumac_value_slice, "kind 77", INVALID_ARGUMENT, "is neither an index",
        sumac_value_slice(number, &odd, 1, &result, error));
    REFUSED(
        sumac_value_slice, "2^32 - 1 of nothing", INVALID_ARGUMENT, "slices is NULL",
        sumac_value_slice(number, NULL, UINT32_MAX, &result, error));
    REFUSED(
        sumac_value_rows, "of a scalar", INVALID_ARGUMENT, "has no rows",
        sumac_value_rows(number, ids, &result, error));
    REFUSED(
        sumac_value_rows, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_value_rows(NULL, ids, &result, error));
    REFUSED(
        sumac_value_rows, "no ids", INVALID_ARGUMENT, "the ids are NULL",
        sumac_value_rows(vector, NULL, &result, error));
    REFUSED(
        sumac_value_rows, "no result", INVALID_ARGUMENT, "result is NULL",
        sumac_value_rows(vector, ids, NULL, error));
    REFUSED(
        sumac_value_lookup, "no bags", INVALID_ARGUMENT, "give a list of ids",
        sumac_value_lookup(vector, NULL, SUMAC_REDUCE_SUM, &result, error));
    REFUSED(
        sumac_value_lookup, "combiner 77", INVALID_ARGUMENT, "a combiner 77",
        sumac_value_lookup(vector, list, (enum sumac_reduce_op)77, &result, error));
    REFUSED(
        sumac_value_lookup, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_value_lookup(NULL, list, SUMAC_REDUCE_SUM, &result, error));
    sumac_value_unref(ids);
    sumac_value_unref(list);
    sumac_value_unref(vector);
}

static void try_parts_of_variables(void)
{
    const struct sumac_slice odd = {.kind = (enum sumac_slice_kind)77};
    struct sumac_value *ids = sumac_value_int32(0), *list = sumac_value_list(NULL, 0);
    uint32_t shard = 0;
    uint64_t offset = 0;

    HOLDS(sumac_variable_shards, "NULL", sumac_variable_shards(NULL) == 0);
    REFUSED(
        sumac_variable_shard, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_shard(NULL, 0, &result, error));
    REFUSED(
        sumac_variable_shard, "2^32 - 1", OUT_OF_RANGE, "4294967295",
        sumac_variable_shard(variable, UINT32_MAX, &result, error));
    REFUSED(
        sumac_variable_slice, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_slice(NULL, NULL, &odd, 1, &result, error));
    REFUSED(
        sumac_variable_slice, "no value", INVALID_ARGUMENT, "value is NULL",
        sumac_variable_slice(variable, NULL, &odd, 1, NULL, error));
    REFUSED(
        sumac_variable_rows, "NULL", INVALID_ARGUMENT, "sumac_variable_rows: variable is",
        sumac_variable_rows(NULL, NULL, ids, &result, error));
    REFUSED(
        sumac_variable_rows, "of a scalar", INVALID_ARGUMENT, "has no rows",
        sumac_variable_rows(variable, NULL, NULL, &result, error));
    REFUSED(
        sumac_variable_lookup, "NULL", INVALID_ARGUMENT, "sumac_variable_lookup: variable is",
        sumac_variable_lookup(NULL, NULL, list, SUMAC_REDUCE_SUM, &result, error));
    REFUSED(
        sumac_variable_lookup, "combiner 77", INVALID_ARGUMENT, "has no rows",
        sumac_variable_lookup(variable, NULL, list, (enum sumac_reduce_op)77, &result, error));
    REFUSED(
        sumac_shard_of_row, "no shards", INVALID_ARGUMENT, "there is no row 0",
        sumac_shard_of_row(3, 0, 0, &shard, &offset, error));
    REFUSED(
        sumac_shard_of_row, "no result", INVALID_ARGUMENT, "shard is NULL",
        sumac_shard_of_row(3, 1, 0, NULL, &offset, error));
    sumac_value_unref(ids);
    sumac_value_unref(list);
}

static void try_slots_and_destinations(void)
{
    REFUSED(
        sumac_variable_slots, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_slots(NULL, &result, error));
    REFUSED(
        sumac_variable_slots, "no place for them", INVALID_ARGUMENT, "slots is NULL",
        sumac_variable_slots(variable, NULL, error));
    REFUSED(
        sumac_strategy_reduce_to, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_reduce_to(NULL, SUMAC_REDUCE_SUM, number, variable, &result, error));
    REFUSED(
        sumac_strategy_reduce_to, "no value", INVALID_ARGUMENT, "value is NULL",
        sumac_strategy_reduce_to(strategy, SUMAC_REDUCE_SUM, NULL, variable, &result, error));
    REFUSED(
        sumac_strategy_reduce_to, "reduction 77", INVALID_ARGUMENT, "a reduction 77",
        sumac_strategy_reduce_to(
            strategy, (enum sumac_reduce_op)77, number, variable, &result, error));
}

static void try_updating(void)
{
    const struct sumac_update_options nothing = {.function = NULL};
    const struct sumac_function nameless = {.hyperparameters = {{"learning_rate", 1}}};
    const struct sumac_function counted = {.name = "sgd", .hyperparameters = {{NULL, 1}}};

    REFUSED(
        sumac_variable_update, "NULL", INVALID_ARGUMENT, "variable is NULL",
        sumac_variable_update(NULL, NULL, &nothing, &result, error));
    REFUSED(
        sumac_variable_update, "no options", INVALID_ARGUMENT, "options is NULL",
        sumac_variable_update(variable, NULL, NULL, &result, error));
    REFUSED(
        sumac_variable_update, "no function", INVALID_ARGUMENT, "function is NULL",
        sumac_variable_update(variable, NULL, &nothing, &result, error));
    REFUSED(
        sumac_variable_apply, "NULL", INVALID_ARGUMENT, "gradient is NULL",
        sumac_variable_apply(variable, NULL, NULL, NULL, error));
    REFUSED(
        sumac_variable_apply, "hyperparameters of no function", INVALID_ARGUMENT,
        "without its name", sumac_variable_apply(variable, NULL, &nameless, number, error));
    REFUSED(
        sumac_variable_apply, "2^32 - 1 hyperparameters", INVALID_ARGUMENT,
        "a hyperparameter of sgd is given without its name",
        sumac_variable_apply(variable, NULL, &counted, number, error));
    struct sumac_variable *const none[] = {variable, NULL};
    struct sumac_value *nested = sumac_value_list((struct sumac_value *const[]){NULL}, 0);
    REFUSED(
        sumac_variable_read_all, "NULL", INVALID_ARGUMENT, "variables is NULL",
        sumac_variable_read_all(NULL, 1, NULL, &result, error));
    REFUSED(
        sumac_variable_read_all, "no place for it", INVALID_ARGUMENT, "values is NULL",
        sumac_variable_read_all(none, 1, NULL, NULL, error));
    REFUSED(
        sumac_variable_read_all, "a variable that is NULL", INVALID_ARGUMENT,
        "variables[1] is NULL", sumac_variable_read_all(none, 2, NULL, &result, error));
    REFUSED(
        sumac_variable_apply_all, "NULL", INVALID_ARGUMENT, "gradients is NULL",
        sumac_variable_apply_all(none, 1, NULL, NULL, error));
    REFUSED(
        sumac_variable_apply_all, "2^32 - 1 variables", INVALID_ARGUMENT,
        "one for each of 4294967295 variables",
        sumac_variable_apply_all(none, UINT32_MAX, NULL, nested, error));
    sumac_value_unref(nested);
    REFUSED(
        sumac_strategy_define, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_define(NULL, "f", "value = g", 9, error));
    REFUSED(
        sumac_strategy_define, "no text", INVALID_ARGUMENT, "text is NULL",
        sumac_strategy_define(strategy, "f", NULL, 9, error));
    REFUSED(
        sumac_strategy_define, "no bytes", INVALID_ARGUMENT, "line 1",
        sumac_strategy_define(strategy, "f", "", 0, error));
    REFUSED(
        sumac_strategy_plug, "NULL", INVALID_ARGUMENT, "plugin is NULL",
        sumac_strategy_plug(strategy, NULL, error));
    HOLDS(sumac_update_index, "NULL", sumac_update_index(NULL) == 0);
    HOLDS(sumac_update_args, "NULL", sumac_update_args(NULL) == NULL);
    HOLDS(sumac_update_kwargs, "NULL", sumac_update_kwargs(NULL) == NULL);
    HOLDS(sumac_update_return, "NULL", (sumac_update_return(NULL, NULL), true));
    REFUSED(
        sumac_update_read, "NULL", INVALID_ARGUMENT, "update is NULL",
        sumac_update_read(NULL, &result, error));
    REFUSED(
        sumac_update_write, "NULL", INVALID_ARGUMENT, "update is NULL",
        sumac_update_write(NULL, SUMAC_WRITE_ASSIGN, number, &result, error));
    REFUSED(
        sumac_update_apply, "NULL", INVALID_ARGUMENT, "update is NULL",
        sumac_update_apply(NULL, NULL, number, error));
}

void try_distributed(void)
{
    const struct sumac_strategy_options mirrored = {.kind = SUMAC_STRATEGY_MIRRORED, .replicas = 2};

    number = sumac_value_float32(1);
    HOLDS(
        sumac_strategy_create, "two replicas",
        sumac_strategy_create(&mirrored, &strategy, error) == SUMAC_OK);
    try_creating();
    try_describing();
    try_writing();
    try_parts();
    try_parts_of_variables();
    try_slots_and_destinations();
    try_updating();
    HOLDS(sumac_variable_read, "nothing was given", result == NULL);
    sumac_variable_destroy(variable);
    sumac_strategy_destroy(strategy);
    sumac_value_unref(number);
}
