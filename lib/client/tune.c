/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c -- glibc's malloc for gRPC's receive buffers: freed 64 KiB slices are kept, not given back
 * to the system. */
#include "sumac/client.h"

#include <malloc.h>

void sumac_tune_malloc(void)
{
    mallopt(M_TRIM_THRESHOLD, 2000000000);
    mallopt(M_TOP_PAD, 64 << 20);
}
