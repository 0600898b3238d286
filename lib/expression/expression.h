/* SPDX-License-Identifier: Apache-2.0 */
/* expression.h -- update functions as texts: read and checked once, planned for each push, run over
 * elements.
 *
 *   hyperparameters: learning_rate = 0.01        read         plan (one push)         run (tiles)
 *   value = value - learning_rate * g      ──►  nodes   ──►  instructions, with  ──►  loops over
 *                                                            numbers folded           tiles
 *
 * The language is in docs/EXPRESSIONS.md. Whatever the text, reading it ends soon and says what is
 * wrong where, and running it touches its elements alone: there are no loops, no addresses and no
 * recursion beyond EXPRESSION_DEPTH_MAX. Nothing here allocates, locks or knows a variable. The
 * same source is compiled for every instruction set with -ffp-contract=off and without libm: every
 * compiler and processor gives the same bits (of a NaN, that it is one).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/status.h"
#include "sumac/tensor.h"

#define EXPRESSION_TEXT_BYTES_MAX 4096u
#define EXPRESSION_NAME_BYTES_MAX 63u
#define EXPRESSION_HYPERPARAMETERS_MAX 16u
#define EXPRESSION_SLOTS_MAX 3u
#define EXPRESSION_TEMPORARIES_MAX 32u
#define EXPRESSION_ASSIGNMENTS_MAX 64u
#define EXPRESSION_DEPTH_MAX 32u  /* parentheses, functions and signs within each other */
#define EXPRESSION_NODES_MAX 128u /* operations, and numbers, names and slots that they read */
#define EXPRESSION_RESULTS_MAX (1u + EXPRESSION_SLOTS_MAX) /* value, then the slots */
#define EXPRESSION_NONE UINT16_MAX

/* A node is a leaf, or an operation of the language: X(NAME, name, shape, result). Its loops are
 * made of `result`, and so is its value for numbers. The shape is the number and kind of the
 * operands a, b, … (the enumeration below). MAGNITUDE, SQUARE_ROOT and POWER are those of the type
 * of the arithmetic. */
#define EXPRESSION_LEAF_LIST(X)                                                                    \
    X(CONSTANT)                                                                                    \
    X(HYPERPARAMETER)                                                                              \
    X(STEP)                                                                                        \
    X(GRADIENT)                                                                                    \
    X(VALUE)                                                                                       \
    X(SLOT)
#define EXPRESSION_OPERATION_LIST(X)                                                               \
    X(NEGATE, negate, ONE, -a)                                                                     \
    X(ABS, abs, ONE, MAGNITUDE(a))                                                                 \
    X(SIGN, sign, ONE, NEAR_SIGN(a))                                                               \
    X(SQRT, sqrt, ONE, SQUARE_ROOT(a))                                                             \
    X(RSQRT, rsqrt, ONE, 1 / SQUARE_ROOT(a))                                                       \
    X(EXP, exp, ONE, near_exp((double)a))                                                          \
    X(LOG, log, ONE, near_log((double)a))                                                          \
    X(TANH, tanh, ONE, near_tanh((double)a))                                                       \
    X(ADD, add, TWO, a + b)                                                                        \
    X(SUBTRACT, subtract, TWO, a - b)                                                              \
    X(MULTIPLY, multiply, TWO, a *b)                                                               \
    X(DIVIDE, divide, TWO, a / b)                                                                  \
    X(MIN, min, TWO, NEAR_MIN(a, b))                                                               \
    X(MAX, max, TWO, NEAR_MAX(a, b))                                                               \
    X(POW, pow, TWO, POWER((double)a, (double)b))                                                  \
    X(LESS, less, COMPARE, a < b)                                                                  \
    X(LESS_EQUAL, less_equal, COMPARE, a <= b)                                                     \
    X(EQUAL, equal, COMPARE, a == b)                                                               \
    X(NOT_EQUAL, not_equal, COMPARE, a != b)                                                       \
    X(WHERE, where, CHOICE, a != 0 ? b : c)
/* A plan has these, too. Fused operations round twice, as those that they are made of. */
#define EXPRESSION_FUSED_LIST(X)                                                                   \
    X(MULTIPLY_ADD, multiply_add, PRODUCT, a *b + c)                                               \
    X(MULTIPLY_SUBTRACT, multiply_subtract, PRODUCT, a *b - c)                                     \
    X(SUBTRACT_PRODUCT, subtract_product, PRODUCT, c - a * b)                                      \
    X(COMBINE, combine, COMBINATION, a *b + c * d)                                                 \
    X(COPY, copy, ONE, a)                                                                          \
    X(FILL, fill, NUMBER, a)

/* How many operands a shape has. Of CHOICE the first is a comparison's result, which COMPARE gives;
 * of COMBINATION the first and third are numbers, and of NUMBER the only one. */
