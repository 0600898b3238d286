/* SPDX-License-Identifier: Apache-2.0 */
/* modules.c -- any image is accepted, and a kernel is its twin on the CPU, by its name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define PREFIX "sumac_" /* of each kernel's name */

#define SHARED_BYTES_MAX 232448 /* of a block, once its kernel is told: as an H100 has */

struct CUmod_st {
    struct CUctx_st *of;
    struct CUfunc_st *functions; /* that were asked for */
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
    while (module->functions != NULL) {
        struct CUfunc_st *function = module->functions;
        module->functions = function->next;
        free(function);
    }
    free(module);
    return CUDA_SUCCESS;
}

/* A kernel of the program's own: its twin is in the library that SUMAC_STANDIN_KERNELS names, as
 * standin_kernel_NAME. */
static bool find_of_program(const char *name, struct CUfunc_st *function)
{
    const char *file = getenv("SUMAC_STANDIN_KERNELS");
    void *library = file == NULL ? NULL : dlopen(file, RTLD_NOW);
    char symbol[128];

    if (file != NULL && library == NULL)
        standin_object("SUMAC_STANDIN_KERNELS: %s", dlerror());
    (void)snprintf(symbol, sizeof symbol, "standin_kernel_%s", name);
    const struct CUfunc_st *twin = library == NULL ? NULL : dlsym(library, symbol);
    if (twin != NULL)
        *function = *twin;
    return twin != NULL;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const CUresult result = standin_enter(__func__, true);
    struct CUfunc_st found;

    if (result != CUDA_SUCCESS)
        return result;
    if (module->of != standin_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    const bool is_ours = strncmp(name, PREFIX, strlen(PREFIX)) == 0;
    const char *rest = is_ours ? name + strlen(PREFIX) : name;
    if (is_ours ? !standin_twin_find(rest, &found) && !standin_update_twin_find(rest, &found)
                : !find_of_program(name, &found))
        return CUDA_ERROR_NOT_FOUND;
    struct CUfunc_st *made = malloc(sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = found;
    (void)snprintf(made->name, sizeof made->name, "%s", rest);
    atomic_init(&made->shared_bytes_max, 48 * 1024);
    made->next = module->functions;
    module->functions = made;
    *function = made;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        standin_object("nothing is known of attribute %d of a function", (int)attribute);
    if (value < 0 || value > SHARED_BYTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store(&function->shared_bytes_max, value);
    return CUDA_SUCCESS;
}

void *standin_array(const char *kernel, uint64_t address, uint64_t bytes)
{
    if (!standin_is_devices(address))
        standin_object("%s is given the host's memory", kernel);
    return standin_memory(address, bytes);
}

struct launch {
    struct CUfunc_st function; /* its module may be gone when it runs */
    _Alignas(8) unsigned char argument[];
};

static CUresult run(void *context)
{
    const struct launch *launch = context;

    return launch->function.run(&launch->function, launch->argument);
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
        threads_y != 1 || threads_z != 1 || extra != NULL ||
        shared_bytes > (unsigned)atomic_load(&function->shared_bytes_max))
        return CUDA_ERROR_INVALID_VALUE;
    if (standin_stream_device(stream) != standin_current()->device)
        return CUDA_ERROR_INVALID_HANDLE;
    struct launch *launch = malloc(sizeof *launch + function->argument_bytes);
    if (launch == NULL)
        standin_object("no memory");
    launch->function = *function;
    memcpy(launch->argument, parameters[0], function->argument_bytes);
    standin_put(stream, run, launch);
    return CUDA_SUCCESS;
}
