/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_large.c (test) -- results of many bytes: whoever computes which piece, and into whatever
 * memory, they have the bits of the plain loop. */
#define _GNU_SOURCE /* sched_setaffinity */
#include <sched.h>

#include "unit.h"
#include "array_pass.h"
#include "reduce.h"
#include "strategy.h"

#define REPLICAS 9u
#define ELEMENTS 5003u /* more than two tiles, and no multiple of anything */
#define LARGE 700001u  /* elements of float32: enough for helpers, in many pieces */

static void *aligned(size_t bytes)
{
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);

    assert_non_null(data);
    return data;
}

/* ---- added up ---- */

/* Numbers whose sums are rounded; of integers and half types whatever the bits make. */
static void fill(enum sumac_dtype dtype, void *to, uint32_t replica)
{
    uint32_t random = 12345u + replica;

    for (size_t i = 0; i < ELEMENTS; i++) {
        random = random * 1664525u + 1013904223u;
        const double number = ((double)random - 2e9) / 3e5;
        const uint16_t half = (uint16_t)(random >> 16 & 0xbfffu); /* finite */
        if (dtype == SUMAC_FLOAT32)
            ((float *)to)[i] = (float)number;
        else if (dtype == SUMAC_FLOAT64)
            ((double *)to)[i] = number;
        else if (sumac_dtype_kind(dtype) == SUMAC_KIND_HALF)
            ((uint16_t *)to)[i] = half;
        else
            memset(
                (uint8_t *)to + i * sumac_dtype_bytes(dtype), (int)(random >> 24),
                sumac_dtype_bytes(dtype));
    }
}

struct arrays {
    void *from[REPLICAS], *plain, *to;
};

/* Is the sum, in pieces, that of the plain loop? */
static void expect_bits_of_the_plain_loop(
    const struct arrays *arrays, enum sumac_reduce_op op, enum sumac_dtype dtype, uint32_t count,
    bool stream)
{
    const size_t bytes = ELEMENTS * sumac_dtype_bytes(dtype);
    const double weights[REPLICAS] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    void *const plain = arrays->plain;
    const void *const *from = (const void *const *)arrays->from;
    const struct reduce_input input = {
        .dtype = dtype,
        .elements = ELEMENTS,
        .from = from,
        .replicas = count,
        .to = &plain,
        .targets = 1,
        .weights = weights};
    const struct pass_sum sum = {
        .op = op, .dtype = dtype, .from = from, .count = count, .to = arrays->to, .stream = stream};

    reduce_values(op, &input);
    memset(arrays->to, 0x55, bytes);
    for (uint64_t first = 0; first < ELEMENTS; first += 1000)
        pass_sum(&sum, first, ELEMENTS - first < 1000 ? ELEMENTS - first : 1000);
    if (memcmp(arrays->to, arrays->plain, bytes) != 0)
        fail_msg(
            "%s of %u %s%s differs", op == SUMAC_REDUCE_SUM ? "SUM" : "MEAN", count,
            sumac_dtype_name(dtype), stream ? ", streamed" : "");
}

TEST(sums_have_the_bits_of_the_plain_loop)
{
    static const enum sumac_reduce_op ops[] = {SUMAC_REDUCE_SUM, SUMAC_REDUCE_MEAN};
    struct arrays arrays = {.plain = aligned(8 * ELEMENTS), .to = aligned(8 * ELEMENTS)};

    for (uint32_t i = 0; i < REPLICAS; i++)
        arrays.from[i] = aligned(8 * ELEMENTS);
    for (int dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++) {
        for (uint32_t i = 0; i < REPLICAS; i++)
            fill((enum sumac_dtype)dtype, arrays.from[i], i);
        for (size_t op = 0; op < 2; op++)
            for (uint32_t count = 1; count <= REPLICAS; count++)
                if (reduce_has(ops[op], (enum sumac_dtype)dtype)) {
                    expect_bits_of_the_plain_loop(
                        &arrays, ops[op], (enum sumac_dtype)dtype, count, false);
                    expect_bits_of_the_plain_loop(
                        &arrays, ops[op], (enum sumac_dtype)dtype, count, true);
                }
    }
    for (uint32_t i = 0; i < REPLICAS; i++)
        free(arrays.from[i]);
    free(arrays.plain);
    free(arrays.to);
}

