/* SPDX-License-Identifier: Apache-2.0 */
/* defined.h -- update functions that are made of texts: rows as those of the table, with the
 * expression (lib/expression) instead of a loop.
 */
#pragma once

#include "expression.h"
#include "update.h"

/* The first number of one, on the wire: those below are the table's, now and later. And how many a
 * cluster has at most. */
#define UPDATE_DEFINED_FIRST 64u
#define UPDATE_DEFINED_MAX 64u /* plugged.h has the numbers behind them */

/* It points into itself: it stays where it was made. */
struct update_defined {
    struct update_function function; /* what update_find gives of the table */
    struct update_hyperparameter own[UPDATE_HYPERPARAMETERS_MAX + 1];
    struct expression expression;
    uint8_t numbers[EXPRESSION_HYPERPARAMETERS_MAX]; /* of its hyperparameters */
    char name[EXPRESSION_NAME_BYTES_MAX + 1];
};

/* A letter, then letters, digits, '_', '-', '.' and '/', no more than EXPRESSION_NAME_BYTES_MAX. */
bool update_is_name(const char *text);

/* Is it a name for one: update_is_name's, and none of the table's? Fails  INVALID_ARGUMENT
 * (BAD_NAME). */
enum sumac_status update_defined_name_check(const char *name, struct sumac_error *error);

/* Make one of `text`, of `bytes` bytes, which is not needed afterwards. A hyperparameter has the
 * number that its name has in the table, and the others have the largest ones below clip_value's
 * that are left, in the text's order: wherever the text is read, they are the same. Any finite
 * value is in range.
 *
 * Fails    INVALID_ARGUMENT: BAD_NAME, or BAD_EXPRESSION with line and column; *defined is then of
 *          no use.
 * Threads  any. */
enum sumac_status update_define(
    uint32_t number, const char *name, const char *text, size_t bytes,
    struct update_defined *defined, struct sumac_error *error);
