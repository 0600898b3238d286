/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.h -- how often lines of one kind may be in the log: many at once, then one a second.
 *
 * Peers cause most lines: a join, a delete, a round that times out. So each kind has a leaky
 * bucket, and the next line that is said tells how many were left out. Shared by the lane and the
 * controller. It begins zeroed.
 */
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "memory.h"

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
