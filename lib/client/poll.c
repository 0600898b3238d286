/* SPDX-License-Identifier: Apache-2.0 */
/* poll.c -- the polling rule: the thread that waits polls; another one only while nobody waits.
 *
 * A hop to another thread costs more than a small push, so the thread that wants the answer takes
 * it off the wire itself. The background thread comes in when no one has waited for IDLE_US, and
 * looks up after SLICE_US at the latest: a program that waits, or pushes, in a loop never meets it.
 */
#include "client_state.h"

#include <signal.h>

#define IDLE_US 15000u
#define SLICE_US 10000u
#define LOOK_US 200000u /* a wait sees by then that another thread cancelled its transfer */

/* False: the session wants no tick yet. */
static bool tick_when_due(struct sumac_client *client)
{
    assert(client_is_locked(client));
    const uint64_t now_us = client_now_us();
    if (now_us < client->wake_us)
        return false;
    client->wake_us = NEVER_US;
    client_step(client, &(struct session_event){.kind = SESSION_EVENT_TICK, .now_us = now_us});
    return true;
}

/* Poll once, up to `until_us`, the lock given up while nothing has come. */
static void poll_once(struct sumac_client *client, uint64_t until_us)
{
    assert(!client->polling); /* one thread at a time */
    assert(!client->stepping);
    struct rpc_event event;
    const uint64_t to_us = until_us < client->wake_us ? until_us : client->wake_us;
    client->polling = true;
    rpc_ask(client->poller);
    client_unlock(client);
    const enum rpc_polled polled = rpc_wait(client->poller, to_us, &event);
    client_lock(client);
    assert(client->polling); /* nobody took the place meanwhile */
    client->polling = false;
    if (polled == RPC_POLLED_EVENT)
        rpc_handle(client->poller, &event);
    (void)tick_when_due(client);
}

void client_poll_once(struct sumac_client *client)
{
    assert(client_is_here(client));
    if (client->polling && !tick_when_due(client))
        return;
    if (!client->polling)
        poll_once(client, 0);
    if (client->waiters > 0)
        pthread_cond_broadcast(&client->happened);
}

bool client_wait(
    struct sumac_client *client, bool (*done)(void *context), void *context, uint64_t until_us)
{
    assert(client_is_locked(client));
    assert(client_is_here(client)); /* a child of its process has its connections, too */
    bool is_done = done(context);
    client->waiters++;
    while (!is_done || client->acknowledging) {
        const uint64_t now_us = client_now_us();
        if (now_us >= until_us)
            break;
        if (client->polling) {
            /* Who polls wakes up as it was asked to when it began. */
            const uint64_t wake_us = client->wake_us;
            client_sleep(client, &client->happened, until_us < wake_us ? until_us : wake_us);
            if (tick_when_due(client) && client->waiters > 1)
                pthread_cond_broadcast(&client->happened);
        } else {
            poll_once(client, until_us < now_us + LOOK_US ? until_us : now_us + LOOK_US);
            if (client->waiters > 1)
                pthread_cond_broadcast(&client->happened);
        }
        is_done = done(context);
    }
    assert(client->waiters > 0);
    client->waiters--;
    client->used_us = client_now_us();
    return is_done;
}

bool client_wait_and_say(
    struct sumac_client *client, bool (*done)(void *context), void (*say)(void *context),
    void *context, uint64_t until_us)
{
    assert(say != NULL);
    for (;;) {
        const uint64_t report_us = client_now_us() + REPORT_US;
        if (client_wait(client, done, context, report_us < until_us ? report_us : until_us))
            return true;
        if (client_now_us() >= until_us)
            return false;
        say(context);
    }
}

static void *run_background(void *context)
{
    struct sumac_client *client = context;

    client_lock(client);
    while (!client->closing) {
        const uint64_t now_us = client_now_us();
        if (client->waiters > 0 || client->polling || now_us < client->used_us + IDLE_US) {
            client_sleep(client, &client->quiet, now_us + IDLE_US);
            continue;
        }
        poll_once(client, now_us + SLICE_US);
        if (client->waiters > 0)
            pthread_cond_broadcast(&client->happened);
    }
    client_unlock(client);
    return NULL;
}

/* The program's signals are for the program's threads. */
bool client_start_background(struct sumac_client *client)
{
    assert(!client->background_runs);
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
    client->background_runs =
        pthread_create(&client->background, NULL, run_background, client) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return client->background_runs;
}

void client_stop_background(struct sumac_client *client)
{
    client_lock(client);
    assert(!client->closing); /* it is closed once */
    client->closing = true;
    pthread_cond_signal(&client->quiet);
    client_unlock(client);
    if (client->background_runs)
        (void)pthread_join(client->background, NULL);
    client->background_runs = false;
}
