/* SPDX-License-Identifier: Apache-2.0 */
/* communicators.c -- ranks that join, what they are asked for, and how that gets on. */
#define _GNU_SOURCE /* sched_yield */
#include "communicators.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define POLLS_MAX 7u

/* One lock for all: what is computed is small. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct club *clubs;
static uint64_t ids, random_state = 88172645463325252;
static char fault[16]; /* "stall", "fail", "break", "cuda", "hold" */
static int fault_rank;
static uint64_t fault_number;
static pthread_once_t begun = PTHREAD_ONCE_INIT;

static _Thread_local int group_depth;
static _Thread_local struct operation *grouped;

static void begin(void)
{
    const char *text = getenv("SUMAC_STANDIN_NCCL");

    random_state += standin_number("SUMAC_STANDIN_SEED", 1);
    if (text != NULL && sscanf(text, "%15[^:]:%d:%lu", fault, &fault_rank, &fault_number) != 3)
        standin_object("SUMAC_STANDIN_NCCL is %s, not WHAT:RANK:N", text);
}

/* For a test that opens the library itself; "" is none. */
void standin_nccl_fault(const char *what, int rank, uint64_t number);
void standin_nccl_fault(const char *what, int rank, uint64_t number)
{
    (void)pthread_once(&begun, begin);
    pthread_mutex_lock(&mutex);
    (void)snprintf(fault, sizeof fault, "%s", what);
    fault_rank = rank;
    fault_number = number;
    pthread_mutex_unlock(&mutex);
}

static unsigned some_polls(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % POLLS_MAX) + 1;
}

static void be_slow(void)
{
    for (int i = 0; i < 20; i++)
        (void)sched_yield();
}

/* ---- what begins */

static bool has_fault(const struct operation *operation, const char *what)
{
    return strcmp(fault, what) == 0 && operation->comm->rank == fault_rank &&
           operation->number == fault_number;
}

static void leave(struct ncclComm *comm)
{
    struct club *club = comm->club;

    free(comm);
    if (++club->left < club->ranks)
        return;
    struct club **at = &clubs;
    while (*at != club)
        at = &(*at)->next;
    *at = club->next;
    pthread_cond_destroy(&club->changed);
    free(club);
}

/* Until all have come, and the last one has done it. */
static CUresult meet(struct operation *operation)
{
    struct ncclComm *comm = operation->comm;
    struct club *club = comm->club;
    CUresult result = CUDA_SUCCESS;
    int come = 0;

    club->come[comm->rank] = operation;
    for (int rank = 0; rank < club->ranks; rank++)
        come += club->come[rank] != NULL;
    if (come == club->ranks) {
        if (!operation_compute(club->come, club->ranks))
            result = CUDA_ERROR_ILLEGAL_ADDRESS;
        memset(club->come, 0, sizeof club->come);
        club->done++;
        pthread_cond_broadcast(&club->changed);
    }
    while (!comm->aborted && club->done < operation->number)
        pthread_cond_wait(&club->changed, &mutex);
    if (club->done < operation->number)
        club->come[comm->rank] = NULL;
    return result;
}

/* On the stream's thread. One that is aborted leaves some time later, and not its memory as it was:
 * whoever takes that away meanwhile has a kernel write where nothing is. */
static CUresult take_part(void *context)
{
    struct operation *operation = context;
    struct ncclComm *comm = operation->comm;
    struct club *club = comm->club;
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&mutex);
    const bool begins = !comm->aborted;
    comm->breaks = comm->breaks || has_fault(operation, "break");
    while (!comm->aborted && (club->done + 1 < operation->number || has_fault(operation, "stall") ||
                              has_fault(operation, "break")))
        pthread_cond_wait(&club->changed, &mutex);
    if (!comm->aborted)
        result = meet(operation);
    if (begins && comm->aborted && club->done < operation->number) {
        pthread_mutex_unlock(&mutex);
        be_slow();
        if (!operation_spoil(operation))
            result = CUDA_ERROR_ILLEGAL_ADDRESS;
        pthread_mutex_lock(&mutex);
    }
    if (--comm->pieces == 0 && comm->aborted && !comm->holds)
        leave(comm);
    else if (comm->pieces == 0)
        pthread_cond_broadcast(&club->changed);
    pthread_mutex_unlock(&mutex);
    return result;
}

