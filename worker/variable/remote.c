/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c -- variables of a strategy that live on the ps, one for all workers: created or found
 * there, pushed to, pulled.
 *
 * What is pushed is waited for, so that a pull after it has it, from whichever thread. A push that
 * is not over when the client's time is goes on without its waiter, and keeps what it reads.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "variable.h"
#include "error.h"
#include "on_device.h"
#include "push.h"
#include "text.h"

#define PART_NAME_BYTES 1100u

static struct sumac_client *client_of(const struct sumac_variable *variable)
{
    assert(variable->strategy->options.client != NULL);
    return variable->strategy->options.client;
}

/* What of a tensor of the variable's shape that variable on the ps has: where it lies. */
static struct sumac_tensor
part_of(const struct sumac_variable *variable, const struct sumac_tensor *whole, uint32_t part)
{
    const uint64_t *const first = variable->shard_first;
    struct sumac_tensor tensor = *whole;

    assert(part < variable->remote_count);
    if (!variable->uneven)
        return tensor;
    assert(tensor.shape.rank > 0);
    tensor.shape.extent[0] = first[part + 1] - first[part];
    const uint64_t row_bytes = sumac_tensor_bytes(&tensor) / tensor.shape.extent[0];
    tensor.offset_bytes += first[part] * row_bytes;
    return tensor;
}

/* ---- created */

/* Of shards that no partitioner makes a variable for each, by the number of its first row. */
static const char *
name_part(const struct sumac_variable *variable, uint32_t part, char *text, size_t text_bytes)
{
    if (!variable->uneven)
        return variable->name;
    (void)text_print(
        text, text_bytes, "%s/rows_%" PRIu64, variable->name, variable->shard_first[part]);
    return text;
}

static enum sumac_status create_parts(
    struct sumac_variable *variable, const struct sumac_client_variable_options *options,
    const struct sumac_tensor *initial, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;
    char name[PART_NAME_BYTES];

    variable->remote_count = variable->uneven ? variable->shard_count : 1;
    variable->remote = calloc(variable->remote_count, sizeof(struct sumac_client_variable *));
    if (variable->remote == NULL)
        return value_fail_for_memory(error);
    for (uint32_t i = 0; status == SUMAC_OK && i < variable->remote_count; i++) {
        const struct sumac_tensor part = part_of(variable, initial, i);
        struct sumac_client_variable_options own = *options;
        own.name = name_part(variable, i, name, sizeof name);
        own.shape = part.shape;
        own.initial_value = &part;
        status =
            sumac_client_variable_create(client_of(variable), &own, &variable->remote[i], error);
    }
    return status;
}

enum sumac_status remote_create(
    struct sumac_variable *variable, const struct sumac_variable_options *asked,
    const struct sumac_value *initial, struct sumac_error *error)
{
    struct sumac_value *here = NULL;

    assert(initial->kind == SUMAC_VALUE_TENSOR);
    assert(variable->remote == NULL);
    enum sumac_status status = value_bring_here(initial, &here, error);
    if (status != SUMAC_OK)
        return status;
    /* its own bytes: a create that is not over in time goes on, and keeps them */
    struct sumac_value *own = sumac_value_copy(&here->tensor);
    sumac_value_unref(here);
    if (own == NULL)
        return value_fail_for_memory(error);
    /* what replicas push is aggregated here, so of aggregation and synchronization a ps knows
     * nothing */
    struct sumac_client_variable_options options = {
        .dtype = variable->dtype,
        .frozen = !variable->trainable,
        .initializer = SUMAC_INITIALIZER_ASSIGNED,
        .function = asked->function,
        .colocate_with = asked->colocate_with == NULL
                             ? NULL
                             : sumac_client_variable_name(asked->colocate_with->remote[0]),
        .partitioner = asked->partitioner};
    if (asked->shard_count > 0 && !variable->uneven) /* shard_rows that are even */
        options.partitioner = (struct sumac_partitioner){
            .kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = asked->shard_count};
    status = create_parts(variable, &options, &own->tensor, error);
    sumac_value_unref(own);
    return status;
}

/* ---- read */

static size_t count_parts(struct sumac_variable *const *variables, uint32_t count)
{
    size_t parts = 0;

    assert(variables != NULL || count == 0);
    for (uint32_t i = 0; i < count; i++)
        parts += variables[i]->remote_count;
    return parts;
}

struct fetches {
    struct sumac_fetch *items;
    size_t count;
};

/* Make the tensor that the value, or that slot, is pulled into. Gives *into, also where it fails.
 */
static enum sumac_status add_fetches(
    struct fetches *fetches, const struct sumac_variable *variable, const char *slot,
    struct sumac_value **into, struct sumac_error *error)
{
    void *elements;

