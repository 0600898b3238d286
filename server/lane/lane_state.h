/* SPDX-License-Identifier: Apache-2.0 */
/* lane_state.h -- the data structures of a lane. Understand these, and the files beside it read by
 * themselves.
 *
 *   lane ─┬─ streams ── stream ──┬─ answers that wait until it is writable
 *         │                      └─ pulls in their order
 *         ├─ sessions ─ session ── parts, staged or refused, by sequence; refusals remembered
 *         ├─ operations ────────── those whose vector work is out, and their parts
 *         └─ store ──── shards, blocks, views (store.h)
 *
 * A part's gradient lies in chunks; its runs say what of it goes where:
 *
 *   chunk:   | run 0 ····· | run 1 ··· | run 2, first half ·|   | second half ······| run 3 ·· |
 *   entries: shards that the part touches, once each, in the order of the pieces
 *
 * Everything comes from pools. Sessions, streams, pulls, answers and reports are given back by the
 * file that took them. What a part holds is taken where it is filled (part.c, piece.c, staging.c)
 * and given back with the part (part.c); its refusal goes over to the session, which gives it back
 * when it need not be remembered (voided.c).
 */
#ifndef LANE_LANE_STATE_H
#define LANE_LANE_STATE_H

#include "close_cause.h"
#include "counts.h"
#include "lane.h"
#include "list.h"
#include "out.h"
#include "refused_joins.h"
#include "room.h"
#include "store.h"

#define PARTS_PER_SESSION_MAX 1024u /* staged or refused, not done */
#define PULLS_PER_STREAM_MAX 4096u
#define FLUSHED_BYTES_MAX                                                                          \
    2097152u /* of the step's arena: what is beyond is said with the next event, which comes at    \
                once */
/* What one step does, counted in what it looks at, makes or copies: about a millisecond. Whatever
 * is left goes on with the next event, which comes at once. */
#define WORK_PER_STEP_MAX 8192u
#define WORK_ARENA_BYTES 256u  /* of messages, that make one */
#define WORK_VECTOR_BYTES 512u /* that are copied or computed here */
#define WORK_GIVEN_BYTES 1024u /* that are given back to the system */
#define WORK_OF_A_PART 4u
#define PIECES_PER_WORK 16u     /* of pulls, that are looked at or let go of, */
#define PIECES_READ_PER_WORK 2u /* … and that are read */
#define WORK_OF_AN_ERROR 16u    /* its sentence */
#define STEP_MEMORY_BYTES_MAX                                                                      \
    (8 * FLUSHED_BYTES_MAX) /* of memory: that, the event's own doing, an answer, rounding up */
#define PIECES_PER_ANSWER_MAX 4096u
#define FUNCTIONS_PER_PART_MAX 256u
#define CLOSED_SESSIONS_MAX 1024u        /* remembered, so that their clients can be told, … */
#define CLOSED_VOIDED_BYTES_MAX 8388608u /* … with what was voided of them: else fewer are */
#define ANSWER_ROOM_BYTES                                                                          \
    64u /* each that waits until its stream is writable, beside its versions */
#define ANSWERS_COST_BYTES 320u /* of WIRE_PART_COST_BYTES: staged or refused, done, done again */
#define VERSIONS_COST_BYTES                                                                        \
    24u /* of WIRE_PIECE_COST_BYTES: its shard's version, done, done again */
#define PIECE_ROOM_BYTES (WIRE_PIECE_COST_BYTES - VERSIONS_COST_BYTES)
#define ANSWERS_BESIDE_BYTES_MAX                                                                   \
    131072u /* of a session's answers, beside its grant: to refusals that are said again */
#define STAGING_CHUNK_BYTES 1048576u
#define RUN_ALIGNMENT_BYTES 16u /* no smaller than any element */
#define SLICE_BYTES 262144u     /* of gradient: well below a millisecond */
#define SLICES_PER_OPERATION_MAX                                                                   \
    1024u /* what one COMPUTE takes; a larger part is computed in several                          \
           */
#define COPIED_BYTES_PER_STEP_MAX                                                                  \
    8388608u /* of blocks that are copied for a view before they are written to in part */
#define FILL_BYTES_PER_STEP 262144u
#define EXIT_TERMINATED 143 /* as a shell says of SIGTERM */

struct chunk {
    LINKS(struct chunk) in_part;
    uint8_t *data;
    uint32_t bytes, used;
};

struct run {
    struct chunk *chunk; /* where its bytes begin, … */
    uint32_t chunk_offset;
    uint32_t entry;         /* … and the shard they are for */
    uint32_t function;      /* 0: the variable's own; i: the part's functions[i - 1] */
    uint64_t offset, bytes; /* in the shard */
};

