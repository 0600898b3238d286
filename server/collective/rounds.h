/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.h -- what one ps has of the rounds of collectives: who has come to each, how it ended, and
 * who may still ask for it.
 *
 *   rounds ─┬─ open ── round ── places, one for each participant ── its contribution
 *           ├─ over ── the same: some participants may still ask for the result.
 *           └─ kept ── failed rounds, for late participants. The oldest gives way.
 *
 * Nothing here can fail once a contribution is staged. Each part reserves a round when it begins,
 * with all the room that its contribution may need. The first contribution to come enters its
 * reserved round; the others give theirs back. docs/protocol/PROTOCOL.md, "Collectives", has the
 * rules.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "collective.h"
#include "sized_pool.h"

#define ROUNDS_OF_NAME_MAX 64u      /* at a time, whoever's, beside those that are kept */
#define ROUNDS_KEPT_OF_NAME_MAX 16u /* that failed, for who comes late */
#define ROUNDS_KEPT_MAX 1024u       /* likewise, of all names together */
#define ROUNDS_BUCKETS 1024u

/* A participant's. */
struct round_place {
    bool came;
    bool heard; /* it asks for nothing any more */
    bool left;  /* its session is settled, and none has come in its place */
    double weight;
    uint64_t extent;    /* of the axis that contributions are joined along */
    void *contribution; /* its owner's; NULL: none, or given back */
};

struct round {
    LINKS(struct round) in_bucket;
    LINKS(struct round) in_list;
    LINKS(struct round) in_unwanted;
    /* Its owner's: what is made of it can be read; it is used so often, and none of those who came
     * may be said to have heard of it till then. */
    LINKS(struct round) in_line;
    bool ready;
    uint32_t uses;
    bool for_ps_0;        /* `end` is proposed to ps 0, which alone ends it … */
    uint64_t proposed_us; /* … when it last was; 0: it has yet to be … */
    bool is_proposed;     /* … with a report that is to be made: then it is in line for that */
    struct collective
        *collective;     /* as the first said it; of a reserved round, as its contribution does */
    size_t block_bytes;  /* of this, the places and the collective, as the pool counts them */
    uint64_t room_bytes; /* all that is counted for it */
    uint64_t until_us;   /* the earliest deadline of the participants that came, */
    uint32_t until_ms;   /* and the timeout that it came from */
    uint32_t came_count, heard_count, left_count;
    uint64_t over_through; /* rounds of its name that were forgotten had at most this number */
    bool passes;           /* ps 0 says so: it is over when it is whole here */
    bool torn; /* one who came has contributed something else: `end` is how it differs */
    bool over, kept;
    bool unwanted;          /* open, and no participant that came waits for it */
    struct sumac_error end; /* status OK: it passed */
    struct round_place places[];
};

struct round_owner {
    /* Gets back what was contributed, once. */
    void (*give)(void *context, void *contribution);
    /* Ends an unwanted round, whose room is needed, if that is the owner's to do. */
    void (*end)(void *context, struct round *round);
    void *context;
};

struct rounds {
    struct sized_pool *pool;
    struct round_owner owner;
    uint64_t room_bytes, room_bytes_max; /* of rounds and reserved rounds, … */
    uint64_t beside_bytes; /* … and what the owner has got back, and has yet to give to others */
    uint64_t given_way_count; /* of those that are kept: for want of room, which no record says */
    uint32_t count, kept_count;
    LIST(struct round) open, over, kept;
    LIST(struct round) unwanted; /* of those that are open: the oldest gives way */
    struct {
        LIST(struct round) rounds;
    } buckets[ROUNDS_BUCKETS];
};

void rounds_init(
    struct rounds *rounds, struct sized_pool *pool, const struct round_owner *owner,
    uint64_t room_bytes_max);
/* All reserved rounds have been given back. */
void rounds_deinit(struct rounds *rounds);

