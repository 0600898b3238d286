/* SPDX-License-Identifier: Apache-2.0 */
/* storage.c -- a variable's value and slots in this process, and how they are changed: by
 * lib/update's loops, in place where nobody else has them, else into others. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "dtype.h"
#include "error.h"

/* ---- made */

static struct sumac_value *
make_slot(const struct sumac_variable *variable, const struct sumac_value *value, uint32_t slot)
{
    const enum sumac_dtype dtype = update_slot_dtype(variable->dtype);
    void *elements;
    struct sumac_value *made = value_make_tensor(dtype, &variable->shape, &elements);

    assert(value->kind == SUMAC_VALUE_TENSOR);
    assert(slot < UPDATE_SLOTS_MAX);
    if (made != NULL)
        update_fill_slot(
            variable->function, slot, variable->dtype, &variable->hyperparameters,
            sumac_tensor_bytes(&value->tensor) / dtype_bytes(variable->dtype), elements);
    return made;
}

struct storage *
storage_create(const struct sumac_variable *variable, const struct sumac_value *initial)
{
    struct storage *storage = calloc(1, sizeof *storage);
    const uint32_t slots = update_slot_count(variable->function, &variable->hyperparameters);

    assert(initial->kind == SUMAC_VALUE_TENSOR);
    if (storage == NULL)
        return NULL;
    storage->value = sumac_value_copy(&initial->tensor);
    bool complete = storage->value != NULL;
    for (uint32_t i = 0; complete && i < slots; i++) {
        storage->slots[i] = make_slot(variable, storage->value, i);
        complete = storage->slots[i] != NULL;
    }
    if (complete)
        return storage;
    storage_destroy(storage);
    return NULL;
}

void storage_release(struct storage *storage)
{
    sumac_value_unref(storage->value);
    value_unref_all(storage->slots, UPDATE_SLOTS_MAX);
    *storage = (struct storage){.value = NULL};
}

void storage_destroy(struct storage *storage)
{
    if (storage == NULL)
        return;
    assert(storage->components == 0);
    storage_release(storage);
    free(storage);
}

/* ---- does the operand fit? */

static enum sumac_status fail_operand(
    const struct sumac_variable *variable, const char *call, const struct sumac_value *operand,
    struct sumac_error *error)
{
    char own[96], other[96], dense[96];
    const bool slices = operand->kind == SUMAC_VALUE_INDEXED_SLICES;
    const struct sumac_value *tensor = slices ? operand->items[0] : operand;

    (void)sumac_shape_print(&variable->shape, own, sizeof own);
    if (tensor->kind != SUMAC_VALUE_TENSOR)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE,
            "%s of %s, which is %s%s: the value is a %s; give a tensor of that, or slices", call,
            variable->name, sumac_dtype_name(variable->dtype), own,
            sumac_value_kind_name(tensor->kind));
    return fail_invalid(
        error, SUMAC_REASON_WRONG_SHAPE, "%s of %s, which is %s%s: the value is %s%s%s%s%s", call,
        variable->name, sumac_dtype_name(variable->dtype), own, slices ? "slices of " : "",
        slices ? sumac_shape_print(&operand->dense, dense, sizeof dense) : "",
        slices ? " with rows " : "", sumac_dtype_name(tensor->tensor.dtype),
        sumac_shape_print(&tensor->tensor.shape, other, sizeof other));
}

static int64_t index_at(const struct sumac_tensor *indices, uint64_t at)
{
    const void *const data = sumac_tensor_data(indices);

    assert(at < indices->shape.extent[0]);
    return indices->dtype == SUMAC_INT32 ? ((const int32_t *)data)[at]
                                         : ((const int64_t *)data)[at];
}

static enum sumac_status check_indices(
    const struct sumac_variable *variable, const char *call, const struct sumac_tensor *indices,
    struct sumac_error *error)
{
    for (uint64_t i = 0; i < indices->shape.extent[0]; i++)
        if ((uint64_t)index_at(indices, i) >= variable->shape.extent[0])
            return fail_invalid(
                error, SUMAC_REASON_WRONG_SHAPE,
                "%s of %s: there is no row %" PRId64 "; it has %" PRIu64 " rows, from 0 on", call,
                variable->name, index_at(indices, i), variable->shape.extent[0]);
    return SUMAC_OK;
}

