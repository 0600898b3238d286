/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c -- element types, shapes, and views of a buffer. */

#include "unit.h"
#include "dtype.h"
#include "half.h"
#include "sumac/tensor.h"

TEST(every_dtype_has_a_name_that_leads_back_to_it)
{
    size_t count = 0;

#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    assert_int_equal(sumac_dtype_parse(sumac_dtype_name(SUMAC_##NAME)), number);                   \
    assert_string_equal(sumac_dtype_name(SUMAC_##NAME), #name);                                    \
    assert_int_equal(sumac_dtype_bytes(SUMAC_##NAME), bytes);                                      \
    assert_int_equal(sumac_dtype_kind(SUMAC_##NAME), SUMAC_KIND_##kind);                           \
    count++;
    SUMAC_DTYPE_LIST(X)
#undef X
    assert_int_equal(count, 13);
}

TEST(a_number_or_name_that_is_no_dtype_is_unspecified)
{
    assert_int_equal(sumac_dtype_parse("string"), SUMAC_DTYPE_UNSPECIFIED);
    assert_int_equal(sumac_dtype_bytes(SUMAC_DTYPE_UNSPECIFIED), 0);
    assert_int_equal(sumac_dtype_bytes((enum sumac_dtype)14), 0);
    assert_string_equal(sumac_dtype_name((enum sumac_dtype)14), "unspecified");
}

/* What the name of a type begins with says what it is. */
TEST(a_dtype_is_of_the_kind_that_its_name_says)
{
    for (unsigned number = 1; number <= DTYPES_MAX; number++) {
        const enum sumac_dtype dtype = (enum sumac_dtype)number;
        const char *name = sumac_dtype_name(dtype);
        const enum sumac_dtype_kind kind = strcmp(name, "bool") == 0       ? SUMAC_KIND_BOOL
                                           : strncmp(name, "int", 3) == 0  ? SUMAC_KIND_INT
                                           : strncmp(name, "uint", 4) == 0 ? SUMAC_KIND_UINT
                                           : sumac_dtype_bytes(dtype) == 2 ? SUMAC_KIND_HALF
                                                                           : SUMAC_KIND_FLOAT;
        assert_int_equal(sumac_dtype_kind(dtype), kind);
        assert_int_equal(sumac_dtype_is_float(dtype), strstr(name, "float") != NULL);
    }
    assert_int_equal(sumac_dtype_kind(SUMAC_DTYPE_UNSPECIFIED), SUMAC_KIND_NONE);
    assert_int_equal(sumac_dtype_kind((enum sumac_dtype)(DTYPES_MAX + 1)), SUMAC_KIND_NONE);
    assert_int_equal(sumac_dtype_kind((enum sumac_dtype) - 1), SUMAC_KIND_NONE);
}

TEST(the_dtypes_are_listed_from_the_first_to_the_last)
{
    char text[64];

    assert_string_equal(dtype_list_print(text, sizeof text), "1 (bool) to 13 (float64)");
}

TEST(four_dtypes_are_floats)
{
    int floats = 0;

    for (unsigned dtype = 0; dtype <= 14; dtype++)
        floats += sumac_dtype_is_float((enum sumac_dtype)dtype);
    assert_int_equal(floats, 4);
    assert_true(sumac_dtype_is_float(SUMAC_BFLOAT16));
}

TEST(a_shape_takes_the_product_of_its_extents)
{
    const struct sumac_shape shape = {.extent = {3, 5, 7}, .rank = 3};
    uint64_t elements = 0, bytes = 0;

    assert_int_equal(sumac_shape_size(&shape, SUMAC_FLOAT64, &elements, &bytes), SUMAC_OK);

    assert_int_equal(elements, 105);
    assert_int_equal(bytes, 840);
}

TEST(a_scalar_has_one_element)
{
    const struct sumac_shape shape = {.rank = 0};
    uint64_t elements = 0, bytes = 0;

    assert_int_equal(sumac_shape_size(&shape, SUMAC_INT16, &elements, &bytes), SUMAC_OK);

    assert_int_equal(elements, 1);
    assert_int_equal(bytes, 2);
}

TEST(an_extent_of_zero_makes_a_shape_empty)
{
    const struct sumac_shape shape = {.extent = {4, 0, 9}, .rank = 3};
    uint64_t elements = 1, bytes = 1;

    assert_int_equal(sumac_shape_size(&shape, SUMAC_INT16, &elements, &bytes), SUMAC_OK);

    assert_int_equal(elements, 0);
    assert_int_equal(bytes, 0);
}

TEST(a_shape_beyond_63_bits_of_bytes_is_refused)
{
    const struct sumac_shape largest = {.extent = {INT64_MAX / 4}, .rank = 1};
    const struct sumac_shape beyond = {.extent = {(uint64_t)INT64_MAX / 4 + 1}, .rank = 1};
    const struct sumac_shape wraps = {.extent = {1ull << 32, 1ull << 32}, .rank = 2};
    const struct sumac_shape negative = {.extent = {UINT64_MAX}, .rank = 1};
    const struct sumac_shape empty = {.extent = {0, 1ull << 32, 1ull << 32}, .rank = 3};
    uint64_t elements = 7, bytes = 7;

    assert_int_equal(
        sumac_shape_size(&beyond, SUMAC_FLOAT32, &elements, &bytes), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_shape_size(&wraps, SUMAC_INT8, &elements, &bytes), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_shape_size(&negative, SUMAC_INT8, &elements, &bytes), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_shape_size(&empty, SUMAC_INT8, &elements, &bytes), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(elements, 7);
    assert_int_equal(bytes, 7);
    assert_int_equal(sumac_shape_size(&largest, SUMAC_FLOAT32, &elements, &bytes), SUMAC_OK);
    assert_int_equal(bytes, INT64_MAX / 4 * 4);
}

TEST(a_ninth_axis_or_an_unknown_dtype_is_refused)
{
    const struct sumac_shape nine = {.extent = {1, 1, 1, 1, 1, 1, 1, 1}, .rank = 9};
    const struct sumac_shape scalar = {.rank = 0};
    uint64_t elements = 0, bytes = 0;

    assert_int_equal(
        sumac_shape_size(&nine, SUMAC_INT8, &elements, &bytes), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_shape_size(&scalar, (enum sumac_dtype)14, &elements, &bytes), SUMAC_INVALID_ARGUMENT);
}

TEST(shapes_are_equal_in_rank_and_every_extent)
{
    const struct sumac_shape shape = {.extent = {2, 3}, .rank = 2};
    const struct sumac_shape unused_differs = {.extent = {2, 3, 9}, .rank = 2};
    const struct sumac_shape longer = {.extent = {2, 3, 1}, .rank = 3};
    const struct sumac_shape other = {.extent = {2, 4}, .rank = 2};

    assert_true(sumac_shape_equal(&shape, &unused_differs));
    assert_false(sumac_shape_equal(&shape, &longer));
    assert_false(sumac_shape_equal(&shape, &other));
}

TEST(a_shape_prints_as_a_list_cut_to_fit)
{
    const struct sumac_shape shape = {.extent = {64, 128}, .rank = 2};
    const struct sumac_shape scalar = {.rank = 0};
    char text[32], narrow[5];

    assert_string_equal(sumac_shape_print(&shape, text, sizeof text), "[64, 128]");
    assert_string_equal(sumac_shape_print(&scalar, text, sizeof text), "[]");
    assert_string_equal(sumac_shape_print(&shape, narrow, sizeof narrow), "[64,");
    assert_string_equal(sumac_shape_print(&scalar, narrow, 0), "");
    assert_string_equal(narrow, "[64,"); /* there was no room for anything */
}

/* ---- views */

static struct sumac_buffer *buffer_of(uint64_t bytes)
{
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(sumac_buffer_create(bytes, &buffer), SUMAC_OK);
    return buffer;
}

static struct sumac_tensor matrix(struct sumac_buffer *buffer, uint64_t rows, uint64_t columns)
{
    const struct sumac_shape shape = {.extent = {rows, columns}, .rank = 2};
    struct sumac_tensor tensor = {0};

    assert_int_equal(sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, &tensor), SUMAC_OK);
    return tensor;
}

TEST(a_view_may_end_where_its_buffer_ends_and_not_past_it)
{
    struct sumac_buffer *buffer = buffer_of(24);
    const struct sumac_shape shape = {.extent = {4}, .rank = 1};
    struct sumac_tensor tensor = {0};

    assert_int_equal(sumac_tensor_view(buffer, 8, SUMAC_FLOAT32, &shape, &tensor), SUMAC_OK);
    assert_ptr_equal(sumac_tensor_data(&tensor), (char *)sumac_buffer_data(buffer) + 8);
    assert_int_equal(sumac_tensor_bytes(&tensor), 16);
    struct sumac_tensor untouched = tensor;
    assert_int_equal(
        sumac_tensor_view(buffer, 12, SUMAC_FLOAT32, &shape, &tensor), SUMAC_OUT_OF_RANGE);
    assert_int_equal(
        sumac_tensor_view(buffer, UINT64_MAX - 3, SUMAC_FLOAT32, &shape, &tensor),
        SUMAC_OUT_OF_RANGE);

    assert_memory_equal(&tensor, &untouched, sizeof tensor);
    sumac_buffer_unref(buffer);
}

TEST(a_view_begins_at_a_whole_element)
{
    struct sumac_buffer *buffer = buffer_of(24);
    const struct sumac_shape shape = {.extent = {2}, .rank = 1};
    struct sumac_tensor tensor = {0};

    assert_int_equal(
        sumac_tensor_view(buffer, 2, SUMAC_FLOAT32, &shape, &tensor), SUMAC_INVALID_ARGUMENT);

    sumac_buffer_unref(buffer);
}

TEST(rows_in_the_middle_are_a_view_of_the_same_bytes)
{
    struct sumac_buffer *buffer = buffer_of(10 * 4 * sizeof(float));
    const struct sumac_tensor whole = matrix(buffer, 10, 4);
    struct sumac_tensor rows = {0};

    assert_int_equal(
        sumac_tensor_slice_rows(&whole, (struct sumac_range){.first = 3, .count = 2}, &rows),
        SUMAC_OK);

    assert_ptr_equal(rows.buffer, buffer);
    assert_int_equal(rows.offset_bytes, 3 * 4 * sizeof(float));
    assert_int_equal(rows.shape.extent[0], 2);
    assert_int_equal(rows.shape.extent[1], 4);
    assert_int_equal(sumac_tensor_bytes(&rows), 2 * 4 * sizeof(float));
    sumac_buffer_unref(buffer);
}

TEST(rows_past_the_end_are_refused_and_the_output_is_left_alone)
{
    struct sumac_buffer *buffer = buffer_of(10 * 4 * sizeof(float));
    const struct sumac_tensor whole = matrix(buffer, 10, 4);
    struct sumac_tensor rows = matrix(buffer, 7, 4);

    assert_int_equal(
        sumac_tensor_slice_rows(&whole, (struct sumac_range){.first = 8, .count = 3}, &rows),
        SUMAC_OUT_OF_RANGE);
    assert_int_equal(
        sumac_tensor_slice_rows(
            &whole, (struct sumac_range){.first = 2, .count = UINT64_MAX}, &rows),
        SUMAC_OUT_OF_RANGE);

    assert_int_equal(rows.shape.extent[0], 7);
    sumac_buffer_unref(buffer);
}

TEST(no_rows_at_the_end_are_an_empty_view)
{
    struct sumac_buffer *buffer = buffer_of(10 * 4 * sizeof(float));
    const struct sumac_tensor whole = matrix(buffer, 10, 4);
    struct sumac_tensor rows = {0};

    assert_int_equal(
        sumac_tensor_slice_rows(&whole, (struct sumac_range){.first = 10, .count = 0}, &rows),
        SUMAC_OK);

    assert_int_equal(sumac_tensor_bytes(&rows), 0);
    sumac_buffer_unref(buffer);
}

TEST(a_shape_is_written_as_its_extents)
{
    const struct sumac_shape matrix = SUMAC_SHAPE(64, 128), scalar = SUMAC_SCALAR;
    const struct sumac_shape deepest = SUMAC_SHAPE(1, 2, 3, 4, 5, 6, 7, 8);

    assert_int_equal(matrix.rank, 2);
    assert_int_equal(matrix.extent[0], 64);
    assert_int_equal(matrix.extent[1], 128);
    assert_int_equal(scalar.rank, 0);
    assert_int_equal(deepest.rank, SUMAC_RANK_MAX);
    assert_int_equal(deepest.extent[7], 8);
}

TEST(plain_memory_is_a_tensor_without_a_buffer)
{
    float memory[3][4] = {{0}};
    struct sumac_tensor rows;
    const struct sumac_tensor whole = sumac_tensor_over(memory, SUMAC_FLOAT32, SUMAC_SHAPE(3, 4));

    assert_ptr_equal(sumac_tensor_data(&whole), memory);
    assert_int_equal(sumac_tensor_bytes(&whole), sizeof memory);

    assert_int_equal(
        sumac_tensor_slice_rows(&whole, (struct sumac_range){.first = 1, .count = 2}, &rows),
        SUMAC_OK);
    assert_ptr_equal(sumac_tensor_data(&rows), memory[1]);
    assert_int_equal(sumac_tensor_bytes(&rows), 2 * sizeof memory[0]);
    assert_int_equal(rows.offset_bytes, 0);

    const struct sumac_tensor none = sumac_tensor_over(NULL, SUMAC_FLOAT32, SUMAC_SHAPE(3, 4));
    assert_int_equal(
        sumac_tensor_slice_rows(&none, (struct sumac_range){.first = 1, .count = 2}, &rows),
        SUMAC_OK);
    assert_null(sumac_tensor_data(&rows)); /* the whole has no memory either */
}

TEST(rows_of_rows_begin_behind_those_before_both)
{
    struct sumac_buffer *buffer = buffer_of(10 * 4 * sizeof(float));
    const struct sumac_shape shape = SUMAC_SHAPE(10, 4);
    struct sumac_tensor whole, rows, fewer;

    assert_int_equal(sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, &whole), SUMAC_OK);
    assert_int_equal(
        sumac_tensor_slice_rows(&whole, (struct sumac_range){.first = 3, .count = 5}, &rows),
        SUMAC_OK);

    assert_int_equal(
        sumac_tensor_slice_rows(&rows, (struct sumac_range){.first = 2, .count = 2}, &fewer),
        SUMAC_OK);

    assert_int_equal(fewer.offset_bytes, 5 * 4 * sizeof(float));
    assert_int_equal(fewer.shape.extent[0], 2);
    sumac_buffer_unref(buffer);
}

TEST(a_scalar_has_no_rows)
{
    struct sumac_buffer *buffer = buffer_of(4);
    const struct sumac_shape scalar = {.rank = 0};
    struct sumac_tensor whole = {0}, rows = {0};

    assert_int_equal(sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &scalar, &whole), SUMAC_OK);

    assert_int_equal(
        sumac_tensor_slice_rows(&whole, (struct sumac_range){.first = 0, .count = 0}, &rows),
        SUMAC_INVALID_ARGUMENT);

    sumac_buffer_unref(buffer);
}

/* ---- half types */

/* Every value of both types is a float32, and comes back from it as it was. */
TEST(every_half_value_survives_the_way_to_float32_and_back)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        const uint16_t half = (uint16_t)bits;
        const float wide = float32_of_float16(half), brain = float32_of_bfloat16(half);
        if (wide == wide)
            assert_int_equal(float16_of_float32(wide), half);
        else
            assert_true(float32_of_float16(float16_of_float32(wide)) != wide);
        if (brain == brain)
            assert_int_equal(bfloat16_of_float32(brain), half);
        else
            assert_true(float32_of_bfloat16(bfloat16_of_float32(brain)) != brain);
    }
}

TEST(halves_round_to_nearest_with_ties_to_even)
{
    assert_int_equal(float16_of_float32(1.0f + 0x1p-11f), 0x3c00); /* tie, down to even */
    assert_int_equal(float16_of_float32(1.0f + 0x3p-11f), 0x3c02); /* tie, up to even */
    assert_int_equal(float16_of_float32(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01); /* above the tie */
    assert_int_equal(float16_of_float32(0x1p-25f), 0); /* half the smallest */
    assert_int_equal(float16_of_float32(0x1.8p-25f), 1);
    assert_int_equal(float16_of_float32(65519.0f), 0x7bff);
    assert_int_equal(float16_of_float32(65520.0f), 0x7c00);
    assert_int_equal(float16_of_float32(-65520.0f), 0xfc00);
    assert_int_equal(bfloat16_of_float32(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(bfloat16_of_float32(1.0f + 0x3p-8f), 0x3f82);
    assert_int_equal(bfloat16_of_float32(3.4e38f), 0x7f80); /* above the largest: infinite */
}
