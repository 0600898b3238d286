/* SPDX-License-Identifier: Apache-2.0 */
/* store.h -- what a ps holds: variables, the shards of them that are its own, their values and
 * slots as lists of blocks.
 *
 *   shard ─┬─ list[0]:     | block 0 | block 1 | … | last |   its value: blocks of block_bytes, the
 *          └─ list[1 + i]: | block 0 | block 1 | … | last |   last as needed; its slots, likewise,
 *                                                            of the same elements each
 *
 * A block knows its place – its shard, list and index – and the position it was born at. Long pulls
 * open a view of a position, and count nothing on its blocks. A view covers shards: their values,
 * or, of one that shows them, their slots, too. Before the lane overwrites a block that an open
 * view still sees, it takes a spare one and leaves the old one to the view:
 *
 *   list[0][3] ─► (born 90) ─older─► (born 41, died 90) ─older─► (born 7, died 41)
 *
 * a view at position 60 sees the one in the middle. Of a push by rows the rows alone are kept, each
 * once for a view: they take the place of the row's present bytes for a view that is older.
 *
 *   list[0][3] ─kept[7]─► (born 90, died 95) ─older─► (born 70, died 90)
 *
 * Old blocks and rows are bounded by view_bytes_max: beyond it the oldest view is ended, and its
 * reader told so. The writer never waits.
 */
#pragma once

#include "definition.h"
#include "id_map.h"
#include "key_map.h"
#include "list.h"
#include "sized_pool.h"
#include "update.h"

#define STORE_BLOCK_BYTES 1048576u
/* Of rows that take less, whole blocks are kept: beside each old row 128 bytes are. */
#define STORE_KEPT_ROW_BYTES_MIN 128u
#define STORE_VALUE 0u /* a shard's list of its value; that of slot i is 1 + i */
#define STORE_LISTS_MAX (1u + UPDATE_SLOTS_MAX)
#define STORE_USER_WORDS 6u
#define STORE_TASK_TEXT_BYTES 80 /* a job's name of 64 bytes, a space, an index, the NUL */

struct shard;

struct block {
    struct block *older; /* what it took the place of, as long as somebody needs that; of a row its
                          * older bytes */
    LINKS(struct block) among_old;
    struct shard *shard; /* NULL: freed meanwhile; the bytes are still lent */
    uint8_t *data;
    uint64_t born;        /* the position of the operation that made it */
    uint64_t died;        /* of the one that replaced it; 0: present */
    uint32_t list, index; /* its place in the shard */
    uint32_t bytes;
    uint32_t lent; /* spans of it that are on their way to a reader */
    /* Of an old row, the block that it is of; NULL: it is a block. And where it begins in that. */
    struct block *of;
    uint32_t within;
    uint32_t row_bytes;  /* of a block: its rows' that are kept, … */
    uint32_t kept_rows;  /* … how many old ones there are, … */
    struct block **kept; /* … and the newest of each row; NULL where there are none */
};

/* Of a block, the elements that its creator has yet to assign. */
struct unassigned {
    uint64_t count;
    uint64_t bits[]; /* one for each element of the block */
};

/* Of a variable: which rows are where. */
struct placement {
    uint64_t shard_id, first_row, rows, bytes;
    uint32_t layout_epoch, ps;
    struct shard *here; /* NULL: on another ps, or not made yet */
};

struct variable {
    LINKS(struct variable) in_store;
    LINKS(struct variable) among_unfilled;
    struct key_entry by_name;
    char *name;
    uint64_t id;
    struct definition definition;
    struct placement *placements; /* in the order of their rows */
    struct shard *shards;         /* those here, in one piece of memory: room for held_count */
    uint64_t own_bytes;           /* of all this beside values and slots (own_bytes_of), … */
    uint64_t controller_bytes;    /* and of it what the controller keeps of it, not here */
    uint64_t promised_bytes;      /* of the state, to shards here that are not made yet */
    uint32_t placement_count;
    uint32_t held_count, made_count;    /* which are made as they are filled */
    uint32_t here_count, leaving_count; /* of them, made and not left; left and not given back */
    uint32_t fill_at;                   /* the placement that filling has come to */
    uint32_t block_bytes; /* of the blocks of its values, but each shard's last; … */
    uint32_t slot_widens; /* … a slot has so many bytes for each of the value's */
    uint32_t slot_count;
    uint32_t unassigned_shards; /* of them, not wholly assigned by its creator yet */
    bool published;
    bool deleted;
    bool filled;         /* every shard here has its initial value */
    bool assigned;       /* every element of every shard here has been assigned */
    uint64_t add_number; /* ps 0's order, answered when it is filled; 0: answered */
};

