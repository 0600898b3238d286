/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c -- each kernel beside its loop in C: of no element, of one, of odd counts and of more
 * than there are threads, from places that no wide load could begin at, into memory that held
 * something else. On a GPU it is the kernel that nvcc made; with the stand-in, a twin. */
#include "kernels.h"

#include <inttypes.h>

#include "unit.h"
#include "elements.h"
#include "half.h"
#include "kernel_world.h"

#define COUNT_MAX 270001u
#define SKIP_MAX 3u /* elements before the first one */

/* What a kernel is to do: of its arrays it has those elements that come after what is skipped. */
struct deed {
    enum cuda_kernel kernel;
    enum sumac_dtype to, from; /* of an array's elements */
    uint64_t count, to_skip, from_skip;
    double by;
};

static uint8_t to[(COUNT_MAX + SKIP_MAX + 1) * sizeof(double)], from[sizeof to], before[sizeof to],
    expected[sizeof to];

static CUresult
launch(const struct kernel_world *world, const struct kernel_array *arrays, const void *context)
{
    const struct deed *deed = context;

    return cuda_kernel_launch(
        world->driver, &world->kernels, deed->kernel,
        &(struct cuda_kernel_arguments){
            .to = arrays[0].address + deed->to_skip * sumac_dtype_bytes(deed->to),
            .from = arrays[1].address + deed->from_skip * sumac_dtype_bytes(deed->from),
            .count = deed->count,
            .by = deed->by,
        },
        ((struct cuda_queue *)world->queue)->stream);
}

static void poison(const struct deed *deed)
{
    memset(to, KERNEL_POISON, (deed->to_skip + deed->count + 1) * sumac_dtype_bytes(deed->to));
}

/* `to` is poison where the kernel has no business: before what is skipped, and behind the last. */
static void run(const struct kernel_world *world, const struct deed *deed)
{
    const uint64_t to_bytes = sumac_dtype_bytes(deed->to);
    const uint64_t bytes = (deed->to_skip + deed->count + 1) * to_bytes;
    const uint64_t from_bytes = (deed->from_skip + deed->count) * sumac_dtype_bytes(deed->from);
    struct kernel_array arrays[] = {{to, bytes, 0}, {from, from_bytes, 0}};

    memcpy(before, from, from_bytes);
    kernel_world_run(world, arrays, 2, launch, deed);
    kernel_assert_poisoned(to, bytes, deed->to_skip * to_bytes, deed->count * to_bytes);
    assert_memory_equal(from, before, from_bytes);
}

/* Around the widths of tiles, and of all that a block's threads have at once. */
static const uint64_t counts[] = {0,  1,  2,  3,   4,   5,    7,    8,     9,     15,
                                  16, 17, 31, 255, 257, 4095, 4097, 16385, 70001, COUNT_MAX};
#define COUNTS (sizeof counts / sizeof counts[0])

typedef void deed_check(const struct kernel_world *world, struct deed *deed);

/* Of every count, with arrays that are aligned, that are after some elements, and that are nowhere
 * aligned at once; where the launch has a thread for each tile, and where it has not. */
static void of_every_shape(struct kernel_world *world, struct deed deed, deed_check *check)
{
    static const struct {
        uint64_t to, from;
    } skips[] = {{0, 0}, {1, 1}, {3, 3}, {0, 1}, {1, 0}};
    const uint32_t blocks_max = world->kernels.blocks_max;

    for (size_t c = 0; c < COUNTS; c++)
        for (size_t s = 0; s < sizeof skips / sizeof skips[0]; s++) {
            deed.count = counts[c];
            deed.to_skip = skips[s].to;
            deed.from_skip = skips[s].from;
            world->kernels.blocks_max = c % 2 == 0 ? blocks_max : 2;
            check(world, &deed);
        }
    world->kernels.blocks_max = blocks_max;
}

/* ---- casts */

static void check_integers(const struct kernel_world *world, struct deed *deed)
{
    const bool widens = deed->kernel == CUDA_KERNEL_WIDEN_INT16;

    kernel_fill(
        from, (deed->from_skip + deed->count) * sumac_dtype_bytes(deed->from), 1); /* given */
    poison(deed);

    run(world, deed); /* when */

    for (uint64_t i = 0; i < deed->count; i++) { /* then */
        const uint64_t out = deed->to_skip + i, in = deed->from_skip + i;
        if (widens)
            assert_int_equal(((uint32_t *)to)[out], ((uint16_t *)from)[in]);
        else
            assert_int_equal(((uint16_t *)to)[out], (uint16_t)((uint32_t *)from)[in]);
    }
}

