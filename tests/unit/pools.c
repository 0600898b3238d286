/* SPDX-License-Identifier: Apache-2.0 */
/* pools.c -- memory by size, maps of ids and of keys, and lists. */

#include "unit.h"
#include "id_map.h"
#include "key_map.h"
#include "list.h"
#include "memory.h"
#include "sized_pool.h"

struct fixture {
    struct memory memory;
    uint64_t bytes_taken, bytes_max;
};

static void *take(void *context, size_t bytes)
{
    struct fixture *fixture = context;

    if (bytes > fixture->bytes_max - fixture->bytes_taken)
        return NULL;
    fixture->bytes_taken += bytes;
    return memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    struct fixture *fixture = context;

    fixture->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

static int begin(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL)
        return 1;
    fixture->memory = (struct memory){.take = take, .give = give, .context = fixture};
    fixture->bytes_max = UINT64_MAX;
    *state = fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t kept = fixture->bytes_taken;

    free(fixture);
    return kept != 0;
}

/* ---- pools ---- */

FIXTURE_TEST(sizes_are_rounded_up_by_an_eighth_at_most, struct fixture *fixture, begin, end)
{
    for (size_t bytes = 513; bytes <= 8u << 20; bytes += bytes / 7) {
        assert_true(sized_pool_bytes(bytes) >= bytes);
        assert_true(sized_pool_bytes(bytes) <= bytes + bytes / 8 + 1);
        assert_int_equal(sized_pool_bytes(bytes) % 64, 0);
    }
    assert_int_equal(sized_pool_bytes(1u << 20), 1u << 20);
    assert_int_equal(sized_pool_bytes(1), 64);
}

FIXTURE_TEST(what_is_given_back_is_taken_again, struct fixture *fixture, begin, end)
{
    struct sized_pool pool;

    sized_pool_init(&pool, &fixture->memory, 1u << 19);

    void *first = sized_pool_take(&pool, 100000);
    sized_pool_give(&pool, first, 100000);
    void *second = sized_pool_take(&pool, 99999);

    assert_ptr_equal(first, second);
    sized_pool_give(&pool, second, 99999);
    sized_pool_deinit(&pool);
}

FIXTURE_TEST(no_more_than_the_bound_is_kept, struct fixture *fixture, begin, end)
{
    struct sized_pool pool;

    sized_pool_init(&pool, &fixture->memory, 150000);

    void *first = sized_pool_take(&pool, 100000), *second = sized_pool_take(&pool, 100000);
    sized_pool_give(&pool, first, 100000);
    sized_pool_give(&pool, second, 100000);

    assert_true(fixture->bytes_taken <= 150000);
    sized_pool_deinit(&pool);
}

FIXTURE_TEST(what_was_trimmed_is_taken_of_the_source_again, struct fixture *fixture, begin, end)
{
    struct sized_pool pool;

    sized_pool_init(&pool, &fixture->memory, 1u << 19);
    sized_pool_give(&pool, sized_pool_take(&pool, 100000), 100000);
    sized_pool_trim(&pool);
    assert_int_equal(fixture->bytes_taken, 0);

    void *again = sized_pool_take(&pool, 100000);

    assert_int_equal(fixture->bytes_taken, sized_pool_bytes(100000));
    sized_pool_give(&pool, again, 100000);
    sized_pool_deinit(&pool);
}

/* No taker pays for all that is spare. */
FIXTURE_TEST(each_taker_gives_eight_spare_pieces_back, struct fixture *fixture, begin, end)
{
    struct sized_pool pool;
    void *pieces[20];

    sized_pool_init(&pool, &fixture->memory, 1u << 19);
    for (size_t i = 0; i < 20; i++)
        pieces[i] = sized_pool_take(&pool, 8192);
    for (size_t i = 0; i < 20; i++)
        sized_pool_give(&pool, pieces[i], 8192);
    pool.spare_bytes_max = 0;

    void *fresh = sized_pool_take(&pool, 16384);

    assert_int_equal(fixture->bytes_taken, (20 - 8) * 8192 + 16384);
    sized_pool_give(&pool, fresh, 16384);
    sized_pool_deinit(&pool);
}

