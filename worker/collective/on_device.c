/* SPDX-License-Identifier: Apache-2.0 */
/* on_device.c -- a strategy's queues beside its replicas' on devices with memory of their own, and
 * values that are brought there. */
#include "on_device.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "error.h"
#include "log.h"
#include "host_copy.h"

#define BLOCK_BYTES_MIN 512u

/* ---- memory of values
 *
 * A driver takes time to give memory, and may wait for all work on the device. So memory of earlier
 * values is used again.
 *
 * Work in the replica's stream may still read a value that was given up. So a block is used again
 * in two cases only. The replica's own thread takes it, which writes to it in the same stream. Or
 * all replicas are in a call, behind the work in their streams, or nothing runs.
 */

static enum sumac_status
make(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    return device_buffer_create(context, bytes, buffer, error);
}

static bool spare(void *context) { return kept_free_idle(context); }

/* NULL: no memory. */
static struct kept *open_memory(struct device *device)
{
    assert(device->spare == NULL);
    struct kept *memory = kept_open(&(struct kept_source){
        .make = make,
        .context = device,
        .count_max = ON_DEVICE_KEPT_MAX,
        .bytes_max = ON_DEVICE_KEPT_BYTES_MAX});
    if (memory == NULL)
        return NULL;
    device->spare = spare; /* for others that want the device's memory */
    device->spare_context = memory;
    return memory;
}

/* So many bytes, of any content. `again`: they may be another value's, which was given up while
 * work may still read it. Gives  *buffer, with one reference. */
static enum sumac_status take_memory(
    struct kept *memory, uint64_t bytes, bool again, struct sumac_buffer **buffer,
    struct sumac_error *error)
{
    const uint64_t blocks = bytes / BLOCK_BYTES_MIN + (bytes % BLOCK_BYTES_MIN != 0 || bytes == 0);
    const struct kept_wish wish = {
        .bytes = bytes, .room = blocks * BLOCK_BYTES_MIN, .is_new = !again};

    return bytes <= PTRDIFF_MAX - BLOCK_BYTES_MIN ? kept_take(memory, &wish, buffer, error)
                                                  : value_fail_for_memory(error);
}

/* ---- open */

enum sumac_status on_device_open(struct sumac_strategy *strategy, struct sumac_error *error)
{
    const uint32_t timeout_ms = strategy->options.step_timeout_ms;
    const struct replicas *own = &strategy->own;
    enum sumac_status status = SUMAC_OK;

    assert(strategy->on_device == NULL);
    assert(strategy->replicas <= SUMAC_REPLICAS_MAX);
    if (own->devices == NULL || own->devices[0]->ops->place == SUMAC_PLACE_HOST)
        return SUMAC_OK;
    struct on_device *on_device = calloc(1, sizeof *on_device);
    if (on_device == NULL)
        return value_fail_for_memory(error);
    strategy->on_device = on_device;
    pthread_mutex_init(&on_device->mutex, NULL);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++) {
        own->queues[i]->wait_ms_max = timeout_ms == UINT32_MAX ? 0 : timeout_ms;
        status = device_queue_open(own->devices[i], &on_device->queues[i], error);
        if (status == SUMAC_OK)
            status = device_event_open(own->devices[i], &on_device->come[i], error);
        on_device->weights[i] = 1;
        on_device->memory[i] = open_memory(own->devices[i]);
        if (status == SUMAC_OK && on_device->memory[i] == NULL)
            status = value_fail_for_memory(error);
    }
    return status;
}

void on_device_close(struct sumac_strategy *strategy)
{
    struct on_device *on_device = strategy->on_device;

    if (on_device == NULL)
        return;
    device_group_close(on_device->group);
    for (uint32_t i = 0; i < strategy->replicas; i++)
        device_queue_close(on_device->queues[i]);
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        device_event_close(on_device->come[i]);
        strategy->own.devices[i]->spare = NULL;
        kept_close(on_device->memory[i]);
    }
    pthread_mutex_destroy(&on_device->mutex);
    free(on_device);
    strategy->on_device = NULL;
}

/* ---- before and after */

void on_device_come(struct sumac_replica *replica)
{
    struct sumac_strategy *strategy = replica->strategy;

    assert(strategy->on_device != NULL);
    device_record(strategy->own.queues[replica->index], strategy->on_device->come[replica->index]);
}

