/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h -- one buffer that holds a tensor for each of some variables. */
#pragma once

#include <stdint.h>

#include "device.h"
#include "sumac/client.h"

struct tensors {
    struct sumac_buffer *buffer;
    struct sumac_tensor *items; /* (count), each 64-byte aligned in the buffer */
    uint32_t count;
};

enum tensors_memory {
    TENSORS_OF_DEVICE, /* the device's own */
    TENSORS_OF_HOST,   /* the host's, that copies to and from the device are quick with */
    TENSORS_FLOAT32, /* any of the host's, for tensors of float32, whatever a variable's type is */
};

/* Zeroed values for the variables. A zeroed struct is a fine thing to deinit.
 * Fails    RESOURCE_EXHAUSTED, with the bytes that were wanted. */
enum sumac_status tensors_init(
    struct tensors *tensors, enum tensors_memory memory, struct device *device,
    struct sumac_client_variable *const *variables, uint32_t count, struct sumac_error *error);
/* The same in the memory that `device` works on: the host's own tensors, where that is the host's.
 * Fails    RESOURCE_EXHAUSTED, likewise. */
enum sumac_status tensors_mirror(
    struct tensors *mirror, struct device *device, const struct tensors *host,
    struct sumac_error *error);
void tensors_deinit(struct tensors *tensors);
