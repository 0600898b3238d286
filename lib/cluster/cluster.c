/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c -- questions to a cluster's description, and its end. */
#include "sumac/cluster.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "member_jobs.h"
#include "nearest.h"
#include "text.h"

static void free_job(struct sumac_job *job)
{
    for (uint32_t i = 0; i < job->task_count; i++)
        free(job->tasks[i].address);
    free(job->tasks);
    free(job->name);
}

void sumac_cluster_deinit(struct sumac_cluster *cluster)
{
    if (cluster == NULL)
        return;
    for (uint32_t i = 0; i < cluster->job_count; i++)
        free_job(&cluster->jobs[i]);
    free(cluster->jobs);
    free(cluster->task_type);
    free(cluster->rpc_layer);
    free(cluster->session_master);
    free(cluster->unread_key);
    *cluster = (struct sumac_cluster){0};
}

bool cluster_is_configured(void)
{
    const char *const config = getenv("TF_CONFIG");

    return config != NULL && config[0] != '\0';
}

const struct sumac_job *sumac_cluster_job(const struct sumac_cluster *cluster, const char *name)
{
    if (cluster == NULL || name == NULL)
        return NULL;
    for (uint32_t i = 0; i < cluster->job_count; i++)
        if (strcmp(cluster->jobs[i].name, name) == 0)
            return &cluster->jobs[i];
    return NULL;
}

const char *cluster_member_job(const char *name)
{
    if (name != NULL && strcmp(name, "worker") == 0)
        return "worker";
    return name != NULL && (strcmp(name, "chief") == 0 || strcmp(name, "master") == 0) ? "chief"
                                                                                       : NULL;
}

const struct sumac_job *cluster_members(const struct sumac_cluster *cluster, const char *job)
{
    const struct sumac_job *const found = sumac_cluster_job(cluster, job);

    assert(cluster_member_job(job) != NULL);
    return found == NULL && strcmp(job, "chief") == 0 ? sumac_cluster_job(cluster, "master")
                                                      : found;
}

uint32_t cluster_member_count(const struct sumac_cluster *cluster)
{
    const struct sumac_job *const chiefs = cluster_members(cluster, "chief");
    const struct sumac_job *const workers = cluster_members(cluster, "worker");

    return (chiefs == NULL ? 0 : chiefs->task_count) + (workers == NULL ? 0 : workers->task_count);
}

const char *
sumac_cluster_address(const struct sumac_cluster *cluster, const char *job, uint32_t index)
{
    const struct sumac_job *found = sumac_cluster_job(cluster, job);

    for (uint32_t i = 0; found != NULL && i < found->task_count; i++)
        if (found->tasks[i].index == index)
            return found->tasks[i].address;
    return NULL;
}

/* The address that a client of this process's own task uses; NULL: the description does not say. */
static const char *own_address(const struct sumac_cluster *cluster)
{
    if (cluster->task_type != NULL && cluster->task_index_given)
        return sumac_cluster_address(cluster, cluster->task_type, cluster->task_index);
    if (cluster->job_count == 1 && cluster->jobs[0].task_count == 1)
        return cluster->jobs[0].tasks[0].address;
    return NULL;
}

enum sumac_status
sumac_cluster_master(const struct sumac_cluster *cluster, char **master, struct sumac_error *error)
{
    const char *text = "", *layer = "";

    if (cluster == NULL || master == NULL)
        return fail_for_null(error, "sumac_cluster_master", cluster == NULL ? "cluster" : "master");
    if (cluster->session_master != NULL)
        text = cluster->session_master;
    else if (cluster->job_count > 0) {
        text = own_address(cluster);
        layer = cluster->rpc_layer != NULL ? cluster->rpc_layer : "";
    }
    if (text == NULL)
        return fail_argument(
            error, "TF_CONFIG names no task that its cluster has: set task.type and task.index");
    const size_t bytes = strlen(layer) + strlen("://") + strlen(text) + 1;
    char *const copy = malloc(bytes);
    if (copy == NULL)
        return fail_for_memory(error, "no memory for the address of a task");
    (void)text_print(copy, bytes, "%s%s%s", layer, layer[0] != '\0' ? "://" : "", text);
    *master = copy;
    return SUMAC_OK;
}

static const char *known_job(const void *context, size_t index)
{
    static const char *const jobs[] = {"ps", "worker", "chief"};
    (void)context;

    return index < sizeof jobs / sizeof jobs[0] ? jobs[index] : NULL;
}

/* A misspelt job lacks letters of the other one, or has more, or has them in another order. A job
 * that lacks a letter and has another instead is another word, as thief beside chief. */
static bool is_other_word(const char *name, const char *meant)
{
    int counts[UCHAR_MAX + 1] = {0};
    bool more = false, fewer = false;

    for (; *name != '\0'; name++)
        counts[tolower((unsigned char)*name)]++;
    for (; *meant != '\0'; meant++)
        counts[tolower((unsigned char)*meant)]--;
    for (size_t i = 0; i <= UCHAR_MAX; i++) {
        more = more || counts[i] > 0;
        fewer = fewer || counts[i] < 0;
    }
    return more && fewer;
}

/* No process waits for the tasks of a job wroker. Where there is no job worker, wroker is a
 * misspelt worker. Beside a job worker, it is a job of its own. Without any member a ps would wait
 * for ever, so another word is taken for a misspelt job there. */
