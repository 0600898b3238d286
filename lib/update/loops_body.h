/* SPDX-License-Identifier: Apache-2.0 */
/* loops_body.h -- the loops' source; each loops_….c compiles it for one instruction set, with
 * LOOPS_NAME and LOOPS_TABLE.
 *
 * Elements are read and written through types of alignment 1: a gradient may lie anywhere in what
 * was received, and unaligned vector loads cost nothing where it happens to be aligned.
 */
#include "loops.h"

#include <assert.h>
#include <math.h>

#include "half.h"
#include "power.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define IN_MEMORY __attribute__((aligned(1), may_alias))
typedef uint8_t IN_MEMORY element8;
typedef uint16_t IN_MEMORY element16;
typedef uint32_t IN_MEMORY element32;
typedef uint64_t IN_MEMORY element64;
typedef float IN_MEMORY element_float32;
typedef double IN_MEMORY element_float64;

/* out[i] = (a[i] + b[i] + …) `end`, of as many as there are, each read once. */
#define SUM_LOOP(type, expression)                                                                 \
    INDEPENDENT                                                                                    \
    for (size_t i = 0; i < count; i++)                                                             \
        out[i] = (type)(expression);                                                               \
    break;
#define SUM_LOOPS(element, type, end)                                                              \
    const element *const a = summands[0], *const b = summands[summand_count > 1 ? 1 : 0];          \
    const element *const c = summands[summand_count > 2 ? 2 : 0];                                  \
    const element *const d = summands[summand_count > 3 ? 3 : 0];                                  \
    assert(summand_count >= 1 && summand_count <= LOOPS_SUMMANDS);                                 \
    switch (summand_count) {                                                                       \
    case 1:                                                                                        \
        SUM_LOOP(type, a[i] end)                                                                   \
    case 2:                                                                                        \
        SUM_LOOP(type, (a[i] + b[i]) end)                                                          \
    case 3:                                                                                        \
        SUM_LOOP(type, (a[i] + b[i] + c[i]) end)                                                   \
    default:                                                                                       \
        SUM_LOOP(type, (a[i] + b[i] + c[i] + d[i]) end)                                            \
    }

#define LEAF static
#define IN_TURN /* a loop that no compiler vectorises */
#define FLOAT float
#define ELEMENT element_float32
#define LOOP(name) name##_float32
#define SQUARE_ROOT sqrtf
#define MAGNITUDE fabsf
#include "loops_float.h"
#undef ELEMENT
#undef LOOP

#define FLOAT double
#define ELEMENT element_float64
#define LOOP(name) name##_float64
#define SQUARE_ROOT sqrt
#define MAGNITUDE fabs
#include "loops_float.h"
#undef ELEMENT
#undef LOOP

/* Integers wrap around: two's complement is the same arithmetic for signed and unsigned types. */
#define INTEGER_LOOP(name, element, operator)                                                      \
    static void name(const struct update_slice *slice)                                             \
    {                                                                                              \
        element *const out = slice->value_out;                                                     \
        const element *const in = slice->value_in;                                                 \
        const element *const restrict gradient = slice->gradient;                                  \
        const size_t count = slice->count;                                                         \
        INDEPENDENT                                                                                \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = (element)(in[i] operator gradient[i]);                                        \
    }
