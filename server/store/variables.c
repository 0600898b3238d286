/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c -- the catalogue as every ps has it, and the shards that are this one's. */
#include "store.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"

/* What is kept of each beside values and slots, with the entries of the maps and, on ps 0, the
 * controller's struct of it. */
#define VARIABLE_OWN_BYTES 2048u
#define PLACEMENT_OWN_BYTES 128u
#define SHARD_OWN_BYTES 384u
#define BLOCK_OWN_BYTES 144u
/* Of it, the controller's struct, which is not in the pool. */
#define VARIABLE_CONTROLLER_BYTES 1024u
#define PLACEMENT_CONTROLLER_BYTES 48u
#define FILL_SLICE_BYTES 262144u
/* A block, a shard, takes as long to make as so many bytes to fill. */
#define FILL_BLOCK_BYTES 256u
#define FILL_SHARD_BYTES 1536u
#define PLACEMENTS_MAX (1u << 20)

void store_init(
    struct store *store, const struct memory *memory, uint32_t block_bytes, uint64_t view_bytes_max)
{
    *store = (struct store){
        .memory = memory,
        .block_bytes = block_bytes == 0 ? STORE_BLOCK_BYTES : block_bytes,
        .view_bytes_max = view_bytes_max};
    assert(store->block_bytes % 8 == 0);
    sized_pool_init(&store->bytes, memory, view_bytes_max);
    id_map_init(&store->shards, memory);
    id_map_init(&store->by_id, memory);
    store->kept_row_bytes_min = STORE_KEPT_ROW_BYTES_MIN;
    key_map_init(&store->names, memory);
}

void store_let_go(struct store *store, struct shard *shard)
{
    assert(shard->users > 0);
    shard->users--;
    if (shard->users == 0 && shard->variable->deleted)
        store_leave_shard(store, shard);
}

void store_deinit(struct store *store)
{
    LIST_FOREACH_SAFE(struct variable, variable, &store->variables, in_store)
        store_leave(store, variable);
    while (store_is_leaving(store))
        (void)store_reclaim(store);
    while (store->old_blocks.first != NULL) { /* lent, and never released */
        struct block *block = store->old_blocks.first;
        LIST_REMOVE(&store->old_blocks, block, among_old);
        sized_pool_give(&store->bytes, block->data, block->bytes);
        sized_pool_give(&store->bytes, block, sizeof *block);
    }
    key_map_deinit(&store->names);
    id_map_deinit(&store->by_id);
    id_map_deinit(&store->shards);
    sized_pool_deinit(&store->bytes);
}

/* The shard of a placement, in the place that was promised to it, without its blocks' bytes. False:
 * no memory. */
static bool make_shard(struct store *store, struct variable *variable, struct placement *placement)
{
    struct shard *shard = &variable->shards[variable->made_count++];
    const uint64_t promised_bytes = store_lists_bytes(variable, placement->bytes) +
                                    store_assignable_bytes(variable, placement->bytes);
    bool complete = true;

    assert(variable->made_count <= variable->held_count);
    assert(placement->here == NULL);
    assert(variable->promised_bytes >= promised_bytes);
    variable->promised_bytes -= promised_bytes;
    store->state_bytes -= promised_bytes;
    *shard = (struct shard){
        .id = placement->shard_id,
        .placement = (uint32_t)(placement - variable->placements),
        .layout_epoch = placement->layout_epoch,
        .variable = variable,
        .bytes = placement->bytes,
        .list_count = 1 + variable->slot_count,
        .hyperparameters = variable->definition.hyperparameters};
    const uint64_t element_bytes = sumac_dtype_bytes(variable->definition.dtype);
    assert(element_bytes > 0);
    shard->row_bytes = placement->rows == 0 ? 0 : placement->bytes / placement->rows;
    shard->first_element = placement->first_row * (shard->row_bytes / element_bytes);
    shard->block_count = (uint32_t)store_blocks_of(variable, placement->bytes);
    for (uint32_t i = 0; shard->block_count > 0 && i < shard->list_count; i++) {
        shard->list[i] =
            sized_pool_take_zeroed(&store->bytes, shard->block_count * sizeof *shard->list[i]);
        complete = complete && shard->list[i] != NULL;
    }
    store->state_bytes += store_lists_bytes(variable, shard->bytes);
    store->shard_count++;
    variable->here_count++;
    placement->here = shard;
    complete = complete && store_assignable(store, shard);
    return complete && id_map_put(&store->shards, shard->id, shard);
}

