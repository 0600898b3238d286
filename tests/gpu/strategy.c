/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c -- strategies whose replicas are on GPUs come to what the same on CPUs come to. */

#include "unit.h"
#include "gpu_world.h"
#include "../returning.h"
#include "strategy_pair.h"

/* ---- reduced */

PAIR_TEST(sums_are_those_of_cpus_for_every_type_and_size)
{
    static const uint64_t counts[] = {0, 1, 7, ELEMENTS_MAX};
    const struct step step = {.op = SUMAC_REDUCE_SUM, EVERYBODY};

    for (int dtype = SUMAC_INT8; dtype <= SUMAC_FLOAT64; dtype++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            same_on_both(pair, &step, each((enum sumac_dtype)dtype, SUMAC_SHAPE(counts[i]), 0));
}

/* Integers' are computed on the host, in floating point, and are on the devices all the same. */
PAIR_TEST(means_of_integers_are_those_of_cpus)
{
    const struct step step = {.op = SUMAC_REDUCE_MEAN, EVERYBODY};

    for (int dtype = SUMAC_INT8; dtype <= SUMAC_UINT64; dtype++)
        same_on_both(pair, &step, each((enum sumac_dtype)dtype, SUMAC_SHAPE(33), 0));
}

/* Of three replicas each is multiplied by a third, which is off by half a unit in the last place,
 * as are the three products, of at most 4, and the two sums, of at most 12: 6 · 2^-22. The CPU's
 * quotient is off by 2^-22 at most. */
PAIR_TEST(means_of_floats_are_those_of_cpus_to_rounding)
{
    const struct step step = {.op = SUMAC_REDUCE_MEAN, EVERYBODY};
    struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(ELEMENTS_MAX), 0);
    struct sumac_value *there = ran(pair->gpus, &step, placed(pair->gpus, sumac_value_ref(value)));
    struct sumac_value *here = ran(pair->cpus, &step, value);
    struct sumac_value *one = NULL, *other = NULL, *fetched = NULL;

    assert_int_equal(sumac_value_select(there, 0, &one, NULL), SUMAC_OK);
    assert_int_equal(sumac_value_select(here, 0, &other, NULL), SUMAC_OK);
    assert_int_equal(sumac_value_to_host(one, &fetched, NULL), SUMAC_OK);
    const float *a = sumac_value_data(fetched), *b = sumac_value_data(other);
    for (uint32_t i = 0; i < ELEMENTS_MAX; i++)
        assert_true(a[i] - b[i] <= 7 * 0x1p-22f && b[i] - a[i] <= 7 * 0x1p-22f);
    sumac_value_unref(fetched);
    sumac_value_unref(one);
    sumac_value_unref(other);
    sumac_value_unref(there);
    sumac_value_unref(here);
}

/* A nest of 80 tensors of several types, one of which is on the host. */
static struct sumac_value *nest(struct sumac_strategy *strategy)
{
    struct sumac_value *items[80];

    for (uint32_t i = 0; i < 80; i++) {
        static const enum sumac_dtype dtypes[] = {SUMAC_FLOAT32, SUMAC_INT16, SUMAC_FLOAT64};
        items[i] = each(dtypes[i % 3], SUMAC_SHAPE(1 + i), 0);
        if (i != 5)
            items[i] = placed(strategy, items[i]);
    }
    return sumac_value_list(items, 80);
}

PAIR_TEST(a_nest_is_the_same_however_it_is_packed)
{
    static const uint64_t packs[] = {0, 1, 1000, 1u << 20};

    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++) {
        const struct step step = {
            .op = SUMAC_REDUCE_SUM, .options = {.bytes_per_pack = packs[i]}, EVERYBODY};
        struct sumac_value *there = ran(pair->gpus, &step, nest(pair->gpus)); /* when */
        struct sumac_value *here = ran(pair->cpus, &step, nest(pair->cpus));

        assert_same(there, here); /* then */
        assert_true(is_placed(sumac_value_item(there, 0)));
        assert_false(is_placed(sumac_value_item(there, 5))); /* the host's stays there */
        sumac_value_unref(there);
        sumac_value_unref(here);
    }
}

static struct sumac_value *each_ones_rows(void)
{
    struct sumac_value *items[REPLICAS_MAX];
    static const int64_t indices[] = {4, 0, 4, 2};

    for (uint32_t i = 0; i < replicas; i++)
        items[i] = sumac_value_indexed_slices(
            tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2 + i, 3), i),
            sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2 + i), indices), SUMAC_SHAPE(5, 3));
    return sumac_value_per_replica(items, replicas, 0);
}

