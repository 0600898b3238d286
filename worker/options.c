/* SPDX-License-Identifier: Apache-2.0 */
/* options.c -- what a worker was told, by its program and by the environment: checked, and what is
 * left open filled in. */
#include "worker_state.h"

#include <inttypes.h>
#include <assert.h>
#include <float.h>
#include <stdlib.h>

#include "error.h"
#include "own_variables.h"
#include "reduce.h"

#define STEP_TIMEOUT_MS 600000u /* where the program says nothing: longer than steps are */

/* Both are said again of every push, and a client refuses those that it cannot make: these are
 * refused before the first step. */
static enum sumac_status
check_conditioning(const struct sumac_worker_options *options, struct sumac_error *error)
{
    const bool scales = options->loss_scale != 0, clips = options->clip_norm != 0;

    if (scales && !(options->loss_scale >= 0x1p-127 && options->loss_scale <= 0x1p127))
        return fail_argument(
            error, "loss_scale is %g; it is what the loss was multiplied by, from 2^-127 to 2^127",
            options->loss_scale);
    if (clips && !(options->clip_norm > 0 && options->clip_norm <= DBL_MAX))
        return fail_argument(
            error, "clip_norm is %g; it is the largest norm that a step's push may have, or 0",
            options->clip_norm);
    for (uint32_t i = 0; i < options->pushed_count && (scales || clips); i++) {
        const enum sumac_dtype dtype = sumac_client_variable_dtype(options->variables[i]);
        if (!sumac_dtype_is_float(dtype))
            return fail_invalid(
                error, SUMAC_REASON_WRONG_DATA_TYPE,
                "variable %s is of type %s, and the worker is to %s what it pushes, which is of a "
                "float type then; push it apart",
                sumac_client_variable_name(options->variables[i]), sumac_dtype_name(dtype),
                scales ? "scale" : "clip");
    }
    return SUMAC_OK;
}

static enum sumac_status
check_options(const struct sumac_worker_options *options, struct sumac_error *error)
{
    const char *missing = options->client == NULL                               ? "a client"
                          : options->step == NULL && options->cuda_step == NULL ? "a step function"
                          : options->variable_count == 0 || options->variables == NULL
                              ? "a variable"
                              : NULL;

    if (missing != NULL)
        return fail_argument(error, "a worker needs %s in its options", missing);
    if (options->variable_count > SUMAC_TRANSFER_VARIABLES_MAX)
        return fail_argument(
            error, "variable_count is %u; a worker has at most %d", options->variable_count,
            SUMAC_TRANSFER_VARIABLES_MAX);
    for (uint32_t i = 0; i < options->variable_count; i++)
        if (options->variables[i] == NULL)
            return fail_argument(
                error, "variable %u of the worker's %u is NULL", i, options->variable_count);
    if (options->pushed_count > options->variable_count)
        return fail_argument(
            error, "pushed_count is %u, but the worker has %u variables", options->pushed_count,
            options->variable_count);
    if (options->replicas > SUMAC_REPLICAS_MAX)
        return fail_argument(
            error, "%u replicas were asked for; a worker has at most %u", options->replicas,
            SUMAC_REPLICAS_MAX);
    if (options->pushes_in_flight > SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX)
        return fail_argument(
            error, "%u pushes in flight were asked for; a worker has at most %u",
            options->pushes_in_flight, SUMAC_WORKER_PUSHES_IN_FLIGHT_MAX);
    if (options->lag_max > 0 && !options->bounded)
        return fail_argument(
            error, "lag_max is %" PRIu64 ", which counts only with `bounded`", options->lag_max);
    if (options->synchronous > SUMAC_SYNCHRONOUS_NO)
        return fail_argument(
            error,
            "synchronous is %d; it must be SUMAC_SYNCHRONOUS_DEFAULT, SUMAC_SYNCHRONOUS_YES or "
            "SUMAC_SYNCHRONOUS_NO",
            (int)options->synchronous);
    return check_conditioning(options, error);
}

