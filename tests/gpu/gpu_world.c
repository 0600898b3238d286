/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_world.c -- three replicas on GPUs of their own. */
#include "gpu_world.h"

#include "unit.h"
#include <cuda.h>
#include <dlfcn.h>

#include "gpus.h"

const uint64_t gpu_world_ones[GPU_REPLICAS] = {1, 1, 1};

static void (*nccl_fault)(const char *what, int rank, uint64_t number);
static void (*fail_at)(const char *function, uint64_t nth, int result);
static void (*call_at)(const char *function, uint64_t nth, void (*call)(void *), void *context);
static uint64_t (*calls)(void);

/* Leave the function's pointer at `function`; NULL: the library has none of that name. */
static void find(const char *library, const char *name, void *function)
{
    void *opened = dlopen(library, RTLD_NOW), *symbol = opened == NULL ? NULL : dlsym(opened, name);

    memcpy(function, &symbol, sizeof symbol);
}

void gpu_world_nccl_fault(const char *what, int rank, uint64_t number)
{
    if (nccl_fault == NULL)
        skip();
    nccl_fault(what, rank, number);
}

void gpu_world_nccl_forget(void)
{
    if (nccl_fault != NULL)
        nccl_fault("", 0, 0);
}

void gpu_world_fail_at(const char *function, uint64_t nth, int result)
{
    if (fail_at == NULL)
        skip();
    fail_at(function, nth, result);
}

void gpu_world_call_at(const char *function, uint64_t nth, void (*call)(void *), void *context)
{
    if (call_at == NULL)
        skip();
    call_at(function, nth, call, context);
}

void gpu_world_count(const char *function)
{
    if (calls == NULL)
        skip();
    fail_at(function, UINT64_MAX, 0);
}

uint64_t gpu_world_counted(void) { return calls(); }

void gpu_world_put(void *stream, void (*function)(void *), void *context)
{
    CUresult (*put)(CUstream stream, CUhostFn function, void *context);

    find("libcuda.so.1", "cuLaunchHostFunc", &put);
    assert_non_null(put);
    assert_int_equal(put(stream, function, context), CUDA_SUCCESS);
}

bool gpu_world_is_there(void)
{
    struct gpus gpus;

    gpus_find(&gpus);
    find("libnccl.so.2", "standin_nccl_fault", &nccl_fault);
    find("libcuda.so.1", "standin_fail_at", &fail_at);
    find("libcuda.so.1", "standin_call_at", &call_at);
    find("libcuda.so.1", "standin_calls", &calls);
    if (gpus.count >= GPU_REPLICAS && gpus.nccl_missing.status == SUMAC_OK)
        return true;
    printf("skipped: it takes %u GPUs and NCCL, and there are %u\n", GPU_REPLICAS, gpus.count);
    return false;
}

int gpu_world_begin(void **state)
{
    struct gpu_world *world = calloc(1, sizeof *world);

    if (world == NULL)
        return 1;
    for (uint32_t i = 0; i < GPU_REPLICAS; i++) {
        assert_int_equal(device_open(device_kind("GPU"), i, &world->devices[i], NULL), SUMAC_OK);
        assert_int_equal(device_queue_open(world->devices[i], &world->queues[i], NULL), SUMAC_OK);
    }
    assert_int_equal(
        device_group_open(world->queues, GPU_REPLICAS, GPU_CALLS_MAX, &world->group, NULL),
        SUMAC_OK);
    *state = world;
    return 0;
}

int gpu_world_end(void **state)
{
    struct gpu_world *world = *state;

    gpu_world_nccl_forget();
    device_group_close(world->group);
    for (uint32_t i = 0; i < GPU_REPLICAS; i++) {
        device_queue_close(world->queues[i]);
        device_close(world->devices[i]);
    }
    free(world);
    return 0;
}

void gpu_world_finish(struct gpu_world *world)
{
    struct sumac_error error = {0};

    device_group_start(world->group);
    if (device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
}

struct gpu_held gpu_world_hold(struct gpu_world *world, uint64_t bytes)
{
    struct gpu_held held;

    for (uint32_t i = 0; i < GPU_REPLICAS; i++) {
        assert_int_equal(sumac_buffer_create(bytes, &held.host[i]), SUMAC_OK);
        assert_int_equal(
            device_buffer_create(world->devices[i], bytes, &held.there[i], NULL), SUMAC_OK);
        held.at[i] = sumac_buffer_data(held.there[i]);
    }
    return held;
}

void gpu_world_drop(struct gpu_held *held)
{
    for (uint32_t i = 0; i < GPU_REPLICAS; i++) {
        sumac_buffer_unref(held->host[i]);
        sumac_buffer_unref(held->there[i]);
    }
}

void gpu_world_send(struct gpu_world *world, const struct gpu_held *held)
{
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        device_copy(
            world->queues[i], &(struct sumac_copy){
                                  .to = held->there[i],
                                  .from = held->host[i],
                                  .bytes = sumac_buffer_bytes(held->host[i]),
                              });
}

void gpu_world_fetch(struct gpu_world *world, const struct gpu_held *held)
{
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        device_copy(
            world->queues[i], &(struct sumac_copy){
                                  .to = held->host[i],
                                  .from = held->there[i],
                                  .bytes = sumac_buffer_bytes(held->host[i]),
                              });
    for (uint32_t i = 0; i < GPU_REPLICAS; i++)
        assert_int_equal(device_wait(world->queues[i]), SUMAC_OK);
}
