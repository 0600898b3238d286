/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_elsewhere.c -- a strategy that is given what lies on GPUs that are none of its devices
 * comes to what it comes to with the same on the host. */

#include "unit.h"
#include "gpu_world.h"
#include "../returning.h"
#include "strategy_pair.h"

static bool is_on_host(struct sumac_value *value)
{
    bool is = true;

    for (uint32_t i = 0; i < replicas; i++) {
        struct sumac_value *own = NULL;
        assert_int_equal(sumac_value_select(value, i, &own, NULL), SUMAC_OK);
        const struct sumac_value *rows =
            sumac_value_kind(own) == SUMAC_VALUE_INDEXED_SLICES ? sumac_value_item(own, 0) : own;
        is = is && sumac_buffer_place(sumac_value_as_tensor(rows)->buffer).kind == SUMAC_PLACE_HOST;
        sumac_value_unref(own);
    }
    return is;
}

/* ---- in replicas */

/* On CPUs, of what lies on GPUs. Takes  value. */
static void same_of_gpus(
    const struct pair *pair, sumac_replica_function *function, void *context,
    struct sumac_value *value)
{
    struct sumac_value *far = placed(pair->gpus, sumac_value_ref(value)); /* given */
    struct sumac_value *of_far = NULL, *of_near = NULL;
    struct sumac_error error = {0};

    if (run_with(pair->cpus, function, context, far, &of_far, &error) != SUMAC_OK) /* when */
        fail_msg("%s", error.text);
    if (run_with(pair->cpus, function, context, value, &of_near, &error) != SUMAC_OK)
        fail_msg("%s", error.text);

    assert_same(of_far, of_near); /* then */
    assert_true(is_on_host(of_far));
    sumac_value_unref(of_far);
    sumac_value_unref(of_near);
    sumac_value_unref(far);
    sumac_value_unref(value);
}

PAIR_TEST(cpus_reduce_and_gather_what_lies_on_gpus)
{
    struct step steps[] = {
        {.op = SUMAC_REDUCE_SUM, EVERYBODY},
        {.op = SUMAC_REDUCE_MEAN, EVERYBODY},
        {.axis = 0, EVERYBODY},
        {.axis = 1, EVERYBODY}};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        same_of_gpus(pair, call_step, &steps[i], each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0));
}

PAIR_TEST(cpus_reduce_slices_that_lie_on_gpus)
{
    struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};
    static const int64_t indices[] = {4, 0, 4, 2};
    struct sumac_value *items[REPLICAS_MAX];

    for (uint32_t i = 0; i < replicas; i++)
        items[i] = sumac_value_indexed_slices(
            tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2 + i, 3), i),
            sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2 + i), indices), SUMAC_SHAPE(5, 3));
    same_of_gpus(pair, call_step, &step, sumac_value_per_replica(items, replicas, 0));
}

static enum sumac_status
assign_and_read(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica,
        sumac_variable_assign(
            context, replica, sumac_value_item(sumac_replica_args(replica), 0), &returned, error),
        &returned);
}

PAIR_TEST(replicas_on_cpus_assign_what_lies_on_gpus)
{
    struct sumac_variable *variable = variable_of(pair->cpus, "sgd", SUMAC_SYNCHRONIZATION_AUTO);

    same_of_gpus(pair, assign_and_read, variable, each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0));
}

static enum sumac_status
sum_there(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)context;
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica,
        sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, sumac_value_item(sumac_replica_args(replica), 0), NULL,
            &returned, error),
        &returned);
}

static enum sumac_status
to_own_device(struct sumac_replica *replica, void *context, struct sumac_error *error)
{

    struct sumac_value *returned = NULL;
    (void)context;
    return return_from_replica(
        replica,
        sumac_replica_to_device(
            replica, sumac_value_item(sumac_replica_args(replica), 0), &returned, error),
        &returned);
}

PAIR_TEST(the_device_of_a_replica_on_a_cpu_is_the_host)
{
    same_of_gpus(pair, to_own_device, NULL, each(SUMAC_FLOAT32, SUMAC_SHAPE(7), 0));
}

