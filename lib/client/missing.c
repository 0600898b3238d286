/* SPDX-License-Identifier: Apache-2.0 */
/* missing.c -- for whom a push, a pull or a round waits. Its client knows a ps that waits, and asks
 * that ps by a pull that reads nothing and waits for the same. */
#include "client_state.h"
#include "transfer.h"

#include <assert.h>

struct question {
    const struct transfer *waiting, *asked;
};

static bool is_settled(void *context)
{
    const struct question *question = context;

    return question->waiting->over || question->asked->over;
}

/* List the shards that the pull reads there, with a piece of each that begins at its end. NULL: no
 * memory. */
static const struct session_piece *make_empty(
    struct transfer *asked, const struct transfer *waiting, const struct session_wait *wait,
    uint32_t *count)
{
    struct session_piece *pieces =
        arena_take(&asked->arena, (waiting->piece_count + 1) * sizeof *pieces);

    *count = 0;
    for (uint32_t i = 0; pieces != NULL && wait->of_pieces && i < waiting->piece_count; i++) {
        const struct session_piece *read = &waiting->pieces[i];
        if (read->ps != wait->ps)
            continue;
        pieces[(*count)++] = (struct session_piece){
            .ps = read->ps,
            .shard_id = read->shard_id,
            .layout_epoch = read->layout_epoch,
            .kind = WIRE_PIECE_VALUES,
            .offset_bytes = waiting->shards[i]->bytes};
    }
    return pieces;
}

static void
ask(struct transfer *asked, const struct transfer *waiting, const struct session_wait *wait,
    uint32_t patience_ms)
{
    struct session_pull pull = {
        .token = (uint64_t)(uintptr_t)asked, .asks = wait, .timeout_ms = patience_ms};
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &pull};

    assert(patience_ms > 0);
    pull.pieces = make_empty(asked, waiting, wait, &pull.piece_count);
    if (pull.pieces == NULL)
        asked->over = true;
    else
        client_step(asked->client, &event);
}

static void forget(struct transfer *asked)
{
    struct session_event event = {
        .kind = SESSION_EVENT_CANCEL_PULL, .token = (uint64_t)(uintptr_t)asked};

    if (!asked->over)
        client_step(asked->client, &event);
    assert(asked->over);
    transfer_drop(asked);
}

void client_ask_missing(
    const struct transfer *waiting, uint32_t patience_ms, char *text, size_t text_bytes)
{
    struct sumac_client *client = waiting->client;
    struct session_wait wait;

    assert(client_is_locked(client));
    assert(text_bytes > 0);
    text[0] = '\0';
    if (client->session == NULL ||
        !session_find_wait(client->session, (uint64_t)(uintptr_t)waiting, &wait))
        return;
    struct transfer *asked = transfer_take(client);
    if (asked == NULL)
        return;
    struct question question = {.waiting = waiting, .asked = asked};
    const uint64_t began_us = client_now_us();
    ask(asked, waiting, &wait, patience_ms / 2);
    (void)client_wait(client, is_settled, &question, began_us + (uint64_t)patience_ms * 1000);
    const bool answered = client->peers[wait.ps].heard_us >= began_us;
    if (answered && asked->over && asked->error.reason == SUMAC_REASON_TIMED_OUT)
        (void)text_print(text, text_bytes, "%s", asked->error.text);
    forget(asked);
}
