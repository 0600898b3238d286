/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c -- update functions by number: the table's, then the defined ones, in the order in
 * which they were, then those of plug-ins. */
#include "functions.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"

#define LINE_SHOWN 60 /* of a text, in an error */

bool functions_init(
    struct functions *functions, const struct memory *memory, const struct plugins *plugins)
{
    *functions = (struct functions){.memory = memory, .plugins = plugins};
    functions->known = memory_take(memory, FUNCTIONS_BYTES);
    return functions->known != NULL;
}

void functions_deinit(struct functions *functions)
{
    if (functions->known != NULL)
        memory_give(functions->memory, functions->known, FUNCTIONS_BYTES);
    *functions = (struct functions){0};
}

const struct update_function *functions_find(const struct functions *functions, uint32_t number)
{
    if (number < UPDATE_DEFINED_FIRST)
        return update_find(number);
    if (functions == NULL)
        return NULL;
    if (number >= UPDATE_PLUGGED_FIRST) {
        const struct plugin_function *const found = plugins_find(functions->plugins, number);
        return found == NULL ? NULL : &found->row.function;
    }
    const uint32_t index = number - UPDATE_DEFINED_FIRST;
    return index < functions->count ? &functions->known[index].row.function : NULL;
}

const struct update_function *functions_at(const struct functions *functions, uint32_t index)
{
    if (index < UPDATE_FUNCTIONS_MAX)
        return update_at(index);
    index -= UPDATE_FUNCTIONS_MAX;
    if (index < functions->count)
        return &functions->known[index].row.function;
    index -= functions->count;
    if (index >= plugins_count(functions->plugins))
        return NULL;
    return &functions->plugins->functions[index]->row.function;
}

const struct defined_function *
functions_find_defined(const struct functions *functions, const char *name)
{
    for (uint32_t i = 0; i < functions->count; i++)
        if (strcmp(functions->known[i].row.name, name) == 0)
            return &functions->known[i];
    return NULL;
}

/* Where they begin to differ: a line's begin, and its number from 1. */
struct difference {
    size_t at;
    uint32_t line;
};

static struct difference
find_difference(const char *one, size_t one_bytes, const char *other, size_t other_bytes)
{
    struct difference found = {.line = 1};

    for (size_t i = 0; i < one_bytes && i < other_bytes && one[i] == other[i]; i++) {
        if (one[i] != '\n')
            continue;
        found.at = i + 1;
        found.line++;
    }
    return found;
}

/* As much of the line at `text` as is shown. */
static int shown_of(const char *text, size_t bytes)
{
    size_t shown = 0;

    while (shown < bytes && shown < LINE_SHOWN && text[shown] != '\n' && text[shown] != '\r')
        shown++;
    while (shown < bytes && shown > 0 && ((uint8_t)text[shown] & 0xc0u) == 0x80u)
        shown--;
    return (int)shown;
}

/* OK: there is one with this name, and it is this one. */
static enum sumac_status compare(
    const struct defined_function *known, uint32_t number, const char *text, size_t bytes,
    struct sumac_error *error)
{
    const bool same = known->text_bytes == bytes && memcmp(known->text, text, bytes) == 0;

    if (!same) {
        const struct difference from = find_difference(known->text, known->text_bytes, text, bytes);
        const char *const there = known->text + from.at, *const here = text + from.at;
        const int shown_there = shown_of(there, known->text_bytes - from.at);
        const int shown_here = shown_of(here, bytes - from.at);
        if (shown_there == shown_here && memcmp(there, here, (size_t)shown_here) == 0)
            return fail(
                error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
                "function %s exists with another text: they differ in line %u, behind “%.*s” (its "
                "text has %" PRIu32
                " bytes, the one given %zu; ends of lines count); define yours under "
                "another name",
                known->row.name, from.line, shown_here, here, known->text_bytes, bytes);
        return fail(
            error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
            "function %s exists with another text: its line %u is “%.*s”, that of the one given "
            "“%.*s”; define yours under another name",
            known->row.name, from.line, shown_there, there, shown_here, here);
    }
    if (known->row.function.number == number)
        return SUMAC_OK;
    return fail(
        error, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
        "function %s has number %u, not %u", known->row.name, known->row.function.number, number);
}

enum sumac_status functions_add(
    struct functions *functions, uint32_t number, const char *name, const char *text, size_t bytes,
    struct sumac_error *error)
{
    const struct defined_function *known = functions_find_defined(functions, name);
    const struct plugin_function *const plugged = plugins_find_by_name(functions->plugins, name);

    if (plugged != NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "%s is a function of the plug-in %s, which every ps was started with: define yours "
            "under another name",
            name, plugged->row.plugin);
    if (known != NULL)
        return compare(known, number, text, bytes, error);
    if (functions->count >= UPDATE_DEFINED_MAX)
        return fail_for_memory(
            error,
            "%s: %u functions are defined, the most there may be; none is ever undefined, since "
            "variables name them: use one of them, or start the cluster anew",
            name, UPDATE_DEFINED_MAX);
    if (number != functions_next(functions))
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "function %s is to have number %u, and the next one is %u", name, number,
            functions_next(functions));
    struct defined_function *made = &functions->known[functions->count];
    const enum sumac_status status = update_define(number, name, text, bytes, &made->row, error);
    if (status != SUMAC_OK)
        return status;
    assert(bytes <= sizeof made->text);
    memcpy(made->text, text, bytes);
    made->text_bytes = (uint32_t)bytes;
    functions->count++;
    return SUMAC_OK;
}
