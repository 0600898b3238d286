/* SPDX-License-Identifier: Apache-2.0 */
/* operation_state.h -- what the files of this room share, and nobody else sees. */
#pragma once

#include "combine.h"
#include "missing_tasks.h"
#include "operation.h"

#define SLICE_BYTES 262144u /* of gradient: well below a millisecond */
#define SLICES_PER_BLOCK_MAX                                                                       \
    32u                       /* a block's cuts at SLICE_BYTES, and at the ends of a few chunks */
#define RUNS_INLINE_MAX 1024u /* a slice for each at least: with more, they are given out */
#define BUSY_PER_WORK 8u      /* shards that become busy */
#define COPIED_BYTES_PER_STEP_MAX                                                                  \
    8388608u /* of blocks that are copied for a view before they are written to in part */

enum operation_state {
    OPERATION_OVER,    /* there is none, or all of it is done */
    OPERATION_RUNNING, /* its slices are being cut, and run or given out, in this step */
    OPERATION_OUT,     /* a COMPUTE of it is out */
    OPERATION_STALLED, /* nothing is out: it waits until bytes are RELEASED */
    OPERATION_RAISING, /* all of it is written: its shards get their new versions, … */
    OPERATION_FREEING, /* … and are let go, one after the other */
};

/* Of a synchronous step: its parts become one gradient. */
struct contributions {
    struct update_sources all, first; /* of them; the one that ONLY_FIRST_REPLICA takes */
    double weight;                    /* of all of them */
};

/* What runs at one position of the lane: the parts whose turn has come together, of one session or
 * of several. turn.c says when it begins, operation.c runs it. */
struct operation {
    LINKS(struct operation) in_lane; /* while it lasts longer than a step */
    enum operation_state state;      /* lane_operation_move changes it */
    uint64_t position;
    LIST(struct lane_part) parts;
    /* NULL: they are applied one after the other. Else they are alike, and their sum is applied, as
     * the last of them says. */
    const struct contributions *sum;
    struct lane_part *part;        /* of them, the one that has yet to be cut into slices, … */
    uint32_t run;                  /* … from here on, … */
    uint64_t byte;                 /* … in that run; then the one whose shards have yet … */
    struct row_piece *rows;        /* of a run by rows, those to come (cut_rows.c), … */
    uint32_t entry;                /* … to get their version, or to be let go, from here on */
    bool assigns;                  /* some of them have yet to be assigned: its runs say what of */
    bool counts;                   /* all have their versions, which say so from now on */
    bool takes_rows;               /* … which have been put together, … */
    bool carries_row;              /* … and of the next one some occurrences are summed already */
    struct lane_compute compute;   /* what is out, … */
    struct block **held;           /* … and the old blocks that it reads */
    uint32_t capacity, held_count; /* of both arrays; 0: there was no memory for them */
};

/* Slices as they are made, and the old blocks that they read. */
struct batch {
    struct update_slice *slices;
    struct block **held;
    uint32_t count, capacity;           /* of slices; rows take places at the end, … */
    uint32_t held_count, held_capacity; /* … and none of these */
    uint64_t copied_bytes;
    uint64_t number;   /* marks the shards it writes to; 0: its slices run in order */
    bool lacks_memory; /* for a block beside one that a reader needs */
};

#define COMBINED_AT_ONCE 256u /* slices of one COMPUTE */

/* Rounds of collectives whose contributions become one tensor, in their turn. */
struct combining {
    LIST(struct round) line; /* the first is under way: … */
    uint64_t done, elements; /* … so many of its elements have been given out, of so many; 0: it
                                has yet to begin */
    struct update_sources sources;
    double weight;               /* of all of them */
    struct lane_compute compute; /* job 0: none is out */
    struct combine_slice slices[COMBINED_AT_ONCE];
};

struct turns {
    LIST(struct lane_session) lines[TURN_STATES]; /* the sessions of each state, in their order */
    LIST(struct operation) operations;            /* newest first */
    uint32_t stalled, ending;                     /* of them; RAISING or FREEING */
    uint64_t last_job, last_batch;
    struct operation step; /* of the synchronous step that is being applied */
    struct contributions contributions;
    uint64_t taken_step;             /* with a quorum: the last one that ps 0 has taken */
    uint32_t step_begun;             /* number of members that have come and begin with step 1 */
    bool steps_due;                  /* the next step may be whole with what has come */
    uint64_t told_step;              /* the log tells of its wait, the next time … */
    uint64_t tell_us, tell_apart_us; /* … then, and so long after that */
    uint64_t fails_from;             /* this step and those after it fail; 0: none does */
    char lost_task[STORE_TASK_TEXT_BYTES]; /* whose contribution they lack */
    uint64_t collective_due_us;            /* when a round's time may be over */
    uint64_t collective_order;             /* number of the last order that ended one */
    struct combining combining;
};

struct __attribute__((may_alias)) shard_work {
    struct shard_busy busy;
    uint64_t batch, batch_first, batch_beyond; /* the last COMPUTE that writes to it, and where */
};

_Static_assert(
    sizeof(struct shard_work) <= SHARD_OPERATION_WORDS * sizeof(uint64_t), "it has room");
_Static_assert(
    sizeof(struct operation) <= SESSION_OPERATION_WORDS * sizeof(uint64_t),
    "a session has room for its operation");

static inline struct shard_work *work_of(struct shard *shard)
{
    return (struct shard_work *)(void *)shard->of_user;
}