/* First what is looked at for each piece of a push or a pull: thousands of them lie anywhere. */
struct shard {
    struct variable *variable;
    uint64_t bytes;
    uint64_t version;   /* pushes applied; who may find it busy asks store_version, for while … */
    const bool *counts; /* … this is there and false, the last one does not count yet */
    /* (block_count), of blocks that its creator has yet to assign; NULL: there are none. */
    struct unassigned **unassigned;
    uint32_t layout_epoch;
    uint32_t users;      /* parts and pulls that name it; … */
    uint32_t views;      /* … of them, open views; … */
    uint32_t slot_views; /* … of these, views of slots, too */
    /* The store's user keeps there what it likes; zeros at first. */
    uint64_t of_user[STORE_USER_WORDS];
    LINKS(struct shard) among_leaving;
    uint64_t id;
    uint32_t placement; /* its number in the variable */
    bool by_rows;       /* some of it has been written by a push by rows */
    uint64_t row_bytes;
    uint64_t first_element;               /* in the whole variable */
    uint32_t list_count;                  /* 1 + its variable's slot_count */
    uint32_t block_count;                 /* of each list */
    struct block **list[STORE_LISTS_MAX]; /* (list_count, block_count) */
    uint64_t step_count;       /* pushes applied by its variable's function, if that counts_steps */
    uint64_t unassigned_count; /* elements … */
    uint64_t unassigned_bytes; /* … and what is kept of them */
    uint64_t fill_bytes; /* of value and slots together, that have got their initial value; of one
                          * that leaves, that are left */
    char last_worker[STORE_TASK_TEXT_BYTES];
    /* Those that count: as its variable was created, or as a push has changed them since. */
    struct update_hyperparameters hyperparameters;
};

enum view_scope { VIEW_OF_VALUES, VIEW_OF_SLOTS_TOO };

/* A position held open for a reader. Owned by the pull. */
struct view {
    LINKS(struct view) in_store; /* oldest first */
    uint64_t position;
    enum view_scope scope;
    bool ended; /* its old blocks are gone: the reader must begin again */
};

struct store {
    const struct memory *memory;
    const struct functions *functions; /* that variables may have; NULL: those of the table */
    struct sized_pool bytes;           /* blocks, and whatever else has no fixed size */
    struct id_map shards, by_id;
    struct key_map names;
    LIST(struct variable) variables;      /* in the order of their creation */
    LIST(struct variable) unfilled;       /* of them, likewise */
    uint32_t variable_count, shard_count; /* published variables; shards here */
    uint32_t deleted_count;               /* deleted ones that somebody still uses */
    LIST(struct shard) leaving;           /* deleted, and nobody uses them */
    uint64_t leaving_bytes;               /* what they, and their variables, hold */
    uint64_t position;                    /* operations run */
    uint32_t block_bytes;                 /* of variables that are added from here on */
    uint32_t kept_row_bytes_min;
    uint64_t old_row_count;
    uint32_t ps;               /* whose store it is, for errors */
    uint64_t state_bytes;      /* values and slots, made or promised */
    uint64_t own_bytes;        /* what is kept of variables, shards and blocks beside them, … */
    uint64_t controller_bytes; /* and of it what the controller keeps of them */
    uint64_t state_bytes_max;  /* of both (store_bound_state) */
    uint64_t view_bytes;       /* old blocks and rows, with their structs */
    uint64_t view_bytes_max;
    LIST(struct view) views;
    uint32_t view_count;
    LIST(struct block) old_blocks; /* newest first */
    /* A view has ended: from this old block on to the newest, some may be nobody's, … */
    struct block *unswept;
    bool sweep_again; /* … and then, as another has ended since, any */
};

/* view_bytes_max 0: as much as the variables take. block_bytes 0: STORE_BLOCK_BYTES; a multiple
 * of 8. */
void store_init(
    struct store *store, const struct memory *memory, uint32_t block_bytes,
    uint64_t view_bytes_max);
void store_deinit(struct store *store);
/* What variables may have, and what their pool may hold for them. It has no bound before. */
void store_bound_state(struct store *store, uint64_t state_bytes_max);
/* What counts against that: what is in use, or, where small pieces leave room between them that
 * nobody uses, what is held. */
uint64_t store_state_bytes(const struct store *store);

/* variables.c */

/* Keep a variable, and room for those of its shards that are on this ps: they are made as it is
 * filled. Fails  INVALID_ARGUMENT: what a valid catalogue never says. RESOURCE_EXHAUSTED
 * (OUT_OF_MEMORY), at once when they would not fit into state_bytes_max. */
enum sumac_status store_add(
    struct store *store, const wire_variable *given, uint32_t this_ps, struct variable **added,
    struct sumac_error *error);
