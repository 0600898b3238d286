/* SPDX-License-Identifier: Apache-2.0 */
/* empty_step.c -- `bench/strategy [--json] [--rounds N]`: what sumac_strategy_run costs with a step
 * that does nothing, beside waking as many threads by hand and waiting for them.
 *
 * Both run in turn, a burst of each in a round, so that a slow moment of the machine hits both;
 * medians are over all runs of all rounds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "sumac/strategy.h"

#define BURST 100u
#define WARM_UP 10u
#define ROUNDS_MAX (SAMPLES_MAX / BURST)

struct row {
    uint32_t replicas;
    struct sumac_strategy *strategy;
    struct crew *crew;
    struct samples run, bare;
    double run_us, bare_us;
};

static struct row rows[] = {{.replicas = 1}, {.replicas = 2}, {.replicas = 4}};
#define ROWS (sizeof rows / sizeof rows[0])

static enum sumac_status
do_nothing(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    (void)replica, (void)context, (void)error;
    return SUMAC_OK;
}

static void work_nothing(void *context, uint32_t thread) { (void)context, (void)thread; }

static void open_row(struct row *row)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .replicas = row->replicas};
    struct sumac_error error;

    if (sumac_strategy_create(&options, &row->strategy, &error) != SUMAC_OK)
        die(error.text);
    row->crew = crew_open(row->replicas);
}

static void measure(struct row *row)
{
    const struct sumac_run_options step = {.function = do_nothing};
    struct sumac_error error;

    for (uint32_t i = 0; i < WARM_UP + BURST; i++) {
        const double begin_us = now_us();
        if (sumac_strategy_run(row->strategy, &step, NULL, &error) != SUMAC_OK)
            die(error.text);
        if (i >= WARM_UP)
            samples_add(&row->run, now_us() - begin_us);
    }
    for (uint32_t i = 0; i < WARM_UP + BURST; i++) {
        const double begin_us = now_us();
        crew_run(row->crew, work_nothing, NULL);
        if (i >= WARM_UP)
            samples_add(&row->bare, now_us() - begin_us);
    }
}

static void close_row(struct row *row)
{
    row->run_us = samples_median(&row->run);
    row->bare_us = samples_median(&row->bare);
    crew_close(row->crew);
    sumac_strategy_destroy(row->strategy);
}

static void print(bool json)
{
    printf(json ? "[" : "replicas      run us     bare us  run/bare\n");
    for (size_t i = 0; i < ROWS; i++)
        printf(
            json ? "%s\n  {\"replicas\": %u, \"run_us\": %.3f, \"bare_us\": %.3f, "
                   "\"run_over_bare\": %.3f}"
                 : "%s%8u  %10.2f  %10.2f  %8.2f\n",
            json && i > 0 ? "," : "", rows[i].replicas, rows[i].run_us, rows[i].bare_us,
            rows[i].run_us / rows[i].bare_us);
    printf(json ? "\n]\n" : "");
}

int main(int argc, char **argv)
{
    unsigned long rounds = 21;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = strtoul(argv[++i], NULL, 10);
        else
            rounds = 0;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench/strategy [--json] [--rounds N], N of 1 to %u\n", ROUNDS_MAX);
        return 2;
    }
    for (size_t i = 0; i < ROWS; i++)
        open_row(&rows[i]);
    for (unsigned long round = 0; round < rounds; round++)
        for (size_t i = 0; i < ROWS; i++)
            measure(&rows[i]);
    for (size_t i = 0; i < ROWS; i++)
        close_row(&rows[i]);
    print(json);
    return 0;
}
