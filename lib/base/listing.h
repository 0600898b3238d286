/* SPDX-License-Identifier: Apache-2.0 */
/* listing.h -- names in one text that stays short: "worker 0, worker 1, … 40 in all"; and do two
 * lists contradict each other?
 *
 * A listing begins zeroed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTING_BYTES 160u      /* two of them fit into an error, with the words around */
#define LISTING_LONG_BYTES 256u /* of these, one */

struct listing {
    char text[LISTING_LONG_BYTES]; /* whole once listing_end was called */
    bool is_long;                  /* set before the first name: not just LISTING_BYTES are used */
    size_t used;
    uint32_t count, shown;
};

/* One more name; the first that does not fit, and those after it, are only counted. */
void listing_add(struct listing *listing, const char *name);
void listing_add_task(struct listing *listing, const char *job, uint32_t index);
/* Say how many there are, when not all are shown. Lends  the text, the listing's. */
const char *listing_end(struct listing *listing);
/* The names of ps, in their order; NULL and "" are unknown. */
void listing_add_addresses(struct listing *listing, const char *const *addresses, size_t count);

/* Are there as many ps here as there, none under another index, and none on another port of its
 * host? Another host is another name of the same ps, as a proxy's or a resolver's. */
bool listing_same_ps(
    const char *const *ours, size_t our_count, const char *const *theirs, size_t their_count);

/* Has some ps the same host in both lists, and another port? Then *index is the first such ps. A
 * host of loopback may have several ports. */
bool listing_other_port(
    const char *const *ours, const char *const *theirs, size_t count, size_t *index);

/* Has the list one address under two indexes? Then *first and *second are those indexes. */
bool listing_names_twice(const char *const *addresses, size_t count, size_t *first, size_t *second);
