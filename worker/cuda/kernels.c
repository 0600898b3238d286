/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c -- loading the image that the library has in it, and launching what is in that. */
#include "kernels.h"

#include <assert.h>
#include <stddef.h>

#define ELEMENTS_PER_THREAD 16u /* four tiles of the widest, which are read at once */

/* The image: kernels.S has it, from nvcc. */
extern const unsigned char cuda_kernels_image[];

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

CUresult
cuda_launch(const struct cuda_driver *driver, const struct cuda_launch *launch, CUstream stream)
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
    return cuda_launch(
        driver,
        &(struct cuda_launch){
            .function = kernels->functions[kernel],
            .argument = arguments,
            .elements = arguments->count,
            .elements_per_thread = ELEMENTS_PER_THREAD,
            .blocks_max = kernels->blocks_max},
        stream);
}