STATE_TEST(integers_are_widened_and_cut_off_again, NULL, NULL)
{
    of_every_shape(
        *state, (struct deed){CUDA_KERNEL_WIDEN_INT16, SUMAC_UINT32, SUMAC_UINT16, 0, 0, 0, 0},
        check_integers);
    of_every_shape(
        *state, (struct deed){CUDA_KERNEL_NARROW_INT16, SUMAC_UINT16, SUMAC_UINT32, 0, 0, 0, 0},
        check_integers);
}

static const struct half {
    enum sumac_dtype dtype;
    enum cuda_kernel widen, narrow, scale, accumulate;
    float (*wide)(uint16_t half);
    uint16_t (*narrowed)(float value);
} halves[] = {
    {SUMAC_FLOAT16, CUDA_KERNEL_WIDEN_FLOAT16, CUDA_KERNEL_NARROW_FLOAT16,
     CUDA_KERNEL_SCALE_FLOAT16, CUDA_KERNEL_ACCUMULATE_FLOAT16, float32_of_float16,
     float16_of_float32},
    {SUMAC_BFLOAT16, CUDA_KERNEL_WIDEN_BFLOAT16, CUDA_KERNEL_NARROW_BFLOAT16,
     CUDA_KERNEL_SCALE_BFLOAT16, CUDA_KERNEL_ACCUMULATE_BFLOAT16, float32_of_bfloat16,
     bfloat16_of_float32},
};

static const struct half *half_of(const struct deed *deed)
{
    return &halves[deed->to == SUMAC_BFLOAT16 || deed->from == SUMAC_BFLOAT16];
}

/* Every half that there is is among the largest counts. */
static void check_widened(const struct kernel_world *world, struct deed *deed)
{
    const uint64_t skipped = deed->from_skip, skip = deed->to_skip;

    for (uint64_t i = 0; i < skipped + deed->count; i++) /* given */
        ((uint16_t *)from)[i] = (uint16_t)(i * 40503);
    poison(deed);
    for (uint64_t i = 0; i < deed->count; i++)
        ((float *)expected)[skip + i] =
            half_of(deed)->wide(((uint16_t *)from)[skipped + i]) * (float)deed->by;

    run(world, deed); /* when */

    kernel_assert_same(SUMAC_FLOAT32, to, expected, skip, deed->count, "widened"); /* then */
}

STATE_TEST(every_half_is_widened_times_its_weight, NULL, NULL)
{
    for (int i = 0; i < 2; i++)
        of_every_shape(
            *state, (struct deed){halves[i].widen, SUMAC_FLOAT32, halves[i].dtype, 0, 0, 0, 3.3},
            check_widened);
}

/* Floats of every sign and exponent, between halves too: rounded once to the nearest, and to an
 * even one of two. */
static void check_narrowed(const struct kernel_world *world, struct deed *deed)
{
    const uint64_t skipped = deed->from_skip, skip = deed->to_skip;

    for (uint32_t i = 0; i < skipped + deed->count; i++) /* given */
        ((uint32_t *)from)[i] = i * UINT32_C(3579) ^ (i << 12);
    poison(deed);
    for (uint64_t i = 0; i < deed->count; i++)
        ((uint16_t *)expected)[skip + i] =
            half_of(deed)->narrowed(((float *)from)[skipped + i] / (float)deed->by);

    run(world, deed); /* when */

    kernel_assert_same(deed->to, to, expected, skip, deed->count, "narrowed"); /* then */
}

STATE_TEST(quotients_are_rounded_once_to_a_half, NULL, NULL)
{
    for (int i = 0; i < 4; i++)
        of_every_shape(
            *state,
            (struct deed){
                halves[i / 2].narrow, halves[i / 2].dtype, SUMAC_FLOAT32, 0, 0, 0,
                i % 2 == 0 ? 1 : 3},
            check_narrowed);
}

/* ---- scale and accumulate */

