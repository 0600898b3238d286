/* SPDX-License-Identifier: Apache-2.0 */
/* update_rows.c (test) -- rows that are scaled and clipped: with the bits of a dense push of what
 * they sum up to, whether they occur once or often, and however they are cut into slices. */

#include "unit.h"
#include "loops.h"

#define COLUMNS 701u /* several tiles, and no multiple of any vector's length */
#define ROWS 4u
#define LISTS 3u /* of a value and its slots */
#define OCCURRENCES 13u
#define ELEMENT_BYTES_MAX 8u
#define ROW_BYTES_MAX (ELEMENT_BYTES_MAX * COLUMNS)

/* Of one row more than are summed at a time. */
static const uint32_t row_of[OCCURRENCES] = {0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3};

/* What is pushed, and with what. */
struct pushed {
    const char *function;
    enum sumac_dtype dtype;
    double scale, clip, divisor; /* by 0: undivided */
    double own[OCCURRENCES];     /* a scale of each occurrence; 0: none */
    _Alignas(64) uint8_t gradient[OCCURRENCES][ROW_BYTES_MAX];
};

struct table {
    _Alignas(64) uint8_t list[LISTS][ROWS][ROW_BYTES_MAX];
};

static bool is_half(enum sumac_dtype dtype) { return sumac_dtype_kind(dtype) == SUMAC_KIND_HALF; }

static void draw(struct pushed *pushed)
{
    _Alignas(64) uint8_t drawn[ROW_BYTES_MAX];
    const enum sumac_dtype type = update_contribution_dtype(pushed->dtype);

    for (uint32_t i = 0; i < OCCURRENCES; i++) {
        wire_initializer normal = WIRE_INITIALIZER_INIT;

        normal.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_NORMAL;
        normal.b = 1;
        normal.seed = i + 1;
        initializer_fill(&normal, type, 0, COLUMNS, drawn);
        if (is_half(pushed->dtype))
            loops_plain.narrow[pushed->dtype](
                pushed->gradient[i], (const float *)(const void *)drawn, COLUMNS);
        else
            memcpy(pushed->gradient[i], drawn, sizeof drawn);
    }
}

static struct update_slice slice_of(const struct pushed *pushed)
{
    struct update_hyperparameters hyperparameters;
    const struct update_function *function = update_find_by_name(pushed->function);
    struct update_slice slice = {
        .function = function, .dtype = pushed->dtype, .count = COLUMNS, .divisor = 1};

    assert_int_equal(
        update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL), SUMAC_OK);
    update_prepare(function, pushed->dtype, &hyperparameters, 2, &slice);
    slice.scale = pushed->scale;
    slice.clip = pushed->clip;
    if (pushed->divisor != 0)
        slice.divisor = pushed->divisor;
    return slice;
}

/* One after the other by the plain loops, in the type of contributions, each by its own scale. */
static void add_up(const struct pushed *pushed, uint32_t row, uint8_t *sum)
{
    _Alignas(64) uint8_t one[ROW_BYTES_MAX];
    const enum sumac_dtype dtype = pushed->dtype;
    const size_t element = sumac_dtype_bytes(update_contribution_dtype(dtype));
    bool any = false;

    for (uint32_t i = 0; i < OCCURRENCES; i++) {
        const void *const summands[] = {sum, one};

        if (row_of[i] != row)
            continue;
        memcpy(one, pushed->gradient[i], sizeof one);
        if (is_half(dtype))
            loops_plain.widen[dtype]((float *)(void *)one, pushed->gradient[i], COLUMNS);
        if (pushed->own[i] != 0)
            loops_plain.condition[dtype](one, one, pushed->own[i], __builtin_inf(), COLUMNS);
        if (any)
            loops_plain.sum[dtype](sum, summands, 2, COLUMNS);
        else
            memcpy(sum, one, COLUMNS * element);
        any = true;
    }
}

/* The only source is the sum. */
static const uint8_t *find(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    assert_int_equal(source, 0);
    *together_bytes =
        slice->count * sumac_dtype_bytes(update_contribution_dtype(slice->dtype)) - at;
    return (const uint8_t *)context + at;
}

