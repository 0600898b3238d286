/* SPDX-License-Identifier: Apache-2.0 */
/* update_sum.c (test) -- several contributions become one gradient: in their order, wherever their
 * bytes lie, by every table of loops alike. */
#include <math.h>

#include "unit.h"
#include "assert_number.h"
#include "half.h"
#include "loops.h"

#define COUNT 5003u /* several tiles, and no multiple of any vector's length */
#define SOURCES 4u
#define MOST_SOURCES 70u
#define BEYOND_BYTES 64u

/* Contributions of COUNT elements each, which lie together for so many elements at a time; those
 * from the fifth on are the same again. */
struct contributions {
    uint8_t data[SOURCES][8 * COUNT];
    uint32_t together[SOURCES];
    size_t element;
    uint32_t run;
};

static const uint8_t *find(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    static uint8_t apart[MOST_SOURCES][8 * COUNT + BEYOND_BYTES];
    const struct contributions *given = context;
    const uint64_t span = given->together[source % SOURCES] * given->element;

    assert_int_equal(slice->source_run, given->run);
    *together_bytes = span - at % span;
    const uint64_t left = COUNT * given->element - at;
    const size_t bytes = (size_t)(*together_bytes < left ? *together_bytes : left);
    memcpy(apart[source], given->data[source % SOURCES] + at, bytes);
    memset(apart[source] + bytes, 0x55, BEYOND_BYTES); /* what follows lies elsewhere */
    return apart[source];
}

static void fill(struct contributions *given, enum sumac_dtype dtype)
{
    const enum sumac_dtype type = update_contribution_dtype(dtype);

    *given = (struct contributions){
        .together = {COUNT, 1, 7, 1024}, .element = sumac_dtype_bytes(type), .run = 3};
    for (uint32_t s = 0; s < SOURCES; s++) {
        wire_initializer draw = WIRE_INITIALIZER_INIT;
        draw.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_NORMAL;
        draw.b = 1;
        draw.seed = s + 1;
        if (sumac_dtype_is_float(type))
            initializer_fill(&draw, type, 0, COUNT, given->data[s]);
        else
            for (size_t i = 0; i < COUNT * given->element; i++)
                given->data[s][i] = (uint8_t)(i * (s + 3) + i / 200);
    }
}

static struct update_slice
slice_of(const char *name, enum sumac_dtype dtype, const struct update_sources *sources)
{
    struct update_hyperparameters hyperparameters;
    const struct update_function *function = update_find_by_name(name);
    struct update_slice slice = {
        .function = function,
        .dtype = dtype,
        .count = COUNT,
        .sources = sources,
        .source_run = 3,
        .divisor = 1};

    assert_int_equal(
        update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL), SUMAC_OK);
    update_prepare(function, dtype, &hyperparameters, 2, &slice);
    return slice;
}

/* One after the other onto the first, by the plain loop. */
static void
add_up(const struct contributions *given, enum sumac_dtype dtype, uint32_t sources, void *sum)
{
    memcpy(sum, given->data[0], COUNT * given->element);
    for (uint32_t s = 1; s < sources; s++) {
        const void *const summands[] = {sum, given->data[s % SOURCES]};
        loops_plain.sum[dtype](sum, summands, 2, COUNT);
    }
}

