/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_collective.c -- collectives of GPUs, by NCCL: every queue's thread asks for its rank's part
 * of each batch (nccl_call.h), and the GPUs do it in their streams.
 *
 *     GPU:0   thread  | ask batch 0, poll | ask batch 1, poll | record over |
 *             stream  ……       | batch 0 | batch 1 | over
 *     GPU:1   the same, and NCCL makes the streams meet
 *
 * What NCCL would not add as the CPU does is made wide before, and narrow after that (wide.h).
 *
 * It does not hang. Communicators do not block: what is asked for has begun when NCCL says so, and
 * until then, and until it is over, whoever waits asks NCCL for errors. An error, or an abort, ends
 * all communicators of the group; NCCL's kernels leave then, and what waits in the streams goes on.
 * NCCL wants nobody to use a communicator that is being ended, so each use is between enter and
 * leave, and the group's end comes when nobody is there.
 */
#include "collective.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_device.h"
#include "error.h"
#include "nccl_call.h"
#include "reduce.h"
#include "text.h"
#include "wide.h"

#define OPEN_MS_MAX 60000u          /* for communicators to find each other */
#define PAUSE_US_MAX UINT64_C(2000) /* between two looks */
#define YIELDS 100u                 /* looks without a pause: most calls are short */

struct member {
    struct cuda_group *group;
    struct cuda_queue *queue;
    struct nccl_rank rank;
    struct wide wide;
    CUevent over;        /* its part of the last start */
    uint64_t come, left; /* starts whose job has begun, has ended */
    bool inside;         /* somebody uses the communicator */
};

struct cuda_group {
    struct collective_group base;
    const struct cuda_driver *driver;
    const struct nccl_library *library; /* NULL: one replica alone */
    struct member *members;             /* (replicas) */
    struct nccl_call *calls;            /* (calls_max) */
    pthread_mutex_t mutex;              /* guards what follows, and what changes of the members */
    pthread_cond_t changed;
    uint64_t starts;
    bool aborted, ended;        /* told to end; its communicators are gone */
    struct sumac_error failure; /* the first; its status is OK: there is none */
};

static const struct cuda_device *device_of(const struct member *member)
{
    return (const struct cuda_device *)member->queue->jobs.base.device;
}

static const char *name_of(const struct member *member, char *text, uint32_t text_bytes)
{
    return device_name(member->queue->jobs.base.device, text, text_bytes);
}

static bool is_fine(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Under the mutex: until something has changed, or it is time to look again. */
static void pause_looking(struct cuda_group *group, uint32_t *looks)
{
    const uint32_t beyond = *looks > YIELDS ? *looks - YIELDS : 0;
    const uint64_t us = beyond < 6 ? UINT64_C(50) << beyond : PAUSE_US_MAX;
    struct timespec until;

    ++*looks;
    if (*looks <= YIELDS) {
        pthread_mutex_unlock(&group->mutex);
        (void)sched_yield();
        pthread_mutex_lock(&group->mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)us * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&group->changed, &group->mutex, &until);
}

/* ---- the end of a group */

/* Under the mutex. False: the group has ended, or will. */
static bool enter(struct member *member)
{
    struct cuda_group *group = member->group;

    while (member->inside && !group->aborted)
        pthread_cond_wait(&group->changed, &group->mutex);
    if (group->aborted)
        return false;
    member->inside = true;
    return true;
}

static void leave(struct member *member)
{
    assert(member->inside);
    member->inside = false;
    pthread_cond_broadcast(&member->group->changed);
}

static bool anybody_inside(const struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++)
        if (group->members[i].inside)
            return true;
    return false;
}

/* Under the mutex; whoever is inside has left first. Others may wait for the end of it, too. */
static void end_communicators(struct cuda_group *group)
{
    const bool mine = !group->aborted;

    group->aborted = true;
    pthread_cond_broadcast(&group->changed);
    while (mine ? anybody_inside(group) : !group->ended)
        pthread_cond_wait(&group->changed, &group->mutex);
    if (!mine)
        return;
    pthread_mutex_unlock(&group->mutex); /* nobody enters any more */
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        struct member *member = &group->members[i];
        CUcontext popped = NULL;
        const bool current =
            group->driver->cuCtxPushCurrent(device_of(member)->context) == CUDA_SUCCESS;
        if (member->rank.comm != NULL)
            (void)group->library->ncclCommAbort(member->rank.comm);
        member->rank.comm = NULL;
        if (current)
            (void)group->driver->cuCtxPopCurrent(&popped);
    }
    pthread_mutex_lock(&group->mutex);
    assert(!anybody_inside(group));
    group->ended = true;
    pthread_cond_broadcast(&group->changed);
}

