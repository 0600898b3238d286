/* SPDX-License-Identifier: Apache-2.0 */
/* controller_orders.h -- the streams to the ps, and the orders that go out on them. */
#pragma once

#include "controller_state.h"

/* peers.c: the ps. */
void controller_peers_start(struct controller *controller);
/* Learn addresses that were checked; dials those that are new. */
void controller_peers_learn(struct controller *controller, const wire_join_request *request);
/* The addresses and incarnations of all ps, in the step's arena. Returns their count; 0: no memory.
 */
size_t
controller_list_ps(struct controller *controller, char ***addresses, uint64_t **incarnations);
bool controller_peers_all_met(const struct controller *controller);
/* It was met, and neither a sign of life nor an answer that was due has come for ps_lost_ms. */
bool controller_peer_is_lost(const struct controller *controller, uint32_t ps);
/* Is a sign of life, or an answer, so late that one should speak of it? */
bool controller_peer_is_late(const struct controller *controller, uint32_t ps);
/* The first ps that is not met or not reachable; ps_count: none. */
uint32_t controller_peers_missing(const struct controller *controller);
/* "ps 1 at h2:2222, never heard from (the name does not resolve)" */
const char *controller_peer_text(const struct controller *controller, uint32_t ps);
/* "; start it": the remedy for a ps that is missing, to print after controller_peer_text. "" where
 * that text names it. */
const char *controller_peer_remedy(const struct controller *controller, uint32_t ps);
/* "gives up in 35 s": the end of a wait for this ps. */
const char *controller_peer_limit(const struct controller *controller, uint32_t ps);

/* streams.c: the streams to the ps. */
/* Give every writable stream what is due. */
void controller_streams_give(struct controller *controller);
void controller_streams_tick(struct controller *controller);
/* These take the events of a stream: PEER_UP, PEER_DOWN and REPORT. Each ignores a ps that the
 * cluster does not have.
 *
 * A stream is there and its last order is out; a first one after it was down (or ever) is a new
 * stream. */
void controller_stream_up(struct controller *controller, const struct lane_event *event);
void controller_stream_down(struct controller *controller, const struct lane_event *event);
void controller_hear_report(struct controller *controller, const struct lane_event *event);

/* orders.c: the one list. */
struct controller_mask controller_every_ps(const struct controller *controller);
/* Append the order that the object waits for, for every ps. If memory is short, logs that; a later
 * tick appends the order. */
/* Open sessions come after the membership that they count in. */
void controller_order_session(struct controller *controller, struct controller_session *session);
/* False: there is no memory for it yet. */
bool controller_order_function(struct controller *controller, struct controller_function *function);
bool controller_order_variable(struct controller *controller, struct controller_variable *variable);
/* To take the synchronous step that was taken last. */
void controller_order_take(struct controller *controller);
/* Append the order to end, for these. It needs no memory. */
void controller_order_end(struct controller *controller, const struct controller_mask *pending);
struct controller_order *
controller_order_find(const struct controller *controller, uint64_t number);
struct controller_order *
controller_order_next(struct controller_order *order, uint32_t ps); /* from `order` on */
/* This ps has answered, or never will. True: it was the last. Then the order has left the list, and
 * *done is what it was: what follows is the caller's. */
bool controller_order_confirm(
    struct controller *controller, struct controller_order *order, uint32_t ps,
    struct controller_order *done);
/* Retry everything that failed for lack of memory. */
void controller_orders_tick(struct controller *controller);
/* The controller starts from its records: order again everything that was in progress. */
void controller_orders_begin_again(struct controller *controller);
/* A ps whose answer to an order of this session could not be made, or kept, for lack of memory.
 * ps_count: no such ps. */
uint32_t controller_order_short(
    const struct controller *controller, const struct controller_session *session);

/* order_kinds.c: what is sent for each, and what follows. */
const wire_peer_order *
controller_order_pack(struct controller *controller, const struct controller_order *order);
/* "to add its shards of W1": what an order is for, after the name of a ps. */
const char *
controller_order_text(const struct controller *controller, const struct controller_order *order);
/* This ps has answered; the last answer completes the order. */
void controller_order_answered(
    struct controller *controller, struct controller_order *order, uint32_t ps,
    const wire_peer_report *report);
