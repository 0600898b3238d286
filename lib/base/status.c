/* SPDX-License-Identifier: Apache-2.0 */
/* status.c -- the names of statuses and reasons. */
#include "sumac/status.h"

const char *sumac_status_name(enum sumac_status status)
{
    switch (status) {
#define X(name, number)                                                                            \
    case SUMAC_##name:                                                                             \
        return #name;
        SUMAC_STATUS_LIST(X)
#undef X
    }
    return "UNKNOWN";
}

const char *sumac_reason_name(enum sumac_reason reason)
{
    switch (reason) {
#define X(name, number)                                                                            \
    case SUMAC_REASON_##name:                                                                      \
        return #name;
        SUMAC_REASON_LIST(X)
#undef X
    }
    return "UNSPECIFIED";
}

const char *sumac_version(void) { return SUMAC_VERSION; }
