/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c -- equal operations on equal operands are one node. */
#include "nodes.h"

#include <assert.h>
#include <string.h>

static const uint8_t operand_counts[EXPRESSION_OPERATIONS] = {
#define X(NAME, name, shape, result) [EXPRESSION_##NAME] = EXPRESSION_TAKES_##shape,
    EXPRESSION_OPERATION_LIST(X) EXPRESSION_FUSED_LIST(X)
#undef X
};

uint32_t nodes_operands(uint8_t operation)
{
    assert(operation < EXPRESSION_OPERATIONS);
    return operand_counts[operation];
}

static bool is_comparison(enum expression_operation operation)
{
    return operation == EXPRESSION_LESS || operation == EXPRESSION_LESS_EQUAL ||
           operation == EXPRESSION_EQUAL || operation == EXPRESSION_NOT_EQUAL;
}

/* The first operand of where is a comparison, and all others are numbers. */
static enum sumac_status check_types(
    struct text_reader *reader, const struct word *word, enum expression_operation operation,
    const uint16_t in[3])
{
    const struct expression_node *const nodes = reader->expression->nodes;

    for (uint32_t i = 0; i < nodes_operands((uint8_t)operation); i++) {
        const bool wanted = operation == EXPRESSION_WHERE && i == 0;
        const bool given = nodes[in[i]].is_condition;
        if (wanted && !given)
            return word_refuse(
                word, reader->error,
                "its first argument is a number; expected a comparison, such as g > 0");
        if (!wanted && given)
            return word_refuse(
                word, reader->error,
                "it takes numbers, and is given a comparison; where(comparison, 1, 0) is a number");
    }
    return SUMAC_OK;
}

static enum sumac_status
add(struct text_reader *reader, const struct word *word, const struct expression_node *wanted,
    uint16_t *node)
{
    struct expression *const expression = reader->expression;

    assert(expression->node_count <= EXPRESSION_NODES_MAX);
    for (uint32_t i = 0; i < expression->node_count; i++) {
        if (memcmp(&expression->nodes[i], wanted, sizeof *wanted) == 0) {
            *node = (uint16_t)i;
            return SUMAC_OK;
        }
    }
    if (expression->node_count == EXPRESSION_NODES_MAX)
        return word_refuse(
            word, reader->error,
            "the text has more than %u different operations, numbers and names up to here",
            EXPRESSION_NODES_MAX);
    *node = (uint16_t)expression->node_count;
    expression->nodes[expression->node_count++] = *wanted;
    return SUMAC_OK;
}

enum sumac_status nodes_make(
    struct text_reader *reader, const struct word *word, enum expression_operation operation,
    const uint16_t in[3], uint16_t *node)
{
    struct expression_node wanted;

    const enum sumac_status status = check_types(reader, word, operation, in);
    if (status != SUMAC_OK)
        return status;
    memset(&wanted, 0, sizeof wanted);
    wanted.operation = (uint8_t)operation;
    wanted.is_condition = is_comparison(operation);
    for (uint32_t i = 0; i < nodes_operands((uint8_t)operation); i++) {
        assert(in[i] < reader->expression->node_count);
        wanted.in[i] = in[i];
    }
    return add(reader, word, &wanted, node);
}

enum sumac_status nodes_leaf(
    struct text_reader *reader, const struct word *word, enum expression_operation operation,
    uint16_t number, uint16_t *node)
{
    struct expression_node wanted;

    assert(nodes_operands((uint8_t)operation) == 0);
    memset(&wanted, 0, sizeof wanted);
    wanted.operation = (uint8_t)operation;
    wanted.in[0] = number;
    return add(reader, word, &wanted, node);
}

enum sumac_status
nodes_constant(struct text_reader *reader, const struct word *word, double value, uint16_t *node)
{
    struct expression *const expression = reader->expression;

    for (uint32_t i = 0; i < expression->constant_count; i++)
        if (memcmp(&expression->constants[i], &value, sizeof value) == 0)
            return nodes_leaf(reader, word, EXPRESSION_CONSTANT, (uint16_t)i, node);
    const uint32_t number = expression->constant_count;
    const enum sumac_status status =
        nodes_leaf(reader, word, EXPRESSION_CONSTANT, (uint16_t)number, node);
    if (status != SUMAC_OK)
        return status;
    assert(number < EXPRESSION_NODES_MAX);
    expression->constants[number] = value;
    expression->constant_count++;
    return SUMAC_OK;
}
