/* SPDX-License-Identifier: Apache-2.0 */
/* find_cluster.c -- three places to look for a run, in the order of how plainly they were said. */
#include "find_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "error.h"
#include "sumac/cluster.h"

#define REMEDY                                                                                     \
    "name a ps with --ps HOST:PORT (for another user's run, too), set TF_CONFIG, or start one "    \
    "here with `sumac run`"

enum sumac_status ps_list_add(struct ps_list *list, const char *address, struct sumac_error *error)
{
    char **grown = realloc(list->addresses, (list->count + 1) * sizeof *grown);

    if (grown != NULL) {
        list->addresses = grown;
        grown[list->count] = strdup(address);
    }
    if (grown == NULL || grown[list->count] == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for a list of ps");
    list->count++;
    return SUMAC_OK;
}

void ps_list_deinit(struct ps_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->addresses[i]);
    free(list->addresses);
    *list = (struct ps_list){0};
}

/* Who is named twice is asked once. */
static bool is_listed(const struct ps_list *list, const char *address)
{
    uint32_t i = 0;

    while (i < list->count && strcmp(list->addresses[i], address) != 0)
        i++;
    return i < list->count;
}

static enum sumac_status
from_option(const char *option, struct ps_list *list, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;
    char *words = strdup(option);
    char *rest = NULL;

    for (char *word = words ? strtok_r(words, ",", &rest) : NULL;
         word != NULL && status == SUMAC_OK; word = strtok_r(NULL, ",", &rest)) {
        const char *flaw = address_flaw(word, strlen(word));
        if (flaw != NULL)
            status = fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
                "--ps wants HOST:PORT, not %.300s: %s", word, flaw);
        else if (!is_listed(list, word))
            status = ps_list_add(list, word, error);
    }
    free(words);
    if (status == SUMAC_OK && list->count == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "--ps wants HOST:PORT, not an empty word");
    return status;
}

static enum sumac_status from_tf_config(struct ps_list *list, struct sumac_error *error)
{
    struct sumac_cluster cluster;
    enum sumac_status status = sumac_cluster_from_environment(NULL, &cluster, error);

    if (status != SUMAC_OK)
        return status;
    const struct sumac_job *ps = sumac_cluster_job(&cluster, "ps");
    for (uint32_t i = 0; ps != NULL && status == SUMAC_OK && i < ps->task_count; i++)
        status = ps_list_add(list, ps->tasks[i].address, error);
    if (status == SUMAC_OK && list->count == 0)
        status = fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "TF_CONFIG names no ps; " REMEDY);
    sumac_cluster_deinit(&cluster);
    return status;
}

static enum sumac_status
several(const struct run_record *records, uint32_t count, struct sumac_error *error)
{
    char runs[320] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < count && used + 80 < sizeof runs; i++)
        used += (size_t)snprintf(
            runs + used, sizeof runs - used, "%s--ps %s (%.40s, process %d)", i == 0 ? "" : ", ",
            records[i].ps[0], records[i].program, (int)records[i].pid);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "%u runs are going on on this machine; choose one: %s", count, runs);
}

static enum sumac_status from_record(struct ps_list *list, struct sumac_error *error)
{
    struct run_record *records = NULL;
    uint32_t count = 0;
    enum sumac_status status = run_record_list(&records, &count, error);

    if (status == SUMAC_OK && count == 0)
        status = fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
            "you have no `sumac run` on this machine; " REMEDY);
    if (status == SUMAC_OK && count > 1)
        status = several(records, count, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < records[0].ps_count; i++)
        status = ps_list_add(list, records[0].ps[i], error);
    if (status == SUMAC_OK) {
        list->pid = records[0].pid;
        (void)snprintf(list->program, sizeof list->program, "%s", records[0].program);
    }
    free(records);
    return status;
}

enum sumac_status
find_cluster(const char *ps_option, struct ps_list *list, struct sumac_error *error)
{
    struct ps_list found = {.named = ps_option != NULL};
    const char *config = getenv("TF_CONFIG");
    enum sumac_status status = SUMAC_OK;

    if (ps_option != NULL)
        status = from_option(ps_option, &found, error);
    else if (config != NULL && config[0] != '\0')
        status = from_tf_config(&found, error);
    else
        status = from_record(&found, error);
    if (status != SUMAC_OK) {
        ps_list_deinit(&found);
        return status;
    }
    *list = found;
    return SUMAC_OK;
}
