/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h -- an expression's nodes are made, each once, with their types. */
#pragma once

#include "names.h"

/* The node of that operation and those operands (NONE where it has none): the one that there is, or
 * a new one. Fails  INVALID_ARGUMENT at `word`: an operand has the wrong type, or there are too
 * many nodes. */
enum sumac_status nodes_make(
    struct text_reader *reader, const struct word *word, enum expression_operation operation,
    const uint16_t in[3], uint16_t *node);

/* A leaf: which constant, hyperparameter or slot `number` says. */
enum sumac_status nodes_leaf(
    struct text_reader *reader, const struct word *word, enum expression_operation operation,
    uint16_t number, uint16_t *node);
enum sumac_status
nodes_constant(struct text_reader *reader, const struct word *word, double value, uint16_t *node);

/* How many operands; 0 of a leaf. */
uint32_t nodes_operands(uint8_t operation);
