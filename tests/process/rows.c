/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c -- a worker that pushes and pulls rows by index, and compares them with a plain loop; and
 * compares a variable of one shard with one of several after the same pushes: `sumac run --ps 2
 * --workers 1 -- rows`. Exits with 0 if all are the same. */
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

static enum sumac_status push_some(
    struct sumac_client *client, struct sumac_client_variable *variable, struct sumac_error *error)
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
    return sumac_client_push(client, &delta, 1, NULL, NULL, error);
}

/* Some of them several times, in any order, into memory that has something else. */
static enum sumac_status pull_some(
    struct sumac_client *client, struct sumac_client_variable *variable, struct sumac_error *error)
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
    const enum sumac_status status = sumac_client_pull(client, &fetch, 1, NULL, NULL, error);
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
    struct sumac_client *client, struct sumac_client_variable *variable, int64_t row,
    const char *text)
{
    struct sumac_tensor rows = sumac_tensor_over(&row, SUMAC_INT64, SUMAC_SHAPE(1));
    const struct sumac_tensor one =
        sumac_tensor_over(values, SUMAC_FLOAT32, SUMAC_SHAPE(1, COLUMNS));
    const struct sumac_delta delta = {.variable = variable, .value = one, .indices = &rows};
    const struct sumac_fetch fetch = {.variable = variable, .into = one, .indices = &rows};
    struct sumac_error pushed = {0}, pulled = {0};

    if (sumac_client_push(client, &delta, 1, NULL, NULL, &pushed) == SUMAC_INVALID_ARGUMENT &&
        sumac_client_pull(client, &fetch, 1, NULL, NULL, &pulled) == SUMAC_INVALID_ARGUMENT &&
        strstr(pushed.text, text) != NULL && strstr(pulled.text, text) != NULL)
        return;
    (void)fprintf(stderr, "row %" PRId64 ": %s; %s\n", row, pushed.text, pulled.text);
    exit(1);
}

/* ---- one shard, or several */

#define SMALL_ROWS 7u
#define SMALL_COLUMNS 2u
#define SHARDS 3u
#define COUNTING_PUSHES 6u

enum { ONE, MANY, BOTH };

/* How a variable of one shard and another of several are made, and pushed to. */
struct counting {
    const char *name, *function;
    const struct sumac_schedule *schedule; /* at the create */
    const struct sumac_schedule *set;   /* by the first push, of another client where `elsewhere` */
    const struct sumac_schedule *named; /* by each push */
    bool found;                         /* by another client, which pushes */
    bool by_range;
};

static enum sumac_status create_both(
    struct sumac_client *client, const struct counting *counting,
    struct sumac_client_variable *variables[BOTH], struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = ONE; status == SUMAC_OK && i < BOTH; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s/%u", counting->name, i);
        const struct sumac_client_variable_options options = {
            .name = name,
            .dtype = SUMAC_FLOAT32,
            .shape = SUMAC_SHAPE(SMALL_ROWS, SMALL_COLUMNS),
            .initializer = SUMAC_INITIALIZER_ONES,
            .partitioner =
                {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = i == ONE ? 1 : SHARDS},
            .function = {.name = counting->function, .schedule = counting->schedule}};
        status = sumac_client_variable_create(client, &options, &variables[i], error);
    }
    return status;
}

/* The schedule that both have from here on. */
static enum sumac_status set_schedule(
    struct sumac_client *client, struct sumac_client_variable *const variables[BOTH],
    const struct counting *counting, struct sumac_error *error)
{
    const struct sumac_function function = {.name = counting->function, .schedule = counting->set};
    const struct sumac_delta deltas[BOTH] = {
        {.variable = variables[ONE], .function = &function, .sets_hyperparameters = true},
        {.variable = variables[MANY], .function = &function, .sets_hyperparameters = true}};

    return sumac_client_push(client, deltas, BOTH, NULL, NULL, error);
}

/* Another client, which learns of the variables now: theirs become `variables`. */
static enum sumac_status find_both(
    struct sumac_client **client, struct sumac_client_variable *variables[BOTH],
    struct sumac_error *error)
{
    const struct sumac_client_options observer = {.observer = true};
    enum sumac_status status = sumac_client_open(&observer, client, error);

    for (uint32_t i = ONE; status == SUMAC_OK && i < BOTH; i++)
        status = sumac_client_variable_find(
            *client, sumac_client_variable_name(variables[i]), &variables[i], error);
    return status;
}

