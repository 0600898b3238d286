/* SPDX-License-Identifier: Apache-2.0 */
/* storage_on_device.c -- components whose value and slots lie on their replicas' devices.
 *
 * Each component has a storage of its own. Components that were always written together are kin:
 * they have the same values. The device computes the functions that it has, for all components at
 * once, into memory that no value uses. The host computes other functions with lib/update's loops,
 * once for all kin: it reads the values from the device and sends each device the result. An
 * assigned tensor that is whole, and on the device already, stays there. New values replace the old
 * ones when all of them are whole.
 */
#include "variable.h"

#include <assert.h>
#include <stdlib.h>

#include "on_device.h"

/* ---- made */

static enum sumac_status place_storage(
    struct sumac_variable *variable, uint32_t index, const struct storage *here,
    struct storage *placed, struct sumac_error *error)
{
    struct sumac_strategy *strategy = variable->strategy;

    assert(placed->value == NULL);
    assert(here->value != NULL);
    enum sumac_status status = on_device_place(strategy, index, here->value, &placed->value, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < UPDATE_SLOTS_MAX && here->slots[i] != NULL; i++)
        status = on_device_place(strategy, index, here->slots[i], &placed->slots[i], error);
    placed->steps = here->steps;
    placed->version = here->version;
    return status;
}

enum sumac_status storage_on_device_create(
    struct sumac_variable *variable, uint32_t index, const struct storage *here,
    struct storage **storage, struct sumac_error *error)
{
    struct storage *made = calloc(1, sizeof *made);

    assert(variable->is_there);
    if (made == NULL)
        return value_fail_for_memory(error);
    const enum sumac_status status = place_storage(variable, index, here, made, error);
    if (status != SUMAC_OK) {
        storage_destroy(made);
        return status;
    }
    made->components = 1;
    *storage = made;
    return SUMAC_OK;
}

/* ---- changed */

/* What each component will have, … */
struct outcome {
    struct storage on_device;
    struct storage here; /* … of the first of kin what that is here, if it is computed here, … */
    struct sumac_value
        *operand; /* … and, there, what its device computes it of; NULL: it does not */
    struct device_update update;
};

static const struct sumac_value *
operand_of(const struct sumac_variable *variable, const struct change *change, uint32_t index)
{
    const struct sumac_value *operand = change->operand;

    assert(!value_is_leaf_of_replicas(operand) || operand->count == variable->component_count);
    return value_is_leaf_of_replicas(operand) ? operand->items[index] : operand;
}

/* Is a tensor assigned that lies there already, and that nobody can write? */
static bool
is_taken_over(const struct sumac_variable *variable, const struct change *change, uint32_t index)
{
    const struct sumac_value *operand = operand_of(variable, change, index);
    const struct sumac_tensor *own = &variable->components[index].storage->value->tensor;

    if (change->function->number != UPDATE_ASSIGN || operand->kind != SUMAC_VALUE_TENSOR ||
        !sumac_buffer_is_unique(operand->tensor.buffer))
        return false;
    const struct sumac_place at = sumac_buffer_place(operand->tensor.buffer);
    const struct sumac_place place = sumac_buffer_place(own->buffer);
    return at.kind == place.kind && at.device == place.device;
}

static void take_over(
    const struct sumac_variable *variable, const struct change *change, uint32_t index,
    struct storage *on_device)
{
    const struct storage *before = variable->components[index].storage;

    on_device->value = sumac_value_ref(operand_of(variable, change, index));
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX; i++)
        on_device->slots[i] = sumac_value_ref(before->slots[i]);
    on_device->steps = before->steps + change->function->counts_steps;
    on_device->version = before->version + 1;
}

/* ---- by the device */

static bool
is_the_devices(const struct sumac_variable *variable, const struct change *change, uint32_t index)
{
    const struct device *device = variable->strategy->own.devices[index];

    return operand_of(variable, change, index)->kind == SUMAC_VALUE_TENSOR &&
           device_has_update(device->ops, change->function, variable->dtype);
}