enum {
    EXPRESSION_TAKES_ONE = 1,
    EXPRESSION_TAKES_NUMBER = 1,
    EXPRESSION_TAKES_TWO = 2,
    EXPRESSION_TAKES_COMPARE = 2,
    EXPRESSION_TAKES_CHOICE = 3,
    EXPRESSION_TAKES_PRODUCT = 3,
    EXPRESSION_TAKES_COMBINATION = 4,
};

enum expression_operation {
#define X(name) EXPRESSION_##name,
    EXPRESSION_LEAF_LIST(X)
#undef X
#define X(NAME, name, shape, result) EXPRESSION_##NAME,
        EXPRESSION_OPERATION_LIST(X) EXPRESSION_FUSED_LIST(X)
#undef X
            EXPRESSION_OPERATIONS
};

/* How many operands; 0 of a leaf. */
uint32_t expression_operands(uint8_t operation);

/* Operands are nodes that come before it; of a leaf, in[0] is which constant, hyperparameter or
 * slot. */
struct expression_node {
    uint8_t operation;
    bool is_condition; /* the result of a comparison */
    uint16_t in[3];
};

/* What a text says. A plain value: no pointers, so copies are whole. */
struct expression {
    uint32_t hyperparameter_count;
    char hyperparameter_names[EXPRESSION_HYPERPARAMETERS_MAX][EXPRESSION_NAME_BYTES_MAX + 1];
    double defaults[EXPRESSION_HYPERPARAMETERS_MAX];
    uint32_t slot_count;
    char slot_names[EXPRESSION_SLOTS_MAX][EXPRESSION_NAME_BYTES_MAX + 1];
    double slot_initial[EXPRESSION_SLOTS_MAX];
    uint16_t slot_initial_from[EXPRESSION_SLOTS_MAX]; /* a hyperparameter; NONE: slot_initial */
    bool counts_steps;                                /* it reads step */
    uint32_t node_count, constant_count;
    struct expression_node nodes[EXPRESSION_NODES_MAX];
    double constants[EXPRESSION_NODES_MAX];
    uint16_t results[EXPRESSION_RESULTS_MAX]; /* the nodes that value and the slots become */
};

/* Read a text of `bytes` bytes, which need not end with a NUL.
 *
 * Fails    INVALID_ARGUMENT: "line 3, column 9: …" with the word and what was expected there, or
 *          the bound that is reached; *expression is then of no use.
 * Threads  any.
 */
enum sumac_status expression_read(
    const char *text, size_t bytes, struct expression *expression, struct sumac_error *error);

/* Can it be applied to elements of this type? Those with arithmetic of their own, and half types,
 * whose arithmetic and slots are float32's. */
bool expression_takes(enum sumac_dtype dtype);

/* Operands and outputs are places: registers (tiles of the run's own), then the slice's memory. */
struct expression_instruction {
    uint8_t operation;
    uint8_t scalars; /* bit k: operand k is scalar[k], the same for every element */
    uint8_t out;
    uint8_t in[4];
    double scalar[4];
};

#define EXPRESSION_PLACE_GRADIENT EXPRESSION_NODES_MAX
#define EXPRESSION_PLACE_IN (EXPRESSION_PLACE_GRADIENT + 1u) /* value, then the slots */
#define EXPRESSION_PLACE_OUT (EXPRESSION_PLACE_IN + EXPRESSION_RESULTS_MAX)
#define EXPRESSION_PLACES (EXPRESSION_PLACE_OUT + EXPRESSION_RESULTS_MAX)
#define EXPRESSION_INSTRUCTIONS_MAX (EXPRESSION_NODES_MAX + 2u * EXPRESSION_RESULTS_MAX)

/* One push's program. A plain value, too. */
struct expression_plan {
    enum sumac_dtype dtype;
    uint32_t result_count; /* value and the slots */
    uint32_t register_count, instruction_count;
    struct expression_instruction instructions[EXPRESSION_INSTRUCTIONS_MAX];
};

/* Plan one push: numbers and hyperparameters (expression->hyperparameter_count, in the text's
 * order) are rounded to the type of the arithmetic; what is the same for every element is computed
 * from them, once, in float64; then what is left gets instructions and registers. `step`: 1 in the
 * first push that applies it to a shard. */
void expression_plan(
    const struct expression *expression, enum sumac_dtype dtype, const double *hyperparameters,
    uint64_t step, struct expression_plan *plan);

/* One contiguous run of elements. The outputs may be the inputs (in place), or spare memory; no
 * other pointers may overlap. No pointer need be aligned. */
struct expression_slice {
    uint64_t count;
    void *value_out;
    const void *value_in;
    const void *gradient;
    enum sumac_dtype gradient_dtype; /* the value's, or float32 for a half type's */
    void *slot_out[EXPRESSION_SLOTS_MAX];
    const void *slot_in[EXPRESSION_SLOTS_MAX];
};

/* Threads  any; touches only what the slice names, and 32 KiB of the stack. */
void expression_run(const struct expression_plan *plan, const struct expression_slice *slice);
