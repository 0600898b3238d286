/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c -- the records of variables: made, found by name or id, said in a message. */
#include "judge_state.h"

#include <assert.h>
#include <string.h>

#include "error.h"

/* FNV-1a, 32 bits. */
static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    return hash;
}

static struct judge_variable **name_bucket(const struct judge *judge, uint32_t hash)
{
    return &judge->by_name[hash & (JUDGE_BUCKETS - 1)];
}

static struct judge_variable **id_bucket(const struct judge *judge, uint64_t id)
{
    return &judge->by_id[id & (JUDGE_BUCKETS - 1)];
}

struct judge_variable *judge_variable_find(const struct judge *judge, const char *name)
{
    const uint32_t hash = hash_name(name);
    struct judge_variable *variable = *name_bucket(judge, hash);
    while (variable != NULL && (variable->name_hash != hash || strcmp(variable->name, name) != 0))
        variable = variable->next_by_name;
    return variable;
}

struct judge_variable *judge_variable_by_id(const struct judge *judge, uint64_t id)
{
    struct judge_variable *variable = *id_bucket(judge, id);
    while (variable != NULL && variable->id != id)
        variable = variable->next_by_id;
    return variable;
}

/* ---- making one ---- */

static void split(struct judge *judge, struct judge_variable *variable)
{
    assert(judge->ps_count > 0);
    const struct sumac_shape *shape = &variable->definition.shape;
    const uint64_t rows = shape->rank == 0 ? 1 : shape->extent[0];
    uint64_t row_bytes = sumac_dtype_bytes(variable->definition.dtype);
    for (uint32_t axis = 1; axis < shape->rank && rows > 0; axis++)
        row_bytes *= shape->extent[axis]; /* fits: rows of it do */
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        struct judge_shard *shard = &variable->shards[i];
        shard->id = ++judge->shards_made;
        shard->ps = placement_next_ps(&judge->shards_placed, judge->ps_count);
        shard->rows = placement_rows(rows, variable->shard_count, i);
        shard->bytes = shard->rows.count * row_bytes;
        if (definition_is_assigned(&variable->definition) && shard->bytes > 0)
            judge_mask_add(&variable->unassigned, shard->ps);
    }
}

static void enlist(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->previous == NULL);
    assert(judge_variable_by_id(judge, variable->id) == NULL);
    struct judge_variable **name = name_bucket(judge, variable->name_hash);
    struct judge_variable **id = id_bucket(judge, variable->id);
    variable->next_by_name = *name;
    *name = variable;
    variable->next_by_id = *id;
    *id = variable;
    variable->previous = judge->last_variable;
    if (judge->last_variable == NULL)
        judge->first_variable = variable;
    else
        judge->last_variable->next = variable;
    judge->last_variable = variable;
    judge->variable_count++;
}

static enum sumac_status take_record(
    struct judge *judge, const char *name, uint64_t shard_count, struct judge_variable **variable,
    struct sumac_error *error)
{
    if (judge->variable_count >= JUDGE_VARIABLES_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "%s: there are %u variables already, the most there may be", name, JUDGE_VARIABLES_MAX);
    if (shard_count > JUDGE_SHARDS_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSUPPORTED,
            "%s: the partitioner makes %llu shards, at most %u may be", name,
            (unsigned long long)shard_count, JUDGE_SHARDS_MAX);
    const size_t fixed = sizeof(**variable) + (size_t)shard_count * sizeof(struct judge_shard);
    const size_t name_bytes = strlen(name) + 1;
    struct judge_variable *record = memory_take(judge->memory, fixed + name_bytes);
    if (record == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "%s: ps 0 has no memory for another variable", name);
    memset(record, 0, fixed);
    memcpy((char *)record + fixed, name, name_bytes);
    record->record_bytes = fixed + name_bytes;
    record->name = (char *)record + fixed;
    record->name_hash = hash_name(name);
    record->shard_count = (uint32_t)shard_count;
    *variable = record;
    assert(record->shard_count <= JUDGE_SHARDS_MAX);
    return SUMAC_OK;
}

enum sumac_status judge_variable_make(
    struct judge *judge, const char *name, const struct definition *definition,
    struct judge_variable **variable, struct sumac_error *error)
{
    assert(judge_variable_find(judge, name) == NULL);
    uint64_t shard_count = 0;
    enum sumac_status status = placement_shard_count(
        &definition->partitioner, &definition->shape, definition->dtype, &shard_count, error);
    if (status == SUMAC_OK)
        status = take_record(judge, name, shard_count, variable, error);
    if (status != SUMAC_OK)
        return status;
    (*variable)->definition = *definition;
    (*variable)->id = ++judge->variables_made;
    split(judge, *variable);
    enlist(judge, *variable);
    return SUMAC_OK;
}

/* ---- unmaking it ---- */

void judge_variable_hide(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->state == JUDGE_VARIABLE_DELETING);
    assert(judge_variable_find(judge, variable->name) == variable);
    struct judge_variable **link = name_bucket(judge, variable->name_hash);
    while (*link != variable)
        link = &(*link)->next_by_name;
    *link = variable->next_by_name;
}

void judge_variable_free(struct judge *judge, struct judge_variable *variable)
{
    assert(variable->state == JUDGE_VARIABLE_DELETING);
    assert(variable->orders == 0);
    assert(judge->variable_count > 0);
    struct judge_variable **link = id_bucket(judge, variable->id);
    while (*link != variable)
        link = &(*link)->next_by_id;
    *link = variable->next_by_id;
    if (variable->previous == NULL)
        judge->first_variable = variable->next;
    else
        variable->previous->next = variable->next;
    if (variable->next == NULL)
        judge->last_variable = variable->previous;
    else
        variable->next->previous = variable->previous;
    judge->variable_count--;
    memory_give(judge->memory, variable, variable->record_bytes);
}

/* ---- saying it ---- */

static void *make(struct judge *judge, size_t bytes)
{
    return arena_take_zeroed(judge->out->arena, bytes);
}

static wire_shard **shard_messages(struct judge *judge, const struct judge_variable *variable)
{
    wire_shard *messages = make(judge, variable->shard_count * sizeof(*messages));
    wire_shard **pointers = make(judge, variable->shard_count * sizeof(*pointers));
    if (messages == NULL || pointers == NULL)
        return NULL;
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        const struct judge_shard *shard = &variable->shards[i];
        pointers[i] = &messages[i];
        messages[i] = (wire_shard)WIRE_SHARD_INIT;
        messages[i].shard_id = shard->id;
        messages[i].layout_epoch = 1;
        messages[i].ps = shard->ps;
        messages[i].first_row = shard->rows.first;
        messages[i].rows = shard->rows.count;
        messages[i].bytes = shard->bytes;
    }
    return pointers;
}

wire_variable *judge_variable_message(struct judge *judge, const struct judge_variable *variable)
{
    wire_variable *message = make(judge, sizeof(*message));
    if (message == NULL)
        return NULL;
    *message = (wire_variable)WIRE_VARIABLE_INIT;
    message->name = out_text(judge->out, "%s", variable->name);
    message->variable_id = variable->id;
    message->shards = shard_messages(judge, variable);
    message->n_shards = message->shards == NULL ? 0 : variable->shard_count;
    message->published = variable->state == JUDGE_VARIABLE_PUBLISHED;
    const bool whole = definition_write(&variable->definition, judge->out->arena, message);
    return whole && message->shards != NULL ? message : NULL;
}