struct entry {
    struct shard *shard;
    uint64_t based_on;
    bool counted; /* one of its runs is by a function that counts_steps */
};

struct part_function {
    const struct update_function *function;
    struct update_hyperparameters given; /* `set` are those that the push names */
};

struct refusal {
    struct sumac_error error;
    char expected[96], given[96];
};

struct voided {
    uint64_t sequence;
    struct refusal *refusal; /* owned; NULL: another ps refused it */
};

/* A part's life; part.c has the table of its moves.
 *
 *                           ┌─► STAGED ─► APPLYING ─┐
 *       ┌─► RECEIVING ──────┤                       │
 *       │       │  │        └─► OVER ◄──────────────┤
 *       │       │  └─► REFUSED ─► VOID ─────────────┤
 *   NEW ┼─► DUPLICATE ──────────────────────────────┤
 *       │       ▼                                   │
 *       └─► DROPPED ────────────────────────────────┘
 *
 * On the left its stream has it; STAGED, VOID and APPLYING are in the list of its session. */
enum lane_part_state {
    PART_NEW,
    PART_RECEIVING, /* takes its bytes */
    PART_DUPLICATE, /* known: its bytes are passed over, its answer is said again */
    PART_DROPPED,   /* its bytes are passed over, and it is not answered */
    PART_REFUSED,   /* its bytes are passed over: it has its refusal, and will have its place */
    PART_STAGED,    /* whole, in its place */
    PART_VOID,      /* refused, empty, in its place */
    PART_APPLYING,  /* whose turn it is, until all of it is written */
    PART_OVER,      /* applied, passed over, or of no more use */
};

struct lane_part {
    LINKS(struct lane_part) in_session; /* by sequence, from STAGED or VOID on */
    LINKS(struct lane_part) in_operation;
    struct lane_session *session;
    enum lane_part_state state; /* lane_part_move changes it */
    uint64_t number;            /* unique: marks the shards it looks up */
    uint64_t sequence, previous;
    uint64_t bytes, received; /* as declared; so far */
    uint64_t first_us;
    double weight;
    bool eager, non_finite_allowed;
    uint64_t room_bytes;     /* what it takes of the session's grant */
    struct refusal *refusal; /* while it is REFUSED: then the session's list has it */
    uint32_t piece_count;
    uint32_t run_count, run_capacity;
    struct run *runs;
    uint32_t entry_count, entry_capacity;
    struct entry *entries;
    uint32_t function_count;
    struct part_function *functions;
    LIST(struct chunk) chunks;
    uint64_t checksum;
    void *checksum_state;
    uint64_t record; /* of its staging */
};

enum operation_state {
    OPERATION_OVER,    /* there is none, or all of it is done */
    OPERATION_RUNNING, /* its slices are being cut, and run or given out, in this step */
    OPERATION_OUT,     /* a COMPUTE of it is out */
    OPERATION_STALLED, /* nothing is out: it waits until bytes are RELEASED */
};

/* What runs at one position of the lane: the parts whose turn has come together, of one session or
 * of several. turn.c says when it begins, operation.c runs it. */
struct operation {
    LINKS(struct operation) in_lane; /* while it is OUT or STALLED */
    enum operation_state state;      /* lane_operation_move changes it */
    uint64_t position;
    LIST(struct lane_part) parts;
    struct lane_part *part;        /* of them, the one that has yet to be cut into slices, … */
    uint32_t run;                  /* … from here on, … */
    uint64_t byte;                 /* … in that run */
    struct lane_compute compute;   /* what is out, … */
    struct block **held;           /* … and the old blocks that it reads */
    uint32_t capacity, held_count; /* of both arrays; 0: there was no memory for them */
};

/* What the lane keeps of a shard, in the room that the store has for its user. */
struct shard_work {
    struct operation *operation; /* whose vector work is out for it: the shard is busy; or NULL */
    uint64_t batch, batch_first, batch_beyond; /* the last COMPUTE that writes to it, and where */
    uint64_t touched_by;                       /* number of the part that looked it up last, … */
    uint32_t touched_index;                    /* … and its place there */
};

_Static_assert(
    sizeof(struct shard_work) <= sizeof((struct shard *)0)->of_user,
    "a shard has room for what the lane keeps of it");

static inline struct shard_work *work_of(struct shard *shard)
{
    return (struct shard_work *)(void *)shard->of_user;
}

static inline bool is_busy(const struct shard *shard)
{
    return ((const struct shard_work *)(const void *)shard->of_user)->operation != NULL;
}

