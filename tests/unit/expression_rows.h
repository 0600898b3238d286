/* SPDX-License-Identifier: Apache-2.0 */
/* expression_rows.h -- the built-in update functions as expressions: what is said of them in
 * docs/EXPRESSIONS.md, held against their loops by tests/unit/expression_rows.c.
 *
 * Hyperparameters have the built-in ones' names and defaults, slots are in the built-in ones'
 * order. delayed_nesterov alone has none: the language has no remainder of a division.
 */
#pragma once

struct expression_row {
    const char *name; /* of the built-in function */
    const char *text;
    const char *fixed; /* a hyperparameter that is 0 or 1 and chooses the slots; NULL: none */
    double fixed_to;   /* what it is here */
};

static const struct expression_row expression_rows[] = {
    {.name = "assign", .text = "value = g\n"},
    {.name = "assign_add", .text = "value = value + g\n"},
    {.name = "assign_sub", .text = "value = value - g\n"},
    {.name = "sgd",
     .text = "hyperparameters: learning_rate = 0.01\n"
             "value = value - learning_rate * g\n"},
    {.name = "momentum",
     .text = "hyperparameters: learning_rate = 0.01, momentum = 0.9, nesterov = 0\n"
             "slots: a = 0\n"
             "a = momentum * a + g\n"
             "value = value - learning_rate * where(nesterov == 1, g + momentum * a, a)\n"},
    {.name = "multiply", .text = "value = value * g\n"},
    {.name = "divide", .text = "value = value / g\n"},
    {.name = "min", .text = "value = min(value, g)\n"},
    {.name = "max", .text = "value = max(value, g)\n"},
    {.name = "adagrad",
     .text =
         "hyperparameters: learning_rate = 0.001, initial_accumulator_value = 0.1, epsilon = 1e-7\n"
         "slots: a = initial_accumulator_value\n"
         "a = a + g * g\n"
         "value = value - learning_rate * g / (sqrt(a) + epsilon)\n"},
    {.name = "rmsprop",
     .text = "hyperparameters: learning_rate = 0.001, rho = 0.9, momentum = 0, epsilon = 1e-7\n"
             "slots: s = 0, u = 0\n"
             "s = rho * s + (1 - rho) * (g * g)\n"
             "u = momentum * u + learning_rate * g / sqrt(s + epsilon)\n"
             "value = value - u\n",
     .fixed = "centered",
     .fixed_to = 0},
    {.name = "rmsprop",
     .text = "hyperparameters: learning_rate = 0.001, rho = 0.9, momentum = 0, epsilon = 1e-7\n"
             "slots: s = 0, u = 0, c = 0\n"
             "s = rho * s + (1 - rho) * (g * g)\n"
             "c = rho * c + (1 - rho) * g\n"
             "u = momentum * u + learning_rate * g / sqrt(s - c * c + epsilon)\n"
             "value = value - u\n",
     .fixed = "centered",
     .fixed_to = 1},
    {.name = "adam",
     .text = "hyperparameters: learning_rate = 0.001, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7,"
             " initial_accumulator_value = 0, bias_correction = 1\n"
             "slots: m = 0, v = initial_accumulator_value\n"
             "m = m + (g - m) * (1 - beta_1)\n"
             "v = v + (g * g - v) * (1 - beta_2)\n"
             "corrected = learning_rate * sqrt(1 - pow(beta_2, step)) / (1 - pow(beta_1, step))\n"
             "rate = where(bias_correction == 1, corrected, learning_rate)\n"
             "value = value - rate * m / (sqrt(v) + epsilon)\n"},
    {.name = "adamw",
     .text = "hyperparameters: learning_rate = 0.001, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7,"
             " initial_accumulator_value = 0, bias_correction = 1, weight_decay = 0.004\n"
             "slots: m = 0, v = initial_accumulator_value\n"
             "m = m + (g - m) * (1 - beta_1)\n"
             "v = v + (g * g - v) * (1 - beta_2)\n"
             "corrected = learning_rate * sqrt(1 - pow(beta_2, step)) / (1 - pow(beta_1, step))\n"
             "rate = where(bias_correction == 1, corrected, learning_rate)\n"
             "decayed = value - learning_rate * weight_decay * value\n"
             "value = decayed - rate * m / (sqrt(v) + epsilon)\n"},
    {.name = "yogi",
     .text = "hyperparameters: learning_rate = 0.01, beta_1 = 0.9, beta_2 = 0.999, epsilon = 0.001,"
             " initial_accumulator_value = 1e-6, bias_correction = 1\n"
             "slots: m = 0, v = initial_accumulator_value\n"
             "m = m + (g - m) * (1 - beta_1)\n"
             "v = v - (1 - beta_2) * sign(v - g * g) * (g * g)\n"
             "corrected = learning_rate * sqrt(1 - pow(beta_2, step)) / (1 - pow(beta_1, step))\n"
             "rate = where(bias_correction == 1, corrected, learning_rate)\n"
             "value = value - rate * m / (sqrt(v) + epsilon)\n"},
    {.name = "nadam",
     .text =
         "hyperparameters: learning_rate = 0.001, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7\n"
         "slots: m = 0, v = 0\n"
         "m = m + (g - m) * (1 - beta_1)\n"
         "v = v + (g * g - v) * (1 - beta_2)\n"
         "rate = learning_rate * sqrt(1 - pow(beta_2, step))\n"
         "behind = rate * beta_1 / (1 - pow(beta_1, step + 1))\n"
         "ahead = rate * (1 - beta_1) / (1 - pow(beta_1, step))\n"
         "value = value - (behind * m + ahead * g) / (sqrt(v) + epsilon)\n"},
    {.name = "adamax",
     .text =
         "hyperparameters: learning_rate = 0.001, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7\n"
         "slots: m = 0, v = 0\n"
         "m = m + (g - m) * (1 - beta_1)\n"
         "v = max(abs(g), beta_2 * v)\n"
         "rate = learning_rate / (1 - pow(beta_1, step))\n"
         "value = value - rate * m / (v + epsilon)\n"},
    {.name = "adadelta",
     .text = "hyperparameters: learning_rate = 0.001, rho = 0.95, epsilon = 1e-7\n"
             "slots: a = 0, d = 0\n"
             "a = rho * a + (1 - rho) * (g * g)\n"
             "u = g * sqrt(d + epsilon) / sqrt(a + epsilon)\n"
             "d = rho * d + (1 - rho) * (u * u)\n"
             "value = value - learning_rate * u\n"},
    {.name = "ftrl",
     .text = "hyperparameters: learning_rate = 0.001, learning_rate_power = -0.5,"
             " initial_accumulator_value = 0.1, l1 = 0, l2 = 0, l2_shrinkage = 0\n"
             "slots: n = initial_accumulator_value, z = 0\n"
             "p = -learning_rate_power\n"
             "before = where(p == 0.5, sqrt(n), pow(n, p))\n"
             "n = n + g * g\n"
             "after = where(p == 0.5, sqrt(n), pow(n, p))\n"
             "z = z + (g + 2 * l2_shrinkage * value - (after - before) / learning_rate * value)\n"
             "q = after / learning_rate + 2 * l2\n"
             "value = where(abs(z) > l1, (where(z > 0, l1, -l1) - z) / q, 0)\n"},
    {.name = "lion",
     .text =
         "hyperparameters: learning_rate = 1e-4, beta_1 = 0.9, beta_2 = 0.99, weight_decay = 0\n"
         "slots: m = 0\n"
         "u = sign(beta_1 * m + (1 - beta_1) * g)\n"
         "value = value - learning_rate * (u + weight_decay * value)\n"
         "m = beta_2 * m + (1 - beta_2) * g\n"},
};
#define EXPRESSION_ROWS (sizeof expression_rows / sizeof expression_rows[0])
