/* SPDX-License-Identifier: Apache-2.0 */
/* target_update.c -- the update functions' loops themselves, as a ps calls them for a whole shard.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "target.h"
#include "update.h"

static struct {
    const struct target_variable *variable;
    const struct update_function *function;
    struct update_hyperparameters hyperparameters;
    void *value;
    void *slots[UPDATE_SLOTS_MAX];
    uint64_t pushes;
} now;

static enum sumac_status open_target(struct sumac_error *error)
{
    (void)error;
    return SUMAC_OK;
}

static void close_target(void) {}

static enum sumac_status
read_hyperparameters(const struct target_variable *variable, struct sumac_error *error)
{
    wire_hyperparameter given[UPDATE_HYPERPARAMETERS_MAX];
    wire_hyperparameter *pointers[UPDATE_HYPERPARAMETERS_MAX];
    wire_function message = WIRE_FUNCTION_INIT;

    message.hyperparameters = pointers;
    for (size_t i = 0; i < variable->hyperparameter_count; i++) {
        const uint32_t number = update_hyperparameter_find(variable->hyperparameters[i].name);
        if (number == 0 || i == UPDATE_HYPERPARAMETERS_MAX)
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
                "no function has a hyperparameter %s", variable->hyperparameters[i].name);
        given[i] = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        given[i].name = number;
        given[i].value = variable->hyperparameters[i].value;
        pointers[i] = &given[i];
        message.n_hyperparameters++;
    }
    enum sumac_status status =
        update_hyperparameters_read(now.function, NULL, &message, &now.hyperparameters, error);
    if (status == SUMAC_OK)
        status = update_hyperparameters_check(
            now.function, variable->initial->dtype, &now.hyperparameters, error);
    return status;
}

static size_t count_slots(void) { return update_slot_count(now.function, &now.hyperparameters); }

static enum sumac_dtype slot_dtype(void) { return update_slot_dtype(now.variable->initial->dtype); }

static enum sumac_status allocate(const struct case_tensor *initial, struct sumac_error *error)
{
    const size_t slot_bytes = (size_t)initial->elements * sumac_dtype_bytes(slot_dtype());

    now.value = malloc((size_t)initial->bytes + 1);
    bool complete = now.value != NULL;
    for (uint32_t i = 0; i < count_slots(); i++) {
        now.slots[i] = malloc(slot_bytes + 1);
        complete = complete && now.slots[i] != NULL;
        if (now.slots[i] != NULL)
            update_fill_slot(
                now.function, i, initial->dtype, &now.hyperparameters, initial->elements,
                now.slots[i]);
    }
    if (!complete)
        return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory");
    memcpy(now.value, initial->data, (size_t)initial->bytes);
    return SUMAC_OK;
}

static enum sumac_status create(const struct target_variable *variable, struct sumac_error *error)
{
    now.variable = variable;
    now.function = update_find_by_name(variable->function);
    if (now.function == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNKNOWN_FUNCTION,
            "unknown update function \"%s\"", variable->function);
    enum sumac_status status =
        update_check(now.function, now.function, variable->initial->dtype, variable->name, error);
    if (status == SUMAC_OK)
        status = read_hyperparameters(variable, error);
    return status == SUMAC_OK ? allocate(variable->initial, error) : status;
}

static void delete_variable(void)
{
    free(now.value);
    for (size_t i = 0; i < UPDATE_SLOTS_MAX; i++)
        free(now.slots[i]);
    memset(&now, 0, sizeof now);
}

/* A ps and its clients refuse what does not fit before a loop sees it. */
static enum sumac_status refuse(struct sumac_error *error)
{
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE, "a gradient does not fit %s",
        now.variable->name);
}

