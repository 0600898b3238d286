/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a reduction: axes (none, some, an empty list), values that differ in replicas. */
#include "collect.h"
#include "strategy_made.h"

#include <math.h>
#include <string.h>

static struct sumac_value *matrix(float first)
{
    const float elements[] = {first, first + 1, first + 2, first + 3, first + 4, first + 5};

    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 3), elements);
}

/* {{0, 1, 2}, {3, 4, 5}}, and that + 10 */
static struct sumac_value *matrices(void)
{
    struct sumac_value *const items[] = {matrix(0), matrix(10)};

    return sumac_value_per_replica(items, 2, 0);
}

TEST(each_way_to_give_axes_has_its_meaning)
{
    const struct {
        const struct sumac_axes *axes;
        const char *printed;
    } rows[] = {
        {NULL, "float32[2, 3] 10 12 14 16 18 20"},
        {&(struct sumac_axes){0}, "float32[2, 3] 10 12 14 16 18 20"},
        {&(struct sumac_axes){.count = 1}, "float32[3] 26 30 34"},
        {&(struct sumac_axes){.count = 1, .axis = {1}}, "float32[2] 36 54"},
        {&(struct sumac_axes){.count = 2, .axis = {0, -1}}, "float32[] 90"},
    };
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *value = matrices();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sumac_value *sum = NULL;
        assert_int_equal(
            sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, value, rows[i].axes, &sum, NULL),
            SUMAC_OK);
        expect_printed(sum, rows[i].printed);
        sumac_value_unref(sum);
    }
    sumac_value_unref(value);
    sumac_strategy_destroy(strategy);
}

TEST(an_axis_that_is_not_counted_is_refused)
{
    static const struct {
        struct sumac_axes axes;
        const char *said;
    } rows[] = {
        {{.axis = {1}}, "axis[0] is 1, and count is 0"},
        {{.count = 1, .axis = {0, -1}}, "axis[1] is -1, and count is 1"},
        {{.axis = {[SUMAC_RANK_MAX - 1] = 2}}, "axis[7] is 2, and count is 0"},
    };
    struct sumac_strategy *strategy = mirrored(2);
    struct sumac_value *value = matrices(), *sum = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sumac_error error;
        assert_int_equal(
            sumac_strategy_reduce(strategy, SUMAC_REDUCE_SUM, value, &rows[i].axes, &sum, &error),
            SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, rows[i].said));
        assert_null(sum);
    }
    sumac_value_unref(value);
    sumac_strategy_destroy(strategy);
}

/* ---- the sign of 0 */

static struct sumac_value *zeros(uint64_t count)
{
    const float elements[2] = {-0.0F, -0.0F};

    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(count), elements);
}

static const struct sumac_axes empty, first = {.count = 1};

/* TensorFlow sums no element by copying it, and begins other sums at 0. */
TEST(what_is_not_summed_over_axes_keeps_the_sign_of_0)
{
    static const struct {
        uint64_t one, other;
        const struct sumac_axes *axes;
        bool negative;
    } rows[] = {
        {1, 1, NULL, true},    {1, 1, &empty, true},  {1, 1, &first, true},
        {1, 2, &first, false}, {2, 0, &first, false}, {2, 2, &first, false},
    };
    struct sumac_strategy *strategy = mirrored(2);

    for (int op = SUMAC_REDUCE_SUM; op <= SUMAC_REDUCE_MEAN; op++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct sumac_value *const items[] = {zeros(rows[i].one), zeros(rows[i].other)};
            struct sumac_value *value = sumac_value_per_replica(items, 2, 0), *sum = NULL;
            assert_int_equal(
                sumac_strategy_reduce(
                    strategy, (enum sumac_reduce_op)op, value, rows[i].axes, &sum, NULL),
                SUMAC_OK);
            assert_int_equal(signbit(*(const float *)sumac_value_data(sum)) != 0, rows[i].negative);
            sumac_value_unref(sum);
            sumac_value_unref(value);
        }
    sumac_strategy_destroy(strategy);
}

/* ---- what replicas have differs */

static struct sumac_value *slices_of(enum sumac_dtype indices, uint64_t rows)
{
    return sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(1), NULL),
        sumac_value_tensor(indices, SUMAC_SHAPE(1), NULL), SUMAC_SHAPE(rows));
}

/* Another worker may send what differs from the label that it sent. */
TEST(what_differs_in_replicas_is_not_reduced_whatever_was_said_of_it)
{
    const struct {
        struct sumac_value *first, *other;
        const char *said;
    } rows[] = {
        {sumac_value_float32(1), sumac_value_float64(1), "another type in another replica"},
        {sumac_value_float32(1), matrix(0), "has another rank in another replica"},
        {matrix(0), sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 4), NULL),
         "has another shape in another replica"},
        {sumac_value_float32(1), slices_of(SUMAC_INT64, 4),
         "is a tensor in some replicas and slices in others"},
        {slices_of(SUMAC_INT64, 4), slices_of(SUMAC_INT64, 5), "another dense shape elsewhere"},
        {slices_of(SUMAC_INT64, 4), slices_of(SUMAC_INT32, 4), "indices of another type elsewhere"},
        {sumac_value_float32(1), sumac_value_none(), "is no tensor"},
    };
    struct sumac_strategy *strategy = mirrored(2);
    struct collect collect = {
        .strategy = strategy, .op = SUMAC_REDUCE_SUM, .count = 2, .call = "reduce"};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct sumac_value *const leaves[] = {rows[i].first, rows[i].other};
        struct sumac_value *sum = NULL;
        struct sumac_error error;

        assert_int_equal(
            collect_reduce_leaf(&collect, leaves, NULL, &sum, &error), SUMAC_INVALID_ARGUMENT);

        if (strstr(error.text, rows[i].said) == NULL)
            fail_msg("expected %s in: %s", rows[i].said, error.text);
        assert_null(sum);
        sumac_value_unref(rows[i].first);
        sumac_value_unref(rows[i].other);
    }
    sumac_strategy_destroy(strategy);
}