/* Under the mutex: what NCCL said of a rank ends the group; the first word counts. */
static void fail_group(struct member *member, ncclResult_t result)
{
    struct cuda_group *group = member->group;
    char name[16];

    assert(!is_fine(result));
    assert(group->library != NULL);
    if (group->failure.status == SUMAC_OK && !group->aborted)
        (void)fail(
            &group->failure, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
            "start %" PRIu64
            " of a group of %u replicas failed at replica %u (%s): NCCL says: %s; the "
            "group was aborted: open another",
            group->starts, group->base.replicas, member->rank.replica,
            name_of(member, name, sizeof name), group->library->ncclGetErrorString(result));
    end_communicators(group);
}

static void fail_group_by_driver(struct member *member, CUresult result, const char *what)
{
    struct cuda_group *group = member->group;
    char name[16];

    if (group->failure.status == SUMAC_OK && !group->aborted)
        (void)cuda_fail(
            &group->failure, group->driver, result,
            "start %" PRIu64 " of a group of %u replicas was aborted: replica %u (%s) %s",
            group->starts, group->base.replicas, member->rank.replica,
            name_of(member, name, sizeof name), what);
    end_communicators(group);
}

/* ---- a member's job */

/* Under the mutex: until what the rank was asked for has begun. */
static bool await_begin(struct member *member)
{
    struct cuda_group *group = member->group;
    ncclResult_t state = ncclInProgress;
    uint32_t looks = 0;

    while (enter(member)) {
        pthread_mutex_unlock(&group->mutex);
        const ncclResult_t result =
            group->library->ncclCommGetAsyncError(member->rank.comm, &state);
        pthread_mutex_lock(&group->mutex);
        leave(member);
        if (result == ncclSuccess && state == ncclSuccess)
            return true;
        if (result != ncclSuccess || state != ncclInProgress) {
            fail_group(member, result != ncclSuccess ? result : state);
            return false;
        }
        pause_looking(group, &looks);
    }
    return false;
}

static ncclResult_t
ask(const struct nccl_rank *rank, const struct nccl_call *calls, uint32_t count, ncclRedOp_t *ops)
{
    ncclResult_t result = ncclSuccess;

    for (uint32_t i = 0; i < count; i++)
        ops[i] = ncclSum;
    for (uint32_t i = 0; is_fine(result) && i < count; i++)
        result = nccl_call_prepare(rank, &calls[i], &ops[i]);
    if (!is_fine(result))
        return result;
    result = rank->library->ncclGroupStart();
    for (uint32_t i = 0; is_fine(result) && i < count; i++)
        result = nccl_call_issue(rank, &calls[i], ops[i]);
    const ncclResult_t ended = rank->library->ncclGroupEnd();
    return is_fine(result) ? ended : result;
}

/* Under the mutex: what NCCL does of the batch has begun. */
static bool ask_nccl(struct member *member, const struct nccl_call *calls, uint32_t count)
{
    struct cuda_group *group = member->group;
    ncclRedOp_t ops[NCCL_BATCH_CALLS_MAX];

    assert(count > 0 && count <= NCCL_BATCH_CALLS_MAX);
    if (!enter(member))
        return false;
    pthread_mutex_unlock(&group->mutex);
    const ncclResult_t result = ask(&member->rank, calls, count, ops);
    pthread_mutex_lock(&group->mutex);
    leave(member);
    if (!is_fine(result))
        fail_group(member, result);
    if (!is_fine(result) || !await_begin(member) || !enter(member))
        return false;
    for (uint32_t i = 0; i < count; i++)
        nccl_call_forget(&member->rank, ops[i]);
    leave(member);
    return true;
}

/* Under the mutex: what the library's own kernels do of it before, or after. */
static bool
put_wide(struct member *member, const struct nccl_call *calls, uint32_t count, wide_step *step)
{
    struct cuda_group *group = member->group;
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        if (calls[i].is_wide)
            result = step(group->driver, &member->wide, &member->rank, &calls[i]);
    if (result != CUDA_SUCCESS)
        fail_group_by_driver(member, result, "does not run a kernel of a reduction");
    return result == CUDA_SUCCESS;
}

