/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_across.c -- what a strategy on GPUs is asked for across its replicas: reduced to one
 * device, in few groups of calls, with the results of CPUs. */

#include "unit.h"
#include "gpu_world.h"
#include "../returning.h"
#include "strategy_pair.h"

PAIR_TEST(across_the_replicas_it_is_the_hosts)
{
    struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(9), 0), *sum = NULL, *other = NULL;
    struct sumac_value *there = placed(pair->gpus, sumac_value_ref(value));

    assert_int_equal(
        sumac_strategy_reduce(pair->gpus, SUMAC_REDUCE_SUM, there, NULL, &sum, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_strategy_reduce(pair->cpus, SUMAC_REDUCE_SUM, value, NULL, &other, NULL), SUMAC_OK);
    assert_memory_equal(sumac_value_data(sum), sumac_value_data(other), 9 * 4);
    sumac_value_unref(sum);
    sumac_value_unref(other);
    sumac_value_unref(there);
    sumac_value_unref(value);
}

/* How often a function is called for what is reduced across the replicas. */
static uint64_t counted(
    struct sumac_strategy *strategy, enum sumac_reduce_op op, struct sumac_value *value,
    const char *function)
{
    struct sumac_value *result = NULL;

    gpu_world_count(function);
    assert_int_equal(sumac_strategy_reduce(strategy, op, value, NULL, &result, NULL), SUMAC_OK);
    const uint64_t count = gpu_world_counted();
    gpu_world_fail_at("", 0, 0);
    assert_int_equal(sumac_value_kind(result), SUMAC_VALUE_TENSOR);
    sumac_value_unref(result);
    return count;
}

/* One device gets it: a call of each rank, and one piece of memory, which the next one takes. */
PAIR_TEST(what_is_wanted_once_is_reduced_to_one_device)
{
    struct sumac_value *there = placed(pair->gpus, each(SUMAC_FLOAT32, SUMAC_SHAPE(9), 0));

    gpu_world_count(""); /* who cannot be asked is no stand-in */
    enough(2);
    assert_int_equal(counted(pair->gpus, SUMAC_REDUCE_SUM, there, "cuMemAlloc_v2"), 1);
    for (int op = SUMAC_REDUCE_SUM; op <= SUMAC_REDUCE_MEAN; op++) {
        const enum sumac_reduce_op how = (enum sumac_reduce_op)op;
        assert_int_equal(counted(pair->gpus, how, there, "ncclReduce"), replicas);
        assert_int_equal(counted(pair->gpus, how, there, "ncclAllReduce"), 0);
        assert_int_equal(counted(pair->gpus, how, there, "cuMemAlloc_v2"), 0);
    }
    sumac_value_unref(there);
}

PAIR_TEST(across_the_replicas_every_type_is_reduced_as_on_cpus)
{
    for (int dtype = SUMAC_INT8; dtype <= SUMAC_FLOAT64; dtype++) {
        struct sumac_value *value = each((enum sumac_dtype)dtype, SUMAC_SHAPE(ELEMENTS_MAX), 0);
        struct sumac_value *there = placed(pair->gpus, sumac_value_ref(value));
        struct sumac_value *sum = NULL, *other = NULL;
        assert_int_equal(
            sumac_strategy_reduce(pair->gpus, SUMAC_REDUCE_SUM, there, NULL, &sum, NULL), SUMAC_OK);
        assert_int_equal(
            sumac_strategy_reduce(pair->cpus, SUMAC_REDUCE_SUM, value, NULL, &other, NULL),
            SUMAC_OK);
        assert_true(sumac_value_equal(sum, other));
        sumac_value_unref(sum);
        sumac_value_unref(other);
        sumac_value_unref(there);
        sumac_value_unref(value);
    }
}

/* Where a variable is the destination, all_reduce gives each device its own, and the host nothing.
 */
PAIR_TEST(what_is_reduced_to_a_variable_stays_on_its_devices)
{
    struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0), *sum = NULL;
    struct sumac_value *there = placed(pair->gpus, sumac_value_ref(value)), *other = NULL;
    struct sumac_variable *variable = variable_of(pair->gpus, NULL, SUMAC_SYNCHRONIZATION_ON_WRITE);
    struct sumac_variable *host = variable_of(pair->cpus, NULL, SUMAC_SYNCHRONIZATION_ON_WRITE);

    enough(2);
    assert_int_equal(
        sumac_strategy_reduce_to(pair->gpus, SUMAC_REDUCE_SUM, there, variable, &sum, NULL),
        SUMAC_OK);
    assert_int_equal(
        sumac_strategy_reduce_to(pair->cpus, SUMAC_REDUCE_SUM, value, host, &other, NULL),
        SUMAC_OK);
    assert_int_equal(sumac_value_kind(sum), SUMAC_VALUE_MIRRORED);
    assert_true(is_placed(sum));
    assert_same(sum, other);
    assert_int_equal(sumac_variable_assign(variable, NULL, sum, NULL, NULL), SUMAC_OK);
    sumac_value_unref(sum);
    assert_int_equal(
        sumac_strategy_reduce_to(pair->gpus, SUMAC_REDUCE_SUM, value, variable, &sum, NULL),
        SUMAC_OK); /* from the host */
    assert_true(is_placed(sum));
    sumac_value_unref(sum);
    sumac_value_unref(other);
    sumac_value_unref(there);
    sumac_value_unref(value);
}

