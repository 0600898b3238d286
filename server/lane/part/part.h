/* SPDX-License-Identifier: Apache-2.0 */
/* part.h -- what a push brings to this ps: parts, from their header to their place among those of
 * their session, and what is remembered of those that were refused.
 *
 * A part's gradient lies in chunks; its runs say what of it goes where:
 *
 *   chunk:   | run 0 ····· | run 1 ··· | run 2, first half ·|   | second half ······| run 3 ·· |
 *   entries: shards that the part touches, once each, in the order of the pieces
 *
 * What a part holds is taken where it is filled (part.c, piece.c, staging.c) and given back with
 * the part (part.c), each chunk to its owner; its refusal goes over to the session, which gives it
 * back when it need not be remembered (voided.c).
 */
#pragma once

#include "claims.h"
#include "dtype.h"
#include "records.h"
#include "room.h"
#include "step.h"

#define VOIDED_CAPACITY_MIN 8u /* places of a list of voided pushes, once there is one */
#define FUNCTIONS_PER_PART_MAX 256u
#define SETTINGS_PER_PART_MAX 4096u /* which one step carries out */
#define ANSWERS_COST_BYTES 320u /* of WIRE_PART_COST_BYTES: staged or refused, done, done again */
#define VERSIONS_COST_BYTES                                                                        \
    24u /* of WIRE_PIECE_COST_BYTES: its shard's version, done, done again */
#define PIECE_ROOM_BYTES (WIRE_PIECE_COST_BYTES - VERSIONS_COST_BYTES)
#define ANSWERS_BESIDE_BYTES_MAX                                                                   \
    131072u /* of a session's answers, beside its grant: to refusals that are said again */

/* Whose a chunk's memory is: the lane's pool, or somebody who lends what he has received. It gets
 * back, once, just what it gave; the lane's thread calls it, from within a step, and it must not
 * step the lane. It outlives the lane's chunks. */
struct chunk_owner {
    void (*give)(void *context, uint8_t *data, uint32_t bytes);
    void *context;
};

/* What is not used is filled by what is copied next: memory that is to be read only is used whole
 * from the start. */
struct chunk {
    LINKS(struct chunk) in_part;
    const struct chunk_owner *owner;
    uint8_t *data;
    uint32_t bytes, used;
};
struct chunks {
    struct chunk *first, *last;
};

/* Rows that one message brings for a list: their indices and their values, as they were sent. */
struct row_piece {
    struct row_piece *next; /* of the list */
    struct chunk *indices, *values;
    uint32_t indices_offset, values_offset;
    uint32_t count;
    /* operation/ changes, as it takes the rows of several in their order: */
    uint32_t taken;                 /* of the keys */
    struct row_piece *left, *right; /* whose next rows come no sooner than this one's */
    uint64_t ordinal;               /* before that of a piece whose occurrences come later */
    double scale;                   /* of its rows, before they are summed; 1: none */
    uint64_t keys[];                /* of its rows, in their order (update_row_key) */
};

/* All the rows of a run, and room for one that is summed: as its contributions' type has it. */
struct row_list {
    struct row_piece *first, *last;
    uint64_t row_count;
    uint64_t carry_bytes;
    _Alignas(16) uint8_t carry[];
};

struct run {
    struct chunk *chunk; /* where its bytes begin; of one by rows NULL; … */
    uint32_t chunk_offset;
    uint32_t entry;    /* … and the shard they are for */
    uint32_t function; /* 0: the variable's own; i: the part's functions[i - 1] */
    bool by_rows;
    bool sets; /* no bytes: what its function names becomes the shard's own */
    union {
        uint64_t offset;       /* in the shard */
        struct row_list *list; /* of one by rows */
    };
    uint64_t bytes; /* of the shard, or as many as the list's rows have there */
};

