/* SPDX-License-Identifier: Apache-2.0 */
/* program_define.c -- a function that clients define: one name, and two texts that do the same, of
 * which one comes first. */
#include "program_define.h"

#include <assert.h>
#include <string.h>

#define TIMEOUT_MS 30000u
#define SPARE_MS 20000u /* for calls that are lost */

static const char *const texts[] = {"value = value + g", "value = g + value"};

/* What the caller lends the session. */
struct definition_asked {
    uint8_t session_id[16];
    wire_define_request request;
};

void program_define(struct world *world, struct client *client)
{
    if (!world_has(world, FAULT_FUNCTIONS) || client->reader || client->defined != 0 ||
        client->defining != 0 || !world_chance(world, 50))
        return;
    struct definition_asked *asked = world_take(world, sizeof *asked);
    struct session_state state;

    session_read(client->session, &state);
    memcpy(asked->session_id, state.session_id, sizeof asked->session_id);
    asked->request = (wire_define_request)WIRE_DEFINE_REQUEST_INIT;
    asked->request.session_id = (wire_bytes){.data = asked->session_id, .len = 16};
    asked->request.name = (char *)(uintptr_t) "sum";
    client->text = world_below(world, 2);
    asked->request.text = (char *)(uintptr_t)texts[client->text];
    asked->request.timeout_ms = TIMEOUT_MS;
    const struct session_call wanted = {
        .token = ++client->calls_made,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_DEFINE,
        .request = &asked->request.base,
        .timeout_ms = TIMEOUT_MS + SPARE_MS,
        .needs_session = true,
    };
    struct session_event event = {.kind = SESSION_EVENT_CALL, .wanted_call = &wanted};
    client->defining = wanted.token;
    client_step(world, client, &event);
}

static bool may_fail(const struct sumac_error *error)
{
    return error->reason >= SUMAC_REASON_SESSION_UNKNOWN || error->status == SUMAC_UNAVAILABLE ||
           error->status == SUMAC_DEADLINE_EXCEEDED;
}

static void
refused(struct world *world, const struct client *client, const struct sumac_error *error)
{
    const bool taken = error->reason == SUMAC_REASON_ALREADY_EXISTS;

    made_if(world, MADE_function_taken, taken);
    if (!taken && !may_fail(error))
        checker_violation(world, "a define fails");
    if (taken && world->checker->text == 1 + client->text)
        checker_violation(world, "a name that has this text is said to have another");
}

bool program_defined(
    struct world *world, struct client *client, const struct session_effect *effect)
{
    struct checker *const checker = world->checker;

    if (client->defining == 0 || effect->token != client->defining)
        return false;
    client->defining = 0;
    if (effect->error.status != SUMAC_OK) {
        refused(world, client, &effect->error);
        return true;
    }
    client->defined = ((const wire_define_reply *)effect->reply)->function->number;
    if (checker->text != 0 && checker->text != 1 + client->text)
        checker_violation(world, "two texts are taken for one function");
    if (checker->defined != 0 && checker->defined != client->defined)
        checker_violation(world, "one function has two numbers");
    checker->text = 1 + client->text;
    checker->defined = client->defined;
    made(world, MADE_function_defined);
    return true;
}
