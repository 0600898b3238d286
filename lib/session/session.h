/* SPDX-License-Identifier: Apache-2.0 */
/* session.h -- the client's half of the protocol: one session's ordered stream of pushes, and its
 * pulls.
 *
 * session_step is the whole behaviour: events in, effects out, no socket, clock, lock or malloc.
 * The client (lib/client) and the simulator (tests/sim) run the same object. A session that never
 * joins (`reader`) only pulls.
 *
 * Pushes are numbered 1, 2, 3 … over all ps; each is kept until it is done everywhere. What goes to
 * one ps is composed when its stream is writable: the part being sent, in chunks, with the commit
 * that is due, so small pushes coalesce by themselves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "replaced.h"
#include "rules.h"
#include "run_identity.h"
#include "wire.h"

#define SESSION_PS_MAX 256
#define SESSION_PUSHES_IN_FLIGHT_MAX 1024
#define SESSION_PULLS_IN_FLIGHT_MAX 1024
#define SESSION_CALLS_MAX 1024 /* of the caller's, under way */
#define SESSION_CHUNK_BYTES 262144u
#define SESSION_CHUNK_BYTES_MAX 1048576u

enum session_stream_kind { SESSION_PUSH_STREAM, SESSION_PULL_STREAM };

struct session_config {
    bool reader;     /* no join: pulls only */
    bool any_ps;     /* of a reader: one ps that answers is enough to begin with */
    uint32_t role;   /* WIRE_ROLE_… */
    const char *job; /* borrowed for the session's life; "" for none */
    uint32_t task;
    uint32_t local_replicas;
    const char *const
        *members_jobs; /* the chiefs and workers of the configuration, parallel arrays */
    const uint32_t *members_indices;
    uint32_t member_count;
    const char *const *members_addresses; /* theirs; NULL: not said */
    bool members_partial;                 /* there may be others beside them */
    struct run_identity identity;         /* of this process */
    /* What ps 0 is taken to have been told of synchronous steps: it refuses what differs; 0: any.
     */
    uint32_t step_members, step_quorum, on_loss;
    const char *const *ps_addresses; /* as configured; what the ps say adds those that are not */
    uint32_t ps_count;
    const char *ps_starter; /* "worker 0": the other member that starts ps 0; NULL: no other does */
    uint32_t ps_lost_ms;  /* how long a ps may be silent, until the join's answer says; 0: 60 000 */
    uint32_t chunk_bytes; /* 0: SESSION_CHUNK_BYTES; 64 … SESSION_CHUNK_BYTES_MAX */
    uint32_t backoff_ms_max; /* 0: 2000 */
    uint64_t broken;         /* rules.h */
};

/* What a push or a pull has for one ps, in the order of the caller's tensors. */
struct session_piece {
    uint32_t ps;
    uint64_t shard_id;
    uint32_t layout_epoch;
    uint32_t kind;     /* WIRE_PIECE_… */
    uint32_t function; /* 0: the variable's own; i: functions[i - 1] */
    uint32_t slot;     /* of WIRE_PIECE_SLOT_VALUE, which a pull may have: its number */
    uint64_t based_on;
    uint64_t offset_bytes; /* in the shard */
    uint64_t bytes;
    uint8_t *data; /* the caller's: read by a push until it is done, written by a pull */
    /* Of WIRE_PIECE_ROW_INDICES, else NULL: rows of the shard, whose values, of row_bytes (not 0)
     * each, are the data, from offset 0 on. Read until the push or the pull is over. */
    const int64_t *rows;
    uint64_t row_bytes;
};

struct session_push {
    uint64_t token;                     /* the caller's name for it, not 0 */
    const struct session_piece *pieces; /* copied; the data is borrowed until PUSHED */
    uint32_t piece_count;
    wire_function *const *functions; /* borrowed until PUSHED */
    uint32_t function_count;
    double weight;
    double scale; /* 0: 1 */
    bool allow_non_finite;
    bool finishes_step; /* the session's clock advances once this is committed */
    /* The member's contribution to its next synchronous step: a sum, of `weight`, with a part on
     * every ps. No push after it is committed, and none is applied, before it is done. */
    bool synchronous;
    /* A contribution to a round of a collective, whose pieces name no shard: one for each ps, from
     * offset 0 on. Borrowed until PUSHED; NULL: none. The session keeps its record of the round
     * until RESULT. */
    const wire_collective *collective;
    uint64_t step_least; /* for this step at least: session_state.open_step, when it was made */
};

/* The conditions that a push or a pull waits for at one ps. The ps names them to a pull that waits
 * for the same. */
struct session_wait {
    uint32_t ps;
    bool of_pieces; /* of those that the pull has there, too */
    bool bounded;
    uint64_t lag_max, clock, after_sequence, at_step;
    const wire_collective_round *collective; /* borrowed from the pull; NULL: none */
};

