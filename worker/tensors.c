/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c -- values or gradients of a step, side by side in one allocation. */
#include "tensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define ALIGNMENT 64u /* a cache line, and the widest vector */

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static enum sumac_status fail_for_bytes(uint64_t bytes, struct sumac_error *error)
{
    return fail_for_memory(error, "no memory for %" PRIu64 " bytes", bytes);
}

/* `why`: where memory was wanted, and what is wrong with that. */
static enum sumac_status give_up(
    struct tensors *made, enum sumac_status status, const struct sumac_error *why,
    struct sumac_error *error)
{
    const uint32_t count = made->count;

    assert(status != SUMAC_OK);
    tensors_deinit(made);
    return fail(
        error, status, why->reason, "%.400s, which the values or gradients of %u variables take",
        why->text, count);
}

/* In a buffer of *total bytes, which is taken afterwards. The shape of a variable was checked when
 * it was created. */
static enum sumac_status lay_out(
    struct tensors *tensors, enum tensors_memory memory,
    struct sumac_client_variable *const *variables, uint64_t *total, struct sumac_error *why)
{
    assert(*total == 0);
    assert(tensors->count > 0);
    tensors->items = calloc(tensors->count, sizeof *tensors->items);
    if (tensors->items == NULL)
        return fail_for_bytes(tensors->count * sizeof *tensors->items, why);
    for (uint32_t i = 0; i < tensors->count; i++) {
        struct sumac_tensor *item = &tensors->items[i];
        uint64_t bytes = 0;
        *item = (struct sumac_tensor){
            .offset_bytes = *total,
            .shape = sumac_client_variable_shape(variables[i]),
            .dtype = memory == TENSORS_FLOAT32 ? SUMAC_FLOAT32
                                               : sumac_client_variable_dtype(variables[i]),
        };
        const enum sumac_status status = sumac_shape_size(&item->shape, item->dtype, NULL, &bytes);
        if (status != SUMAC_OK) {
            (void)fail_for_bytes(*total, why);
            return status;
        }
        *total += aligned(bytes);
    }
    return SUMAC_OK;
}

static enum sumac_status take(
    enum tensors_memory memory, struct device *device, uint64_t bytes, struct sumac_buffer **buffer,
    struct sumac_error *why)
{
    if (memory == TENSORS_OF_DEVICE)
        return device_buffer_create(device, bytes, buffer, why);
    if (memory == TENSORS_OF_HOST)
        return device_host_buffer_create(device, bytes, buffer, why);
    return sumac_buffer_create(bytes, buffer) == SUMAC_OK ? SUMAC_OK : fail_for_bytes(bytes, why);
}

static void set_buffer(const struct tensors *tensors)
{
    for (uint32_t i = 0; i < tensors->count; i++)
        tensors->items[i].buffer = tensors->buffer;
}

enum sumac_status tensors_init(
    struct tensors *tensors, enum tensors_memory memory, struct device *device,
    struct sumac_client_variable *const *variables, uint32_t count, struct sumac_error *error)
{
    struct tensors made = {.count = count};
    struct sumac_error why;
    uint64_t bytes = 0;
    enum sumac_status status = lay_out(&made, memory, variables, &bytes, &why);

    if (status == SUMAC_OK)
        status = take(memory, device, bytes, &made.buffer, &why);
    if (status != SUMAC_OK)
        return give_up(&made, status, &why, error);
    set_buffer(&made);
    *tensors = made;
    return SUMAC_OK;
}

enum sumac_status tensors_mirror(
    struct tensors *mirror, struct device *device, const struct tensors *host,
    struct sumac_error *error)
{
    struct tensors made = {.count = host->count};
    struct sumac_error why;
    enum sumac_status status = device_buffer_mirror(device, host->buffer, &made.buffer, &why);

    if (status == SUMAC_OK) {
        made.items = calloc(made.count, sizeof *made.items);
        if (made.items == NULL)
            status = fail_for_bytes(made.count * sizeof *made.items, &why);
    }
    if (status != SUMAC_OK)
        return give_up(&made, status, &why, error);
    memcpy(made.items, host->items, made.count * sizeof *made.items);
    set_buffer(&made);
    *mirror = made;
    return SUMAC_OK;
}

void tensors_deinit(struct tensors *tensors)
{
    sumac_buffer_unref(tensors->buffer);
    free(tensors->items);
    *tensors = (struct tensors){0};
}
