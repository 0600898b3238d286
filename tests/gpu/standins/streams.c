/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c -- each stream is a thread that is late, and what is put into it. */
#define _GNU_SOURCE /* sched_yield */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define YIELDS_MAX 200u

struct piece {
    struct piece *next;
    standin_work *work;
    void *context;
};

struct CUstream_st {
    struct CUctx_st *of;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    struct piece *first, **last;
    uint64_t put, done;
    bool ends;
    uint64_t random; /* the thread's */
};

struct CUevent_st {
    struct CUctx_st *of;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    uint64_t recorded, passed;
    uint32_t turns; /* in streams, to record it or to wait for it */
    bool destroyed; /* the last turn frees it */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static uint64_t streams;

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Half of all that it does begins at once. */
static void be_late(CUstream stream)
{
    const uint64_t drawn = next_random(&stream->random) >> 32;
    const uint64_t yields = drawn % 2 == 0 ? 0 : drawn / 2 % YIELDS_MAX;

    for (uint64_t i = 0; i < yields; i++)
        (void)sched_yield();
}

/* The first counts. */
static void fail(CUstream stream, CUresult result)
{
    int none = CUDA_SUCCESS;

    if (result != CUDA_SUCCESS)
        (void)atomic_compare_exchange_strong(&stream->of->failed, &none, (int)result);
}

static CUresult failed(CUstream stream) { return (CUresult)atomic_load(&stream->of->failed); }

static void *serve(void *argument)
{
    CUstream stream = argument;

    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        while (stream->first == NULL && !stream->ends)
            pthread_cond_wait(&stream->changed, &stream->mutex);
        struct piece *piece = stream->first;
        if (piece == NULL)
            break;
        stream->first = piece->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        pthread_mutex_unlock(&stream->mutex);
        be_late(stream);
        const CUresult result = piece->work(piece->context);
        const CUresult wanted = standin_enter("stream", false);
        free(piece->context);
        free(piece);
        pthread_mutex_lock(&stream->mutex);
        fail(stream, result);
        fail(stream, wanted); /* now that nothing is touched any more: who waits may free it */
        stream->done++;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->mutex);
    return NULL;
}

void standin_put(CUstream stream, standin_work *work, void *context)
{
    struct piece *piece = malloc(sizeof *piece);

    if (piece == NULL)
        standin_object("no memory");
    *piece = (struct piece){NULL, work, context};
    pthread_mutex_lock(&stream->mutex);
    *stream->last = piece;
    stream->last = &piece->next;
    stream->put++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
}

int standin_stream_device(CUstream stream) { return stream->of->device; }

/* A NULL is the default stream, which the library does not use: it waits for all others. */
static CUresult enter(const char *function, CUstream stream)
{
    if (stream == NULL)
        standin_object("%s on the default stream", function);
    const CUresult result = standin_enter(function, false);
    return result != CUDA_SUCCESS ? result : failed(stream);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_STREAM_NON_BLOCKING)
        standin_object("a stream that waits for the default one");
    CUstream made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->of = standin_current();
    made->last = &made->first;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    pthread_mutex_lock(&mutex);
    made->random = (standin_number("SUMAC_STANDIN_SEED", 1) << 20) + ++streams;
    made->of->streams++;
    pthread_mutex_unlock(&mutex);
    if (pthread_create(&made->thread, NULL, serve, made) != 0)
        standin_object("no thread for a stream");
    *stream = made;
    return CUDA_SUCCESS;
}

/* A driver may refuse, and leave what is to be destroyed where it is. */
static void need_context(const char *function, const struct CUctx_st *of)
{
    if (standin_current() != of)
        standin_object("%s where the context of GPU:%d is not current", function, of->device);
}

/* What is in it is done first, as with a driver. */
CUresult cuStreamDestroy(CUstream stream)
{
    need_context(__func__, stream->of);
    pthread_mutex_lock(&stream->mutex);
    stream->ends = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&mutex);
    stream->of->streams--;
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->mutex);
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&stream->mutex);
    const uint64_t until = stream->put;
    while (stream->done < until)
        pthread_cond_wait(&stream->changed, &stream->mutex);
    pthread_mutex_unlock(&stream->mutex);
    return failed(stream);
}

CUresult cuStreamQuery(CUstream stream)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&stream->mutex);
    const bool is_done = stream->done == stream->put;
    pthread_mutex_unlock(&stream->mutex);
    return is_done ? failed(stream) : CUDA_ERROR_NOT_READY;
}

