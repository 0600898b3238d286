/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h -- one push, pull or round of a collective under way: its pieces, and its end. */
#pragma once

#include "client_state.h"

/* variable.c */
/* One variable of a transfer. */
struct selection {
    struct sumac_client_variable *variable;
    const struct sumac_tensor *tensor;
    bool has_rows;
    struct sumac_range rows;
    const struct sumac_tensor *indices; /* NULL: a range */
    size_t index;                       /* in the caller's array */
    uint32_t function;                  /* of a push */
    bool earlier_pull; /* of a push: computed from the values of the pull before the last */
    bool synchronous;  /* of a push: half types are given as float32 */
    bool every_shard;  /* of a push: shards that it has no rows for are named, too */
    bool pulls;
    const char *slot; /* of a pull: NULL: the value */
    const char *verb; /* "push", "pull" */
};
/* Bytes of one row of it. */
uint64_t selection_row_bytes(const struct selection *selection);
/* Check its dtype, its memory, and its shape for `rows` rows. Fails  INVALID_ARGUMENT,
 * OUT_OF_RANGE. */
enum sumac_status
selection_check_tensor(const struct selection *selection, uint64_t rows, struct sumac_error *error);
/* Do the `bytes` of a tensor lie within its memory, on the host? `what` is done with it for the
 * variable `name`.
 * Fails  INVALID_ARGUMENT, OUT_OF_RANGE. */
enum sumac_status client_check_memory(
    const struct sumac_tensor *tensor, uint64_t bytes, const char *what, const char *name,
    struct sumac_error *error);

/* shards.c */
/* Check the tensor against the variable and add its pieces. Fails  INVALID_ARGUMENT,
 * OUT_OF_RANGE. */
enum sumac_status selection_add(
    struct transfer *transfer, const struct selection *selection, struct sumac_error *error);
/* Pieces without bytes, for all its shards: what its function names is theirs from then on. Fails
 * INVALID_ARGUMENT. */
enum sumac_status selection_set(
    struct transfer *transfer, const struct selection *selection, struct sumac_error *error);
/* As selection_add, of a pull with indices whose variable was checked. */
enum sumac_status
slices_ask(struct transfer *transfer, const struct selection *selection, struct sumac_error *error);
/* Copy the pulled rows to their places in the memory of the caller. */
void slices_give(const struct transfer *transfer);

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

/* transfer_wait.c -- with the lock held: for at most so long, unless the transfer is over before.
 */
/* What a push, a pull or a round waits for, as a ps that waits with it says: "ps 0: it waits for
 * …".
 * "" when no ps says so in that time, so that it waits for a ps. */
void client_ask_missing(
    const struct transfer *waiting, uint32_t patience_ms, char *text, size_t text_bytes);
