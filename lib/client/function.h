/* SPDX-License-Identifier: Apache-2.0 */
/* function.h -- update functions by name, for whoever has a client, and for whoever has none. */
#pragma once

#include "memory.h"
#include "sumac/client.h"
#include "update.h"

/* The function of that name: the table's, or one that the client knows of (NULL: of no client).
 * NULL: there is none. Of a client: it is locked, and the function lives as long as it. */
const struct update_function *client_function(const struct sumac_client *client, const char *name);
/* "assign, assign_add, …", into `text`. Lends  text. */
const char *client_functions_list(const struct sumac_client *client, char *text, size_t text_bytes);

/* Is nothing given there? A value without a name is a mistake, which encoding refuses. */
static inline bool function_place_is_free(const struct sumac_function *function, uint32_t place)
{
    const struct sumac_hyperparameter *given = &function->hyperparameters[place];

    return given->name == NULL && given->value == 0;
}
bool function_has_hyperparameters(const struct sumac_function *function);

/* As it goes over the wire, in the arena.
 * Fails    INVALID_ARGUMENT: an unknown function, or a hyperparameter that it does not have, naming
 *          those that there are. RESOURCE_EXHAUSTED. */
enum sumac_status function_encode(
    const struct sumac_client *client, const struct sumac_function *function, struct arena *arena,
    wire_function **wire, struct sumac_error *error);

/* The same of a function that is known (NULL: there is none of that name). */
enum sumac_status function_encode_row(
    const struct update_function *row, const struct sumac_function *function, struct arena *arena,
    wire_function **wire, struct sumac_error *error);
