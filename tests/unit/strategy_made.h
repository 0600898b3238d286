/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_made.h -- strategies and values for the tests of strategies. */
#pragma once

#include "unit.h"
#include "sumac/strategy.h"
#include "sumac/value.h"

static inline struct sumac_strategy *mirrored(uint32_t replicas)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .replicas = replicas};
    struct sumac_strategy *strategy = NULL;

    assert_int_equal(sumac_strategy_create(&options, &strategy, NULL), SUMAC_OK);
    return strategy;
}

static inline struct sumac_value *of_ids(uint32_t replicas)
{
    struct sumac_value *items[8];

    for (uint32_t i = 0; i < replicas; i++)
        items[i] = sumac_value_float32((float)i);
    return sumac_value_per_replica(items, replicas, 0);
}

static inline void expect_printed(const struct sumac_value *value, const char *expected)
{
    char text[512];

    (void)sumac_value_print(value, text, sizeof text);
    assert_string_equal(text, expected);
}

static inline struct sumac_value *row_of(uint64_t rows)
{
    const int64_t first = 0;

    return sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(1), NULL),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), &first), SUMAC_SHAPE(rows));
}