/* 1000 objects of every small size, one size after the other. */
FIXTURE_TEST(
    what_is_given_back_of_small_sizes_is_given_to_the_source, struct fixture *fixture, begin, end)
{
    static void *objects[1000];
    struct sized_pool pool;

    sized_pool_init(&pool, &fixture->memory, 0);

    for (size_t bytes = 64; bytes <= 4096; bytes += 64) {
        for (size_t i = 0; i < 1000; i++)
            objects[i] = sized_pool_take(&pool, bytes);
        for (size_t i = 0; i < 1000; i++)
            sized_pool_give(&pool, objects[i * 7 % 1000], bytes);
    }

    assert_true(fixture->bytes_taken <= SIZED_POOL_EMPTY_BYTES_MAX);
    sized_pool_trim(&pool);
    assert_int_equal(fixture->bytes_taken, 0);
    sized_pool_deinit(&pool);
}

/* One of each slab stays in use, and what is beside it is taken again. */
FIXTURE_TEST(a_slab_of_which_something_is_in_use_is_used_again, struct fixture *fixture, begin, end)
{
    static void *objects[1000];
    struct sized_pool pool;

    sized_pool_init(&pool, &fixture->memory, 0);
    for (size_t i = 0; i < 1000; i++)
        objects[i] = sized_pool_take(&pool, 1000);
    const uint64_t most = fixture->bytes_taken;

    for (size_t i = 0; i < 1000; i++)
        if (i % 20 != 0)
            sized_pool_give(&pool, objects[i], 1000);
    for (size_t i = 0; i < 1000; i++)
        if (i % 20 != 0)
            objects[i] = sized_pool_take(&pool, 1000);

    assert_int_equal(fixture->bytes_taken, most);
    for (size_t i = 0; i < 1000; i++)
        sized_pool_give(&pool, objects[i], 1000);
    sized_pool_deinit(&pool);
    assert_int_equal(fixture->bytes_taken, 0);
}

/* The bound sinks while something is kept: whoever wants another size does not add to it. */
FIXTURE_TEST(
    what_is_spare_beyond_the_bound_goes_before_more_is_taken, struct fixture *fixture, begin, end)
{
    struct sized_pool pool;

    sized_pool_init(&pool, &fixture->memory, 300000);
    sized_pool_give(&pool, sized_pool_take(&pool, 200000), 200000);

    pool.spare_bytes_max = 100000;
    void *other = sized_pool_take(&pool, 150000);

    assert_true(fixture->bytes_taken <= 200000);
    sized_pool_give(&pool, other, 150000);
    sized_pool_deinit(&pool);
}

/* ---- holes: one object stays in each slab, size after size, and what is between serves no other
 * size */

FIXTURE_TEST(
    a_pool_holds_no_more_than_its_bound_whatever_is_left_in_its_slabs, struct fixture *fixture,
    begin, end)
{
    enum { BOUND = 4 << 20, OBJECTS = BOUND / 64 };
    struct sized_pool pool;
    static void *objects[OBJECTS], *kept[OBJECTS];
    static size_t kept_bytes[OBJECTS];
    size_t kept_count = 0, refused = 0;
    sized_pool_init(&pool, &fixture->memory, 0);
    pool.held_bytes_max = BOUND;
    pool.reserve_bytes = MEMORY_SLAB_BYTES;
    const uint64_t before = fixture->bytes_taken;

    for (size_t bytes = 64; bytes <= 4096; bytes = sized_pool_bytes(bytes + 1)) {
        const size_t count = BOUND / 2 / bytes, of_slab = (MEMORY_SLAB_BYTES - 64) / bytes;
        for (size_t i = 0; i < count; i++) {
            objects[i] = sized_pool_take(&pool, bytes);
            refused += objects[i] == NULL;
            assert_true(fixture->bytes_taken - before <= BOUND);
        }
        for (size_t i = 0; i < count; i++) {
            if (i % of_slab != 0 || objects[i] == NULL) {
                sized_pool_give(&pool, objects[i], bytes);
                continue;
            }
            kept[kept_count] = objects[i];
            kept_bytes[kept_count++] = bytes;
        }
    }

    assert_true(refused > 0);
    assert_true(sized_pool_is_full(&pool));
    assert_null(sized_pool_take(&pool, 4096));
    void *reserved = sized_pool_take_reserved(&pool, 4096);
    assert_non_null(reserved);
    sized_pool_give(&pool, reserved, 4096);
    for (size_t i = 0; i < kept_count; i++)
        sized_pool_give(&pool, kept[i], kept_bytes[i]);
    assert_false(sized_pool_is_full(&pool));
    sized_pool_deinit(&pool);
    assert_int_equal(pool.held_bytes, 0);
    assert_int_equal(fixture->bytes_taken, before); /* nothing is kept when nothing is in use */
}

