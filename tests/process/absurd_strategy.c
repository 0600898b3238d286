/* SPDX-License-Identifier: Apache-2.0 */
/* absurd_strategy.c -- the calls of sumac/value.h and sumac/strategy.h, with nothing and with what
 * makes no sense. */
#include "absurd.h"

#include <math.h>
#include <stddef.h>

#include "sumac/strategy.h"

static struct sumac_strategy *strategy;
static struct sumac_value *number, *result;

#define KIND(value) ((enum sumac_value_kind)(value))

static void try_making_values(void)
{
    struct sumac_value *const none[] = {NULL};
    static const char *const keys[] = {NULL};
    const struct sumac_tensor nowhere = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(2)};

    HOLDS(
        sumac_value_tensor, "dtype 77",
        sumac_value_tensor((enum sumac_dtype)77, SUMAC_SCALAR, NULL) == NULL);
    HOLDS(
        sumac_value_tensor, "rank 77",
        sumac_value_tensor(SUMAC_INT8, (struct sumac_shape){.rank = 77}, NULL) == NULL);
    HOLDS(sumac_value_copy, "NULL", sumac_value_copy(NULL) == NULL);
    HOLDS(sumac_value_copy, "no memory", sumac_value_copy(&nowhere) == NULL);
    HOLDS(sumac_value_of, "NULL", sumac_value_of(NULL) == NULL);
    HOLDS(sumac_value_of, "no memory", sumac_value_of(&nowhere) == NULL);
    HOLDS(sumac_value_list, "NULL", sumac_value_list(NULL, 1) == NULL);
    HOLDS(sumac_value_list, "of NULL", sumac_value_list(none, 1) == NULL);
    HOLDS(sumac_value_list, "2^32 - 1", sumac_value_list(NULL, UINT32_MAX) == NULL);
    HOLDS(sumac_value_tuple, "NULL", sumac_value_tuple(NULL, 1) == NULL);
    HOLDS(sumac_value_tuple, "of NULL", sumac_value_tuple(none, 1) == NULL);
    HOLDS(sumac_value_dict, "NULL", sumac_value_dict(NULL, none, 1) == NULL);
    HOLDS(sumac_value_dict, "of NULL", sumac_value_dict(keys, none, 1) == NULL);
    HOLDS(sumac_value_dict, "no items", sumac_value_dict(keys, NULL, 1) == NULL);
    HOLDS(
        sumac_value_indexed_slices, "NULL",
        sumac_value_indexed_slices(NULL, NULL, SUMAC_SCALAR) == NULL);
    HOLDS(sumac_value_per_replica, "NULL", sumac_value_per_replica(NULL, 1, 0) == NULL);
    HOLDS(
        sumac_value_per_replica, "2^32 - 1", sumac_value_per_replica(none, 1, UINT32_MAX) == NULL);
    HOLDS(sumac_value_mirrored, "NULL", sumac_value_mirrored(NULL, 1, 0) == NULL);
    HOLDS(
        sumac_value_mirrored, "2^32 - 1",
        sumac_value_mirrored(sumac_value_none(), UINT32_MAX, 0) == NULL);
}

static void try_scalars(void)
{
    struct sumac_value *const scalars[] = {
        sumac_value_none(), sumac_value_float32(1), sumac_value_float64(1), sumac_value_int32(1),
        sumac_value_int64(1)};

    HOLDS(sumac_value_none, "", sumac_value_kind(scalars[0]) == SUMAC_VALUE_NONE);
    HOLDS(sumac_value_float32, "", sumac_value_data(scalars[1]) != NULL);
    HOLDS(sumac_value_float64, "", sumac_value_data(scalars[2]) != NULL);
    HOLDS(sumac_value_int32, "", sumac_value_data(scalars[3]) != NULL);
    HOLDS(sumac_value_int64, "", sumac_value_data(scalars[4]) != NULL);
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        sumac_value_unref(scalars[i]);
}

