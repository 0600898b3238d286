/* SPDX-License-Identifier: Apache-2.0 */
/* reserved_array.c -- an array that grows, and its reserve where the source has no memory. */

#include "unit.h"
#include "reserved_array.h"

struct item {
    uint64_t number;
    char text[40];
};

struct fixture {
    bool empty;         /* the source */
    size_t bytes_taken; /* of it */
    struct memory memory;
    struct reserved_array array;
};

static void *take(void *context, size_t bytes)
{
    struct fixture *const fixture = context;

    if (fixture->empty)
        return NULL;
    fixture->bytes_taken += bytes;
    void *const data = memory_take(&memory_heap, bytes);
    if (data != NULL)
        memset(data, 0xa5, bytes);
    return data;
}

static void give(void *context, void *data, size_t bytes)
{
    struct fixture *const fixture = context;

    fixture->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

#define FIRST_CAPACITY 24u

static int set_up(void **state)
{
    struct fixture *const fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL)
        return 1;
    fixture->memory = (struct memory){take, give, fixture};
    *state = fixture;
    return reserved_array_init(
               &fixture->array, &fixture->memory, sizeof(struct item), FIRST_CAPACITY)
               ? 0
               : 1;
}

static int tear_down(void **state)
{
    struct fixture *const fixture = *state;

    reserved_array_deinit(&fixture->array);
    const size_t kept = fixture->bytes_taken;
    free(fixture);
    return kept != 0;
}

static const struct item *item_at(const struct reserved_array *array, uint32_t index)
{
    const void *const items = array->items;

    return (const struct item *)items + index;
}

/* An item that was not zeroed, or has no memory of its own, is noticed here. */
static void add(struct reserved_array *array, enum reserved_place place, uint64_t number)
{
    struct item *const item = reserved_array_add(array, place);

    assert_non_null(item);
    assert_int_equal(item->number, 0);
    assert_int_equal(item->text[sizeof item->text - 1], 0);
    memset(item, 0xff, sizeof *item);
    item->number = number;
}

/* As many as have a place; how many they were. */
static uint32_t fill(struct reserved_array *array, enum reserved_place place)
{
    const uint32_t before = array->count;
    uint32_t last;

    do {
        last = array->count;
        add(array, place, last);
    } while (array->count > last);
    return last - before;
}

static void assert_numbered(const struct reserved_array *array)
{
    for (uint32_t i = 0; i < array->count; i++)
        assert_int_equal(item_at(array, i)->number, i);
}

#define ARRAY_TEST(name) FIXTURE_TEST(name, struct fixture *const fixture, set_up, tear_down)

ARRAY_TEST(it_has_no_bound_while_there_is_memory)
{
    for (uint32_t i = 0; i < 1000; i++)
        add(&fixture->array, (enum reserved_place)(i % 3), i);

    assert_int_equal(fixture->array.count, 1000);
    assert_false(fixture->array.lost);
    assert_numbered(&fixture->array);
}

ARRAY_TEST(what_it_has_grown_to_it_keeps)
{
    struct reserved_array *const array = &fixture->array;

    for (uint32_t i = 0; i < 100; i++)
        add(array, RESERVED_PLACE_ANY, i);
    reserved_array_reset(array);
    assert_int_equal(array->count, 0);
    fixture->empty = true;
    for (uint32_t i = 0; i < 100; i++)
        add(array, RESERVED_PLACE_NONE, i);

    assert_int_equal(array->count, 100);
    assert_numbered(array);
}

/* The reserve is there from the start, and after each growth. */
ARRAY_TEST(the_reserve_is_for_what_is_needed_and_its_last_place_for_the_end)
{
    struct reserved_array *const array = &fixture->array;

    for (uint32_t grown = 0; grown < 3; grown++) {
        const uint32_t capacity = array->capacity;
        fixture->empty = true;
        reserved_array_reset(array);

        /* when */
        assert_int_equal(fill(array, RESERVED_PLACE_NONE), capacity - RESERVED_ARRAY_RESERVE);
        assert_false(array->lost);
        assert_int_equal(fill(array, RESERVED_PLACE_ANY), RESERVED_ARRAY_RESERVE - 1);
        assert_true(array->lost);
        assert_int_equal(fill(array, RESERVED_PLACE_LAST), 1);

        assert_int_equal(array->count, capacity); /* then */
        assert_numbered(array);
        fixture->empty = false;
        add(array, RESERVED_PLACE_ANY, array->count);
        assert_int_equal(array->capacity, 2 * capacity);
        assert_numbered(array);
    }
}

/* Also the last one's: whoever asked for it ends, and says so elsewhere. */
ARRAY_TEST(what_is_needed_and_has_no_place_is_told)
{
    struct reserved_array *const array = &fixture->array;

    fixture->empty = true;
    (void)fill(array, RESERVED_PLACE_LAST);
    assert_true(array->lost);
    reserved_array_reset(array);
    assert_false(array->lost);
    (void)fill(array, RESERVED_PLACE_NONE);
    assert_false(array->lost);
}

ARRAY_TEST(without_memory_it_does_not_begin)
{
    struct reserved_array none;

    fixture->empty = true;
    assert_false(reserved_array_init(&none, &fixture->memory, 8, FIRST_CAPACITY));
    reserved_array_deinit(&none);
}
