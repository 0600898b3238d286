/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_group.c -- collectives of GPUs, by NCCL: every queue's thread asks for its rank's part
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

#include "cuda_device.h"
#include "error.h"
#include "nccl_call.h"
#include "pause.h"
#include "text.h"
#include "trace.h"
#include "wide.h"

#define OPEN_MS_MAX 60000u /* for communicators to find each other; to end */

struct cuda_member {
    struct cuda_group *group;
    struct cuda_queue *queue;
    struct nccl_rank rank;
    struct wide wide;
    CUevent over;        /* its part of the last start */
    uint64_t come, left; /* starts whose job has begun, has ended */
    bool inside;         /* its communicator is in use */
};

struct cuda_group {
    struct device_group base;
    const struct cuda_driver *driver;
    const struct nccl_library *library; /* NULL: one replica alone */
    struct cuda_member *members;        /* (replicas), changed under the mutex */
    uint64_t starts;
    bool ended;     /* its communicators are gone */
    bool has_ender; /* a thread that ends them, to be joined */
    pthread_t ender;
    struct sumac_error failure; /* the first; OK: nothing has failed */
    struct sumac_error refusal; /* of the last start; OK: it began. The caller's */
};

static const struct cuda_device *device_of(const struct cuda_member *member)
{
    return (const struct cuda_device *)member->queue->base.device;
}

/* Under the mutex: until something has changed, or it is time to look again (pause.h). */
static void wait_a_little(struct cuda_group *group, uint64_t waited_us)
{
    const uint64_t us = pause_us(waited_us);

    if (us > 0) {
        (void)pause_until(&group->base.changed, &group->base.mutex, trace_now() + us * 1000);
        return;
    }
    pthread_mutex_unlock(&group->base.mutex);
    pause_here(waited_us);
    pthread_mutex_lock(&group->base.mutex);
}

/* ---- the end of a group */

/* Under the mutex: the communicator is used between the two. False: the group has ended, or will.
 */
static bool enter(struct cuda_member *member)
{
    struct cuda_group *group = member->group;

    while (member->inside && !group->base.aborted)
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    if (group->base.aborted)
        return false;
    member->inside = true;
    return true;
}

static void leave(struct cuda_member *member)
{
    assert(member->inside);
    member->inside = false;
    pthread_cond_broadcast(&member->group->base.changed);
}

static bool anybody_inside(const struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++)
        if (group->members[i].inside)
            return true;
    return false;
}

static void abort_communicators(struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        struct cuda_member *member = &group->members[i];
        const bool current = cuda_device_enter(device_of(member)) == CUDA_SUCCESS;
        if (member->rank.comm != NULL)
            (void)group->library->ncclCommAbort(member->rank.comm);
        member->rank.comm = NULL;
        if (current)
            cuda_device_leave(device_of(member));
    }
}

/* On the ender's thread. */
static void *end_communicators(void *argument)
{
    struct cuda_group *group = argument;

    pthread_mutex_lock(&group->base.mutex);
    while (anybody_inside(group))
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    pthread_mutex_unlock(&group->base.mutex); /* enter fails from here on */
    abort_communicators(group);
    pthread_mutex_lock(&group->base.mutex);
    assert(!anybody_inside(group));
    group->ended = true;
    /* A queue that awaits a call goes on. The thread that started the call cannot see to that: it
     * may wait for that very queue. */
    device_group_pass(&group->base);
    pthread_cond_broadcast(&group->base.changed);
    pthread_mutex_unlock(&group->base.mutex);
    return NULL;
}

/* Under the mutex: begin to end it, on a thread of its own. NCCL ends a communicator when its
 * kernels have left, which may wait for a kernel of the program's: no caller waits with them. */
static void end_group(struct cuda_group *group)
{
    if (group->base.aborted)
        return;
    group->base.aborted = true;
    pthread_cond_broadcast(&group->base.changed);
    group->has_ender = group->library != NULL &&
                       pthread_create(&group->ender, NULL, end_communicators, group) == 0;
    if (group->has_ender)
        return;
    pthread_mutex_unlock(&group->base.mutex);
    (void)end_communicators(group);
    pthread_mutex_lock(&group->base.mutex);
}

