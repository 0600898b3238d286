/* SPDX-License-Identifier: Apache-2.0 */
/* slice.c (test) -- parts of a tensor: NumPy's slices beside a plain reference, rows, and bags. */
#include <math.h>

#include "unit.h"
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

TEST(entries_are_of_the_axes_in_turn)
{
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
TEST(ranges_are_pythons)
{
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

/* ---- of several axes, generated ---- */

/* Of an axis of `size` elements, those that PySlice_AdjustIndices names; -1: an index outside. */
static int pick(const struct sumac_slice *slice, int64_t size, int64_t picked[64], bool *dropped)
{
    int count = 0;

    *dropped = slice->kind == SUMAC_SLICE_INDEX;
    if (*dropped) {
        picked[0] = slice->index < 0 ? slice->index + size : slice->index;
        return picked[0] < 0 || picked[0] >= size ? -1 : 1;
    }
    const int64_t step = slice->has_step ? slice->step : 1;
    int64_t start = step < 0 ? size - 1 : 0, stop = step < 0 ? -1 : size;
    if (slice->has_start) {
        start = slice->start < 0 ? slice->start + size : slice->start;
        start = start < 0       ? (step < 0 ? -1 : 0)
                : start >= size ? (step < 0 ? size - 1 : size)
                                : start;
    }
    if (slice->has_stop) {
        stop = slice->stop < 0 ? slice->stop + size : slice->stop;
        stop = stop < 0 ? (step < 0 ? -1 : 0) : stop >= size ? (step < 0 ? size - 1 : size) : stop;
    }
    for (int64_t i = start; step < 0 ? i > stop : i < stop; i += step)
        picked[count++] = i;
    return count;
}

static int64_t any_between(uint32_t *random, int64_t least, int64_t most)
{
    *random = *random * 1664525u + 1013904223u;
    return least + (int64_t)((*random >> 8) % (uint32_t)(most - least + 1));
}

static struct sumac_slice any_entry(uint32_t *random, int64_t size)
{
    struct sumac_slice entry = {
        .index = any_between(random, -size - 1, size),
        .start = any_between(random, -size - 3, size + 3),
        .stop = any_between(random, -size - 3, size + 3),
        .step = any_between(random, 1, 3),
        .has_start = any_between(random, 0, 2) > 0,
        .has_stop = any_between(random, 0, 2) > 0,
        .has_step = any_between(random, 0, 2) > 0};

    if (any_between(random, 0, 1) > 0)
        entry.step = -entry.step;
    if (any_between(random, 0, 3) == 0)
        entry.kind = SUMAC_SLICE_INDEX;
    return entry;
}

/* What t[entries] has of three axes, element by element; false: an index is outside. */
static bool slice_plainly(
    const struct sumac_shape *shape, const struct sumac_slice entries[3], int32_t *elements,
    struct sumac_shape *left)
{
    int64_t picked[3][64];
    int count[3], made = 0;

    *left = SUMAC_SCALAR;
    for (int axis = 0; axis < 3; axis++) {
        bool dropped;
        count[axis] = pick(&entries[axis], (int64_t)shape->extent[axis], picked[axis], &dropped);
        if (count[axis] < 0)
            return false;
        if (!dropped)
            left->extent[left->rank++] = (uint64_t)count[axis];
    }
    for (int i = 0; i < count[0]; i++)
        for (int j = 0; j < count[1]; j++)
            for (int k = 0; k < count[2]; k++)
                elements[made++] = (int32_t)(
                    (picked[0][i] * (int64_t)shape->extent[1] + picked[1][j]) *
                        (int64_t)shape->extent[2] +
                    picked[2][k]);
    return true;
}

/* 20000 of them, with what they leave out behind an ellipsis, or to its place, or to nobody. */
TEST(entries_of_several_axes_are_numpys)
{
    int32_t expected[512];
    struct sumac_shape left;
    uint32_t random = 12345;

    for (int i = 0; i < 20000; i++) {
        const struct sumac_shape shape =
            SUMAC_SHAPE(/* given */
                        (uint64_t)any_between(&random, 0, 4), (uint64_t)any_between(&random, 1, 4),
                        (uint64_t)any_between(&random, 0, 5));
        struct sumac_slice entries[3] = {{.index = 0}}, said[4];
        uint32_t count = (uint32_t)any_between(&random, 0, 3),
                 hidden = (uint32_t)any_between(&random, 0, 1);
        for (uint32_t axis = 0; axis < 3; axis++)
            if (axis < count)
                said[axis] = entries[axis] = any_entry(&random, (int64_t)shape.extent[axis]);
        if (hidden > 0 && count > 0) { /* [..., last] */
            entries[2] = any_entry(&random, (int64_t)shape.extent[2]);
            said[count - 1] = rest;
            said[count] = entries[2];
            for (uint32_t axis = count - 1; axis < 2; axis++)
                entries[axis] = (struct sumac_slice){.index = 0};
            count++;
        }
        const bool there = slice_plainly(&shape, entries, expected, &left);
        struct sumac_value *value = counted(shape), *result = NULL;

        const enum sumac_status status =
            sumac_value_slice(value, said, count, &result, NULL); /* when */

        assert_int_equal(status, there ? SUMAC_OK : SUMAC_OUT_OF_RANGE); /* then */
        if (there) {
            const struct sumac_shape made = sumac_value_shape(result);
            assert_true(sumac_shape_equal(&made, &left));
            assert_memory_equal(
                sumac_value_data(result), expected,
                sumac_tensor_bytes(sumac_value_as_tensor(result)));
        }
        sumac_value_unref(value);
        sumac_value_unref(result);
    }
}

TEST(bounds_beyond_the_axis_are_clamped)
{
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
    /* one element of the first axis, and no run of the second: the step is of no account */
    expect_slice(
        SUMAC_SHAPE(4, 2), (const struct sumac_slice[]){farthest, every(2)}, 2, "int32[1, 1] 6");
}

TEST(what_is_no_slice_is_refused)
{
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

TEST(rows_come_in_the_order_asked_for)
{
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

/* The result has the shape of the ids, and then that of a row. */
TEST(rows_have_the_shape_of_their_ids)
{
    struct sumac_value *value = counted(SUMAC_SHAPE(3, 2)), *result = NULL;
    const int64_t numbers[] = {2, 0, 1, 1, 0, 2, 2, 0};

    const struct {
        struct sumac_shape ids;
        const char *expected;
    } cases[] = {
        {SUMAC_SHAPE(2, 4), "int32[2, 4, 2] 4 5 0 1 2 3 2 3 0 1 4 5 4 5 0 1"},
        {SUMAC_SHAPE(1, 1, 1), "int32[1, 1, 1, 2] 4 5"},
        {SUMAC_SHAPE(3, 0), "int32[3, 0, 2]"},
        {SUMAC_SHAPE(0), "int32[0, 2]"},
        {{.rank = 0}, "int32[2] 4 5"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_value *ids = sumac_value_tensor(SUMAC_INT64, cases[i].ids, numbers);
        assert_int_equal(sumac_value_rows(value, ids, &result, NULL), SUMAC_OK);
        expect_printed(result, cases[i].expected);
        sumac_value_unref(ids);
    }
    sumac_value_unref(value);
}

TEST(rows_of_more_axes_than_a_tensor_has_are_refused)
{
    struct sumac_value *value = counted(SUMAC_SHAPE(2, 1, 1)), *result = NULL;
    struct sumac_value *six = sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1, 1, 1, 1, 1, 1), NULL);
    struct sumac_value *seven =
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1, 1, 1, 1, 1, 1, 1), NULL);
    struct sumac_error error;

    assert_int_equal(sumac_value_rows(value, six, &result, NULL), SUMAC_OK);
    expect_printed(result, "int32[1, 1, 1, 1, 1, 1, 1, 1] 0");
    result = NULL;
    assert_int_equal(sumac_value_rows(value, seven, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "ids of 7 axes and rows of 2 make a tensor of 9 axes"));
    assert_null(result);
    sumac_value_unref(value);
    sumac_value_unref(six);
    sumac_value_unref(seven);
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
expect_lookup(struct sumac_value *value, enum sumac_reduce_op combiner, const char *expected)
{
    struct sumac_value *ids = bags(), *result = NULL;

    assert_int_equal(sumac_value_lookup(value, ids, combiner, &result, NULL), SUMAC_OK);
    expect_printed(result, expected);
    sumac_value_unref(ids);
}

TEST(bags_of_rows_become_one_row_each)
{
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
        expect_lookup(tables[i], SUMAC_REDUCE_SUM, expected);
        (void)snprintf(expected, sizeof expected, "%s[3, 2] 7 10 0 0 1 2", names[i]);
        expect_lookup(tables[i], SUMAC_REDUCE_MEAN, expected);
        sumac_value_unref(tables[i]);
    }
    expect_lookup(integers, SUMAC_REDUCE_SUM, "int8[3, 2] 44 5 0 0 3 4");
    struct sumac_value *ids = bags(), *result = NULL;
    assert_int_equal(
        sumac_value_lookup(integers, ids, SUMAC_REDUCE_MEAN, &result, NULL),
        SUMAC_INVALID_ARGUMENT);
    assert_null(result);
    sumac_value_unref(ids);
    sumac_value_unref(integers);
}

/* 2048 + 1 + 1, which is 2048 where each sum is a float16 by itself. */
TEST(halves_are_rounded_once)
{
    const uint16_t halves[] = {float16_of_float32(2048), float16_of_float32(1)};
    const int64_t three[] = {0, 1, 1};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(2, 1), halves);
    struct sumac_value *const items[] = {ids_of(three, 3)};
    struct sumac_value *ids = sumac_value_list(items, 1), *result = NULL;

    assert_int_equal(sumac_value_lookup(value, ids, SUMAC_REDUCE_SUM, &result, NULL), SUMAC_OK);
    expect_printed(result, "float16[1, 1] 2050");
    sumac_value_unref(value);
    sumac_value_unref(ids);
}

