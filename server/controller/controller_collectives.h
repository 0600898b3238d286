/* SPDX-License-Identifier: Apache-2.0 */
/* controller_collectives.h -- split rounds of collectives: ps 0 decides them, as several ps have a
 * part of each. */
#pragma once

#include "controller_state.h"

/* Ends that wait for the answer of a ps. A ps proposes further ends again. */
#define CONTROLLER_COLLECTIVES_MAX 256u

struct controller_collective {
    struct controller_row row;
    LINKS(struct controller_collective) in_controller;
    struct controller_order
        order;              /* that says so: it keeps its number for as long as this is there */
    struct sumac_error end; /* status OK: it passed */
    size_t bytes;           /* of this, with what the collective lies in behind it */
    struct collective *collective;
};

/* What the ps proposes. */
void controller_collectives_reported(struct controller *controller, const wire_peer_report *report);
/* The collective of a row. NULL: the row does not follow the rows before it, or there is no memory.
 */
struct controller_collective *controller_collective_replay(
    struct controller *controller, uint64_t number, const wire_collective_end *end);
/* NULL: not found. */
struct controller_collective *
controller_collective_by_number(const struct controller *controller, uint64_t number);
void controller_collective_forget(
    struct controller *controller, struct controller_collective *collective);
/* The controller begins with its records: each is ordered once more. */
void controller_collectives_begin_again(struct controller *controller);
/* orders.c: order the end at every ps. Needs no memory. */
void controller_order_collective(
    struct controller *controller, struct controller_collective *collective);
/* Every ps has answered the order. */
void controller_collective_complete(
    struct controller *controller, const struct controller_order *order);
/* In the step's arena. NULL: it is full. */
wire_collective_end *controller_collective_message(
    struct controller *controller, const struct controller_collective *collective);
/* The most that they take. */
uint64_t controller_collectives_bytes_max(void);
void controller_collectives_deinit(struct controller *controller);
