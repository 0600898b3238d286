/* SPDX-License-Identifier: Apache-2.0 */
/* compute_pool.c -- see compute_pool.h. A ring of jobs under one mutex: a slice is a hundred
 * microseconds or more, and the lock is held for a few nanoseconds of it. */
#define _GNU_SOURCE
#include "compute_pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define SLICES_ALONE_MAX 4u
#define JOBS_FIRST 64u /* the ring doubles when it is full */

struct compute_job {
    uint64_t id;
    struct update_slice *slices; /* or … */
    const struct combine_slice *combines;
    uint32_t slice_count;
    uint32_t taken;
    uint32_t finished;
};

struct compute_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work; /* a slice can be taken, or the pool ends */
    bool ending;
    /* jobs[oldest % capacity … (oldest + count - 1) % capacity]; those before `next` have no slice
     * left to take. */
    struct compute_job *jobs;
    uint64_t oldest, next;
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint32_t thread_count;
    pthread_t threads[COMPUTE_THREADS_MAX];
};

struct compute_claim {
    uint64_t position;          /* of the job; it stays while a slice is out */
    struct update_slice *slice; /* or … */
    const struct combine_slice *combine;
};

static struct compute_job *job_at(const struct compute_pool *pool, uint64_t position)
{
    return &pool->jobs[position & (pool->capacity - 1)];
}

/* With the mutex held: the next slice of the oldest job that has one. */
static bool claim_slice(struct compute_pool *pool, struct compute_claim *claim)
{
    const uint64_t end = pool->oldest + pool->count;

    while (pool->next < end &&
           job_at(pool, pool->next)->taken == job_at(pool, pool->next)->slice_count)
        pool->next++;
    if (pool->next == end)
        return false;
    struct compute_job *const job = job_at(pool, pool->next);
    claim->position = pool->next;
    claim->slice = job->slices == NULL ? NULL : &job->slices[job->taken];
    claim->combine = job->slices == NULL ? &job->combines[job->taken] : NULL;
    job->taken++;
    return true;
}

/* With the mutex held, which is let go of while the slice runs. */
static void run_claimed(struct compute_pool *pool, const struct compute_claim *claim)
{
    pthread_mutex_unlock(&pool->mutex);
    if (claim->slice != NULL)
        update_run(claim->slice);
    else
        combine_run(claim->combine);
    pthread_mutex_lock(&pool->mutex);
    job_at(pool, claim->position)->finished++;
}

static void *work(void *context)
{
    struct compute_pool *const pool = context;
    struct compute_claim claim;

    pthread_mutex_lock(&pool->mutex);
    while (!pool->ending) {
        if (claim_slice(pool, &claim))
            run_claimed(pool, &claim);
        else
            pthread_cond_wait(&pool->work, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static bool start_threads(struct compute_pool *pool, uint32_t threads)
{
    sigset_t all, before;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    while (started && pool->thread_count < threads) {
        started = pthread_create(&pool->threads[pool->thread_count], NULL, work, pool) == 0;
        if (started)
            (void)pthread_setname_np(pool->threads[pool->thread_count++], "sumac-compute");
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool compute_pool_create(uint32_t threads, struct compute_pool **pool)
{
    assert(threads <= COMPUTE_THREADS_MAX);
    struct compute_pool *const created = calloc(1, sizeof *created);
    if (created == NULL)
        return false;
    created->capacity = JOBS_FIRST;
    created->jobs = calloc(JOBS_FIRST, sizeof *created->jobs);
    if (created->jobs == NULL) {
        free(created);
        return false;
    }
    pthread_mutex_init(&created->mutex, NULL);
    pthread_cond_init(&created->work, NULL);
    if (!start_threads(created, threads)) {
        compute_pool_destroy(created);
        return false;
    }
    *pool = created;
    return true;
}

void compute_pool_destroy(struct compute_pool *pool)
{
    if (pool == NULL)
        return;
    assert(pool->count == 0);
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->thread_count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->jobs);
    free(pool);
}

/* With the mutex held. Jobs keep their positions. */
static bool grow(struct compute_pool *pool)
{
    struct compute_job *const jobs = calloc((size_t)pool->capacity * 2, sizeof *jobs);

    if (jobs == NULL)
        return false;
    for (uint64_t p = pool->oldest; p < pool->oldest + pool->count; p++)
        jobs[p & (2 * pool->capacity - 1)] = *job_at(pool, p);
    free(pool->jobs);
    pool->jobs = jobs;
    pool->capacity *= 2;
    return true;
}

bool compute_pool_submit(
    struct compute_pool *pool, uint64_t job, struct update_slice *slices,
    const struct combine_slice *combines, uint32_t slice_count)
{
    assert(job != 0);
    assert(slices == NULL || combines == NULL);
    pthread_mutex_lock(&pool->mutex);
    if (pool->count == pool->capacity && !grow(pool)) {
        pthread_mutex_unlock(&pool->mutex);
        return false;
    }
    *job_at(pool, pool->oldest + pool->count) = (struct compute_job){
        .id = job, .slices = slices, .combines = combines, .slice_count = slice_count};
    pool->count++;
    /* The owner takes slices too: a few are done before another thread has woken. */
    if (slice_count > SLICES_ALONE_MAX)
        pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    return true;
}

bool compute_pool_help(struct compute_pool *pool)
{
    struct compute_claim claim;

    pthread_mutex_lock(&pool->mutex);
    const bool claimed = claim_slice(pool, &claim);
    if (claimed)
        run_claimed(pool, &claim);
    pthread_mutex_unlock(&pool->mutex);
    return claimed;
}

uint64_t compute_pool_finished(struct compute_pool *pool)
{
    uint64_t finished = 0;

    pthread_mutex_lock(&pool->mutex);
    if (pool->count > 0) {
        const struct compute_job *const job = job_at(pool, pool->oldest);
        if (job->finished == job->slice_count) {
            finished = job->id;
            pool->oldest++;
            pool->count--;
            if (pool->next < pool->oldest)
                pool->next = pool->oldest;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return finished;
}

uint32_t compute_pool_jobs(const struct compute_pool *pool) { return pool->count; }
