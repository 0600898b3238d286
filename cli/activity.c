/* SPDX-License-Identifier: Apache-2.0 */
/* activity.c -- add up sessions over all ps, and rates between two samples. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "text.h"
#include "total.h"

/* Add what a session, or a ps, has counted. */
#define ADD(activity, counted)                                                                     \
    do {                                                                                           \
        total_add(&(activity)->pushes, (counted)->pushes);                                         \
        total_add(&(activity)->push_bytes, (counted)->push_bytes);                                 \
        total_add(&(activity)->pulls, (counted)->pulls);                                           \
        total_add(&(activity)->pull_bytes, (counted)->pull_bytes);                                 \
        total_add(&(activity)->refused, (counted)->refused);                                       \
        total_add(&(activity)->non_finite, (counted)->non_finite);                                 \
        total_add(&(activity)->duplicates, (counted)->duplicates);                                 \
        histogram_add(&(activity)->staleness, (counted)->staleness);                               \
        histogram_add(&(activity)->push_us, (counted)->push_us);                                   \
        histogram_add(&(activity)->pull_us, (counted)->pull_us);                                   \
    } while (0)

static struct activity *
find(const struct activity *rows, uint32_t count, const char *name, uint64_t attempt)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0 && rows[i].attempt == attempt)
            return (struct activity *)(uintptr_t)&rows[i];
    return NULL;
}

/* The row of the session's client: a new one, when no other ps has told of it. */
static struct activity *find_client(struct sample *sample, const wire_session_stats *session)
{
    struct activity made = {.attempt = session->attempt, .heard_ms = UINT64_MAX};

    (void)text_print_line(made.name, sizeof made.name, "%s", session->task);
    (void)text_print_line(made.state, sizeof made.state, "%s", session->state);
    made.on_ps = &sample->on_ps[(size_t)sample->client_count * sample->ps_count];
    struct activity *const known =
        find(sample->clients, sample->client_count, made.name, made.attempt);
    if (known != NULL)
        return known;
    sample->clients[sample->client_count] = made;
    return &sample->clients[sample->client_count++];
}

static void add_session(struct sample *sample, uint32_t ps, const wire_session_stats *session)
{
    struct activity *const client = find_client(sample, session);

    ADD(client, session);
    total_add(&client->on_ps[ps].pushes, session->pushes);
    total_add(&client->on_ps[ps].pulls, session->pulls);
    /* A contribution and a step concern every ps: the largest figure, not the sum. The client
     * withdraws the other parts of a contribution that is late, so some ps do not count it. */
    client->late = session->late > client->late ? session->late : client->late;
    client->steps = session->clock > client->steps ? session->clock : client->steps;
    client->weight = session->weight > client->weight ? session->weight : client->weight;
    if (session->last_heard_ms < client->heard_ms)
        client->heard_ms = session->last_heard_ms;
}

/* Chiefs, workers, others. */
static int rank_of(const struct activity *client)
{
    return strncmp(client->name, "chief", 5) == 0    ? 0
           : strncmp(client->name, "worker", 6) == 0 ? 1
                                                     : 2;
}

static void measure_lag(struct sample *sample)
{
    uint64_t slowest = UINT64_MAX;

    for (uint32_t i = 0; i < sample->client_count; i++) {
        struct activity *client = &sample->clients[i];
        client->is_member = strcmp(client->state, "open") == 0 && rank_of(client) < 2;
        if (client->is_member && client->steps < slowest)
            slowest = client->steps;
    }
    for (uint32_t i = 0; i < sample->client_count; i++)
        if (sample->clients[i].is_member)
            sample->clients[i].lag = sample->clients[i].steps - slowest;
}

static int order_clients(const void *a, const void *b)
{
    const struct activity *const left = a, *const right = b;
    const size_t bytes = strcspn(left->name, "0123456789");

    if (rank_of(left) != rank_of(right))
        return rank_of(left) - rank_of(right);
    if (bytes != strcspn(right->name, "0123456789") || memcmp(left->name, right->name, bytes) != 0)
        return strcmp(left->name, right->name);
    const unsigned long one = strtoul(left->name + bytes, NULL, 10);
    const unsigned long other = strtoul(right->name + bytes, NULL, 10);
    if (one != other)
        return one < other ? -1 : 1;
    return (left->attempt > right->attempt) - (left->attempt < right->attempt);
}

