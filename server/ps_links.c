/* SPDX-License-Identifier: Apache-2.0 */
/* ps_links.c -- the table of calls and streams at their serving end, by the number the lane knows
 * them by. */
#include <assert.h>
#include <stdlib.h>

#include "ps_state.h"

bool ps_links_init(struct ps_links *links)
{
    *links = (struct ps_links){.first_free = PS_LINKS_MAX};
    links->places = calloc(PS_LINKS_MAX, sizeof *links->places);
    return links->places != NULL;
}

void ps_links_deinit(struct ps_links *links)
{
    free(links->places);
    links->places = NULL;
}

static uint32_t place_of(uint64_t id) { return (uint32_t)(id & (PS_LINKS_MAX - 1)); }

struct ps_link *ps_links_add(struct ps_links *links, struct ps *ps, struct rpc_call *call)
{
    uint32_t place = links->first_free;

    if (place != PS_LINKS_MAX)
        links->first_free = links->places[place].next_free;
    else if (links->used < PS_LINKS_MAX)
        place = links->used++;
    else
        return NULL;
    links->made++;
    links->places[place] =
        (struct ps_link){.ps = ps, .call = call, .id = links->made << PS_LINK_BITS | place};
    return &links->places[place];
}

struct ps_link *ps_links_find(const struct ps_links *links, uint64_t id)
{
    struct ps_link *const link = &links->places[place_of(id)];

    return link->call != NULL && link->id == id ? link : NULL;
}

void ps_links_remove(struct ps_links *links, struct ps_link *link)
{
    assert(link->call != NULL);
    if (link->half_closed)
        links->half_closed--;
    const uint32_t place = place_of(link->id);
    *link = (struct ps_link){.next_free = links->first_free};
    links->first_free = place;
}
