/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c -- values or gradients of a step, side by side in one allocation. */
#include "tensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"

#define ALIGNMENT 64u /* a cache line, and the widest vector */

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Of the variable's own type, or of that which all are to have. */
static enum sumac_dtype dtype_of(const struct sumac_client_variable *variable, enum sumac_dtype as)
{
    return as == SUMAC_DTYPE_UNSPECIFIED ? sumac_client_variable_dtype(variable) : as;
}

/* The bytes of all of them; a variable's shape was checked when it was created. */
static enum sumac_status measure(
    struct sumac_client_variable *const *variables, uint32_t count, enum sumac_dtype as,
    uint64_t *total)
{
    assert(*total == 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct sumac_shape shape = sumac_client_variable_shape(variables[i]);
        uint64_t elements = 0, bytes = 0;
        const enum sumac_status status =
            sumac_shape_size(&shape, dtype_of(variables[i], as), &elements, &bytes);
        if (status != SUMAC_OK)
            return status;
        *total += aligned(bytes);
    }
    return SUMAC_OK;
}

static enum sumac_status lay_out(
    struct tensors *tensors, struct sumac_client_variable *const *variables, enum sumac_dtype as)
{
    uint64_t offset_bytes = 0;

    for (uint32_t i = 0; i < tensors->count; i++) {
        const struct sumac_shape shape = sumac_client_variable_shape(variables[i]);
        const enum sumac_status status = sumac_tensor_view(
            tensors->buffer, offset_bytes, dtype_of(variables[i], as), &shape, &tensors->items[i]);
        if (status != SUMAC_OK)
            return status;
        offset_bytes += aligned(sumac_tensor_bytes(&tensors->items[i]));
    }
    assert(offset_bytes == sumac_buffer_bytes(tensors->buffer)); /* as it was measured */
    return SUMAC_OK;
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

/* Where the bytes are: a device's own, the host's that the device is quick with, or any of the
 * host's. */
typedef enum sumac_status take_memory(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error);

static enum sumac_status fail_for_bytes(uint64_t bytes, struct sumac_error *error)
{
    return fail_for_memory(error, "no memory for %" PRIu64 " bytes", bytes);
}

static enum sumac_status take_any(
    struct device *device, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    (void)device;
    return sumac_buffer_create(bytes, buffer) == SUMAC_OK ? SUMAC_OK : fail_for_bytes(bytes, error);
}

struct tensor_memory {
    take_memory *take;
    struct device *device;
};

static enum sumac_status make(
    struct tensors *tensors, const struct tensor_memory *memory,
    struct sumac_client_variable *const *variables, uint32_t count, enum sumac_dtype as,
    struct sumac_error *error)
{
    struct tensors made = {.count = count};
    struct sumac_error why;
    uint64_t bytes = 0;
    enum sumac_status status = measure(variables, count, as, &bytes);

    if (status != SUMAC_OK)
        (void)fail_for_bytes(bytes, &why);
    if (status == SUMAC_OK)
        status = memory->take(memory->device, bytes, &made.buffer, &why);
    if (status == SUMAC_OK) {
        made.items = calloc(count, sizeof *made.items);
        status = made.items == NULL ? SUMAC_RESOURCE_EXHAUSTED : lay_out(&made, variables, as);
        if (status != SUMAC_OK)
            (void)fail_for_bytes(bytes, &why);
    }
    if (status != SUMAC_OK)
        return give_up(&made, status, &why, error);
    *tensors = made;
    return SUMAC_OK;
}

enum sumac_status tensors_init(
    struct tensors *tensors, struct device *device, struct sumac_client_variable *const *variables,
    uint32_t count, struct sumac_error *error)
{
    const struct tensor_memory own = {device_buffer_create, device};

    return make(tensors, &own, variables, count, SUMAC_DTYPE_UNSPECIFIED, error);
}

enum sumac_status tensors_init_host(
    struct tensors *tensors, struct device *device, struct sumac_client_variable *const *variables,
    uint32_t count, struct sumac_error *error)
{
    const struct tensor_memory host = {device_host_buffer_create, device};

    return make(tensors, &host, variables, count, SUMAC_DTYPE_UNSPECIFIED, error);
}

enum sumac_status tensors_init_float32(
    struct tensors *tensors, struct sumac_client_variable *const *variables, uint32_t count,
    struct sumac_error *error)
{
    const struct tensor_memory any = {take_any, NULL};

    return make(tensors, &any, variables, count, SUMAC_FLOAT32, error);
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
    for (uint32_t i = 0; i < made.count; i++) {
        made.items[i] = host->items[i];
        made.items[i].buffer = made.buffer;
    }
    *mirror = made;
    return SUMAC_OK;
}

void tensors_copy(struct device_queue *queue, const struct tensors *to, const struct tensors *from)
{
    assert(to->count == from->count);
    if (to->buffer == from->buffer)
        return;
    device_copy(
        queue,
        &(struct sumac_copy){
            .to = to->buffer, .from = from->buffer, .bytes = sumac_buffer_bytes(from->buffer)});
}

void tensors_deinit(struct tensors *tensors)
{
    sumac_buffer_unref(tensors->buffer);
    free(tensors->items);
    *tensors = (struct tensors){0};
}
