/* SPDX-License-Identifier: Apache-2.0 */
/* value.c (test) -- values: made of others, read, a replica's chosen, replicas' put together. */
#include <math.h>

#include "unit.h"
#include "sumac/value.h"
#include "buffer.h"
#include "host_copy.h"
#include "value.h"

static struct sumac_value *two(struct sumac_value *one, struct sumac_value *other)
{
    return sumac_value_list((struct sumac_value *const[]){one, other}, 2);
}

static struct sumac_value *of_replicas(struct sumac_value *one, struct sumac_value *other)
{
    return sumac_value_per_replica((struct sumac_value *const[]){one, other}, 2, 0);
}

static struct sumac_value *
dict(const char *first, struct sumac_value *one, const char *second, struct sumac_value *other)
{
    return sumac_value_dict(
        (const char *const[]){first, second}, (struct sumac_value *const[]){one, other}, 2);
}

static void expect_printed(const struct sumac_value *value, const char *expected)
{
    char text[512];

    assert_int_equal(sumac_value_print(value, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
    FILE *stream = fmemopen(text, sizeof text, "w");
    assert_non_null(stream);
    sumac_value_fprint(stream, value);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(text, expected);
}

TEST(a_scalar_is_read_as_its_type_alone)
{
    struct sumac_value *const scalars[] = {
        sumac_value_float32(1.5F), sumac_value_float64(2.5), sumac_value_int32(-3),
        sumac_value_int64(INT64_MIN)};

    for (int i = 0; i < 4; i++) {
        const float single = sumac_value_as_float32(scalars[i]);
        const double twice = sumac_value_as_float64(scalars[i]);
        assert_true(i == 0 ? single == 1.5F : isnan(single));
        assert_true(i == 1 ? twice == 2.5 : isnan(twice));
        assert_int_equal(sumac_value_as_int32(scalars[i]), i == 2 ? -3 : 0);
        assert_int_equal(sumac_value_as_int64(scalars[i]), i == 3 ? INT64_MIN : 0);
        sumac_value_unref(scalars[i]);
    }
}

TEST(a_tensor_of_one_element_is_a_scalar_and_others_are_none)
{
    const int32_t elements[] = {4, 5};
    struct sumac_value *one = sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(1, 1), elements);
    struct sumac_value *const others[] = {
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(2), elements),
        sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(0), NULL), sumac_value_none(),
        sumac_value_list((struct sumac_value *const[]){sumac_value_int32(4)}, 1)};

    assert_int_equal(sumac_value_as_int32(one), 4);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(sumac_value_as_int32(others[i]), 0);
        sumac_value_unref(others[i]);
    }
    sumac_value_unref(one);
}

TEST(a_tensor_has_a_copy_of_its_elements)
{
    float elements[] = {1, 2, 3, 4};
    struct sumac_value *value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 2), elements);

    elements[0] = 7;

    assert_true(((const float *)sumac_value_data(value))[0] < 2);
    expect_printed(value, "float32[2, 2] 1 2 3 4");
    sumac_value_unref(value);
}

TEST(one_over_a_buffer_keeps_it)
{
    struct sumac_buffer *buffer = NULL;
    struct sumac_tensor tensor;
    const struct sumac_shape shape = SUMAC_SHAPE(2);

    assert_int_equal(sumac_buffer_create(8, &buffer), SUMAC_OK);
    assert_int_equal(sumac_tensor_view(buffer, 0, SUMAC_INT32, &shape, &tensor), SUMAC_OK);
    struct sumac_value *value = sumac_value_of(&tensor);

    ((int32_t *)sumac_buffer_data(buffer))[1] = 5; /* it is the same memory */
    sumac_buffer_unref(buffer);

    expect_printed(value, "int32[2] 0 5");
    sumac_value_unref(value);
}

