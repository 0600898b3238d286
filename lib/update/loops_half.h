/* SPDX-License-Identifier: Apache-2.0 */
/* loops_half.h -- the loops of the half types: included by loops_body.h.
 *
 * A half type computes in float32 and rounds once, so its loop is that of float32 on a tile that
 * stays in the first-level cache: the value, and a gradient of the same type, are widened into it,
 * and the new value is rounded out of it. Slots are float32 and lie where they lie.
 *
 * A processor's own conversions give the bits of half.h. AVX-512's to bfloat16 takes subnormal
 * numbers for zeros, so where one is among sixteen they are rounded as elsewhere.
 */
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#define HALF_TILE 512u /* elements */

static void widen_float16(float *restrict out, const void *restrict from, size_t count)
{
    const element16 *const restrict in = from;
    size_t i = 0;

#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(in + i))));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
#endif
    for (; i < count; i++)
        out[i] = float32_of_float16(in[i]);
}

static void narrow_float16(void *restrict to, const void *restrict from, size_t count)
{
    const element_float32 *const restrict in = from;
    element16 *const restrict out = to;
    size_t i = 0;

#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(
            (void *)(out + i),
            _mm512_cvtps_ph(_mm512_loadu_ps((const void *)(in + i)), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(
            (void *)(out + i),
            _mm256_cvtps_ph(_mm256_loadu_ps((const void *)(in + i)), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++)
        out[i] = float16_of_float32(in[i]);
}

static void widen_bfloat16(float *restrict out, const void *restrict from, size_t count)
{
    const element16 *const restrict in = from;

    INDEPENDENT
    for (size_t i = 0; i < count; i++)
        out[i] = float32_of_bfloat16(in[i]);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/* Half a unit of the last place is added, one less when the last bit is even. As compilers
 * vectorise it, it takes twice the time. */
static inline __m256i round_eight(__m256 value)
{
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));

    return _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
}

/* A NaN's upper half is made quiet instead. */
static inline __m256i round_eight_with_nan(__m256 value)
{
    const __m256i upper = _mm256_srli_epi32(_mm256_castps_si256(value), 16);
    const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));

    return _mm256_blendv_epi8(round_eight(value), nan, is_nan);
}

static inline __m256i round_sixteen(__m256 first, __m256 second)
{
    __m256i a, b;

    if (_mm256_movemask_ps(_mm256_cmp_ps(first, second, _CMP_UNORD_Q)) == 0) {
        a = round_eight(first);
        b = round_eight(second);
    } else {
        a = round_eight_with_nan(first);
        b = round_eight_with_nan(second);
    }
    /* the halves of both, in their order */
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
}
#endif

#if defined(__AVX512F__)
static inline __m256i round_sixteen(__m512 value)
{
#if defined(__AVX512BF16__)
    if (_mm512_fpclass_ps_mask(value, 0x20) == 0) /* none is subnormal */
        return (__m256i)_mm512_cvtneps_pbh(value);
#endif
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
    const __m512i nan = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);

    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_nan, rounded, nan));
}
#endif

static void narrow_bfloat16(void *restrict to, const void *restrict from, size_t count)
{
    const element_float32 *const restrict in = from;
    element16 *const restrict out = to;
    size_t i = 0;

#if defined(__AVX2__) && !defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(
            (void *)(out + i), round_sixteen(
                                   _mm256_loadu_ps((const void *)(in + i)),
                                   _mm256_loadu_ps((const void *)(in + i + 8))));
#elif defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(
            (void *)(out + i), round_sixteen(_mm512_loadu_ps((const void *)(in + i))));
#endif
    INDEPENDENT
    for (; i < count; i++)
        out[i] = bfloat16_of_float32(in[i]);
}

/* The loop of float32 on tiles; with `widen_gradient` NULL the gradient is float32 already. */
static inline __attribute__((always_inline)) void by_tiles(
    const struct update_slice *slice, update_widen *widen, update_widen *widen_gradient,
    update_narrow *narrow)
{
    _Alignas(64) float value[HALF_TILE], gradient[HALF_TILE];
    update_loop *const run = LOOPS_TABLE.run[slice->function->number][SUMAC_FLOAT32];
    struct update_slice tile = *slice;

    assert(run != NULL);
    tile.dtype = SUMAC_FLOAT32;
    tile.value_in = tile.value_out = value;
    tile.gradient = gradient;
    for (uint64_t at = 0; at < slice->count; at += tile.count) {
        const uint64_t left = slice->count - at;
        tile.count = left < HALF_TILE ? left : HALF_TILE;
        widen(value, (const element16 *)slice->value_in + at, tile.count);
        if (widen_gradient != NULL)
            widen_gradient(gradient, (const element16 *)slice->gradient + at, tile.count);
        else
            tile.gradient = (const element_float32 *)slice->gradient + at;
        for (uint32_t i = 0; i < UPDATE_SLOTS_MAX && slice->slot_out[i] != NULL; i++) {
            tile.slot_out[i] = (element_float32 *)slice->slot_out[i] + at;
            tile.slot_in[i] = (const element_float32 *)slice->slot_in[i] + at;
        }
        run(&tile);
        narrow((element16 *)slice->value_out + at, value, tile.count);
    }
}

