/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_group.c -- a group's communicators: they find each other without blocking anybody, whoever
 * uses one is counted, and the end of one is the end of all. */
#include "cuda_group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "pause.h"
#include "text.h"
#include "trace.h"

#define OPEN_MS_MAX 60000u /* for communicators to find each other; to end */

const struct cuda_device *cuda_group_device(const struct cuda_member *member)
{
    return (const struct cuda_device *)member->queue->base.device;
}

const char *cuda_group_name(const struct cuda_member *member, char *text, uint32_t text_bytes)
{
    return device_name(member->queue->base.device, text, text_bytes);
}

bool cuda_group_is_fine(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Under the mutex: until something has changed, or so long. */
static void sleep_for(struct cuda_group *group, uint64_t us)
{
    (void)pause_until(&group->base.changed, &group->base.mutex, trace_now() + us * 1000);
}

void cuda_group_pause(struct cuda_group *group, uint64_t waited_us)
{
    const uint64_t us = pause_us(waited_us);

    if (us > 0) {
        sleep_for(group, us);
        return;
    }
    pthread_mutex_unlock(&group->base.mutex);
    pause_here(waited_us);
    pthread_mutex_lock(&group->base.mutex);
}

/* ---- the end of a group */

/* Under the mutex. False: the group has ended, or will. */
bool cuda_group_enter(struct cuda_member *member)
{
    struct cuda_group *group = member->group;

    while (member->inside && !group->base.aborted)
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    if (group->base.aborted)
        return false;
    member->inside = true;
    return true;
}

void cuda_group_leave(struct cuda_member *member)
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
        const bool current = cuda_device_enter(cuda_group_device(member)) == CUDA_SUCCESS;
        if (member->rank.comm != NULL)
            (void)group->library->ncclCommAbort(member->rank.comm);
        member->rank.comm = NULL;
        if (current)
            cuda_device_leave(cuda_group_device(member));
    }
}