static enum sumac_status
check_reductions(const struct sumac_worker_options *options, struct sumac_error *error)
{
    if (options->reduce != SUMAC_REDUCE_SUM && options->reduce != SUMAC_REDUCE_MEAN)
        return fail_argument(
            error, "reduce is %d, which is neither SUMAC_REDUCE_SUM nor SUMAC_REDUCE_MEAN",
            (int)options->reduce);
    for (uint32_t i = 0; i < options->pushed_count && options->replicas > 1; i++) {
        const enum sumac_dtype dtype = sumac_client_variable_dtype(options->variables[i]);
        if (!reduce_has(options->reduce, dtype))
            return fail_invalid(
                error, SUMAC_REASON_WRONG_DATA_TYPE,
                "the replicas' gradients of %s cannot be reduced by %s: it is %s; %s",
                sumac_client_variable_name(options->variables[i]),
                options->reduce == SUMAC_REDUCE_MEAN ? "MEAN" : "SUM", sumac_dtype_name(dtype),
                sumac_dtype_kind(dtype) == SUMAC_KIND_BOOL ? "push it apart from the worker"
                                                           : "reduce by SUM, or make it a float");
    }
    return SUMAC_OK;
}

/* Whether SUMAC_SYNCHRONOUS says so, where the options do not. */
static enum sumac_status
read_synchronous(struct sumac_worker_options *options, struct sumac_error *error)
{
    bool synchronous = options->synchronous == SUMAC_SYNCHRONOUS_YES;
    const enum sumac_status status = options->synchronous == SUMAC_SYNCHRONOUS_DEFAULT
                                         ? synchronous_from_environment(&synchronous, error)
                                         : SUMAC_OK;

    if (status != SUMAC_OK || !synchronous)
        return status;
    options->synchronous = SUMAC_SYNCHRONOUS_YES;
    options->sequential = true;
    options->pushes_in_flight = 1;
    return SUMAC_OK;
}

static void fill_in(struct sumac_worker_options *options)
{
    if (options->pushed_count == 0)
        options->pushed_count = options->variable_count;
    if (options->reduce == 0)
        options->reduce = SUMAC_REDUCE_MEAN;
    if (options->pushes_in_flight == 0)
        options->pushes_in_flight = 1;
    if (options->step_timeout_ms == 0)
        options->step_timeout_ms = STEP_TIMEOUT_MS;
    if (options->trace == NULL)
        options->trace = getenv("SUMAC_TRACE");
    if (options->trace != NULL && options->trace[0] == '\0')
        options->trace = NULL;
}

static enum sumac_status choose_devices(
    struct sumac_worker_options *options, struct devices *devices, struct sumac_error *error)
{
    const struct devices_wanted wanted = {
        .text = options->devices,
        .replicas = options->replicas,
        .has_cpu_step = options->step != NULL,
        .has_cuda_step = options->cuda_step != NULL,
    };
    enum sumac_status status =
        devices->kind == NULL ? devices_choose(&wanted, devices, error) : SUMAC_OK;

    if (status != SUMAC_OK)
        return status;
    assert(devices->count > 0);
    options->replicas = devices->count;
    if (devices->kind->place == SUMAC_PLACE_CUDA && options->cuda_step != NULL)
        options->step = options->cuda_step;
    return SUMAC_OK;
}

enum sumac_status worker_options_read(
    const struct sumac_worker_options *options, struct sumac_worker_options *filled,
    struct devices *devices, struct sumac_error *error)
{
    *filled = *options;
    fill_in(filled);
    enum sumac_status status = check_options(filled, error);
    if (status == SUMAC_OK)
        status = choose_devices(filled, devices, error);
    if (status == SUMAC_OK)
        status = read_synchronous(filled, error);
    if (status == SUMAC_OK)
        status = check_reductions(filled, error);
    return status;
}
