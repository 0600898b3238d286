/* SPDX-License-Identifier: Apache-2.0 */
/* checker_lease.c -- who speaks often enough, whom ps 0 hears, and whose session it may therefore
 * close.
 *
 * A client says something to some ps each third of its lease, whatever becomes of it. ps 0 closes a
 * session that it has not heard of for a lease. Between the two stands the network: a silence needs
 * a cause there, a call that was lost, a connection that broke or stalled, a process that slept. It
 * is forgiven when ps 0 renews the lease.
 */
#include <string.h>

#include "checker.h"
#include "process_client.h"

#define LEASE_US (SIM_LEASE_MS * 1000ull)
#define SPEAKS_US (LEASE_US / 3 + 1000)
/* What a lane hears is reported later, and counts from then on. */
#define CLOSED_AFTER_US (LEASE_US - 1000)
#define SLOW_US 1000000u /* a message that takes longer is a cause of silence, too */
#define RETRY_US (SIM_BACKOFF_US_MAX + 1000u) /* after a renewal that was lost, at most */

/* ---- what befalls a process */

void checker_befell(struct world *world, uint32_t process, uint64_t until_us)
{
    uint64_t *until = &world->checker->befell_until_us[process];

    if (process < SIM_PROCESSES && *until < until_us)
        *until = until_us;
}

void checker_took(struct world *world, uint32_t process, uint64_t delay_us)
{
    if (delay_us >= SLOW_US)
        checker_befell(world, process, world->now_us + delay_us);
}

/* Has anything befallen the client, or a ps, since then? */
static bool has_cause(const struct world *world, const struct sim_session *life, uint64_t since_us)
{
    const uint64_t *until_us = world->checker->befell_until_us;
    bool befell = until_us[process_of_client(life->client)] >= since_us;

    for (uint32_t ps = 0; ps < world->ps_count; ps++)
        befell = befell || until_us[ps] >= since_us;
    return befell;
}

bool checker_was_calm(const struct world *world, const struct sim_session *life, uint64_t since_us)
{
    return !has_cause(world, life, since_us);
}

/* ---- what a client says */

struct sim_session *
checker_life_of(const struct world *world, uint32_t process, uint32_t process_life)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = checker->life_count; i-- > 0;) {
        struct sim_session *life = checker->lives[i];
        if (process_of_client(life->client) == process && life->process_life == process_life)
            return life;
    }
    return NULL;
}

/* Before it is carried out: has the client been silent for too long? A renewal that is under way is
 * asked for once. */
void checker_client_wakes(struct world *world, const struct client *client)
{
    struct sim_session *life = client->life;

    if (life == NULL || !life->joined || life->told_closed || life->ended || life->left ||
        life->renewing || client->phase == PHASE_LEAVING)
        return;
    if (world->processes[process_of_client(client->index)].suspended_until_us + 1000 >
        world->now_us)
        return; /* it slept, and says something now */
    if (world->now_us > life->speaks_by_us && !life->was_silent) {
        life->was_silent = true;
        checker_violation(world, "a client says nothing for more than a third of its lease");
    }
}

void checker_client_says(
    struct world *world, const struct client *client, const struct session_effect *effect)
{
    struct sim_session *life = client->life;
    const bool calls = effect->kind == SESSION_EFFECT_CALL;
    const bool renews =
        calls && effect->request->descriptor == &sumac__v1__renew_request__descriptor;

    /* An error of a call or a pull has said that another process has its task. */
    if (calls && client->phase != PHASE_LEAVING &&
        effect->request->descriptor == &sumac__v1__leave_request__descriptor)
        life->told_closed = true;
    if (!renews && effect->kind != SESSION_EFFECT_SEND_PUSH &&
        effect->kind != SESSION_EFFECT_SEND_PULL)
        return;
    life->renewing = life->renewing || renews;
    life->speaks_by_us = world->now_us + SPEAKS_US;
}

void checker_client_renewed(
    struct world *world, const struct client *client, const struct sumac_error *error)
{
    struct sim_session *life = client->life;
    const bool lost = error != NULL;

    if (lost && error->reason >= SUMAC_REASON_SESSION_UNKNOWN)
        life->told_closed = true;
    const uint64_t again_us = world->now_us + (lost ? RETRY_US : SPEAKS_US);
    life->renewing = false;
    if (life->speaks_by_us < again_us)
        life->speaks_by_us = again_us;
}

/* ---- what ps 0 hears */

