/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c -- counted bytes with a place. */

#include "unit.h"
#include "sumac/buffer.h"

static void count_release(void *context) { ++*(int *)context; }

TEST(a_new_buffer_is_zeroed_and_aligned)
{
    struct sumac_buffer *buffer = NULL, *used[20];

    for (size_t i = 0; i < 20; i++) { /* given: more used memory than the heap sets aside */
        assert_int_equal(sumac_buffer_create(1000, &used[i]), SUMAC_OK);
        memset(sumac_buffer_data(used[i]), 0xff, 1000);
    }
    for (size_t i = 0; i < 20; i++)
        sumac_buffer_unref(used[i]);

    assert_int_equal(sumac_buffer_create(1000, &buffer), SUMAC_OK);

    const uint8_t *data = sumac_buffer_data(buffer);
    assert_int_equal((uintptr_t)data % 64, 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(data[i], 0);
    assert_int_equal(sumac_buffer_bytes(buffer), 1000);
    assert_int_equal(sumac_buffer_place(buffer).kind, SUMAC_PLACE_HOST);
    sumac_buffer_unref(buffer);
}

TEST(a_buffer_of_no_bytes_is_fine)
{
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(sumac_buffer_create(0, &buffer), SUMAC_OK);

    assert_int_equal(sumac_buffer_bytes(buffer), 0);
    sumac_buffer_unref(buffer);
}

TEST(a_buffer_beyond_memory_is_refused_and_the_output_left_alone)
{
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(sumac_buffer_create(UINT64_MAX, &buffer), SUMAC_RESOURCE_EXHAUSTED);

    assert_null(buffer);
}

TEST(wrapped_memory_is_released_with_the_last_reference)
{
    int released = 0;
    uint8_t bytes[16];
    struct sumac_buffer *buffer = NULL;
    const struct sumac_place place = {.kind = SUMAC_PLACE_CUDA, .device = 3};

    assert_int_equal(
        sumac_buffer_wrap(bytes, sizeof bytes, place, count_release, &released, &buffer), SUMAC_OK);

    assert_ptr_equal(sumac_buffer_ref(buffer), buffer);
    sumac_buffer_unref(buffer);
    assert_int_equal(released, 0);

    assert_false(
        sumac_buffer_is_unique(buffer)); /* the program that wrapped it has the bytes, too */
    assert_ptr_equal(sumac_buffer_data(buffer), bytes);
    assert_int_equal(sumac_buffer_place(buffer).device, 3);
    sumac_buffer_unref(buffer);
    assert_int_equal(released, 1);
}

TEST(giving_back_no_buffer_does_nothing) { sumac_buffer_unref(NULL); }
