/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.h -- how often lines of one kind may be in the log: many at once, then one a second.
 *
 * Peers cause most lines: a join, a delete, a round that times out. So each kind has a leaky
 * bucket, and the next line that is said tells how many were left out.
 *
 * A join that a ps refuses has a line of its own, and not each of those who try for ever. Who runs
 * a cluster looks at the ps first, and whoever was refused has exited, often on another host.
 *
 * Both are shared by the lane and the controller, and begin zeroed.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "memory.h"
#include "wire.h"

#define LOG_LINES_AT_ONCE_MAX 1024u
#define LOG_LINE_US 1000000u /* the bucket leaks one line in this time */
#define LOG_KINDS_MAX 64u    /* more than there are; the last place is shared by all others */

struct log_limit {
    struct log_kind {
        const char *format; /* compared as a pointer; NULL: the place is free */
        uint32_t lines;     /* in the bucket */
        uint64_t leaked_us; /* until when it has leaked */
        uint64_t left_out;  /* since the last line that was said */
    } kinds[LOG_KINDS_MAX];
};

/* The line, in the arena, with how many of its format were left out before it. NULL: it is left
 * out, or the arena is full. */
char *log_limit_line(
    struct log_limit *limit, struct arena *arena, uint64_t now_us, const char *format,
    va_list values) __attribute__((format(printf, 4, 0)));

/* ---- joins that were refused ---- */

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