static void expect_no_lookup(
    struct sumac_value *value, struct sumac_value *ids, enum sumac_reduce_op combiner,
    const char *words)
{
    struct sumac_value *result = NULL;
    struct sumac_error error;

    assert_int_equal(
        sumac_value_lookup(value, ids, combiner, &result, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, words));
    assert_null(result);
}

TEST(what_is_no_bag_is_refused)
{
    const bool bools[] = {true, false};
    const int64_t beyond[] = {0, 2};
    const float singles[] = {2, 4};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), singles);
    struct sumac_value *truths = sumac_value_tensor(SUMAC_BOOL, SUMAC_SHAPE(2), bools);
    struct sumac_value *vector = ids_of(beyond, 2), *scalar = sumac_value_float32(1);
    struct sumac_value *good = sumac_value_list(NULL, 0);
    struct sumac_value *far = sumac_value_list((struct sumac_value *const[]){ids_of(beyond, 2)}, 1);
    struct sumac_value *odd = sumac_value_list(&scalar, 1); /* takes it */

    expect_no_lookup(value, vector, SUMAC_REDUCE_SUM, "bags is a tensor; give a list of ids");
    expect_no_lookup(value, odd, SUMAC_REDUCE_SUM, "the ids are float32[]; give a tensor of int64");
    expect_no_lookup(value, far, SUMAC_REDUCE_MEAN, "there is no row 2; the value has 2 rows");
    expect_no_lookup(value, good, (enum sumac_reduce_op)4, "a combiner 4");
    expect_no_lookup(truths, good, SUMAC_REDUCE_SUM, "rows of bool");
    expect_no_lookup(good, good, SUMAC_REDUCE_SUM, "which has no rows");
    sumac_value_unref(value);
    sumac_value_unref(truths);
    sumac_value_unref(vector);
    sumac_value_unref(good);
    sumac_value_unref(far);
    sumac_value_unref(odd);
}