static void try_reading_values(void)
{
    HOLDS(sumac_value_ref, "NULL", sumac_value_ref(NULL) == NULL);
    HOLDS(sumac_value_unref, "NULL", (sumac_value_unref(NULL), true));
    HOLDS(sumac_value_kind, "NULL", sumac_value_kind(NULL) == SUMAC_VALUE_NONE);
    HOLDS(sumac_value_kind_name, "77", *sumac_value_kind_name(KIND(77)) == '\0');
    HOLDS(sumac_value_count, "NULL", sumac_value_count(NULL) == 0);
    HOLDS(sumac_value_item, "NULL", sumac_value_item(NULL, 0) == NULL);
    HOLDS(sumac_value_item, "2^32 - 1", sumac_value_item(number, UINT32_MAX) == NULL);
    HOLDS(sumac_value_key, "NULL", sumac_value_key(NULL, 0) == NULL);
    HOLDS(sumac_value_find, "NULL", sumac_value_find(NULL, "a") == NULL);
    HOLDS(sumac_value_find, "no key", sumac_value_find(number, NULL) == NULL);
    HOLDS(sumac_value_as_tensor, "NULL", sumac_value_as_tensor(NULL) == NULL);
    HOLDS(sumac_value_data, "NULL", sumac_value_data(NULL) == NULL);
    HOLDS(sumac_value_as_float32, "NULL", isnan(sumac_value_as_float32(NULL)));
    HOLDS(sumac_value_as_float64, "NULL", isnan(sumac_value_as_float64(NULL)));
    HOLDS(sumac_value_as_int32, "NULL", sumac_value_as_int32(NULL) == 0);
    HOLDS(sumac_value_as_int64, "NULL", sumac_value_as_int64(NULL) == 0);
    HOLDS(sumac_value_shape, "NULL", sumac_value_shape(NULL).rank == 0);
    HOLDS(sumac_value_is_distributed, "NULL", !sumac_value_is_distributed(NULL));
    HOLDS(sumac_value_first_replica, "NULL", sumac_value_first_replica(NULL) == 0);
    HOLDS(sumac_value_equal, "NULL", !sumac_value_equal(NULL, number));
    HOLDS(sumac_value_print, "NULL", sumac_value_print(NULL, NULL, 0) == 4);
    HOLDS(sumac_value_fprint, "NULL", (sumac_value_fprint(NULL, NULL), true));
    REFUSED(
        sumac_value_select, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_value_select(NULL, 0, &result, error));
    REFUSED(
        sumac_value_select, "no result", INVALID_ARGUMENT, "local is NULL",
        sumac_value_select(number, 0, NULL, error));
    REFUSED(
        sumac_value_to_host, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_value_to_host(NULL, &result, error));
    REFUSED(
        sumac_value_to_host, "no result", INVALID_ARGUMENT, "here is NULL",
        sumac_value_to_host(number, NULL, error));
    REFUSED(
        sumac_value_regroup, "NULL", INVALID_ARGUMENT, "items is NULL",
        sumac_value_regroup(NULL, 0, &result, error));
    REFUSED(
        sumac_value_regroup, "no result", INVALID_ARGUMENT, "regrouped is NULL",
        sumac_value_regroup(number, 0, NULL, error));
    REFUSED(
        sumac_value_regroup, "a tensor", INVALID_ARGUMENT, "items is a tensor of 0",
        sumac_value_regroup(number, 0, &result, error));
    REFUSED(
        sumac_value_same_nest, "NULL", INVALID_ARGUMENT, "a is NULL",
        sumac_value_same_nest(NULL, number, error));
    REFUSED(
        sumac_value_same_nest, "NULL", INVALID_ARGUMENT, "b is NULL",
        sumac_value_same_nest(number, NULL, error));
}

