/* SPDX-License-Identifier: Apache-2.0 */
/* absurd_device.c -- sumac/device.h without a device, and without what it is to do. */
#include <string.h>

#include "absurd.h"

void try_devices(void)
{
    const struct sumac_launch launch = {.image = "", .kernel = "k", .blocks = 1, .threads = 1};
    const struct sumac_copy copy = {.bytes = UINT64_MAX};
    struct sumac_buffer *buffer = NULL;
    char text[2] = "x";

    HOLDS(sumac_device_name, "NULL text", sumac_device_name(NULL, NULL, 8)[0] == '\0');
    HOLDS(sumac_device_name, "no room", sumac_device_name(NULL, text, 0)[0] == '\0');
    HOLDS(sumac_device_name, "NULL", sumac_device_name(NULL, text, 2)[0] == '\0');
    HOLDS(sumac_device_gpu, "NULL", sumac_device_gpu(NULL) == -1);
    HOLDS(sumac_device_stream, "NULL", sumac_device_stream(NULL) == NULL);
    REFUSED(
        sumac_device_buffer_create, "NULL", INVALID_ARGUMENT, "device is NULL",
        sumac_device_buffer_create(NULL, UINT64_MAX, &buffer, error));
    REFUSED(
        sumac_device_host_buffer_create, "NULL", INVALID_ARGUMENT, "device is NULL",
        sumac_device_host_buffer_create(NULL, UINT64_MAX, &buffer, error));
    REFUSED(
        sumac_device_copy, "NULL", INVALID_ARGUMENT, "device is NULL",
        sumac_device_copy(NULL, &copy, error));
    REFUSED(
        sumac_device_launch, "NULL", INVALID_ARGUMENT, "device is NULL",
        sumac_device_launch(NULL, &launch, error));
    REFUSED(
        sumac_device_wait, "NULL", INVALID_ARGUMENT, "device is NULL",
        sumac_device_wait(NULL, error));
    HOLDS(sumac_device_buffer_create, "untouched", buffer == NULL);
}
