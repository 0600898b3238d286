/* SPDX-License-Identifier: Apache-2.0 */
/* rows_worker.c -- `sumac run --ps N --workers 1 -- bench/rows_worker [ROWS]`: how many rows a
 * second go from a worker, over the wire, into a table of ROWS rows of 64 float32 with adagrad.
 * With --workers 2 the second one pulls the whole table, again and again, beside.
 *
 * Pushes of 4096 rows, drawn from 10⁶ of them, anywhere in it, eight under way at a time, for five
 * seconds.
 *
 * `rows_worker one`: what a push of one row takes, one at a time, with a function that counts its
 * steps (adam) beside one that does not (adagrad), in turn.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/client.h"

#define COLUMNS 64u
#define ROWS_PER_PUSH 4096u
#define DRAWN_FROM_MAX 1000000u
#define UNDER_WAY 8u
#define SECONDS 5.0

static int64_t indices[UNDER_WAY][ROWS_PER_PUSH];
static float values[UNDER_WAY][ROWS_PER_PUSH * COLUMNS];
static struct sumac_tensor rows[UNDER_WAY];
static uint64_t state = 1;

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static enum sumac_status begin(
    struct sumac_client *client, struct sumac_client_variable *variable, uint32_t place,
    uint64_t count, struct sumac_push **push, struct sumac_error *error)
{
    const struct sumac_delta delta = {
        .variable = variable,
        .value =
            sumac_tensor_over(values[place], SUMAC_FLOAT32, SUMAC_SHAPE(ROWS_PER_PUSH, COLUMNS)),
        .indices = &rows[place]};

    const uint64_t from = count < DRAWN_FROM_MAX ? count : DRAWN_FROM_MAX, apart = count / from;

    for (uint32_t i = 0; i < ROWS_PER_PUSH; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        indices[place][i] = (int64_t)((state >> 33) % from * apart); /* anywhere in the table */
    }
    rows[place] = sumac_tensor_over(indices[place], SUMAC_INT64, SUMAC_SHAPE(ROWS_PER_PUSH));
    return sumac_client_push(client, &delta, 1, NULL, push, error);
}

/* The table, as often as there is time for. */
static enum sumac_status read_beside(
    struct sumac_client *client, struct sumac_client_variable *variable, uint64_t count,
    struct sumac_error *error)
{
    float *table = malloc(count * COLUMNS * sizeof *table);
    const struct sumac_fetch fetch = {
        .variable = variable,
        .into = sumac_tensor_over(table, SUMAC_FLOAT32, SUMAC_SHAPE(count, COLUMNS))};
    const double start = now_seconds();
    enum sumac_status status = table == NULL ? SUMAC_RESOURCE_EXHAUSTED : SUMAC_OK;
    uint64_t pulls = 0;

    while (status == SUMAC_OK && now_seconds() - start < SECONDS) {
        status = sumac_client_pull(client, &fetch, 1, NULL, NULL, error);
        pulls++;
    }
    if (status == SUMAC_OK)
        printf(
            "%" PRIu64 " pulls of all %" PRIu64 " rows in %.1f s\n", pulls, count,
            now_seconds() - start);
    free(table);
    return status;
}

/* ---- one row */

#define TURNS 11u
#define PUSHES_PER_TURN 400u
#define ONES_ROWS 1000u

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One turn: microseconds of a push of one row, whichever shard it is of. */
static enum sumac_status take_turn(
    struct sumac_client *client, struct sumac_client_variable *variable, double *push_us,
    struct sumac_error *error)
{
    const double start = now_seconds();
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < PUSHES_PER_TURN; i++) {
        int64_t row = (int64_t)(i * 7919 % ONES_ROWS);
        const struct sumac_tensor index = sumac_tensor_over(&row, SUMAC_INT64, SUMAC_SHAPE(1));
        const struct sumac_delta delta = {
            .variable = variable,
            .value = sumac_tensor_over(values[0], SUMAC_FLOAT32, SUMAC_SHAPE(1, COLUMNS)),
            .indices = &index};
        status = sumac_client_push(client, &delta, 1, NULL, NULL, error);
    }
    *push_us = (now_seconds() - start) * 1e6 / PUSHES_PER_TURN;
    return status;
}

