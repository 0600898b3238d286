/* SPDX-License-Identifier: Apache-2.0 */
/* creation.c -- variables are created within the replicas' function. All replicas stand in one
 * call: their options are compared, and the last replica to come creates the variable across them.
 */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>

#include "error.h"

/* One replica's part of the call, while the replica waits. */
struct creation {
    const struct sumac_variable_options *options;
    struct sumac_variable *made;
};

/* What replica 0 asks for; what the others propose was compared with that. */
static enum sumac_status create_merged(
    struct sumac_strategy *strategy, const struct sumac_value *proposals, void *context,
    struct sumac_value **result, struct sumac_error *error)
{
    struct sumac_variable_options options = *((const struct creation *)context)->options;
    struct sumac_variable *made = NULL;

    (void)proposals;
    options.replica = NULL;
    *result = sumac_value_none();
    const enum sumac_status status = sumac_variable_create(strategy, &options, &made, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++)
        ((struct creation *)strategy->calls.made[i]->context)->made = made;
    return status;
}

static enum sumac_status check_creation(
    const struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    if (variable == NULL)
        return fail_for_null(error, "sumac_variable_create", "variable");
    if (options->process_local)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "variable %.200s: it is process_local, and no variable of the replicas; create it "
            "outside of their function",
            options->name == NULL ? "without a name" : options->name);
    return distributed_check_options(strategy, options, error);
}

enum sumac_status creation_in_replica(
    struct sumac_strategy *strategy, const struct sumac_variable_options *options,
    struct sumac_variable **variable, struct sumac_error *error)
{
    struct sumac_replica *const replica = options->replica;
    struct creation creation = {.options = options};
    struct sumac_value *none = NULL;
    struct sumac_error why;
    struct label label;

    if (!context_is_of(replica) || replica->strategy != strategy)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "sumac_variable_create: options->replica is %s; set it to the context that the "
            "replica's function is given, and elsewhere to NULL",
            replica == NULL ? "NULL" : "not the context of this replica of the strategy");
    if (check_creation(strategy, options, variable, &why) != SUMAC_OK)
        return call_refuse(replica, CALL_CREATE, &why, error);
    distributed_label_options(strategy, options, &label);
    const struct call call = {
        .kind = CALL_CREATE,
        .value = distributed_initial_of(options),
        .function = create_merged,
        .context = &creation,
        .name = label.text,
        .sum = label.sum};
    const enum sumac_status status = call_with_others(replica, &call, &none, error);
    sumac_value_unref(none);
    if (status == SUMAC_OK) {
        assert(creation.made != NULL);
        *variable = creation.made;
    }
    return status;
}
