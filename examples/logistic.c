/* SPDX-License-Identifier: Apache-2.0 */
/* logistic.c -- logistic regression ("is this digit a 0?") under any strategy, on one screen:
 *     ./logistic    SUMAC_REPLICAS=4 ./logistic    sumac run --ps 2 --workers 2 -- ./logistic */
#include <err.h>
#include <math.h>
#include <stdio.h>

#include "digits_data.h"
#include "sumac/sumac.h"

enum { BATCH = 240, STEPS = 400, WEIGHTS = PIXELS + 1 }; /* the last weight is the bias */
static struct digits_data digits;
static struct sumac_variable *model; /* (WEIGHTS) */

/* Each replica takes its share of the rows. The model changes by the sum of all gradients: that is
 * its aggregation. */
static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    const uint32_t id = sumac_replica_id(replica), number = *(const uint32_t *)context;
    float gradient[WEIGHTS] = {0}, loss = 0;
    struct sumac_value *value, *sum;

    sumac_check(sumac_variable_read(model, replica, &value, error), error);
    const float *weights = sumac_value_data(value);
    for (uint32_t at = id; at < BATCH; at += sumac_replica_count(replica)) {
        const struct example *row = &digits.training[(number * BATCH + at) % digits.training_count];
        float z = weights[PIXELS];
        for (int i = 0; i < PIXELS; i++)
            z += weights[i] * row->pixels[i];
        const float p = 1 / (1 + expf(-z)), off = p - (row->label == 0);
        loss -= logf(row->label == 0 ? p : 1 - p) / BATCH;
        for (int i = 0; i < WEIGHTS; i++)
            gradient[i] += off * (i < PIXELS ? row->pixels[i] : 1) / BATCH;
    }
    struct sumac_value *change = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(WEIGHTS), gradient);
    struct sumac_value *own = sumac_value_float32(loss);
    sumac_check(sumac_variable_assign_sub(model, replica, change, NULL, error), error);
    sumac_check(sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, own, NULL, &sum, error), error);
    if (id == 0 && (number + 1) % 100 == 0)
        printf("step %u: loss %.6f\n", number + 1, (double)sumac_value_as_float32(sum));
    sumac_value_unref(value);
    sumac_value_unref(change);
    sumac_value_unref(own);
    sumac_value_unref(sum);
    return SUMAC_OK;
}

int main(int argc, char **argv)
{
    struct sumac_variable_options options = {.name = "model", .shape = SUMAC_SHAPE(WEIGHTS)};
    struct sumac_strategy *strategy;
    struct sumac_error error;

    if (argc > 1 || !digits_data_read(DIGITS_DATA, &digits))
        errx(2, "usage: %s, which reads %s", argv[0], DIGITS_DATA);
    options.aggregation = SUMAC_REDUCE_SUM;
    options.partitioner.kind = SUMAC_PARTITIONER_SHARD_PER_PS; /* each ps has a part */
    sumac_check(sumac_strategy_from_environment(&strategy, &error), &error);
    sumac_check(sumac_variable_create(strategy, &options, &model, &error), &error);
    for (uint32_t number = 0; number < STEPS; number++) {
        const struct sumac_run_options each = {.function = step, .context = &number};
        sumac_check(sumac_strategy_run(strategy, &each, NULL, &error), &error);
    }
    sumac_check(sumac_strategy_close(strategy, &error), &error); /* with its variables */
}
