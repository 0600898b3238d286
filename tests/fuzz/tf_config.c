/* SPDX-License-Identifier: Apache-2.0 */
/* tf_config.c -- any text as TF_CONFIG: refused in one sentence of UTF-8, or a description that
 * keeps its promises. */
#include <string.h>

#include "fuzz.h"
#include "sumac/cluster.h"
#include "text.h"

static void check_refusal(const struct sumac_cluster *cluster, const struct sumac_error *error)
{
    MUST(error->status == SUMAC_INVALID_ARGUMENT);
    MUST(strlen(error->text) > 0);
    MUST(text_is_utf8(error->text, strlen(error->text)));
    MUST(cluster->jobs == NULL && cluster->task_type == NULL);
}

static void check_job(const struct sumac_cluster *cluster, const struct sumac_job *job)
{
    MUST(job->name[0] != '\0');
    MUST(job->task_count > 0);
    MUST(sumac_cluster_job(cluster, job->name) == job);
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct sumac_task *task = &job->tasks[i];
        MUST(i == 0 || task->index > job->tasks[i - 1].index);
        MUST(strchr(task->address, ':') != NULL);
        MUST(sumac_cluster_address(cluster, job->name, task->index) == task->address);
    }
}

static void check_description(const struct sumac_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->job_count; i++)
        check_job(cluster, &cluster->jobs[i]);
    char *master = NULL;
    if (sumac_cluster_master(cluster, &master, NULL) == SUMAC_OK)
        MUST(master != NULL);
    free(master);
    struct sumac_error error = {0};
    if (sumac_cluster_check_task(cluster, &error) == SUMAC_OK)
        MUST(sumac_cluster_job(cluster, "ps") != NULL && cluster->task_index_given);
    else
        MUST(text_is_utf8(error.text, strlen(error.text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);

    MUST(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    struct sumac_cluster cluster = {0};
    struct sumac_error error = {0};
    if (sumac_cluster_parse(text, NULL, &cluster, &error) == SUMAC_OK)
        check_description(&cluster);
    else
        check_refusal(&cluster, &error);
    sumac_cluster_deinit(&cluster);
    free(text);
    return 0;
}
