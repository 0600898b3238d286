/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_group_calls.c -- what replicas on GPUs compute together, beside what the CPU makes of the
 * same values. */

#include "unit.h"
#include "gpu_world.h"
#include "half.h"
#include "nccl_call.h"
#include "reduce.h"

#define MANY 5000u

/* Small whole numbers, in multiples of four: every type has them, their sums and the means below.
 */
static void fill(enum sumac_dtype dtype, void *values, uint64_t count, uint32_t replica)
{
    for (uint64_t i = 0; i < count; i++) {
        const unsigned number = 4 * (unsigned)((i + replica) % 7);
        const float real = (float)number;
        const double wide = number;
        char *at = (char *)values + i * sumac_dtype_bytes(dtype);
        const uint64_t integer = number;
        const uint16_t half =
            dtype == SUMAC_FLOAT16 ? float16_of_float32(real) : bfloat16_of_float32(real);
        if (sumac_dtype_kind(dtype) == SUMAC_KIND_HALF)
            memcpy(at, &half, 2);
        else if (dtype == SUMAC_FLOAT32)
            memcpy(at, &real, 4);
        else if (dtype == SUMAC_FLOAT64)
            memcpy(at, &wide, 8);
        else
            memcpy(at, &integer, sumac_dtype_bytes(dtype));
    }
}

/* The CPU's, of the same values. */
static void reduce_here(
    enum sumac_reduce_op op, enum sumac_dtype dtype, const struct gpu_held *held, uint64_t count,
    void *result)
{
    const void *from[GPU_REPLICAS];

    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        from[i] = sumac_buffer_data(held->host[i]);
    reduce_values(
        op, &(struct reduce_input){
                .dtype = dtype,
                .elements = count,
                .from = from,
                .replicas = GPU_REPLICAS,
                .to = &result,
                .targets = 1,
                .weights = (double[]){1, 1, 2},
            });
}

static void reduce_there(
    struct gpu_world *world, enum sumac_reduce_op op, enum sumac_dtype dtype, uint64_t count)
{
    const uint64_t bytes = count * sumac_dtype_bytes(dtype);
    struct gpu_held from = gpu_world_hold(world, bytes),
                    to = gpu_world_hold(world, bytes); /* given */
    char *expected = malloc(bytes + 1);

    assert_non_null(expected);
    for (uint32_t i = 0; i < GPU_REPLICAS; i++) {
        fill(dtype, sumac_buffer_data(from.host[i]), count, i);
        memset(sumac_buffer_data(to.host[i]), 0x77, bytes);
    }
    reduce_here(op, dtype, &from, count, expected);
    const struct device_group_values values = {
        dtype, (const void *const *)from.at, to.at, (const uint64_t[]){count, count, count},
        (const double[]){1, 1, 2}};

    gpu_world_send(world, &from); /* when: to everybody, then to the root alone, in its place */
    gpu_world_send(world, &to);
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, op, 0, &values, NULL), SUMAC_OK);
    gpu_world_finish(world);
    gpu_world_fetch(world, &to);
    const struct device_group_values in_place = {
        dtype, (const void *const *)from.at, from.at, values.elements, values.weights};
    assert_int_equal(
        device_group_add(world->group, GROUP_REDUCE, op, 1, &in_place, NULL), SUMAC_OK);
    gpu_world_finish(world);
    gpu_world_fetch(world, &from);

    for (uint32_t i = 0; i < GPU_REPLICAS; i++) /* then */
        assert_memory_equal(sumac_buffer_data(to.host[i]), expected, bytes);
    assert_memory_equal(sumac_buffer_data(from.host[1]), expected, bytes);
    fill(dtype, expected, count, 2);
    assert_memory_equal(sumac_buffer_data(from.host[2]), expected, bytes);
    free(expected);
    gpu_world_drop(&from);
    gpu_world_drop(&to);
}

#define GROUP_TEST(name) FIXTURE_TEST(name, struct gpu_world *world, gpu_world_begin, gpu_world_end)

