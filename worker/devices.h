/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h -- which devices replicas run on, as the program and the environment say.
 *
 *     auto      the GPUs that are there, of a program that has a step for them; else CPUs
 *     cpu:4     CPU:0 to CPU:3; "cpu" is one, or as many as there are replicas
 *     gpu:0,2   these; "gpu" is all, or as many as there are replicas
 */
#pragma once

#include <stdbool.h>

#include "device.h"
#include "sumac/worker.h"

/* Replica i runs on device number[i] of the kind. */
struct devices {
    const struct device_ops *kind;
    uint32_t count;
    uint32_t number[SUMAC_REPLICAS_MAX];
};

/* The first `count` of a kind. */
struct devices devices_first(const struct device_ops *kind, uint32_t count);

/* What a program says. */
struct devices_wanted {
    const char *text;  /* as above; NULL: as SUMAC_DEVICES says, which is "auto" where it is not */
    uint32_t replicas; /* 0: as SUMAC_REPLICAS says, or as many as the text does */
    bool has_cpu_step, has_cuda_step;
};

/* Fails    INVALID_ARGUMENT: a text that is none, more replicas than there may be, or others than
 *          the text has devices; devices that the program has no step for. FAILED_PRECONDITION:
 *          there is no GPU; OUT_OF_RANGE: none of that number. The sentence has the remedy. */
enum sumac_status devices_choose(
    const struct devices_wanted *wanted, struct devices *devices, struct sumac_error *error);

/* As sumac_worker_create, with replicas on these devices, whose kind has collectives; of no kind
 * (zeroed): as the options say. */
enum sumac_status worker_create(
    const struct devices *devices, const struct sumac_worker_options *options,
    struct sumac_worker **worker, struct sumac_error *error);

/* How many replicas SUMAC_REPLICAS says, where *replicas says nothing (0), which it still does if
 * that does not either. Fails INVALID_ARGUMENT: it is no such number. */
enum sumac_status devices_replicas(uint32_t *replicas, struct sumac_error *error);
