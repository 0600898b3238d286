/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.c -- what a stream's hello is answered with: who this ps is, and what it lets a client
 * do. */
#include "peer_state.h"

/* What clients go by. NULL: no memory. */
static wire_limits *make_limits(struct lane *lane)
{
    wire_limits *limits = arena_take(&lane->arena, sizeof *limits);

    assert(lane->config.sessions_max > 0);
    if (limits == NULL)
        return NULL;
    *limits = (wire_limits)WIRE_LIMITS_INIT;
    limits->parts_in_flight_max = lane->config.parts_per_session_max;
    limits->voided_max = lane->config.voided_per_session_max;
    limits->pieces_per_part_max = LANE_PIECES_PER_PART_MAX;
    limits->functions_per_part_max = FUNCTIONS_PER_PART_MAX;
    limits->pulls_per_stream_max = PULLS_PER_STREAM_MAX;
    limits->pieces_per_pull_max = WIRE_PULL_PIECES_MAX;
    limits->message_bytes_max = WIRE_MESSAGE_BYTES_MAX;
    limits->header_bytes_max = WIRE_HEADER_BYTES_MAX;
    limits->pull_request_bytes_max = WIRE_PULL_BYTES_MAX;
    limits->streams_per_session_max = lane_place_share(lane);
    limits->pieces_per_message_max = WIRE_PUSH_PIECES_MAX;
    limits->rows_per_message_max = WIRE_PUSH_ROWS_MAX;
    return limits;
}

wire_greeting *lane_stream_greeting(struct lane *lane, const struct lane_stream *stream)
{
    wire_greeting *greeting = arena_take(&lane->arena, sizeof *greeting);

    assert(stream->state == STREAM_GREETED || stream->state == STREAM_STALE);
    if (greeting == NULL)
        return NULL;
    *greeting = (wire_greeting)WIRE_GREETING_INIT;
    greeting->epoch = lane->epoch;
    greeting->ps_incarnation = lane->config.incarnation;
    greeting->membership_epoch = lane->membership_epoch;
    greeting->cluster_id = lane->cluster_id;
    if (stream->kind == LANE_STREAM_PUSH) {
        greeting->staging_grant_bytes = lane->grant_bytes;
        greeting->part_bytes_max = lane->claims.bytes_max;
    }
    greeting->limits = make_limits(lane);
    return greeting->limits == NULL ? NULL
                                    : greeting; /* mark 0, nothing voided: the epoch began empty */
}