/* What a variable's shards on this ps take. */
struct held_shards {
    uint32_t count;
    uint64_t bytes;            /* of their values */
    uint64_t assignable_bytes; /* of the state, until their creator has assigned them */
    uint64_t own_bytes;        /* of the whole variable, beside all that */
};

/* Sizes are rounded up to an eighth more at most (sized_pool.h): so are a shard's last blocks, and
 * its lists of blocks. */
static struct held_shards held_shards_of(
    const struct store *store, const struct variable *variable, const wire_variable *given)
{
    const uint64_t slots = variable->slot_count;
    struct held_shards held = {
        .own_bytes =
            VARIABLE_OWN_BYTES + strlen(given->name) + given->n_shards * PLACEMENT_OWN_BYTES};

    for (size_t i = 0; i < given->n_shards; i++) {
        const uint64_t bytes = given->shards[i]->bytes;
        if (given->shards[i]->ps != store->ps)
            continue;
        const uint64_t blocks = store_blocks_of(variable, bytes);
        const uint64_t last = bytes % variable->block_bytes;
        const uint64_t bits = store_assignable_bytes(variable, bytes);
        held.count++;
        held.bytes += bytes;
        held.assignable_bytes += bits;
        held.own_bytes += SHARD_OWN_BYTES + (1 + slots) * (blocks * BLOCK_OWN_BYTES + 64) +
                          (1 + slots * variable->slot_widens) * (last / 8) + bits / 8 +
                          (bits > 0 ? 128 : 0);
    }
    return held;
}

/* Its name, where its shards are, and room for those here, which are made as it is filled. False:
 * no memory. */
static bool make_placements(
    struct store *store, struct variable *variable, const wire_variable *given,
    const struct held_shards *held)
{
    const size_t count = given->n_shards, name_bytes = strlen(given->name) + 1;

    assert(variable->name == NULL);
    variable->name = sized_pool_take(&store->bytes, name_bytes);
    if (variable->name == NULL)
        return false;
    memcpy(variable->name, given->name, name_bytes);
    variable->shards = sized_pool_take(&store->bytes, held->count * sizeof *variable->shards);
    if (variable->shards == NULL)
        return false;
    variable->held_count = held->count;
    variable->placements = sized_pool_take(&store->bytes, count * sizeof *variable->placements);
    if (variable->placements == NULL)
        return false;
    variable->placement_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const wire_shard *shard = given->shards[i];
        variable->placements[i] = (struct placement){
            .shard_id = shard->shard_id,
            .first_row = shard->first_row,
            .rows = shard->rows,
            .bytes = shard->bytes,
            .layout_epoch = shard->layout_epoch,
            .ps = shard->ps};
    }
    variable->promised_bytes = store_lists_bytes(variable, held->bytes) + held->assignable_bytes;
    store->state_bytes += variable->promised_bytes;
    return true;
}

