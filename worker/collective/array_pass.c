/* SPDX-License-Identifier: Apache-2.0 */
/* array_pass.c -- the loops of one pass over memory.
 *
 * Up to four arrays are added in registers, so that each element is read once and written once; the
 * others are added to the tile of sums while that is in the first cache. reduce_values is the plain
 * loop whose bits these are (unit/strategy compares them).
 */
#include "array_pass.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "dtype.h"
#include "reduce.h"

#define TILE 2048u /* elements of at most 8 bytes: half of a first cache */
#define STREAM_BYTES 64u

/* ---- past the caches */

/* `to` is aligned to STREAM_BYTES. A line that is written as a whole is not read before. */
static void stream_copy(void *restrict to, const void *restrict from, size_t bytes)
{
    size_t at = 0;

    assert((uintptr_t)to % STREAM_BYTES == 0);
#ifdef __SSE2__
    for (; at + STREAM_BYTES <= bytes; at += STREAM_BYTES) {
        const __m128i *source = (const void *)((const uint8_t *)from + at);
        __m128i *line = (void *)((uint8_t *)to + at);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(line, a);
        _mm_stream_si128(line + 1, b);
        _mm_stream_si128(line + 2, c);
        _mm_stream_si128(line + 3, d);
    }
    _mm_sfence(); /* before anybody is told that they are there */
#endif
    memcpy((uint8_t *)to + at, (const uint8_t *)from + at, bytes - at);
}

static void copy(void *to, const void *from, size_t bytes, bool stream)
{
    const size_t odd = -(uintptr_t)to % STREAM_BYTES;

    if (!stream || bytes <= odd + STREAM_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, odd);
    stream_copy((uint8_t *)to + odd, (const uint8_t *)from + odd, bytes - odd);
}

/* ---- added up */

/* Twice, for all machines and for those with wider vectors, which add the same. Integers are added
 * as unsigned numbers, which wrap alike. */
#define TARGET_plain
#define ADD(set, name, type)                                                                       \
    TARGET_##set static void add_1_##set##_##name(                                                 \
        void *restrict to, const void *const *from, size_t count)                                  \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type *restrict a = from[0];                                                          \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] = (type)(sum[i] + a[i]);                                                        \
    }                                                                                              \
    TARGET_##set static void add_2_##set##_##name(                                                 \
        void *restrict to, const void *const *from, size_t count)                                  \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type *restrict a = from[0], *restrict b = from[1];                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] = (type)(a[i] + b[i]);                                                          \
    }                                                                                              \
    TARGET_##set static void add_4_##set##_##name(                                                 \
        void *restrict to, const void *const *from, size_t count)                                  \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        const type *restrict a = from[0], *restrict b = from[1];                                   \
        const type *restrict c = from[2], *restrict d = from[3];                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] = (type)((type)((type)(a[i] + b[i]) + c[i]) + d[i]);                            \
    }
#define ADD_ALL(set)                                                                               \
    ADD(set, bytes1, uint8_t)                                                                      \
    ADD(set, bytes2, uint16_t)                                                                     \
    ADD(set, bytes4, uint32_t)                                                                     \
    ADD(set, bytes8, uint64_t)                                                                     \
    ADD(set, float32, float)                                                                       \
    ADD(set, float64, double)
ADD_ALL(plain)
#ifdef __x86_64__
#define TARGET_avx2 __attribute__((target("avx2")))
ADD_ALL(avx2)
#endif

#define DIVIDE(name, type)                                                                         \
    static void divide_##name(void *to, uint32_t by, size_t count)                                 \
    {                                                                                              \
        type *restrict sum = to;                                                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            sum[i] /= (type)by;                                                                    \
    }
DIVIDE(float32, float)
DIVIDE(float64, double)

/* `to` becomes to + from[0], from[0] + from[1], or likewise of four. NULL: none of it. */
typedef void add_arrays(void *restrict to, const void *const *from, size_t count);
struct adding {
    add_arrays *add_1, *add_2, *add_4;
};

#define ADDS(set, name)                                                                            \
    {                                                                                              \
        .add_1 = add_1_##set##_##name, .add_2 = add_2_##set##_##name,                              \
        .add_4 = add_4_##set##_##name                                                              \
    }
#define ROW_BOOL(set, name, width)                                                                 \
    {                                                                                              \
        .add_1 = NULL                                                                              \
    }