static void try_strategies(void)
{
    const struct sumac_strategy_options odd = {.kind = (enum sumac_strategy_kind)77};
    const struct sumac_strategy_options mirrored = {.kind = SUMAC_STRATEGY_MIRRORED, .replicas = 2};
    const struct sumac_strategy_options packs = {
        .replicas = 1, .communication = {.bytes_per_pack = UINT64_MAX}};
    const struct sumac_strategy_options rings = {
        .replicas = 1, .communication = {.implementation = (enum sumac_communication)77}};
    struct sumac_strategy *none = NULL;

    REFUSED(
        sumac_strategy_create, "no result", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_create(&mirrored, NULL, error));
    REFUSED(
        sumac_strategy_create, "kind 77", INVALID_ARGUMENT, "of kind 77",
        sumac_strategy_create(&odd, &none, error));
    REFUSED(
        sumac_strategy_create, "2^64 - 1 bytes a pack", INVALID_ARGUMENT, "bytes_per_pack",
        sumac_strategy_create(&packs, &none, error));
    REFUSED(
        sumac_strategy_create, "implementation 77", INVALID_ARGUMENT, "implementation is 77",
        sumac_strategy_create(&rings, &none, error));
    HOLDS(sumac_strategy_create, "untouched", none == NULL);
    HOLDS(
        sumac_strategy_create, "two replicas",
        sumac_strategy_create(&mirrored, &strategy, error) == SUMAC_OK);
    REFUSED(
        sumac_strategy_from_environment, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_from_environment(NULL, error));
    REFUSED(
        sumac_strategy_from_environment_with, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_from_environment_with(NULL, NULL, error));
    HOLDS(sumac_strategy_client, "NULL", sumac_strategy_client(NULL) == NULL);
    HOLDS(sumac_strategy_destroy, "NULL", (sumac_strategy_destroy(NULL), true));
    HOLDS(sumac_strategy_close, "NULL", sumac_strategy_close(NULL, error) == SUMAC_OK);
    HOLDS(
        sumac_strategy_num_replicas_in_sync, "NULL",
        sumac_strategy_num_replicas_in_sync(NULL) == 0);
    HOLDS(sumac_strategy_name, "NULL", *sumac_strategy_name(NULL) == '\0');
    REFUSED(
        sumac_strategy_enter, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_enter(NULL, error));
    REFUSED(
        sumac_strategy_leave, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_leave(NULL, error));
    REFUSED(
        sumac_strategy_leave, "not entered", FAILED_PRECONDITION, "in no scope",
        sumac_strategy_leave(strategy, error));
    HOLDS(sumac_set_strategy, "NULL", sumac_set_strategy(NULL, error) == SUMAC_OK);
    HOLDS(sumac_present_strategy, "", sumac_present_strategy() == NULL);
    HOLDS(sumac_in_cross_replica_context, "", !sumac_in_cross_replica_context());
    HOLDS(sumac_present_replica, "", sumac_present_replica() == NULL);
    HOLDS(sumac_replica_id, "NULL", sumac_replica_id(NULL) == 0);
    HOLDS(sumac_replica_count, "NULL", sumac_replica_count(NULL) == 0);
    HOLDS(sumac_replica_strategy, "NULL", sumac_replica_strategy(NULL) == NULL);
    HOLDS(sumac_replica_device, "NULL", sumac_replica_device(NULL) == NULL);
    HOLDS(sumac_replica_step, "NULL", sumac_replica_step(NULL) == 0);
    HOLDS(sumac_replica_value, "NULL", sumac_replica_value(NULL, 0) == NULL);
    HOLDS(sumac_replica_gradient, "NULL", sumac_replica_gradient(NULL, UINT32_MAX) == NULL);
    HOLDS(sumac_replica_set_weight, "NULL", (sumac_replica_set_weight(NULL, -1), true));
    HOLDS(sumac_replica_args, "NULL", sumac_replica_args(NULL) == NULL);
    HOLDS(sumac_replica_kwargs, "NULL", sumac_replica_kwargs(NULL) == NULL);
    HOLDS(sumac_replica_return, "NULL", (sumac_replica_return(NULL, NULL), true));
}

static void try_placing(void)
{
    REFUSED(
        sumac_replica_to_device, "NULL", INVALID_ARGUMENT, "replica is NULL",
        sumac_replica_to_device(NULL, number, &result, error));
    REFUSED(
        sumac_strategy_to_devices, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_to_devices(NULL, number, &result, error));
    REFUSED(
        sumac_strategy_to_devices, "no value", INVALID_ARGUMENT, "value is NULL",
        sumac_strategy_to_devices(strategy, NULL, &result, error));
    REFUSED(
        sumac_strategy_to_devices, "no result", INVALID_ARGUMENT, "placed is NULL",
        sumac_strategy_to_devices(strategy, number, NULL, error));
}

static void try_running(void)
{
    const struct sumac_run_options nothing = {.function = NULL};

    REFUSED(
        sumac_strategy_run, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_run(NULL, &nothing, &result, error));
    REFUSED(
        sumac_strategy_run, "no options", INVALID_ARGUMENT, "options is NULL",
        sumac_strategy_run(strategy, NULL, &result, error));
    REFUSED(
        sumac_strategy_run, "no function", INVALID_ARGUMENT, "function is NULL",
        sumac_strategy_run(strategy, &nothing, &result, error));
    REFUSED(
        sumac_strategy_local_results, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_local_results(NULL, number, &result, error));
    REFUSED(
        sumac_strategy_local_results, "no value", INVALID_ARGUMENT, "value is NULL",
        sumac_strategy_local_results(strategy, NULL, &result, error));
    REFUSED(
        sumac_strategy_values_from_function, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_values_from_function(NULL, NULL, NULL, &result, error));
    REFUSED(
        sumac_strategy_values_from_function, "no function", INVALID_ARGUMENT, "function is NULL",
        sumac_strategy_values_from_function(strategy, NULL, NULL, &result, error));
}

