/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_update.c -- the components of a variable on GPUs are updated there: to the bits that the
 * same come to on CPUs, all at once, or not at all. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "unit.h"
#include "gpu_world.h"
#include "../returning.h"
#include "strategy_pair.h"
#include "update.h"

#define NTH_MAX 500u
#define STEPS 3u
#define PATIENCE_S 60 /* beyond it something is lost, and the test fails */
#define COUNT 9u      /* of the variable's elements: no sum of the replicas' is 0 then */

static const struct sumac_shape shape = SUMAC_SHAPE(COUNT);

static struct sumac_variable *
mirrored(struct sumac_strategy *strategy, enum sumac_dtype dtype, const char *function)
{
    return variable_made(
        strategy, tensor(dtype, shape, 0), &(struct sumac_function){.name = function},
        SUMAC_SYNCHRONIZATION_ON_WRITE);
}

/* Of each replica another one. */
static struct sumac_value *gradients(enum sumac_dtype dtype)
{
    struct sumac_value *items[REPLICAS_MAX];

    for (uint32_t i = 0; i < replicas; i++)
        items[i] = tensor(dtype, shape, i + 1);
    return sumac_value_per_replica(items, replicas, 0);
}

/* Gives  what the replicas read after the last of some steps. */
static struct sumac_value *
trained(struct sumac_strategy *strategy, struct sumac_variable *variable, enum sumac_dtype dtype)
{
    struct sumac_value *value = placed(strategy, gradients(dtype)), *result = NULL;
    struct sumac_error error = {0};

    for (uint32_t step = 0; step < STEPS; step++) {
        sumac_value_unref(result);
        result = NULL;
        if (run_with(strategy, apply_sum, variable, value, &result, &error) != SUMAC_OK)
            fail_msg("%s", error.text);
    }
    sumac_value_unref(value);
    return result;
}

static void assert_trained_alike(
    const struct pair *pair, enum sumac_dtype dtype, const struct sumac_function *f)
{
    const enum sumac_synchronization how = SUMAC_SYNCHRONIZATION_ON_WRITE;
    struct sumac_variable *far =
        variable_made(pair->gpus, tensor(dtype, shape, 0), f, how); /* given */
    struct sumac_variable *near = variable_made(pair->cpus, tensor(dtype, shape, 0), f, how);

    struct sumac_value *there = trained(pair->gpus, far, dtype); /* when */
    struct sumac_value *here = trained(pair->cpus, near, dtype);

    assert_same(there, here); /* then */
    assert_true(is_placed(there));
    assert_each_ones(there);
    sumac_value_unref(there);
    sumac_value_unref(here);
    sumac_variable_destroy(far);
    sumac_variable_destroy(near);
}

/* What kernels there are, and what is the host's. */
PAIR_TEST(every_function_on_every_type_comes_to_the_bits_of_cpus)
{
    const struct update_function *function;

    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        for (int dtype = SUMAC_INT8; dtype <= SUMAC_FLOAT64; dtype++)
            if ((function->dtypes >> dtype & 1) != 0)
                assert_trained_alike(
                    pair, (enum sumac_dtype)dtype,
                    &(struct sumac_function){.name = function->name});
}

PAIR_TEST(hyperparameters_and_schedules_are_those_of_cpus)
{
    static const struct sumac_schedule halved = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 1, .decay_rate = 0.5};
    const struct sumac_function functions[] = {
        {.name = "adam", .schedule = &halved},
        {.name = "sgd", .schedule = &halved},
        SUMAC_FUNCTION("rmsprop", {"centered", 1}),
        SUMAC_FUNCTION("rmsprop", {"learning_rate", 0.5}, {"clip_value", 2}),
        SUMAC_FUNCTION("delayed_nesterov", {"buffer_size", 2}),
        SUMAC_FUNCTION("momentum", {"nesterov", 1})};

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_FLOAT64; dtype++)
            assert_trained_alike(pair, (enum sumac_dtype)dtype, &functions[i]);
}

/* ---- by whom */

