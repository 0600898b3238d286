/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c -- the devices of a program's replicas are chosen. */
#include "devices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "error.h"

#define VARIABLE "SUMAC_DEVICES"
#define GRAMMAR                                                                                    \
    "auto, cpu:N for N replicas on CPUs, or gpu:0,1 for one on each of these GPUs (gpu: on all)"

static const struct device_ops *cpus(void) { return device_kind("CPU"); }
static const struct device_ops *gpus(void) { return device_kind("GPU"); }

struct devices devices_first(const struct device_ops *kind, uint32_t count)
{
    struct devices devices = {.kind = kind, .count = count};

    assert(count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < count; i++)
        devices.number[i] = i;
    return devices;
}

static enum sumac_status bad_text(const char *text, struct sumac_error *error)
{
    return fail_argument(error, "devices are \"%.64s\"; they are %s", text, GRAMMAR);
}

enum sumac_status devices_replicas(uint32_t *replicas, struct sumac_error *error)
{
    const char *text = getenv("SUMAC_REPLICAS");
    char *end = NULL;

    if (*replicas != 0 || text == NULL || text[0] == '\0')
        return SUMAC_OK;
    const unsigned long count = strtoul(text, &end, 10);
    if (count == 0 || count > SUMAC_REPLICAS_MAX || end[0] != '\0')
        return fail_argument(
            error, "SUMAC_REPLICAS is %.64s; a worker has 1 to %u replicas", text,
            SUMAC_REPLICAS_MAX);
    *replicas = (uint32_t)count;
    return SUMAC_OK;
}

/* "3" of "3,4": what comes behind it is left at *text. */
static bool read_number(const char **text, uint32_t *number)
{
    char *end = NULL;

    assert(*text != NULL);
    if (**text < '0' || **text > '9')
        return false;
    const unsigned long value = strtoul(*text, &end, 10);
    *text = end;
    *number = (uint32_t)value;
    return value < UINT32_MAX;
}

static enum sumac_status no_step(const struct device_ops *kind, struct sumac_error *error)
{
    return fail_argument(
        error,
        kind == cpus()
            ? "CPUs are asked for, and the program has no step for them (step in the worker's "
              "options): ask for gpu"
            : "GPUs are asked for, and the program has no step for them (cuda_step in the worker's "
              "options): ask for cpu");
}

static enum sumac_status fail_number(const char *text, uint32_t replicas, struct sumac_error *error)
{
    return fail_argument(
        error,
        "devices are %.64s, and the number of replicas (by the options, or SUMAC_REPLICAS; of "
        "one_device 1) is %u: name as many devices, or say one of the two",
        text, replicas);
}

/* So many of the kind, or, where nothing says how many, `otherwise`. */
static enum sumac_status take_first(
    const struct device_ops *kind, uint32_t replicas, uint32_t otherwise, struct devices *devices,
    struct sumac_error *error)
{
    uint32_t there = 0;
    const enum sumac_status status = device_count(kind, &there, error);

    if (status != SUMAC_OK)
        return status;
    assert(there > 0);
    const uint32_t count = replicas > 0 ? replicas : otherwise < there ? otherwise : there;
    if (count > SUMAC_REPLICAS_MAX)
        return fail_argument(
            error, "%u replicas were asked for; a worker has at most %u", count,
            SUMAC_REPLICAS_MAX);
    if (count > there)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSUPPORTED,
            "%u replicas were asked for, each on a %s of its own, and the program sees %u: ask for "
            "fewer, or for cpu:%u (`sumac devices` lists what there is)",
            count, kind->name, there, count);
    *devices = devices_first(kind, count);
    return SUMAC_OK;
}

/* cpu, cpu:4 */
static enum sumac_status choose_cpus(
    const char *text, const struct devices_wanted *wanted, struct devices *devices,
    struct sumac_error *error)
{
    const char *at = text + strlen("cpu");
    uint32_t count = 0;

