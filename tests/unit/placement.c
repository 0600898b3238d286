/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c -- partitioners and round-robin placement. The cases of
 * tests/conformance/partition.json are run beside this. */

#include "unit.h"
#include "placement.h"

static struct sumac_shape shape_of(uint32_t rank, uint64_t rows, uint64_t columns)
{
    return (struct sumac_shape){.rank = rank, .extent = {rows, columns}};
}

static uint64_t count_of(const struct placement_rule *rule, uint64_t rows, uint64_t columns)
{
    const struct sumac_shape shape = shape_of(2, rows, columns);
    uint64_t count = 0;

    assert_int_equal(placement_shard_count(rule, &shape, SUMAC_FLOAT32, &count, NULL), SUMAC_OK);
    return count;
}

TEST(fixed_shards_are_never_more_than_the_rows)
{
    struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_FIXED_SHARDS);

    rule.num_shards = 4;

    assert_int_equal(count_of(&rule, 10, 3), 4);
    assert_int_equal(count_of(&rule, 3, 3), 3);
}

TEST(min_size_rounds_up_so_that_shards_may_be_smaller_than_the_minimum)
{
    struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_MIN_SIZE);

    rule.min_shard_bytes = 10;
    rule.max_shards = 100;

    assert_int_equal(count_of(&rule, 6, 1), 3); /* 24 bytes / 10, rounded up: 8 bytes each */
}

TEST(min_size_makes_one_shard_unless_more_are_allowed)
{
    const struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_MIN_SIZE);

    assert_int_equal(count_of(&rule, 1000000, 10), 1);
}

TEST(the_cap_of_max_size_breaks_its_limit)
{
    struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_MAX_SIZE);

    rule.max_shard_bytes = 4;

    assert_int_equal(count_of(&rule, 6, 1), 6);
    rule.max_shards = 2;
    assert_int_equal(count_of(&rule, 6, 1), 2);
}

TEST(a_scalar_and_a_variable_without_rows_are_not_split)
{
    const struct sumac_shape scalar = shape_of(0, 0, 0);
    struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_FIXED_SHARDS);
    uint64_t count = 0;

    rule.num_shards = 4;

    assert_int_equal(placement_shard_count(&rule, &scalar, SUMAC_FLOAT32, &count, NULL), SUMAC_OK);
    assert_int_equal(count, 1);
    assert_int_equal(count_of(&rule, 0, 3), 1);
}