/* One replica, and the caller's thread, without a device. */
PAIR_TEST(a_strategy_without_devices_sums_what_lies_on_a_gpu)
{
    const struct sumac_strategy_options options = {.kind = SUMAC_STRATEGY_DEFAULT};
    struct sumac_strategy *alone = NULL;
    struct sumac_value *near = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(7), 1), *sum = NULL, *far = NULL;
    struct sumac_value *all = placed(pair->gpus, sumac_value_ref(near));

    assert_int_equal(sumac_strategy_create(&options, &alone, NULL), SUMAC_OK);
    assert_int_equal(sumac_value_select(all, 0, &far, NULL), SUMAC_OK);

    assert_int_equal(run_with(alone, sum_there, NULL, far, &sum, NULL), SUMAC_OK); /* when */

    assert_true(sumac_value_equal(sum, near)); /* then */
    sumac_value_unref(sum);
    sumac_value_unref(far);
    sumac_value_unref(all);
    sumac_value_unref(near);
    sumac_strategy_destroy(alone);
}

/* ---- across */

PAIR_TEST(across_cpus_what_lies_on_gpus_is_reduced_and_gathered)
{
    struct sumac_value *near = each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
    struct sumac_value *far = placed(pair->gpus, sumac_value_ref(near)); /* given */
    struct sumac_value *const values[] = {far, near};
    struct sumac_value *sums[2] = {NULL}, *means[2] = {NULL}, *rows[2] = {NULL};
    const struct sumac_axes first = {.count = 1};

    for (uint32_t i = 0; i < 2; i++) { /* when */
        assert_int_equal(
            sumac_strategy_reduce(pair->cpus, SUMAC_REDUCE_SUM, values[i], NULL, &sums[i], NULL),
            SUMAC_OK);
        assert_int_equal(
            sumac_strategy_reduce(
                pair->cpus, SUMAC_REDUCE_MEAN, values[i], &first, &means[i], NULL),
            SUMAC_OK);
        assert_int_equal(sumac_strategy_gather(pair->cpus, values[i], 0, &rows[i], NULL), SUMAC_OK);
    }

    assert_true(sumac_value_equal(sums[0], sums[1])); /* then */
    assert_true(sumac_value_equal(means[0], means[1]));
    assert_true(sumac_value_equal(rows[0], rows[1]));
    for (uint32_t i = 0; i < 2; i++) {
        sumac_value_unref(sums[i]);
        sumac_value_unref(means[i]);
        sumac_value_unref(rows[i]);
        sumac_value_unref(values[i]);
    }
}

PAIR_TEST(the_devices_of_cpus_are_the_host)
{
    struct sumac_value *near = each(SUMAC_FLOAT32, SUMAC_SHAPE(7), 0);
    struct sumac_value *far = placed(pair->gpus, sumac_value_ref(near)); /* given */

    struct sumac_value *back = placed(pair->cpus, far); /* when */

    assert_true(is_on_host(back)); /* then */
    assert_same(back, near);
    sumac_value_unref(back);
    sumac_value_unref(near);
}

PAIR_TEST(items_of_more_replicas_than_there_are_go_to_no_devices)
{
    struct sumac_strategy *const strategies[] = {pair->gpus, pair->cpus};
    struct sumac_value *items[REPLICAS_MAX + 1], *more, *nowhere = NULL;
    struct sumac_error error = {0};
    char expected[200];

    for (uint32_t i = 0; i <= replicas; i++)
        items[i] = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), i);
    more = sumac_value_per_replica(items, replicas + 1, 0); /* given */
    more = sumac_value_list(&more, 1);
    (void)snprintf(
        expected, sizeof expected,
        "sumac_strategy_to_devices: the value at [0] has items of replicas 0 to %u, and the "
        "strategy has %u",
        replicas, replicas);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(
            sumac_strategy_to_devices(strategies[i], more, &nowhere, &error), /* when */
            SUMAC_INVALID_ARGUMENT);
        assert_string_equal(error.text, expected); /* then */
        assert_null(nowhere);
    }
    sumac_value_unref(more);
}