static void check_scaled(const struct kernel_world *world, struct deed *deed)
{
    const uint64_t bytes = sumac_dtype_bytes(deed->to);
    uint8_t *const wanted = expected + deed->to_skip * bytes;
    const uint8_t *const given = from + deed->from_skip * bytes;

    kernel_fill(from, (deed->from_skip + deed->count) * bytes, 2); /* given */
    poison(deed);
    if (bytes == 2)
        for (uint64_t i = 0; i < deed->count; i++)
            ((uint16_t *)(void *)wanted)[i] = half_of(deed)->narrowed(
                half_of(deed)->wide(((const uint16_t *)(const void *)given)[i]) * (float)deed->by);
    else {
        memcpy(wanted, given, deed->count * bytes);
        arithmetic_of(deed->to)->scale(wanted, deed->by, deed->count);
    }

    run(world, deed); /* when */

    kernel_assert_same(deed->to, to, expected, deed->to_skip, deed->count, "scaled"); /* then */
}

STATE_TEST(a_product_has_the_bits_of_the_cpus, NULL, NULL)
{
    static const struct deed deeds[] = {
        {CUDA_KERNEL_SCALE_FLOAT16, SUMAC_FLOAT16, SUMAC_FLOAT16, 0, 0, 0, 0.3},
        {CUDA_KERNEL_SCALE_BFLOAT16, SUMAC_BFLOAT16, SUMAC_BFLOAT16, 0, 0, 0, 0.3},
        {CUDA_KERNEL_SCALE_FLOAT32, SUMAC_FLOAT32, SUMAC_FLOAT32, 0, 0, 0, 0.3},
        {CUDA_KERNEL_SCALE_FLOAT64, SUMAC_FLOAT64, SUMAC_FLOAT64, 0, 0, 0, 0.3},
    };

    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        of_every_shape(*state, deeds[i], check_scaled);
}

/* Numbers of a size, whose products have more bits than a float: one rounding for two would be
 * seen. */
static void fill_numbers(enum sumac_dtype dtype, void *data, uint64_t count, uint64_t seed)
{
    uint32_t drawn[2];

    for (uint64_t i = 0; i < count; i++) {
        kernel_fill(drawn, sizeof drawn, seed + i * 7919);
        const double number = ((double)drawn[0] - 0x1p31) / 0x1p30 + drawn[1] * 0x1p-62;
        if (dtype == SUMAC_FLOAT64)
            ((double *)data)[i] = number;
        else if (dtype == SUMAC_FLOAT32)
            ((float *)data)[i] = (float)number;
        else
            ((uint16_t *)data)[i] = halves[dtype == SUMAC_BFLOAT16].narrowed((float)number);
    }
}

static void check_accumulated(const struct kernel_world *world, struct deed *deed)
{
    const uint64_t bytes = sumac_dtype_bytes(deed->to);
    float *const wide = malloc((deed->count + 1) * sizeof *wide);
    uint8_t *const wanted = expected + deed->to_skip * bytes;
    const void *given = from + deed->from_skip * sumac_dtype_bytes(deed->from);

    assert_non_null(wide);
    fill_numbers(deed->from, from, deed->from_skip + deed->count, 3); /* given */
    poison(deed);
    fill_numbers(deed->to, to + deed->to_skip * bytes, deed->count, 4);
    memcpy(wanted, to + deed->to_skip * bytes, deed->count * bytes);
    if (deed->from != deed->to) {
        arithmetic_of(deed->from)->widen(given, wide, deed->count);
        given = wide;
    }
    arithmetic_of(deed->to)->add_scaled(wanted, given, deed->by, deed->count);

    run(world, deed); /* when */

    kernel_assert_same(deed->to, to, expected, deed->to_skip, deed->count, "added"); /* then */
    free(wide);
}

STATE_TEST(a_weighted_sum_is_rounded_twice_like_the_cpus, NULL, NULL)
{
    static const struct deed deeds[] = {
        {CUDA_KERNEL_ACCUMULATE_FLOAT16, SUMAC_FLOAT32, SUMAC_FLOAT16, 0, 0, 0, 0.3},
        {CUDA_KERNEL_ACCUMULATE_BFLOAT16, SUMAC_FLOAT32, SUMAC_BFLOAT16, 0, 0, 0, 0.3},
        {CUDA_KERNEL_ACCUMULATE_FLOAT32, SUMAC_FLOAT32, SUMAC_FLOAT32, 0, 0, 0, 0.3},
        {CUDA_KERNEL_ACCUMULATE_FLOAT64, SUMAC_FLOAT64, SUMAC_FLOAT64, 0, 0, 0, 0.3},
    };

    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        of_every_shape(*state, deeds[i], check_accumulated);
}