static bool rows_fit(const struct case_tensor *values, const struct case_tensor *indices)
{
    struct sumac_shape shape = now.variable->initial->shape;
    const int64_t *const rows = indices->data;

    if (shape.rank == 0 || indices->dtype != SUMAC_INT64 ||
        values->dtype != now.variable->initial->dtype)
        return false;
    for (uint64_t i = 0; i < indices->elements; i++) {
        if ((uint64_t)rows[i] >= shape.extent[0])
            return false;
    }
    shape.extent[0] = indices->elements;
    return sumac_shape_equal(&values->shape, &shape);
}

/* As the lane does with rows of one message. */
static enum sumac_status push_rows(
    const struct case_tensor *values, const struct case_tensor *indices, struct sumac_error *error)
{
    const struct case_tensor *initial = now.variable->initial;

    if (!rows_fit(values, indices))
        return refuse(error);
    const uint32_t count = (uint32_t)indices->elements;
    const uint64_t columns = initial->elements / initial->shape.extent[0];
    const uint64_t row_bytes = columns * sumac_dtype_bytes(initial->dtype);
    uint64_t *keys = calloc(2 * (size_t)count + 1, sizeof *keys);
    struct update_row *rows = calloc((size_t)count + 1, sizeof *rows);
    struct update_slice slice = {
        .function = now.function,
        .dtype = initial->dtype,
        .count = columns,
        .rows = rows,
        .row_count = count,
        .divisor = 1};

    if (keys == NULL || rows == NULL) {
        free(keys);
        free(rows);
        return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory");
    }
    for (uint32_t i = 0; i < count; i++)
        keys[i] = update_row_key((uint64_t)((const int64_t *)indices->data)[i], i);
    update_rows_order(keys, keys + count, count);
    for (uint32_t i = 0; i < count; i++) {
        const size_t at = (size_t)(update_row_of(keys[i]) * row_bytes);
        rows[i].at[0] = (uint8_t *)now.value + at;
        for (uint32_t j = 0; j < count_slots(); j++)
            rows[i].at[1 + j] = (uint8_t *)now.slots[j] + at / sumac_dtype_bytes(initial->dtype) *
                                                              sumac_dtype_bytes(slot_dtype());
        rows[i].gradient = (const uint8_t *)values->data + update_place_of(keys[i]) * row_bytes;
    }
    update_prepare(now.function, slice.dtype, &now.hyperparameters, ++now.pushes, &slice);
    update_run(&slice);
    free(keys);
    free(rows);
    return SUMAC_OK;
}

static enum sumac_status push_dense(const struct case_tensor *gradient, struct sumac_error *error)
{
    const struct case_tensor *initial = now.variable->initial;
    const bool fits =
        gradient->dtype == initial->dtype && sumac_shape_equal(&gradient->shape, &initial->shape);
    struct update_slice slice = {
        .function = now.function,
        .dtype = gradient->dtype,
        .count = gradient->elements,
        .value_out = now.value,
        .value_in = now.value,
        .gradient = gradient->data};

    if (!fits)
        return refuse(error);
    for (uint32_t i = 0; i < count_slots(); i++) {
        slice.slot_out[i] = now.slots[i];
        slice.slot_in[i] = now.slots[i];
    }
    update_prepare(now.function, slice.dtype, &now.hyperparameters, ++now.pushes, &slice);
    update_run(&slice);
    return SUMAC_OK;
}

static enum sumac_status read_value(void *value, struct sumac_error *error)
{
    (void)error;
    memcpy(value, now.value, (size_t)now.variable->initial->bytes);
    return SUMAC_OK;
}

static const void *find_slot(const char *name)
{
    for (uint32_t i = 0; i < count_slots(); i++) {
        if (strcmp(now.function->slot_names[i], name) == 0)
            return now.slots[i];
    }
    return NULL;
}

const struct target target_loops = {
    .open = open_target,
    .close = close_target,
    .create = create,
    .delete = delete_variable,
    .push = push_dense,
    .push_rows = push_rows,
    .read = read_value,
    .slots = count_slots,
    .slot_dtype = slot_dtype,
    .slot = find_slot};