#define ROW_HALF(set, name, width) ROW_BOOL(set, name, width)
#define ROW_INT(set, name, width) ADDS(set, bytes##width)
#define ROW_UINT(set, name, width) ADDS(set, bytes##width)
#define ROW_FLOAT(set, name, width) ADDS(set, name)
static const struct adding plain[DTYPES_MAX + 1] = {
#define X(NAME, number, width, kind, name, numpy) [number] = ROW_##kind(plain, name, width),
    SUMAC_DTYPE_LIST(X)
#undef X
};
#ifdef __x86_64__
static const struct adding avx2[DTYPES_MAX + 1] = {
#define X(NAME, number, width, kind, name, numpy) [number] = ROW_##kind(avx2, name, width),
    SUMAC_DTYPE_LIST(X)
#undef X
};
#endif

static const struct adding *adding_of(enum sumac_dtype dtype)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") != 0)
        return &avx2[dtype];
#endif
    return &plain[dtype];
}

static void sum_tile(
    const struct adding *own, const struct pass_sum *sum, void *to, uint64_t first_byte,
    size_t count)
{
    const void *from[SUMAC_REPLICAS_MAX];

    assert(sum->count > 1 && sum->count <= SUMAC_REPLICAS_MAX);
    assert(count <= TILE);
    for (uint32_t i = 0; i < sum->count; i++)
        from[i] = (const uint8_t *)sum->from[i] + first_byte;
    (sum->count >= 4 ? own->add_4 : own->add_2)(to, from, count);
    for (uint32_t i = sum->count >= 4 ? 4 : 2; i < sum->count; i++)
        own->add_1(to, &from[i], count);
    if (sum->op == SUMAC_REDUCE_MEAN)
        (sum->dtype == SUMAC_FLOAT32 ? divide_float32 : divide_float64)(to, sum->count, count);
}

/* A half type's, which is summed in float32 and rounded once. */
static void sum_plainly(const struct pass_sum *sum, uint64_t first, uint64_t elements)
{
    double weights[SUMAC_REPLICAS_MAX];

    assert(sum->count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < sum->count; i++)
        weights[i] = 1;
    const struct reduce_input input = {
        .dtype = sum->dtype,
        .first = first,
        .elements = elements,
        .from = sum->from,
        .replicas = sum->count,
        .to = &sum->to,
        .targets = 1,
        .weights = weights};
    reduce_values(sum->op, &input);
}

void pass_sum(const struct pass_sum *sum, uint64_t first, uint64_t elements)
{
    _Alignas(64) uint8_t scratch[TILE * sizeof(uint64_t)];
    const struct adding *own = adding_of(sum->dtype);
    const size_t element = dtype_bytes(sum->dtype);

    assert(reduce_has(sum->op, sum->dtype));
    assert((uintptr_t)sum->to % STREAM_BYTES == 0);
    if (own->add_1 == NULL) {
        sum_plainly(sum, first, elements);
        return;
    }
    for (uint64_t at = first; at < first + elements; at += TILE) {
        const size_t count = first + elements - at < TILE ? (size_t)(first + elements - at) : TILE;
        uint8_t *to = (uint8_t *)sum->to + at * element;
        if (sum->count == 1) {
            copy(to, (const uint8_t *)sum->from[0] + at * element, count * element, sum->stream);
            continue;
        }
        sum_tile(own, sum, sum->stream ? scratch : to, at * element, count);
        if (sum->stream)
            copy(to, scratch, count * element, true);
    }
}

/* ---- side by side */

void pass_join(const struct pass_join *join, uint64_t first, uint64_t bytes)
{
    uint64_t row, left, beyond = first + bytes, at = first;
    uint32_t i = 0;

    assert(join->all_bytes > 0);
    assert(join->count > 0);
    row = first / join->all_bytes;
    for (left = first % join->all_bytes; left >= join->row_bytes[i]; i++)
        left -= join->row_bytes[i]; /* so far into the row of array i */
    while (at < beyond) {
        const uint64_t rest = join->row_bytes[i] - left;
        const size_t count = (size_t)(beyond - at < rest ? beyond - at : rest);
        if (count > 0)
            copy(
                join->to + at, join->from[i] + row * join->row_bytes[i] + left, count,
                join->stream);
        at += count;
        left = 0;
        i = i + 1 == join->count ? 0 : i + 1;
        row += i == 0;
    }
}
