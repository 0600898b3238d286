/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.h -- the variables, as the judge has them. Private to this folder. */
#ifndef JUDGE_CATALOGUE_H
#define JUDGE_CATALOGUE_H

#include "judge_state.h"

struct judge_variable *judge_variable_find(const struct judge *judge, const char *name);
struct judge_variable *judge_variable_by_id(const struct judge *judge, uint64_t id);
/* May it be made, and be the `fresh`th new one? */
enum sumac_status judge_variable_check(
    const struct judge *judge, const char *name, const struct definition *definition,
    uint32_t fresh, struct sumac_error *error);
/* Its shards are on these ps (places: as many as it has shards; NULL: as ps 0 places them). */
enum sumac_status judge_variable_make(
    struct judge *judge, const char *name, const struct definition *definition,
    const uint8_t *places, struct judge_variable **variable, struct sumac_error *error);
/* The ps that a new variable is to be on, which names another one, or a shard, to lie beside.
 * Fails  NOT_FOUND: there is none of that name. INVALID_ARGUMENT: it is no text. */
enum sumac_status judge_variable_beside(
    const struct judge *judge, const wire_variable *wanted, uint32_t *ps,
    struct sumac_error *error);
/* Does the variable that there is already fit one that is wanted: defined alike, and, where that is
 * to lie beside another, with all its shards where that is?
 * Fails  ALREADY_EXISTS, naming what differs; as judge_variable_beside. */
enum sumac_status judge_variable_compare(
    const struct judge *judge, const struct judge_variable *variable, const wire_variable *wanted,
    const struct definition *definition, struct sumac_error *error);
void judge_variable_hide(struct judge *judge, struct judge_variable *variable);
void judge_variable_free(struct judge *judge, struct judge_variable *variable);
/* In the step's arena. */
wire_variable *judge_variable_message(struct judge *judge, const struct judge_variable *variable);
/* Its name and how it is defined alone. */
const wire_variable *
judge_variable_definition(struct judge *judge, const struct judge_variable *variable);

#endif