/* It has been asked often enough. */
static void go_on(struct ncclComm *comm)
{
    if (comm->club->joined < comm->club->ranks)
        return;
    comm->state = ncclSuccess;
    while (comm->asked != NULL) {
        struct operation *operation = comm->asked;
        comm->asked = operation->next;
        comm->holds = comm->holds || has_fault(operation, "hold");
        if (has_fault(operation, "fail") || has_fault(operation, "cuda"))
            comm->fails = true;
        if (has_fault(operation, "cuda"))
            atomic_store(&standin_context(comm->device)->failed, CUDA_ERROR_ILLEGAL_ADDRESS);
        if (comm->fails) {
            free(operation);
            continue;
        }
        comm->pieces++;
        standin_put(operation->stream, take_part, operation);
    }
    comm->asked_last = &comm->asked;
    if (comm->fails)
        comm->state = strcmp(fault, "cuda") == 0 ? ncclUnhandledCudaError : ncclRemoteError;
}

/* Under the mutex, which is left for a while: NCCL's functions take their time, and nobody may end
 * the communicator meanwhile. */
static void use(struct ncclComm *comm)
{
    if (comm->aborted)
        standin_object("rank %d is used after it was aborted", comm->rank);
    comm->users++;
    pthread_mutex_unlock(&mutex);
    be_slow();
    pthread_mutex_lock(&mutex);
    comm->users--;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    (void)standin_enter(__func__, false);
    pthread_mutex_lock(&mutex);
    use(comm);
    if (comm->state == ncclInProgress && comm->polls > 0)
        comm->polls--;
    if (comm->state == ncclInProgress && comm->polls == 0)
        go_on(comm);
    else if (comm->breaks)
        comm->state = ncclRemoteError;
    *state = comm->state;
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}

/* ---- communicators */

ncclResult_t ncclGetVersion(int *version)
{
    *version = (int)standin_number("SUMAC_STANDIN_NCCL_VERSION", NCCL_VERSION_CODE);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote process exited or there was a network error"
           : result == ncclUnhandledCudaError
               ? "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
               : "as the test wants it";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return comm->fails && strcmp(fault, "cuda") == 0 ? "Cuda failure 700" : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    (void)pthread_once(&begun, begin);
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&mutex);
    ids++;
    memcpy(id->internal, &ids, sizeof ids);
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}

static struct club *club_of(uint64_t id, int ranks)
{
    for (struct club *club = clubs; club != NULL; club = club->next)
        if (club->id == id)
            return club;
    struct club *made = calloc(1, sizeof *made);
    if (made == NULL)
        standin_object("no memory");
    *made = (struct club){.next = clubs, .id = id, .ranks = ranks};
    pthread_cond_init(&made->changed, NULL);
    clubs = made;
    return made;
}

