/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_functions.c -- the update functions that a run has beside those of every release. */
#include "cluster_functions.h"

#include <string.h>

#include "alloc.h"
#include "described.h"
#include "error.h"
#include "plugins.h"

/* Ask ps 0 alone, unless the roster leaves it out. */
static enum sumac_status
ask_ps_0(const struct roster *roster, struct answers *answers, struct sumac_error *error)
{
    const wire_functions_request request = WIRE_FUNCTIONS_REQUEST_INIT;
    const struct inquiry inquiry = {
        .service = WIRE_VARIABLES, .method = WIRE_VARIABLES_FUNCTIONS, .request = &request.base};
    struct roster_ps first = roster->ps[0];
    struct roster alone = {.count = 1, .cluster_id = roster->cluster_id, .ps = &first};

    const enum sumac_status status = ask(&alone, &inquiry, answers, error);
    if (status == SUMAC_OK || error == NULL || error->reason != SUMAC_REASON_NOT_CONTROLLER)
        return status;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "another ps than ps 0 answers at %.200s, which the list of the ps calls ps 0: %s",
        first.address, roster_remedy(roster, 0));
}

static void read_one(const wire_known_function *said, struct cluster_function *item)
{
    const bool of_plugin = said->number >= UPDATE_PLUGGED_FIRST;
    const struct update_function *row = &item->of.plugged.function;
    enum sumac_status status;

    if (of_plugin) {
        status = update_read_described(said, &item->of.plugged, NULL);
    } else {
        row = &item->of.defined.function;
        status = update_define(
            said->number, said->name, said->text, strlen(said->text), &item->of.defined, NULL);
        if (status == SUMAC_OK)
            status = update_check_described(row, said, NULL);
    }
    item->number = said->number;
    item->name = said->name;
    item->text = said->text;
    item->plugin = said->plugin;
    item->row = status == SUMAC_OK ? row : NULL;
}

enum sumac_status cluster_functions_ask(
    struct roster *roster, struct cluster_functions *functions, struct sumac_error *error)
{
    struct cluster_functions made = {.count = 0};
    struct answers *const answers = cli_alloc(1, sizeof *answers); /* the texts stay in it */
    const enum sumac_status status = ask_ps_0(roster, answers, error);

    if (status != SUMAC_OK)
        return status;
    const wire_functions_reply *reply = (const wire_functions_reply *)answers->replies[0];
    made.items = cli_alloc(reply->n_functions, sizeof *made.items);
    for (size_t i = 0; i < reply->n_functions; i++)
        if (reply->functions[i]->number >= UPDATE_DEFINED_FIRST)
            read_one(reply->functions[i], &made.items[made.count++]);
    *functions = made;
    return SUMAC_OK;
}

struct cluster_functions cluster_functions_of(const struct plugins *plugins)
{
    struct cluster_functions made = {.items = cli_alloc(plugins->count, sizeof *made.items)};

    for (uint32_t i = 0; i < plugins->count; i++) {
        const struct update_plugged *const row = &plugins->functions[i]->row;
        made.items[made.count++] = (struct cluster_function){
            .number = row->function.number,
            .name = row->name,
            .text = "",
            .plugin = row->plugin,
            .row = &row->function};
    }
    return made;
}

const struct cluster_function *
cluster_functions_find(const struct cluster_functions *functions, uint32_t number)
{
    for (uint32_t i = 0; i < functions->count; i++)
        if (functions->items[i].number == number)
            return &functions->items[i];
    return NULL;
}

const struct cluster_function *
cluster_functions_find_by_name(const struct cluster_functions *functions, const char *name)
{
    for (uint32_t i = 0; i < functions->count; i++)
        if (strcmp(functions->items[i].name, name) == 0)
            return &functions->items[i];
    return NULL;
}
