/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_group_calls.c -- collectives of GPUs, by NCCL: every queue's thread asks for its rank's part
 * of each batch (nccl_call.h). The GPUs work in their streams, and NCCL makes the streams meet.
 *
 *     thread  | ask batch 0, poll | ask batch 1, poll | record over |
 *     stream  ……       | batch 0 | batch 1 | over.
 *
 * Types that NCCL would not add as the CPU does are widened before the call and narrowed after it
 * (wide.h).
 *
 * A group does not hang. Its communicators do not block: NCCL says when a batch has begun. Until
 * the batch is over, the waiting thread asks NCCL for errors. An error, or an abort, ends all
 * communicators of the group. NCCL's kernels leave then, and the streams go on.
 *
 * A communicator that is being ended must not be used. So each use is between enter and leave, and
 * the group ends after the last leave. A thread of its own ends the group, because a kernel of the
 * program may run in the stream before NCCL's.
 */
#include "device_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_group.h"
#include "error.h"
#include "pause.h"
#include "text.h"

/* ---- a member's job */

/* Under the mutex: until what the rank was asked for has begun. */
static bool await_begin(struct cuda_member *member)
{
    struct cuda_group *group = member->group;
    ncclResult_t state = ncclInProgress;
    const uint64_t begin_us = pause_now_us();

    while (cuda_group_enter(member)) {
        pthread_mutex_unlock(&group->base.mutex);
        const ncclResult_t result =
            group->library->ncclCommGetAsyncError(member->rank.comm, &state);
        pthread_mutex_lock(&group->base.mutex);
        cuda_group_leave(member);
        if (result == ncclSuccess && state == ncclSuccess)
            return true;
        if (result != ncclSuccess || state != ncclInProgress) {
            cuda_group_fail(member, result != ncclSuccess ? result : state);
            return false;
        }
        cuda_group_pause(group, pause_now_us() - begin_us);
    }
    return false;
}

static ncclResult_t
ask(const struct nccl_rank *rank, const struct group_call *calls, uint32_t count, ncclRedOp_t *ops)
{
    ncclResult_t result = ncclSuccess;

    for (uint32_t i = 0; i < count; i++)
        ops[i] = ncclSum;
    for (uint32_t i = 0; cuda_group_is_fine(result) && i < count; i++)
        result = nccl_call_prepare(rank, &calls[i], &ops[i]);
    if (!cuda_group_is_fine(result))
        return result;
    result = rank->library->ncclGroupStart();
    for (uint32_t i = 0; cuda_group_is_fine(result) && i < count; i++)
        result = nccl_call_issue(rank, &calls[i], ops[i]);
    const ncclResult_t ended = rank->library->ncclGroupEnd();
    return cuda_group_is_fine(result) ? ended : result;
}

/* Under the mutex: what NCCL does of the batch has begun. */
static bool ask_nccl(struct cuda_member *member, const struct group_call *calls, uint32_t count)
{
    struct cuda_group *group = member->group;
    ncclRedOp_t ops[NCCL_BATCH_CALLS_MAX];

    assert(count > 0 && count <= NCCL_BATCH_CALLS_MAX);
    if (!cuda_group_enter(member))
        return false;
    pthread_mutex_unlock(&group->base.mutex);
    const ncclResult_t result = ask(&member->rank, calls, count, ops);
    pthread_mutex_lock(&group->base.mutex);
    cuda_group_leave(member);
    if (!cuda_group_is_fine(result))
        cuda_group_fail(member, result);
    if (!cuda_group_is_fine(result) || !await_begin(member) || !cuda_group_enter(member))
        return false;
    for (uint32_t i = 0; i < count; i++)
        nccl_call_forget(&member->rank, ops[i]);
    cuda_group_leave(member);
    return true;
}

/* Under the mutex: what the library's own kernels do of it before, or after. */
static bool put_wide(
    struct cuda_member *member, const struct group_call *calls, uint32_t count, wide_step *step)
{
    struct cuda_group *group = member->group;
    CUresult result = CUDA_SUCCESS;

