/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c (test) -- a value as bytes, and back; and bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pack.h"

static struct sumac_value *vector(float first, float second)
{
    const float elements[] = {first, second};

    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), elements);
}

/* One of each kind that goes from worker to worker. */
static struct sumac_value *everything(void)
{
    const int64_t rows[] = {3};
    struct sumac_value *slices = sumac_value_slices(
        sumac_value_tensor(SUMAC_INT8, SUMAC_SHAPE(1, 2), NULL),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), rows), SUMAC_SHAPE(5, 2));
    struct sumac_value *const in_tuple[] = {sumac_value_none(), sumac_value_float64(0.5)};
    struct sumac_value *const in_list[] = {
        vector(1, 2), sumac_value_tuple(in_tuple, 2), slices,
        sumac_value_tensor(SUMAC_BFLOAT16, SUMAC_SHAPE(0, 7), NULL)};
    struct sumac_value *const in_dict[] = {sumac_value_list(in_list, 4), sumac_value_list(NULL, 0)};

    return sumac_value_dict((const char *const[]){"a", "ä"}, in_dict, 2);
}

static struct unpack over(const struct pack *pack)
{
    return (struct unpack){.at = pack->bytes, .end = pack->bytes + pack->used};
}

static void a_value_comes_back_as_it_was(void **state)
{
    (void)state;
    struct sumac_value *value = everything();
    struct pack pack = {.bytes = NULL};
    char text[4];

    pack_u32(&pack, 7);
    pack_value(&pack, value, NULL, NULL);
    pack_text(&pack, "seven");
    pack_u64(&pack, UINT64_MAX);
    assert_false(pack.failed);

    struct unpack unpack = over(&pack);
    assert_int_equal(unpack_u32(&unpack), 7);
    struct sumac_value *back = unpack_value(&unpack);
    assert_non_null(back);
    assert_true(sumac_value_equal(value, back));
    assert_string_equal(unpack_text(&unpack, text, sizeof text), "sev");
    assert_true(unpack_u64(&unpack) == UINT64_MAX);
    assert_false(unpack.failed);
    assert_ptr_equal(unpack.at, unpack.end);
    assert_int_equal(unpack_u32(&unpack), 0);
    assert_true(unpack.failed);

    sumac_value_unref(value);
    sumac_value_unref(back);
    pack_deinit(&pack);
}

static bool large_ones_alone(const void *context, const struct sumac_tensor *tensor)
{
    (void)context;
    return sumac_tensor_bytes(tensor) < 8;
}

static void elements_may_stay_behind(void **state)
{
    (void)state;
    struct sumac_value *const items[] = {vector(1, 2), sumac_value_float32(3)};
    struct sumac_value *value = sumac_value_list(items, 2);
    struct pack pack = {.bytes = NULL};

    pack_value(&pack, value, large_ones_alone, NULL);
    struct unpack unpack = over(&pack);
    struct sumac_value *back = unpack_value(&unpack);

    assert_non_null(back);
    assert_false(value_has_elements(sumac_value_item(back, 0)));
    assert_int_equal(sumac_value_shape(sumac_value_item(back, 0)).extent[0], 2);
    assert_true(value_has_elements(sumac_value_item(back, 1)));
    sumac_value_unref(value);
    sumac_value_unref(back);
    pack_deinit(&pack);
}

/* Each byte missing, each changed: a value, or none, and nothing is read beyond the end. */
static void bytes_of_strangers_are_a_value_or_none(void **state)
{
    (void)state;
    struct sumac_value *value = everything();
    struct pack pack = {.bytes = NULL};

    pack_value(&pack, value, NULL, NULL);
    for (size_t bytes = 0; bytes < pack.used; bytes++) {
        uint8_t *cut = malloc(bytes + 1);
        memcpy(cut, pack.bytes, bytes);
        struct unpack unpack = {.at = cut, .end = cut + bytes};
        assert_null(unpack_value(&unpack));
        assert_true(unpack.failed);
        free(cut);
    }
    for (size_t at = 0; at < pack.used; at++)
        for (uint32_t bit = 0; bit < 8; bit++) {
            uint8_t *changed = malloc(pack.used);
            memcpy(changed, pack.bytes, pack.used);
            changed[at] ^= (uint8_t)(1u << bit);
            struct unpack unpack = {.at = changed, .end = changed + pack.used};
            sumac_value_unref(unpack_value(&unpack));
            free(changed);
        }
    sumac_value_unref(value);
    pack_deinit(&pack);
}

static void pack_nest(struct pack *pack, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) {
        pack_u32(pack, SUMAC_VALUE_LIST);
        pack_u32(pack, 1);
    }
    pack_u32(pack, SUMAC_VALUE_NONE);
    pack_u32(pack, 0);
}

static void what_is_too_deep_or_too_many_is_none(void **state)
{
    (void)state;
    struct pack deep = {.bytes = NULL}, many = {.bytes = NULL}, huge = {.bytes = NULL};

    pack_nest(&deep, 1000000);
    struct unpack unpack = over(&deep);
    assert_null(unpack_value(&unpack));

    pack_u32(&many, SUMAC_VALUE_TUPLE);
    pack_u32(&many, UINT32_MAX);
    unpack = over(&many);
    assert_null(unpack_value(&unpack));

    pack_u32(&huge, SUMAC_VALUE_TENSOR);
    pack_u32(&huge, SUMAC_FLOAT64);
    pack_u32(&huge, 1);
    pack_u64(&huge, UINT64_C(1) << 50);
    pack_u32(&huge, 1);
    unpack = over(&huge);
    assert_null(unpack_value(&unpack));

    pack_deinit(&deep);
    pack_deinit(&many);
    pack_deinit(&huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_comes_back_as_it_was),
        cmocka_unit_test(elements_may_stay_behind),
        cmocka_unit_test(bytes_of_strangers_are_a_value_or_none),
        cmocka_unit_test(what_is_too_deep_or_too_many_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
