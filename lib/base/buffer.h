/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.h -- buffers of memory that the library itself has set aside. */
#pragma once

#include "sumac/buffer.h"

/* As sumac_buffer_wrap, of memory that the buffer alone has: it may be unique.
 * Takes  data; `release` gives it back. */
enum sumac_status buffer_own(
    void *data, uint64_t bytes, struct sumac_place place, void (*release)(void *), void *context,
    struct sumac_buffer **buffer);