TEST(a_parameter_that_is_left_out_is_the_default_and_a_negative_one_is_refused)
{
    wire_partitioner message = WIRE_PARTITIONER_INIT; /* given */
    struct placement_rule rule;
    struct sumac_error error = {0};
    const struct sumac_shape shape = shape_of(2, 6, 1);
    uint64_t count = 77;

    message.kind = SUMAC__V1__PARTITIONER__KIND__KIND_MIN_SIZE;

    assert_int_equal(placement_rule_read(&message, &rule, &error), SUMAC_OK); /* when, then */
    assert_int_equal(rule.min_shard_bytes, 256 * 1024);
    assert_int_equal(rule.max_shards, 1);

    message.max_shards = (uint64_t)-2;
    assert_int_equal(placement_rule_read(&message, &rule, &error), SUMAC_OK);
    assert_int_equal(
        placement_shard_count(&rule, &shape, SUMAC_FLOAT32, &count, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(
        strstr(error.text, "max_shards is 18446744073709551614 (as a signed number -2)"));
    assert_int_equal(count, 77);
}

TEST(max_size_takes_its_bytes_and_a_cap_of_shards)
{
    wire_partitioner message = WIRE_PARTITIONER_INIT;
    struct placement_rule rule;

    message.kind = SUMAC__V1__PARTITIONER__KIND__KIND_MAX_SIZE;
    message.max_shard_bytes = 1000;
    message.max_shards = 3;

    assert_int_equal(placement_rule_read(&message, &rule, NULL), SUMAC_OK);
    assert_int_equal(rule.max_shard_bytes, 1000);
    assert_int_equal(rule.max_shards, 3);
}

TEST(fixed_shards_without_a_number_is_refused)
{
    wire_partitioner message = WIRE_PARTITIONER_INIT;
    struct placement_rule rule;
    struct sumac_error error = {0};
    const struct sumac_shape shape = shape_of(2, 6, 1);
    uint64_t count = 0;

    message.kind = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS;

    assert_int_equal(placement_rule_read(&message, &rule, &error), SUMAC_OK);
    assert_int_equal(
        placement_shard_count(&rule, &shape, SUMAC_FLOAT32, &count, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "num_shards"));
}

TEST(the_first_shards_have_the_rows_that_are_left_over)
{
    const uint64_t firsts[] = {0, 3, 6, 8};
    const uint64_t counts[] = {3, 3, 2, 2};

    for (uint64_t shard = 0; shard < 4; shard++) {
        const struct sumac_range rows = placement_rows(10, 4, shard);
        assert_int_equal(rows.first, firsts[shard]);
        assert_int_equal(rows.count, counts[shard]);
    }
}

TEST(variables_and_shards_take_their_turns_on_the_ps_alike)
{
    uint64_t counter = 0;

    assert_int_equal(placement_next_ps(&counter, 3), 0);
    assert_int_equal(placement_next_ps(&counter, 3), 1);
    assert_int_equal(placement_next_ps(&counter, 3), 2);
    assert_int_equal(placement_next_ps(&counter, 3), 0);
}

TEST(of_the_ps_with_the_fewest_bytes_the_first_is_next)
{
    assert_int_equal(placement_least_ps((const uint64_t[]){5, 3, 3, 4}, 4), 1);
    assert_int_equal(placement_least_ps((const uint64_t[]){0, 0, 0}, 3), 0);
    assert_int_equal(placement_least_ps((const uint64_t[]){UINT64_MAX, 7}, 2), 1);
    assert_int_equal(placement_least_ps((const uint64_t[]){9}, 1), 0);
}

TEST(a_row_that_is_larger_than_a_shard_may_be_has_its_own)
{
    struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_MAX_SIZE);

    rule.max_shard_bytes = 4;

    assert_int_equal(count_of(&rule, 10, 3), 10); /* rows of 12 bytes */
}

TEST(rows_of_no_bytes_are_one_shard)
{
    struct placement_rule rule = placement_rule_of(WIRE_PARTITIONER_MIN_SIZE),
                          other = placement_rule_of(WIRE_PARTITIONER_MAX_SIZE);

    rule.max_shards = 100;
    other.max_shard_bytes = 4;

    assert_int_equal(count_of(&rule, 5, 0), 1);
    assert_int_equal(count_of(&other, 5, 0), 1);
}

/* The other parameters are right. */
TEST(each_parameter_of_a_kind_is_at_least_1)
{
    static const uint32_t kinds[] = {
        WIRE_PARTITIONER_FIXED_SHARDS, WIRE_PARTITIONER_MIN_SIZE, WIRE_PARTITIONER_MIN_SIZE,
        WIRE_PARTITIONER_MAX_SIZE, WIRE_PARTITIONER_MAX_SIZE};
    const struct sumac_shape shape = shape_of(2, 6, 1);
    struct placement_rule rules[5];
    int64_t *const parameters[] = {
        &rules[0].num_shards, &rules[1].min_shard_bytes, &rules[2].max_shards,
        &rules[3].max_shard_bytes, &rules[4].max_shards};
    uint64_t count = 77;

    for (size_t i = 0; i < 5; i++) {
        rules[i] = (struct placement_rule){
            .kind = kinds[i],
            .num_shards = 2,
            .min_shard_bytes = 8,
            .max_shard_bytes = 8,
            .max_shards = 2};
        assert_int_equal(
            placement_shard_count(&rules[i], &shape, SUMAC_FLOAT32, &count, NULL), SUMAC_OK);
        for (int64_t odd = -2; odd <= 0; odd++) {
            *parameters[i] = odd;
            assert_int_equal(
                placement_shard_count(&rules[i], &shape, SUMAC_FLOAT32, &count, NULL),
                SUMAC_INVALID_ARGUMENT);
        }
        assert_int_equal(count, 2);
    }
}
