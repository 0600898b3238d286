/* SPDX-License-Identifier: Apache-2.0 */
/* piece.c -- the checks of one piece, and the run of bytes that it becomes or continues.
 *
 * Looking up which entry of the part a shard has must not cost a search: the shard remembers the
 * part that touched it last, by number, and the place it got there. A part that is received in
 * several messages, with another one's messages between them, may find its marks gone; it then sets
 * all of them again, once per message.
 */
#include "part_state.h"

/* Both arrays double, and not at the same piece: to bring one of thousands over takes a while. */
#define RUNS_FIRST 4u
#define ENTRIES_FIRST 3u

/* The part that looked up the shard last, by its number, and the place that the shard has in it. */
struct __attribute__((may_alias)) shard_touch {
    uint64_t by;
    uint64_t index;
};

_Static_assert(sizeof(struct shard_touch) <= SHARD_PART_WORDS * sizeof(uint64_t), "it has room");

/* An array that has grown has less than twice the places that it needs, and up to an eighth more
 * (sized_pool.h). A run may leave RUN_ALIGNMENT_BYTES - 1 free before it. */
_Static_assert(
    2 * (sizeof(struct run) + sizeof(struct entry)) * 9 / 8 + RUN_ALIGNMENT_BYTES <=
        PIECE_ROOM_BYTES,
    "a piece fits into what it takes of the grant");

static struct shard_touch *touch_of(struct shard *shard)
{
    return (struct shard_touch *)(void *)&shard->of_user[SHARD_OPERATION_WORDS];
}

/* A larger array in place of the full one: the first one that has more than the one place that is
 * the part's own has `first`. NULL: no memory. */
static void *
grown(struct lane *lane, void *array, uint32_t first, uint32_t *capacity, size_t object_bytes)
{
    const uint32_t count = *capacity, larger = count == 1 ? first : 2 * count;
    void *fresh = sized_pool_take(&lane->bytes, larger * object_bytes);

    assert(count > 0);
    if (fresh == NULL)
        return NULL;
    memcpy(fresh, array, count * object_bytes);
    if (count > 1)
        sized_pool_give(&lane->bytes, array, count * object_bytes);
    *capacity = larger;
    return fresh;
}

void lane_piece_mark(struct lane *lane, struct lane_part *part)
{
    assert(part->state < PART_STAGED);
    assert(part->number <= lane->parts->last);
    for (uint32_t i = 0; lane->parts->marking != part->number && i < part->entry_count; i++) {
        lane_part_fetch_ahead(part, i);
        assert(part->entries[i].shard->users > 0);
        *touch_of(part->entries[i].shard) = (struct shard_touch){.by = part->number, .index = i};
    }
    lane->parts->marking = part->number;
}

/* The entry of this shard in the part, a new one the first time. UINT32_MAX: no memory. */
static uint32_t
entry_of(struct lane *lane, struct lane_part *part, struct shard *shard, uint64_t based_on)
{
    struct shard_touch *touch = touch_of(shard);

    if (touch->by == part->number) {
        assert(touch->index < part->entry_count);
        assert(part->entries[touch->index].shard == shard);
        return (uint32_t)touch->index;
    }
    if (part->entry_count == part->entry_capacity) {
        struct entry *entries =
            grown(lane, part->entries, ENTRIES_FIRST, &part->entry_capacity, sizeof *entries);
        if (entries == NULL)
            return UINT32_MAX;
        part->entries = entries;
    }
    const uint32_t index = part->entry_count++;
    part->entries[index] = (struct entry){.shard = shard, .based_on = based_on};
    store_use(shard);
    *touch = (struct shard_touch){.by = part->number, .index = index};
    return index;
}

void lane_piece_note(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    struct shard *shard = store_shard(&lane->store, piece->shard_id);

    assert(part->state == PART_DUPLICATE);
    if (shard == NULL || part->sequence > part->session->mark)
        part->versions_end = true;
    if (part->versions_end || touch_of(shard)->by == part->number)
        return;
    part->no_room = !lane_part_take_room(lane, part, PIECE_ROOM_BYTES);
    if (part->no_room || entry_of(lane, part, shard, 0) == UINT32_MAX)
        lane_part_move(part, PART_DROPPED); /* its stream ends, and it is sent again */
}