/* Its own sleep of half a lease or more ps 0 takes from nobody; a shorter one it may not notice. */
void checker_sleeps(struct world *world, uint32_t process, uint64_t until_us)
{
    checker_befell(world, process, until_us);
    if (process != 0 || until_us - world->now_us < LEASE_US / 2)
        return;
    world->checker->ps0_slept_us += until_us - world->now_us;
    world->checker->ps0_wakes_us = until_us;
}

static uint64_t ps0_slept_us(const struct world *world)
{
    const struct checker *checker = world->checker;
    const uint64_t until_us = checker->ps0_wakes_us;

    return checker->ps0_slept_us - (until_us > world->now_us ? until_us - world->now_us : 0);
}

static uint64_t silence_us(const struct world *world, const struct sim_session *life)
{
    const uint64_t slept_us = ps0_slept_us(world) - life->heard_slept_us;
    const uint64_t passed_us = world->now_us - life->heard_us;

    return life->heard_us == 0 || passed_us < slept_us ? 0 : passed_us - slept_us;
}

static void heard(struct world *world, struct sim_session *life)
{
    if (life == NULL)
        return;
    const uint64_t silent_us = silence_us(world, life);
    if (silent_us > life->silent_us) {
        life->silent_us = silent_us;
        life->silent_since_us = life->heard_us;
    }
    life->heard_us = world->now_us;
    life->heard_slept_us = ps0_slept_us(world);
}

/* A message on a stream that a later one has taken the place of is not heard, and one on a broken
 * stream may not be. */
void checker_heard_stream(struct world *world, const struct stream *stream)
{
    if (stream->ps != 0 || stream->kind == LANE_STREAM_PEER ||
        stream->refused_for != SUMAC_REASON_UNSPECIFIED)
        return;
    const struct newest *newest = &world->checker->newest[0][stream->caller - SIM_PS_MAX];
    const bool old = newest->life == stream->caller_life && stream->generation < newest->generation;
    if (!stream->over && !(stream->kind == LANE_STREAM_PUSH && old))
        heard(world, checker_life_of(world, stream->caller, stream->caller_life));
}

void checker_heard_report(struct world *world, const wire_peer_report *report)
{
    const struct checker *checker = world->checker;

    for (size_t i = 0; i < report->n_renewed; i++)
        for (uint32_t k = 0; k < checker->life_count; k++)
            if (memcmp(checker->lives[k]->id, report->renewed[i].data, 16) == 0)
                heard(world, checker->lives[k]);
}

/* A join that is new closes the other sessions of its task; one that is tried again does not,
 * unless it was forgotten, as the older of two that wait is. */
static void joins(struct world *world, const struct sim_session *life)
{
    const struct checker *checker = world->checker;
    const struct client *client = world->clients[life->client];

    if (life->heard_us != 0 && !life->rivalled && silence_us(world, life) < CLOSED_AFTER_US)
        return;
    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct client *other = world->clients[checker->lives[i]->client];
        if (checker->lives[i] != life && client->member && other->member &&
            other->task == client->task)
            checker->lives[i]->rivalled = true;
    }
}

void checker_heard_call(struct world *world, const struct call *call, const wire_message *request)
{
    struct sim_session *life = checker_life_of(world, call->caller, call->caller_life);
    const struct client *client = world->clients[call->caller - SIM_PS_MAX];

    if (call->kind == LANE_CALL_JOIN)
        joins(world, life);
    if (call->kind == LANE_CALL_DELETE)
        world->checker->delete_asked = true;
    if (call->kind == LANE_CALL_LIST) /* anybody's: it names no session */
        return;
    heard(world, life);
    if (call->kind != LANE_CALL_LEAVE)
        return;
    life->leave_heard = true;
    const bool done = ((const wire_leave_request *)request)->done;
    life->says_done = life->says_done || done;
    if (done && client->member)
        world->checker->leave_asked = true;
}

/* Whatever was before, its lease began anew when the call was heard: the reply may have waited for
 * a record. */
void checker_renewed(struct world *world, const struct call *call)
{
    struct sim_session *life = checker_life_of(world, call->caller, call->caller_life);

    if (life != NULL)
        life->silent_us = 0;
}

bool checker_may_be_closed(const struct world *world, const struct sim_session *life)
{
    const uint64_t silent_us = silence_us(world, life);
    const bool longer = silent_us > life->silent_us;
    const uint64_t since_us = longer ? life->heard_us : life->silent_since_us;
    const bool unheard = (longer ? silent_us : life->silent_us) >= CLOSED_AFTER_US;

    return life->rivalled || life->dead || (unheard && has_cause(world, life, since_us));
}
