/* SPDX-License-Identifier: Apache-2.0 */
/* stats_print.c -- a run for people's eyes, where what matters first is on top; and for programs.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "plural.h"
#include "stats.h"
#include "table.h"
#include "text.h"

#define WAIT_BYTES 2048 /* a variable's name has up to 1024 */
#define SLOW_SHARE 0.8  /* of the fastest worker's rate: below it one is called slow */
#define CLIENT_LINES_MIN 3u

/* ---- first: how fast, how stale, who is slow */

/* The members' rates, of steps where they count them, else of pushes. */
struct pace {
    bool steps;
    uint32_t members;
    double sum;
    const struct activity *slowest, *fastest;
    double least, most;
};

static double rate_of(const struct activity *client, bool steps)
{
    const double rate = steps ? client->step_rate : client->whole_push_rate;

    return isnan(rate) ? 0 : rate;
}

static struct pace measure(const struct sample *sample)
{
    struct pace pace = {0};

    for (uint32_t i = 0; i < sample->client_count; i++)
        pace.steps = pace.steps || sample->clients[i].steps > 0;
    for (uint32_t i = 0; i < sample->client_count; i++) {
        const struct activity *client = &sample->clients[i];
        const double rate = rate_of(client, pace.steps);
        if (!client->is_member)
            continue;
        pace.members++;
        pace.sum += rate;
        if (pace.slowest == NULL || rate < pace.least) {
            pace.slowest = client;
            pace.least = rate;
        }
        if (pace.fastest == NULL || rate > pace.most) {
            pace.fastest = client;
            pace.most = rate;
        }
    }
    return pace;
}

static void print_pace(const struct sample *sample, FILE *file)
{
    const struct pace pace = measure(sample);
    const char *noun = pace.steps ? "steps" : "pushes";
    struct merged_histogram staleness = {0};

    for (uint32_t i = 0; i < sample->ps_count; i++)
        histogram_merge(&staleness, &sample->ps[i].staleness);
    fprintf(
        file, "%u %s: %s %s/s", pace.members, pace.members == 1 ? "worker" : "workers",
        table_rate(pace.sum).text, noun);
    if (staleness.count > 0)
        fprintf(
            file, ", staleness %.1f (P99 %.0f)", histogram_mean(&staleness),
            histogram_percentile(&staleness, 0.99));
    fputc('\n', file);
    if (pace.members > 1 && pace.least < SLOW_SHARE * pace.most)
        fprintf(
            file, "slowest: %s with %s %s/s, of %s's %s\n", pace.slowest->name,
            table_rate(pace.least).text, noun, pace.fastest->name, table_rate(pace.most).text);
}

/* ---- who does what */

#define TRAFFIC                                                                                    \
    {"push", ">/S", 0}, {"push", ">BYTES/S", 5}, {"push", ">P50", 4}, {"push", ">P99", 3},         \
        {"staleness", ">MEAN", 1}, {"staleness", ">P99", 2}, {"pull", ">/S", 0},                   \
        {"pull", ">BYTES/S", 5}, {"pull", ">P50", 4},                                              \
    {                                                                                              \
        "pull", ">P99", 3                                                                          \
    }

static void add_latencies(struct table *table, const struct merged_histogram *histogram)
{
    static const double fractions[] = {0.5, 0.99};

    for (int i = 0; i < 2; i++) {
        const double us = histogram_percentile(histogram, fractions[i]);
        table_add(
            table, "%s", histogram->count > 0 ? text_time_us((uint64_t)(us + 0.5)).text : "-");
    }
}

static void add_staleness(struct table *table, const struct merged_histogram *histogram)
{
    if (histogram->count == 0) {
        table_add(table, "-");
        table_add(table, "-");
        return;
    }
    table_add(table, "%.1f", histogram_mean(histogram));
    table_add(table, "%.0f", histogram_percentile(histogram, 0.99));
}

static void add_traffic(struct table *table, const struct activity *activity)
{
    table_add(table, "%s", table_rate(activity->whole_push_rate).text);
    table_add(table, "%s", table_bytes(activity->push_bytes_rate).text);
    add_latencies(table, &activity->push_us);
    add_staleness(table, &activity->staleness);
    table_add(table, "%s", table_rate(activity->whole_pull_rate).text);
    table_add(table, "%s", table_bytes(activity->pull_bytes_rate).text);
    add_latencies(table, &activity->pull_us);
}

static bool is_observer(const struct activity *client)
{
    return strncmp(client->name, "observer", 8) == 0;
}

/* An observer that is gone, and has changed nothing: each command is one. */
static bool has_only_looked(const struct activity *client)
{
    return is_observer(client) && strcmp(client->state, "open") != 0 && client->pushes == 0;
}