static enum sumac_status check_rows(
    const struct sumac_variable *variable, const char *call, const struct sumac_value *slices,
    struct sumac_error *error)
{
    const struct sumac_tensor *rows = &slices->items[0]->tensor;
    struct sumac_shape shape = variable->shape;
    struct sumac_value *indices = NULL;

    assert(slices->items[1]->tensor.shape.rank == 1);
    if (shape.rank == 0 || rows->dtype != variable->dtype)
        return fail_operand(variable, call, slices, error);
    shape.extent[0] = slices->items[1]->tensor.shape.extent[0];
    if (!sumac_shape_equal(&shape, &rows->shape) ||
        !sumac_shape_equal(&slices->dense, &variable->shape))
        return fail_operand(variable, call, slices, error);
    enum sumac_status status = value_bring_here(slices->items[1], &indices, error);
    if (status == SUMAC_OK)
        status = check_indices(variable, call, &indices->tensor, error);
    sumac_value_unref(indices);
    return status;
}

enum sumac_status operand_check(
    const struct sumac_variable *variable, const char *call, const struct sumac_value *operand,
    bool by_rows, struct sumac_error *error)
{
    assert(call != NULL);
    if (by_rows && operand->kind == SUMAC_VALUE_INDEXED_SLICES)
        return check_rows(variable, call, operand, error);
    if (by_rows || operand->kind != SUMAC_VALUE_TENSOR ||
        operand->tensor.dtype != variable->dtype ||
        !sumac_shape_equal(&operand->tensor.shape, &variable->shape))
        return fail_operand(variable, call, operand, error);
    return SUMAC_OK;
}

/* ---- nobody else has it */

/* Of a value that only `storage` has: its bytes may be written. */
static bool is_own(const struct sumac_value *value)
{
    return atomic_load_explicit(&value->references, memory_order_acquire) == 1 &&
           sumac_buffer_is_unique(value->tensor.buffer);
}

/* As `value`, with other bytes: uninitialized, or the same. NULL: no memory. */
static struct sumac_value *make_like(const struct sumac_value *value, bool same)
{
    return same ? sumac_value_copy(&value->tensor)
                : sumac_value_tensor(value->tensor.dtype, value->tensor.shape, NULL);
}

/* A tensor that is assigned whole, and whose bytes nobody can write, is what is stored. */
static bool is_taken_over(const struct change *change)
{
    return change->function->number == UPDATE_ASSIGN &&
           change->operand->kind == SUMAC_VALUE_TENSOR &&
           sumac_buffer_is_unique(change->operand->tensor.buffer);
}

/* What `change` of the storage will write to. false: no memory. */
static bool aim(const struct storage *storage, const struct change *change, struct storage *targets)
{
    const bool same = change->operand->kind == SUMAC_VALUE_INDEXED_SLICES; /* other rows stay */

    assert(storage->components > 0);
    *targets = (struct storage){
        .value = is_taken_over(change)    ? sumac_value_ref(change->operand)
                 : is_own(storage->value) ? sumac_value_ref(storage->value)
                                          : make_like(storage->value, same)};
    bool complete = targets->value != NULL;
    for (uint32_t i = 0; complete && i < UPDATE_SLOTS_MAX && storage->slots[i] != NULL; i++) {
        /* a function may leave slots alone */
        targets->slots[i] = is_own(storage->slots[i]) ? sumac_value_ref(storage->slots[i])
                                                      : make_like(storage->slots[i], true);
        complete = targets->slots[i] != NULL;
    }
    if (!complete)
        storage_release(targets);
    return complete;
}

/* ---- changed */

static void *elements_of(const struct sumac_value *value)
{
    return value == NULL ? NULL : sumac_tensor_data(&value->tensor);
}

