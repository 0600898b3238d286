/* SPDX-License-Identifier: Apache-2.0 */
/* expression_loops_body.h -- the loops' source; each loops_….c compiles it for one instruction set,
 * with LOOPS_NAME and LOOPS_TABLE.
 *
 * Elements are read and written through types of alignment 1: a gradient may lie anywhere in what
 * was received.
 */
#include "arithmetic.h"
#include "expression_loops.h"
#include "half.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define IN_MEMORY __attribute__((aligned(1), may_alias))
typedef uint16_t IN_MEMORY element16;
typedef uint32_t IN_MEMORY element32;
typedef uint64_t IN_MEMORY element64;
typedef float IN_MEMORY element_float32;
typedef double IN_MEMORY element_float64;

/* Operand k: a vector (v) is read at i, a scalar (s) is rounded once. */
#define BEGIN_v(name, k) const ELEMENT *const name##_in = in[k];
#define BEGIN_s(name, k) const FLOAT name##_in = (FLOAT)scalar[k];
#define BEGIN_c(name, k) const CONDITION *const name##_in = in[k];
#define READ_v(name) const FLOAT name = name##_in[i];
#define READ_s(name) const FLOAT name = name##_in;
#define READ_c(name) const bool name = name##_in[i] != 0;

#define HEAD(name)                                                                                 \
    static void LOOP(name)(void *to, const void *const *in, const double *scalar, size_t count)
#define EACH(type)                                                                                 \
    type *const out = to;                                                                          \
    (void)scalar;                                                                                  \
    (void)in;                                                                                      \
    INDEPENDENT                                                                                    \
    for (size_t i = 0; i < count; i++)

#define ONE(name, expression)                                                                      \
    HEAD(name)                                                                                     \
    {                                                                                              \
        BEGIN_v(a, 0) EACH(ELEMENT) { READ_v(a) out[i] = (FLOAT)(expression); }                    \
    }
