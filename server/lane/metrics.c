/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c -- what a ps has counted, and what it may keep. */
#include "metrics.h"

#include "handlers.h"

#define CONNECTION_BYTES 32768u /* about 18 KiB of gRPC's, and of the heap's, as measured */
#define CALL_BYTES 40960u /* about 12 KiB likewise; 36 with 8 KiB of headers that are all short */

static void add_memory(const struct lane *lane, struct lane_numbers *numbers)
{
    const struct lane_config *config = &lane->config;
    const struct store *store = &lane->store;

    assert(config->sessions_max > 0);
    numbers->base_bytes = config->base_bytes;
    numbers->state_bytes = store_state_bytes(store);
    numbers->state_bytes_max = store->state_bytes_max;
    numbers->view_bytes = store->view_bytes;
    numbers->view_bytes_max = store_view_bytes_max(store);
    numbers->staged_bytes = lane->staged_bytes;
    numbers->staging_bytes_max = config->staging_bytes_max;
    numbers->pull_bytes = lane->pull_bytes;
    numbers->pulls_bytes_max = config->pulls_bytes_max;
    numbers->collective_bytes = lane->rounds.room_bytes + lane->rounds.beside_bytes;
    numbers->collective_bytes_max = config->collective_bytes_max;
    numbers->sessions_bytes_max = lane_sessions_bytes_max(lane);
    numbers->connections_bytes_max = (uint64_t)config->connections_max * CONNECTION_BYTES;
    numbers->calls_bytes_max = (uint64_t)config->calls_max * CALL_BYTES;
    numbers->unread_answers_bytes_max = config->unread_answers_bytes_max;
    numbers->step_bytes_max = WIRE_ARENA_BYTES_MAX + STEP_MEMORY_BYTES_MAX;
    numbers->grpc_memory_bytes_max = config->grpc_memory_bytes_max;
}

void lane_numbers(const struct lane *lane, struct lane_numbers *numbers)
{
    assert(lane->index < LANE_PS_MAX);
    assert(lane->recorded <= lane->last_record);
    assert(lane->now_us >= lane->config.started_us);
    *numbers = (struct lane_numbers){
        .cluster_id = lane->cluster_id,
        .epoch = lane->epoch,
        .incarnation = lane->config.incarnation,
        .ps = lane->index,
        .uptime_ms = (lane->now_us - lane->config.started_us) / 1000,
        .position = lane->store.position,
        .variables = lane->store.variable_count,
        .shards = lane->store.shard_count,
        .counts = lane->counts,
        .connections_max = lane->config.connections_max};
    add_memory(lane, numbers);
}