struct session_pull {
    uint64_t token;
    const struct session_piece *pieces; /* copied; the data is written until PULLED */
    uint32_t piece_count;
    bool after_own_pushes; /* read your own pushes */
    bool bounded;          /* wait until no member is more than … */
    uint64_t lag_max;      /* … steps behind those that were finished before this call */
    uint64_t at_step;      /* as each ps is after that synchronous step, which says what of one's
                              own pushes is in it; 0: as it is */
    /* What a round of a collective came to: a piece for each ps, whose data are NULL where the
     * bytes are not known beforehand (PULLED lends them then). Borrowed until PULLED; NULL: none.
     */
    const wire_collective_round *collective;
    bool has_rows; /* of one that is not known beforehand: row indices come before the values */
    bool beside;   /* it is short, as far as is known: asked for on the push stream, and on a pull
                      stream only if it is not, or the push stream breaks */
    /* It reads nothing: its pieces are of one ps, and empty. It asks that ps who is waited for, and
     * fails with the answer (TIMED_OUT). Borrowed until the event returns; NULL: it reads. */
    const struct session_wait *asks;
    uint32_t timeout_ms; /* 0: 60 000 */
};

/* A unary call of the caller's own. It is made again, as long as there is time, while another try
 * may come to something. */
struct session_call {
    uint64_t token; /* the caller's name for it, not 0 */
    uint32_t ps;
    bool any_ps; /* each ps knows the answer: a reader asks one that has answered before, others ask
                    ps 0 */
    const wire_service *service;
    unsigned method;
    const wire_message *request; /* borrowed until ANSWERED */
    uint32_t timeout_ms;         /* of all tries; not 0 */
    bool needs_session;          /* a reader has none */
    bool once; /* not made again: a try whose answer was lost may have been carried out, and another
                  would do something else */
};

enum session_event_kind {
    SESSION_EVENT_START,         /* find the ps, then join (a reader is open then) */
    SESSION_EVENT_CALL_ANSWERED, /* call, reply */
    SESSION_EVENT_CALL_FAILED,   /* call, error */
    SESSION_EVENT_PUSH,          /* push */
    SESSION_EVENT_PULL,          /* pull */
    SESSION_EVENT_COLLECTIVE,    /* push, pull: a contribution, and what its round comes to, so that
                              both may go out in one message; no pull where PUSHED says that
                              the push was refused at once */
    SESSION_EVENT_CANCEL_PULL,   /* token */
    SESSION_EVENT_CANCEL_PUSH,   /* token: its data are sent no more; PUSHED says what becomes of it
                                  */
    SESSION_EVENT_COLLECTIVE_RESULT, /* token: of a push that contributed to a collective: what came
                          of its round is known, or of no interest any more */
    SESSION_EVENT_CALL,              /* wanted_call */
    SESSION_EVENT_LEAVE,             /* done: all pushes that are not done are waited for first */
    SESSION_EVENT_STREAM_WRITABLE,   /* ps, stream_kind, generation: opened, or the last message is
                                        out */
    SESSION_EVENT_STREAM_LOST,       /* ps, stream_kind, generation, error */
    SESSION_EVENT_PUSH_ANSWER,       /* ps, generation, push_answer */
    SESSION_EVENT_PULL_ANSWER,       /* ps, generation, pull_answer, payload */
    SESSION_EVENT_TICK,
    SESSION_EVENT_UNDONE, /* of the last step's effects some are `undone`, for want of memory */
};

struct session_event {
    enum session_event_kind kind;
    uint64_t now_us;    /* monotonic */
    uint64_t wall_us;   /* since 1970: stamps a push's start */
    uint64_t random[2]; /* fresh bits: nonce, jitter */
    uint32_t ps;
    enum session_stream_kind stream_kind;
    uint64_t generation;
    bool done;
    uint64_t call;
    uint64_t token;
    const struct sumac_error *error;
    const struct session_push *push;
    const struct session_pull *pull;
    const struct session_call *wanted_call;
    const wire_message *reply;
    const wire_push_answer *push_answer;
    const wire_pull_answer *pull_answer;
    const struct span *payload;
    size_t payload_spans;
};

enum session_effect_kind {
    SESSION_EFFECT_ADDRESSES, /* addresses, address_count: where the ps listen from here on; what
                                 was opened to another address before is closed */
    SESSION_EFFECT_CALL, /* call, ps, service, method, request, at_us: make this unary call, which
                            ends at that time */
    SESSION_EFFECT_CANCEL_CALL,  /* call: what becomes of it is not asked any more */
    SESSION_EFFECT_JOINED,       /* the session is open: session_state has the facts */
    SESSION_EFFECT_OPEN_STREAM,  /* ps, stream_kind, generation; the hello is sent when it is
                                    writable */
    SESSION_EFFECT_CLOSE_STREAM, /* ps, stream_kind, generation */
    SESSION_EFFECT_SEND_PUSH, /* ps, generation, push_request, payload: the stream is not writable
                                 until told */
    SESSION_EFFECT_SEND_PULL, /* ps, generation, pull_request, payload */
    SESSION_EFFECT_PUSHED,   /* token, error (status OK: applied everywhere), versions (in the order
                              of the pieces) */
    SESSION_EFFECT_PULLED,   /* token, error, versions (in the order of the pieces); of a round of
                                a collective met, and joined, if that was not known beforehand */
    SESSION_EFFECT_ANSWERED, /* token, ps, error (status OK: reply, which is the event's) */
    SESSION_EFFECT_LEFT,     /* the session is over, in good order */
    SESSION_EFFECT_ENDED,    /* error: closed, unknown or a ps lost, and what was in flight has been
                              answered PUSHED …; or no memory, and nothing more is said of that */
    SESSION_EFFECT_LOG,      /* text: one line, noun then value */
    SESSION_EFFECT_WAKE,     /* at_us: a TICK is wanted then (the earliest counts) */
};