FIXTURE_TEST(
    a_pool_may_hold_as_much_as_its_bound_and_no_byte_more, struct fixture *fixture, begin, end)
{
    enum { BYTES = 16 << 20 };
    struct sized_pool pool;
    sized_pool_init(&pool, &fixture->memory, 0);
    pool.held_bytes_max = BYTES;

    void *more = sized_pool_take(&pool, BYTES + 1);
    void *all = sized_pool_take(&pool, BYTES);

    assert_null(more);
    assert_non_null(all);
    assert_int_equal(pool.held_bytes, BYTES);
    sized_pool_give(&pool, all, BYTES);
    sized_pool_deinit(&pool);
}

/* ---- any order */

#define HELD_MAX 64u

/* Each counter is the sum of what it counts. */
static void assert_counted(const struct fixture *fixture, const struct sized_pool *pool)
{
    uint64_t spare = 0;

    for (size_t bytes = 4097; bytes <= 8u << 20; bytes = sized_pool_bytes(bytes) + 1) {
        const size_t rounded = sized_pool_bytes(bytes);
        const uint32_t class = 8 + 8 * (63 - (uint32_t)__builtin_clzll(rounded - 1) - 9) +
                               (uint32_t)((rounded - 1) >> (60 - __builtin_clzll(rounded - 1))) % 8;
        for (void *const *free = pool->free[class]; free != NULL; free = *free)
            spare += rounded;
    }
    assert_int_equal(pool->spare_bytes, spare);
    assert_int_equal(pool->held_bytes, fixture->bytes_taken);
    assert_true(pool->held_bytes <= pool->held_bytes_max + pool->reserve_bytes);
}

/* Nothing is left that the source could take back. */
static void assert_does_not_fit(const struct sized_pool *pool, size_t bytes, uint64_t bytes_max)
{
    const uint64_t wanted = bytes > 4096 ? sized_pool_bytes(bytes) : MEMORY_SLAB_BYTES;

    assert_true(pool->held_bytes + wanted > bytes_max);
    assert_int_equal(pool->spare_bytes, 0);
    for (uint32_t i = 0; i < SIZED_POOL_SLAB_CLASSES; i++)
        assert_null(pool->empty[i]);
}