static const struct pushed *scaled_by;
static double scale_of(const void *context, uint32_t source)
{
    (void)context;
    (void)source;
    return scaled_by->scale != 0 ? scaled_by->scale : 1;
}

/* Each row as a dense push of its sum. */
static void push_densely(const struct pushed *pushed, struct table *table)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        _Alignas(64) uint8_t sum[ROW_BYTES_MAX];
        const struct update_sources sources = {
            .count = 1, .find = find, .scale_of = scale_of, .context = sum};
        struct update_slice slice = slice_of(pushed);
        scaled_by = pushed;
        add_up(pushed, row, sum);
        slice.sources = &sources;
        slice.scale = 1; /* the source has it */
        slice.value_in = slice.value_out = table->list[0][row];
        for (uint32_t i = 1; i < LISTS; i++)
            slice.slot_in[i - 1] = slice.slot_out[i - 1] = table->list[i][row];
        update_run(&slice);
    }
}

/* All occurrences, in two slices that are cut before occurrence `cut`; 0: in one. */
static void push_by_rows(const struct pushed *pushed, uint32_t cut, struct table *table)
{
    static _Alignas(64) uint8_t carry[ROW_BYTES_MAX];
    struct update_row rows[OCCURRENCES];
    struct update_slice slice = slice_of(pushed);

    for (uint32_t i = 0; i < OCCURRENCES; i++) {
        rows[i] = (struct update_row){.gradient = pushed->gradient[i], .scale = pushed->own[i]};
        for (uint32_t list = 0; list <= slice.function->slot_count; list++)
            rows[i].at[list] = table->list[list][row_of[i]];
    }
    slice.rows = rows;
    slice.carry = carry;
    slice.row_count = cut;
    slice.carries = cut > 0 && row_of[cut - 1] == row_of[cut];
    if (cut > 0)
        update_run(&slice);
    slice.rows = rows + cut;
    slice.row_count = OCCURRENCES - cut;
    slice.carried = slice.carries;
    slice.carries = false;
    update_run(&slice);
}

static void check(struct pushed *pushed)
{
    static const enum sumac_dtype dtypes[] = {
        SUMAC_FLOAT32, SUMAC_FLOAT64, SUMAC_FLOAT16, SUMAC_BFLOAT16};
    static const uint32_t cuts[] = {0, 3, 6, 12};
    static const char *const functions[] = {"sgd", "momentum", "adam"};
    static struct table densely, by_rows;

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes * 3; i++) {
        pushed->dtype = dtypes[i / 3];
        pushed->function = functions[i % 3];
        draw(pushed);
        memset(&densely, 0, sizeof densely);
        push_densely(pushed, &densely);
        for (size_t j = 0; j < sizeof cuts / sizeof *cuts; j++) {
            memset(&by_rows, 0, sizeof by_rows);
            push_by_rows(pushed, cuts[j], &by_rows);
            assert_memory_equal(&by_rows, &densely, sizeof densely);
        }
    }
}

TEST(rows_without_either_are_a_dense_push)
{
    static struct pushed pushed;

    check(&pushed);
}

TEST(scaled_rows_are_a_scaled_dense_push)
{
    static struct pushed pushed = {.scale = -0.37};

    check(&pushed);
}

TEST(clipped_rows_are_a_clipped_dense_push)
{
    static struct pushed pushed = {.clip = 0.4};

    check(&pushed);
}

TEST(what_is_scaled_is_clipped_after_that)
{
    static struct pushed pushed = {.scale = 0.37, .clip = 0.4};

    check(&pushed);
}

TEST(occurrences_with_scales_of_their_own_are_scaled_before_they_are_summed)
{
    static struct pushed pushed = {
        .clip = 0.4, .own = {0.37, 1, 3, -0.7, 0.1, 1e-3, 0, 0, 2, 0, 5, 0.2, 0}};

    check(&pushed);
}