static void add_client(struct table *table, const struct activity *client)
{
    if (client->attempt > 1)
        table_add(table, "%s (attempt %" PRIu64 ")", client->name, client->attempt);
    else
        table_add(table, "%s", client->name);
    table_add(table, "%s", client->state);
    /* The step count of an observer is the clock at which the observer joined. */
    const bool observer = is_observer(client);
    table_add(
        table, "%s",
        table_rate(client->steps > 0 && !observer ? client->step_rate : (double)NAN).text);
    table_add_number(table, !observer, client->steps);
    table_add_number(table, client->is_member, client->lag);
    add_traffic(table, client);
    table_add(table, "%s", text_time_ms(client->heard_ms).text);
}

static void
print_clients(const struct sample *sample, uint32_t width, uint32_t lines_max, FILE *file)
{
    static const struct table_column columns[] = {{NULL, "CLIENT", 0},  {NULL, "STATE", 0},
                                                  {"steps", ">/S", 0},  {"steps", ">DONE", 0},
                                                  {"steps", ">LAG", 0}, TRAFFIC,
                                                  {"heard", ">AGO", 0}};
    struct table table = {
        .columns = columns,
        .column_count = sizeof columns / sizeof columns[0],
        .lines_max = lines_max};

    for (uint32_t i = 0; i < sample->client_count; i++)
        if (!has_only_looked(&sample->clients[i]))
            add_client(&table, &sample->clients[i]);
    (void)table_print(&table, width, file);
}

static void print_ps(const struct picture *picture, uint32_t width, FILE *file)
{
    static const struct table_column columns[] = {
        {NULL, "PS", 0}, TRAFFIC, {"held", ">SHARDS", 7}, {NULL, "ADDRESS", 6}};
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof columns[0]};

    for (uint32_t i = 0; i < picture->sample->ps_count; i++) {
        const wire_stats_reply *reply = stats_of(picture->answers, i);
        table_add(&table, "ps %" PRIu32, reply != NULL ? reply->ps : i);
        if (reply == NULL) {
            const struct roster_ps *const ps = &picture->roster->ps[i];
            table_add_rest(&table, "%s at %s", roster_silence(ps).text, ps->address);
            continue;
        }
        add_traffic(&table, &picture->sample->ps[i]);
        table_add_number(&table, true, reply->shards);
        table_add(&table, "%s", reply->address);
    }
    (void)table_print(&table, width, file);
}

/* ---- memory */

uint64_t stats_memory_bound(const wire_memory_stats *memory)
{
    return memory->base_bytes + memory->state_bytes + memory->view_bytes_max +
           memory->staging_bytes_max + memory->pulls_bytes_max + memory->collective_bytes_max +
           memory->sessions_bytes_max + memory->connections_bytes_max + memory->calls_bytes_max +
           memory->unread_answers_bytes_max + memory->step_bytes_max +
           memory->grpc_memory_bytes_max;
}

static void print_memory(const struct answers *answers, uint32_t width, FILE *file)
{
    static const struct table_column columns[] = {
        {NULL, "MEMORY", 0},         {"process", ">RESIDENT", 0}, {"process", ">BOUND", 0},
        {"process", ">BASE", 2},     {"state", ">USED", 0},       {"state", ">MAX", 0},
        {"staged", ">USED", 0},      {"staged", ">MAX", 0},       {"views", ">USED", 1},
        {"views", ">MAX", 1},        {"pulls", ">USED", 1},       {"pulls", ">MAX", 1},
        {"collectives", ">USED", 1}, {"collectives", ">MAX", 1},  {"sessions", ">MAX", 2},
        {"conns", ">MAX", 2},        {"calls", ">MAX", 2},        {"unread", ">MAX", 2},
        {"step", ">MAX", 2},         {"gRPC", ">MAX", 2}};
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof columns[0]};

    for (uint32_t i = 0; i < answers->count; i++) {
        const wire_stats_reply *reply = stats_of(answers, i);
        if (reply == NULL || reply->memory == NULL)
            continue;
        const wire_memory_stats *memory = reply->memory;
        const double state_max =
            memory->state_bytes_max > 0 ? (double)memory->state_bytes_max : (double)NAN;
        const double figures[] = {
            (double)memory->resident_bytes,
            (double)stats_memory_bound(memory),
            (double)memory->base_bytes,
            (double)memory->state_bytes,
            state_max,
            (double)memory->staged_bytes,
            (double)memory->staging_bytes_max,
            (double)memory->view_bytes,
            (double)memory->view_bytes_max,
            (double)memory->pull_bytes,
            (double)memory->pulls_bytes_max,
            (double)memory->collective_bytes,
            (double)memory->collective_bytes_max,
            (double)memory->sessions_bytes_max,
            (double)memory->connections_bytes_max,
            (double)memory->calls_bytes_max,
            (double)memory->unread_answers_bytes_max,
            (double)memory->step_bytes_max,
            (double)memory->grpc_memory_bytes_max};
        table_add(&table, "ps %" PRIu32, reply->ps);
        for (size_t j = 0; j < sizeof figures / sizeof figures[0]; j++)
            table_add(&table, "%s", table_bytes(figures[j]).text);
    }
    (void)table_print(&table, width, file);
}