static uint32_t next(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

struct held {
    uint8_t *data;
    size_t bytes;
};

/* Sizes are mixed, and memory goes back to the source in each of the three ways. */
FIXTURE_TEST(whatever_is_taken_and_given_the_counters_hold, struct fixture *fixture, begin, end)
{
    struct sized_pool pool;
    struct held held[HELD_MAX] = {{0}};
    uint32_t random = 1;
    unsigned reserved = 0;

    sized_pool_init(&pool, &fixture->memory, 1u << 19);
    pool.held_bytes_max = 3u << 20;
    pool.reserve_bytes = 1u << 19;
    for (int step = 0; step < 20000; step++) {
        const uint32_t at = next(&random) % HELD_MAX, what = next(&random) % 64;
        if (held[at].data != NULL) {
            for (size_t i = 0; i < held[at].bytes; i += 64)
                assert_int_equal(held[at].data[i], (uint8_t)at);
            sized_pool_give(&pool, held[at].data, held[at].bytes);
            held[at].data = NULL;
        } else {
            held[at].bytes = 1 + (next(&random) & ((1u << 20) - 1)) % (1u << (6 + what % 15));
            held[at].data = sized_pool_take(&pool, held[at].bytes);
            if (held[at].data == NULL)
                assert_does_not_fit(&pool, held[at].bytes, pool.held_bytes_max);
            if (held[at].data == NULL && what < 32) {
                held[at].data = sized_pool_take_reserved(&pool, held[at].bytes);
                reserved += held[at].data != NULL;
                if (held[at].data == NULL)
                    assert_does_not_fit(
                        &pool, held[at].bytes, pool.held_bytes_max + pool.reserve_bytes);
            }
            if (held[at].data != NULL)
                memset(held[at].data, (int)at, held[at].bytes);
        }
        if (what == 63)
            sized_pool_trim(&pool);
        if (what == 62)
            (void)sized_pool_shrink(&pool);
        assert_counted(fixture, &pool);
    }
    assert_true(reserved > 0);
    for (uint32_t i = 0; i < HELD_MAX; i++)
        sized_pool_give(&pool, held[i].data, held[i].bytes);
    sized_pool_trim(&pool);
    pool.held_bytes_max = UINT64_MAX; /* with a reserve there is no more than that */
    pool.reserve_bytes = 1;
    sized_pool_give(&pool, sized_pool_take_reserved(&pool, 5000), 5000);
    assert_true(pool.held_bytes > 0);
    sized_pool_deinit(&pool);
    assert_int_equal(pool.held_bytes, 0);
}

/* ---- ids ---- */

FIXTURE_TEST(a_map_of_few_ids_is_small_again, struct fixture *fixture, begin, end)
{
    struct id_map map;
    uint8_t thing;

    id_map_init(&map, &fixture->memory);
    for (uint64_t id = 0; id < 10000; id++)
        assert_true(id_map_put(&map, id, &thing));

    for (uint64_t id = 0; id < 9990; id++)
        id_map_remove(&map, id);

    assert_true(fixture->bytes_taken <= 128 * sizeof(struct id_map_place));
    for (uint64_t id = 0; id < 10000; id++)
        assert_ptr_equal(id_map_get(&map, id), id < 9990 ? NULL : &thing);
    id_map_deinit(&map);
}

FIXTURE_TEST(ids_are_found_until_they_are_removed, struct fixture *fixture, begin, end)
{
    struct id_map map;

    enum { ids = 5000 };
    uint8_t *things = calloc(ids, 1);
    id_map_init(&map, &fixture->memory);
    for (uint64_t id = 0; id < ids; id++)
        assert_true(id_map_put(&map, id * 4096, &things[id]));
    for (uint64_t id = 0; id < ids; id += 2)
        id_map_remove(&map, id * 4096);

    for (uint64_t id = 0; id < ids; id++)
        assert_ptr_equal(id_map_get(&map, id * 4096), id % 2 == 0 ? NULL : &things[id]);
    assert_int_equal(map.count, ids / 2);
    id_map_deinit(&map);
    free(things);
}

/* Nothing is lost, found twice, or found again, whatever is put and removed while the entries of a
 * map that grows or shrinks are on their way. */
FIXTURE_TEST(ids_are_found_while_the_map_changes_its_size, struct fixture *fixture, begin, end)
{
    enum { ids = 3000, changes = 60000 };
    struct id_map map;
    uint8_t *there[ids] = {0};
    uint8_t things[2];
    uint64_t drawn = 1;
    size_t count = 0, beside = 0;

    id_map_init(&map, &fixture->memory);
    for (uint32_t i = 0; i < changes; i++) {
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        const size_t id = (drawn >> 33) % ids;
        const bool grows = i / 6000 % 2 == 0; /* mostly puts, then mostly removes */
        const bool puts = (drawn >> 20) % 8 != 0;
        if (grows == puts) {
            assert_true(id_map_put(&map, id, &things[i % 2]));
            count += there[id] == NULL;
            there[id] = &things[i % 2];
        } else {
            id_map_remove(&map, id);
            count -= there[id] != NULL;
            there[id] = NULL;
        }
        beside += map.old != NULL && map.capacity > 64;
        assert_int_equal(id_map_bytes(&map), fixture->bytes_taken);
        assert_int_equal(map.count, count);
        if (i % 16 != 0 && map.old == NULL)
            continue;
        for (size_t k = i % 7; k < ids; k += 7)
            assert_ptr_equal(id_map_get(&map, k), there[k]);
    }

    assert_true(beside > 100);
    id_map_deinit(&map);
    assert_int_equal(fixture->bytes_taken, 0);
}

/* Of a map of a hundred thousand, none clears or brings over more than a few places. */
FIXTURE_TEST(
    a_put_and_a_remove_clear_and_bring_over_a_few_places, struct fixture *fixture, begin, end)
{
    enum { ids = 100000 };
    struct id_map map;
    uint8_t thing;

    id_map_init(&map, &fixture->memory);
    for (uint64_t id = 0; id < 2 * (uint64_t)ids; id++) {
        const struct id_map before = map;
        if (id < ids)
            assert_true(id_map_put(&map, id, &thing));
        else
            id_map_remove(&map, id - ids);
        const bool changed = map.capacity != before.capacity;
        if (before.capacity > 64 && changed)
            assert_in_range(before.cleared, map.capacity - 16, map.capacity);
        if (!changed && map.cleared > before.cleared)
            assert_in_range(map.cleared - before.cleared, 1, 16);
        if (!changed && map.brought > before.brought)
            assert_in_range(map.brought - before.brought, 1, 32);
        if (id < ids)
            assert_true(
                map.capacity <= 64 || fixture->bytes_taken <= map.count * ID_MAP_ENTRY_BYTES_MAX);
    }

    assert_int_equal(map.count, 0);
    assert_int_equal(map.capacity, 64);
    id_map_deinit(&map);
    assert_int_equal(fixture->bytes_taken, 0);
}

/* ---- keys ---- */

struct thing {
    struct key_entry by_name;
    LINKS(struct thing) in_row;
    int number;
};

static void put(struct key_map *map, struct thing *thing, const char *name)
{
    thing->by_name = (struct key_entry){.key = name, .key_bytes = strlen(name), .value = thing};
    assert_true(key_map_put(map, &thing->by_name));
}

static struct thing *get(const struct key_map *map, const char *name)
{
    return key_map_get(map, name, strlen(name));
}

/* The first two have the same hash (where words are little-endian). */
FIXTURE_TEST(two_keys_of_one_hash_are_two_things, struct fixture *fixture, begin, end)
{
    static const char *const names[] = {"the_nameeE2FefJ9", "4-8NXIr35On5uf5q", "W"};
    struct thing things[3] = {0};

    for (size_t removed = 0; removed < 3; removed++) {
        struct key_map map;
        key_map_init(&map, &fixture->memory);
        for (size_t i = 0; i < 3; i++)
            put(&map, &things[i], names[i]);
        assert_int_equal(map.hashes.count, 2);

        key_map_remove(&map, &things[removed].by_name);

        for (size_t i = 0; i < 3; i++)
            assert_ptr_equal(get(&map, names[i]), i == removed ? NULL : &things[i]);
        key_map_deinit(&map);
    }
}

FIXTURE_TEST(a_key_is_all_of_its_bytes, struct fixture *fixture, begin, end)
{
    struct thing short_one = {0}, long_one = {0};
    struct key_map map;

    key_map_init(&map, &fixture->memory);
    put(&map, &short_one, "dense");
    put(&map, &long_one, "dense/kernel");

    assert_ptr_equal(get(&map, "dense"), &short_one);
    assert_ptr_equal(get(&map, "dense/kernel"), &long_one);
    assert_null(get(&map, "dens"));
    assert_null(get(&map, ""));
    key_map_deinit(&map);
}

/* A variable that is deleted stays for a moment beside the new one of its name. */
FIXTURE_TEST(
    of_two_of_one_key_the_later_is_found_and_each_is_removed_alone, struct fixture *fixture, begin,
    end)
{
    struct thing old = {0}, fresh = {0};
    struct key_map map;

    key_map_init(&map, &fixture->memory);
    put(&map, &old, "W");
    put(&map, &fresh, "W");

    assert_ptr_equal(get(&map, "W"), &fresh);
    key_map_remove(&map, &old.by_name);
    assert_ptr_equal(get(&map, "W"), &fresh);
    key_map_remove(&map, &fresh.by_name);
    assert_null(get(&map, "W"));
    key_map_deinit(&map);
}

/* The one in the middle has another before it and another behind it. */
FIXTURE_TEST(of_three_of_one_key_each_is_removed_alone, struct fixture *fixture, begin, end)
{
    for (size_t removed = 0; removed < 3; removed++) {
        struct thing things[3] = {0};
        struct key_map map;
        key_map_init(&map, &fixture->memory);
        for (size_t i = 0; i < 3; i++)
            put(&map, &things[i], "W");

        key_map_remove(&map, &things[removed].by_name);

        assert_int_equal(map.count, 2);
        for (size_t i = 3; i-- > 0;) {
            if (i == removed)
                continue;
            assert_ptr_equal(get(&map, "W"), &things[i]);
            key_map_remove(&map, &things[i].by_name);
        }
        assert_null(get(&map, "W"));
        assert_int_equal(map.count, 0);
        key_map_deinit(&map);
    }
}

FIXTURE_TEST(a_key_that_there_is_no_memory_for_changes_nothing, struct fixture *fixture, begin, end)
{
    struct thing thing = {.by_name = {.key = "W", .key_bytes = 1, .value = &thing}};
    struct key_map map;

    key_map_init(&map, &fixture->memory);
    fixture->bytes_max = 0;

    assert_false(key_map_put(&map, &thing.by_name));

    assert_null(get(&map, "W"));
    key_map_deinit(&map);
}

/* ---- lists ---- */

struct row {
    struct thing *first, *last;
};

/* "1 2 3", forwards, when that is the same as backwards. */
static void assert_row(const struct row *row, const char *expected)
{
    char text[64] = "";
    size_t used = 0;
    const struct thing *before = NULL;

    for (const struct thing *thing = row->first; thing != NULL; thing = thing->in_row.next) {
        assert_ptr_equal(thing->in_row.prev, before);
        used += (size_t)snprintf(text + used, sizeof text - used, "%d ", thing->number);
        before = thing;
    }
    assert_ptr_equal(row->last, before);
    assert_string_equal(text, expected);
}

FIXTURE_TEST(items_are_put_at_both_ends_and_between, struct fixture *fixture, begin, end)
{
    struct thing things[] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    struct row row = {0};

    assert_row(&row, "");
    LIST_APPEND(&row, &things[2], in_row);
    assert_row(&row, "2 ");
    LIST_PREPEND(&row, &things[0], in_row);
    LIST_INSERT(&row, &things[0], &things[1], in_row);
    LIST_INSERT(&row, &things[2], &things[3], in_row);
    assert_row(&row, "0 1 2 3 ");
}

FIXTURE_TEST(any_item_is_removed, struct fixture *fixture, begin, end)
{
    static const char *const left[] = {"1 2 ", "0 2 ", "0 1 "};

    for (int removed = 0; removed < 3; removed++) {
        struct thing things[] = {{.number = 0}, {.number = 1}, {.number = 2}};
        struct row row = {0};
        for (int i = 0; i < 3; i++)
            LIST_APPEND(&row, &things[i], in_row);

        LIST_REMOVE(&row, &things[removed], in_row);

        assert_row(&row, left[removed]);
        assert_null(things[removed].in_row.next);
        assert_null(things[removed].in_row.prev);
        for (int i = 0; i < 3; i++)
            if (i != removed)
                LIST_REMOVE(&row, &things[i], in_row);
        assert_row(&row, "");
    }
}
