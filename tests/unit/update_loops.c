/* SPDX-License-Identifier: Apache-2.0 */
/* update_loops.c (test) -- every table of loops gives the same bits, those of the plain rule
 * written out. */
#include <math.h>

#include "unit.h"
#include "half.h"
#include "loops.h"
#include "random.h"

#define COUNT 1027u /* no multiple of any vector's length */
#define GUARD 64u
#define BYTES (8 * COUNT + 2 * GUARD)

struct arrays {
    uint8_t value[BYTES], gradient[BYTES], slot[UPDATE_SLOTS_MAX][BYTES];
};

/* Finite values of the type: small floats of both signs, any integer. Slots are not negative. */
static void fill(enum sumac_dtype dtype, uint64_t seed, bool positive, uint8_t *out)
{
    wire_initializer draw = WIRE_INITIALIZER_INIT;

    if (sumac_dtype_is_float(dtype)) {
        draw.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_UNIFORM;
        draw.a = positive ? 0 : -2;
        draw.b = 2;
        draw.seed = seed;
        initializer_fill(&draw, dtype, 0, COUNT, out);
        return;
    }
    for (uint64_t i = 0; i < COUNT * sumac_dtype_bytes(dtype); i++) {
        const struct random_block block =
            random_philox((struct random_block){{(uint32_t)i, 0, 0, 0}}, (uint32_t)seed, 0);
        out[i] = (uint8_t)(dtype == SUMAC_BOOL ? block.word[0] & 1 : block.word[0]);
    }
}

static struct arrays *make_arrays(enum sumac_dtype dtype, size_t offset)
{
    struct arrays *const made = malloc(sizeof *made);

    assert_non_null(made);
    memset(made, 0xa5, sizeof *made);
    fill(dtype, 1, false, made->value + offset);
    fill(dtype, 2, false, made->gradient + offset);
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX; i++)
        fill(update_slot_dtype(dtype), 3 + i, true, made->slot[i] + offset);
    return made;
}

/* A function with one hyperparameter that is not its default; NULL: with all of them. */
struct variant {
    const char *function, *hyperparameter;
    double value;
};

static struct update_slice make_slice(
    const struct variant *variant, enum sumac_dtype dtype, struct arrays *in, struct arrays *out,
    size_t offset)
{
    const struct update_function *function = update_find_by_name(variant->function);
    struct update_hyperparameters hyperparameters;

    assert_non_null(function);
    assert_int_equal(
        update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL), SUMAC_OK);
    if (variant->hyperparameter != NULL)
        hyperparameters.value[update_hyperparameter_find(variant->hyperparameter)] = variant->value;
    struct update_slice slice = {
        .function = function,
        .dtype = dtype,
        .count = COUNT,
        .value_in = in->value + offset,
        .value_out = out->value + offset,
        .gradient = in->gradient + offset,
    };
    for (uint32_t i = 0; i < update_slot_count(function, &hyperparameters); i++) {
        slice.slot_in[i] = in->slot[i] + offset;
        slice.slot_out[i] = out->slot[i] + offset;
    }
    update_prepare(function, dtype, &hyperparameters, 3, &slice);
    return slice;
}

/* The bytes that `table` writes, in place or into spare memory, at any alignment, are `expected`'s
 * at GUARD; nothing beside them is written. */
static void check_table(
    const struct loops *table, const struct variant *variant, enum sumac_dtype dtype,
    const struct arrays *expected, bool spare)
{
    const size_t bytes = COUNT * sumac_dtype_bytes(dtype);
    const size_t slot_bytes = COUNT * sumac_dtype_bytes(update_slot_dtype(dtype));

    for (size_t offset = GUARD; offset < GUARD + 4; offset++) {
        struct arrays *const in = make_arrays(dtype, offset);
        struct arrays *const out = spare ? make_arrays(dtype, offset) : in;
        struct update_slice slice = make_slice(variant, dtype, in, out, offset);

        table->run[slice.function->number][dtype](&slice);

        assert_memory_equal(out->value + offset, expected->value + GUARD, bytes);
        for (uint32_t s = 0; s < UPDATE_SLOTS_MAX; s++)
            assert_memory_equal(out->slot[s] + offset, expected->slot[s] + GUARD, slot_bytes);
        assert_int_equal(out->value[offset - 1], 0xa5);
        assert_int_equal(out->value[offset + bytes], 0xa5);
        if (spare)
            free(out);
        free(in);
    }
}

static void check_variant(const struct variant *variant, enum sumac_dtype dtype)
{
    struct arrays *const expected = make_arrays(dtype, GUARD);
    struct update_slice slice = make_slice(variant, dtype, expected, expected, GUARD);
    const struct loops *table;

    loops_plain.run[slice.function->number][dtype](&slice);
    for (uint32_t t = 0; (table = loops_at(t)) != NULL; t++) {
        check_table(table, variant, dtype, expected, false);
        check_table(table, variant, dtype, expected, true);
    }
    free(expected);
}

