/* first.c -- a first worker: create a variable, push to it, pull it back, leave.
 *     sumac run --ps 2 --workers 1 -- ./first */
#include <stdio.h>
#include <stdlib.h>

#include "sumac/client.h"

static struct sumac_error error;

static void check(enum sumac_status status)
{
    if (status != SUMAC_OK) {
        fprintf(stderr, "first: %s\n", error.text);
        exit(sumac_exit_code(&error));
    }
}

int main(void)
{
    sumac_tune_malloc();
    struct sumac_cluster cluster; /* from TF_CONFIG */
    check(sumac_cluster_from_environment(NULL, &cluster, &error));
    const struct sumac_client_options who = {.cluster = &cluster};
    struct sumac_client *client;
    check(sumac_client_open(&who, &client, &error));

    const struct sumac_variable_options options = {
        .name = "w",
        .dtype = SUMAC_FLOAT64,
        .shape = {.extent = {4}, .rank = 1},
        .partitioner = SUMAC_PARTITIONER_FIXED_SHARDS,
        .num_shards = 2,                    /* two rows on each of two ps */
        .function = {.name = "assign_add"}, /* what the ps does with what is pushed */
    };
    struct sumac_variable *w;
    check(sumac_client_create(client, &options, &w, &error));

    double values[4] = {1, 2, 3, 4};
    struct sumac_buffer *buffer;
    struct sumac_tensor tensor;
    check(sumac_buffer_wrap(values, sizeof values, (struct sumac_place){0}, NULL, NULL, &buffer));
    check(sumac_tensor_view(buffer, 0, SUMAC_FLOAT64, &options.shape, &tensor));
    struct sumac_push *push; /* applied on both ps or on none, exactly once */
    const struct sumac_delta delta = {.variable = w, .value = tensor};
    check(sumac_client_push(client, &delta, 1, NULL, &push, &error));
    check(sumac_push_wait(push, 0, &error));
    struct sumac_pull *pull;
    const struct sumac_fetch fetch = {.variable = w, .into = tensor};
    check(sumac_client_pull(client, &fetch, 1, NULL, &pull, &error));
    check(sumac_pull_wait(pull, 0, &error));
    printf("w is %g %g %g %g\n", values[0], values[1], values[2], values[3]);
    check(sumac_client_leave(client, SUMAC_LEAVING_DONE, &error)); /* the ps end when all have */
    sumac_buffer_unref(buffer);
    sumac_client_close(client);
    sumac_cluster_deinit(&cluster);
    return 0;
}
