/* SPDX-License-Identifier: Apache-2.0 */
/* spare_memory.c (test) -- memory that is kept for the next result, and given up where memory is
 * short. */

#include "unit.h"
#include "spare_memory.h"

#define BLOCK_BYTES 4096u

/* A source that refuses the next `refuses` times. */
struct source {
    uint32_t refuses, made;
};

static enum sumac_status
make(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error)
{
    struct source *source = context;

    if (source->refuses > 0) {
        source->refuses--;
        *error = (struct sumac_error){
            SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "the source has none"};
        return error->status;
    }
    source->made++;
    return sumac_buffer_create(bytes, buffer);
}

static struct kept *open_with(struct source *source)
{
    const struct kept_source of = {
        .make = make, .context = source, .count_max = 4, .bytes_max = UINT64_MAX};
    struct kept *kept = kept_open(&of);

    assert_non_null(kept);
    return kept;
}

static enum sumac_status take(struct kept *kept, uint64_t bytes, struct sumac_buffer **buffer)
{
    const struct kept_wish wish = {.bytes = bytes, .room = bytes};
    struct sumac_error error = {.status = SUMAC_OK};
    const enum sumac_status status = kept_take(kept, &wish, buffer, &error);

    assert_int_equal(error.status, status);
    return status;
}

TEST(what_was_given_back_is_taken_again)
{
    struct source source = {.refuses = 0};
    struct kept *kept = open_with(&source);
    struct sumac_buffer *buffer = NULL;

    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(take(kept, BLOCK_BYTES, &buffer), SUMAC_OK);
        sumac_buffer_unref(buffer);
    }
    assert_int_equal(source.made, 1);
    kept_close(kept);
}

/* A stream may still read a block that was given back. */
TEST(a_buffer_has_the_bytes_that_were_wished_and_room_for_more)
{
    struct source source = {.refuses = 0};
    struct kept *kept = open_with(&source);
    const struct kept_wish wish = {.bytes = 100, .room = BLOCK_BYTES};
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(kept_take(kept, &wish, &buffer, NULL), SUMAC_OK);

    assert_int_equal(sumac_buffer_bytes(buffer), 100);
    sumac_buffer_unref(buffer);
    assert_int_equal(kept->bytes, BLOCK_BYTES);
    kept_close(kept);
}

TEST(what_is_wished_new_is_none_that_was_given_back)
{
    struct source source = {.refuses = 0};
    struct kept *kept = open_with(&source);
    const struct kept_wish wish = {.bytes = BLOCK_BYTES, .room = BLOCK_BYTES, .is_new = true};
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(take(kept, BLOCK_BYTES, &buffer), SUMAC_OK);
    sumac_buffer_unref(buffer);
    assert_int_equal(kept_take(kept, &wish, &buffer, NULL), SUMAC_OK);

    assert_int_equal(source.made, 2);
    assert_int_equal(kept->count, 1);
    sumac_buffer_unref(buffer);
    kept_close(kept);
}

TEST(idle_blocks_are_freed_where_memory_is_short)
{
    struct source source = {.refuses = 0};
    struct kept *kept = open_with(&source);
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(take(kept, BLOCK_BYTES, &buffer), SUMAC_OK);
    sumac_buffer_unref(buffer); /* given: one is idle, too small for the next */
    assert_int_equal(kept->count, 1);

    source.refuses = 1;
    assert_int_equal(take(kept, 4 * BLOCK_BYTES, &buffer), SUMAC_OK); /* when */

    assert_int_equal(kept->count, 0); /* then */
    assert_int_equal(kept->bytes, 0);
    assert_int_equal(source.made, 2);
    sumac_buffer_unref(buffer);
    kept_close(kept);
}

/* Without anything idle the source is not asked again; nor is it a third time. */
TEST(a_source_that_has_none_is_told_and_leaves_all_as_it_was)
{
    struct source source = {.refuses = 1};
    struct kept *kept = open_with(&source);
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(take(kept, BLOCK_BYTES, &buffer), SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(source.refuses, 0);
    assert_int_equal(take(kept, BLOCK_BYTES, &buffer), SUMAC_OK);
    sumac_buffer_unref(buffer);
    source.refuses = 3;
    buffer = NULL;
    assert_int_equal(take(kept, 4 * BLOCK_BYTES, &buffer), SUMAC_RESOURCE_EXHAUSTED);

    assert_int_equal(source.refuses, 1);
    assert_null(buffer);
    assert_int_equal(kept->references, 1);
    kept_close(kept);
}
