/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_files.h -- shared libraries that are plug-ins (sumac/plugin.h), opened and read. */
#pragma once

#include "plugins.h"

#define PLUGIN_FILES_MAX 32u

struct plugin_files {
    struct plugins plugins; /* all their functions */
    uint32_t count;
    const char *paths[PLUGIN_FILES_MAX]; /* (count), borrowed */
    void *handles[PLUGIN_FILES_MAX];
};

void plugin_files_init(struct plugin_files *files);
/* Open one more: `path` as dlopen takes it, or the name of a file of the working directory.
 *
 * Fails    INVALID_ARGUMENT, FAILED_PRECONDITION, RESOURCE_EXHAUSTED: with the path and what is
 *          wrong with it; plugin_files_close is to be called nevertheless.
 * Threads  the process's first, before it has made others: a library may run code of its own. */
enum sumac_status
plugin_files_open(struct plugin_files *files, const char *path, struct sumac_error *error);

/* Nothing uses their functions any more. */
void plugin_files_close(struct plugin_files *files);