#define TWO_OF(name, type, A, B, expression)                                                       \
    HEAD(name##_##A##B)                                                                            \
    {                                                                                              \
        BEGIN_##A(a, 0) BEGIN_##B(b, 1) EACH(type)                                                 \
        {                                                                                          \
            READ_##A(a) READ_##B(b) out[i] = expression;                                           \
        }                                                                                          \
    }
#define TWO(name, expression)                                                                      \
    TWO_OF(name, ELEMENT, v, v, (FLOAT)(expression))                                               \
    TWO_OF(name, ELEMENT, s, v, (FLOAT)(expression))                                               \
    TWO_OF(name, ELEMENT, v, s, (FLOAT)(expression))
#define COMPARE(name, expression)                                                                  \
    TWO_OF(name, CONDITION, v, v, (WORD)((expression) ? ~(WORD)0 : 0))                             \
    TWO_OF(name, CONDITION, s, v, (WORD)((expression) ? ~(WORD)0 : 0))                             \
    TWO_OF(name, CONDITION, v, s, (WORD)((expression) ? ~(WORD)0 : 0))
#define THREE_OF(name, A, B, C, expression)                                                        \
    HEAD(name##_##A##B##C)                                                                         \
    {                                                                                              \
        BEGIN_##A(a, 0) BEGIN_##B(b, 1) BEGIN_##C(c, 2) EACH(ELEMENT)                              \
        {                                                                                          \
            READ_##A(a) READ_##B(b) READ_##C(c) out[i] = expression;                               \
        }                                                                                          \
    }
#define PRODUCT(name, expression)                                                                  \
    THREE_OF(name, v, v, v, expression)                                                            \
    THREE_OF(name, s, v, v, expression)                                                            \
    THREE_OF(name, v, v, s, expression)                                                            \
    THREE_OF(name, s, v, s, expression)

#define FLOAT float
#define ELEMENT element_float32
#define WORD uint32_t
#define CONDITION element32
#define LOOP(name) name##_float32
#define SQUARE_ROOT sqrtf
#define MAGNITUDE fabsf
#define POWER near_pow_float32
#include "expression_loops_float.h"
#undef FLOAT
#undef ELEMENT
#undef WORD
#undef CONDITION
#undef LOOP
#undef SQUARE_ROOT
#undef MAGNITUDE
#undef POWER

#define FLOAT double
#define ELEMENT element_float64
#define WORD uint64_t
#define CONDITION element64
#define LOOP(name) name##_float64
#define SQUARE_ROOT sqrt
#define MAGNITUDE fabs
#define POWER near_pow
#include "expression_loops_float.h"

/* Half types to float32 and back; the others are computed in as they are. */
#define LOOPS_BOOL(name)
#define LOOPS_INT(name)
#define LOOPS_UINT(name)
#define LOOPS_FLOAT(name)
#define LOOPS_HALF(name)                                                                           \
    static void widen_##name(void *restrict to, const void *restrict from, size_t count)           \
    {                                                                                              \
        element_float32 *const restrict out = to;                                                  \
        const element16 *const restrict in = from;                                                 \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = HALF_WIDEN_##name(in[i]);                                                     \
    }                                                                                              \
    static void narrow_##name(void *restrict to, const void *restrict from, size_t count)          \
    {                                                                                              \
        element16 *const restrict out = to;                                                        \
        const element_float32 *const restrict in = from;                                           \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = HALF_NARROW_##name(in[i]);                                                    \
    }
#define X(NAME, number, bytes, kind, name, numpy) LOOPS_##kind(name)
SUMAC_DTYPE_LIST(X)
#undef X

#define CONVERT_BOOL(loop, name) NULL
#define CONVERT_INT(loop, name) NULL
#define CONVERT_UINT(loop, name) NULL
#define CONVERT_FLOAT(loop, name) NULL
#define CONVERT_HALF(loop, name) loop##_##name
#define WIDEN(NAME, number, bytes, kind, name, numpy) [number] = CONVERT_##kind(widen, name),
#define NARROW(NAME, number, bytes, kind, name, numpy) [number] = CONVERT_##kind(narrow, name),

#define ROW_1(name, type)                                                                          \
    {                                                                                              \
        name##_##type                                                                              \
    }
#define ROW_2(name, type)                                                                          \
    {                                                                                              \
        name##_vv_##type, name##_sv_##type, name##_vs_##type                                       \
    }
#define ROW_WHERE(type)                                                                            \
    {                                                                                              \
        [0] = where_cvv_##type, [2] = where_csv_##type, [4] = where_cvs_##type,                    \
        [6] = where_css_##type                                                                     \
    }
#define ROW_PRODUCT(name, type)                                                                    \
    {                                                                                              \
        [0] = name##_vvv_##type, [1] = name##_svv_##type, [4] = name##_vvs_##type,                 \
        [5] = name##_svs_##type                                                                    \
    }
#define ROWS(type)                                                                                 \
    {                                                                                              \
        [EXPRESSION_NEGATE] = ROW_1(negate, type), [EXPRESSION_ABS] = ROW_1(abs, type),            \
        [EXPRESSION_SIGN] = ROW_1(sign, type), [EXPRESSION_SQRT] = ROW_1(sqrt, type),              \
        [EXPRESSION_RSQRT] = ROW_1(rsqrt, type), [EXPRESSION_EXP] = ROW_1(exp, type),              \
        [EXPRESSION_LOG] = ROW_1(log, type), [EXPRESSION_TANH] = ROW_1(tanh, type),                \
        [EXPRESSION_ADD] = ROW_2(add, type), [EXPRESSION_SUBTRACT] = ROW_2(subtract, type),        \
        [EXPRESSION_MULTIPLY] = ROW_2(multiply, type), [EXPRESSION_DIVIDE] = ROW_2(divide, type),  \
        [EXPRESSION_MIN] = ROW_2(min, type), [EXPRESSION_MAX] = ROW_2(max, type),                  \
        [EXPRESSION_POW] = ROW_2(pow, type), [EXPRESSION_LESS] = ROW_2(less, type),                \
        [EXPRESSION_LESS_EQUAL] = ROW_2(less_equal, type),                                         \
        [EXPRESSION_EQUAL] = ROW_2(equal, type), [EXPRESSION_NOT_EQUAL] = ROW_2(not_equal, type),  \
        [EXPRESSION_WHERE] = ROW_WHERE(type),                                                      \
        [EXPRESSION_MULTIPLY_ADD] = ROW_PRODUCT(multiply_add, type),                               \
        [EXPRESSION_MULTIPLY_SUBTRACT] = ROW_PRODUCT(multiply_subtract, type),                     \
        [EXPRESSION_SUBTRACT_PRODUCT] = ROW_PRODUCT(subtract_product, type),                       \
        [EXPRESSION_COMBINE] = {[5] = combine_##type}, [EXPRESSION_COPY] = {copy_##type},          \
        [EXPRESSION_FILL] = {                                                                      \
            [1] = fill_##type                                                                      \
        }                                                                                          \
    }

const struct expression_loops LOOPS_TABLE = {
    .name = LOOPS_NAME,
    .run = {[EXPRESSION_FLOAT32] = ROWS(float32), [EXPRESSION_FLOAT64] = ROWS(float64)},
    .widen = {SUMAC_DTYPE_LIST(WIDEN)},
    .narrow = {SUMAC_DTYPE_LIST(NARROW)},
};