struct lane_session {
    LINKS(struct lane_session) in_lane;
    uint8_t id[16];
    uint32_t role;
    char task[STORE_TASK_TEXT_BYTES]; /* "worker 3" */
    uint64_t attempt;
    uint64_t mark, commit_through, acked_through;
    uint64_t clock, clock_said;
    struct voided *voided; /* ascending; above acked_through */
    uint32_t voided_count, voided_capacity;
    LIST(struct lane_part) parts; /* by sequence, until they are over */
    uint32_t part_count;
    struct lane_part *applying; /* of them, the one whose turn it is */
    struct operation operation; /* that of `applying` */
    uint64_t staged_bytes;      /* of its parts, as room.h counts them */
    uint64_t answer_bytes;      /* of answers that wait for its push stream */
    uint64_t pull_bytes;        /* of its pulls */
    bool closing, closed, done;
    struct close_cause cause; /* with closing */
    uint64_t final;
    uint64_t
        decided_acked_through; /* the largest of all ps: what is voided above it is in the list */
    uint64_t closed_record;    /* of the last thing about its end */
    uint64_t close_number;     /* order to be answered as soon as there is memory for it; 0: none */
    uint64_t decide_number;    /* order to be answered when all up to `final` is applied; 0: none */
    bool waits_in_line;        /* for shards that are busy, or for the next step */
    LINKS(struct lane_session) in_line;
    struct lane_stream *push_stream;
    uint32_t stream_count; /* of both kinds */
    bool has_generation;
    uint64_t generation;
    uint64_t heard_us;
    uint32_t broken_streams; /* push streams that broke while it was open */
    bool heard;              /* since the last report */
    double weight;
    struct session_counts counts;
};

enum answer_kind { ANSWER_STAGED, ANSWER_REFUSED, ANSWER_DONE };

struct answer {
    LINKS(struct answer) in_stream;
    uint64_t sequence, record;
    enum answer_kind kind;
    uint32_t version_count;
    bool voided;
    uint64_t *versions;
    uint64_t room_bytes; /* what it takes of the session's grant */
};

_Static_assert(
    sizeof(struct lane_part) + sizeof(struct chunk) +
            4 * (sizeof(struct run) + sizeof(struct entry)) + 3 * 64 + ANSWERS_COST_BYTES <=
        WIRE_PART_COST_BYTES + PIECE_ROOM_BYTES,
    "a part of one piece, or of few, fits into what it takes of the grant");
_Static_assert(sizeof(struct part_function) * 9 / 8 <= WIRE_FUNCTION_COST_BYTES, "and a function");
_Static_assert(4 * ANSWER_ROOM_BYTES + 64 <= ANSWERS_COST_BYTES, "and its answers");
_Static_assert(sizeof(struct answer) <= ANSWER_ROOM_BYTES, "and each of them");

struct pull_piece {
    struct shard *shard;
    uint64_t offset, bytes;
    uint64_t version; /* that is read, once `fixed` */
};

struct lane_pull {
    LINKS(struct lane_pull) in_stream;
    uint64_t request;
    uint64_t after_sequence;
    uint64_t started_us, deadline_us;
    uint32_t timeout_ms;
    struct pull_piece *pieces;
    uint32_t piece_count, piece_capacity;
    uint64_t room_bytes; /* what it takes of pulls_bytes_max, … */
    bool refused_room;   /* and whether of what is kept for those that are refused */
    uint64_t bytes;
    bool active; /* its first message is out: `view` is open */
    struct view view;
    bool fixed; /* what it reads is chosen: as it is at `position` */
    uint64_t position;
    uint64_t record; /* the last one that this shows */
    uint64_t version_epoch;
    uint32_t next_piece;
    uint32_t unready_piece;   /* the one that was looked at last and could not be read */
    uint64_t next_byte;       /* in the next piece */
    struct sumac_error error; /* status not OK: nothing else is said */
};

struct report {
    LINKS(struct report) in_stream;
    uint64_t answers;
    struct sumac_error error;
    bool is_close;
    uint8_t session_id[16];
    uint64_t commit_through;
    uint64_t assigned; /* a variable's id; 0: none */
    uint64_t record;
    uint64_t clock;
};

/* In which bound a stream counts (places.c). */
enum place { PLACE_NONE, PLACE_STRANGER, PLACE_READER, PLACE_SESSION, PLACE_COORDINATOR };

/* A stream's life; stream.c has the table of its moves. */
enum lane_stream_state {
    STREAM_SILENT,  /* it has yet to say hello; of a ps 0: one that is taken */
    STREAM_STALE,   /* its hello was to another epoch or incarnation: what it says is dropped */
    STREAM_GREETED, /* its hello was taken */
    STREAM_ENDED,   /* closed from here: what it still delivers is dropped */
};

/* What is to be said on a stream beside the answers, pulls and reports in its lists. */
enum stream_due {
    DUE_GREETING = 1u,
    DUE_CLOSED = 2u, /* its session is closed */
    DUE_REJOIN = 4u, /* its session is not known here */
    DUE_ALIVE = 8u,  /* ps 0 gave a sign of life */
};