/* ---- side by side ---- */

TEST(rows_are_joined_from_wherever_one_begins)
{
    enum { ROWS = 5, ALL = 3 + 0 + 300 + 64 };
    static const uint64_t row_bytes[] = {3, 0, 300, 64};
    uint8_t a[ROWS * 3], c[ROWS * 300], d[ROWS * 64], plain[ROWS * ALL];
    const uint8_t *const from[] = {a, NULL, c, d};
    uint8_t *to = aligned(sizeof plain);
    struct pass_join join = {
        .from = from, .row_bytes = row_bytes, .count = 4, .all_bytes = ALL, .to = to};

    for (size_t row = 0; row < ROWS; row++) /* given: bytes that tell where they are in `to` */
        for (size_t i = 0; i < ALL; i++) {
            const uint8_t byte = (uint8_t)(row * 37 + i);
            plain[row * ALL + i] = byte;
            *(i < 3     ? &a[row * 3 + i]
              : i < 303 ? &c[row * 300 + i - 3]
                        : &d[row * 64 + i - 303]) = byte;
        }
    for (uint64_t at_once = 1; at_once <= sizeof plain; at_once += 61) {
        join.stream = at_once % 2 == 0;
        memset(to, 0x55, sizeof plain);
        for (uint64_t first = 0; first < sizeof plain; first += at_once) /* when */
            pass_join(
                &join, first, sizeof plain - first < at_once ? sizeof plain - first : at_once);
        assert_memory_equal(to, plain, sizeof plain); /* then */
    }
    free(to);
}

/* ---- by all who wait ---- */

static struct sumac_strategy *mirrored(uint32_t replicas)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .replicas = replicas};
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    return strategy;
}

/* Element i is i + 1000 · replica: sums of four are exact. */
static struct sumac_value *ramp(uint32_t replica)
{
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(LARGE), NULL);
    float *elements = sumac_buffer_data(sumac_value_as_tensor(value)->buffer);

    for (size_t i = 0; i < LARGE; i++)
        elements[i] = (float)i + 1000 * (float)replica;
    return value;
}

static struct sumac_value *ramps(uint32_t replicas)
{
    struct sumac_value *items[8];

    for (uint32_t i = 0; i < replicas; i++)
        items[i] = ramp(i);
    return sumac_value_per_replica(items, replicas, 0);
}

static void expect_sum_of_four(const struct sumac_value *sum)
{
    const float *elements = sumac_value_data(sum);

    assert_non_null(elements);
    assert_int_equal(sumac_value_shape(sum).extent[0], LARGE);
    for (size_t i = 0; i < LARGE; i++)
        if (elements[i] != 4 * (float)i + 6000)
            fail_msg("element %zu is %f", i, (double)elements[i]);
}

static enum sumac_status reduce_merged(
    struct sumac_strategy *strategy, const struct sumac_value *args, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)context;
    return sumac_strategy_reduce(
        strategy, SUMAC_REDUCE_SUM, sumac_value_item(args, 0), NULL, result, error);
}

/* all_reduce, and the same by a merge_call's reduce, again and again; then all_gather. */
static enum sumac_status
compute_together(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *items[3] = {NULL};
    enum sumac_status status = SUMAC_OK;

    (void)context;
    for (int i = 0; i < 5 && status == SUMAC_OK; i++) {
        sumac_value_unref(items[0]);
        sumac_value_unref(items[1]);
        status = sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, sumac_value_item(sumac_replica_args(replica), 0), NULL,
            &items[0], error);
        if (status == SUMAC_OK)
            status = sumac_replica_merge_call(
                replica, reduce_merged, NULL, sumac_replica_args(replica), &items[1], error);
    }
    if (status == SUMAC_OK)
        status = sumac_replica_all_gather(
            replica, sumac_value_item(sumac_replica_args(replica), 0), 0, NULL, &items[2], error);
    sumac_replica_return(replica, sumac_value_tuple(items, 3));
    return status;
}

