/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h -- the counters of a ps, as plain numbers. The message of Stats is made of them, and an
 * exporter of metrics can read them without that message.
 *
 * The driver has further ones: its resident size and its connections.
 */
#pragma once

#include <stdint.h>

#include "counts.h"

struct lane;

/* In the words, and with the meanings, of observe.proto. */
struct lane_numbers {
    uint64_t cluster_id, epoch, incarnation;
    uint32_t ps;
    uint64_t uptime_ms; /* as of the last step */
    uint64_t position;
    uint64_t variables, shards;
    struct session_counts counts; /* of all sessions */
    uint64_t base_bytes;
    uint64_t state_bytes, state_bytes_max;
    uint64_t view_bytes, view_bytes_max;
    uint64_t staged_bytes, staging_bytes_max;
    uint64_t pull_bytes, pulls_bytes_max;
    uint64_t collective_bytes, collective_bytes_max;
    uint64_t sessions_bytes_max, connections_bytes_max, calls_bytes_max;
    uint64_t unread_answers_bytes_max, step_bytes_max, grpc_memory_bytes_max;
    uint64_t connections_max;
};

/* Of a lane, between two steps or within one; ps_core_numbers has those of a whole ps. */
void lane_numbers(const struct lane *lane, struct lane_numbers *numbers);