/* Under the mutex: until it has ended. False: the time is over. */
static bool await_end(struct cuda_group *group, uint64_t until_ns)
{
    bool in_time = true;

    while (!group->ended && in_time)
        in_time = pause_until(&group->base.changed, &group->base.mutex, until_ns);
    return group->ended;
}

#define START_BYTES 80u
/* "start 3 (all_reduce) of a group of 2 replicas" into `text`, of START_BYTES. Lends  text. */
static const char *describe(const struct cuda_group *group, uint64_t start, char *text)
{
    char what[32];

    (void)nccl_call_describe(group->base.calls, group->base.call_count, what, sizeof what);
    (void)text_print(
        text, START_BYTES, "start %" PRIu64 " %s of a group of %u replicas", start, what,
        group->base.replicas);
    return text;
}

/* The driver's result for the rank's stream, and its words, "; the driver says: …", into `text`.
 * NCCL has one name for all errors of the driver. */
static CUresult ask_driver(const struct cuda_member *member, char *text, uint32_t text_bytes)
{
    const struct cuda_device *device = device_of(member);
    CUresult result = cuda_device_enter(device);
    char words[DEVICE_WHY_BYTES];

    text[0] = '\0';
    if (result == CUDA_SUCCESS) {
        result = device->driver->cuStreamQuery(member->queue->stream);
        cuda_device_leave(device);
    }
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
        return result;
    cuda_words(device->driver, result, words, sizeof words);
    (void)text_print(text, text_bytes, "; the driver says: %s", words);
    return result;
}

static void note_nccls_words(struct cuda_member *member, ncclResult_t result)
{
    struct cuda_group *group = member->group;
    const char *last = group->library->ncclGetLastError(member->rank.comm);
    char name[16], start[START_BYTES], driver[DEVICE_WHY_BYTES + 32] = "";

    if (result == ncclUnhandledCudaError)
        (void)cuda_device_note(
            member->queue->base.device, ask_driver(member, driver, sizeof driver));
    (void)fail(
        &group->failure, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
        "%s failed at replica %u (%s): NCCL says: %s%s%.120s%s%s",
        describe(group, group->starts, start), member->rank.replica,
        device_name(member->queue->base.device, name, sizeof name),
        group->library->ncclGetErrorString(result), last == NULL || last[0] == '\0' ? "" : " (",
        last == NULL ? "" : last, last == NULL || last[0] == '\0' ? "" : ")", driver);
}

/* Under the mutex: what NCCL said of a rank ends the group; the first word counts. */
static void fail_by_nccl(struct cuda_member *member, ncclResult_t result)
{
    struct cuda_group *group = member->group;

    assert(!nccl_is_fine(result));
    assert(group->library != NULL);
    if (group->failure.status == SUMAC_OK && !group->base.aborted)
        note_nccls_words(member, result);
    end_group(group);
}

static void fail_by_driver(struct cuda_member *member, CUresult result, const char *what)
{
    struct cuda_group *group = member->group;
    char name[16], start[START_BYTES];

    (void)cuda_device_note(member->queue->base.device, result);
    if (group->failure.status == SUMAC_OK && !group->base.aborted)
        (void)cuda_check(
            &group->failure, group->driver, result, "%s was aborted: replica %u (%s) %s",
            describe(group, group->starts, start), member->rank.replica,
            device_name(member->queue->base.device, name, sizeof name), what);
    end_group(group);
}

/* ---- opening it */

static enum sumac_status
check_devices(struct device_queue *const *queues, uint32_t replicas, struct sumac_error *error)
{
    for (uint32_t i = 0; i < replicas; i++)
        for (uint32_t j = 0; j < i; j++)
            if (queues[i]->device->index == queues[j]->device->index)
                return fail_argument(
                    error,
                    "replicas %u and %u of a group are both on GPU:%u, which NCCL does not do: "
                    "give each a GPU of its own",
                    j, i, queues[i]->device->index);
    return SUMAC_OK;
}

static enum sumac_status open_events(struct cuda_group *group, struct sumac_error *error)
{
    CUresult result = CUDA_SUCCESS;