struct entry {
    struct shard *shard; /* NULL: it has been let go, as its operation ends */
    union {
        uint64_t based_on;
        uint64_t version; /* that it had then */
    };
    uint32_t function; /* of a piece of values without bytes; of one that counts, if there is */
    bool counted;      /* one of its runs, or such a piece, is by a function that counts_steps */
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
    /* part/ changes */
    LINKS(struct lane_part) in_session; /* by sequence, from STAGED or VOID on */
    struct lane_session *session;
    enum lane_part_state state; /* lane_part_move does */
    uint64_t number;            /* unique: marks the shards it looks up */
    uint64_t sequence, previous;
    uint64_t bytes, received; /* as declared; so far */
    uint64_t first_us;
    double weight;
    double scale; /* of its values; 1: none */
    bool allow_non_finite;
    uint64_t step; /* of a synchronous push; 0: of another, or not the member's next one */
    LINKS(struct lane_part)
    among_contributions; /* while it is STAGED or APPLYING, and has a step */
    bool versions_end;   /* a duplicate's: it has touched a shard without a version to be said */
    bool no_room;        /* it is DROPPED because the grant has none for its versions */
    uint64_t room_bytes; /* what it takes of the session's grant; 0 where it has a claim */
    uint32_t piece_count;
    uint32_t setting_count; /* of its runs, those that set hyperparameters */
    uint32_t run_count, run_capacity;
    struct run *runs;
    uint32_t row_list_count, row_piece_count;
    uint64_t row_count;         /* of all lists */
    struct row_piece *row_open; /* its indices are here, and its values are next */
    uint32_t entry_count, entry_capacity;
    struct entry *entries; /* `counted` of each operation/ sets, too */
    uint32_t function_count;
    struct part_function *functions;
    struct chunks chunks;
    uint64_t checksum;
    void *checksum_state;
    bool is_collective;                /* it is a contribution to a collective */
    struct contribution *contribution; /* of one, until its turn */
    /* operation/ changes */
    LINKS(struct lane_part) in_operation;
    /* part/, large_part_room.c change */
    struct claim *claim; /* its room in the pool; NULL: it has none there */
    /* push.c, place.c, part/ change */
    bool eager;
    bool asks;               /* a header that asks for room, without elements */
    bool unasked;            /* it is DROPPED because nothing asked for its elements */
    struct refusal *refusal; /* while it is REFUSED: then the session's list has it */
    uint64_t record;         /* of its staging */
    /* part/ changes: the arrays of a part of one shard and one run */
    struct run first_run;
    struct entry first_entry;
};

_Static_assert(
    sizeof(struct lane_part) + sizeof(struct chunk) +
            4 * (sizeof(struct run) + sizeof(struct entry)) + 3 * 64 + ANSWERS_COST_BYTES <=
        WIRE_PART_COST_BYTES + PIECE_ROOM_BYTES,
    "a part of one piece, or of few, fits into what it takes of the grant");
_Static_assert(sizeof(struct part_function) * 9 / 8 <= WIRE_FUNCTION_COST_BYTES, "and a function");

/* False: no memory. */
bool lane_part_init(struct lane *lane);
void lane_part_deinit(struct lane *lane);

/* A contribution to a variable of a half type is float32: so many bytes for each of the shard's. */
static inline uint64_t lane_part_widens(const struct lane_part *part, const struct shard *shard)
{
    const enum sumac_dtype dtype = shard->variable->definition.dtype;

    return part->step == 0 || update_contribution_dtype(dtype) == dtype
               ? 1
               : dtype_bytes(SUMAC_FLOAT32) / dtype_bytes(dtype);
}

static inline uint64_t lane_entry_version(const struct entry *entry)
{
    return entry->shard == NULL ? entry->version : store_version(entry->shard);
}

/* Its shards are looked at one after the other, and this one is next. */
STORE_FETCHES
static inline void lane_part_fetch_ahead(const struct lane_part *part, uint32_t entry)
{
    if (part->entry_count - entry <= STORE_SHARDS_AHEAD)
        return;
    const struct shard *const shard = part->entries[entry + STORE_SHARDS_AHEAD].shard;
    if (shard != NULL) /* it has not been let go */
        store_shard_soon(shard);
}

/* part.c: one part being received */
/* In that state. NULL: no memory. */
struct lane_part *lane_part_create(
    struct lane *lane, struct lane_session *session, const wire_part *header,
    enum lane_part_state state);
/* Check the header of one that is RECEIVING, and take room in the session's grant. False: refused.
 */