/* Of thousands of shards, what operations keep of each is looked at, and this one's is next. */
#define WORK_AHEAD 24u
STORE_FETCHES
static inline void fetch_work_ahead(const struct lane_part *part, uint32_t entry)
{
    if (part->entry_count - entry > WORK_AHEAD)
        __builtin_prefetch(part->entries[entry + WORK_AHEAD].shard->of_user, 1);
}

/* That of the part whose turn it is. */
static inline struct operation *operation_of(struct lane_session *session)
{
    return (struct operation *)(void *)session->of_operation;
}

/* What all slices of a run share. */
struct prepared {
    struct update_slice *slice; /* the first one, in its place in the batch */
    uint32_t list_count;        /* of the shard's lists, those that its function writes */
};

/* A place in staged bytes, … */
struct cursor {
    const struct chunk *chunk;
    uint64_t offset;
};

/* … so many bytes behind the begin of a chunk. */
static inline struct cursor staged_place(const struct chunk *chunk, uint64_t offset)
{
    struct cursor cursor = {.chunk = chunk, .offset = offset};

    assert(cursor.chunk != NULL);
    while (cursor.offset >= cursor.chunk->used && cursor.chunk->in_part.next != NULL) {
        cursor.offset -= cursor.chunk->used;
        cursor.chunk = cursor.chunk->in_part.next;
    }
    assert(cursor.offset < cursor.chunk->used);
    return cursor;
}

/* operation.c: one operation, from its first slice to its last */
void lane_operation_move(struct operation *operation, enum operation_state to);
/* Into one that has yet to begin: the part's turn has come, and nothing blocks it. */
void lane_operation_add(struct operation *operation, struct lane_part *part);
/* Out of one that is over. */
void lane_operation_remove(struct operation *operation, struct lane_part *part);
/* Run its parts at the next position, which it takes without any, too. True: it is over. False: its
 * vector work is out, or it is stalled. */
bool lane_operation_begin(struct lane *lane, struct operation *operation);
/* All of it at once, as it was run at that position before. False: no memory. */
bool lane_operation_replay(struct lane *lane, struct operation *operation, uint64_t position);
/* What that COMPUTE was of goes on. The operation that is over with it, or NULL. */
struct operation *lane_operation_computed(struct lane *lane, uint64_t job);
/* The one that is stalled for longest goes on. It, when it is over with that, or NULL. */
struct operation *lane_operation_retry(struct lane *lane);
/* The oldest that is ending goes on. It, when it is over with that. NULL: the step has no more
 * time. */
struct operation *lane_operation_end_on(struct lane *lane);

/* It counts as a push that was applied. */
void operation_count_part(struct lane *lane, const struct lane_part *part);

/* Before START. A ps that is about to exit does not serve either, but it has streams. */
static inline bool lane_reads_records(const struct lane *lane)
{
    assert(!lane->exited || !lane->serving);
    return !lane->serving && !lane->terminating && !lane->ended;
}

/* combining.c */
/* The round is over, and all have come: its result is made, here and now if it is small. */
void combining_add(struct lane *lane, struct round *round);
/* That COMPUTE is done. False: it is of an operation. */
bool combining_computed(struct lane *lane, uint64_t job);
/* Does one wait for the next step? It goes on. */
bool combining_is_put_off(const struct lane *lane);
void combining_go_on(struct lane *lane);
void combining_drop_all(struct lane *lane);

/* steps.c */
/* Is all of the next one there, and the one before it over? */
bool step_is_whole(const struct lane *lane);
/* The first contribution to the step; its others follow it. NULL: there is none. */
struct lane_part *step_first(const struct lane *lane, uint64_t step);
static inline struct lane_part *step_next(const struct lane_part *part)
{
    struct lane_part *next = part->among_contributions.next;

    return next != NULL && next->step == part->step ? next : NULL;
}
/* Is it committed, not voided, and one that the step is made of? */
bool step_counts(const struct lane *lane, const struct lane_part *part);
/* Is the step over without the contribution? */
static inline bool step_is_late(const struct lane *lane, const struct lane_part *part)
{
    return part->step <= lane->step_over;
}
/* Its contribution has its turn, or had it. */
void step_come(struct lane *lane, const struct lane_part *part, bool voided);
/* It is over. */
void step_end(struct lane *lane, uint64_t step);
/* For whom a step or a round waits: */
/* A task with an open session. */
void lane_missing_add(
    const struct lane *lane, const struct lane_session *session, bool own_pace,
    struct missing_tasks *missing);
/* A task without one. */
void lane_missing_add_absent(
    const struct lane *lane, const char *job, uint32_t index, struct missing_tasks *missing);

/* cut_slices.c: its runs, cut at the ends of blocks and of chunks */
/* Fill the batch from where the operation is, up to its end, to what depends on a slice of this
 * batch, to the room for slices, to the bound on what is copied, or to a block that there is no
 * memory for. */
void slices_fill(struct lane *lane, struct batch *batch, struct operation *operation);
/* The operation of a synchronous step sums the parts that were added to it. */
void step_sum(struct lane *lane);

/* cut_rows.c: runs by rows */
/* Of the present run, the slices of as many rows as the batch takes. True: of all. */
bool rows_fill(
    struct lane *lane, struct batch *batch, struct operation *operation,
    const struct prepared *prepared);
/* Its rows are over, or begin anew. */
static inline void rows_rewind(struct operation *operation)
{
    operation->rows = NULL;
    operation->takes_rows = operation->carries_row = false;
}
/* How many places for slices its rows take. */
uint64_t rows_places(uint64_t row_count);
