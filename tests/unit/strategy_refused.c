/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_refused.c -- what one replica makes a call with is none: the call counts, has failed in
 * all replicas, and the next one is the same for all. */

#include "unit.h"
#include "distributed_fixture.h"
#include "../returning.h"
#include "strategy.h"

struct tried;
typedef enum sumac_status
attempt(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error);

struct tried {
    struct sumac_variable *variable, *other, *of_another;
    struct sumac_value *gradient, *gradients;
    attempt *well, *badly; /* replica 0, and replica 1 */
    enum sumac_status status[2];
    char said[2][SUMAC_ERROR_TEXT_BYTES];
};

static enum sumac_status
step(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct tried *tried = context;
    const uint32_t own = sumac_replica_id(replica);
    struct sumac_error why = {.status = SUMAC_OK};

    tried->status[own] = (own == 0 ? tried->well : tried->badly)(tried, replica, &why);
    memcpy(tried->said[own], why.text, sizeof why.text);
    struct sumac_value *one = sumac_value_float32((float)(own + 1));
    const enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, one, NULL, &returned, error);
    sumac_value_unref(one);
    return return_from_replica(replica, status, &returned);
}

static void expect_refused_to_all(struct tried *tried, enum sumac_status status, const char *said)
{
    struct sumac_strategy *strategy = mirrored(2), *another = mirrored(1);
    const struct sumac_run_options each = {.function = step, .context = tried};
    struct sumac_value *result = NULL;

    tried->variable =
        variable_of(strategy, (struct sumac_variable_options){.aggregation = SUMAC_REDUCE_SUM});
    tried->other = variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    tried->of_another = variable_of(another, (struct sumac_variable_options){.name = "x"});
    tried->gradient = vector(1, 1);
    tried->gradients = sumac_value_list(
        (struct sumac_value *const[]){sumac_value_ref(tried->gradient), vector(1, 1)}, 2);

    assert_int_equal(sumac_strategy_run(strategy, &each, &result, NULL), SUMAC_OK);

    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tried->status[i], status);
        assert_non_null(strstr(tried->said[i], "replica 1: "));
        assert_non_null(strstr(tried->said[i], said));
    }
    /* of the call after it */
    expect_printed(result, "per_replica(0: float32[] 3, 1: float32[] 3)");
    expect_components(tried->variable, "(float32[2] 1 2, float32[2] 1 2)");
    sumac_value_unref(tried->gradient);
    sumac_value_unref(tried->gradients);
    sumac_strategy_destroy(strategy);
    sumac_strategy_destroy(another);
}

/* ---- writes */

static enum sumac_status
write(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_assign_add(tried->variable, replica, tried->gradient, NULL, error);
}

static enum sumac_status
write_none(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_assign_add(NULL, replica, tried->gradient, NULL, error);
}

static enum sumac_status
write_nothing(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_assign_add(tried->variable, replica, NULL, NULL, error);
}

static enum sumac_status
write_anothers(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_assign_add(tried->of_another, replica, tried->gradient, NULL, error);
}

static enum sumac_status
write_somehow(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_write(
        tried->variable, replica, (enum sumac_write)99, tried->gradient, NULL, error);
}

static enum sumac_status
write_least(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_write(
        tried->variable, replica, SUMAC_WRITE_SCATTER_MIN, tried->gradient, NULL, error);
}

static enum sumac_status write_without_aggregation(
    struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_assign_add(tried->other, replica, tried->gradient, NULL, error);
}