/* Make the next shards of a new variable, and give the next `bytes_max` bytes or so of them their
 * initial value; filled says when it is done. *done: how many it was, a shard or a block counted as
 * what takes as long to fill. Fails  RESOURCE_EXHAUSTED (OUT_OF_MEMORY). */
enum sumac_status store_fill(
    struct store *store, struct variable *variable, uint64_t bytes_max, uint64_t *done,
    struct sumac_error *error);
void store_publish(struct store *store, struct variable *variable);
/* New parts and pulls no longer find it; what is used by older ones stays until they let go. What
 * nobody uses counts no more, and leaves. */
void store_delete(struct store *store, struct variable *variable);
struct variable *store_find(const struct store *store, uint64_t variable_id);
struct variable *store_find_by_name(const struct store *store, const char *name);
/* NULL: not here, or deleted. */
static inline struct shard *store_shard(const struct store *store, uint64_t shard_id)
{
    return id_map_get(&store->shards, shard_id);
}
/* The pushes whose whole effect is there: of an operation that ends over steps, all shards have the
 * version before or all have the one after. */
static inline uint64_t store_version(const struct shard *shard)
{
    return shard->version - (shard->counts != NULL && !*shard->counts);
}
/* A function that only fetches: gcc would take it for one without any effect, and leave its calls
 * out, if it were not inlined everywhere. */
#define STORE_FETCHES __attribute__((always_inline))

/* Of many that are looked at one after the other, and lie anywhere: this one comes soon. */
STORE_FETCHES static inline void store_shard_soon(const struct shard *shard)
{
    __builtin_prefetch(shard);
    __builtin_prefetch(&shard->of_user);
    __builtin_prefetch(&shard->list);
}
#define STORE_SHARDS_AHEAD 12u
/* Its place in the map comes first. */
STORE_FETCHES static inline void store_shard_far(const struct store *store, uint64_t shard_id)
{
    if (store->shards.capacity > 0)
        __builtin_prefetch(&store->shards.places[id_map_home(store->shards.capacity, shard_id)]);
}
STORE_FETCHES static inline void store_shard_comes(const struct store *store, uint64_t shard_id)
{
    const struct shard *shard = store_shard(store, shard_id);

    if (shard != NULL)
        store_shard_soon(shard);
}
/* Of many whose values are read or written one after the other: the list of this one's blocks
 * comes, … */
#define STORE_BLOCKS_AHEAD 6u
STORE_FETCHES static inline void store_list_comes(const struct shard *shard)
{
    __builtin_prefetch(shard->list[STORE_VALUE]);
}
/* … its first block, … */
STORE_FETCHES static inline void store_block_comes(const struct shard *shard)
{
    if (shard->block_count > 0)
        __builtin_prefetch(*shard->list[STORE_VALUE]);
}
/* … and the bytes of that. */
STORE_FETCHES static inline void store_bytes_come(const struct shard *shard)
{
    if (shard->block_count > 0)
        __builtin_prefetch((*shard->list[STORE_VALUE])->data);
}
static inline void store_use(struct shard *shard) { shard->users++; }
/* How many blocks a list of so many bytes has. */
static inline uint64_t store_blocks_of(const struct variable *variable, uint64_t bytes)
{
    return (bytes + variable->block_bytes - 1) / variable->block_bytes;
}
/* Where a byte of a list is: in which block, and where in that. */
struct block_byte {
    uint32_t index, within;
};
static inline struct block_byte
store_block_byte(const struct shard *shard, uint32_t list, uint64_t at)
{
    const uint64_t block_bytes = (uint64_t)shard->variable->block_bytes *
                                 (list == STORE_VALUE ? 1 : shard->variable->slot_widens);

    return (struct block_byte){
        .index = (uint32_t)(at / block_bytes), .within = (uint32_t)(at % block_bytes)};
}
/* The bytes of one of a shard's lists; of all of them. */
static inline uint64_t store_list_bytes(const struct shard *shard, uint32_t list)
{
    return list == STORE_VALUE ? shard->bytes : shard->bytes * shard->variable->slot_widens;
}
static inline uint64_t store_lists_bytes(const struct variable *variable, uint64_t shard_bytes)
{
    return shard_bytes * (1 + (uint64_t)variable->slot_count * variable->slot_widens);
}
/* Where a byte of all lists, one after the other, is: in which list, in which block of it, and how
 * many bytes of all are before that block. */