/* Six tensors, two of them a nest, in a list or a tuple. */
static struct sumac_value *batch(bool is_list)
{
    struct sumac_value *items[5], *nested[2];

    for (uint32_t i = 0; i < 4; i++)
        items[i] = each(i == 1 ? SUMAC_INT16 : SUMAC_FLOAT32, SUMAC_SHAPE(16 + i), 0);
    for (uint32_t i = 0; i < 2; i++)
        nested[i] = each(SUMAC_FLOAT64, SUMAC_SHAPE(3), 0);
    items[4] = sumac_value_tuple(nested, 2);
    return is_list ? sumac_value_list(items, 5) : sumac_value_tuple(items, 5);
}

PAIR_TEST(a_batch_is_a_list_of_what_each_comes_to)
{
    for (int is_list = 0; is_list < 2; is_list++) {
        struct sumac_value *here = batch(is_list == 1), *sums = NULL, *others = NULL;
        struct sumac_value *there = placed(pair->gpus, sumac_value_ref(here));
        assert_int_equal(
            sumac_strategy_batch_reduce(pair->gpus, SUMAC_REDUCE_SUM, there, &sums, NULL),
            SUMAC_OK);
        assert_int_equal(
            sumac_strategy_batch_reduce(pair->cpus, SUMAC_REDUCE_SUM, here, &others, NULL),
            SUMAC_OK);
        assert_int_equal(sumac_value_kind(sums), SUMAC_VALUE_LIST);
        assert_int_equal(sumac_value_kind(others), SUMAC_VALUE_LIST);
        assert_true(sumac_value_equal(sums, others));
        sumac_value_unref(sums);
        sumac_value_unref(others);
        sumac_value_unref(there);
        sumac_value_unref(here);
    }
}

/* How many groups of calls NCCL is given of a batch. */
static uint64_t groups_of_a_batch(uint64_t bytes_per_pack)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED,
        .replicas = replicas,
        .devices = "gpu",
        .communication = {.bytes_per_pack = bytes_per_pack}};
    struct sumac_strategy *strategy = NULL;
    uint64_t groups = 0;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    struct sumac_value *there = placed(strategy, batch(true));
    for (uint32_t i = 0; i < 2; i++) { /* the first one opens the communicators */
        struct sumac_value *sums = NULL;
        gpu_world_count("ncclGroupEnd");
        assert_int_equal(
            sumac_strategy_batch_reduce(strategy, SUMAC_REDUCE_SUM, there, &sums, NULL), SUMAC_OK);
        groups = gpu_world_counted();
        sumac_value_unref(sums);
    }
    gpu_world_fail_at("", 0, 0);
    sumac_value_unref(there);
    sumac_strategy_destroy(strategy);
    return groups;
}

TEST(a_batch_is_as_few_groups_as_its_packs)
{
    gpu_world_count(""); /* who cannot be asked is no stand-in */
    enough(2);
    const uint64_t one = groups_of_a_batch(0);

    assert_true(one > 0);
    assert_int_equal(groups_of_a_batch(1), 6 * one);
    assert_int_equal(groups_of_a_batch(1u << 20), one);
    assert_int_equal(groups_of_a_batch(150), 3 * one); /* 64 and 34, 72 and 76, 24 and 24 */
}

/* In a merge_call what is reduced is each replica's own. */
static enum sumac_status reduce_merged(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)context;
    return sumac_strategy_reduce(
        strategy, SUMAC_REDUCE_SUM, sumac_value_item(args, 0), NULL, result, error);
}

static enum sumac_status
merge_and_reduce(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    (void)context;

    return return_from_replica(
        replica,
        sumac_replica_merge_call(
            replica, reduce_merged, NULL, sumac_replica_args(replica), &returned, error),
        &returned);
}

PAIR_TEST(what_a_merge_call_reduces_is_each_replicas_own)
{
    struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(9), 0), *there = NULL, *here = NULL;
    struct sumac_value *away = placed(pair->gpus, sumac_value_ref(value));

    assert_int_equal(run_with(pair->gpus, merge_and_reduce, NULL, away, &there, NULL), SUMAC_OK);
    assert_int_equal(run_with(pair->cpus, merge_and_reduce, NULL, value, &here, NULL), SUMAC_OK);
    assert_same(there, here);
    assert_true(is_placed(there));
    assert_int_equal(
        sumac_value_kind(there), replicas == 1 ? SUMAC_VALUE_TENSOR : SUMAC_VALUE_MIRRORED);
    sumac_value_unref(there);
    sumac_value_unref(here);
    sumac_value_unref(away);
    sumac_value_unref(value);
}

int main(void)
{
    if (!pair_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