/* ---- sentences */

/* The waits of a ps, the rest that it leaves out, and the connections that it refused. */
static void print_waits(const wire_stats_reply *reply, FILE *file)
{
    char line[WAIT_BYTES], who[32];
    const size_t who_bytes = text_print(who, sizeof who, "ps %u ", reply->ps);

    for (size_t i = 0; i < reply->n_waits; i++) {
        const char *wait = reply->waits[i];
        if (strncmp(wait, who, who_bytes) == 0) /* says itself who waits */
            (void)text_print_line(line, sizeof line, "%s", wait);
        else
            (void)text_print_line(line, sizeof line, "ps %u: %s", reply->ps, wait);
        fprintf(file, "%s\n", line);
    }
    if (reply->waits_left_out > 0)
        fprintf(
            file, "ps %u: %" PRIu64 " other waits are left out\n", reply->ps,
            reply->waits_left_out);
    if (reply->sessions_left_out > 0)
        fprintf(
            file, "ps %u: %" PRIu64 " other sessions are left out\n", reply->ps,
            reply->sessions_left_out);
    if (reply->connections_refused > 0)
        fprintf(
            file,
            "ps %u: refused %" PRIu64 " connection%s so far; %" PRIu64 " are open, at most %" PRIu64
            "\n",
            reply->ps, reply->connections_refused, plural(reply->connections_refused),
            reply->connections, reply->connections_max);
}

/* What is well for all of them is not said. */
static void print_oddities(const struct activity *client, FILE *file)
{
    if (has_only_looked(client))
        return;
    if (client->refused > 0)
        fprintf(
            file,
            "%s: %" PRIu64 " part%s refused, %" PRIu64 " of them for values that are not finite\n",
            client->name, client->refused, plural(client->refused), client->non_finite);
    if (client->late > 0)
        fprintf(
            file,
            "%s: %" PRIu64 " contribution%s came late: a synchronous step was taken without each\n",
            client->name, client->late, plural(client->late));
    if (client->duplicates > 0)
        fprintf(
            file, "%s: %" PRIu64 " part%s came again and %s passed over\n", client->name,
            client->duplicates, plural(client->duplicates),
            client->duplicates == 1 ? "was" : "were");
}

/* What stands above the clients. */
static void print_above(const struct picture *picture, uint32_t width, FILE *file)
{
    const struct sample *sample = picture->sample;
    char run[FOUND_RUN_TEXT_BYTES];

    if (found_run_print(&picture->roster->run, run)[0] != '\0')
        fprintf(file, "%s\n", run);
    print_pace(sample, file);
    for (uint32_t i = 0; i < sample->ps_count; i++) {
        const wire_stats_reply *reply = stats_of(picture->answers, i);
        if (reply != NULL)
            print_waits(reply, file);
    }
    for (uint32_t i = 0; i < sample->client_count; i++)
        print_oddities(&sample->clients[i], file);
    fputc('\n', file);
    print_ps(picture, width, file);
    fputc('\n', file);
    print_memory(picture->answers, width, file);
}

bool stats_print_tables(const struct picture *picture, uint32_t width, uint32_t lines, FILE *file)
{
    char *text = NULL;
    size_t bytes = 0;
    uint32_t used = 3; /* lines: the blank one, and the titles */
    FILE *const above = cli_need(open_memstream(&text, &bytes));

    print_above(picture, width, above);
    const bool whole = ferror(above) == 0;
    const bool printed = fclose(above) == 0 && whole && fputs(text, file) >= 0;
    if (printed && picture->sample->client_count > 0) {
        for (const char *at = text; *at != '\0'; at++)
            used += *at == '\n';
        const uint32_t left = lines > used + CLIENT_LINES_MIN ? lines - used : CLIENT_LINES_MIN;
        fputc('\n', file);
        print_clients(picture->sample, width, lines == 0 ? 0 : left, file);
    }
    free(text);
    return printed && ferror(file) == 0;
}

/* ---- a run for programs */

