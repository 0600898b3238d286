/* SPDX-License-Identifier: Apache-2.0 */
/* stats_command.c -- `sumac stats`: who pushes and pulls how much, how fast, how stale, and where
 * the memory is. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "clock.h"
#include "error.h"
#include "last_word.h"
#include "screen.h"
#include "stats.h"

#define INTERVAL_MS 500
#define LISTEN_US 50000u      /* how often a terminal's pause listens for a last word */
#define LAST_WORD_US 2000000u /* how long one that is on its way is waited for */

struct stats_options {
    const char *ps;
    uint32_t interval_ms;
    bool watch, json;
};

static const struct option_row rows[] = {
    {"watch", NULL,
     "again and again, until the run ends: in place on a terminal, else one below another",
     OPTION_FLAG, .offset = offsetof(struct stats_options, watch)},
    {"interval-ms", "MS", "rates are of so long, and --watch waits for it (500)", OPTION_MS,
     .offset = offsetof(struct stats_options, interval_ms)},
    OPTION_ROW_PS(struct stats_options),
    {"json", NULL, "print one JSON document; with --watch one in each line", OPTION_FLAG,
     .offset = offsetof(struct stats_options, json)},
};

/* ---- one moment after another */

struct seen_ps {
    bool answered;        /* once at least */
    uint64_t incarnation; /* in the run; 0: not known */
};

/* The run as it is seen now, and what the rates are reckoned from. */
struct sight {
    struct roster roster;
    struct answers answers;
    struct sample before, now;
    struct last_word word;
    struct seen_ps *ps; /* (roster.count); NULL: one look is not compared with another */
    bool seen;          /* the run, once at least */
    bool told;          /* by a ps, why the run ends */
    char *drawn;        /* owned: what the terminal shows */
};

/* A ps has another incarnation each time that it is started, and a run does not outlive one of
 * them. */
static enum sumac_status see_same_run(struct sight *sight, struct sumac_error *error)
{
    for (uint32_t ps = 0; sight->ps != NULL && ps < sight->roster.count; ps++) {
        const wire_stats_reply *stats = stats_of(&sight->answers, ps);
        struct seen_ps *const seen = &sight->ps[ps];
        if (stats == NULL)
            continue;
        if (seen->incarnation != 0 && seen->incarnation != stats->ps_incarnation)
            return fail(
                error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
                "ps %u at %s was started again: the run that was watched is over, and how it ended "
                "was not heard",
                ps, sight->roster.ps[ps].address);
        seen->answered = true;
        if (stats->cluster_id != 0)
            seen->incarnation = stats->ps_incarnation;
    }
    return SUMAC_OK;
}

/* Look again: what was seen now is what was seen before. */
static enum sumac_status look(struct sight *sight, struct sumac_error *error)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct inquiry inquiry = {
        .service = WIRE_OBSERVE, .method = WIRE_OBSERVE_STATS, .request = &request.base};

    answers_deinit(&sight->answers);
    sample_deinit(&sight->before);
    sight->before = sight->now;
    sight->now = (struct sample){0};
    enum sumac_status status = ask(&sight->roster, &inquiry, &sight->answers, error);
    if (status == SUMAC_OK)
        status = see_same_run(sight, error);
    if (status != SUMAC_OK)
        return status;
    sample_take(&sight->answers, clock_now_us(), &sight->now);
    sample_compare(&sight->before, &sight->now);
    found_run_learn(&sight->roster.run, stats_of(&sight->answers, sight->answers.first));
    sight->seen = true;
    return SUMAC_OK;
}

static struct picture picture_of(const struct sight *sight)
{
    return (struct picture){
        .roster = &sight->roster, .answers = &sight->answers, .sample = &sight->now};
}

/* ---- showing it */

static bool print(const struct sight *sight, const struct stats_options *options)
{
    const struct picture picture = picture_of(sight);
    char time_text[32];

    if (options->json)
        return stats_print_json(&picture, options->watch, stdout) && fflush(stdout) == 0;
    if (options->watch)
        printf("%s  ", stats_time(time_text));
    const bool printed = stats_print_tables(&picture, screen_columns(), 0, stdout);
    if (options->watch)
        fputc('\n', stdout);
    return fflush(stdout) == 0 && printed;
}

