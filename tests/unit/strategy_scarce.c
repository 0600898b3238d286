/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_scarce.c (test) -- a call whose memory runs out fails as a whole, and gives back what it
 * took: each of its takes of memory fails once. */
#include <errno.h>
#include <stdatomic.h>

#include "unit.h"
#include "scarce_heap.h"
#include "../returning.h"
#include "strategy_made.h"
#include "sumac/variable.h"

#define TAKES_MAX 500 /* of one call */

/* ---- the calls */

/* Two replicas have a variable alike, and one that is read together. */
struct model {
    struct sumac_strategy *strategy;
    struct sumac_variable *variables[2];
    struct sumac_value *values, *gradient, *gradients, *held;
};

typedef enum sumac_status
operation(struct model *model, struct sumac_value **result, struct sumac_error *error);

static enum sumac_status
create(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_value *const initial = model->gradient;
    struct sumac_variable *made = NULL;
    const struct sumac_variable_options options = {
        .name = "third", .initial = initial, .function = {.name = "momentum"}};

    (void)result;
    const enum sumac_status status = sumac_variable_create(model->strategy, &options, &made, error);

    sumac_variable_destroy(made);
    return status;
}

static enum sumac_status
read_alike(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_read(model->variables[0], NULL, result, error);
}

static enum sumac_status
read_together(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_read(model->variables[1], NULL, result, error);
}

static enum sumac_status
read_both(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_read_all(model->variables, 2, NULL, result, error);
}

static enum sumac_status
assign(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return sumac_variable_write(
        model->variables[0], NULL, SUMAC_WRITE_ASSIGN_ADD, model->gradient, result, error);
}

static enum sumac_status
apply(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    (void)result;
    return sumac_variable_apply(model->variables[0], NULL, NULL, model->gradient, error);
}

static enum sumac_status
apply_all(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    (void)result;
    return sumac_variable_apply_all(model->variables, 1, NULL, model->gradients, error);
}

static enum sumac_status
change(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    (void)context;

    return return_from_update(
        component,
        sumac_update_write(
            component, SUMAC_WRITE_ASSIGN_ADD, sumac_value_item(sumac_update_args(component), 0),
            &returned, error),
        &returned);
}

static enum sumac_status update_in(
    struct model *model, struct sumac_replica *replica, struct sumac_value **result,
    struct sumac_error *error)
{
    struct sumac_update_options update = {.function = change, .args = model->gradients};

    return sumac_variable_update(model->variables[0], replica, &update, result, error);
}

static enum sumac_status
update(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return update_in(model, NULL, result, error);
}

/* Takes and gives back a strategy. */
static enum sumac_status
make(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_strategy_options options = {.kind = SUMAC_STRATEGY_MIRRORED, .replicas = 2};
    struct sumac_strategy *made = NULL;
    const enum sumac_status status = sumac_strategy_create(&options, &made, error);

    (void)model, (void)result;
    sumac_strategy_destroy(made);
    return status;
}

static enum sumac_status
reduce(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return sumac_strategy_reduce(
        model->strategy, SUMAC_REDUCE_MEAN, model->values, NULL, result, error);
}

static enum sumac_status
gather(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    return sumac_strategy_gather(model->strategy, model->values, 0, result, error);
}

static enum sumac_status
in_each(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    struct model *model = context;

    enum sumac_status status =
        sumac_variable_apply_all(model->variables, 1, replica, model->gradients, error);
    if (status == SUMAC_OK)
        status = update_in(model, replica, NULL, error);
    if (status == SUMAC_OK)
        status = sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, model->gradient, NULL, &returned, error);
    return return_from_replica(replica, status, &returned);
}

static enum sumac_status
run(struct model *model, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_run_options step = {.function = in_each, .context = model};

    return sumac_strategy_run(model->strategy, &step, result, error);
}

static struct sumac_value *vector(void)
{
    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), (const float[]){1, 2});
}

static struct model begin(void)
{
    struct model model = {.strategy = mirrored(2), .gradient = vector()};
    struct sumac_value *const gradients[] = {vector()}, *const both[] = {vector(), vector()};

    for (uint32_t i = 0; i < 2; i++) {
        const struct sumac_variable_options options = {
            .name = i == 0 ? "alike" : "together",
            .initial = model.gradient,
            .synchronization =
                i == 0 ? SUMAC_SYNCHRONIZATION_ON_WRITE : SUMAC_SYNCHRONIZATION_ON_READ,
            .aggregation = SUMAC_REDUCE_SUM,
            .function = {.name = "assign_add"}};
        assert_int_equal(
            sumac_variable_create(model.strategy, &options, &model.variables[i], NULL), SUMAC_OK);
    }
    /* what was read stays as it was: a change takes memory */
    assert_int_equal(sumac_variable_read(model.variables[0], NULL, &model.held, NULL), SUMAC_OK);
    model.gradients = sumac_value_list(gradients, 1);
    model.values = sumac_value_per_replica(both, 2, 0);
    return model;
}

static void end(const struct model *model)
{
    sumac_value_unref(model->gradient);
    sumac_value_unref(model->gradients);
    sumac_value_unref(model->values);
    sumac_value_unref(model->held);
    sumac_strategy_destroy(model->strategy); /* with its variables */
}

/* Let take number `take` of the call fail. True: the call has fewer, and is well. */
static bool is_whole_without(const char *name, operation *call, int take)
{
    const int before = live;
    struct model model = begin();
    struct sumac_value *result = NULL;
    struct sumac_error error = {0};

    has_failed = false;
    fails_in = take;
    const enum sumac_status status = call(&model, &result, &error);
    fails_in = 0;
    const bool all = !has_failed;
    if (!all && status == SUMAC_OK)
        fail_msg("%s, take %d: it is well without that memory", name, take);
    if (status != SUMAC_OK && (all || result != NULL || status != SUMAC_RESOURCE_EXHAUSTED))
        fail_msg("%s, take %d: %d, %s", name, take, (int)status, error.text);
    sumac_value_unref(result);
    end(&model);
    if (live != before)
        fail_msg("%s, take %d: %d blocks are kept", name, take, live - before);
    return all;
}

TEST(a_call_without_memory_fails_and_keeps_none)
{
    static const struct {
        const char *name;
        operation *call;
    } calls[] = {
        {"create", create},       {"read", read_alike},   {"read together", read_together},
        {"read both", read_both}, {"assign_add", assign}, {"apply", apply},
        {"update", update},       {"make", make},         {"apply_all", apply_all},
        {"reduce", reduce},       {"gather", gather},     {"run", run},
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        bool all = false;
        for (int take = 1; !all && take < TAKES_MAX; take++)
            all = is_whole_without(calls[i].name, calls[i].call, take);
        assert_true(all);
    }
}
