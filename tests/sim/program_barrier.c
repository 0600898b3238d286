/* SPDX-License-Identifier: Apache-2.0 */
/* program_barrier.c -- members that wait for each other: each comes to the one barrier now and
 * then, and counts the rounds that it has heard of, as lib/client does. */
#include "program_barrier.h"

#include <assert.h>
#include <string.h>

#define TIMEOUT_MS_MIN 500u
#define TIMEOUT_MS_MAX 30000u
#define SPARE_MS 20000u /* for calls that are lost */

/* What the caller lends the session. */
struct arrival {
    uint8_t session_id[16];
    wire_task_name names[SIM_CLIENTS_MAX];
    wire_task_name *tasks[SIM_CLIENTS_MAX];
    wire_barrier_request request;
};

static void name_tasks(const struct world *world, struct arrival *arrival)
{
    for (uint32_t i = 0; i < world->member_count; i++) {
        arrival->names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        arrival->names[i].job = (char *)(uintptr_t) "worker";
        arrival->names[i].index = i;
        arrival->tasks[i] = &arrival->names[i];
    }
    arrival->request.tasks = arrival->tasks;
    arrival->request.n_tasks = world->member_count;
}

static void call(struct world *world, struct client *client, uint64_t round)
{
    struct arrival *arrival = world_take(world, sizeof *arrival);
    struct session_state state;

    session_read(client->session, &state);
    memcpy(arrival->session_id, state.session_id, sizeof arrival->session_id);
    arrival->request = (wire_barrier_request)WIRE_BARRIER_REQUEST_INIT;
    arrival->request.session_id = (wire_bytes){.data = arrival->session_id, .len = 16};
    arrival->request.name = (char *)(uintptr_t) "epoch";
    arrival->request.round = round;
    arrival->request.timeout_ms = world_between(world, TIMEOUT_MS_MIN, TIMEOUT_MS_MAX);
    if (world->barrier_listed)
        name_tasks(world, arrival);
    const struct session_call wanted = {
        .token = ++client->calls_made,
        .service = WIRE_SESSIONS,
        .method = WIRE_SESSIONS_BARRIER,
        .request = &arrival->request.base,
        .timeout_ms = arrival->request.timeout_ms + SPARE_MS,
        .needs_session = true,
    };
    struct session_event event = {.kind = SESSION_EVENT_CALL, .wanted_call = &wanted};
    client->coming = wanted.token;
    client_step(world, client, &event);
}

void program_come(struct world *world, struct client *client)
{
    if (!world_has(world, FAULT_BARRIERS) || !client->member || client->coming != 0 ||
        !world_chance(world, 25))
        return;
    checker_comes(world, client);
    call(world, client, client->heard_round == 0 ? 0 : client->heard_round + 1);
}

static bool may_fail(const struct world *world, const struct sumac_error *error)
{
    return error->reason >= SUMAC_REASON_SESSION_UNKNOWN || error->status == SUMAC_UNAVAILABLE ||
           error->status == SUMAC_DEADLINE_EXCEEDED ||
           (world_was_short(world) && error->reason == SUMAC_REASON_OUT_OF_MEMORY);
}

/* It said round 0 again, and the round that it had come to is over. */
static bool must_name_round(const wire_barrier_reply *reply)
{
    return reply->status == SUMAC_FAILED_PRECONDITION &&
           reply->reason == (Sumac__V1__Reason)SUMAC_REASON_ROUND_OVER;
}

bool program_came(struct world *world, struct client *client, const struct session_effect *effect)
{
    if (client->coming == 0 || effect->token != client->coming)
        return false;
    client->coming = 0;
    if (effect->error.status != SUMAC_OK) {
        if (!may_fail(world, &effect->error))
            checker_violation(world, "who comes to a barrier is refused");
        return true;
    }
    const wire_barrier_reply *reply = (const wire_barrier_reply *)effect->reply;
    if (must_name_round(reply)) {
        if (client->heard_round != 0)
            checker_violation(world, "who names a round of a barrier is asked to name one");
        call(world, client, reply->round);
        return true;
    }
    if (reply->round <= client->heard_round)
        checker_violation(world, "an arrival is answered with a round that was heard of before");
    client->heard_round = reply->round;
    return true;
}
