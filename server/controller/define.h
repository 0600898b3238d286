/* SPDX-License-Identifier: Apache-2.0 */
/* define.h -- what the controller's files ask of define.c: functions that were defined. */
#pragma once

#include <assert.h>

#include "controller_state.h"

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
bool controller_define_answered(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report);
void controller_define_complete(
    struct controller *controller, const struct controller_order *order);
/* Those that not every ps has, and that no order is on its way for, get one. */
void controller_defines_order(struct controller *controller);
