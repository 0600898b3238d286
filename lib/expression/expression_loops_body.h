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
#define CHOICE(name, expression)                                                                   \
    THREE_OF(name, c, v, v, expression)                                                            \
    THREE_OF(name, c, s, v, expression)                                                            \
    THREE_OF(name, c, v, s, expression)                                                            \
    THREE_OF(name, c, s, s, expression)
#define PRODUCT(name, expression)                                                                  \
    THREE_OF(name, v, v, v, expression)                                                            \
    THREE_OF(name, s, v, v, expression)                                                            \
    THREE_OF(name, v, v, s, expression)                                                            \
    THREE_OF(name, s, v, s, expression)
#define COMBINATION(name, expression)                                                              \
    HEAD(name)                                                                                     \
    {                                                                                              \
        BEGIN_s(a, 0) BEGIN_v(b, 1) BEGIN_s(c, 2) BEGIN_v(d, 3) EACH(ELEMENT)                      \
        {                                                                                          \
            READ_s(a) READ_v(b) READ_s(c) READ_v(d) out[i] = expression;                           \
        }                                                                                          \
    }
#define NUMBER(name, expression)                                                                   \
    HEAD(name)                                                                                     \
    {                                                                                              \
        BEGIN_s(a, 0) EACH(ELEMENT) { READ_s(a) out[i] = expression; }                             \
    }
#define X(NAME, name, shape, result) shape(name, result)

#define FLOAT float
#define ELEMENT element_float32
#define WORD uint32_t
#define CONDITION element32
#define LOOP(name) name##_float32
#define SQUARE_ROOT sqrtf
#define MAGNITUDE fabsf
#define POWER near_pow_float32
EXPRESSION_OPERATION_LIST(X)
EXPRESSION_FUSED_LIST(X)
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
    EXPRESSION_OPERATION_LIST(X) EXPRESSION_FUSED_LIST(X)
#undef X

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

/* By which operands are scalars. */
#define ROW_ONE(name, type) [0] = name##_##type
#define ROW_NUMBER(name, type) [1] = name##_##type
#define ROW_TWO(name, type) [0] = name##_vv_##type, [1] = name##_sv_##type, [2] = name##_vs_##type
#define ROW_COMPARE(name, type) ROW_TWO(name, type)
#define ROW_CHOICE(name, type)                                                                     \
    [0] = name##_cvv_##type, [2] = name##_csv_##type, [4] = name##_cvs_##type,                     \
    [6] = name##_css_##type
#define ROW_PRODUCT(name, type)                                                                    \
    [0] = name##_vvv_##type, [1] = name##_svv_##type, [4] = name##_vvs_##type,                     \
    [5] = name##_svs_##type
#define ROW_COMBINATION(name, type) [5] = name##_##type
#define ROW_FLOAT32(NAME, name, shape, result) [EXPRESSION_##NAME] = {ROW_##shape(name, float32)},
#define ROW_FLOAT64(NAME, name, shape, result) [EXPRESSION_##NAME] = {ROW_##shape(name, float64)},
#define ROWS(ROW)                                                                                  \
    {                                                                                              \
        EXPRESSION_OPERATION_LIST(ROW) EXPRESSION_FUSED_LIST(ROW)                                  \
    }

            const
    struct expression_loops LOOPS_TABLE = {
        .name = LOOPS_NAME,
        .run = {[EXPRESSION_FLOAT32] = ROWS(ROW_FLOAT32), [EXPRESSION_FLOAT64] = ROWS(ROW_FLOAT64)},
        .widen = {SUMAC_DTYPE_LIST(WIDEN)},
        .narrow = {SUMAC_DTYPE_LIST(NARROW)},
};
