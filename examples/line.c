/* SPDX-License-Identifier: Apache-2.0 */
/* line.c -- workers that fit a line to some points together; the points of a step are shared by a
 *     worker's replicas. sumac run --ps 2 --workers 2 --replicas 2 -- ./line */
#include <stdio.h>

#include "sumac/worker.h"

#define POINTS SUMAC_REPLICAS_MAX /* so that every replica has one */

/* How far a x + b is from y at point i, for y = 3 x + 2. */
static float difference(const float *line, uint32_t i, float *x)
{
    *x = 2 * (float)i / POINTS - 1;
    return line[0] * *x + line[1] - (3 * *x + 2);
}

/* The mean of (a x + b - y)² over all points. */
static float loss(const struct sumac_tensor *values)
{
    const float *line = sumac_tensor_data(values);
    float sum = 0, x;

    for (uint32_t i = 0; i < POINTS; i++)
        sum += difference(line, i, &x) * difference(line, i, &x);
    return sum / POINTS;
}

/* The gradient of (a x + b - y)² in the mean over the replica's points. Returns their number. */
static uint32_t
differentiate(const float *line, const struct sumac_replica *replica, float *gradient)
{
    const uint32_t id = sumac_replica_id(replica), count = sumac_replica_count(replica);
    const uint32_t points = (POINTS - 1 - id) / count + 1;
    float x;

    gradient[0] = gradient[1] = 0;
    for (uint32_t i = id; i < POINTS; i += count) {
        const float slope = 2 * difference(line, i, &x) / (float)points;
        gradient[0] += slope * x;
        gradient[1] += slope;
    }
    return points;
}

/* Nobody waits for the others, so a gradient is of values that the other workers have changed
 * since, N - 1 times and more. Gradient descent that is τ steps late converges while rate ×
 * curvature < 2 sin(π / (4τ + 2)), about π / 2τ; the curvature here is 2. A fixed rate of 0.05
 * diverges from some 15 workers on. Shared among N workers it converges with 64 as with one,
 * and all of them together go as far in a round as one would. Synchronous workers make one
 * step of a round, so with this rate they take N times as many steps. */
static double rate(struct sumac_client *client)
{
    struct sumac_client_facts facts;

    sumac_client_describe(client, &facts);
    return 0.05 / (facts.member_count > 0 ? facts.member_count : 1);
}

/* In each replica, on a thread of its own. */
static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const float *line = sumac_tensor_data(sumac_replica_value(replica, 0)); /* a, b */
    float *gradient = sumac_tensor_data(sumac_replica_gradient(replica, 0));

    (void)context, (void)error;
    sumac_replica_set_weight(replica, differentiate(line, replica, gradient));
    return SUMAC_OK;
}

int main(void)
{
    struct sumac_client *client;
    struct sumac_client_variable *variable;
    struct sumac_worker *worker;
    struct sumac_error error;

    sumac_check(sumac_client_open(NULL, &client, &error), &error); /* the task of TF_CONFIG */
    const struct sumac_function sgd = SUMAC_FUNCTION("sgd", {"learning_rate", rate(client)});
    const struct sumac_client_variable_options options = {
        .name = "line", .shape = SUMAC_SHAPE(2), .aggregation = SUMAC_REDUCE_MEAN, .function = sgd};
    sumac_check(sumac_client_variable_create(client, &options, &variable, &error), &error);
    const struct sumac_worker_options steps = {
        .client = client, .variables = &variable, .variable_count = 1, .step = step};
    sumac_check(sumac_worker_create(&steps, &worker, &error), &error);
    do /* pull, step on every replica, push their mean */
        sumac_check(sumac_worker_step(worker, &error), &error);
    while (loss(sumac_worker_values(worker)) > 1e-6F && sumac_worker_steps(worker) < 10000);
    const float *line = sumac_tensor_data(sumac_worker_values(worker));
    printf("y = %.2f x + %.2f\n", (double)line[0], (double)line[1]);

    sumac_check(sumac_worker_flush(worker, &error), &error);
    sumac_worker_destroy(worker);
    sumac_check(sumac_client_leave(client, SUMAC_LEAVING_DONE, &error), &error);
    sumac_client_close(client); /* the ps end when all have left */
}
