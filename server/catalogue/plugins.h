/* SPDX-License-Identifier: Apache-2.0 */
/* plugins.h -- the update functions of the plug-ins that a ps was started with.
 *
 * Every ps of a cluster has the same ones, and ps 0's hello says which those are. Numbered in the
 * order of their names, they have the same numbers, however the plug-ins were named on the command
 * line. They do not change while the ps runs.
 */
#pragma once

#include "memory.h"
#include "plugged.h"

struct plugin_function {
    struct update_plugged row;
    uint64_t digest; /* of the row */
};

struct plugins {
    const struct memory *memory;
    uint32_t count;
    struct plugin_function *functions[SUMAC_PLUGIN_FUNCTIONS_MAX]; /* (count), by number */
};

void plugins_init(struct plugins *plugins, const struct memory *memory);
/* Add a library's functions. Fails  as update_plugin_check and update_plug; INVALID_ARGUMENT: a
 * name that another one has, with both; RESOURCE_EXHAUSTED: more than SUMAC_PLUGIN_FUNCTIONS_MAX,
 * or no memory. Some may have been added then. */
enum sumac_status
plugins_add(struct plugins *plugins, const struct sumac_plugin *table, struct sumac_error *error);
void plugins_deinit(struct plugins *plugins);

/* Without `plugins` there are none. NULL: none of that number, or name. */
const struct plugin_function *plugins_find(const struct plugins *plugins, uint32_t number);
const struct plugin_function *plugins_find_by_name(const struct plugins *plugins, const char *name);

static inline uint32_t plugins_count(const struct plugins *plugins)
{
    return plugins == NULL ? 0 : plugins->count;
}
