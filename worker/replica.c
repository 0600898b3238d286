/* SPDX-License-Identifier: Apache-2.0 */
/* replica.c -- what a function reads of its replica, and what it leaves there. */
#include "replica.h"

#include <stddef.h>

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
