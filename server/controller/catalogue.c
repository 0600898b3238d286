/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c -- the variables, as the controller has them: made, found by name or id, said in a
 * message. */
#include "catalogue.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"
#include "controller_orders.h"

struct controller_variable *
controller_variable_find(const struct controller *controller, const char *name)
{
    return key_map_get(&controller->variables_by_name, name, strlen(name));
}

struct controller_variable *
controller_variable_by_id(const struct controller *controller, uint64_t id)
{
    return id_map_get(&controller->variables_by_id, id);
}

/* ---- making one ---- */

static uint64_t row_count(const struct sumac_shape *shape)
{
    return shape->rank == 0 ? 1 : shape->extent[0];
}

static uint64_t row_bytes(const struct controller_variable *variable)
{
    const struct sumac_shape *shape = &variable->definition.shape;
    uint64_t bytes = sumac_dtype_bytes(variable->definition.dtype);

    for (uint32_t axis = 1; axis < shape->rank && shape->extent[0] > 0; axis++)
        bytes *= shape->extent[axis]; /* fits: the rows of it do */
    return bytes;
}

static uint64_t shard_bytes(const struct controller_variable *variable, uint32_t shard)
{
    const uint64_t rows = row_count(&variable->definition.shape);

    assert(shard < variable->shard_count);
    return placement_rows(rows, variable->shard_count, shard).count * row_bytes(variable);
}

/* Of the shard's values and slots. */
static uint64_t state_bytes(const struct controller_variable *variable, uint32_t shard)
{
    const struct definition *definition = &variable->definition;
    const uint64_t slots = update_slot_count(definition->function, &definition->hyperparameters);
    const uint64_t widens = sumac_dtype_bytes(update_slot_dtype(definition->dtype)) /
                            sumac_dtype_bytes(definition->dtype);

    return shard_bytes(variable, shard) * (1 + slots * widens);
}

/* The shards take their numbers and places; NULL: by the rule that ps 0 was started with. */
static void
place(struct controller *controller, struct controller_variable *variable, const uint8_t *places)
{
    const bool assigned = definition_is_assigned(&variable->definition);

    assert(controller->ps_count > 0);
    variable->shards_before = controller->shards_made;
    controller->shards_made += variable->shard_count;
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        const uint32_t ps = places != NULL ? places[i]
                            : controller->config->places_by_bytes
                                ? placement_least_ps(controller->placed_bytes, controller->ps_count)
                                : placement_next_ps(&controller->turns, controller->ps_count);
        assert(ps < controller->ps_count);
        variable->places[i] = (uint8_t)ps;
        controller->placed_bytes[ps] += state_bytes(variable, i);
        if (assigned && shard_bytes(variable, i) > 0)
            controller_mask_add(&variable->unassigned, ps);
    }
    variable->turns = controller->turns;
}

/* So that it is found. False: no memory. */
static bool enlist(struct controller *controller, struct controller_variable *variable)
{
    assert(controller_variable_by_id(controller, variable->id) == NULL);
    variable->by_name = (struct key_entry){
        .key = variable->name, .key_bytes = strlen(variable->name), .value = variable};
    if (!id_map_put(&controller->variables_by_id, variable->id, variable))
        return false;
    if (!key_map_put(&controller->variables_by_name, &variable->by_name)) {
        id_map_remove(&controller->variables_by_id, variable->id);
        return false;
    }
    LIST_APPEND(&controller->variables, variable, in_controller);
    controller->variable_count++;
    return true;
}

static enum sumac_status no_memory(const char *name, struct sumac_error *error)
{
    return fail_for_memory(error, "%s: ps 0 has no memory for another variable", name);
}

static enum sumac_status check(
    const struct controller *controller, const char *name, const struct definition *definition,
    uint32_t fresh, uint64_t *shard_count, struct sumac_error *error)
{
    struct sumac_error cause = {0};
    const enum sumac_status status = placement_shard_count(
        &definition->partitioner, &definition->shape, definition->dtype, shard_count, &cause);

    if (status != SUMAC_OK)
        return fail(error, status, cause.reason, "%.200s: %s", name, cause.text);
    assert(controller->variable_count <= CONTROLLER_VARIABLES_MAX);
    if (fresh > CONTROLLER_VARIABLES_MAX - controller->variable_count)
        return fail_for_memory(
            error, "%s: there are %u variables already, the most there may be", name,
            controller->variable_count + fresh - 1);
    if (*shard_count > PLACEMENT_SHARDS_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSUPPORTED,
            "%s: the partitioner makes %" PRIu64 " shards, at most %u may be", name, *shard_count,
            PLACEMENT_SHARDS_MAX);
    return SUMAC_OK;
}