void sample_take(const struct answers *answers, uint64_t now_us, struct sample *sample)
{
    size_t sessions = 0;

    for (uint32_t i = 0; i < answers->count; i++)
        sessions += stats_of(answers, i) != NULL ? stats_of(answers, i)->n_sessions : 0;
    *sample = (struct sample){
        .at_us = now_us,
        .ps_count = answers->count,
        .ps = cli_need(calloc(answers->count, sizeof *sample->ps)),
        .clients = cli_need(calloc(sessions + 1, sizeof *sample->clients)),
        .on_ps = cli_need(calloc((sessions + 1) * answers->count, sizeof *sample->on_ps)),
    };
    for (uint32_t i = 0; i < answers->count; i++) {
        const wire_stats_reply *reply = stats_of(answers, i);
        if (reply == NULL)
            continue;
        (void)text_print_line(sample->ps[i].name, sizeof sample->ps->name, "ps %u", reply->ps);
        sample->ps[i].late = reply->late;
        ADD(&sample->ps[i], reply);
        for (size_t j = 0; j < reply->n_sessions; j++)
            add_session(sample, i, reply->sessions[j]);
    }
    measure_lag(sample);
    qsort(sample->clients, sample->client_count, sizeof *sample->clients, order_clients);
}

void sample_deinit(struct sample *sample)
{
    free(sample->ps);
    free(sample->clients);
    free(sample->on_ps);
    *sample = (struct sample){0};
}

/* ---- rates */

static double rate(uint64_t before, uint64_t now, double seconds)
{
    return now >= before ? (double)(now - before) / seconds : (double)NAN;
}

static double larger(double a, double b) { return isnan(a) || b > a ? b : a; }

/* `before` NULL: there is nothing to compare with. */
static void
compare(const struct activity *before, struct activity *now, uint32_t ps_count, double seconds)
{
    now->whole_push_rate = now->whole_pull_rate = (double)NAN;
    now->step_rate = now->push_rate = now->push_bytes_rate = (double)NAN;
    now->pull_rate = now->pull_bytes_rate = (double)NAN;
    if (before == NULL || seconds <= 0)
        return;
    now->step_rate = rate(before->steps, now->steps, seconds);
    now->push_rate = rate(before->pushes, now->pushes, seconds);
    now->push_bytes_rate = rate(before->push_bytes, now->push_bytes, seconds);
    now->pull_rate = rate(before->pulls, now->pulls, seconds);
    now->pull_bytes_rate = rate(before->pull_bytes, now->pull_bytes, seconds);
    if (now->on_ps == NULL) {
        now->whole_push_rate = now->push_rate;
        now->whole_pull_rate = now->pull_rate;
        return;
    }
    /* A push or pull has a part on each ps that it concerns: it counts once. */
    for (uint32_t ps = 0; ps < ps_count; ps++) {
        const struct parts_on_ps *then = &before->on_ps[ps], *parts = &now->on_ps[ps];
        now->whole_push_rate =
            larger(now->whole_push_rate, rate(then->pushes, parts->pushes, seconds));
        now->whole_pull_rate =
            larger(now->whole_pull_rate, rate(then->pulls, parts->pulls, seconds));
    }
}

/* Did the same ps answer? Else what clients did is added up over other ones. */
static bool are_comparable(const struct sample *before, const struct sample *now)
{
    if (before->ps_count != now->ps_count)
        return false;
    for (uint32_t i = 0; i < now->ps_count; i++)
        if ((before->ps[i].name[0] == '\0') != (now->ps[i].name[0] == '\0'))
            return false;
    return true;
}

void sample_compare(const struct sample *before, struct sample *now)
{
    const double seconds = (double)(now->at_us - before->at_us) * 1e-6;
    const bool comparable = are_comparable(before, now);

    for (uint32_t i = 0; i < now->ps_count; i++)
        compare(
            find(before->ps, before->ps_count, now->ps[i].name, 0), &now->ps[i], now->ps_count,
            seconds);
    for (uint32_t i = 0; i < now->client_count; i++) {
        struct activity *client = &now->clients[i];
        const struct activity *then =
            find(before->clients, before->client_count, client->name, client->attempt);
        compare(comparable ? then : NULL, client, now->ps_count, seconds);
    }
}

/* ---- histograms */

void histogram_add(struct merged_histogram *histogram, const wire_histogram *counted)
{
    if (counted == NULL)
        return;
    for (size_t i = 0; i < counted->n_counts && i < HISTOGRAM_BUCKETS; i++)
        total_add(&histogram->counts[i], counted->counts[i]);
    total_add(&histogram->count, counted->count);
    histogram->sum += counted->sum;
}

void histogram_merge(struct merged_histogram *histogram, const struct merged_histogram *other)
{
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
        total_add(&histogram->counts[i], other->counts[i]);
    total_add(&histogram->count, other->count);
    histogram->sum += other->sum;
}

double histogram_percentile(const struct merged_histogram *histogram, double fraction)
{
    const double wanted = fraction * (double)histogram->count;
    double below = 0;

    if (histogram->count == 0)
        return 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const double here = (double)histogram->counts[i];
        if (here > 0 && below + here >= wanted) {
            if (i == 0)
                return 0;
            const double low = ldexp(1, i - 1);
            return low + low * (wanted - below) / here;
        }
        below += here;
    }
    return ldexp(1, HISTOGRAM_BUCKETS - 1);
}

double histogram_mean(const struct merged_histogram *histogram)
{
    return histogram->count > 0 ? histogram->sum / (double)histogram->count : 0;
}
