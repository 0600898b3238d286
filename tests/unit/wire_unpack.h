/* SPDX-License-Identifier: Apache-2.0 */
/* wire_unpack.h -- bytes of one message, unpacked and let go of. */
#pragma once

#include "wire.h"

/* Unpack bytes that lie in one span, in an arena of their own. */
static inline enum sumac_status
unpack_all(const wire_type *type, const uint8_t *data, size_t bytes, struct sumac_error *error)
{
    struct arena arena;
    struct wire_received received;
    const struct span span = {.data = data, .bytes = bytes};

    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    const enum sumac_status status = wire_unpack(type, &span, 1, &arena, &received, error);
    arena_deinit(&arena);
    return status;
}