TEST(every_table_gives_the_bits_of_the_plain_one)
{
    static const struct variant others[] = {
        {"momentum", "nesterov", 1},
        {"rmsprop", "centered", 1},
        {"ftrl", "learning_rate_power", -0.3},
        {"ftrl", "l1", 1},
        {"delayed_nesterov", "buffer_size", 3},
    };
    const struct update_function *function;

    for (uint32_t f = 0; (function = update_at(f)) != NULL; f++)
        for (int dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++)
            if ((function->dtypes >> dtype & 1u) != 0)
                check_variant(
                    &(struct variant){.function = function->name}, (enum sumac_dtype)dtype);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_FLOAT64; dtype++)
            check_variant(&others[i], (enum sumac_dtype)dtype);
}

TEST(the_table_for_this_machine_is_the_last_that_it_can_run)
{
    const struct loops *last = NULL;

    for (uint32_t i = 0; loops_at(i) != NULL; i++)
        last = loops_at(i);

    assert_ptr_equal(loops_select(), last);
}

/* Every float16 and bfloat16 is a float32 and comes back as itself; halfway cases go to the even
 * neighbour. */
TEST(halves_survive_and_round_to_even)
{
    for (uint32_t half = 0; half < 0x10000; half++) {
        const float f = float32_of_float16((uint16_t)half);
        const float b = float32_of_bfloat16((uint16_t)half);
        if (!isnan(f))
            assert_int_equal(float16_of_float32(f), half);
        else
            assert_true(isnan(float32_of_float16(float16_of_float32(f))));
        if (!isnan(b))
            assert_int_equal(bfloat16_of_float32(b), half);
        else
            assert_true(isnan(float32_of_bfloat16(bfloat16_of_float32(b))));
    }
    for (uint32_t half = 0; half < 0x7bff; half++) {
        const float low = float32_of_float16((uint16_t)half);
        const float high = float32_of_float16((uint16_t)(half + 1));
        const float middle = low + (high - low) / 2; /* exact in float32 */
        assert_int_equal(float16_of_float32(middle), half + (half & 1));
        assert_int_equal(float16_of_float32(nextafterf(middle, 0)), half);
        assert_int_equal(float16_of_float32(nextafterf(middle, high)), half + 1);
    }
    assert_int_equal(float16_of_float32(65519.99f), 0x7bff);
    assert_int_equal(float16_of_float32(65520.0f), 0x7c00);
    assert_int_equal(bfloat16_of_float32(float32_of_bits(0x3f808000u)), 0x3f80);
    assert_int_equal(bfloat16_of_float32(float32_of_bits(0x3f818000u)), 0x3f82);
    assert_int_equal(bfloat16_of_float32(float32_of_bits(0x7f7fffffu)), 0x7f80);
}

/* Whatever a processor's conversions are, they give the bits of half.h: of each half type's number,
 * and of float32 around every one of them and around every middle between two. */
TEST(every_table_converts_halves_alike)
{
    static uint16_t halves[65536], back[4 * 65536];
    static float wide[65536], near[4 * 65536];
    const struct loops *table;

    for (uint32_t t = 0; (table = loops_at(t)) != NULL; t++) {
        for (int i = 0; i < 2; i++) {
            const enum sumac_dtype dtype = i == 0 ? SUMAC_FLOAT16 : SUMAC_BFLOAT16;
            for (uint32_t half = 0; half < 65536; half++)
                halves[half] = (uint16_t)half;
            table->widen[dtype](wide, halves, 65536);
            for (uint32_t half = 0; half < 65536; half++) {
                const uint16_t given = (uint16_t)half;
                const float expected =
                    i == 0 ? float32_of_float16(given) : float32_of_bfloat16(given);
                const uint32_t bits = bits_of_float32(expected);
                const uint32_t middle = bits + (i == 0 ? 0x1000u : 0x8000u);
                assert_int_equal(bits_of_float32(wide[half]), bits);
                near[4 * half] = expected;
                near[4 * half + 1] = float32_of_bits(middle);
                near[4 * half + 2] = float32_of_bits(middle - 1);
                near[4 * half + 3] = float32_of_bits(middle + 1);
            }
            table->narrow[dtype](back, near, 4 * 65536 - 1); /* an end that is no vector's */
            for (uint32_t k = 0; k < 4 * 65536 - 1; k++)
                assert_int_equal(
                    back[k], i == 0 ? float16_of_float32(near[k]) : bfloat16_of_float32(near[k]));
        }
    }
}

/* 1 + 2^-11 is halfway between two float16: the sum in float32 is rounded once, to even. */
TEST(half_sums_are_rounded_once)
{
    uint16_t value = float16_of_float32(1);
    const uint16_t gradient = float16_of_float32(0x1p-11f);
    struct update_slice slice = {
        .function = update_find(UPDATE_ASSIGN_ADD),
        .dtype = SUMAC_FLOAT16,
        .count = 1,
        .value_in = &value,
        .value_out = &value,
        .gradient = &gradient,
    };

    update_run(&slice);

    assert_int_equal(value, 0x3c00);
}

