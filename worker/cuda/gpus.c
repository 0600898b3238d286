/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c -- what the driver and NCCL say about the GPUs of this machine. */
#include "gpus.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "nccl_library.h"
#include "text.h"

/* Linux has the release beside the module; the driver's own functions do not tell it. */
static void read_release(char *text, size_t text_bytes)
{
    FILE *file = fopen("/sys/module/nvidia/version", "re");

    text[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(text, (int)text_bytes, file) == NULL)
        text[0] = '\0';
    (void)fclose(file);
    text[strcspn(text, "\n")] = '\0';
    text_make_line(text);
}

static CUresult describe(const struct cuda_driver *driver, CUdevice number, struct gpu *gpu)
{
    int major = 0, minor = 0;
    size_t memory_bytes = 0;
    char name[sizeof gpu->name] = "";
    CUresult result = driver->cuDeviceGetName(name, (int)sizeof name, number);

    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceTotalMem(&memory_bytes, number);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(
            &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(
            &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number);
    if (result != CUDA_SUCCESS)
        return result;
    *gpu = (struct gpu){
        .memory_bytes = memory_bytes,
        .capability_major = (uint32_t)major,
        .capability_minor = (uint32_t)minor,
    };
    (void)text_print_line(gpu->name, sizeof gpu->name, "%s", name);
    return CUDA_SUCCESS;
}

static CUresult
find_peers(const struct cuda_driver *driver, const CUdevice *numbers, struct gpus *gpus)
{
    assert(gpus->count <= GPUS_MAX);
    for (uint32_t i = 0; i < gpus->count; i++)
        for (uint32_t j = 0; j < gpus->count; j++) {
            int reaches = 0;
            const CUresult result =
                i == j ? CUDA_SUCCESS
                       : driver->cuDeviceCanAccessPeer(&reaches, numbers[i], numbers[j]);
            if (result != CUDA_SUCCESS)
                return result;
            if (reaches != 0)
                gpus->items[i].reaches |= UINT64_C(1) << j;
        }
    return CUDA_SUCCESS;
}

static void describe_all(const struct cuda_driver *driver, struct gpus *gpus)
{
    CUdevice numbers[GPUS_MAX];
    CUresult result = CUDA_SUCCESS;
    const uint32_t count = driver->devices < GPUS_MAX ? driver->devices : GPUS_MAX;

    assert(count > 0);
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        result = driver->cuDeviceGet(&numbers[i], (int)i);
        if (result == CUDA_SUCCESS)
            result = describe(driver, numbers[i], &gpus->items[i]);
        if (result == CUDA_SUCCESS)
            gpus->count++;
    }
    if (result == CUDA_SUCCESS)
        result = find_peers(driver, numbers, gpus);
    (void)cuda_check(&gpus->missing, driver, result, "the driver does not describe every GPU");
}

void gpus_find(struct gpus *gpus)
{
    const struct cuda_driver *driver = NULL;
    const struct nccl_library *nccl = NULL;

    *gpus = (struct gpus){.count = 0};
    read_release(gpus->driver, sizeof gpus->driver);
    if (cuda_driver_open(&driver, &gpus->missing) == SUMAC_OK)
        describe_all(driver, gpus);
    const int cuda_version = cuda_driver_version();
    gpus->cuda_major = (uint32_t)cuda_version / 1000;
    gpus->cuda_minor = (uint32_t)cuda_version % 1000 / 10;
    (void)nccl_library_open(&nccl, &gpus->nccl_missing);
    nccl_library_version(&gpus->nccl_major, &gpus->nccl_minor, &gpus->nccl_patch);
}
