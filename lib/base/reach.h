/* SPDX-License-Identifier: Apache-2.0 */
/* reach.h -- bytes that the host does not see, to its memory and back: who needs them there asks
 * the buffer, wherever it is.
 *
 * How a place's bytes are got at is told once, by whoever opens the first device of the kind.
 */
#ifndef BASE_REACH_H
#define BASE_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/buffer.h"
#include "sumac/status.h"
#include "sumac/tensor.h"

/* Each returns when it is done, after what the calling thread has the device do before: of a thread
 * that runs a device's work, in that work's order. `there` is an address of the place. */
struct reach {
    enum sumac_status (*read)(
        struct sumac_place place, const void *there, void *here, uint64_t bytes,
        struct sumac_error *error);
    enum sumac_status (*write)(
        struct sumac_place place, void *there, const void *here, uint64_t bytes,
        struct sumac_error *error);
};

/* From now on bytes in the memory of CUDA devices are got at so. Lent for good. Threads  any. */
void reach_set(const struct reach *way);

/* Does the host see the bytes: may they be read where they lie? Of NULL: yes. Threads  any. */
bool reach_is_here(const struct sumac_buffer *buffer);

/* Copy a tensor's elements, wherever they are, to the host's memory; or from there.
 * Fails    FAILED_PRECONDITION: they lie on a device, and none is open. As the device. */
enum sumac_status
reach_read(const struct sumac_tensor *tensor, void *here, struct sumac_error *error);
enum sumac_status
reach_write(const struct sumac_tensor *tensor, const void *here, struct sumac_error *error);

#endif
