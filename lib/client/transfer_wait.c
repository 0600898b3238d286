/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_wait.c -- the wait for a push or a pull, and what the wait says while it lasts. */
#include "client_state.h"
#include "transfer.h"

#include <assert.h>
#include <string.h>

#include "error.h"

#define WAITED_FOR_BYTES 448u

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
