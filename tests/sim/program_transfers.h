/* SPDX-License-Identifier: Apache-2.0 */
/* program_transfers.h -- one push, or one pull, of a client's program. */
#pragma once

#include "process_client.h"

void program_push(struct world *world, struct client *client);
/* The creator's value, to every shard. */
void program_push_seed(struct world *world, struct client *client);
void program_pull(struct world *world, struct client *client);

/* program_step.c: this push is the member's contribution to its next synchronous step. */
void program_contribute(struct world *world, struct client *client, struct sim_push *push);

/* With the functions that its pieces name. */
void program_submit(
    struct world *world, struct client *client, struct sim_push *push,
    wire_function *const *functions, uint32_t function_count);
/* One piece more of a push. */
struct session_piece *program_put_piece(
    struct sim_push *push, const struct sim_shard *shard, uint64_t offset_bytes, uint64_t bytes,
    uint8_t *data);
/* Rows of a shard by index, and their values. */
struct sim_rows {
    const int64_t *indices; /* copied */
    uint32_t count;
    uint64_t row_bytes;
    uint8_t *data;
};
/* The same by rows. */
struct session_piece *program_put_rows(
    struct world *world, struct sim_push *push, const struct sim_shard *shard,
    const struct sim_rows *rows);
/* One ps or several, a bit each. */
uint32_t program_some_ps(struct world *world);
