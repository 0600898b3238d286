/* SPDX-License-Identifier: Apache-2.0 */
/* shares.c -- what is computed over many bytes is computed by all threads that have nothing else to
 * do: whoever has computed a piece takes the next one, until there is none.
 *
 * In a call of all replicas the others wait for what it comes to (call.c), and help meanwhile;
 * beside a run the devices' threads do. There is no more help than there are cores. What a piece
 * comes to does not depend on who computes it, nor on how many do.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "strategy.h"

#include <assert.h>
#include <sched.h>

#define SHARED_BYTES_MIN (UINT64_C(512) << 10) /* less is done before anybody has woken */
#define WAKING_BYTES_MIN (UINT64_C(8) << 20)   /* and of threads that sleep for certain */

uint32_t shares_helpers(uint32_t replicas)
{
    cpu_set_t cores;

    assert(replicas > 0);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        return 0;
    const uint32_t count = (uint32_t)CPU_COUNT(&cores);
    return (replicas < count ? replicas : count) - 1;
}

void shares_take(struct shares *shares)
{
    for (;;) {
        const uint64_t first =
            atomic_fetch_add_explicit(&shares->next, shares->units_at_once, memory_order_relaxed);
        if (first >= shares->units)
            return;
        const uint64_t left = shares->units - first;
        shares->function(
            shares->context, first, left < shares->units_at_once ? left : shares->units_at_once);
    }
}

static enum sumac_status take_on_device(void *context)
{
    shares_take(context);
    return SUMAC_OK;
}

/* No run has the devices. */
static void run_on_devices(struct sumac_strategy *strategy, struct shares *shares)
{
    assert(strategy->helpers < strategy->replicas);
    for (uint32_t i = 0; i < strategy->helpers; i++)
        replicas_begin(&strategy->own, i, take_on_device, shares);
    shares_take(shares);
    (void)queues_wait(/* no share fails */
                      strategy->own.queues, strategy->helpers, device_settle, DEVICE_NO_LIMIT,
                      NULL);
}

void shares_run(struct sumac_strategy *strategy, struct shares *shares)
{
    const uint64_t bytes = shares->bytes;

    assert(shares->units_at_once > 0);
    atomic_init(&shares->next, 0);
    if (strategy->helpers == 0 || bytes < SHARED_BYTES_MIN) {
        shares_take(shares);
    } else if (context_present()->replica != NULL) {
        calls_share(strategy, shares);
    } else if (bytes >= WAKING_BYTES_MIN && pthread_mutex_trylock(&strategy->running) == 0) {
        run_on_devices(strategy, shares);
        pthread_mutex_unlock(&strategy->running);
    } else {
        shares_take(shares);
    }
}
