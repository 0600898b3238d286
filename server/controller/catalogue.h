/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.h -- the variables, as the controller has them. Private to this folder. */
#pragma once

#include "controller_state.h"

struct controller_variable *
controller_variable_find(const struct controller *controller, const char *name);
struct controller_variable *
controller_variable_by_id(const struct controller *controller, uint64_t id);
/* May it be made, and be the `fresh`th new one? */
enum sumac_status controller_variable_check(
    const struct controller *controller, const char *name, const struct definition *definition,
    uint32_t fresh, struct sumac_error *error);
/* Its shards are on these ps (places: as many as it has shards; NULL: as ps 0 places them). */
enum sumac_status controller_variable_make(
    struct controller *controller, const char *name, const struct definition *definition,
    const uint8_t *places, struct controller_variable **variable, struct sumac_error *error);
/* The ps for a new variable that names another variable, or a shard, to lie beside.
 * Fails  NOT_FOUND: no variable or shard has that name. INVALID_ARGUMENT: it is not text. */
enum sumac_status controller_variable_beside(
    const struct controller *controller, const wire_variable *wanted, uint32_t *ps,
    struct sumac_error *error);
/* Does the existing variable fit the wanted one? Both must be defined alike. If the wanted one is
 * to lie beside another variable, all shards of the existing one must lie on the ps of that one.
 * Fails  ALREADY_EXISTS, naming what differs; as controller_variable_beside. */
enum sumac_status controller_variable_compare(
    const struct controller *controller, const struct controller_variable *variable,
    const wire_variable *wanted, const struct definition *definition, struct sumac_error *error);
/* Find the variable of that name, or make it and order its shards. Fails  as the two above. */
enum sumac_status controller_variable_find_or_make(
    struct controller *controller, const wire_variable *wanted,
    struct controller_variable **variable, struct sumac_error *error);
void controller_variable_hide(struct controller *controller, struct controller_variable *variable);
void controller_variable_free(struct controller *controller, struct controller_variable *variable);
/* In the step's arena. */
wire_variable *controller_variable_message(
    struct controller *controller, const struct controller_variable *variable);
/* Its name and how it is defined alone. NULL: no memory. */
const wire_variable *controller_variable_definition(
    struct controller *controller, const struct controller_variable *variable);
