/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_group.h -- a group of GPUs as cuda_group_calls.c uses it: its communicators, their users,
 * and its end. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "device_group.h"
#include "cuda_device.h"
#include "nccl_call.h"
#include "wide.h"

struct cuda_member {
    struct cuda_group *group;
    struct cuda_queue *queue;
    struct nccl_rank rank;
    struct wide wide;
    CUevent over;        /* its part of the last start */
    uint64_t come, left; /* starts whose job has begun, has ended */
    bool inside;         /* somebody uses the communicator */
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
    struct sumac_error failure; /* the first; its status is OK: there is none */
    struct sumac_error refusal; /* of the last start; OK: it began. The caller's */
};

/* Have the communicators, if the group needs any, find each other. Fails  as device_group_open. */
enum sumac_status cuda_group_begin(
    struct device_group *base, struct device_queue *const *queues, struct sumac_error *error);
/* It has ended. */
void cuda_group_free(struct cuda_group *group);

const struct cuda_device *cuda_group_device(const struct cuda_member *member);
/* "GPU:1" into `text`. Lends  text. */
const char *cuda_group_name(const struct cuda_member *member, char *text, uint32_t text_bytes);

/* It was asked for, or will be. */
bool cuda_group_is_fine(ncclResult_t result);

/* Under the mutex: until something has changed, or it is time to look again (pause.h). */
void cuda_group_pause(struct cuda_group *group, uint64_t waited_us);

/* Under the mutex: the communicator is used between the two. False: the group has ended, or will.
 */
bool cuda_group_enter(struct cuda_member *member);
void cuda_group_leave(struct cuda_member *member);

/* Under the mutex: begin to end it, on a thread of its own. NCCL ends a communicator when its
 * kernels have left, which may wait for a kernel of the program's: no caller waits with them. */
void cuda_group_end(struct cuda_group *group);
/* Under the mutex: until it has ended. False: it has not by then. */
bool cuda_group_await_end(struct cuda_group *group, uint64_t until_ns);
/* Does the work of one of its devices never end (device_give_up)? */
bool cuda_group_is_given_up(const struct cuda_group *group);

/* Under the mutex: what NCCL, or the driver, said of a rank ends the group; the first word counts.
 */
void cuda_group_fail(struct cuda_member *member, ncclResult_t result);
void cuda_group_fail_by_driver(struct cuda_member *member, CUresult result, const char *what);

/* What the last start is of: "(all_reduce)". Lends  text. */
const char *cuda_group_describe(const struct cuda_group *group, char *text, uint32_t text_bytes);