/* ---- created */

PAIR_TEST(a_variable_of_cpus_begins_with_what_lies_on_a_gpu)
{
    struct sumac_value *near = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(7), 1), *read = NULL;
    struct sumac_value *far = placed(pair->gpus, sumac_value_ref(near)); /* given */
    const struct sumac_variable_options options = {.name = "w", .initial = far};
    struct sumac_variable *variable = NULL;

    assert_int_equal(
        sumac_variable_create(pair->cpus, &options, &variable, NULL), SUMAC_OK); /* when */

    assert_int_equal(sumac_variable_read(variable, NULL, &read, NULL), SUMAC_OK); /* then */
    assert_true(sumac_value_equal(read, near));
    sumac_value_unref(read);
    sumac_value_unref(far);
    sumac_value_unref(near);
}

PAIR_TEST(an_initial_value_that_is_not_copied_is_told_as_the_gpu_says_it)
{
    struct sumac_variable *variable = NULL;
    struct sumac_error error = {0};

    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    struct sumac_value *far = placed(pair->gpus, tensor(SUMAC_FLOAT32, SUMAC_SHAPE(7), 1));
    const struct sumac_variable_options options = {.name = "w", .initial = far};

    gpu_world_fail_at("cuMemcpyAsync", 1, 2); /* given */
    assert_int_equal(
        sumac_variable_create(pair->cpus, &options, &variable, &error), /* when */
        SUMAC_RESOURCE_EXHAUSTED);
    gpu_world_fail_at("", 0, 0);
    if (strstr(error.text, "28 bytes are not copied from GPU:0") == NULL) /* then */
        fail_msg("%s", error.text);
    assert_null(variable);
    sumac_value_unref(far);
}

/* ---- memory */

/* What an allocation fails with is told as the driver says it: memory is one thing of several. */
PAIR_TEST(a_device_that_has_failed_is_not_told_as_full)
{
    struct sumac_error error = {0};
    struct sumac_value *near, *far = NULL;

    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    near = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(7), 1);
    gpu_world_fail_at("cuMemAlloc_v2", 1, 999); /* given */
    assert_int_not_equal(
        sumac_strategy_to_devices(pair->gpus, near, &far, &error), SUMAC_OK); /* when */
    gpu_world_fail_at("", 0, 0);
    assert_int_not_equal(error.status, SUMAC_RESOURCE_EXHAUSTED); /* then */
    assert_int_not_equal(error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    if (strstr(error.text, "GPU:0 gives no memory for ") == NULL ||
        strstr(error.text, "CUDA_ERROR_UNKNOWN") == NULL)
        fail_msg("%s", error.text);
    sumac_value_unref(near);
}

/* What the strategy keeps for its next value is there for whoever wants memory now. */
static enum sumac_status
take_all(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_buffer *buffer = NULL;

    (void)context;
    if (sumac_replica_id(replica) == 0)
        gpu_world_fail_at("cuMemAlloc_v2", 1, 2);
    const enum sumac_status status =
        sumac_replica_id(replica) == 0
            ? sumac_device_buffer_create(sumac_replica_device(replica), 64, &buffer, error)
            : SUMAC_OK;
    sumac_buffer_unref(buffer);
    return status;
}

PAIR_TEST(memory_that_is_kept_is_given_to_who_wants_some)
{
    struct sumac_value *near = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(7), 1);
    struct sumac_error error = {0};

    gpu_world_fail_at("", 0, 0);
    for (uint32_t round = 0; round < 2; round++) {
        if (round == 0)
            sumac_value_unref(placed(pair->gpus, sumac_value_ref(near))); /* given */
        const enum sumac_status status =
            run_with(pair->gpus, take_all, NULL, near, NULL, &error); /* when */
        gpu_world_fail_at("", 0, 0);
        assert_int_equal(status, round == 0 ? SUMAC_OK : SUMAC_RESOURCE_EXHAUSTED); /* then */
    }
    sumac_value_unref(near);
}

int main(void)
{
    if (!pair_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