/* Whichever of the offset and the extent is too large: their sum is not computed. */
TEST(a_tensor_beyond_its_buffer_is_no_value)
{
    static const struct {
        uint64_t offset_bytes, elements;
        bool fits;
    } tried[] = {
        {0, 3, true},
        {4, 2, true},
        {12, 0, true},
        {4, 3, false},
        {0, 4, false},
        {13, 0, false},
        {13, 1, false},
        {16, 0, false},
        {16, 1, false},
        {UINT64_MAX, 0, false},
        {UINT64_MAX - 3, 1, false}};
    struct sumac_buffer *buffer = NULL;

    assert_int_equal(sumac_buffer_create(12, &buffer), SUMAC_OK);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        const struct sumac_tensor tensor = {
            .buffer = buffer,
            .offset_bytes = tried[i].offset_bytes,
            .dtype = SUMAC_INT32,
            .shape = SUMAC_SHAPE(tried[i].elements)};
        struct sumac_value *copy = sumac_value_copy(&tensor), *same = sumac_value_of(&tensor);
        assert_int_equal(copy != NULL, tried[i].fits);
        assert_int_equal(same != NULL, tried[i].fits);
        sumac_value_unref(copy);
        sumac_value_unref(same);
    }
    sumac_buffer_unref(buffer);
}

/* The last replica's number is below SUMAC_VALUE_REPLICAS_MAX, however many there are. */
#define REPLICAS_MOST SUMAC_VALUE_REPLICAS_MAX

static const struct {
    uint32_t count, first;
    bool fits;
} numbered[] = {
    {1, 0, true},
    {1, REPLICAS_MOST - 1, true},
    {1, REPLICAS_MOST, false},
    {REPLICAS_MOST, 0, true},
    {REPLICAS_MOST, 1, false},
    {REPLICAS_MOST + 1, 0, false},
    {0, 0, false},
    {2, REPLICAS_MOST - 2, true},
    {2, REPLICAS_MOST - 1, false},
    {2, UINT32_MAX, false}};

TEST(replicas_are_numbered_below_the_most)
{
    struct sumac_value **items = calloc(REPLICAS_MOST + 1, sizeof *items);

    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
        for (uint32_t j = 0; j < numbered[i].count; j++)
            items[j] = sumac_value_none();
        struct sumac_value *each =
            sumac_value_per_replica(items, numbered[i].count, numbered[i].first);
        struct sumac_value *same =
            sumac_value_mirrored(sumac_value_none(), numbered[i].count, numbered[i].first);
        assert_int_equal(each != NULL, numbered[i].fits);
        assert_int_equal(same != NULL, numbered[i].fits);
        sumac_value_unref(each);
        sumac_value_unref(same);
    }
    free(items);
}

TEST(a_nest_has_a_most_of_items_and_of_depth)
{
    struct sumac_value **items = calloc(SUMAC_VALUE_ITEMS_MAX + 1, sizeof *items);
    struct sumac_value *none = sumac_value_none(), *deep = sumac_value_none();

    for (uint32_t count = SUMAC_VALUE_ITEMS_MAX; count <= SUMAC_VALUE_ITEMS_MAX + 1; count++) {
        for (uint32_t i = 0; i < count; i++)
            items[i] = sumac_value_ref(none);
        struct sumac_value *list = sumac_value_list(items, count);
        assert_int_equal(list != NULL, count == SUMAC_VALUE_ITEMS_MAX);
        sumac_value_unref(list);
    }
    for (uint32_t depth = 1; depth <= SUMAC_VALUE_DEPTH_MAX; depth++) {
        deep = sumac_value_tuple(&deep, 1);
        assert_non_null(deep);
    }
    assert_null(sumac_value_tuple(&deep, 1)); /* which takes it */
    sumac_value_unref(none);
    free(items);
}

TEST(a_dict_is_in_the_order_of_its_keys)
{
    struct sumac_value *value =
        dict("b", sumac_value_int32(2), "a", two(sumac_value_none(), sumac_value_float64(0.5)));

    expect_printed(value, "{\"a\": [none, float64[] 0.5], \"b\": int32[] 2}");
    assert_string_equal(sumac_value_key(value, 1), "b");
    assert_ptr_equal(sumac_value_find(value, "b"), sumac_value_item(value, 1));
    assert_null(sumac_value_find(value, "c"));
    sumac_value_unref(value);
}

