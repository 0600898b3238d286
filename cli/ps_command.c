/* SPDX-License-Identifier: Apache-2.0 */
/* ps_command.c -- `sumac ps`: one parameter server, as TF_CONFIG describes it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "descriptors.h"
#include "plugin_files.h"
#include "ps.h"
#include "sumac/cluster.h"

/* What the command line says: the server's options, and those of them that need more than a place
 * to be stored. */
struct ps_words {
    struct ps_options server;
    struct option_list plugins;
    uint32_t port, index;
    const char *placement, *on_loss;
    const char *step_deadline; /* NULL: not given */
};

#define STAGING_BYTES_MIN 65536u
#define STEP_DEADLINE_MS_MAX 86400000u /* a day */
#define PULLS_BYTES_MIN 1048576u
#define COLLECTIVE_BYTES_MIN 65536u
#define GRPC_MEMORY_BYTES_MIN 8388608u /* with less it answers nobody */
#define LEASE_MS_MIN 500u   /* a client renews thrice in it, and a busy machine takes its time */
#define REJOIN_MS_MIN 100u  /* a worker that is started again takes as long to come back */
#define PS_LOST_MS_MIN 500u /* a ps that answers at once is not lost */
#define REPORT_MS_MIN 100u  /* more lines nobody reads */
#define CONNECTIONS_MIN 16u /* the other ps, a client or two, and `sumac stats` */
#define PORT_MAX 65535u
#define UNSAID UINT32_MAX /* a number that was not given */
#define SERVER(member) .offset = offsetof(struct ps_words, server.member)

