/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c -- loading the image that the library has in it, and launching what is in that. */
#include "kernels.h"

#include <assert.h>
#include <stddef.h>

#define THREADS 256u     /* of a block */
#define BLOCKS_MAX 4096u /* more than any GPU runs at once: then each thread takes several */

/* The image: kernels.S has it, from nvcc. */
extern const unsigned char cuda_kernels_image[];

static const char *const names[CUDA_KERNELS] = {
#define X(NAME, name) [CUDA_KERNEL_##NAME] = name,
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
    return result;
}

void cuda_kernels_unload(const struct cuda_driver *driver, struct cuda_kernels *kernels)
{
    if (kernels->module != NULL)
        (void)driver->cuModuleUnload(kernels->module);
    kernels->module = NULL;
}

CUresult cuda_kernel_launch(
    const struct cuda_driver *driver, const struct cuda_kernels *kernels, enum cuda_kernel kernel,
    const struct cuda_kernel_arguments *arguments, CUstream stream)
{
    struct cuda_kernel_arguments given = *arguments;
    void *parameters[] = {&given.to, &given.from, &given.count, &given.by};
    const uint64_t blocks = (given.count + THREADS - 1) / THREADS;

    assert(kernel < CUDA_KERNELS);
    if (given.count == 0)
        return CUDA_SUCCESS;
    assert(kernels->module != NULL);
    return driver->cuLaunchKernel(
        kernels->functions[kernel], blocks < BLOCKS_MAX ? (unsigned)blocks : BLOCKS_MAX, 1, 1,
        THREADS, 1, 1, 0, stream, parameters, NULL);
}
