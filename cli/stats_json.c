/* SPDX-License-Identifier: Apache-2.0 */
/* stats_json.c -- a run for programs. */
#include <time.h>

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