static const struct option_row rows[] = {
    {"bind", "HOST", "listen on this address only (0.0.0.0: on all, those of IPv6 too)",
     OPTION_TEXT, SERVER(bind_host), .group = "Which ps, and where"},
    {"port", "PORT", "listen on this port (that of its task in TF_CONFIG)", OPTION_NUMBER,
     .offset = offsetof(struct ps_words, port), .max = PORT_MAX},
    {"index", "N", "be ps N, whatever TF_CONFIG's task says", OPTION_NUMBER,
     .offset = offsetof(struct ps_words, index)},
    {"plugin", "FILE",
     "load the update functions of a shared library (sumac/plugin.h), each time that this is "
     "given one; every ps of the cluster loads the same",
     OPTION_LIST, .offset = offsetof(struct ps_words, plugins)},
    {"threads", "N", "threads that compute beside the ps's own (spare processors, at most 3)",
     OPTION_NUMBER, SERVER(threads), .max = PS_THREADS_MAX},
    {"staging-max", "SIZE",
     "pushes that are received and not applied yet: half of it in equal shares for --sessions-max "
     "sessions, half a pool for parts that are larger than a share (3/8 of the memory, divided by "
     "the ps on this host; at least 2304M)",
     OPTION_SIZE, SERVER(staging_bytes_max), .group = "Memory and how many may come"},
    {"sessions-max", "N",
     "clients at a time; each has a share of staging-max / 2 / N (the chiefs and workers of "
     "TF_CONFIG, whose places nobody else takes, and 8 observers; at least 32. Without a list of "
     "them half of the places are theirs)",
     OPTION_COUNT, SERVER(sessions_max)},
    {"view-max", "SIZE", "old values kept for long pulls (as much as the variables take)",
     OPTION_SIZE, SERVER(view_bytes_max)},
    {"pulls-max", "SIZE",
     "pulls that wait or are under way, at most half of it for readers without a session (64M)",
     OPTION_SIZE, SERVER(pulls_bytes_max)},
    {"collectives-max", "SIZE",
     "rounds of collectives: contributions, until all have what is made of them (512M)",
     OPTION_SIZE, SERVER(collective_bytes_max)},
    {"state-max", "SIZE",
     "variables with their slots (three quarters of the memory, divided by the ps of this host)",
     OPTION_SIZE, SERVER(state_bytes_max)},
    {"placement", "HOW",
     "where ps 0 puts a variable's shards: round-robin, on the ps in turn, or bytes, on the one "
     "that has the fewest, slots with them (round-robin)",
     OPTION_TEXT, .offset = offsetof(struct ps_words, placement)},
    {"grpc-memory-max", "SIZE", "gRPC's own buffers (256M)", OPTION_SIZE,
     SERVER(grpc_memory_bytes_max)},
    {"streams-max", "N", "calls at a time on one connection (1024)", OPTION_COUNT,
     SERVER(streams_max)},
    {"connections-max", "N",
     "connections at a time, at least 16 and one for each other task, of which one host may have "
     "as many as are left free, and this one seven eighths (four for each client, at least 1024, "
     "as far as there are descriptors)",
     OPTION_COUNT, SERVER(connections_max), .min = CONNECTIONS_MIN},
    {"calls-max", "N",
     "calls and streams at a time, 40 KiB each, at least 16 for each client; half of them are "
     "streams (32 for each client, at least 4096, at most 16384)",
     OPTION_COUNT, SERVER(calls_max)},
    {"lease-ms", "MS", "a client that is silent for so long is lost, at least 500 (10000)",
     OPTION_MS, SERVER(lease_ms), .min = LEASE_MS_MIN, .group = "Patience"},
    {"rejoin-ms", "MS",
     "once a worker has joined: the run ends when none has been there for so long, at least 100 "
     "(10000)",
     OPTION_MS, SERVER(rejoin_ms), .min = REJOIN_MS_MIN},
    {"rejoin-first-ms", "MS",
     "the same while a listed worker has never joined, at least 100 (60000)", OPTION_MS,
     SERVER(rejoin_first_ms), .min = REJOIN_MS_MIN},
    {"ps-lost-ms", "MS", "without another ps for so long, give up, at least 500 (60000)", OPTION_MS,
     SERVER(ps_lost_ms), .min = PS_LOST_MS_MIN},
    {"report-ms", "MS",
     "how often a wait says what it waits for; one without a limit ever less often, up to 12 times "
     "this, at least 100 (5000)",
     OPTION_MS, SERVER(report_ms), .min = REPORT_MS_MIN},
    {"terminate-ms", "MS",
     "how long SIGTERM and the end of a run wait for what is in flight: parts that are staged, or "
     "refused, and not committed, updates, answers; what was said goes out after that, for at most "
     "2.75 s more (5000)",
     OPTION_MS, SERVER(terminate_ms)},
    {"members", "N",
     "of synchronous steps: they begin when so many chiefs and workers have joined, and those that "
     "come later take part from the next step on (as many as TF_CONFIG lists)",
     OPTION_COUNT, SERVER(members), .group = "Synchronous steps: what ps 0 is given counts"},
    {"on-loss", "WHAT",
     "of synchronous steps that lack a worker which was lost: continue, without it, or fail, and "
     "all after it (continue)",
     OPTION_TEXT, .offset = offsetof(struct ps_words, on_loss)},
    {"quorum", "K",
     "a synchronous step is taken when K of its members have contributed and --step-deadline is "
     "over, or when all remaining members have contributed; later contributions are discarded; the "
     "first step waits for all members, even with --quorum (all)",
     OPTION_COUNT, SERVER(quorum)},
    {"step-deadline", "MS|auto",
     "with --quorum: how long after its first contribution a step waits for more than K, at most "
     "86400000; auto: twice what the last 16 steps took to the K-th, by their median (auto)",
     OPTION_TEXT, .offset = offsetof(struct ps_words, step_deadline)},
};

_Static_assert(
    (int)EXIT_PORT_TAKEN == (int)PS_EXIT_PORT_TAKEN,
    "`sumac run` knows a taken port by its ps's code");

