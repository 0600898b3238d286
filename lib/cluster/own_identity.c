/* SPDX-License-Identifier: Apache-2.0 */
/* own_identity.c -- look for the name of this process's run where schedulers put it. */
#include "own_identity.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

/* The components of a heterogeneous job have numbers of their own, and the leader's is in each
 * one's environment. Older releases of Slurm say PACK. A step's number is never looked at: ps and
 * workers may be two steps. */
static const char *slurm_job(void)
{
    static const char *const names[] = {
        "SLURM_HET_JOB_ID", "SLURM_JOB_ID_HET_GROUP_0", "SLURM_PACK_JOB_ID",
        "SLURM_JOB_ID_PACK_GROUP_0", "SLURM_JOB_ID"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return value;
    }
    return "";
}

enum sumac_status own_identity(struct run_identity *identity, struct sumac_error *error)
{
    struct run_identity own = {.pid = (uint32_t)getpid(), .source = RUN_SOURCE_ENVIRONMENT};
    const char *run = getenv("SUMAC_RUN");
    char host[256] = "";

    if (run == NULL) {
        run = slurm_job();
        own.source = RUN_SOURCE_SLURM;
    }
    const size_t bytes = strlen(run);
    const char *const name = own.source == RUN_SOURCE_SLURM ? "SLURM_JOB_ID" : "SUMAC_RUN";
    if (bytes > RUN_NAME_BYTES_MAX)
        return fail_argument(
            error, "%s has %zu bytes: give at most %d", name, bytes, RUN_NAME_BYTES_MAX);
    if (!text_is_utf8(run, bytes) || text_has_control(run, bytes))
        return fail_argument(
            error, "%s, shown here with ?, %s: %s", name,
            text_is_utf8(run, bytes) ? "has a control character" : "is not UTF-8", run);
    if (bytes == 0)
        own.source = RUN_SOURCE_NONE;
    memcpy(own.run, run, bytes + 1);
    if (gethostname(host, sizeof host - 1) == 0)
        (void)text_print_line(own.host, sizeof own.host, "%s", host);
    *identity = own;
    return SUMAC_OK;
}