    assert(*into == NULL);
    *into = value_make_tensor(
        slot == NULL ? variable->dtype : update_slot_dtype(variable->dtype), &variable->shape,
        &elements);
    if (*into == NULL || fetches->items == NULL)
        return value_fail_for_memory(error);
    for (uint32_t i = 0; i < variable->remote_count; i++)
        fetches->items[fetches->count++] = (struct sumac_fetch){
            .variable = variable->remote[i],
            .into = part_of(variable, &(*into)->tensor, i),
            .slot = slot};
    return SUMAC_OK;
}

/* One pull of all of them, of one moment on each ps, if `status` is OK. */
static enum sumac_status pull(
    struct sumac_client *client, struct fetches *fetches, enum sumac_status status,
    struct sumac_error *error)
{
    if (status == SUMAC_OK && fetches->count > 0)
        status = sumac_client_pull(client, fetches->items, fetches->count, NULL, NULL, error);
    free(fetches->items);
    return status;
}

enum sumac_status remote_read_all(
    struct sumac_variable *const *variables, uint32_t count, struct sumac_value **values,
    struct sumac_error *error)
{
    const size_t parts = count_parts(variables, count);
    struct sumac_client *client = NULL;
    enum sumac_status status = SUMAC_OK;

    if (parts > SUMAC_TRANSFER_VARIABLES_MAX) /* before there is memory for them */
        return fail_argument(
            error,
            "%zu variables are read, and one pull has %d at most: read them in several calls",
            parts, SUMAC_TRANSFER_VARIABLES_MAX);
    struct fetches fetches = {.items = parts > 0 ? calloc(parts, sizeof *fetches.items) : NULL};
    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++) {
        if (variables[i]->remote == NULL)
            continue;
        client = client_of(variables[i]);
        status = add_fetches(&fetches, variables[i], NULL, &values[i], error);
    }
    status = pull(client, &fetches, status, error);
    for (uint32_t i = 0; status != SUMAC_OK && i < count; i++) {
        sumac_value_unref(values[i]);
        values[i] = NULL;
    }
    return status;
}

enum sumac_status
remote_read(struct sumac_variable *variable, struct sumac_value **value, struct sumac_error *error)
{
    assert(variable->remote != NULL);
    *value = NULL;
    return remote_read_all(&variable, 1, value, error);
}

/* ---- its slots */

enum sumac_status
remote_slots(struct sumac_variable *variable, struct sumac_value **slots, struct sumac_error *error)
{
    struct sumac_value *values[SUMAC_SLOTS_MAX] = {NULL};
    struct sumac_client_variable_facts facts;

    assert(variable->remote_count > 0);
    enum sumac_status status = sumac_client_variable_describe(variable->remote[0], &facts, error);
    if (status != SUMAC_OK)
        return status;
    assert(facts.slot_count <= SUMAC_SLOTS_MAX);
    const size_t room = (size_t)variable->remote_count * facts.slot_count;
    struct fetches fetches = {.items = room > 0 ? calloc(room, sizeof *fetches.items) : NULL};
    for (uint32_t i = 0; status == SUMAC_OK && i < facts.slot_count; i++)
        status = add_fetches(&fetches, variable, facts.slots[i], &values[i], error);
    status = pull(client_of(variable), &fetches, status, error);
    if (status != SUMAC_OK) {
        value_unref_all(values, facts.slot_count);
        return status;
    }
    /* takes them */
    struct sumac_value *dict = sumac_value_dict(facts.slots, values, facts.slot_count);
    return value_give(sumac_value_tuple(&dict, 1), slots, error);
}

/* ---- changed */

/* A ps takes indices of one type. NULL: no memory. */
static struct sumac_value *wide_indices(const struct sumac_value *slices)
{
    struct sumac_value *given = slices->items[1];
    const int32_t *from = sumac_tensor_data(&given->tensor);
    void *elements;

    assert(given->tensor.shape.rank == 1);
    if (given->tensor.dtype == SUMAC_INT64)
        return sumac_value_ref(given);
    assert(given->tensor.dtype == SUMAC_INT32);
    struct sumac_value *wide = value_make_tensor(SUMAC_INT64, &given->tensor.shape, &elements);
    for (uint64_t i = 0; wide != NULL && i < given->tensor.shape.extent[0]; i++)
        ((int64_t *)elements)[i] = from[i];
    return wide;
}

/* Makes the operand's delta of that part; *indices, of slices, are what it points to. false: no
 * memory. */
static bool make_delta(
    const struct sumac_variable *variable, uint32_t part, const struct sumac_value *operand,
    struct sumac_delta *delta, struct sumac_value **indices)
{
    delta->variable = variable->remote[part];
    if (operand->kind != SUMAC_VALUE_INDEXED_SLICES) {
        delta->value = part_of(variable, &operand->tensor, part);
        return true;
    }
    *indices = wide_indices(operand);
    if (*indices == NULL)
        return false;
    delta->value = operand->items[0]->tensor;
    delta->indices = &(*indices)->tensor;
    return true;
}

