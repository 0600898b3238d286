/* SPDX-License-Identifier: Apache-2.0 */
/* lane_world.h -- a lane, and a driver around it that carries out every effect at once unless it is
 * told to wait.
 *
 * The driver looks at what the lane says: every message packs to what unpacks again, a payload is
 * as long as the pieces that it is for, bytes that are lent stay as they are until they are
 * released, a call is answered once, and all memory comes back. It knows nothing of what the events
 * mean: lane.c makes those.
 */
#pragma once

#include "ps_core.h"

#define WORLD_STREAMS_MAX 12u
#define WORLD_SESSIONS_MAX 3u
#define WORLD_SHARDS_MAX 64u
#define WORLD_CALLS_MAX 256u
#define WORLD_LENT_MAX 256u
#define WORLD_JOBS_MAX 64u
#define WORLD_PENDING_MAX 1024u
#define WORLD_ORDERS_MAX 256u
#define WORLD_MEMORY_BYTES_MAX (16u << 20)
#define WORLD_POOL_BYTES 8192u /* two large parts */
#define WORLD_INCARNATION UINT64_C(0x1001)
#define WORLD_OTHER_INCARNATION UINT64_C(0x1002)

struct world_stream {
    uint64_t id; /* 0: this place is free */
    enum lane_stream_kind kind;
    bool deaf;          /* its reader has stopped: it is not told that it is writable */
    bool out;           /* a message is out that it was not told of */
    uint32_t session;   /* that its hello named */
    uint32_t asked;     /* pulls, … */
    uint32_t answered;  /* … and those that were answered to the end, … */
    uint32_t cancelled; /* … or need not be */
    uint64_t remaining; /* bytes of the part that is being sent */
    uint64_t sequence;  /* of it */
    uint64_t payload_due, payload_came; /* of the pull that is being answered */
};

struct world_session {
    uint8_t id[16];
    bool known;
    uint64_t generation;
    uint64_t last, previous; /* sequences of the parts sent so far */
};

struct world_shard {
    uint64_t id, bytes;
    uint64_t rows;
    uint32_t element_bytes;
};

struct world_lent {
    struct span bytes;
    uint64_t hold, sum;
};

/* What ps 1 was ordered, if the lane is ps 0. */
struct world_order {
    uint64_t number;
    bool is_close;
    uint8_t session_id[16];
};

struct world {
    struct memory memory;
    uint64_t bytes_taken;
    uint64_t takes_left; /* until the source has no more; UINT64_MAX: it always has */
    struct ps_core *core;
    struct lane_config config;
    struct arena arena; /* to unpack what the lane packed */
    uint64_t now_us, drawn;
    bool exited;
    uint64_t last_stream, last_call, last_order;
    uint64_t controller; /* the stream that orders come on */
    struct world_stream streams[WORLD_STREAMS_MAX];
    struct world_session sessions[WORLD_SESSIONS_MAX];
    struct world_shard shards[WORLD_SHARDS_MAX];
    uint32_t shard_count, joined;
    const wire_type *call_waits[WORLD_CALLS_MAX]; /* by its number: what was asked */
    bool holds_compute, holds_released, mute;     /* mute: ps 1 answers no order */
    const struct lane_compute *jobs[WORLD_JOBS_MAX];
    uint32_t job_count;
    struct world_lent lent[WORLD_LENT_MAX];
    uint32_t lent_count;
    struct world_order orders[WORLD_ORDERS_MAX];
    uint32_t order_count;
    uint64_t writable[WORLD_PENDING_MAX]; /* streams to be told so */
    uint32_t writable_count;
    bool peer_up, peer_writable;
};

/* The lane has been told START, and is ps 0 of two or ps 1 of two. */
void world_begin(struct world *world, uint32_t index, uint32_t ps_count);
/* Everybody reads, memory is there, time passes: all that was asked has been answered, and all
 * memory comes back. */
void world_end(struct world *world);
/* One event, what comes of it, and what comes of that. */
void world_step(struct world *world, struct lane_event *event);
void world_tick(struct world *world, uint64_t later_us);
/* Vector work that was kept is run; bytes that were kept are released. */
void world_compute(struct world *world);
void world_release(struct world *world);
/* Let go on a stream whose reader had stopped. */
void world_hear(struct world *world, struct world_stream *stream);
/* A report from ps 1 that answers the oldest order it has not answered. */
void world_answer_order(struct world *world);

/* The stream to ps 1 is there, or broken. */
void world_collective(struct world *world, bool up);

struct world_stream *world_open(struct world *world, enum lane_stream_kind kind);
void world_close(struct world *world, struct world_stream *stream);
/* A call; it is answered some time. */
void world_call(struct world *world, enum lane_call_kind kind, const wire_message *request);
