/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_world.c -- arrays of the host that a kernel sees on a device. */
#include "kernel_world.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "unit.h"
#include "half.h"

/* ---- its begin and its end */

static CUresult within(const struct kernel_world *world, bool begins)
{
    CUcontext popped = NULL;

    return begins ? world->driver->cuCtxPushCurrent(((struct cuda_device *)world->device)->context)
                  : world->driver->cuCtxPopCurrent(&popped);
}

int kernel_world_begin(void **state)
{
    struct kernel_world *world = calloc(1, sizeof *world);
    struct sumac_error error = {0};

    if (world == NULL || cuda_driver_open(&world->driver, &error) != SUMAC_OK)
        return 1;
    assert_int_equal(device_open(device_kind("GPU"), 0, &world->device, NULL), SUMAC_OK);
    assert_int_equal(device_queue_open(world->device, &world->queue, NULL), SUMAC_OK);
    assert_int_equal(within(world, true), CUDA_SUCCESS);
    assert_int_equal(cuda_kernels_load(world->driver, &world->kernels), CUDA_SUCCESS);
    assert_int_equal(within(world, false), CUDA_SUCCESS);
    *state = world;
    return 0;
}

int kernel_world_end(void **state)
{
    struct kernel_world *world = *state;

    assert_int_equal(within(world, true), CUDA_SUCCESS);
    cuda_kernels_unload(world->driver, &world->kernels);
    assert_int_equal(within(world, false), CUDA_SUCCESS);
    device_queue_close(world->queue);
    device_close(world->device);
    free(world);
    return 0;
}

/* ---- on the device, and back */

struct issue {
    const struct kernel_world *world;
    const struct kernel_array *arrays;
    kernel_work *work;
    const void *context;
};

static enum sumac_status issue(void *context)
{
    const struct issue *issue = context;

    return cuda_status(issue->work(issue->world, issue->arrays, issue->context));
}

void kernel_world_run(
    const struct kernel_world *world, struct kernel_array *arrays, uint32_t count,
    kernel_work *work, const void *context)
{
    const struct sumac_place host = {SUMAC_PLACE_HOST, 0};
    struct sumac_buffer *here[KERNEL_ARRAYS_MAX] = {NULL}, *there[KERNEL_ARRAYS_MAX] = {NULL};
    struct issue issued = {world, arrays, work, context};

    assert(count <= KERNEL_ARRAYS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bytes = arrays[i].bytes;
        arrays[i].address = 0;
        if (bytes == 0)
            continue;
        assert_int_equal(
            sumac_buffer_wrap(arrays[i].data, bytes, host, NULL, NULL, &here[i]), SUMAC_OK);
        assert_int_equal(device_buffer_create(world->device, bytes, &there[i], NULL), SUMAC_OK);
        arrays[i].address = (uint64_t)(uintptr_t)sumac_buffer_data(there[i]);
        device_copy(
            world->queue, &(struct sumac_copy){.to = there[i], .from = here[i], .bytes = bytes});
    }
    device_issue(world->queue, issue, &issued);
    for (uint32_t i = 0; i < count; i++)
        if (there[i] != NULL)
            device_copy(
                world->queue,
                &(struct sumac_copy){.to = here[i], .from = there[i], .bytes = arrays[i].bytes});
    if (device_wait(world->queue) != SUMAC_OK)
        fail_msg("%s", device_why(world->queue));
    for (uint32_t i = 0; i < count; i++) {
        sumac_buffer_unref(there[i]);
        sumac_buffer_unref(here[i]);
    }
}

/* ---- what is in arrays */

/* splitmix64 (Steele, Lea, Flood 2014). */
void kernel_fill(void *data, uint64_t bytes, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15);

    for (uint64_t i = 0; i < bytes; i += sizeof state) {
        state += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t drawn = state;
        drawn = (drawn ^ drawn >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        drawn = (drawn ^ drawn >> 27) * UINT64_C(0x94d049bb133111eb);
        drawn ^= drawn >> 31;
        memcpy((uint8_t *)data + i, &drawn, bytes - i < sizeof drawn ? bytes - i : sizeof drawn);
    }
}

static bool is_nan(enum sumac_dtype dtype, const uint8_t *element)
{
    uint16_t half;
    float single;
    double twice;

    memcpy(&half, element, sizeof half);
    if (dtype == SUMAC_FLOAT16)
        return isnan(float32_of_float16(half));
    if (dtype == SUMAC_BFLOAT16)
        return isnan(float32_of_bfloat16(half));
    if (dtype == SUMAC_FLOAT32) {
        memcpy(&single, element, sizeof single);
        return isnan(single);
    }
    if (dtype != SUMAC_FLOAT64)
        return false;
    memcpy(&twice, element, sizeof twice);
    return isnan(twice);
}

void kernel_assert_same(
    enum sumac_dtype dtype, const void *made, const void *expected, uint64_t first, uint64_t count,
    const char *what)
{
    const uint32_t bytes = sumac_dtype_bytes(dtype);

    for (uint64_t i = first; i < first + count; i++) {
        const uint8_t *a = (const uint8_t *)made + i * bytes;
        const uint8_t *b = (const uint8_t *)expected + i * bytes;
        uint64_t has = 0, wants = 0;
        memcpy(&has, a, bytes);
        memcpy(&wants, b, bytes);
        if (has != wants && !(is_nan(dtype, a) && is_nan(dtype, b)))
            fail_msg(
                "%s, %s: element %" PRIu64 " of %" PRIu64 " is %" PRIx64 ", expected %" PRIx64,
                what, sumac_dtype_name(dtype), i - first, count, has, wants);
    }
}

void kernel_assert_poisoned(const void *data, uint64_t bytes, uint64_t first, uint64_t count)
{
    const uint8_t *all = data;

    for (uint64_t i = 0; i < bytes; i++)
        if ((i < first || i >= first + count) && all[i] != KERNEL_POISON)
            fail_msg("byte %" PRIu64 " of %" PRIu64 " was written", i, bytes);
}
