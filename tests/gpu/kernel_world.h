/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_world.h -- arrays of the host that a kernel sees on a device, and what is asked of what it
 * leaves in them. */
#pragma once

#include "cuda_device.h"
#include "kernels.h"
#include "sumac/tensor.h"

#define KERNEL_ARRAYS_MAX 12
#define KERNEL_POISON 0x5a

struct kernel_world {
    const struct cuda_driver *driver;
    struct device *device;
    struct device_queue *queue;
    struct cuda_kernels kernels;
};

/* Of cmocka_run_group_tests: GPU:0, and the kernels of kernels.h. */
int kernel_world_begin(void **state);
int kernel_world_end(void **state);

/* So many bytes of the host, and where the device has them; of no bytes that is nowhere. */
struct kernel_array {
    void *data;
    uint64_t bytes;
    uint64_t address;
};

/* Puts kernels into the stream of the world's queue. */
typedef CUresult kernel_work(
    const struct kernel_world *world, const struct kernel_array *arrays, const void *context);

/* Bring the arrays to the device, run what `work` launches there, and bring all of them back. */
void kernel_world_run(
    const struct kernel_world *world, struct kernel_array *arrays, uint32_t count,
    kernel_work *work, const void *context);

/* Bits of every kind, the same for the same seed: of floats also infinities, NaNs and subnormal
 * numbers. */
void kernel_fill(void *data, uint64_t bytes, uint64_t seed);

/* Elements `first` … are as expected, to the bit, but that a NaN is one of any payload. */
void kernel_assert_same(
    enum sumac_dtype dtype, const void *made, const void *expected, uint64_t first, uint64_t count,
    const char *what);
/* Nothing but these bytes was written. */
void kernel_assert_poisoned(const void *data, uint64_t bytes, uint64_t first, uint64_t count);