struct lane_stream {
    LINKS(struct lane_stream) in_lane;
    uint64_t id;
    enum lane_stream_kind kind;
    enum lane_stream_state state; /* lane_stream_move changes it */
    uint32_t due;                 /* enum stream_due */
    bool writable;
    struct lane_session *session;
    uint64_t generation;
    struct lane_part *receiving;
    LIST(struct answer) answers;
    uint32_t answer_count;
    LIST(struct lane_pull) pulls;
    uint32_t pull_count;
    uint64_t said_us; /* when the last message of pulls was given out; 0: none was */
    LIST(struct report) reports;
    bool attended; /* in the list of those to look after at the end of the step */
    LINKS(struct lane_stream) among_attended;
    enum place place;
    LINKS(struct lane_stream) among_strangers; /* by stranger_since_us */
    uint64_t stranger_since_us;
};

/* Who may take how much of pulls_bytes_max (pull_room.c). */
struct pull_bounds {
    uint64_t readers_max, common_max, share_max, refused_max;
};

/* Bytes lent to the driver. Its address is the number that RELEASED gives back. */
struct hold {
    struct block *block;
};

struct lane {
    struct lane_config config;
    const struct memory *memory;
    struct arena strings; /* the config's, for the lane's life */
    struct arena arena;   /* of one step */
    struct out out;
    struct store store;
    struct sized_pool bytes; /* staging, and what belongs to parts, pulls and answers */
    struct pool streams_pool, sessions_pool, parts_pool, chunks_pool, refusals_pool, reports_pool,
        holds_pool;
    const struct lane_event *event;
    uint64_t now_us;

    uint64_t cluster_id, epoch, membership_epoch;
    uint32_t index, ps_count;
    char *ps_addresses[LANE_PS_MAX]; /* NULL: unknown */
    uint64_t ps_incarnations[LANE_PS_MAX];
    uint64_t coordinator_incarnation; /* 0: not met */
    uint64_t coordinator_secret;      /* that its later hellos must repeat */
    uint64_t
        coordinator_hello; /* the number of its last hello: those before are of older streams */
    uint64_t coordinator_heard_us;
    struct lane_stream *coordinator; /* the stream that orders come on */

    struct id_map stream_map;
    LIST(struct lane_stream) streams;
    LIST(struct lane_stream) attended;    /* in the order of their due */
    uint64_t work;                        /* of this step, beside its arena; lane_has_time */
    bool turns_taken;                     /* in this step: what pulls wait for may be there */
    bool turns_put_off;                   /* some who wait in line had no time in this step */
    LIST(struct lane_pull) leaving_pulls; /* of no stream: they let go of what they read */
    LIST(struct lane_stream) strangers;   /* oldest first */
    uint32_t stranger_count, reader_streams;
    LIST(struct lane_session) sessions;        /* open ones */
    LIST(struct lane_session) closed_sessions; /* newest first */
    uint32_t closed_count;
    LIST(struct lane_session) waiting; /* for busy shards or for time, in their turn */
    LIST(struct operation) operations; /* newest first */
    uint32_t stalled_operations;
    uint64_t last_part, last_job, last_batch;
    uint64_t last_record, recorded; /* made; on disk */
    uint64_t marking;               /* number of the part whose marks are on its shards (piece.c) */
    uint64_t staged_bytes;          /* of all sessions' parts, and of answers that wait */
    uint64_t pull_bytes;            /* of all pulls, … */
    uint64_t refused_pull_bytes;    /* of those refused at once, … */
    uint64_t reader_pull_bytes;     /* of those without a session, … */
    uint64_t common_pull_bytes;     /* and of sessions' beyond their shares (pull_room.c) */
    uint64_t grant_bytes;           /* of staging, for each session */
    struct pull_bounds pull_bounds;
    bool any_hello; /* ps 0 has spoken to this ps */

    bool joined_once; /* a session has been opened */
    struct refused_joins
        refused_joins; /* that took this ps for ps 0; those of ps 0 are the judge's */
    bool serving;
    bool run_over; /* on ps 0: its judge says so */
    bool terminating, ended, end_answered, exited;
    uint64_t end_number;
    int exit_code;
    enum sumac_reason exit_reason;
    char exit_text[SUMAC_ERROR_TEXT_BYTES];
    uint64_t exit_by_us; /* SIGTERM waits no longer */
    uint64_t last_step_us, report_due_us, renew_due_us, wake_us;
    uint64_t pull_due_us;      /* when a pull's time may be over, … */
    uint64_t pull_due_next_us; /* … of those that a look at them has seen so far, … */
    uint64_t pull_look;        /* … which goes on at this stream; 0: none is under way */
    uint64_t report_us;        /* between the reports of a wait */
    struct session_counts counts;
};