/* On the ender's thread. */
static void *end_communicators(void *argument)
{
    struct cuda_group *group = argument;

    pthread_mutex_lock(&group->base.mutex);
    while (anybody_inside(group))
        pthread_cond_wait(&group->base.changed, &group->base.mutex);
    pthread_mutex_unlock(&group->base.mutex); /* cuda_group_enter fails from here on */
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

void cuda_group_end(struct cuda_group *group)
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

bool cuda_group_await_end(struct cuda_group *group, uint64_t until_ns)
{
    while (!group->ended && trace_now() < until_ns)
        sleep_for(group, PAUSE_US_MAX);
    return group->ended;
}

bool cuda_group_is_given_up(const struct cuda_group *group)
{
    for (uint32_t i = 0; i < group->base.replicas; i++)
        if (device_is_given_up(&cuda_group_device(&group->members[i])->base))
            return true;
    return false;
}

const char *cuda_group_describe(const struct cuda_group *group, char *text, uint32_t text_bytes)
{
    return nccl_call_describe(group->base.calls, group->base.call_count, text, text_bytes);
}

/* The driver's result for the rank's stream, and its words, "; the driver says: …", into `text`.
 * NCCL has one name for all errors of the driver. */
static CUresult ask_driver(const struct cuda_member *member, char *text, uint32_t text_bytes)
{
    const struct cuda_device *device = cuda_group_device(member);
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
    char name[16], what[32], driver[DEVICE_WHY_BYTES + 32] = "";

    if (result == ncclUnhandledCudaError)
        (void)cuda_device_note(
            member->queue->base.device, ask_driver(member, driver, sizeof driver));
    (void)fail(
        &group->failure, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED,
        "start %" PRIu64 " %s of a group of %u replicas failed at replica %u (%s): NCCL says: "
        "%s%s%.120s%s%s",
        group->starts, cuda_group_describe(group, what, sizeof what), group->base.replicas,
        member->rank.replica, cuda_group_name(member, name, sizeof name),
        group->library->ncclGetErrorString(result), last == NULL || last[0] == '\0' ? "" : " (",
        last == NULL ? "" : last, last == NULL || last[0] == '\0' ? "" : ")", driver);
}

/* Under the mutex: what NCCL said of a rank ends the group; the first word counts. */
void cuda_group_fail(struct cuda_member *member, ncclResult_t result)
{
    struct cuda_group *group = member->group;

    assert(!cuda_group_is_fine(result));
    assert(group->library != NULL);
    if (group->failure.status == SUMAC_OK && !group->base.aborted)
        note_nccls_words(member, result);
    cuda_group_end(group);
}

void cuda_group_fail_by_driver(struct cuda_member *member, CUresult result, const char *what)
{
    struct cuda_group *group = member->group;
    char name[16], what_of[32];

    (void)cuda_device_note(member->queue->base.device, result);
    if (group->failure.status == SUMAC_OK && !group->base.aborted)
        (void)cuda_fail(
            &group->failure, group->driver, result,
            "start %" PRIu64 " %s of a group of %u replicas was aborted: replica %u (%s) %s",
            group->starts, cuda_group_describe(group, what_of, sizeof what_of),
            group->base.replicas, member->rank.replica, cuda_group_name(member, name, sizeof name),
            what);
    cuda_group_end(group);
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
        result = cuda_device_create_event(
            cuda_group_device(&group->members[i]), &group->members[i].over);
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
    for (uint32_t i = 0; cuda_group_is_fine(result) && i < group->base.replicas; i++) {
        struct nccl_rank *rank = &group->members[i].rank;
        const struct cuda_device *device = cuda_group_device(&group->members[i]);
        if (cuda_device_enter(device) != CUDA_SUCCESS) {
            result = ncclUnhandledCudaError;
            break;
        }
        result =
            library->ncclCommInitRankConfig(&rank->comm, (int)rank->replicas, id, (int)i, &config);
        cuda_device_leave(device);
    }
    const ncclResult_t ended = library->ncclGroupEnd();
    return cuda_group_is_fine(result) ? ended : result;
}

static enum sumac_status open_communicators(struct cuda_group *group, struct sumac_error *error)
{
    const uint64_t begin_us = pause_now_us(), until_ns = device_until(OPEN_MS_MAX);
    ncclResult_t result = begin_communicators(group);

    pthread_mutex_lock(&group->base.mutex);
    for (uint32_t i = 0; cuda_group_is_fine(result) && i < group->base.replicas; i++) {
        ncclResult_t state = ncclInProgress;
        while (cuda_group_is_fine(result) && state == ncclInProgress && trace_now() < until_ns) {
            result = group->library->ncclCommGetAsyncError(group->members[i].rank.comm, &state);
            if (result == ncclSuccess && state == ncclInProgress)
                cuda_group_pause(group, pause_now_us() - begin_us);
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
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
        "NCCL does not connect %u GPUs: %s; NCCL_DEBUG=INFO has it say more", group->base.replicas,
        group->library->ncclGetErrorString(result));
}

/* Of communicators that do not end a thread stays, and the group with it. */
static void close_unopened(struct cuda_group *group)
{
    pthread_mutex_lock(&group->base.mutex);
    cuda_group_end(group);
    const bool ended = cuda_group_await_end(group, device_until(OPEN_MS_MAX));
    pthread_mutex_unlock(&group->base.mutex);
    if (ended)
        cuda_group_free(group);
}

enum sumac_status cuda_group_begin(
    struct device_group *base, struct device_queue *const *queues, struct sumac_error *error)
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
    group->driver = cuda_group_device(&group->members[0])->driver;
    status = open_events(group, error);
    if (status == SUMAC_OK && group->library != NULL)
        status = open_communicators(group, error);
    if (status != SUMAC_OK)
        close_unopened(group);
    return status;
}

void cuda_group_free(struct cuda_group *group)
{
    assert(group->ended);
    if (group->has_ender)
        (void)pthread_join(group->ender, NULL);
    for (uint32_t i = 0; i < group->base.replicas; i++) {
        assert(group->members[i].rank.comm == NULL && !group->members[i].inside);
        const struct cuda_device *device = cuda_group_device(&group->members[i]);
        wide_deinit(device, &group->members[i].wide);
        cuda_device_destroy_event(device, group->members[i].over);
    }
    free(group->members);
    device_group_free(&group->base);
}
