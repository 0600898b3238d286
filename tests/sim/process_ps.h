/* SPDX-License-Identifier: Apache-2.0 */
/* process_ps.h -- a ps: the lane, and the driver around it, as server/ps.c is, with a disk and a
 * compute pool that dawdle. */
#pragma once

#include "ps_core.h"
#include "network.h"
#include "world.h"

struct ps {
    uint32_t index;
    struct ps_core *core;
    struct lane_config config;
    uint64_t clock_offset_us; /* its own clock, ahead of the world's */
    struct journal {
        uint64_t made, done;
        uint64_t flush_through; /* 0: the disk is idle */
        struct journal_record *first, *last;
    } journals[LANE_JOURNALS];
    bool hears_disk;                 /* its controller hears that records are on disk */
    uint32_t looked_at;              /* the event after which they were last replayed */
    const char *dialled[SIM_PS_MAX]; /* ps 0: whom it keeps a stream open to */
    struct stream *peers[SIM_PS_MAX];
    struct order_seen {
        uint64_t number, made_before, made_after; /* records, before and after it was obeyed */
    } orders[64];                                 /* by number */
    uint32_t stats_at;    /* the event after which it was last asked for its statistics */
    uint64_t told_end_us; /* 0: not yet */
    bool ran_out;         /* it ended with work under way, at the end of its time */
    bool serving, ending, exited, crashed;
    int exit_code;
    struct sumac_error end; /* why, for those whom it leaves */
};

struct ps *ps_make(struct world *world, uint32_t index);
/* It dies, with all it holds; `back`: another incarnation begins later. */
void ps_crash(struct world *world, uint32_t index, bool back);
void ps_drop(struct world *world, uint32_t index);

/* What reaches it. */
void ps_stream_opened(struct world *world, struct stream *stream);
void ps_message(struct world *world, struct stream *stream, struct letter *letter);
void ps_writable(struct world *world, struct stream *stream);
void ps_stream_closed(struct world *world, struct stream *stream);
void ps_released(struct world *world, uint32_t index, uint64_t hold);
void ps_call(struct world *world, uint32_t index, struct call *call, struct letter *letter);
void ps_call_cancelled(struct world *world, uint32_t index, struct call *call);

/* ps 0's ends of its streams to the others. */
void peer_writable(struct world *world, struct stream *stream);
void peer_message(struct world *world, struct stream *stream, struct letter *letter);
void peer_lost(struct world *world, struct stream *stream);