/* Wherever the slices are cut, and also where a row goes on in the next one. */
TEST(means_are_divided_once)
{
    static struct pushed pushed = {.divisor = 3}, clipped = {.divisor = 3, .clip = 0.4};

    check(&pushed);
    check(&clipped);
}

/* Products, quotients and extremes are applied in turn, each scaled. */
TEST(in_turn_each_is_scaled)
{
    float value[] = {1, 2};
    const float gradient[2][2] = {{3, 8}, {4, 5}};
    struct pushed pushed = {.function = "multiply", .dtype = SUMAC_FLOAT32, .scale = 0.5};
    struct update_slice slice = slice_of(&pushed);
    const struct update_row rows[] = {
        {.at = {(uint8_t *)value}, .gradient = (const uint8_t *)gradient[0]},
        {.at = {(uint8_t *)value}, .gradient = (const uint8_t *)gradient[1]}};

    slice.rows = rows;
    slice.row_count = 2;
    slice.count = 2;

    update_run(&slice);

    assert_true(value[0] >= 3 && value[0] <= 3);
    assert_true(value[1] >= 20 && value[1] <= 20);
}

/* ---- their order */

static int compare_keys(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return a < b ? -1 : a > b;
}

/* Of tables of any height, and of few rows as of many: 48 and more are ordered another way. */
TEST(occurrences_are_put_in_the_order_of_their_rows)
{
    static const uint32_t counts[] = {0, 1, 2, 47, 48, 49, 1000, UPDATE_ROWS_TOGETHER_MAX};
    static uint64_t keys[UPDATE_ROWS_TOGETHER_MAX], scratch[UPDATE_ROWS_TOGETHER_MAX];
    static uint64_t right[UPDATE_ROWS_TOGETHER_MAX];
    uint64_t drawn = 42;

    for (unsigned bits = 1; bits <= 64 - UPDATE_ROW_PLACE_BITS; bits++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            for (uint32_t place = 0; place < counts[i]; place++) {
                drawn = drawn * 6364136223846793005u + 1442695040888963407u;
                keys[place] = update_row_key(drawn >> (64 - bits), place);
            }
            memcpy(right, keys, counts[i] * sizeof *keys);
            if (counts[i] > 1)
                qsort(right, counts[i], sizeof *right, compare_keys);
            update_rows_order(keys, scratch, counts[i]);
            assert_memory_equal(keys, right, counts[i] * sizeof *keys);
        }
    }
}

/* It is scaled, carried and widened as those are of which a row has several. */
TEST(a_row_that_occurs_once_is_as_whole_as_another)
{
    float value[] = {0, 0}, gradient[] = {2, 4}, carry[] = {1, 1};
    uint16_t half[] = {0, 0};
    struct update_row rows[] = {
        {.at = {(uint8_t *)value}, .gradient = (const uint8_t *)gradient, .scale = 3},
        {.at = {(uint8_t *)half}, .gradient = (const uint8_t *)gradient}};
    struct update_slice slice = {
        .function = update_find(UPDATE_ASSIGN_ADD),
        .dtype = SUMAC_FLOAT32,
        .count = 2,
        .divisor = 1,
        .rows = rows,
        .row_count = 1};

    update_run(&slice);
    assert_memory_equal(value, ((const float[]){6, 12}), sizeof value);

    rows[0].scale = 1;
    slice.carried = true;
    slice.carry = carry;
    update_run(&slice);
    assert_memory_equal(value, ((const float[]){9, 17}), sizeof value);

    slice.carried = false;
    slice.wide = true; /* gradients are float32 as they come */
    slice.dtype = SUMAC_FLOAT16;
    slice.rows = &rows[1];
    update_run(&slice);
    assert_memory_equal(half, ((const uint16_t[]){0x4000, 0x4400}), sizeof half); /* 2, 4 */

    struct update_row twice[] = {rows[1], rows[1]};
    slice.rows = twice;
    slice.row_count = 2;
    update_run(&slice);
    assert_memory_equal(half, ((const uint16_t[]){0x4600, 0x4a00}), sizeof half); /* 6, 12 */
}