/* Memory for what comes of it; slots that the function does not have stay the component's. */
static enum sumac_status make_room(
    struct sumac_variable *variable, const struct change *change, uint32_t index,
    struct storage *on_device, struct storage *targets, struct sumac_error *error)
{
    const struct storage *before = variable->components[index].storage;
    const uint32_t slots = update_slot_count(change->function, change->hyperparameters);
    struct sumac_strategy *strategy = variable->strategy;

    enum sumac_status status =
        on_device_make(strategy, index, &before->value->tensor, &on_device->value, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < UPDATE_SLOTS_MAX; i++)
        if (i >= slots) {
            on_device->slots[i] = sumac_value_ref(before->slots[i]);
        } else {
            assert(before->slots[i] != NULL);
            status = on_device_make(
                strategy, index, &before->slots[i]->tensor, &on_device->slots[i], error);
            targets->slots[i] = on_device->slots[i];
        }
    targets->value = on_device->value;
    on_device->steps = before->steps + change->function->counts_steps;
    on_device->version = before->version + 1;
    return status;
}

static enum sumac_status
aim(struct sumac_variable *variable, const struct change *change, uint32_t index,
    struct outcome *outcome, struct sumac_error *error)
{
    struct change own = *change;
    struct storage targets = {.value = NULL};

    enum sumac_status status = on_device_place(
        variable->strategy, index, operand_of(variable, change, index), &outcome->operand, error);
    if (status == SUMAC_OK)
        status = make_room(variable, change, index, &outcome->on_device, &targets, error);
    own.operand = outcome->operand;
    if (status == SUMAC_OK)
        storage_slice(
            variable, variable->components[index].storage, &own, &targets, &outcome->update.slice);
    return status;
}

/* The first of the component's kin that its device computes, or that was computed here. */
static uint32_t find_kin(
    const struct sumac_variable *variable, const struct outcome *outcomes, uint32_t index,
    bool there)
{
    const uint64_t kin = variable->components[index].storage->kin;

    assert(kin <= variable->kins);
    for (uint32_t i = 0; i < index; i++)
        if (variable->components[i].storage->kin == kin &&
            (there ? outcomes[i].operand : outcomes[i].here.value) != NULL)
            return i;
    return index;
}

/* What is assigned is a copy; of others, what kin have is alike. */
static void
liken(const struct sumac_variable *variable, const struct change *change, struct outcome *outcomes)
{
    for (uint32_t i = 0; i < variable->component_count; i++) {
        struct sumac_value *made = outcomes[i].on_device.value;
        const uint32_t kin = find_kin(variable, outcomes, i, true);
        if (outcomes[i].operand == NULL)
            continue;
        if (change->function->number == UPDATE_ASSIGN)
            value_liken(made, outcomes[i].operand);
        else
            atomic_store(
                &made->likeness, kin == i ? value_new_likeness()
                                          : atomic_load(&outcomes[kin].on_device.value->likeness));
    }
}

/* All components' at once. */
static enum sumac_status compute_there(
    struct sumac_variable *variable, const struct change *change, struct outcome *outcomes,
    struct sumac_error *error)
{
    struct device_update *updates[SUMAC_REPLICAS_MAX];
    bool any = false;

    assert(variable->component_count == variable->strategy->replicas);
    for (uint32_t i = 0; i < variable->component_count; i++) {
        updates[i] = outcomes[i].operand == NULL ? NULL : &outcomes[i].update;
        any = any || updates[i] != NULL;
    }
    const enum sumac_status status =
        any ? on_device_update(variable->strategy, updates, error) : SUMAC_OK;
    if (status == SUMAC_OK)
        liken(variable, change, outcomes);
    return status;
}

/* ---- on the host */

