/* SPDX-License-Identifier: Apache-2.0 */
/* voided.c -- the union of what the ps report as voided when a session is closed: every one of
 * them, or none is decided. */
#include "controller_members.h"

#include <assert.h>
#include <string.h>

#define FIRST_CAPACITY 64u

static size_t bytes_of(uint32_t capacity)
{
    return sizeof(struct controller_voided) + capacity * sizeof(uint64_t);
}

static bool grow(struct controller *controller, struct controller_voided **set)
{
    const struct controller_voided *held = *set;

    assert(held == NULL || held->count == held->capacity);
    const uint32_t capacity = held == NULL ? FIRST_CAPACITY : 2 * held->capacity;
    if (capacity > CONTROLLER_VOIDED_MAX)
        return false;
    struct controller_voided *grown = memory_take(controller->memory, bytes_of(capacity));
    if (grown == NULL)
        return false;
    grown->count = held == NULL ? 0 : held->count;
    grown->capacity = capacity;
    assert(grown->count < grown->capacity);
    if (grown->count > 0)
        memcpy(grown->sequence, held->sequence, grown->count * sizeof(uint64_t));
    controller_voided_drop(controller, set);
    *set = grown;
    return true;
}

/* The first place whose sequence is not below this one. */
static uint32_t place_of(const struct controller_voided *set, uint64_t sequence)
{
    uint32_t low = 0, high = set == NULL ? 0 : set->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (set->sequence[middle] < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == high);
    return low;
}

bool controller_voided_has(const struct controller_voided *set, uint64_t sequence)
{
    const uint32_t place = place_of(set, sequence);

    return set != NULL && place < set->count && set->sequence[place] == sequence;
}

bool controller_voided_add(
    struct controller *controller, struct controller_voided **set, uint64_t sequence)
{
    const uint32_t place = place_of(*set, sequence);

    if (*set != NULL && place < (*set)->count && (*set)->sequence[place] == sequence)
        return true;
    if ((*set == NULL || (*set)->count == (*set)->capacity) && !grow(controller, set))
        return false;
    uint64_t *at = &(*set)->sequence[place];
    memmove(at + 1, at, ((*set)->count - place) * sizeof *at);
    *at = sequence;
    (*set)->count++;
    assert((*set)->count <= (*set)->capacity);
    assert(place == 0 || at[-1] < sequence); /* ascending, and none twice */
    assert(place + 1 == (*set)->count || sequence < at[1]);
    return true;
}

void controller_voided_drop(struct controller *controller, struct controller_voided **set)
{
    if (*set != NULL)
        memory_give(controller->memory, *set, bytes_of((*set)->capacity));
    *set = NULL;
}

uint64_t controller_voided_bytes_max(const struct controller *controller)
{
    uint32_t capacity = FIRST_CAPACITY;

    while (capacity < controller->ps_count * controller_refusals_max(controller))
        capacity *= 2;
    return bytes_of(capacity);
}
