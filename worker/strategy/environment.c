/* SPDX-License-Identifier: Apache-2.0 */
/* environment.c -- the strategy that the environment says: TF_CONFIG, SUMAC_STRATEGY,
 * SUMAC_SYNCHRONOUS, SUMAC_REPLICAS. */
#include "strategy.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "member_jobs.h"
#include "own_variables.h"

/* ---- which one */

static enum sumac_status named_kind(enum sumac_strategy_kind *kind, struct sumac_error *error)
{
    const char *name = getenv("SUMAC_STRATEGY");

    *kind = (enum sumac_strategy_kind)0;
    if (name == NULL || name[0] == '\0')
        return SUMAC_OK;
    for (int i = SUMAC_STRATEGY_DEFAULT; i <= SUMAC_STRATEGY_PARAMETER_SERVER; i++)
        if (strcmp(name, strategy_kind_name((enum sumac_strategy_kind)i)) == 0)
            *kind = (enum sumac_strategy_kind)i;
    if ((int)*kind != 0)
        return SUMAC_OK;
    return fail_argument(
        error,
        "SUMAC_STRATEGY is %.64s; there are default, one_device, mirrored, multi_worker and "
        "parameter_server",
        name);
}

static bool is_set_beyond(const char *variable, const char *const *fitting)
{
    const char *text = getenv(variable);
    bool is = text != NULL && text[0] != '\0';

    for (; is && *fitting != NULL; fitting++)
        is = strcmp(text, *fitting) != 0;
    return is;
}

/* Is the strategy that is named one of what else the environment says? */
static enum sumac_status check_named(enum sumac_strategy_kind kind, struct sumac_error *error)
{
    static const char *const one[] = {"1", NULL}, *const none[] = {"auto", "cpu", "cpu:1", NULL};

    if (kind != SUMAC_STRATEGY_DEFAULT && kind != SUMAC_STRATEGY_ONE_DEVICE)
        return SUMAC_OK;
    if (is_set_beyond("SUMAC_REPLICAS", one))
        return fail_argument(
            error,
            "SUMAC_STRATEGY is %s, which has one replica, and SUMAC_REPLICAS is %.64s: unset one "
            "of them",
            strategy_kind_name(kind), getenv("SUMAC_REPLICAS"));
    if (kind == SUMAC_STRATEGY_DEFAULT && is_set_beyond("SUMAC_DEVICES", none))
        return fail_argument(
            error,
            "SUMAC_STRATEGY is default, which runs on the caller's thread, and SUMAC_DEVICES is "
            "%.64s: unset one of them, or let SUMAC_STRATEGY be one_device",
            getenv("SUMAC_DEVICES"));
    return SUMAC_OK;
}

static uint32_t count_tasks(const struct sumac_cluster *cluster, const char *name)
{
    const struct sumac_job *job = sumac_cluster_job(cluster, name);

    return job == NULL ? 0 : job->task_count;
}

/* The kind where none is named: with ps their strategy, unless steps are to be synchronous; of
 * several workers theirs; else this process's own. */
static enum sumac_strategy_kind kind_of(const struct sumac_cluster *cluster, bool synchronous)
{
    const bool has_ps = count_tasks(cluster, "ps") > 0;

    if (has_ps && !synchronous)
        return SUMAC_STRATEGY_PARAMETER_SERVER;
    return has_ps || cluster_member_count(cluster) > 1 ? SUMAC_STRATEGY_MULTI_WORKER
                                                       : (enum sumac_strategy_kind)0;
}

/* Choose what is left open in *kind. A kind of this process alone is in step with no other. */
static enum sumac_status choose_kind(
    const struct sumac_cluster *cluster, enum sumac_strategy_kind *kind, struct sumac_error *error)
{
    bool synchronous = false;

    assert((int)*kind == 0 || strategy_kind_name(*kind) != NULL);
    const enum sumac_status status = synchronous_from_environment(&synchronous, error);

    if (status != SUMAC_OK)
        return status;
    if ((int)*kind == 0)
        *kind = kind_of(cluster, synchronous);
    else if (
        synchronous && *kind < SUMAC_STRATEGY_MULTI_WORKER && cluster_member_count(cluster) > 1)
        return fail_argument(
            error,
            "SUMAC_SYNCHRONOUS is 1 (sumac run --synchronous), and a %s strategy trains in its "
            "own process alone: let SUMAC_STRATEGY be multi_worker, or unset SUMAC_SYNCHRONOUS",
            strategy_kind_name(*kind));
    return SUMAC_OK;
}

/* ---- made */

static enum sumac_status make(
    const struct sumac_cluster *cluster, const struct sumac_strategy_options *given,
    struct surroundings *surroundings, struct sumac_strategy **strategy, struct sumac_error *error)
{
    const enum sumac_strategy_kind kind = given->kind;
    struct sumac_strategy_options options = *given;
    enum sumac_status status = SUMAC_OK;

    assert(surroundings->client == NULL);
    if (kind >= SUMAC_STRATEGY_MULTI_WORKER)
        status = count_tasks(cluster, "ps") > 0
                     ? surroundings_join(cluster, surroundings, error)
                     : surroundings_join_without_ps(cluster, surroundings, error);
    options.client = surroundings->client;
    if (status == SUMAC_OK)
        status = sumac_strategy_create(&options, strategy, error);
    if (status == SUMAC_OK)
        (*strategy)->surroundings = surroundings;
    return status;
}

enum sumac_status
sumac_strategy_from_environment(struct sumac_strategy **strategy, struct sumac_error *error)
{
    if (strategy == NULL)
        return fail_for_null(error, "sumac_strategy_from_environment", "strategy");
    return sumac_strategy_from_environment_with(NULL, strategy, error);
}

enum sumac_status sumac_strategy_from_environment_with(
    const struct sumac_strategy_options *options, struct sumac_strategy **strategy,
    struct sumac_error *error)
{
    struct sumac_cluster cluster = {.job_count = 0};
    enum sumac_strategy_kind kind;
    struct sumac_strategy_options own = {.replicas = 0};

    if (strategy == NULL)
        return fail_for_null(error, "sumac_strategy_from_environment_with", "strategy");
    if (options != NULL)
        own = *options;
    enum sumac_status status = named_kind(&kind, error);
    if (status == SUMAC_OK)
        status = check_named(kind, error);
    if (status == SUMAC_OK)
        status = sumac_cluster_from_environment(NULL, &cluster, error);
    if (status == SUMAC_OK)
        status = cluster_check_member(&cluster, error);
    if (status == SUMAC_OK)
        status = choose_kind(&cluster, &kind, error);
    struct surroundings *surroundings = calloc(1, sizeof *surroundings);
    if (status == SUMAC_OK && surroundings == NULL)
        status = value_fail_for_memory(error);
    own.kind = kind;
    own.workers = NULL;
    own.worker_count = 0;
    if (status == SUMAC_OK)
        status = make(&cluster, &own, surroundings, strategy, error);
    if (status != SUMAC_OK)
        (void)surroundings_leave(surroundings, false, 0, NULL);
    sumac_cluster_deinit(&cluster);
    return status;
}

struct sumac_client *sumac_strategy_client(const struct sumac_strategy *strategy)
{
    return strategy == NULL ? NULL : strategy->options.client;
}
