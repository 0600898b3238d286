/* SPDX-License-Identifier: Apache-2.0 */
/* crew.c -- the yardstick's threads, and times. */
#include "crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct crew {
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t begin, end;
    crew_work *work;
    void *context;
    uint64_t number; /* of the piece of work */
    uint32_t threads, started, busy;
    bool closing;
    pthread_t thread[CREW_MAX];
};

static void *serve(void *argument)
{
    struct crew *crew = argument;
    uint64_t done = 0;

    pthread_mutex_lock(&crew->mutex);
    const uint32_t own = crew->started++;
    for (;;) {
        while (crew->number == done && !crew->closing)
            pthread_cond_wait(&crew->begin, &crew->mutex);
        if (crew->closing)
            break;
        done = crew->number;
        pthread_mutex_unlock(&crew->mutex);
        crew->work(crew->context, own);
        pthread_mutex_lock(&crew->mutex);
        if (--crew->busy == 0)
            pthread_cond_signal(&crew->end);
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

struct crew *crew_open(uint32_t threads)
{
    struct crew *crew = calloc(1, sizeof *crew);

    if (crew == NULL || threads > CREW_MAX)
        die("no memory for a crew");
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->end, NULL);
    crew->threads = threads;
    for (uint32_t i = 0; i < threads; i++)
        if (pthread_create(&crew->thread[i], NULL, serve, crew) != 0)
            die("cannot start a thread");
    return crew;
}

void crew_run(struct crew *crew, crew_work *work, void *context)
{
    pthread_mutex_lock(&crew->mutex);
    crew->work = work;
    crew->context = context;
    crew->busy = crew->threads;
    crew->number++;
    pthread_cond_broadcast(&crew->begin);
    while (crew->busy > 0)
        pthread_cond_wait(&crew->end, &crew->mutex);
    pthread_mutex_unlock(&crew->mutex);
}

void crew_close(struct crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    crew->closing = true;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->mutex);
    for (uint32_t i = 0; i < crew->threads; i++)
        (void)pthread_join(crew->thread[i], NULL);
    pthread_cond_destroy(&crew->begin);
    pthread_cond_destroy(&crew->end);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

/* ---- times */

double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

void samples_add(struct samples *samples, double taken_us)
{
    if (samples->count < SAMPLES_MAX)
        samples->taken_us[samples->count++] = taken_us;
}

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

double samples_median(struct samples *samples)
{
    qsort(samples->taken_us, samples->count, sizeof samples->taken_us[0], compare);
    return samples->count == 0 ? 0 : samples->taken_us[samples->count / 2];
}

_Noreturn void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}
