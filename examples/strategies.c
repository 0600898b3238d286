/* SPDX-License-Identifier: Apache-2.0 */
/* strategies.c -- logistic regression on the digits, under whatever strategy the environment says:
 *
 *     ./strategies                                           alone, one replica
 *     SUMAC_REPLICAS=4 ./strategies                          MirroredStrategy
 *     TF_CONFIG=… ./strategies                               a worker of several, ps or none
 *     sumac run --ps 1 --workers 2 -- ./strategies           ParameterServerStrategy
 *     SUMAC_STRATEGY=multi_worker sumac run --ps 1 --workers 2 -- ./strategies
 *
 *     [--steps N] [--curve FILE]     the loss of each step, as comma-separated values
 *
 * Of each step's 240 rows every replica takes its share, all add up their gradients, and the sum is
 * applied to the variables. So it is the same training whoever does it, but for how floats round;
 * under ParameterServerStrategy each worker trains on batches of its own.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits_data.h"
#include "sumac/sumac.h"

#ifndef DIGITS_DATA
#define DIGITS_DATA "data/digits.csv.gz"
#endif

#define BATCH 240
#define TOLD_EVERY 50 /* steps */

struct job {
    struct digits_data data;
    struct digits_order order;
    const struct example *batch[BATCH];
    struct sumac_variable *variables[2]; /* weights (PIXELS, CLASSES), biases (CLASSES) */
};

/* Gradients of the cross-entropy of `count` rows, and that, summed. */
static double differentiate(
    const float *weights, const float *biases, const struct example *const *rows, uint32_t count,
    float *d_weights, float *d_biases)
{
    double loss = 0;

    memset(d_weights, 0, PIXELS * CLASSES * sizeof *d_weights);
    memset(d_biases, 0, CLASSES * sizeof *d_biases);
    for (uint32_t n = 0; n < count; n++) {
        double p[CLASSES], sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            double z = (double)biases[c];
            for (int i = 0; i < PIXELS; i++)
                z += (double)rows[n]->pixels[i] * (double)weights[i * CLASSES + c];
            sum += p[c] = exp(z);
        }
        loss -= log(p[rows[n]->label] / sum);
        for (int c = 0; c < CLASSES; c++) {
            const float d = (float)(p[c] / sum - (c == (int)rows[n]->label));
            d_biases[c] += d;
            for (int i = 0; i < PIXELS; i++)
                d_weights[i * CLASSES + c] += d * rows[n]->pixels[i];
        }
    }
    return loss;
}

/* In each replica. */
static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct job *job = context;
    const uint32_t id = sumac_replica_id(replica), count = sumac_replica_count(replica);
    const uint32_t first = BATCH * id / count, end = BATCH * (id + 1) / count;
    float d_weights[PIXELS * CLASSES], d_biases[CLASSES];
    struct sumac_value *values = NULL, *sums = NULL;

    sumac_check(sumac_variable_read_all(job->variables, 2, replica, &values, error), error);
    const double loss = differentiate(
        sumac_value_data(sumac_value_item(values, 0)),
        sumac_value_data(sumac_value_item(values, 1)), job->batch + first, end - first, d_weights,
        d_biases);
    struct sumac_value *const gradients[] = {
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(PIXELS, CLASSES), d_weights),
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(CLASSES), d_biases)};
    struct sumac_value *const both[] = {sumac_value_list(gradients, 2), sumac_value_float64(loss)};
    struct sumac_value *own = sumac_value_list(both, 2);
    enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, own, NULL, &sums, error);
    if (status == SUMAC_OK)
        status =
            sumac_variable_apply_all(job->variables, 2, replica, sumac_value_item(sums, 0), error);
    if (status == SUMAC_OK)
        sumac_replica_return(replica, sumac_value_ref(sumac_value_item(sums, 1)));
    sumac_value_unref(values);
    sumac_value_unref(own);
    sumac_value_unref(sums);
    return status;
}

static struct sumac_variable *
create(struct sumac_strategy *strategy, const char *name, struct sumac_shape shape)
{
    const struct sumac_variable_options options = {
        .name = name,
        .shape = shape, /* zeros */
        .function = SUMAC_FUNCTION("sgd", {"learning_rate", 0.5 / BATCH})};
    struct sumac_variable *variable = NULL;
    struct sumac_error error;

    sumac_check(sumac_variable_create(strategy, &options, &variable, &error), &error);
    return variable;
}

/* The mean loss of one step. */
static double train(struct sumac_strategy *strategy, struct job *job)
{
    const struct sumac_run_options each = {.function = step, .context = job};
    struct sumac_value *loss = NULL, *losses = NULL;
    struct sumac_error error;

    for (int i = 0; i < BATCH; i++)
        job->batch[i] = &job->data.training[digits_order_next(&job->order)];
    sumac_check(sumac_strategy_run(strategy, &each, &loss, &error), &error);
    sumac_check(sumac_strategy_local_results(strategy, loss, &losses, &error), &error);
    const double mean = sumac_value_as_float64(sumac_value_item(losses, 0)) / BATCH;
    sumac_value_unref(loss);
    sumac_value_unref(losses);
    return mean;
}

/* The value of the option at argv[i] as *steps or *curve; false: there is no such option, or no
 * value that it can have. */
static bool read_option(char **argv, int i, uint64_t *steps, FILE **curve)
{
    const char *const value = argv[i + 1];
    char *end = NULL;

    if (value != NULL && strcmp(argv[i], "--curve") == 0) {
        *curve = fopen(value, "w");
        if (*curve == NULL)
            perror(value);
        return *curve != NULL;
    }
    if (value == NULL || strcmp(argv[i], "--steps") != 0)
        return false;
    *steps = strtoull(value, &end, 10);
    return end != value && *end == '\0';
}

int main(int argc, char **argv)
{
    struct job job = {.variables = {NULL}};
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error;
    uint64_t steps = 400;
    FILE *curve = NULL;

    for (int i = 1; i < argc; i += 2)
        if (!read_option(argv, i, &steps, &curve)) {
            fprintf(stderr, "usage: %s [--steps N] [--curve FILE]\n", argv[0]);
            return 2;
        }
    if (!digits_data_read(DIGITS_DATA, &job.data) ||
        !digits_order_init(&job.order, job.data.training_count, 1))
        return EXIT_FAILURE;
    sumac_check(sumac_strategy_from_environment(&strategy, &error), &error);
    job.variables[0] = create(strategy, "weights", SUMAC_SHAPE(PIXELS, CLASSES));
    job.variables[1] = create(strategy, "biases", SUMAC_SHAPE(CLASSES));
    printf(
        "%s, %" PRIu32 " replicas\n", sumac_strategy_name(strategy),
        sumac_strategy_num_replicas_in_sync(strategy));
    for (uint64_t i = 1; i <= steps; i++) {
        const double loss = train(strategy, &job);
        if (i % TOLD_EVERY == 0 || i == steps)
            printf("step %-5" PRIu64 " loss %.9f\n", i, loss);
        if (curve != NULL)
            fprintf(curve, "%" PRIu64 ",%.9f\n", i, loss);
    }
    if (curve != NULL)
        (void)fclose(curve);
    sumac_check(sumac_strategy_close(strategy, &error), &error); /* with its variables */
    free(job.order.indices);
    digits_data_free(&job.data);
    return EXIT_SUCCESS;
}
