/* SPDX-License-Identifier: Apache-2.0 */
/* likeness.c -- which copies of a value in the memory of several devices are one value.
 *
 * On the host, one object can stand for all replicas. A device with memory of its own has a copy.
 * A likeness is a number that these copies share, and nothing else has.
 *
 * A collective, and a read of a variable, gives each replica a copy of its own. These copies are
 * alike too, but each of them stays its replica's: regrouped, they are per_replica.
 */
#include "value.h"

#include <assert.h>

#include "host_copy.h"

uint64_t value_new_likeness(void)
{
    static atomic_uint_fast64_t given;

    return atomic_fetch_add_explicit(&given, 1, memory_order_relaxed) + 1;
}

void value_liken(struct sumac_value *copy, const struct sumac_value *leaf)
{
    atomic_uint_fast64_t *noted =
        (atomic_uint_fast64_t *)&leaf->likeness; /* no part of the value */
    uint_fast64_t likeness = 0;

    assert(atomic_load(&copy->likeness) == 0);
    if (atomic_load(noted) == 0) /* another thread may be as fast */
        (void)atomic_compare_exchange_strong(noted, &likeness, value_new_likeness());
    atomic_store(&copy->likeness, atomic_load(&leaf->likeness));
    copy->own = leaf->own;
}

bool value_are_alike(const struct sumac_value *const *leaves, uint32_t count)
{
    const uint_fast64_t likeness = atomic_load(&leaves[0]->likeness);

    assert(count > 0);
    for (uint32_t i = 1; i < count; i++)
        if (atomic_load(&leaves[i]->likeness) != likeness)
            return false;
    return likeness != 0;
}

bool value_is_same_in_replicas(const struct sumac_value *leaf)
{
    return leaf->kind == SUMAC_VALUE_MIRRORED ||
           (leaf->kind == SUMAC_VALUE_PER_REPLICA && leaf->items[0]->own &&
            value_are_alike(value_lend(leaf->items), leaf->count));
}

/* ---- is it on the host? */

bool value_is_here(const struct sumac_value *leaf)
{
    if (leaf->kind == SUMAC_VALUE_INDEXED_SLICES)
        return value_is_here(leaf->items[0]) && value_is_here(leaf->items[1]);
    return leaf->kind != SUMAC_VALUE_TENSOR || host_copy_is_here(leaf->tensor.buffer);
}