static void try_collecting(void)
{
    const struct sumac_axes many = {.count = 77}, uncounted = {.axis = {0, -1}};

    HOLDS(sumac_reduce_op_parse, "NULL", (int)sumac_reduce_op_parse(NULL) == 0);
    HOLDS(sumac_reduce_op_parse, "product", (int)sumac_reduce_op_parse("product") == 0);
    REFUSED(
        sumac_strategy_reduce, "NULL", INVALID_ARGUMENT, "strategy is NULL",
        sumac_strategy_reduce(NULL, SUMAC_REDUCE_MEAN, number, NULL, &result, error));
    REFUSED(
        sumac_strategy_reduce, "reduction 77", INVALID_ARGUMENT, "a reduction 77",
        sumac_strategy_reduce(strategy, (enum sumac_reduce_op)77, number, NULL, &result, error));
    struct sumac_value *const both[] = {sumac_value_int32(1), sumac_value_int32(2)};
    struct sumac_value *of_two = sumac_value_per_replica(both, 2, 0);
    REFUSED(
        sumac_strategy_reduce, "77 axes", INVALID_ARGUMENT, "77 axes were given",
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, of_two, &many, &result, error));
    REFUSED(
        sumac_strategy_reduce, "an axis beyond the count", INVALID_ARGUMENT,
        "axis[1] is -1, and count is 0",
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, of_two, &uncounted, &result, error));
    REFUSED(
        sumac_strategy_batch_reduce, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_strategy_batch_reduce(strategy, SUMAC_REDUCE_SUM, NULL, &result, error));
    REFUSED(
        sumac_strategy_batch_reduce, "no list", INVALID_ARGUMENT, "values is a per_replica",
        sumac_strategy_batch_reduce(strategy, SUMAC_REDUCE_SUM, of_two, &result, error));
    REFUSED(
        sumac_strategy_gather, "NULL", INVALID_ARGUMENT, "value is NULL",
        sumac_strategy_gather(strategy, NULL, 0, &result, error));
    REFUSED(
        sumac_strategy_gather, "axis 2^63 - 1", INVALID_ARGUMENT, "is a scalar",
        sumac_strategy_gather(strategy, of_two, INT64_MAX, &result, error));
    sumac_value_unref(of_two);
}

static void try_calling(void)
{
    REFUSED(
        sumac_replica_all_reduce, "NULL", INVALID_ARGUMENT, "replica is NULL",
        sumac_replica_all_reduce(NULL, SUMAC_REDUCE_SUM, number, NULL, &result, error));
    REFUSED(
        sumac_replica_all_gather, "NULL", INVALID_ARGUMENT, "replica is NULL",
        sumac_replica_all_gather(NULL, number, 0, NULL, &result, error));
    REFUSED(
        sumac_replica_all_reduce_gradient, "NULL", INVALID_ARGUMENT, "replica is NULL",
        sumac_replica_all_reduce_gradient(NULL, SUMAC_REDUCE_SUM, number, NULL, &result, error));
    REFUSED(
        sumac_replica_all_gather_gradient, "NULL", INVALID_ARGUMENT, "upstream is NULL",
        sumac_replica_all_gather_gradient(NULL, NULL, number, 0, &result, error));
    REFUSED(
        sumac_replica_merge_call, "NULL", INVALID_ARGUMENT, "replica is NULL",
        sumac_replica_merge_call(NULL, NULL, NULL, NULL, &result, error));
}

void try_strategy(void)
{
    number = sumac_value_float32(1);
    try_making_values();
    try_scalars();
    try_reading_values();
    try_strategies();
    try_placing();
    try_running();
    try_collecting();
    try_calling();
    HOLDS(sumac_strategy_run, "nothing was given", result == NULL);
    sumac_strategy_destroy(strategy);
    sumac_value_unref(number);
}