enum sumac_status controller_variable_check(
    const struct controller *controller, const char *name, const struct definition *definition,
    uint32_t fresh, struct sumac_error *error)
{
    uint64_t shard_count = 0;

    return check(controller, name, definition, fresh, &shard_count, error);
}

/* With its name, and not found yet. */
static enum sumac_status allocate(
    struct controller *controller, const char *name, uint64_t shard_count,
    struct controller_variable **variable, struct sumac_error *error)
{
    const size_t fixed = sizeof **variable;
    const size_t name_bytes = strlen(name) + 1;
    const size_t bytes = fixed + name_bytes + shard_count;
    struct controller_variable *made = memory_take_zeroed(controller->memory, bytes);

    assert(shard_count <= PLACEMENT_SHARDS_MAX);
    if (made == NULL)
        return no_memory(name, error);
    memcpy((char *)made + fixed, name, name_bytes);
    made->row.kind = CONTROLLER_ROW_VARIABLE;
    made->bytes = bytes;
    made->name = (char *)made + fixed;
    made->places = (uint8_t *)made + fixed + name_bytes;
    made->shard_count = (uint32_t)shard_count;
    *variable = made;
    return SUMAC_OK;
}

enum sumac_status controller_variable_make(
    struct controller *controller, const char *name, const struct definition *definition,
    const uint8_t *places, struct controller_variable **variable, struct sumac_error *error)
{
    assert(controller_variable_find(controller, name) == NULL);
    uint64_t shard_count = 0;
    enum sumac_status status = check(controller, name, definition, 1, &shard_count, error);
    if (status == SUMAC_OK)
        status = allocate(controller, name, shard_count, variable, error);
    if (status != SUMAC_OK)
        return status;
    (*variable)->definition = *definition;
    (*variable)->id = ++controller->variables_made;
    if (!enlist(controller, *variable)) {
        memory_give(controller->memory, *variable, (*variable)->bytes);
        *variable = NULL;
        return no_memory(name, error);
    }
    place(controller, *variable, places);
    controller_row_changed(controller, &(*variable)->row);
    return SUMAC_OK;
}

enum sumac_status controller_variable_beside(
    const struct controller *controller, const wire_variable *wanted, uint32_t *ps,
    struct sumac_error *error)
{
    const char *const beside = wanted->colocate_with;
    uint64_t shard;

    assert(beside[0] != '\0');
    if (!text_is_utf8(beside, strlen(beside)) || text_has_control(beside, strlen(beside)))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "%.200s: the name that it is to lie beside is not UTF-8, or has a control character",
            wanted->name);
    const size_t name_bytes = definition_shard_name(beside, &shard);
    const struct controller_variable *variable =
        key_map_get(&controller->variables_by_name, beside, name_bytes);
    if (variable == NULL || shard >= variable->shard_count)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
            "%.200s: it is to lie beside %.200s, and there is no such %s", wanted->name, beside,
            variable == NULL ? "variable" : "shard of it");
    *ps = variable->places[shard];
    assert(*ps < controller->ps_count);
    return SUMAC_OK;
}

enum sumac_status controller_variable_compare(
    const struct controller *controller, const struct controller_variable *variable,
    const wire_variable *wanted, const struct definition *definition, struct sumac_error *error)
{
    uint32_t ps = 0;
    enum sumac_status status =
        definition_compare(wanted->name, &variable->definition, definition, error);

    assert(variable->shard_count > 0);
    if (status == SUMAC_OK && wanted->colocate_with[0] != '\0')
        status = controller_variable_beside(controller, wanted, &ps, error);
    if (status != SUMAC_OK || wanted->colocate_with[0] == '\0')
        return status;
    for (uint32_t i = 0; i < variable->shard_count; i++)
        if (variable->places[i] != ps)
            return fail(
                error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
                "%.200s exists on ps %u, this create says colocate_with %.200s, which is on ps "
                "%" PRIu32,
                wanted->name, variable->places[i], wanted->colocate_with, ps);
    return SUMAC_OK;
}

