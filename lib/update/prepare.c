/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c -- what the loops of each function need of its hyperparameters, once for a run and not
 * once for an element. */
#include "prepare.h"

#include <assert.h>
#include <math.h>

#define VALUE(name) rounded[UPDATE_HYPERPARAMETER_##name]
#define SCALAR(name) slice->scalar[UPDATE_SCALAR_##name]

void prepare_momentum(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double momentum = VALUE(MOMENTUM), nesterov = VALUE(NESTEROV);

    (void)step;
    assert(momentum >= 0 && momentum <= 1);
    assert(nesterov == 0 || nesterov == 1);
    SCALAR(MOMENTUM) = momentum;
    slice->flag = nesterov != 0;
}

void prepare_adagrad(const double *rounded, uint64_t step, struct update_slice *slice)
{
    (void)step;
    SCALAR(EPSILON) = VALUE(EPSILON);
}

void prepare_rmsprop(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double rho = VALUE(RHO), centered = VALUE(CENTERED);

    (void)step;
    assert(rho >= 0 && rho <= 1);
    assert(centered == 0 || centered == 1);
    SCALAR(MOMENTUM) = VALUE(MOMENTUM);
    SCALAR(RHO) = rho;
    SCALAR(ONE_LESS_RHO) = 1 - rho;
    SCALAR(EPSILON) = VALUE(EPSILON);
    slice->flag = centered != 0;
}

/* base^exponent by repeated squaring: no libm, whose last bit differs between processors. */
static double power(double base, uint64_t exponent)
{
    double result = 1;

    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* What adam and its kin have in common. */
static void prepare_moments(const double *rounded, struct update_slice *slice)
{
    const double beta_1 = VALUE(BETA_1), beta_2 = VALUE(BETA_2);

    assert(beta_1 >= 0 && beta_1 < 1); /* also as they are rounded: nothing is divided by 0 */
    assert(beta_2 >= 0 && beta_2 < 1);
    SCALAR(BETA_1) = beta_1;
    SCALAR(BETA_2) = beta_2;
    SCALAR(ONE_LESS_BETA_1) = 1 - beta_1;
    SCALAR(ONE_LESS_BETA_2) = 1 - beta_2;
    SCALAR(EPSILON) = VALUE(EPSILON);
}

void prepare_adam(const double *rounded, uint64_t step, struct update_slice *slice)
{
    assert(step > 0);
    prepare_moments(rounded, slice);
    if (VALUE(BIAS_CORRECTION) != 0)
        SCALAR(RATE) = VALUE(LEARNING_RATE) * sqrt(1 - power(VALUE(BETA_2), step)) /
                       (1 - power(VALUE(BETA_1), step));
}

void prepare_adamw(const double *rounded, uint64_t step, struct update_slice *slice)
{
    prepare_adam(rounded, step, slice);
    SCALAR(DECAY) = VALUE(LEARNING_RATE) * VALUE(WEIGHT_DECAY);
}

void prepare_ftrl(const double *rounded, uint64_t step, struct update_slice *slice)
{
    (void)step;
    assert(VALUE(LEARNING_RATE) > 0);
    assert(VALUE(LEARNING_RATE_POWER) <= 0);
    SCALAR(POWER) = -VALUE(LEARNING_RATE_POWER);
    SCALAR(L1) = VALUE(L1);
    SCALAR(TWICE_L2) = 2 * VALUE(L2);
    SCALAR(TWICE_L2_SHRINKAGE) = 2 * VALUE(L2_SHRINKAGE);
    slice->flag = VALUE(LEARNING_RATE_POWER) == -0.5;
}

void prepare_nadam(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double beta_1 = VALUE(BETA_1);
    const double rate = VALUE(LEARNING_RATE) * sqrt(1 - power(VALUE(BETA_2), step));

    assert(step > 0);
    prepare_moments(rounded, slice);
    SCALAR(RATE) = rate * beta_1 / (1 - power(beta_1, step + 1));
    SCALAR(AHEAD_RATE) = rate * (1 - beta_1) / (1 - power(beta_1, step));
}

void prepare_adamax(const double *rounded, uint64_t step, struct update_slice *slice)
{
    assert(step > 0);
    prepare_moments(rounded, slice);
    SCALAR(RATE) = VALUE(LEARNING_RATE) / (1 - power(VALUE(BETA_1), step));
}

void prepare_adadelta(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double rho = VALUE(RHO);

    (void)step;
    assert(rho >= 0 && rho <= 1);
    SCALAR(RHO) = rho;
    SCALAR(ONE_LESS_RHO) = 1 - rho;
    SCALAR(EPSILON) = VALUE(EPSILON);
}

void prepare_lion(const double *rounded, uint64_t step, struct update_slice *slice)
{
    (void)step;
    prepare_moments(rounded, slice);
    SCALAR(DECAY) = VALUE(WEIGHT_DECAY);
}

/* Every buffer_size-th update is the one that moves the momentum. */
void prepare_delayed_nesterov(const double *rounded, uint64_t step, struct update_slice *slice)
{
    const double size = VALUE(BUFFER_SIZE), activation = VALUE(MOMENTUM_ACTIVATION);
    const double rate = VALUE(LEARNING_RATE), momentum = VALUE(MOMENTUM);

    assert(step > 0);
    assert(size >= 1);
    slice->flag = step % (uint64_t)size == 0;
    SCALAR(MOMENTUM) = momentum;
    SCALAR(SHARE) = 1 / size;
    SCALAR(GRADIENT_RATE) = rate / size;
    SCALAR(RATE) =
        rate * momentum * (slice->flag ? 1 - activation * size + activation : activation);
}