TEST(large_results_are_right_whoever_computes_them)
{
    struct sumac_strategy *strategy = mirrored(4);
    struct sumac_value *values = ramps(4), *result = NULL, *sum = NULL;
    struct sumac_value *args = sumac_value_tuple(&values, 1);
    const struct sumac_run_options step = {.function = compute_together, .args = args};

    assert_int_equal(sumac_strategy_run(strategy, &step, &result, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, values, NULL, &sum, NULL), SUMAC_OK);

    for (uint32_t i = 0; i < 4; i++)
        expect_sum_of_four(sumac_value_item(sumac_value_item(result, 0), i));
    expect_sum_of_four(sumac_value_item(result, 1));
    expect_sum_of_four(sum);
    const struct sumac_value *all = sumac_value_item(sumac_value_item(result, 2), 0);
    const float *gathered = sumac_value_data(all);
    assert_int_equal(sumac_value_shape(all).extent[0], 4 * LARGE);
    for (uint32_t i = 0; i < 4; i++)
        assert_memory_equal(
            gathered + i * LARGE, sumac_value_data(sumac_value_item(values, i)),
            LARGE * sizeof(float));
    sumac_value_unref(sum);
    sumac_value_unref(result);
    sumac_value_unref(args);
    sumac_strategy_destroy(strategy);
}

/* ---- summed over axes ---- */

/* Rows of more elements than are widened at once: of 2 replicas, element j of row i is j + i. */
TEST(long_rows_are_summed_whole)
{
    enum { ROWS = 2, COLUMNS = 1300 };
    static float elements[ROWS][COLUMNS];
    struct sumac_strategy *strategy = mirrored(2); /* given */
    const struct sumac_axes along = {.count = 1, .axis = {1}}, across = {.count = 1, .axis = {0}};
    struct sumac_value *items[2], *sums = NULL, *columns = NULL;

    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            elements[i][j] = (float)(j + i);
    for (int i = 0; i < 2; i++)
        items[i] = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(ROWS, COLUMNS), elements);
    struct sumac_value *values = sumac_value_per_replica(items, 2, 0);

    assert_int_equal(/* when */
                     sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, values, &along, &sums, NULL),
                     SUMAC_OK);
    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, values, &across, &columns, NULL),
        SUMAC_OK);

    const float *of_row = sumac_value_data(sums), *of_column = sumac_value_data(columns); /* then */
    for (int i = 0; i < ROWS; i++) /* integers below 2^24: exact */
        assert_int_equal(of_row[i], COLUMNS * (COLUMNS - 1) + 2 * i * COLUMNS);
    for (int j = 0; j < COLUMNS; j++)
        assert_int_equal(of_column[j], 4 * j + 2);
    sumac_value_unref(values);
    sumac_value_unref(sums);
    sumac_value_unref(columns);
    sumac_strategy_destroy(strategy);
}

/* ---- one call after the other ---- */

#define CALLS 2000

static enum sumac_status
count_on(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    int wrong = 0;

    (void)context;
    for (int i = 0; i < CALLS; i++) {
        struct sumac_value *own = sumac_value_int32(i + (int)sumac_replica_id(replica)), *sum;
        const enum sumac_status status =
            sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, own, NULL, &sum, error);
        sumac_value_unref(own);
        if (status != SUMAC_OK)
            return status;
        wrong += *(const int32_t *)sumac_value_data(sum) != 4 * i + 6;
        sumac_value_unref(sum);
    }
    sumac_replica_return(replica, sumac_value_int32(wrong));
    return SUMAC_OK;
}