bool lane_part_begin(struct lane *lane, struct lane_part *part, const wire_part *header);
/* By its number in the part; 0: the variable's own. */
static inline const struct update_function *
lane_entry_function(const struct lane_part *part, const struct entry *entry, uint32_t number)
{
    assert(number <= part->function_count);
    return number == 0 ? entry->shard->variable->definition.function
                       : part->functions[number - 1].function;
}
static inline const struct update_function *
lane_run_function(const struct lane_part *part, const struct run *run)
{
    assert(run->entry < part->entry_count);
    return lane_entry_function(part, &part->entries[run->entry], run->function);
}
/* Of a function by its number in the part (0: the variable's own), for a shard: the push's
 * hyperparameters over the shard's own, or, of another function, over its defaults. Lends  the
 * shard's, the part's, or *merged. */
const struct update_hyperparameters *lane_part_hyperparameters(
    const struct lane_part *part, uint32_t function, const struct shard *shard,
    struct update_hyperparameters *merged);
static inline const struct update_hyperparameters *lane_run_hyperparameters(
    const struct lane_part *part, const struct run *run, struct update_hyperparameters *merged)
{
    const struct shard *shard = part->entries[run->entry].shard;

    assert(run->entry < part->entry_count);
    return run->function == 0 ? &shard->hyperparameters
                              : lane_part_hyperparameters(part, run->function, shard, merged);
}
void lane_part_move(struct lane_part *part, enum lane_part_state to);
/* It is over, wherever it was, and its memory is given back. */
void lane_part_destroy(struct lane *lane, struct lane_part *part);
/* Take so much more of the session's grant. False: there is not so much left, and a part that is
 * RECEIVING is refused. */
bool lane_part_take_room(struct lane *lane, struct lane_part *part, uint64_t bytes);
/* The machine has no more, or lane->bytes holds all that it may. Returns false. */
bool lane_part_refuse_memory(struct lane *lane, struct lane_part *part);
/* Of nobody any more: what this step's records are made of stays until the next one. */
void lane_chunks_free(struct lane *lane, struct chunks *chunks);
/* The step is over, and what its records point to has been written. */
void lane_part_free_recorded(struct lane *lane);
/* It is applied, and needs this shard no more. */
void lane_part_let_go(struct lane *lane, struct lane_part *part, uint32_t entry);
/* Give up its bytes and its shards; it keeps its place in the order. */
void lane_part_empty(struct lane *lane, struct lane_part *part);
/* Refuse a part that is RECEIVING. Returns false. The text may go on with what was expected and
 * with what was given, each behind a tab. */
