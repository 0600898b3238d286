/* SPDX-License-Identifier: Apache-2.0 */
/* network.h -- streams and unary calls between processes: what TCP and gRPC promise, and nothing
 * more.
 *
 * A message travels as its packed bytes. Within one direction of one stream order holds; everything
 * else overtakes. A message is on its way once it is *out*: then its bytes are copied, what was
 * lent is released, and another may be sent. A cut loses any suffix of what is under way, and the
 * two ends learn of it at different times: a ps may get the last messages of a stream, and its end,
 * long after the client has begun the next generation.
 */
#pragma once

#include "lane.h"
#include "world.h"

enum way { WAY_TO_PS, WAY_TO_CALLER };

/* One direction of a stream. */
struct channel {
    bool busy;             /* a message is not out yet */
    struct parcel *parcel; /* it */
    uint64_t clear_us;     /* when the last message under way arrives */
    uint32_t under_way;
    bool cut;
    uint64_t late_until_us; /* what was under way when it was cut arrives then */
    uint32_t spared;        /* of those under way when it was cut: so many still arrive */
};

struct stream {
    uint64_t id; /* the ps's number for it */
    enum lane_stream_kind kind;
    uint32_t ps;     /* the index of the ps that serves it */
    uint32_t caller; /* the process that opened it, and which life of it */
    uint32_t caller_life;
    uint64_t generation; /* the client's */
    struct channel channels[2];
    bool at_ps;                    /* the ps has been told of it, and not of its end */
    bool at_caller;                /* the caller has not been told of its end */
    bool over;                     /* cut, or closed by an end */
    struct sumac_error error;      /* how it ended, for the caller */
    enum sumac_reason refused_for; /* its hello must be, and nobody hears of it (strays.h) */
    enum made counts_as;
};

/* Bytes to send with a message: copied when they are out. hold 0: nobody waits for their release.
 */
struct cargo {
    struct span bytes;
    uint64_t hold;
};

/* A message that arrived: its bytes are rubbish once it is handled. */
struct letter {
    const wire_type *type;
    uint8_t *bytes;
    size_t size;
};

struct call {
    uint64_t id;
    enum lane_call_kind kind;
    uint32_t ps; /* the index of the ps that is asked */
    uint32_t caller;
    uint32_t caller_life;
    uint64_t token;      /* the caller's name for it */
    uint8_t key[16];     /* a join's nonce */
    bool over_at_caller; /* it was answered, or has given up */
    bool at_ps;          /* the ps has been given it */
    bool over_at_ps;
    bool cancelled;
};

struct network *network_make(struct world *world);

/* Opens a stream; the ends are told. */
struct stream *network_open(
    struct world *world, uint32_t caller, uint32_t ps, enum lane_stream_kind kind,
    uint64_t generation);
struct stream *network_find(struct world *world, uint64_t id);
uint32_t network_count(const struct world *world);
struct stream *network_at(struct world *world, uint32_t index);
/* Send one message; that way must not be busy. */
void network_send(
    struct world *world, struct stream *stream, enum way way, const wire_message *message,
    const struct cargo *cargo, uint32_t cargo_count);
/* The connection breaks. */
void network_cut(struct world *world, struct stream *stream);
/* An end closes it: the ps with a status, after all its answers; the caller by cancelling it. */
void network_close_at_ps(
    struct world *world, struct stream *stream, const struct sumac_error *error);
void network_close_at_caller(struct world *world, struct stream *stream);

/* A unary call. */
struct call_wanted {
    uint32_t caller, ps;
    enum lane_call_kind kind;
    uint64_t token; /* the caller's name for it */
    const wire_message *message;
};
struct call *call_make(struct world *world, const struct call_wanted *wanted);
/* Its caller asks no more. */
void call_cancel(struct world *world, uint32_t caller, uint64_t token);
void call_leave_behind(
    struct world *world, uint32_t caller, const uint8_t *session_id, uint64_t last_sequence);
struct call *call_find(struct world *world, uint64_t id);
/* One that comes from nowhere: `caller` is SIM_NO_PROCESS. */
struct call *call_make_local(struct world *world, enum lane_call_kind kind);
void call_reply(struct world *world, struct call *call, const wire_message *message);
void call_fail(struct world *world, struct call *call, const struct sumac_error *error);

/* A process is gone: what it had written may still arrive, and then, of a ps, why. NULL: it did not
 * say. */
void network_process_gone(struct world *world, uint32_t process, const struct sumac_error *why);
/* A process hangs: keepalive finds it, and what is opened to it, silent. */
void network_process_hung(struct world *world, uint32_t process);
/* Nothing arrives between these two until then; new streams and calls wait likewise. */
void network_stall(struct world *world, uint32_t caller, uint32_t ps, uint64_t until_us);

/* Pack a message and its payload; unpack one into the scratch arena, its bytes in a few spans. */
struct letter *letter_make(
    struct world *world, const wire_message *message, const struct cargo *cargo,
    uint32_t cargo_count);
const struct wire_received *letter_open(struct world *world, const struct letter *letter);
void letter_spoil(struct letter *letter);
