/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.c -- strategies are created and destroyed. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "error.h"
#include "own_variables.h"
#include "devices.h"
#include "peers.h"
#include "on_device.h"

#define TIMEOUT_MS_DEFAULT 60000u
#define STEP_TIMEOUT_MS_DEFAULT 600000u

/* ---- options */

const char *strategy_kind_name(enum sumac_strategy_kind kind)
{
    static const char *const names[] = {
        [SUMAC_STRATEGY_DEFAULT] = "default",
        [SUMAC_STRATEGY_ONE_DEVICE] = "one_device",
        [SUMAC_STRATEGY_MIRRORED] = "mirrored",
        [SUMAC_STRATEGY_MULTI_WORKER] = "multi_worker",
        [SUMAC_STRATEGY_PARAMETER_SERVER] = "parameter_server"};

    return (uint32_t)kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

enum sumac_status
communication_check(const struct sumac_communication_options *options, struct sumac_error *error)
{
    if (options->bytes_per_pack > SUMAC_BYTES_PER_PACK_MAX)
        return fail_argument(
            error, "bytes_per_pack is %" PRIu64 "; it is 0, for all together, to 2^40",
            options->bytes_per_pack);
    if ((int)options->implementation < 0 || options->implementation > SUMAC_COMMUNICATION_NCCL)
        return fail_argument(
            error, "implementation is %d; there are 0 (AUTO), 1 (RING) and 2 (NCCL)",
            (int)options->implementation);
    return SUMAC_OK;
}

static enum sumac_status
check_kind(const struct sumac_strategy_options *options, struct sumac_error *error)
{
    const enum sumac_strategy_kind kind = options->kind;

    if ((int)kind != 0 && strategy_kind_name(kind) == NULL)
        return fail_argument(
            error,
            "a strategy of kind %d: there are 1 (default), 2 (one_device), 3 (mirrored), 4 "
            "(multi_worker) and 5 (parameter_server)",
            (int)kind);
    if (kind >= SUMAC_STRATEGY_MULTI_WORKER && options->client == NULL)
        return fail_argument(
            error,
            "a %s strategy without a client: open one (sumac_client_open), which finds the ps",
            strategy_kind_name(kind));
    const uint32_t most =
        kind >= SUMAC_STRATEGY_MIRRORED || (int)kind == 0 ? SUMAC_REPLICAS_MAX : 1;
    if (options->replicas > most)
        return fail_argument(
            error, "%" PRIu32 " replicas of a %s strategy, which has %" PRIu32 " at most",
            options->replicas, strategy_kind_name((int)kind == 0 ? SUMAC_STRATEGY_MIRRORED : kind),
            most);
    return SUMAC_OK;
}

/* The workers of a strategy on the ps take no step together, so it cannot do what
 * SUMAC_SYNCHRONOUS asks for. */
static enum sumac_status check_pace(enum sumac_strategy_kind kind, struct sumac_error *error)
{
    bool synchronous = false;

    assert((int)kind == 0 || strategy_kind_name(kind) != NULL);
    const enum sumac_status status = synchronous_from_environment(&synchronous, error);

    if (status != SUMAC_OK || !synchronous || kind != SUMAC_STRATEGY_PARAMETER_SERVER)
        return status;
    return fail_argument(
        error,
        "SUMAC_SYNCHRONOUS is 1 (sumac run --synchronous), and each worker of a parameter_server "
        "strategy trains at its own pace: make a multi_worker strategy, or unset "
        "SUMAC_SYNCHRONOUS");
}

/* Does the text name GPUs? */
static bool names_gpus(const char *text)
{
    return text != NULL && strncasecmp(text, "gpu", strlen("gpu")) == 0;
}

/* The devices that the options say, or the environment. */
static enum sumac_status choose_devices(
    const struct sumac_strategy_options *options, struct devices *devices,
    struct sumac_error *error)
{
    const char *text = options->devices != NULL ? options->devices : getenv("SUMAC_DEVICES");
    const bool one =
        options->kind == SUMAC_STRATEGY_DEFAULT || options->kind == SUMAC_STRATEGY_ONE_DEVICE;
    const struct devices_wanted wanted = {
        .text = text == NULL ? "" : text,
        .replicas = one ? 1 : options->replicas,
        .has_cpu_step = true,
        .has_cuda_step = options->runs_on_gpus || names_gpus(options->devices)};

    if (options->kind == SUMAC_STRATEGY_DEFAULT && names_gpus(options->devices))
        return fail_argument(
            error,
            "devices are \"%.64s\" of a default strategy, which runs on the caller's thread: make "
            "a one_device strategy",
            options->devices);
    if (options->kind == SUMAC_STRATEGY_DEFAULT) {
        *devices = devices_first(device_kind("CPU"), 1);
        return SUMAC_OK;
    }
    if (names_gpus(text) && !wanted.has_cuda_step)
        return fail_argument(
            error,
            "GPUs are asked for (SUMAC_DEVICES), and the program does not say that its functions "
            "run on them (runs_on_gpus in the strategy's options): ask for cpu");
    return devices_choose(&wanted, devices, error);
}

/* What is left open is filled in. */
static enum sumac_status read_options(
    const struct sumac_strategy_options *options, struct sumac_strategy_options *filled,
    struct devices *devices, struct sumac_error *error)
{
    *filled = *options;
    enum sumac_status status = check_kind(options, error);
    if (status == SUMAC_OK)
        status = check_pace(options->kind, error);
    if (status == SUMAC_OK)
        status = choose_devices(options, devices, error);
    if (status != SUMAC_OK)
        return status;
    filled->replicas = devices->count;
    if ((int)filled->kind == 0)
        filled->kind = devices->count > 1                    ? SUMAC_STRATEGY_MIRRORED
                       : devices->kind == device_kind("CPU") ? SUMAC_STRATEGY_DEFAULT
                                                             : SUMAC_STRATEGY_ONE_DEVICE;
    if (filled->timeout_ms == 0)
        filled->timeout_ms = TIMEOUT_MS_DEFAULT;
    if (filled->step_timeout_ms == 0)
        filled->step_timeout_ms = STEP_TIMEOUT_MS_DEFAULT;
    assert(filled->replicas > 0);
    assert(filled->timeout_ms > 0);
    return communication_check(&filled->communication, error);
}

/* ---- made */

static enum sumac_status make(
    const struct sumac_strategy_options *options, const struct devices *devices,
    struct sumac_strategy **made, struct sumac_error *error)
{
    struct sumac_strategy *strategy = calloc(1, sizeof *strategy);
    const uint32_t replicas = options->replicas;

    assert(replicas > 0);
    assert(replicas == devices->count);
    assert(options->timeout_ms > 0);
    if (strategy == NULL)
        return value_fail_for_memory(error);
    strategy->options = *options;
    strategy->process = getpid();
    strategy->replicas = strategy->in_sync = replicas;
    enum sumac_status status =
        options->kind == SUMAC_STRATEGY_MULTI_WORKER ? peers_open(strategy, error) : SUMAC_OK;
    pthread_mutex_init(&strategy->running, NULL);
    pthread_mutex_init(&strategy->creating, NULL);
    pthread_mutex_init(&strategy->ending, NULL);
    pthread_cond_init(&strategy->idle, NULL);
    strategy->contexts = calloc(replicas, sizeof *strategy->contexts);
    strategy->runs = calloc(replicas, sizeof *strategy->runs);
    strategy->helpers = shares_helpers(replicas);
    strategy->results = results_open();
    calls_init(strategy);
    const bool initialized =
        strategy->results != NULL && strategy->contexts != NULL && strategy->runs != NULL;
    for (uint32_t i = 0; initialized && i < replicas; i++)
        strategy->contexts[i] = (struct sumac_replica){
            .strategy = strategy,
            .index = i,
            .id = strategy->first + i,
            .count = strategy->in_sync};
    if (status == SUMAC_OK && !initialized)
        status = value_fail_for_memory(error);
    if (status == SUMAC_OK)
        status = replicas_open(
            options->kind == SUMAC_STRATEGY_DEFAULT ? NULL : devices, &strategy->own, error);
    if (status == SUMAC_OK)
        status = on_device_open(strategy, error);
    for (uint32_t i = 0; status == SUMAC_OK && strategy->own.queues != NULL && i < replicas; i++)
        strategy->contexts[i].device = device_for_step(strategy->own.queues[i]);
    if (status != SUMAC_OK) {
        sumac_strategy_destroy(strategy);
        return status;
    }
    *made = strategy;
    return SUMAC_OK;
}

enum sumac_status sumac_strategy_create(
    const struct sumac_strategy_options *options, struct sumac_strategy **strategy,
    struct sumac_error *error)
{
    const struct sumac_strategy_options none = {.replicas = 0};
    struct sumac_strategy_options filled;
    struct devices devices;

    if (strategy == NULL)
        return fail_for_null(error, "sumac_strategy_create", "strategy");
    const enum sumac_status status =
        read_options(options == NULL ? &none : options, &filled, &devices, error);
    return status == SUMAC_OK ? make(&filled, &devices, strategy, error) : status;
}

/* Is this thread in a run or an update of the strategy? No run of another is made within one. */
static bool is_within(const struct sumac_strategy *strategy)
{
    const struct context *const present = context_present();

    assert(present->kind == CONTEXT_DEFAULT || present->strategy != NULL);
    return present->kind != CONTEXT_DEFAULT && present->strategy == strategy &&
           (present->kind != CONTEXT_CROSS_REPLICA || present->replica != NULL);
}

static enum sumac_status end(struct sumac_strategy *strategy, struct sumac_error *error)
{
    struct surroundings *const surroundings = strategy->surroundings;
    const uint32_t timeout_ms = strategy->options.timeout_ms;

    pthread_mutex_lock(&strategy->ending); /* runs and updates of other threads are waited for */
    while (strategy->under_way > 0)
        pthread_cond_wait(&strategy->idle, &strategy->ending);
    pthread_mutex_unlock(&strategy->ending);
    if (context_present()->kind != CONTEXT_DEFAULT && context_present()->strategy == strategy)
        *context_present() = (struct context){.kind = CONTEXT_DEFAULT};
    while (strategy->variables.first != NULL)
        sumac_variable_destroy(strategy->variables.first);
    on_device_close(strategy);
    replicas_close(&strategy->own);
    calls_deinit(strategy);
    functions_forget(strategy);
    peers_close(strategy->peers);
    kept_close(strategy->results);
    pthread_mutex_destroy(&strategy->running);
    pthread_mutex_destroy(&strategy->creating);
    pthread_mutex_destroy(&strategy->ending);
    pthread_cond_destroy(&strategy->idle);
    free(strategy->runs);
    free(strategy->contexts);
    free(strategy);
    return surroundings_leave(surroundings, true, timeout_ms, error);
}

enum sumac_status sumac_strategy_close(struct sumac_strategy *strategy, struct sumac_error *error)
{
    static const char call[] = "sumac_strategy_close";

    if (strategy == NULL)
        return SUMAC_OK;
    if (strategy->process != getpid())
        return context_fail(
            call,
            "called in a child of the process that made the strategy, whose threads and "
            "connections are the parent's: nothing was done",
            error);
    if (is_within(strategy))
        return context_fail(
            call, "called within its own run, or an update: close it after that", error);
    return end(strategy, error);
}

void sumac_strategy_destroy(struct sumac_strategy *strategy)
{
    struct sumac_error error;

    if (strategy == NULL || strategy->process != getpid())
        return;
    if (!is_within(strategy)) {
        (void)!end(strategy, &error);
        return;
    }
    pthread_mutex_lock(&strategy->ending);
    strategy->is_ending = true;
    pthread_mutex_unlock(&strategy->ending);
}

void strategy_begins(struct sumac_strategy *strategy)
{
    assert(strategy->process == getpid());
    pthread_mutex_lock(&strategy->ending);
    strategy->under_way++;
    pthread_mutex_unlock(&strategy->ending);
}

void strategy_returned(struct sumac_strategy *strategy)
{
    struct sumac_error error;

    assert(strategy->process == getpid());
    pthread_mutex_lock(&strategy->ending);
    assert(strategy->under_way > 0);
    const bool is_last = --strategy->under_way == 0, ends = is_last && strategy->is_ending;
    if (is_last)
        pthread_cond_signal(&strategy->idle);
    pthread_mutex_unlock(&strategy->ending);
    if (ends)
        (void)!end(strategy, &error);
}

uint32_t sumac_strategy_num_replicas_in_sync(const struct sumac_strategy *strategy)
{
    return strategy == NULL ? 0 : strategy->in_sync;
}

const char *sumac_strategy_name(const struct sumac_strategy *strategy)
{
    return strategy == NULL ? "" : strategy_kind_name(strategy->options.kind);
}

struct sumac_strategy *sumac_replica_strategy(const struct sumac_replica *replica)
{
    return replica == NULL ? NULL : replica->strategy;
}
