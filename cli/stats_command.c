/* stats_command.c -- `sumac stats`: who pushes and pulls how much, how fast, how stale, and where the memory is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "activity.h"
#include "command.h"
#include "json.h"
#include "options.h"
#include "sumac/client.h"
#include "table.h"
#include "text.h"

#define INTERVAL_MS 500
#define WAIT_BYTES 2048        /* a variable's name has up to 1024 */
#define SCREEN_BYTES_MAX 65536 /* written at once: no flicker */

struct stats_options {
    const char *ps;
    uint32_t interval_ms;
    bool watch, json;
};

static const struct option_row rows[] = {
    {"watch", NULL, "print again and again, until the run ends", OPTION_FLAG,
     offsetof(struct stats_options, watch)},
    {"interval-ms", "MS", "rates are of so long (500)", OPTION_MS,
     offsetof(struct stats_options, interval_ms)},
    {"ps", "HOST:PORT", "one of the run's ps (else TF_CONFIG, else the one run on this machine)",
     OPTION_TEXT, offsetof(struct stats_options, ps)},
    {"json", NULL, "print one JSON document", OPTION_FLAG, offsetof(struct stats_options, json)},
};

static int stats(const struct command *command, int argc, char **argv);

const struct command stats_command = {
    .name = "stats",
    .summary = "pushes, pulls, rates, latencies, staleness and memory",
    .arguments = "",
    .about = "Per ps and per worker. A push or pull counts once at every ps that it concerns. "
             "Rates are of the last\n"
             "half second. Latencies are the ps's: of a push from its first byte to its being "
             "applied, of a pull from\n"
             "the request to the answer. Staleness is how many updates a shard got between the "
             "pull that a gradient\n"
             "was computed from and the gradient's push.",
    .examples = "  sumac stats\n"
                "  sumac stats --watch\n"
                "  sumac stats --ps 127.0.0.1:2222 --json\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .run = stats,
};

