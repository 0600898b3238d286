/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_group.c -- collectives of CPU devices: every queue's thread does its share of each call.
 * The threads meet before and after each share.
 *
 * A reduction's share is a range of elements, so each thread adds the replicas in the same order.
 * A replica's thread makes the copies that the replica gets.
 */
#include "device_group.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "reduce.h"
#include "text.h"

struct cpu_group;
struct group_call;

typedef void
group_share(const struct cpu_group *group, const struct group_call *call, uint32_t replica);

struct group_call {
    group_share *share;
    struct device_group_values values;
    enum sumac_reduce_op op;
    uint32_t root;
    struct device_event *over; /* NULL: nobody awaits this call alone */
};

struct cpu_member {
    struct cpu_group *group;
    struct device_queue *queue;
    uint32_t replica;
    uint64_t met; /* meetings that it came to */
};

struct cpu_group {
    struct device_group base;
    struct cpu_member *members; /* (replicas) */
    struct group_call *calls;   /* (calls_max) */
    pthread_mutex_t mutex;      /* guards what follows, and the members' met */
    pthread_cond_t changed;
    uint64_t arrivals;        /* at meetings, of all members together */
    uint32_t queued, at_work; /* members whose job has not ended; that may touch values */
    bool aborted;
};

/* ---- a member's job */

/* False: the group is aborted. */
static bool meet(struct cpu_member *member)
{
    struct cpu_group *group = member->group;

    assert(group->at_work > 0);
    member->met++;
    group->arrivals++;
    const uint64_t all = member->met * group->base.replicas;
    assert(group->arrivals <= all); /* nobody is a meeting ahead */
    if (group->arrivals == all)
        pthread_cond_broadcast(&group->changed);
    group->at_work--; /* it touches nothing while it waits */
    while (group->arrivals < all && !group->aborted)
        pthread_cond_wait(&group->changed, &group->mutex);
    group->at_work++;
    return !group->aborted;
}

/* Under the mutex: a call has been made, or, of an aborted group, nobody need wait for it. */
static void pass_event(struct group_call *call)
{
    struct device_event *over = call->over;

    call->over = NULL;
    if (over != NULL)
        device_event_pass(over);
}

static void release_events(struct cpu_group *group)
{
    assert(group->base.calls <= group->base.calls_max);
    for (uint32_t i = 0; i < group->base.calls; i++)
        pass_event(&group->calls[i]);
}

static enum sumac_status take_part(void *context)
{
    struct cpu_member *member = context;
    struct cpu_group *group = member->group;

    pthread_mutex_lock(&group->mutex);
    group->at_work++;
    bool goes_on = !group->aborted && meet(member);
    for (uint32_t i = 0; goes_on && i < group->base.calls; i++) {
        pthread_mutex_unlock(&group->mutex);
        group->calls[i].share(group, &group->calls[i], member->replica);
        pthread_mutex_lock(&group->mutex);
        goes_on = meet(member);
        if (goes_on) /* all have made it */
            pass_event(&group->calls[i]);
    }
    assert(group->at_work > 0 && group->queued > 0);
    group->at_work--;
    group->queued--;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    return SUMAC_OK; /* an abort is the group's to tell */
}

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

static void
share_of_reduce(const struct cpu_group *group, const struct group_call *call, uint32_t replica)
{
    reduce_share(group, call, replica, &call->values.to[call->root], 1);
}

static void
share_of_all_reduce(const struct cpu_group *group, const struct group_call *call, uint32_t replica)
{
    reduce_share(group, call, replica, call->values.to, group->base.replicas);
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0)
        memcpy(to, from, bytes);
}

static void
share_of_all_gather(const struct cpu_group *group, const struct group_call *call, uint32_t replica)
{
    const struct device_group_values *values = &call->values;
    char *to = values->to[replica];

    for (uint32_t i = 0; i < group->base.replicas; i++) {
        const uint64_t bytes = values->elements[i] * sumac_dtype_bytes(values->dtype);
        copy(to, values->from[i], bytes);
        to += bytes;
    }
}

static void
share_of_broadcast(const struct cpu_group *group, const struct group_call *call, uint32_t replica)
{
    const struct device_group_values *values = &call->values;

    assert(call->root < group->base.replicas);
    copy(
        values->to[replica], values->from[call->root],
        values->elements[0] * sumac_dtype_bytes(values->dtype));
}