_Static_assert(
    FLUSHED_BYTES_MAX == WORK_PER_STEP_MAX * WORK_ARENA_BYTES,
    "what is said takes the memory that the published bound has for it");

/* May a step do more, or is it long enough? */
static inline bool lane_has_time(const struct lane *lane)
{
    return lane->work + lane->arena.bytes_used / WORK_ARENA_BYTES < WORK_PER_STEP_MAX;
}

/* The sizes that decide a path (config, else the constants of lane.h). */
static inline uint32_t inline_bytes(const struct lane *lane)
{
    return lane->config.inline_bytes == 0 ? LANE_INLINE_BYTES : lane->config.inline_bytes;
}

static inline uint32_t lane_copied_pull_bytes_max(const struct lane *lane)
{
    return lane->config.copied_pull_bytes_max == 0 ? LANE_COPIED_PULL_BYTES_MAX
                                                   : lane->config.copied_pull_bytes_max;
}

static inline uint32_t lane_gathered_bytes_max(const struct lane *lane)
{
    return lane->config.gathered_bytes_max == 0 ? LANE_GATHERED_BYTES_MAX
                                                : lane->config.gathered_bytes_max;
}

static inline uint32_t lane_pull_chunk_bytes(const struct lane *lane)
{
    return lane->config.pull_chunk_bytes == 0 ? LANE_PULL_CHUNK_BYTES
                                              : lane->config.pull_chunk_bytes;
}

static inline uint64_t pulls_bytes_max(const struct lane_config *config)
{
    return config->pulls_bytes_max == 0 ? LANE_PULLS_BYTES_MAX : config->pulls_bytes_max;
}

static inline uint64_t grant_bytes(const struct lane *lane) { return lane->grant_bytes; }

/* Is it on disk, with all before it? What reveals what it says may be said then. */
static inline bool is_recorded(const struct lane *lane, uint64_t record)
{
    return record <= lane->recorded;
}

/* Is there no lease any more: the end settles all sessions, and so does an exit? */
static inline bool lane_run_is_over(const struct lane *lane)
{
    return lane->exited || lane->ended || lane->terminating || lane->run_over;
}

