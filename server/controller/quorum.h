/* SPDX-License-Identifier: Apache-2.0 */
/* quorum.h -- what the controller's files ask of quorum.c: synchronous steps of K of N. */
#pragma once

#include "controller_state.h"

/* Is it time to take the next step? After whatever may make it so. */
void controller_steps_consider(struct controller *controller);
void controller_steps_tick(struct controller *controller);
/* The controller begins with its records: the ps hear again what was taken. */
void controller_steps_begin_again(struct controller *controller);
void controller_steps_reported(
    struct controller *controller, uint32_t ps, const wire_peer_report *report);
/* A ps reports a closed session. False: no memory to keep the voided pushes. */
bool controller_steps_close_reported(
    struct controller *controller, struct controller_session *session,
    const wire_close_report *close);
/* Every ps has reported the closed session. */
void controller_steps_closed(struct controller *controller, struct controller_session *session);
/* Does a step need what a settled session has made? */
bool controller_steps_need(
    const struct controller *controller, const struct controller_session *session);
