/* SPDX-License-Identifier: Apache-2.0 */
/* collective_places.h -- where a round of a collective meets, as its ps and its clients work it out
 * alike. docs/protocol/PROTOCOL.md, "Collectives".
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_COLLECTIVE_NAME_BYTES_MAX 256u
#define WIRE_COLLECTIVE_TASKS_MAX 512u
/* Beyond it what can be split is split, so that no ps has all of it. */
#define WIRE_COLLECTIVE_WHOLE_BYTES_MAX 1048576u
/* A result of no more comes on the push stream, where it was asked for beside the contribution. */
#define WIRE_COLLECTIVE_BESIDE_BYTES_MAX 16384u

/* The ps where what is not split meets: FNV-1a, of 64 bits, of the name, modulo their number. */
static inline uint32_t wire_collective_home(const void *name, size_t bytes, uint32_t ps_count)
{
    uint64_t value = UINT64_C(14695981039346656037);

    assert(ps_count > 0);
    for (size_t i = 0; i < bytes; i++)
        value = (value ^ ((const uint8_t *)name)[i]) * UINT64_C(1099511628211);
    return (uint32_t)(value % ps_count);
}

/* Of so many elements that are split, the first that ps `ps` has: i·n ÷ p, rounded down, of any n.
 */
static inline uint64_t wire_collective_first(uint64_t elements, uint32_t ps, uint32_t ps_count)
{
    assert(ps_count > 0 && ps <= ps_count);
    return elements / ps_count * ps + elements % ps_count * ps / ps_count;
}

/* The wire's numbers (Collective.Operation). */
enum collective_operation {
    COLLECTIVE_SUM = 1,
    COLLECTIVE_MEAN,
    COLLECTIVE_MIN,
    COLLECTIVE_MAX,
    COLLECTIVE_GATHER,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_CONCATENATE,
};