static void
add(struct device_group *base, enum group_call_kind kind, enum sumac_reduce_op op, uint32_t root,
    const struct device_group_values *values)
{
    static group_share *const shares[] = {
        [GROUP_REDUCE] = share_of_reduce,
        [GROUP_ALL_REDUCE] = share_of_all_reduce,
        [GROUP_ALL_GATHER] = share_of_all_gather,
        [GROUP_BROADCAST] = share_of_broadcast,
    };
    struct cpu_group *group = (struct cpu_group *)base;

    assert(base->calls < base->calls_max);
    group->calls[base->calls] = (struct group_call){shares[kind], *values, op, root, NULL};
}

static void record(struct device_group *base, struct device_event *event)
{
    assert(event->device->ops->group_ops == base->ops);
    ((struct cpu_group *)base)->calls[base->calls - 1].over = event;
}

/* ---- the group */

static void start(struct device_group *base)
{
    struct cpu_group *group = (struct cpu_group *)base;

    pthread_mutex_lock(&group->mutex);
    assert(group->queued == 0 || group->aborted);
    group->queued += base->replicas;
    pthread_mutex_unlock(&group->mutex);
    for (uint32_t i = 0; i < base->calls; i++)
        if (group->calls[i].over != NULL)
            device_event_promise(group->calls[i].over);
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

static struct timespec later(uint32_t timeout_ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static enum sumac_status
wait_for(struct device_group *base, uint32_t timeout_ms, struct sumac_error *error)
{
    struct cpu_group *group = (struct cpu_group *)base;
    const struct timespec until = later(timeout_ms);
    char missing[128] = "";
    int late = 0;

    pthread_mutex_lock(&group->mutex);
    while (late == 0 && group->queued > 0 && !(group->aborted && group->at_work == 0))
        late = timeout_ms == DEVICE_GROUP_NO_LIMIT
                   ? pthread_cond_wait(&group->changed, &group->mutex)
                   : pthread_cond_timedwait(&group->changed, &group->mutex, &until);
    const bool aborted = base->has_ended = group->aborted;
    const bool over = group->queued == 0 || (aborted && group->at_work == 0);
    if (!over)
        list_missing(group, missing, sizeof missing);
    else
        release_events(group);
    pthread_mutex_unlock(&group->mutex);
    if (!over)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "a group of %u replicas waited %u ms for replica %s", base->replicas, timeout_ms,
            missing);
    if (aborted)
        return fail(
            error, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
            "the group of %u replicas was aborted: open another", base->replicas);
    return SUMAC_OK;
}

static void abort_group(struct device_group *base)
{
    struct cpu_group *group = (struct cpu_group *)base;

    pthread_mutex_lock(&group->mutex);
    group->aborted = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
}

static void close_group(struct device_group *base)
{
    struct cpu_group *group = (struct cpu_group *)base;

    pthread_mutex_lock(&group->mutex);
    while (group->queued > 0) /* a member that is late finds the group aborted, and leaves it */
        pthread_cond_wait(&group->changed, &group->mutex);
    assert(group->at_work == 0);
    release_events(group);
    pthread_mutex_unlock(&group->mutex);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    free(group->calls);
    free(group->members);
    free(group);
}

static enum sumac_status open_group(
    struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
    struct device_group **group, struct sumac_error *error)
{
    struct cpu_group *opened = calloc(1, sizeof *opened);
    struct cpu_member *members = calloc(replicas, sizeof *members);
    struct group_call *calls = calloc(calls_max, sizeof *calls);

    if (opened == NULL || members == NULL || calls == NULL) {
        free(calls);
        free(members);
        free(opened);
        return fail_for_memory(error, "no memory for a group of %u replicas", replicas);
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&opened->mutex, NULL);
    pthread_cond_init(&opened->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (uint32_t i = 0; i < replicas; i++)
        members[i] = (struct cpu_member){.group = opened, .queue = queues[i], .replica = i};
    opened->base =
        (struct device_group){.ops = &cpu_group_ops, .replicas = replicas, .calls_max = calls_max};
    opened->members = members;
    opened->calls = calls;
    *group = &opened->base;
    return SUMAC_OK;
}

const struct device_group_ops cpu_group_ops = {
    .has = reduce_has,
    .open = open_group,
    .close = close_group,
    .add = add,
    .record = record,
    .start = start,
    .wait = wait_for,
    .abort = abort_group,
};
