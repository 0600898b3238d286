/* SPDX-License-Identifier: Apache-2.0 */
/* spare_memory.c -- blocks are taken, given back, and freed when too many are kept. */
#define _GNU_SOURCE /* madvise */
#include "spare_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "buffer.h"
#include "error.h"
#include "strategy.h"

#define RESULT_BYTES_MIN (UINT64_C(64) << 10) /* smaller ones the heap keeps by itself */
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define PAGE_BYTES 4096u

struct spare_block {
    struct kept *kept;
    LINKS(struct spare_block) idle;
    struct sumac_buffer *whole;
    uint64_t bytes;
};

struct blocks {
    struct spare_block *first, *last;
};

static void free_block(struct spare_block *block)
{
    sumac_buffer_unref(block->whole);
    free(block);
}

/* Not under the mutex: a driver may wait for what runs on its device. */
static void free_blocks(struct blocks *blocks)
{
    while (blocks->first != NULL) {
        struct spare_block *block = blocks->first;
        LIST_REMOVE(blocks, block, idle);
        free_block(block);
    }
}

static void remove_idle(struct kept *kept, struct spare_block *block)
{
    assert(kept->count > 0);
    assert(kept->bytes >= block->bytes);
    LIST_REMOVE(&kept->idle, block, idle);
    kept->count--;
    kept->bytes -= block->bytes;
}

/* Under the mutex: the oldest, until there are no more than that. */
static void shrink(struct kept *kept, uint32_t count_max, uint64_t bytes_max, struct blocks *beyond)
{
    while (kept->count > count_max || kept->bytes > bytes_max) {
        struct spare_block *block = kept->idle.last;
        remove_idle(kept, block);
        LIST_PREPEND(beyond, block, idle);
    }
}

static void unref(struct kept *kept) /* unlocks */
{
    assert(kept->references > 0);
    const bool last = --kept->references == 0;
    pthread_mutex_unlock(&kept->mutex);
    if (!last)
        return;
    assert(kept->count == 0);
    pthread_mutex_destroy(&kept->mutex);
    free(kept);
}

struct kept *kept_open(const struct kept_source *source)
{
    struct kept *kept = calloc(1, sizeof *kept);

    assert(source->make != NULL);
    if (kept == NULL)
        return NULL;
    kept->source = *source;
    kept->references = 1;
    pthread_mutex_init(&kept->mutex, NULL);
    return kept;
}

void kept_close(struct kept *kept)
{
    struct blocks beyond = {NULL, NULL};

    if (kept == NULL)
        return;
    pthread_mutex_lock(&kept->mutex);
    assert(!kept->closed);
    kept->closed = true;
    shrink(kept, 0, 0, &beyond);
    unref(kept);
    free_blocks(&beyond);
}

/* Nobody has the value any more. */
static void give(void *context)
{
    struct spare_block *block = context;
    struct kept *kept = block->kept;
    struct blocks beyond = {NULL, NULL};

    pthread_mutex_lock(&kept->mutex);
    LIST_PREPEND(&kept->idle, block, idle);
    kept->count++;
    kept->bytes += block->bytes;
    shrink(kept, kept->closed ? 0 : kept->source.count_max, kept->source.bytes_max, &beyond);
    unref(kept);
    free_blocks(&beyond);
}

/* The newest that fits, without much left over. NULL: none. */
static struct spare_block *find_idle(const struct kept *kept, uint64_t room)
{
    for (struct spare_block *block = kept->idle.first; block != NULL; block = block->idle.next)
        if (block->bytes >= room && block->bytes / 2 <= room)
            return block;
    return NULL;
}

bool kept_free_idle(struct kept *kept)
{
    struct blocks beyond = {NULL, NULL};

    pthread_mutex_lock(&kept->mutex);
    shrink(kept, 0, 0, &beyond);
    pthread_mutex_unlock(&kept->mutex);
    const bool some = beyond.first != NULL;
    free_blocks(&beyond);
    return some;
}

