/* SPDX-License-Identifier: Apache-2.0 */
/* unary.c -- one call to one ps, waited for by the thread that makes it. */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"
#include "text.h"

/* A call under way; on the stack of the thread that waits. */
struct unary {
    struct sumac_client *client;
    const struct client_call *call;
    struct rpc_call *rpc;
    bool answered, closed;
    struct sumac_error error;
};

struct rpc_channel *client_channel(struct sumac_client *client, uint32_t ps, int lane)
{
    assert(client_is_locked(client));
    assert(ps < client->peer_count);
    struct peer *peer = &client->peers[ps];
    if (peer->channels[lane] == NULL && peer->address[0] != '\0' &&
        rpc_channel_open(client->poller, peer->address, &peer->channels[lane]) != SUMAC_OK)
        peer->channels[lane] = NULL;
    return peer->channels[lane];
}

const char *
client_peer_text(const struct sumac_client *client, uint32_t ps, char *text, size_t text_bytes)
{
    assert(ps < client->peer_count);
    const struct peer *peer = &client->peers[ps];
    if (peer->heard_us == 0)
        text_print(
            text, text_bytes, "ps %" PRIu32 " at %s, which was never heard from", ps,
            peer->address);
    else
        text_print(
            text, text_bytes, "ps %" PRIu32 " at %s, which was last heard from %s ago", ps,
            peer->address, text_time_us(client_now_us() - peer->heard_us).text);
    return text;
}

static void answered(struct rpc_call *call, const struct wire_received *received)
{
    struct unary *unary = rpc_call_user(call);
    unary->answered = true;
    unary->client->peers[unary->call->ps].heard_us = client_now_us();
    unary->call->take(unary->call->context, received->message);
}

static void closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct unary *unary = rpc_call_user(call);
    unary->closed = true;
    unary->error = *error;
}

static const struct rpc_handler handler = {.message = answered, .closed = closed};

static bool is_closed(void *context) { return ((const struct unary *)context)->closed; }

static bool is_never(void *context)
{
    (void)context;
    return false;
}

/* One try. The call is over when this returns, whatever it came to. */
static void try_once(struct unary *unary)
{
    struct sumac_client *client = unary->client;
    const struct client_call *call = unary->call;
    unary->answered = unary->closed = false;
    struct rpc_channel *channel = client_channel(client, call->ps, SESSION_PULL_STREAM);
    if (channel == NULL || rpc_channel_call(
                               channel, call->service, call->method, call->request, call->until_us,
                               false, &handler, unary, &unary->rpc) != SUMAC_OK) {
        fail(
            &unary->error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for a call to ps %" PRIu32, call->ps);
        return;
    }
    if (client_wait(client, is_closed, unary, call->until_us))
        return;
    rpc_call_cancel(unary->rpc);
    client_wait(client, is_closed, unary, NEVER_US); /* what is cancelled ends at once */
    assert(unary->closed);                           /* it lies on this thread's stack */
}

/* The address is told with what a connection came to; what a ps answers stands as it is. */
static enum sumac_status
explain(const struct sumac_client *client, const struct unary *unary, struct sumac_error *error)
{
    char peer[192];
    const struct sumac_error *given = &unary->error;
    const uint32_t ps = unary->call->ps;
    assert(!unary->answered || given->status != SUMAC_OK); /* that would be no failure */
    if (given->status == SUMAC_OK)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps %" PRIu32
            " at %s ended a call well and did not answer it: is it a ps of this release?",
            ps, client->peers[ps].address);
    if (given->reason == SUMAC_REASON_UNSPECIFIED && client->ended)
        given = &client->end; /* the session knows why nobody answers */
    if (given->reason != SUMAC_REASON_UNSPECIFIED) {
        if (error != NULL)
            *error = *given;
        return given->status;
    }
    if (given->status == SUMAC_DEADLINE_EXCEEDED || given->status == SUMAC_CANCELLED)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "no answer in time from %s%s",
            client_peer_text(client, ps, peer, sizeof(peer)),
            unary->call->waits_for_others
                ? ", which may itself wait for another ps: sumac stats says for which"
                : "");
    const enum sumac_reason reason =
        given->status == SUMAC_UNAVAILABLE ? SUMAC_REASON_PS_MISSING : SUMAC_REASON_UNSPECIFIED;
    return fail(
        error, given->status, reason, "ps %" PRIu32 " at %s: %.300s", ps, client->peers[ps].address,
        given->text);
}

enum sumac_status
client_call(struct sumac_client *client, const struct client_call *call, struct sumac_error *error)
{
    assert(call->take != NULL);
    assert(!client->stepping); /* its callbacks step the session */
    struct unary unary = {.client = client, .call = call};
    for (;;) {
        try_once(&unary);
        if (unary.answered && unary.error.status == SUMAC_OK)
            return SUMAC_OK;
        const uint64_t again_us = client_now_us() + CALL_RETRY_MS * 1000;
        const bool again = call->retry && unary.error.status == SUMAC_UNAVAILABLE &&
                           unary.error.reason == SUMAC_REASON_UNSPECIFIED &&
                           again_us < call->until_us && !client->ended;
        if (!again)
            return explain(client, &unary, error);
        client_wait(client, is_never, NULL, again_us);
    }
}
