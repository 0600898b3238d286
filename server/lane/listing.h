/* listing.h -- names in one text that stays short: "worker 0, worker 1, … 40 in all".
 *
 * Shared by the lane and the judge. Begins zeroed.
 */
#ifndef LANE_LISTING_H
#define LANE_LISTING_H

#include <stddef.h>
#include <stdint.h>

#define LISTING_BYTES 192u

struct listing {
    char text[LISTING_BYTES]; /* whole once listing_end was called */
    size_t used;
    uint32_t count, shown;
};

/* One more name; the first that does not fit, and those after it, are only counted. */
void listing_add(struct listing *listing, const char *name);
void listing_add_task(struct listing *listing, const char *job, uint32_t index);
/* Say how many there are, when not all are shown. Lends  the text, the listing's. */
const char *listing_end(struct listing *listing);

#endif