GROUP_TEST(what_is_reduced_is_the_cpus_for_every_type_and_size)
{
    static const uint64_t counts[] = {0, 1, 7, MANY};

    for (unsigned dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (unsigned op = SUMAC_REDUCE_SUM; op <= SUMAC_REDUCE_MEAN; op++)
                if (reduce_has((enum sumac_reduce_op)op, (enum sumac_dtype)dtype))
                    reduce_there(
                        world, (enum sumac_reduce_op)op, (enum sumac_dtype)dtype, counts[i]);
}

/* A mean of n float32 is at most n + 2 roundings off: a product each, n - 1 sums, the weight, the
 * CPU's quotient. Each is half a unit in the last place of at most the largest value, 1. */
GROUP_TEST(a_mean_by_uneven_weights_is_the_cpus_to_rounding)
{
    struct gpu_held held = gpu_world_hold(world, MANY * 4); /* given */
    static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};
    static const double weights[GPU_REPLICAS] = {1, 5, 3};

    for (uint32_t r = 0; r < GPU_REPLICAS; r++)
        for (uint32_t i = 0; i < MANY; i++)
            ((float *)sumac_buffer_data(held.host[r]))[i] = 1.0f / (float)(i + r + 1);
    const struct device_group_values values = {
        SUMAC_FLOAT32, (const void *const *)held.at, held.at, elements, weights};

    gpu_world_send(world, &held); /* when */
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, NULL),
        SUMAC_OK);
    gpu_world_finish(world);
    gpu_world_fetch(world, &held);

    for (uint32_t i = 0; i < MANY; i++) { /* then */
        double mean = 0;
        for (uint32_t r = 0; r < GPU_REPLICAS; r++)
            mean += weights[r] / 9 * (double)(1.0f / (float)(i + r + 1));
        const double off = (double)((float *)sumac_buffer_data(held.host[2]))[i] - mean;
        assert_true(off < 5 * 0x1p-25 && off > -5 * 0x1p-25);
    }
    gpu_world_drop(&held);
}

/* First axes of 2, 0 and 3 rows of two columns. */
GROUP_TEST(all_gather_puts_uneven_rows_one_after_the_other)
{
    struct gpu_held from = gpu_world_hold(world, 24), to = gpu_world_hold(world, 40); /* given */
    const int32_t a[] = {1, 2, 3, 4}, c[] = {5, 6, 7, 8, 9, 10};

    memcpy(sumac_buffer_data(from.host[0]), a, sizeof a);
    memcpy(sumac_buffer_data(from.host[2]), c, sizeof c);
    from.at[1] = NULL;
    const struct device_group_values values = {
        SUMAC_INT32, (const void *const *)from.at, to.at, (const uint64_t[]){4, 0, 6}, NULL};

    gpu_world_send(world, &from); /* when */
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_GATHER, 0, 0, &values, NULL), SUMAC_OK);
    gpu_world_finish(world);
    gpu_world_fetch(world, &to);

    for (uint32_t r = 0; r < GPU_REPLICAS; r++) /* then */
        for (int32_t i = 0; i < 10; i++)
            assert_int_equal(((int32_t *)sumac_buffer_data(to.host[r]))[i], i + 1);
    gpu_world_drop(&from);
    gpu_world_drop(&to);
}