/* Where there is no memory, it may be what is kept that takes it. */
static enum sumac_status
make_block(struct kept *kept, uint64_t room, struct spare_block **made, struct sumac_error *error)
{
    const struct kept_source *source = &kept->source;
    struct spare_block *block = calloc(1, sizeof *block);
    struct sumac_error why;

    if (block == NULL)
        return value_fail_for_memory(error);
    *block = (struct spare_block){.kept = kept, .bytes = room};
    enum sumac_status status = source->make(source->context, room, &block->whole, &why);
    if (status == SUMAC_RESOURCE_EXHAUSTED && kept_free_idle(kept))
        status = source->make(source->context, room, &block->whole, &why);
    if (status == SUMAC_OK) {
        *made = block;
        return SUMAC_OK;
    }
    free(block);
    return fail_again(error, &why);
}

enum sumac_status kept_take(
    struct kept *kept, const struct kept_wish *wish, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    assert(wish->room >= wish->bytes);
    pthread_mutex_lock(&kept->mutex);
    assert(!kept->closed);
    struct spare_block *block = wish->is_new ? NULL : find_idle(kept, wish->room);
    if (block != NULL)
        remove_idle(kept, block);
    kept->references++;
    pthread_mutex_unlock(&kept->mutex);
    if (block == NULL)
        status = make_block(kept, wish->room, &block, error);
    if (status != SUMAC_OK) {
        pthread_mutex_lock(&kept->mutex);
        unref(kept);
        return status;
    }
    assert(block->bytes >= wish->bytes);
    status = buffer_own(
        sumac_buffer_data(block->whole), wish->bytes, sumac_buffer_place(block->whole), give, block,
        buffer);
    if (status == SUMAC_OK)
        return SUMAC_OK;
    give(block);
    return value_fail_for_memory(error);
}

/* ---- the memory of a strategy's results on the host
 *
 * The kernel zeroes new memory page by page, which costs more than a sum does. So the memory of
 * earlier results is taken again. */

static uint64_t page_of(uint64_t bytes)
{
    return bytes < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES;
}

/* So many whole pages. */
static enum sumac_status
make_pages(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    const uint64_t page = page_of(bytes);
    void *data = aligned_alloc((size_t)page, (size_t)bytes);

    (void)context;
    if (data == NULL)
        return value_fail_for_memory(error);
    if (page == HUGE_PAGE_BYTES) /* a system without them gives small pages */
        (void)madvise(data, (size_t)bytes, MADV_HUGEPAGE);
    const enum sumac_status status = buffer_own(data, bytes, host, free, data, buffer);
    if (status == SUMAC_OK)
        return SUMAC_OK;
    free(data);
    return value_fail_for_memory(error);
}

struct kept *results_open(void)
{
    return kept_open(&(struct kept_source){
        .make = make_pages, .count_max = RESULTS_KEPT_MAX, .bytes_max = RESULTS_KEPT_BYTES_MAX});
}

struct sumac_value *results_make_tensor(
    struct kept *results, enum sumac_dtype dtype, const struct sumac_shape *shape, void **elements)
{
    struct sumac_tensor tensor;
    uint64_t bytes;

    if (sumac_shape_size(shape, dtype, NULL, &bytes) != SUMAC_OK)
        return NULL;
    if (bytes < RESULT_BYTES_MIN)
        return value_make_tensor(dtype, shape, elements);
    const uint64_t page = page_of(bytes);
    if (bytes > PTRDIFF_MAX - page)
        return NULL;
    struct sumac_buffer *buffer = NULL;
    const struct kept_wish wish = {.bytes = bytes, .room = (bytes + page - 1) / page * page};
    if (kept_take(results, &wish, &buffer, NULL) != SUMAC_OK)
        return NULL;
    struct sumac_value *value = sumac_tensor_view(buffer, 0, dtype, shape, &tensor) == SUMAC_OK
                                    ? sumac_value_of(&tensor)
                                    : NULL;
    *elements = sumac_buffer_data(buffer);
    sumac_buffer_unref(buffer);
    return value;
}