TEST(what_is_made_of_nothing_is_nothing)
{
    struct sumac_value *kept = sumac_value_int32(1);

    assert_null(two(sumac_value_ref(kept), NULL)); /* and what it took is given back */
    assert_null(dict("a", sumac_value_ref(kept), "a", sumac_value_ref(kept)));
    assert_null(dict("a", sumac_value_ref(kept), "\xff", sumac_value_ref(kept)));
    assert_null(of_replicas(of_replicas(sumac_value_ref(kept), sumac_value_ref(kept)), NULL));
    assert_null(sumac_value_per_replica(NULL, 0, 0));
    assert_null(sumac_value_mirrored(sumac_value_ref(kept), 0, 0));
    assert_null(
        sumac_value_indexed_slices(sumac_value_ref(kept), sumac_value_ref(kept), SUMAC_SCALAR));
    assert_null(sumac_value_tensor((enum sumac_dtype)99, SUMAC_SCALAR, NULL));
    assert_null(sumac_value_list(NULL, 3));
    sumac_value_unref(kept); /* the leak checker looks at this */
}

TEST(nests_are_only_so_deep)
{
    struct sumac_value *value = sumac_value_none();

    for (uint32_t i = 0; i < SUMAC_VALUE_DEPTH_MAX; i++)
        value = sumac_value_tuple(&value, 1);
    assert_non_null(value);

    assert_null(sumac_value_tuple(&value, 1));
}

/* Wherever the deepest item is. */
TEST(a_nest_is_as_deep_as_its_deepest_item)
{
    for (uint32_t at = 0; at < 2; at++) {
        struct sumac_value *items[] = {sumac_value_none(), sumac_value_none()};
        for (uint32_t i = 1; i < SUMAC_VALUE_DEPTH_MAX; i++)
            items[at] = sumac_value_tuple(&items[at], 1);
        struct sumac_value *value = two(items[0], items[1]);
        assert_non_null(value);

        assert_null(sumac_value_tuple(&value, 1));
    }
}

TEST(each_kind_has_a_name)
{
    static const char *const names[] = {
        [SUMAC_VALUE_NONE] = "none",
        [SUMAC_VALUE_TENSOR] = "tensor",
        [SUMAC_VALUE_INDEXED_SLICES] = "slices",
        [SUMAC_VALUE_LIST] = "list",
        [SUMAC_VALUE_TUPLE] = "tuple",
        [SUMAC_VALUE_DICT] = "dict",
        [SUMAC_VALUE_PER_REPLICA] = "per_replica",
        [SUMAC_VALUE_MIRRORED] = "mirrored",
    };

    for (size_t kind = 0; kind < sizeof names / sizeof names[0]; kind++)
        assert_string_equal(sumac_value_kind_name((enum sumac_value_kind)kind), names[kind]);
    assert_string_equal(sumac_value_kind_name((enum sumac_value_kind)99), "");
}

/* The caller has given the item away, whatever becomes of the value. */
TEST(a_value_that_is_not_made_gives_its_items_back)
{
    struct sumac_value *item = sumac_value_int32(1);
    struct sumac_value *items[] = {sumac_value_ref(item), NULL};

    assert_null(sumac_value_list(items, 2));
    assert_null(sumac_value_mirrored(sumac_value_ref(item), 0, 0));
    assert_null(sumac_value_mirrored(sumac_value_ref(item), SUMAC_VALUE_REPLICAS_MAX + 1, 0));
    assert_null(sumac_value_mirrored(sumac_value_ref(item), 2, SUMAC_VALUE_REPLICAS_MAX - 1));
    assert_null(sumac_value_indexed_slices(
        sumac_value_ref(item), sumac_value_ref(item), (struct sumac_shape)SUMAC_SHAPE(4)));
    assert_null(dict("same", sumac_value_ref(item), "same", sumac_value_ref(item)));
    struct sumac_value *own = sumac_value_mirrored(sumac_value_ref(item), 1, 0);
    struct sumac_value *nested = sumac_value_list(&own, 1);
    assert_null(sumac_value_per_replica(&nested, 1, 0));
    const struct sumac_tensor nowhere = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(2)};
    assert_null(sumac_value_copy(&nowhere));

    assert_int_equal(item->references, 1);
    sumac_value_unref(item);
}