PAIR_TEST(slices_are_those_of_cpus)
{
    for (int op = SUMAC_REDUCE_SUM; op <= SUMAC_REDUCE_MEAN; op++) {
        const struct step step = {.op = (enum sumac_reduce_op)op, EVERYBODY};
        struct sumac_value *there = ran(pair->gpus, &step, placed(pair->gpus, each_ones_rows()));
        struct sumac_value *here = ran(pair->cpus, &step, each_ones_rows());
        assert_same(there, here);
        sumac_value_unref(there);
        sumac_value_unref(here);
    }
}

/* ---- gathered */

PAIR_TEST(uneven_rows_are_gathered_along_the_first_axis)
{
    const struct step step = {.axis = 0, EVERYBODY};

    for (int dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++) {
        same_on_both(pair, &step, each((enum sumac_dtype)dtype, SUMAC_SHAPE(0, 7), 1));
        same_on_both(pair, &step, each((enum sumac_dtype)dtype, SUMAC_SHAPE(5, 1, 3), 2));
    }
}

PAIR_TEST(other_axes_are_gathered_too)
{
    for (int64_t axis = 1; axis < 3; axis++) {
        const struct step step = {.axis = axis, EVERYBODY};
        same_on_both(pair, &step, each(SUMAC_INT32, SUMAC_SHAPE(1, 4, 3), 0)); /* theirs */
        same_on_both(pair, &step, each(SUMAC_INT32, SUMAC_SHAPE(2, 4, 3), 0)); /* the host's */
    }
}

/* ---- streams */

#define ROUNDS 3u
#define LATE_BYTES (UINT32_C(4) << 20)

/* The stream has much to do before what is put into it from here on. Gives  what it writes to,
 * which is unref'd when that is over. */
static struct sumac_buffer *be_late(struct sumac_device *device)
{
    struct sumac_buffer *both = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_device_buffer_create(device, 2 * LATE_BYTES, &both, &error), SUMAC_OK);
    const struct sumac_copy copy = {
        .to = both, .from = both, .from_offset = LATE_BYTES, .bytes = LATE_BYTES};
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(sumac_device_copy(device, &copy, &error), SUMAC_OK);
    return both;
}

/* Copies are put into the replica's own stream, and nobody waits for them. */
static enum sumac_status
copy_and_reduce(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_device *device = sumac_replica_device(replica);
    struct sumac_buffer *here = NULL, *there = NULL;
    struct sumac_tensor own;
    enum sumac_status status = SUMAC_OK;
    const struct sumac_shape shape = SUMAC_SHAPE(ELEMENTS_MAX);

    (void)context;
    assert_int_equal(sumac_device_gpu(device), (int)sumac_replica_id(replica));
    assert_non_null(sumac_device_stream(device));
    assert_int_equal(
        sumac_device_host_buffer_create(device, ELEMENTS_MAX * 4, &here, error), SUMAC_OK);
    for (uint32_t round = 1; status == SUMAC_OK && round <= ROUNDS; round++) {
        assert_int_equal(
            sumac_device_buffer_create(device, ELEMENTS_MAX * 4, &there, error), SUMAC_OK);
        for (uint32_t i = 0; i < ELEMENTS_MAX; i++)
            ((int32_t *)sumac_buffer_data(here))[i] = (int32_t)round;
        const struct sumac_copy copy = {.to = there, .from = here, .bytes = ELEMENTS_MAX * 4};
        struct sumac_buffer *late = be_late(device);
        assert_int_equal(sumac_device_copy(device, &copy, error), SUMAC_OK);
        assert_int_equal(sumac_tensor_view(there, 0, SUMAC_INT32, &shape, &own), SUMAC_OK);
        struct sumac_value *value = sumac_value_of(&own);
        sumac_buffer_unref(there);
        sumac_value_unref(returned);
        returned = NULL;
        status = sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, value, NULL, &returned, error);
        sumac_value_unref(value);
        assert_int_equal(status, SUMAC_OK);
        struct sumac_value *fetched = NULL;
        assert_int_equal(sumac_value_to_host(returned, &fetched, error), SUMAC_OK);
        sumac_buffer_unref(late);
        for (uint32_t i = 0; i < ELEMENTS_MAX; i++)
            if (((const int32_t *)sumac_value_data(fetched))[i] != (int32_t)(round * replicas))
                status = SUMAC_DATA_LOSS; /* the test's own thread says so */
        sumac_value_unref(fetched);
    }
    sumac_buffer_unref(here);
    return return_from_replica(replica, status, &returned);
}

