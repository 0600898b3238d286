/* SPDX-License-Identifier: Apache-2.0 */
/* refused_joins.h -- a line in the log of the ps for a join that it refused, and not for each of
 * those who try for ever.
 *
 * Who runs a cluster looks at the ps first, and whoever was refused has exited, often on another
 * host. Shared by the lane and the controller. It begins zeroed.
 */
#pragma once

#include "wire.h"

#define REFUSED_JOINS_TOLD_MAX 16u    /* lines in REFUSED_JOINS_APART_MS */
#define REFUSED_JOINS_APART_MS 60000u /* before the same line comes again */

struct refused_joins {
    struct refused_join {
        uint64_t text_hash;
        uint64_t told_us; /* 0: no line yet */
    } told[REFUSED_JOINS_TOLD_MAX];
    uint64_t untold; /* joins that were refused since the last line, and got none */
};

/* "worker 3", "an observer": who joins. */
struct joiner {
    char text[96];
};
struct joiner refused_joins_who(const wire_join_request *request);

struct refused_line {
    char text[1024];
};
/* The line, of this ps. False: the same words about the same joiner again, or too many others,
 * within a minute: they are only counted. */
bool refused_joins_line(
    struct refused_joins *refused, uint64_t now_us, uint32_t ps, const wire_join_request *request,
    const char *why, struct refused_line *line);