TEST(a_write_that_is_none_has_failed_in_all_replicas)
{
    const struct {
        attempt *badly;
        enum sumac_status status;
        const char *said;
    } rows[] = {
        {write_none, SUMAC_INVALID_ARGUMENT, "variable is NULL"},
        {write_nothing, SUMAC_INVALID_ARGUMENT, "value is NULL"},
        {write_anothers, SUMAC_FAILED_PRECONDITION, "a variable of another strategy"},
        {write_somehow, SUMAC_INVALID_ARGUMENT, "99 is no way to write"},
        {write_least, SUMAC_UNIMPLEMENTED, "has no sum and no mean"},
        {write_without_aggregation, SUMAC_FAILED_PRECONDITION, "without an aggregation"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tried tried = {.well = write, .badly = rows[i].badly};
        expect_refused_to_all(&tried, rows[i].status, rows[i].said);
    }
}

/* ---- updates */

static enum sumac_status
do_nothing(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    (void)component, (void)context, (void)error;
    return SUMAC_OK;
}

static enum sumac_status
update(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    const struct sumac_update_options nothing = {.function = do_nothing};

    return sumac_variable_update(tried->variable, replica, &nothing, NULL, error);
}

static enum sumac_status
update_none(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    const struct sumac_update_options nothing = {.function = do_nothing};

    (void)tried;
    return sumac_variable_update(NULL, replica, &nothing, NULL, error);
}

static enum sumac_status
update_by_none(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    const struct sumac_update_options none = {.function = NULL};

    return sumac_variable_update(tried->variable, replica, &none, NULL, error);
}

static enum sumac_status
update_with_a_tensor(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    const struct sumac_update_options given = {.function = do_nothing, .args = tried->gradient};

    return sumac_variable_update(tried->variable, replica, &given, NULL, error);
}

static enum sumac_status
apply_nothing(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_apply(tried->variable, replica, NULL, NULL, error);
}

static enum sumac_status
apply_all(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_variable *const both[] = {tried->variable, tried->other};

    return sumac_variable_apply_all(both, 2, replica, tried->gradients, error);
}

static enum sumac_status
apply(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_apply(tried->variable, replica, NULL, tried->gradient, error);
}

static enum sumac_status
apply_longer(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_value *longer = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3), NULL);

    const enum sumac_status status =
        sumac_variable_apply(tried->variable, replica, NULL, longer, error);
    sumac_value_unref(longer);
    return status;
}

static enum sumac_status
apply_all_longer(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_variable *const both[] = {tried->variable, tried->other};
    struct sumac_value *gradients = sumac_value_list(
        (struct sumac_value *const[]){
            vector(1, 1), sumac_value_tensor(SUMAC_FLOAT64, SUMAC_SHAPE(2), NULL)},
        2);

    const enum sumac_status status = sumac_variable_apply_all(both, 2, replica, gradients, error);
    sumac_value_unref(gradients);
    return status;
}

static enum sumac_status
apply_all_of_none(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_variable *const both[] = {tried->variable, tried->other};

    return sumac_variable_apply_all(both, 2, replica, NULL, error);
}

static enum sumac_status
apply_fewer(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_variable_apply_all(&tried->variable, 1, replica, tried->gradients, error);
}

static enum sumac_status
apply_to_anothers(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_variable *const both[] = {tried->of_another, tried->of_another};

    return sumac_variable_apply_all(both, 2, replica, tried->gradients, error);
}

static enum sumac_status
merge_nothing(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    (void)tried;
    return sumac_replica_merge_call(replica, NULL, NULL, NULL, NULL, error);
}

