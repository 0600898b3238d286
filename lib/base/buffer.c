/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c -- counted bytes with a place. */
#include "buffer.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

struct sumac_buffer {
    atomic_uint_least64_t references;
    uint8_t *data;
    uint64_t bytes;
    struct sumac_place place;
    void (*release)(void *context); /* NULL: nothing to call */
    void *context;
    bool owned;    /* data is from memory_heap, and goes with the buffer */
    bool borrowed; /* a program wrapped its own memory, which it may read and write meanwhile */
};

enum sumac_status sumac_buffer_create(uint64_t bytes, struct sumac_buffer **buffer)
{
    if (buffer == NULL)
        return SUMAC_INVALID_ARGUMENT;
    if (bytes > PTRDIFF_MAX)
        return SUMAC_RESOURCE_EXHAUSTED;
    struct sumac_buffer *made = calloc(1, sizeof *made);
    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    made->data = memory_take(&memory_heap, (size_t)bytes);
    if (made->data == NULL) {
        free(made);
        return SUMAC_RESOURCE_EXHAUSTED;
    }
    memset(made->data, 0, (size_t)bytes);
    made->bytes = bytes;
    made->owned = true;
    atomic_init(&made->references, 1);
    *buffer = made;
    return SUMAC_OK;
}

enum sumac_status buffer_own(
    void *data, uint64_t bytes, struct sumac_place place, void (*release)(void *), void *context,
    struct sumac_buffer **buffer)
{
    if (buffer == NULL || (data == NULL && bytes > 0) || (uint32_t)place.kind > SUMAC_PLACE_CUDA)
        return SUMAC_INVALID_ARGUMENT;
    struct sumac_buffer *made = calloc(1, sizeof *made);
    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    made->data = data;
    made->bytes = bytes;
    made->place = place;
    made->release = release;
    made->context = context;
    atomic_init(&made->references, 1);
    *buffer = made;
    return SUMAC_OK;
}

enum sumac_status sumac_buffer_wrap(
    void *data, uint64_t bytes, struct sumac_place place, void (*release)(void *), void *context,
    struct sumac_buffer **buffer)
{
    const enum sumac_status status = buffer_own(data, bytes, place, release, context, buffer);

    if (status == SUMAC_OK)
        (*buffer)->borrowed = true;
    return status;
}

struct sumac_buffer *sumac_buffer_ref(struct sumac_buffer *buffer)
{
    if (buffer == NULL)
        return NULL;
    const uint64_t before = atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return buffer;
}

void sumac_buffer_unref(struct sumac_buffer *buffer)
{
    if (buffer == NULL)
        return;
    /* Acquire and release: what other holders wrote is seen before the bytes go. */
    const uint64_t before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before != 1)
        return;
    if (buffer->release != NULL)
        buffer->release(buffer->context);
    if (buffer->owned)
        memory_give(&memory_heap, buffer->data, (size_t)buffer->bytes);
    free(buffer);
}

bool sumac_buffer_is_unique(const struct sumac_buffer *buffer)
{
    return buffer != NULL && !buffer->borrowed &&
           atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}

void *sumac_buffer_data(const struct sumac_buffer *buffer)
{
    return buffer == NULL ? NULL : buffer->data;
}

uint64_t sumac_buffer_bytes(const struct sumac_buffer *buffer)
{
    return buffer == NULL ? 0 : buffer->bytes;
}

struct sumac_place sumac_buffer_place(const struct sumac_buffer *buffer)
{
    return buffer == NULL ? (struct sumac_place){SUMAC_PLACE_HOST, 0} : buffer->place;
}
