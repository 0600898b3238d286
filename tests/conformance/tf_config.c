/* SPDX-License-Identifier: Apache-2.0 */
/* tf_config.c -- the `tf_config` cases: what a TF_CONFIG resolves to, through
 * sumac_cluster_from_environment.
 *
 *   {"env": TEXT or null, "overrides": {…}, "expect": {"cluster": {JOB: {INDEX: ADDRESS}},
 * "task_type", …}}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "sumac/cluster.h"

static const char *const case_keys[] = {"env", "overrides", NULL};
static const char *const override_keys[] = {"task_type", "task_id", "rpc_layer", NULL};
static const char *const expect_keys[] = {"cluster",   "task_type", "task_id",
                                          "rpc_layer", "master",    NULL};

static bool
read_overrides(struct cases_run *run, json_t *given, struct sumac_cluster_overrides *overrides)
{
    *overrides = (struct sumac_cluster_overrides){0};
    if (given == NULL)
        return true;
    if (!cases_keys_known(run, given, "\"overrides\"", override_keys))
        return false;
    overrides->task_type = json_string_value(json_object_get(given, "task_type"));
    overrides->rpc_layer = json_string_value(json_object_get(given, "rpc_layer"));
    const json_t *index = json_object_get(given, "task_id");
    overrides->has_task_index = index != NULL;
    overrides->task_index = (uint32_t)json_integer_value(index);
    return true;
}

/* Is `text` what is expected; null stands for none? */
static bool
text_matches(struct cases_run *run, const char *what, const json_t *expected, const char *text)
{
    if (expected == NULL)
        return true;
    const char *wanted = json_string_value(expected);
    if (wanted == NULL ? text == NULL : text != NULL && strcmp(wanted, text) == 0)
        return true;
    return cases_fail(
        run, "%s is %s, expected %s", what, text != NULL ? text : "none",
        wanted != NULL ? wanted : "none");
}

static bool job_matches(
    struct cases_run *run, const struct sumac_cluster *cluster, const char *name, json_t *expected)
{
    const struct sumac_job *job = sumac_cluster_job(cluster, name);

    if (job == NULL || job->task_count != json_object_size(expected))
        return cases_fail(
            run, "job %s has %u tasks, expected %zu", name, job != NULL ? job->task_count : 0,
            json_object_size(expected));
    for (uint32_t i = 0; i < job->task_count; i++) {
        char index[16];
        snprintf(index, sizeof index, "%u", job->tasks[i].index);
        const char *address = json_string_value(json_object_get(expected, index));
        if (address == NULL || strcmp(address, job->tasks[i].address) != 0)
            return cases_fail(
                run, "task %s of job %s is %s, expected %s", index, name, job->tasks[i].address,
                address != NULL ? address : "none");
    }
    return true;
}

static bool jobs_match(struct cases_run *run, const struct sumac_cluster *cluster, json_t *expected)
{
    if (expected == NULL)
        return true;
    if (cluster->job_count != json_object_size(expected))
        return cases_fail(
            run, "%u jobs, expected %zu", cluster->job_count, json_object_size(expected));
    const char *name = NULL;
    json_t *tasks = NULL;
    json_object_foreach(expected, name, tasks)
    {
        if (!job_matches(run, cluster, name, tasks))
            return false;
    }
    return true;
}

static bool
index_matches(struct cases_run *run, const struct sumac_cluster *cluster, const json_t *expected)
{
    if (expected == NULL)
        return true;
    const bool given = cluster->task_index_given;
    if (json_is_null(expected) ? !given
                               : given && json_integer_value(expected) == cluster->task_index)
        return true;
    return cases_fail(run, "task_id is %d", given ? (int)cluster->task_index : -1);
}

static bool
master_matches(struct cases_run *run, const struct sumac_cluster *cluster, const json_t *expected)
{
    if (expected == NULL)
        return true;
    char *master = NULL;
    struct sumac_error error = {0};
    if (sumac_cluster_master(cluster, &master, &error) != SUMAC_OK)
        return cases_fail(run, "master: %s", error.text);
    const bool matches = text_matches(run, "master", expected, master);
    free(master);
    return matches;
}

static bool matches(struct cases_run *run, const struct sumac_cluster *cluster, json_t *expected)
{
    return cases_keys_known(run, expected, "\"expect\"", expect_keys) &&
           jobs_match(run, cluster, json_object_get(expected, "cluster")) &&
           text_matches(
               run, "task_type", json_object_get(expected, "task_type"), cluster->task_type) &&
           index_matches(run, cluster, json_object_get(expected, "task_id")) &&
           text_matches(
               run, "rpc_layer", json_object_get(expected, "rpc_layer"), cluster->rpc_layer) &&
           master_matches(run, cluster, json_object_get(expected, "master"));
}

static enum cases_result run_case(struct cases_run *run, json_t *one, void *context)
{
    (void)context;
    struct sumac_cluster_overrides overrides;

    if (!read_overrides(run, json_object_get(one, "overrides"), &overrides))
        return CASES_FAILED;
    const char *text = json_string_value(json_object_get(one, "env"));
    if (text != NULL)
        setenv("TF_CONFIG", text, 1);
    else
        unsetenv("TF_CONFIG");
    struct sumac_cluster cluster = {0};
    struct sumac_error error = {0};

    const enum sumac_status status = sumac_cluster_from_environment(&overrides, &cluster, &error);

    json_t *refusal = json_object_get(one, "error");
    bool passed;
    if (refusal != NULL)
        passed = cases_error_matches(run, refusal, status, error.text);
    else if (status != SUMAC_OK)
        passed = cases_fail(run, "refused: %s", error.text);
    else
        passed = matches(run, &cluster, json_object_get(one, "expect"));
    sumac_cluster_deinit(&cluster);
    return passed ? CASES_PASSED : CASES_FAILED;
}

int main(int argc, char **argv)
{
    json_t *file = cases_load(argc == 2 ? argv[1] : "cluster.json");

    if (file == NULL)
        return EXIT_FAILURE;
    const struct cases_operation operations[] = {
        {.op = "tf_config", .keys = case_keys, .run_case = run_case}, {.op = NULL}};
    struct cases_run run = {.passed = 0};
    cases_each(file, &run, operations);
    json_decref(file);
    return cases_finish(&run);
}
