/* SPDX-License-Identifier: Apache-2.0 */
/* worker_client.h -- a client that writes down what a worker asks, and the step that it is asked
 * by.
 *
 * It stands for lib/client: one float32 variable per name, a push adds to it when it is waited for.
 * One file of a program includes it.
 */
#pragma once

#include "unit.h"
#include <semaphore.h>

#include "devices.h"
#include "log.h"
#include "replica.h"
#include "sumac/worker.h"

#define ROWS 3

struct sumac_client_variable {
    const char *name;
    enum sumac_dtype dtype;
    float value;
    uint32_t pushes;
};

struct sumac_push {
    float gradient;
    double weight;
};

struct sumac_pull {
    const struct sumac_fetch *fetch;
    size_t count;
    float values[2]; /* of each fetch's variable, as it was when the pull began */
};

struct sumac_client {
    char transcript[256];
    struct sumac_client_variable variables[2];
    struct sumac_push pushes[64];
    uint32_t pushed, waited, under_way_most;
    uint32_t heard; /* the end of so many pushes, whoever waits */
    struct sumac_pull pull;
    uint32_t pulls;
    sem_t next_pull; /* posted by every pull but the first */
    double last_weight, last_scale, last_clip_norm;
    bool earlier_pull, skip_own_pushes, synchronous, last_zero_weight;
    bool bounded;         /* every pull was */
    uint64_t lag_max[64]; /* of each, beside the steps that were pushed before it */
    uint32_t pushed_before[64];
    bool late;           /* no push, and no pull, is over in its time */
    uint32_t timeout_ms; /* of the last wait */
    uint32_t pull_timeout_ms;
    struct sumac_buffer *pushed_from, *pulled_into; /* the last ones', borrowed */
    size_t last_count;
    /* Of the last push, each delta's variable, and its last row. */
    const struct sumac_client_variable *last_variables[2];
    float last_values[2]; /* of another type than float64 read as float32 */
    enum sumac_dtype last_dtypes[2];
    enum sumac_status push_status; /* what the next wait for a push says */
    enum sumac_status pull_status;
    uint32_t member_count; /* of its cluster */
    char said[256];        /* the last line of its log */
};

static inline void write_down(struct sumac_client *client, const char *word)
{
    strncat(client->transcript, word, sizeof client->transcript - strlen(client->transcript) - 1);
}

static struct sumac_client *the_client; /* waits name no client; set by each test's fixture */

const char *client_who(const struct sumac_client *client)
{
    (void)client;
    return "worker 1";
}

void client_log(struct sumac_client *client, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(client->said, sizeof client->said, format, values);
    va_end(values);
}

void sumac_client_describe(struct sumac_client *client, struct sumac_client_facts *facts)
{
    *facts = (struct sumac_client_facts){.member_count = client->member_count};
}

const char *sumac_client_variable_name(const struct sumac_client_variable *variable)
{
    return variable->name;
}
enum sumac_dtype sumac_client_variable_dtype(const struct sumac_client_variable *variable)
{
    return variable->dtype;
}
struct sumac_shape sumac_client_variable_shape(const struct sumac_client_variable *variable)
{
    (void)variable;
    return (struct sumac_shape){.extent = {ROWS}, .rank = 1};
}

static inline float last_row(const struct sumac_tensor *tensor)
{
    const void *const data = sumac_tensor_data(tensor);

    return tensor->dtype == SUMAC_FLOAT64 ? (float)((const double *)data)[ROWS - 1]
                                          : ((const float *)data)[ROWS - 1];
}

enum sumac_status sumac_client_push(
    struct sumac_client *client, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_push **push, struct sumac_error *error)
{
    (void)error;
    write_down(client, "push ");
    assert_int_equal(sumac_buffer_place(deltas[0].value.buffer).kind, SUMAC_PLACE_HOST);
    *push = &client->pushes[client->pushed++];
    (*push)->gradient = last_row(&deltas[0].value);
    client->last_weight = options->weight;
    client->last_zero_weight = options->zero_weight;
    client->last_scale = options->scale;
    client->last_clip_norm = options->clip_norm;
    client->earlier_pull = options->earlier_pull;
    client->synchronous = options->synchronous;
    client->last_count = count;
    for (size_t i = 0; i < count && i < 2; i++) {
        client->last_variables[i] = deltas[i].variable;
        client->last_dtypes[i] = deltas[i].value.dtype;
        client->last_values[i] = last_row(&deltas[i].value);
    }
    client->pushed_from = deltas[0].value.buffer;
    assert_true(options->finishes_step);
    const uint32_t under_way = client->pushed - client->waited;
    if (under_way > client->under_way_most)
        client->under_way_most = under_way;
    return SUMAC_OK;
}

enum sumac_status
sumac_push_wait(struct sumac_push *push, uint32_t timeout_ms, struct sumac_error *error)
{
    struct sumac_client *client = the_client;

    client->timeout_ms = timeout_ms;
    if (client->late)
        return SUMAC_DEADLINE_EXCEEDED;
    write_down(client, "pushed ");
    assert_ptr_equal(push, &client->pushes[client->waited]);
    client->waited++;
    const enum sumac_status status = client->push_status;
    client->push_status = SUMAC_OK;
    if (status != SUMAC_OK) {
        if (error != NULL)
            *error = (struct sumac_error){
                status, status == SUMAC_ABORTED ? SUMAC_REASON_STEP_LATE : SUMAC_REASON_NON_FINITE,
                "refused"};
        return status;
    }
    client->variables[0].value += push->gradient;
    return SUMAC_OK;
}