/* What its loops need beside the arrays, in the storage's next change. */
static void
prepare(const struct storage *storage, const struct change *change, struct update_slice *slice)
{
    const uint64_t step = storage->steps + change->function->counts_steps;
    struct update_hyperparameters now = *change->hyperparameters;

    assert(slice->function == change->function);
    if (update_schedule_is_any(&now.schedule))
        now.value[UPDATE_HYPERPARAMETER_LEARNING_RATE] =
            update_learning_rate(change->function, change->hyperparameters, storage->version);
    update_prepare(slice->function, slice->dtype, &now, step, slice);
}

void storage_slice(
    const struct sumac_variable *variable, const struct storage *storage,
    const struct change *change, const struct storage *targets, struct update_slice *slice)
{
    assert(change->operand->kind == SUMAC_VALUE_TENSOR);
    *slice = (struct update_slice){
        .function = change->function,
        .dtype = variable->dtype,
        .count = sumac_tensor_bytes(&storage->value->tensor) / dtype_bytes(variable->dtype),
        .value_out = elements_of(targets->value),
        .value_in = elements_of(storage->value),
        .gradient = elements_of(change->operand),
        .divisor = 1};
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX && targets->slots[i] != NULL; i++) {
        slice->slot_out[i] = elements_of(targets->slots[i]);
        slice->slot_in[i] = elements_of(storage->slots[i]);
    }
    prepare(storage, change, slice);
}

/* Occurrences of rows in the order of the rows, and of each in their own. */
struct occurrence {
    uint64_t row, place;
};

static int compare_occurrences(const void *a, const void *b)
{
    const struct occurrence *one = a, *other = b;

    if (one->row != other->row)
        return one->row < other->row ? -1 : 1;
    return one->place < other->place ? -1 : one->place > other->place;
}

/* Rows by index: targets have what the storage has, or are it. */
struct by_rows {
    struct occurrence *occurrences;
    struct update_row *rows;
};

static void change_rows(
    const struct sumac_variable *variable, const struct storage *storage,
    const struct storage *targets, const struct change *change, const struct by_rows *by)
{
    const struct sumac_tensor *operand = &change->operand->items[0]->tensor;
    const uint64_t count = operand->shape.extent[0], bytes = sumac_tensor_bytes(operand);
    const uint64_t row_bytes = count == 0 ? 0 : bytes / count;
    const uint64_t columns = row_bytes / dtype_bytes(variable->dtype);
    const uint64_t slot_row_bytes = columns * dtype_bytes(update_slot_dtype(variable->dtype));
    struct update_slice slice = {
        .function = change->function,
        .dtype = variable->dtype,
        .count = columns,
        .rows = by->rows,
        .row_count = (uint32_t)count,
        .divisor = 1};

    assert(count <= UINT32_MAX);
    for (uint64_t i = 0; i < count; i++) {
        const struct occurrence *from = &by->occurrences[i];
        struct update_row *row = &by->rows[i];
        *row = (struct update_row){
            .gradient = (const uint8_t *)sumac_tensor_data(operand) + from->place * row_bytes};
        row->at[0] = (uint8_t *)elements_of(targets->value) + from->row * row_bytes;
        for (uint32_t j = 0; j < UPDATE_SLOTS_MAX && targets->slots[j] != NULL; j++)
            row->at[1 + j] = (uint8_t *)elements_of(targets->slots[j]) + from->row * slot_row_bytes;
    }
    prepare(storage, change, &slice);
    if (count > 0 && columns > 0)
        update_run(&slice);
}

static void replace(struct sumac_value **value, struct sumac_value *other)
{
    sumac_value_unref(*value);
    *value = other;
}

static void do_change(
    const struct sumac_variable *variable, struct storage *storage, struct storage *targets,
    const struct change *change, const struct by_rows *by)
{
    struct update_slice slice;

    assert(storage->components > 0);
    if (targets->value != change->operand) /* it is no copy of anything any more */
        atomic_store(&targets->value->likeness, 0);
    if (by->rows != NULL)
        change_rows(variable, storage, targets, change, by);
    else if (targets->value != change->operand) {
        storage_slice(variable, storage, change, targets, &slice);
        if (slice.count > 0)
            update_run(&slice);
    }
    replace(&storage->value, targets->value);
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX; i++)
        replace(&storage->slots[i], targets->slots[i]);
    storage->steps += change->function->counts_steps;
    storage->version++;
}

