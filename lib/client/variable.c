/* SPDX-License-Identifier: Apache-2.0 */
/* variable.c -- what is known of a variable, and memory that fits it. */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"

const char *sumac_client_variable_name(const struct sumac_client_variable *variable)
{
    return variable == NULL ? NULL : variable->name;
}

enum sumac_dtype sumac_client_variable_dtype(const struct sumac_client_variable *variable)
{
    return variable == NULL ? SUMAC_DTYPE_UNSPECIFIED : variable->dtype;
}

struct sumac_shape sumac_client_variable_shape(const struct sumac_client_variable *variable)
{
    return variable == NULL ? SUMAC_SCALAR : variable->shape;
}

uint32_t sumac_client_variable_shards(const struct sumac_client_variable *variable)
{
    return variable == NULL ? 0 : variable->shard_count;
}

struct sumac_shard
sumac_client_variable_shard(const struct sumac_client_variable *variable, uint32_t index)
{
    if (index >= sumac_client_variable_shards(variable))
        return (struct sumac_shard){.ps = 0};
    assert(variable->shards != NULL);
    const struct variable_shard *shard = &variable->shards[index];
    return (struct sumac_shard){
        .ps = shard->ps, .rows = {.first = shard->first_row, .count = shard->rows}};
}

enum sumac_status sumac_client_variable_tensor(
    const struct sumac_client_variable *variable, struct sumac_tensor *tensor,
    struct sumac_error *error)
{
    if (variable == NULL || tensor == NULL)
        return fail_for_null(
            error, "sumac_client_variable_tensor", variable == NULL ? "variable" : "tensor");
    const uint64_t bytes = variable->rows * variable->row_bytes;
    struct sumac_buffer *buffer;
    enum sumac_status status = sumac_buffer_create(bytes, &buffer);
    if (status != SUMAC_OK)
        return fail(
            error, status, SUMAC_REASON_OUT_OF_MEMORY, "no memory for the %" PRIu64 " bytes of %s",
            bytes, variable->name);
    *tensor =
        (struct sumac_tensor){.buffer = buffer, .shape = variable->shape, .dtype = variable->dtype};
    assert(sumac_tensor_bytes(tensor) == sumac_buffer_bytes(buffer));
    return SUMAC_OK;
}