/* Is the shard that a piece is for here (not NULL), and laid out as the client takes it to be? */
static bool check_layout(
    struct lane *lane, struct lane_part *part, const struct shard *shard, const wire_piece *piece)
{
    if (shard == NULL || !shard->variable->filled)
        return lane_part_refuse(
            lane, part, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_SHARD,
            "push %" PRIu64 ": ps %u has no shard %" PRIu64
            ": the variable was deleted, or its layout is another\t\t%" PRIu64,
            part->sequence, lane->index, piece->shard_id, piece->shard_id);
    return shard->layout_epoch == piece->layout_epoch ||
           lane_part_refuse(
               lane, part, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_STALE_LAYOUT,
               "variable %s: a piece for layout %u of shard %" PRIu64
               ", the present layout is %u: list it again\t%u\t%u",
               shard->variable->name, piece->layout_epoch, shard->id, shard->layout_epoch,
               shard->layout_epoch, piece->layout_epoch);
}

/* A function that the part names beside the variable's own, by its number in the part. For the
 * variable's own function, the variable must have the slots that the part's options need. */
static bool check_function(
    struct lane *lane, struct lane_part *part, const struct shard *shard, uint32_t function)
{
    const struct definition *own = &shard->variable->definition;
    const char *const name = shard->variable->name;
    struct sumac_error error;

    assert(function > 0);
    assert(own->function != NULL);
    if (function > part->function_count)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNKNOWN_FUNCTION,
            "push %" PRIu64 ": a piece of variable %s names function %u of %u", part->sequence,
            name, function, part->function_count);
    const struct part_function *named = &part->functions[function - 1];
    const bool has_slots = named->function == own->function && own->function->last_slot_if != 0;
    struct update_hyperparameters merged;
    return (update_check(named->function, own->function, own->dtype, name, &error) == SUMAC_OK &&
            update_hyperparameters_check(named->function, own->dtype, &named->given, &error) ==
                SUMAC_OK &&
            (!has_slots || update_check_slots(
                               own->function, &own->hyperparameters,
                               lane_part_hyperparameters(part, function, shard, &merged), name,
                               &error) == SUMAC_OK)) ||
           lane_part_refuse_as(lane, part, &error);
}

static bool check_range(
    struct lane *lane, struct lane_part *part, const struct shard *shard, const wire_piece *piece)
{
    const uint64_t widens = lane_part_widens(part, shard);
    const enum sumac_dtype dtype = shard->variable->definition.dtype;
    const uint64_t element = widens * dtype_bytes(dtype);
    const uint64_t shard_bytes = widens * shard->bytes;
    const bool whole = piece->bytes % element == 0 && piece->offset_bytes % element == 0;
    const bool inside =
        piece->offset_bytes <= shard_bytes && piece->bytes <= shard_bytes - piece->offset_bytes;

    assert(element > 0);
    return (whole && inside) ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
               "variable %s: %" PRIu64 " bytes at %" PRIu64 " of a shard of %" PRIu64
               " bytes of %s%s\twithin %" PRIu64 " bytes\t%" PRIu64 " bytes at %" PRIu64,
               shard->variable->name, piece->bytes, piece->offset_bytes, shard_bytes,
               sumac_dtype_name(part->step == 0 ? dtype : update_contribution_dtype(dtype)),
               whole ? "" : " are not whole elements", shard_bytes, piece->bytes,
               piece->offset_bytes);
}

/* What can be said of a piece without its shard. */
bool lane_piece_check(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    const int kind = (int)piece->kind;
    const bool pushed = kind == WIRE_PIECE_VALUES || kind == WIRE_PIECE_ROW_INDICES ||
                        kind == WIRE_PIECE_HYPERPARAMETERS;

    assert(part->received <= part->bytes);
    if (part->piece_count == LANE_PIECES_PER_PART_MAX)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
            "push %" PRIu64 " has more than %u pieces for ps %u\t%u\tmore", part->sequence,
            LANE_PIECES_PER_PART_MAX, lane->index, LANE_PIECES_PER_PART_MAX);
    part->piece_count++;
    if (piece->bytes > part->bytes - part->received)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 " declared %" PRIu64 " bytes for ps %u and sends more\t%" PRIu64
            "\tmore",
            part->sequence, part->bytes, lane->index, part->bytes);
    return (pushed && piece->codec == SUMAC__V1__PIECE__CODEC__CODEC_IDENTITY) ||
           lane_part_refuse(
               lane, part, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
               "push %" PRIu64 ": a piece of kind %d, codec %d; ps %u takes values, row indices "
               "and hyperparameters as they are",
               part->sequence, kind, (int)piece->codec, lane->index);
}