static uint64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void pause_ms(uint32_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* ---- tables */

static void add_percentiles(struct table *table, const struct histogram *histogram)
{
    static const double fractions[] = {0.5, 0.99};
    char text[32];
    for (int i = 0; i < 2; i++) {
        const double us = histogram_percentile(histogram, fractions[i]);
        table_add(table, "%s", histogram->count > 0 ? table_duration(us, text, sizeof text) : "-");
    }
}

static void add_activity(struct table *table, const struct activity *activity)
{
    char text[32];
    table_add(table, "%" PRIu64, activity->pushes);
    table_add(table, "%.0f", activity->push_rate);
    table_add(table, "%s/s", table_bytes(activity->push_bytes_rate, text, sizeof text));
    add_percentiles(table, &activity->push_us);
    table_add(table, "%" PRIu64, activity->pulls);
    table_add(table, "%.0f", activity->pull_rate);
    table_add(table, "%s/s", table_bytes(activity->pull_bytes_rate, text, sizeof text));
    add_percentiles(table, &activity->pull_us);
    table_add(table, "%.1f", histogram_mean(&activity->staleness));
    table_add(table, "%.0f", histogram_percentile(&activity->staleness, 0.99));
    table_add(table, "%" PRIu64, activity->refused);
}

#define ACTIVITY_TITLES                                                                            \
    ">PUSHES", ">PUSH/S", ">PUSHED", ">P50", ">P99", ">PULLS", ">PULL/S", ">PULLED", ">P50",       \
        ">P99", ">STALENESS", ">P99", ">REFUSED"

static bool print_ps(const struct sample *sample, FILE *file)
{
    static const char *const titles[] = {"PS", ACTIVITY_TITLES};
    struct table table = {.titles = titles, .columns = sizeof titles / sizeof titles[0]};
    for (uint32_t i = 0; i < sample->ps_count; i++) {
        table_add(&table, "%s", sample->ps[i].name);
        add_activity(&table, &sample->ps[i]);
    }
    const bool printed = table_print(&table, file);
    table_deinit(&table);
    return printed;
}

static bool print_clients(const struct sample *sample, FILE *file)
{
    static const char *const titles[] = {"CLIENT", "STATE", ACTIVITY_TITLES};
    struct table table = {.titles = titles, .columns = sizeof titles / sizeof titles[0]};
    for (uint32_t i = 0; i < sample->client_count; i++) {
        const struct activity *client = &sample->clients[i];
        if (client->attempt > 1)
            table_add(&table, "%s (attempt %" PRIu64 ")", client->name, client->attempt);
        else
            table_add(&table, "%s", client->name);
        table_add(&table, "%s", client->state);
        add_activity(&table, client);
    }
    const bool printed = table_print(&table, file);
    table_deinit(&table);
    return printed;
}

static uint64_t bound(const wire_memory_stats *memory)
{
    return memory->base_bytes + memory->state_bytes + memory->view_bytes_max +
           memory->staging_bytes_max + memory->pulls_bytes_max + memory->sessions_bytes_max +
           memory->connections_bytes_max + memory->grpc_memory_bytes_max;
}

static bool print_memory(const struct answers *answers, FILE *file)
{
    static const char *const titles[] = {
        "MEMORY",        ">RESIDENT",        ">BASE",     ">STATE", ">VIEWS",
        ">MAX",          ">STAGED",          ">MAX",      ">PULLS", ">MAX",
        ">SESSIONS MAX", ">CONNECTIONS MAX", ">GRPC MAX", ">BOUND", ">ADDRESS"};
    struct table table = {.titles = titles, .columns = sizeof titles / sizeof titles[0]};
    for (uint32_t i = 0; i < answers->count; i++) {
        const wire_stats_reply *reply = stats_of(answers, i);
        const wire_memory_stats *memory = reply->memory;
        if (memory == NULL)
            continue;
        const uint64_t figures[] = {
            memory->resident_bytes,
            memory->base_bytes,
            memory->state_bytes,
            memory->view_bytes,
            memory->view_bytes_max,
            memory->staged_bytes,
            memory->staging_bytes_max,
            memory->pull_bytes,
            memory->pulls_bytes_max,
            memory->sessions_bytes_max,
            memory->connections_bytes_max,
            memory->grpc_memory_bytes_max,
            bound(memory)};
        table_add(&table, "ps %u", reply->ps);
        for (size_t j = 0; j < sizeof figures / sizeof figures[0]; j++) {
            char text[32];
            table_add(&table, "%s", table_bytes((double)figures[j], text, sizeof text));
        }
        table_add(&table, "%s", reply->address);
    }
    const bool printed = table_print(&table, file);
    table_deinit(&table);
    return printed;
}

static void print_refused(const wire_stats_reply *reply, FILE *file)
{
    if (reply->connections_refused > 0)
        fprintf(
            file,
            "ps %u: refused %" PRIu64 " connections so far; %" PRIu64 " are open, at most %" PRIu64
            "\n",
            reply->ps, reply->connections_refused, reply->connections, reply->connections_max);
}

static void print_waits(const wire_stats_reply *reply, FILE *file)
{
    char line[WAIT_BYTES];
    for (size_t i = 0; i < reply->n_waits; i++) {
        text_print_line(line, sizeof line, "ps %u: %s", reply->ps, reply->waits[i]);
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
}

static bool print_tables(const struct answers *answers, const struct sample *sample, FILE *file)
{
    bool printed = print_ps(sample, file);
    if (sample->client_count > 0) {
        fputc('\n', file);
        printed = print_clients(sample, file) && printed;
    }
    fputc('\n', file);
    printed = print_memory(answers, file) && printed;
    for (uint32_t i = 0; i < answers->count; i++) {
        print_refused(stats_of(answers, i), file);
        print_waits(stats_of(answers, i), file);
    }
    return printed && ferror(file) == 0;
}

/* Each line as far as it fits: wrapped ones would push the first ones off the terminal. */
static void print_cut(const char *text, uint32_t columns)
{
    uint32_t used = 0;
    for (; *text != '\0'; text++) {
        const bool begins = ((unsigned char)*text & 0xC0) != 0x80; /* of UTF-8 */
        used = *text == '\n' ? 0 : used + begins;
        if (used <= columns)
            fputc(*text, stdout);
    }
}

/* The tables of now in place of those before. */
static bool redraw_tables(const struct answers *answers, const struct sample *sample)
{
    char *text = NULL;
    size_t bytes = 0;
    struct winsize size = {0};
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        return false;
    bool printed = print_tables(answers, sample, file);
    printed = fclose(file) == 0 && printed;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        size.ws_col = UINT16_MAX;
    fputs("\033[H\033[2J", stdout);
    if (printed)
        print_cut(text, size.ws_col);
    free(text);
    return printed;
}

/* ---- JSON */

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
    value_put(json, "sessions_bytes_max", value_number(memory->sessions_bytes_max));
    value_put(json, "connections_bytes_max", value_number(memory->connections_bytes_max));
    value_put(json, "grpc_memory_bytes_max", value_number(memory->grpc_memory_bytes_max));
    value_put(json, "bound_bytes", value_number(bound(memory)));
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

static bool print_json(const struct answers *answers, const struct sample *sample)
{
    struct value *json = value_object(), *ps = value_array(), *clients = value_array();
    for (uint32_t i = 0; i < sample->ps_count; i++)
        value_add(ps, ps_to_json(stats_of(answers, i), &sample->ps[i]));
    for (uint32_t i = 0; i < sample->client_count; i++) {
        struct value *client = activity_to_json(&sample->clients[i]);
        value_put(client, "attempt", value_number(sample->clients[i].attempt));
        value_put(client, "state", value_text(sample->clients[i].state));
        value_add(clients, client);
    }
    value_put(json, "ps", ps);
    value_put(json, "clients", clients);
    const bool printed = value_print(json, stdout);
    value_free(json);
    return printed;
}

/* ---- the command */

static enum sumac_status ask_stats(
    const struct ps_list *list, struct answers *answers, struct sample *sample,
    struct sumac_error *error)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct inquiry inquiry = {WIRE_OBSERVE, WIRE_OBSERVE_STATS, &request.base};
    const enum sumac_status status = ask_every(list, &inquiry, answers, error);
    if (status != SUMAC_OK || sample_take(answers, now_us(), sample))
        return status;
    answers_deinit(answers);
    text_print(error->text, sizeof error->text, "no memory");
    return error->status = SUMAC_RESOURCE_EXHAUSTED;
}

/* Sample, wait, sample again, print; again and again if that is wanted, until the ps are gone. */
static enum sumac_status watch(
    const struct ps_list *list, const struct stats_options *options, bool *printed,
    struct sumac_error *error)
{
    const bool clear = options->watch && !options->json && isatty(STDOUT_FILENO) == 1;
    struct answers answers = {0};
    struct sample before = {0}, now = {0};
    enum sumac_status status = ask_stats(list, &answers, &before, error);
    if (status != SUMAC_OK)
        return status;
    answers_deinit(&answers);
    if (clear)
        setvbuf(stdout, NULL, _IOFBF, SCREEN_BYTES_MAX);
    do {
        pause_ms(options->interval_ms);
        status = ask_stats(list, &answers, &now, error);
        if (status != SUMAC_OK)
            break;
        sample_compare(&before, &now);
        *printed = options->json ? print_json(&answers, &now)
                   : clear       ? redraw_tables(&answers, &now)
                                 : print_tables(&answers, &now, stdout);
        *printed = fflush(stdout) == 0 && *printed;
        answers_deinit(&answers);
        sample_deinit(&before);
        before = now;
        now = (struct sample){0};
    } while (options->watch && *printed);
    sample_deinit(&before);
    if (!options->watch || status != SUMAC_UNAVAILABLE)
        return status;
    fprintf(
        stderr, "sumac stats: the ps answer no more: the run is over, or one of them is lost\n");
    return SUMAC_OK;
}

static int stats(const struct command *command, int argc, char **argv)
{
    struct stats_options options = {.interval_ms = INTERVAL_MS};
    int words = 0;
    const enum options_outcome outcome = options_parse(command, argc, argv, &options, &words);
    if (outcome != OPTIONS_GO)
        return outcome == OPTIONS_HELP ? EXIT_FINE : EXIT_MISUSED;
    if (words > 0) {
        fprintf(stderr, "sumac stats: %s means nothing here; see `sumac stats --help`\n", argv[0]);
        return EXIT_MISUSED;
    }
    bool printed = true;
    struct ps_list some = {0}, all = {0};
    struct sumac_error error = {0};
    enum sumac_status status = find_cluster(options.ps, &some, &error);
    if (status == SUMAC_OK)
        status = ask_addresses(&some, &all, &error);
    if (status == SUMAC_OK)
        status = watch(&all, &options, &printed, &error);
    ps_list_deinit(&some);
    ps_list_deinit(&all);
    if (status != SUMAC_OK)
        return command_failed(command, &error);
    return printed ? EXIT_FINE : EXIT_FAILED;
}