TEST(slices_are_rows_and_their_indices)
{
    const float rows[] = {1, 2};
    const int64_t indices[] = {3, 3};

    struct sumac_value *value = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), rows),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2), indices), SUMAC_SHAPE(4, 1));

    expect_printed(value, "slices of [4, 1](float32[2, 1] 1 2, int64[2] 3 3)");
    assert_int_equal(sumac_value_shape(value).extent[0], 4);
    sumac_value_unref(value);
    assert_null(
        sumac_value_indexed_slices(/* the indices are a matrix */
                                   sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), rows),
                                   sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2, 1), indices),
                                   SUMAC_SHAPE(4, 1)));
    assert_null(
        sumac_value_indexed_slices(/* of more than there can be */
                                   sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2, 1), rows),
                                   sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(2), indices),
                                   SUMAC_SHAPE(UINT64_MAX, UINT64_MAX)));
}

TEST(a_replica_has_its_own_of_each_leaf)
{
    struct sumac_value *value = dict(
        "x", of_replicas(sumac_value_int32(1), sumac_value_int32(2)), "y",
        two(sumac_value_mirrored(sumac_value_int32(3), 2, 0), sumac_value_int32(4)));
    struct sumac_value *own = NULL;

    assert_int_equal(sumac_value_select(value, 1, &own, NULL), SUMAC_OK);

    expect_printed(own, "{\"x\": int32[] 2, \"y\": [int32[] 3, int32[] 4]}");
    sumac_value_unref(own);
    sumac_value_unref(value);
}

TEST(of_a_replica_that_it_lacks_it_says_where)
{
    struct sumac_value *value = dict(
        "x", two(sumac_value_none(), of_replicas(sumac_value_none(), sumac_value_none())), "y",
        sumac_value_none());
    struct sumac_value *own = NULL;
    struct sumac_error error;

    assert_int_equal(sumac_value_select(value, 2, &own, &error), SUMAC_OUT_OF_RANGE);

    assert_non_null(strstr(error.text, "at ['x'][1] has items of replicas 0 to 1"));
    assert_null(own);
    sumac_value_unref(value);
}

TEST(what_replicas_have_is_regrouped_leaf_by_leaf)
{
    struct sumac_value *same = sumac_value_int32(7), *regrouped = NULL;
    struct sumac_value *const items =
        two(two(sumac_value_ref(same), sumac_value_int32(1)),
            two(sumac_value_ref(same), sumac_value_int32(1)));

    assert_int_equal(sumac_value_regroup(items, 0, &regrouped, NULL), SUMAC_OK);

    /* the identical value is that value, an equal one is the replica's own */
    expect_printed(regrouped, "[int32[] 7, per_replica(0: int32[] 1, 1: int32[] 1)]");
    sumac_value_unref(regrouped);
    sumac_value_unref(items);
    sumac_value_unref(same);
}

TEST(nests_that_differ_are_not_regrouped)
{
    struct sumac_value *regrouped = NULL;
    struct sumac_error error;
    struct sumac_value *const items =
        two(dict("a", sumac_value_none(), "b", two(sumac_value_none(), sumac_value_none())),
            dict("a", sumac_value_none(), "b", sumac_value_none()));

    assert_int_equal(sumac_value_regroup(items, 4, &regrouped, &error), SUMAC_INVALID_ARGUMENT);

    assert_string_equal(
        error.text, "replicas 4 and 5: two nests differ at ['b']: one has a list there, and the "
                    "other a leaf");
    sumac_value_unref(items);
}

TEST(what_is_no_list_of_items_is_not_regrouped)
{
    struct sumac_value *const refused[] = {
        sumac_value_int32(1), sumac_value_list(NULL, 0), sumac_value_tuple(NULL, 0),
        dict("a", sumac_value_none(), "b", sumac_value_none())};
    static const char *const said[] = {
        "a tensor of 0", "a list of 0", "a tuple of 0", "a dict of 2"};
    struct sumac_value *regrouped = NULL;
    struct sumac_error error;

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(
            sumac_value_regroup(refused[i], 0, &regrouped, &error), SUMAC_INVALID_ARGUMENT);

        assert_non_null(strstr(error.text, said[i]));
        assert_null(regrouped);
        sumac_value_unref(refused[i]);
    }
}

