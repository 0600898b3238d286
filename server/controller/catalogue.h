/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.h -- the variables and the functions that were defined, as the controller has them, and
 * the calls that change them. Private to this folder. */
#pragma once

#include <assert.h>

#include "controller_state.h"

/* catalogue.c */
struct controller_variable *
controller_variable_find(const struct controller *controller, const char *name);
struct controller_variable *
controller_variable_by_id(const struct controller *controller, uint64_t id);
/* May it be made, and be the `fresh`th new one? */
enum sumac_status controller_variable_check(
    const struct controller *controller, const char *name, const struct definition *definition,
    uint32_t fresh, struct sumac_error *error);
/* Its shards are on these ps (places: as many as it has shards; NULL: as ps 0 places them). */
enum sumac_status controller_variable_make(
    struct controller *controller, const char *name, const struct definition *definition,
    const uint8_t *places, struct controller_variable **variable, struct sumac_error *error);
/* The ps for a new variable that names another variable, or a shard, to lie beside.
 * Fails  NOT_FOUND: no variable or shard has that name. INVALID_ARGUMENT: it is not text. */
enum sumac_status controller_variable_beside(
    const struct controller *controller, const wire_variable *wanted, uint32_t *ps,
    struct sumac_error *error);
/* Does the existing variable fit the wanted one? Both must be defined alike. If the wanted one is
 * to lie beside another variable, all shards of the existing one must lie on the ps of that one.
 * Fails  ALREADY_EXISTS, naming what differs; as controller_variable_beside. */
enum sumac_status controller_variable_compare(
    const struct controller *controller, const struct controller_variable *variable,
    const wire_variable *wanted, const struct definition *definition, struct sumac_error *error);
/* Find the variable of that name, or make it and order its shards. Fails  as the two above. */
enum sumac_status controller_variable_find_or_make(
    struct controller *controller, const wire_variable *wanted,
    struct controller_variable **variable, struct sumac_error *error);
void controller_variable_hide(struct controller *controller, struct controller_variable *variable);
void controller_variable_free(struct controller *controller, struct controller_variable *variable);
/* In the step's arena. */
wire_variable *controller_variable_message(
    struct controller *controller, const struct controller_variable *variable);
/* Its name and how it is defined alone. NULL: no memory. */
const wire_variable *controller_variable_definition(
    struct controller *controller, const struct controller_variable *variable);

/* define.c */
/* What is known of it, with its name. */
static inline const struct defined_function *controller_function_known(
    const struct controller *controller, const struct controller_function *function)
{
    const ptrdiff_t index = function - controller->defined;

    assert(index >= 0 && (uint32_t)index < controller->functions.count);
    return &controller->functions.known[index];
}

void controller_define_call(struct controller *controller, const struct lane_event *event);
void controller_functions_call(struct controller *controller, const struct lane_event *event);
/* As an order says it, in the step's arena. */
wire_define_function *controller_function_message(
    struct controller *controller, const struct controller_function *function);
void controller_define_answered(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report);
void controller_define_complete(
    struct controller *controller, const struct controller_order *order);
/* Those that not every ps has, and that no order is on its way for, get one. */
void controller_defines_order(struct controller *controller);

/* calls.c */
void controller_list_give(struct controller *controller, struct controller_list *list);
/* Keep the call and its list until its variable moves on or the timeout passes, or fail the call.
 * timeout_ms 0: the call named no timeout. */
void controller_wait_call(
    struct controller *controller, struct controller_call wanted, uint32_t timeout_ms);
/* May an order be added? False: the call was failed. */
bool controller_may_change_catalogue(struct controller *controller, uint64_t call);
/* The call was answered, or failed. */
void controller_call_drop(struct controller *controller, struct controller_call *call);
/* A session takes nothing more: its creates, deletes and defines fail. */
void controller_calls_of_session_fail(
    struct controller *controller, const struct controller_session *session);
void controller_calls_tick(struct controller *controller);
void controller_calls_fail(struct controller *controller, const struct sumac_error *error);
void controller_call_forget(struct controller *controller, uint64_t call);
const char *
controller_call_wait(const struct controller *controller, const struct controller_call *call);

/* create_many.c */
void controller_create_many(
    struct controller *controller, const struct lane_event *event,
    struct controller_session *session);
/* Continue a call with a list after its awaited variable was published. True: the call was answered
 * or failed. */
bool controller_list_go_on(struct controller *controller, struct controller_call *call);
/* True if this variable of the list is still awaited. */
bool controller_list_has(const struct controller_list *list, uint64_t id);

/* create.c */
void controller_create_call(struct controller *controller, const struct lane_event *event);
void controller_delete_call(struct controller *controller, const struct lane_event *event);
void controller_add_answered(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report);
void controller_add_complete(struct controller *controller, const struct controller_order *order);
void controller_publish_complete(
    struct controller *controller, const struct controller_order *order);
void controller_delete_complete(
    struct controller *controller, const struct controller_order *order);
void controller_assigned(struct controller *controller, uint32_t ps, uint64_t variable_id);
/* The session is settled: the creator that has waited longest assigns in its place. */
void controller_creator_settled(
    struct controller *controller, const struct controller_session *session);
