/* SPDX-License-Identifier: Apache-2.0 */
/* row_list.h -- rows by index, as a command line names them: 3,1,-1. */
#pragma once

#include <stddef.h>

#include "wanted.h"

struct listed_rows {
    size_t count;
    int64_t *rows;                /* (count): as given; negative ones from the end */
    int64_t *indices;             /* (variables, count): of each variable the rows that they are */
    struct sumac_tensor *tensors; /* (variables): the indices of each */
};

/* Rows with commas between them, and nothing else.
 *
 * Gives    *list.
 * Fails    INVALID_ARGUMENT, with what is no row. */
enum sumac_status
row_list_parse(const char *text, struct listed_rows *list, struct sumac_error *error);
/* What is read of each variable is these rows. Each has what is read of all of it so far.
 *
 * Fails    INVALID_ARGUMENT: a scalar, or one whose rows are given already. OUT_OF_RANGE: a row
 *          that it has not, with those that it has. */
enum sumac_status
row_list_apply(struct listed_rows *list, struct wanted_list *wanted, struct sumac_error *error);
