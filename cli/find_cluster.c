/* SPDX-License-Identifier: Apache-2.0 */
/* find_cluster.c -- three places to look for a run, in the order of how plainly they were said. */
#define _DEFAULT_SOURCE /* strsep */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "alloc.h"
#include "error.h"
#include "roster.h"
#include "run_record.h"
#include "sumac/cluster.h"

#define REMEDY                                                                                     \
    "name a ps with --ps HOST:PORT (for another user's run, too), set TF_CONFIG, or start one "    \
    "here with `sumac run`"

/* Who is named twice is asked once. */
static bool is_listed(const struct roster *roster, const char *address)
{
    uint32_t i = 0;

    while (i < roster->count && strcmp(roster->ps[i].address, address) != 0)
        i++;
    return i < roster->count;
}

static enum sumac_status
from_option(const char *option, struct roster *roster, struct sumac_error *error)
{
    char *rest = cli_copy(option, strlen(option));

    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        const char *const flaw = word[0] == '\0' ? NULL : address_flaw(word, strlen(word));
        if (flaw != NULL)
            return fail_argument(error, "--ps wants HOST:PORT, not %.300s: %s", word, flaw);
        if (word[0] != '\0' && !is_listed(roster, word))
            roster_add(roster, word);
    }
    if (roster->count > 0)
        return SUMAC_OK;
    return fail_argument(error, "--ps wants HOST:PORT, not an empty word");
}

static enum sumac_status from_tf_config(struct roster *roster, struct sumac_error *error)
{
    struct sumac_cluster cluster;
    const enum sumac_status status = sumac_cluster_from_environment(NULL, &cluster, error);

    if (status != SUMAC_OK)
        return status;
    const struct sumac_job *ps = sumac_cluster_job(&cluster, "ps");
    for (uint32_t i = 0; ps != NULL && i < ps->task_count; i++)
        roster_add(roster, ps->tasks[i].address);
    sumac_cluster_deinit(&cluster);
    if (roster->count > 0)
        return SUMAC_OK;
    return fail_argument(error, "TF_CONFIG names no ps; " REMEDY);
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

static enum sumac_status from_record(struct roster *roster, struct sumac_error *error)
{
    struct run_record *records = NULL;
    uint32_t count = 0;
    const enum sumac_status status = run_record_list(&records, &count, error);

    if (status != SUMAC_OK)
        return status;
    if (count == 0)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
            "you have no `sumac run` on this machine; " REMEDY);
    if (count > 1)
        return several(records, count, error);
    for (uint32_t i = 0; i < records[0].ps_count; i++)
        roster_add(roster, records[0].ps[i]);
    roster->run.pid = records[0].pid;
    (void)snprintf(roster->run.program, sizeof roster->run.program, "%s", records[0].program);
    return SUMAC_OK;
}

enum sumac_status
find_cluster(const char *ps_option, struct roster *roster, struct sumac_error *error)
{
    struct roster found = {.run = {.named = ps_option != NULL}};
    const char *config = getenv("TF_CONFIG");
    enum sumac_status status = SUMAC_OK;

    if (ps_option != NULL)
        status = from_option(ps_option, &found, error);
    else if (config != NULL && config[0] != '\0')
        status = from_tf_config(&found, error);
    else
        status = from_record(&found, error);
    if (status == SUMAC_OK)
        *roster = found;
    return status;
}