/* Whichever of the replicas has nothing. */
TEST(nothing_and_something_are_not_one_value)
{
    static const char *const printed[] = {
        "per_replica(0: none, 1: int32[] 1)", "per_replica(0: int32[] 1, 1: none)"};

    for (uint32_t at = 0; at < 2; at++) {
        struct sumac_value *items = at == 0 ? two(sumac_value_none(), sumac_value_int32(1))
                                            : two(sumac_value_int32(1), sumac_value_none());
        struct sumac_value *regrouped = NULL;

        assert_int_equal(sumac_value_regroup(items, 0, &regrouped, NULL), SUMAC_OK);

        expect_printed(regrouped, printed[at]);
        sumac_value_unref(regrouped);
        sumac_value_unref(items);
    }
}

TEST(a_choice_that_fails_keeps_nothing_of_what_it_has_chosen)
{
    struct sumac_value *there = sumac_value_int32(1), *chosen = NULL;
    struct sumac_value *value =
        two(sumac_value_ref(there),
            sumac_value_per_replica(
                (struct sumac_value *const[]){sumac_value_int32(2)}, 1, 0)); /* not of replica 1 */

    assert_int_equal(sumac_value_select(value, 1, &chosen, NULL), SUMAC_OUT_OF_RANGE);

    assert_null(chosen);
    sumac_value_unref(value);
    assert_int_equal(there->references, 1);
    sumac_value_unref(there);
}

/* What is shown of them is the same: their first 64 bytes, and '?' for what is not printed. */
TEST(keys_that_look_alike_are_told_by_the_byte)
{
    static const struct {
        const char *one, *other, *said;
    } rows[] = {
        {"x123456789x123456789x123456789x123456789x123456789x123456789x123456789a",
         "x123456789x123456789x123456789x123456789x123456789x123456789x123456789b",
         "whose byte 70 is 0x61, there, and the other one where it is 0x62"},
        {"a\n", "a\r",
         "the key 'a?', whose byte 1 is 0x0a, there, and the other one where it is "
         "0x0d"},
        {"a", "b", "one has the key 'a' there, and the other 'b'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sumac_error error;

        struct sumac_value *one = dict("0", sumac_value_none(), rows[i].one, sumac_value_none());
        struct sumac_value *other =
            dict("0", sumac_value_none(), rows[i].other, sumac_value_none());
        assert_int_equal(sumac_value_same_nest(one, other, &error), SUMAC_INVALID_ARGUMENT);

        assert_non_null(strstr(error.text, rows[i].said));
        sumac_value_unref(one);
        sumac_value_unref(other);
    }
}

TEST(equal_means_the_same_bits)
{
    struct sumac_value *one = two(sumac_value_float32(0.0F), sumac_value_none());
    struct sumac_value *same = two(sumac_value_float32(0.0F), sumac_value_none());
    struct sumac_value *other = two(sumac_value_float32(-0.0F), sumac_value_none());

    assert_true(sumac_value_equal(one, same));
    assert_false(sumac_value_equal(one, other));
    assert_false(sumac_value_equal(one, NULL));
    sumac_value_unref(one);
    sumac_value_unref(same);
    sumac_value_unref(other);
}

TEST(equal_slices_are_of_one_dense_shape)
{
    struct sumac_value *of[2];

    for (uint32_t i = 0; i < 2; i++)
        of[i] = sumac_value_indexed_slices(
            sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(1, 1), NULL),
            sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), NULL), SUMAC_SHAPE(4 + i, 1));

    assert_false(sumac_value_equal(of[0], of[1]));
    sumac_value_unref(of[0]);
    sumac_value_unref(of[1]);
}

TEST(equal_values_are_of_the_same_replicas)
{
    struct sumac_value *of[2];

    for (uint32_t i = 0; i < 2; i++)
        of[i] = sumac_value_per_replica(
            (struct sumac_value *const[]){sumac_value_int32(1), sumac_value_int32(2)}, 2, 2 * i);

    assert_true(sumac_value_equal(of[0], of[0]));
    assert_false(sumac_value_equal(of[0], of[1]));
    sumac_value_unref(of[0]);
    sumac_value_unref(of[1]);
}

