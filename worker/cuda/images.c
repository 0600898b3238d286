/* SPDX-License-Identifier: Apache-2.0 */
/* images.c -- images that are loaded, and the kernels of theirs that were asked for: few of both,
 * so that they are looked through. */
#include "images.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
    LINKS(struct kernel) of_image;
    CUfunction function;
    char name[SUMAC_KERNEL_NAME_BYTES_MAX];
};

struct image {
    LINKS(struct image) of_device;
    const void *data;
    CUmodule module;
    LIST(struct kernel) kernels;
};

void images_init(struct images *images)
{
    assert(images->loaded.first == NULL);
    pthread_mutex_init(&images->mutex, NULL);
}

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

void images_deinit(const struct cuda_driver *driver, struct images *images)
{
    while (images->loaded.first != NULL) {
        struct image *image = images->loaded.first;
        LIST_REMOVE(&images->loaded, image, of_device);
        unload(driver, image);
    }
    pthread_mutex_destroy(&images->mutex);
}

static CUresult load(
    const struct cuda_driver *driver, struct images *images, const void *data, struct image **image)
{
    struct image *loaded = calloc(1, sizeof *loaded);

    if (loaded == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = driver->cuModuleLoadData(&loaded->module, data);
    if (result != CUDA_SUCCESS) {
        free(loaded);
        return result;
    }
    assert(loaded->module != NULL);
    loaded->data = data;
    LIST_APPEND(&images->loaded, loaded, of_device);
    *image = loaded;
    return CUDA_SUCCESS;
}

static CUresult look_up(
    const struct cuda_driver *driver, struct image *image, const char *name, CUfunction *function)
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
    memcpy(found->name, name, strlen(name) + 1);
    LIST_APPEND(&image->kernels, found, of_image);
    *function = found->function;
    return CUDA_SUCCESS;
}

/* Under the mutex. */
static CUresult find(
    const struct cuda_driver *driver, struct images *images, const struct sumac_launch *launch,
    CUfunction *function)
{
    struct image *image = images->loaded.first;

    while (image != NULL && image->data != launch->image)
        image = image->of_device.next;
    if (image == NULL) {
        const CUresult result = load(driver, images, launch->image, &image);
        if (result != CUDA_SUCCESS)
            return result;
    }
    struct kernel *kernel = image->kernels.first;
    while (kernel != NULL && strcmp(kernel->name, launch->kernel) != 0)
        kernel = kernel->of_image.next;
    if (kernel == NULL)
        return look_up(driver, image, launch->kernel, function);
    assert(kernel->function != NULL);
    *function = kernel->function;
    return CUDA_SUCCESS;
}

CUresult images_find(
    const struct cuda_driver *driver, struct images *images, const struct sumac_launch *launch,
    CUfunction *function)
{
    pthread_mutex_lock(&images->mutex);
    const CUresult result = find(driver, images, launch, function);
    pthread_mutex_unlock(&images->mutex);
    return result;
}
