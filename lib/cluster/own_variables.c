/* SPDX-License-Identifier: Apache-2.0 */
/* own_variables.c -- Sumac's variables in this process's environment. */
#define _GNU_SOURCE /* environ */
#include "own_variables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nearest.h"

#define PREFIX "SUMAC_"
#define PREFIX_BYTES (sizeof PREFIX - 1)

/* The names that a user sets, as deploy/README.md has them ("Variables that workers read"). */
static const char *const known[] = {
    PREFIX "DEVICES",  PREFIX "NCCL_LIBRARY", PREFIX "REPLICAS", PREFIX "RUN",
    PREFIX "STRATEGY", PREFIX "SYNCHRONOUS",  PREFIX "TRACE",
};

/* Without the prefix, which is the same in all names. */
static const char *known_name(const void *context, size_t index)
{
    (void)context;
    return index < sizeof known / sizeof known[0] ? known[index] + PREFIX_BYTES : NULL;
}

static bool is_known(const char *name)
{
    size_t i = 0;

    while (i < sizeof known / sizeof known[0] && strcmp(known[i], name) != 0)
        i++;
    return i < sizeof known / sizeof known[0];
}

const char *misspelt_variable(char name[MISSPELT_VARIABLE_BYTES])
{
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        const size_t bytes = strcspn(*variable, "=");
        if (strncmp(*variable, PREFIX, PREFIX_BYTES) != 0 || bytes >= MISSPELT_VARIABLE_BYTES)
            continue;
        memcpy(name, *variable, bytes);
        name[bytes] = '\0';
        const char *const meant = nearest_word(name + PREFIX_BYTES, known_name, NULL);
        if (meant != NULL && !is_known(name))
            return meant - PREFIX_BYTES;
    }
    return NULL;
}

enum sumac_status synchronous_from_environment(bool *synchronous, struct sumac_error *error)
{
    const char *text = getenv("SUMAC_SYNCHRONOUS");

    *synchronous = text != NULL && strcmp(text, "1") == 0;
    if (text == NULL || text[0] == '\0' || *synchronous || strcmp(text, "0") == 0)
        return SUMAC_OK;
    return fail_argument(
        error, "SUMAC_SYNCHRONOUS is %.64s; 1 asks for synchronous steps, 0 for none", text);
}
