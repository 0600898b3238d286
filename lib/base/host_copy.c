/* SPDX-License-Identifier: Apache-2.0 */
/* host_copy.c -- bytes that the host does not see, to its memory and back. */
#include "host_copy.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "error.h"

static _Atomic(const struct host_copy *) of_cuda;

void host_copy_set(const struct host_copy *way)
{
    assert(way->read != NULL);
    assert(way->write != NULL);
    atomic_store(&of_cuda, way);
}

bool host_copy_is_here(const struct sumac_buffer *buffer)
{
    return sumac_buffer_place(buffer).kind != SUMAC_PLACE_CUDA;
}

static enum sumac_status fail_closed(const struct sumac_tensor *tensor, struct sumac_error *error)
{
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
        "a tensor lies in the memory of GPU:%u, and this program has opened no GPU that would copy "
        "it: make the strategy, or the worker, with GPUs first",
        sumac_buffer_place(tensor->buffer).device);
}

enum sumac_status
host_copy_read(const struct sumac_tensor *tensor, void *here, struct sumac_error *error)
{
    const uint64_t bytes = sumac_tensor_bytes(tensor);
    const void *from = sumac_tensor_data(tensor);

    if (bytes == 0)
        return SUMAC_OK;
    assert(from != NULL);
    if (host_copy_is_here(tensor->buffer)) {
        memcpy(here, from, (size_t)bytes);
        return SUMAC_OK;
    }
    const struct host_copy *way = atomic_load(&of_cuda);
    return way == NULL ? fail_closed(tensor, error)
                       : way->read(sumac_buffer_place(tensor->buffer), from, here, bytes, error);
}

enum sumac_status
host_copy_write(const struct sumac_tensor *tensor, const void *here, struct sumac_error *error)
{
    const uint64_t bytes = sumac_tensor_bytes(tensor);
    void *to = sumac_tensor_data(tensor);

    if (bytes == 0)
        return SUMAC_OK;
    assert(to != NULL);
    if (host_copy_is_here(tensor->buffer)) {
        memcpy(to, here, (size_t)bytes);
        return SUMAC_OK;
    }
    const struct host_copy *way = atomic_load(&of_cuda);
    return way == NULL ? fail_closed(tensor, error)
                       : way->write(sumac_buffer_place(tensor->buffer), to, here, bytes, error);
}