/* Across the replicas: nothing else is called of the driver than what the update takes. */
static uint64_t counted(
    struct sumac_variable *variable, const char *function, struct sumac_value *gradient,
    const char *calls)
{
    const struct sumac_function named = {.name = function};
    struct sumac_error error = {0};

    gpu_world_count(calls);
    if (sumac_variable_apply(variable, NULL, function == NULL ? NULL : &named, gradient, &error) !=
        SUMAC_OK)
        fail_msg("%s", error.text);
    const uint64_t count = gpu_world_counted();
    gpu_world_fail_at("", 0, 0);
    return count;
}

PAIR_TEST(an_update_is_a_launch_on_each_device_and_nothing_is_copied)
{
    gpu_world_count(""); /* who cannot be asked is no stand-in */
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_FLOAT32, "adam");
    struct sumac_value *gradient = placed(pair->gpus, tensor(SUMAC_FLOAT32, shape, 1));

    assert_int_equal(counted(variable, NULL, gradient, "cuLaunchKernel"), replicas);
    assert_int_equal(counted(variable, NULL, gradient, "cuMemcpyAsync"), 0);
    assert_int_equal(counted(variable, "assign_add", gradient, "cuLaunchKernel"), replicas);
    sumac_value_unref(gradient);
}

PAIR_TEST(slots_that_a_function_does_not_have_are_left_where_they_are)
{
    gpu_world_count("");
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_FLOAT32, "adam");
    struct sumac_value *gradient = placed(pair->gpus, tensor(SUMAC_FLOAT32, shape, 1));

    assert_int_equal(counted(variable, "assign_add", gradient, "cuMemAlloc_v2"), replicas);
    sumac_value_unref(gradient);
}

/* Each update gives up what the next one writes to. */
PAIR_TEST(updates_take_the_memory_of_those_before)
{
    gpu_world_count("");
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_FLOAT32, "adam");
    struct sumac_value *gradient = placed(pair->gpus, tensor(SUMAC_FLOAT32, shape, 1));

    assert_int_equal(counted(variable, NULL, gradient, "cuMemAlloc_v2"), 3 * replicas);
    for (uint32_t step = 0; step < STEPS; step++)
        assert_int_equal(counted(variable, NULL, gradient, "cuMemAlloc_v2"), 0);
    sumac_value_unref(gradient);
}

/* It is brought to each device, and the variable to none. */
PAIR_TEST(a_gradient_of_the_hosts_is_brought_to_the_devices)
{
    gpu_world_count("");
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_FLOAT32, "adam");
    struct sumac_value *gradient = tensor(SUMAC_FLOAT32, shape, 1);

    assert_int_equal(counted(variable, NULL, gradient, "cuLaunchKernel"), replicas);
    assert_int_equal(counted(variable, NULL, gradient, "cuMemcpyAsync"), replicas);
    sumac_value_unref(gradient);
}

static struct sumac_value *rows(void)
{
    static const int64_t indices[] = {7, 0, 7};

    return sumac_value_indexed_slices(
        tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3), 1),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(3), indices), shape);
}