    assert(strncasecmp(text, "cpu", strlen("cpu")) == 0);
    if (!wanted->has_cpu_step)
        return no_step(cpus(), error);
    if (at[0] == ':' && (at++, !read_number(&at, &count) || count == 0))
        return bad_text(text, error);
    if (at[0] != '\0')
        return bad_text(text, error);
    if (count > 0 && wanted->replicas > 0 && wanted->replicas != count)
        return fail_number(text, wanted->replicas, error);
    return take_first(cpus(), wanted->replicas > 0 ? wanted->replicas : count, 1, devices, error);
}

static enum sumac_status
add_number(const char *text, uint32_t number, struct devices *devices, struct sumac_error *error)
{
    assert(devices->count <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->number[i] == number)
            return fail_argument(
                error, "devices are %.64s, with GPU:%u twice: each replica has one of its own",
                text, number);
    if (devices->count == SUMAC_REPLICAS_MAX)
        return bad_text(text, error);
    devices->number[devices->count++] = number;
    return SUMAC_OK;
}

/* gpu, gpu:0,2: whether one of that number is there is seen when it is opened. */
static enum sumac_status choose_gpus(
    const char *text, const struct devices_wanted *wanted, struct devices *devices,
    struct sumac_error *error)
{
    const char *at = text + strlen("gpu");
    struct devices named = {.kind = gpus()};
    uint32_t there = 0;

    assert(strncasecmp(text, "gpu", strlen("gpu")) == 0);
    if (!wanted->has_cuda_step)
        return no_step(gpus(), error);
    if (at[0] == '\0')
        return take_first(gpus(), wanted->replicas, SUMAC_REPLICAS_MAX, devices, error);
    if (at[0] != ':')
        return bad_text(text, error);
    enum sumac_status status = device_count(gpus(), &there, error);
    if (status != SUMAC_OK)
        return status;
    do {
        uint32_t number = 0;
        at++;
        if (!read_number(&at, &number))
            return bad_text(text, error);
        status = add_number(text, number, &named, error);
    } while (status == SUMAC_OK && at[0] == ',');
    if (status == SUMAC_OK && at[0] != '\0')
        return bad_text(text, error);
    if (status == SUMAC_OK && wanted->replicas > 0 && wanted->replicas != named.count)
        return fail_number(text, wanted->replicas, error);
    if (status == SUMAC_OK)
        *devices = named;
    return status;
}

/* A program that has a step for CPUs as well runs on these where there is no GPU, or are fewer than
 * it is to have replicas. */
static enum sumac_status
choose_any(const struct devices_wanted *wanted, struct devices *devices, struct sumac_error *error)
{
    uint32_t there = 0;

    if (wanted->has_cuda_step &&
        (!wanted->has_cpu_step ||
         (device_count(gpus(), &there, NULL) == SUMAC_OK && wanted->replicas <= there)))
        return choose_gpus("gpu", wanted, devices, error);
    return choose_cpus("cpu", wanted, devices, error);
}

enum sumac_status devices_choose(
    const struct devices_wanted *wanted, struct devices *devices, struct sumac_error *error)
{
    struct devices_wanted known = *wanted;
    const char *text = wanted->text != NULL ? wanted->text : getenv(VARIABLE);
    enum sumac_status status = devices_replicas(&known.replicas, error);

    if (status != SUMAC_OK)
        return status;
    if (text == NULL || text[0] == '\0' || strcasecmp(text, "auto") == 0)
        status = choose_any(&known, devices, error);
    else if (strncasecmp(text, "cpu", strlen("cpu")) == 0)
        status = choose_cpus(text, &known, devices, error);
    else if (strncasecmp(text, "gpu", strlen("gpu")) == 0)
        status = choose_gpus(text, &known, devices, error);
    else
        status = bad_text(text, error);
    assert(status != SUMAC_OK || (devices->count > 0 && devices->count <= SUMAC_REPLICAS_MAX));
    return status;
}
