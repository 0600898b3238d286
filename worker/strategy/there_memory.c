/* SPDX-License-Identifier: Apache-2.0 */
/* there_memory.c -- the memory of values on a replica's device: what is given up is kept for the
 * next ones, for a device's driver takes its time for each, and may wait for all that runs there.
 *
 * Whoever gives a value up may have work in the replica's stream that still reads it. So a block is
 * taken again only by that replica's own thread, which writes to it in the same stream, while all
 * replicas are in a call, behind what they had in their streams, or while nothing runs.
 */
#include <assert.h>
#include <stdlib.h>

#include "there.h"

#define BLOCK_BYTES_MIN 512u

struct block {
    struct there_memory *memory;
    LINKS(struct block) kept;
    struct sumac_buffer *buffer; /* the device's */
    uint64_t bytes;
};

struct there_memory {
    struct device *device;
    pthread_mutex_t mutex;   /* guards what follows */
    LIST(struct block) kept; /* the newest first */
    uint32_t kept_count;
    uint64_t kept_bytes;
    uint64_t references; /* of the strategy, while it is there, and of each block that is out */
    bool closed;
};

static void free_block(struct block *block)
{
    sumac_buffer_unref(block->buffer);
    free(block);
}

static void keep_no_more(struct there_memory *memory, struct block *block)
{
    assert(memory->kept_count > 0);
    assert(memory->kept_bytes >= block->bytes);
    LIST_REMOVE(&memory->kept, block, kept);
    memory->kept_count--;
    memory->kept_bytes -= block->bytes;
}

static void unref(struct there_memory *memory) /* unlocks */
{
    assert(memory->references > 0);
    const bool last = --memory->references == 0;
    pthread_mutex_unlock(&memory->mutex);
    if (!last)
        return;
    assert(memory->kept_count == 0);
    pthread_mutex_destroy(&memory->mutex);
    free(memory);
}

struct there_memory *there_memory_open(struct device *device)
{
    struct there_memory *memory = calloc(1, sizeof *memory);

    assert(device != NULL);
    if (memory == NULL)
        return NULL;
    pthread_mutex_init(&memory->mutex, NULL);
    memory->device = device;
    memory->references = 1;
    return memory;
}

static void forget_kept(struct there_memory *memory)
{
    while (memory->kept.first != NULL) {
        struct block *block = memory->kept.first;
        keep_no_more(memory, block);
        free_block(block);
    }
}

void there_memory_close(struct there_memory *memory)
{
    if (memory == NULL)
        return;
    pthread_mutex_lock(&memory->mutex);
    assert(!memory->closed);
    forget_kept(memory);
    memory->closed = true;
    unref(memory);
}

/* Nobody has the value any more. */
static void give(void *context)
{
    struct block *block = context;
    struct there_memory *memory = block->memory;

    assert(memory != NULL);
    pthread_mutex_lock(&memory->mutex);
    LIST_PREPEND(&memory->kept, block, kept);
    memory->kept_count++;
    memory->kept_bytes += block->bytes;
    while (memory->kept_count > (memory->closed ? 0 : THERE_KEPT_MAX) ||
           memory->kept_bytes > THERE_KEPT_BYTES_MAX) {
        block = memory->kept.last;
        keep_no_more(memory, block);
        free_block(block);
    }
    unref(memory);
}

/* The newest that fits, without much left over. NULL: none. */
static struct block *take_kept(struct there_memory *memory, uint64_t bytes)
{
    for (struct block *block = memory->kept.first; block != NULL; block = block->kept.next)
        if (block->bytes >= bytes && block->bytes / 2 <= bytes) {
            keep_no_more(memory, block);
            return block;
        }
    return NULL;
}

static struct block *make_block(struct there_memory *memory, uint64_t bytes)
{
    struct block *block = calloc(1, sizeof *block);

    if (block == NULL)
        return NULL;
    *block = (struct block){.memory = memory, .bytes = bytes};
    enum sumac_status status = device_buffer_create(memory->device, bytes, &block->buffer);
    if (status != SUMAC_OK) { /* it may be what is kept that fills the device */
        pthread_mutex_lock(&memory->mutex);
        const bool some = memory->kept_count > 0;
        forget_kept(memory);
        pthread_mutex_unlock(&memory->mutex);
        status = some ? device_buffer_create(memory->device, bytes, &block->buffer) : status;
    }
    if (status == SUMAC_OK)
        return block;
    free(block);
    return NULL;
}

struct sumac_buffer *there_memory_take(struct there_memory *memory, uint64_t bytes, bool again)
{
    struct sumac_buffer *buffer = NULL;

    if (bytes > PTRDIFF_MAX - BLOCK_BYTES_MIN)
        return NULL;
    const uint64_t wanted =
        (bytes / BLOCK_BYTES_MIN + (bytes % BLOCK_BYTES_MIN != 0 || bytes == 0)) * BLOCK_BYTES_MIN;
    pthread_mutex_lock(&memory->mutex);
    assert(!memory->closed);
    struct block *block = again ? take_kept(memory, wanted) : NULL;
    memory->references++;
    pthread_mutex_unlock(&memory->mutex);
    if (block == NULL)
        block = make_block(memory, wanted);
    if (block == NULL) {
        pthread_mutex_lock(&memory->mutex);
        unref(memory);
        return NULL;
    }
    assert(block->bytes >= bytes);
    if (sumac_buffer_wrap(
            sumac_buffer_data(block->buffer), bytes, sumac_buffer_place(block->buffer), give, block,
            &buffer) != SUMAC_OK)
        give(block);
    return buffer;
}