/* Two components of the same storage: the second one is done with the first. */
static bool is_done(const struct sumac_variable *variable, uint32_t component)
{
    for (uint32_t i = 0; i < component; i++)
        if (variable->components[i].storage == variable->components[component].storage)
            return true;
    return false;
}

/* Of slices. false: no memory. */
static bool order(const struct sumac_value *operand, struct by_rows *by)
{
    *by = (struct by_rows){.rows = NULL};
    assert(operand->kind == SUMAC_VALUE_TENSOR || operand->kind == SUMAC_VALUE_INDEXED_SLICES);
    if (operand->kind != SUMAC_VALUE_INDEXED_SLICES)
        return true;
    const struct sumac_tensor *indices = &operand->items[1]->tensor;
    const uint64_t count = indices->shape.extent[0];
    assert(indices->shape.rank == 1);
    by->occurrences = calloc((size_t)count + 1, sizeof *by->occurrences);
    by->rows = calloc((size_t)count + 1, sizeof *by->rows);
    if (by->occurrences == NULL || by->rows == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++)
        by->occurrences[i] = (struct occurrence){.row = (uint64_t)index_at(indices, i), .place = i};
    qsort(by->occurrences, (size_t)count, sizeof *by->occurrences, compare_occurrences);
    return true;
}

static void forget(struct by_rows *by)
{
    free(by->occurrences);
    free(by->rows);
}

bool storage_change_alone(
    const struct sumac_variable *variable, struct storage *storage, const struct change *change)
{
    struct storage targets;
    struct by_rows by;

    assert(storage->components == 1);
    const bool done = order(change->operand, &by) && aim(storage, change, &targets);
    if (done)
        do_change(variable, storage, &targets, change, &by);
    forget(&by);
    return done;
}

/* The component has one of its own, with the values that it had. false: no memory. */
static bool part_from_others(struct component *component)
{
    struct storage *shared = component->storage, *own;

    assert(shared->components > 0);
    if (shared->components == 1)
        return true;
    own = calloc(1, sizeof *own);
    if (own == NULL)
        return false;
    *own = *shared;
    own->components = 1;
    (void)sumac_value_ref(own->value);
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX; i++)
        (void)sumac_value_ref(own->slots[i]);
    shared->components--;
    component->storage = own;
    return true;
}

/* All components, or only one, which has its own. false: no memory. */
static bool change_all_or_one(
    const struct sumac_variable *variable, const struct component *only,
    const struct change *change, const struct by_rows *by)
{
    struct storage targets[SUMAC_REPLICAS_MAX];
    const uint32_t first = only == NULL ? 0 : only->index;
    const uint32_t end = only == NULL ? variable->component_count : only->index + 1;
    bool aimed = true;
    uint32_t at = first;

    assert(end <= SUMAC_REPLICAS_MAX);
    for (; aimed && at < end; at++)
        if (only == NULL && is_done(variable, at))
            targets[at].value = NULL;
        else
            aimed = aim(variable->components[at].storage, change, &targets[at]);
    if (!aimed)
        at--; /* has none */
    for (uint32_t i = first; i < at; i++)
        if (targets[i].value != NULL && aimed)
            do_change(variable, variable->components[i].storage, &targets[i], change, by);
        else if (targets[i].value != NULL)
            storage_release(&targets[i]);
    return aimed;
}

enum sumac_status storage_change_here(
    struct sumac_variable *variable, struct component *only, const struct change *change,
    struct sumac_error *error)
{
    struct sumac_value *operand = NULL;
    struct change own = *change;
    struct by_rows by = {.rows = NULL};

    assert(only == NULL || only->variable == variable);
    const enum sumac_status status = value_bring_here(change->operand, &operand, error);
    if (status != SUMAC_OK)
        return status;
    own.operand = operand;
    const bool done = order(operand, &by) && (only == NULL || part_from_others(only)) &&
                      change_all_or_one(variable, only, &own, &by);
    forget(&by);
    sumac_value_unref(operand);
    return done ? SUMAC_OK : value_fail_for_memory(error);
}
