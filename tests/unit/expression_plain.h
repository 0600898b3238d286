/* SPDX-License-Identifier: Apache-2.0 */
/* expression_plain.h -- an expression's meaning, written down plainly: node by node for each
 * element, without a plan, registers, tiles or fused operations.
 *
 * What is the same for every element is computed in float64 from numbers that are rounded to the
 * type of the arithmetic, the rest in that type.
 */
#pragma once

#include "arithmetic.h"
#include "expression.h"

/* One element, as float32 or float64 (held in a double, which holds both). */
struct plain_element {
    double gradient;
    double results[EXPRESSION_RESULTS_MAX]; /* value and the slots: before, and after */
};

struct plain_number {
    double number;
    bool is_scalar;
};

static inline double plain_round(bool is_float32, double number)
{
    return is_float32 ? (double)(float)number : number;
}

static inline double plain_pow(bool of_elements, double a, double b)
{
    return of_elements ? near_pow_float32(a, b) : near_pow(a, b);
}

static inline double
plain_evaluate(uint8_t operation, bool is_float32, bool is_scalar, const double *in)
{
    const double a = in[0], b = in[1];

    switch (operation) {
    case EXPRESSION_NEGATE:
        return -a;
    case EXPRESSION_ABS:
        return fabs(a);
    case EXPRESSION_SIGN:
        return NEAR_SIGN(a);
    case EXPRESSION_SQRT:
        return sqrt(a);
    case EXPRESSION_RSQRT:
        return is_scalar ? 1 / sqrt(a) : 1 / plain_round(is_float32, sqrt(a));
    case EXPRESSION_EXP:
        return near_exp(a);
    case EXPRESSION_LOG:
        return near_log(a);
    case EXPRESSION_TANH:
        return near_tanh(a);
    case EXPRESSION_ADD:
        return a + b;
    case EXPRESSION_SUBTRACT:
        return a - b;
    case EXPRESSION_MULTIPLY:
        return a * b;
    case EXPRESSION_DIVIDE:
        return a / b;
    case EXPRESSION_MIN:
        return NEAR_MIN(a, b);
    case EXPRESSION_MAX:
        return NEAR_MAX(a, b);
    case EXPRESSION_POW:
        return plain_pow(is_float32 && !is_scalar, a, b);
    case EXPRESSION_LESS:
        return a < b;
    case EXPRESSION_LESS_EQUAL:
        return a <= b;
    case EXPRESSION_EQUAL:
        return a == b;
    case EXPRESSION_NOT_EQUAL:
        return a != b;
    default:
        return a > 0 ? b : in[2];
    }
}

static inline struct plain_number plain_leaf(
    const struct expression *expression, bool is_float32, const struct expression_node *node,
    const struct plain_element *element, const double *hyperparameters, uint64_t step)
{
    switch (node->operation) {
    case EXPRESSION_CONSTANT:
        return (struct plain_number){
            plain_round(is_float32, expression->constants[node->in[0]]), true};
    case EXPRESSION_HYPERPARAMETER:
        return (struct plain_number){plain_round(is_float32, hyperparameters[node->in[0]]), true};
    case EXPRESSION_STEP:
        return (struct plain_number){(double)step, true};
    case EXPRESSION_GRADIENT:
        return (struct plain_number){element->gradient, false};
    default:
        return (struct plain_number){
            element->results[node->operation == EXPRESSION_VALUE ? 0 : 1 + node->in[0]], false};
    }
}

/* A where whose condition is the same for every element is the operand that it chooses; a scalar
 * is rounded where it meets elements. */
static inline struct plain_number
plain_operation(bool is_float32, uint8_t operation, const struct plain_number *operands)
{
    bool is_scalar = true;
    double in[3];

    if (operation == EXPRESSION_WHERE && operands[0].is_scalar)
        return operands[operands[0].number > 0 ? 1 : 2];
    for (int k = 0; k < 3; k++)
        is_scalar = is_scalar && operands[k].is_scalar;
    for (int k = 0; k < 3; k++)
        in[k] = is_scalar ? operands[k].number : plain_round(is_float32, operands[k].number);
    const double number = plain_evaluate(operation, is_float32, is_scalar, in);
    return (struct plain_number){is_scalar ? number : plain_round(is_float32, number), is_scalar};
}

static inline void plain_run(
    const struct expression *expression, bool is_float32, const double *hyperparameters,
    uint64_t step, struct plain_element *element)
{
    struct plain_number numbers[EXPRESSION_NODES_MAX];

    for (uint32_t i = 0; i < expression->node_count; i++) {
        const struct expression_node *const node = &expression->nodes[i];
        struct plain_number operands[3] = {{0, true}, {0, true}, {0, true}};
        if (node->operation <= EXPRESSION_SLOT) {
            numbers[i] = plain_leaf(expression, is_float32, node, element, hyperparameters, step);
            continue;
        }
        const uint32_t count = node->operation == EXPRESSION_WHERE ? 3
                               : node->operation >= EXPRESSION_ADD ? 2
                                                                   : 1;
        for (uint32_t k = 0; k < count; k++)
            operands[k] = numbers[node->in[k]];
        numbers[i] = plain_operation(is_float32, node->operation, operands);
    }
    for (uint32_t r = 0; r <= expression->slot_count; r++)
        element->results[r] = plain_round(is_float32, numbers[expression->results[r]].number);
}
