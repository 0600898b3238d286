/* SPDX-License-Identifier: Apache-2.0 */
/* replica.c -- what a function reads of its replica, and what it leaves there: its arguments, and
 * its result. */
#include "replica.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "error.h"
#include "value.h"

uint32_t sumac_replica_id(const struct sumac_replica *replica)
{
    return replica == NULL ? 0 : replica->id;
}

uint32_t sumac_replica_count(const struct sumac_replica *replica)
{
    return replica == NULL ? 0 : replica->count;
}

struct sumac_device *sumac_replica_device(const struct sumac_replica *replica)
{
    return replica == NULL ? NULL : replica->device;
}

uint64_t sumac_replica_step(const struct sumac_replica *replica)
{
    return replica == NULL ? 0 : replica->step;
}

const struct sumac_tensor *sumac_replica_value(const struct sumac_replica *replica, uint32_t index)
{
    return replica == NULL || index >= replica->value_count ? NULL : &replica->values[index];
}

const struct sumac_tensor *
sumac_replica_gradient(const struct sumac_replica *replica, uint32_t index)
{
    return replica == NULL || index >= replica->gradient_count ? NULL : &replica->gradients[index];
}

void sumac_replica_set_weight(struct sumac_replica *replica, double weight)
{
    if (replica != NULL)
        replica->weight = weight;
}

/* ---- of a run */

enum sumac_status arguments_check(
    const char *of, const struct sumac_value *args, const struct sumac_value *kwargs,
    struct sumac_error *error)
{
    const enum sumac_value_kind kind = sumac_value_kind(args);

    if (args != NULL && kind != SUMAC_VALUE_TUPLE && kind != SUMAC_VALUE_LIST)
        return fail_argument(
            error, "%.300s: args is a %s; it is a tuple or a list of what the function takes", of,
            sumac_value_kind_name(kind));
    if (kwargs != NULL && sumac_value_kind(kwargs) != SUMAC_VALUE_DICT)
        return fail_argument(
            error, "%.300s: kwargs is a %s; it is a dict", of,
            sumac_value_kind_name(sumac_value_kind(kwargs)));
    return SUMAC_OK;
}

enum sumac_status arguments_select(
    const struct sumac_value *args, const struct sumac_value *kwargs, uint32_t replica,
    struct arguments *own, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    assert(own->args == NULL);
    assert(own->returned == NULL);
    if (args != NULL)
        status = sumac_value_select(args, replica, &own->args, error);
    else if ((own->args = sumac_value_tuple(NULL, 0)) == NULL)
        status = value_fail_for_memory(error);
    if (status == SUMAC_OK && kwargs != NULL)
        return sumac_value_select(kwargs, replica, &own->kwargs, error);
    if (status == SUMAC_OK && (own->kwargs = sumac_value_dict(NULL, NULL, 0)) == NULL)
        return value_fail_for_memory(error);
    return status;
}

void arguments_return(struct arguments *own, struct sumac_value *value)
{
    sumac_value_unref(own->returned);
    own->returned = value;
    own->has_returned = true;
}

enum sumac_status arguments_end(
    struct arguments *own, enum sumac_status status, struct sumac_value **returned,
    struct sumac_error *error)
{
    assert(*returned == NULL);
    sumac_value_unref(own->args);
    sumac_value_unref(own->kwargs);
    if (status == SUMAC_OK &&
        (*returned = own->has_returned ? own->returned : sumac_value_none()) == NULL)
        status = value_fail_for_memory(error);
    if (*returned == NULL)
        sumac_value_unref(own->returned);
    *own = (struct arguments){.args = NULL};
    return status;
}

enum sumac_status
function_failed(struct sumac_error *said, enum sumac_status status, const char *whose)
{
    const struct sumac_error was = *said;
    const int length = (int)strnlen(was.text, sizeof was.text);

    assert(status != SUMAC_OK);
    if (was.status != SUMAC_OK)
        return fail(said, was.status, was.reason, "%.*s", length, was.text);
    return fail(
        said, status, SUMAC_REASON_UNSPECIFIED, "%s returned %s%s%.*s", whose,
        sumac_status_name(status), length == 0 ? "" : ": ", length, was.text);
}

const struct sumac_value *sumac_replica_args(const struct sumac_replica *replica)
{
    return replica == NULL ? NULL : replica->own.args;
}

const struct sumac_value *sumac_replica_kwargs(const struct sumac_replica *replica)
{
    return replica == NULL ? NULL : replica->own.kwargs;
}

void sumac_replica_return(struct sumac_replica *replica, struct sumac_value *value)
{
    if (replica != NULL && replica->own.args != NULL)
        arguments_return(&replica->own, value);
    else
        sumac_value_unref(value); /* the replica is in no run */
}