/* NULL: the thread is no replica's. */
static struct sumac_replica *present_replica(const struct sumac_strategy *strategy)
{
    struct sumac_replica *replica = context_present()->replica;

    assert(strategy->on_device != NULL);
    return replica != NULL && replica->strategy == strategy ? replica : NULL;
}

void on_device_come_present(const struct sumac_strategy *strategy)
{
    struct sumac_replica *replica = present_replica(strategy);

    if (replica != NULL)
        on_device_come(replica);
}

enum sumac_status on_device_fail(
    const struct sumac_strategy *strategy, uint32_t index, const struct device_queue *queue,
    enum sumac_status status, struct sumac_error *error)
{
    const char *why = device_why(queue); /* "": what failed in it is no call of the driver's own */
    char name[16];

    assert(status != SUMAC_OK);
    return fail(
        error, status, SUMAC_REASON_UNSPECIFIED, "replica %" PRIu32 " (%s) has failed: %s",
        strategy->first + index, device_name(queue->device, name, sizeof name),
        why[0] == '\0' ? sumac_status_name(status) : why);
}

enum sumac_status
on_device_wait_present(const struct sumac_strategy *strategy, struct sumac_error *error)
{
    const struct sumac_replica *replica = present_replica(strategy);

    if (replica == NULL)
        return SUMAC_OK;
    return sumac_device_wait(device_for_step(strategy->own.queues[replica->index]), error);
}

void on_device_say(const struct sumac_strategy *strategy, const char *line)
{
    if (strategy->options.client != NULL)
        client_log(strategy->options.client, "%s", line);
    else
        (void)fprintf(stderr, "sumac: %s\n", line);
}

void on_device_give_up(struct sumac_strategy *strategy, const struct sumac_error *why)
{
    struct on_device *on_device = strategy->on_device;

    assert(why->status != SUMAC_OK);
    replicas_give_up(&strategy->own);
    (void)fail(
        &on_device->failed, why->status, why->reason, "%.360s; %s", why->text,
        replicas_remedy(&strategy->own, ""));
    on_device_say(strategy, on_device->failed.text);
    if (strategy->options.abort_when_stuck)
        (void)raise(SIGABRT);
}

enum sumac_status on_device_check(struct sumac_strategy *strategy, struct sumac_error *error)
{
    struct on_device *on_device = strategy->on_device;

    if (on_device == NULL || !replicas_are_given_up(&strategy->own))
        return SUMAC_OK;
    pthread_mutex_lock(&on_device->mutex);
    const enum sumac_status status = fail_again(error, &on_device->failed);
    pthread_mutex_unlock(&on_device->mutex);
    return status;
}

/* A device is late: a line says so at the deadline, and the error after twice the time. */
static struct sumac_error late_error(const struct sumac_strategy *strategy, uint32_t index)
{
    struct sumac_error late;
    char name[16];

    (void)fail(
        &late, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
        "replica %" PRIu32 " (%s) has not done what is in its stream in %" PRIu32 " ms",
        strategy->first + index, device_name(strategy->own.devices[index], name, sizeof name),
        strategy->options.step_timeout_ms);
    return late;
}

enum sumac_status on_device_complete(struct sumac_strategy *strategy, uint32_t *failed)
{
    const uint32_t timeout_ms = strategy->options.step_timeout_ms;
    struct on_device *on_device = strategy->on_device;
    enum sumac_status status = SUMAC_DEADLINE_EXCEEDED;

    for (int half = 0; half < 2 && status == SUMAC_DEADLINE_EXCEEDED; half++) {
        status = queues_wait(
            strategy->own.queues, strategy->replicas, device_complete, device_until(timeout_ms),
            failed);
        if (status != SUMAC_DEADLINE_EXCEEDED)
            break;
        const struct sumac_error late = late_error(strategy, *failed);
        pthread_mutex_lock(&on_device->mutex);
        if (half == 0)
            on_device_say(strategy, late.text);
        else
            on_device_give_up(strategy, &late);
        pthread_mutex_unlock(&on_device->mutex);
    }
    return status;
}