/* ---- finite */

/* An infinity of the type, or the largest number that it has, at one place. */
static void check_finite(
    const struct kernel_world *world, const struct deed *deed, uint64_t place, bool is_finite)
{
    static const uint64_t infinities[] = {
        [2] = 0x7c00, [3] = 0x7f80, [4] = 0x7f800000, [8] = UINT64_C(0x7ff0000000000000)};
    const uint64_t bytes = sumac_dtype_bytes(deed->from);
    const uint64_t infinity = infinities[bytes + (deed->from == SUMAC_BFLOAT16)];
    const uint64_t sign = place % 2 << (8 * bytes - 1), last = is_finite ? infinity - 1 : infinity;
    const uint64_t odd = last | sign | (is_finite ? 0 : place % 3); /* some are NaNs */
    struct kernel_array arrays[] = {
        {to, 2 * sizeof(uint32_t), 0}, {from, (deed->from_skip + deed->count) * bytes, 0}};

    memset(to, KERNEL_POISON, sizeof(uint64_t)); /* given */
    memset(from, 0x11, arrays[1].bytes);
    memset(from, 0xff, deed->from_skip * bytes); /* NaNs where it does not look */
    memcpy(from + (deed->from_skip + place) * bytes, &odd, bytes);

    kernel_world_run(world, arrays, 2, launch, deed); /* when */

    if (is_finite) /* then */
        kernel_assert_poisoned(to, sizeof(uint64_t), 0, 0);
    else
        assert_int_equal(*(uint32_t *)to, 1);
    kernel_assert_poisoned(to, sizeof(uint64_t), 0, sizeof(uint32_t));
}

STATE_TEST(one_that_is_not_finite_is_found_wherever_it_is, NULL, NULL)
{
    static const struct deed deeds[] = {
        {CUDA_KERNEL_FINITE_FLOAT16, SUMAC_UINT32, SUMAC_FLOAT16, 0, 0, 0, 0},
        {CUDA_KERNEL_FINITE_BFLOAT16, SUMAC_UINT32, SUMAC_BFLOAT16, 0, 0, 0, 0},
        {CUDA_KERNEL_FINITE_FLOAT32, SUMAC_UINT32, SUMAC_FLOAT32, 0, 0, 0, 0},
        {CUDA_KERNEL_FINITE_FLOAT64, SUMAC_UINT32, SUMAC_FLOAT64, 0, 0, 0, 0},
    };
    struct kernel_world *world = *state;
    const uint32_t blocks_max = world->kernels.blocks_max;

    for (size_t i = 0; i < 8 * COUNTS; i++) {
        struct deed deed = deeds[i / 2 % 4];
        deed.count = counts[i / 8];
        deed.from_skip = i % 2;
        world->kernels.blocks_max = i % 4 == 0 ? 2 : blocks_max;
        const uint64_t places[] = {0, deed.count / 3, deed.count / 2, deed.count - 1};
        for (size_t p = 0; deed.count > 0 && p < 4; p++) {
            check_finite(world, &deed, places[p], false);
            check_finite(world, &deed, places[p], true);
        }
    }
    world->kernels.blocks_max = blocks_max;
}

/* A NaN is found also behind the end of nothing: there is nothing. */
STATE_TEST(of_nothing_all_are_finite, NULL, NULL)
{
    const struct deed deed = {CUDA_KERNEL_FINITE_FLOAT32, SUMAC_UINT32, SUMAC_FLOAT32, 0, 0, 0, 0};
    struct kernel_array arrays[] = {{to, sizeof(uint32_t), 0}, {from, sizeof(float), 0}};

    memset(to, KERNEL_POISON, sizeof(uint32_t)); /* given */
    memset(from, 0xff, sizeof(float));

    kernel_world_run(*state, arrays, 2, launch, &deed); /* when */

    kernel_assert_poisoned(to, sizeof(uint32_t), 0, 0); /* then */
}

int main(void) { return unit_run(kernel_world_begin, kernel_world_end); }