TEST(a_bag_may_be_divided_by_its_root)
{
    const float singles[] = {2, 4};
    const int64_t four[] = {0, 1, 0, 1};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), singles);
    struct sumac_value *const items[] = {ids_of(four, 4)};
    struct sumac_value *ids = sumac_value_list(items, 1), *result = NULL;

    assert_int_equal(sumac_value_lookup(value, ids, SUMAC_REDUCE_SQRTN, &result, NULL), SUMAC_OK);
    expect_printed(result, "float32[1, 1] 6");
    sumac_value_unref(value);
    sumac_value_unref(ids);
}

/* ---- weights ---- */

/* A list of one bag: these ids, and weights of that type. */
static struct sumac_value *
weighted(enum sumac_dtype dtype, struct sumac_shape shape, const int64_t *ids, const void *weights)
{
    struct sumac_value *const both[] = {
        sumac_value_tensor(SUMAC_INT64, shape, ids), sumac_value_tensor(dtype, shape, weights)};
    struct sumac_value *bag = sumac_value_tuple(both, 2);

    return sumac_value_list(&bag, 1);
}

static void expect_weighted(
    struct sumac_value *value, struct sumac_value *bags, enum sumac_reduce_op combiner,
    const char *expected)
{
    struct sumac_value *result = NULL;

    assert_int_equal(sumac_value_lookup(value, bags, combiner, &result, NULL), SUMAC_OK);
    expect_printed(result, expected);
}

