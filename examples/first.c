/* SPDX-License-Identifier: Apache-2.0 */
/* first.c -- a first worker: create a variable, push to it, pull it back, leave.
 *     sumac run --ps 2 --workers 1 -- ./first */
#include <stdio.h>
#include <stdlib.h>

#include "sumac/client.h"

static struct sumac_error error;

static void check(enum sumac_status status)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "first: %s\n", error.text);
    exit(sumac_exit_code(&error));
}

int main(int argc, char **argv)
{
    struct sumac_client *client;

    if (argc > 1) {
        fprintf(stderr, "usage: %s\n", argv[0]);
        return 2;
    }
    check(sumac_client_open(NULL, &client, &error)); /* as TF_CONFIG says */

    struct sumac_client_variable *w;
    const struct sumac_client_variable_options options = {
        .name = "w",
        .dtype = SUMAC_FLOAT64,
        .shape = SUMAC_SHAPE(4),
        .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS}, /* two rows on each of two */
        .function = {.name = "assign_add"}, /* what a ps does with what is pushed */
    };
    check(sumac_client_variable_create(client, &options, &w, &error));

    double values[4] = {1, 2, 3, 4};
    const struct sumac_tensor tensor = sumac_tensor_over(values, SUMAC_FLOAT64, SUMAC_SHAPE(4));
    const struct sumac_delta delta = {.variable = w, .value = tensor};
    check(sumac_client_push(client, &delta, 1, NULL, NULL, &error)); /* on both ps, or none */
    const struct sumac_fetch fetch = {.variable = w, .into = tensor};
    check(sumac_client_pull(client, &fetch, 1, NULL, NULL, &error));
    printf("w is %g %g %g %g\n", values[0], values[1], values[2], values[3]);

    check(sumac_client_leave(client, SUMAC_LEAVING_DONE, &error)); /* the ps end when all have */
    sumac_client_close(client);
    return 0;
}