/* What ps 0 has placed always makes up the variable; a peer that says otherwise is not obeyed. */
static enum sumac_status check_shards(
    const wire_variable *given, const struct definition *definition, struct sumac_error *error)
{
    uint64_t elements, bytes = 0, sum = 0;
    bool sound =
        given->n_shards <= PLACEMENTS_MAX &&
        sumac_shape_size(&definition->shape, definition->dtype, &elements, &bytes) == SUMAC_OK;

    for (size_t i = 0; sound && i < given->n_shards; i++) {
        const wire_shard *shard = given->shards[i];
        sound = shard->bytes <= bytes - sum &&
                (shard->rows == 0 ? shard->bytes == 0 : shard->bytes % shard->rows == 0);
        sum += shard->bytes;
    }
    if (!sound || sum != bytes)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE, "variable %s: its shards do not make up its shape",
            given->name);
    return SUMAC_OK;
}

/* Is there room for this ps's shards, with their slots? Memory that is only promised is not found
 * missing until it is written to, and then it is the process that ends. */
static enum sumac_status check_room(
    const struct store *store, const struct variable *variable, const char *name,
    const struct held_shards *held, struct sumac_error *error)
{
    assert(variable->definition.function != NULL);
    const uint64_t times = store_lists_bytes(variable, 1);
    /* a shard counts its blocks */
    uint64_t bytes_max = (uint64_t)UINT32_MAX * variable->block_bytes;
    if (store->state_bytes_max != 0 && store->state_bytes_max < bytes_max)
        bytes_max = store->state_bytes_max;
    const uint64_t taken = store->state_bytes + store->own_bytes;
    const uint64_t free_bytes = bytes_max > taken ? bytes_max - taken : 0;
    const uint64_t beside = held->own_bytes + held->assignable_bytes;
    if (beside <= free_bytes && held->bytes <= (free_bytes - beside) / times)
        return SUMAC_OK;
    return fail_for_memory(
        error,
        "variable %s: ps %u has room for %" PRIu64 " bytes more (of %" PRIu64 ", its --state-max), "
        "its shards have %" PRIu64 "%s, and what is kept beside them %" PRIu64,
        name, store->ps, free_bytes, bytes_max, held->bytes,
        variable->slot_count == 0    ? ""
        : variable->slot_widens == 1 ? ", and their slots as much each"
                                     : ", and their slots, which are float32, twice as much each",
        beside);
}

/* What this variable, which may be half made, takes of the state by what is in use. */
static uint64_t in_use_by(const struct variable *variable)
{
    uint64_t bytes = variable->own_bytes + variable->promised_bytes;

    for (uint32_t i = 0; i < variable->made_count; i++) {
        const struct shard *shard = &variable->shards[i];
        bytes += store_lists_bytes(variable, shard->bytes);
        if (shard->unassigned != NULL)
            bytes += store_assignable_bytes(variable, shard->bytes);
    }
    return bytes;
}

/* By what is in use there was room: the pool is at its bound, or there is no more memory at all. */
static enum sumac_status refuse_memory(
    const struct store *store, const char *name, uint64_t in_use_bytes, struct sumac_error *error)
{
    if (!sized_pool_is_full(&store->bytes))
        return fail_for_memory(
            error, "variable %s: ps %u has no memory for its shards", name, store->ps);
    return fail_for_memory(
        error,
        "variable %s: ps %u holds %" PRIu64 " bytes for variables (of %" PRIu64 ", its "
        "--state-max), though those that it has take %" PRIu64 ": the rest lies between small "
        "pieces and serves others of their sizes only; delete more of them, or start the ps with a "
        "larger --state-max",
        name, store->ps, store_state_bytes(store), store->state_bytes_max, in_use_bytes);
}

/* So that it is found. False: no memory. */
static bool enlist(struct store *store, struct variable *variable)
{
    assert(!variable->published);
    assert(variable->name != NULL);
    variable->by_name = (struct key_entry){
        .key = variable->name, .key_bytes = strlen(variable->name), .value = variable};
    if (!key_map_put(&store->names, &variable->by_name))
        return false;
    if (!id_map_put(&store->by_id, variable->id, variable)) {
        key_map_remove(&store->names, &variable->by_name);
        return false;
    }
    LIST_APPEND(&store->variables, variable, in_store);
    return true;
}

