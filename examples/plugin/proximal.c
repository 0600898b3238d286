/* SPDX-License-Identifier: Apache-2.0 */
/* proximal.c -- a plug-in with two update functions.
 *
 * proximal_sgd is a step of gradient descent, then the proximal operator of λ·|θ|, which draws each
 * element towards 0 and makes those 0 that come near it (ISTA: Daubechies, Defrise and De Mol,
 * 2004; Beck and Teboulle, 2009).
 *
 * signum keeps an average of the gradients and goes by its sign alone (Bernstein and others, 2018).
 *
 *     cc -O3 -ffp-contract=off -fPIC -shared -o libproximal.so proximal.c \
 *         $(pkg-config --cflags sumac)
 *     sumac ps --plugin ./libproximal.so
 */
#include <math.h>
#include <sumac/plugin.h>

/* One loop for each type: the compiler makes vectors of it. */
#define LOOPS(type, absolute, sign)                                                                \
    static void proximal_##type(const struct sumac_plugin_tile *tile)                              \
    {                                                                                              \
        const type rate = (type)tile->hyperparameters[0];                                          \
        const type threshold = rate * (type)tile->hyperparameters[1];                              \
        const type *value = tile->value_in, *gradient = tile->gradient;                            \
        type *out = tile->value_out;                                                               \
                                                                                                   \
        for (uint64_t i = 0; i < tile->count; i++) {                                               \
            const type stepped = value[i] - rate * gradient[i];                                    \
            const type left = absolute(stepped) - threshold;                                       \
            out[i] = left > 0 ? sign(left, stepped) : 0;                                           \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void signum_##type(const struct sumac_plugin_tile *tile)                                \
    {                                                                                              \
        const type rate = (type)tile->hyperparameters[0];                                          \
        const type beta = (type)tile->hyperparameters[1];                                          \
        const type *value = tile->value_in, *gradient = tile->gradient;                            \
        const type *momentum = tile->slot_in[0];                                                   \
        type *out = tile->value_out, *momentum_out = tile->slot_out[0];                            \
                                                                                                   \
        for (uint64_t i = 0; i < tile->count; i++) {                                               \
            const type mean = beta * momentum[i] + (1 - beta) * gradient[i];                       \
            out[i] = value[i] - rate * (type)((mean > 0) - (mean < 0));                            \
            momentum_out[i] = mean;                                                                \
        }                                                                                          \
    }

LOOPS(float, fabsf, copysignf)
LOOPS(double, fabs, copysign)

static void proximal(const struct sumac_plugin_tile *tile)
{
    if (tile->dtype == SUMAC_FLOAT64)
        proximal_double(tile);
    else
        proximal_float(tile);
}

static void signum(const struct sumac_plugin_tile *tile)
{
    if (tile->dtype == SUMAC_FLOAT64)
        signum_double(tile);
    else
        signum_float(tile);
}

#define FLOATS (SUMAC_PLUGIN_DTYPE(SUMAC_FLOAT32) | SUMAC_PLUGIN_DTYPE(SUMAC_FLOAT64))
#define RATE                                                                                       \
    {                                                                                              \
        .name = "learning_rate", .default_value = 0.01, .most = INFINITY                           \
    }

static const struct sumac_plugin_hyperparameter proximal_takes[] = {
    RATE,
    {.name = "lambda", .default_value = 1e-4, .most = INFINITY},
};

static const struct sumac_plugin_hyperparameter signum_takes[] = {
    RATE,
    {.name = "beta", .default_value = 0.9, .most = 1, .flags = SUMAC_PLUGIN_BELOW_MOST},
};

static const struct sumac_plugin_slot signum_keeps[] = {{.name = "momentum"}};

static const struct sumac_plugin_function functions[] = {
    {.name = "proximal_sgd",
     .rule = "u = θ − η·g; θ = sign(u)·max(|u| − η·λ, 0)",
     .hyperparameters = proximal_takes,
     .hyperparameter_count = 2,
     .dtypes = FLOATS,
     .loop = proximal},
    {.name = "signum",
     .rule = "m = β·m + (1 − β)·g; θ −= η·sign(m)",
     .hyperparameters = signum_takes,
     .hyperparameter_count = 2,
     .slots = signum_keeps,
     .slot_count = 1,
     .dtypes = FLOATS,
     .loop = signum},
};

SUMAC_PLUGIN_EXPORT const struct sumac_plugin sumac_plugin = {
    .abi_version = SUMAC_PLUGIN_ABI_VERSION,
    .function_count = sizeof functions / sizeof functions[0],
    .name = "proximal",
    .version = "1.0",
    .functions = functions,
};
