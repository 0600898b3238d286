/* SPDX-License-Identifier: Apache-2.0 */
/* missing.c -- whom a synchronous push waits for: its client knows a ps that waits, and that ps
 * knows who is missing from the step. */
#include "client_state.h"

#include <assert.h>

#include "text.h"

struct question {
    const struct transfer *push, *asked;
};

static bool is_settled(void *context)
{
    const struct question *question = context;

    return question->push->over || question->asked->over;
}

/* A pull of nothing, at the step of the push. */
static void ask(struct transfer *asked, uint32_t ps, uint64_t step, uint32_t patience_ms)
{
    const struct session_pull pull = {
        .token = (uint64_t)(uintptr_t)asked, .at_step = step, .ps = ps, .timeout_ms = patience_ms};
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &pull};

    assert(step > 0 && patience_ms > 0);
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
    const struct transfer *push, uint32_t patience_ms, char *text, size_t text_bytes)
{
    struct sumac_client *client = push->client;
    uint32_t ps;
    uint64_t step;

    assert(client_is_locked(client));
    assert(text_bytes > 0);
    text[0] = '\0';
    if (client->session == NULL ||
        !session_find_step(client->session, (uint64_t)(uintptr_t)push, &ps, &step))
        return;
    struct transfer *asked = transfer_take(client);
    if (asked == NULL)
        return;
    struct question question = {.push = push, .asked = asked};
    const uint64_t began_us = client_now_us();
    ask(asked, ps, step, patience_ms / 2 + 1);
    (void)client_wait(client, is_settled, &question, began_us + (uint64_t)patience_ms * 1000);
    const bool answered = client->peers[ps].heard_us >= began_us;
    if (answered && asked->over && asked->error.reason == SUMAC_REASON_TIMED_OUT)
        (void)text_print(text, text_bytes, "%s", asked->error.text);
    forget(asked);
}
