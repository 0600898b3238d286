/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h -- what happened in a run, a line each, for people. Costs nothing while nobody wants it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wire.h"

struct trace {
    FILE *file; /* NULL: lines are only counted */
    uint32_t lines;
};

struct world;

/* A line with the virtual time before it. */
void trace_say(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "worker 0 → ps 1: …" with the gist of the message. */
void trace_message(
    struct world *world, const char *from, const char *to, const char *what,
    const wire_message *message);
