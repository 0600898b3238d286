/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_wait.c -- the wait for a push or a pull, and what the wait says while it lasts. The
 * client knows a ps that waits, and asks that ps by a pull that reads nothing and waits for the
 * same.
 */
#include "transfer.h"

#include <string.h>

#include "error.h"

#define WAITED_FOR_BYTES 448u

static bool is_given_back(void *transfer)
{
    return atomic_load_explicit(&((struct transfer *)transfer)->lent, memory_order_acquire) == 0;
}

void transfer_drop(struct transfer *transfer)
{
    struct sumac_client *client = transfer->client;

    while (!is_given_back(transfer))
        (void)client_wait(client, is_given_back, transfer, client_now_us() + RELEASE_US);
    transfer_give(transfer);
}

/* ---- for whom a push, a pull or a round waits */

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

/* ---- the wait */

struct transfer_waiting {
    struct transfer *transfer;
    const char *noun;     /* "push" */
    uint64_t given_up_us; /* when the caller gives it up */
};

static bool is_over(void *context)
{
    return ((const struct transfer_waiting *)context)->transfer->over;
}

/* A ps that ends its stream again and again is heard from, and takes nothing: it is named before
 * one that is silent, with its reason. */
static const char *waited_for_text(const struct transfer *transfer, char *text, size_t text_bytes)
{
    const struct sumac_client *client = transfer->client;
    const uint64_t token = (uint64_t)(uintptr_t)transfer;
    struct session_trouble trouble;
    uint32_t ps = 0;

    assert(text_bytes > 0);
    if (client->session != NULL)
        (void)session_find_owing(client->session, token, &ps);
    const char *const room =
        client->session == NULL ? NULL : session_find_room_wait(client->session, token);
    if (room != NULL) {
        (void)text_print(text, text_bytes, "room (%s)", room);
        return text;
    }
    if (client->session == NULL || !session_find_trouble(client->session, token, &trouble))
        return client_peer_text(client, ps, text, text_bytes);
    const size_t said = strlen(client_peer_text(client, trouble.ps, text, text_bytes));
    (void)text_print(
        text + said, text_bytes - said, "; its %s stream ended %s ago: %s",
        trouble.stream_kind == SESSION_PUSH_STREAM ? "push" : "pull",
        text_time_us(client_now_us() - trouble.ended_us).text, trouble.text);
    return text;
}

/* The ps that a pull waits for give it up earlier, unless they do not speak. */
static uint64_t given_up_at(const struct transfer *transfer, uint64_t given_up_us)
{
    if (transfer->ends_us == 0)
        return given_up_us;
    assert(transfer->ends_us > END_US);
    const uint64_t by_ps_us = transfer->ends_us - END_US;
    return by_ps_us < given_up_us && client_now_us() < by_ps_us ? by_ps_us : given_up_us;
}

/* For whom it waits, and how much longer until it is given up. */
static void say_wait(void *context)
{
    const struct transfer_waiting *const wait = context;
    struct transfer *const transfer = wait->transfer;
    char missing[SUMAC_ERROR_TEXT_BYTES], peer[WAITED_FOR_BYTES];

    client_ask_missing(transfer, ASKING_MS_MIN, missing, sizeof missing);
    if (transfer->over)
        return;
    const bool known = *missing != '\0';
    client_log(
        transfer->client, "a %s %s%s; gives up in %s", wait->noun,
        known ? "is not over; " : "waits for ",
        known ? missing : waited_for_text(transfer, peer, sizeof peer),
        client_time_until(given_up_at(transfer, wait->given_up_us)).text);
}

enum sumac_status transfer_wait(
    struct transfer *transfer, const char *noun, uint32_t timeout_ms, struct sumac_error *error)
{
    struct sumac_client *client = transfer->client;

    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    client_lock(client);
    if (timeout_ms == 0)
        timeout_ms = client->timeout_ms;
    uint64_t until_us = client_now_us() + (uint64_t)timeout_ms * 1000;
    struct transfer_waiting wait = {.transfer = transfer, .noun = noun, .given_up_us = until_us};
    if (until_us < transfer->ends_us && transfer->ends_us - until_us <= END_US)
        until_us = transfer->ends_us;
    char missing[SUMAC_ERROR_TEXT_BYTES] = "";
    const bool asks = timeout_ms >= ASKING_MS_MIN;
    const uint32_t patience_ms = asks ? timeout_ms - client_ps_patience_ms(timeout_ms) : 0;
    bool done = client_wait_and_say(
        client, is_over, say_wait, &wait, until_us - (uint64_t)patience_ms * 1000);
    if (!done && asks)
        client_ask_missing(transfer, patience_ms, missing, sizeof missing);
    done = done || client_wait_and_say(client, is_over, say_wait, &wait, until_us);
    while (done && !transfer_is_done(transfer) && client_now_us() < until_us)
        (void)client_wait(client, transfer_is_done, transfer, client_now_us() + RELEASE_US);
    done = transfer_is_done(transfer);
    enum sumac_status status = SUMAC_OK;
    if (!done) {
        char peer[WAITED_FOR_BYTES];
        const char *const waits = *missing != '\0' ? missing : "it waits for ";
        status = fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "the %s was not over within %s; %s%s", noun, text_time_ms(timeout_ms).text, waits,
            *missing != '\0' ? "" : waited_for_text(transfer, peer, sizeof peer));
    } else {
        assert(transfer->over);
        status = transfer->error.status;
        if (status == SUMAC_OK)
            slices_give(transfer);
        if (status != SUMAC_OK && error != NULL)
            *error = transfer->error;
        transfer_give(transfer);
    }
    client_unlock(client);
    return status;
}

bool transfer_poll(struct transfer *transfer)
{
    struct sumac_client *client = transfer->client;

    if (!client_is_here(client))
        return true; /* the wait says why */
    client_lock(client);
    if (!transfer_is_done(transfer))
        client_poll_once(client);
    const bool done = transfer_is_done(transfer);
    client_unlock(client);
    return done;
}

void transfer_cancel(struct transfer *transfer, enum session_event_kind kind)
{
    struct sumac_client *client = transfer->client;

    assert(kind == SESSION_EVENT_CANCEL_PUSH || kind == SESSION_EVENT_CANCEL_PULL);
    if (!client_is_here(client))
        return;
    client_lock(client);
    if (!transfer->over)
        client_step(
            client, &(struct session_event){.kind = kind, .token = (uint64_t)(uintptr_t)transfer});
    if (client->waiters > 0)
        pthread_cond_broadcast(&client->happened);
    client_unlock(client);
}
