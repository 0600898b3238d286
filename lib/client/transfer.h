/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h -- a transfer's life: it is taken, gets its pieces, ends, is waited for and given
 * away.
 */
#pragma once

#include "client_state.h"

/* transfer.c -- with the lock held, except transfer_released */
struct transfer *transfer_take(struct sumac_client *client);
/* No thread of gRPC reads its bytes any more. */
void transfer_give(struct transfer *transfer);
/* The next piece of the transfer, for that shard. NULL: no memory. */
struct session_piece *transfer_add_piece(
    struct transfer *transfer, const struct selection *selection, struct variable_shard *shard);
/* Keep the part of a round's result that was not known beforehand. */
void transfer_note_result(struct transfer *transfer, const struct session_effect *effect);
/* What a pull read, and what a push that was applied made, for the pushes and the facts to come. */
void transfer_note_pulled(
    struct transfer *transfer, const uint64_t *versions, uint32_t version_count);
void transfer_note_pushed(
    struct transfer *transfer, const uint64_t *versions, uint32_t version_count);
/* The transfer failed, with this error. A wait says DEADLINE_EXCEEDED of a transfer that is still
 * under way. This one is over, so that status becomes UNAVAILABLE, with the same reason. */
void transfer_fail(struct transfer *transfer, const struct sumac_error *error);
bool transfer_is_done(void *transfer);
void transfer_released(void *transfer, uint64_t id);

/* transfer_wait.c -- with the lock held */
/* Give away a transfer that failed before its caller had it. Waits until gRPC has given the bytes
 * back. */
void transfer_drop(struct transfer *transfer);

/* Without the lock: */
/* Wait until the transfer is over and its bytes are given back. Returns its own status, and gives
 * the transfer away. Otherwise DEADLINE_EXCEEDED: the text says what a ps waits for, or names the
 * ps that ended its stream and why, or the ps that was silent for longest. */
enum sumac_status transfer_wait(
    struct transfer *transfer, const char *noun, uint32_t timeout_ms, struct sumac_error *error);
bool transfer_poll(struct transfer *transfer);
/* Tell the session, by an event of that kind, that the caller gives it up. */
void transfer_cancel(struct transfer *transfer, enum session_event_kind kind);
