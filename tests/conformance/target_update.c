/* SPDX-License-Identifier: Apache-2.0 */
/* target_update.c -- the update functions of a variable that lives in this process, through the
 * public interface: the loops that a ps calls, and the slots beside them. */
#include <string.h>

#include "error.h"
#include "sumac/variable.h"
#include "target.h"

static struct {
    struct sumac_strategy *strategy;
    struct sumac_variable *variable;
    struct sumac_value *slots; /* that were looked at last */
} now;

static enum sumac_status open_target(struct sumac_error *error)
{
    (void)error;
    return SUMAC_OK;
}

static void close_target(void) {}

static struct sumac_value *value_of(const struct case_tensor *tensor)
{
    return sumac_value_tensor(tensor->dtype, tensor->shape, tensor->data);
}

static enum sumac_status create(const struct target_variable *variable, struct sumac_error *error)
{
    const struct sumac_strategy_options alone = {.kind = SUMAC_STRATEGY_DEFAULT};
    struct sumac_function function = {.name = variable->function};

    if (variable->hyperparameter_count > SUMAC_HYPERPARAMETERS_MAX)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_UNSPECIFIED, "more than %u hyperparameters",
            SUMAC_HYPERPARAMETERS_MAX);
    for (size_t i = 0; i < variable->hyperparameter_count; i++)
        function.hyperparameters[i] = (struct sumac_hyperparameter){
            .name = variable->hyperparameters[i].name, .value = variable->hyperparameters[i].value};
    struct sumac_value *initial = value_of(variable->initial);
    const struct sumac_variable_options options = {
        .name = variable->name, .initial = initial, .function = function};
    enum sumac_status status = sumac_strategy_create(&alone, &now.strategy, error);
    if (status == SUMAC_OK)
        status = sumac_variable_create(now.strategy, &options, &now.variable, error);
    sumac_value_unref(initial);
    return status;
}

static void forget_slots(void)
{
    sumac_value_unref(now.slots);
    now.slots = NULL;
}

static void delete_variable(void)
{
    forget_slots();
    sumac_strategy_destroy(now.strategy); /* with its variables */
    memset(&now, 0, sizeof now);
}

static enum sumac_status apply(struct sumac_value *gradient, struct sumac_error *error)
{
    forget_slots();
    const enum sumac_status status =
        gradient == NULL ? fail(
                               error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE,
                               "the library has no such gradient")
                         : sumac_variable_apply(now.variable, NULL, NULL, gradient, error);
    sumac_value_unref(gradient);
    return status;
}

static enum sumac_status push_dense(const struct case_tensor *gradient, struct sumac_error *error)
{
    return apply(value_of(gradient), error);
}

static enum sumac_status push_rows(
    const struct case_tensor *values, const struct case_tensor *indices, struct sumac_error *error)
{
    return apply(
        sumac_value_indexed_slices(
            value_of(values), value_of(indices), sumac_variable_shape(now.variable)),
        error);
}

static enum sumac_status read_value(void *value, struct sumac_error *error)
{
    struct sumac_value *read = NULL;

    const enum sumac_status status = sumac_variable_read(now.variable, NULL, &read, error);
    if (status == SUMAC_OK)
        memcpy(
            value, sumac_value_data(read), (size_t)sumac_tensor_bytes(sumac_value_as_tensor(read)));
    sumac_value_unref(read);
    return status;
}

/* The dict of its one component; empty without slots. Lends  until the next push. */
static const struct sumac_value *look_at_slots(void)
{
    struct sumac_error error;

    if (now.slots == NULL && sumac_variable_slots(now.variable, &now.slots, &error) != SUMAC_OK)
        return NULL;
    return sumac_value_item(now.slots, 0);
}

static size_t count_slots(void) { return sumac_value_count(look_at_slots()); }

static enum sumac_dtype slot_dtype(void)
{
    const struct sumac_tensor *slot = sumac_value_as_tensor(sumac_value_item(look_at_slots(), 0));

    return slot == NULL ? SUMAC_DTYPE_UNSPECIFIED : slot->dtype;
}

static const void *find_slot(const char *name)
{
    return sumac_value_data(sumac_value_find(look_at_slots(), name));
}

const struct target target_loops = {
    .open = open_target,
    .close = close_target,
    .create = create,
    .delete = delete_variable,
    .push = push_dense,
    .push_rows = push_rows,
    .read = read_value,
    .slots = count_slots,
    .slot_dtype = slot_dtype,
    .slot = find_slot};
