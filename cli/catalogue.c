/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c -- the catalogue as every ps has it, read page by page.
 *
 * The ps's answers end at different variables, since each tells more of the shards that it holds
 * itself: a page goes as far as the shortest of them, and the next one begins there.
 */
#include "catalogue.h"

#include "alloc.h"
#include "error.h"

/* What is still to be asked for. */
struct rest {
    wire_list_request request;
    char **names;
    size_t name_count;
    bool more;
};

/* Variables of the first answer that every ps has come to, and what is left after them. */
static void measure(struct catalogue_page *page, struct rest *rest)
{
    const wire_list_reply *first = page_first(page);
    uint64_t through = UINT64_MAX;

    page->count = first->n_variables;
    rest->more = false;
    for (uint32_t ps = 0; ps < page->answers.count; ps++) {
        const wire_list_reply *reply = list_of(&page->answers, ps);
        if (reply == NULL || !reply->more)
            continue;
        rest->more = true;
        const uint64_t last = reply->variables[reply->n_variables - 1]->variable_id;
        through = last < through ? last : through;
        if (rest->name_count > 0 && reply->n_variables < page->count)
            page->count = reply->n_variables;
    }
    if (rest->name_count > 0) {
        rest->names += page->count;
        rest->name_count -= page->count;
        rest->more = rest->name_count > 0;
        return;
    }
    while (page->count > 0 && first->variables[page->count - 1]->variable_id > through)
        page->count--;
    rest->request.after_id = through;
}

static enum sumac_status ask_page(
    struct roster *roster, struct rest *rest, struct catalogue_page *page,
    struct sumac_error *error)
{
    const struct inquiry inquiry = {
        .service = WIRE_VARIABLES, .method = WIRE_VARIABLES_LIST, .request = &rest->request.base};
    const uint64_t after_id = rest->request.after_id;
    bool sound = true;

    rest->request.names = rest->names;
    rest->request.n_names =
        rest->name_count < WIRE_LIST_NAMES_MAX ? rest->name_count : WIRE_LIST_NAMES_MAX;
    const enum sumac_status status = ask(roster, &inquiry, &page->answers, error);
    if (status != SUMAC_OK)
        return status;
    for (uint32_t ps = 0; ps < page->answers.count; ps++) {
        const wire_list_reply *const reply = list_of(&page->answers, ps);
        roster->ps[ps].left_out |= roster->ps[ps].missing;
        sound &= reply == NULL || !reply->more || reply->n_variables > 0;
    }
    if (sound)
        measure(page, rest);
    if (sound && !(rest->more && page->count == 0 && rest->request.after_id <= after_id))
        return SUMAC_OK;
    answers_deinit(&page->answers);
    return fail(
        error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
        "a ps's list of variables does not go on: is it a ps of this release?");
}

enum sumac_status catalogue_ask(
    struct roster *roster, char **names, size_t name_count, struct catalogue *catalogue,
    struct sumac_error *error)
{
    struct catalogue made = {0};
    struct rest rest = {
        .request = WIRE_LIST_REQUEST_INIT, .names = names, .name_count = name_count, .more = true};
    enum sumac_status status = SUMAC_OK;

    while (status == SUMAC_OK && rest.more) {
        made.pages = cli_grow(made.pages, made.page_count, sizeof *made.pages);
        status = ask_page(roster, &rest, &made.pages[made.page_count], error);
        made.page_count += status == SUMAC_OK;
    }
    if (status == SUMAC_OK)
        *catalogue = made;
    return status;
}

bool catalogue_next(const struct catalogue *catalogue, struct catalogue_entry *entry)
{
    const struct catalogue_page *const end = catalogue->pages + catalogue->page_count;

    if (entry->page == NULL)
        *entry = (struct catalogue_entry){.page = catalogue->pages};
    else
        entry->index++;
    for (; entry->page < end && entry->index == entry->page->count; entry->page++)
        entry->index = 0;
    if (entry->page >= end)
        return false;
    entry->variable = page_first(entry->page)->variables[entry->index];
    return true;
}

const wire_variable *
page_held_variable(const struct catalogue_page *page, size_t index, uint32_t ps)
{
    const uint64_t variable_id = page_first(page)->variables[index]->variable_id;
    const wire_list_reply *const reply =
        ps < page->answers.count ? list_of(&page->answers, ps) : NULL;
    const size_t count = reply != NULL ? reply->n_variables : 0;

    /* Lists differ only by variables that were just created or deleted. */
    for (size_t i = 0; i < count; i++) {
        wire_variable *const variable = reply->variables[(index + i) % count];
        if (variable->variable_id == variable_id)
            return variable;
    }
    return NULL;
}

const wire_shard *
page_held_shard(const struct catalogue_page *page, size_t index, const wire_shard *shard)
{
    const wire_variable *held = page_held_variable(page, index, shard->ps);

    for (size_t i = 0; held != NULL && i < held->n_shards; i++)
        if (held->shards[i]->shard_id == shard->shard_id)
            return held->shards[i];
    return NULL;
}

bool page_versions(
    const struct catalogue_page *page, size_t index, uint64_t *lowest, uint64_t *highest)
{
    const wire_variable *variable = page_first(page)->variables[index];
    bool some = false;

    for (size_t i = 0; i < variable->n_shards; i++) {
        const wire_shard *held = page_held_shard(page, index, variable->shards[i]);
        if (held == NULL)
            continue;
        *lowest = some && *lowest < held->version ? *lowest : held->version;
        *highest = some && *highest > held->version ? *highest : held->version;
        some = true;
    }
    return some;
}
