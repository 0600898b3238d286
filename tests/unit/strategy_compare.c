/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_compare.c (test) -- calls of two replicas are the same in all that counts. */

#include "unit.h"
#include "each_byte.h"
#include "strategy.h"

/* What is no number, or each replica's own. */
static const struct member left_alone[] = {
    MEMBER(struct call, axes),
    MEMBER(struct call, value),
    MEMBER(struct call, function),
    MEMBER(struct call, context),
    MEMBER(struct call, variable),
    MEMBER(struct call, name),
    MEMBER(struct call, variables),
    MEMBER(struct call, by),
    MEMBER(struct call, failed),
    MEMBER(struct call, first_only), /* of the kind of call */
    MEMBER(struct call, reads),
    MEMBER(struct call, options.timeout_ms),
    MEMBER(struct call, options.implementation),
};

static bool differ(const struct call *one, const struct call *other)
{
    struct sumac_error error = {.status = SUMAC_OK};

    return call_compare(one, 0, other, 1, &error) == SUMAC_INVALID_ARGUMENT &&
           error.reason == SUMAC_REASON_STEP_DIFFERS;
}

TEST(calls_that_differ_in_one_number_differ)
{
    struct sumac_value *value = sumac_value_float32(1);
    const struct call call = {.kind = CALL_ALL_REDUCE, .op = SUMAC_REDUCE_SUM, .value = value};
    uint8_t holds[sizeof call], bytes[sizeof call];
    struct call other;

    assert_false(differ(&call, &call));
    SAY_BYTES(struct call, holds);
    for (size_t i = 0; i < sizeof holds; i++) {
        if (holds[i] == 0 || is_among(left_alone, sizeof left_alone / sizeof *left_alone, i))
            continue;
        memcpy(bytes, &call, sizeof bytes);
        bytes[i] ^= 1;
        memcpy(&other, bytes, sizeof other);
        if (!differ(&call, &other))
            fail_msg("byte %zu of a call is not compared", i);
    }
    sumac_value_unref(value);
}

TEST(calls_that_point_to_something_else_differ)
{
    struct sumac_value *value = sumac_value_float32(1);
    const struct call call = {.kind = CALL_REDUCE, .op = SUMAC_REDUCE_SUM, .value = value};
    const struct sumac_axes axes = {.count = 2, .axis = {0, 1}};
    struct call other = call;

    other.by = &axes;
    assert_true(differ(&call, &other));
    other = call;
    other.name = "w";
    assert_true(differ(&call, &other));
    other = call;
    other.axes = &axes;
    assert_true(differ(&call, &other));
    assert_true(differ(&other, &call));
    for (uint32_t i = 0; i < 3; i++) {
        struct sumac_axes changed = axes;
        changed.count -= i == 2;
        changed.axis[i % 2] += i < 2;
        struct call over = call;
        over.axes = &changed;
        assert_true(differ(&other, &over));
    }
    sumac_value_unref(value);
}

/* A merge call, or sums over axes, may have any values. */
TEST(values_that_each_replica_has_as_it_likes_are_not_compared)
{
    struct sumac_value *one = sumac_value_float32(1);
    struct sumac_value *more = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3), NULL);
    const struct sumac_axes axes = {.count = 1, .axis = {0}};
    struct call call = {.kind = CALL_MERGE, .value = one}, other = {.kind = CALL_MERGE};

    other.value = more;
    assert_int_equal(call_compare(&call, 0, &other, 1, NULL), SUMAC_OK);
    call.kind = other.kind = CALL_ALL_REDUCE;
    assert_int_equal(call_compare(&call, 0, &other, 1, NULL), SUMAC_INVALID_ARGUMENT);
    call.axes = other.axes = &axes;
    assert_int_equal(call_compare(&call, 0, &other, 1, NULL), SUMAC_OK);
    sumac_value_unref(one);
    sumac_value_unref(more);
}

/* Slices meet whatever their number of rows. */
TEST(slices_meet_if_their_indices_and_what_they_are_of_are_alike)
{
    const struct {
        enum sumac_dtype indices;
        uint64_t rows, of;
        bool meet;
    } others[] = {
        {SUMAC_INT64, 2, 9, true},
        {SUMAC_INT64, 0, 9, true},
        {SUMAC_INT32, 2, 9, false},
        {SUMAC_INT64, 2, 8, false},
    };
    struct call calls[2] = {
        {.kind = CALL_ALL_REDUCE, .op = SUMAC_REDUCE_SUM},
        {.kind = CALL_ALL_REDUCE, .op = SUMAC_REDUCE_SUM}};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct sumac_value *values[2];
        for (size_t which = 0; which < 2; which++)
            calls[which].value = values[which] = sumac_value_indexed_slices(
                sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(others[which * i].rows), NULL),
                sumac_value_tensor(
                    others[which * i].indices, SUMAC_SHAPE(others[which * i].rows), NULL),
                SUMAC_SHAPE(others[which * i].of));

        const enum sumac_status status = call_compare(&calls[0], 0, &calls[1], 1, NULL);

        assert_int_equal(status, others[i].meet ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
        sumac_value_unref(values[0]);
        sumac_value_unref(values[1]);
    }
}
