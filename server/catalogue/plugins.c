/* SPDX-License-Identifier: Apache-2.0 */
/* plugins.c -- the rows of plug-ins, in the order of their names. */
#include "plugins.h"

#include <assert.h>
#include <string.h>

#include "described.h"
#include "error.h"
#include "text.h"

void plugins_init(struct plugins *plugins, const struct memory *memory)
{
    *plugins = (struct plugins){.memory = memory};
}

const struct plugin_function *plugins_find(const struct plugins *plugins, uint32_t number)
{
    const uint32_t index = number - UPDATE_PLUGGED_FIRST;

    if (number < UPDATE_PLUGGED_FIRST || index >= plugins_count(plugins))
        return NULL;
    return plugins->functions[index];
}

const struct plugin_function *plugins_find_by_name(const struct plugins *plugins, const char *name)
{
    for (uint32_t i = 0; i < plugins_count(plugins); i++)
        if (strcmp(plugins->functions[i]->row.name, name) == 0)
            return plugins->functions[i];
    return NULL;
}

/* Takes  added: the ones behind it have the next number each. */
static void insert(struct plugins *plugins, struct plugin_function *added)
{
    uint32_t at = plugins->count;

    assert(plugins->count < SUMAC_PLUGIN_FUNCTIONS_MAX);
    for (; at > 0 && strcmp(plugins->functions[at - 1]->row.name, added->row.name) > 0; at--)
        plugins->functions[at] = plugins->functions[at - 1];
    plugins->functions[at] = added;
    plugins->count++;
    for (; at < plugins->count; at++)
        plugins->functions[at]->row.function.number = UPDATE_PLUGGED_FIRST + at;
}

static enum sumac_status add_one(
    struct plugins *plugins, const char *label, const struct sumac_plugin_function *given,
    struct sumac_error *error)
{
    struct plugin_function *added = NULL;

    if (plugins->count == SUMAC_PLUGIN_FUNCTIONS_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_MALFORMED,
            "%s: the plug-ins have more than %u functions together", label,
            SUMAC_PLUGIN_FUNCTIONS_MAX);
    added = memory_take(plugins->memory, sizeof *added);
    if (added == NULL)
        return fail_for_memory(error, "no memory for the functions of %s", label);
    enum sumac_status status = update_plug(UPDATE_PLUGGED_FIRST, label, given, &added->row, error);
    if (status == SUMAC_OK && given->loop == NULL)
        status = fail_invalid(
            error, SUMAC_REASON_MALFORMED, "%s of %s has no loop", added->row.name, label);
    const struct plugin_function *const other =
        status == SUMAC_OK ? plugins_find_by_name(plugins, added->row.name) : NULL;
    if (other != NULL)
        status = fail_invalid(
            error, SUMAC_REASON_ALREADY_EXISTS,
            "%s and %s both have a function %s: name one of them otherwise", other->row.plugin,
            added->row.plugin, added->row.name);
    if (status != SUMAC_OK) {
        memory_give(plugins->memory, added, sizeof *added);
        return status;
    }
    added->digest = update_digest(&added->row.function);
    insert(plugins, added);
    return SUMAC_OK;
}

enum sumac_status
plugins_add(struct plugins *plugins, const struct sumac_plugin *table, struct sumac_error *error)
{
    char label[UPDATE_PLUGIN_BYTES + 1];
    enum sumac_status status = update_plugin_check(table, error);

    if (status != SUMAC_OK)
        return status;
    (void)text_print(label, sizeof label, "%s %s", table->name, table->version);
    for (uint32_t i = 0; status == SUMAC_OK && i < table->function_count; i++)
        status = add_one(plugins, label, &table->functions[i], error);
    assert(plugins->count <= SUMAC_PLUGIN_FUNCTIONS_MAX);
    return status;
}

void plugins_deinit(struct plugins *plugins)
{
    for (uint32_t i = 0; i < plugins->count; i++)
        memory_give(plugins->memory, plugins->functions[i], sizeof *plugins->functions[i]);
    plugins->count = 0;
}
