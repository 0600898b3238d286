/* SPDX-License-Identifier: Apache-2.0 */
/* target.h -- where the update functions of the cases run: the loops alone, or parameter servers.
 *
 * The seam between update_function.c and what applies the functions. One variable is open at a
 * time, and no thread but one.
 */
#pragma once

#include <stdbool.h>

#include "tensors.h"

struct target_hyperparameter {
    const char *name;
    double value;
};

struct target_variable {
    const char *name; /* of the case */
    const char *function;
    const struct target_hyperparameter *hyperparameters;
    size_t hyperparameter_count;
    const struct case_tensor *initial;
};

struct target {
    enum sumac_status (*open)(struct sumac_error *error);
    void (*close)(void);
    /* Create the variable. Borrows  what it points to, until `delete`. */
    enum sumac_status (*create)(const struct target_variable *variable, struct sumac_error *error);
    void (*delete)(void);
    /* Apply the variable's function to a gradient. */
    enum sumac_status (*push)(const struct case_tensor *gradient, struct sumac_error *error);
    /* Apply it to the rows that `indices` name: a row of `values` for each. */
    enum sumac_status (*push_rows)(
        const struct case_tensor *values, const struct case_tensor *indices,
        struct sumac_error *error);
    /* Copy the value out: as many bytes as `initial` has. */
    enum sumac_status (*read)(void *value, struct sumac_error *error);
    /* How many slots there are, and of what type; the bytes of the one of that name, NULL for
     * none. Lends  until the next push. NULL: the target does not show its slots. */
    size_t (*slots)(void);
    enum sumac_dtype (*slot_dtype)(void);
    const void *(*slot)(const char *name);
};

/* The loops of lib/update; two ps and a worker's pushes to them. */
extern const struct target target_loops, target_ps;
