/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_pair.c -- the same strategy on GPUs and on CPUs, and what is run in both. */
#include "strategy_pair.h"

#include "unit.h"
#include "gpu_world.h"
#include "gpus.h"
#include "../returning.h"
#include "value.h"

#define BYTES_MAX (ELEMENTS_MAX * 8u)

uint32_t replicas;

bool pair_is_there(void)
{
    struct gpus gpus;

    gpus_find(&gpus);
    replicas = gpus.count < REPLICAS_MAX ? gpus.count : REPLICAS_MAX;
    if (replicas > 1 && gpus.nccl_missing.status != SUMAC_OK)
        replicas = 1;
    (void)gpu_world_is_there(); /* finds what stand-ins can be told */
    return replicas > 0;
}

void enough(uint32_t wanted)
{
    if (replicas >= wanted)
        return;
    printf("skipped: it takes %u GPUs, and there are %u\n", wanted, replicas);
    skip();
}

/* ---- strategies */

struct sumac_strategy *on(const char *devices, uint32_t timeout_ms)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED,
        .replicas = replicas,
        .devices = devices,
        .timeout_ms = timeout_ms};
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error = {0};

    if (sumac_strategy_create(&options, &strategy, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    return strategy;
}

int pair_begin(void **state)
{
    static struct pair pair;

    pair = (struct pair){on("gpu", 0), on("cpu", 0)};
    *state = &pair;
    return 0;
}

int pair_end(void **state)
{
    struct pair *pair = *state;

    sumac_strategy_destroy(pair->gpus);
    sumac_strategy_destroy(pair->cpus);
    gpu_world_nccl_forget();
    return 0;
}

/* ---- values */

/* Small whole numbers, of which sums are exact in any order, in any type. */
static void fill(enum sumac_dtype dtype, uint64_t elements, uint32_t replica, void *to)
{
    for (uint64_t i = 0; i < elements; i++) {
        const uint64_t whole = (i + 3 * replica) % 13;
        const float single = (float)whole;
        const double real = (double)whole;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        const uint16_t brain = (uint16_t)(bits >> 16);
        static const uint16_t half[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600,
                                        0x4700, 0x4800, 0x4880, 0x4900, 0x4980, 0x4a00};
        uint8_t *at = (uint8_t *)to + i * sumac_dtype_bytes(dtype);
        const void *from = dtype == SUMAC_FLOAT32    ? (const void *)&single
                           : dtype == SUMAC_FLOAT64  ? (const void *)&real
                           : dtype == SUMAC_FLOAT16  ? (const void *)&half[whole]
                           : dtype == SUMAC_BFLOAT16 ? (const void *)&brain
                                                     : (const void *)&whole;
        memcpy(at, from, sumac_dtype_bytes(dtype));
    }
}

struct sumac_value *tensor(enum sumac_dtype dtype, struct sumac_shape shape, uint32_t replica)
{
    uint64_t elements = 0;
    static uint8_t bytes[BYTES_MAX];

    assert_int_equal(sumac_shape_size(&shape, dtype, &elements, NULL), SUMAC_OK);
    assert_true(elements <= ELEMENTS_MAX);
    fill(dtype, elements, replica, bytes);
    return sumac_value_tensor(dtype, shape, bytes);
}

struct sumac_value *each(enum sumac_dtype dtype, struct sumac_shape shape, uint32_t more)
{
    struct sumac_value *items[REPLICAS_MAX];

    for (uint32_t i = 0; i < replicas; i++) {
        struct sumac_shape own = shape;
        own.extent[0] += more * i;
        items[i] = tensor(dtype, own, i);
    }
    return sumac_value_per_replica(items, replicas, 0);
}

struct sumac_value *placed(struct sumac_strategy *strategy, struct sumac_value *value)
{
    struct sumac_value *there = NULL;
    struct sumac_error error = {0};

    if (sumac_strategy_to_devices(strategy, value, &there, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    sumac_value_unref(value);
    return there;
}

bool is_placed(const struct sumac_value *value)
{
    bool is = true;

    for (uint32_t i = 0; i < replicas; i++) {
        struct sumac_value *own = NULL;
        assert_int_equal(sumac_value_select(value, i, &own, NULL), SUMAC_OK);
        const struct sumac_place place = sumac_buffer_place(sumac_value_as_tensor(own)->buffer);
        is = is && place.kind == SUMAC_PLACE_CUDA && place.device == i;
        sumac_value_unref(own);
    }
    return is;
}

void assert_same(struct sumac_value *there, struct sumac_value *here)
{
    char one[512], other[512];

    for (uint32_t i = 0; i < replicas; i++) {
        struct sumac_value *a = NULL, *b = NULL;
        assert_int_equal(sumac_value_select(there, i, &a, NULL), SUMAC_OK);
        assert_int_equal(sumac_value_select(here, i, &b, NULL), SUMAC_OK);
        (void)sumac_value_print(a, one, sizeof one);
        (void)sumac_value_print(b, other, sizeof other);
        if (!sumac_value_equal(a, b))
            fail_msg("replica %u: %s is not %s", i, one, other);
        sumac_value_unref(a);
        sumac_value_unref(b);
    }
}

void assert_each_ones(const struct sumac_value *value)
{
    if (replicas == 1)
        return;
    assert_int_equal(sumac_value_kind(value), SUMAC_VALUE_PER_REPLICA);
    assert_true(value_is_same_in_replicas(value));
}

/* ---- what is run */

enum sumac_status call_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct step *step = context;
    const struct sumac_value *own = sumac_value_item(sumac_replica_args(replica), 0);

    if (sumac_replica_id(replica) == step->absent)
        return SUMAC_OK;
    if (sumac_replica_id(replica) == step->failing)
        return return_from_replica(replica, SUMAC_DATA_LOSS, &returned);
    if ((int)step->op != 0)
        return return_from_replica(
            replica,
            sumac_replica_all_reduce(replica, step->op, own, &step->options, &returned, error),
            &returned);
    return return_from_replica(
        replica,
        sumac_replica_all_gather(replica, own, step->axis, &step->options, &returned, error),
        &returned);
}

enum sumac_status run_with(
    struct sumac_strategy *strategy, sumac_replica_function *function, void *context,
    struct sumac_value *value, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *own = sumac_value_ref(value);
    struct sumac_value *args = sumac_value_tuple(&own, own == NULL ? 0 : 1);
    const struct sumac_run_options step = {.function = function, .context = context, .args = args};

    const enum sumac_status status = sumac_strategy_run(strategy, &step, result, error);
    sumac_value_unref(args);
    return status;
}

struct sumac_value *
ran(struct sumac_strategy *strategy, const struct step *step, struct sumac_value *value)
{
    struct sumac_value *result = NULL;
    struct sumac_error error = {0};

    if (run_with(strategy, call_step, (void *)(uintptr_t)step, value, &result, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    sumac_value_unref(value);
    return result;
}

void same_on_both(const struct pair *pair, const struct step *step, struct sumac_value *value)
{
    struct sumac_value *there = ran(pair->gpus, step, placed(pair->gpus, sumac_value_ref(value)));
    struct sumac_value *here = ran(pair->cpus, step, value);

    assert_same(there, here);
    assert_each_ones(there);
    assert_true(is_placed(there));
    sumac_value_unref(there);
    sumac_value_unref(here);
}

/* ---- a variable */

struct sumac_variable *variable_made(
    struct sumac_strategy *strategy, struct sumac_value *initial,
    const struct sumac_function *function, enum sumac_synchronization how)
{
    const struct sumac_variable_options options = {
        .name = "w",
        .initial = initial,
        .synchronization = how,
        .aggregation = SUMAC_REDUCE_SUM,
        .function = *function};
    struct sumac_variable *variable = NULL;
    struct sumac_error error = {0};

    if (sumac_variable_create(strategy, &options, &variable, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    sumac_value_unref(initial);
    return variable;
}

struct sumac_variable *
variable_of(struct sumac_strategy *strategy, const char *function, enum sumac_synchronization how)
{
    const struct sumac_function of = SUMAC_FUNCTION(function, {"learning_rate", 0.5});

    return variable_made(strategy, tensor(SUMAC_FLOAT32, SUMAC_SHAPE(4, 3), 0), &of, how);
}

/* Train it a step: what is applied is the sum of what replicas have. */
enum sumac_status apply_sum(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct sumac_value *sum = NULL;

    enum sumac_status status = sumac_replica_all_reduce(
        replica, SUMAC_REDUCE_SUM, sumac_value_item(sumac_replica_args(replica), 0), NULL, &sum,
        error);
    if (status == SUMAC_OK)
        status = sumac_variable_apply(context, replica, NULL, sum, error);
    if (status == SUMAC_OK)
        status = sumac_variable_read(context, replica, &returned, error);
    sumac_value_unref(sum);
    return return_from_replica(replica, status, &returned);
}