/* NCCL's groups have no order: only calls that touch nothing of one another may be in one. */
GROUP_TEST(calls_of_one_start_run_one_after_the_other)
{
    struct gpu_held flags = gpu_world_hold(world, MANY),
                    g = gpu_world_hold(world, MANY * 8); /* given */
    static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};

    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t r = 0; r < GPU_REPLICAS; r++) {
            ((bool *)sumac_buffer_data(flags.host[r]))[i] = r == 2 && i % 2 == 1;
            ((int64_t *)sumac_buffer_data(g.host[r]))[i] = i;
        }
    const struct device_group_values told = {
        SUMAC_BOOL, (const void *const *)flags.at, flags.at, elements, NULL};
    const struct device_group_values values = {
        SUMAC_INT64, (const void *const *)g.at, g.at, elements, NULL};

    gpu_world_send(world, &flags); /* when */
    gpu_world_send(world, &g);
    assert_int_equal(device_group_add(world->group, GROUP_BROADCAST, 0, 2, &told, NULL), SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL), SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_BROADCAST, 0, 0, &values, NULL), SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
        SUMAC_OK);
    gpu_world_finish(world);
    gpu_world_fetch(world, &flags);
    gpu_world_fetch(world, &g);

    for (uint32_t i = 0; i < MANY; i++) /* then */
        for (uint32_t r = 0; r < GPU_REPLICAS; r++) {
            assert_int_equal(((bool *)sumac_buffer_data(flags.host[r]))[i], i % 2 == 1);
            assert_int_equal(((int64_t *)sumac_buffer_data(g.host[r]))[i], 9 * i);
        }
    gpu_world_drop(&flags);
    gpu_world_drop(&g);
}

GROUP_TEST(many_calls_are_one_start)
{
    struct gpu_held held = gpu_world_hold(world, GPU_CALLS_MAX * 4); /* given */
    void *at[GPU_CALLS_MAX][GPU_REPLICAS];

    for (uint32_t r = 0; r < GPU_REPLICAS; r++)
        for (uint32_t i = 0; i < GPU_CALLS_MAX; i++) {
            ((int32_t *)sumac_buffer_data(held.host[r]))[i] = (int32_t)(i + r);
            at[i][r] = (char *)held.at[r] + 4 * i;
        }
    gpu_world_send(world, &held); /* when */
    for (uint32_t i = 0; i < GPU_CALLS_MAX; i++) {
        const struct device_group_values values = {
            SUMAC_INT32, (const void *const *)at[i], at[i], gpu_world_ones, NULL};
        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
            SUMAC_OK);
    }
    gpu_world_finish(world);
    gpu_world_fetch(world, &held);

    for (uint32_t r = 0; r < GPU_REPLICAS; r++) /* then */
        for (uint32_t i = 0; i < GPU_CALLS_MAX; i++)
            assert_int_equal(((int32_t *)sumac_buffer_data(held.host[r]))[i], 3 * i + 3);
    gpu_world_drop(&held);
}

GROUP_TEST(what_is_put_into_a_queue_before_and_after_is_before_and_after)
{
    struct gpu_held held = gpu_world_hold(world, MANY * 4); /* given */
    static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};
    const struct device_group_values values = {
        SUMAC_UINT32, (const void *const *)held.at, held.at, elements, NULL};

    for (uint32_t round = 1; round <= 10; round++) {
        for (uint32_t r = 0; r < GPU_REPLICAS; r++)
            for (uint32_t i = 0; i < MANY; i++)
                ((uint32_t *)sumac_buffer_data(held.host[r]))[i] = round;

        gpu_world_send(world, &held); /* when: nobody waits between */
        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
            SUMAC_OK);
        device_group_start(world->group);
        gpu_world_fetch(world, &held);

        for (uint32_t r = 0; r < GPU_REPLICAS; r++) /* then */
            for (uint32_t i = 0; i < MANY; i++)
                assert_int_equal(((uint32_t *)sumac_buffer_data(held.host[r]))[i], 3 * round);
        assert_int_equal(device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL), SUMAC_OK);
    }
    gpu_world_drop(&held);
}