/* ---- copies */

struct transfer {
    uint64_t to, from, bytes;
    unsigned char value; /* from 0: so many of it */
};

static CUresult transfer(void *context)
{
    const struct transfer *t = context;
    void *to = standin_memory(t->to, t->bytes);
    const void *from = t->from == 0 ? NULL : standin_memory(t->from, t->bytes);

    if (to == NULL || (from == NULL && t->from != 0))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (from == NULL)
        memset(to, t->value, t->bytes);
    else
        memmove(to, from, t->bytes);
    return CUDA_SUCCESS;
}

static void put_transfer(CUstream stream, struct transfer what)
{
    struct transfer *put = malloc(sizeof *put);

    if (put == NULL)
        standin_object("no memory");
    *put = what;
    standin_put(stream, transfer, put);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (standin_memory(to, bytes) == NULL || standin_memory(from, bytes) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    put_transfer(stream, (struct transfer){.to = to, .from = from, .bytes = bytes});
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!standin_is_devices(to) || standin_memory(to, count) == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    put_transfer(stream, (struct transfer){.to = to, .bytes = count, .value = value});
    return CUDA_SUCCESS;
}

/* ---- what the host does in its turn */

struct host_function {
    CUhostFn function;
    void *data;
};

static CUresult call_host(void *context)
{
    const struct host_function *host = context;

    host->function(host->data);
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    struct host_function *put = malloc(sizeof *put);
    if (put == NULL)
        standin_object("no memory");
    *put = (struct host_function){function, data};
    standin_put(stream, call_host, put);
    return CUDA_SUCCESS;
}

/* ---- events */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_EVENT_DISABLE_TIMING)
        standin_object("an event that tells the time");
    CUevent made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->of = standin_current();
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    pthread_mutex_lock(&mutex);
    made->of->events++;
    pthread_mutex_unlock(&mutex);
    *event = made;
    return CUDA_SUCCESS;
}

static void unlock_event(CUevent event)
{
    const bool is_over = event->destroyed && event->turns == 0;

    pthread_mutex_unlock(&event->mutex);
    if (!is_over)
        return;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
    free(event);
}

/* Under a driver a stream may still have it; the library does that with a device that has failed
 * only. */
CUresult cuEventDestroy(CUevent event)
{
    need_context(__func__, event->of);
    pthread_mutex_lock(&event->mutex);
    if (event->passed < event->recorded && atomic_load(&event->of->failed) == CUDA_SUCCESS)
        standin_object("an event is destroyed that has not come to pass");
    while (event->passed < event->recorded)
        pthread_cond_wait(&event->changed, &event->mutex);
    event->destroyed = true;
    struct CUctx_st *const of = event->of;
    unlock_event(event);
    pthread_mutex_lock(&mutex);
    of->events--;
    pthread_mutex_unlock(&mutex);
    return CUDA_SUCCESS;
}

struct turn {
    CUevent event;
    uint64_t until; /* 0: it passes */
};

static CUresult take_turn(void *context)
{
    const struct turn *turn = context;
    CUevent event = turn->event;

    pthread_mutex_lock(&event->mutex);
    if (turn->until == 0)
        event->passed++;
    while (event->passed < turn->until)
        pthread_cond_wait(&event->changed, &event->mutex);
    pthread_cond_broadcast(&event->changed);
    event->turns--;
    unlock_event(event);
    return CUDA_SUCCESS;
}

static void put_turn(CUstream stream, CUevent event, uint64_t until)
{
    struct turn *turn = malloc(sizeof *turn);

    if (turn == NULL)
        standin_object("no memory");
    *turn = (struct turn){event, until};
    pthread_mutex_lock(&event->mutex);
    event->turns++;
    pthread_mutex_unlock(&event->mutex);
    standin_put(stream, take_turn, turn);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (event->of != stream->of)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&event->mutex);
    event->recorded++;
    pthread_mutex_unlock(&event->mutex);
    put_turn(stream, event, 0);
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&event->mutex);
    const bool passed = event->passed == event->recorded;
    pthread_mutex_unlock(&event->mutex);
    return passed ? (CUresult)atomic_load(&event->of->failed) : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    const CUresult result = enter(__func__, stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags != CU_EVENT_WAIT_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&event->mutex);
    const uint64_t until = event->recorded;
    pthread_mutex_unlock(&event->mutex);
    if (until > 0)
        put_turn(stream, event, until);
    return CUDA_SUCCESS;
}
