/* SPDX-License-Identifier: Apache-2.0 */
/* create_many.c -- one Create for many variables: all are checked before any is made, and the
 * answer waits until every one is published. It has as many of them, from the first on, as fit into
 * one message; whoever lacks some asks for the rest.
 */
#include "catalogue.h"

#include <assert.h>
#include <string.h>

#include "error.h"

/* Of one answer, if it has more than one variable. */
#define ANSWER_BYTES_MAX 262144u

/* ---- before any is made ---- */

/* Can this one be made, or is it there already? */
static enum sumac_status check_one(
    struct controller *controller, const wire_variable *wanted, uint32_t *fresh,
    struct sumac_error *error)
{
    struct definition definition;
    const enum sumac_status status =
        definition_read(wanted, &controller->functions, &definition, error);

    if (status != SUMAC_OK)
        return status;
    if (definition_is_assigned(&definition))
        return fail_invalid(
            error, SUMAC_REASON_BAD_INITIALIZER,
            "%s is to be assigned by its creator: create it in a call of its own", wanted->name);
    const struct controller_variable *variable = controller_variable_find(controller, wanted->name);
    if (variable != NULL)
        return controller_variable_compare(controller, variable, wanted, &definition, error);
    uint32_t ps;
    if (wanted->colocate_with[0] != '\0' &&
        controller_variable_beside(controller, wanted, &ps, error) != SUMAC_OK)
        return error->status;
    ++*fresh;
    return controller_variable_check(controller, wanted->name, &definition, *fresh, error);
}

/* A name that is there twice is found by a map of those before it. */
static enum sumac_status check_names(
    struct controller *controller, const wire_create_request *request, struct sumac_error *error)
{
    struct key_map names;
    struct key_entry *entries =
        arena_take(controller->out->arena, request->n_variables * sizeof *entries);
    const char *twice = NULL;
    bool whole = entries != NULL;

    key_map_init(&names, controller->memory);
    for (size_t i = 0; whole && twice == NULL && i < request->n_variables; i++) {
        char *name = request->variables[i]->name;
        if (key_map_get(&names, name, strlen(name)) != NULL)
            twice = name;
        entries[i] = (struct key_entry){.key = name, .key_bytes = strlen(name), .value = name};
        whole = key_map_put(&names, &entries[i]);
    }
    key_map_deinit(&names);
    if (twice != NULL)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "create names %s twice in one call", twice);
    if (whole)
        return SUMAC_OK;
    return fail_for_memory(
        error, "ps 0 has no memory for a create of %zu variables", request->n_variables);
}

static enum sumac_status check_all(
    struct controller *controller, const wire_create_request *request, struct sumac_error *error)
{
    uint32_t fresh = 0;

    if (request->variable != NULL)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "create names one variable, and %zu beside it: name all of them in the list",
            request->n_variables);
    if (request->n_variables > WIRE_CREATE_VARIABLES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "create names %zu variables, and %u are the most of one call: create them in several",
            request->n_variables, WIRE_CREATE_VARIABLES_MAX);
    enum sumac_status status = SUMAC_OK;
    for (size_t i = 0; status == SUMAC_OK && i < request->n_variables; i++)
        status = check_one(controller, request->variables[i], &fresh, error);
    if (status == SUMAC_OK)
        status = check_names(controller, request, error);
    if (status == SUMAC_OK && controller->orders_pool.used + fresh > CONTROLLER_ORDERS_MAX)
        status = fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%zu orders wait for the ps already, and %u are the most: create %u variables later",
            controller->orders_pool.used, CONTROLLER_ORDERS_MAX, fresh);
    return status;
}

/* ---- waiting, and the answer ---- */

static size_t bytes_of(const struct controller_variable *variable)
{
    return DEFINITION_VARIABLE_BYTES_MAX + strlen(variable->name) +
           (size_t)variable->shard_count * DEFINITION_SHARD_BYTES_MAX;
}

/* As many as fit, one at least. All are published. */
static wire_create_reply *pack(struct controller *controller, const struct controller_list *list)
{
    wire_create_reply *reply = OUT_MESSAGE(controller->out, create_reply);
    wire_variable **messages = out_take(controller->out, list->count * sizeof *messages);
    size_t bytes = 0;

    assert(list->at == list->count);
    reply->variables = messages;
    for (uint32_t i = 0; i < list->count && !controller->out->is_short; i++) {
        const struct controller_variable *variable =
            controller_variable_by_id(controller, list->ids[i]);
        bytes += bytes_of(variable);
        if (i > 0 && bytes > ANSWER_BYTES_MAX)
            break;
        wire_variable *message = controller_variable_message(controller, variable);
        if (i > 0 && controller->out->is_short) {
            controller->out->is_short = false; /* the answer has those before it */
            break;
        }
        messages[reply->n_variables++] = message;
    }
    return reply;
}

