/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c (test) -- how far the soft limit of open descriptors is raised. */

#include "unit.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "descriptors.h"

TEST(the_soft_limit_becomes_the_hard_one)
{
    assert_int_equal(descriptors_wanted(1024, 524288), 524288);
    assert_int_equal(descriptors_wanted(1024, 1024), 1024);
}

TEST(a_limit_without_end_is_not_walked_over)
{
    assert_int_equal(descriptors_wanted(1024, RLIM_INFINITY), DESCRIPTORS_MAX);
    assert_int_equal(descriptors_wanted(UINT64_C(1) << 30, UINT64_C(1) << 30), UINT64_C(1) << 30);
}

TEST(this_process_has_what_it_may_have)
{
    struct rlimit before, after;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    descriptors_raise();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
    assert_int_equal(after.rlim_cur, descriptors_wanted(64, before.rlim_max));
    assert_int_equal(after.rlim_max, before.rlim_max);
}

/* Otherwise the next open file gets the number of standard error, and messages go into it. */
TEST(closed_standard_descriptors_become_dev_null)
{
    int saved[3], modes[3];

    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD, 3);
        close(i);
    }
    descriptors_keep_standard();
    for (int i = 0; i < 3; i++) {
        const int flags = fcntl(i, F_GETFL);
        modes[i] = flags < 0 ? -1 : flags & O_ACCMODE;
        dup2(saved[i], i);
        close(saved[i]);
    }

    assert_int_equal(modes[0], O_RDONLY);
    assert_int_equal(modes[1], O_RDONLY); /* printing fails, and the command says so */
    assert_int_equal(modes[2], O_WRONLY);
}
