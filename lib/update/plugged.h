/* SPDX-License-Identifier: Apache-2.0 */
/* plugged.h -- update functions of plug-ins (sumac/plugin.h): rows as those of the table, with a
 * loop that is another's.
 */
#pragma once

#include "defined.h"
#include "sumac/plugin.h"
#include "update.h"

/* The first number of one, on the wire. */
#define UPDATE_PLUGGED_FIRST (UPDATE_DEFINED_FIRST + UPDATE_DEFINED_MAX)

#define UPDATE_RANGE_BYTES 80u
#define UPDATE_PLUGIN_BYTES (SUMAC_PLUGIN_NAME_BYTES_MAX + 1u + SUMAC_PLUGIN_VERSION_BYTES_MAX)

/* It points into itself, and nowhere else but to its loop: it stays where it was made. */
struct update_plugged {
    struct update_function function; /* what update_find gives of the table */
    struct update_hyperparameter own[UPDATE_HYPERPARAMETERS_MAX + 1];
    sumac_plugin_loop *loop; /* NULL: it is only known of, as a client knows it */
    uint8_t numbers[SUMAC_PLUGIN_HYPERPARAMETERS_MAX]; /* of its hyperparameters */
    char name[SUMAC_PLUGIN_NAME_BYTES_MAX + 1];
    char plugin[UPDATE_PLUGIN_BYTES + 1]; /* "mine 1.0" */
    char rule[SUMAC_PLUGIN_RULE_BYTES_MAX + 1];
    char slots[SUMAC_PLUGIN_SLOTS_MAX][SUMAC_PLUGIN_NAME_BYTES_MAX + 1];
    char hyperparameters[SUMAC_PLUGIN_HYPERPARAMETERS_MAX][SUMAC_PLUGIN_NAME_BYTES_MAX + 1];
    char ranges[SUMAC_PLUGIN_HYPERPARAMETERS_MAX][UPDATE_RANGE_BYTES];
};

/* Is it a library's table that this release can read, as far as the library's own row goes: the ABI
 * version, name and version, how many functions? Nothing but abi_version is looked at where that is
 * another one. Fails  FAILED_PRECONDITION: another ABI version; both are named. INVALID_ARGUMENT:
 * what is wrong with the row. */
enum sumac_status update_plugin_check(const struct sumac_plugin *plugin, struct sumac_error *error);

/* Make one of a row of the table of `plugin` ("mine 1.0"), of which nothing is needed afterwards
 * but its loop. A hyperparameter has the number that its name has in Sumac's table, and the others
 * have the largest ones below clip_value's that are left, in the row's order.
 *
 * Fails    INVALID_ARGUMENT: the row is none; what is said names the function.
 * Threads  any. */
enum sumac_status update_plug(
    uint32_t number, const char *plugin, const struct sumac_plugin_function *given,
    struct update_plugged *plugged, struct sumac_error *error);