    for (uint32_t i = 0; result == CUDA_SUCCESS && i < group->base.replicas; i++)
        result = cuda_device_create_event(device_of(&group->members[i]), &group->members[i].over);
    return cuda_check(
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
    for (uint32_t i = 0; nccl_is_fine(result) && i < group->base.replicas; i++) {
        struct nccl_rank *rank = &group->members[i].rank;
        const struct cuda_device *device = device_of(&group->members[i]);
        if (cuda_device_enter(device) != CUDA_SUCCESS) {
            result = ncclUnhandledCudaError;
            break;
        }
        result =
            library->ncclCommInitRankConfig(&rank->comm, (int)rank->replicas, id, (int)i, &config);
        cuda_device_leave(device);
    }
    const ncclResult_t ended = library->ncclGroupEnd();
    return nccl_is_fine(result) ? ended : result;
}

static enum sumac_status open_communicators(struct cuda_group *group, struct sumac_error *error)
{
    const uint64_t begin_us = pause_now_us(), until_ns = device_until(OPEN_MS_MAX);
    ncclResult_t result = begin_communicators(group);

    pthread_mutex_lock(&group->base.mutex);
    for (uint32_t i = 0; nccl_is_fine(result) && i < group->base.replicas; i++) {
        ncclResult_t state = ncclInProgress;
        while (nccl_is_fine(result) && state == ncclInProgress && trace_now() < until_ns) {
            result = group->library->ncclCommGetAsyncError(group->members[i].rank.comm, &state);
            if (result == ncclSuccess && state == ncclInProgress)
                wait_a_little(group, pause_now_us() - begin_us);
        }
        result = result == ncclSuccess ? state : result;
    }
    pthread_mutex_unlock(&group->base.mutex);
    if (result == ncclSuccess)
        return SUMAC_OK;
    if (result == ncclInProgress)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "NCCL has not connected %u GPUs in %u ms: NCCL_DEBUG=INFO has it say why",
            group->base.replicas, OPEN_MS_MAX);
    return fail_unsupported(
        error, "NCCL does not connect %u GPUs: %s; NCCL_DEBUG=INFO has it say more",
        group->base.replicas, group->library->ncclGetErrorString(result));
}

static void free_group(struct cuda_group *group)
{
    assert(group->ended);
    if (group->has_ender)
        (void)pthread_join(group->ender, NULL);
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        assert(group->members[i].rank.comm == NULL && !group->members[i].inside);
        const struct cuda_device *device = device_of(&group->members[i]);
        wide_deinit(device, &group->members[i].wide);
        cuda_device_destroy_event(device, group->members[i].over);
    }
    free(group->members);
    device_group_free(&group->base);
}

/* Of communicators that do not end a thread stays, and the group with it. */
static void close_unopened(struct cuda_group *group)
{
    pthread_mutex_lock(&group->base.mutex);
    end_group(group);
    const bool ended = await_end(group, device_until(OPEN_MS_MAX));
    pthread_mutex_unlock(&group->base.mutex);
    if (ended)
        free_group(group);
}

static enum sumac_status
begin(struct device_group *base, struct device_queue *const *queues, struct sumac_error *error)
{
    struct cuda_group *group = (struct cuda_group *)base;
    const uint32_t replicas = base->replicas;
    enum sumac_status status = check_devices(queues, replicas, error);

    if (status == SUMAC_OK && replicas > 1)
        status = nccl_library_open(&group->library, error);
    if (status == SUMAC_OK) {
        group->members = calloc(replicas, sizeof *group->members);
        if (group->members == NULL)
            status = fail_for_memory(error, "no memory for a group of %u replicas", replicas);
    }
    if (status != SUMAC_OK) {
        device_group_free(base);
        return status;
    }
    for (uint32_t i = 0; i < replicas; i++) {
        struct cuda_queue *queue = (struct cuda_queue *)queues[i];
        group->members[i] = (struct cuda_member){
            .group = group,
            .queue = queue,
            .rank = {group->library, NULL, (cudaStream_t)queue->stream, i, replicas, 0},
        };
    }
    group->driver = device_of(&group->members[0])->driver;
    status = open_events(group, error);
    if (status == SUMAC_OK && group->library != NULL)
        status = open_communicators(group, error);
    if (status != SUMAC_OK)
        close_unopened(group);
    return status;
}

