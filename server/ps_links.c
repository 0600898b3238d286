/* SPDX-License-Identifier: Apache-2.0 */
/* ps_links.c -- the table of calls and streams at their serving end, by the number the lane knows
 * them by. */
#include <assert.h>
#include <stdlib.h>

#include "ps_state.h"

bool ps_links_init(struct ps_links *links)
{
    *links = (struct ps_links){.first_free = PS_LINKS_MAX};
    links->slots = calloc(PS_LINKS_MAX, sizeof *links->slots);
    return links->slots != NULL;
}

void ps_links_deinit(struct ps_links *links)
{
    free(links->slots);
    links->slots = NULL;
}

static uint32_t slot_of(uint64_t id) { return (uint32_t)(id & (PS_LINKS_MAX - 1)); }

struct ps_link *ps_links_add(struct ps_links *links, struct ps *ps, struct rpc_call *call)
{
    uint32_t slot = links->first_free;

    if (slot != PS_LINKS_MAX)
        links->first_free = links->slots[slot].next_free;
    else if (links->used < PS_LINKS_MAX)
        slot = links->used++;
    else
        return NULL;
    links->made++;
    links->slots[slot] =
        (struct ps_link){.ps = ps, .call = call, .id = links->made << PS_LINK_BITS | slot};
    return &links->slots[slot];
}

struct ps_link *ps_links_find(const struct ps_links *links, uint64_t id)
{
    struct ps_link *const link = &links->slots[slot_of(id)];

    return link->call != NULL && link->id == id ? link : NULL;
}

void ps_links_remove(struct ps_links *links, struct ps_link *link)
{
    assert(link->call != NULL);
    if (link->half_closed)
        links->half_closed--;
    const uint32_t slot = slot_of(link->id);
    *link = (struct ps_link){.next_free = links->first_free};
    links->first_free = slot;
}
