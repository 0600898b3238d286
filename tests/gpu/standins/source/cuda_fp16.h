/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fp16.h -- in the place of nvcc's: what the sources of kernels (worker/cuda/kernels.cu,
 * updates.cu) need to be C++ for the CPU, where a thread of a GPU is a call.
 *
 * An access of several elements that is not aligned ends the program, as on a GPU.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(threads)

/* source_twins.c sets them. */
struct source_index {
    unsigned x;
};
extern "C" __thread source_index blockIdx, threadIdx;
extern "C" const source_index gridDim, blockDim;

template <class TYPE> struct source_aligned {
    static const TYPE &at(const TYPE &place)
    {
        if ((uintptr_t)&place % sizeof(TYPE) != 0)
            abort();
        return place;
    }
};
struct uint2 {
    unsigned words[2];
    uint2() = default;
    uint2(const uint2 &from) { memcpy(words, &source_aligned<uint2>::at(from), sizeof words); }
    uint2 &operator=(const uint2 &) = default;
};
struct uint4 {
    unsigned words[4];
    uint4() = default;
    uint4(const uint4 &from) { memcpy(words, &source_aligned<uint4>::at(from), sizeof words); }
    uint4 &operator=(const uint4 &) = default;
};
template <class TYPE> void __stwb(TYPE *to, const TYPE &value)
{
    (void)source_aligned<TYPE>::at(*to);
    *to = value;
}

struct __half {
    uint16_t bits;
};
struct __nv_bfloat16 {
    uint16_t bits;
};
inline float __half2float(__half value) { return float32_of_float16(value.bits); }
inline float __bfloat162float(__nv_bfloat16 value) { return float32_of_bfloat16(value.bits); }
inline __half __float2half_rn(float value) { return {float16_of_float32(value)}; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {bfloat16_of_float32(value)}; }
