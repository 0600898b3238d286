/* SPDX-License-Identifier: Apache-2.0 */
/* images.c -- images that are loaded, and the kernels of theirs that were asked for: few of both,
 * so that they are looked through. */
#include "cuda_device.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_BYTES_DEFAULT (48u * 1024u) /* that every kernel may have, unless it is told */

struct kernel {
    LINKS(struct kernel) of_image;
    CUfunction function;
    uint32_t shared_bytes_max; /* of a launch's dynamic shared memory */
    char name[SUMAC_KERNEL_NAME_BYTES_MAX];
};

struct image {
    LINKS(struct image) of_device;
    const void *data;
    CUmodule module;
    LIST(struct kernel) kernels;
};

static void unload(const struct cuda_driver *driver, struct image *image)
{
    while (image->kernels.first != NULL) {
        struct kernel *kernel = image->kernels.first;
        LIST_REMOVE(&image->kernels, kernel, of_image);
        free(kernel);
    }
    (void)driver->cuModuleUnload(image->module);
    free(image);
}

void images_unload(struct cuda_device *device)
{
    while (device->images.first != NULL) {
        struct image *image = device->images.first;
        LIST_REMOVE(&device->images, image, of_device);
        unload(device->driver, image);
    }
}

static CUresult load(struct cuda_device *device, const void *data, struct image **image)
{
    struct image *loaded = calloc(1, sizeof *loaded);

    if (loaded == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = device->driver->cuModuleLoadData(&loaded->module, data);
    if (result != CUDA_SUCCESS) {
        free(loaded);
        return result;
    }
    assert(loaded->module != NULL);
    loaded->data = data;
    LIST_APPEND(&device->images, loaded, of_device);
    *image = loaded;
    return CUDA_SUCCESS;
}

static CUresult look_up(
    const struct cuda_driver *driver, struct image *image, const char *name, struct kernel **kernel)
{
    struct kernel *found = calloc(1, sizeof *found);

    assert(strlen(name) < sizeof found->name);
    if (found == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = driver->cuModuleGetFunction(&found->function, image->module, name);
    if (result != CUDA_SUCCESS) {
        free(found);
        return result;
    }
    assert(found->function != NULL);
    memcpy(found->name, name, strlen(name) + 1);
    found->shared_bytes_max = SHARED_BYTES_DEFAULT;
    LIST_APPEND(&image->kernels, found, of_image);
    *kernel = found;
    return CUDA_SUCCESS;
}

/* The bound only grows: another queue may be about to launch the kernel with more than this one. */
static CUresult
allow_shared(const struct cuda_driver *driver, struct kernel *kernel, uint32_t shared_bytes)
{
    if (shared_bytes <= kernel->shared_bytes_max)
        return CUDA_SUCCESS;
    const CUresult result =
        shared_bytes > INT_MAX
            ? CUDA_ERROR_INVALID_VALUE
            : driver->cuFuncSetAttribute(
                  kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                  (int)shared_bytes);
    if (result == CUDA_SUCCESS)
        kernel->shared_bytes_max = shared_bytes;
    return result;
}

/* Under the mutex. */
static CUresult
find(struct cuda_device *device, const struct sumac_launch *launch, CUfunction *function)
{
    struct image *image = device->images.first;
    CUresult result = CUDA_SUCCESS;

    while (image != NULL && image->data != launch->image)
        image = image->of_device.next;
    if (image == NULL)
        result = load(device, launch->image, &image);
    if (result != CUDA_SUCCESS)
        return result;
    struct kernel *kernel = image->kernels.first;
    while (kernel != NULL && strcmp(kernel->name, launch->kernel) != 0)
        kernel = kernel->of_image.next;
    if (kernel == NULL)
        result = look_up(device->driver, image, launch->kernel, &kernel);
    if (result == CUDA_SUCCESS)
        result = allow_shared(device->driver, kernel, launch->shared_bytes);
    if (result == CUDA_SUCCESS)
        *function = kernel->function;
    return result;
}

CUresult
images_find(struct cuda_device *device, const struct sumac_launch *launch, CUfunction *function)
{
    assert(*function == NULL);
    pthread_mutex_lock(&device->mutex);
    const CUresult result = find(device, launch, function);
    pthread_mutex_unlock(&device->mutex);
    return result;
}
