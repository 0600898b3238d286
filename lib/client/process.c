/* SPDX-License-Identifier: Apache-2.0 */
/* process.c -- a client is for the process that opened it.
 *
 * After a fork both processes would have one session, and each would number its own pushes: what
 * one of them pushes would be taken for what the other has pushed, acknowledged and lost. So every
 * call asks first whether this is the process, before it takes a lock, which another thread may
 * have held at the fork. What it costs is one read: the child's count is one more.
 */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "error.h"

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