/* A block has whole rows, where it has room for one: so a row lies together. */
static uint32_t block_bytes_of(const struct store *store, const struct variable *variable)
{
    const struct definition *definition = &variable->definition;
    const uint32_t most =
        variable->slot_count == 0 ? store->block_bytes : store->block_bytes / variable->slot_widens;
    uint64_t row_bytes = sumac_dtype_bytes(definition->dtype);

    for (uint32_t i = 1; i < definition->shape.rank; i++) {
        if (__builtin_mul_overflow(row_bytes, definition->shape.extent[i], &row_bytes))
            return most;
    }
    return row_bytes == 0 || row_bytes > most ? most : (uint32_t)(most / row_bytes * row_bytes);
}

enum sumac_status store_add(
    struct store *store, const wire_variable *given, uint32_t this_ps, struct variable **added,
    struct sumac_error *error)
{
    struct definition definition;
    const uint64_t in_use_bytes = store->state_bytes + store->own_bytes;
    enum sumac_status known = definition_read(given, store->functions, &definition, error);

    if (known == SUMAC_OK)
        known = check_shards(given, &definition, error);
    if (known != SUMAC_OK)
        return known;
    store->ps = this_ps;
    struct variable *variable = sized_pool_take_zeroed(&store->bytes, sizeof *variable);
    if (variable == NULL)
        return refuse_memory(store, given->name, in_use_bytes, error);
    variable->id = given->variable_id;
    variable->definition = definition;
    variable->slot_count = update_slot_count(definition.function, &definition.hyperparameters);
    variable->slot_widens = sumac_dtype_bytes(update_slot_dtype(definition.dtype)) /
                            sumac_dtype_bytes(definition.dtype);
    variable->block_bytes = block_bytes_of(store, variable);
    const struct held_shards held = held_shards_of(store, variable, given);
    variable->own_bytes = held.own_bytes;
    known = check_room(store, variable, given->name, &held, error);
    if (known != SUMAC_OK) {
        sized_pool_give(&store->bytes, variable, sizeof *variable);
        return known;
    }
    store->own_bytes += variable->own_bytes;
    if (!make_placements(store, variable, given, &held) || !enlist(store, variable)) {
        known = refuse_memory(store, given->name, in_use_bytes, error);
        assert(variable->made_count == 0);
        store_leave(store, variable);
        return known;
    }
    variable->filled = variable->held_count == 0;
    if (variable->filled)
        variable->fill_at = variable->placement_count;
    else
        LIST_APPEND(&store->unfilled, variable, among_unfilled);
    *added = variable;
    variable->controller_bytes = VARIABLE_CONTROLLER_BYTES + strlen(variable->name) +
                                 variable->placement_count * PLACEMENT_CONTROLLER_BYTES;
    store->controller_bytes += variable->controller_bytes;
    store_share_bound(store);
    return SUMAC_OK;
}

/* Give the bytes from `at` on, of all lists one after the other, their initial value, to the end of
 * the block or of the slice. Returns how many; 0: no memory. */