/* Under the mutex. */
static enum sumac_status
wait_for_queue(struct sumac_strategy *strategy, uint32_t index, struct sumac_error *error)
{
    struct device_queue *queue = strategy->on_device->queues[index];
    const uint32_t timeout_ms = strategy->options.step_timeout_ms;
    enum sumac_status status = device_wait_until(queue, device_until(timeout_ms));

    if (status == SUMAC_DEADLINE_EXCEEDED) {
        const struct sumac_error late = late_error(strategy, index);
        on_device_say(strategy, late.text);
        status = device_wait_until(queue, device_until(timeout_ms));
        if (status == SUMAC_DEADLINE_EXCEEDED) {
            on_device_give_up(strategy, &late);
            return fail_again(error, &strategy->on_device->failed);
        }
    }
    return status == SUMAC_OK ? SUMAC_OK : on_device_fail(strategy, index, queue, status, error);
}

/* Under the mutex: wait for the queues of those that have `updates`, NULL: of all. */
static enum sumac_status wait_for(
    struct sumac_strategy *strategy, struct device_update *const *updates,
    struct sumac_error *error)
{
    enum sumac_status first = SUMAC_OK;

    for (uint32_t i = 0; i < strategy->replicas; i++) {
        if ((updates != NULL && updates[i] == NULL) || replicas_are_given_up(&strategy->own))
            continue;
        const enum sumac_status status =
            wait_for_queue(strategy, i, first == SUMAC_OK ? error : NULL);
        if (first == SUMAC_OK)
            first = status;
    }
    return first;
}

enum sumac_status on_device_update(
    struct sumac_strategy *strategy, struct device_update *const *updates,
    struct sumac_error *error)
{
    struct on_device *on_device = strategy->on_device;

    assert(on_device != NULL);
    if (on_device_check(strategy, error) != SUMAC_OK)
        return SUMAC_DEADLINE_EXCEEDED;
    on_device_come_present(strategy);
    pthread_mutex_lock(&on_device->mutex);
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        if (updates != NULL && updates[i] == NULL)
            continue;
        device_await(on_device->queues[i], on_device->come[i]);
        if (updates != NULL)
            device_update(on_device->queues[i], updates[i]);
    }
    const enum sumac_status status = wait_for(strategy, updates, error);
    pthread_mutex_unlock(&on_device->mutex);
    return status;
}

enum sumac_status on_device_settle(struct sumac_strategy *strategy, struct sumac_error *error)
{
    return on_device_update(strategy, NULL, error);
}

/* ---- a leaf */

static bool
is_at(const struct sumac_strategy *strategy, uint32_t index, const struct sumac_tensor *tensor)
{
    const struct device *device = strategy->own.devices[index];
    const struct sumac_place place = sumac_buffer_place(tensor->buffer);

    assert(index < strategy->replicas);
    return place.kind == device->ops->place && place.device == device->index;
}

static bool
is_leaf_at(const struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *leaf)
{
    if (leaf->kind == SUMAC_VALUE_INDEXED_SLICES)
        return is_at(strategy, index, &leaf->items[0]->tensor) &&
               is_at(strategy, index, &leaf->items[1]->tensor);
    return leaf->kind == SUMAC_VALUE_TENSOR && is_at(strategy, index, &leaf->tensor);
}

bool on_device_are(
    const struct sumac_strategy *strategy, const struct sumac_value *const *leaves, uint32_t count)
{
    bool are = strategy->on_device != NULL && count == strategy->replicas;

    for (uint32_t i = 0; are && i < count; i++)
        are = is_leaf_at(strategy, i, leaves[i]);
    return are;
}

enum sumac_status on_device_make(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_tensor *like,
    struct sumac_value **made, struct sumac_error *error)
{
    const uint64_t bytes = sumac_tensor_bytes(like);
    struct sumac_tensor tensor;

