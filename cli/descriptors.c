/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c -- the soft limit of open descriptors, raised to what the hard one allows. */
#include "descriptors.h"

#include <sys/resource.h>

uint64_t descriptors_wanted(uint64_t soft, uint64_t hard)
{
    const uint64_t reach = hard < DESCRIPTORS_MAX ? hard : DESCRIPTORS_MAX;
    return soft > reach ? soft : reach;
}

void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = descriptors_wanted(limit.rlim_cur, limit.rlim_max);
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}
