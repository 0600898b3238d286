/* catalogue.h -- the catalogue as every ps has it, read page by page. */
#ifndef CLI_CATALOGUE_H
#define CLI_CATALOGUE_H

#include "ask.h"

/* The same variables, as each ps knows them. */
struct page {
    struct answers answers;
    size_t
        count; /* variables: so many of the first ps's answer; the others come with the next page */
};

struct catalogue {
    uint32_t page_count;
    struct page *pages; /* one at least */
};

/* Ask every ps of `list` for these variables (none named: all), page by page.
 *
 * Gives    *catalogue; release with catalogue_deinit.
 * Fails    as ask_every. */
enum sumac_status catalogue_ask(
    const struct ps_list *list, char **names, size_t name_count, struct catalogue *catalogue,
    struct sumac_error *error);
void catalogue_deinit(struct catalogue *catalogue);

static inline const wire_list_reply *page_of(const struct page *page, uint32_t ps)
{
    return (const wire_list_reply *)(const void *)page->answers.replies[ps];
}

#endif