/* ---- a member's job */

/* Under the mutex, which is left meanwhile: what NCCL says of the rank. False: an error, also of
 * one of NCCL's own threads, or the group's end. */
static bool ask_state(struct cuda_member *member, ncclResult_t *state)
{
    struct cuda_group *group = member->group;

    if (!enter(member))
        return false;
    pthread_mutex_unlock(&group->base.mutex);
    const ncclResult_t result = group->library->ncclCommGetAsyncError(member->rank.comm, state);
    pthread_mutex_lock(&group->base.mutex);
    leave(member);
    *state = result != ncclSuccess ? result : *state;
    if (!nccl_is_fine(*state))
        fail_by_nccl(member, *state);
    return nccl_is_fine(*state);
}

/* Under the mutex: until what the rank was asked for has begun. */
static bool await_begin(struct cuda_member *member)
{
    ncclResult_t state = ncclInProgress;
    const uint64_t begin_us = pause_now_us();

    while (ask_state(member, &state)) {
        if (state == ncclSuccess)
            return true;
        wait_a_little(member->group, pause_now_us() - begin_us);
    }
    return false;
}

/* Under the mutex: what NCCL does of the batch has begun. */
static bool ask_nccl(struct cuda_member *member, const struct group_call *calls, uint32_t count)
{
    struct cuda_group *group = member->group;
    ncclRedOp_t ops[NCCL_BATCH_CALLS_MAX];

    assert(count > 0 && count <= NCCL_BATCH_CALLS_MAX);
    if (!enter(member))
        return false;
    pthread_mutex_unlock(&group->base.mutex);
    const ncclResult_t result = nccl_call_ask(&member->rank, calls, count, ops);
    pthread_mutex_lock(&group->base.mutex);
    leave(member);
    if (!nccl_is_fine(result))
        fail_by_nccl(member, result);
    if (!nccl_is_fine(result) || !await_begin(member) || !enter(member))
        return false;
    for (uint32_t i = 0; i < count; i++)
        nccl_call_forget(&member->rank, ops[i]);
    leave(member);
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
        fail_by_driver(member, result, "does not run a kernel of a reduction");
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
        calls[i].over = NULL; /* no other thread passes it */
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
    /* NCCL may begin its part until the communicator is gone: the event comes behind that. */
    while (group->base.aborted && !group->ended)
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    pthread_mutex_unlock(&group->base.mutex);
    const CUresult last = group->driver->cuEventRecord(member->over, member->queue->stream);
    recorded = recorded == CUDA_SUCCESS ? last : recorded;
    pthread_mutex_lock(&group->base.mutex);
    if (recorded != CUDA_SUCCESS)
        fail_by_driver(member, recorded, "has failed");
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
    char start[START_BYTES];
    struct sumac_error why;

    for (uint32_t i = 0; i < group->base.replicas; i++) {
        struct cuda_member *member = &group->members[i];
        const enum sumac_status status = wide_reserve(
            (struct cuda_device *)member->queue->base.device, &member->wide, bytes, &why);
        member->rank.scratch = (uint64_t)(uintptr_t)sumac_buffer_data(member->wide.scratch);
        if (status != SUMAC_OK)
            return fail(
                &group->refusal, status, why.reason, "%s has no scratch on replica %u: %s",
                describe(group, group->starts + 1, start), i, why.text);
    }
    return SUMAC_OK;
}