/* What is scaled is of a float type. */
static bool check_scale(struct lane *lane, struct lane_part *part, const struct variable *variable)
{
    const enum sumac_dtype dtype = variable->definition.dtype;

    return sumac_dtype_is_float(dtype) ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
               "push %" PRIu64 " has scale %g, and variable %s is of type %s: what is scaled is of "
               "a float type; push it apart, without a scale\ta float type\t%s",
               part->sequence, part->scale, variable->name, sumac_dtype_name(dtype),
               sumac_dtype_name(dtype));
}

static struct run *no_memory(struct lane *lane, struct lane_part *part)
{
    (void)lane_part_refuse_memory(lane, part);
    return NULL;
}

/* The last run, if this piece goes on where it ends. */
static struct run *continued(struct lane_part *part, uint32_t entry, const wire_piece *piece)
{
    struct run *last = part->run_count == 0 ? NULL : &part->runs[part->run_count - 1];

    assert(last == NULL || last->entry < part->entry_count);
    if (last == NULL || last->by_rows || last->sets || last->entry != entry ||
        last->function != piece->function ||
        (last->offset + last->bytes) * lane_part_widens(part, part->entries[entry].shard) !=
            piece->offset_bytes)
        return NULL;
    return last;
}

struct shard *
lane_piece_check_shard(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    struct shard *shard = store_shard(&lane->store, piece->shard_id);

    if (!check_layout(lane, part, shard, piece) ||
        (piece->function != 0 && !check_function(lane, part, shard, piece->function)) ||
        (part->scale != 1 && !check_scale(lane, part, shard->variable)))
        return NULL;
    assert(part->state == PART_RECEIVING);
    return shard;
}

/* A piece of values without bytes: the push is counted, and changes no element. */
static void count_empty(struct lane_part *part, struct entry *entry, const wire_piece *piece)
{
    assert(piece->bytes == 0);
    if (entry->counted)
        return;
    entry->function = piece->function;
    entry->counted = lane_entry_function(part, entry, piece->function)->counts_steps;
}

/* The part touches the shard; an empty piece of values adds no run. */
struct run *lane_piece_add_run(
    struct lane *lane, struct lane_part *part, struct shard *shard, const wire_piece *piece)
{
    const bool by_rows = (int)piece->kind == WIRE_PIECE_ROW_INDICES;
    const bool sets = (int)piece->kind == WIRE_PIECE_HYPERPARAMETERS;

    if (!lane_part_take_room(lane, part, PIECE_ROOM_BYTES))
        return NULL;
    const uint32_t entry = entry_of(lane, part, shard, piece->based_on);
    if (entry == UINT32_MAX)
        return no_memory(lane, part);
    if (piece->bytes == 0 && !by_rows && !sets) {
        count_empty(part, &part->entries[entry], piece);
        return NULL; /* a run is never empty: it would have no place in the chunks */
    }
    if (!lane_part_check_run(lane, part))
        return NULL;
    if (part->run_count == part->run_capacity) {
        struct run *runs = grown(lane, part->runs, RUNS_FIRST, &part->run_capacity, sizeof *runs);
        if (runs == NULL)
            return no_memory(lane, part);
        part->runs = runs;
    }
    struct run *run = &part->runs[part->run_count];
    *run =
        (struct run){.entry = entry, .function = piece->function, .by_rows = by_rows, .sets = sets};
    return run;
}

/* What the variable's slots have started from changes no more. */
static bool is_over(const struct update_function *function, const struct part_function *named)
{
    for (uint32_t i = 0; i < function->slot_count; i++)
        if (function->slot_from[i] != 0 && (named->given.set >> function->slot_from[i] & 1u) != 0)
            return true;
    return false;
}

