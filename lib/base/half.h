/* SPDX-License-Identifier: Apache-2.0 */
/* half.h -- float16 and bfloat16 to and from float32, without a branch, so that loops over them
 * vectorise.
 *
 * Not the compiler's _Float16: clang 14 has none on x86 without avx512fp16, and hardware
 * conversions must give the bits that plain C gives. Rounding is to nearest, ties to even; a NaN
 * stays a (quiet) NaN.
 */
#pragma once

#include <stdint.h>
#include <string.h>

/* By the names of SUMAC_DTYPE_LIST, for tables that are filled from it. */
#define HALF_WIDEN_float16 float32_of_float16
#define HALF_WIDEN_bfloat16 float32_of_bfloat16
#define HALF_NARROW_float16 float16_of_float32
#define HALF_NARROW_bfloat16 bfloat16_of_float32

static inline uint32_t bits_of_float32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float float32_of_bfloat16(uint16_t half)
{
    return float32_of_bits((uint32_t)half << 16);
}

static inline uint16_t bfloat16_of_float32(float value)
{
    const uint32_t bits = bits_of_float32(value);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40u;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* The half's exponent and fraction are moved to a float32's place; multiplying by 2^112 corrects
 * the exponent's bias and normalises subnormal numbers, exactly. */
static inline float float32_of_float16(uint16_t half)
{
    const uint32_t magnitude = ((uint32_t)half & 0x7fffu) << 13;
    const uint32_t sign = ((uint32_t)half & 0x8000u) << 16;
    const uint32_t finite = bits_of_float32(float32_of_bits(magnitude) * 0x1p112f);
    const uint32_t nan = magnitude > 0x0f800000u ? 0x7fc00000u : 0x7f800000u;
    const uint32_t special = magnitude | nan;

    return float32_of_bits(sign | (magnitude >= 0x0f800000u ? special : finite));
}

/* Above the largest half: infinity. Normal: the bias is corrected and half a unit in the last place
 * added, one less when the last bit is even. Subnormal: adding 0.5 makes the float unit round in
 * just the right place. */
static inline uint16_t float16_of_float32(float value)
{
    const uint32_t bits = bits_of_float32(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t infinity_or_nan =
        magnitude > 0x7f800000u ? (0x7e00u | (magnitude >> 13 & 0x3ffu)) : 0x7c00u;
    const uint32_t subnormal =
        bits_of_float32(float32_of_bits(magnitude) + 0.5f) - bits_of_float32(0.5f);
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;

    return (uint16_t)(sign | (magnitude >= (143u << 23) ? infinity_or_nan : finite));
}