static bool issue_batch(struct member *member, const struct nccl_call *calls, uint32_t count)
{
    return put_wide(member, calls, count, wide_begin) && ask_nccl(member, calls, count) &&
           put_wide(member, calls, count, wide_end);
}

/* Under the mutex: record the events of the rank's device behind what its stream has of the calls.
 */
static CUresult record_events(struct member *member, struct nccl_call *calls, uint32_t count)
{
    const struct cuda_group *group = member->group;
    CUresult result = CUDA_SUCCESS;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        struct cuda_event *over = (struct cuda_event *)calls[i].over;
        if (over == NULL || over->base.base.device != member->queue->jobs.base.device)
            continue;
        const CUresult recorded = group->driver->cuEventRecord(over->event, member->queue->stream);
        result = result == CUDA_SUCCESS ? recorded : result;
        calls[i].over = NULL;
        job_event_pass(&over->base);
    }
    return result;
}

/* Under the mutex: of an aborted group's calls whoever awaits one need not wait any more. */
static void release_events(struct cuda_group *group)
{
    assert(group->aborted);
    for (uint32_t i = 0; i < group->base.calls; i++) {
        struct job_event *over = (struct job_event *)group->calls[i].over;
        group->calls[i].over = NULL;
        if (over != NULL)
            job_event_pass(over);
    }
}

/* A replica alone has what it gives. */
static void copy_alone(struct member *member)
{
    const struct cuda_group *group = member->group;

    for (uint32_t i = 0; i < group->base.calls; i++) {
        const struct collective_values *values = &group->calls[i].values;
        const uint64_t bytes = values->elements[0] * sumac_dtype_bytes(values->dtype);
        if (values->to[0] != values->from[0] && bytes > 0)
            (void)group->driver->cuMemcpyAsync(
                (CUdeviceptr)(uintptr_t)values->to[0], (CUdeviceptr)(uintptr_t)values->from[0],
                bytes, member->queue->stream);
    }
}

static uint32_t end_of_batch(const struct cuda_group *group, uint32_t first)
{
    uint32_t next = first + 1;

    assert(first < group->base.calls);
    while (next < group->base.calls && !group->calls[next].begins)
        next++;
    return next;
}

static enum sumac_status take_part(void *context)
{
    struct member *member = context;
    struct cuda_group *group = member->group;

    pthread_mutex_lock(&group->mutex);
    member->come++;
    assert(member->come <= group->starts);
    pthread_cond_broadcast(&group->changed);
    bool goes_on = !group->aborted;
    CUresult recorded = CUDA_SUCCESS;
    uint32_t first = 0;
    if (group->library == NULL && goes_on)
        copy_alone(member);
    while (goes_on && recorded == CUDA_SUCCESS && first < group->base.calls) {
        const uint32_t next = end_of_batch(group, first);
        if (group->library != NULL)
            goes_on = issue_batch(member, &group->calls[first], next - first);
        if (goes_on)
            recorded = record_events(member, &group->calls[first], next - first);
        first = goes_on ? next : first;
    }
    /* What was asked for may begin until its communicator is gone: the event comes behind that. */
    while (group->aborted && !group->ended)
        pthread_cond_wait(&group->changed, &group->mutex);
    pthread_mutex_unlock(&group->mutex);
    const CUresult last = group->driver->cuEventRecord(member->over, member->queue->stream);
    recorded = recorded == CUDA_SUCCESS ? last : recorded;
    pthread_mutex_lock(&group->mutex);
    if (recorded != CUDA_SUCCESS)
        fail_group_by_driver(member, recorded, "has failed");
    member->left++;
    assert(member->left == member->come);
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    return cuda_status(recorded); /* an abort is the group's to tell */
}

/* ---- the calls */

static void add(struct collective_group *base, const struct nccl_call *call)
{
    struct cuda_group *group = (struct cuda_group *)base;

    assert(base->calls < base->calls_max);
    group->calls[base->calls] = *call;
}

static void add_reduce(
    struct collective_group *group, enum sumac_reduce_op op, uint32_t root,
    const struct collective_values *values)
{
    add(group,
        &(struct nccl_call){.kind = NCCL_CALL_REDUCE, .op = op, .root = root, .values = *values});
}

