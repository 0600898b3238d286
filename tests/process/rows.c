/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c -- a worker that pushes and pulls rows by index, and compares them with a plain loop:
 * `sumac run --ps 2 --workers 1 -- rows`. Exits with 0 if all are the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sumac/client.h"

#define ROWS 5000u
#define COLUMNS 24u
#define PUSHES 30u
#define COUNT_MAX 20000u

static float table[ROWS * COLUMNS];
static float values[COUNT_MAX * COLUMNS];
static int64_t indices[COUNT_MAX];
static uint32_t state = 1;

static uint32_t draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Sums of a row's occurrences in their order, then one addition. */
static void add_plainly(uint32_t count)
{
    static float sums[ROWS * COLUMNS];
    static bool occurs[ROWS];

    memset(occurs, 0, sizeof occurs);
    for (uint32_t i = 0; i < count; i++) {
        float *sum = &sums[(size_t)indices[i] * COLUMNS];
        for (uint32_t j = 0; j < COLUMNS; j++)
            sum[j] =
                occurs[indices[i]] ? sum[j] + values[i * COLUMNS + j] : values[i * COLUMNS + j];
        occurs[indices[i]] = true;
    }
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t j = 0; occurs[row] && j < COLUMNS; j++)
            table[row * COLUMNS + j] += sums[row * COLUMNS + j];
    }
}

static enum sumac_status
push_some(struct sumac_client *client, struct sumac_variable *variable, struct sumac_error *error)
{
    const uint32_t count = draw() % COUNT_MAX, among = 1 + draw() % ROWS;
    struct sumac_tensor rows = sumac_tensor_over(indices, SUMAC_INT64, SUMAC_SHAPE(count));
    const struct sumac_delta delta = {
        .variable = variable,
        .value = sumac_tensor_over(values, SUMAC_FLOAT32, SUMAC_SHAPE(count, COLUMNS)),
        .indices = &rows};

    for (uint32_t i = 0; i < count; i++)
        indices[i] = draw() % among;
    for (uint32_t i = 0; i < count * COLUMNS; i++)
        values[i] = (float)draw() / 1000;
    add_plainly(count);
    return sumac_client_push_and_wait(client, &delta, 1, NULL, error);
}

/* Some of them several times, in any order, into memory that has something else. */
static enum sumac_status
pull_some(struct sumac_client *client, struct sumac_variable *variable, struct sumac_error *error)
{
    const uint32_t count = draw() % COUNT_MAX;
    struct sumac_tensor rows = sumac_tensor_over(indices, SUMAC_INT64, SUMAC_SHAPE(count));
    const struct sumac_fetch fetch = {
        .variable = variable,
        .into = sumac_tensor_over(values, SUMAC_FLOAT32, SUMAC_SHAPE(count, COLUMNS)),
        .indices = &rows};

    for (uint32_t i = 0; i < count; i++)
        indices[i] = draw() % ROWS;
    memset(values, 0xff, sizeof values);
    const enum sumac_status status = sumac_client_pull_and_wait(client, &fetch, 1, NULL, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++) {
        if (memcmp(
                &values[i * COLUMNS], &table[(size_t)indices[i] * COLUMNS],
                COLUMNS * sizeof *values) == 0)
            continue;
        (void)fprintf(stderr, "row %" PRId64 " is not as expected\n", indices[i]);
        exit(1);
    }
    return status;
}

/* What there is not is refused at once, and nothing changes. */
static void expect_refused(
    struct sumac_client *client, struct sumac_variable *variable, int64_t row, const char *text)
{
    struct sumac_tensor rows = sumac_tensor_over(&row, SUMAC_INT64, SUMAC_SHAPE(1));
    const struct sumac_tensor one =
        sumac_tensor_over(values, SUMAC_FLOAT32, SUMAC_SHAPE(1, COLUMNS));
    const struct sumac_delta delta = {.variable = variable, .value = one, .indices = &rows};
    const struct sumac_fetch fetch = {.variable = variable, .into = one, .indices = &rows};
    struct sumac_error pushed = {0}, pulled = {0};

    if (sumac_client_push_and_wait(client, &delta, 1, NULL, &pushed) == SUMAC_INVALID_ARGUMENT &&
        sumac_client_pull_and_wait(client, &fetch, 1, NULL, &pulled) == SUMAC_INVALID_ARGUMENT &&
        strstr(pushed.text, text) != NULL && strstr(pulled.text, text) != NULL)
        return;
    (void)fprintf(stderr, "row %" PRId64 ": %s; %s\n", row, pushed.text, pulled.text);
    exit(1);
}

int main(void)
{
    const struct sumac_variable_options options = {
        .name = "table",
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(ROWS, COLUMNS),
        .partitioner = SUMAC_PARTITIONER_FIXED_SHARDS,
        .num_shards = 3,
        .function = {.name = "assign_add"}};
    struct sumac_client *client = NULL;
    struct sumac_variable *variable = NULL;
    struct sumac_error error = {0};
    enum sumac_status status = sumac_client_open(NULL, &client, &error);

    if (status == SUMAC_OK)
        status = sumac_client_create(client, &options, &variable, &error);
    for (uint32_t i = 0; status == SUMAC_OK && i < PUSHES; i++) {
        status = push_some(client, variable, &error);
        if (status == SUMAC_OK)
            status = pull_some(client, variable, &error);
        if (status != SUMAC_OK)
            break;
        expect_refused(client, variable, ROWS, "row 5000 of table (index 0 of 1): its rows are 0");
        expect_refused(client, variable, -1, "row -1 of table");
    }
    if (status == SUMAC_OK)
        status = sumac_client_leave(client, SUMAC_LEAVING_DONE, &error);
    if (status != SUMAC_OK)
        (void)fprintf(stderr, "%s\n", error.text);
    sumac_client_close(client);
    return status == SUMAC_OK ? 0 : 1;
}
