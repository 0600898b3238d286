/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c -- loading the images that the library has in it, and launching what is in them. */
#include "kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "text.h"

#define ELEMENTS_PER_THREAD 16u       /* four tiles of the widest, which are read at once */
#define ELEMENTS_PER_UPDATE_THREAD 4u /* of several arrays */

/* The images: kernels.S and updates.S have them, from nvcc. */
extern const unsigned char cuda_kernels_image[], cuda_updates_image[];

static const char *const names[CUDA_KERNELS] = {
#define X(NAME, name) [CUDA_KERNEL_##NAME] = "sumac_" #name,
    CUDA_KERNEL_LIST(X)
#undef X
};

CUresult cuda_kernels_load(const struct cuda_driver *driver, struct cuda_kernels *kernels)
{
    assert(kernels->module == NULL);
    CUresult result = driver->cuModuleLoadData(&kernels->module, cuda_kernels_image);
    if (result != CUDA_SUCCESS) {
        kernels->module = NULL;
        return result;
    }
    for (int i = 0; result == CUDA_SUCCESS && i < CUDA_KERNELS; i++)
        result = driver->cuModuleGetFunction(&kernels->functions[i], kernels->module, names[i]);
    if (result != CUDA_SUCCESS)
        cuda_kernels_unload(driver, kernels);
    kernels->blocks_max = CUDA_BLOCKS_MAX;
    return result;
}

void cuda_kernels_unload(const struct cuda_driver *driver, struct cuda_kernels *kernels)
{
    if (kernels->module != NULL)
        (void)driver->cuModuleUnload(kernels->module);
    kernels->module = NULL;
}

/* A function in a stream: with how much of work, how much of it a thread should have, and in how
 * many blocks at most. */
struct launch {
    CUfunction function;
    const void *argument; /* the kernel's, one */
    uint64_t elements;    /* more than 0 */
    uint32_t elements_per_thread, blocks_max;
};

static CUresult put(const struct cuda_driver *driver, const struct launch *launch, CUstream stream)
{
    void *parameters[] = {(void *)(uintptr_t)launch->argument};
    const uint64_t threads = (launch->elements - 1) / launch->elements_per_thread + 1;
    const uint64_t blocks = (threads - 1) / CUDA_KERNEL_THREADS + 1;

    assert(launch->elements > 0);
    assert(launch->blocks_max > 0);
    return driver->cuLaunchKernel(
        launch->function, blocks < launch->blocks_max ? (unsigned)blocks : launch->blocks_max, 1, 1,
        CUDA_KERNEL_THREADS, 1, 1, 0, stream, parameters, NULL);
}

CUresult cuda_kernel_launch(
    const struct cuda_driver *driver, const struct cuda_kernels *kernels, enum cuda_kernel kernel,
    const struct cuda_kernel_arguments *arguments, CUstream stream)
{
    assert(kernel < CUDA_KERNELS);
    if (arguments->count == 0)
        return CUDA_SUCCESS;
    assert(kernels->module != NULL);
    return put(
        driver,
        &(struct launch){
            .function = kernels->functions[kernel],
            .argument = arguments,
            .elements = arguments->count,
            .elements_per_thread = ELEMENTS_PER_THREAD,
            .blocks_max = kernels->blocks_max},
        stream);
}

/* ---- update functions: a slice as what its kernel is given */

bool cuda_update_has(const struct update_function *function, enum sumac_dtype dtype)
{
    return function->loop == NULL && sumac_dtype_is_float(dtype) &&
           (function->dtypes >> dtype & 1u) != 0;
}

static CUresult find_update(
    const struct cuda_driver *driver, struct cuda_updates *updates,
    const struct update_function *function, enum sumac_dtype dtype)
{
    char name[64];

    (void)text_print(
        name, sizeof name, "sumac_update_%s_%s", function->name, sumac_dtype_name(dtype));
    return driver->cuModuleGetFunction(
        &updates->functions[function->number][dtype], updates->module, name);
}