/* Some are in the next call while others have yet to hear of this one. */
TEST(no_more_threads_help_than_there_are_cores)
{
    cpu_set_t all, one;

    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(shares_helpers(1), 0);
    CPU_ZERO(&one);
    for (size_t core = 0; CPU_COUNT(&one) == 0; core++)
        if (CPU_ISSET(core, &all))
            CPU_SET(core, &one);

    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const uint32_t helpers = shares_helpers(8);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);

    assert_int_equal(helpers, 0);
}

TEST(each_call_has_its_own_result)
{
    struct sumac_strategy *strategy = mirrored(4);
    struct sumac_value *result = NULL;
    char text[128];

    assert_int_equal(
        sumac_strategy_run(
            strategy, &(struct sumac_run_options){.function = count_on}, &result, NULL),
        SUMAC_OK);

    (void)sumac_value_print(result, text, sizeof text);
    assert_string_equal(
        text, "per_replica(0: int32[] 0, 1: int32[] 0, 2: int32[] 0, 3: int32[] 0)");
    sumac_value_unref(result);
    sumac_strategy_destroy(strategy);
}

/* ---- in memory that is kept ---- */

static struct sumac_value *make(struct sumac_strategy *strategy, uint64_t bytes)
{
    const struct sumac_shape shape = SUMAC_SHAPE(bytes);
    void *elements = NULL;
    struct sumac_value *value =
        results_make_tensor(strategy->results, SUMAC_UINT8, &shape, &elements);

    assert_non_null(value);
    assert_ptr_equal(elements, sumac_value_data(value));
    assert_int_equal((uintptr_t)elements % 64, 0);
    return value;
}

TEST(a_result_has_the_memory_of_one_that_nobody_has)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *first = make(strategy, 1 << 20), *other = make(strategy, 1 << 20);
    const void *memory = sumac_value_data(first);

    assert_ptr_not_equal(sumac_value_data(other), memory); /* that is held */
    sumac_value_unref(first);
    assert_int_equal(strategy->results->count, 1);
    struct sumac_value *again = make(strategy, (1 << 20) - 5000);
    assert_ptr_equal(sumac_value_data(again), memory);
    assert_int_equal(strategy->results->count, 0);
    sumac_value_unref(again);
    struct sumac_value *small = make(strategy, 100000); /* not a tenth of it */
    assert_ptr_not_equal(sumac_value_data(small), memory);
    sumac_value_unref(small);
    sumac_value_unref(other);
    sumac_strategy_destroy(strategy);
}

TEST(what_is_kept_is_bounded_by_count_and_by_bytes)
{
    struct sumac_strategy *strategy = mirrored(2);
    const struct kept *results = strategy->results;
    struct sumac_value *values[RESULTS_KEPT_MAX + 1];

    for (uint32_t i = 0; i <= RESULTS_KEPT_MAX; i++)
        values[i] = make(strategy, 1 << 20);
    for (uint32_t i = 0; i <= RESULTS_KEPT_MAX; i++)
        sumac_value_unref(values[i]);
    assert_int_equal(results->count, RESULTS_KEPT_MAX);
    assert_int_equal(results->bytes, RESULTS_KEPT_MAX << 20);

    sumac_value_unref(make(strategy, RESULTS_KEPT_BYTES_MAX - (2 << 20))); /* older ones go */
    assert_int_equal(results->count, 3);
    assert_int_equal(results->bytes, RESULTS_KEPT_BYTES_MAX);

    sumac_value_unref(make(strategy, RESULTS_KEPT_BYTES_MAX + 1)); /* and is not kept itself */
    assert_true(results->bytes <= RESULTS_KEPT_BYTES_MAX);
    sumac_strategy_destroy(strategy);
}

TEST(a_result_outlives_its_strategy)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *values = ramps(2), *sum = NULL;

    assert_int_equal(
        sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, values, NULL, &sum, NULL), SUMAC_OK);
    sumac_strategy_destroy(strategy);

    assert_int_equal(((const float *)sumac_value_data(sum))[LARGE - 1], 2 * (LARGE - 1) + 1000);
    sumac_value_unref(sum);
    sumac_value_unref(values);
}