    /* A launch waits where the stream has many: the other ranks go on meanwhile. */
    pthread_mutex_unlock(&group->base.mutex);
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        if (calls[i].scratch_each > 0)
            result = step(group->driver, &member->wide, &member->rank, &calls[i]);
    pthread_mutex_lock(&group->base.mutex);
    if (result != CUDA_SUCCESS)
        cuda_group_fail_by_driver(member, result, "does not run a kernel of a reduction");
    return result == CUDA_SUCCESS;
}

static bool issue(struct cuda_member *member, const struct group_call *calls, uint32_t count)
{
    return put_wide(member, calls, count, wide_begin) && ask_nccl(member, calls, count) &&
           put_wide(member, calls, count, wide_end);
}

/* A call that is alone may need more scratch than there is: it is made part after part. */
static bool issue_batch(struct cuda_member *member, const struct group_call *calls, uint32_t count)
{
    struct group_call part = calls[0];
    bool goes_on = true;

    if (count > 1 || part.scratch_each == 0)
        return issue(member, calls, count);
    for (part.first = 0; goes_on && part.first < part.values.elements[0];
         part.first += part.count) {
        part.count = nccl_call_part(&part, part.first);
        goes_on = issue(member, &part, 1);
    }
    return goes_on;
}

/* Under the mutex: record the events of the rank's device behind what its stream has of the calls.
 */
static CUresult record_events(struct cuda_member *member, struct group_call *calls, uint32_t count)
{
    struct cuda_group *group = member->group;
    CUresult result = CUDA_SUCCESS;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        struct cuda_event *over = (struct cuda_event *)calls[i].over;
        if (over == NULL || over->base.device != member->queue->base.device)
            continue;
        calls[i].over = NULL; /* nobody else passes it */
        pthread_mutex_unlock(&group->base.mutex);
        const CUresult recorded = group->driver->cuEventRecord(over->event, member->queue->stream);
        device_event_pass(&over->base);
        pthread_mutex_lock(&group->base.mutex);
        result = result == CUDA_SUCCESS ? recorded : result;
    }
    return result;
}