static bool draw(struct sight *sight)
{
    const struct picture picture = picture_of(sight);
    char *text = NULL, time_text[32];
    size_t bytes = 0;
    FILE *const file = cli_need(open_memstream(&text, &bytes));

    fprintf(file, "%s  ", stats_time(time_text));
    bool printed = stats_print_tables(&picture, screen_columns(), screen_lines(), file);
    printed = fclose(file) == 0 && printed;
    free(sight->drawn);
    sight->drawn = text;
    return printed && screen_draw(text);
}

/* Until the next sample is due, or a ps says why it ends; a terminal of another size is drawn again
 * at once. */
static bool pause_and_draw(struct sight *sight, uint64_t until_us)
{
    bool drawn = true;

    for (uint64_t now = clock_now_us(); drawn && now < until_us; now = clock_now_us()) {
        const uint64_t due_us = now + LISTEN_US < until_us ? now + LISTEN_US : until_us;
        if (last_word_listen(&sight->word, due_us))
            break;
        if (screen_wait(due_us)) /* no longer, unless there is no stream to listen to */
            drawn = draw(sight);
    }
    return drawn;
}

/* Likewise. Where there is no stream to listen to, it is slept. */
static void pause_until(struct sight *sight, uint64_t until_us)
{
    const struct timespec time = {
        .tv_sec = (time_t)(until_us / 1000000), .tv_nsec = (long)(until_us % 1000000) * 1000};

    if (!last_word_listen(&sight->word, until_us))
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* Look again, unless a ps has said why it ends. One that is gone may have said it between two
 * looks. */
static enum sumac_status look_again(struct sight *sight, struct sumac_error *error)
{
    if (!last_word_listen(&sight->word, clock_now_us() + 1)) {
        const enum sumac_status status = look(sight, error);
        sight->told = status != SUMAC_OK && roster_has_last_word(&sight->roster);
        if (status == SUMAC_OK || sight->told ||
            !last_word_listen(&sight->word, clock_now_us() + LAST_WORD_US))
            return status;
    }
    sight->told = true;
    *error = sight->word.reason;
    return error->status;
}

/* Sample, wait, sample again, show; again and again if that is wanted, until the run ends. */
static enum sumac_status watch(
    struct sight *sight, const struct stats_options *options, bool in_place, bool *printed,
    struct sumac_error *error)
{
    const uint64_t interval_us = (uint64_t)options->interval_ms * 1000;
    enum sumac_status status = look(sight, error);

    while (status == SUMAC_OK && *printed) {
        const uint64_t next_us = sight->now.at_us + interval_us;
        if (options->watch)
            last_word_attend(&sight->word, sight->roster.ps[sight->answers.first].address);
        if (in_place && sight->before.ps != NULL)
            *printed = pause_and_draw(sight, next_us);
        else
            pause_until(sight, next_us);
        status = look_again(sight, error);
        if (status != SUMAC_OK)
            break;
        *printed = *printed && (in_place ? draw(sight) : print(sight, options));
        if (!options->watch)
            break;
    }
    return status;
}

/* The exit code: 0 for a watch, on the word of a ps, which alone says that a run ended well. */
static int failed(const struct stats_options *options, const struct sumac_error *error)
{
    const int code = command_failed(&stats_command, error);

    return options->watch && error->reason == SUMAC_REASON_RUN_ENDED ? EXIT_FINE : code;
}

/* The first ps that went, of those that an earlier look saw. */
static uint32_t first_gone(const struct sight *sight)
{
    const struct roster *const roster = &sight->roster;
    uint32_t first = roster->count;

    for (uint32_t i = 0; i < roster->count; i++)
        if (sight->ps[i].answered && roster->ps[i].missing &&
            (first == roster->count || roster->ps[i].silent_us < roster->ps[first].silent_us))
            first = i;
    assert(first < roster->count);
    return first;
}

/* The run that was watched is gone. The exit code. */
static int tell_end(
    const struct sight *sight, const struct stats_options *options, const struct sumac_error *error)
{
    const bool well = error->reason == SUMAC_REASON_RUN_ENDED;

    if (sight->told && !well)
        return command_say(
            &stats_command, command_exit_code(error), "the run has failed: %s", error->text);
    if (well || sight->told || error->status != SUMAC_UNAVAILABLE)
        return failed(options, error);
    const uint32_t gone = first_gone(sight);
    const struct roster_ps *const ps = &sight->roster.ps[gone];
    return command_say(
        &stats_command, command_exit_code(error),
        "ps %u at %s: %s: gone without a word, so that nobody can tell whether the run is over or "
        "lost",
        gone, ps->address, roster_silence(ps).text);
}

/* The exit code. */
static int show(struct sight *sight, const struct stats_options *options)
{
    const bool in_place = options->watch && !options->json && isatty(STDOUT_FILENO) == 1;
    struct sumac_error error = {0};
    bool printed = true;

    if (in_place)
        screen_open();
    last_word_init(&sight->word);
    const enum sumac_status status = watch(sight, options, in_place, &printed, &error);
    last_word_deinit(&sight->word);
    screen_close();
    if (sight->drawn != NULL) /* stays on the page that the terminal shows otherwise */
        fputs(sight->drawn, stdout);
    if (options->watch && sight->seen && status != SUMAC_OK) {
        const int code = tell_end(sight, options, &error);
        return printed ? code : EXIT_FAILED;
    }
    if (status != SUMAC_OK)
        return failed(options, &error);
    const int code = roster_report(&stats_command, &sight->roster, "all else is shown");
    return printed ? code : EXIT_FAILED;
}

static int stats(const void *given, struct command_words words)
{
    const struct stats_options *const options = given;
    struct sight sight = {0};
    struct sumac_error error = {0};
    (void)words;

    if (roster_find(options->ps, &sight.roster, &error) != SUMAC_OK)
        return failed(options, &error);
    if (options->watch)
        sight.ps = cli_alloc(sight.roster.count, sizeof *sight.ps);
    const int code = show(&sight, options);
    answers_deinit(&sight.answers);
    sample_deinit(&sight.before);
    sample_deinit(&sight.now);
    free(sight.drawn);
    return code;
}

const struct command stats_command = {
    .name = "stats",
    .summary = "steps, pushes, pulls, latencies, staleness, memory, and waits",
    .arguments = "",
    .about =
        "The first line says whose run it is: its program and process, one of its ps, its age. The "
        "next line has the workers' steps a second (pushes, where a program counts no steps), and "
        "the staleness; then come the slowest worker, if it does less than 80 % of the fastest, "
        "and what is waited for. A push or pull counts once at every ps that it concerns; in a "
        "client's /S it counts once. Rates are of the last --interval-ms. P50 and P99 are the ps's "
        "latencies since the start: of a push from its first byte to its being applied, of a pull "
        "from the request to the answer; what a ps does in one step of its loop counts as 0: waits "
        "are seen, work is not. Staleness counts the updates of a shard between the pull that a "
        "gradient was computed from and the gradient's push. LAG: the steps that a worker is ahead "
        "of the slowest. AGO: since its latest push or pull. Memory in bytes (K, M, G as in "
        "options): BOUND is the largest value of RESIDENT with the present variables: BASE + state "
        "USED + all MAX but state's. It grows with each new variable, and state MAX bounds that. "
        "Columns that do not fit into the terminal's width are left out, and with --watch clients "
        "that do not fit into its height; JSON has all of them. A ps that does not answer within 5 "
        "s is shown as such, and the exit code is 128 or more. --watch ends with the run: with 0 "
        "when a ps says that it ended well; else, and when all ps are gone without a word or one "
        "was started again, with 128 or more.\n\nJSON: time, run (program, pid, ps, address, "
        "uptime_ms, name, host, ps_pid, user; as far as known), ps (counters, rates per second, "
        "push_us, pull_us and staleness with count, mean, p50, p90, p99; address, uptime_ms, run, "
        "host, pid, user, position, variables, shards, connections, version, memory, waits), "
        "clients (the same counters; attempt, state, steps, lag, steps_per_s, weight, "
        "last_heard_ms), missing (ps, address, error). A rate that is not known is null, and so is "
        "the lag of who is no open worker.",
    .examples = "  sumac stats\n"
                "  sumac stats --watch\n"
                "  sumac stats --watch --json --interval-ms 10000 >> run.jsonl\n"
                "  sumac stats --ps 127.0.0.1:2222 --json\n",
    COMMAND_OPTIONS(struct stats_options, .interval_ms = INTERVAL_MS),
    .no_words = "means nothing here; see `sumac stats --help`",
    .run = stats,
};
