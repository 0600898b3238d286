/* SPDX-License-Identifier: Apache-2.0 */
/* stats_json.c -- a run for programs. */
#include <math.h>
#include <time.h>

#include "json.h"
#include "stats.h"

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
    json_t *json = json_object();

    json_put(json, "count", json_number(histogram->count));
    json_put(json, "mean", json_finite(histogram_mean(histogram)));
    json_put(json, "p50", json_finite(histogram_percentile(histogram, 0.5)));
    json_put(json, "p90", json_finite(histogram_percentile(histogram, 0.9)));
    json_put(json, "p99", json_finite(histogram_percentile(histogram, 0.99)));
    return json;
}

static json_t *activity_to_json(const struct activity *activity)
{
    json_t *json = json_object();

    json_put(json, "name", json_string(activity->name));
    json_put(json, "pushes", json_number(activity->pushes));
    json_put(json, "push_bytes", json_number(activity->push_bytes));
    json_put(json, "pushes_per_s", json_finite(activity->push_rate));
    json_put(json, "push_bytes_per_s", json_finite(activity->push_bytes_rate));
    json_put(json, "pulls", json_number(activity->pulls));
    json_put(json, "pull_bytes", json_number(activity->pull_bytes));
    json_put(json, "pulls_per_s", json_finite(activity->pull_rate));
    json_put(json, "pull_bytes_per_s", json_finite(activity->pull_bytes_rate));
    json_put(json, "refused", json_number(activity->refused));
    json_put(json, "non_finite", json_number(activity->non_finite));
    json_put(json, "late", json_number(activity->late));
    json_put(json, "duplicates", json_number(activity->duplicates));
    json_put(json, "push_us", histogram_to_json(&activity->push_us));
    json_put(json, "pull_us", histogram_to_json(&activity->pull_us));
    json_put(json, "staleness", histogram_to_json(&activity->staleness));
    return json;
}

static json_t *memory_to_json(const wire_memory_stats *memory)
{
    static const char *const names[] = {"resident_bytes",     "base_bytes",
                                        "state_bytes",        "view_bytes",
                                        "view_bytes_max",     "staged_bytes",
                                        "staging_bytes_max",  "state_bytes_max",
                                        "pull_bytes",         "pulls_bytes_max",
                                        "collective_bytes",   "collective_bytes_max",
                                        "sessions_bytes_max", "connections_bytes_max",
                                        "calls_bytes_max",    "unread_answers_bytes_max",
                                        "step_bytes_max",     "grpc_memory_bytes_max"};
    json_t *json = json_object();

    if (memory == NULL)
        return json;
    json_put_fields(json, &memory->base, names, sizeof names / sizeof names[0]);
    json_put(json, "bound_bytes", json_number(stats_memory_bound(memory)));
    return json;
}

static json_t *ps_to_json(const wire_stats_reply *reply, const struct activity *activity)
{
    static const char *const counts[] = {"position",    "variables",       "shards",
                                         "connections", "connections_max", "connections_refused",
                                         "version"};
    json_t *json = activity_to_json(activity);
    json_t *waits = json_array();

    for (size_t i = 0; i < reply->n_waits; i++)
        json_add(waits, json_string(reply->waits[i]));
    json_put_fields(json, &reply->base, (const char *[]){"address", "uptime_ms"}, 2);
    if (reply->identity != NULL && reply->identity->pid != 0) {
        json_put_fields(json, &reply->identity->base, (const char *[]){"run", "host", "pid"}, 3);
        json_put(json, "user", json_number(reply->user));
    }
    json_put_fields(json, &reply->base, counts, sizeof counts / sizeof counts[0]);
    json_put(json, "memory", memory_to_json(reply->memory));
    json_put(json, "waits", waits);
    json_put_fields(json, &reply->base, (const char *[]){"waits_left_out", "sessions_left_out"}, 2);
    return json;
}

static json_t *client_to_json(const struct activity *client)
{
    json_t *json = activity_to_json(client);

    json_put(json, "attempt", json_number(client->attempt));
    json_put(json, "state", json_string(client->state));
    json_put(json, "steps", json_number(client->steps));
    json_put(json, "lag", client->is_member ? json_number(client->lag) : json_finite((double)NAN));
    json_put(json, "steps_per_s", json_finite(client->step_rate));
    json_put(json, "weight", json_finite(client->weight));
    json_put(json, "last_heard_ms", json_number(client->heard_ms));
    return json;
}

bool stats_print_json(const struct picture *picture, bool line, FILE *file)
{
    json_t *json = json_object(), *ps = json_array(), *clients = json_array();
    char time_text[32];

    for (uint32_t i = 0; i < picture->sample->ps_count; i++)
        if (stats_of(picture->answers, i) != NULL)
            json_add(ps, ps_to_json(stats_of(picture->answers, i), &picture->sample->ps[i]));
    for (uint32_t i = 0; i < picture->sample->client_count; i++)
        json_add(clients, client_to_json(&picture->sample->clients[i]));
    json_put(json, "time", json_string(stats_time(time_text)));
    json_put(json, "run", found_run_to_json(&picture->roster->run));
    json_put(json, "ps", ps);
    json_put(json, "clients", clients);
    json_put(json, "missing", roster_to_json(picture->roster));
    return json_print(json, line, file);
}
