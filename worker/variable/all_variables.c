/* SPDX-License-Identifier: Apache-2.0 */
/* all_variables.c -- all variables of a model in one call: read, and changed by their gradients.
 * Those that live on the ps are one pull, and one push.
 */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"

struct variables {
    struct sumac_variable *const *items;
    uint32_t count;
};

static enum sumac_status check_variables(
    const struct variables *variables, const struct sumac_replica *replica, const char *call,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < variables->count; i++) {
        if (variables->items[i] == NULL)
            return fail_argument(error, "%s: variables[%" PRIu32 "] is NULL", call, i);
        if (variables->items[i]->strategy != variables->items[0]->strategy)
            return fail(
                error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
                "%s: %.200s and %.200s are of two strategies", call, variables->items[0]->name,
                variables->items[i]->name);
        status = variable_check_context(variables->items[i], replica, call, error);
    }
    return status;
}

/* ---- read */

/* Before there is memory for them. */
static enum sumac_status check_count(uint32_t count, const char *call, struct sumac_error *error)
{
    assert(call != NULL);
    if (count <= SUMAC_VALUE_ITEMS_MAX)
        return SUMAC_OK;
    return fail_argument(
        error,
        "%s: %" PRIu32 " variables, and a list has %u items at most: read them in several calls",
        call, count, SUMAC_VALUE_ITEMS_MAX);
}

/* Across, workers make a call for each that is read together: of the first they hear. */
static enum sumac_status refuse_all(
    const struct variables *variables, const struct sumac_replica *replica,
    const struct sumac_error *why, struct sumac_error *error)
{
    for (uint32_t i = 0; variables->items != NULL && i < variables->count; i++)
        if (variables->items[i] != NULL && variable_reads_together(variables->items[i]))
            return variable_refuse_read(variables->items[i], replica, why, error);
    return variable_refuse_read(NULL, replica, why, error);
}

enum sumac_status sumac_variable_read_all(
    struct sumac_variable *const *variables, uint32_t count, struct sumac_replica *replica,
    struct sumac_value **values, struct sumac_error *error)
{
    static const char call[] = "sumac_variable_read_all";
    const struct variables all = {.items = variables, .count = count};

    struct sumac_error why;
    enum sumac_status status =
        (variables == NULL && count > 0) || values == NULL
            ? fail_for_null(&why, call, values == NULL ? "values" : "variables")
            : check_count(count, call, &why);
    if (status == SUMAC_OK)
        status = check_variables(&all, replica, call, &why);
    struct sumac_value **read = status == SUMAC_OK ? calloc((size_t)count + 1, sizeof *read) : NULL;
    if (status == SUMAC_OK && read == NULL)
        status = value_fail_for_memory(&why);
    if (status != SUMAC_OK)
        return refuse_all(&all, replica, &why, error);
    status = remote_read_all(variables, count, read, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++)
        status = variables[i]->remote == NULL
                     ? sumac_variable_read(variables[i], replica, &read[i], error)
                     : variable_place(variables[i], replica, status, &read[i], error);
    if (status == SUMAC_OK)
        status = value_give(sumac_value_list(read, count), values, error); /* takes them */
    else
        value_unref_all(read, count);
    free(read);
    return status;
}

/* ---- changed */

/* As the variable's one component, or its first, has it. Gives  *own. */
static enum sumac_status check_gradient(
    struct sumac_variable *variable, const struct sumac_value *gradient, struct sumac_value **own,
    struct sumac_error *error)
{
    enum sumac_status status = update_check_argument(variable, gradient, error);

    if (status == SUMAC_OK)
        status = sumac_value_select(gradient, variable->strategy->first, own, error);
    if (status != SUMAC_OK)
        return status;
    assert(*own != NULL);
    return operand_check(
        variable, "apply", *own, sumac_value_kind(*own) == SUMAC_VALUE_INDEXED_SLICES, error);
}

/* All gradients are looked at before any is applied. */
static enum sumac_status apply_across(
    const struct variables *variables, const struct sumac_value *gradients,
    struct sumac_error *error)
{
    struct sumac_value **own = calloc((size_t)variables->count + 1, sizeof *own);
    enum sumac_status status = own == NULL ? value_fail_for_memory(error) : SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < variables->count; i++)
        status =
            check_gradient(variables->items[i], sumac_value_item(gradients, i), &own[i], error);
    if (status == SUMAC_OK && variables->count > 0)
        status = remote_change_all(variables->items, value_lend(own), variables->count, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < variables->count; i++)
        if (variables->items[i]->remote == NULL)
            status = sumac_variable_apply(
                variables->items[i], NULL, NULL, sumac_value_item(gradients, i), error);
    value_unref_all(own, variables->count);
    free(own);
    return status;
}

/* All replicas' gradients, regrouped. */
static enum sumac_status apply_merged(
    struct sumac_strategy *strategy, const struct sumac_value *gradients, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    (void)strategy, (void)result;
    return apply_across(context, gradients, error);
}

static enum sumac_status apply_in_replica(
    const struct variables *variables, struct sumac_replica *replica,
    const struct sumac_value *gradients, struct sumac_error *error)
{
    struct variables own = *variables;
    const struct call call = {
        .kind = CALL_MERGE,
        .value = gradients,
        .function = apply_merged,
        .context = &own,
        .variables = variables->items,
        .variable_count = variables->count};

    return call_for_own(replica, &call, NULL, error);
}

static enum sumac_status check_gradients(
    const struct variables *variables, const struct sumac_replica *replica,
    const struct sumac_value *gradients, struct sumac_error *error)
{
    static const char call[] = "sumac_variable_apply_all";
    const enum sumac_value_kind kind = sumac_value_kind(gradients);

    if ((variables->items == NULL && variables->count > 0) || gradients == NULL)
        return fail_for_null(error, call, gradients == NULL ? "gradients" : "variables");
    if ((kind != SUMAC_VALUE_LIST && kind != SUMAC_VALUE_TUPLE) ||
        sumac_value_count(gradients) != variables->count)
        return fail_argument(
            error,
            "%s: gradients is a %s of %" PRIu32
            "; it is a list or tuple of one for each of %" PRIu32 " variables",
            call, sumac_value_kind_name(kind), sumac_value_count(gradients), variables->count);
    enum sumac_status status = check_variables(variables, replica, call, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < variables->count; i++)
        status = update_check_own(
            variables->items[i], replica, "apply", sumac_value_item(gradients, i), error);
    return status;
}

enum sumac_status sumac_variable_apply_all(
    struct sumac_variable *const *variables, uint32_t count, struct sumac_replica *replica,
    const struct sumac_value *gradients, struct sumac_error *error)
{
    const struct variables all = {.items = variables, .count = count};
    struct sumac_error why;

    if (check_gradients(&all, replica, gradients, &why) != SUMAC_OK)
        return update_refuse(replica, &why, error);
    if (replica == NULL)
        return apply_across(&all, gradients, error);
    /* of no variables, too: others may come with some */
    return count > 0 || context_is_of(replica) ? apply_in_replica(&all, replica, gradients, error)
                                               : SUMAC_OK;
}