static void add_all_reduce(
    struct collective_group *group, enum sumac_reduce_op op, const struct collective_values *values)
{
    add(group, &(struct nccl_call){.kind = NCCL_CALL_ALL_REDUCE, .op = op, .values = *values});
}

static void add_all_gather(struct collective_group *group, const struct collective_values *values)
{
    add(group, &(struct nccl_call){.kind = NCCL_CALL_ALL_GATHER, .values = *values});
}

static void
add_broadcast(struct collective_group *group, uint32_t root, const struct collective_values *values)
{
    add(group, &(struct nccl_call){.kind = NCCL_CALL_BROADCAST, .root = root, .values = *values});
}

static void record(struct collective_group *base, struct device_event *event)
{
    assert(event->device->ops == &cuda_device_ops);
    ((struct cuda_group *)base)->calls[base->calls - 1].over = event;
}

/* ---- the group */

/* Under the mutex. Nothing runs: what was waited for is over. */
static void reserve_wide(struct cuda_group *group, uint64_t bytes)
{
    for (uint32_t i = 0; i < group->base.replicas && !group->aborted; i++) {
        struct member *member = &group->members[i];
        const CUresult result = wide_reserve(device_of(member), &member->wide, bytes);
        member->rank.wide = member->wide.memory;
        if (result != CUDA_SUCCESS)
            fail_group_by_driver(member, result, "has no memory for what is added, or no kernels");
    }
}

static void start(struct collective_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;

    nccl_call_divide(group->calls, base->calls, base->replicas);
    const uint64_t wide_bytes = wide_arrange(group->calls, base->calls);
    pthread_mutex_lock(&group->mutex);
    group->starts++;
    if (group->library != NULL)
        reserve_wide(group, wide_bytes);
    pthread_mutex_unlock(&group->mutex);
    for (uint32_t i = 0; i < base->calls; i++)
        if (group->calls[i].over != NULL)
            job_event_promise((struct job_event *)group->calls[i].over);
    for (uint32_t i = 0; i < base->replicas; i++)
        job_queue_issue(&group->members[i].queue->jobs.base, take_part, &group->members[i]);
}

/* Is what its stream had of the last start done? CUDA_ERROR_NOT_READY: no. Another: the device has
 * failed, and nothing of it will be. */
static CUresult ask_stream(const struct member *member)
{
    const struct cuda_driver *driver = member->group->driver;
    CUcontext popped = NULL;

    assert(member->left <= member->come);
    if (member->left < member->group->starts)
        return CUDA_ERROR_NOT_READY;
    CUresult result = driver->cuCtxPushCurrent(device_of(member)->context);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuEventQuery(member->over);
    (void)driver->cuCtxPopCurrent(&popped);
    return result;
}

static bool is_over(const struct member *member)
{
    return ask_stream(member) != CUDA_ERROR_NOT_READY;
}

/* Of an aborted group, those that have not come touch nothing when they do. */
static bool all_over(const struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        const struct member *member = &group->members[i];
        const bool has_come = member->come == group->starts;
        assert(member->come <= group->starts);
        if ((has_come || !group->aborted) && !is_over(member))
            return false;
    }
    return true;
}

/* Under the mutex: has NCCL met with an error in one of its own threads? */
static void ask_nccl_for_errors(struct member *member)
{
    struct cuda_group *group = member->group;
    ncclResult_t state = ncclSuccess;

    if (member->inside || !enter(member)) /* who is inside looks */
        return;
    pthread_mutex_unlock(&group->mutex);
    ncclResult_t result = group->library->ncclCommGetAsyncError(member->rank.comm, &state);
    pthread_mutex_lock(&group->mutex);
    leave(member);
    result = result != ncclSuccess ? result : state;
    if (!is_fine(result))
        fail_group(member, result);
}

/* Under the mutex: or has a GPU failed? */
static void look_for_errors(struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas && !group->aborted; i++) {
        struct member *member = &group->members[i];
        const CUresult result = ask_stream(member);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
            fail_group_by_driver(member, result, "has failed");
        else if (group->library != NULL)
            ask_nccl_for_errors(member);
    }
}

/* An error that came last is seen, too; a group that it ends may not be over any more. */
static bool all_over_and_well(struct cuda_group *group)
{
    const bool over = all_over(group);

    look_for_errors(group);
    return over && all_over(group);
}