static enum sumac_status
bring_here(const struct storage *storage, struct storage *here, struct sumac_error *error)
{
    const struct sumac_value *const *slots = value_lend(storage->slots);

    *here = (struct storage){.components = 1, .steps = storage->steps, .version = storage->version};
    enum sumac_status status = value_bring_here(storage->value, &here->value, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < UPDATE_SLOTS_MAX && slots[i] != NULL; i++)
        status = value_bring_here(slots[i], &here->slots[i], error);
    return status;
}

static enum sumac_status compute_here(
    struct sumac_variable *variable, const struct change *change, uint32_t index,
    struct storage *here, struct sumac_error *error)
{
    struct change own = *change;
    struct sumac_value *operand = NULL;

    enum sumac_status status =
        value_bring_here(operand_of(variable, change, index), &operand, error);
    own.operand = operand;
    if (status == SUMAC_OK)
        status = bring_here(variable->components[index].storage, here, error);
    if (status == SUMAC_OK && !storage_change_alone(variable, here, &own))
        status = value_fail_for_memory(error);
    sumac_value_unref(operand);
    return status;
}

/* ---- all of it */

static enum sumac_status prepare(
    struct sumac_variable *variable, const struct change *change, uint32_t index,
    struct outcome *outcomes, struct sumac_error *error)
{
    if (is_taken_over(variable, change, index)) {
        take_over(variable, change, index, &outcomes[index].on_device);
        return SUMAC_OK;
    }
    if (is_the_devices(variable, change, index))
        return aim(variable, change, index, &outcomes[index], error);
    const uint32_t kin = find_kin(variable, outcomes, index, false);
    enum sumac_status status = SUMAC_OK;
    if (kin == index)
        status = compute_here(variable, change, index, &outcomes[index].here, error);
    return status == SUMAC_OK
               ? place_storage(
                     variable, index, &outcomes[kin].here, &outcomes[index].on_device, error)
               : status;
}

static void commit(struct component *component, struct storage *on_device, uint64_t kin)
{
    struct storage *storage = component->storage;

    assert(on_device->value != NULL);
    assert(storage->components == 1);
    storage_release(storage);
    *storage = *on_device;
    storage->components = 1;
    storage->kin = kin;
    *on_device = (struct storage){.value = NULL};
}

static enum sumac_status change_on_device(
    struct sumac_variable *variable, struct component *only, const struct change *change,
    struct sumac_error *error)
{
    const uint32_t first = only == NULL ? 0 : only->index;
    const uint32_t end = only == NULL ? variable->component_count : only->index + 1;
    struct outcome *outcomes = calloc(variable->component_count, sizeof *outcomes);
    enum sumac_status status = outcomes == NULL ? value_fail_for_memory(error) : SUMAC_OK;

    assert(variable->is_there);
    for (uint32_t i = first; status == SUMAC_OK && i < end; i++)
        status = prepare(variable, change, i, outcomes, error);
    if (status == SUMAC_OK)
        status = compute_there(variable, change, outcomes, error);
    if (status == SUMAC_OK && only != NULL)
        variable->kins++;
    for (uint32_t i = first; status == SUMAC_OK && i < end; i++)
        commit(
            &variable->components[i], &outcomes[i].on_device,
            only != NULL ? variable->kins : variable->components[i].storage->kin);
    if (replicas_are_given_up(&variable->strategy->own)) /* their threads may still read it */
        return status;
    for (uint32_t i = first; outcomes != NULL && i < end; i++) {
        storage_release(&outcomes[i].here);
        storage_release(&outcomes[i].on_device);
        sumac_value_unref(outcomes[i].operand);
    }
    free(outcomes);
    return status;
}

enum sumac_status storage_change(
    struct sumac_variable *variable, struct component *only, const struct change *change,
    struct sumac_error *error)
{
    return variable->is_there ? change_on_device(variable, only, change, error)
                              : storage_change_here(variable, only, change, error);
}
