/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c -- read and write identities of processes. */
#include "identity.h"

#include <string.h>

#include "error.h"
#include "text.h"

_Static_assert(
    (int)RUN_SOURCE_ENVIRONMENT == (int)SUMAC__V1__IDENTITY__SOURCE__SOURCE_ENVIRONMENT &&
        (int)RUN_SOURCE_SLURM == (int)SUMAC__V1__IDENTITY__SOURCE__SOURCE_SLURM,
    "the numbers of both are the same");

static enum sumac_status
copy(const char *what, const char *text, char *into, size_t bytes, struct sumac_error *error)
{
    const size_t length = strlen(text);

    if (length >= bytes)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "its identity has a %s of %zu bytes: give at most %zu",
            what, length, bytes - 1);
    if (text_has_control(text, length))
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "its identity has a %s with a control character, shown here as ?: %s", what, text);
    memcpy(into, text, length + 1);
    return SUMAC_OK;
}

enum sumac_status wire_identity_read(
    const wire_identity *wire, struct run_identity *identity, struct sumac_error *error)
{
    struct run_identity read = {0};

    if (wire != NULL) {
        enum sumac_status status = copy("run", wire->run, read.run, sizeof read.run, error);
        if (status == SUMAC_OK)
            status = copy("host", wire->host, read.host, sizeof read.host, error);
        if (status != SUMAC_OK)
            return status;
        read.source = (uint32_t)wire->source;
        read.pid = wire->pid;
    }
    *identity = read;
    return SUMAC_OK;
}

void wire_identity_fill(const struct run_identity *identity, wire_identity *wire)
{
    *wire = (wire_identity)WIRE_IDENTITY_INIT;
    wire->run = (char *)(uintptr_t)identity->run;
    wire->source = (Sumac__V1__Identity__Source)identity->source;
    wire->host = (char *)(uintptr_t)identity->host;
    wire->pid = identity->pid;
}
