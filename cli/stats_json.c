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

static struct value *histogram_to_json(const struct histogram *histogram)
{
    struct value *json = value_object();

    value_put(json, "count", value_number(histogram->count));
    value_put(json, "mean", value_real(histogram_mean(histogram)));
    value_put(json, "p50", value_real(histogram_percentile(histogram, 0.5)));
    value_put(json, "p90", value_real(histogram_percentile(histogram, 0.9)));
    value_put(json, "p99", value_real(histogram_percentile(histogram, 0.99)));
    return json;
}

static struct value *activity_to_json(const struct activity *activity)
{
    struct value *json = value_object();

    value_put(json, "name", value_text(activity->name));
    value_put(json, "pushes", value_number(activity->pushes));
    value_put(json, "push_bytes", value_number(activity->push_bytes));
    value_put(json, "pushes_per_s", value_real(activity->push_rate));
    value_put(json, "push_bytes_per_s", value_real(activity->push_bytes_rate));
    value_put(json, "pulls", value_number(activity->pulls));
    value_put(json, "pull_bytes", value_number(activity->pull_bytes));
    value_put(json, "pulls_per_s", value_real(activity->pull_rate));
    value_put(json, "pull_bytes_per_s", value_real(activity->pull_bytes_rate));
    value_put(json, "refused", value_number(activity->refused));
    value_put(json, "non_finite", value_number(activity->non_finite));
    value_put(json, "late", value_number(activity->late));
    value_put(json, "duplicates", value_number(activity->duplicates));
    value_put(json, "push_us", histogram_to_json(&activity->push_us));
    value_put(json, "pull_us", histogram_to_json(&activity->pull_us));
    value_put(json, "staleness", histogram_to_json(&activity->staleness));
    return json;
}

static struct value *memory_to_json(const wire_memory_stats *memory)
{
    struct value *json = value_object();

    if (memory == NULL)
        return json;
    value_put(json, "resident_bytes", value_number(memory->resident_bytes));
    value_put(json, "base_bytes", value_number(memory->base_bytes));
    value_put(json, "state_bytes", value_number(memory->state_bytes));
    value_put(json, "view_bytes", value_number(memory->view_bytes));
    value_put(json, "view_bytes_max", value_number(memory->view_bytes_max));
    value_put(json, "staged_bytes", value_number(memory->staged_bytes));
    value_put(json, "staging_bytes_max", value_number(memory->staging_bytes_max));
    value_put(json, "state_bytes_max", value_number(memory->state_bytes_max));
    value_put(json, "pull_bytes", value_number(memory->pull_bytes));
    value_put(json, "pulls_bytes_max", value_number(memory->pulls_bytes_max));
    value_put(json, "collective_bytes", value_number(memory->collective_bytes));
    value_put(json, "collective_bytes_max", value_number(memory->collective_bytes_max));
    value_put(json, "sessions_bytes_max", value_number(memory->sessions_bytes_max));
    value_put(json, "connections_bytes_max", value_number(memory->connections_bytes_max));
    value_put(json, "calls_bytes_max", value_number(memory->calls_bytes_max));
    value_put(json, "unread_answers_bytes_max", value_number(memory->unread_answers_bytes_max));
    value_put(json, "step_bytes_max", value_number(memory->step_bytes_max));
    value_put(json, "grpc_memory_bytes_max", value_number(memory->grpc_memory_bytes_max));
    value_put(json, "bound_bytes", value_number(stats_memory_bound(memory)));
    return json;
}

static struct value *ps_to_json(const wire_stats_reply *reply, const struct activity *activity)
{
    struct value *json = activity_to_json(activity);
    struct value *waits = value_array();

    for (size_t i = 0; i < reply->n_waits; i++)
        value_add(waits, value_text(reply->waits[i]));
    value_put(json, "address", value_text(reply->address));
    value_put(json, "uptime_ms", value_number(reply->uptime_ms));
    if (reply->identity != NULL && reply->identity->pid != 0) {
        value_put(json, "run", value_text(reply->identity->run));
        value_put(json, "host", value_text(reply->identity->host));
        value_put(json, "pid", value_number(reply->identity->pid));
        value_put(json, "user", value_number(reply->user));
    }
    value_put(json, "position", value_number(reply->position));
    value_put(json, "variables", value_number(reply->variables));
    value_put(json, "shards", value_number(reply->shards));
    value_put(json, "connections", value_number(reply->connections));
    value_put(json, "connections_max", value_number(reply->connections_max));
    value_put(json, "connections_refused", value_number(reply->connections_refused));
    value_put(json, "version", value_text(reply->version));
    value_put(json, "memory", memory_to_json(reply->memory));
    value_put(json, "waits", waits);
    value_put(json, "waits_left_out", value_number(reply->waits_left_out));
    value_put(json, "sessions_left_out", value_number(reply->sessions_left_out));
    return json;
}

static struct value *client_to_json(const struct activity *client)
{
    struct value *json = activity_to_json(client);

    value_put(json, "attempt", value_number(client->attempt));
    value_put(json, "state", value_text(client->state));
    value_put(json, "steps", value_number(client->steps));
    value_put(json, "lag", client->is_member ? value_number(client->lag) : value_real((double)NAN));
    value_put(json, "steps_per_s", value_real(client->step_rate));
    value_put(json, "weight", value_real(client->weight));
    value_put(json, "last_heard_ms", value_number(client->heard_ms));
    return json;
}

bool stats_print_json(const struct picture *picture, bool line, FILE *file)
{
    struct value *json = value_object(), *ps = value_array(), *clients = value_array();
    char time_text[32];

    for (uint32_t i = 0; i < picture->sample->ps_count; i++)
        if (stats_of(picture->answers, i) != NULL)
            value_add(ps, ps_to_json(stats_of(picture->answers, i), &picture->sample->ps[i]));
    for (uint32_t i = 0; i < picture->sample->client_count; i++)
        value_add(clients, client_to_json(&picture->sample->clients[i]));
    value_put(json, "time", value_text(stats_time(time_text)));
    value_put(json, "run", found_run_to_json(&picture->roster->run));
    value_put(json, "ps", ps);
    value_put(json, "clients", clients);
    value_put(json, "missing", roster_to_json(picture->roster));
    const bool printed = line ? value_print_line(json, file) : value_print(json, file);
    value_free(json);
    return printed;
}
