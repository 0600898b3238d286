/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_functions.h -- the update functions that a run has beside those of every release, as ps 0
 * tells: defined by somebody, or of plug-ins. */
#pragma once

#include "ask.h"
#include "defined.h"
#include "plugged.h"

struct cluster_function {
    uint32_t number;
    const char *name;
    const char *text;                  /* of one that was defined, … */
    const char *plugin;                /* … and "mine 1.0" of another; both of the answer */
    const struct update_function *row; /* as every ps has it; NULL: this release cannot read it */
    union {
        struct update_defined defined;
        struct update_plugged plugged;
    } of;
};

struct cluster_functions {
    uint32_t count;
    struct cluster_function *items; /* (count), in the order of their numbers */
};

/* Ask ps 0 of the roster.
 *
 * Gives    *functions.
 * Fails    as ask. */
enum sumac_status cluster_functions_ask(
    struct roster *roster, struct cluster_functions *functions, struct sumac_error *error);
/* The same of plug-ins that are loaded here. Borrows  plugins. */
struct plugins;
struct cluster_functions cluster_functions_of(const struct plugins *plugins);

/* NULL: there is none of that number, or name. */
const struct cluster_function *
cluster_functions_find(const struct cluster_functions *functions, uint32_t number);
const struct cluster_function *
cluster_functions_find_by_name(const struct cluster_functions *functions, const char *name);
