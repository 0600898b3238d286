/* SPDX-License-Identifier: Apache-2.0 */
/* modules.c -- any image is accepted, and a kernel is its twin on the CPU, by its name. */
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "standin.h"

struct CUmod_st {
    struct CUctx_st *of;
};

/* The arguments of all kernels of the library (worker/cuda/kernels.h), their pointers the host's.
 */
typedef void twin(void *to, const void *from, uint64_t count, float by);

struct CUfunc_st {
    const char *name;
    twin *twin;
    uint64_t to_bytes, from_bytes; /* of an element */
};

static void widen_int16(void *to, const void *from, uint64_t count, float by)
{
    (void)by;
    for (uint64_t i = 0; i < count; i++)
        ((uint32_t *)to)[i] = ((const uint16_t *)from)[i];
}

static void narrow_int16(void *to, const void *from, uint64_t count, float by)
{
    (void)by;
    for (uint64_t i = 0; i < count; i++)
        ((uint16_t *)to)[i] = (uint16_t)((const uint32_t *)from)[i];
}

#define HALF(name)                                                                                 \
    static void widen_##name(void *to, const void *from, uint64_t count, float by)                 \
    {                                                                                              \
        for (uint64_t i = 0; i < count; i++)                                                       \
            ((float *)to)[i] = float32_of_##name(((const uint16_t *)from)[i]) * by;                \
    }                                                                                              \
    static void narrow_##name(void *to, const void *from, uint64_t count, float by)                \
    {                                                                                              \
        for (uint64_t i = 0; i < count; i++)                                                       \
            ((uint16_t *)to)[i] = name##_of_float32(((const float *)from)[i] / by);                \
    }
HALF(float16)
HALF(bfloat16)
#undef HALF

static struct CUfunc_st functions[] = {
    {"sumac_widen_int16", widen_int16, 4, 2},
    {"sumac_narrow_int16", narrow_int16, 2, 4},
    {"sumac_widen_float16", widen_float16, 4, 2},
    {"sumac_narrow_float16", narrow_float16, 2, 4},
    {"sumac_widen_bfloat16", widen_bfloat16, 4, 2},
    {"sumac_narrow_bfloat16", narrow_bfloat16, 2, 4},
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (image == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    CUmodule made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->of = standin_current();
    atomic_fetch_add(&made->of->modules, 1);
    *module = made;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    if (module->of != standin_current())
        standin_object("a module is unloaded in another context than its own");
    atomic_fetch_sub(&module->of->modules, 1);
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (module->of != standin_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0) {
            *function = &functions[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

struct launch {
    const struct CUfunc_st *function;
    uint64_t to, from, count;
    float by;
};

static CUresult run(void *context)
{
    const struct launch *launch = context;
    void *to = standin_memory(launch->to, launch->count * launch->function->to_bytes);
    const void *from = standin_memory(launch->from, launch->count * launch->function->from_bytes);

    if (to == NULL || from == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    launch->function->twin(to, from, launch->count, launch->by);
    return CUDA_SUCCESS;
}

/* What a kernel writes is written once, whoever its threads are: there must be some. */
CUresult cuLaunchKernel(
    CUfunction function, unsigned int blocks, unsigned int blocks_y, unsigned int blocks_z,
    unsigned int threads, unsigned int threads_y, unsigned int threads_z, unsigned int shared_bytes,
    CUstream stream, void **parameters, void **extra)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (blocks == 0 || threads == 0 || threads > 1024 || blocks_y != 1 || blocks_z != 1 ||
        threads_y != 1 || threads_z != 1 || shared_bytes != 0 || extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (standin_stream_device(stream) != standin_current()->device)
        return CUDA_ERROR_INVALID_HANDLE;
    struct launch *launch = malloc(sizeof *launch);
    if (launch == NULL)
        standin_object("no memory");
    *launch = (struct launch){
        .function = function,
        .to = *(const uint64_t *)parameters[0],
        .from = *(const uint64_t *)parameters[1],
        .count = *(const uint64_t *)parameters[2],
        .by = *(const float *)parameters[3],
    };
    if (!standin_is_devices(launch->to) || !standin_is_devices(launch->from))
        standin_object("%s is given the host's memory", function->name);
    standin_put(stream, run, launch);
    return CUDA_SUCCESS;
}