/* Bytes to send: a run of a push's data, or of the session's own. */
struct session_bytes {
    struct span bytes;
    uint64_t token; /* of the push whose caller lent them */
};

/* Lent until the next session_step. */
struct session_effect {
    enum session_effect_kind kind;
    bool undone; /* set by whoever could not open the stream or make the call: EVENT_UNDONE */
    uint32_t ps;
    enum session_stream_kind stream_kind;
    uint64_t generation;
    uint64_t at_us;
    uint64_t token;
    uint64_t call; /* one try; a session numbers them 1, 2, 3 … */
    const wire_service *service;
    unsigned method;
    const wire_message *request, *reply;
    struct sumac_error error;
    const uint64_t *versions;
    uint32_t version_count;
    const wire_collective_result *result;
    struct span joined;
    const wire_push_request *push_request;
    const wire_pull_request *pull_request;
    const struct session_bytes *payload;
    uint32_t payload_count;
    const char *const *addresses; /* lent for the session's life */
    uint32_t address_count;
    const char *text;
};

struct session_effects {
    struct session_effect *items;
    uint32_t count;
};

struct session;

/* What a caller may read between steps. */
struct session_state {
    bool joined, ended;
    uint8_t session_id[16];
    uint64_t cluster_id, epoch, attempt, membership_epoch, clock, previous_final;
    struct replaced replaced; /* whose place the join has taken */
    uint32_t lease_ms, ps_count;
    uint32_t pushes_in_flight;
    uint64_t last_sequence, commit_through, acked_through;
    uint64_t first_step, last_step; /* synchronous ones: its first, 0: none; its last so far */
    uint64_t newest_step; /* over on some ps, as the answer to a pull at a step has said */
    uint64_t open_step;   /* with a quorum: those before it are over, as far as it has heard */
    uint32_t step_members, step_quorum, on_loss, step_deadline_ms; /* as ps 0 has them */
};

/* Gives  a session, or NULL when the source has no memory. Copies the config's strings. */
struct session *session_create(const struct session_config *config, const struct memory *memory);
void session_destroy(struct session *session);

/* One event. The effects, in order, are lent until the next step; the caller carries out all of
 * them. */
void session_step(
    struct session *session, const struct session_event *event, struct session_effects *effects);

void session_read(const struct session *session, struct session_state *state);

/* As requests have it. Lends  as long as the session lives. */
wire_bytes session_id_bytes(const struct session *session);

/* Another process has the task. A call tells ps 0 that this process lives, and has no answer yet.
 * The caller waits, a second at most, before it reports an error to its program. */
bool session_is_acknowledging(const struct session *session);

/* Why a stream that a push or a pull waits for ended: its ps has accepted nothing since, though it
 * may have greeted. */
struct session_trouble {
    uint32_t ps;
    enum session_stream_kind stream_kind;
    uint64_t ended_us;
    const char *text; /* lent until the next step */
};

/* The step of the synchronous push of that token, and a ps that has its part, committed, and is not
 * done with it: there it waits for others. False: it waits for something else, or is over. */
bool session_find_step(const struct session *session, uint64_t token, uint32_t *ps, uint64_t *step);
/* Find the conditions that the push or pull of that token waits for at a ps that is well. False: it
 * waits for a ps, or for room, or is over. */
bool session_find_wait(const struct session *session, uint64_t token, struct session_wait *wait);
/* Which ps has yet to answer that push or pull: of several the one last heard from longest ago.
 * False: none has, or it is over. */
bool session_find_owing(const struct session *session, uint64_t token, uint32_t *ps);
/* Of the push or pull of that token. False: no ps that it waits for has ended its stream. */
bool session_find_trouble(
    const struct session *session, uint64_t token, struct session_trouble *trouble);

/* A sentence that names who holds the room which that push waits for on a ps. NULL: no ps has said
 * that. Lent until the next step. */
const char *session_find_room_wait(const struct session *session, uint64_t token);

/* What a part takes of the staging of one ps, and what would be enough. */
struct session_room {
    bool known; /* that ps has said what it takes */
    uint64_t cost_bytes;
    uint64_t part_bytes_max;  /* of the largest part */
    uint64_t grant_bytes;     /* the session's floor: what it need not wait for */
    uint64_t staging_max_mib; /* --staging-max with which the ps takes that cost */
};

/* Of a part of so many bytes and pieces, with no function of its own. Unknown, too, of a ps that
 * the session has no link to. */
struct session_room
session_room(const struct session *session, uint32_t ps, uint64_t bytes, uint64_t pieces);
