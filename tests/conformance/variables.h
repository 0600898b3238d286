/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h -- the cases of `variable` and `update`: variables of a strategy. */
#pragma once

#include "cases.h"
#include "one_case.h"
#include "sumac/variable.h"

/* Ended by one without a name. */
extern const struct cases_operation variable_operations[];

/* Create the variable that `create` describes, in the strategy of the case. The case's status says
 * how that ended; with `broken`, it cannot be expressed. */
struct sumac_variable *variable_create(struct one_case *one, json_t *create);

/* The name that it has in this case: on ps one of the case's own. Into `text`. Returns  text. */
const char *
variable_name(const struct one_case *one, const char *given, char *text, size_t text_bytes);
/* Destroy it, on the ps, too. */
void variable_destroy(struct one_case *one, struct sumac_variable *variable);

/* What a step of a case says is done to a variable, and its operand: a tensor, or slices. */
enum sumac_write variable_write_of(json_t *step);
struct sumac_value *variable_operand(
    struct one_case *one, const struct sumac_variable *variable, const struct sumac_value *value,
    const struct sumac_value *indices);

/* Does each component have what is expected of it? */
bool variable_components_equal(
    struct one_case *one, struct sumac_variable *variable, json_t *expected);
