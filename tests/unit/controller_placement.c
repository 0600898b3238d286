/* SPDX-License-Identifier: Apache-2.0 */
/* controller_placement.c -- on which ps the shards of new variables are. */

#include "unit.h"
#include "controller_two.h"

TEST(shards_are_placed_round_robin_over_all_variables)
{
    struct two two = two_workers();
    struct definition definition;

    define(&definition, "a");
    world_forget(two.world);
    definition.variable.partitioner = NULL;
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 1 a\n"
                   "ps 0, 1: publish 1\n"
                   "3: created 1 shard 1 on ps 0 rate 0.01 published\n");

    define(&definition, "b");
    created(&two, &definition);

    world_expect(
        two.world, "ps 0, 1: add 2 b\n"
                   "ps 0, 1: publish 2\n"
                   "4: created 2 shard 2 on ps 1 shard 3 on ps 0 rate 0.01 published\n");
    world_free(two.world);
}

/* On which ps a variable of so many rows of 12 bytes was put that is not split. */
static uint32_t placed(struct two *two, const char *name, uint64_t rows, uint32_t function)
{
    struct definition definition;

    define(&definition, name);
    definition.variable.partitioner = NULL;
    definition.shape[0] = rows;
    definition.function.function = (Sumac__V1__UpdateFunction)function;
    world_forget(two->world);
    (void)created(two, &definition);

    const char *place = strstr(two->world->text, " on ps ");
    assert_non_null(place);
    return (uint32_t)(place[strlen(" on ps ")] - '0');
}

TEST(by_bytes_a_shard_is_placed_where_there_are_the_fewest)
{
    const uint32_t sgd = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    struct two two = two_workers();

    two.world->config.places_by_bytes = true;
    assert_int_equal(placed(&two, "a", 4, sgd), 0); /* 48 and 0 bytes */
    assert_int_equal(placed(&two, "b", 2, sgd), 1);
    assert_int_equal(placed(&two, "c", 3, sgd), 1); /* 48 and 60 */
    assert_int_equal(
        placed(&two, "d", 1, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM),
        0);                                         /* with its two slots 84 and 60 */
    assert_int_equal(placed(&two, "e", 1, sgd), 1); /* 84 and 72 */
    world_delete(two.world, two.second, "a");
    world_settle_down(two.world);
    assert_int_equal(placed(&two, "f", 1, sgd), 0); /* 36 and 72 */
    world_free(two.world);
}

/* And takes no turn. */
TEST(a_variable_is_placed_beside_another_one_or_a_shard)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    created(&two, &definition); /* its shards are on ps 0 and 1 */
    define(&definition, "a");
    definition.variable.partitioner = NULL; /* one shard: a turn of it would be seen */
    definition.variable.colocate_with = "w/part_1";
    world_forget(two.world);
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 2 a\n"
                   "ps 0, 1: publish 2\n"
                   "4: created 2 shard 3 on ps 1 rate 0.01 published\n");
    created(&two, &definition); /* again: it is where it is */
    world_expect(two.world, "5: created 2 shard 3 on ps 1 rate 0.01 published\n");
    define(&definition, "b");
    definition.variable.colocate_with = "a";
    created(&two, &definition);
    world_expect(
        two.world, "ps 0, 1: add 3 b\n"
                   "ps 0, 1: publish 3\n"
                   "6: created 3 shard 4 on ps 1 shard 5 on ps 1 rate 0.01 published\n");
    define(&definition, "c");
    created(&two, &definition);

    world_expect(
        two.world, "ps 0, 1: add 4 c\n"
                   "ps 0, 1: publish 4\n"
                   "7: created 4 shard 6 on ps 0 shard 7 on ps 1 rate 0.01 published\n");
    world_free(two.world);
}

/* What a worker that was started again asks for once more is there; what another asks for is not.
 */
TEST(one_that_exists_elsewhere_is_not_where_it_is_asked_for)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    created(&two, &definition); /* its shards are on ps 0 and 1 */
    define(&definition, "a");
    definition.variable.colocate_with = "w/part_1";
    created(&two, &definition);

    definition.variable.colocate_with = "w/part_0";
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS,
        "a exists on ps 1, this create says colocate_with w/part_0, which is on ps 0");
    definition.variable.colocate_with = "v";
    assert_refused(
        &two, &definition, SUMAC_REASON_UNKNOWN_VARIABLE,
        "a: it is to lie beside v, and there is no such variable");
    define(&definition, "w");
    definition.variable.colocate_with = "w/part_0"; /* where one of its shards is, and one not */
    assert_refused(
        &two, &definition, SUMAC_REASON_ALREADY_EXISTS,
        "w exists on ps 1, this create says colocate_with w/part_0, which is on ps 0");

    define(&definition, "a");
    definition.variable.colocate_with = "w/part_1";
    world_forget(two.world);
    created(&two, &definition);
    assert_non_null(strstr(two.world->text, "created 2 shard 3 on ps 1 shard 4 on ps 1"));
    world_free(two.world);
}

TEST(beside_what_is_not_there_nothing_is_made)
{
    static const struct {
        const char *beside, *text;
        enum sumac_reason reason;
    } rows[] = {
        {"v", "a: it is to lie beside v, and there is no such variable",
         SUMAC_REASON_UNKNOWN_VARIABLE},
        {"w/part_2", "a: it is to lie beside w/part_2, and there is no such shard of it",
         SUMAC_REASON_UNKNOWN_VARIABLE},
        {"w/part_99999999999999999999999", "there is no such shard of it",
         SUMAC_REASON_UNKNOWN_VARIABLE},
        {"w/part_", "there is no such variable", SUMAC_REASON_UNKNOWN_VARIABLE},
        {"w\n", "the name that it is to lie beside is not UTF-8, or has a control character",
         SUMAC_REASON_BAD_NAME},
        {"w\xff", "the name that it is to lie beside is not UTF-8, or has a control character",
         SUMAC_REASON_BAD_NAME},
    };
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    created(&two, &definition);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        define(&definition, "a");
        definition.variable.colocate_with = (char *)(uintptr_t)rows[i].beside;
        assert_refused(&two, &definition, rows[i].reason, rows[i].text);
    }
    world_free(two.world);
}
