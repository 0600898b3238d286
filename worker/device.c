/* SPDX-License-Identifier: Apache-2.0 */
/* device.c -- the CPU devices' threads: each sleeps until it is given a job. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "device.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sumac/worker.h"
#include "text.h"

struct device {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    void (*work)(void *context); /* NULL: idle */
    void *context;
    bool closing;
};

static void *serve(void *argument)
{
    struct device *device = argument;
    pthread_mutex_lock(&device->mutex);
    for (;;) {
        while (device->work == NULL && !device->closing)
            pthread_cond_wait(&device->changed, &device->mutex);
        if (device->work == NULL)
            break;
        pthread_mutex_unlock(&device->mutex);
        device->work(device->context); /* nobody writes `work` before it is NULL again */
        pthread_mutex_lock(&device->mutex);
        assert(device->work != NULL);
        device->work = NULL;
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->mutex);
    return NULL;
}

enum sumac_status device_open(uint32_t index, struct device **device, struct sumac_error *error)
{
    struct device *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for device CPU:%u", index);
    pthread_mutex_init(&opened->mutex, NULL);
    pthread_cond_init(&opened->changed, NULL);
    const int failure = pthread_create(&opened->thread, NULL, serve, opened);
    if (failure != 0) {
        pthread_cond_destroy(&opened->changed);
        pthread_mutex_destroy(&opened->mutex);
        free(opened);
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "device CPU:%u could not start its thread: %s; ask for fewer replicas", index,
            strerror(failure));
    }
    char name[16]; /* what the kernel keeps of a thread's name */
    pthread_setname_np(opened->thread, sumac_device_name(index, name, sizeof name));
    *device = opened;
    return SUMAC_OK;
}

void device_start(struct device *device, void (*work)(void *context), void *context)
{
    assert(work != NULL);
    pthread_mutex_lock(&device->mutex);
    assert(device->work == NULL);
    device->context = context;
    device->work = work;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
}

void device_wait(struct device *device)
{
    pthread_mutex_lock(&device->mutex);
    while (device->work != NULL)
        pthread_cond_wait(&device->changed, &device->mutex);
    pthread_mutex_unlock(&device->mutex);
}

void device_close(struct device *device)
{
    if (device == NULL)
        return;
    pthread_mutex_lock(&device->mutex);
    assert(!device->closing);
    device->closing = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
    pthread_join(device->thread, NULL);
    assert(device->work == NULL); /* what ran is finished */
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->mutex);
    free(device);
}

const char *sumac_device_name(uint32_t index, char *text, uint32_t text_bytes)
{
    if (text == NULL || text_bytes == 0)
        return "";
    text_print(text, text_bytes, "CPU:%u", index);
    return text;
}
