/* SPDX-License-Identifier: Apache-2.0 */
/* pull_state.h -- what the files of this room share, and nobody else sees. */
#pragma once

#include "pull.h"

#define PIECES_PER_ANSWER_MAX 2048u
#define UNREAD_US_MAX 60000000u /* the longest time that a message may wait for its reader */
#define PULLED_BESIDE_MAX 16u   /* in one message of a push stream; the rest goes with the next */

/* Beside an offset, as no shard is so large: it is one by rows; the list of the shard that is read.
 */
#define PULL_BY_ROWS (UINT64_C(1) << 63)
#define PULL_LIST_SHIFT 60
#define PULL_OFFSET_MASK ((UINT64_C(1) << PULL_LIST_SHIFT) - 1)
_Static_assert(STORE_LISTS_MAX < 8, "a list's number has three bits");
#define ROWS_PER_ANSWER_MAX 8192u /* by index: each lies anywhere */

struct pull_piece {
    union {
        struct shard *shard;
        uint64_t shard_id; /* while it is only kept, … */
    };
    uint64_t offset; /* or, of one by rows, where its indices begin; with what is beside it */
    uint64_t bytes;
    union {
        uint64_t version;      /* that is read, once `fixed` */
        uint64_t layout_epoch; /* … likewise */
    };
};

/* What a pull of a round of a collective keeps: its name, and where its answer has come to. */
struct collective_pull {
    uint64_t number;
    struct collective_task task; /* who asks */
    struct round *round;         /* once it is fixed, of one that passed: it is used */
    uint64_t bytes;              /* of the result here, … */
    uint64_t index_bytes;        /* … of which these are row indices */
    uint64_t outer, unit;        /* of what is joined (collective_pull.c) */
    uint64_t at;                 /* what has been said, … */
    uint32_t place;              /* … the participant whose bytes are next, … */
    uint64_t place_begin;        /* … and where these begin in the result */
    char name[];
};

/* Bytes of a result that lie together. */
struct result_run {
    const uint8_t *data;
    uint64_t bytes;
    struct contribution *contribution;
};

