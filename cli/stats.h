/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h -- what every ps and every client has done, from the ps's answers to Observe.Stats, and
 * the two ways in which `sumac stats` shows it. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "ask.h"

/* What Observe counts in buckets that double (proto/sumac/v1/observe.proto). */
#define HISTOGRAM_BUCKETS 65 /* bucket 0 holds 0, bucket i values in [2^(i-1), 2^i) */

struct merged_histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    double sum;
};

/* Add what a ps counted; NULL adds nothing. */
void histogram_add(struct merged_histogram *histogram, const wire_histogram *counted);
/* Add what another one has counted. */
void histogram_merge(struct merged_histogram *histogram, const struct merged_histogram *other);

/* The value that `fraction` of all lie below, straight within its bucket; 0 of none. */
double histogram_percentile(const struct merged_histogram *histogram, double fraction);
double histogram_mean(const struct merged_histogram *histogram);

/* The parts that one ps has of a client's pushes and pulls. */
struct parts_on_ps {
    uint64_t pushes, pulls;
};

struct activity {
    char name[96];  /* "ps 0", "worker 1", "observer"; "" of a ps that did not answer */
    char state[16]; /* of a client: open, closing, done, lost */
    uint64_t attempt;
    uint64_t steps, heard_ms; /* of a client: steps finished; when a ps last heard from it, ago */
    bool is_member;           /* a worker or chief that is open */
    uint64_t lag;             /* of a member: the steps that it is ahead of the slowest */
    uint64_t pushes, push_bytes, pulls, pull_bytes, refused, non_finite, late, duplicates;
    double weight;
    struct merged_histogram staleness, push_us, pull_us;
    /* Per second, lately; NAN: not known, it was not seen before, or not by the same ps. */
    double step_rate, push_rate, push_bytes_rate, pull_rate, pull_bytes_rate;
    /* Pushes and pulls, where those above count the parts on all ps: the most parts on one ps. */
    double whole_push_rate, whole_pull_rate;
    struct parts_on_ps *on_ps; /* of a client: (ps_count), the sample's; of a ps NULL */
};

/* At one moment. */
struct sample {
    uint64_t at_us;
    uint32_t ps_count, client_count;
    struct activity *ps;      /* (ps_count), owned */
    struct activity *clients; /* (client_count), owned: a session, what it did at all ps added up */
    struct parts_on_ps *on_ps; /* (client_count, ps_count), owned, with room for more */
};

/* Gives  *sample; release with sample_deinit. */
void sample_take(const struct answers *answers, uint64_t now_us, struct sample *sample);
void sample_deinit(struct sample *sample);

/* Fill in the rates of `now`: what was added since `before`. */
void sample_compare(const struct sample *before, struct sample *now);

/* NULL: that ps did not answer. */
static inline const wire_stats_reply *stats_of(const struct answers *answers, uint32_t ps)
{
    return (const wire_stats_reply *)(const void *)answers->replies[ps];
}

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