/* A replica alone has what it gives. */
static void copy_alone(struct cuda_member *member)
{
    const struct cuda_group *group = member->group;

    for (uint32_t i = 0; i < group->base.call_count; i++) {
        const struct device_group_values *values = &group->base.calls[i].values;
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

    assert(first < group->base.call_count);
    while (next < group->base.call_count && !group->base.calls[next].begins)
        next++;
    return next;
}

static enum sumac_status take_part(void *context)
{
    struct cuda_member *member = context;
    struct cuda_group *group = member->group;

    pthread_mutex_lock(&group->base.mutex);
    member->come++;
    assert(member->come <= group->starts);
    pthread_cond_broadcast(&group->base.changed);
    bool goes_on = !group->base.aborted;
    CUresult recorded = CUDA_SUCCESS;
    uint32_t first = 0;
    if (group->library == NULL && goes_on)
        copy_alone(member);
    while (goes_on && recorded == CUDA_SUCCESS && first < group->base.call_count) {
        const uint32_t next = end_of_batch(group, first);
        if (group->library != NULL)
            goes_on = issue_batch(member, &group->base.calls[first], next - first);
        if (goes_on)
            recorded = record_events(member, &group->base.calls[first], next - first);
        first = goes_on ? next : first;
    }
    /* What was asked for may begin until its communicator is gone: the event comes behind that. */
    while (group->base.aborted && !group->ended)
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    pthread_mutex_unlock(&group->base.mutex);
    const CUresult last = group->driver->cuEventRecord(member->over, member->queue->stream);
    recorded = recorded == CUDA_SUCCESS ? last : recorded;
    pthread_mutex_lock(&group->base.mutex);
    if (recorded != CUDA_SUCCESS)
        cuda_group_fail_by_driver(member, recorded, "has failed");
    member->left++;
    assert(member->left == member->come);
    pthread_cond_broadcast(&group->base.changed);
    pthread_mutex_unlock(&group->base.mutex);
    return cuda_status(recorded); /* an abort is the group's to tell */
}

/* ---- the group */

/* Nothing runs: what was waited for is over. Not under the mutex: a device may wait for what runs
 * there before it gives memory. */
static enum sumac_status reserve(struct cuda_group *group, uint64_t bytes)
{
    struct sumac_error why;
    char what[32];

    for (uint32_t i = 0; i < group->base.replicas; i++) {
        struct cuda_member *member = &group->members[i];
        const enum sumac_status status = wide_reserve(
            (struct cuda_device *)member->queue->base.device, &member->wide, bytes, &why);
        member->rank.scratch = (uint64_t)(uintptr_t)sumac_buffer_data(member->wide.scratch);
        if (status != SUMAC_OK)
            return fail(
                &group->refusal, status, why.reason,
                "start %" PRIu64 " %s of a group of %u replicas has no scratch on replica %u: %s",
                group->starts + 1, cuda_group_describe(group, what, sizeof what),
                group->base.replicas, i, why.text);
    }
    return SUMAC_OK;
}

static void start(struct device_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;

    group->refusal.status = SUMAC_OK;
    if (group->library != NULL) {
        wide_arrange(base->calls, base->call_count, base->replicas);
        if (reserve(group, nccl_call_divide(group->base.calls, base->call_count, base->replicas)) !=
            SUMAC_OK)
            return; /* an event that was not promised is not awaited */
    }
    pthread_mutex_lock(&group->base.mutex);
    group->starts++;
    if (!group->ended) /* events of an ended group are not awaited */
        device_group_promise(base);
    pthread_mutex_unlock(&group->base.mutex);
    for (uint32_t i = 0; i < base->replicas; i++)
        device_issue(&group->members[i].queue->base, take_part, &group->members[i]);
}

/* Under the mutex, which is left meanwhile: is what its stream had of the last start done?
 * CUDA_ERROR_NOT_READY: no. Another: the device has failed, and nothing of it will be. */
static CUresult ask_stream(const struct cuda_member *member)
{
    const struct cuda_device *device = cuda_group_device(member);
    pthread_mutex_t *const mutex = &member->group->base.mutex;

    assert(member->left <= member->come);
    if (member->left < member->group->starts)
        return CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(mutex); /* the driver may wait for a lock of its own */
    CUresult result = cuda_device_enter(device);
    if (result == CUDA_SUCCESS) {
        result = device->driver->cuEventQuery(member->over);
        cuda_device_leave(device);
    }
    pthread_mutex_lock(mutex);
    return result;
}

static bool is_over(const struct cuda_member *member)
{
    return ask_stream(member) != CUDA_ERROR_NOT_READY;
}

/* Of an aborted group, those that have not come touch nothing when they do. */
static bool all_over(const struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        const struct cuda_member *member = &group->members[i];
        const bool has_come = member->come == group->starts;
        assert(member->come <= group->starts);
        if ((has_come || !group->base.aborted) && !is_over(member))
            return false;
    }
    return !group->base.aborted || group->ended;
}

/* Under the mutex: has NCCL met with an error in one of its own threads? */
static void ask_nccl_for_errors(struct cuda_member *member)
{
    struct cuda_group *group = member->group;
    ncclResult_t state = ncclSuccess;

    if (member->inside || !cuda_group_enter(member)) /* who is inside looks */
        return;
    pthread_mutex_unlock(&group->base.mutex);
    ncclResult_t result = group->library->ncclCommGetAsyncError(member->rank.comm, &state);
    pthread_mutex_lock(&group->base.mutex);
    cuda_group_leave(member);
    result = result != ncclSuccess ? result : state;
    if (!cuda_group_is_fine(result))
        cuda_group_fail(member, result);
}

/* Under the mutex: or has a GPU failed? */
static void look_for_errors(struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas && !group->base.aborted; i++) {
        struct cuda_member *member = &group->members[i];
        const CUresult result = ask_stream(member);
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
            cuda_group_fail_by_driver(member, result, "has failed");
        else if (group->library != NULL)
            ask_nccl_for_errors(member);
    }
}

/* Errors are asked for less often than events, which cost less. An error that came last is seen,
 * too; a group that it ends may not be over any more. */