/* The whole, and the same in two slices cut where no tile ends, is the update by the sum. */
static void check_sum_of(const char *name, enum sumac_dtype dtype, uint32_t count)
{
    static struct contributions given;
    static uint8_t sum[8 * COUNT], value[3][3][8 * COUNT];
    const struct update_sources sources = {.count = count, .find = find, .context = &given};
    const size_t element = sumac_dtype_bytes(dtype);
    const uint64_t cut = 1001;

    fill(&given, dtype);
    add_up(&given, dtype, count, sum);
    memset(value, 0, sizeof value);
    struct update_slice slice = slice_of(name, dtype, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        slice = slice_of(name, dtype, i == 0 ? NULL : &sources);
        slice.gradient = sum;
        slice.value_in = slice.value_out = value[i][0];
        slice.slot_in[0] = slice.slot_out[0] = value[i][1];
        slice.slot_in[1] = slice.slot_out[1] = value[i][2];
        if (i == 2)
            slice.count = cut;
        update_run(&slice);
    }
    slice.count = COUNT - cut;
    slice.source_at = cut * given.element;
    slice.value_in = slice.value_out = value[2][0] + cut * element;
    slice.slot_in[0] = slice.slot_out[0] = value[2][1] + cut * element;
    slice.slot_in[1] = slice.slot_out[1] = value[2][2] + cut * element;
    update_run(&slice);

    assert_memory_equal(value[1], value[0], sizeof value[0]);
    assert_memory_equal(value[2], value[0], sizeof value[0]);
}

static void check_sum(const char *name, enum sumac_dtype dtype)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 7, 8, MOST_SOURCES};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check_sum_of(name, dtype, counts[i]);
}

TEST(an_update_by_a_sum_is_that_of_the_summed_gradient)
{
    check_sum("assign", SUMAC_FLOAT32);
    check_sum("assign_add", SUMAC_INT8);
    check_sum("assign_sub", SUMAC_UINT16);
    check_sum("assign_add", SUMAC_INT32);
    check_sum("assign_add", SUMAC_INT64);
    check_sum("sgd", SUMAC_FLOAT32);
    check_sum("momentum", SUMAC_FLOAT64);
    check_sum("adam", SUMAC_FLOAT32);
}

/* (1e8 + 1) − 1e8 is 0 in float32, and (1e8 − 1e8) + 1 is 1. */
TEST(contributions_are_added_in_their_order)
{
    static struct contributions given;
    const struct update_sources sources = {.count = 3, .find = find, .context = &given};
    float value[2] = {0, 0};
    struct update_slice slice = slice_of("assign", SUMAC_FLOAT32, &sources);

    given = (struct contributions){.together = {2, 1, 2}, .element = sizeof(float), .run = 3};
    memcpy(given.data[0], (float[]){1e8f, 1e8f}, sizeof value);
    memcpy(given.data[1], (float[]){1, -1e8f}, sizeof value);
    memcpy(given.data[2], (float[]){-1e8f, 1}, sizeof value);
    slice.count = 2;
    slice.value_in = slice.value_out = value;
    update_run(&slice);

    assert_true(value[0] >= 0 && value[0] <= 0);
    assert_true(value[1] >= 1 && value[1] <= 1);
}

TEST(a_mean_is_the_sum_divided_by_the_weights)
{
    static struct contributions given;
    static float value[COUNT], sum[COUNT];

    fill(&given, SUMAC_FLOAT32);
    for (uint32_t count = 1; count <= 9; count++) {
        const struct update_sources sources = {.count = count, .find = find, .context = &given};
        struct update_slice slice = slice_of("assign", SUMAC_FLOAT32, &sources);
        add_up(&given, SUMAC_FLOAT32, count, sum);
        slice.divisor = 7;
        slice.value_in = slice.value_out = value;
        update_run(&slice);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_memory_equal(&value[i], &(float){sum[i] / 7.0f}, sizeof value[i]);
    }
}

/* 1 + half a unit of its last place and a little more is the next value: but not when the
 * contributions, or their sum, are rounded to the type before they are added to it. */