static void let_go(void *operands) { sumac_value_unref(operands); }

/* A buffer of no bytes that has a reference of each. NULL: no memory. */
static struct sumac_buffer *hold(const struct sumac_value *const *operands, uint32_t count)
{
    const struct sumac_place host = {.kind = SUMAC_PLACE_HOST};
    struct sumac_buffer *held = NULL;

    assert(count > 0);
    struct sumac_value *all = value_hold(SUMAC_VALUE_LIST, operands, count, 0);
    if (all != NULL && sumac_buffer_wrap(NULL, 0, host, let_go, all, &held) != SUMAC_OK)
        sumac_value_unref(all);
    return held;
}

/* Of `variable`, and `others` beside it. */
static enum sumac_status push(
    const struct sumac_variable *variable, bool others, const struct sumac_delta *deltas,
    uint32_t count, struct sumac_buffer *held, struct sumac_error *error)
{
    /* an assignment may be of what is no number, as to one that is not remote */
    const struct sumac_push_options options = {.allow_non_finite = true};
    struct sumac_push *begun;

    assert(held != NULL);
    const enum sumac_status status =
        sumac_client_push(client_of(variable), deltas, count, &options, &begun, error);
    if (status != SUMAC_OK)
        return status;
    push_keep(begun, held);
    struct sumac_error why = {.status = SUMAC_OK};
    const enum sumac_status ended = sumac_push_wait(begun, 0, &why);
    if (ended == SUMAC_DEADLINE_EXCEEDED)
        return fail(
            error, ended, why.reason, "%.200s%s: %.250s; it goes on, and may be applied yet",
            variable->name, others ? " and others" : "", why.text);
    return ended == SUMAC_OK ? SUMAC_OK : fail_again(error, &why);
}

/* operands[i] is a delta of variables[i], by `function` (NULL: each one's own). What is not remote
 * is passed over. */
struct remote_change {
    struct sumac_variable *const *variables;
    const struct sumac_function *function;
    const struct sumac_value *const *operands;
    uint32_t count;
};

static enum sumac_status push_here(const struct remote_change *change, struct sumac_error *error)
{
    const size_t room = count_parts(change->variables, change->count) + 1;
    struct sumac_delta *deltas = calloc(room, sizeof *deltas);
    struct sumac_value **indices = calloc(room, sizeof *indices);
    struct sumac_buffer *held = hold(change->operands, change->count);
    bool complete = deltas != NULL && indices != NULL && held != NULL, others = false;
    const struct sumac_variable *first = NULL;
    enum sumac_status status = SUMAC_OK;
    uint32_t count = 0;

    for (uint32_t i = 0; complete && status == SUMAC_OK && i < change->count; i++) {
        const struct sumac_variable *variable = change->variables[i];
        if (variable->remote == NULL)
            continue;
        first = first == NULL ? variable : first;
        others = others || variable != first;
        if (variable->uneven && change->operands[i]->kind == SUMAC_VALUE_INDEXED_SLICES)
            status = fail(
                error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
                "%.200s: its shards are not those that a partitioner makes; change it as a whole",
                variable->name);
        for (uint32_t j = 0; complete && status == SUMAC_OK && j < variable->remote_count; j++) {
            deltas[count].function = change->function;
            complete =
                make_delta(variable, j, change->operands[i], &deltas[count], &indices[count]);
            count++;
        }
    }
    if (!complete)
        status = value_fail_for_memory(error);
    if (status == SUMAC_OK && count > 0)
        status = push(first, others, deltas, count, held, error);
    value_unref_all(indices, count);
    sumac_buffer_unref(held);
    free(indices);
    free(deltas);
    return status;
}

/* The same of operands wherever they are: a push sends what the host sees. */
static enum sumac_status make_push(struct remote_change change, struct sumac_error *error)
{
    struct sumac_value **here = calloc((size_t)change.count + 1, sizeof *here);
    enum sumac_status status = here == NULL ? value_fail_for_memory(error) : SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < change.count; i++)
        status = on_device_take_one(change.operands[i], &here[i], error);
    change.operands = value_lend(here);
    if (status == SUMAC_OK)
        status = push_here(&change, error);
    value_unref_all(here, change.count);
    free(here);
    return status;
}

enum sumac_status remote_change(
    struct sumac_variable *variable, const struct sumac_function *function,
    const struct sumac_value *const *operands, uint32_t count, struct sumac_error *error)
{
    struct sumac_variable *same[SUMAC_REPLICAS_MAX];

    assert(variable->remote != NULL);
    assert(count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < count; i++)
        same[i] = variable;
    return make_push((struct remote_change){same, function, operands, count}, error);
}

enum sumac_status remote_change_all(
    struct sumac_variable *const *variables, const struct sumac_value *const *operands,
    uint32_t count, struct sumac_error *error)
{
    assert(count > 0);
    return make_push((struct remote_change){variables, NULL, operands, count}, error);
}