/* stream.c: streams, what is said on them first, and their end */
void lane_stream_opened(struct lane *lane, const struct lane_event *event);
void lane_stream_writable(struct lane *lane, const struct lane_event *event);
void lane_stream_closed(struct lane *lane, struct lane_stream *stream);
struct lane_stream *lane_stream_find(const struct lane *lane, uint64_t id);
/* Has the stream said hello, now or before, once? False: it was closed. */
bool lane_stream_greeted(struct lane *lane, struct lane_stream *stream, const wire_hello *hello);
/* Look after it at the end of the step. */
void lane_stream_attend(struct lane *lane, struct lane_stream *stream);
/* That is to be said on it, too. */
void lane_stream_owe(struct lane *lane, struct lane_stream *stream, enum stream_due due);
void lane_stream_move(struct lane_stream *stream, enum lane_stream_state to);
void lane_stream_fail(
    struct lane *lane, struct lane_stream *stream, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* From here on it delivers nothing, and what it was delivering is dropped. */
void lane_stream_end(struct lane *lane, struct lane_stream *stream);
wire_greeting *lane_stream_greeting(struct lane *lane, const struct lane_stream *stream);

/* places.c: how many streams there may be of each sort */
void lane_place_enter(struct lane *lane, struct lane_stream *stream);
/* The most streams of one session, of both kinds. */
uint32_t lane_place_share(const struct lane *lane);
/* It has said hello: whose is it? False: there is no place for it, it was closed. */
bool lane_place_take(struct lane *lane, struct lane_stream *stream);
/* Its session is no longer open. */
void lane_place_estrange(struct lane *lane, struct lane_stream *stream);
void lane_place_leave(struct lane *lane, struct lane_stream *stream);
void lane_place_tick(struct lane *lane);
uint64_t lane_place_due_us(const struct lane *lane);
/* Nobody was listened to for so long. */
void lane_place_excuse(struct lane *lane, uint64_t slept_us);

/* answers.c: what is to be said on a push stream, coalesced */
void lane_answer_staged(
    struct lane *lane, struct lane_session *session, const struct lane_part *part);
void lane_answer_refused(struct lane *lane, struct lane_session *session, uint64_t sequence);
/* On a new stream, what its client may not have heard on the one before: a turn may be over before
 * the part comes again. */
void lane_answers_refused_again(struct lane *lane, struct lane_session *session);
/* The versions of what the part touched, as they are now. */
void lane_answer_done(
    struct lane *lane, struct lane_session *session, const struct lane_part *part, bool voided);
void lane_answer_closed(struct lane *lane, struct lane_session *session);
void lane_answers_drop(struct lane *lane, struct lane_stream *stream);
void lane_answers_flush(struct lane *lane, struct lane_stream *stream);

/* push.c: docs/ARCHITECTURE.md, "Pushing" */
void lane_push_request(struct lane *lane, const struct lane_event *event);

/* part.c: one part being received */
struct lane_part *
lane_part_create(struct lane *lane, struct lane_session *session, const wire_part *header);
/* Check the header, and take room in the session's grant. */
void lane_part_begin(struct lane *lane, struct lane_part *part, const wire_part *header);
void lane_part_move(struct lane_part *part, enum lane_part_state to);
/* It is over, wherever it was, and its memory is given back. */
void lane_part_destroy(struct lane *lane, struct lane_part *part);
/* Take so much more of the session's grant. False: there is not so much left. */
bool lane_part_take_room(struct lane *lane, struct lane_part *part, uint64_t bytes);
/* For want of so many bytes of the grant, with all figures. */
void lane_part_refuse_room(struct lane *lane, struct lane_part *part, uint64_t bytes);
/* The machine has no more, or lane->bytes holds all that it may. */
void lane_part_refuse_memory(struct lane *lane, struct lane_part *part);
/* What is staged and what is kept spare of it share one bound. */
void lane_staging_count(struct lane *lane, uint64_t staged_bytes);
/* Give up its bytes and its shards; it keeps its place in the order. */
void lane_part_empty(struct lane *lane, struct lane_part *part);
void lane_part_refuse(
    struct lane *lane, struct lane_part *part, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
void lane_part_refuse_as(
    struct lane *lane, struct lane_part *part, const struct sumac_error *error);
/* A refused part has taken its place: it counts, and a line says so. */
void lane_part_refused(
    struct lane *lane, const struct lane_part *part, const struct refusal *refusal);
void lane_part_expected(struct lane_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lane_part_given(struct lane_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The whole part is here: are its runs and its checksum as they should be? */
void lane_part_check_whole(struct lane *lane, struct lane_part *part);

/* piece.c: the checks of one piece, and the run it becomes or continues, whose bytes follow. NULL:
 * the part is refused, or the piece is empty: it touches its shard and has no run. */
struct run *lane_piece_take(struct lane *lane, struct lane_part *part, const wire_piece *piece);
/* Its marks on its shards may be gone (piece.c). */
void lane_piece_mark_again(struct lane_part *part);
/* A duplicate's piece: only which shard it touches, for the versions in its answer. One that is not
 * applied yet has none. */
void lane_piece_note(struct lane *lane, struct lane_part *part, const wire_piece *piece);

/* staging.c: bytes of pieces, copied while they are hot */
struct payload {
    const struct span *spans;
    size_t count;
    size_t next; /* the span at hand, … */
    size_t used; /* … and what is used of it */
};
/* Make sure that a run of some bytes can begin here, aligned. False: no memory. */
bool lane_staging_align(struct lane *lane, struct lane_part *part, uint64_t bytes);
/* Copy the next bytes of the payload to the end of the part. False: no memory. *finite is set to
 * false, never to true. */
bool lane_staging_copy(
    struct lane *lane, struct lane_part *part, struct payload *payload, uint64_t bytes,
    enum sumac_dtype dtype, bool *finite);
void lane_staging_skip(struct payload *payload, uint64_t bytes);

/* checksum.c */
void *lane_checksum_begin(struct lane *lane);
void lane_checksum_update(void *state, const void *data, size_t bytes);
uint64_t lane_checksum_end(struct lane *lane, void *state);

/* session.c: what a ps knows of one session */
struct lane_session *lane_session_find(const struct lane *lane, const uint8_t id[16]);
struct lane_session *lane_session_open(struct lane *lane, const wire_open_session *open);
void lane_session_destroy_all(struct lane *lane);
void lane_session_heard(struct lane *lane, struct lane_session *session);
struct lane_part *lane_session_part(const struct lane_session *session, uint64_t sequence);
/* In its place by its sequence, which no other has: that is what applies a push once. */
void lane_session_insert(
    const struct lane *lane, struct lane_session *session, struct lane_part *part);
void lane_session_remove(struct lane_session *session, struct lane_part *part);
/* All its staged and refused parts. */
void lane_session_drop_parts(struct lane *lane, struct lane_session *session);
/* No longer among the open ones. */
void lane_session_end(struct lane *lane, struct lane_session *session);
/* The most that sessions keep beside their grants of staging and pulls: refused parts and why,
 * answers that say so again, the slices of vector work, an array of a part as it grows; of closed
 * ones what was voided. */
uint64_t lane_sessions_bytes_max(const struct lane *lane);
/* What lane->bytes may hold: staging and pulls, and beside them what sessions are sure of. Again
 * when the number of ps is known. */
void lane_session_bound_pool(struct lane *lane);
uint64_t lane_session_slowest_clock(const struct lane *lane, uint64_t otherwise);

/* voided.c: what some ps refused, and why */
bool lane_voided_has(const struct lane_session *session, uint64_t sequence);
/* Why this ps refused it; NULL: it did not, or its client has said that it knows. */
const struct refusal *lane_voided_refusal(const struct lane_session *session, uint64_t sequence);
/* Takes the refusal (NULL: another ps refused it), unless it fails: OUT_OF_MEMORY, or
 * TOO_MANY_REFUSED beyond LANE_VOIDED_PER_SESSION_MAX. UNSPECIFIED: done. */
enum sumac_reason lane_voided_add(
    struct lane *lane, struct lane_session *session, uint64_t sequence, struct refusal *refusal);
/* Room for so many more, whatever the bound. False: no memory. */
bool lane_voided_reserve(struct lane *lane, struct lane_session *session, size_t more);
/* There must be room. */
struct voided *lane_voided_put(struct lane_session *session, uint64_t sequence);
/* The client knows of every push up to it. What is above the mark has its turn yet, whatever a
 * client says. */
void lane_voided_acked(struct lane *lane, struct lane_session *session, uint64_t acked_through);
void lane_voided_forget(struct lane *lane, struct lane_session *session, uint64_t sequence);
/* Nobody is there any more to be told why. */
void lane_voided_drop_reasons(struct lane *lane, struct lane_session *session);
void lane_voided_drop(struct lane *lane, struct lane_session *session);

/* turn.c: whose turn it is */
void lane_turn_take(struct lane *lane, struct lane_session *session);
/* Shards are free again: those who waited, in their order. */
void lane_turn_retry_waiting(struct lane *lane);
/* A COMPUTE is done. */
void lane_turn_computed(struct lane *lane, const struct lane_event *event);
/* There may be memory for the operations that are stalled. */
void lane_turn_retry_stalled(struct lane *lane);
/* Where the push is that a pull, or a part, waits for. */
const char *lane_turn_whereabouts(const struct lane_session *session, uint64_t sequence);
/* For what, and for whom, a part that has its place waits. */
void lane_turn_describe_wait(
    const struct lane *lane, const struct lane_part *part, char *text, size_t text_bytes);

/* operation.c: one operation, from its first slice to its last */
void lane_operation_move(struct operation *operation, enum operation_state to);
/* Does vector work of another operation go on for a shard of the part? */
bool lane_operation_is_blocked(const struct lane_part *part);
/* Into one that has yet to begin: the part's turn has come, and nothing blocks it. */
void lane_operation_add(struct operation *operation, struct lane_part *part);
/* Out of one that is over. */
void lane_operation_remove(struct operation *operation, struct lane_part *part);
/* Run its parts at the next position, which it takes without any, too. True: it is over. False: its
 * vector work is out, or it is stalled. */
bool lane_operation_begin(struct lane *lane, struct operation *operation);
/* What that COMPUTE was of goes on. The operation that is over with it, or NULL. */
struct operation *lane_operation_computed(struct lane *lane, uint64_t job);
/* The one that is stalled for longest goes on. It, when it is over with that, or NULL. */
struct operation *lane_operation_retry(struct lane *lane);
/* Only without the rule apply_in_one_operation: the first half of the runs (false: there is but
 * one), and the rest. */
bool lane_operation_half(struct lane *lane, struct operation *operation);
void lane_operation_other_half(struct lane *lane, struct operation *operation);
void lane_operation_drop_all(struct lane *lane);

/* pull.c, pulled.c */
void lane_pull_request(struct lane *lane, const struct lane_event *event);
/* More than one message? Then it needs a view. */
bool lane_pull_is_long(const struct lane *lane, const struct lane_pull *pull);
/* The stream has ended. */
void lane_pull_drop_all(struct lane *lane, struct lane_stream *stream);
void lane_pull_end_session(struct lane *lane, struct lane_session *session);
/* It is deleted: what its creator has not assigned yet nobody waits for. */
void lane_pull_end_variable(struct lane *lane, const struct variable *variable);
void lane_pull_tick(struct lane *lane);
/* A message was given out: its reader has a while to take it. */
void lane_pull_said(struct lane *lane, struct lane_stream *stream);
/* Nobody was told for so long that it may go on. */
void lane_pull_excuse(struct lane *lane, uint64_t slept_us);
void lane_pull_open_view(struct lane *lane, struct lane_pull *pull);
/* The long one whose answer has begun, or NULL. */
struct lane_pull *lane_pull_under_way(const struct lane_stream *stream);
void lane_pull_answered(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull);
/* To the end of its stream's list: the others' turn. */
void lane_pull_requeue(struct lane_stream *stream, struct lane_pull *pull);
bool lane_pull_is_ready(
    struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull);
bool lane_pull_waits(const struct lane *lane, const struct lane_session *session);
void lane_pull_attend_all(struct lane *lane);
void lane_pull_describe_wait(
    struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull, char *text,
    size_t text_bytes);
/* pull_room.c: what pulls take while they wait or are under way, of a bound that is shared out */
struct pull_bounds lane_pull_bounds(const struct lane_config *config);
/* Take the room of a pull with so many pieces. False: there is none, and *error says how much there
 * is. */
bool lane_pull_take_room(
    struct lane *lane, struct lane_session *session, struct lane_pull *pull, uint64_t pieces,
    struct sumac_error *error);
/* For one that is refused, until its answer is read. False: there is no room for that either. */
bool lane_pull_take_last_room(struct lane *lane, struct lane_pull *pull);
void lane_pull_give_room(struct lane *lane, struct lane_session *session, struct lane_pull *pull);
/* From here on a reader's, whosever it was. */
void lane_pull_disown_room(struct lane *lane, struct lane_session *session, struct lane_pull *pull);
/* The session is closed: its pulls are those of a reader without one, and streams whose pulls find
 * no room as such end. */
void lane_pull_disown(struct lane *lane, struct lane_session *session);
/* pull_leaving.c: it is over, and in no stream any more */
void lane_pull_leave(struct lane *lane, struct lane_session *session, struct lane_pull *pull);
/* Those that are left, as far as the step has time. */
void lane_pull_reclaim(struct lane *lane);
void lane_pull_reclaim_all(struct lane *lane);
void lane_pulled_flush(struct lane *lane, struct lane_stream *stream);
void lane_pulled_released(struct lane *lane, const struct lane_event *event);

/* orders.c: what ps 0 orders */
void lane_order_received(struct lane *lane, const struct lane_event *event);
/* New variables get their values a slice at a time. */
void lane_orders_fill(struct lane *lane);
/* What was deleted is given back, as far as the step has time. */
void lane_orders_reclaim(struct lane *lane);

/* reports.c: what ps 0 is told */
void lane_report_answer(struct lane *lane, uint64_t number, const struct sumac_error *error);
/* To a stream whose hello was not taken. */
void lane_report_refusal(
    struct lane *lane, struct lane_stream *stream, uint64_t number,
    const struct sumac_error *error);
/* A sign of life, as ps 0 gave one. */
void lane_report_alive(struct lane *lane, struct lane_stream *stream);
void lane_report_opened(struct lane *lane, uint64_t number, uint64_t clock);
/* What the order close_number of the session is answered with, once there is memory for it. */
void lane_report_close(struct lane *lane, struct lane_session *session);
/* Those that there was no memory for. */
void lane_reports_close_again(struct lane *lane);
void lane_report_assigned(struct lane *lane, const struct variable *variable);
void lane_reports_assigned_again(struct lane *lane);
/* The sessions heard from since the last time. */
void lane_reports_renew(struct lane *lane);
void lane_reports_flush(struct lane *lane, struct lane_stream *stream);
void lane_reports_drop(struct lane *lane, struct lane_stream *stream);

/* records.c: the journal's records, when config.records */
enum record_kind {
    RECORD_STAGED = 1,
    RECORD_COMMIT,
    RECORD_APPLIED,
    RECORD_OPEN,
    RECORD_CLOSE,
    RECORD_VARIABLE
};
/* The record's number, 0 without records. */
uint64_t lane_record_write(
    struct lane *lane, enum record_kind kind, const struct lane_session *session,
    uint64_t sequence);

/* list.c, stats.c */
void lane_list_call(struct lane *lane, const struct lane_event *event);
void lane_stats_call(struct lane *lane, const struct lane_event *event);

/* shutdown.c: SIGTERM, the run's end, state that is lost */
/* Its configuration and that of ps 0 contradict each other. */
void lane_shutdown_misconfigured(struct lane *lane, const struct sumac_error *error);
void lane_shutdown_terminate(struct lane *lane, const struct lane_event *event);
/* ps 0 says that the run is over; the order is answered when nothing is in flight any more. */
void lane_shutdown_end(struct lane *lane, uint64_t number, const wire_end *end);
/* Has ps 0 been silent for too long? And the line that says what this ps waits for. */
void lane_shutdown_watch(struct lane *lane);
/* "ps 1 waits for its first call from ps 0 at h0:2222; gives up in 35 s"; NULL: of ps 0, and of one
 * that waits for nothing. In the step's arena. */
char *lane_shutdown_wait(struct lane *lane);
void lane_shutdown_lost(struct lane *lane, enum sumac_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Exit when nothing is in flight any more. */
void lane_shutdown_check(struct lane *lane);

#endif
