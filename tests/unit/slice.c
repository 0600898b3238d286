/* SPDX-License-Identifier: Apache-2.0 */
/* slice.c (test) -- parts of a tensor: NumPy's slices beside a plain reference, rows, and bags. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "half.h"
#include "sumac/value.h"

static struct sumac_slice at(int64_t index)
{
    return (struct sumac_slice){.kind = SUMAC_SLICE_INDEX, .index = index};
}

static struct sumac_slice every(int64_t step)
{
    return (struct sumac_slice){.step = step, .has_step = true};
}

static const struct sumac_slice rest = {.kind = SUMAC_SLICE_ELLIPSIS};

static void expect_printed(struct sumac_value *value, const char *expected)
{
    char text[512];

    (void)sumac_value_print(value, text, sizeof text);
    assert_string_equal(text, expected);
    sumac_value_unref(value);
}

/* 0, 1, 2, … */
static struct sumac_value *counted(struct sumac_shape shape)
{
    int32_t elements[4096];

    for (int32_t i = 0; i < 4096; i++)
        elements[i] = i;
    return sumac_value_tensor(SUMAC_INT32, shape, elements);
}

static void expect_slice(
    struct sumac_shape shape, const struct sumac_slice *slices, uint32_t count,
    const char *expected)
{
    struct sumac_value *value = counted(shape), *result = NULL;

    assert_int_equal(sumac_value_slice(value, slices, count, &result, NULL), SUMAC_OK);
    expect_printed(result, expected);
    sumac_value_unref(value);
}

/* ---- slices ---- */

static void entries_are_of_the_axes_in_turn(void **state)
{
    (void)state;
    const struct sumac_slice second = at(1), last = at(-1), back = every(-1);

    expect_slice(SUMAC_SHAPE(2, 3), &second, 1, "int32[3] 3 4 5");
    expect_slice(SUMAC_SHAPE(2, 3), NULL, 0, "int32[2, 3] 0 1 2 3 4 5");
    expect_slice(SUMAC_SHAPE(2, 3), (const struct sumac_slice[]){second, last}, 2, "int32[] 5");
    expect_slice(SUMAC_SHAPE(2, 3), (const struct sumac_slice[]){rest, last}, 2, "int32[2] 2 5");
    expect_slice(
        SUMAC_SHAPE(2, 3), (const struct sumac_slice[]){second, rest, last}, 3, "int32[] 5");
    expect_slice(
        SUMAC_SHAPE(2, 3), (const struct sumac_slice[]){rest, back}, 2, "int32[2, 3] 2 1 0 5 4 3");
    expect_slice(SUMAC_SHAPE(2, 3), &back, 1, "int32[2, 3] 3 4 5 0 1 2");
    expect_slice(SUMAC_SCALAR, &rest, 1, "int32[] 0");
}

/* What Python's range of a slice has. */
static uint32_t plain_range(const struct sumac_slice *slice, int64_t size, int64_t *picked)
{
    const int64_t step = slice->has_step ? slice->step : 1;
    int64_t start = slice->has_start ? slice->start : step > 0 ? 0 : size - 1;
    int64_t stop = slice->has_stop ? slice->stop : step > 0 ? size : -1 - size;
    uint32_t count = 0;

    if (slice->has_start && start < 0)
        start += size;
    if (stop < 0)
        stop += size;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
        if (i >= 0 && i < size)
            picked[count++] = i;
    return count;
}

