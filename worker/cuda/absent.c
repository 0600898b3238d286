/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c -- GPUs in a build without the CUDA toolkit: whoever asks for one is told. */
#include "device.h"

#include "error.h"
#include "gpus.h"

static enum sumac_status absent(struct sumac_error *error)
{
    return fail_unsupported(
        error, "this build has no GPUs: build it where the CUDA toolkit and NCCL's header are "
               "(cmake -DSUMAC_CUDA=ON says what it lacks)");
}

static enum sumac_status begin(struct device *device, struct sumac_error *error)
{
    (void)device;
    return absent(error);
}

static enum sumac_status count_devices(uint32_t *count, struct sumac_error *error)
{
    (void)count;
    return absent(error);
}

/* As nothing is ever opened, nothing else is called. */
const struct device_ops cuda_device_ops = {
    .name = "GPU",
    .place = SUMAC_PLACE_CUDA,
    .device_bytes = sizeof(struct device),
    .begin = begin,
    .count = count_devices,
};

void gpus_find(struct gpus *gpus)
{
    *gpus = (struct gpus){.count = 0};
    (void)absent(&gpus->missing);
}
