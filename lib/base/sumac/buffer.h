/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.h -- counted bytes with a place.
 *
 * A buffer owns its bytes, or borrows the caller's for as long as it lives. The place says which
 * memory they are in.
 */
#ifndef SUMAC_BUFFER_H
#define SUMAC_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/status.h"

enum sumac_place_kind {
    SUMAC_PLACE_HOST = 0, /* ordinary memory */
    SUMAC_PLACE_CUDA = 2, /* the memory of CUDA device `device` */
};

struct sumac_place {
    enum sumac_place_kind kind;
    uint32_t device; /* of CUDA; 0 elsewhere */
};

struct sumac_buffer;

/* Allocate `bytes` (0 is fine) of zeroed host memory, 64-byte aligned, with one reference.
 * Gives    *buffer; release with sumac_buffer_unref.
 * Fails    RESOURCE_EXHAUSTED: no memory.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_buffer_create(uint64_t bytes, struct sumac_buffer **buffer);

/* Wrap memory of the caller's; `release` (NULL: nothing) is called with `context` when the last
 * reference goes. A zeroed place is the host's.
 * Borrows  data until then. The library only reads what an operation takes as an operand: a
 *          variable that is assigned wrapped memory gets a copy.
 * Gives    *buffer; release with sumac_buffer_unref.
 * Fails    RESOURCE_EXHAUSTED: no memory; `release` is not called then. INVALID_ARGUMENT: `data` is
 *          NULL and `bytes` is not 0, or there is no such place.
 * Threads  any; `release` runs on the thread of the last unref, which may be one of the library's.
 */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_buffer_wrap(
    void *data, uint64_t bytes, struct sumac_place place, void (*release)(void *), void *context,
    struct sumac_buffer **buffer);

/* Take a reference, and return the same buffer; give one back. Of NULL they do nothing. Threads
 * any. */
SUMAC_API struct sumac_buffer *sumac_buffer_ref(struct sumac_buffer *buffer);
SUMAC_API void sumac_buffer_unref(struct sumac_buffer *buffer);

/* Is this the only reference to bytes that the library allocated? Then only its holder reads or
 * writes them. False for NULL, and for memory that a program wrapped: the program has it, too.
 * Threads  any. */
SUMAC_API bool sumac_buffer_is_unique(const struct sumac_buffer *buffer);

/* The first byte (in a device's memory: its address there), how many there are, and where. For NULL
 * there are none, on the host.
 * Lends    the bytes, until the last unref.
 * Threads  any. */
SUMAC_API void *sumac_buffer_data(const struct sumac_buffer *buffer);
SUMAC_API uint64_t sumac_buffer_bytes(const struct sumac_buffer *buffer);
SUMAC_API struct sumac_place sumac_buffer_place(const struct sumac_buffer *buffer);

#endif