PAIR_TEST(what_a_replica_has_in_its_stream_comes_before_the_call)
{
    struct sumac_value *result = NULL;
    struct sumac_error error = {0};

    if (run_with(pair->gpus, copy_and_reduce, NULL, NULL, &result, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    sumac_value_unref(result);
}

static enum sumac_status read_all(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)strategy;
    (void)context;
    return sumac_value_to_host(sumac_value_item(args, 0), result, error);
}

/* A value whose bytes are on their way in the replica's stream, behind what makes that late. */
struct coming {
    struct sumac_value *value;
    struct sumac_buffer *first, *late;
};

static struct coming
begin_to_come(struct sumac_replica *replica, struct sumac_buffer *here, struct sumac_error *error)
{
    struct sumac_device *device = sumac_replica_device(replica);
    struct coming coming = {.value = NULL};
    struct sumac_buffer *there = NULL;
    struct sumac_tensor own;
    const struct sumac_shape shape = SUMAC_SHAPE(ELEMENTS_MAX);

    assert_int_equal(sumac_device_buffer_create(device, ELEMENTS_MAX, &there, error), SUMAC_OK);
    assert_int_equal(
        sumac_device_buffer_create(device, ELEMENTS_MAX, &coming.first, error), SUMAC_OK);
    const struct sumac_copy in = {.to = coming.first, .from = here, .bytes = ELEMENTS_MAX};
    const struct sumac_copy copy = {.to = there, .from = coming.first, .bytes = ELEMENTS_MAX};
    assert_int_equal(sumac_device_copy(device, &in, error), SUMAC_OK);
    coming.late = be_late(device);
    assert_int_equal(sumac_device_copy(device, &copy, error), SUMAC_OK);
    assert_int_equal(sumac_tensor_view(there, 0, SUMAC_UINT8, &shape, &own), SUMAC_OK);
    coming.value = sumac_value_of(&own);
    sumac_buffer_unref(there);
    return coming;
}

static void forget(struct coming *coming)
{
    sumac_value_unref(coming->value);
    sumac_buffer_unref(coming->late);
    sumac_buffer_unref(coming->first);
}

static enum sumac_status
copy_and_merge(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct coming coming = begin_to_come(replica, context, error);
    struct sumac_value *item = sumac_value_ref(coming.value);
    struct sumac_value *merged = sumac_value_tuple(&item, 1);

    const enum sumac_status status =
        sumac_replica_merge_call(replica, read_all, NULL, merged, &returned, error);
    sumac_value_unref(merged);
    forget(&coming);
    return return_from_replica(replica, status, &returned);
}

/* What it reads is on its way. */
static enum sumac_status
copy_and_read(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct coming coming = begin_to_come(replica, context, error);

    const enum sumac_status status = sumac_value_to_host(coming.value, &returned, error);
    forget(&coming);
    return return_from_replica(replica, status, &returned);
}

PAIR_TEST(a_replica_reads_what_its_stream_has_yet_to_write)
{
    struct sumac_buffer *here = NULL;

    assert_int_equal(sumac_buffer_create(ELEMENTS_MAX, &here), SUMAC_OK);
    memset(sumac_buffer_data(here), 7, ELEMENTS_MAX);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct sumac_value *result = NULL, *own = NULL;
        assert_int_equal(run_with(pair->gpus, copy_and_read, here, NULL, &result, NULL), SUMAC_OK);
        assert_int_equal(sumac_value_select(result, replicas - 1, &own, NULL), SUMAC_OK);
        assert_memory_equal(sumac_value_data(own), sumac_buffer_data(here), ELEMENTS_MAX);
        sumac_value_unref(own);
        sumac_value_unref(result);
    }
    sumac_buffer_unref(here);
}

PAIR_TEST(a_merge_call_finds_what_all_replicas_had_in_their_streams)
{
    struct sumac_buffer *here = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_buffer_create(ELEMENTS_MAX, &here), SUMAC_OK);
    memset(sumac_buffer_data(here), 7, ELEMENTS_MAX);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct sumac_value *result = NULL;
        if (run_with(pair->gpus, copy_and_merge, here, NULL, &result, &error) != SUMAC_OK)
            fail_msg("%s", error.text);
        for (uint32_t i = 0; i < replicas; i++) {
            struct sumac_value *own = NULL;
            assert_int_equal(sumac_value_select(result, i, &own, NULL), SUMAC_OK);
            assert_memory_equal(sumac_value_data(own), sumac_buffer_data(here), ELEMENTS_MAX);
            sumac_value_unref(own);
        }
        sumac_value_unref(result);
    }
    sumac_buffer_unref(here);
}