/* NULL: it is gone. */
static struct controller_variable *
at(const struct controller *controller, const struct controller_list *list, uint32_t i)
{
    assert(i < list->count);
    struct controller_variable *variable = controller_variable_by_id(controller, list->ids[i]);
    return variable == NULL || variable->state == CONTROLLER_VARIABLE_DELETING ? NULL : variable;
}

/* The first, from where the list had come to, that is not published yet; NULL: there is none, or
 * one is gone. Each is looked at once: the answer finds those that were deleted after they were
 * published. */
static struct controller_variable *
awaited(const struct controller *controller, struct controller_list *list)
{
    for (; list->at < list->count; list->at++) {
        struct controller_variable *variable = at(controller, list, list->at);
        if (variable == NULL || variable->state != CONTROLLER_VARIABLE_PUBLISHED)
            return variable;
    }
    return NULL;
}

/* The first that is gone; count: all are there. */
static uint32_t first_gone(const struct controller *controller, const struct controller_list *list)
{
    uint32_t i = 0;

    while (i < list->count && at(controller, list, i) != NULL)
        i++;
    return i;
}

static void answer(struct controller *controller, uint64_t call, const struct controller_list *list)
{
    const uint32_t gone = first_gone(controller, list);

    if (gone < list->count) {
        controller_fail(
            controller, call, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
            "variable number %u of the %u of this create was deleted while the others were made: "
            "create them again",
            gone + 1, list->count);
        return;
    }
    controller_reply_or_fail(controller, call, &pack(controller, list)->base);
}

bool controller_list_go_on(struct controller *controller, struct controller_call *call)
{
    assert(call->list != NULL);
    struct controller_variable *variable = awaited(controller, call->list);
    if (variable == NULL) {
        answer(controller, call->call, call->list);
        return true;
    }
    if (variable != call->variable) {
        LIST_REMOVE(&call->variable->waiting, call, of_variable);
        call->variable = variable;
        LIST_APPEND(&variable->waiting, call, of_variable);
    }
    return false;
}

bool controller_list_has(const struct controller_list *list, uint64_t id)
{
    /* Those before it are published. */
    for (uint32_t i = list->at; i < list->count; i++)
        if (list->ids[i] == id)
            return true;
    return false;
}

/* ---- the request ---- */

/* NULL: the call was failed; what has been made stays, and is found by the same call again. */
static struct controller_list *
make_all(struct controller *controller, uint64_t call, const wire_create_request *request)
{
    const uint32_t count = (uint32_t)request->n_variables;
    struct sumac_error error = {0};
    struct controller_list *list =
        memory_take(controller->memory, sizeof *list + count * sizeof list->ids[0]);

    if (list == NULL) {
        controller_reply_or_fail(controller, call, NULL);
        return NULL;
    }
    *list = (struct controller_list){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct controller_variable *variable = NULL;
        if (controller_variable_find_or_make(
                controller, request->variables[i], &variable, &error) != SUMAC_OK) {
            controller_fail_with(controller, call, &error);
            controller_list_give(controller, list);
            return NULL;
        }
        list->ids[i] = variable->id;
    }
    return list;
}

void controller_create_many(
    struct controller *controller, const struct lane_event *event,
    struct controller_session *session)
{
    const wire_create_request *request = (const wire_create_request *)event->request;
    struct sumac_error error = {0};

    if (check_all(controller, request, &error) != SUMAC_OK) {
        controller_fail_with(controller, event->call, &error);
        return;
    }
    struct controller_list *list = make_all(controller, event->call, request);
    if (list == NULL)
        return;
    struct controller_variable *variable = awaited(controller, list);
    if (variable == NULL) {
        answer(controller, event->call, list);
        controller_list_give(controller, list);
        return;
    }
    const struct controller_call call = {
        .kind = CONTROLLER_CALL_CREATE,
        .call = event->call,
        .variable = variable,
        .list = list,
        .session = session,
    };
    controller_wait_call(controller, call, request->timeout_ms);
}
