/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c -- the soft limit of open descriptors, raised to what the hard one allows; and the
 * first three of them. */
#include "descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* The lowest number that is free is what open gives. */
void descriptors_keep_standard(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0)
            (void)open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}