#define INTEGER_LOOPS(bytes, element)                                                              \
    INTEGER_LOOP(assign_add_bytes##bytes, element, +)                                              \
    INTEGER_LOOP(assign_sub_bytes##bytes, element, -)                                              \
    INTEGER_LOOP(multiply_bytes##bytes, element, *)
INTEGER_LOOPS(1, element8)
INTEGER_LOOPS(2, element16)
INTEGER_LOOPS(4, element32)
INTEGER_LOOPS(8, element64)

/* Which of two is the smaller one, and a quotient, depend on the sign. */
#define ORDER_LOOP(name, type, operator)                                                           \
    static void name##_##type(const struct update_slice *slice)                                    \
    {                                                                                              \
        typedef type##_t IN_MEMORY element;                                                        \
        element *const out = slice->value_out;                                                     \
        const element *const in = slice->value_in;                                                 \
        const element *const restrict gradient = slice->gradient;                                  \
        const size_t count = slice->count;                                                         \
        INDEPENDENT                                                                                \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = gradient[i] operator in[i] ? gradient[i] : in[i];                             \
    }

/* Quotients towards zero; ÷ 0 is 0, and ÷ −1 wraps around: neither ends a ps. */
#define QUOTIENT_LOOP(type, by_minus_1)                                                            \
    static void divide_##type(const struct update_slice *slice)                                    \
    {                                                                                              \
        typedef type##_t IN_MEMORY element;                                                        \
        element *const out = slice->value_out;                                                     \
        const element *const in = slice->value_in;                                                 \
        const element *const restrict gradient = slice->gradient;                                  \
        for (size_t i = 0; i < slice->count; i++) {                                                \
            if (gradient[i] == 0)                                                                  \
                out[i] = 0;                                                                        \
            else if (by_minus_1)                                                                   \
                out[i] = (element)(0 - (uint64_t)in[i]);                                           \
            else                                                                                   \
                out[i] = (element)(in[i] / gradient[i]);                                           \
        }                                                                                          \
    }
#define ORDER_BOOL(name)
#define ORDER_INT(name)                                                                            \
    ORDER_LOOP(min, name, <) ORDER_LOOP(max, name, >) QUOTIENT_LOOP(name, gradient[i] == -1)
#define ORDER_UINT(name)                                                                           \
    ORDER_LOOP(min, name, <) ORDER_LOOP(max, name, >) QUOTIENT_LOOP(name, false)
#define ORDER_HALF(name)
#define ORDER_FLOAT(name)
#define ORDER(NAME, number, bytes, kind, name, numpy) ORDER_##kind(name)
SUMAC_DTYPE_LIST(ORDER)

#include "loops_half.h"

/* Contributions: integers wrap around. */
#define SUM_OF(name, element, type)                                                                \
    static void name(void *sum, const void *const *summands, uint32_t summand_count, size_t count) \
    {                                                                                              \
        element *const out = sum;                                                                  \
        SUM_LOOPS(element, type, )                                                                 \
    }
SUM_OF(sum_bytes1, element8, uint8_t)
SUM_OF(sum_bytes2, element16, uint16_t)
SUM_OF(sum_bytes4, element32, uint32_t)
SUM_OF(sum_bytes8, element64, uint64_t)

#define FLOAT_SUM(name, element, type)                                                             \
    SUM_OF(sum_##name, element, type)                                                              \
    static void mean_##name(                                                                       \
        void *sum, const void *const *summands, uint32_t summand_count, double divisor,            \
        size_t count)                                                                              \
    {                                                                                              \
        element *const out = sum;                                                                  \
        const type by = (type)divisor;                                                             \
        assert(by > 0);                                                                            \
        SUM_LOOPS(element, type, / by)                                                             \
    }
FLOAT_SUM(float32, element_float32, float)
FLOAT_SUM(float64, element_float64, double)
#define sum_float16 sum_float32
#define sum_bfloat16 sum_float32
#define mean_float16 mean_float32
#define mean_bfloat16 mean_float32
#define condition_float16 condition_float32
#define condition_bfloat16 condition_float32

static void assign(const struct update_slice *slice)
{
    memcpy(slice->value_out, slice->gradient, slice->count * sumac_dtype_bytes(slice->dtype));
}

/* A float is finite unless its exponent is all ones; adding one to such an exponent, and to no
 * other, carries into the sign's place. The carries are gathered in one word: no branch, no
 * compare, at the speed of the copy. */
#define FINITE_LOOPS(name, word, element, exponent, unit)                                          \
    static bool copy_finite_##name(void *restrict to, const void *restrict from, size_t bytes)     \
    {                                                                                              \
        element *const restrict out = to;                                                          \
        const element *const restrict in = from;                                                   \
        const size_t count = bytes / sizeof(word);                                                 \
        word carries = 0;                                                                          \
        for (size_t i = 0; i < count; i++) {                                                       \
            const word bits = in[i];                                                               \
            carries |= (word)((bits & (word)(exponent)) + (word)(unit));                           \
            out[i] = bits;                                                                         \
        }                                                                                          \
        return carries >> (8 * sizeof(word) - 1) == 0;                                             \
    }                                                                                              \
    static bool all_finite_##name(const void *data, size_t bytes)                                  \
    {                                                                                              \
        const element *const in = data;                                                            \
        const size_t count = bytes / sizeof(word);                                                 \
        word carries = 0;                                                                          \
        for (size_t i = 0; i < count; i++)                                                         \
            carries |= (word)((in[i] & (word)(exponent)) + (word)(unit));                          \
        return carries >> (8 * sizeof(word) - 1) == 0;                                             \
    }
FINITE_LOOPS(float16, uint16_t, element16, 0x7c00u, 0x0400u)
FINITE_LOOPS(bfloat16, uint16_t, element16, 0x7f80u, 0x0080u)
FINITE_LOOPS(float32, uint32_t, element32, 0x7f800000u, 0x00800000u)
FINITE_LOOPS(float64, uint64_t, element64, 0x7ff0000000000000u, 0x0010000000000000u)

/* The functions that are lanes where there are any, those of float types alone, and what is done
 * to float types beside them. */
#define DIRECT_RULES(X, number, name)                                                              \
    X(ASSIGN_ADD, assign_add, number, name), X(ASSIGN_SUB, assign_sub, number, name),              \
        X(SGD, sgd, number, name), X(MULTIPLY, multiply, number, name),                            \
        X(DIVIDE, divide, number, name), X(MIN, min, number, name), X(MAX, max, number, name)
#define FLOAT_RULES(X, number, name)                                                               \
    X(MOMENTUM, momentum, number, name), X(ADAM, adam, number, name),                              \
        X(ADAGRAD, adagrad, number, name), X(RMSPROP, rmsprop, number, name),                      \
        X(ADAMW, adamw, number, name), X(FTRL, ftrl, number, name), X(NADAM, nadam, number, name), \
        X(ADAMAX, adamax, number, name), X(ADADELTA, adadelta, number, name),                      \
        X(LION, lion, number, name), X(YOGI, yogi, number, name),                                  \
        X(DELAYED_NESTEROV, delayed_nesterov, number, name)
#define OTHER_LOOPS(number, name)                                                                  \
    .condition[number] = condition_##name, .sum[number] = sum_##name, .mean[number] = mean_##name, \
    .copy_finite[number] = copy_finite_##name, .all_finite[number] = all_finite_##name
#define OWN_LOOP(FUNCTION, loop, number, name) .run[UPDATE_##FUNCTION][number] = loop##_##name
#define TILE_LOOP(FUNCTION, loop, number, name) .run[UPDATE_##FUNCTION][number] = tiles_##name
#if defined(LANES)
#define DIRECT_LOOP OWN_LOOP
#else
#define DIRECT_LOOP TILE_LOOP
#endif

/* The table's rows for a dtype, by its kind. */
#define LOOPS_BOOL(number, name, size)
#define LOOPS_INT(number, name, size)                                                              \
    OWN_LOOP(ASSIGN_ADD, assign_add, number, bytes##size),                                         \
        OWN_LOOP(ASSIGN_SUB, assign_sub, number, bytes##size),                                     \
        OWN_LOOP(MULTIPLY, multiply, number, bytes##size), OWN_LOOP(DIVIDE, divide, number, name), \
        OWN_LOOP(MIN, min, number, name), OWN_LOOP(MAX, max, number, name),                        \
        .sum[number] = sum_bytes##size,
#define LOOPS_UINT LOOPS_INT
#define LOOPS_HALF(number, name, size)                                                             \
    DIRECT_RULES(DIRECT_LOOP, number, name), FLOAT_RULES(TILE_LOOP, number, name),                 \
        OTHER_LOOPS(number, name), .assign_wide[number] = assign_wide_##name,                      \
                                   .run_wide[number] = tiles_wide_##name,                          \
                                   .widen[number] = widen_##name, .narrow[number] = narrow_##name,
#define LOOPS_FLOAT(number, name, size)                                                            \
    DIRECT_RULES(OWN_LOOP, number, name), FLOAT_RULES(OWN_LOOP, number, name),                     \
        OTHER_LOOPS(number, name),
#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    .run[UPDATE_ASSIGN][number] = assign, LOOPS_##kind(number, name, bytes)

const struct loops LOOPS_TABLE = {.name = LOOPS_NAME, SUMAC_DTYPE_LIST(X)};