/* 60000 and 10000 are 4464 and a carry, in 16 bits; -1 and -1 are -2. */
GROUP_TEST(integers_of_16_bits_wrap)
{
    struct gpu_held held = gpu_world_hold(world, 4); /* given */
    static const uint64_t two[GPU_REPLICAS] = {2, 2, 2};
    static const uint16_t given[GPU_REPLICAS][2] = {{60000, 0xffff}, {10000, 0xffff}, {0, 0}};
    const struct device_group_values values = {
        SUMAC_INT16, (const void *const *)held.at, held.at, two, NULL};

    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        memcpy(sumac_buffer_data(held.host[i]), given[i], 4);
    gpu_world_send(world, &held); /* when */
    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
        SUMAC_OK);
    gpu_world_finish(world);
    gpu_world_fetch(world, &held);

    assert_int_equal(((uint16_t *)sumac_buffer_data(held.host[2]))[0], 4464); /* then */
    assert_int_equal(((int16_t *)sumac_buffer_data(held.host[2]))[1], -2);
    gpu_world_drop(&held);
}

GROUP_TEST(wide_values_of_one_start_have_places_of_their_own)
{
    struct gpu_held held = gpu_world_hold(world, 3 * 2 * MANY); /* given */
    static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};
    void *at[3][GPU_REPLICAS];

    for (uint32_t r = 0; r < GPU_REPLICAS; r++) {
        for (uint32_t i = 0; i < 3 * MANY; i++)
            ((uint16_t *)sumac_buffer_data(held.host[r]))[i] = (uint16_t)(i + r);
        for (uint32_t call = 0; call < 3; call++)
            at[call][r] = (char *)held.at[r] + 2 * MANY * call;
    }
    gpu_world_send(world, &held); /* when */
    for (uint32_t call = 0; call < 3; call++) {
        const struct device_group_values values = {
            SUMAC_UINT16, (const void *const *)at[call], at[call], elements, NULL};
        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
            SUMAC_OK);
    }
    gpu_world_finish(world);
    gpu_world_fetch(world, &held);

    for (uint32_t r = 0; r < GPU_REPLICAS; r++) /* then */
        for (uint32_t i = 0; i < 3 * MANY; i++)
            assert_int_equal(
                ((uint16_t *)sumac_buffer_data(held.host[r]))[i], (uint16_t)(3 * i + 3));
    gpu_world_drop(&held);
}

/* By weights that no half has, of values whose mean must be rounded once: the CPU's, to the bit,
 * where ranks are added in their order. */
GROUP_TEST(a_mean_of_halves_is_rounded_once)
{
    static const uint64_t elements[GPU_REPLICAS] = {MANY, MANY, MANY};
    static const double weights[GPU_REPLICAS] = {1, 1, 2};

    for (unsigned dtype = SUMAC_FLOAT16; dtype <= SUMAC_BFLOAT16; dtype++) {
        struct gpu_held held = gpu_world_hold(world, MANY * 2); /* given */
        static uint16_t expected[MANY];
        for (uint32_t r = 0; r < GPU_REPLICAS; r++)
            for (uint32_t i = 0; i < MANY; i++) {
                const float value = 1.0f / (float)(i + 3 * r + 1);
                ((uint16_t *)sumac_buffer_data(held.host[r]))[i] =
                    dtype == SUMAC_FLOAT16 ? float16_of_float32(value) : bfloat16_of_float32(value);
            }
        reduce_here(SUMAC_REDUCE_MEAN, (enum sumac_dtype)dtype, &held, MANY, expected);
        const struct device_group_values values = {
            (enum sumac_dtype)dtype, (const void *const *)held.at, held.at, elements, weights};

        gpu_world_send(world, &held); /* when */
        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, NULL),
            SUMAC_OK);
        gpu_world_finish(world);
        gpu_world_fetch(world, &held);

        for (uint32_t r = 0; r < GPU_REPLICAS; r++) /* then */
            assert_memory_equal(sumac_buffer_data(held.host[r]), expected, sizeof expected);
        gpu_world_drop(&held);
    }
}

/* A replica without examples has 0 / 0: what it gives is not read, in any type, in place and not.
 */
