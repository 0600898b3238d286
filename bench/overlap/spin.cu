/* SPDX-License-Identifier: Apache-2.0 */
/* spin.cu -- a step that takes its time: one thread watches the device's clock. */
#include <stdint.h>

static __device__ uint64_t now_ns()
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

extern "C" __global__ void spin(uint64_t ns)
{
    const uint64_t began = now_ns();

    while (now_ns() - began < ns)
        __nanosleep(10000);
}
