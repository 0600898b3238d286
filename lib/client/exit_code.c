/* SPDX-License-Identifier: Apache-2.0 */
/* exit_code.c -- what a process should exit with, so that a scheduler knows whether to start it
 * again. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "sumac/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define EXIT_PERMANENT 2   /* the call, or the configuration, must be fixed */
#define EXIT_RETRYABLE 138 /* another attempt may succeed (Kubeflow: 128 and above) */

static int by_status(enum sumac_status status)
{
    switch (status) {
    case SUMAC_UNAVAILABLE:
    case SUMAC_DEADLINE_EXCEEDED:
    case SUMAC_ABORTED:
    case SUMAC_CANCELLED:
    case SUMAC_DATA_LOSS:
    case SUMAC_INTERNAL:
    case SUMAC_UNKNOWN:
        return EXIT_RETRYABLE;
    default:
        return EXIT_PERMANENT;
    }
}

/* The reason tells the remedy where there is one: below PS_MISSING fix the call, PROTOCOL_VERSION,
 * WRONG_CLUSTER and REPLACED the configuration; a restart mends the others. A program that ends for
 * a late step forgot to go on, and may go on after a restart. */
int sumac_exit_code(const struct sumac_error *error)
{
    if (error == NULL || error->status == SUMAC_OK || error->reason == SUMAC_REASON_RUN_ENDED)
        return 0;
    if (error->reason == SUMAC_REASON_UNSPECIFIED)
        return by_status(error->status);
    if (error->reason == SUMAC_REASON_STEP_LATE)
        return EXIT_RETRYABLE;
    return error->reason < SUMAC_REASON_PS_MISSING ||
                   error->reason == SUMAC_REASON_PROTOCOL_VERSION ||
                   error->reason == SUMAC_REASON_WRONG_CLUSTER ||
                   error->reason == SUMAC_REASON_REPLACED
               ? EXIT_PERMANENT
               : EXIT_RETRYABLE;
}

void sumac_check(enum sumac_status status, const struct sumac_error *error)
{
    if (status == SUMAC_OK)
        return;
    fprintf(
        stderr, "%s: %s\n", program_invocation_short_name,
        error == NULL || error->text[0] == '\0' ? sumac_status_name(status) : error->text);
    if (error != NULL && error->reason == SUMAC_REASON_STEP_LATE)
        return;
    exit(error == NULL || error->status != status ? by_status(status) : sumac_exit_code(error));
}
