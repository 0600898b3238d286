/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_functions.c -- the update functions that somebody has defined in a run. */
#include "cluster_functions.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

/* Of the roster ps 0 alone. */
static enum sumac_status
ask_ps_0(const struct roster *roster, struct answers *answers, struct sumac_error *error)
{
    const wire_functions_request request = WIRE_FUNCTIONS_REQUEST_INIT;
    const struct inquiry inquiry = {
        .service = WIRE_VARIABLES, .method = WIRE_VARIABLES_FUNCTIONS, .request = &request.base};
    struct roster_ps first = roster->ps[0];
    struct roster alone = {.count = 1, .cluster_id = roster->cluster_id, .ps = &first};

    first.left_out = false;
    return ask(&alone, &inquiry, answers, error);
}

enum sumac_status cluster_functions_ask(
    struct roster *roster, struct cluster_functions *functions, struct sumac_error *error)
{
    struct cluster_functions made = {.count = 0};
    const enum sumac_status status = ask_ps_0(roster, &made.answers, error);

    if (status != SUMAC_OK)
        return status;
    const wire_functions_reply *reply = (const wire_functions_reply *)made.answers.replies[0];
    made.items = calloc(reply->n_functions + 1, sizeof *made.items);
    if (made.items == NULL) {
        cluster_functions_deinit(&made);
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for the functions of the run");
    }
    for (size_t i = 0; i < reply->n_functions; i++) {
        const wire_defined_function *said = reply->functions[i];
        struct cluster_function *item = &made.items[made.count++];
        item->number = said->number;
        item->name = said->name;
        item->text = said->text;
        item->readable = said->number >= UPDATE_DEFINED_FIRST &&
                         update_define(
                             said->number, said->name, said->text, strlen(said->text), &item->row,
                             NULL) == SUMAC_OK;
    }
    *functions = made;
    return SUMAC_OK;
}

void cluster_functions_deinit(struct cluster_functions *functions)
{
    free(functions->items);
    if (functions->answers.replies != NULL)
        answers_deinit(&functions->answers);
    *functions = (struct cluster_functions){.count = 0};
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