    assert(index < strategy->replicas);
    /* the replica's own thread, or one that does what all replicas wait for */
    const struct sumac_replica *replica = present_replica(strategy);
    const bool is_own = replica != NULL && (replica->index == index || calls_all_made(strategy));
    /* without a run no replica has anything in its stream */
    const bool is_idle = !is_own && pthread_mutex_trylock(&strategy->running) == 0;
    struct sumac_buffer *buffer = NULL;
    const enum sumac_status status =
        take_memory(strategy->on_device->memory[index], bytes, is_own || is_idle, &buffer, error);
    if (is_idle)
        pthread_mutex_unlock(&strategy->running);
    if (status != SUMAC_OK)
        return status;
    const bool fits = sumac_tensor_view(buffer, 0, like->dtype, &like->shape, &tensor) == SUMAC_OK;
    const enum sumac_status given = value_give(fits ? sumac_value_of(&tensor) : NULL, made, error);
    sumac_buffer_unref(buffer);
    return given;
}

static enum sumac_status place_tensor(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *leaf,
    struct sumac_value **placed, struct sumac_error *error)
{
    struct sumac_value *here = NULL, *made = NULL;

    assert(leaf->kind == SUMAC_VALUE_TENSOR);
    assert(leaf->tensor.buffer != NULL);
    enum sumac_status status = value_bring_here(leaf, &here, error); /* of another device */
    if (status == SUMAC_OK)
        status = on_device_make(strategy, index, &leaf->tensor, &made, error);
    if (status == SUMAC_OK)
        status = host_copy_write(&made->tensor, sumac_value_data(here), error);
    sumac_value_unref(here);
    if (status == SUMAC_OK)
        *placed = made;
    else
        sumac_value_unref(made);
    return status;
}

static enum sumac_status place_slices(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *leaf,
    struct sumac_value **placed, struct sumac_error *error)
{
    struct sumac_value *rows = NULL, *indices = NULL;

    assert(leaf->kind == SUMAC_VALUE_INDEXED_SLICES);
    enum sumac_status status = on_device_place(strategy, index, leaf->items[0], &rows, error);
    if (status == SUMAC_OK)
        status = on_device_place(strategy, index, leaf->items[1], &indices, error);
    if (status != SUMAC_OK) {
        sumac_value_unref(rows);
        return status;
    }
    return value_give(sumac_value_indexed_slices(rows, indices, leaf->dense), placed, error);
}

enum sumac_status on_device_place(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *leaf,
    struct sumac_value **placed, struct sumac_error *error)
{
    assert(!value_is_nest(leaf));
    assert(!value_is_leaf_of_replicas(leaf));
    if (leaf->kind == SUMAC_VALUE_NONE || is_leaf_at(strategy, index, leaf)) {
        *placed = sumac_value_ref(leaf);
        return SUMAC_OK;
    }
    const enum sumac_status status = leaf->kind == SUMAC_VALUE_INDEXED_SLICES
                                         ? place_slices(strategy, index, leaf, placed, error)
                                         : place_tensor(strategy, index, leaf, placed, error);
    if (status == SUMAC_OK)
        value_liken(*placed, leaf);
    return status;
}

/* ---- all leaves */

struct placing {
    struct sumac_strategy *strategy;
    uint32_t index;
    bool all; /* or those alone of which the other value's leaf is on a device */
};

static enum sumac_status place_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct placing *placing = context;

    (void)path;
    if (placing->strategy->on_device != NULL && (placing->all || !value_is_here(leaves[0])))
        return on_device_place(placing->strategy, placing->index, leaves[1], mapped, error);
    *mapped = sumac_value_ref(leaves[1]);
    return SUMAC_OK;
}

enum sumac_status on_device_place_like(
    struct sumac_strategy *strategy, uint32_t index, const struct sumac_value *like,
    const struct sumac_value *value, struct sumac_value **placed, struct sumac_error *error)
{
    struct placing placing = {.strategy = strategy, .index = index, .all = like == NULL};
    const struct sumac_value *const both[] = {like == NULL ? value : like, value};

    assert(!value->distributed);
    assert(index < strategy->replicas);
    return value_zip(both, 2, place_leaf, &placing, placed, error);
}

/* Each replica's own of the value, on its device. Gives items[0 … replicas - 1]. */
static enum sumac_status place_each(
    struct sumac_strategy *strategy, const struct sumac_value *value,
    struct sumac_value *items[SUMAC_REPLICAS_MAX], struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;
    uint32_t count = 0;

    assert(strategy->replicas <= SUMAC_REPLICAS_MAX);
    for (; status == SUMAC_OK && count < strategy->replicas; count++) {
        struct sumac_value *own = NULL;
        items[count] = NULL;
        status = sumac_value_select(value, strategy->first + count, &own, error);
        if (status == SUMAC_OK)
            status = on_device_place_like(strategy, count, NULL, own, &items[count], error);
        sumac_value_unref(own);
    }
    if (status != SUMAC_OK)
        value_unref_all(items, count);
    return status;
}

