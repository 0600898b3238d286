/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_group.c -- collectives of CPU devices: every queue's thread does its share of each call.
 * The threads meet before and after each share.
 *
 * A reduction's share is a range of elements, so each thread adds the replicas in the same order.
 * A replica's thread makes the copies that the replica gets.
 */
#include "device_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "pause.h"
#include "reduce.h"
#include "text.h"

struct cpu_group;

struct cpu_member {
    struct cpu_group *group;
    struct device_queue *queue;
    uint32_t replica;
    uint64_t met; /* meetings that it came to */
};

struct cpu_group {
    struct device_group base;
    struct cpu_member *members; /* (replicas) */
    uint64_t arrivals;          /* at meetings, of all members together */
    uint32_t queued, at_work;   /* members whose job goes on; that may touch values */
};

/* ---- the calls */

/* The elements that the replica reduces. */
static void reduce_share(
    const struct cpu_group *group, const struct group_call *call, uint32_t replica, void *const *to,
    uint32_t targets)
{
    const uint64_t elements = call->values.elements[0];
    const uint64_t each = elements / group->base.replicas + 1;
    const uint64_t first = each * replica < elements ? each * replica : elements;
    const struct reduce_input input = {
        .dtype = call->values.dtype,
        .first = first,
        .elements = elements - first < each ? elements - first : each,
        .from = call->values.from,
        .replicas = group->base.replicas,
        .to = to,
        .targets = targets,
        .weights = call->values.weights,
    };

    assert(input.first + input.elements <= elements);
    reduce_values(call->op, &input);
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

static void
make_share(const struct cpu_group *group, const struct group_call *call, uint32_t replica)
{
    const struct device_group_values *values = &call->values;
    const uint32_t replicas = group->base.replicas;
    char *to = values->to[replica];

    assert(call->root < replicas);
    switch (call->kind) {
    case GROUP_REDUCE:
        reduce_share(group, call, replica, &values->to[call->root], 1);
        break;
    case GROUP_ALL_REDUCE:
        reduce_share(group, call, replica, values->to, replicas);
        break;
    case GROUP_ALL_GATHER:
        for (uint32_t i = 0; i < replicas; i++) {
            const uint64_t bytes = values->elements[i] * sumac_dtype_bytes(values->dtype);
            copy(to, values->from[i], bytes);
            to += bytes;
        }
        break;
    case GROUP_BROADCAST:
        copy(to, values->from[call->root], values->elements[0] * sumac_dtype_bytes(values->dtype));
        break;
    }
}

/* ---- a member's job */

/* False: the group is aborted. */
static bool meet(struct cpu_member *member)
{
    struct cpu_group *group = member->group;

    assert(group->at_work > 0);
    member->met++;
    group->arrivals++;
    const uint64_t all = member->met * group->base.replicas;
    assert(group->arrivals <= all); /* no member is a meeting ahead */
    if (group->arrivals == all)
        pthread_cond_broadcast(&group->base.changed);
    group->at_work--; /* it touches nothing while it waits */
    while (group->arrivals < all && !group->base.aborted)
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    group->at_work++;
    return !group->base.aborted;
}

static enum sumac_status take_part(void *context)
{
    struct cpu_member *member = context;
    struct cpu_group *group = member->group;

    pthread_mutex_lock(&group->base.mutex);
    group->at_work++;
    bool goes_on = !group->base.aborted && meet(member);
    for (uint32_t i = 0; goes_on && i < group->base.call_count; i++) {
        pthread_mutex_unlock(&group->base.mutex);
        make_share(group, &group->base.calls[i], member->replica);
        pthread_mutex_lock(&group->base.mutex);
        goes_on = meet(member);
        if (goes_on) /* all have made it */
            device_group_pass_call(&group->base.calls[i]);
    }
    assert(group->at_work > 0 && group->queued > 0);
    group->at_work--;
    group->queued--;
    pthread_cond_broadcast(&group->base.changed);
    pthread_mutex_unlock(&group->base.mutex);
    return SUMAC_OK; /* an abort is the group's to tell */
}

/* ---- the group */

static void start(struct device_group *base)
{
    struct cpu_group *group = (struct cpu_group *)base;

    pthread_mutex_lock(&group->base.mutex);
    assert(group->queued == 0 || group->base.aborted);
    group->queued += base->replicas;
    device_group_promise(base);
    pthread_mutex_unlock(&group->base.mutex);
    for (uint32_t i = 0; i < base->replicas; i++)
        device_run(group->members[i].queue, take_part, &group->members[i]);
}

/* "1 (CPU:1), 3 (CPU:3)": those that came to fewer meetings than others. */
static void list_missing(const struct cpu_group *group, char *text, size_t text_bytes)
{
    uint64_t most = 0;
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < group->base.replicas; i++)
        most = group->members[i].met > most ? group->members[i].met : most;
    const uint64_t expected = group->arrivals == most * group->base.replicas ? most + 1 : most;
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        char name[16];
        if (group->members[i].met < expected)
            used += text_print(
                text + used, text_bytes - used, "%s%u (%s)", used == 0 ? "" : ", ", i,
                device_name(group->members[i].queue->device, name, sizeof name));
    }
}

static enum sumac_status
wait_for(struct device_group *base, uint32_t timeout_ms, struct sumac_error *error)
{
    struct cpu_group *group = (struct cpu_group *)base;
    const uint64_t until_ns = device_until(timeout_ms);
    char missing[128] = "";
    bool in_time = true;

    pthread_mutex_lock(&group->base.mutex);
    while (in_time && group->queued > 0 && !(group->base.aborted && group->at_work == 0))
        in_time = pause_until(&group->base.changed, &group->base.mutex, until_ns);
    const bool aborted = base->has_ended = group->base.aborted;
    const bool over = group->queued == 0 || (aborted && group->at_work == 0);
    if (!over)
        list_missing(group, missing, sizeof missing);
    else
        device_group_pass(base);
    pthread_mutex_unlock(&group->base.mutex);
    if (!over)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "a group of %u replicas waited %u ms for replica %s", base->replicas, timeout_ms,
            missing);
    return aborted ? device_group_fail_aborted(base, error) : SUMAC_OK;
}

static void abort_group(struct device_group *base)
{
    pthread_mutex_lock(&base->mutex);
    base->aborted = true;
    pthread_cond_broadcast(&base->changed);
    pthread_mutex_unlock(&base->mutex);
}

static void close_group(struct device_group *base)
{
    struct cpu_group *group = (struct cpu_group *)base;

    pthread_mutex_lock(&group->base.mutex);
    while (group->queued > 0) /* a member that is late finds the group aborted, and leaves it */
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    assert(group->at_work == 0);
    device_group_pass(base);
    pthread_mutex_unlock(&group->base.mutex);
    free(group->members);
    device_group_free(base);
}

static enum sumac_status
begin(struct device_group *base, struct device_queue *const *queues, struct sumac_error *error)
{
    struct cpu_group *group = (struct cpu_group *)base;
    const uint32_t replicas = base->replicas;

    group->members = calloc(replicas, sizeof *group->members);
    if (group->members == NULL) {
        device_group_free(base);
        return fail_for_memory(error, "no memory for a group of %u replicas", replicas);
    }
    for (uint32_t i = 0; i < replicas; i++)
        group->members[i] = (struct cpu_member){.group = group, .queue = queues[i], .replica = i};
    return SUMAC_OK;
}

const struct device_group_ops cpu_group_ops = {
    .bytes = sizeof(struct cpu_group),
    .begin = begin,
    .close = close_group,
    .start = start,
    .wait = wait_for,
    .abort = abort_group,
};
