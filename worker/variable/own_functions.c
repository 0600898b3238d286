/* SPDX-License-Identifier: Apache-2.0 */
/* own_functions.c -- update functions that a strategy's variables have beside the table's: texts,
 * and those of plug-ins. */
#include "variable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "defined.h"
#include "error.h"
#include "plugged.h"

/* It stays where it is: its row points into itself. */
struct strategy_function {
    struct strategy_function *next;
    struct update_function *row; /* that of one of these */
    union {
        struct update_defined defined;
        struct update_plugged plugged;
    } of;
    size_t text_bytes; /* of a text, which comes behind it */
    char text[];
};

static const struct strategy_function *
find_own(const struct sumac_strategy *strategy, const char *name)
{
    const struct strategy_function *own = strategy->functions;

    assert(name != NULL);
    while (own != NULL && strcmp(own->row->name, name) != 0)
        own = own->next;
    return own;
}

const struct update_function *
functions_find(const struct sumac_strategy *strategy, const char *name)
{
    const struct update_function *row = update_find_by_name(name);
    const struct strategy_function *own = row == NULL ? find_own(strategy, name) : NULL;

    return own != NULL ? own->row : row;
}

void functions_forget(struct sumac_strategy *strategy)
{
    while (strategy->functions != NULL) {
        struct strategy_function *function = strategy->functions;
        strategy->functions = function->next;
        free(function);
    }
}

static struct strategy_function *make(size_t text_bytes, struct sumac_error *error)
{
    struct strategy_function *made = calloc(1, sizeof *made + text_bytes);

    if (made == NULL)
        (void)value_fail_for_memory(error);
    return made;
}

/* Keep it if `status` is OK. Returns  status. */
static enum sumac_status
keep(struct sumac_strategy *strategy, struct strategy_function *function, enum sumac_status status)
{
    assert(function->row != NULL);
    if (status == SUMAC_OK) {
        function->next = strategy->functions;
        strategy->functions = function;
    } else {
        free(function);
    }
    return status;
}

/* ---- texts */

/* The same text under the same name is the same function. */
static enum sumac_status find_same(
    const struct sumac_strategy *strategy, const char *name, const char *text, size_t text_bytes,
    bool *found, struct sumac_error *error)
{
    const struct strategy_function *own = find_own(strategy, name);

    assert(text != NULL);
    *found = own != NULL;
    if (own == NULL || (own->row->expression != NULL && own->text_bytes == text_bytes &&
                        memcmp(own->text, text, text_bytes) == 0))
        return SUMAC_OK;
    return fail(
        error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
        "there is an update function %.64s already, with another text", name);
}

enum sumac_status sumac_strategy_define(
    struct sumac_strategy *strategy, const char *name, const char *text, size_t text_bytes,
    struct sumac_error *error)
{
    bool found;

    if (strategy == NULL || name == NULL || text == NULL)
        return fail_for_null(
            error, "sumac_strategy_define",
            strategy == NULL ? "strategy"
            : name == NULL   ? "name"
                             : "text");
    if (strategy->options.kind == SUMAC_STRATEGY_PARAMETER_SERVER)
        return sumac_client_define(strategy->options.client, name, text, text_bytes, error);
    enum sumac_status status = update_defined_name_check(name, error);
    if (status == SUMAC_OK)
        status = find_same(strategy, name, text, text_bytes, &found, error);
    if (status != SUMAC_OK || found)
        return status;
    struct strategy_function *made = make(text_bytes, error);
    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    memcpy(made->text, text, text_bytes);
    made->text_bytes = text_bytes;
    made->row = &made->of.defined.function;
    status =
        update_define(UPDATE_DEFINED_FIRST, name, made->text, text_bytes, &made->of.defined, error);
    return keep(strategy, made, status);
}

/* ---- plug-ins */

static enum sumac_status plug(
    struct sumac_strategy *strategy, const struct sumac_plugin *plugin, uint32_t index,
    struct sumac_error *error)
{
    const struct sumac_plugin_function *given = &plugin->functions[index];
    struct strategy_function *made = make(0, error);

    assert(index < plugin->function_count);
    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    made->row = &made->of.plugged.function;
    enum sumac_status status =
        update_plug(UPDATE_PLUGGED_FIRST + index, plugin->name, given, &made->of.plugged, error);
    if (status == SUMAC_OK && functions_find(strategy, made->row->name) != NULL)
        status = fail(
            error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
            "there is an update function %.64s already", made->row->name);
    return keep(strategy, made, status);
}

enum sumac_status sumac_strategy_plug(
    struct sumac_strategy *strategy, const struct sumac_plugin *plugin, struct sumac_error *error)
{
    static const char call[] = "sumac_strategy_plug";

    if (strategy == NULL || plugin == NULL)
        return fail_for_null(error, call, strategy == NULL ? "strategy" : "plugin");
    if (strategy->options.kind == SUMAC_STRATEGY_PARAMETER_SERVER)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "%s: the variables of this strategy live on the ps, which load plug-ins themselves: "
            "sumac ps --plugin FILE",
            call);
    enum sumac_status status = update_plugin_check(plugin, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < plugin->function_count; i++)
        status = plug(strategy, plugin, i, error);
    return status;
}
