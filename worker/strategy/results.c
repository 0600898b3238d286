/* SPDX-License-Identifier: Apache-2.0 */
/* results.c -- the memory of a strategy's results: what is given up is kept for the next ones.
 *
 *     results ─┬─ kept    blocks that nobody has, the newest first: at most KEPT_MAX,
 * KEPT_BYTES_MAX └─ out     blocks that are the buffers of values, which may outlive the strategy
 *
 * A step makes the same results as the one before; memory that is new from the kernel is zeroed by
 * it, page by page, which costs more than a sum does. Whoever drops the last reference of a value
 * gives its block back, from any thread.
 */
#define _GNU_SOURCE /* madvise */
#include "strategy.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "list.h"

#define RESULT_BYTES_MIN (UINT64_C(64) << 10) /* smaller ones the heap keeps by itself */
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define PAGE_BYTES 4096u

struct block {
    struct results *results;
    LINKS(struct block) kept;
    void *data;
    uint64_t bytes;
};

struct blocks {
    struct block *first, *last;
};

static void free_block(struct block *block)
{
    free(block->data);
    free(block);
}

static void keep(struct results *results, struct block *block)
{
    LIST_PREPEND(&results->kept, block, kept);
    results->kept_count++;
    results->kept_bytes += block->bytes;
}

static void keep_no_more(struct results *results, struct block *block)
{
    assert(results->kept_count > 0);
    assert(results->kept_bytes >= block->bytes);
    LIST_REMOVE(&results->kept, block, kept);
    results->kept_count--;
    results->kept_bytes -= block->bytes;
}

static void unref(struct results *results) /* unlocks */
{
    assert(results->references > 0);
    const bool last = --results->references == 0;
    pthread_mutex_unlock(&results->mutex);
    if (!last)
        return;
    assert(results->kept_count == 0);
    pthread_mutex_destroy(&results->mutex);
    free(results);
}

struct results *results_open(void)
{
    struct results *results = calloc(1, sizeof *results);

    if (results == NULL)
        return NULL;
    pthread_mutex_init(&results->mutex, NULL);
    results->references = 1;
    return results;
}

void results_close(struct results *results)
{
    if (results == NULL)
        return;
    pthread_mutex_lock(&results->mutex);
    assert(!results->closed);
    for (struct block *block = results->kept.first, *next; block != NULL; block = next) {
        next = block->kept.next;
        keep_no_more(results, block);
        free_block(block);
    }
    results->closed = true;
    unref(results);
}

/* ---- a block */

/* The newest that fits, without much left over. NULL: none. */
static struct block *find_kept(const struct results *results, uint64_t bytes)
{
    for (struct block *block = results->kept.first; block != NULL; block = block->kept.next)
        if (block->bytes >= bytes && block->bytes / 2 <= bytes)
            return block;
    return NULL;
}

static struct block *make_block(struct results *results, uint64_t bytes)
{
    const uint64_t page = bytes < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES;
    struct block *block = malloc(sizeof *block);

    if (block == NULL || bytes > PTRDIFF_MAX - page) {
        free(block);
        return NULL;
    }
    *block = (struct block){.results = results, .bytes = (bytes + page - 1) / page * page};
    block->data = aligned_alloc((size_t)page, (size_t)block->bytes);
    if (block->data == NULL) {
        free(block);
        return NULL;
    }
    if (page == HUGE_PAGE_BYTES) /* where there are none, small ones do */
        (void)madvise(block->data, (size_t)block->bytes, MADV_HUGEPAGE);
    return block;
}

static struct block *take(struct results *results, uint64_t bytes)
{
    pthread_mutex_lock(&results->mutex);
    assert(!results->closed);
    struct block *block = find_kept(results, bytes);
    if (block != NULL)
        keep_no_more(results, block);
    results->references++;
    pthread_mutex_unlock(&results->mutex);
    if (block == NULL)
        block = make_block(results, bytes);
    if (block == NULL) {
        pthread_mutex_lock(&results->mutex);
        unref(results);
    }
    return block;
}

/* Nobody has the value any more. Its block is kept, and the oldest are not, beyond what is. */
static void give(void *context)
{
    struct block *block = context;
    struct results *results = block->results;
    struct blocks beyond = {NULL, NULL};

    pthread_mutex_lock(&results->mutex);
    keep(results, block);
    while (results->closed ? results->kept_count > 0
                           : results->kept_count > RESULTS_KEPT_MAX ||
                                 results->kept_bytes > RESULTS_KEPT_BYTES_MAX) {
        block = results->kept.last;
        keep_no_more(results, block);
        LIST_PREPEND(&beyond, block, kept);
    }
    unref(results);
    for (struct block *next; beyond.first != NULL; beyond.first = next) {
        next = beyond.first->kept.next;
        free_block(beyond.first);
    }
}

/* ---- a tensor in it */

struct sumac_value *results_make_tensor(
    struct results *results, enum sumac_dtype dtype, const struct sumac_shape *shape,
    void **elements)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    struct sumac_buffer *buffer;
    struct sumac_tensor tensor;
    uint64_t bytes;

    assert(results != NULL);
    if (sumac_shape_size(shape, dtype, NULL, &bytes) != SUMAC_OK)
        return NULL;
    if (bytes < RESULT_BYTES_MIN)
        return value_make_tensor(dtype, shape, elements);
    struct block *block = take(results, bytes);
    if (block == NULL)
        return NULL;
    if (sumac_buffer_wrap(block->data, bytes, host, give, block, &buffer) != SUMAC_OK) {
        give(block);
        return NULL;
    }
    struct sumac_value *value = sumac_tensor_view(buffer, 0, dtype, shape, &tensor) == SUMAC_OK
                                    ? sumac_value_of(&tensor)
                                    : NULL;
    sumac_buffer_unref(buffer);
    *elements = block->data;
    return value;
}
