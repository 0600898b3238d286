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

/* Zeroed values for the variables, in the memory of `device`. A zeroed struct is a fine thing to
 * deinit.
 * Fails    RESOURCE_EXHAUSTED, with the bytes that were wanted. */
enum sumac_status tensors_init(
    struct tensors *tensors, struct device *device, struct sumac_client_variable *const *variables,
    uint32_t count, struct sumac_error *error);
/* The same in memory of the host that copies to and from `device` are quick with. */
enum sumac_status tensors_init_host(
    struct tensors *tensors, struct device *device, struct sumac_client_variable *const *variables,
    uint32_t count, struct sumac_error *error);
/* The same in the host's memory, each of float32, whatever its variable is. */
enum sumac_status tensors_init_float32(
    struct tensors *tensors, struct sumac_client_variable *const *variables, uint32_t count,
    struct sumac_error *error);
/* The same in the memory that `device` works on: the host's own tensors, where that is the host's.
 * Fails    RESOURCE_EXHAUSTED, likewise. */
enum sumac_status tensors_mirror(
    struct tensors *mirror, struct device *device, const struct tensors *host,
    struct sumac_error *error);
void tensors_deinit(struct tensors *tensors);

/* Put into the queue: `to` gets what `from` has. Of a mirror that is the host's own there is
 * nothing to do. */
void tensors_copy(struct device_queue *queue, const struct tensors *to, const struct tensors *from);
