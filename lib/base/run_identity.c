/* SPDX-License-Identifier: Apache-2.0 */
/* run_identity.c -- compare and print identities of runs. */
#include "run_identity.h"

#include <inttypes.h>
#include <string.h>

#include "text.h"

bool run_identity_differs(const struct run_identity *a, const struct run_identity *b)
{
    return a->run[0] != '\0' && b->run[0] != '\0' && a->source == b->source &&
           strcmp(a->run, b->run) != 0;
}

const char *run_source_text(uint32_t source)
{
    if (source == RUN_SOURCE_ENVIRONMENT)
        return " (SUMAC_RUN)";
    return source == RUN_SOURCE_SLURM ? " (SLURM_JOB_ID)" : "";
}

const char *run_identity_print(const struct run_identity *identity, char *text)
{
    const bool named = identity->run[0] != '\0';
    size_t used = text_print_line(
        text, RUN_IDENTITY_TEXT_BYTES, named ? "run \"%.100s\"%s" : "no run", identity->run,
        run_source_text(identity->source));

    if (identity->pid != 0)
        (void)text_print_line(
            text + used, RUN_IDENTITY_TEXT_BYTES - used, ", process %" PRIu32 " on %s",
            identity->pid, identity->host);
    return text;
}
