/* SPDX-License-Identifier: Apache-2.0 */
/* replicas.c -- work that runs in all replicas of this process at once. */
#include "replicas.h"

#include <assert.h>
#include <stdlib.h>

#include "error.h"

enum sumac_status
replicas_open(const struct devices *devices, struct replicas *replicas, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    *replicas = (struct replicas){.count = devices == NULL ? 1 : devices->count};
    assert(replicas->count > 0);
    if (devices == NULL)
        return SUMAC_OK;
    replicas->devices = calloc(replicas->count, sizeof(struct device *));
    replicas->queues = calloc(replicas->count, sizeof(struct device_queue *));
    if (replicas->devices == NULL || replicas->queues == NULL)
        return fail_for_memory(error, "no memory for %u devices", replicas->count);
    for (uint32_t i = 0; status == SUMAC_OK && i < replicas->count; i++) {
        status = device_open(devices->kind, devices->number[i], &replicas->devices[i], error);
        if (status == SUMAC_OK)
            status = device_queue_open(replicas->devices[i], &replicas->queues[i], error);
    }
    return status;
}

void replicas_close_queues(struct replicas *replicas)
{
    for (uint32_t i = 0; replicas->queues != NULL && i < replicas->count; i++)
        device_queue_close(replicas->queues[i]);
    free(replicas->queues);
    replicas->queues = NULL;
}

void replicas_close(struct replicas *replicas)
{
    replicas_close_queues(replicas);
    for (uint32_t i = 0; replicas->devices != NULL && i < replicas->count; i++)
        device_close(replicas->devices[i]);
    free(replicas->devices);
    *replicas = (struct replicas){.count = 0};
}

void replicas_begin(
    const struct replicas *replicas, uint32_t index, device_work *work, void *context)
{
    assert(index < replicas->count);
    if (replicas->queues != NULL)
        device_run(replicas->queues[index], work, context);
    else
        (void)work(context);
}

enum sumac_status queues_wait(
    struct device_queue *const *queues, uint32_t count, device_wait_for *wait, uint64_t until_ns,
    uint32_t *failed)
{
    enum sumac_status first = SUMAC_OK;

    assert(count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; queues != NULL && i < count; i++) {
        const enum sumac_status status = wait(queues[i], until_ns);
        if (first != SUMAC_OK || status == SUMAC_OK)
            continue;
        first = status;
        if (failed != NULL)
            *failed = i;
    }
    return first;
}

void replicas_give_up(const struct replicas *replicas)
{
    for (uint32_t i = 0; replicas->devices != NULL && i < replicas->count; i++)
        device_give_up(replicas->devices[i]);
}

bool replicas_are_given_up(const struct replicas *replicas)
{
    return replicas->devices != NULL && replicas->count > 0 && replicas->devices[0] != NULL &&
           device_is_given_up(replicas->devices[0]);
}

const char *replicas_remedy(const struct replicas *replicas, const char *anew)
{
    for (uint32_t i = 0; replicas->devices != NULL && i < replicas->count; i++)
        if (atomic_load(&replicas->devices[i]->is_broken) ||
            device_is_given_up(replicas->devices[i]))
            return "end the process, which alone frees the GPU";
    return anew;
}
