/* SPDX-License-Identifier: Apache-2.0 */
/* print_array.c -- what NumPy 1.24 printed for the same values. */

#include "unit.h"
#include <math.h>

#include "print_array.h"

/* The text for `data`, viewed by dtype and shape; to free. */
static char *
printed(void *data, uint64_t bytes, enum sumac_dtype dtype, const struct sumac_shape *shape)
{
    struct sumac_buffer *buffer = NULL;
    struct sumac_tensor tensor;
    char *text = NULL;
    size_t length = 0;

    assert_int_equal(
        sumac_buffer_wrap(data, bytes, (struct sumac_place){0}, NULL, NULL, &buffer), SUMAC_OK);
    assert_int_equal(sumac_tensor_view(buffer, 0, dtype, shape, &tensor), SUMAC_OK);
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    print_array(&tensor, file);
    assert_int_equal(fclose(file), 0);
    sumac_buffer_unref(buffer);
    return text;
}

static void prints(
    void *data, uint64_t bytes, enum sumac_dtype dtype, struct sumac_shape shape,
    const char *expected)
{
    char *text = printed(data, bytes, dtype, &shape);

    assert_string_equal(text, expected);
    free(text);
}

#define VECTOR(count) ((struct sumac_shape){.extent = {(count)}, .rank = 1})
#define MATRIX(rows, columns) ((struct sumac_shape){.extent = {(rows), (columns)}, .rank = 2})

TEST(floats_have_the_fewest_digits_that_tell_them_apart)
{
    float values[] = {1, 0.1f, -2.5f, 100};

    prints(values, sizeof values, SUMAC_FLOAT32, VECTOR(4), "[  1.    0.1  -2.5 100. ]\n");
    double thirds[] = {1.0 / 3, 2};
    prints(thirds, sizeof thirds, SUMAC_FLOAT64, VECTOR(2), "[0.33333333 2.        ]\n");
}

TEST(numbers_of_a_column_have_their_points_below_each_other)
{
    float values[] = {1.25f, 2, 1.25f, 2};

    prints(values, sizeof values, SUMAC_FLOAT32, MATRIX(2, 2), "[[1.25 2.  ]\n [1.25 2.  ]]\n");
}

TEST(a_wide_range_is_written_with_exponents)
{
    float values[] = {1e-5f, 1, 12345};

    prints(values, sizeof values, SUMAC_FLOAT32, VECTOR(3), "[1.0000e-05 1.0000e+00 1.2345e+04]\n");
    float thousand[] = {1, 1000}; /* is not too wide */
    prints(thousand, sizeof thousand, SUMAC_FLOAT32, VECTOR(2), "[   1. 1000.]\n");
    float nothing[] = {1e-5f, 0}; /* 0 is no small number */
    prints(nothing, sizeof nothing, SUMAC_FLOAT32, VECTOR(2), "[1.e-05 0.e+00]\n");
    double large[] = {1e8}, small[] = {1e-4, 0.01};
    prints(large, sizeof large, SUMAC_FLOAT64, VECTOR(1), "[1.e+08]\n");
    prints(small, sizeof small, SUMAC_FLOAT64, VECTOR(2), "[0.0001 0.01  ]\n");
}

TEST(what_is_not_finite_has_a_name)
{
    double values[] = {(double)NAN, (double)-INFINITY, (double)INFINITY, 1};

    prints(values, sizeof values, SUMAC_FLOAT64, VECTOR(4), "[ nan -inf  inf   1.]\n");
}

TEST(integers_and_bools_are_aligned)
{
    int32_t numbers[] = {1, -20, 300, 4};

    prints(numbers, sizeof numbers, SUMAC_INT32, MATRIX(2, 2), "[[  1 -20]\n [300   4]]\n");
    uint8_t truths[] = {1, 0};
    prints(truths, sizeof truths, SUMAC_BOOL, VECTOR(2), "[ True False]\n");
}

TEST(a_scalar_has_no_brackets)
{
    double value = 5695;

    prints(&value, sizeof value, SUMAC_FLOAT64, (struct sumac_shape){.rank = 0}, "5695.\n");
}