static void expect_range(const struct sumac_slice *slice, int64_t size)
{
    int64_t picked[64];
    const uint32_t count = plain_range(slice, size, picked);
    struct sumac_value *value = counted(SUMAC_SHAPE((uint64_t)size, 2)), *result = NULL;

    assert_int_equal(sumac_value_slice(value, slice, 1, &result, NULL), SUMAC_OK);
    assert_int_equal(sumac_value_shape(result).extent[0], count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(((const int32_t *)sumac_value_data(result))[2 * i + 1], 2 * picked[i] + 1);
    sumac_value_unref(value);
    sumac_value_unref(result);
}

/* A start beyond the end steps back into it, as Python has it: that alone is left out here. */
static void ranges_are_pythons(void **state)
{
    (void)state;

    for (int64_t size = 0; size <= 4; size++)
        for (int64_t step = -3; step <= 3; step++)
            for (int64_t start = -size; start < size; start++)
                for (int64_t stop = -size - 2; stop <= size + 2; stop++) {
                    if (step == 0)
                        continue;
                    struct sumac_slice slice = {
                        .start = start,
                        .stop = stop,
                        .step = step,
                        .has_start = true,
                        .has_stop = stop >= -size,
                        .has_step = true};
                    expect_range(&slice, size);
                    slice.has_start = false;
                    expect_range(&slice, size);
                }
}

static void bounds_beyond_the_axis_are_clamped(void **state)
{
    (void)state;
    const struct sumac_slice all = {
        .start = -100, .stop = 100, .has_start = true, .has_stop = true};
    const struct sumac_slice back = {
        .start = 100,
        .stop = -100,
        .step = -2,
        .has_start = true,
        .has_stop = true,
        .has_step = true};
    const struct sumac_slice widest = {
        .start = INT64_MIN,
        .stop = INT64_MAX,
        .step = INT64_MAX,
        .has_start = true,
        .has_stop = true,
        .has_step = true};
    const struct sumac_slice farthest = every(INT64_MIN);

    expect_slice(SUMAC_SHAPE(4), &all, 1, "int32[4] 0 1 2 3");
    expect_slice(SUMAC_SHAPE(4), &back, 1, "int32[2] 3 1");
    expect_slice(SUMAC_SHAPE(4), &widest, 1, "int32[1] 0");
    expect_slice(SUMAC_SHAPE(4), &farthest, 1, "int32[1] 3");
    expect_slice(SUMAC_SHAPE(0, 3), &back, 1, "int32[0, 3]");
}

static void what_is_no_slice_is_refused(void **state)
{
    (void)state;
    struct sumac_value *value = counted(SUMAC_SHAPE(2, 3)), *result = NULL;
    const struct sumac_slice three[] = {at(0), at(0), at(0)}, two_rests[] = {rest, rest};
    const struct sumac_slice beyond[] = {at(0), at(3)}, before = at(-3), still = every(0);
    struct sumac_error error;

    assert_int_equal(sumac_value_slice(value, three, 3, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "3 entries of a tensor with 2 axes"));
    assert_int_equal(
        sumac_value_slice(value, two_rests, 2, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "second ellipsis"));
    assert_int_equal(sumac_value_slice(value, beyond, 2, &result, &error), SUMAC_OUT_OF_RANGE);
    assert_non_null(strstr(error.text, "entry 1 is 3, and its axis has 3 elements"));
    assert_int_equal(sumac_value_slice(value, &before, 1, &result, &error), SUMAC_OUT_OF_RANGE);
    assert_int_equal(sumac_value_slice(value, &still, 1, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_null(result);
    sumac_value_unref(value);
}

/* ---- rows ---- */

static struct sumac_value *ids_of(const int64_t *ids, uint64_t count)
{
    return sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(count), ids);
}

static void rows_come_in_the_order_asked_for(void **state)
{
    (void)state;
    struct sumac_value *value = counted(SUMAC_SHAPE(3, 2)), *result = NULL;
    const int32_t narrow[] = {2, 0, 2};
    const int64_t bad[] = {0, 3}, negative[] = {-1};
    struct sumac_value *ids = sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(3), narrow);
    struct sumac_value *beyond = ids_of(bad, 2), *before = ids_of(negative, 1);
    struct sumac_error error;

    assert_int_equal(sumac_value_rows(value, ids, &result, NULL), SUMAC_OK);
    expect_printed(result, "int32[3, 2] 4 5 0 1 4 5");
    result = NULL;
    assert_int_equal(sumac_value_rows(value, beyond, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "there is no row 3; the value has 3 rows"));
    assert_int_equal(sumac_value_rows(value, before, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(sumac_value_rows(value, value, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_null(result);
    sumac_value_unref(value);
    sumac_value_unref(ids);
    sumac_value_unref(beyond);
    sumac_value_unref(before);
}

/* ---- bags ---- */

/* {0, 1, 1}, {} and {2} */
static struct sumac_value *bags(void)
{
    const int64_t first[] = {0, 1, 1}, last[] = {2};
    struct sumac_value *const items[] = {ids_of(first, 3), ids_of(NULL, 0), ids_of(last, 1)};

    return sumac_value_list(items, 3);
}

static void
expect_lookup(struct sumac_value *value, enum sumac_combiner combiner, const char *expected)
{
    struct sumac_value *ids = bags(), *result = NULL;

    assert_int_equal(sumac_value_lookup(value, ids, combiner, &result, NULL), SUMAC_OK);
    expect_printed(result, expected);
    sumac_value_unref(ids);
}

static void bags_of_rows_become_one_row_each(void **state)
{
    (void)state;
    const double doubles[] = {3, 6, 9, 12, 1, 2};
    const float singles[] = {3, 6, 9, 12, 1, 2};
    const int8_t bytes[] = {100, 1, 100, 2, 3, 4};
    uint16_t halves[6], brains[6];

    for (int i = 0; i < 6; i++) {
        halves[i] = float16_of_float32(singles[i]);
        brains[i] = bfloat16_of_float32(singles[i]);
    }
    struct sumac_value *const tables[] = {
        sumac_value_tensor(SUMAC_FLOAT64, SUMAC_SHAPE(3, 2), doubles),
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3, 2), singles),
        sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(3, 2), halves),
        sumac_value_tensor(SUMAC_BFLOAT16, SUMAC_SHAPE(3, 2), brains)};
    struct sumac_value *integers = sumac_value_tensor(SUMAC_INT8, SUMAC_SHAPE(3, 2), bytes);
    static const char *const names[] = {"float64", "float32", "float16", "bfloat16"};

    for (int i = 0; i < 4; i++) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "%s[3, 2] 21 30 0 0 1 2", names[i]);
        expect_lookup(tables[i], SUMAC_COMBINER_SUM, expected);
        (void)snprintf(expected, sizeof expected, "%s[3, 2] 7 10 0 0 1 2", names[i]);
        expect_lookup(tables[i], SUMAC_COMBINER_MEAN, expected);
        sumac_value_unref(tables[i]);
    }
    expect_lookup(integers, SUMAC_COMBINER_SUM, "int8[3, 2] 44 5 0 0 3 4");
    struct sumac_value *ids = bags(), *result = NULL;
    assert_int_equal(
        sumac_value_lookup(integers, ids, SUMAC_COMBINER_MEAN, &result, NULL),
        SUMAC_INVALID_ARGUMENT);
    assert_null(result);
    sumac_value_unref(ids);
    sumac_value_unref(integers);
}

static void a_bag_may_be_divided_by_its_root(void **state)
{
    (void)state;
    const float singles[] = {2, 4};
    const int64_t four[] = {0, 1, 0, 1};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), singles);
    struct sumac_value *const items[] = {ids_of(four, 4)};
    struct sumac_value *ids = sumac_value_list(items, 1), *result = NULL;

    assert_int_equal(sumac_value_lookup(value, ids, SUMAC_COMBINER_SQRTN, &result, NULL), SUMAC_OK);
    expect_printed(result, "float32[1, 1] 6");
    sumac_value_unref(value);
    sumac_value_unref(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_of_the_axes_in_turn),
        cmocka_unit_test(ranges_are_pythons),
        cmocka_unit_test(bounds_beyond_the_axis_are_clamped),
        cmocka_unit_test(what_is_no_slice_is_refused),
        cmocka_unit_test(rows_come_in_the_order_asked_for),
        cmocka_unit_test(bags_of_rows_become_one_row_each),
        cmocka_unit_test(a_bag_may_be_divided_by_its_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