struct list_byte {
    uint32_t list, index;
    uint64_t before_block, within;
};
static inline struct list_byte store_list_byte(const struct shard *shard, uint64_t at)
{
    const uint64_t slot_bytes = shard->bytes * shard->variable->slot_widens;
    const bool in_slot = at >= shard->bytes;
    const uint64_t before = in_slot ? (at - shard->bytes) / slot_bytes : 0;
    const uint64_t block_bytes =
        (uint64_t)shard->variable->block_bytes * (in_slot ? shard->variable->slot_widens : 1);
    const uint64_t in_list = in_slot ? at - shard->bytes - before * slot_bytes : at;

    return (struct list_byte){
        .list = (uint32_t)(in_slot ? 1 + before : STORE_VALUE),
        .index = (uint32_t)(in_list / block_bytes),
        .before_block = at - in_list % block_bytes,
        .within = in_list % block_bytes};
}
void store_let_go(struct store *store, struct shard *shard);

/* leaving.c */

/* Of a deleted variable, or one that could not be made: what nobody uses leaves. */
void store_leave(struct store *store, struct variable *variable);
void store_leave_shard(struct store *store, struct shard *shard);
/* Is there something to be given back to the source, or to be looked at for that? */
static inline bool store_is_leaving(const struct store *store)
{
    return store->leaving.first != NULL || store->unswept != NULL ||
           store->bytes.spare_bytes > store->bytes.spare_bytes_max;
}
/* Give back a piece of it, a block at most, or look at some. Returns its bytes, or those that take
 * as long. */
uint64_t store_reclaim(struct store *store);

/* assigned.c */

/* What is kept of a shard of so many bytes until its creator has assigned it; 0: it is not assigned
 * by its creator. */
uint64_t store_assignable_bytes(const struct variable *variable, uint64_t shard_bytes);
/* All of the shard is yet to be assigned, if that is how it gets its value. False: no memory. */
bool store_assignable(struct store *store, struct shard *shard);
/* What is kept of a block, all of which is yet to be assigned; and given back. False: no memory. */
bool store_assignable_block(struct store *store, struct shard *shard, uint32_t index);
uint64_t store_assignable_give(struct store *store, struct shard *shard, uint32_t index);
/* The last that is kept of the shard. Both return how many bytes it was. */
uint64_t store_assignable_give_array(struct store *store, struct shard *shard);
/* These bytes of it are; with the last, `unassigned` is NULL. */
void store_assigned(struct store *store, struct shard *shard, uint64_t offset, uint64_t bytes);
/* It is not waited for any more: what is kept of it is of the state no longer. */
void store_assigned_over(struct store *store, struct shard *shard);

/* blocks.c */

/* A block for a place that has none yet, born now. NULL: no memory. */
struct block *
store_block_make(struct store *store, struct shard *shard, uint32_t list, uint32_t index);
/* What the operation at `position` writes to in place of this present block: the block itself, or
 * another one, whose bytes are not copied, where readers need this one. NULL: there is no memory
 * for another one, and bytes of this one are on their way to a reader. */
struct block *store_block_write(struct store *store, struct block *block, uint64_t position);
/* May an operation at `position` write rows of so many bytes in this present block where they are,
 * and leave their old bytes to the readers that need them (store_row_keep)? Else it asks
 * store_block_write. */
bool store_block_keeps_rows(
    const struct store *store, const struct block *block, uint32_t row_bytes, uint64_t position);
/* The row that begins there will be overwritten: its bytes are kept, if a view needs them. Where
 * there is no memory for them, views are given up, the oldest first. True: they are kept. */
bool store_row_keep(
    struct store *store, struct block *block, uint32_t within, uint32_t row_bytes,
    uint64_t position);
/* Bytes of a block that store_block_at gave, as a view at `position` sees them. */
void store_block_read(
    const struct block *block, uint32_t within, size_t bytes, uint64_t position, uint8_t *out);
/* The block that a view at `position` sees. */
struct block *
store_block_at(const struct shard *shard, uint32_t list, uint32_t index, uint64_t position);
static inline void store_block_lend(struct block *block) { block->lent++; }
void store_block_released(struct store *store, struct block *block);
/* A block that nobody lends or sees any more, present or old. */
void store_block_drop(struct store *store, struct block *block);
/* What readers may keep. */
uint64_t store_view_bytes_max(const struct store *store);
/* The state has grown or shrunk, and with it what readers may keep: what is spare beyond that
 * leaves. */
void store_share_bound(struct store *store);

/* Look at some old blocks, where there may be ones that no view sees and no reader has on its way,
 * and free these. Returns their bytes, or those that take as long. */
uint64_t store_sweep(struct store *store);
void store_view_open(struct store *store, struct view *view, enum view_scope scope);
/* A shard that it reads, from before anything is written to it until the view is closed, or ended.
 */
void store_view_cover(const struct view *view, struct shard *shard);
void store_view_uncover(const struct view *view, struct shard *shard);
void store_view_close(struct store *store, struct view *view);