/* The cluster, with this process as one of its ps. */
static enum sumac_status
resolve(const struct ps_words *words, struct sumac_cluster *cluster, struct sumac_error *error)
{
    const char *config = getenv("TF_CONFIG");
    const bool configured = config != NULL && config[0] != '\0';
    const struct sumac_cluster_overrides overrides = {
        .task_type = words->index != UNSAID ? "ps" : NULL,
        .has_task_index = words->index != UNSAID,
        .task_index = words->index,
    };
    enum sumac_status status =
        sumac_cluster_from_environment(configured ? &overrides : NULL, cluster, error);

    if (status != SUMAC_OK)
        return status;
    status = sumac_cluster_check_task(cluster, error);
    if (status == SUMAC_OK && strcmp(cluster->task_type, "ps") != 0) {
        (void)snprintf(
            error->text, sizeof error->text,
            "TF_CONFIG says that this process is %s %u, not a ps; correct its task, or say "
            "which ps with --index N",
            cluster->task_type, cluster->task_index);
        status = error->status = SUMAC_INVALID_ARGUMENT;
    }
    if (status != SUMAC_OK)
        sumac_cluster_deinit(cluster);
    return status;
}

/* With less, a ps would start, and serve no client. */
static const struct {
    size_t offset; /* in struct ps_options; a uint64_t, 0: not given */
    uint64_t bytes_min;
    const char *said, *why;
} bounds[] = {
    {offsetof(struct ps_options, staging_bytes_max), STAGING_BYTES_MIN, "--staging-max",
     "takes no push; give at least 128K for each session"},
    {offsetof(struct ps_options, pulls_bytes_max), PULLS_BYTES_MIN, "--pulls-max",
     "answers no pull; give at least 1M"},
    {offsetof(struct ps_options, collective_bytes_max), COLLECTIVE_BYTES_MIN, "--collectives-max",
     "takes no contribution; give at least 64K"},
    {offsetof(struct ps_options, grpc_memory_bytes_max), GRPC_MEMORY_BYTES_MIN,
     "with --grpc-memory-max", "no call is answered; give at least 8M"},
};

static int check_bounds(const struct ps_options *options)
{
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        uint64_t bytes = 0;
        memcpy(&bytes, (const char *)options + bounds[i].offset, sizeof bytes);
        if (bytes != 0 && bytes < bounds[i].bytes_min)
            return command_say(
                &ps_command, EXIT_MISUSED, "%s %" PRIu64 " %s", bounds[i].said, bytes,
                bounds[i].why);
    }
    return EXIT_FINE;
}

/* An IPv6 address has two colons at least, and may be in brackets. */
static int check_bind(const char *host)
{
    const char *const colon = host == NULL ? NULL : strchr(host, ':');
    const char *const bracket = host == NULL ? NULL : strchr(host, ']');

    if (colon == NULL || (strchr(colon + 1, ':') != NULL && strchr(host, '/') == NULL &&
                          (bracket == NULL || bracket[1] == '\0')))
        return EXIT_FINE;
    return command_say(
        &ps_command, EXIT_MISUSED, "--bind wants a host alone, not %s; its port is --port's", host);
}

/* An option whose value is one of two words. */
static int take_choice(
    const char *option, const char *given, const char *one, const char *other, bool *is_other)
{
    *is_other = strcmp(given, other) == 0;
    return *is_other || strcmp(given, one) == 0
               ? EXIT_FINE
               : command_say(
                     &ps_command, EXIT_MISUSED, "--%s %s is neither %s nor %s", option, given, one,
                     other);
}

static int take_choices(struct ps_words *words)
{
    bool goes_on = false;
    int code = take_choice(
        "placement", words->placement, "round-robin", "bytes", &words->server.places_by_bytes);

    if (code == EXIT_FINE)
        code = take_choice("on-loss", words->on_loss, "fail", "continue", &goes_on);
    words->server.loss_fails = !goes_on;
    return code;
}