bool lane_part_refuse(
    struct lane *lane, struct lane_part *part, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
bool lane_part_refuse_as(
    struct lane *lane, struct lane_part *part, const struct sumac_error *error);
/* A refused part has taken its place: it counts, and a line says so. */
void lane_part_refused(
    struct lane *lane, const struct lane_part *part, const struct refusal *refusal);
/* Its last run goes on no more. False: its function keeps slots, and takes whole shards or whole
 * rows; the part is refused. */
bool lane_part_check_run(struct lane *lane, struct lane_part *part);
/* The whole part is here: are its last run and its checksum as they should be? Else it is refused.
 */
bool lane_part_check_whole(struct lane *lane, struct lane_part *part);
/* The last one that is staged or refused up to that sequence; NULL: none. */
struct lane_part *lane_session_part_before(struct lane_session *session, uint64_t sequence);
struct lane_part *lane_session_part(const struct lane_session *session, uint64_t sequence);
/* In its place by its sequence, which no other has: that is what applies a push once. */
void lane_session_insert(struct lane *lane, struct lane_session *session, struct lane_part *part);
void lane_session_remove(struct lane *lane, struct lane_session *session, struct lane_part *part);
/* All its staged and refused parts beyond that sequence, … */
void lane_session_drop_parts(struct lane *lane, struct lane_session *session, uint64_t beyond);
/* … or as many as the step has time for. False: some are left. */
bool lane_session_drop_some(struct lane *lane, struct lane_session *session, uint64_t beyond);

struct payload {
    const struct span *spans;
    size_t count;
    size_t next; /* the span at hand, … */
    size_t used; /* … and what is used of it */
};

/* piece.c: the checks of one piece, and the run it becomes or continues, whose bytes follow. NULL:
 * the part is refused, or the piece is empty: it touches its shard and has no run. */
struct run *lane_piece_take(struct lane *lane, struct lane_part *part, const wire_piece *piece);
/* take_rows.c: rows by index, in lists. A message has whole pairs: indices, then values. */
/* Indices: checked, put in order, and kept, and their bytes are used. */
void lane_rows_take_indices(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload);
/* Values of the indices before them. The run whose rows they are, and their bytes follow; NULL: the
 * part is refused, or they have none. */
struct run *
lane_rows_take_values(struct lane *lane, struct lane_part *part, const wire_piece *piece);
/* The message ends: is the last pair whole? Else it is refused. */
bool lane_rows_check_message(struct lane *lane, struct lane_part *part);
/* A message with so many indices is next. */
void lane_rows_expect(struct lane *lane, uint64_t indices);

/* A duplicate's piece: only which shard it touches, for the versions in its answer. They are said
 * in the order of its shards, and so end before the first that was deleted since; one that is not
 * applied yet has none. Without memory, or room in the grant, the part is dropped. */
void lane_piece_note(struct lane *lane, struct lane_part *part, const wire_piece *piece);
/* Its pieces are next: do its shards know their places in it? */
void lane_piece_mark(struct lane *lane, struct lane_part *part);

/* staging.c: bytes of pieces, copied while they are hot */

/* The part goes on in this chunk, whose links are empty: its data are aligned as runs are, and what
 * is used of it are whole elements of the last run, looked at already. They count as received; the
 * session's grant has had them since the header, whoever owns them. True: taken, and `owner->give`
 * is called when the part, and the records that point to it, are done. False: no memory, and it is
 * the caller's still. */
bool lane_staging_add(struct lane *lane, struct lane_part *part, const struct chunk *given);

struct staged {
    enum sumac_dtype dtype;
    uint64_t
        unit; /* so many bytes lie in one chunk: a row of those by index; 1: they lie anywhere */
};
/* Copy the next bytes of the payload to the end of the part. False: no memory; the part is refused,
 * and the bytes are passed over. *finite is set to false, never to true. */
bool lane_staging_copy(
    struct lane *lane, struct lane_part *part, struct payload *payload, uint64_t bytes,
    const struct staged *staged, bool *finite);
/* Of a row by index, as it is sent. */
static inline uint64_t lane_row_bytes(const struct lane_part *part, const struct shard *shard)
{
    return shard->row_bytes * lane_part_widens(part, shard);
}
void lane_staging_skip(struct payload *payload, uint64_t bytes);

/* records.c: what is written down (records.h) */

/* Each writes one record, and returns its number: 0 where no records are made. Without memory for
 * it the step ends with EXIT, and what waits for its number is never said. */
uint64_t lane_record_write(struct lane *lane, const struct record *record);
/* Of an order: with the session, or without (NULL). */
uint64_t lane_record_order(
    struct lane *lane, enum record_kind kind, const struct lane_session *session, uint64_t first,
    const wire_message *message);
uint64_t lane_record_part(struct lane *lane, const struct lane_part *part);
/* It is refused; or, staged as it is, it is voided here. */
uint64_t
lane_record_refused(struct lane *lane, const struct lane_part *part, const struct refusal *refusal);
/* position 0: it was passed over. */
uint64_t lane_record_applied(struct lane *lane, const struct lane_part *part, uint64_t position);
/* A step is over: made of these parts, linked by in_operation, at that position; of none (NULL) at
 * 0. */
uint64_t lane_record_step(
    struct lane *lane, uint64_t step, const struct lane_part *first, uint64_t position);

/* step_contribution.c: a part of a synchronous push */

/* Its header: is the step the member's next one, and may it be a contribution at all? Else it is
 * refused. */
bool lane_step_contribution_begin(
    struct lane *lane, struct lane_part *part, const wire_part *header);
/* Can contributions for this variable become one gradient? Else it is refused. */
bool lane_step_contribution_check_variable(
    struct lane *lane, struct lane_part *part, const struct variable *variable);
/* It is whole: is it like those that are held for its step? Else it is refused. */
bool lane_step_contribution_compare(struct lane *lane, struct lane_part *part);
/* As its record says: it was refused, and was for this step (0: none of its member's). */
void lane_step_contribution_replay_refused(struct lane_part *part, uint64_t step);
/* Its turn has come, and it counts for nothing: it is voided here, for that reason, as on every ps.
 * False: there is no memory, and nothing has changed. */
bool lane_step_contribution_void(
    struct lane *lane, const struct lane_part *part, const struct sumac_error *error);