/* What is one replica's own stays so, whichever of the replicas it is. */
TEST(a_replicas_own_copy_is_not_one_value_with_anothers)
{
    struct sumac_value *given = sumac_value_int32(7), *own = NULL, *regrouped = NULL;

    assert_int_equal(value_own(given, &own, NULL), SUMAC_OK);
    struct sumac_value *const orders[] = {
        two(sumac_value_ref(own), sumac_value_ref(given)),
        two(sumac_value_ref(given), sumac_value_ref(own))};
    assert_true(value_are_alike(value_lend(orders[0]->items), 2)); /* given */

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sumac_value_regroup(orders[i], 0, &regrouped, NULL), SUMAC_OK);

        expect_printed(regrouped, "per_replica(0: int32[] 7, 1: int32[] 7)");
        sumac_value_unref(regrouped);
        sumac_value_unref(orders[i]);
    }
    sumac_value_unref(own);
    sumac_value_unref(given);
}

/* Whoever has a tensor's buffer may write to it: the library relies on copies of its own alone. */
TEST(what_another_may_change_is_not_the_same_in_replicas)
{
    struct sumac_value *given = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), NULL);
    struct sumac_value *own = NULL;

    assert_int_equal(value_own(given, &own, NULL), SUMAC_OK);
    struct sumac_value *of_given = of_replicas(sumac_value_ref(given), given);
    struct sumac_value *of_own = of_replicas(sumac_value_ref(own), own);

    assert_true(value_are_alike(value_lend(of_given->items), 2));
    assert_false(value_is_same_in_replicas(of_given));
    assert_true(value_is_same_in_replicas(of_own));
    sumac_value_unref(of_given);
    sumac_value_unref(of_own);
}

static enum sumac_status read_far(
    struct sumac_place place, const void *there, void *here, uint64_t bytes,
    struct sumac_error *error)
{
    (void)place;
    (void)error;
    memcpy(here, there, bytes);
    return SUMAC_OK;
}

static enum sumac_status write_far(
    struct sumac_place place, void *there, const void *here, uint64_t bytes,
    struct sumac_error *error)
{
    return read_far(place, here, there, bytes, error);
}

static void keep_number(void *number) { (void)number; }

static struct sumac_value *far_float(float *number)
{
    const struct sumac_place place = {SUMAC_PLACE_CUDA, 0};
    struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(1)};

    assert_int_equal(
        buffer_own(number, sizeof *number, place, keep_number, NULL, &tensor.buffer), SUMAC_OK);
    struct sumac_value *value = sumac_value_of(&tensor);
    sumac_buffer_unref(tensor.buffer);
    return value;
}

TEST(a_mirrored_value_that_is_brought_here_is_of_the_same_replicas)
{
    static const struct host_copy way = {.read = read_far, .write = write_far};
    float numbers[] = {5, 6};
    struct sumac_value *items[] = {far_float(&numbers[0]), far_float(&numbers[1])};
    struct sumac_value *mirrored = value_mirrored_each(items, 2, 2), *here = NULL;

    host_copy_set(&way);
    assert_int_equal(sumac_value_to_host(mirrored, &here, NULL), SUMAC_OK); /* when */

    assert_int_equal(here->kind, SUMAC_VALUE_MIRRORED); /* then */
    assert_int_equal(here->first, 2);
    expect_printed(here->items[1], "float32[1] 6");
    assert_true(sumac_value_as_float32(mirrored->items[1]) == 6); /* there */
    sumac_value_unref(here);
    sumac_value_unref(mirrored);
}

static enum sumac_status read_nothing(
    struct sumac_place place, const void *there, void *here, uint64_t bytes,
    struct sumac_error *error)
{
    (void)place, (void)there, (void)here, (void)bytes, (void)error;
    return SUMAC_ABORTED;
}

static void count_free(void *count) { ++*(uint32_t *)count; }