/* One element that is not finite, at any place, is found by every table; the copy is complete all
 * the same. */
TEST(one_element_that_is_not_finite_is_found_anywhere)
{
    static const struct {
        enum sumac_dtype dtype;
        uint64_t bits[5]; /* infinity, minus infinity, two NaNs, and the largest finite number */
    } types[] = {
        {SUMAC_FLOAT16, {0x7c00, 0xfc00, 0x7c01, 0xffff, 0x7bff}},
        {SUMAC_BFLOAT16, {0x7f80, 0xff80, 0x7f81, 0xffff, 0x7f7f}},
        {SUMAC_FLOAT32, {0x7f800000, 0xff800000, 0x7f800001, 0xffffffff, 0x7f7fffff}},
        {SUMAC_FLOAT64,
         {0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, 0xffffffffffffffff,
          0x7fefffffffffffff}},
    };
    const struct loops *table;
    for (uint32_t t = 0; (table = loops_at(t)) != NULL; t++) {
        for (size_t d = 0; d < 4; d++) {
            const enum sumac_dtype dtype = types[d].dtype;
            const size_t element_bytes = sumac_dtype_bytes(dtype), bytes = 71 * element_bytes;
            for (size_t place = 0; place < 71; place++) {
                for (size_t b = 0; b < 5; b++) {
                    uint8_t in[71 * 8 + 1] = {0}, out[71 * 8 + 1];
                    memcpy(in + 1 + place * element_bytes, &types[d].bits[b], element_bytes);

                    const bool copied = table->copy_finite[dtype](out + 1, in + 1, bytes);
                    const bool scanned = table->all_finite[dtype](in + 1, bytes);

                    assert_int_equal(copied, b == 4);
                    assert_int_equal(scanned, b == 4);
                    assert_memory_equal(out + 1, in + 1, bytes);
                }
            }
        }
    }
}

/* Element 4i + j of an array is row j's, so that vectors and their tail have all of them. */
TEST(of_a_nan_and_of_zeros_min_and_max_are_those_of_an_expression)
{
    static const struct {
        enum sumac_dtype dtype;
        uint64_t one, nan, minus_0;
    } types[] = {
        {SUMAC_FLOAT16, 0x3c00, 0x7e00, 0x8000},
        {SUMAC_BFLOAT16, 0x3f80, 0x7fc0, 0x8000},
        {SUMAC_FLOAT32, 0x3f800000, 0x7fc00000, 0x80000000},
        {SUMAC_FLOAT64, 0x3ff0000000000000, 0x7ff8000000000000, 0x8000000000000000},
    };
    const uint32_t functions[] = {UPDATE_MIN, UPDATE_MAX};
    const struct loops *table;

    for (uint32_t n = 0; (table = loops_at(n / 2)) != NULL; n++) {
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            const uint64_t one = types[t].one, nan = types[t].nan, minus_0 = types[t].minus_0;
            const uint64_t values[] = {one, nan, 0, minus_0}, gradients[] = {nan, one, minus_0, 0};
            const uint64_t expected[] = {nan, nan, minus_0, 0};
            const size_t element = sumac_dtype_bytes(types[t].dtype);
            uint8_t value[71 * 8], gradient[71 * 8], out[71 * 8];
            for (size_t i = 0; i < 71; i++) {
                memcpy(value + i * element, &values[i % 4], element);
                memcpy(gradient + i * element, &gradients[i % 4], element);
            }

            table->run[functions[n % 2]][types[t].dtype](&(struct update_slice){
                .function = update_find(functions[n % 2]),
                .dtype = types[t].dtype,
                .value_in = value,
                .value_out = out,
                .gradient = gradient,
                .count = 71});

            for (size_t i = 0; i < 71; i++)
                assert_memory_equal(out + i * element, &expected[i % 4], element);
        }
    }
}

TEST(integers_are_always_finite)
{
    const int32_t in[2] = {-1, 0x7f800000};
    int32_t out[2] = {0, 0};

    assert_true(update_copy_finite(SUMAC_INT32, out, in, sizeof in));
    assert_true(update_all_finite(SUMAC_INT32, in, sizeof in));

    assert_memory_equal(out, in, sizeof in);
}

TEST(nothing_is_a_fine_amount)
{
    float value = 1, out = 2;
    struct update_slice slice = {
        .function = update_find(UPDATE_SGD),
        .dtype = SUMAC_FLOAT32,
        .value_in = &value,
        .value_out = &value,
        .gradient = &out,
    };

    update_run(&slice);

    assert_true(update_copy_finite(SUMAC_FLOAT32, &out, &value, 0));
    assert_true(value == 1 && out == 2);
}
