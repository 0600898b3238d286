/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.h -- the catalogue as every ps has it, read page by page. */
#pragma once

#include "ask.h"

/* The same variables, as each ps knows them. */
struct catalogue_page {
    struct answers answers;
    size_t count; /* variables: so many of the first answer; the others come with the next page */
};

struct catalogue {
    uint32_t page_count;
    struct catalogue_page *pages; /* one at least */
};

/* Ask every ps of the roster for these variables (none named: all), page by page. Who does not
 * answer is missing from then on, and not asked again.
 *
 * Gives    *catalogue.
 * Fails    as ask. */
enum sumac_status catalogue_ask(
    struct roster *roster, char **names, size_t name_count, struct catalogue *catalogue,
    struct sumac_error *error);

/* One of its variables, as the first ps that answered knows it. */
struct catalogue_entry {
    const struct catalogue_page *page;
    size_t index; /* in that page */
    const wire_variable *variable;
};

/* Move on to the next variable, to the first of all from a zeroed entry. False: it was the last. */
bool catalogue_next(const struct catalogue *catalogue, struct catalogue_entry *entry);

/* The first answer: its first `count` variables are the page. */
static inline const wire_list_reply *page_first(const struct catalogue_page *page)
{
    return list_of(&page->answers, page->answers.first);
}

/* The variable as that ps knows it; NULL: it has not answered, or has not got the variable (any
 * more). `index` is the variable's in the first answer. */
const wire_variable *
page_held_variable(const struct catalogue_page *page, size_t index, uint32_t ps);
/* The shard as the ps that holds it knows it; NULL: that ps has not answered, or has not got the
 * variable (any more). `index` is the variable's in the first answer. */
const wire_shard *
page_held_shard(const struct catalogue_page *page, size_t index, const wire_shard *shard);

/* The lowest and the highest version of those shards whose ps answer. False: none does. */
bool page_versions(
    const struct catalogue_page *page, size_t index, uint64_t *lowest, uint64_t *highest);
