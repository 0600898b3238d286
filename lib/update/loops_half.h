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

static void narrow_float16(void *restrict to, const float *restrict in, size_t count)
{
    element16 *const restrict out = to;
    size_t i = 0;

#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(
            (void *)(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(
            (void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
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
/* Half a unit of the last place is added, one less when the last bit is even; a NaN's upper half is
 * made quiet. As compilers vectorise it, it takes twice the time. */
static inline __m256i narrow_eight(const float *in)
{
    const __m256 value = _mm256_loadu_ps(in);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));

    return _mm256_blendv_epi8(rounded, nan, is_nan);
}

static inline __m256i narrow_sixteen(const float *in)
{
    const __m256i packed = _mm256_packus_epi32(narrow_eight(in), narrow_eight(in + 8));

    return _mm256_permute4x64_epi64(packed, 0xd8); /* the halves of both, in their order */
}
#endif

static void narrow_bfloat16(void *restrict to, const float *restrict in, size_t count)
{
    element16 *const restrict out = to;
    size_t i = 0;

#if defined(__AVX2__) && !defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((void *)(out + i), narrow_sixteen(in + i));
#elif defined(__AVX512BF16__)
    for (; i + 16 <= count; i += 16) {
        const __m512 values = _mm512_loadu_ps(in + i);
        const __mmask16 subnormal = _mm512_fpclass_ps_mask(values, 0x20);
        if (subnormal == 0) {
            _mm256_storeu_si256((void *)(out + i), (__m256i)_mm512_cvtneps_pbh(values));
            continue;
        }
        for (size_t j = i; j < i + 16; j++)
            out[j] = bfloat16_of_float32(in[j]);
    }
#endif
    INDEPENDENT
    for (size_t j = i; j < count; j++)
        out[j] = bfloat16_of_float32(in[j]);
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