TEST(an_update_that_is_none_has_failed_in_all_replicas)
{
    const struct {
        attempt *well, *badly;
        enum sumac_status status;
        const char *said;
    } rows[] = {
        {update, update_none, SUMAC_INVALID_ARGUMENT, "variable is NULL"},
        {update, update_by_none, SUMAC_INVALID_ARGUMENT, "options->function is NULL"},
        {update, update_with_a_tensor, SUMAC_INVALID_ARGUMENT, "args is a tensor"},
        {update, apply_nothing, SUMAC_INVALID_ARGUMENT, "gradient is NULL"},
        {apply, apply_longer, SUMAC_INVALID_ARGUMENT,
         "apply of w, which is float32[2]: the value is float32[3]"},
        {apply_all, apply_all_longer, SUMAC_INVALID_ARGUMENT,
         "apply of v, which is float32[2]: the value is float64[2]"},
        {apply_all, apply_all_of_none, SUMAC_INVALID_ARGUMENT, "gradients is NULL"},
        {apply_all, apply_fewer, SUMAC_INVALID_ARGUMENT, "gradients is a list of 2"},
        {apply_all, apply_to_anothers, SUMAC_FAILED_PRECONDITION, "of another strategy"},
        {update, merge_nothing, SUMAC_INVALID_ARGUMENT, "function is NULL"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tried tried = {.well = rows[i].well, .badly = rows[i].badly};
        expect_refused_to_all(&tried, rows[i].status, rows[i].said);
    }
}

/* ---- gradients of what is gathered */

static enum sumac_status
gather(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_value *gathered = NULL;

    const enum sumac_status status =
        sumac_replica_all_gather(replica, tried->gradient, 0, NULL, &gathered, error);
    sumac_value_unref(gathered);
    return status;
}

static enum sumac_status
gather_no_gradient(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    return sumac_replica_all_gather_gradient(replica, tried->gradient, NULL, 0, NULL, error);
}

TEST(a_gradient_of_nothing_has_failed_in_all_replicas)
{
    struct tried tried = {.well = gather, .badly = gather_no_gradient};

    expect_refused_to_all(&tried, SUMAC_INVALID_ARGUMENT, "local is NULL");
}

/* ---- others that do not come */

static enum sumac_status
return_at_once(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    (void)tried, (void)replica, (void)error;
    return SUMAC_OK;
}

/* Replica 0 returns; replica 1 writes what it must not. */
static enum sumac_status
write_alone(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct tried *tried = context;

    return (sumac_replica_id(replica) == 0 ? tried->well : tried->badly)(tried, replica, error);
}

TEST(what_a_replica_failed_by_is_told_and_not_who_did_not_come)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct tried tried = {
        .well = return_at_once, .badly = write_without_aggregation, .gradient = vector(1, 1)};
    const struct sumac_run_options each = {.function = write_alone, .context = &tried};
    struct sumac_error error;

    tried.other = variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    assert_int_equal(sumac_strategy_run(strategy, &each, NULL, &error), SUMAC_FAILED_PRECONDITION);

    assert_non_null(strstr(error.text, "replica 1: assign_add of v: replicas write it without"));
    sumac_value_unref(tried.gradient);
    sumac_strategy_destroy(strategy);
}

/* ---- no variables */

static enum sumac_status
apply_to_none(struct tried *tried, struct sumac_replica *replica, struct sumac_error *error)
{
    struct sumac_value *none = sumac_value_list(NULL, 0);

    (void)tried;
    const enum sumac_status status = sumac_variable_apply_all(NULL, 0, replica, none, error);
    sumac_value_unref(none);
    return status;
}

TEST(a_replica_that_applies_to_no_variables_is_told_from_others)
{
    struct sumac_strategy *strategy = mirrored(2);
    struct tried tried = {.well = apply_to_none, .badly = apply_to_none};
    const struct sumac_run_options each = {.function = write_alone, .context = &tried};
    struct sumac_error error;

    assert_int_equal(sumac_strategy_run(strategy, &each, NULL, &error), SUMAC_OK);

    tried.well = apply_all;
    tried.variable = tried.other =
        variable_of(strategy, (struct sumac_variable_options){.name = "v"});
    tried.gradients =
        sumac_value_list((struct sumac_value *const[]){vector(1, 1), vector(1, 1)}, 2);
    assert_int_equal(sumac_strategy_run(strategy, &each, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "comes with 2 variables, and replica 1 with 0"));
    sumac_value_unref(tried.gradients);
    sumac_strategy_destroy(strategy);
}

TEST(options_of_communication_have_bounds)
{
    static const struct {
        struct sumac_communication_options options;
        bool fits;
    } rows[] = {
        {{.bytes_per_pack = 0}, true},
        {{.bytes_per_pack = SUMAC_BYTES_PER_PACK_MAX}, true},
        {{.bytes_per_pack = SUMAC_BYTES_PER_PACK_MAX + 1}, false},
        {{.implementation = SUMAC_COMMUNICATION_RING}, true},
        {{.implementation = SUMAC_COMMUNICATION_NCCL}, true},
        {{.implementation = SUMAC_COMMUNICATION_NCCL + 1}, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            communication_check(&rows[i].options, NULL),
            rows[i].fits ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
}
