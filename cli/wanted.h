/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.h -- the variables, and rows of them, that a command line asks for: W1, W1[0:4],
 * layer*. */
#pragma once

#include <stddef.h>

#include "catalogue.h"
#include "sumac/tensor.h"

/* One variable, whole or some rows. */
struct wanted {
    const wire_variable *variable; /* of the catalogue, which stays */
    const char *name;
    const char *label; /* the name, and the slice as it was written */
    bool has_rows;
    struct sumac_range rows;
    enum sumac_dtype dtype;
    struct sumac_shape shape; /* of what is read */
    uint64_t bytes;
    int32_t missing; /* a ps that holds some of it and does not answer; below 0: none */
};

struct wanted_list {
    size_t count;
    struct wanted *items; /* (count) */
};

/* What the words ask for, as the ps that answered last knows it; `slice` is for all of them, or
 * NULL. Each ps that is needed for it is asked whether it answers.
 *
 * Gives    *list.
 * Fails    INVALID_ARGUMENT: no slice, one without rows, rows of a scalar. NOT_FOUND: no such
 *          variable. As ask. */
enum sumac_status wanted_find(
    struct roster *roster, char **words, size_t word_count, const char *slice,
    struct wanted_list *list, struct sumac_error *error);

/* "0:4" of the `rows_all` rows of the variable `name`, with Python's negative numbers and cuts.
 * Fails  INVALID_ARGUMENT, saying how. */
enum sumac_status wanted_parse_slice(
    const char *text, const char *name, uint64_t rows_all, struct sumac_range *range,
    struct sumac_error *error);

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
/* Read these rows of each variable, of which all rows are wanted so far.
 *
 * Fails    INVALID_ARGUMENT: a scalar, or a variable whose rows are given already. OUT_OF_RANGE: a
 *          row beyond the last, with the rows that the variable has. */
enum sumac_status
row_list_apply(struct listed_rows *list, struct wanted_list *wanted, struct sumac_error *error);
