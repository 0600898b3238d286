/* SPDX-License-Identifier: Apache-2.0 */
/* line.c -- workers that fit a line to some points together; the points of a step are shared by a worker's replicas.
 *     sumac run --ps 2 --workers 2 --replicas 2 -- ./line */
#include <stdio.h>
#include <stdlib.h>

#include "sumac/worker.h"

#define POINTS SUMAC_REPLICAS_MAX /* so that every replica has one */

static struct sumac_error error;

static void check(enum sumac_status status)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "line: %s\n", error.text);
    exit(sumac_exit_code(&error));
}

/* The gradient of (a x + b - y)² for y = 3 x + 2, in the mean over this replica's points; on a thread of its own. */
static enum sumac_status step(struct sumac_replica *replica)
{
    const float *line = sumac_tensor_data(&replica->values[0]); /* a, b */
    float *gradient = sumac_tensor_data(&replica->gradients[0]);
    gradient[0] = gradient[1] = 0;
    replica->weight = (POINTS - 1 - replica->id) / replica->count + 1; /* how many points it has */
    for (uint32_t i = replica->id; i < POINTS; i += replica->count) {
        const float x = 2 * (float)i / POINTS - 1, y = 3 * x + 2;
        gradient[0] += 2 * (line[0] * x + line[1] - y) * x / (float)replica->weight;
        gradient[1] += 2 * (line[0] * x + line[1] - y) / (float)replica->weight;
    }
    return SUMAC_OK;
}

int main(void)
{
    struct sumac_client *client;
    check(sumac_client_open(NULL, &client, &error)); /* the task that TF_CONFIG says this is */
    struct sumac_variable *line;
    const struct sumac_variable_options variable = {
        .name = "line",
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(2),
        .function = SUMAC_FUNCTION("sgd", {"learning_rate", 0.05})};
    check(sumac_client_create(client, &variable, &line, &error));
    struct sumac_worker *worker;
    const struct sumac_worker_options options = {
        .client = client, .variables = &line, .variable_count = 1, .step = step};
    check(sumac_worker_create(&options, &worker, &error));

    while (sumac_worker_steps(worker) < 300)
        check(sumac_worker_step(worker, &error)); /* pull, step on every replica, push their mean */
    const float *fitted = sumac_tensor_data(&sumac_worker_values(worker)[0]);
    printf("y = %.2f x + %.2f\n", (double)fitted[0], (double)fitted[1]);

    check(sumac_worker_flush(worker, &error));
    sumac_worker_destroy(worker);
    check(sumac_client_leave(client, SUMAC_LEAVING_DONE, &error)); /* the ps end when all have */
    sumac_client_close(client);
    return 0;
}