#define HALF_LOOPS(half)                                                                           \
    static void tiles_##half(const struct update_slice *slice)                                     \
    {                                                                                              \
        by_tiles(slice, widen_##half, widen_##half, narrow_##half);                                \
    }                                                                                              \
    static void tiles_wide_##half(const struct update_slice *slice)                                \
    {                                                                                              \
        by_tiles(slice, widen_##half, NULL, narrow_##half);                                        \
    }                                                                                              \
    static void assign_wide_##half(const struct update_slice *slice)                               \
    {                                                                                              \
        narrow_##half(slice->value_out, slice->gradient, slice->count);                            \
    }
HALF_LOOPS(float16)
HALF_LOOPS(bfloat16)

/* The functions without slots are quicker in one go: what is read, computed and written of each
 * vector need not wait for a tile. */
#if defined(__AVX512F__)
#define LANES 16u
#define LANES_OF(number) _mm512_set1_ps(number)
/* The second of equal ones, and of a NaN and a number; `NAN_OR`: a, where it is a NaN. */
#define LESSER(a, b) _mm512_min_ps(a, b)
#define GREATER(a, b) _mm512_max_ps(a, b)
#define NAN_OR(a, b) _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a)
typedef __m512 lanes;
#elif defined(__AVX2__) && defined(__F16C__)
#define LANES 8u
#define LANES_OF(number) _mm256_set1_ps(number)
#define LESSER(a, b) _mm256_min_ps(a, b)
#define GREATER(a, b) _mm256_max_ps(a, b)
#define NAN_OR(a, b) _mm256_blendv_ps(b, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q))
typedef __m256 lanes;
#endif

#if defined(__AVX512F__)
static inline lanes lanes_float16(const element16 *in)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)in));
}

static inline void put_float16(element16 *out, lanes first, lanes second)
{
    const __m256i rounded = _mm512_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT);

    _mm256_storeu_si256((void *)out, rounded);
    _mm256_storeu_si256((void *)(out + LANES), _mm512_cvtps_ph(second, _MM_FROUND_TO_NEAREST_INT));
}

static inline lanes lanes_bfloat16(const element16 *in)
{
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)in));

    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

static inline void put_bfloat16(element16 *out, lanes first, lanes second)
{
    _mm256_storeu_si256((void *)out, round_sixteen(first));
    _mm256_storeu_si256((void *)(out + LANES), round_sixteen(second));
}
#elif defined(LANES)
static inline lanes lanes_float16(const element16 *in)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)in));
}

static inline void put_float16(element16 *out, lanes first, lanes second)
{
    _mm_storeu_si128((void *)out, _mm256_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((void *)(out + LANES), _mm256_cvtps_ph(second, _MM_FROUND_TO_NEAREST_INT));
}

static inline lanes lanes_bfloat16(const element16 *in)
{
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)in));

    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

static inline void put_bfloat16(element16 *out, lanes first, lanes second)
{
    _mm256_storeu_si256((void *)out, round_sixteen(first, second));
}
#endif

#if defined(LANES)
/* θ = expression of θ, g and the rate η. */
#define OF_LANES(name, expression)                                                                 \
    static inline lanes name##_lanes(lanes value, lanes g, lanes rate)                             \
    {                                                                                              \
        (void)rate;                                                                                \
        return expression;                                                                         \
    }
OF_LANES(assign_add, value + g)
OF_LANES(assign_sub, value - g)
OF_LANES(sgd, value - rate * g)
OF_LANES(multiply, value *g)
OF_LANES(divide, value / g)
OF_LANES(min, NAN_OR(value, LESSER(value, g)))
OF_LANES(max, NAN_OR(value, GREATER(value, g)))

/* What is left at the end goes by tiles. */
#define DIRECT(name, half)                                                                         \
    static void name##_##half(const struct update_slice *slice)                                    \
    {                                                                                              \
        element16 *const out = slice->value_out;                                                   \
        const element16 *const in = slice->value_in;                                               \
        const element16 *const gradient = slice->gradient;                                         \
        const lanes rate = LANES_OF((float)slice->scalar[UPDATE_SCALAR_RATE]);                     \
        struct update_slice rest = *slice;                                                         \
        uint64_t i = 0;                                                                            \
        for (; i + 2 * LANES <= slice->count; i += 2 * LANES) {                                    \
            const uint64_t j = i + LANES;                                                          \
            const lanes first =                                                                    \
                name##_lanes(lanes_##half(in + i), lanes_##half(gradient + i), rate);              \
            const lanes second =                                                                   \
                name##_lanes(lanes_##half(in + j), lanes_##half(gradient + j), rate);              \
            put_##half(out + i, first, second);                                                    \
        }                                                                                          \
        rest.count -= i;                                                                           \
        rest.value_out = out + i;                                                                  \
        rest.value_in = in + i;                                                                    \
        rest.gradient = gradient + i;                                                              \
        tiles_##half(&rest);                                                                       \
    }
#define DIRECT_LOOPS(half)                                                                         \
    DIRECT(assign_add, half)                                                                       \
    DIRECT(assign_sub, half)                                                                       \
    DIRECT(sgd, half)                                                                              \
    DIRECT(multiply, half)                                                                         \
    DIRECT(divide, half)                                                                           \
    DIRECT(min, half)                                                                              \
    DIRECT(max, half)
DIRECT_LOOPS(float16)
DIRECT_LOOPS(bfloat16)
#endif