static enum sumac_status push_ones(struct sumac_client *client, struct sumac_error *error)
{
    static const char *const functions[] = {"adagrad", "adam"};
    struct sumac_client_variable *variables[2] = {NULL, NULL};
    double push_us[2][TURNS], ratios[TURNS];
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < 2; i++) {
        const struct sumac_client_variable_options options = {
            .name = functions[i],
            .dtype = SUMAC_FLOAT32,
            .shape = SUMAC_SHAPE(ONES_ROWS, COLUMNS),
            .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS},
            .function = {.name = functions[i]}};
        status = sumac_client_variable_create(client, &options, &variables[i], error);
    }
    for (uint32_t turn = 0; status == SUMAC_OK && turn < TURNS; turn++) {
        for (uint32_t i = 0; status == SUMAC_OK && i < 2; i++)
            status = take_turn(client, variables[i], &push_us[i][turn], error);
        ratios[turn] = push_us[1][turn] / push_us[0][turn];
    }
    if (status != SUMAC_OK)
        return status;
    qsort(push_us[0], TURNS, sizeof(double), compare_doubles);
    qsort(push_us[1], TURNS, sizeof(double), compare_doubles);
    qsort(ratios, TURNS, sizeof(double), compare_doubles);
    printf(
        "one row: adagrad %.1f us, adam %.1f us, adam %.2f x adagrad (%.2f to %.2f)\n",
        push_us[0][TURNS / 2], push_us[1][TURNS / 2], ratios[TURNS / 2], ratios[0],
        ratios[TURNS - 1]);
    return SUMAC_OK;
}

static enum sumac_status push_many(
    struct sumac_client *client, const struct sumac_client_variable_options *options,
    struct sumac_error *error)
{
    const uint64_t count = options->shape.extent[0];
    struct sumac_push *pushes[UNDER_WAY] = {NULL};
    struct sumac_client_variable *variable = NULL;
    struct sumac_client_facts facts = {.member_index = 0};
    uint64_t made = 0, over = 0;
    enum sumac_status status = sumac_client_variable_create(client, options, &variable, error);

    sumac_client_describe(client, &facts);
    if (status == SUMAC_OK && facts.member_index == 1)
        return read_beside(client, variable, count, error);
    const double start = now_seconds();
    while (status == SUMAC_OK && now_seconds() - start < SECONDS) {
        struct sumac_push **const place = &pushes[made % UNDER_WAY];
        if (made >= UNDER_WAY) {
            status = sumac_push_wait(*place, 0, error);
            over++;
        }
        if (status == SUMAC_OK)
            status = begin(client, variable, (uint32_t)(made % UNDER_WAY), count, place, error);
        made++;
    }
    for (; status == SUMAC_OK && over < made; over++)
        status = sumac_push_wait(pushes[over % UNDER_WAY], 0, error);
    const double seconds = now_seconds() - start;
    if (status == SUMAC_OK)
        printf(
            "%" PRIu64 " pushes of %u rows into %" PRIu64 " in %.1f s: %.2f M rows/s\n", made,
            ROWS_PER_PUSH, count, seconds, (double)made * ROWS_PER_PUSH / seconds / 1e6);
    return status;
}

int main(int argc, char **argv)
{
    const bool ones = argc > 1 && strcmp(argv[1], "one") == 0;
    const uint64_t count = argc > 1 && !ones ? strtoull(argv[1], NULL, 10) : 1000000;
    const struct sumac_client_variable_options options = {
        .name = "table",
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(count, COLUMNS),
        .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS},
        .function = {.name = "adagrad"}};
    struct sumac_client *client = NULL;
    struct sumac_error error = {0};
    enum sumac_status status = sumac_client_open(NULL, &client, &error);

    if (status == SUMAC_OK)
        status = ones ? push_ones(client, &error) : push_many(client, &options, &error);
    if (status == SUMAC_OK)
        status = sumac_client_leave(client, SUMAC_LEAVING_DONE, &error);
    if (status != SUMAC_OK)
        (void)fprintf(stderr, "%s\n", error.text);
    sumac_client_close(client);
    return status == SUMAC_OK ? 0 : 1;
}