TEST(half_types_are_summed_in_float32_and_rounded_once)
{
    static struct contributions given;
    const struct update_sources sources = {.count = 2, .find = find, .context = &given};

    for (int i = 0; i < 2; i++) {
        const enum sumac_dtype dtype = i == 0 ? SUMAC_FLOAT16 : SUMAC_BFLOAT16;
        const float half_a_unit = i == 0 ? 0x1p-11f : 0x1p-8f;
        const float little = i == 0 ? 0x1p-22f : 0x1p-17f;
        const float next = 1 + 2 * half_a_unit;
        uint16_t one = i == 0 ? float16_of_float32(1) : bfloat16_of_float32(1);
        struct update_slice slice = slice_of("assign_add", dtype, &sources);

        given = (struct contributions){.together = {1, 1}, .element = sizeof(float), .run = 3};
        memcpy(given.data[0], &half_a_unit, sizeof half_a_unit);
        memcpy(given.data[1], &little, sizeof little);
        slice.count = 1;
        slice.value_in = slice.value_out = &one;
        update_run(&slice);

        assert_int_equal(one, i == 0 ? float16_of_float32(next) : bfloat16_of_float32(next));
    }
    assert_int_equal(update_contribution_dtype(SUMAC_FLOAT16), SUMAC_FLOAT32);
    assert_int_equal(update_contribution_dtype(SUMAC_BFLOAT16), SUMAC_FLOAT32);
    assert_int_equal(update_contribution_dtype(SUMAC_INT16), SUMAC_INT16);
}

static const double scales[] = {2, 1, -0.25, 1};

static double scale_of(const void *context, uint32_t source)
{
    assert_non_null(context);
    return scales[source % 4];
}

/* Σ scaleᵢ·cᵢ ÷ divisor, then clipped: each source scaled before it is added, in its order. */
TEST(sources_are_scaled_then_added_then_clipped)
{
    static struct contributions given;
    static float value[COUNT];

    fill(&given, SUMAC_FLOAT32);
    for (uint32_t count = 1; count <= 9; count++) {
        const struct update_sources sources = {
            .count = count, .find = find, .scale_of = scale_of, .context = &given};
        struct update_slice slice = slice_of("assign", SUMAC_FLOAT32, &sources);
        slice.divisor = 3;
        slice.clip = 0.5;
        slice.value_in = slice.value_out = value;
        update_run(&slice);
        for (uint32_t i = 0; i < COUNT; i++) {
            float sum = 0;
            for (uint32_t s = 0; s < count; s++) {
                float one;
                memcpy(&one, given.data[s % SOURCES] + 4 * i, sizeof one);
                one *= (float)scales[s % 4];
                sum = s == 0 ? one : sum + one;
            }
            sum /= 3;
            sum = sum > 0.5f ? 0.5f : sum < -0.5f ? -0.5f : sum;
            assert_memory_equal(&value[i], &sum, sizeof sum);
        }
    }
}

/* One gradient of more than a tile, of a type that is as wide as the arithmetic's and of one that
 * is not. */
TEST(a_scaled_gradient_is_that_of_its_elements)
{
    static float wide[COUNT], gradient[COUNT];
    static uint16_t half[COUNT], half_gradient[COUNT];
    struct update_slice slice = slice_of("assign", SUMAC_FLOAT32, NULL);

    for (uint32_t i = 0; i < COUNT; i++) {
        gradient[i] = (float)(i % 100);
        half_gradient[i] = bfloat16_of_float32(gradient[i]);
    }
    slice.scale = 0.25;
    slice.clip = 20;
    slice.value_in = slice.value_out = wide;
    slice.gradient = gradient;
    update_run(&slice);
    slice.dtype = SUMAC_BFLOAT16;
    slice.value_in = slice.value_out = half;
    slice.gradient = half_gradient;
    update_run(&slice);

    for (uint32_t i = 0; i < COUNT; i++) {
        const float expected = gradient[i] > 80 ? 20 : gradient[i] / 4;
        assert_number_equal(wide[i], expected);
        assert_int_equal(half[i], bfloat16_of_float32(expected));
    }
    slice.scale = 2;
    slice.clip = 0;
    update_run(&slice);
    assert_int_equal(half[99], bfloat16_of_float32(198));
    slice.scale = 1; /* clipped alone */
    slice.clip = 20;
    update_run(&slice);
    assert_int_equal(half[99], bfloat16_of_float32(20));
    assert_int_equal(half[19], bfloat16_of_float32(19));
    slice.scale = 0; /* the same as 1; and a NaN stays a NaN */
    half_gradient[19] = bfloat16_of_float32(NAN);
    update_run(&slice);
    assert_int_equal(half[99], bfloat16_of_float32(20));
    assert_true(isnan(float32_of_bfloat16(half[19])));
}

