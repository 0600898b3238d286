/* SPDX-License-Identifier: Apache-2.0 */
/* combine.c -- contributions become one tensor: in their order, the same bits however it is cut. */
#include <math.h>

#include "unit.h"
#include "combine.h"
#include "half.h"

#define COUNT 5003u /* several tiles, and no multiple of any vector's length */
#define SOURCES 5u
#define BEYOND_BYTES 64u

/* Contributions that lie together for so many elements at a time. */
struct desk {
    uint8_t data[SOURCES][8 * COUNT];
    uint64_t together[SOURCES];
    size_t element;
    struct collective collective;
    struct update_sources sources;
    uint8_t out[8 * COUNT], other[8 * COUNT];
};

static struct desk desk;

/* What follows lies elsewhere. */
static const uint8_t *find(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    static uint8_t apart[SOURCES][8 * COUNT + BEYOND_BYTES];
    const struct desk *given = context;
    const uint64_t span = given->together[source] * given->element;
    const uint64_t left = COUNT * given->element - at;

    (void)slice;
    *together_bytes = span - at % span < left ? span - at % span : left;
    memcpy(apart[source], given->data[source] + at, *together_bytes);
    memset(apart[source] + *together_bytes, 0x55, BEYOND_BYTES);
    return apart[source];
}

static void begin(enum collective_operation operation, enum sumac_dtype dtype, uint32_t sources)
{
    memset(&desk, 0, sizeof desk);
    desk.collective =
        (struct collective){.operation = operation, .dtype = dtype, .elements = COUNT};
    desk.element = sumac_dtype_bytes(collective_contribution_dtype(&desk.collective));
    desk.sources = (struct update_sources){.count = sources, .find = find, .context = &desk};
    for (uint32_t s = 0; s < SOURCES; s++)
        desk.together[s] = (const uint64_t[]){COUNT, 1, 7, 1024, 3}[s];
}

/* In slices of so many elements. */
static void run(uint64_t step, double weight, uint8_t *out)
{
    const size_t element = sumac_dtype_bytes(desk.collective.dtype);

    for (uint64_t first = 0; first < COUNT; first += step) {
        const struct combine_slice slice = {
            .collective = &desk.collective,
            .sources = &desk.sources,
            .weight = weight,
            .first = first,
            .count = COUNT - first < step ? COUNT - first : step,
            .out = out + first * element};
        combine_run(&slice);
    }
}

/* Values whose sum goes by their order. */
static void fill_floats(void)
{
    for (uint32_t s = 0; s < SOURCES; s++)
        for (uint32_t i = 0; i < COUNT; i++)
            ((float *)(void *)desk.data[s])[i] =
                ldexpf((float)((i * 7919u + s * 104729u) % 2003u) - 1000, (int)(s * 5 % 17));
}

static float given(uint32_t source, uint32_t i)
{
    return ((const float *)(const void *)desk.data[source])[i];
}

static float made(const uint8_t *out, uint32_t i) { return ((const float *)(const void *)out)[i]; }

TEST(a_sum_goes_in_the_order_of_the_participants)
{
    begin(COLLECTIVE_SUM, SUMAC_FLOAT32, SOURCES);
    fill_floats();
    run(COUNT, 0, desk.out);

    for (uint32_t i = 0; i < COUNT; i++) {
        float sum = given(0, i);
        for (uint32_t s = 1; s < SOURCES; s++)
            sum += given(s, i);
        assert_memory_equal(&sum, desk.out + i * sizeof sum, sizeof sum);
    }
}

TEST(a_mean_is_the_sum_by_all_weights)
{
    begin(COLLECTIVE_MEAN, SUMAC_FLOAT32, 3);
    fill_floats();
    run(COUNT, 12, desk.out);

    for (uint32_t i = 0; i < COUNT; i++) {
        const float mean = (given(0, i) + given(1, i) + given(2, i)) / 12;
        assert_memory_equal(&mean, desk.out + i * sizeof mean, sizeof mean);
    }
}

TEST(the_least_and_the_largest_are_found)
{
    for (int largest = 0; largest < 2; largest++) {
        begin(largest ? COLLECTIVE_MAX : COLLECTIVE_MIN, SUMAC_FLOAT32, SOURCES);
        fill_floats();
        run(COUNT, 0, desk.out);
        for (uint32_t i = 0; i < COUNT; i++) {
            float value = given(0, i);
            for (uint32_t s = 1; s < SOURCES; s++)
                value = largest ? fmaxf(value, given(s, i)) : fminf(value, given(s, i));
            assert_true(made(desk.out, i) >= value && made(desk.out, i) <= value);
        }
    }
}

TEST(integers_wrap_around)
{
    begin(COLLECTIVE_SUM, SUMAC_UINT8, SOURCES);
    for (uint32_t s = 0; s < SOURCES; s++)
        memset(desk.data[s], 100 + (int)s, COUNT);
    run(COUNT, 0, desk.out);

    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(desk.out[i], (100 + 101 + 102 + 103 + 104) % 256);
}

TEST(a_half_type_is_rounded_once)
{
    begin(COLLECTIVE_SUM, SUMAC_BFLOAT16, 3);
    for (uint32_t i = 0; i < COUNT; i++) {
        ((float *)(void *)desk.data[0])[i] = 256; /* 257 is between two of bfloat16 */
        ((float *)(void *)desk.data[1])[i] = 1;
        ((float *)(void *)desk.data[2])[i] = 1;
    }
    run(COUNT, 0, desk.out);

    for (uint32_t i = 0; i < COUNT; i++) {
        uint16_t half;
        memcpy(&half, desk.out + i * sizeof half, sizeof half);
        assert_int_equal(half, 0x4381); /* 258 */
    }
}

TEST(one_alone_is_itself)
{
    for (enum collective_operation operation = COLLECTIVE_SUM; operation <= COLLECTIVE_MAX;
         operation++) {
        begin(operation, SUMAC_FLOAT32, 1);
        fill_floats();
        run(COUNT, 1, desk.out);
        assert_memory_equal(desk.out, desk.data[0], COUNT * sizeof(float));
    }
}

TEST(every_cut_has_the_same_bits)
{
    static const uint64_t steps[] = {1, 3, 64, 1000, 2049};

    for (enum collective_operation operation = COLLECTIVE_SUM; operation <= COLLECTIVE_MAX;
         operation++) {
        begin(operation, SUMAC_FLOAT32, SOURCES);
        fill_floats();
        run(COUNT, 7, desk.out);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            memset(desk.other, 0, sizeof desk.other);
            run(steps[i], 7, desk.other);
            assert_memory_equal(desk.out, desk.other, COUNT * sizeof(float));
        }
    }
}