enum sumac_status controller_variable_find_or_make(
    struct controller *controller, const wire_variable *wanted,
    struct controller_variable **variable, struct sumac_error *error)
{
    struct definition definition;
    enum sumac_status status = definition_read(wanted, &controller->functions, &definition, error);

    if (status != SUMAC_OK)
        return status;
    *variable = controller_variable_find(controller, wanted->name);
    if (*variable != NULL)
        return controller_variable_compare(controller, *variable, wanted, &definition, error);
    uint8_t beside[PLACEMENT_SHARDS_MAX];
    const uint8_t *places = NULL;
    if (wanted->colocate_with[0] != '\0') {
        uint32_t ps = 0;
        status = controller_variable_beside(controller, wanted, &ps, error);
        memset(beside, (int)ps, sizeof beside);
        places = beside;
    }
    if (status == SUMAC_OK)
        status = controller_variable_make(
            controller, wanted->name, &definition, places, variable, error);
    if (status != SUMAC_OK)
        return status;
    (void)controller_order_variable(controller, *variable);
    return SUMAC_OK;
}

/* ---- unmaking it ---- */

void controller_variable_hide(struct controller *controller, struct controller_variable *variable)
{
    assert(variable->state == CONTROLLER_VARIABLE_DELETING);
    assert(controller_variable_find(controller, variable->name) == variable);
    key_map_remove(&controller->variables_by_name, &variable->by_name);
}

void controller_variable_free(struct controller *controller, struct controller_variable *variable)
{
    assert(variable->state == CONTROLLER_VARIABLE_DELETING);
    assert(variable->orders == 0);
    assert(controller->variable_count > 0);
    assert(variable->waiting.first == NULL);
    for (uint32_t i = 0; i < variable->shard_count; i++)
        controller->placed_bytes[variable->places[i]] -= state_bytes(variable, i);
    id_map_remove(&controller->variables_by_id, variable->id);
    LIST_REMOVE(&controller->variables, variable, in_controller);
    controller->variable_count--;
    controller_row_gone(controller, &variable->row);
    memory_give(controller->memory, variable, variable->bytes);
}

/* ---- saying it ---- */

static void list_shards(
    struct controller *controller, const struct controller_variable *variable,
    wire_variable *message)
{
    wire_shard *messages = out_take(controller->out, variable->shard_count * sizeof *messages);
    wire_shard **pointers = out_take(controller->out, variable->shard_count * sizeof *pointers);

    if (messages == NULL || pointers == NULL)
        return;
    const uint64_t rows = row_count(&variable->definition.shape);
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        const struct sumac_range range = placement_rows(rows, variable->shard_count, i);
        pointers[i] = &messages[i];
        messages[i] = (wire_shard)WIRE_SHARD_INIT;
        messages[i].shard_id = variable->shards_before + i + 1;
        messages[i].layout_epoch = 1;
        messages[i].ps = variable->places[i];
        messages[i].first_row = range.first;
        messages[i].rows = range.count;
        messages[i].bytes = shard_bytes(variable, i);
    }
    message->shards = pointers;
    message->n_shards = variable->shard_count;
}

const wire_variable *controller_variable_definition(
    struct controller *controller, const struct controller_variable *variable)
{
    wire_variable *message = arena_take(controller->out->arena, sizeof *message);

    if (message == NULL)
        return NULL;
    *message = (wire_variable)WIRE_VARIABLE_INIT;
    message->name = (char *)variable->name;
    return definition_write(&variable->definition, controller->out->arena, message) ? message
                                                                                    : NULL;
}

wire_variable *controller_variable_message(
    struct controller *controller, const struct controller_variable *variable)
{
    wire_variable *message = OUT_MESSAGE(controller->out, variable);

    message->name = out_copy(controller->out, variable->name, strlen(variable->name) + 1);
    message->variable_id = variable->id;
    list_shards(controller, variable, message);
    message->published = variable->state == CONTROLLER_VARIABLE_PUBLISHED;
    controller->out->is_short |=
        !definition_write(&variable->definition, controller->out->arena, message);
    return message;
}
