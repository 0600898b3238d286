/* SPDX-License-Identifier: Apache-2.0 */
/* each_byte.h -- a struct changed in one byte after the other, for what compares all of it: a
 * member that is added, and forgotten in the comparison, is found without a line of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Members that are left alone: pointers, and what is not compared. */
struct member {
    size_t offset, bytes;
};
#define MEMBER(type, name)                                                                         \
    {                                                                                              \
        offsetof(type, name), sizeof((type *)NULL)->name                                           \
    }

static inline bool is_among(const struct member *members, size_t count, size_t at)
{
    for (size_t i = 0; i < count; i++)
        if (at >= members[i].offset && at - members[i].offset < members[i].bytes)
            return true;
    return false;
}

/* Which bytes of the type hold something: 0 in padding. A compiler that cannot say so tries none.
 */
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define SAY_BYTES(type, bytes)                                                                     \
    do {                                                                                           \
        type filled;                                                                               \
        memset(&filled, 0xff, sizeof filled);                                                      \
        __builtin_clear_padding(&filled);                                                          \
        memcpy(bytes, &filled, sizeof filled);                                                     \
    } while (0)
#endif
#endif
#ifndef SAY_BYTES
#define SAY_BYTES(type, bytes) memset(bytes, 0, sizeof(type))
#endif
