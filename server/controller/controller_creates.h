/* SPDX-License-Identifier: Apache-2.0 */
/* controller_creates.h -- calls that create or delete variables, one or many at a time. */
#pragma once

#include "controller_state.h"

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
bool controller_add_answered(
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