CUresult cuda_updates_load(const struct cuda_driver *driver, struct cuda_updates *updates)
{
    const struct update_function *function;

    assert(updates->module == NULL);
    CUresult result = driver->cuModuleLoadData(&updates->module, cuda_updates_image);
    if (result != CUDA_SUCCESS) {
        updates->module = NULL;
        return result;
    }
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        for (uint32_t dtype = 1; result == CUDA_SUCCESS && dtype <= DTYPES_MAX; dtype++)
            if (cuda_update_has(function, (enum sumac_dtype)dtype))
                result = find_update(driver, updates, function, (enum sumac_dtype)dtype);
    if (result != CUDA_SUCCESS)
        cuda_updates_unload(driver, updates);
    updates->blocks_max = CUDA_BLOCKS_MAX;
    return result;
}

void cuda_updates_unload(const struct cuda_driver *driver, struct cuda_updates *updates)
{
    if (updates->module != NULL)
        (void)driver->cuModuleUnload(updates->module);
    updates->module = NULL;
}

/* ---- one update */

static uint64_t address_of(const void *array) { return (uint64_t)(uintptr_t)array; }

static struct cuda_update_arguments arguments_of(const struct device_update *update)
{
    const struct update_slice *slice = &update->slice;
    const bool scales = (slice->scale < 1 || slice->scale > 1) && slice->scale != 0;
    struct cuda_update_arguments given = {
        .value_out = address_of(slice->value_out),
        .value_in = address_of(slice->value_in),
        .gradient = address_of(slice->gradient),
        .count = slice->count,
        .scale = scales ? slice->scale : 1,
        .clip = slice->clip > 0 ? slice->clip : HUGE_VAL,
        .flag = slice->flag,
        .is_wide = update->is_wide,
        .is_conditioned = scales || slice->clip > 0};

    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX; i++) {
        given.slot_out[i] = address_of(slice->slot_out[i]);
        given.slot_in[i] = address_of(slice->slot_in[i]);
        assert((given.slot_out[i] == 0) == (given.slot_in[i] == 0));
    }
    _Static_assert(sizeof given.scalar <= sizeof slice->scalar, "a slice has all that are given");
    memcpy(given.scalar, slice->scalar, sizeof given.scalar);
    return given;
}

/* Values as they are need no kernel. */
static bool is_copy(const struct device_update *update, const struct cuda_update_arguments *given)
{
    return update->slice.function->number == UPDATE_ASSIGN && !update->is_wide &&
           given->is_conditioned == 0;
}

CUresult cuda_update_launch(
    const struct cuda_driver *driver, const struct cuda_updates *updates,
    const struct device_update *update, CUstream stream)
{
    const struct update_slice *slice = &update->slice;
    const struct cuda_update_arguments given = arguments_of(update);

    assert(cuda_update_has(slice->function, slice->dtype));
    assert(slice->rows == NULL && slice->sources == NULL && slice->plan == NULL);
    assert(!update->is_wide || sumac_dtype_kind(slice->dtype) == SUMAC_KIND_HALF);
    if (slice->count == 0)
        return CUDA_SUCCESS;
    if (is_copy(update, &given))
        return driver->cuMemcpyAsync(
            given.value_out, given.gradient, slice->count * dtype_bytes(slice->dtype), stream);
    assert(updates->module != NULL);
    return put(
        driver,
        &(struct launch){
            .function = updates->functions[slice->function->number][slice->dtype],
            .argument = &given,
            .elements = slice->count,
            .elements_per_thread = ELEMENTS_PER_UPDATE_THREAD,
            .blocks_max = updates->blocks_max},
        stream);
}

/* ---- in a queue */

/* With the device's context current. */
static CUresult load_once(struct cuda_device *device)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&device->mutex);
    if (device->updates.module == NULL)
        result = cuda_updates_load(device->driver, &device->updates);
    pthread_mutex_unlock(&device->mutex);
    return result;
}

static enum sumac_status issue(void *context)
{
    const struct device_update *update = context;
    struct cuda_device *device = (struct cuda_device *)update->queue->device;
    struct cuda_queue *queue = (struct cuda_queue *)update->queue;
    CUresult result = load_once(device);

    if (result == CUDA_SUCCESS)
        result = cuda_update_launch(device->driver, &device->updates, update, queue->stream);
    if (result != CUDA_SUCCESS)
        cuda_words(device->driver, result, queue->base.why, sizeof queue->base.why);
    return cuda_status(result);
}

void cuda_update(struct device_queue *queue, struct device_update *update)
{
    assert(queue->device->ops == &cuda_device_ops);
    update->queue = queue;
    device_issue(queue, issue, update);
}
