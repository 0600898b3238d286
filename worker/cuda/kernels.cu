/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cu -- what GPUs compute for the library itself: values that NCCL does not add as the CPU
 * does are made wide, and narrow again. worker/reduce.c has the same arithmetic in C, and a product
 * and a sum are not fused here, either.
 *
 * All have the same arguments (kernels.h). They are compiled to one image for several GPUs, which
 * the library has in it; no CUDA runtime is linked.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* Each thread takes every so many-th element: neighbours read neighbours. */
#define EACH(i, count)                                                                             \
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count;                  \
         i += (uint64_t)gridDim.x * blockDim.x)

/* Integers wrap: what is above the low half of a sum is cut off again. */
extern "C" __global__ void
sumac_widen_int16(uint32_t *to, const uint16_t *from, uint64_t count, float by)
{
    (void)by;
    EACH(i, count)
        to[i] = from[i];
}

extern "C" __global__ void
sumac_narrow_int16(uint16_t *to, const uint32_t *from, uint64_t count, float by)
{
    (void)by;
    EACH(i, count)
        to[i] = (uint16_t)from[i];
}

extern "C" __global__ void
sumac_widen_float16(float *to, const __half *from, uint64_t count, float by)
{
    EACH(i, count)
        to[i] = __half2float(from[i]) * by;
}

extern "C" __global__ void
sumac_narrow_float16(__half *to, const float *from, uint64_t count, float by)
{
    EACH(i, count)
        to[i] = __float2half_rn(__fdiv_rn(from[i], by));
}

extern "C" __global__ void
sumac_widen_bfloat16(float *to, const __nv_bfloat16 *from, uint64_t count, float by)
{
    EACH(i, count)
        to[i] = __bfloat162float(from[i]) * by;
}

extern "C" __global__ void
sumac_narrow_bfloat16(__nv_bfloat16 *to, const float *from, uint64_t count, float by)
{
    EACH(i, count)
        to[i] = __float2bfloat16_rn(__fdiv_rn(from[i], by));
}