/* Integers, and rows, are the host's. */
PAIR_TEST(what_has_no_kernel_is_launched_nowhere)
{
    gpu_world_count("");
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_INT32, NULL);
    struct sumac_value *gradient = placed(pair->gpus, tensor(SUMAC_INT32, shape, 1));
    assert_int_equal(counted(variable, "assign_add", gradient, "cuLaunchKernel"), 0);
    sumac_value_unref(gradient);

    struct sumac_variable *far = mirrored(pair->gpus, SUMAC_FLOAT32, "adam");
    struct sumac_variable *near = mirrored(pair->cpus, SUMAC_FLOAT32, "adam");
    struct sumac_value *there = NULL, *here = NULL;
    gradient = rows();
    struct sumac_value *away = placed(pair->gpus, sumac_value_ref(gradient));
    assert_int_equal(counted(far, NULL, away, "cuLaunchKernel"), 0);
    assert_int_equal(sumac_variable_apply(near, NULL, NULL, gradient, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_read(far, NULL, &there, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_read(near, NULL, &here, NULL), SUMAC_OK);
    assert_true(sumac_value_equal(there, here));
    sumac_value_unref(there);
    sumac_value_unref(here);
    sumac_value_unref(away);
    sumac_value_unref(gradient);
}

/* One by one, within a function of the program's: a value that somebody has is no other then. */
static enum sumac_status
apply_twice(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_value *before = NULL;
    char one[128], other[128];

    (void)context;
    enum sumac_status status = sumac_update_read(component, &before, error);
    (void)sumac_value_print(before, one, sizeof one);
    for (uint32_t i = 0; status == SUMAC_OK && i < 2; i++)
        status = sumac_update_apply(
            component, NULL, sumac_value_item(sumac_update_args(component), 0), error);
    (void)sumac_value_print(before, other, sizeof other);
    assert_string_equal(one, other);
    sumac_value_unref(before);
    return return_from_update(
        component, status == SUMAC_OK ? sumac_update_read(component, &returned, error) : status,
        &returned);
}

static struct sumac_value *updated(struct sumac_strategy *strategy, struct sumac_variable *variable)
{
    struct sumac_value *gradient = placed(strategy, tensor(SUMAC_FLOAT32, shape, 1));
    struct sumac_value *args = sumac_value_tuple(&gradient, 1), *result = NULL;
    const struct sumac_update_options update = {.function = apply_twice, .args = args};
    struct sumac_error error = {0};

    if (sumac_variable_update(variable, NULL, &update, &result, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    sumac_value_unref(args);
    return result;
}

PAIR_TEST(components_are_updated_one_by_one_too)
{
    struct sumac_value *there = updated(pair->gpus, mirrored(pair->gpus, SUMAC_FLOAT32, "adam"));
    struct sumac_value *here = updated(pair->cpus, mirrored(pair->cpus, SUMAC_FLOAT32, "adam"));

    assert_same(there, here);
    assert_true(is_placed(there));
    sumac_value_unref(there);
    sumac_value_unref(here);
}

/* In the merge_call that an update is in replicas. */
static enum sumac_status
update_twice(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_update_options update = {
        .function = apply_twice, .args = sumac_replica_args(replica)};

    return return_from_replica(
        replica, sumac_variable_update(context, replica, &update, &returned, error), &returned);
}

PAIR_TEST(updates_one_by_one_take_the_memory_of_those_before)
{
    gpu_world_count("");
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_FLOAT32, "adam");
    struct sumac_value *gradient = placed(pair->gpus, tensor(SUMAC_FLOAT32, shape, 1));

    for (uint32_t step = 0; step < STEPS; step++) {
        struct sumac_value *result = NULL;
        gpu_world_count("cuMemAlloc_v2");
        assert_int_equal(
            run_with(pair->gpus, update_twice, variable, gradient, &result, NULL), SUMAC_OK);
        if (step > 0)
            assert_int_equal(gpu_world_counted(), 0);
        sumac_value_unref(result);
    }
    gpu_world_fail_at("", 0, 0);
    sumac_value_unref(gradient);
}

/* ---- assigned */

static enum sumac_status
read_own(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    return return_from_replica(
        replica, sumac_variable_read(context, replica, &returned, error), &returned);
}

/* A tensor that a replica's device has already, across: it is the same in all replicas. */
PAIR_TEST(what_is_assigned_from_one_device_is_mirrored)
{
    struct sumac_variable *variable = mirrored(pair->gpus, SUMAC_FLOAT32, NULL);

    enough(2);
    for (uint32_t i = 0; i < replicas; i++) {
        struct sumac_value *given = tensor(SUMAC_FLOAT32, shape, i + 1), *read = NULL; /* given */
        struct sumac_value *all = placed(pair->gpus, sumac_value_ref(given));
        struct sumac_value *one = sumac_value_ref(sumac_value_item(all, i));
        sumac_value_unref(all);

        assert_int_equal(
            sumac_variable_assign(variable, NULL, one, NULL, NULL), SUMAC_OK); /* when */
        sumac_value_unref(one);

        assert_int_equal(
            run_with(pair->gpus, read_own, variable, given, &read, NULL), SUMAC_OK); /* then */
        assert_each_ones(read);
        assert_true(is_placed(read));
        assert_same(read, given);
        sumac_value_unref(read);
        sumac_value_unref(given);
    }
}

/* ---- streams */

#define LATE_BYTES (UINT32_C(4) << 20)

/* A copy of the tensor that is on its way in the stream behind much else. Gives  *late, to be kept
 * until that is over. */
static struct sumac_value *
copied(struct sumac_device *device, const struct sumac_tensor *given, struct sumac_buffer **late)
{
    struct sumac_buffer *there = NULL;
    struct sumac_tensor own;

    assert_int_equal(sumac_device_buffer_create(device, 2 * LATE_BYTES, late, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_device_buffer_create(device, sumac_tensor_bytes(given), &there, NULL), SUMAC_OK);
    const struct sumac_copy slow = {
        .to = *late, .from = *late, .from_offset = LATE_BYTES, .bytes = LATE_BYTES};
    const struct sumac_copy copy = {
        .to = there, .from = given->buffer, .bytes = sumac_tensor_bytes(given)};
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(sumac_device_copy(device, &slow, NULL), SUMAC_OK);
    assert_int_equal(sumac_device_copy(device, &copy, NULL), SUMAC_OK);
    assert_int_equal(sumac_tensor_view(there, 0, SUMAC_FLOAT32, &given->shape, &own), SUMAC_OK);
    struct sumac_value *value = sumac_value_of(&own);
    sumac_buffer_unref(there);
    return value;
}

/* What a replica adds to its own component is on its way in its stream. */
static enum sumac_status
copy_and_add(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_device *device = sumac_replica_device(replica);
    struct sumac_buffer *late = NULL;
    struct sumac_value *value = copied(
        device, sumac_value_as_tensor(sumac_value_item(sumac_replica_args(replica), 0)), &late);

    const enum sumac_status status =
        sumac_variable_assign_add(context, replica, value, &returned, error);
    sumac_value_unref(value);
    assert_int_equal(sumac_device_wait(device, error), SUMAC_OK);
    sumac_buffer_unref(late);
    return return_from_replica(replica, status, &returned);
}

static enum sumac_status
add(struct sumac_replica *replica, void *context, struct sumac_error *error)
{

    struct sumac_value *returned = NULL;
    return return_from_replica(
        replica,
        sumac_variable_assign_add(
            context, replica, sumac_value_item(sumac_replica_args(replica), 0), &returned, error),
        &returned);
}

PAIR_TEST(what_a_replica_has_in_its_stream_comes_before_its_own_write)
{
    const struct sumac_function none = {.name = NULL};
    const enum sumac_synchronization how = SUMAC_SYNCHRONIZATION_ON_READ;
    struct sumac_variable *far =
        variable_made(pair->gpus, tensor(SUMAC_FLOAT32, shape, 0), &none, how); /* given */
    struct sumac_variable *near =
        variable_made(pair->cpus, tensor(SUMAC_FLOAT32, shape, 0), &none, how);

    for (uint32_t round = 0; round < STEPS; round++) {
        struct sumac_value *value = gradients(SUMAC_FLOAT32), *there = NULL, *here = NULL;
        struct sumac_value *away = placed(pair->gpus, sumac_value_ref(value));

        assert_int_equal(
            run_with(pair->gpus, copy_and_add, far, away, &there, NULL), SUMAC_OK); /* when */
        assert_int_equal(run_with(pair->cpus, add, near, value, &here, NULL), SUMAC_OK);

        assert_same(there, here); /* then */
        assert_true(is_placed(there));
        sumac_value_unref(there);
        sumac_value_unref(here);
        sumac_value_unref(away);
        sumac_value_unref(value);
    }
}

/* Who comes last runs the function of merge_call, which has a stream, too: what that replica came
 * with is on its way again in it. */
static _Thread_local struct sumac_replica *own;

static enum sumac_status copy_and_reduce(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_value *const all = sumac_value_item(args, 0);
    struct sumac_value *items[REPLICAS_MAX];
    struct sumac_device *device = sumac_replica_device(own);
    struct sumac_buffer *late = NULL;

    (void)context;
    for (uint32_t i = 0; i < replicas; i++)
        items[i] = i == sumac_replica_id(own)
                       ? copied(device, sumac_value_as_tensor(sumac_value_item(all, i)), &late)
                       : sumac_value_ref(sumac_value_item(all, i));
    struct sumac_value *value = sumac_value_per_replica(items, replicas, 0);
    const enum sumac_status status =
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, value, NULL, result, error);
    sumac_value_unref(value);
    assert_int_equal(sumac_device_wait(device, NULL), SUMAC_OK);
    sumac_buffer_unref(late);
    return status;
}

static enum sumac_status
reduce_in_merge(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    own = replica;
    return return_from_replica(
        replica,
        sumac_replica_merge_call(
            replica, copy_and_reduce, context, sumac_replica_args(replica), &returned, error),
        &returned);
}

PAIR_TEST(what_a_merge_function_has_in_its_stream_comes_before_what_it_reduces)
{
    struct sumac_value *given = gradients(SUMAC_FLOAT32), *here = NULL;

    enough(2);
    struct sumac_value *away = placed(pair->gpus, sumac_value_ref(given));
    assert_int_equal(
        sumac_strategy_reduce(pair->cpus, SUMAC_REDUCE_SUM, given, NULL, &here, NULL), SUMAC_OK);

    for (uint32_t round = 0; round < STEPS; round++) {
        struct sumac_value *there = NULL;
        assert_int_equal(
            run_with(pair->gpus, reduce_in_merge, NULL, away, &there, NULL), SUMAC_OK); /* when */
        assert_same(there, here);                                                       /* then */
        sumac_value_unref(there);
    }
    sumac_value_unref(here);
    sumac_value_unref(away);
    sumac_value_unref(given);
}

/* Replica 0 has in its stream what ends when the others have written, which they do when it waits
 * for that. */
struct turns {
    struct sumac_variable *variable;
    pthread_barrier_t begun, put;
    sem_t written;
    atomic_bool in_vain;
};

static time_t end_s(void) { return time(NULL) + PATIENCE_S; }

static void wait_until_written(void *context)
{
    struct turns *turns = context;
    const struct timespec end = {.tv_sec = end_s()};

    for (uint32_t i = 1; i < replicas; i++)
        if (sem_timedwait(&turns->written, &end) != 0)
            atomic_store(&turns->in_vain, true);
}

static enum sumac_status
add_in_turn(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct turns *turns = context;
    const bool first = sumac_replica_id(replica) == 0;

    (void)pthread_barrier_wait(&turns->begun);
    if (first) {
        gpu_world_put(
            sumac_device_stream(sumac_replica_device(replica)), wait_until_written, turns);
        gpu_world_count("cuStreamQuery");
    }
    (void)pthread_barrier_wait(&turns->put);
    for (const time_t end = end_s(); !first && gpu_world_counted() == 0 && time(NULL) < end;)
        (void)sched_yield();
    const enum sumac_status status = add(replica, turns->variable, error);
    if (!first)
        (void)sem_post(&turns->written);
    return status;
}

static void assert_waits_for_no_other(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options)
{
    struct turns turns = {.variable = NULL};
    struct sumac_value *all = NULL;

    assert_int_equal(sumac_variable_create(strategy, options, &turns.variable, NULL), SUMAC_OK);
    assert_int_equal(sem_init(&turns.written, 0, 0), 0);
    assert_int_equal(pthread_barrier_init(&turns.begun, NULL, replicas), 0);
    assert_int_equal(pthread_barrier_init(&turns.put, NULL, replicas), 0);
    struct sumac_value *away = placed(strategy, gradients(SUMAC_FLOAT32)); /* given */

    assert_int_equal(
        run_with(strategy, add_in_turn, &turns, away, &all, NULL), SUMAC_OK); /* when */

    assert_false(atomic_load(&turns.in_vain)); /* then */
    gpu_world_fail_at("", 0, 0);
    assert_int_equal(pthread_barrier_destroy(&turns.begun), 0);
    assert_int_equal(pthread_barrier_destroy(&turns.put), 0);
    assert_int_equal(sem_destroy(&turns.written), 0);
    sumac_value_unref(all);
    sumac_value_unref(away);
}

PAIR_TEST(a_replica_that_writes_alone_waits_for_no_other_replica)
{
    enough(2);
    gpu_world_count(""); /* who cannot be asked is no stand-in */
    struct sumac_value *initial = tensor(SUMAC_FLOAT32, shape, 0);
    assert_waits_for_no_other(
        pair->gpus,
        &(struct sumac_variable_options){
            .name = "own", .initial = initial, .synchronization = SUMAC_SYNCHRONIZATION_ON_READ});
    assert_waits_for_no_other(
        pair->gpus, &(struct sumac_variable_options){
                        .name = "process_local", .initial = initial, .process_local = true});
    sumac_value_unref(initial);
}

/* ---- what fails */

/* Has each component, or none, what the first had before? */
static void assert_changed(
    struct sumac_variable *variable, struct sumac_value *before, bool changed, const char *what)
{
    struct sumac_value *components = NULL;

    assert_int_equal(sumac_variable_components(variable, &components, NULL), SUMAC_OK);
    assert_int_equal(sumac_value_count(components), replicas);
    for (uint32_t i = 0; i < replicas; i++)
        if (sumac_value_equal(sumac_value_item(components, i), before) == changed)
            fail_msg("%s: component %u is %s", what, i, changed ? "as before" : "another");
    sumac_value_unref(components);
}

/* Train it once, and call `nth` of the function fails. Returns  whether that was noticed. */
static bool fails_at(const char *function, uint64_t nth)
{
    const bool lasts = strcmp(function, "stream") == 0; /* of a context, for good */
    struct sumac_strategy *strategy = on("gpu", 0);     /* whose kernels nobody has loaded */
    struct sumac_variable *variable = mirrored(strategy, SUMAC_FLOAT32, "momentum");
    struct sumac_value *gradient = placed(strategy, tensor(SUMAC_FLOAT32, shape, 1));
    struct sumac_value *before = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_variable_read(variable, NULL, &before, NULL), SUMAC_OK);
    gpu_world_fail_at(function, nth, lasts ? 700 : 2); /* given */
    const bool failed =
        sumac_variable_apply(variable, NULL, NULL, gradient, &error) != SUMAC_OK; /* when */
    if (failed && strstr(error.text, "GPU:") == NULL)                             /* then */
        fail_msg("%s, call %u: \"%s\" names no device", function, (unsigned)nth, error.text);
    if (!lasts) {
        gpu_world_fail_at("", 0, 0);
        assert_changed(variable, before, !failed, function);
        assert_int_equal(sumac_variable_apply(variable, NULL, NULL, gradient, NULL), SUMAC_OK);
        assert_changed(variable, before, true, function);
    }
    sumac_value_unref(before);
    sumac_value_unref(gradient);
    sumac_strategy_destroy(strategy);
    gpu_world_fail_at("", 0, 0);
    return failed;
}

TEST(what_fails_on_one_device_changes_none)
{
    static const struct {
        const char *function;
        uint32_t each; /* at least so many calls of a device */
    } functions[] = {
        {"cuMemAlloc_v2", 2}, {"cuModuleLoadData", 1}, {"cuLaunchKernel", 1}, {"stream", 1}};

    gpu_world_fail_at("", 0, 0); /* who cannot be told to is no stand-in */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        uint64_t nth = 1;
        while (nth < NTH_MAX && fails_at(functions[i].function, nth))
            nth++;
        if (nth <= functions[i].each * replicas || nth == NTH_MAX)
            fail_msg("%s fails %u times", functions[i].function, (unsigned)nth - 1);
    }
}

int main(void)
{
    if (!pair_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
