/* SPDX-License-Identifier: Apache-2.0 */
/* huge_pages.c (test) -- pieces of one region, and that nothing is resident of what was given back.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"
#include "huge_pages.h"

#define HALF (HUGE_PAGES_REGION_BYTES / 2)
#define QUARTER (HUGE_PAGES_REGION_BYTES / 4)

static struct huge_pages pages;

static int begin(void **state)
{
    (void)state;
    huge_pages_init(&pages);
    pages.never = false; /* also where a sanitizer watches the heap */
    return 0;
}

static int end(void **state)
{
    (void)state;
    huge_pages_deinit(&pages);
    return 0;
}

static uint8_t *take_filled(size_t bytes, int with)
{
    uint8_t *const data = huge_pages_take(&pages, bytes);

    assert_non_null(data);
    assert_int_equal((uintptr_t)data % 64, 0);
    memset(data, with, bytes);
    return data;
}

static void assert_all(const uint8_t *data, size_t bytes, uint8_t value)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], value);
}

static uintptr_t region_of(const void *data) { return (uintptr_t)data / HUGE_PAGES_REGION_BYTES; }

/* Of its pages; -1: they are not mapped. */
static int resident_pages(const void *data, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char is[HUGE_PAGES_REGION_BYTES / 4096];
    int count = 0;

    if (mincore((void *)(uintptr_t)data, bytes, is) != 0)
        return -1;
    for (size_t i = 0; i < bytes / page; i++)
        count += is[i] & 1;
    return count;
}

FIXTURE_TEST(pieces_lie_together_in_a_region, void *none, begin, end)
{
    /* given, when */
    uint8_t *const halves[] = {take_filled(HALF, 1), take_filled(HALF, 2), take_filled(HALF, 3)};
    uint8_t *quarters[5];
    for (int i = 0; i < 5; i++)
        quarters[i] = take_filled(QUARTER, 10 + i);

    /* then */
    assert_int_equal(region_of(halves[0]), region_of(halves[1]));
    assert_int_not_equal(region_of(halves[0]), region_of(halves[2]));
    for (int i = 1; i < 4; i++)
        assert_int_equal(region_of(quarters[0]), region_of(quarters[i]));
    assert_int_not_equal(region_of(quarters[0]), region_of(quarters[4]));
    for (int i = 0; i < 3; i++)
        assert_all(halves[i], HALF, (uint8_t)(1 + i));
    for (int i = 0; i < 5; i++)
        assert_all(quarters[i], QUARTER, (uint8_t)(10 + i));
    for (int i = 0; i < 3; i++)
        huge_pages_give(&pages, halves[i], HALF);
    for (int i = 0; i < 5; i++)
        huge_pages_give(&pages, quarters[i], QUARTER);
}

FIXTURE_TEST(nothing_of_a_piece_that_is_given_back_is_resident, void *none, begin, end)
{
    uint8_t *const one = take_filled(HALF, 1), *const other = take_filled(HALF, 2); /* given */

    assert_true(resident_pages(one, HALF) > 0);

    huge_pages_give(&pages, one, HALF); /* when */

    assert_int_equal(resident_pages(one, HALF), 0); /* then */
    assert_all(other, HALF, 2);
    assert_ptr_equal(take_filled(HALF, 3), one); /* the next one has its place */
    assert_all(other, HALF, 2);
    huge_pages_give(&pages, one, HALF);
    huge_pages_give(&pages, other, HALF);
    assert_int_equal(resident_pages(one, HALF), -1);
    huge_pages_give(&pages, take_filled(HALF, 4), HALF); /* of a region that is there */
}

FIXTURE_TEST(what_is_of_another_size_is_the_heaps, void *none, begin, end)
{
    static const size_t sizes[] = {1, 64, QUARTER - 64, QUARTER + 64, HALF + 64};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *const data = take_filled(sizes[i], 7); /* given, when */

        assert_null(pages.all.first); /* then */
        huge_pages_give(&pages, data, sizes[i]);
    }
}

FIXTURE_TEST(what_is_in_use_at_the_end_goes, void *none, begin, end)
{
    uint8_t *const data = take_filled(QUARTER, 1); /* given */

    huge_pages_deinit(&pages); /* when */

    assert_int_equal(resident_pages(data, QUARTER), -1); /* then */
    (void)begin(NULL);
}
