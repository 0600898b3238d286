/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h -- one picture of a run, and the two ways in which `sumac stats` shows it. */
#pragma once

#include <stdio.h>

#include "activity.h"

/* What was asked at one moment. All borrowed. */
struct picture {
    const struct roster *roster;
    const struct answers *answers;
    const struct sample *sample;
};

/* Tables, in lines of `width` characters where columns can be spared (0: all of them), and in
 * `lines` lines where clients can be left out (0: none is). False: it could not be written. */
bool stats_print_tables(const struct picture *picture, uint32_t width, uint32_t lines, FILE *file);

/* One JSON document; `line`: without a newline in it. False: it could not be written. */
bool stats_print_json(const struct picture *picture, bool line, FILE *file);

/* "2026-11-22T06:03:30Z". Lends  text. */
const char *stats_time(char text[32]);

/* All that a ps may take, as it publishes it. */
uint64_t stats_memory_bound(const wire_memory_stats *memory);
