/* SPDX-License-Identifier: Apache-2.0 */
/* client_known.h -- a client that is not open, and knows a variable. */
#pragma once

#include "unit.h"
#include "transfer.h"

/* A variable "w" of float32 [10, 4], rows 0 to 5 on ps 1 and 6 to 9 on ps 0, known to a client that
 * is not open. */
struct known {
    bool synchronous; /* what it adds */
    struct sumac_client client;
    struct sumac_client_variable *variable;
    struct sumac_buffer *buffer;
    struct transfer *transfer;
};

static inline void know(struct known *known)
{
    memset(known, 0, sizeof *known);
    key_map_init(&known->client.variables_by_name, &memory_heap);
    client_lock(&known->client);
    wire_shard shards[2] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT};
    shards[0].shard_id = 5;
    shards[0].ps = 1;
    shards[0].rows = 6;
    shards[0].version = 8;
    shards[0].layout_epoch = 4;
    shards[1].shard_id = 6;
    shards[1].first_row = 6;
    shards[1].rows = 4;
    wire_shard *list[] = {&shards[0], &shards[1]};
    uint64_t shape[] = {10, 4};
    wire_variable wire = WIRE_VARIABLE_INIT;
    wire.name = "w";
    wire.variable_id = 3;
    wire.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    wire.n_shape = 2;
    wire.shape = shape;
    wire.n_shards = 2;
    wire.shards = list;
    known->variable = client_learn(&known->client, &wire);
    assert_non_null(known->variable);
    assert_int_equal(sumac_buffer_create(160, &known->buffer), SUMAC_OK);
    known->transfer = transfer_take(&known->client);
}

static inline void forget(struct known *known)
{
    transfer_give(known->transfer);
    arena_deinit(&known->transfer->arena);
    free(known->transfer);
    client_forget_variables(&known->client);
    sumac_buffer_unref(known->buffer);
    client_unlock(&known->client);
}

/* A test whose *state knows the variable. */
#define KNOWN_TEST(name) FIXTURE_TEST(name, struct known *const known, known_setup, known_teardown)

static inline int known_setup(void **state)
{
    struct known *known = malloc(sizeof *known);

    assert_non_null(known);
    know(known);
    *state = known;
    return 0;
}

static inline int known_teardown(void **state)
{
    forget(*state);
    free(*state);
    return 0;
}

static inline struct sumac_tensor
tensor(const struct known *known, uint64_t rows, enum sumac_dtype dtype)
{
    return (struct sumac_tensor){
        .buffer = known->buffer, .dtype = dtype, .shape = {.rank = 2, .extent = {rows, 4}}};
}

static inline enum sumac_status
add(struct known *known, const struct sumac_tensor *tensor, const struct sumac_range *rows,
    struct sumac_error *error)
{
    const struct selection selection = {
        .variable = known->variable,
        .tensor = tensor,
        .has_rows = rows != NULL,
        .rows = rows != NULL ? *rows : (struct sumac_range){0},
        .verb = "push",
        .synchronous = known->synchronous};

    return selection_add(known->transfer, &selection, error);
}
