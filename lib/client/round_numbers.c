/* SPDX-License-Identifier: Apache-2.0 */
/* round_numbers.c -- a list of names with the last round of each, and a map to find a name. */
#include "client_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void round_numbers_init(struct round_numbers *numbers)
{
    numbers->names.first = numbers->names.last = NULL;
    key_map_init(&numbers->by_name, &memory_heap);
}

void round_numbers_deinit(struct round_numbers *numbers)
{
    for (struct numbered_name *named; (named = numbers->names.first) != NULL;) {
        assert(!named->waits);
        LIST_REMOVE(&numbers->names, named, among_names);
        free(named);
    }
    key_map_deinit(&numbers->by_name);
}

struct numbered_name *round_numbers_find(const struct round_numbers *numbers, const char *name)
{
    return key_map_get(&numbers->by_name, name, strlen(name));
}

struct numbered_name *round_numbers_add(struct round_numbers *numbers, const char *name)
{
    const size_t bytes = strlen(name);
    struct numbered_name *named = round_numbers_find(numbers, name);

    assert(bytes > 0); /* it was checked */
    if (named != NULL)
        return named;
    named = calloc(1, sizeof *named + bytes + 1);
    if (named == NULL)
        return NULL;
    memcpy(named->name, name, bytes + 1);
    named->by_name = (struct key_entry){.key = named->name, .key_bytes = bytes, .value = named};
    if (!key_map_put(&numbers->by_name, &named->by_name)) {
        free(named);
        return NULL;
    }
    LIST_APPEND(&numbers->names, named, among_names);
    return named;
}