bool sumac_push_done(struct sumac_push *push)
{
    return push < &the_client->pushes[the_client->heard];
}

enum sumac_status
sumac_pull_wait(struct sumac_pull *pull, uint32_t timeout_ms, struct sumac_error *error)
{
    the_client->timeout_ms = timeout_ms;
    if (the_client->late)
        return SUMAC_DEADLINE_EXCEEDED;
    write_down(the_client, "pulled ");
    const enum sumac_status status = the_client->pull_status;
    the_client->pull_status = SUMAC_OK;
    (void)error;
    if (status != SUMAC_OK)
        return status;
    for (size_t i = 0; i < pull->count; i++)
        for (uint32_t row = 0; row < ROWS; row++)
            ((float *)sumac_tensor_data(&pull->fetch[i].into))[row] = pull->values[i];
    return SUMAC_OK;
}

enum sumac_status sumac_client_pull(
    struct sumac_client *client, const struct sumac_fetch *fetches, size_t count,
    const struct sumac_pull_options *options, struct sumac_pull **pull, struct sumac_error *error)
{
    client->pulled_into = fetches[0].into.buffer;
    client->pull_timeout_ms = options->timeout_ms;
    client->skip_own_pushes = options->skip_own_pushes;
    client->bounded = options->bounded && (client->bounded || client->pulls == 0);
    client->lag_max[client->pulls] = options->lag_max;
    client->pushed_before[client->pulls] = client->pushed;
    write_down(client, "pull ");
    assert_int_equal(sumac_buffer_place(fetches[0].into.buffer).kind, SUMAC_PLACE_HOST);
    client->pull = (struct sumac_pull){.fetch = fetches, .count = count};
    for (size_t i = 0; i < count && i < 2; i++)
        client->pull.values[i] = fetches[i].variable->value;
    if (client->pulls++ > 0)
        sem_post(&client->next_pull);
    if (pull == NULL)
        return sumac_pull_wait(&client->pull, options->timeout_ms, error);
    *pull = &client->pull;
    return SUMAC_OK;
}

/* ---- the step under test: replica i's gradient is value + i + 1, its weight i + 1 */

struct seen {
    uint32_t runs[4];
    float value[4];
    uint64_t step[4];
    uint32_t count[4];
    double given_weight[4];   /* as the replica found it */
    enum sumac_status status; /* what replica 1 returns */
    double weight;            /* of each replica; 0: id + 1; below 0: none */
    double odd_weight;        /* of replica 1, if it is not 0 */
    uint32_t idle;            /* 1 + that of a replica without examples; 0: none */
};

static inline enum sumac_status
observed_step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct seen *seen = context;
    const float value = *(const float *)sumac_tensor_data(sumac_replica_value(replica, 0));

    (void)error;
    seen->runs[sumac_replica_id(replica)]++;
    seen->value[sumac_replica_id(replica)] = value;
    seen->step[sumac_replica_id(replica)] = sumac_replica_step(replica);
    seen->count[sumac_replica_id(replica)] = sumac_replica_count(replica);
    seen->given_weight[sumac_replica_id(replica)] = replica->weight;
    float *gradient = sumac_tensor_data(sumac_replica_gradient(replica, 0));
    for (uint32_t row = 0; row < ROWS; row++)
        gradient[row] = sumac_replica_id(replica) + 1 == seen->idle
                            ? __builtin_nanf("")
                            : value + (float)sumac_replica_id(replica) + 1;
    sumac_replica_set_weight(
        replica, seen->weight < 0   ? 0
                 : seen->weight > 0 ? seen->weight
                                    : sumac_replica_id(replica) + 1);
    if (sumac_replica_id(replica) == 1 && seen->odd_weight != 0)
        sumac_replica_set_weight(replica, seen->odd_weight);
    if (sumac_replica_id(replica) + 1 == seen->idle)
        sumac_replica_set_weight(replica, 0);
    return sumac_replica_id(replica) == 1 ? seen->status : SUMAC_OK;
}

struct fixture {
    struct sumac_client client;
    struct sumac_client_variable *variables[2];
    struct seen seen;
    struct sumac_worker_options options;
    struct sumac_error error;
};

static inline void prepare(struct fixture *fixture, uint32_t replicas)
{
    *fixture = (struct fixture){0};
    fixture->client.variables[0] =
        (struct sumac_client_variable){.name = "w", .dtype = SUMAC_FLOAT32, .value = 10};
    fixture->client.variables[1] =
        (struct sumac_client_variable){.name = "n", .dtype = SUMAC_INT64};
    for (int i = 0; i < 2; i++)
        fixture->variables[i] = &fixture->client.variables[i];
    sem_init(&fixture->client.next_pull, 0, 0);
    the_client = &fixture->client;
    fixture->options = (struct sumac_worker_options){
        .client = &fixture->client,
        .replicas = replicas,
        .variables = fixture->variables,
        .variable_count = 1,
        .step = observed_step,
        .context = &fixture->seen,
    };
}

static inline struct sumac_worker *created(struct fixture *fixture)
{
    struct sumac_worker *worker = NULL;

    assert_int_equal(sumac_worker_create(&fixture->options, &worker, &fixture->error), SUMAC_OK);
    return worker;
}