GROUP_TEST(nans_of_a_replica_of_weight_0_stay_out_of_a_mean)
{
    static const enum sumac_dtype dtypes[] = {
        SUMAC_FLOAT32, SUMAC_FLOAT64, SUMAC_FLOAT16, SUMAC_BFLOAT16};

    for (size_t d = 0; d < 4 * GPU_REPLICAS; d++) {
        const enum sumac_dtype dtype = dtypes[d / GPU_REPLICAS];
        const uint32_t empty = (uint32_t)d % GPU_REPLICAS;
        const uint64_t bytes = MANY * sumac_dtype_bytes(dtype);
        double weights[GPU_REPLICAS] = {1, 1, 1};
        struct gpu_held held = gpu_world_hold(world, bytes); /* given */
        char *expected = malloc(bytes);

        assert_non_null(expected);
        fill(dtype, expected, MANY, 0);
        for (uint32_t i = 0; i < GPU_REPLICAS; i++)
            memcpy(sumac_buffer_data(held.host[i]), expected, bytes);
        memset(sumac_buffer_data(held.host[empty]), 0xff, bytes); /* NaN in every type */
        weights[empty] = 0;
        const struct device_group_values values = {
            dtype, (const void *const *)held.at, held.at, (const uint64_t[]){MANY, MANY, MANY},
            weights};
        gpu_world_send(world, &held);

        assert_int_equal(
            device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, NULL),
            SUMAC_OK);
        gpu_world_finish(world); /* when */

        gpu_world_fetch(world, &held); /* then */
        for (uint32_t i = 0; i < GPU_REPLICAS; i++)
            assert_memory_equal(sumac_buffer_data(held.host[i]), expected, bytes);
        free(expected);
        gpu_world_drop(&held);
    }
}

/* Two parts, the second of which is short; and a call beside it. */
GROUP_TEST(a_mean_of_halves_that_scratch_does_not_hold_is_made_in_parts)
{
    const uint64_t count = NCCL_SCRATCH_BYTES_MAX / 4 + 1000, bytes = 2 * count;
    struct gpu_held held = gpu_world_hold(world, bytes), small = gpu_world_hold(world, 4);
    const uint64_t elements[GPU_REPLICAS] = {count, count, count}, two[GPU_REPLICAS] = {2, 2, 2};
    const struct device_group_values values = {
        SUMAC_BFLOAT16, (const void *const *)held.at, held.at, elements, (const double[]){1, 1, 2}};
    const struct device_group_values others = {
        SUMAC_BFLOAT16, (const void *const *)small.at, small.at, two, (const double[]){1, 1, 2}};

    for (uint32_t i = 0; i < GPU_REPLICAS; i++) { /* given: 4, 8, 16, of weights 1, 1, 2 */
        for (uint64_t e = 0; e < count; e++)
            ((uint16_t *)sumac_buffer_data(held.host[i]))[e] =
                bfloat16_of_float32((float)(4u << i) + (e == count - 1 ? 4 : 0));
        memcpy(sumac_buffer_data(small.host[i]), sumac_buffer_data(held.host[i]), 4);
    }
    gpu_world_send(world, &held);
    gpu_world_send(world, &small);

    assert_int_equal(
        device_group_add(world->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_MEAN, 0, &others, NULL),
        SUMAC_OK);
    assert_int_equal(
        device_group_add(world->group, GROUP_REDUCE, SUMAC_REDUCE_MEAN, 0, &values, NULL),
        SUMAC_OK);
    gpu_world_finish(world); /* when */

    gpu_world_fetch(world, &held); /* then: (4 + 8 + 32) / 4 */
    gpu_world_fetch(world, &small);
    const uint16_t *mean = sumac_buffer_data(held.host[0]);
    for (uint64_t e = 0; e < count; e++)
        if (mean[e] != bfloat16_of_float32(e == count - 1 ? 15 : 11))
            fail_msg("element %lu differs", (unsigned long)e);
    assert_int_equal(*(uint16_t *)sumac_buffer_data(small.host[2]), bfloat16_of_float32(11));
    gpu_world_drop(&held);
    gpu_world_drop(&small);
}

int main(void)
{
    if (!gpu_world_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