static void start(struct device_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;

    group->refusal.status = SUMAC_OK;
    if (group->library != NULL) {
        wide_arrange(base->calls, base->call_count, base->replicas);
        if (reserve(group, nccl_call_divide(base->calls, base->call_count, base->replicas)) !=
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
    const struct cuda_device *device = device_of(member);
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

/* The members of an aborted group that come later touch nothing. */
static bool all_over(const struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        const struct cuda_member *member = &group->members[i];
        const bool has_come = member->come == group->starts;
        assert(member->come <= group->starts);
        if ((has_come || !group->base.aborted) && ask_stream(member) == CUDA_ERROR_NOT_READY)
            return false;
    }
    return !group->base.aborted || group->ended;
}

/* Under the mutex: has a GPU failed, or NCCL? */
static void look_for_errors(struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas && !group->base.aborted; i++) {
        struct cuda_member *member = &group->members[i];
        const CUresult result = ask_stream(member);
        ncclResult_t state = ncclSuccess;
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
            fail_by_driver(member, result, "has failed");
        else if (group->library != NULL && !member->inside) /* who is inside looks */
            (void)ask_state(member, &state);
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

/* "1 (GPU:1), 3 (GPU:3)": the members that are awaited, or, if all came, those at work. */
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
        if (all_have_come ? ask_stream(member) == CUDA_ERROR_NOT_READY
                          : member->come < group->starts)
            used += text_print(
                text + used, text_bytes - used, "%s%u (%s)", used == 0 ? "" : ", ", i,
                device_name(member->queue->base.device, name, sizeof name));
    }
}

/* Under the mutex: until all is over. False: it is not by then. */
static bool await_all(struct cuda_group *group, uint32_t timeout_ms)
{
    const uint64_t begin_us = pause_now_us();
    uint64_t next_us = 0;

    while (!all_over_and_well(group, &next_us)) {
        const uint64_t now_us = pause_now_us();
        if (timeout_ms != DEVICE_GROUP_NO_LIMIT && now_us - begin_us >= (uint64_t)timeout_ms * 1000)
            return false;
        wait_a_little(group, now_us - begin_us);
    }
    return true;
}

/* Under the mutex. */
static enum sumac_status
tell_late(const struct cuda_group *group, uint32_t timeout_ms, struct sumac_error *error)
{
    char start[START_BYTES], missing[128];

    list_missing(group, missing, sizeof missing);
    if (group->failure.status != SUMAC_OK) /* the others do not end because of it */
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "%.400s; it has not ended in %u ms", group->failure.text, timeout_ms);
    return fail(
        error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT, "%s waited %u ms for replica %s",
        describe(group, group->starts, start), timeout_ms, missing);
}

static enum sumac_status
wait_for(struct device_group *base, uint32_t timeout_ms, struct sumac_error *error)
{
    struct cuda_group *group = (struct cuda_group *)base;
    enum sumac_status status = SUMAC_OK;

    if (group->refusal.status != SUMAC_OK)
        return fail(error, group->refusal.status, group->refusal.reason, "%s", group->refusal.text);
    pthread_mutex_lock(&group->base.mutex);
    const bool over = await_all(group, timeout_ms);
    base->has_ended = base->aborted;
    if (over)
        device_group_pass(base);
    if (!over)
        status = tell_late(group, timeout_ms, error);
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
    end_group(group);
    pthread_mutex_unlock(&group->base.mutex);
}

/* A group on devices that were given up stays: their threads and streams may still use it. */
static void close_group(struct device_group *base)
{
    struct cuda_group *group = (struct cuda_group *)base;
    const uint64_t begin_us = pause_now_us();

    for (uint32_t i = 0; i < base->replicas; i++) {
        if (!device_is_given_up(&device_of(&group->members[i])->base))
            continue;
        if (group->has_ender)
            (void)pthread_detach(group->ender);
        return;
    }
    pthread_mutex_lock(&group->base.mutex);
    for (uint32_t i = 0; i < base->replicas; i++)
        while (ask_stream(&group->members[i]) ==
               CUDA_ERROR_NOT_READY) { /* who is late finds an aborted group, and leaves */
            look_for_errors(group);
            wait_a_little(group, pause_now_us() - begin_us);
        }
    end_group(group);
    (void)await_end(group, UINT64_MAX);
    assert(group->ended);
    pthread_mutex_unlock(&group->base.mutex);
    free_group(group);
}

const struct device_group_ops cuda_group_ops = {
    .bytes = sizeof(struct cuda_group),
    .begin = begin,
    .close = close_group,
    .start = start,
    .wait = wait_for,
    .abort = abort_group,
};