const char *stats_time(char text[32])
{
    struct tm parts;
    const time_t now = time(NULL);

    if (gmtime_r(&now, &parts) == NULL || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        text[0] = '\0';
    return text;
}

static json_t *histogram_to_json(const struct merged_histogram *histogram)
{
    return JSON_OBJECT(
        {"count", json_number(histogram->count)}, {"mean", json_finite(histogram_mean(histogram))},
        {"p50", json_finite(histogram_percentile(histogram, 0.5))},
        {"p90", json_finite(histogram_percentile(histogram, 0.9))},
        {"p99", json_finite(histogram_percentile(histogram, 0.99))});
}

static json_t *activity_to_json(const struct activity *activity)
{
    return JSON_OBJECT(
        {"name", json_string(activity->name)}, {"pushes", json_number(activity->pushes)},
        {"push_bytes", json_number(activity->push_bytes)},
        {"pushes_per_s", json_finite(activity->push_rate)},
        {"push_bytes_per_s", json_finite(activity->push_bytes_rate)},
        {"pulls", json_number(activity->pulls)}, {"pull_bytes", json_number(activity->pull_bytes)},
        {"pulls_per_s", json_finite(activity->pull_rate)},
        {"pull_bytes_per_s", json_finite(activity->pull_bytes_rate)},
        {"refused", json_number(activity->refused)},
        {"non_finite", json_number(activity->non_finite)}, {"late", json_number(activity->late)},
        {"duplicates", json_number(activity->duplicates)},
        {"push_us", histogram_to_json(&activity->push_us)},
        {"pull_us", histogram_to_json(&activity->pull_us)},
        {"staleness", histogram_to_json(&activity->staleness)});
}

static json_t *memory_to_json(const wire_memory_stats *memory)
{
    json_t *const json = json_object();

    if (memory == NULL)
        return json;
    JSON_PUT_FIELDS(
        json, &memory->base, "resident_bytes", "base_bytes", "state_bytes", "view_bytes",
        "view_bytes_max", "staged_bytes", "staging_bytes_max", "state_bytes_max", "pull_bytes",
        "pulls_bytes_max", "collective_bytes", "collective_bytes_max", "sessions_bytes_max",
        "connections_bytes_max", "calls_bytes_max", "unread_answers_bytes_max", "step_bytes_max",
        "grpc_memory_bytes_max");
    json_put(json, "bound_bytes", json_number(stats_memory_bound(memory)));
    return json;
}

static json_t *ps_to_json(const wire_stats_reply *reply, const struct activity *activity)
{
    json_t *const json = activity_to_json(activity), *const waits = json_array();

    for (size_t i = 0; i < reply->n_waits; i++)
        json_add(waits, json_string(reply->waits[i]));
    JSON_PUT_FIELDS(json, &reply->base, "address", "uptime_ms");
    if (reply->identity != NULL && reply->identity->pid != 0) {
        JSON_PUT_FIELDS(json, &reply->identity->base, "run", "host", "pid");
        json_put(json, "user", json_number(reply->user));
    }
    JSON_PUT_FIELDS(
        json, &reply->base, "position", "variables", "shards", "connections", "connections_max",
        "connections_refused", "version");
    json_put(json, "memory", memory_to_json(reply->memory));
    json_put(json, "waits", waits);
    JSON_PUT_FIELDS(json, &reply->base, "waits_left_out", "sessions_left_out");
    return json;
}

static json_t *client_to_json(const struct activity *client)
{
    const struct json_member members[] = {
        {"attempt", json_number(client->attempt)},
        {"state", json_string(client->state)},
        {"steps", json_number(client->steps)},
        {"lag", client->is_member ? json_number(client->lag) : json_null()},
        {"steps_per_s", json_finite(client->step_rate)},
        {"weight", json_finite(client->weight)},
        {"last_heard_ms", json_number(client->heard_ms)},
        {NULL, NULL}};

    return json_put_members(activity_to_json(client), members);
}

bool stats_print_json(const struct picture *picture, bool line, FILE *file)
{
    json_t *const ps = json_array(), *const clients = json_array();
    char time_text[32];

    for (uint32_t i = 0; i < picture->sample->ps_count; i++)
        if (stats_of(picture->answers, i) != NULL)
            json_add(ps, ps_to_json(stats_of(picture->answers, i), &picture->sample->ps[i]));
    for (uint32_t i = 0; i < picture->sample->client_count; i++)
        json_add(clients, client_to_json(&picture->sample->clients[i]));
    return json_print(
        JSON_OBJECT(
            {"time", json_string(stats_time(time_text))},
            {"run", found_run_to_json(&picture->roster->run)}, {"ps", ps}, {"clients", clients},
            {"missing", roster_to_json(picture->roster)}),
        line, file);
}
