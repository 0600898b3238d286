/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_changes.c -- a variable on GPUs is changed in one way after the other: by kernels, by
 * the host, of all components and of one alone. It is what the same makes of it on CPUs. */

#include "unit.h"
#include "gpu_world.h"
#include "strategy_pair.h"

static const struct sumac_shape shape = SUMAC_SHAPE(9);

static enum sumac_status
apply_to_last(struct sumac_update_context *component, void *context, struct sumac_error *error)
{
    (void)context;
    return sumac_update_index(component) + 1 == replicas
               ? sumac_update_apply(
                     component, NULL, sumac_value_item(sumac_update_args(component), 0), error)
               : SUMAC_OK;
}

enum change { APPLY, APPLY_ROWS, APPLY_TO_LAST, ADD, ASSIGN };

static void make_change(struct sumac_variable *variable, enum change change)
{
    const int64_t indices[] = {2, 0, 2};
    struct sumac_value *whole = tensor(SUMAC_FLOAT32, shape, 1), *rows = NULL, *args = NULL;
    struct sumac_update_options update = {.function = apply_to_last};
    enum sumac_status status = SUMAC_INTERNAL;

    switch (change) {
    case APPLY:
        status = sumac_variable_apply(variable, NULL, NULL, whole, NULL);
        break;
    case APPLY_ROWS: /* which no kernel does */
        rows = sumac_value_indexed_slices(
            tensor(SUMAC_FLOAT32, SUMAC_SHAPE(3), 1),
            sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(3), indices), shape);
        status = sumac_variable_apply(variable, NULL, NULL, rows, NULL);
        break;
    case APPLY_TO_LAST:
        (void)sumac_value_ref(whole);
        update.args = args = sumac_value_tuple(&whole, 1);
        status = sumac_variable_update(variable, NULL, &update, NULL, NULL);
        break;
    case ADD:
        status = sumac_variable_assign_add(variable, NULL, whole, NULL, NULL);
        break;
    case ASSIGN:
        status = sumac_variable_assign(variable, NULL, whole, NULL, NULL);
        break;
    }
    assert_int_equal(status, SUMAC_OK);
    sumac_value_unref(args);
    sumac_value_unref(rows);
    sumac_value_unref(whole);
}

/* On the host: what each component is, or its slots. */
static struct sumac_value *seen_of(struct sumac_variable *variable, bool slots)
{
    struct sumac_value *there = NULL, *here = NULL;

    assert_int_equal(
        slots ? sumac_variable_slots(variable, &there, NULL)
              : sumac_variable_components(variable, &there, NULL),
        SUMAC_OK);
    assert_int_equal(sumac_value_to_host(there, &here, NULL), SUMAC_OK);
    sumac_value_unref(there);
    return here;
}

/* How often it was changed, and its slots, go from one change to the next, by whomever that is
 * computed: of all components at once, of one alone, and of those that are not alike since. */
PAIR_TEST(changes_of_every_kind_go_on_as_on_cpus)
{
    static const struct sumac_schedule halved = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 1, .decay_rate = 0.5};
    static const enum change changes[] = {
        APPLY,         APPLY_ROWS, APPLY, ADD, APPLY,         ASSIGN, APPLY,      APPLY_ROWS,
        APPLY_TO_LAST, APPLY_ROWS, APPLY, ADD, APPLY_TO_LAST, ASSIGN, APPLY_ROWS, APPLY};
    struct sumac_function adam = SUMAC_FUNCTION("adam", {"learning_rate", 64});
    struct sumac_variable *variables[2];

    adam.schedule = &halved;
    for (int i = 0; i < 2; i++)
        variables[i] = variable_made(
            i == 0 ? pair->gpus : pair->cpus, tensor(SUMAC_FLOAT32, shape, 0), &adam,
            SUMAC_SYNCHRONIZATION_ON_WRITE);
    for (size_t step = 0; step < sizeof changes / sizeof *changes; step++) {
        for (int i = 0; i < 2; i++)
            make_change(variables[i], changes[step]);
        for (int slots = 0; slots < 2; slots++) {
            struct sumac_value *there = seen_of(variables[0], slots != 0);
            struct sumac_value *here = seen_of(variables[1], slots != 0);
            if (!sumac_value_equal(there, here))
                fail_msg("after %zu changes %s differ", step + 1, slots ? "slots" : "components");
            sumac_value_unref(there);
            sumac_value_unref(here);
        }
    }
    for (int i = 0; i < 2; i++)
        sumac_variable_destroy(variables[i]);
}

int main(void)
{
    if (!pair_is_there())
        return GPU_WORLD_SKIPPED;
    return unit_run(NULL, NULL);
}
