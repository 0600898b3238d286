/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c -- a client's lock, the process that may take it, and the time until which it is waited
 * for something.
 */
#include "client_state.h"

#include <time.h>
#include <unistd.h>

#include "error.h"

#define ANSWER_MS 1000u /* for an answer to come back */

/* ---- the lock, and who holds it: what needs it can say so */

static void note_held(struct sumac_client *client)
{
    assert(!client->locked);
    client->locked = true;
    client->holder = pthread_self();
}

static void note_given_up(struct sumac_client *client)
{
    assert(client_is_locked(client));
    client->locked = false;
}

void client_lock(struct sumac_client *client)
{
    pthread_mutex_lock(&client->lock);
    note_held(client);
}

void client_unlock(struct sumac_client *client)
{
    note_given_up(client);
    pthread_mutex_unlock(&client->lock);
}

void client_sleep(struct sumac_client *client, pthread_cond_t *condition, uint64_t until_us)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_us / 1000000), .tv_nsec = (long)(until_us % 1000000) * 1000};

    note_given_up(client);
    (void)pthread_cond_timedwait(condition, &client->lock, &until);
    note_held(client);
}

bool client_is_locked(const struct sumac_client *client)
{
    return client->locked && pthread_equal(client->holder, pthread_self());
}

/* ---- the process
 *
 * After a fork both processes would have one session, and each would number its own pushes: what
 * one of them pushes would be taken for what the other has pushed, acknowledged and lost. So every
 * call asks first whether this is the process that opened the client, before it takes a lock, which
 * another thread may have held at the fork. The question costs one read: the child's count is one
 * more.
 */

static atomic_uint forks; /* that led to this process, since it first opened a client */
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void note_fork(void) { atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed); }

static void watch_forks(void) { pthread_atfork(NULL, NULL, note_fork); }

void client_note_process(struct sumac_client *client)
{
    assert(client->process == 0); /* it stays that of its first */
    pthread_once(&watched, watch_forks);
    client->forks = atomic_load_explicit(&forks, memory_order_relaxed);
    client->process = (int64_t)getpid();
}

bool client_is_here(const struct sumac_client *client)
{
    return atomic_load_explicit(&forks, memory_order_relaxed) == client->forks;
}

enum sumac_status client_check_process(const struct sumac_client *client, struct sumac_error *error)
{
    if (client_is_here(client))
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "this client was opened by process %" PRIi64 ", and this is its child %" PRIi64
        ": fork first, then open a client in each process",
        client->process, (int64_t)getpid());
}

enum sumac_status client_enter(
    struct sumac_client *client, const char *null, const char *function, struct sumac_error *error)
{
    if (null != NULL)
        return fail_for_null(error, function, null);
    const enum sumac_status status = client_check_process(client, error);
    if (status == SUMAC_OK)
        client_lock(client);
    return status;
}

/* ---- the time */

uint64_t client_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint32_t client_ps_patience_ms(uint32_t timeout_ms)
{
    assert(timeout_ms > 0);
    const uint32_t half_ms = timeout_ms / 2;
    return timeout_ms - (half_ms < ANSWER_MS ? half_ms : ANSWER_MS);
}