ncclResult_t
ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    struct ncclComm *made = calloc(1, sizeof *made);
    uint64_t number = 0;

    if (made == NULL || config->blocking != 0)
        standin_object("a communicator that blocks");
    if (standin_current() == NULL)
        standin_object("a rank without a context that is current");
    if (ranks > RANKS_MAX || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    memcpy(&number, id.internal, sizeof number);
    pthread_mutex_lock(&mutex);
    *made = (struct ncclComm){
        .club = club_of(number, ranks),
        .rank = rank,
        .device = standin_current()->device,
        .state = ncclInProgress,
        .polls = some_polls(),
    };
    made->asked_last = &made->asked;
    made->club->joined++;
    pthread_mutex_unlock(&mutex);
    *comm = made;
    return ncclInProgress;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    pthread_mutex_lock(&mutex);
    if (comm->aborted)
        standin_object("a communicator is aborted twice");
    if (comm->users > 0)
        standin_object("rank %d is aborted while somebody uses it", comm->rank);
    for (int i = 0; i < SCALARS_MAX; i++)
        if (comm->has_scalar[i] && comm->state == ncclSuccess && comm->pieces == 0 &&
            !standin_has_failed())
            standin_object("rank %d ends with a scalar that was not destroyed", comm->rank);
    comm->aborted = true;
    while (comm->asked != NULL) {
        struct operation *operation = comm->asked;
        comm->asked = operation->next;
        free(operation);
    }
    pthread_cond_broadcast(&comm->club->changed);
    while (comm->holds && comm->pieces > 0)
        pthread_cond_wait(&comm->club->changed, &mutex);
    if (comm->pieces == 0)
        leave(comm);
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(
    ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence,
    ncclComm_t comm)
{
    if (residence != ncclScalarHostImmediate)
        standin_object("a scalar that is not the host's");
    for (int i = 0; i < SCALARS_MAX; i++) {
        if (comm->has_scalar[i])
            continue;
        comm->has_scalar[i] = true;
        comm->scalars[i] = operation_scalar(type, scalar);
        *op = (ncclRedOp_t)(ncclNumOps + i);
        return ncclSuccess;
    }
    return ncclInvalidUsage;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const int i = (int)op - ncclNumOps;

    if (i < 0 || i >= SCALARS_MAX || !comm->has_scalar[i])
        return ncclInvalidArgument;
    comm->has_scalar[i] = false;
    return ncclSuccess;
}

/* ---- calls, which begin when their group ends */

/* In C the header says nothing of their arguments. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    if (group_depth++ == 0)
        grouped = NULL;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (--group_depth > 0)
        return ncclSuccess;
    (void)standin_enter(__func__, false); /* is counted, as what the driver is called for */
    pthread_mutex_lock(&mutex);
    while (grouped != NULL) {
        struct operation *operation = grouped;
        grouped = operation->next;
        operation->next = NULL;
        operation->number = ++operation->comm->calls;
        *operation->comm->asked_last = operation;
        operation->comm->asked_last = &operation->next;
        operation->comm->state = ncclInProgress;
        operation->comm->polls = some_polls();
    }
    pthread_mutex_unlock(&mutex);
    return ncclInProgress;
}

static ncclResult_t ask(ncclRedOp_t op, struct operation what)
{
    struct operation *asked = malloc(sizeof *asked);

    if (asked == NULL)
        standin_object("no memory");
    if (group_depth == 0)
        standin_object("a call outside a group");
    if (standin_current() == NULL || standin_current()->device != what.comm->device)
        standin_object("rank %d is asked with another context current", what.comm->rank);
    if (standin_stream_device(what.stream) != what.comm->device)
        standin_object("rank %d is asked for in another device's stream", what.comm->rank);
    pthread_mutex_lock(&mutex);
    use(what.comm);
    const bool ready = what.comm->state == ncclSuccess;
    pthread_mutex_unlock(&mutex);
    if (!ready) {
        free(asked);
        return ncclInvalidUsage;
    }
    *asked = what;
    if ((int)op >= ncclNumOps) {
        asked->scales = true;
        asked->scalar = what.comm->scalars[(int)op - ncclNumOps];
    } else if (op != ncclSum) {
        standin_object("nothing is known of NCCL's reduction %d", (int)op);
    }
    asked->next = grouped; /* calls of a group have no order: here the last one is the first */
    grouped = asked;
    return ncclInProgress;
}

ncclResult_t ncclAllReduce(
    const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream)
{
    (void)standin_enter(__func__, false);
    return ask(
        op, (struct operation){
                .comm = comm,
                .stream = (CUstream)stream,
                .kind = ALL_REDUCE,
                .from = (uint64_t)(uintptr_t)from,
                .to = (uint64_t)(uintptr_t)to,
                .count = count,
                .type = type,
            });
}

ncclResult_t ncclReduce(
    const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream)
{
    (void)standin_enter(__func__, false);
    return ask(
        op, (struct operation){
                .comm = comm,
                .stream = (CUstream)stream,
                .kind = REDUCE,
                .from = (uint64_t)(uintptr_t)from,
                .to = (uint64_t)(uintptr_t)to,
                .count = count,
                .type = type,
                .root = root,
            });
}

ncclResult_t ncclBroadcast(
    const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
    cudaStream_t stream)
{
    return ask(
        ncclSum, (struct operation){
                     .comm = comm,
                     .stream = (CUstream)stream,
                     .kind = BROADCAST,
                     .from = (uint64_t)(uintptr_t)from,
                     .to = (uint64_t)(uintptr_t)to,
                     .count = count,
                     .type = type,
                     .root = root,
                 });
}