enum sumac_status on_device_spread(
    struct sumac_strategy *strategy, const struct sumac_value *leaf, struct sumac_value **spread,
    struct sumac_error *error)
{
    struct sumac_value *items[SUMAC_REPLICAS_MAX];
    const uint32_t count = strategy->replicas;
    const enum sumac_status status = place_each(strategy, leaf, items, error);

    if (status != SUMAC_OK)
        return status;
    return value_give(
        count == 1 ? items[0] : value_mirrored_each(items, count, strategy->first), spread, error);
}

static enum sumac_status take_one_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    (void)context;
    (void)path;
    return value_bring_here(value_is_leaf_of_replicas(leaf) ? leaf->items[0] : leaf, mapped, error);
}

enum sumac_status on_device_take_one(
    const struct sumac_value *value, struct sumac_value **one, struct sumac_error *error)
{
    return value_map(value, take_one_leaf, NULL, one, error);
}

/* ---- public */

enum sumac_status sumac_replica_to_device(
    struct sumac_replica *replica, const struct sumac_value *value, struct sumac_value **placed,
    struct sumac_error *error)
{
    static const char call[] = "sumac_replica_to_device";
    struct sumac_value *own = NULL;

    if (replica == NULL || value == NULL || placed == NULL)
        return fail_for_null(
            error, call,
            replica == NULL ? "replica"
            : value == NULL ? "value"
                            : "placed");
    enum sumac_status status = sumac_value_select(value, replica->id, &own, error);
    if (status != SUMAC_OK)
        return status;
    status =
        replica->strategy->on_device == NULL
            ? sumac_value_to_host(own, placed, error)
            : on_device_place_like(replica->strategy, replica->index, NULL, own, placed, error);
    sumac_value_unref(own);
    return status;
}

/* Has a leaf items of replicas that there are? */
static enum sumac_status check_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = context;
    char where[160];

    if (value_is_leaf_of_replicas(leaf) && (uint64_t)leaf->first + leaf->count > strategy->in_sync)
        return fail_argument(
            error,
            "sumac_strategy_to_devices: the value%s%s has items of replicas %" PRIu32 " to %" PRIu64
            ", and the strategy has %" PRIu32,
            path == NULL ? "" : " at ", value_path_print(path, where, sizeof where), leaf->first,
            (uint64_t)leaf->first + leaf->count - 1, strategy->in_sync);
    (void)mapped;
    return SUMAC_OK;
}

static enum sumac_status distribute_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    struct sumac_strategy *strategy = context;
    struct sumac_value *items[SUMAC_REPLICAS_MAX];

    (void)path;
    if (!value_is_leaf_of_replicas(leaf))
        return on_device_spread(strategy, leaf, mapped, error);
    const enum sumac_status status = place_each(strategy, leaf, items, error);
    if (status != SUMAC_OK)
        return status;
    return value_give(
        leaf->kind == SUMAC_VALUE_MIRRORED
            ? value_mirrored_each(items, strategy->replicas, strategy->first)
            : sumac_value_per_replica(items, strategy->replicas, strategy->first),
        mapped, error);
}

enum sumac_status sumac_strategy_to_devices(
    struct sumac_strategy *strategy, const struct sumac_value *value, struct sumac_value **placed,
    struct sumac_error *error)
{
    static const char call[] = "sumac_strategy_to_devices";

    if (strategy == NULL || value == NULL || placed == NULL)
        return fail_for_null(
            error, call,
            strategy == NULL ? "strategy"
            : value == NULL  ? "value"
                             : "placed");
    enum sumac_status status = context_check_cross(strategy, call, error);
    if (status == SUMAC_OK)
        status = value_map(value, check_leaf, strategy, NULL, error);
    if (status != SUMAC_OK)
        return status;
    return strategy->on_device == NULL ? sumac_value_to_host(value, placed, error)
                                       : value_map(value, distribute_leaf, strategy, placed, error);
}
