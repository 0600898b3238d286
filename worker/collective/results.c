/* SPDX-License-Identifier: Apache-2.0 */
/* results.c -- the memory of a strategy's results on the host: what is new from the kernel is
 * zeroed by it, page by page, which costs more than a sum does, so that of earlier results is taken
 * again.
 */
#define _GNU_SOURCE /* madvise */
#include <stdlib.h>
#include <sys/mman.h>

#include "buffer.h"
#include "strategy.h"

#define RESULT_BYTES_MIN (UINT64_C(64) << 10) /* smaller ones the heap keeps by itself */
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define PAGE_BYTES 4096u

static uint64_t page_of(uint64_t bytes)
{
    return bytes < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES;
}

/* So many whole pages. */
static enum sumac_status
make(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    const uint64_t page = page_of(bytes);
    void *data = aligned_alloc((size_t)page, (size_t)bytes);

    (void)context;
    if (data == NULL)
        return value_fail_for_memory(error);
    if (page == HUGE_PAGE_BYTES) /* where there are none, small ones do */
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
        .make = make, .count_max = RESULTS_KEPT_MAX, .bytes_max = RESULTS_KEPT_BYTES_MAX});
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
