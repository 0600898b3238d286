/* SPDX-License-Identifier: Apache-2.0 */
/* huge_pages.c -- regions, and what is in use of each. */
#include "huge_pages.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PIECES_MAX (2u * HUGE_PAGES_SIZES) /* of a region */

struct huge_region {
    LINKS(struct huge_region) in_pages;
    LINKS(struct huge_region) among_room; /* while a piece of it is free */
    uint8_t *data;
    uint32_t size;  /* of its pieces: 0 half of it, 1 a quarter */
    uint32_t taken; /* bit per piece */
    bool asked;     /* for a huge page */
};

static size_t piece_bytes(uint32_t size) { return (size_t)HUGE_PAGES_REGION_BYTES >> (size + 1); }

static uint32_t pieces_of(uint32_t size) { return 2u << size; }

static uint32_t all_of(uint32_t size) { return (1u << pieces_of(size)) - 1; }

/* HUGE_PAGES_SIZES: a size that no piece has. */
static uint32_t size_of(size_t bytes)
{
    uint32_t size = 0;

    while (size < HUGE_PAGES_SIZES && bytes != piece_bytes(size))
        size++;
    return size;
}

static uint64_t address_of(const void *data)
{
    return (uint64_t)(uintptr_t)data / HUGE_PAGES_REGION_BYTES;
}

void huge_pages_init(struct huge_pages *pages)
{
    *pages = (struct huge_pages){.never = false};
#if defined(__SANITIZE_ADDRESS__)
    pages->never = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    pages->never = true;
#endif
#endif
    id_map_init(&pages->regions, &memory_heap);
}

/* ---- regions ---- */

/* A system that has no huge pages says no, and nothing is lost. */
static void ask(struct huge_region *region, bool huge)
{
    if (region->asked != huge)
        (void)madvise(
            region->data, HUGE_PAGES_REGION_BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    region->asked = huge;
}

/* At a multiple of its size, out of twice as much. NULL: the system has no more. */
static uint8_t *map_region(void)
{
    const size_t twice = 2 * (size_t)HUGE_PAGES_REGION_BYTES;
    uint8_t *const mapped =
        mmap(NULL, twice, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mapped == MAP_FAILED)
        return NULL;
    const size_t over = (uintptr_t)mapped % HUGE_PAGES_REGION_BYTES;
    const size_t before = over == 0 ? 0 : HUGE_PAGES_REGION_BYTES - over;
    if (before > 0)
        (void)munmap(mapped, before);
    (void)munmap(mapped + before + HUGE_PAGES_REGION_BYTES, HUGE_PAGES_REGION_BYTES - before);
    return mapped + before;
}

static void drop(struct huge_pages *pages, struct huge_region *region)
{
    LIST_REMOVE(&pages->all, region, in_pages);
    id_map_remove(&pages->regions, address_of(region->data));
    (void)munmap(region->data, HUGE_PAGES_REGION_BYTES);
    free(region);
}

/* NULL: no memory. */
static struct huge_region *make(struct huge_pages *pages, uint32_t size)
{
    struct huge_region *region = calloc(1, sizeof *region);

    if (region == NULL)
        return NULL;
    region->size = size;
    region->data = map_region();
    if (region->data == NULL || !id_map_put(&pages->regions, address_of(region->data), region)) {
        if (region->data != NULL)
            (void)munmap(region->data, HUGE_PAGES_REGION_BYTES);
        free(region);
        return NULL;
    }
    ask(region, true);
    LIST_APPEND(&pages->all, region, in_pages);
    LIST_APPEND(&pages->with_room[size], region, among_room);
    return region;
}

void huge_pages_deinit(struct huge_pages *pages)
{
    while (pages->all.first != NULL)
        drop(pages, pages->all.first);
    id_map_deinit(&pages->regions);
}

/* ---- pieces ---- */

void *huge_pages_take(struct huge_pages *pages, size_t bytes)
{
    const uint32_t size = pages->never ? HUGE_PAGES_SIZES : size_of(bytes);

    if (size == HUGE_PAGES_SIZES)
        return memory_take(&memory_heap, bytes);
    struct huge_region *region = pages->with_room[size].first;
    if (region == NULL)
        region = make(pages, size);
    if (region == NULL)
        return NULL;
    const uint32_t piece = (uint32_t)__builtin_ctz(~region->taken);
    assert(piece < pieces_of(size) && piece < PIECES_MAX);
    region->taken |= 1u << piece;
    if (region->taken == all_of(size)) {
        LIST_REMOVE(&pages->with_room[size], region, among_room);
        ask(region, true);
    }
    return region->data + piece * piece_bytes(size);
}

void huge_pages_give(struct huge_pages *pages, void *data, size_t bytes)
{
    const uint32_t size = pages->never ? HUGE_PAGES_SIZES : size_of(bytes);

    if (size == HUGE_PAGES_SIZES) {
        memory_give(&memory_heap, data, bytes);
        return;
    }
    struct huge_region *const region = id_map_get(&pages->regions, address_of(data));
    assert(region != NULL && region->size == size);
    const uint32_t piece = (uint32_t)((size_t)((uint8_t *)data - region->data) / bytes);
    assert((region->taken & 1u << piece) != 0);
    if (region->taken == all_of(size))
        LIST_APPEND(&pages->with_room[size], region, among_room);
    region->taken &= ~(1u << piece);
    if (region->taken == 0) {
        LIST_REMOVE(&pages->with_room[size], region, among_room);
        drop(pages, region);
        return;
    }
    ask(region, false);
    (void)madvise(data, bytes, MADV_DONTNEED);
}