TEST(nothing_is_an_empty_list)
{
    float none[1] = {0};

    prints(none, 0, SUMAC_FLOAT32, VECTOR(0), "[]\n");
    prints(none, 0, SUMAC_FLOAT32, MATRIX(2, 0), "[]\n");
}

TEST(lines_end_before_75_characters)
{
    int64_t values[30];

    for (int i = 0; i < 30; i++)
        values[i] = 100 + i;
    prints(
        values, sizeof values, SUMAC_INT64, VECTOR(30),
        "[100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117\n"
        " 118 119 120 121 122 123 124 125 126 127 128 129]\n");
    for (int i = 0; i < 6; i++) /* five of these would be 75 characters */
        values[i] = 10000000000000 + i;
    prints(
        values, 6 * sizeof values[0], SUMAC_INT64, VECTOR(6),
        "[10000000000000 10000000000001 10000000000002 10000000000003\n"
        " 10000000000004 10000000000005]\n");
    int64_t nested[80]; /* their brackets have room, too */
    for (int i = 0; i < 80; i++)
        nested[i] = 100 + i;
    prints(
        nested, sizeof nested, SUMAC_INT64, (struct sumac_shape){.extent = {1, 2, 40}, .rank = 3},
        "[[[100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116\n"
        "   117 118 119 120 121 122 123 124 125 126 127 128 129 130 131 132 133\n"
        "   134 135 136 137 138 139]\n"
        "  [140 141 142 143 144 145 146 147 148 149 150 151 152 153 154 155 156\n"
        "   157 158 159 160 161 162 163 164 165 166 167 168 169 170 171 172 173\n"
        "   174 175 176 177 178 179]]]\n");
}

TEST(no_line_ends_with_blanks)
{
    float values[20];

    for (int i = 0; i < 20; i++)
        values[i] = i % 2 == 0 ? 1.25f : 2;
    prints(
        values, sizeof values, SUMAC_FLOAT32, VECTOR(20),
        "[1.25 2.   1.25 2.   1.25 2.   1.25 2.   1.25 2.   1.25 2.   1.25 2.\n"
        " 1.25 2.   1.25 2.   1.25 2.  ]\n");
}

TEST(of_a_thousand_all_are_shown)
{
    static int8_t values[1001];
    const struct sumac_shape thousand = VECTOR(1000);
    char *const text = printed(values, 1000, SUMAC_INT8, &thousand);

    assert_null(strstr(text, "..."));
    free(text);
    prints(values, sizeof values, SUMAC_INT8, VECTOR(1001), "[0 0 0 ... 0 0 0]\n");
}

TEST(of_more_than_a_thousand_the_edges_are_shown)
{
    static int16_t values[7 * 200];

    for (int i = 0; i < 7 * 200; i++)
        values[i] = (int16_t)i;
    prints(
        values, sizeof values, SUMAC_INT16, MATRIX(7, 200),
        "[[   0    1    2 ...  197  198  199]\n"
        " [ 200  201  202 ...  397  398  399]\n"
        " [ 400  401  402 ...  597  598  599]\n"
        " ...\n"
        " [ 800  801  802 ...  997  998  999]\n"
        " [1000 1001 1002 ... 1197 1198 1199]\n"
        " [1200 1201 1202 ... 1397 1398 1399]]\n");
}

/* Nothing would be left out in the place of the dots. */
TEST(an_axis_of_both_edges_alone_is_shown_whole)
{
    static int16_t values[6 * 200];

    for (int i = 0; i < 6 * 200; i++)
        values[i] = (int16_t)i;
    prints(
        values, sizeof values, SUMAC_INT16, MATRIX(6, 200),
        "[[   0    1    2 ...  197  198  199]\n"
        " [ 200  201  202 ...  397  398  399]\n"
        " [ 400  401  402 ...  597  598  599]\n"
        " [ 600  601  602 ...  797  798  799]\n"
        " [ 800  801  802 ...  997  998  999]\n"
        " [1000 1001 1002 ... 1197 1198 1199]]\n");
}