/* "1 (GPU:1), 3 (GPU:3)": those that have not come, or, if all have, those that are not over. */
static void list_missing(const struct cuda_group *group, char *text, size_t text_bytes)
{
    bool all_have_come = true;
    size_t used = 0;
    char name[16];

    text[0] = '\0';
    for (uint32_t i = 0; i < group->base.replicas; i++)
        all_have_come = all_have_come && group->members[i].come == group->starts;
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        const struct member *member = &group->members[i];
        if (all_have_come ? !is_over(member) : member->come < group->starts)
            used += text_print(
                text + used, text_bytes - used, "%s%u (%s)", used == 0 ? "" : ", ", i,
                name_of(member, name, sizeof name));
    }
}

static enum sumac_status
wait_for(struct collective_group *base, uint32_t timeout_ms, struct sumac_error *error)
{
    struct cuda_group *group = (struct cuda_group *)base;
    const uint64_t until_us = now_us() + (uint64_t)timeout_ms * 1000;
    char missing[128] = "";
    uint32_t looks = 0;

    pthread_mutex_lock(&group->mutex);
    bool over = all_over_and_well(group);
    while (!over && (timeout_ms == COLLECTIVE_NO_LIMIT || now_us() < until_us)) {
        pause_looking(group, &looks);
        over = all_over_and_well(group);
    }
    if (!over)
        list_missing(group, missing, sizeof missing);
    const bool aborted = group->aborted;
    const struct sumac_error failure = group->failure;
    if (over && aborted)
        release_events(group);
    pthread_mutex_unlock(&group->mutex);
    if (!over)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "a group of %u replicas waited %u ms for replica %s", base->replicas, timeout_ms,
            missing);
    if (failure.status != SUMAC_OK)
        return fail(error, failure.status, failure.reason, "%s", failure.text);
    if (aborted)
        return fail(
            error, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
            "the group of %u replicas was aborted: open another", base->replicas);
    return SUMAC_OK;
}

static void abort_group(struct collective_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;

    pthread_mutex_lock(&group->mutex);
    end_communicators(group);
    pthread_mutex_unlock(&group->mutex);
}

static void free_group(struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        assert(group->members[i].rank.comm == NULL && !group->members[i].inside);
        wide_deinit(device_of(&group->members[i]), &group->members[i].wide);
        if (group->members[i].over != NULL)
            (void)group->driver->cuEventDestroy(group->members[i].over);
    }
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->mutex);
    free(group->calls);
    free(group->members);
    free(group);
}

static void close_group(struct collective_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;
    uint32_t looks = 0;

    pthread_mutex_lock(&group->mutex);
    for (uint32_t i = 0; i < base->replicas; i++)
        while (!is_over(&group->members[i])) { /* who is late finds an aborted group, and leaves */
            look_for_errors(group);
            pause_looking(group, &looks);
        }
    end_communicators(group);
    assert(group->ended);
    release_events(group);
    pthread_mutex_unlock(&group->mutex);
    free_group(group);
}

/* ---- opening it */

static enum sumac_status
check_devices(struct device_queue *const *queues, uint32_t replicas, struct sumac_error *error)
{
    for (uint32_t i = 0; i < replicas; i++)
        for (uint32_t j = 0; j < i; j++)
            if (queues[i]->device->index == queues[j]->device->index)
                return fail(
                    error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
                    "replicas %u and %u of a group are both on GPU:%u, which NCCL does not do: "
                    "give each a GPU of its own",
                    j, i, queues[i]->device->index);
    return SUMAC_OK;
}

static struct cuda_group *make_group(
    struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
    const struct nccl_library *library)
{
    struct cuda_group *made = calloc(1, sizeof *made);
    struct member *members = calloc(replicas, sizeof *members);
    struct nccl_call *calls = calloc(calls_max, sizeof *calls);
    pthread_condattr_t monotonic;

    assert(replicas == 1 || library != NULL);
    if (made == NULL || members == NULL || calls == NULL) {
        free(calls);
        free(members);
        free(made);
        return NULL;
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    made->base = (struct collective_group){
        .ops = &cuda_collective_ops, .replicas = replicas, .calls_max = calls_max};
    made->library = library;
    made->members = members;
    made->calls = calls;
    for (uint32_t i = 0; i < replicas; i++) {
        struct cuda_queue *queue = (struct cuda_queue *)queues[i];
        members[i] = (struct member){
            .group = made,
            .queue = queue,
            .rank = {library, NULL, (cudaStream_t)queue->stream, i, replicas, 0},
        };
    }
    made->driver = device_of(&members[0])->driver;
    return made;
}

static enum sumac_status open_events(struct cuda_group *group, struct sumac_error *error)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; result == CUDA_SUCCESS && i < group->base.replicas; i++) {
        CUcontext popped = NULL;
        result = group->driver->cuCtxPushCurrent(device_of(&group->members[i])->context);
        if (result != CUDA_SUCCESS)
            break;
        result = group->driver->cuEventCreate(&group->members[i].over, CU_EVENT_DISABLE_TIMING);
        (void)group->driver->cuCtxPopCurrent(&popped);
    }
    if (result == CUDA_SUCCESS)
        return SUMAC_OK;
    return cuda_fail(
        error, group->driver, result, "a group of %u replicas gets no events",
        group->base.replicas);
}