static uint64_t fill_slice(struct store *store, struct shard *shard, uint64_t at)
{
    const struct variable *variable = shard->variable;
    const struct list_byte first = store_list_byte(shard, at);
    const bool begins = first.within == 0;

    assert(first.list < shard->list_count);
    assert(first.index < shard->block_count);
    if (begins && first.list == STORE_VALUE && !store_assignable_block(store, shard, first.index))
        return 0;
    const struct block *block = begins ? store_block_make(store, shard, first.list, first.index)
                                       : shard->list[first.list][first.index];
    if (block == NULL && first.list == STORE_VALUE)
        (void)store_assignable_give(store, shard, first.index);
    if (block == NULL)
        return 0;
    uint8_t *data = block->data + first.within;
    uint64_t bytes = block->bytes - first.within;
    if (bytes > FILL_SLICE_BYTES)
        bytes = FILL_SLICE_BYTES;
    const uint64_t element_bytes = sumac_dtype_bytes(variable->definition.dtype);
    if (first.list != STORE_VALUE) {
        update_fill_slot(
            variable->definition.function, first.list - 1, variable->definition.dtype,
            &variable->definition.hyperparameters, bytes / (element_bytes * variable->slot_widens),
            data);
        return bytes;
    }
    wire_initializer initializer = WIRE_INITIALIZER_INIT;
    initializer.kind = (Sumac__V1__Initializer__Kind)variable->definition.initializer.kind;
    initializer.a = variable->definition.initializer.a;
    initializer.b = variable->definition.initializer.b;
    initializer.seed = variable->definition.initializer.seed;
    initializer_fill(
        &initializer, variable->definition.dtype, shard->first_element + at / element_bytes,
        bytes / element_bytes, data);
    return bytes;
}

enum sumac_status store_fill(
    struct store *store, struct variable *variable, uint64_t bytes_max, uint64_t *done,
    struct sumac_error *error)
{
    bool complete = true;

    assert(!variable->filled);
    assert(!variable->deleted);
    *done = 0;
    while (complete && variable->fill_at < variable->placement_count && *done < bytes_max) {
        struct placement *placement = &variable->placements[variable->fill_at];
        if (placement->ps == store->ps && placement->here == NULL) {
            complete = make_shard(store, variable, placement);
            *done += FILL_SHARD_BYTES;
        }
        struct shard *here = placement->here;
        const uint64_t all_bytes = here == NULL ? 0 : store_lists_bytes(variable, here->bytes);
        while (complete && here != NULL && here->fill_bytes < all_bytes && *done < bytes_max) {
            const uint64_t filled = fill_slice(store, here, here->fill_bytes);
            complete = filled > 0;
            here->fill_bytes += filled;
            *done += filled > FILL_BLOCK_BYTES ? filled : FILL_BLOCK_BYTES;
        }
        if (here == NULL || here->fill_bytes == all_bytes)
            variable->fill_at++;
    }
    store_share_bound(store); /* the map of shards may have grown */
    if (!complete)
        return refuse_memory(
            store, variable->name, store->state_bytes + store->own_bytes - in_use_by(variable),
            error);
    if (variable->fill_at < variable->placement_count)
        return SUMAC_OK;
    assert(variable->made_count == variable->held_count);
    assert(variable->promised_bytes == 0);
    variable->filled = true;
    LIST_REMOVE(&store->unfilled, variable, among_unfilled);
    return SUMAC_OK;
}

void store_publish(struct store *store, struct variable *variable)
{
    assert(!variable->deleted);
    if (variable->published)
        return;
    variable->published = true;
    store->variable_count++;
}

void store_delete(struct store *store, struct variable *variable)
{
    assert(!variable->deleted);
    assert(store_find(store, variable->id) == variable);
    LIST_REMOVE(&store->variables, variable, in_store);
    if (!variable->filled)
        LIST_REMOVE(&store->unfilled, variable, among_unfilled);
    key_map_remove(&store->names, &variable->by_name);
    id_map_remove(&store->by_id, variable->id);
    for (uint32_t i = 0; i < variable->placement_count; i++) {
        if (variable->placements[i].here != NULL)
            id_map_remove(&store->shards, variable->placements[i].shard_id);
    }
    assert(store->variable_count >= variable->published);
    store->variable_count -= variable->published;
    variable->deleted = true;
    store->deleted_count++;
    store_leave(store, variable);
    store_share_bound(store); /* the maps of ids may have shrunk, though all of it is in use */
}

struct variable *store_find(const struct store *store, uint64_t variable_id)
{
    return id_map_get(&store->by_id, variable_id);
}

struct variable *store_find_by_name(const struct store *store, const char *name)
{
    return key_map_get(&store->names, name, strlen(name));
}