/* 0: as soon as there are enough. */
static int take_step_deadline(struct ps_words *words)
{
    const char *const given = words->step_deadline == NULL ? "auto" : words->step_deadline;
    char *end = NULL;

    words->server.step_deadline_ms = PS_STEP_DEADLINE_AUTO;
    if (words->step_deadline != NULL && words->server.quorum == 0)
        return command_say(
            &ps_command, EXIT_MISUSED,
            "--step-deadline %s is of steps with a quorum; give --quorum K, too", given);
    if (strcmp(given, "auto") == 0)
        return EXIT_FINE;
    const unsigned long ms = strtoul(given, &end, 10);
    words->server.step_deadline_ms = (uint32_t)ms;
    if (given[0] >= '0' && given[0] <= '9' && *end == '\0' && ms <= STEP_DEADLINE_MS_MAX)
        return EXIT_FINE;
    return command_say(
        &ps_command, EXIT_MISUSED,
        "--step-deadline %s is neither auto nor a whole number of milliseconds, 0 to %u", given,
        STEP_DEADLINE_MS_MAX);
}

static int load_plugins(const struct option_list *given, struct plugin_files *files)
{
    struct sumac_error error = {0};

    for (uint32_t i = 0; i < given->count; i++) {
        if (plugin_files_open(files, given->items[i], &error) == SUMAC_OK)
            continue;
        return command_say(&ps_command, EXIT_MISUSED, "%s", error.text);
    }
    return EXIT_FINE;
}

static int serve(const void *given, struct command_words words)
{
    struct ps_words said = *(const struct ps_words *)given;
    struct sumac_cluster cluster;
    struct sumac_error error = {0};
    struct plugin_files files;
    (void)words;

    if (check_bounds(&said.server) != EXIT_FINE || check_bind(said.server.bind_host) != EXIT_FINE ||
        take_choices(&said) != EXIT_FINE || take_step_deadline(&said) != EXIT_FINE)
        return EXIT_MISUSED;
    if (resolve(&said, &cluster, &error) != SUMAC_OK)
        return command_say(&ps_command, EXIT_MISUSED, "%s", error.text);
    plugin_files_init(&files);
    said.server.cluster = &cluster;
    said.server.plugins = &files.plugins;
    said.server.port_given = said.port != UNSAID;
    said.server.port = said.server.port_given ? said.port : 0;
    descriptors_raise();
    int code = load_plugins(&said.plugins, &files);
    if (code == EXIT_FINE)
        code = ps_run(&said.server);
    plugin_files_close(&files);
    sumac_cluster_deinit(&cluster);
    return code;
}

const struct command ps_command = {
    .name = "ps",
    .summary = "be a parameter server",
    .arguments = "",
    .about =
        "Serves its share of a run's variables. TF_CONFIG, in the environment, names all ps and "
        "workers and says which ps this one is. It waits for the workers, in whatever order the "
        "processes start, for the first one without limit (only a scheduler knows when it will "
        "start one; SIGTERM ends it), and ends with the run: 0 when the workers are done; 143 when "
        "all of them are gone, or after SIGTERM; 130 after SIGINT; 129 after SIGHUP; 128 and more "
        "when another ps is lost, the port is taken (226), or memory or threads are lacking (137); "
        "2 when TF_CONFIG or an option is wrong.\n\nVariables live in memory, bounded by: the "
        "process itself + variables with their slots (state-max) + view-max + staging-max + "
        "pulls-max + collectives-max + a fixed part for each session, each connection, each call, "
        "the message that is worked on, and unread answers (32 MiB) + grpc-memory-max. `sumac "
        "stats` prints each term, and as BOUND their sum with the variables that exist now.",
    .examples = "  TF_CONFIG='{\"cluster\": {\"ps\": [\"h1:2222\", \"h2:2222\"], \"worker\": "
                "[\"h3:2222\"]},\n"
                "              \"task\": {\"type\": \"ps\", \"index\": 0}}' sumac ps\n"
                "  sumac ps --bind 10.0.0.1 --staging-max 512M\n",
    COMMAND_OPTIONS(
        struct ps_words, .server = PS_OPTIONS_INIT, .port = UNSAID, .index = UNSAID,
        .placement = "round-robin", .on_loss = "continue"),
    .no_words = "is no option; `sumac ps --help` lists them",
    .run = serve,
};