/* Two rows of one shard alone, which is another one each time. */
static enum sumac_status push_to_both(
    struct sumac_client *client, struct sumac_client_variable *const variables[BOTH],
    uint32_t number, const struct counting *counting, struct sumac_error *error)
{
    static const float gradient[2 * SMALL_COLUMNS] = {1, -2, 0.5f, 3};
    const struct sumac_shard shard =
        sumac_client_variable_shard(variables[MANY], number * 2 % SHARDS);
    int64_t row[] = {(int64_t)shard.rows.first + 1, (int64_t)shard.rows.first};
    const struct sumac_tensor rows = sumac_tensor_over(row, SUMAC_INT64, SUMAC_SHAPE(2));
    const struct sumac_function named = {.name = counting->function, .schedule = counting->named};
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = ONE; status == SUMAC_OK && i < BOTH; i++) {
        const struct sumac_delta delta = {
            .variable = variables[i],
            .value = sumac_tensor_over(
                (void *)(uintptr_t)gradient, SUMAC_FLOAT32, SUMAC_SHAPE(2, SMALL_COLUMNS)),
            .has_rows = counting->by_range,
            .rows = {.first = shard.rows.first, .count = counting->by_range ? 2 : 0},
            .indices = counting->by_range ? NULL : &rows,
            .function = counting->named != NULL ? &named : NULL};
        status = sumac_client_push(client, &delta, 1, NULL, NULL, error);
    }
    return status;
}

static enum sumac_status push_all(
    struct sumac_client *client, const struct counting *counting,
    struct sumac_client_variable *variables[BOTH], struct sumac_error *error)
{
    struct sumac_client *other = NULL;
    enum sumac_status status = SUMAC_OK;

    if (counting->set != NULL)
        status = set_schedule(client, variables, counting, error);
    if (counting->found && status == SUMAC_OK)
        status = find_both(&other, variables, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < COUNTING_PUSHES; i++)
        status = push_to_both(other != NULL ? other : client, variables, i, counting, error);
    if (other != NULL && status == SUMAC_OK)
        status = sumac_client_leave(other, SUMAC_LEAVING_DONE, error);
    sumac_client_close(other);
    return status;
}

static enum sumac_status
compare(struct sumac_client *client, const struct counting *counting, struct sumac_error *error)
{
    float value[BOTH][SMALL_ROWS * SMALL_COLUMNS] = {{0}, {0}};
    struct sumac_client_variable *variables[BOTH] = {NULL, NULL}, *pushed[BOTH];
    enum sumac_status status = create_both(client, counting, variables, error);

    memcpy(pushed, variables, sizeof pushed);
    if (status == SUMAC_OK)
        status = push_all(client, counting, pushed, error);
    for (uint32_t i = ONE; status == SUMAC_OK && i < BOTH; i++) {
        const struct sumac_fetch fetch = {
            .variable = variables[i],
            .into =
                sumac_tensor_over(value[i], SUMAC_FLOAT32, SUMAC_SHAPE(SMALL_ROWS, SMALL_COLUMNS))};
        status = sumac_client_pull(client, &fetch, 1, NULL, NULL, error);
    }
    if (status != SUMAC_OK || memcmp(value[ONE], value[MANY], sizeof value[ONE]) == 0)
        return status;
    for (uint32_t i = 0; i < SMALL_ROWS * SMALL_COLUMNS; i++)
        (void)fprintf(
            stderr, "%s, element %u: %.9g in one shard, %.9g in several\n", counting->name, i,
            (double)value[ONE][i], (double)value[MANY][i]);
    exit(1);
}

/* t and the learning rate do not depend on the number of shards. */
static enum sumac_status compare_all(struct sumac_client *client, struct sumac_error *error)
{
    static const struct sumac_schedule decay = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 1, .decay_rate = 0.5};
    static const struct counting countings[] = {
        {.name = "adam", .function = "adam"},
        {.name = "adam_by_range", .function = "adam", .by_range = true},
        {.name = "step", .function = "shrink"},
        {.name = "scheduled", .function = "sgd", .schedule = &decay},
        {.name = "scheduled_by_range", .function = "sgd", .schedule = &decay, .by_range = true},
        {.name = "set", .function = "sgd", .set = &decay},
        {.name = "found", .function = "sgd", .set = &decay, .found = true},
        {.name = "named", .function = "sgd", .named = &decay}};
    static const char text[] = "hyperparameters: learning_rate = 0.01\n"
                               "value = value - learning_rate / step * g\n";
    enum sumac_status status = sumac_client_define(client, "shrink", text, sizeof text - 1, error);

    for (size_t i = 0; status == SUMAC_OK && i < sizeof countings / sizeof *countings; i++)
        status = compare(client, &countings[i], error);
    return status;
}

int main(void)
{
    const struct sumac_client_variable_options options = {
        .name = "table",
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(ROWS, COLUMNS),
        .partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 3},
        .function = {.name = "assign_add"}};
    struct sumac_client *client = NULL;
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error = {0};
    enum sumac_status status = sumac_client_open(NULL, &client, &error);

    if (status == SUMAC_OK)
        status = sumac_client_variable_create(client, &options, &variable, &error);
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
        status = compare_all(client, &error);
    if (status == SUMAC_OK)
        status = sumac_client_leave(client, SUMAC_LEAVING_DONE, &error);
    if (status != SUMAC_OK)
        (void)fprintf(stderr, "%s\n", error.text);
    sumac_client_close(client);
    return status == SUMAC_OK ? 0 : 1;
}