/* All ranks of this process in one group of NCCL's, each with its device's context current. */
static ncclResult_t begin_communicators(struct cuda_group *group)
{
    const struct nccl_library *library = group->library;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    assert(group->base.replicas > 1);
    config.blocking = 0;
    ncclResult_t result = library->ncclGetUniqueId(&id);
    if (result != ncclSuccess)
        return result;
    result = library->ncclGroupStart();
    for (uint32_t i = 0; is_fine(result) && i < group->base.replicas; i++) {
        struct nccl_rank *rank = &group->members[i].rank;
        CUcontext popped = NULL;
        if (group->driver->cuCtxPushCurrent(device_of(&group->members[i])->context) != CUDA_SUCCESS)
            result = ncclUnhandledCudaError;
        else
            result = library->ncclCommInitRankConfig(
                &rank->comm, (int)rank->replicas, id, (int)i, &config);
        (void)group->driver->cuCtxPopCurrent(&popped);
    }
    const ncclResult_t ended = library->ncclGroupEnd();
    return is_fine(result) ? ended : result;
}

static enum sumac_status open_communicators(struct cuda_group *group, struct sumac_error *error)
{
    const uint64_t until_us = now_us() + (uint64_t)OPEN_MS_MAX * 1000;
    ncclResult_t result = begin_communicators(group);
    uint32_t looks = 0;

    pthread_mutex_lock(&group->mutex);
    for (uint32_t i = 0; is_fine(result) && i < group->base.replicas; i++) {
        ncclResult_t state = ncclInProgress;
        while (is_fine(result) && state == ncclInProgress && now_us() < until_us) {
            result = group->library->ncclCommGetAsyncError(group->members[i].rank.comm, &state);
            if (result == ncclSuccess && state == ncclInProgress)
                pause_looking(group, &looks);
        }
        result = result == ncclSuccess ? state : result;
    }
    if (result != ncclSuccess)
        end_communicators(group);
    pthread_mutex_unlock(&group->mutex);
    if (result == ncclSuccess)
        return SUMAC_OK;
    if (result == ncclInProgress)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "NCCL has not connected %u GPUs in %u ms: NCCL_DEBUG=INFO has it say why",
            group->base.replicas, OPEN_MS_MAX);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
        "NCCL does not connect %u GPUs: %s; NCCL_DEBUG=INFO has it say more", group->base.replicas,
        group->library->ncclGetErrorString(result));
}

static enum sumac_status open_group(
    struct device_queue *const *queues, uint32_t replicas, uint32_t calls_max,
    struct collective_group **group, struct sumac_error *error)
{
    const struct nccl_library *library = NULL;
    enum sumac_status status = check_devices(queues, replicas, error);

    if (status == SUMAC_OK && replicas > 1)
        status = nccl_library_open(&library, error);
    if (status != SUMAC_OK)
        return status;
    struct cuda_group *made = make_group(queues, replicas, calls_max, library);
    if (made == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for a group of %u replicas", replicas);
    status = open_events(made, error);
    if (status == SUMAC_OK && library != NULL)
        status = open_communicators(made, error);
    if (status != SUMAC_OK) {
        free_group(made);
        return status;
    }
    *group = &made->base;
    return SUMAC_OK;
}

const struct collective_ops cuda_collective_ops = {
    .has = reduce_has,
    .open = open_group,
    .close = close_group,
    .reduce = add_reduce,
    .all_reduce = add_all_reduce,
    .all_gather = add_all_gather,
    .broadcast = add_broadcast,
    .record = record,
    .start = start,
    .wait = wait_for,
    .abort = abort_group,
};
