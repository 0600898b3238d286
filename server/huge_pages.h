/* SPDX-License-Identifier: Apache-2.0 */
/* huge_pages.h -- a source of memory whose larger pieces lie together in huge pages.
 *
 *   region, 2 MiB:   | piece of 1 MiB | piece of 1 MiB |     or four of 512 KiB
 *
 * A push by rows touches pages all over a table: of 4 KiB each, most of what a row costs is looking
 * up where its page is. The blocks of a variable are such pieces (STORE_BLOCK_BYTES; values of half
 * types with slots have half of it). Everything else comes from the heap.
 *
 * The pages of a piece that is given back go back to the system at once, and a region that is
 * partly in use has no huge page until it is full again: of what is not in use nothing is resident,
 * but what has not been given out yet of the last region of each size (HUGE_PAGES_SPARE_BYTES).
 */
#pragma once

#include "id_map.h"
#include "list.h"
#include "memory.h"

#define HUGE_PAGES_REGION_BYTES 2097152u
#define HUGE_PAGES_SIZES 2u /* of pieces: half a region, and a quarter */
#define HUGE_PAGES_SPARE_BYTES (HUGE_PAGES_SIZES * (uint64_t)HUGE_PAGES_REGION_BYTES)

struct huge_region;

struct huge_pages {
    LIST(struct huge_region) all;
    struct id_map regions; /* by address */
    LIST(struct huge_region) with_room[HUGE_PAGES_SIZES];
    bool never; /* everything comes from the heap: who watches it would not see these pieces */
};

void huge_pages_init(struct huge_pages *pages);
/* All regions go, whatever is in use. */
void huge_pages_deinit(struct huge_pages *pages);

/* As a memory's (memory.h). Threads  one at a time. */
void *huge_pages_take(struct huge_pages *pages, size_t bytes);
void huge_pages_give(struct huge_pages *pages, void *data, size_t bytes);