/* Room for a contribution that takes so many bytes, one of whom the result takes the place of:
 * rounds that are kept give way to it, and then unwanted ones. NULL: RESOURCE_EXHAUSTED, BUSY or
 * OUT_OF_MEMORY, with both figures. */
struct round *rounds_reserve(
    struct rounds *rounds, const struct collective *collective, uint64_t bytes,
    struct sumac_error *error);
/* The same for an end that ps 0 orders, of which somebody may come to hear: it takes no more than
 * itself, and is not refused for room. NULL: no memory. */
struct round *rounds_reserve_order(struct rounds *rounds, const struct collective *collective);
/* Nothing came of it. */
void rounds_unreserve(struct rounds *rounds, struct round *reserved);

enum rounds_came {
    ROUNDS_TAKEN,
    ROUNDS_DIFFERS, /* from what was said before: the round is to end as *error has it */
    ROUNDS_AGAIN,   /* its task has come before, and that session has yet to hear of the round */
    ROUNDS_BACK,    /* its task has come before, and this session hears of the round in its place */
    ROUNDS_OVER,    /* the round was over */
};

/* A contribution has its turn. */
struct round_arrival {
    struct round *reserved; /* used up */
    void *contribution;     /* given back at once, except with ROUNDS_TAKEN */
    double weight;
    uint64_t now_us;
};
/* *round: there is one from here on, and while its place has not heard. */
enum rounds_came rounds_come(
    struct rounds *rounds, const struct round_arrival *arrival, struct round **round,
    struct sumac_error *error);

/* The round of that name and number that belongs to no other attempt of a task. There may be others
 * of that number: attempts that are started again count from 1. NULL: no such round. */
struct round *rounds_find(const struct rounds *rounds, const struct collective *given);
/* The round that this attempt of a task may ask for: its own, where rounds belong to attempts, or
 * an open one that it may come to. NULL: no such round. */
struct round *rounds_find_for(
    const struct rounds *rounds, const char *name, uint64_t number,
    const struct collective_task *task);
/* The next round of the name that keeps the round `given` from passing, since they belong to
 * different attempts of a task. One that failed does not keep back later attempts. NULL: no more.
 */
struct round *rounds_other_attempt(
    const struct rounds *rounds, const struct collective *given, struct round *after);
/* Have all come? */
bool round_is_whole(const struct round *round);
/* The first participant from that place on that has not come; UINT32_MAX: none. */
uint32_t round_missing(const struct round *round, uint32_t from);
/* Have some come, and are the sessions of all of these settled? */
bool round_is_deserted(const struct round *round);

/* It is over, for all alike: so, and all contributions are given back; or well (SUMAC_OK), which it
 * is whole for. An end that is said again is none. With it the round is gone, when nobody wants
 * it. */
void rounds_end(struct rounds *rounds, struct round *round, const struct sumac_error *end);
/* Does somebody ask for it? */
bool round_is_wanted(const struct round *round);
/* The round that ps 0 orders an end of, also one that no participant has come to here. The reserved
 * round is used up. The caller ends the round: at once, or, if it passes, when it is whole here.
 * NULL: it is over. */
struct round *
rounds_ordered(struct rounds *rounds, struct round *reserved, const struct sumac_error *end);

/* The participant at that place asks for the round no more. When nobody does, and it is over, it is
 * gone. */
void rounds_heard(struct rounds *rounds, struct round *round, uint32_t place);
/* No session of that task is open. A round that failed is forgotten when this holds of each
 * participant: till then a participant that comes late is told how the round ended. */
void round_left(struct rounds *rounds, struct round *round, const struct collective_task *task);
/* round_left, of every round that is over. */
void rounds_left(struct rounds *rounds, const struct collective_task *task);
/* Was a round of that name with this number, or a larger one, and of no other attempt, forgotten
 * though it was kept? */
bool rounds_are_over(const struct rounds *rounds, const struct collective *given);