/* More of them than a tile has, in one go: sgd on float32, rounded. */
TEST(wide_gradients_are_those_of_their_elements)
{
    static float wide[COUNT], gradient[COUNT];
    static uint16_t half[COUNT], expected[COUNT];
    struct update_slice slice = slice_of("sgd", SUMAC_FLOAT32, NULL);

    for (uint32_t i = 0; i < COUNT; i++) {
        half[i] = bfloat16_of_float32((float)(i % 100));
        wide[i] = float32_of_bfloat16(half[i]);
        gradient[i] = (float)i;
    }
    slice.value_in = slice.value_out = wide;
    slice.gradient = gradient;
    update_run(&slice);
    for (uint32_t i = 0; i < COUNT; i++)
        expected[i] = bfloat16_of_float32(wide[i]);

    slice.dtype = SUMAC_BFLOAT16;
    slice.value_in = slice.value_out = half;
    loops_find(loops_select(), update_find(UPDATE_SGD), SUMAC_BFLOAT16, true)(&slice);

    assert_memory_equal(half, expected, sizeof expected);
}

/* For each type that there is: what can be added and divided, and by which bits. */
TEST(every_table_adds_and_divides_alike)
{
    static struct contributions given;
    static uint8_t plain[8 * COUNT], other[8 * COUNT];
    const struct loops *table;

    for (uint32_t t = 0; (table = loops_at(t)) != NULL; t++) {
        for (int number = SUMAC_BOOL; number <= SUMAC_FLOAT64; number++) {
            const enum sumac_dtype dtype = (enum sumac_dtype)number;
            fill(&given, dtype);
            assert_int_equal(update_can_add(dtype), dtype != SUMAC_BOOL);
            assert_int_equal(update_can_divide(dtype), sumac_dtype_is_float(dtype));
            memcpy(plain, given.data[0], sizeof plain);
            memcpy(other, given.data[0], sizeof other);
            for (uint32_t count = 1; count <= LOOPS_SUMMANDS; count++) {
                const void *summands[] = {plain, given.data[1], given.data[2], given.data[3]};
                if (count > 1 && table->sum[dtype] != NULL)
                    loops_plain.sum[dtype](plain, summands, count, COUNT);
                if (table->mean[dtype] != NULL)
                    loops_plain.mean[dtype](plain, summands, count, 3, COUNT);
                summands[0] = other;
                if (count > 1 && table->sum[dtype] != NULL)
                    table->sum[dtype](other, summands, count, COUNT);
                if (table->mean[dtype] != NULL)
                    table->mean[dtype](other, summands, count, 3, COUNT);
                assert_memory_equal(other, plain, sizeof plain);
            }
        }
    }
}

/* What makes a half type's value of a float32 gradient, in place and not. */
TEST(every_table_rounds_wide_gradients_alike)
{
    static struct contributions given;
    static uint16_t plain[COUNT], other[COUNT], value[COUNT];
    const struct loops *table;

    for (uint32_t t = 0; (table = loops_at(t)) != NULL; t++) {
        for (uint32_t f = UPDATE_ASSIGN; f <= UPDATE_ASSIGN_SUB; f++) {
            for (int i = 0; i < 2; i++) {
                const enum sumac_dtype dtype = i == 0 ? SUMAC_FLOAT16 : SUMAC_BFLOAT16;
                struct update_slice slice = {
                    .function = update_find(f),
                    .dtype = dtype,
                    .count = COUNT,
                    .gradient = given.data[0],
                    .value_in = value,
                    .value_out = plain};

                fill(&given, dtype);
                memcpy(value, given.data[1], sizeof value);
                loops_find(&loops_plain, update_find(f), dtype, true)(&slice);
                slice.value_out = other;
                loops_find(table, update_find(f), dtype, true)(&slice);
                assert_memory_equal(other, plain, sizeof plain);
            }
        }
    }
}