/* Rows 3 and 12, weights 2 and 4: 54; ÷ 6; and of weights 3 and 4: 57 ÷ 5. */
TEST(weights_multiply_rows_and_divide_by_their_sum_or_length)
{
    const int64_t two[] = {0, 1};
    const float singles[] = {3, 12}, weights[] = {2, 4}, sides[] = {3, 4};
    const double doubles[] = {3, 12}, wide[] = {2, 4};
    uint16_t halves[2], brains[2];

    for (int i = 0; i < 2; i++) {
        halves[i] = float16_of_float32(singles[i]);
        brains[i] = bfloat16_of_float32(weights[i]);
    }
    struct sumac_value *const tables[] = {
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), singles),
        sumac_value_tensor(SUMAC_FLOAT64, SUMAC_SHAPE(2, 1), doubles),
        sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(2, 1), halves)};
    static const char *const names[] = {"float32", "float64", "float16"};
    struct sumac_value *const bags[] = {
        weighted(SUMAC_FLOAT32, SUMAC_SHAPE(2), two, weights),
        weighted(SUMAC_FLOAT64, SUMAC_SHAPE(2, 1), two, wide),
        weighted(SUMAC_BFLOAT16, SUMAC_SHAPE(1, 2), two, brains)};
    struct sumac_value *three_four = weighted(SUMAC_FLOAT32, SUMAC_SHAPE(2), two, sides);

    for (int i = 0; i < 3; i++) {
        char expected[40];
        for (int j = 0; j < 3; j++) {
            (void)snprintf(expected, sizeof expected, "%s[1, 1] 54", names[i]);
            expect_weighted(tables[i], bags[j], SUMAC_REDUCE_SUM, expected);
            (void)snprintf(expected, sizeof expected, "%s[1, 1] 9", names[i]);
            expect_weighted(tables[i], bags[j], SUMAC_REDUCE_MEAN, expected);
        }
    }
    expect_weighted(tables[1], three_four, SUMAC_REDUCE_SQRTN, "float64[1, 1] 11.4");
    for (int i = 0; i < 3; i++) {
        sumac_value_unref(tables[i]);
        sumac_value_unref(bags[i]);
    }
    sumac_value_unref(three_four);
}

/* 1 - 1, and squares below the smallest float32: TensorFlow's div_no_nan. */
TEST(weights_that_add_up_to_nothing_give_zeros)
{
    const int64_t two[] = {0, 1};
    const float singles[] = {3, 12}, opposite[] = {1, -1}, tiny[] = {1e-30F, 1e-30F};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), singles);
    struct sumac_value *none = weighted(SUMAC_FLOAT32, SUMAC_SHAPE(2), two, opposite);
    struct sumac_value *small = weighted(SUMAC_FLOAT32, SUMAC_SHAPE(2), two, tiny);

    expect_weighted(value, none, SUMAC_REDUCE_MEAN, "float32[1, 1] 0");
    expect_weighted(value, none, SUMAC_REDUCE_SUM, "float32[1, 1] -9");
    expect_weighted(value, small, SUMAC_REDUCE_SQRTN, "float32[1, 1] 0");
    sumac_value_unref(value);
    sumac_value_unref(none);
    sumac_value_unref(small);
}

TEST(weights_that_fit_no_ids_are_refused)
{
    const int64_t two[] = {0, 1};
    const float singles[] = {3, 12};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), singles);
    struct sumac_value *integers = counted(SUMAC_SHAPE(2, 1));
    struct sumac_value *const longer[] = {
        ids_of(two, 1), sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), singles)};
    struct sumac_value *bag = sumac_value_tuple(longer, 2);
    struct sumac_value *of_two = sumac_value_list(&bag, 1);
    struct sumac_value *whole = weighted(SUMAC_INT64, SUMAC_SHAPE(2), two, two);
    struct sumac_value *good = weighted(SUMAC_FLOAT32, SUMAC_SHAPE(2), two, singles);
    struct sumac_value *const odd[] = {ids_of(two, 2), sumac_value_none()};
    struct sumac_value *without = sumac_value_tuple(odd, 2);
    struct sumac_value *nothing = sumac_value_list(&without, 1);

    expect_no_lookup(
        value, of_two, SUMAC_REDUCE_SUM, "the ids are int64[1] and their weights float32[2]");
    expect_no_lookup(
        value, whole, SUMAC_REDUCE_SUM, "the ids are int64[2] and their weights int64[2]");
    expect_no_lookup(value, nothing, SUMAC_REDUCE_SUM, "and their weights a none");
    expect_no_lookup(integers, good, SUMAC_REDUCE_SUM, "rows of int32 are not weighted");
    sumac_value_unref(value);
    sumac_value_unref(integers);
    sumac_value_unref(of_two);
    sumac_value_unref(whole);
    sumac_value_unref(good);
    sumac_value_unref(nothing);
}