/* ---- values */

PAIR_TEST(a_value_on_a_gpu_is_compared_and_printed_as_what_it_is)
{
    struct sumac_value *here = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3), 1), *other = NULL;
    struct sumac_value *there = placed(pair->gpus, sumac_value_ref(here));
    char text[200];

    assert_int_equal(
        sumac_value_select(there, replicas - 1, &other, NULL), SUMAC_OK); /* when, then */
    assert_true(sumac_value_equal(other, here));
    (void)sumac_value_print(other, text, sizeof text);
    char expected[64];
    (void)snprintf(expected, sizeof expected, "float32[3] on GPU:%u 3 4 5", replicas - 1);
    assert_string_equal(text, expected);
    sumac_value_unref(other);
    sumac_value_unref(there);
    sumac_value_unref(here);
}

PAIR_TEST(a_value_outlives_its_strategy)
{
    struct sumac_value *there = placed(pair->gpus, tensor(SUMAC_INT32, SUMAC_SHAPE(3), 0));
    struct sumac_value *here = NULL;

    sumac_strategy_destroy(pair->gpus); /* when */
    pair->gpus = NULL;
    assert_int_equal(sumac_value_to_host(there, &here, NULL), SUMAC_OK); /* then */
    sumac_value_unref(here);
    sumac_value_unref(there);
}

/* ---- variables */

static void trained(
    struct sumac_strategy *strategy, struct sumac_variable *variable, struct sumac_value **result)
{
    struct sumac_error error = {0};

    for (uint32_t step = 0; step < 3; step++) {
        struct sumac_value *value = placed(strategy, each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0));
        sumac_value_unref(*result);
        *result = NULL;
        if (run_with(strategy, apply_sum, variable, value, result, &error) != SUMAC_OK)
            fail_msg("%s", error.text);
        sumac_value_unref(value);
    }
}

PAIR_TEST(updates_come_to_the_bits_of_cpus)
{
    static const char *const functions[] = {"sgd", "adagrad", "adam"};

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        struct sumac_variable *there =
            variable_of(pair->gpus, functions[i], SUMAC_SYNCHRONIZATION_ON_WRITE);
        struct sumac_variable *here =
            variable_of(pair->cpus, functions[i], SUMAC_SYNCHRONIZATION_ON_WRITE);
        struct sumac_value *theirs = NULL, *ours = NULL;

        trained(pair->gpus, there, &theirs); /* when */
        trained(pair->cpus, here, &ours);

        assert_same(theirs, ours); /* then */
        assert_true(is_placed(theirs));
        sumac_value_unref(theirs);
        sumac_value_unref(ours);
    }
}

struct writing {
    struct sumac_variable *variable;
    enum sumac_write write;
};

static enum sumac_status
write_and_read(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct writing *writing = context;

    return return_from_replica(
        replica,
        sumac_variable_write(
            writing->variable, replica, writing->write,
            sumac_value_item(sumac_replica_args(replica), 0), &returned, error),
        &returned);
}

PAIR_TEST(what_replicas_write_is_written_as_on_cpus)
{
    for (int how = SUMAC_SYNCHRONIZATION_ON_WRITE; how <= SUMAC_SYNCHRONIZATION_ON_READ; how++)
        for (int write = SUMAC_WRITE_ASSIGN; write <= SUMAC_WRITE_ASSIGN_SUB; write++) {
            const enum sumac_synchronization when = (enum sumac_synchronization)how;
            struct writing there = {variable_of(pair->gpus, NULL, when), (enum sumac_write)write};
            struct writing here = {variable_of(pair->cpus, NULL, when), (enum sumac_write)write};
            struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
            struct sumac_value *far = placed(pair->gpus, sumac_value_ref(value));
            struct sumac_value *theirs = NULL, *ours = NULL;
            struct sumac_error error = {0};

            if (run_with(pair->gpus, write_and_read, &there, far, &theirs, &error) != SUMAC_OK ||
                run_with(pair->cpus, write_and_read, &here, value, &ours, &error) != SUMAC_OK)
                fail_msg("%s", error.text);
            assert_same(theirs, ours);
            assert_true(is_placed(theirs));
            sumac_value_unref(theirs);
            sumac_value_unref(ours);
            assert_int_equal(sumac_variable_read(there.variable, NULL, &theirs, NULL), SUMAC_OK);
            assert_int_equal(sumac_variable_read(here.variable, NULL, &ours, NULL), SUMAC_OK);
            assert_memory_equal(sumac_value_data(theirs), sumac_value_data(ours), 12 * 4);
            sumac_value_unref(theirs);
            sumac_value_unref(ours);
            sumac_value_unref(far);
            sumac_value_unref(value);
        }
}

