/* SPDX-License-Identifier: Apache-2.0 */
/* target_update.c -- the update functions' loops themselves, as a ps calls them for a whole shard.
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "target.h"
#include "update.h"

const bool target_checks_gradients = false; /* the lane does, before it calls a loop */
const bool target_shows_slots = true;

static struct {
    const struct target_variable *variable;
    const struct update_function *function;
    struct update_hyperparameters hyperparameters;
    void *value;
    void *slots[UPDATE_SLOTS_MAX];
    uint64_t pushes;
} now;

enum sumac_status target_open(struct sumac_error *error)
{
    (void)error;
    return SUMAC_OK;
}

void target_close(void) {}

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

/* Slots begin as zeros. */
static enum sumac_status allocate(const struct case_tensor *initial, struct sumac_error *error)
{
    const size_t bytes = initial->bytes > 0 ? (size_t)initial->bytes : 1;

    now.value = malloc(bytes);
    bool complete = now.value != NULL;
    for (uint32_t i = 0; i < now.function->slot_count; i++) {
        now.slots[i] = calloc(1, bytes);
        complete = complete && now.slots[i] != NULL;
    }
    if (!complete)
        return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory");
    memcpy(now.value, initial->data, (size_t)initial->bytes);
    return SUMAC_OK;
}

enum sumac_status target_create(const struct target_variable *variable, struct sumac_error *error)
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

void target_delete(void)
{
    free(now.value);
    for (size_t i = 0; i < UPDATE_SLOTS_MAX; i++)
        free(now.slots[i]);
    memset(&now, 0, sizeof now);
}

enum sumac_status target_push(const struct case_tensor *gradient, struct sumac_error *error)
{
    (void)error;
    struct update_slice slice = {
        .function = now.function,
        .dtype = gradient->dtype,
        .count = gradient->elements,
        .value_out = now.value,
        .value_in = now.value,
        .gradient = gradient->data};

    for (uint32_t i = 0; i < now.function->slot_count; i++) {
        slice.slot_out[i] = now.slots[i];
        slice.slot_in[i] = now.slots[i];
    }
    update_prepare(now.function, slice.dtype, &now.hyperparameters, ++now.pushes, &slice);
    update_run(&slice);
    return SUMAC_OK;
}

enum sumac_status target_read(void *value, struct sumac_error *error)
{
    (void)error;
    memcpy(value, now.value, (size_t)now.variable->initial->bytes);
    return SUMAC_OK;
}

size_t target_slots(void) { return now.function->slot_count; }

const void *target_slot(const char *name)
{
    for (uint32_t i = 0; i < now.function->slot_count; i++) {
        if (strcmp(now.function->slot_names[i], name) == 0)
            return now.slots[i];
    }
    return NULL;
}