static bool all_over_and_well(struct cuda_group *group, uint64_t *next_us)
{
    const bool over = all_over(group);
    const uint64_t now_us = pause_now_us();

    if (!over && now_us < *next_us)
        return false;
    *next_us = now_us + PAUSE_US_MAX;
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
        const struct cuda_member *member = &group->members[i];
        if (all_have_come ? !is_over(member) : member->come < group->starts)
            used += text_print(
                text + used, text_bytes - used, "%s%u (%s)", used == 0 ? "" : ", ", i,
                cuda_group_name(member, name, sizeof name));
    }
}

/* Under the mutex: until all is over. False: it is not by then. */
static bool await_all(struct cuda_group *group, uint32_t timeout_ms)
{
    const uint64_t begin_us = pause_now_us();
    uint64_t now_us = begin_us, next_us = 0;

    while (!all_over_and_well(group, &next_us)) {
        now_us = pause_now_us();
        if (timeout_ms != DEVICE_GROUP_NO_LIMIT && now_us - begin_us >= (uint64_t)timeout_ms * 1000)
            return false;
        cuda_group_pause(group, now_us - begin_us);
    }
    return true;
}

/* Under the mutex. */
static enum sumac_status tell_late(
    const struct cuda_group *group, uint32_t timeout_ms, const char *missing,
    struct sumac_error *error)
{
    char what[32];

    if (group->failure.status != SUMAC_OK) /* the others do not end because of it */
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "%.400s; it has not ended in %u ms", group->failure.text, timeout_ms);
    return fail(
        error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
        "start %" PRIu64 " %s of a group of %u replicas waited %u ms for replica %s", group->starts,
        cuda_group_describe(group, what, sizeof what), group->base.replicas, timeout_ms, missing);
}

static enum sumac_status
wait_for(struct device_group *base, uint32_t timeout_ms, struct sumac_error *error)
{
    struct cuda_group *group = (struct cuda_group *)base;
    enum sumac_status status = SUMAC_OK;
    char missing[128] = "";

    if (group->refusal.status != SUMAC_OK)
        return fail(error, group->refusal.status, group->refusal.reason, "%s", group->refusal.text);
    pthread_mutex_lock(&group->base.mutex);
    const bool over = await_all(group, timeout_ms);
    if (!over)
        list_missing(group, missing, sizeof missing);
    base->has_ended = group->base.aborted;
    if (over)
        device_group_pass(base);
    if (!over)
        status = tell_late(group, timeout_ms, missing, error);
    else if (group->failure.status != SUMAC_OK)
        status =
            fail(error, group->failure.status, group->failure.reason, "%s", group->failure.text);
    else if (group->base.aborted)
        status = device_group_fail_aborted(base, error);
    pthread_mutex_unlock(&group->base.mutex);
    return status;
}

static void abort_group(struct device_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;

    pthread_mutex_lock(&group->base.mutex);
    cuda_group_end(group);
    pthread_mutex_unlock(&group->base.mutex);
}

/* A group on devices that were given up stays: their threads and streams may still use it. */
static void close_group(struct device_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;
    const uint64_t begin_us = pause_now_us();

    if (cuda_group_is_given_up(group)) {
        if (group->has_ender)
            (void)pthread_detach(group->ender);
        return;
    }
    pthread_mutex_lock(&group->base.mutex);
    for (uint32_t i = 0; i < base->replicas; i++)
        while (!is_over(&group->members[i])) { /* who is late finds an aborted group, and leaves */
            look_for_errors(group);
            cuda_group_pause(group, pause_now_us() - begin_us);
        }
    cuda_group_end(group);
    (void)cuda_group_await_end(group, UINT64_MAX);
    assert(group->ended);
    pthread_mutex_unlock(&group->base.mutex);
    cuda_group_free(group);
}

const struct device_group_ops cuda_group_ops = {
    .bytes = sizeof(struct cuda_group),
    .begin = cuda_group_begin,
    .close = close_group,
    .start = start,
    .wait = wait_for,
    .abort = abort_group,
};