/* Replica 0 alone writes what is read on demand: from there on it is another one's. */
static enum sumac_status
write_alone(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    enum sumac_status status = SUMAC_OK;

    if (sumac_replica_id(replica) == 0)
        status = sumac_variable_assign_add(
            context, replica, sumac_value_item(sumac_replica_args(replica), 0), NULL, error);
    return return_from_replica(
        replica,
        status == SUMAC_OK ? sumac_variable_read(context, replica, &returned, error) : status,
        &returned);
}

/* One that is read on demand, whose mean is written across, too. */
static struct sumac_variable *metric_of(struct sumac_strategy *strategy)
{
    struct sumac_value *initial = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
    const struct sumac_variable_options options = {
        .name = "m",
        .initial = initial,
        .synchronization = SUMAC_SYNCHRONIZATION_ON_READ,
        .aggregation = SUMAC_REDUCE_MEAN};
    struct sumac_variable *variable = NULL;

    assert_int_equal(sumac_variable_create(strategy, &options, &variable, NULL), SUMAC_OK);
    sumac_value_unref(initial);
    return variable;
}

/* Gives  what each component has then. */
static struct sumac_value *written_alone(struct sumac_strategy *strategy)
{
    struct sumac_variable *variable = metric_of(strategy);
    struct sumac_value *value = placed(strategy, each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0));
    struct sumac_value *all = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 2);
    struct sumac_value *result = NULL, *components = NULL;

    assert_int_equal(run_with(strategy, write_alone, variable, value, &result, NULL), SUMAC_OK);
    assert_int_equal(sumac_value_kind(result), SUMAC_VALUE_PER_REPLICA);
    assert_int_equal(sumac_variable_assign_add(variable, NULL, all, NULL, NULL), SUMAC_OK);
    assert_int_equal(sumac_variable_components(variable, &components, NULL), SUMAC_OK);
    sumac_value_unref(result);
    sumac_value_unref(value);
    sumac_value_unref(all);
    return components;
}

PAIR_TEST(a_component_that_was_written_alone_is_no_copy_of_the_others)
{
    enough(2);
    struct sumac_value *theirs = written_alone(pair->gpus);
    struct sumac_value *ours = written_alone(pair->cpus);
    assert_true(sumac_value_equal(theirs, ours));
    assert_false(sumac_value_equal(sumac_value_item(theirs, 0), sumac_value_item(theirs, 1)));
    sumac_value_unref(theirs);
    sumac_value_unref(ours);
}

PAIR_TEST(what_only_the_first_replica_writes_is_all_components)
{
    for (int write = SUMAC_WRITE_ASSIGN; write <= SUMAC_WRITE_ASSIGN_ADD; write++) {
        struct sumac_value *initial = tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
        const struct sumac_variable_options options = {
            .name = "f", .initial = initial, .aggregation = SUMAC_REDUCE_ONLY_FIRST_REPLICA};
        struct writing there = {NULL, (enum sumac_write)write}, here = there;
        struct sumac_value *value = each(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0);
        struct sumac_value *far = placed(pair->gpus, sumac_value_ref(value));
        struct sumac_value *theirs = NULL, *ours = NULL;

        assert_int_equal(
            sumac_variable_create(pair->gpus, &options, &there.variable, NULL), SUMAC_OK);
        assert_int_equal(
            sumac_variable_create(pair->cpus, &options, &here.variable, NULL), SUMAC_OK);
        assert_int_equal(
            run_with(pair->gpus, write_and_read, &there, far, &theirs, NULL), SUMAC_OK);
        assert_int_equal(run_with(pair->cpus, write_and_read, &here, value, &ours, NULL), SUMAC_OK);
        assert_same(theirs, ours);
        assert_true(is_placed(theirs));
        assert_each_ones(theirs);
        sumac_value_unref(theirs);
        sumac_value_unref(ours);
        sumac_value_unref(far);
        sumac_value_unref(value);
        sumac_value_unref(initial);
    }
}

int main(void)
{
    if (!pair_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
