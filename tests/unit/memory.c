/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c -- sources, pools and arenas. */

#include "unit.h"
#include "memory.h"

/* A source that counts, and that is empty past bytes_max. */
struct counted {
    size_t bytes_out, bytes_max;
    size_t takes;
};

static void *take_counted(void *context, size_t bytes)
{
    struct counted *counted = context;

    if (bytes > counted->bytes_max - counted->bytes_out)
        return NULL;
    counted->bytes_out += bytes;
    counted->takes++;
    return memory_take(&memory_heap, bytes);
}

static void give_counted(void *context, void *data, size_t bytes)
{
    struct counted *counted = context;

    assert_true(counted->bytes_out >= bytes);
    counted->bytes_out -= bytes;
    memory_give(&memory_heap, data, bytes);
}

static struct memory source(struct counted *counted)
{
    return (struct memory){.take = take_counted, .give = give_counted, .context = counted};
}

TEST(the_heap_gives_aligned_memory_and_says_when_there_is_none)
{
    for (size_t bytes = 0; bytes < 200; bytes += 33) {
        void *data = memory_take(&memory_heap, bytes);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data % 64, 0);
        memory_give(&memory_heap, data, bytes);
    }
    assert_null(memory_take(&memory_heap, SIZE_MAX));
    memory_give(&memory_heap, NULL, 0);
}

TEST(a_pool_gives_zeroed_objects_and_uses_them_again)
{
    struct counted counted = {.bytes_max = SIZE_MAX};
    const struct memory memory = source(&counted);
    struct pool pool;

    pool_init(&pool, &memory, 20, 4);

    uint8_t *objects[4];
    for (size_t i = 0; i < 4; i++) {
        objects[i] = pool_take(&pool);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], 0xff, 20);
    }
    assert_int_equal(counted.takes, 1);
    assert_int_equal(pool.used, 4);
    pool_give(&pool, objects[2]);
    uint8_t *again = pool_take(&pool);

    assert_ptr_equal(again, objects[2]);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(again[i], 0);
    assert_int_equal(counted.takes, 1);
    pool_deinit(&pool);
    assert_int_equal(counted.bytes_out, 0);
    assert_int_equal(pool.used, 0);
}

TEST(a_pool_grows_by_chunks_until_its_source_is_empty)
{
    struct counted counted = {.bytes_max = 2 * (64 + 2 * 32)};
    const struct memory memory = source(&counted);
    struct pool pool;

    pool_init(&pool, &memory, 32, 2);

    for (size_t i = 0; i < 4; i++)
        assert_non_null(pool_take(&pool));
    assert_null(pool_take(&pool));

    assert_int_equal(pool.used, 4);
    pool_deinit(&pool);
    assert_int_equal(counted.bytes_out, 0);
}

TEST(an_arena_that_has_given_its_bound_gives_no_byte_more)
{
    struct arena arena;

    arena_init(&arena, &memory_heap, 64);
    assert_non_null(arena_take(&arena, 64));

    assert_null(arena_take(&arena, 1));

    assert_int_equal(arena.bytes_used, 64);
    arena_deinit(&arena);
}

TEST(an_arena_gives_up_to_its_bound_and_all_again_after_a_reset)
{
    struct counted counted = {.bytes_max = SIZE_MAX};
    const struct memory memory = source(&counted);
    struct arena arena;

    arena_init(&arena, &memory, 100000);

    for (int round = 0; round < 3; round++) {
        size_t given = 0;
        for (void *data = arena_take(&arena, 1000); data != NULL; data = arena_take(&arena, 1000)) {
            assert_true(given < 100000);
            assert_int_equal((uintptr_t)data % 16, 0);
            memset(data, round, 1000);
            given += 1008; /* rounded up to 16 */
        }
        assert_int_equal(given, 1008 * (100000 / 1008));
        assert_int_equal(arena.bytes_used, given);
        arena_reset(&arena);
    }

    assert_true(counted.bytes_out <= 3 * 100000 + 64 * 8);
    arena_deinit(&arena);
    assert_int_equal(counted.bytes_out, 0);
}

TEST(a_chunk_that_is_too_small_is_passed_over)
{
    struct counted counted = {.bytes_max = SIZE_MAX};
    const struct memory memory = source(&counted);
    struct arena arena;

    arena_init(&arena, &memory, 1000000);
    assert_non_null(arena_take(&arena, 16000)); /* given: three chunks, each larger */
    assert_non_null(arena_take(&arena, 20000));
    void *const largest = arena_take(&arena, 90000);
    const size_t bytes_out = counted.bytes_out;
    arena_reset(&arena);

    void *const again = arena_take(&arena, 90000); /* when */

    assert_ptr_equal(again, largest); /* then */
    memset(again, 7, 90000);
    assert_int_equal(counted.bytes_out, bytes_out);
    arena_deinit(&arena);
}

TEST(an_arena_keeps_its_chunks_for_the_next_time)
{
    struct counted counted = {.bytes_max = SIZE_MAX};
    const struct memory memory = source(&counted);
    struct arena arena;

    arena_init(&arena, &memory, 1 << 20);
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_take(&arena, 5000));
    const size_t takes = counted.takes;

    arena_reset(&arena);
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_take(&arena, 5000));

    assert_int_equal(counted.takes, takes);
    arena_deinit(&arena);
}

/* Requests that no kept chunk has room for do not add up: what is held stays below three times the
 * bound. */
TEST(an_arena_holds_at_most_three_times_its_bound)
{
    const size_t bytes_max = 1 << 20;
    const size_t first_requests[] = {16, bytes_max / 2, bytes_max - 4096};

    for (size_t i = 0; i < 3; i++) {
        struct counted counted = {.bytes_max = SIZE_MAX};
        const struct memory memory = source(&counted);
        struct arena arena;
        arena_init(&arena, &memory, bytes_max);

        for (size_t bytes = first_requests[i]; bytes <= bytes_max; bytes += 1009) {
            arena_reset(&arena);
            assert_non_null(arena_take(&arena, bytes));
        }

        assert_true(counted.bytes_out <= 3 * bytes_max);
        arena_deinit(&arena);
    }
}

TEST(an_arena_whose_source_is_empty_still_gives_what_fits)
{
    struct counted counted = {.bytes_max = 17000};
    const struct memory memory = source(&counted);
    struct arena arena;

    arena_init(&arena, &memory, 1 << 20);
    assert_non_null(arena_take(&arena, 16000));

    assert_null(arena_take(&arena, 1000));
    assert_non_null(arena_take(&arena, 100));

    assert_null(arena_take(&arena, SIZE_MAX));
    arena_deinit(&arena);
}

TEST(zeroed_memory_of_an_arena_is_zeroed_after_a_reset_too)
{
    struct arena arena;

    arena_init(&arena, &memory_heap, 4096);
    memset(arena_take(&arena, 64), 0xff, 64);
    arena_reset(&arena);

    const uint8_t *data = arena_take_zeroed(&arena, 64);

    for (size_t i = 0; i < 64; i++)
        assert_int_equal(data[i], 0);
    arena_deinit(&arena);
}

TEST(requests_for_nothing_get_places_of_their_own)
{
    struct arena arena;

    arena_init(&arena, &memory_heap, 32);

    const void *first = arena_take(&arena, 0), *second = arena_take(&arena, 0);

    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    assert_null(arena_take(&arena, 0));
    arena_deinit(&arena);
}
