/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c -- a client's lock, and who holds it: what needs it can say so. */
#include "client_state.h"

#include <assert.h>
#include <time.h>

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