/* Hyperparameters that become a shard's own: of its variable's function, and no bytes. The function
 * has been checked. False: the part is refused. */
static bool check_setting(
    struct lane *lane, struct lane_part *part, const struct shard *shard, const wire_piece *piece)
{
    const struct variable *variable = shard->variable;
    const struct update_function *own = variable->definition.function;
    const struct part_function *named =
        piece->function == 0 ? NULL : &part->functions[piece->function - 1];

    assert(piece->function <= part->function_count);
    if (named == NULL || piece->bytes != 0 || piece->offset_bytes != 0)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 ": a piece that sets hyperparameters of variable %s names function %u "
            "and has %" PRIu64 " bytes: it names one of the part's functions, from 1 on, and has "
            "none",
            part->sequence, variable->name, piece->function, piece->bytes);
    if (named->function != own)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
            "variable %s was created with %s, and a push sets hyperparameters of %s: those of its "
            "own function can be set",
            variable->name, own->name, named->function->name);
    if (is_over(own, named))
        return lane_part_refuse(
            lane, part, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_BAD_HYPERPARAMETER,
            "variable %s: the slots of %s have started from its initial_accumulator_value: it is "
            "given when the variable is created",
            variable->name, own->name);
    return part->setting_count < SETTINGS_PER_PART_MAX ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
               "push %" PRIu64 " sets hyperparameters of more than %u shards of ps %u: set those "
               "of some variables with another push\t%u\tmore",
               part->sequence, SETTINGS_PER_PART_MAX, lane->index, SETTINGS_PER_PART_MAX);
}

/* Of a piece that sets hyperparameters: a run of no bytes, in its place among the others. */
static void take_setting(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    struct shard *shard = lane_piece_check_shard(lane, part, piece);

    if (shard == NULL || !check_setting(lane, part, shard, piece) ||
        (part->step != 0 && !lane_step_contribution_check_variable(lane, part, shard->variable)))
        return;
    const struct run *run = lane_piece_add_run(lane, part, shard, piece);
    if (run == NULL)
        return;
    part->setting_count++;
    assert(run->sets && run->function > 0);
    assert(run->bytes == 0);
    part->run_count++;
    struct update_hyperparameters merged;
    if (!rule_holds(lane->config.broken, RULE_set_in_its_turn))
        shard->hyperparameters = *lane_part_hyperparameters(part, piece->function, shard, &merged);
}

/* The whole of an assigned variable's value comes in order, once. */
struct run *lane_piece_take(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    assert(part->state == PART_RECEIVING);
    assert(part->row_open == NULL);
    if (!lane_piece_check(lane, part, piece))
        return NULL;
    if ((int)piece->kind == WIRE_PIECE_HYPERPARAMETERS) {
        take_setting(lane, part, piece);
        return NULL;
    }
    struct shard *shard = lane_piece_check_shard(lane, part, piece);
    if (shard == NULL || !check_range(lane, part, shard, piece) ||
        (part->step != 0 && !lane_step_contribution_check_variable(lane, part, shard->variable)))
        return NULL;
    const struct shard_touch *touch = touch_of(shard);
    const bool touched = touch->by == part->number;
    assert(!touched || part->entries[touch->index].shard == shard);
    struct run *run = touched ? continued(part, (uint32_t)touch->index, piece) : NULL;
    if (run != NULL) {
        run->bytes += piece->bytes / lane_part_widens(part, shard);
        assert(run->offset + run->bytes <= shard->bytes);
        return run;
    }
    if (touched && piece->bytes == 0) {
        count_empty(part, &part->entries[touch->index], piece);
        return NULL;
    }
    run = lane_piece_add_run(lane, part, shard, piece);
    if (run == NULL)
        return NULL;
    if (!lane_staging_align(lane, part, piece->bytes, 1))
        return no_memory(lane, part);
    assert(part->chunks.last != NULL);
    assert(part->chunks.last->used % RUN_ALIGNMENT_BYTES == 0);
    part->run_count++;
    run->chunk = part->chunks.last;
    run->chunk_offset = part->chunks.last->used;
    run->offset = piece->offset_bytes / lane_part_widens(part, shard);
    run->bytes = piece->bytes / lane_part_widens(part, shard);
    return run;
}