struct lane_pull {
    LINKS(struct lane_pull) in_stream;
    uint64_t request;
    uint64_t after_sequence;
    uint64_t clock_awaited; /* of the slowest member; 0: it waits for nobody's */
    uint64_t at_step;       /* it is to be of the state after that one; 0: of any */
    uint64_t started_us, deadline_us;
    uint32_t timeout_ms;
    struct pull_piece *pieces;
    uint32_t piece_count, piece_capacity;
    int64_t *indices; /* of rows, for the pieces that name some, one after the other */
    uint32_t index_count, indices_read;
    uint32_t
        kept_count; /* pieces behind piece_count, up to this one, have not been looked at yet; */
    int32_t kept_kind, kept_codec;      /* the last one's: the others' are values as they are */
    struct collective_pull *collective; /* of one of a round of a collective, which has no pieces */
    uint32_t result_bytes;
    uint64_t room_bytes; /* what it takes of pulls_bytes_max, … */
    bool refused_room;   /* and whether of what is kept for those that are refused */
    uint64_t bytes;
    bool reads_slots;
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

/* Who may take how much of pulls_bytes_max (pull_room.c). */
struct pull_bounds {
    uint64_t readers_max, common_max, share_max, refused_max;
};

struct pulls {
    struct pull_bounds bounds;
    uint64_t refused_bytes; /* of those refused at once, … */
    uint64_t reader_bytes;  /* of those without a session, … */
    uint64_t common_bytes;  /* and of sessions' beyond their shares (pull_room.c) */
    uint64_t due_next_us; /* lane->pulls_due_us of those that a look at them has seen so far, … */
    uint64_t look;        /* … which goes on at this stream; 0: none is under way */
    struct pool holds;
};

static inline bool lane_pull_is_by_rows(const struct pull_piece *piece)
{
    return (piece->offset & PULL_BY_ROWS) != 0;
}
static inline uint64_t lane_pull_offset(const struct pull_piece *piece)
{
    return piece->offset & PULL_OFFSET_MASK;
}
/* STORE_VALUE, or that of a slot. */
static inline uint32_t lane_pull_list(const struct pull_piece *piece)
{
    return (uint32_t)(piece->offset >> PULL_LIST_SHIFT & 7);
}
/* Of a piece by rows, where the shard has byte `at` of what is answered, and how much of the row is
 * left there. */
static inline uint64_t lane_pull_row_at(
    const struct lane_pull *pull, const struct pull_piece *piece, uint64_t at, uint64_t *left)
{
    const uint64_t row_bytes = piece->shard->row_bytes, within = at % row_bytes;

    assert(at < piece->bytes);
    *left = row_bytes - within;
    return (uint64_t)pull->indices[lane_pull_offset(piece) + at / row_bytes] * row_bytes + within;
}

/* Bytes lent to the driver. Its address is the number that RELEASED gives back. */
struct hold {
    struct block *block;
    struct contribution *contribution; /* or of one */
};

/* Have not all of its pieces been looked at? */
static inline bool lane_pull_is_being_read(const struct lane_pull *pull)
{
    return pull->piece_count < pull->kept_count && pull->error.status == SUMAC_OK;
}

STORE_FETCHES
static inline void lane_pull_fetch_ahead(const struct lane_pull *pull, uint32_t piece)
{
    if (pull->piece_count - piece > STORE_SHARDS_AHEAD)
        store_shard_soon(pull->pieces[piece + STORE_SHARDS_AHEAD].shard);
}

/* A time that the tick must not miss, of a pull or a stream that a look under way may have passed
 * already. */
static inline void lane_pull_note_due(struct lane *lane, uint64_t due_us)
{
    if (due_us < lane->pulls_due_us)
        lane->pulls_due_us = due_us;
    if (due_us < lane->pulls->due_next_us)
        lane->pulls->due_next_us = due_us;
}

/* It waits no longer: from where it is looked at. */
void lane_pull_note_failed(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull);
/* Till its time is over. */
void lane_pull_hold_answers(struct lane *lane, const struct lane_stream *stream);
/* Look at more of the pieces that it keeps, as the step has time. False: some are left, or no time
 * is; its stream is looked after again. */
bool lane_pull_read_on(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull);
/* More than one message? Then it needs a view. */
bool lane_pull_is_long(const struct lane *lane, const struct lane_pull *pull);
/* It was passed: if it waits for the slowest member, or is at a step, its stream is looked at again
 * for that. */
void lane_pull_await(
    const struct lane *lane, struct lane_stream *stream, const struct lane_pull *pull);
/* Its step is over, and so is a later one: *error is why it is not answered otherwise. */
bool lane_pull_is_late(
    const struct lane *lane, const struct lane_pull *pull, struct sumac_error *error);
/* It is long, and another of its stream is under way. */
bool lane_pull_is_put_off(
    const struct lane *lane, const struct lane_stream *stream, const struct lane_pull *pull);
void lane_pull_answered(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull);
/* To the end of its stream's list: the others' turn. */
void lane_pull_requeue(struct lane_stream *stream, struct lane_pull *pull);
bool lane_pull_is_ready(
    struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull);

/* Take the room of a pull with that many pieces. Fails  RESOURCE_EXHAUSTED: *error says how much
 * room there is. */
enum sumac_status lane_pull_take_room(
    struct lane *lane, struct lane_session *session, struct lane_pull *pull, uint64_t pieces,
    struct sumac_error *error);
/* For one that is refused, until its answer is read. False: there is no room for that either. */
bool lane_pull_take_last_room(struct lane *lane, struct lane_pull *pull);
/* The session is closed: its pulls take the room of readers, maybe more than there is. */
void lane_pull_disown_session(struct lane *lane, struct lane_session *session);
/* It is over, and in no stream any more. */
void lane_pull_leave(struct lane *lane, struct lane_session *session, struct lane_pull *pull);

/* collective_pull.c: of rounds of collectives */
/* May it be asked for? Else *error says why not. */
void lane_collective_pull_check(
    const struct lane_stream *stream, const wire_pull_request *request, struct sumac_error *error);
void lane_collective_pull_begin(
    struct collective_pull *wanted, const struct lane_session *session,
    const wire_collective_round *asked);
bool lane_collective_pull_is_ready(const struct lane *lane, const struct lane_pull *pull);
/* The round is over: what is answered is chosen, or the pull's error set. */
void lane_collective_pull_fix(
    struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull);
/* The next bytes, at most so many. */
struct result_run lane_collective_pull_next(struct collective_pull *wanted, uint64_t most);
/* NULL: no memory. */
wire_collective_result *
lane_collective_pull_header(struct lane *lane, const struct lane_pull *pull);
void lane_collective_pull_describe(
    const struct lane *lane, const struct lane_pull *pull, char *text, size_t text_bytes);