TEST(slices_whose_indices_cannot_be_brought_here_give_back_their_rows)
{
    static const struct host_copy way = {.read = read_nothing, .write = write_far};
    const struct sumac_place near = {SUMAC_PLACE_HOST, 0}, far = {SUMAC_PLACE_CUDA, 0};
    struct sumac_tensor rows = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(1)};
    struct sumac_tensor indices = {.dtype = SUMAC_INT64, .shape = SUMAC_SHAPE(1)};
    float row = 5;
    int64_t index = 0;
    uint32_t freed = 0;

    assert_int_equal(
        buffer_own(&row, sizeof row, near, count_free, &freed, &rows.buffer), SUMAC_OK);
    assert_int_equal(
        buffer_own(&index, sizeof index, far, count_free, &freed, &indices.buffer), SUMAC_OK);
    struct sumac_value *here = NULL;
    struct sumac_value *slices =
        sumac_value_indexed_slices(sumac_value_of(&rows), sumac_value_of(&indices), SUMAC_SHAPE(3));
    sumac_buffer_unref(rows.buffer);
    sumac_buffer_unref(indices.buffer);

    host_copy_set(&way);
    assert_int_equal(sumac_value_to_host(slices, &here, NULL), SUMAC_ABORTED); /* when */

    sumac_value_unref(slices); /* then */
    assert_int_equal(freed, 2);
}

TEST(a_text_that_is_too_short_is_cut_and_its_length_told)
{
    char text[10];
    struct sumac_value *value =
        sumac_value_tuple((struct sumac_value *const[]){sumac_value_int32(123456)}, 1);

    assert_int_equal(sumac_value_print(value, text, sizeof text), strlen("(int32[] 123456,)"));

    assert_string_equal(text, "(int32[] ");
    assert_int_equal(sumac_value_print(value, NULL, 0), strlen("(int32[] 123456,)"));
    sumac_value_unref(value);
}

TEST(of_many_elements_the_first_are_printed)
{
    struct sumac_value *many = sumac_value_tensor(SUMAC_UINT8, SUMAC_SHAPE(17), NULL);
    struct sumac_value *few = sumac_value_tensor(SUMAC_UINT8, SUMAC_SHAPE(16), NULL);

    expect_printed(many, "uint8[17] 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ... (17 elements)");
    expect_printed(few, "uint8[16] 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    sumac_value_unref(many);
    sumac_value_unref(few);
}

TEST(replicas_are_printed_with_their_numbers)
{
    struct sumac_value *value = sumac_value_mirrored(sumac_value_int32(5), 2, 3);

    expect_printed(value, "mirrored(3: int32[] 5, 4: int32[] 5)");
    sumac_value_unref(value);
}

TEST(a_nest_of_three_has_a_comma_between_its_items)
{
    struct sumac_value *items[] = {sumac_value_none(), sumac_value_none(), sumac_value_none()};
    struct sumac_value *value = sumac_value_list(items, 3);

    expect_printed(value, "[none, none, none]");
    sumac_value_unref(value);
}

TEST(a_list_that_goes_on_is_another_one)
{
    struct sumac_value *const one = sumac_value_int32(0);
    struct sumac_value *const as_float = sumac_value_float32(0); /* of the same bytes */
    struct sumac_value *items[] = {
        sumac_value_ref(one), sumac_value_ref(one), sumac_value_ref(one)};
    struct sumac_value *const longer = sumac_value_list(items, 2);
    struct sumac_value *const shorter = sumac_value_list(&items[2], 1);
    struct sumac_value *const of_each[] = {
        sumac_value_ref(shorter), sumac_value_ref(shorter), sumac_value_ref(longer)};
    struct sumac_value *const replicas = sumac_value_list(of_each, 3);
    struct sumac_value *regrouped = NULL;
    struct sumac_error error = {0};

    assert_false(sumac_value_equal(shorter, longer));
    assert_false(sumac_value_equal(one, as_float));
    assert_int_equal(sumac_value_same_nest(shorter, longer, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(sumac_value_regroup(replicas, 4, &regrouped, &error), SUMAC_INVALID_ARGUMENT);
    assert_memory_equal(error.text, "replicas 4 and 6: ", strlen("replicas 4 and 6: "));
    sumac_value_unref(replicas);
    sumac_value_unref(longer);
    sumac_value_unref(shorter);
    sumac_value_unref(as_float);
    sumac_value_unref(one);
}
