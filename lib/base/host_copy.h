/* SPDX-License-Identifier: Apache-2.0 */
/* host_copy.h -- copies between the host's memory and a buffer's, which may be on a device. The
 * first device of a kind that is opened sets the functions that copy (host_copy_set).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/buffer.h"
#include "sumac/status.h"
#include "sumac/tensor.h"

/* Each returns when it is done, after what the calling thread has the device do before: of a thread
 * that runs a device's work, in that work's order. `there` is an address of the place. */
struct host_copy {
    enum sumac_status (*read)(
        struct sumac_place place, const void *there, void *here, uint64_t bytes,
        struct sumac_error *error);
    enum sumac_status (*write)(
        struct sumac_place place, void *there, const void *here, uint64_t bytes,
        struct sumac_error *error);
};

/* Copy from and to the memory of CUDA devices so. Lent until the process ends. Threads  any. */
void host_copy_set(const struct host_copy *way);

/* May the host read the bytes where they lie? True for NULL. Threads  any. */
bool host_copy_is_here(const struct sumac_buffer *buffer);

/* Copy a tensor's elements, wherever they are, to the host's memory; or from there.
 * Fails    FAILED_PRECONDITION: they lie on a device, and none is open. As the device. */
enum sumac_status
host_copy_read(const struct sumac_tensor *tensor, void *here, struct sumac_error *error);
enum sumac_status
host_copy_write(const struct sumac_tensor *tensor, const void *here, struct sumac_error *error);
