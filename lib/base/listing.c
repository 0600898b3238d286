/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c -- names in one text, as many as there is room for. */
#include "listing.h"

#include <assert.h>
#include <string.h>

#include "loopback.h"
#include "text.h"

#define NAME_BYTES 128u
#define END_BYTES 32u /* for how many there are */

static size_t room(const struct listing *listing)
{
    return listing->is_long ? LISTING_LONG_BYTES : LISTING_BYTES;
}

void listing_add(struct listing *listing, const char *name)
{
    assert(listing->used < room(listing));
    assert(listing->shown <= listing->count);
    const char *comma = listing->used == 0 ? "" : ", ";
    const size_t bytes = strlen(comma) + strlen(name);
    listing->count++;
    if (listing->shown + 1 < listing->count || listing->used + bytes + END_BYTES > room(listing))
        return;
    listing->used += text_print_line(
        listing->text + listing->used, room(listing) - listing->used, "%s%s", comma, name);
    listing->shown++;
}

void listing_add_task(struct listing *listing, const char *job, uint32_t index)
{
    char name[NAME_BYTES];

    (void)text_print_line(name, sizeof name, "%s %u", job, index);
    listing_add(listing, name);
}

const char *listing_end(struct listing *listing)
{
    assert(listing->used < room(listing));
    assert(listing->shown <= listing->count);
    if (listing->shown < listing->count)
        (void)text_print(
            listing->text + listing->used, room(listing) - listing->used, "%s… %u in all",
            listing->used == 0 ? "" : ", ", listing->count);
    return listing->text;
}

static bool is_known(const char *address) { return address != NULL && address[0] != '\0'; }

void listing_add_addresses(struct listing *listing, const char *const *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        listing_add(listing, is_known(addresses[i]) ? addresses[i] : "(unknown)");
}

static bool is_equal(const char *ours, const char *theirs)
{
    return is_known(ours) && is_known(theirs) && strcmp(ours, theirs) == 0;
}

/* A port of loopback may be forwarded, to a container or through a tunnel. */
static bool is_other_port(const char *ours, const char *theirs)
{
    const char *colon = is_known(ours) && is_known(theirs) ? strrchr(ours, ':') : NULL;
    const size_t bytes = colon == NULL ? 0 : (size_t)(colon - ours);

    return colon != NULL && strncmp(ours, theirs, bytes + 1) == 0 &&
           strchr(theirs + bytes + 1, ':') == NULL && strcmp(ours, theirs) != 0 &&
           !loopback_is(ours);
}

bool listing_other_port(
    const char *const *ours, const char *const *theirs, size_t count, size_t *index)
{
    assert(index != NULL);
    for (*index = 0; *index < count; ++*index)
        if (is_other_port(ours[*index], theirs[*index]))
            return true;
    return false;
}

bool listing_same_ps(
    const char *const *ours, size_t our_count, const char *const *theirs, size_t their_count)
{
    size_t index;

    if (our_count != their_count || listing_other_port(ours, theirs, our_count, &index))
        return false;
    for (size_t i = 0; i < our_count; i++)
        for (size_t j = 0; j < their_count && !is_equal(ours[i], theirs[i]); j++)
            if (i != j && is_equal(ours[i], theirs[j]))
                return false;
    return true;
}

bool listing_names_twice(const char *const *addresses, size_t count, size_t *first, size_t *second)
{
    assert(count == 0 || addresses != NULL);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            if (!is_equal(addresses[i], addresses[j]))
                continue;
            *first = i;
            *second = j;
            return true;
        }
    return false;
}