static enum sumac_status check_names(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    for (uint32_t i = 0; i < cluster->job_count; i++) {
        const char *const name = cluster->jobs[i].name;
        const char *const meant = nearest_word(name, known_job, NULL);
        if (meant != NULL && sumac_cluster_job(cluster, meant) == NULL &&
            (cluster_member_count(cluster) == 0 || !is_other_word(name, meant)))
            return fail_argument(
                error, "TF_CONFIG has a job %s, and no job %s: did you mean %s?", name, meant,
                meant);
    }
    return SUMAC_OK;
}

char *cluster_print_jobs(const struct sumac_cluster *cluster, char *text, size_t text_bytes)
{
    size_t used = text_print(text, text_bytes, "%s", "");

    for (uint32_t i = 0; i < cluster->job_count; i++)
        used += text_print(
            text + used, text_bytes - used, "%s%s", i == 0 ? "" : ", ", cluster->jobs[i].name);
    return text;
}

/* Refuse a text with parts that would be ignored. */
static enum sumac_status
check_understood(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    const char *const layer = cluster->rpc_layer;

    if (cluster->unread_key != NULL)
        return fail_argument(
            error,
            "TF_CONFIG has no \"cluster\", but \"%.64s\", which is not read: name the jobs in "
            "\"cluster\": {\"ps\": [\"HOST:PORT\"], \"worker\": [\"HOST:PORT\"]}",
            cluster->unread_key);
    if (sumac_cluster_job(cluster, "chief") != NULL && sumac_cluster_job(cluster, "master") != NULL)
        return fail_argument(
            error,
            "TF_CONFIG has a job chief and a job master, which is another name of the chief: leave "
            "one out");
    if (layer != NULL && layer[0] != '\0' && strcmp(layer, "grpc") != 0)
        return fail_argument(
            error,
            "TF_CONFIG's rpc_layer is %.64s, and tasks talk over grpc: say that, or leave it out",
            layer);
    return check_names(cluster, error);
}

enum sumac_status
cluster_check_member(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    const enum sumac_status status = check_understood(cluster, error);

    if (status != SUMAC_OK)
        return status;
    if (cluster->job_count == 0 && (cluster->task_type == NULL || cluster->empty))
        return SUMAC_OK;
    if (cluster->job_count == 0)
        return fail_argument(
            error,
            "TF_CONFIG has a task, %.64s %u, and no \"cluster\" that has it: add \"cluster\": "
            "{\"worker\": [\"HOST:PORT\"]}, or unset TF_CONFIG to train alone",
            cluster->task_type, cluster->task_index);
    if (cluster->task_type == NULL && cluster_member_count(cluster) == 1)
        return SUMAC_OK;
    if (cluster_member_job(cluster->task_type) != NULL)
        return SUMAC_OK;
    return fail_argument(
        error,
        "TF_CONFIG's task is %.64s; a strategy is of a chief or a worker: let \"task\" be "
        "{\"type\": \"worker\", \"index\": N}, and its job \"worker\" in \"cluster\", or "
        "unset TF_CONFIG to train alone",
        cluster->task_type == NULL ? "none" : cluster->task_type);
}

enum sumac_status
sumac_cluster_check_task(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (cluster == NULL)
        return fail_for_null(error, "sumac_cluster_check_task", "cluster");
    const enum sumac_status status = check_understood(cluster, error);
    char jobs[JOBS_BYTES];

    if (status != SUMAC_OK)
        return status;
    if (cluster->job_count == 0 && cluster->task_type == NULL && !cluster_is_configured())
        return fail_argument(
            error, "no cluster is configured: set TF_CONFIG, for example to {\"cluster\": {\"ps\": "
                   "[\"HOST:PORT\"], \"worker\": [\"HOST:PORT\"]}, \"task\": {\"type\": \"ps\", "
                   "\"index\": 0}}");
    if (cluster->job_count == 0)
        return fail_argument(
            error, "TF_CONFIG has no \"cluster\", or an empty one: add \"cluster\": {\"ps\": "
                   "[\"HOST:PORT\"], \"worker\": [\"HOST:PORT\"]}");
    if (sumac_cluster_job(cluster, "ps") == NULL)
        return fail_argument(
            error,
            "the cluster in TF_CONFIG has no ps: add \"ps\": [\"HOST:PORT\"] to its \"cluster\", "
            "which has %s",
            cluster_print_jobs(cluster, jobs, sizeof jobs));
    if (cluster->task_type == NULL && cluster->task_index_given)
        return fail_argument(
            error,
            "TF_CONFIG does not say of which job this process is task %u: add \"type\": \"ps\" or "
            "\"worker\" to its \"task\"",
            cluster->task_index);
    if (cluster->task_type == NULL)
        return fail_argument(
            error, "TF_CONFIG does not say which task this process is: add \"task\": {\"type\": "
                   "\"ps\" or \"worker\", \"index\": 0}");
    if (!cluster->task_index_given)
        return fail_argument(
            error, "TF_CONFIG does not say which %s this process is: add \"index\" to its \"task\"",
            cluster->task_type);
    if (strcmp(cluster->task_type, "ps") != 0 && cluster_member_count(cluster) == 0)
        return fail_argument(
            error,
            "the cluster in TF_CONFIG has no worker and no chief: add \"worker\": [\"HOST:PORT\"] "
            "to its \"cluster\", which has %s",
            cluster_print_jobs(cluster, jobs, sizeof jobs));
    return SUMAC_OK;
}
