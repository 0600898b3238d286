/* SPDX-License-Identifier: Apache-2.0 */
/* little_endian.h -- numbers as records have them: the least byte first, on every machine. */
#pragma once

#include <assert.h>
#include <stdint.h>

static inline void little_endian_put(uint8_t *out, uint32_t bytes, uint64_t value)
{
    assert(bytes == 8 || value >> 8 * bytes == 0);
    for (uint32_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t little_endian_get(const uint8_t *data, uint32_t bytes)
{
    uint64_t value = 0;

    assert(bytes <= 8);
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}
