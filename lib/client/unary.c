/* SPDX-License-Identifier: Apache-2.0 */
/* unary.c -- one call to one ps, which the session makes, waited for by the thread that wants
 * it. */
#include "client_state.h"

#include "error.h"
#include "silence.h"

#define SILENT_MS 5000u
#define LOST_REMEDY "if that ps does not come back, start the whole run again, ps and workers"

static bool is_over(void *context) { return ((const struct client_unary *)context)->over; }

/* Signs of life come more often, wherever the answer of a call is late. */
static bool is_silent(const struct sumac_client *client, uint32_t ps)
{
    const uint64_t heard_us = client->peers[ps].heard_us;

    return heard_us != 0 && client_now_us() - heard_us >= (uint64_t)SILENT_MS * 1000;
}

/* "; start it": after why a ps is not reached. */
static const char *unreached_remedy(bool heard, const char *why)
{
    if (silence_is_own(why))
        return "";
    if (heard)
        return "; " LOST_REMEDY;
    return silence_is_mute(why) ? "; " SILENCE_MUTE_REMEDY : "; start it, or correct its address";
}

/* What became of the connection is told with the ps's address; what the ps itself answered stands
 * as it is. */
static enum sumac_status explain(
    const struct sumac_client *client, const struct client_unary *unary, struct sumac_error *error)
{
    char peer[192];
    const struct sumac_error *given = &unary->error;
    const uint32_t ps = unary->ps;

    assert(given->status != SUMAC_OK); /* that would be no failure */
    if (given->reason == SUMAC_REASON_UNSPECIFIED && client->ended)
        given = &client->end; /* the session knows why nobody answers */
    if (given->reason != SUMAC_REASON_UNSPECIFIED)
        return fail_again(error, given);
    if (given->status == SUMAC_DEADLINE_EXCEEDED || given->status == SUMAC_CANCELLED)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "no answer in time from %s%s",
            client_peer_text(client, ps, peer, sizeof peer),
            is_silent(client, ps) ? "; " LOST_REMEDY
            : unary->call->waits_for_others
                ? ", which may itself wait for another ps: sumac stats says for which"
            : unary->call->waits_for_members
                ? ", which may itself wait for other members: sumac stats says for whom"
                : "; call again, or allow the call more time");
    const enum sumac_reason reason =
        given->status == SUMAC_UNAVAILABLE ? SUMAC_REASON_PS_MISSING : SUMAC_REASON_UNSPECIFIED;
    if (reason == SUMAC_REASON_PS_MISSING)
        return fail(
            error, given->status, reason, "%s: %.200s%s",
            client_peer_text(client, ps, peer, sizeof peer), given->text,
            unreached_remedy(client->peers[ps].heard_us != 0, given->text));
    return fail(
        error, given->status, reason, "ps %" PRIu32 " at %s: %.300s", ps, client->peers[ps].address,
        given->text);
}

struct client_call client_variables_call(
    unsigned method, const wire_message *request, client_take *take, void *context)
{
    return (struct client_call){
        .service = WIRE_VARIABLES,
        .method = method,
        .request = request,
        .take = take,
        .context = context};
}

/* The session sees to it that it is over in time. */
enum sumac_status
client_call(struct sumac_client *client, const struct client_call *call, struct sumac_error *error)
{
    assert(client->session != NULL);
    struct client_unary unary = {.client = client, .call = call};
    const struct session_call wanted = {
        .token = (uintptr_t)&unary,
        .any_ps = call->any_ps,
        .ps = call->ps,
        .service = call->service,
        .method = call->method,
        .request = call->request,
        .timeout_ms = call->timeout_ms != 0 ? call->timeout_ms : client->timeout_ms,
        .needs_session = call->needs_session,
        .once = call->once};
    LIST_APPEND(&client->unaries, &unary, links);
    client_step(
        client, &(struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &wanted});
    (void)client_wait(client, is_over, &unary, NEVER_US);
    LIST_REMOVE(&client->unaries, &unary, links);
    assert(unary.over); /* it lies on this thread's stack */
    return unary.error.status == SUMAC_OK ? SUMAC_OK : explain(client, &unary, error);
}
