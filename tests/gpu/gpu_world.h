/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_world.h -- three replicas on GPUs of their own, in a group, and what each has on the host and
 * there. */
#pragma once

#include <stdbool.h>

#include "device_group.h"

#define GPU_REPLICAS 3u
#define GPU_CALLS_MAX 80u

struct gpu_world {
    struct device *devices[GPU_REPLICAS];
    struct device_queue *queues[GPU_REPLICAS];
    struct device_group *group;
};

struct gpu_held {
    struct sumac_buffer *host[GPU_REPLICAS], *there[GPU_REPLICAS];
    void *at[GPU_REPLICAS]; /* there */
};

extern const uint64_t gpu_world_ones[GPU_REPLICAS];

#define GPU_WORLD_SKIPPED 77 /* a program's exit code */

/* Are there GPUs enough, and NCCL? Says so if not. */
bool gpu_world_is_there(void);

/* What the stand-ins are told; with a driver and NCCL that cannot be told the test is skipped. */
void gpu_world_nccl_fault(const char *what, int rank, uint64_t number);
/* None of NCCL's any more. */
void gpu_world_nccl_forget(void);
void gpu_world_fail_at(const char *function, uint64_t nth, int result);
/* The N-th call of a function calls `call` first. */
void gpu_world_call_at(const char *function, uint64_t nth, void (*call)(void *), void *context);
/* From here on a driver's function is counted; how often it was called since then. */
void gpu_world_count(const char *function);
uint64_t gpu_world_counted(void);
/* Put a function into a GPU's stream; in the device's own work. */
void gpu_world_put(void *stream, void (*function)(void *), void *context);

/* Setup and teardown of a test. */
int gpu_world_begin(void **state);
int gpu_world_end(void **state);

/* Begin what was added, and wait for it. */
void gpu_world_finish(struct gpu_world *world);

/* Zeros, of so many bytes for each replica. */
struct gpu_held gpu_world_hold(struct gpu_world *world, uint64_t bytes);
void gpu_world_drop(struct gpu_held *held);
/* To the devices, in the queues: nobody waits for it. And back: that is waited for. */
void gpu_world_send(struct gpu_world *world, const struct gpu_held *held);
void gpu_world_fetch(struct gpu_world *world, const struct gpu_held *held);
